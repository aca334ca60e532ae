package raft

import (
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/replication/quorum"
)

const deadline = 30 * time.Second

// listening starts a mux of a node that does nothing else.
func listening(t *testing.T, o quorum.Options) (connect func(said string) net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o.Log = slog.New(slog.DiscardHandler)
	n := &Node{o: o, stop: make(chan struct{})}
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

// A connection that says nothing, or no more than what it is for, is closed.
func TestConnectionsThatSayNothing(t *testing.T) {
	connect := listening(t, quorum.Options{})
	for _, c := range []net.Conn{connect(""), connect("R"), connect("Q"), connect("Q{"), connect("?")} {
		requireGone(t, c)
	}
}

// When there are too many connections the one that has been silent for longest is closed, but none that counts elsewhere.
func TestTooManyConnections(t *testing.T) {
	served := make(chan net.Conn)
	connect := listening(t, quorum.Options{Connections: 3, Serve: func(c net.Conn) {
		served <- c
		var b [1]byte
		for {
			if _, err := c.Read(b[:]); err != nil {
				return
			}
			if b[0] == 'r' {
				new(Node).Detach(c) // the connection knows its node
			}
			if _, err := c.Write(b[:]); err != nil {
				return
			}
		}
	}})
	talk := func(c net.Conn, said string) {
		_, err := io.WriteString(c, said)
		require.NoError(t, err)
		var b [1]byte
		_, err = io.ReadFull(c, b[:])
		require.NoError(t, err)
	}
	released := connect("S")
	<-served
	talk(released, "r")
	var all []net.Conn
	for range 3 {
		all = append(all, connect("S"))
		<-served
	}
	talk(all[0], "x") // all[1] has been silent for longest now
	all = append(all, connect("S"))
	<-served
	requireGone(t, all[1])
	for _, c := range []net.Conn{released, all[0], all[2], all[3]} {
		talk(c, "x")
	}
}
