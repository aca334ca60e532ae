// Command cmd makes random calls of the libraries of Lua scripts in two servers and compares the results.
//
//	go run ./conformance/scripts/cmd -a 127.0.0.1:6379 -b 127.0.0.1:6380 -n 200000 -seed 1
//
// With -record it instead writes the calls and the first server's results to a file, which the package's tests read.
//
//	go run ./conformance/scripts/cmd -a 127.0.0.1:6379 -n 1500 -seed 7 -record conformance/scripts/testdata/calls.txt
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/atomredis/atomredis/conformance/scripts"
)

func main() {
	o := scripts.Options{Log: os.Stdout}
	flag.StringVar(&o.A, "a", "127.0.0.1:6379", "`address` of the reference, host:port or the path of a Unix socket")
	flag.StringVar(&o.B, "b", "127.0.0.1:6380", "`address` of the server under test")
	flag.IntVar(&o.Calls, "n", 200_000, "`number` of calls")
	flag.Uint64Var(&o.Seed, "seed", 1, "`seed` of the calls")
	flag.IntVar(&o.KeepGoing, "keep-going", 1, "end after this `number` of differences")
	record := flag.String("record", "", "write the calls and what the reference returns to this `file`")
	flag.Parse()
	if *record != "" {
		if err := write(o, *record); err != nil {
			fmt.Fprintln(os.Stderr, "scripts:", err)
			os.Exit(2)
		}
		return
	}
	found, err := scripts.Check(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "scripts:", err)
		os.Exit(2)
	}
	if found > 0 {
		os.Exit(1)
	}
}

func write(o scripts.Options, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := scripts.Record(o, f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
