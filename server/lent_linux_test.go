package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
)

// slowClient is a connection with a small buffer for unread bytes.
func (s *testServer) slowClient() net.Conn {
	nc, err := s.dial()
	require.NoError(s.t, err)
	require.NoError(s.t, nc.(*net.TCPConn).SetReadBuffer(64<<10))
	s.t.Cleanup(func() { nc.Close() })
	return nc
}

// A client that reads slowly gets whole values, while others change the keys all the time.
func TestSlowReadersGetWholeValues(t *testing.T) {
	const size, gets = 5*command.MaxCopied + 77, 150
	eachTransport(t, func(t *testing.T, o Options, settings ...string) {
		s := startTestServer(t, o, settings...)
		uniform := func(i int) string { return strings.Repeat(string(rune('a'+i%26)), size) }
		setup := s.connect()
		_, err := setup.Do(testTimeout, "SET", "k", uniform(0))
		require.NoError(t, err)
		stop := make(chan struct{})
		var writers sync.WaitGroup
		for w := range 2 {
			c := s.connect()
			writers.Go(func() {
				for i := w; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					command := []string{"SET", "k", uniform(i)}
					if i%3 == 1 {
						command = []string{"SETRANGE", "k", "0", uniform(i)}
					}
					if _, err := c.Do(testTimeout, command...); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		var readers sync.WaitGroup
		for range 3 {
			nc := s.slowClient()
			readers.Go(func() {
				if err := readUniform(nc, size, gets); err != nil {
					t.Error(err)
				}
			})
		}
		readers.Wait()
		close(stop)
		writers.Wait()
	})
}

// readUniform pipelines GET and others, reads the replies in small pieces, and checks that values consist of one
// letter.
func readUniform(nc net.Conn, size, gets int) error {
	nc.SetDeadline(time.Now().Add(testTimeout))
	var in bytes.Buffer
	in.Write(request("HELLO", "3"))
	in.Write(request("SUBSCRIBE", "ch"))
	for range gets {
		in.Write(request("GET", "k"))
		in.Write(request("LPUSH", "k", "x"))
		in.Write(request("PUBLISH", "ch", "message"))
		in.Write(request("PING"))
	}
	if _, err := nc.Write(in.Bytes()); err != nil {
		return err
	}
	r := bufio.NewReaderSize(smallReads{nc}, 16)
	line := func() (string, error) {
		l, err := r.ReadString('\n')
		return strings.TrimSuffix(l, "\r\n"), err
	}
	value := make([]byte, size+2)
	for seen := 0; ; {
		l, err := line()
		if err != nil {
			return err
		}
		switch {
		case l == "$"+strconv.Itoa(size):
			if _, err := io.ReadFull(r, value); err != nil {
				return err
			}
			if bytes.Count(value[:size], value[:1]) != size || string(value[size:]) != "\r\n" {
				return fmt.Errorf("value %d is mixed: %.10q…%q", seen, value, value[size-10:])
			}
			// After it come an error, the message to itself, the number of receivers and PONG. Messages of others
			// may be between them.
			seen++
		case l == "+PONG":
			if seen == gets {
				return nil
			}
		case l == "" && seen > 0: // the reply to HELLO has empty texts
			return fmt.Errorf("an empty line behind value %d", seen)
		case strings.HasPrefix(l, "-") && !strings.HasPrefix(l, "-WRONGTYPE"):
			return fmt.Errorf("behind value %d: %q", seen, l)
		}
	}
}

// smallReads reads an odd number of bytes at once.
type smallReads struct{ io.Reader }

func (r smallReads) Read(b []byte) (int, error) { return r.Reader.Read(b[:min(len(b), 7777)]) }

// idOf returns the number of a client that has just connected.
func idOf(t *testing.T, nc net.Conn) string {
	_, err := nc.Write(request("CLIENT", "ID"))
	require.NoError(t, err)
	require.NoError(t, nc.SetReadDeadline(time.Now().Add(testTimeout)))
	b := make([]byte, 64)
	n, err := nc.Read(b)
	require.NoError(t, err)
	return strings.Trim(string(b[:n]), ":\r\n")
}

// Clients that do not read lent replies are shown, limited and killed as others are, and the values stay.
func TestLentRepliesThatNobodyReads(t *testing.T) {
	const size, gets = 8 * command.MaxCopied, 400
	s := startTestServer(t, Options{})
	c := s.connect()
	value := strings.Repeat("v", size)
	reply, err := c.Do(testTimeout, "SET", "k", value)
	require.NoError(t, err)
	require.Equal(t, "+OK", reply.String())
	flood := func() (nc net.Conn, id string) {
		nc = s.slowClient()
		id = idOf(t, nc)
		_, err := nc.Write(bytes.Repeat(request("GET", "k"), gets))
		require.NoError(t, err)
		return nc, id
	}
	omem := func(id string) int {
		m := regexp.MustCompile(` omem=(\d+) `).FindStringSubmatch(c.do("CLIENT LIST ID " + id))
		if m == nil {
			return -1
		}
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		return n
	}
	// closed reads until the connection ends, and returns how much there was.
	closed := func(nc net.Conn) int64 {
		require.NoError(t, nc.SetReadDeadline(time.Now().Add(testTimeout)))
		n, err := io.Copy(io.Discard, nc)
		if e, ok := err.(net.Error); ok {
			require.False(t, e.Timeout())
		}
		return n
	}

	nc, id := flood()
	require.Eventually(t, func() bool { return omem(id) > gets*size/2 }, testTimeout, time.Millisecond)
	require.Equal(t, "1", c.do("CLIENT KILL ID "+id))
	require.Less(t, closed(nc), int64(gets*size))

	nc, id = flood()
	require.Eventually(t, func() bool { return omem(id) > gets*size/2 }, testTimeout, time.Millisecond)
	require.Equal(t, fmt.Sprint(size+3), c.do("APPEND k end"))
	require.NoError(t, nc.Close())
	require.Eventually(t, func() bool { return omem(id) < 0 }, testTimeout, time.Millisecond)

	require.Equal(t, "+OK", c.Call("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0"))
	nc, id = flood()
	require.Less(t, closed(nc), int64(gets*size))
	require.Equal(t, -1, omem(id))

	reply, err = c.Do(testTimeout, "GET", "k")
	require.NoError(t, err)
	require.Equal(t, value+"end", reply.Text)
}
