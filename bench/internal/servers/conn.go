package servers

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// Conn is a connection to a server.
type Conn struct {
	net.Conn
	r *bufio.Reader
}

// Dial returns a new connection.
func (s *Server) Dial() *Conn {
	c, err := dial(s.Addr)
	Check(err)
	return c
}

func dial(addr string) (*Conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Conn{c, bufio.NewReaderSize(c, 64<<10)}, nil
}

// Do sends a command and returns the reply, as Reply does. An error reply ends the program.
func (c *Conn) Do(args ...string) string {
	reply, err := c.do(args...)
	Check(err)
	if strings.HasPrefix(reply, "-") {
		Fatal(args, ": ", reply)
	}
	return reply
}

func (c *Conn) do(args ...string) (string, error) {
	if _, err := c.Write(AppendCommand(nil, args...)); err != nil {
		return "", err
	}
	return c.Reply()
}

// Reply reads a reply: the content of a bulk string, and any other reply as its line including the first character.
// Arrays are not supported.
func (c *Conn) Reply() (string, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if !strings.HasPrefix(line, "$") || line == "$-1" {
		return line, nil
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil {
		return "", err
	}
	bulk := make([]byte, n+2)
	_, err = io.ReadFull(c.r, bulk)
	return string(bulk[:n]), err
}

// AppendCommand appends a command encoded as RESP.
func AppendCommand(dst []byte, args ...string) []byte {
	dst = append(strconv.AppendInt(append(dst, '*'), int64(len(args)), 10), '\r', '\n')
	for _, a := range args {
		dst = append(strconv.AppendInt(append(dst, '$'), int64(len(a)), 10), '\r', '\n')
		dst = append(append(dst, a...), '\r', '\n')
	}
	return dst
}

// Fill sends n commands in one pipeline; add appends command i. Their replies must be lines without errors, or bulk
// strings.
func (s *Server) Fill(n int, add func(dst []byte, i int) []byte) {
	c := s.Dial()
	defer c.Close()
	sent := make(chan error, 1)
	go func() {
		var b []byte
		for i := range n {
			b = add(b, i)
			if len(b) < 64<<10 && i < n-1 {
				continue
			}
			if _, err := c.Write(b); err != nil {
				sent <- err
				return
			}
			b = b[:0]
		}
		sent <- nil
	}()
	for range n {
		line, err := c.r.ReadSlice('\n')
		Check(err)
		if line[0] == '-' {
			Fatal("filling ", s.Program, ": ", string(line))
		}
		if line[0] == '$' {
			length := number(strings.TrimSpace(string(line[1:])))
			_, err := c.r.Discard(int(length) + 2)
			Check(err)
		}
	}
	Check(<-sent)
}

const valueSize = 64

// Value returns a value of 64 bytes that depends on i and generation, and does not compress to almost nothing.
func Value(i, generation int) string {
	b := make([]byte, 0, valueSize+16)
	for x := uint64(i)<<8 | uint64(generation); len(b) < valueSize; {
		x = x*6364136223846793005 + 1442695040888963407
		b = strconv.AppendUint(b, x>>16, 36)
	}
	return string(b[:valueSize])
}

// Key returns key i, as redis-benchmark names it.
func Key(i int) string { return fmt.Sprintf("key:%012d", i) }
