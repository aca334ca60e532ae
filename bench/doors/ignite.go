//go:build linux

package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// igniteCases are get and put of Ignite's thin clients, and for comparison the commands on a hash.
func igniteCases() []benchmark {
	hash := func(o settings) *servers.Server {
		s := startServer(o, "none")
		s.Fill(o.keys, func(dst []byte, i int) []byte {
			return servers.AppendCommand(dst, "HSET", igniteCache, servers.Key(i), servers.Value(i, 0))
		})
		return s
	}
	cache := func(o settings) *servers.Server {
		s := startServer(o, "none", "--door-perper-ignite", "127.0.0.1:0")
		c := dialIgnite(doorAddr(s, "perper_ignite"))
		defer c.Close()
		servers.Check(c.ask(igniteGetOrCreate, igniteString(nil, igniteCache)))
		for i := range o.keys {
			servers.Check(c.put(servers.Key(i), servers.Value(i, 0)))
		}
		return s
	}
	commands := func(args func(o settings) []string, check func(any) bool) func(*servers.Server, settings) []client {
		return func(s *servers.Server, o settings) []client {
			return clients(o, func() client {
				return &commandClient{respConn: dialRESP(s.Addr), command: func() []string { return args(o) }, check: check}
			})
		}
	}
	thin := func(op func(c *igniteConn, o settings) error) func(*servers.Server, settings) []client {
		return func(s *servers.Server, o settings) []client {
			addr := doorAddr(s, "perper_ignite")
			return clients(o, func() client { return &igniteClient{dialIgnite(addr), o, op} })
		}
	}
	gets := benchmark{"ignite get", []contender{
		{name: "RESP", start: hash, connect: commands(func(o settings) []string {
			return []string{"HGET", igniteCache, servers.Key(rand.IntN(o.keys))}
		}, func(r any) bool { return r != nil })},
		{name: "door", start: cache, connect: thin(func(c *igniteConn, o settings) error {
			return c.get(servers.Key(rand.IntN(o.keys)))
		})},
	}}
	puts := benchmark{"ignite put", []contender{
		{name: "RESP", start: hash, connect: commands(func(o settings) []string {
			key, value := randomPut(o.keys)
			return []string{"HSET", igniteCache, key, value}
		}, func(r any) bool { return r == "0" })},
		{name: "door", start: cache, connect: thin(func(c *igniteConn, o settings) error { return c.put(randomPut(o.keys)) })},
	}}
	return []benchmark{gets, puts}
}

// The operations used here, and the cache.
const (
	igniteGet         = 1000
	ignitePut         = 1001
	igniteGetOrCreate = 1052
	igniteCache       = "bench"
)

// igniteHandshake is the handshake of a client of version 1.7.0.
const igniteHandshake = "\x0e\x00\x00\x00\x01\x01\x00\x07\x00\x00\x00\x02\x0c\x01\x00\x00\x00\x04"

// igniteConn is a thin client.
type igniteConn struct {
	net.Conn
	in    *bufio.Reader
	out   []byte
	body  []byte
	reply []byte // to the last request, without its flags
}

func dialIgnite(addr string) *igniteConn {
	conn, err := net.Dial("tcp", addr)
	servers.Check(err)
	c := &igniteConn{Conn: conn, in: bufio.NewReader(conn)}
	_, err = c.Write([]byte(igniteHandshake))
	servers.Check(err)
	servers.Check(c.read())
	if len(c.reply) == 0 || c.reply[0] != 1 {
		servers.Fatal("the handshake was refused")
	}
	return c
}

// read reads a frame.
func (c *igniteConn) read() error {
	var size [4]byte
	if _, err := io.ReadFull(c.in, size[:]); err != nil {
		return err
	}
	c.reply = append(c.reply[:0], make([]byte, binary.LittleEndian.Uint32(size[:]))...)
	_, err := io.ReadFull(c.in, c.reply)
	return err
}

// ask sends a request and reads its reply.
func (c *igniteConn) ask(op uint16, body []byte) error {
	c.out = binary.LittleEndian.AppendUint32(c.out[:0], uint32(10+len(body)))
	c.out = binary.LittleEndian.AppendUint16(c.out, op)
	c.out = append(append(c.out, make([]byte, 8)...), body...)
	if _, err := c.Write(c.out); err != nil {
		return err
	}
	if err := c.read(); err != nil {
		return err
	}
	if len(c.reply) < 10 || c.reply[8]&1 != 0 {
		return fmt.Errorf("operation %d gave %x", op, c.reply)
	}
	c.reply = c.reply[10:]
	return nil
}

// igniteString appends a string as an object.
func igniteString(b []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint32(append(b, 9), uint32(len(text))), text...)
}

// operation returns the beginning of the body of a cache operation. It contains the cache's number, the hash of its
// name.
func (c *igniteConn) operation() []byte {
	id := int32(0)
	for _, b := range []byte(igniteCache) {
		id = 31*id + int32(b)
	}
	return append(binary.LittleEndian.AppendUint32(c.body[:0], uint32(id)), 0)
}

func (c *igniteConn) get(key string) error {
	c.body = igniteString(c.operation(), key)
	err := c.ask(igniteGet, c.body)
	if err == nil && (len(c.reply) == 0 || c.reply[0] != 9) {
		err = fmt.Errorf("get gave %x", c.reply)
	}
	return err
}

func (c *igniteConn) put(key, value string) error {
	c.body = igniteString(igniteString(c.operation(), key), value)
	return c.ask(ignitePut, c.body)
}

// igniteClient does one operation after the other.
type igniteClient struct {
	*igniteConn
	o  settings
	op func(c *igniteConn, o settings) error
}

func (c *igniteClient) do() error { return c.op(c.igniteConn, c.o) }
