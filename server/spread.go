package server

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// What clients publish is heard at all servers of the group and, in a cluster, of the other shards. Each of them gets it over
// a connection, in the order in which it was published. Nothing waits for that: as PUBLISH promises nothing, what
// cannot be brought, or not soon enough, is dropped.

// spread is the server's connections to those that get what is published here.
type spread struct {
	srv     *Server
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	links  map[string]*spreadLink // by address
}

// spreadLink is one of them.
type spreadLink struct {
	addr  string
	wake  chan struct{}
	queue []byte // protected by spread.mu
}

const (
	// askPublish is what a server asks that is about to send what is published there: channels and messages, each
	// after its length.
	askPublish = "publish"
	// maxSpread is how many bytes may wait for a server before more is dropped.
	maxSpread = 8 << 20
	// spreadIdle is after how long without messages a connection is closed.
	spreadIdle = time.Minute
)

var errPublished = errors.New("a message is longer than proto-max-bulk-len")

// Spread implements pubsub.Host.
func (srv *Server) Spread(channel, message []byte) {
	if srv.shards == nil {
		return
	}
	s := &srv.spread
	to := s.others()
	if len(to) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, addr := range to {
		l := s.links[addr]
		if l == nil && !s.closed {
			l = &spreadLink{addr: addr, wake: make(chan struct{}, 1)}
			if s.links == nil {
				s.links = map[string]*spreadLink{}
			}
			s.links[addr] = l
			s.running.Go(func() { s.run(l) })
		}
		if l == nil || len(l.queue) > maxSpread {
			continue
		}
		for _, part := range [][]byte{channel, message} {
			l.queue = append(binary.AppendUvarint(l.queue, uint64(len(part))), part...)
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// others returns where the other servers are.
func (s *spread) others() (list []string) {
	st := s.srv.group.status.Load()
	for _, m := range st.Members {
		if m.Addr != st.Addr {
			list = append(list, m.Addr)
		}
	}
	if s.srv.cluster != nil {
		for _, o := range s.srv.shards.record().Others {
			list = append(list, o.Addrs...)
		}
	}
	return list
}

// run sends what is published to a server, until there has been nothing for long.
func (s *spread) run(l *spreadLink) {
	var conn net.Conn
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	done := s.srv.group.ctx.Done()
	idle := time.NewTimer(spreadIdle)
	defer idle.Stop()
	for {
		select {
		case <-l.wake:
		case <-idle.C:
			s.mu.Lock()
			if len(l.queue) == 0 {
				delete(s.links, l.addr)
				s.mu.Unlock()
				return
			}
			s.mu.Unlock()
		case <-done:
			return
		}
		idle.Reset(spreadIdle)
		if conn == nil {
			conn = s.dial(l.addr)
		}
		s.mu.Lock()
		messages := l.queue
		l.queue = nil
		s.mu.Unlock()
		if conn == nil {
			continue // they are dropped, with what came while it was tried
		}
		conn.SetWriteDeadline(time.Now().Add(shardPatience))
		if _, err := conn.Write(messages); err != nil {
			conn.Close()
			conn = nil
		}
	}
}

// dial connects to a server, nil if it cannot be reached.
func (s *spread) dial(addr string) net.Conn {
	conn, err := s.srv.group.node.Dial(addr, shardPatience)
	if err != nil {
		return nil
	}
	conn.SetWriteDeadline(time.Now().Add(shardPatience))
	if _, err := io.WriteString(conn, `{"Ask":"`+askPublish+"\"}\n"); err != nil {
		conn.Close()
		return nil
	}
	// Nothing comes back: a read ends when the other side has, so that the next write fails and not the one after it.
	s.running.Go(func() {
		_, _ = conn.Read(make([]byte, 1))
		conn.Close()
	})
	return conn
}

// close waits for what runs; the group's context has ended.
func (s *spread) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
}

// take publishes here what another server sends.
func (s *spread) take(c net.Conn, rest io.Reader) error {
	in := bufio.NewReader(io.MultiReader(rest, c))
	if _, err := in.Discard(1); err != nil { // the end of the question
		return err
	}
	part := func() ([]byte, error) {
		n, err := binary.ReadUvarint(in)
		switch {
		case err != nil:
			return nil, err
		case n > uint64(s.srv.config.Get().ProtoMaxBulkLen):
			return nil, errPublished
		}
		b, err := io.ReadAll(io.LimitReader(in, int64(n))) // memory for what comes only
		if err == nil && len(b) < int(n) {
			err = io.ErrUnexpectedEOF
		}
		return b, err
	}
	for {
		c.SetDeadline(time.Now().Add(2 * spreadIdle))
		channel, err := part()
		if err != nil {
			return err
		}
		message, err := part()
		if err != nil {
			return err
		}
		s.srv.pubsub.Publish(nil, channel, message, false)
	}
}
