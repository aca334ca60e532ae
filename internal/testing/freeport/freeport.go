// Package freeport finds addresses for tests of servers that must know their address before they listen.
package freeport

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
)

// The ports from first on. Systems do not assign them automatically, as they do others, which another program could
// get before the test uses them.
const (
	first = 20000
	count = 12000
)

// apart is the number of ports between the first ports of two processes that start one after the other.
const apart = 97

var tried atomic.Uint64 // a process tries each port once before it repeats any

// Addr returns a free loopback address, host:port.
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
