package transport_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/transport"
)

// testTimeout is how long a test waits for an event that must happen.
const testTimeout = 30 * time.Second

// lineServer is a server of lines under test.
type lineServer struct {
	*lineHost
	t    *testing.T
	by   transport.Transport
	addr string
	dial func() (net.Conn, error)
}

// eachTransport runs a test with one event loop, with several that make single system calls, with goroutines, and with
// goroutines and TLS.
func eachTransport(t *testing.T, test func(t *testing.T, s *lineServer)) {
	run := func(name string, secure bool, start func(h *lineHost) (transport.Transport, error)) {
		t.Run(name, func(t *testing.T) {
			h := newLineHost()
			by, err := start(h)
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip("no event loops")
			}
			require.NoError(t, err)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			s := &lineServer{lineHost: h, t: t, by: by, addr: l.Addr().String()}
			s.dial = func() (net.Conn, error) { return net.Dial("tcp", s.addr) }
			if secure {
				server, client := selfSigned(t)
				l = tls.NewListener(l, server)
				s.dial = func() (net.Conn, error) { return tls.Dial("tcp", s.addr, client) }
			}
			stop, err := by.Listen(l)
			require.NoError(t, err)
			test(t, s)
			stop()
			_, err = net.Dial("tcp", s.addr)
			require.Error(t, err, "the address is free")
			by.Close()
			now, _ := h.count()
			require.Zero(t, now, "sessions that were not closed")
		})
	}
	loops := func(n int, together bool) func(h *lineHost) (transport.Transport, error) {
		return func(h *lineHost) (transport.Transport, error) {
			return transport.NewLoops(h, transport.LoopOptions{Loops: n, IOUring: together, Counters: make([]transport.Counters, n)})
		}
	}
	goroutines := func(h *lineHost) (transport.Transport, error) {
		return transport.NewGoroutines(h, new(transport.Counters), nil), nil
	}
	run("one loop", false, loops(1, true))
	run("four loops", false, loops(4, false))
	run("goroutines", false, goroutines)
	run("TLS", true, goroutines)
}

// selfSigned returns configurations for the two ends of a connection.
func selfSigned(t *testing.T) (server, client *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: pool}
}

// lineClient is a client of a lineServer.
type lineClient struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

func (s *lineServer) connect() *lineClient {
	conn, err := s.dial()
	require.NoError(s.t, err)
	s.t.Cleanup(func() { conn.Close() })
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(testTimeout)))
	return &lineClient{conn, s.t, bufio.NewReader(conn)}
}

// expect reads lines.
func (c *lineClient) expect(lines ...string) {
	c.t.Helper()
	for _, want := range lines {
		line, err := c.in.ReadString('\n')
		require.NoError(c.t, err)
		require.Equal(c.t, want+"\n", line)
	}
}

// send sends lines.
func (c *lineClient) send(lines ...string) {
	c.t.Helper()
	_, err := io.WriteString(c, strings.Join(lines, "\n")+"\n")
	require.NoError(c.t, err)
}

// waitFor waits until there is the given number of sessions.
func (s *lineServer) waitFor(sessions int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { now, _ := s.count(); return now == sessions }, testTimeout, time.Millisecond)
}

func TestManyClientsGetTheirLines(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *lineServer) {
		var clients sync.WaitGroup
		for i := range 40 {
			c := s.connect()
			clients.Go(func() {
				for j := range 20 {
					var lines []string
					for k := range 1 + i*j {
						lines = append(lines, fmt.Sprint(i, " ", j, " ", k))
					}
					if _, err := io.WriteString(c, strings.Join(lines, "\n")+"\n"); err != nil {
						t.Error(err)
						return
					}
					for _, want := range lines {
						if line, err := c.in.ReadString('\n'); err != nil || line != want+"\n" {
							t.Errorf("%q instead of %q: %v", line, want, err)
							return
						}
					}
				}
			})
		}
		clients.Wait()
		require.Positive(t, s.commits.Load())
		_, ever := s.count()
		require.Equal(t, 40, ever)
		require.Contains(t, s.peers[0].Addr, "127.0.0.1:")
		require.Equal(t, s.addr, s.peers[0].Local)
	})
}

// Long input is received in place, and transports that lend send it without copying.
func TestLongInputsComeBack(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *lineServer) {
		c := s.connect()
		for _, size := range []int{1, 999, 100_000, 3_000_000} {
			data := bytes.Repeat([]byte("0123456789abcde"), size/15+1)[:size]
			go fmt.Fprintf(c, "before\ndata %d\n%sbehind\n", size, data)
			c.expect("before")
			got := make([]byte, size)
			_, err := io.ReadFull(c.in, got)
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, got))
			c.expect("behind")
		}
	})
}

func TestSlowReadersGetEverythingOrAreClosed(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *lineServer) {
		const size = 12 << 20 // more than sockets hold
		data := bytes.Repeat([]byte("x"), size)
		slow, other := s.connect(), s.connect()
		go fmt.Fprintf(slow, "data %d\n%s\n", size, data)
		other.send("hello")
		other.expect("hello")
		for range size >> 20 {
			_, err := io.CopyN(io.Discard, slow.in, 1<<20)
			require.NoError(t, err)
			other.send("again")
			other.expect("again")
		}
		slow.expect("")
	})
	eachTransport(t, func(t *testing.T, s *lineServer) {
		s.limit.Store(64 << 10)
		c := s.connect()
		c.send("hello")
		c.expect("hello")
		go func() { // it reads nothing, so that more and more output waits
			for block := []byte(strings.Repeat("line\n", 10_000)); ; {
				if _, err := c.Write(block); err != nil {
					return
				}
			}
		}()
		s.waitFor(0)
	})
}

func TestClientsThatHangUpAreGone(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *lineServer) {
		stays := s.connect()
		stays.send("hello")
		stays.expect("hello")
		for i := range 20 {
			c := s.connect()
			c.send("hello")
			c.expect("hello")
			if i%2 == 0 {
				c.send("more") // it is being sent when the connection ends
			}
			c.Close()
		}
		s.waitFor(1)
		quits := s.connect()
		quits.send("quit", "not answered")
		quits.expect("quit")
		_, err := quits.in.ReadByte()
		require.Error(t, err)
		s.waitFor(1)
		stays.send("hello")
		stays.expect("hello")
	})
}

func TestOthersAndDeadlinesWakeSessions(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *lineServer) {
		a, b := s.connect(), s.connect()
		for _, c := range []*lineClient{a, b} {
			c.send("here")
			c.expect("here")
		}
		for i := range 50 {
			a.send(fmt.Sprint("all ", i))
			a.expect(fmt.Sprint(i))
			b.expect(fmt.Sprint(i))
		}
		a.send("later")
		a.expect("later")
	})
}

func TestHeldOutputIsSentOnceItMayBe(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *lineServer) {
		a, b := s.connect(), s.connect()
		a.send("free", "held", "behind")
		a.expect("free")
		b.send("free")
		b.expect("free")
		require.Zero(t, a.in.Buffered())
		s.released.Store(true)
		s.by.Recheck()
		a.expect("held", "behind")
	})
}

func TestRefusedClientsAreToldWhy(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *lineServer) {
		s.mu.Lock()
		s.refusal = "no\n"
		s.mu.Unlock()
		c := s.connect()
		c.expect("no")
		_, err := c.in.ReadByte()
		require.Error(t, err)
		now, ever := s.count()
		require.Zero(t, now+ever)
	})
}

// While one session takes long, other sessions of its loop continue on another goroutine.
func TestLoopsAreRelieved(t *testing.T) {
	eachTransport(t, func(t *testing.T, s *lineServer) {
		relief, ok := s.by.(transport.Loops)
		if !ok {
			return // each client has goroutines of its own
		}
		blocked, other := s.connect(), s.connect()
		other.send("hello")
		other.expect("hello")
		blocked.send("before", "block")
		<-s.blocked
		s.stalled.Store(true)
		relief.Relieve()
		for range 10 {
			other.send("hello")
			other.expect("hello")
		}
		gone := s.connect()
		gone.send("quit")
		gone.expect("quit")
		now, _ := s.count()
		require.Equal(t, 3, now, "closing is put off")
		blocked.send("behind")
		s.stalled.Store(false)
		close(s.unblocked)
		blocked.expect("before", "block", "behind")
		relief.Resume()
		s.waitFor(2)
		require.Positive(t, relief.ProcessorTime())
	})
}
