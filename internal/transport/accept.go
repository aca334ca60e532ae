package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// This file handles new connections until they have a session.

// Accept returns the next connection. After an error it waits for a second and tries again: most likely the process
// has no free file descriptors. The error is net.ErrClosed if the listener, or closed, is closed meanwhile.
func Accept(l net.Listener, h Host, closed <-chan struct{}) (net.Conn, error) {
	for {
		conn, err := l.Accept()
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, net.ErrClosed) || !pauseAccepting(h, err, closed) {
			return nil, net.ErrClosed
		}
	}
}

// pauseAccepting waits for a second after a failure to accept clients, because trying again at once would only use
// processor time. It returns false if closed is closed meanwhile.
func pauseAccepting(h Host, err error, closed <-chan struct{}) bool {
	over := make(chan struct{})
	timer := h.AfterFunc(time.Second, func() { close(over) })
	defer timer.Stop()
	h.Log().Warn("cannot accept clients for a second", "error", err)
	select {
	case <-over:
		return true
	case <-closed:
		return false
	}
}

// KeepAlive makes the system probe the client of a TCP connection, with TLS or without, after it has sent nothing
// for a time; 0 changes nothing.
func KeepAlive(conn net.Conn, every time.Duration) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok && every > 0 {
		tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: every, Interval: every / 3, Count: 3})
	}
}

// HandshakeTime is how long a client may take for the handshake of TLS: two round trips, and time for three lost
// packets (1, 2 and 4 s). Without a limit a client that never completes it would hold a connection without end.
const HandshakeTime = 10 * time.Second

// Handshake makes a connection ready. One that takes longer than HandshakeTime is closed.
func Handshake(conn *tls.Conn, c Clock) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := c.AfterFunc(HandshakeTime, cancel)
	defer timer.Stop()
	return conn.HandshakeContext(ctx)
}
