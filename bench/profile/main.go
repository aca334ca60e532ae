// Command profile is the server of cmd/atomredis, and also adds a profile of its processor time to a file, from which
// the compiler learns what to optimize. See `make profile`.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"syscall"

	"github.com/google/pprof/profile"

	"github.com/atomredis/atomredis/internal/config"
	_ "github.com/atomredis/atomredis/internal/durable" // storage and groups
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/server"
)

// fileVariable is the environment variable that names the file.
const fileVariable = "ATOMREDIS_PROFILE"

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" { // the benchmark asks for it
		fmt.Println("atomredis v=" + version.Number)
		return
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	conf := config.NewConfig()
	check(conf.LoadArgs(os.Args[1:]))
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + conf.Get().Threads.Loops) // as in cmd/atomredis
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{SpareProcessors: true})
	check(err)
	var b bytes.Buffer
	check(pprof.StartCPUProfile(&b))
	check(srv.Start())
	select {
	case <-stop:
	case <-srv.Done():
	}
	check(srv.Close())
	pprof.StopCPUProfile()
	check(add(os.Getenv(fileVariable), &b))
}

// add adds a profile to those in a file, which may not exist yet. The result contains nothing about the machine.
func add(file string, b *bytes.Buffer) error {
	p, err := profile.Parse(b)
	if err != nil {
		return err
	}
	for _, m := range p.Mapping {
		m.File, m.BuildID = "atomredis", ""
	}
	p.TimeNanos = 0
	const functions, names, lines, addresses, columns = true, true, true, false, false
	if err := p.Aggregate(functions, names, names, lines, columns, addresses); err != nil {
		return err
	}
	switch old, err := os.ReadFile(file); {
	case err == nil:
		before, err := profile.ParseData(old)
		if err != nil {
			return err
		}
		if p, err = profile.Merge([]*profile.Profile{before, p}); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	var out bytes.Buffer
	if err := p.Compact().Write(&out); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
