// Command cmd sends random commands to two servers and compares them. It deletes their data.
//
//	go run ./conformance/differential/cmd -a 127.0.0.1:6379 -b 127.0.0.1:6380 -n 1000000 -seed 1
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/atomredis/atomredis/conformance/differential"
	"github.com/atomredis/atomredis/conformance/differential/searches"
)

func main() {
	o := differential.Options{Log: os.Stdout}
	flag.StringVar(&o.A, "a", "127.0.0.1:6379", "`address` of the reference, host:port or the path of a Unix socket")
	flag.StringVar(&o.B, "b", "127.0.0.1:6380", "`address` of the server under test")
	flag.IntVar(&o.Commands, "n", 1_000_000, "`number` of commands")
	flag.IntVar(&o.SequenceLength, "length", 400, "`number` of commands in a sequence")
	flag.Uint64Var(&o.Seed, "seed", 1, "`seed` of the first sequence")
	flag.IntVar(&o.KeepGoing, "keep-going", 1, "end after this `number` of differences")
	flag.StringVar(&o.Dir, "dir", ".", "`folder` for the transcripts of differences")
	search := flag.Bool("search", false, "send searches (FT.*); the reference needs the module and --enable-debug-command yes")
	extremes := flag.Bool("extremes", false, "send extreme numbers in every argument instead of random commands")
	flag.Parse()
	if *search {
		o.Language = &searches.Language
	}
	check := differential.Check
	if *extremes {
		check = func(o differential.Options) (int, error) { return differential.Extremes(o.A, o.B, o.Log) }
	}
	found, err := check(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		os.Exit(2)
	}
	if found > 0 {
		os.Exit(1)
	}
}
