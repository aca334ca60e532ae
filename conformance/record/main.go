// Command record adds and refreshes the replies of transcripts from a live Redis.
//
//	go run ./conformance/record -addr 127.0.0.1:6379 conformance/testdata/string/*.txt
package main

import (
	"flag"
	"fmt"
	"net"
	"os"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:6379",
		"`address` of the server, host:port or the path of a Unix socket; its data is deleted")
	since := flag.String("since", "", "keep the replies that are there, and put those of the server beside them as replies of this `release`, 7.2, where they differ")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "record: no transcripts given")
		os.Exit(2)
	}
	failed := false
	for _, path := range flag.Args() {
		if err := record(*addr, *since, path); err != nil {
			fmt.Fprintln(os.Stderr, "record:", err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

func record(addr, since, path string) error {
	t, err := transcript.ParseFile(path)
	if err != nil {
		return err
	}
	dial := func() (net.Conn, error) { return transcript.Dial(addr) }
	if since == "" {
		err = transcript.Record(dial, t)
	} else if release, parseErr := transcript.ParseRelease(since); parseErr != nil {
		err = fmt.Errorf("-since %s: %w", since, parseErr)
	} else {
		err = transcript.RecordSince(dial, t, release)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%5d exchanges  %s\n", t.Exchanges(), path)
	return os.WriteFile(path, []byte(t.String()), 0o644)
}
