// Command record fills in and refreshes the replies of transcripts from a live Redis.
//
//	go run ./conformance/record -addr 127.0.0.1:6379 conformance/testdata/string/*.txt
package main

import (
	"flag"
	"fmt"
	"net"
	"os"

	"github.com/atomredis/atomredis/internal/transcript"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:6379", "`address` of the server, host:port or the path of a Unix socket; its data is deleted")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "record: no transcripts given")
		os.Exit(2)
	}
	failed := false
	for _, path := range flag.Args() {
		if err := record(*addr, path); err != nil {
			fmt.Fprintln(os.Stderr, "record:", err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

func record(addr, path string) error {
	t, err := transcript.ParseFile(path)
	if err != nil {
		return err
	}
	if err := transcript.Record(func() (net.Conn, error) { return transcript.Dial(addr) }, t); err != nil {
		return err
	}
	fmt.Printf("%5d exchanges  %s\n", t.Exchanges(), path)
	return os.WriteFile(path, []byte(t.String()), 0o644)
}
