package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/atomredis/atomredis/cmd/atomredis/internal/progress"
	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/doors/spiderq"
)

// importSpiderq fills an empty data directory from a snapshot of a spiderq, as the queue that spiderq-queue names.
func importSpiderq(file string, args []string, stdout, stderr io.Writer) error {
	n, dir, err := readSpiderq(file, args, stderr)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%d entries of %s have been read into %s\n", n, file, dir)
	return err
}

func readSpiderq(file string, args []string, stderr io.Writer) (n int, dir string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	bar := progress.New(stderr)
	defer bar.Done()
	srv, set, err := offline(args, stderr, bar, source{empty: true})
	if err != nil {
		return 0, "", err
	}
	defer func() {
		if err != nil {
			srv.Discard() // with a part of the snapshot stored, a second import would be refused
		}
		err = errors.Join(err, srv.Close())
	}()
	if err := srv.Start(); err != nil {
		return 0, "", err
	}
	session, err := srv.Direct(0)
	if err != nil {
		return 0, "", err
	}
	client := door.NewClient(session)
	defer client.Close()
	queue := set.Registered["spiderq-queue"]
	err = spiderq.ReadSnapshot(f, func(key, value []byte) error {
		n++
		bar.Show("importing", "entries", int64(n), 0)
		_, err := client.Do(context.Background(), "SPIDERQ.ADD", queue, key, value)
		return err
	})
	return n, set.Files.Dir, err
}
