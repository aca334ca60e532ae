package raft

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

const deadline = 30 * time.Second

// listening starts a mux of a node that does nothing else.
func listening(t *testing.T, o quorum.Options) (connect func(said string) net.Conn) {
	return listeningFrom(t, nil, o)
}

// listeningFrom is listening for connections that come from an address; nil is their own.
func listeningFrom(t *testing.T, addr net.Addr, o quorum.Options) (connect func(said string) net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if addr != nil {
		l = fromListener{l, addr}
	}
	o.Log = slog.New(slog.DiscardHandler)
	n := &Node{o: o, stop: make(chan struct{}), proposals: newProposals(time.Second)}
	n.peers.n = n
	n.peers.may.Store(true)
	n.mux = newMux(n, l)
	n.run(n.mux.accept)
	n.run(func() { // Raft's transport, which reads
		for {
			c, err := n.mux.raft.Accept()
			if err != nil {
				return
			}
			n.run(func() {
				io.Copy(io.Discard, c)
				c.Close()
			})
		}
	})
	t.Cleanup(func() {
		close(n.stop)
		n.mux.close()
		n.mux.raft.Close()
		n.running.Wait()
	})
	return func(said string) net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		require.NoError(t, c.SetDeadline(time.Now().Add(deadline)))
		_, err = io.WriteString(c, said)
		require.NoError(t, err)
		return c
	}
}

// requireGone waits until a connection is closed by the other end.
func requireGone(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, c)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

// hello returns a hello as a server sends it.
func hello(purpose peer.Purpose) string {
	h := peer.Hello{Min: peer.MinVersion, Max: peer.MaxVersion, Purpose: purpose}
	return string(h.Append(nil))
}

// A connection that sends nothing, or only its purpose, is closed.
func TestConnectionsThatSayNothing(t *testing.T) {
	connect := listening(t, quorum.Options{})
	var all []net.Conn
	for _, said := range []string{"", peer.Magic, hello(peer.Raft), hello(peer.Members), hello("others"), hello(peer.Shards),
		"R", "Q", "Q{", "S", "S{}\n", "?"} {
		all = append(all, connect(said))
	}
	for _, c := range all {
		requireGone(t, c)
	}
}

// When there are too many connections, the one that has been silent for longest is closed, but no detached one.
func TestTooManyConnections(t *testing.T) {
	served := make(chan struct{})
	connect := listening(t, quorum.Options{Connections: 3, Serve: func(c *peer.Conn) {
		served <- struct{}{}
		for {
			kind, err := c.Next()
			if err != nil {
				return
			}
			if kind == 'r' {
				new(Node).Detach(c) // the connection knows its node
			}
			if c.Send(kind) != nil || c.Flush() != nil {
				return
			}
		}
	}})
	open := func() *peer.Conn {
		c, err := peer.Open(connect(""), peer.Shards, "", "", "", time.Now().Add(deadline))
		require.NoError(t, err)
		<-served
		c.SetDeadline(time.Now().Add(deadline))
		return c
	}
	talk := func(c *peer.Conn, said peer.Kind) {
		require.NoError(t, c.Send(said))
		require.NoError(t, c.Flush())
		kind, err := c.Next()
		require.NoError(t, err)
		require.Equal(t, said, kind)
	}
	released := open()
	talk(released, 'r')
	var all []*peer.Conn
	for range 3 {
		all = append(all, open())
	}
	talk(all[0], 'x') // all[1] has been silent for longest now
	all = append(all, open())
	requireGone(t, all[1].Raw())
	for _, c := range []*peer.Conn{released, all[0], all[2], all[3]} {
		talk(c, 'x')
	}
}

// A server dials others in the form that they understand.
func TestOldAndNewServersAreDialled(t *testing.T) {
	dialling := func(addr string) *mux {
		n := &Node{proposals: newProposals(time.Second), o: quorum.Options{Dial: func(_ string, timeout time.Duration) (net.Conn, error) {
			return net.DialTimeout("tcp", addr, timeout)
		}}}
		return newMux(n, nil)
	}
	t.Run("new", func(t *testing.T) {
		connect := listening(t, quorum.Options{Serve: func(c *peer.Conn) { _ = c.Reply(c.Purpose()) }})
		m := dialling(connect("").RemoteAddr().String())
		c, err := m.dial("x", peer.Shards, deadline)
		require.NoError(t, err)
		defer c.Close()
		require.EqualValues(t, peer.MaxVersion, c.Version())
		var answer peer.Purpose
		require.NoError(t, c.ReadReply(&answer))
		require.Equal(t, peer.Shards, answer)
		_, err = m.dial("x", "others", deadline)
		require.ErrorIs(t, err, peer.BadPurpose)
		require.False(t, m.old.Has("x"))
	})
	t.Run("old", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		firsts := make(chan byte, 10)
		go func() { // an old server that only answers questions
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				var first [1]byte
				_, _ = c.Read(first[:])
				firsts <- first[0]
				if first[0] == 'S' {
					_, _ = bufio.NewReader(c).ReadString('\n')
					_, _ = io.WriteString(c, `{"Leader":"y"}`+"\n")
				}
				c.Close()
			}
		}()
		m := dialling(l.Addr().String())
		for range 2 {
			c, err := m.dial("x", peer.Shards, deadline)
			require.NoError(t, err)
			require.Zero(t, c.Version())
			var answer struct{ Leader string }
			require.NoError(t, c.Call(struct{ Ask string }{"news"}, &answer))
			require.Equal(t, "y", answer.Leader)
			c.Close()
		}
		require.Equal(t, []byte{peer.Magic[0], 'S', 'S'}, []byte{<-firsts, <-firsts, <-firsts})
	})
}

// Connections that say nothing do not displace those of servers.
func TestConnectionsThatSayNothingAreClosedFirst(t *testing.T) {
	connect := listening(t, quorum.Options{Connections: 2, Serve: func(c *peer.Conn) {
		for {
			kind, err := c.Next()
			if err != nil || c.Send(kind) != nil || c.Flush() != nil {
				return
			}
		}
	}})
	c, err := peer.Open(connect(""), peer.Shards, "", "", "", time.Now().Add(deadline))
	require.NoError(t, err)
	answers := func() {
		c.SetDeadline(time.Now().Add(deadline))
		require.NoError(t, c.Send('x'))
		require.NoError(t, c.Flush())
		kind, err := c.Next()
		require.NoError(t, err)
		require.Equal(t, peer.Kind('x'), kind)
	}
	answers() // so that the server has read who it is
	last := connect("")
	for range 5 { // each of them is heard of later than the server
		next := connect(peer.Magic[:1])
		requireGone(t, last)
		last = next
	}
	answers()
}
