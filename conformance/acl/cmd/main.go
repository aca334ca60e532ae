// Command cmd makes random users in two servers and compares their permissions. It deletes the servers' data.
//
//	go run ./conformance/acl/cmd -a 127.0.0.1:6379 -b 127.0.0.1:6380 -users 200 -n 2000 -seed 1
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/atomredis/atomredis/conformance/acl"
)

func main() {
	o := acl.Options{Log: os.Stdout}
	flag.StringVar(&o.A, "a", "127.0.0.1:6379", "`address` of the reference, host:port or the path of a Unix socket")
	flag.StringVar(&o.B, "b", "127.0.0.1:6380", "`address` of the server under test")
	flag.IntVar(&o.Users, "users", 200, "`number` of users")
	flag.IntVar(&o.Commands, "n", 2000, "`number` of commands that each is asked about")
	flag.Uint64Var(&o.Seed, "seed", 1, "`seed` of users and commands")
	flag.IntVar(&o.KeepGoing, "keep-going", 1, "end after this `number` of differences")
	flag.Parse()
	found, err := acl.Check(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "acl:", err)
		os.Exit(2)
	}
	if found > 0 {
		os.Exit(1)
	}
}
