//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// respConn is a connection for commands.
type respConn struct {
	net.Conn
	in  *bufio.Reader
	out []byte
}

func dialRESP(addr string) *respConn {
	conn, err := net.Dial("tcp", addr)
	servers.Check(err)
	return &respConn{Conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}
}

// ask sends a command and returns its reply: text, or []any.
func (c *respConn) ask(args ...string) (any, error) {
	c.out = servers.AppendCommand(c.out[:0], args...)
	if _, err := c.Write(c.out); err != nil {
		return nil, err
	}
	return c.reply()
}

func (c *respConn) reply() (any, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	text := string(line[1 : len(line)-2])
	switch line[0] {
	case '-':
		return nil, fmt.Errorf("error reply: %s", text)
	case '$', '*':
	default:
		return text, nil
	}
	kind := line[0]
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || n < 0:
		return nil, err
	case kind == '$':
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.in, b)
		return string(b[:n]), err
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = c.reply(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// commandClient does operations of one command.
type commandClient struct {
	*respConn
	command func() []string
	check   func(reply any) bool
}

func (c *commandClient) do() error {
	args := c.command()
	reply, err := c.ask(args...)
	if err == nil && !c.check(reply) {
		err = fmt.Errorf("%q gave %.100v", args, reply)
	}
	return err
}

// clients returns as many clients as the settings say.
func clients(o settings, connect func() client) (all []client) {
	for range o.conns {
		all = append(all, connect())
	}
	return all
}

// startServer starts atomredis with directives for a door.
func startServer(o settings, durability string, args ...string) *servers.Server {
	s := servers.New(o.program)
	s.Start(append(servers.Durability(durability), args...)...)
	return s
}
