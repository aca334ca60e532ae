package transport_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"

	"github.com/atomredis/atomredis/internal/transport"
)

// A server of lines, whose host and sessions are in lines_test.go.
func Example() {
	host := newLineHost()
	var by transport.Transport
	by, err := transport.NewLoops(host, transport.LoopOptions{Loops: 1, Counters: make([]transport.Counters, 1)})
	if errors.Is(err, errors.ErrUnsupported) {
		by, err = transport.NewGoroutines(host, new(transport.Counters), nil), nil
	}
	if err != nil {
		panic(err)
	}
	defer by.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	stop, err := by.Listen(listener)
	if err != nil {
		panic(err)
	}
	defer stop()

	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "hello\nquit\n")
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		fmt.Println(lines.Text())
	}
	// Output:
	// hello
	// quit
}
