package server

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/transport"
)

// proxied is a client of another server of the group, which forwards its commands to this one, the leader; relay is the
// other end. The client is served as if it had connected here, as the user whose password it has shown there. Its connection
// closes when this server stops leading; commands without a reply then fail.
type proxied struct {
	srv    *Server
	conn   net.Conn
	signal chan struct{} // the session has mail, or output, or a frame has come, or the connection has ended

	mu      sync.Mutex       // protects what follows, and the session's owner-only state
	session *session.Session // nil before the server has said who it is
	account *acl.Account
	frames  uint64 // of commands that have come
	told    uint64 // how many of them the server knows to be answered
	hello   bool   // an answer is owed although there is nothing to tell
	gone    bool
	ended   bool
	watch   *time.Timer // calls check
	timer   transport.Timer
	armed   int64
}

// maxRelayedClient is how long the description of a client may be, in bytes.
const maxRelayedClient = 1 << 20

var (
	errFrame = errors.New("unknown frame")
)

// serveProxied serves a client of another server. rest has the bytes that were read from the connection already.
func (srv *Server) serveProxied(conn net.Conn, rest io.Reader) {
	p := &proxied{srv: srv, conn: conn, signal: make(chan struct{}, 1)}
	in := bufio.NewReaderSize(io.MultiReader(rest, conn), 16<<10)
	if b, err := in.ReadByte(); err != nil || b != '\n' {
		return
	}
	all := &srv.relays
	all.mu.Lock()
	if all.closed {
		all.mu.Unlock()
		return
	}
	if all.served == nil {
		all.served = map[*proxied]struct{}{}
	}
	all.served[p] = struct{}{}
	all.running.Add(1)
	all.mu.Unlock()
	defer func() {
		defer all.running.Done()
		all.mu.Lock()
		delete(all.served, p)
		all.mu.Unlock()
	}()
	if srv.group.following.Load() { // leadLost finds those that come later
		_ = p.answer(nil, answerRefused)
		return
	}
	if p.readClient(in) != nil {
		return
	}
	conn.SetDeadline(time.Time{})
	srv.group.node.Detach(conn) // it counts as a client
	var writing sync.WaitGroup
	writing.Go(p.write)
	for p.readFrame(in) == nil {
	}
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	p.wake()
	writing.Wait()
}

// wake makes the writer look at the session. It may be called under any lock.
func (p *proxied) wake() {
	select {
	case p.signal <- struct{}{}:
	default:
	}
}

// readClient reads who the client is.
func (p *proxied) readClient(in *bufio.Reader) error {
	kind, n, err := readFrameHead(in)
	switch {
	case err != nil:
		return err
	case kind != frameClient || n > maxRelayedClient:
		return errFrame
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(in, text); err != nil {
		return err
	}
	return p.become(text)
}

func readFrameHead(in io.Reader) (kind byte, size int, err error) {
	var head [frameHead]byte
	_, err = io.ReadFull(in, head[:])
	return head[0], int(binary.BigEndian.Uint32(head[1:])), err
}

// readFrame reads a frame.
func (p *proxied) readFrame(in *bufio.Reader) error {
	if head, err := in.Peek(1); err != nil {
		return err
	} else if head[0] == frameClient {
		return p.readClient(in)
	}
	kind, rest, err := readFrameHead(in)
	switch {
	case err != nil:
		return err
	case kind != frameCommands:
		return errFrame
	}
	for rest > 0 {
		if _, err := in.Peek(1); err != nil {
			return err
		}
		part, _ := in.Peek(min(rest, in.Buffered()))
		rest -= len(part)
		p.mu.Lock()
		if !p.session.Closing() {
			p.session.Input(part, p.srv.ks.Now())
		}
		if rest == 0 {
			p.frames++
		}
		p.mu.Unlock()
		p.wake()
		_, _ = in.Discard(len(part)) // which is there
	}
	return nil
}

// become makes the client what its server says that it is.
func (p *proxied) become(text []byte) error {
	var c session.Identity
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	if c.DB < 0 || c.DB >= p.srv.ks.Databases() || c.Protocol != 2 && c.Protocol != 3 {
		return errFrame
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.session
	if s == nil {
		if refusal := p.srv.refuse(p.srv.sessions.Clients.Len(), false); refusal != "" {
			return errors.Join(net.ErrClosed, p.answer([]byte("-"+refusal+"\r\n"), answerEnd))
		}
		s = p.srv.sessions.Open(transport.Peer{Addr: c.Addr, Local: c.Local}, p.wake)
		p.session, p.hello = s, true
		p.wake()
	}
	s.Impersonate(c)
	p.account = s.Account()
	return nil
}

// bound reports whether the session keeps something for the client that it cannot take elsewhere.
func (p *proxied) bound() bool { return p.session.Bound() || p.session.Account() != p.account }

// write serves the session until the connection ends.
func (p *proxied) write() {
	host := (*transportHost)(p.srv)
	check := host.AfterFunc(time.Second, p.wake)
	nextCheck := host.Now() + 1000
	p.watch = time.AfterFunc(time.Hour, p.check)
	p.watch.Stop()
	var err error
	var frame []byte
	for range p.signal {
		now := host.Now()
		p.mu.Lock()
		s := p.session
		s.Advance(now)
		sendable := min(s.Sendable(), relayUnread)
		all := s.Output()
		frame = append(append(frame[:0], make([]byte, answerHead)...), all[:sendable]...)
		s.SetOutput(all[:copy(all, all[sendable:])])
		host.CommitSoon()
		left := len(all) - sendable
		end := p.gone || s.Closing() && left == 0 || s.GiveUp(sendable)
		if now >= nextCheck {
			end = end || s.Expired(now)
			check, nextCheck = host.AfterFunc(time.Second, p.wake), now+1000
		}
		p.arm(now)
		a := relayAnswer{size: uint32(sendable), done: p.told, db: uint32(s.DB())}
		// One that is aborted owes replies: its client must not wait for them.
		if left == 0 && !s.Closing() && s.Idle() {
			a.done = p.frames
		}
		if p.bound() {
			a.flags |= answerBound
		}
		if s.Protocol() == 3 {
			a.flags |= answerRESP3
		}
		if end && !p.gone && !p.srv.group.following.Load() && !p.srv.sessions.Ending.Load() {
			a.flags |= answerEnd
		}
		send := sendable > 0 || a.done != p.told || end || p.hello
		p.told, p.hello = a.done, false
		p.mu.Unlock()
		if sendable == relayUnread {
			p.wake() // for more
		}
		if send {
			a.put(frame)
			err = p.send(frame)
		}
		if end || err != nil {
			break
		}
	}
	check.Stop()
	p.conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.watch.Stop()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.session.Abort()
	p.session.Close()
}

// answer sends replies when there is no session.
func (p *proxied) answer(replies []byte, flags byte) error {
	frame := make([]byte, answerHead, answerHead+len(replies))
	a := relayAnswer{size: uint32(len(replies)), flags: flags}
	a.put(frame)
	_, err := p.conn.Write(append(frame, replies...))
	return err
}

// send writes to the other server, which may take long because its client does not read. Meanwhile check looks whether
// that may stay.
func (p *proxied) send(frame []byte) error {
	p.watch.Reset(time.Second)
	_, err := p.conn.Write(frame)
	p.watch.Stop()
	return err
}

// check closes the connection if the client is to be closed whatever it has to read.
func (p *proxied) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
	case p.session.GiveUp(0):
		p.conn.Close()
	default:
		p.watch.Reset(time.Second)
	}
}

// arm wakes the writer when the session's deadline comes. mu is locked.
func (p *proxied) arm(now int64) {
	at := p.session.Deadline()
	if at == 0 || p.timer != nil && p.armed == at {
		return
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.armed = at
	in := time.Duration(min(max(at-now, 0), int64(time.Hour/time.Millisecond))) * time.Millisecond
	p.timer = p.srv.ks.Clock().AfterFunc(in, func() {
		p.mu.Lock()
		p.timer = nil
		p.mu.Unlock()
		p.wake()
	})
}
