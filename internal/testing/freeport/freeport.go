// Package freeport finds addresses for tests of servers that must know theirs before they listen.
package freeport

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
)

// The ports from first on, of which systems give none to those who ask for any: a port from elsewhere could be taken
// before the test uses it.
const (
	first = 20000
	count = 12000
)

// apart is how many ports there are between those of two processes that begin one after the other.
const apart = 97

var tried atomic.Uint64 // a process tries each port once before it begins anew

// Addr returns an address of loopback, host:port, on which nobody listens.
func Addr(t testing.TB) string {
	t.Helper()
	for range count {
		port := first + (uint64(os.Getpid())*apart+tried.Add(1))%count
		addr := net.JoinHostPort("127.0.0.1", strconv.FormatUint(port, 10))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// Port returns the port of an Addr.
func Port(t testing.TB) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(Addr(t))
	return port
}
