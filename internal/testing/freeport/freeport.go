// Package freeport finds addresses for tests of servers that must know their address before they listen.
package freeport

import (
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
)

// The ports from first on. Systems do not assign them automatically, as they do others, which another program could
// get before the test uses them.
const (
	first = 20000
	count = 12000
)

// block is the number of ports that a process reserves at a time. It listens at the first one of them until it ends: other
// processes, whose tests run at the same time, then use none of them, also while a test's server is down.
const block = 100

// own is the block of the process.
var own struct {
	sync.Mutex
	guards []net.Listener // of this block, and of earlier ones
	next   int            // the port to try next
	end    int            // of the block
}

// Addr returns a free loopback address, host:port. It returns none twice.
func Addr(t testing.TB) string {
	t.Helper()
	own.Lock()
	defer own.Unlock()
	for own.next < own.end || reserve() {
		addr := addrOf(own.next)
		own.next++
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// reserve takes a block that no process has; it reports whether there is one. Processes begin to look at different blocks, so
// that what an earlier test has left behind meets few others.
func reserve() bool {
	const blocks = count / block
	for i := range blocks {
		start := first + (os.Getpid()+i)%blocks*block
		if guard, err := net.Listen("tcp", addrOf(start)); err == nil {
			own.guards = append(own.guards, guard)
			own.next, own.end = start+1, start+block
			return true
		}
	}
	return false
}

func addrOf(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Port returns the port of an Addr.
func Port(t testing.TB) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(Addr(t))
	return port
}
