package forward

import (
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/wire/peer"
	"github.com/atomredis/atomredis/resp"
)

// forwarder is the connection of a client of this server to the leader. It implements session.Forwarder.
type forwarder struct {
	all   *Connections
	s     *session.Session
	shard string        // whose leader it is; "" is the own group
	wake  chan struct{} // there is something to send
	read  chan struct{} // the client has read something
	gone  chan struct{} // closed when the client has disconnected
	// unread is about how many bytes of the leader's replies the client has not been sent yet; it may have others too.
	unread atomic.Int64

	mu      sync.Mutex
	client  session.Identity // for the leader
	changed bool             // the leader does not know the present client
	queue   []byte           // commands that have not been sent
	queued  int              // how many
	// sent and done are how many frames of commands the leader has been sent, and has answered.
	sent, done uint64
	bound      bool // the leader keeps state for the client: a transaction, subscriptions and so on
	leader     string
	conn       *peer.Conn // nil while there is none
	ended      bool       // the client's connection must end
	stopped    bool       // the client has disconnected
}

func newForwarder(all *Connections, s *session.Session, shard string) *forwarder {
	return &forwarder{all: all, s: s, shard: shard, client: s.Identity(), wake: make(chan struct{}, 1), read: make(chan struct{}, 1),
		gone: make(chan struct{})}
}

// Forward implements session.Forwarder.
func (f *forwarder) Forward(cmd *command.Command, args [][]byte, wanted bool) (done, taken bool) {
	s := f.s
	f.mu.Lock()
	defer f.mu.Unlock()
	quiet := f.queued == 0 && f.sent == f.done
	switch {
	case f.ended:
		s.Quit()
		return true, true
	case !quiet && !wanted || len(f.queue) > maxQueue:
		s.AwaitLeader()
		return false, true
	case quiet && !f.bound && (!wanted || s.Tied()): // it is for this server
		s.StopForwarding()
		if !f.changed { // what a transaction has chosen at the leader holds here too
			s.Adopt(f.client.DB, f.client.Protocol)
		}
		f.changed = true
		return false, false
	}
	if now := s.Identity(); f.changed || now != f.client {
		f.client, f.changed = now, true
	}
	f.queue = appendCommand(f.queue, f.all.sessions.Table, cmd, args)
	f.queued++
	return true, true
}

// appendCommand appends a command as clients send it.
func appendCommand(b []byte, t *command.Table, cmd *command.Command, args [][]byte) []byte {
	name := args[0]
	if cmd != nil {
		for cmd.Parent != nil {
			cmd = cmd.Parent
		}
		args[0] = []byte(t.Called(cmd))
	}
	b = command.AppendRequest(b, args)
	args[0] = name
	return b
}

// Flush implements session.Forwarder.
func (f *forwarder) Flush() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Took implements session.Forwarder.
func (f *forwarder) Took(n int) {
	if f.unread.Load() == 0 {
		return
	}
	if f.unread.Add(-int64(n)) < 0 {
		f.unread.Store(0) // there were other replies
	}
	select {
	case f.read <- struct{}{}:
	default:
	}
}

// Ended implements session.Forwarder.
func (f *forwarder) Ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// Answered implements session.Forwarder.
func (f *forwarder) Answered() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.queued == 0 && f.sent == f.done
}

// Busy implements session.Forwarder.
func (f *forwarder) Busy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bound || f.queued > 0 || f.sent != f.done
}

// Stop implements session.Forwarder.
func (f *forwarder) Stop() {
	f.mu.Lock()
	if !f.stopped {
		f.stopped = true
		close(f.gone)
	}
	if f.conn != nil {
		f.conn.Close()
	}
	f.mu.Unlock()
	f.all.mu.Lock()
	delete(f.all.forwarders, f)
	f.all.mu.Unlock()
}

// run sends commands to the leader until the client disconnects.
func (f *forwarder) run() {
	var reading sync.WaitGroup
	defer reading.Wait()
	var spare []byte // memory for the queue
	for {
		select {
		case <-f.wake:
		case <-f.gone:
			return
		}
		f.mu.Lock()
		waiting, conn := f.queued > 0 && !f.ended, f.conn
		f.mu.Unlock()
		if !waiting {
			continue
		}
		if conn == nil {
			if conn = f.connect(); conn == nil {
				f.fail()
				continue
			}
			reading.Go(func() { f.receive(conn) })
		}
		f.mu.Lock()
		if f.conn != conn { // it has ended, and nothing of the queue was sent on it
			f.mu.Unlock()
			f.Flush()
			continue
		}
		commands, client := f.takeQueue(spare)
		f.mu.Unlock()
		if send(conn, commands, client) != nil {
			conn.Close() // receive handles the rest
		}
		if spare = commands[:0]; cap(spare) > maxQueue {
			spare = nil
		}
	}
}

// takeQueue returns the queued commands, and the client if the leader does not know it. The queue is empty afterwards, with
// the memory of spare. mu is locked.
func (f *forwarder) takeQueue(spare []byte) (commands []byte, client *session.Identity) {
	if f.changed {
		c := f.client
		client, f.changed = &c, false
	}
	commands = f.queue
	f.sent += uint64((len(commands) + maxFrame - 1) / maxFrame)
	f.queue, f.queued = spare, 0
	if len(commands) > maxQueue { // the session may wait
		f.post()
	}
	return commands, client
}

// send sends commands as frames, after the client if it is not nil.
func send(conn *peer.Conn, commands []byte, client *session.Identity) error {
	if client != nil {
		if err := sendClient(conn, *client); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(commands, maxFrame) {
		if err := conn.Send(frameCommands, part); err != nil {
			return err
		}
	}
	return conn.Flush()
}

// post makes the session check the forwarder, behind the replies in b. mu is locked.
func (f *forwarder) post(b ...[]byte) {
	if !f.stopped {
		f.s.LeaderReplied(b...)
	}
}

// connect connects to the leader and describes the client to it. It returns nil if there is no leader for too long.
func (f *forwarder) connect() *peer.Conn {
	late := time.NewTimer(f.all.timeout())
	defer late.Stop()
	for n := 0; ; n++ {
		if addrs := f.all.leaders(f.shard); len(addrs) > 0 {
			if conn, err := f.dial(addrs[n%len(addrs)]); err == nil {
				return conn
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-late.C:
			return nil
		case <-f.gone:
			return nil
		case <-f.all.ctx.Done():
			return nil
		}
	}
}

// dial connects to the leader.
func (f *forwarder) dial(addr string) (*peer.Conn, error) {
	conn, err := f.all.node.Dial(addr, peer.Forward, peers.Timeout)
	if err != nil {
		return nil, err
	}
	if err := f.begin(conn, addr); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// begin describes the client to the leader and takes the first answer.
func (f *forwarder) begin(conn *peer.Conn, addr string) error {
	conn.SetDeadline(time.Now().Add(peers.Timeout))
	f.mu.Lock()
	client := f.client
	f.mu.Unlock()
	if err := errors.Join(sendClient(conn, client), conn.Flush()); err != nil {
		return err
	}
	a, replies, err := readAnswer(conn)
	if err != nil {
		return err
	}
	conn.SetDeadline(time.Time{})
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return net.ErrClosed
	}
	f.conn, f.leader, f.sent, f.changed = conn, addr, 0, false
	f.take(a, replies)
	return nil
}

// take handles an answer. mu is locked.
func (f *forwarder) take(a answer, replies []byte) {
	f.done, f.bound = a.done, a.flags&answerBound != 0
	f.client.DB, f.client.Protocol = a.db, 2
	if a.flags&answerRESP3 != 0 {
		f.client.Protocol = 3
	}
	f.ended = f.ended || a.flags&answerEnd != 0
	f.unread.Add(int64(len(replies)))
	f.post(replies)
}

// fail replies with an error to the queued commands, none of which was sent: there is no leader.
func (f *forwarder) fail() {
	w := resp.Writer{Proto: 2}
	f.mu.Lock()
	defer f.mu.Unlock()
	for range f.queued {
		w.Error(string(session.ErrClusterDown))
	}
	f.queue, f.queued = nil, 0
	f.post(w.Buf)
}

// receive takes the leader's answers until the connection ends.
func (f *forwarder) receive(conn *peer.Conn) {
	for {
		a, replies, err := readAnswer(conn)
		if err != nil {
			break
		}
		f.mu.Lock()
		f.take(a, replies)
		f.mu.Unlock()
		buffers.Put(replies)
		if !f.awaitReader() {
			break
		}
	}
	conn.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	// A command without a reply may have been executed or not: the client's connection ends to say so.
	f.ended = f.ended || f.bound || f.sent != f.done
	f.conn = nil
	f.post()
}

// awaitReader waits as long as the client has too much to read, and reports whether it is still connected.
func (f *forwarder) awaitReader() bool {
	for f.unread.Load() > maxUnread {
		select {
		case <-f.read:
		case <-f.gone:
			return false
		}
	}
	return true
}
