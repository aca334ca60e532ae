package forward

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/transport"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// remoteClient is a client of another server of the group, which forwards its commands to this one, the leader; forwarder
// is the other end. The client is served as if it had connected here, as the user that it has authenticated as there. Its
// connection closes when this server stops leading; commands without a reply then fail.
type remoteClient struct {
	all    *Connections
	conn   *peer.Conn
	signal chan struct{} // the session has mail or output, a frame has come, or the connection has ended

	mu      sync.Mutex       // protects what follows, and the session's owner-only state
	session *session.Session // nil before the client is described
	account *acl.Account
	frames  uint64 // of commands that have come
	told    uint64 // how many of them the other server knows to be answered
	hello   bool   // the first answer is owed
	gone    bool
	ended   bool
	watch   *time.Timer // calls check
	timer   engine.Timer
	armed   int64
}

// Serve serves a client of another server.
func (c *Connections) Serve(conn *peer.Conn) {
	r := &remoteClient{all: c, conn: conn, signal: make(chan struct{}, 1)}
	conn.SetDeadline(time.Now().Add(peers.TaskTimeout))
	conn.SetLimit(maxFrame)
	if !c.add(r) {
		return
	}
	defer c.remove(r)
	if c.sessions.Following.Load() { // LeadLost finds those that come later
		_ = conn.Fail(errNotLeading)
		return
	}
	if r.readFrame() != nil {
		return
	}
	conn.SetDeadline(time.Time{})
	c.node.Detach(conn) // it counts as a client
	var writing sync.WaitGroup
	writing.Go(r.write)
	for r.readFrame() == nil {
	}
	r.mu.Lock()
	r.gone = true
	r.mu.Unlock()
	r.wake()
	writing.Wait()
}

// wake makes the writer look at the session. It may be called under any lock.
func (r *remoteClient) wake() {
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

// readFrame reads a frame: the description of the client, which comes first, or commands for the session.
func (r *remoteClient) readFrame() error {
	kind, err := r.conn.Next()
	switch {
	case err != nil:
		return err
	case kind == frameClient && r.conn.Size() <= maxClient:
		text, err := r.conn.Rest()
		if err != nil {
			return err
		}
		return r.become(text)
	case kind == frameCommands && r.session != nil: // which only this goroutine sets
		return r.readCommands()
	}
	return peer.ErrFrame
}

// readCommands gives the commands of a frame to the session as they arrive.
func (r *remoteClient) readCommands() error {
	for {
		part, err := r.conn.Chunk()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		end := r.conn.Size() == 0
		r.mu.Lock()
		if !r.session.Closing() {
			r.session.Input(part, r.all.sessions.Keyspace.Now())
		}
		if end {
			r.frames++
		}
		r.mu.Unlock()
		r.wake()
		if end {
			return nil
		}
	}
}

// become makes the session that of the client that its server describes.
func (r *remoteClient) become(text []byte) error {
	sh := r.all.sessions
	var c session.Identity
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	if c.DB < 0 || c.DB >= sh.Keyspace.Databases() || c.Protocol != 2 && c.Protocol != 3 {
		return peer.ErrFrame
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.session
	if s == nil {
		if refusal := r.all.host.Refuse(); refusal != "" {
			return errors.Join(net.ErrClosed, r.refuse("-"+refusal+"\r\n"))
		}
		s = sh.Open(transport.Peer{Addr: c.Addr, Local: c.Local}, r.wake)
		r.session, r.hello = s, true
		r.wake()
	}
	s.Impersonate(c)
	r.account = s.Account()
	return nil
}

// bound reports whether the session keeps state for the client that cannot move to another server.
func (r *remoteClient) bound() bool { return r.session.Bound() || r.session.Account() != r.account }

// write serves the session until the connection ends.
func (r *remoteClient) write() {
	sh := r.all.sessions
	ks := sh.Keyspace
	check := ks.Clock().AfterFunc(time.Second, r.wake)
	nextCheck := ks.Now() + 1000
	r.watch = time.AfterFunc(time.Hour, r.check)
	r.watch.Stop()
	var err error
	var replies []byte
	for range r.signal {
		now := ks.Now()
		r.mu.Lock()
		s := r.session
		s.Advance(now)
		sendable := min(s.Sendable(), maxUnread)
		all := s.Output()
		replies = append(replies[:0], all[:sendable]...)
		s.SetOutput(all[:copy(all, all[sendable:])])
		sh.Storage.Kick()
		left := len(all) - sendable
		end := r.gone || s.Closing() && left == 0 || s.GiveUp(sendable)
		if now >= nextCheck {
			end = end || s.Expired(now)
			check, nextCheck = ks.Clock().AfterFunc(time.Second, r.wake), now+1000
		}
		r.arm(now)
		a := answer{done: r.told, db: s.DB(), flags: r.flags(end)}
		// One that is aborted owes replies: its client must not wait for them.
		if left == 0 && !s.Closing() && s.Idle() {
			a.done = r.frames
		}
		send := sendable > 0 || a.done != r.told || end || r.hello
		r.told, r.hello = a.done, false
		r.mu.Unlock()
		if sendable == maxUnread {
			r.wake() // for more
		}
		if send {
			err = r.send(&a, replies)
		}
		if end || err != nil {
			break
		}
	}
	check.Stop()
	r.conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.watch.Stop()
	if r.timer != nil {
		r.timer.Stop()
	}
	r.session.Abort()
	r.session.Close()
}

// flags returns the flags of an answer; end says that it is the last one. mu is locked.
func (r *remoteClient) flags(end bool) (flags byte) {
	sh := r.all.sessions
	if r.bound() {
		flags |= answerBound
	}
	if r.session.Protocol() == 3 {
		flags |= answerRESP3
	}
	if end && !r.gone && !sh.Following.Load() && !sh.Ending.Load() {
		flags |= answerEnd
	}
	return flags
}

// refuse answers with an error for the client when there is no session.
func (r *remoteClient) refuse(reply string) error {
	a := answer{flags: answerEnd}
	return errors.Join(a.queue(r.conn, []byte(reply)), r.conn.Flush())
}

// send sends an answer to the other server. That blocks while the server's client does not read; meanwhile check decides whether
// the client may stay.
func (r *remoteClient) send(a *answer, replies []byte) error {
	r.watch.Reset(time.Second)
	err := errors.Join(a.queue(r.conn, replies), r.conn.Flush())
	r.watch.Stop()
	return err
}

// check closes the connection if the client must be disconnected before it has read its replies.
func (r *remoteClient) check() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
	case r.session.GiveUp(0):
		r.conn.Close()
	default:
		r.watch.Reset(time.Second)
	}
}

// arm wakes the writer at the session's deadline. mu is locked.
func (r *remoteClient) arm(now int64) {
	at := r.session.Deadline()
	if at == 0 || r.timer != nil && r.armed == at {
		return
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	r.armed = at
	in := time.Duration(min(max(at-now, 0), int64(time.Hour/time.Millisecond))) * time.Millisecond
	r.timer = r.all.sessions.Keyspace.Clock().AfterFunc(in, func() {
		r.mu.Lock()
		r.timer = nil
		r.mu.Unlock()
		r.wake()
	})
}
