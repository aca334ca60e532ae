package server

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/atomredis/atomredis/command"
)

// What clients publish is heard at all servers of the group and, but for what goes to shard channels, of the other shards of
// the cluster. Each of them gets it over connections, one for each kind, in the order in which it was published. Nothing
// waits for that: as PUBLISH promises nothing, what cannot be brought, or not soon enough, is dropped.

// spread is the server's connections to those that get what is published here.
type spread struct {
	srv     *Server
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	links  map[spreadTo]*spreadLink
}

// spreadTo is where messages go, and the question that they follow.
type spreadTo struct{ addr, ask string }

// spreadLink is one of them.
type spreadLink struct {
	spreadTo
	wake  chan struct{}
	queue []byte // protected by spread.mu
}

const (
	// askPublish is what a server asks that is about to send what is published there: channels and messages, each
	// after its length. askPublishShard is the same for shard channels.
	askPublish      = "publish"
	askPublishShard = "publish-shard"
	// maxSpread is how many bytes may wait for a server before more is dropped.
	maxSpread = 8 << 20
	// spreadIdle is after how long without messages a connection is closed.
	spreadIdle = time.Minute
)

var errPublished = errors.New("a message is longer than proto-max-bulk-len")

// Published implements pubsub.Host.
func (srv *Server) Published(c *command.Ctx, shard bool) {
	srv.followed.Published(c)
	if srv.shards == nil {
		return
	}
	ask := askPublish
	if shard {
		ask = askPublishShard
	}
	srv.spread.send(ask, c.Args[1], c.Args[2])
}

// send has a message published at all whom it concerns.
func (s *spread) send(ask string, channel, message []byte) {
	to := s.others(ask)
	if len(to) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, addr := range to {
		to := spreadTo{addr, ask}
		l := s.links[to]
		if l == nil && !s.closed {
			l = &spreadLink{spreadTo: to, wake: make(chan struct{}, 1)}
			if s.links == nil {
				s.links = map[spreadTo]*spreadLink{}
			}
			s.links[to] = l
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

// others returns where the other servers are that hear what is published.
func (s *spread) others(ask string) (list []string) {
	st := s.srv.group.status.Load()
	for _, m := range st.Members {
		if m.Addr != st.Addr {
			list = append(list, m.Addr)
		}
	}
	if s.srv.cluster != nil && ask == askPublish {
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
				delete(s.links, l.spreadTo)
				s.mu.Unlock()
				return
			}
			s.mu.Unlock()
		case <-done:
			return
		}
		idle.Reset(spreadIdle)
		if conn == nil {
			conn = s.dial(l.spreadTo)
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
func (s *spread) dial(to spreadTo) net.Conn {
	conn, err := s.srv.group.node.Dial(to.addr, shardPatience)
	if err != nil {
		return nil
	}
	conn.SetWriteDeadline(time.Now().Add(shardPatience))
	if _, err := io.WriteString(conn, `{"Ask":"`+to.ask+"\"}\n"); err != nil {
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
func (s *spread) take(ask string, c net.Conn, rest io.Reader) error {
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
	publish, name := s.srv.pubsub.Publish, []byte("PUBLISH")
	if ask == askPublishShard {
		publish, name = s.srv.pubsub.PublishShard, []byte("SPUBLISH")
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
		publish(nil, channel, message, false)
		if s.srv.followed.Active() {
			s.srv.followed.Tell(command.AppendRequest(nil, [][]byte{name, channel, message}))
		}
	}
}
