// Package freeport finds addresses for tests of servers that must know theirs before they listen.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports from first on, of which systems give none to those who ask for any: a port from elsewhere could be taken
// before the test uses it.
const (
	first = 20000
	count = 12000
)

// Addr returns an address of loopback, host:port, on which nobody listens.
func Addr(t testing.TB) string {
	t.Helper()
	for range 1000 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(count)))
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
