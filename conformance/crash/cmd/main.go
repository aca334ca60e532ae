// Command crash kills a server under load, again and again, and checks its data after each restart.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/atomredis/atomredis/conformance/crash"
)

func main() {
	os.Exit(run())
}

func run() int {
	var o crash.Options
	flag.StringVar(&o.Server, "server", "bin/atomredis", "the server's binary, atomredis or redis-server")
	flag.IntVar(&o.Rounds, "rounds", 200, "how often the server is loaded and killed")
	flag.Uint64Var(&o.Seed, "seed", 1, "the seed of all random choices")
	flag.StringVar(&o.Fsync, "fsync", "always", "the server's appendfsync: always or everysec")
	flag.StringVar(&o.Dir, "dir", "", "the directory for data and log (default: a temporary one, deleted after success)")
	flag.Parse()
	if o.Fsync != "always" && o.Fsync != "everysec" || flag.NArg() > 0 {
		flag.Usage()
		return 2
	}
	o.Progress = os.Stderr
	dir, temporary, err := makeDir(o.Dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		return 1
	}
	o.Dir = dir
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	result, err := crash.Run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		return 1
	}
	if temporary {
		os.RemoveAll(dir)
	}
	fmt.Printf("crash: seed %d, appendfsync %s: %d rounds, %d kills, %d restarts, %d acknowledged writes checked, 0 losses\n",
		o.Seed, o.Fsync, result.Rounds, result.Kills, result.Restarts, result.Writes)
	return 0
}

// makeDir returns an absolute path, that of a temporary directory if no path is given.
func makeDir(path string) (dir string, temporary bool, err error) {
	if path == "" {
		dir, err = os.MkdirTemp("", "crash")
		return dir, true, err
	}
	if dir, err = filepath.Abs(path); err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	return dir, false, err
}
