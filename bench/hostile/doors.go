//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// Peers of doors that have not authenticated, or never will. -case doors runs all of these; redis-server has no doors.
var doorCases = []hostileCase{
	doorCase("doors-zmtp", "door-spiderq", func(a *attack, addr string) {
		a.through(addr, 1, zmtpHello+"\x02\x00\x00\x00\x00\x19\x00\x00\x00", 399*mib)
	}),
	doorCase("doors-ignite", "door-perper-ignite", func(a *attack, addr string) {
		a.through(addr, 1, "\x08\x00\x00\x00\x01\x01\x00\x02\x00\x00\x00\x02\x00\x00\x00\x19", 399*mib)
	}),
	doorCase("doors-http", "door-http", func(a *attack, addr string) {
		a.through(addr, 40, "POST /console/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
			fmt.Sprintf("Content-Length: %d\r\n\r\n{\"user\":\"", 16*mib), 15*mib)
	}),
	doorCase("doors-grpc", "door-perper-grpc", func(a *attack, addr string) {
		a.through(addr, 1, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+strings.Repeat("\x00\x00\x00\x04\x00\x00\x00\x00\x00", 1), 100*mib)
	}),
	// The same from a peer that is admitted: memory grows only with the bytes that have arrived.
	{name: "doors-admitted-zmtp", args: []string{"--door-spiderq", doorAddr("door-spiderq-admitted")}, ours: true, attack: func(a *attack) {
		a.through(doorAddr("door-spiderq-admitted"), 1, zmtpHello+"\x02\x00\x00\x00\x00\x19\x00\x00\x00", 399*mib)
	}},
	{name: "doors-admitted-ignite", args: []string{"--door-perper-ignite", doorAddr("door-perper-ignite-admitted")}, ours: true,
		attack: func(a *attack) {
			a.through(doorAddr("door-perper-ignite-admitted"), 1, "\x08\x00\x00\x00\x01\x01\x00\x02\x00\x00\x00\x02\x00\x00\x00\x19", 399*mib)
		}},
}

// zmtpHello is the handshake of a peer of ZMTP.
var zmtpHello = "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL" + strings.Repeat("\x00", 48) +
	"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"

// doorAddrs has the addresses of the doors of cases.
var doorAddrs = map[string]string{}

// doorAddr returns a door's address, the same each time.
func doorAddr(name string) string {
	if doorAddrs[name] == "" {
		doorAddrs[name] = servers.FreeAddr()
	}
	return doorAddrs[name]
}

// doorCase is a case of a door while the server requires a password.
func doorCase(name, directive string, do func(a *attack, addr string)) hostileCase {
	addr := doorAddr(directive)
	return hostileCase{name: name, args: []string{"--" + directive, addr}, ours: true,
		attack: func(a *attack) { whileLocked(a, func() { do(a, addr) }) }}
}

// through opens n connections that send a text followed by more bytes, and wait.
func (a *attack) through(addr string, n int, text string, more int) {
	sent := 0
	for range n {
		c, err := net.DialTimeout("tcp", addr, time.Until(a.until))
		if err != nil {
			a.note("%v", err)
			return
		}
		c.SetDeadline(a.until)
		a.conns = append(a.conns, c)
		go io.Copy(io.Discard, c)
		if _, err := io.WriteString(c, text); err != nil {
			continue
		}
		for left := more; left > 0; {
			n, err := c.Write(piece[:min(left, len(piece))])
			sent, left = sent+n, left-n
			if err != nil {
				break
			}
		}
	}
	a.hold(2 * time.Second)
	a.note("%d MiB sent", sent/mib)
}
