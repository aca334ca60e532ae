package server

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/resp"
)

// With replicated-proxy a follower forwards what only the leader can do. Each client that needs it has a connection of
// its own to the leader, on which its commands go there and the replies come back, both as they are and in order; see
// proxied for the other end. What uses no data is done here, once the leader owes nothing.

// relays are the connections of clients to the leader.
type relays struct {
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	all    map[*relay]struct{}
	served map[*proxied]struct{} // the clients of other servers
}

const (
	// relayPatience is for how long commands wait for a leader, in times of raft-timeout.
	relayPatience = 10
	// relayQueue is how many bytes of commands a relay takes before they have been sent.
	relayQueue = 1 << 20
	// relayUnread is how many bytes of replies the client may have to read before more are taken from the leader.
	relayUnread = 1 << 20
)

// relay is the connection of a client to the leader.
type relay struct {
	srv  *Server
	s    *session.Session
	wake chan struct{} // there is something to send
	read chan struct{} // the client has read something
	gone chan struct{} // closed when the client has gone
	// unread is how many bytes of replies the client has not been sent yet; about, because it may have others.
	unread atomic.Int64

	mu      sync.Mutex
	client  session.Identity // as the leader is to see it
	changed bool             // since it was told
	queue   []byte           // commands that have not been sent
	queued  int              // how many
	// sent and done are how many frames of commands the leader has been sent, and has answered.
	sent, done uint64
	bound      bool // the leader keeps something for the client: a transaction, subscriptions and the like
	leader     string
	conn       net.Conn // nil while there is none
	ended      bool     // the client's connection must end
	stopped    bool     // the client has gone
}

// Frames are what goes over the connection: to the leader a kind, a length of four bytes and so much, and back a
// relayAnswer and replies.
const (
	frameClient   = 'I' // a Identity
	frameCommands = 'C'
	frameHead     = 5
	maxFrame      = 1 << 30 // bytes
)

// relayAnswer comes before replies.
type relayAnswer struct {
	size  uint32 // of the replies, in bytes
	flags byte
	db    uint32 // the client's
	done  uint64 // how many frames of commands have been answered, these replies included
}

const (
	answerHead = 17

	answerBound   = 1 << iota // see relay.bound
	answerRESP3               // the client uses it
	answerEnd                 // the leader has ended the connection as it does with one of its own clients
	answerRefused             // this server does not lead
)

func (a *relayAnswer) put(b []byte) {
	binary.BigEndian.PutUint32(b, a.size)
	b[4] = a.flags
	binary.BigEndian.PutUint32(b[5:], a.db)
	binary.BigEndian.PutUint64(b[9:], a.done)
}

// readAnswer returns the next answer, with its replies.
func readAnswer(in *bufio.Reader) (a relayAnswer, replies []byte, err error) {
	var head [answerHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return a, nil, err
	}
	a = relayAnswer{size: binary.BigEndian.Uint32(head[:]), flags: head[4], db: binary.BigEndian.Uint32(head[5:]),
		done: binary.BigEndian.Uint64(head[9:])}
	for rest := int(a.size); rest > 0; {
		n := min(rest, relayUnread) // memory is taken as bytes arrive, not by the announced length
		replies = buffers.Grow(replies, n)
		if _, err := io.ReadFull(in, replies[len(replies):len(replies)+n]); err != nil {
			return a, nil, err
		}
		replies, rest = replies[:len(replies)+n], rest-n
	}
	return a, replies, nil
}

// NewForwarder implements session.Host.
func (srv *Server) NewForwarder(s *session.Session) session.Forwarder {
	r := &relay{srv: srv, s: s, client: s.Identity(), wake: make(chan struct{}, 1), read: make(chan struct{}, 1),
		gone: make(chan struct{})}
	all := &srv.relays
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed {
		r.ended = true
		return r
	}
	if all.all == nil {
		all.all = map[*relay]struct{}{}
	}
	all.all[r] = struct{}{}
	all.running.Go(r.run)
	return r
}

// Forward implements session.Forwarder.
func (r *relay) Forward(cmd *command.Command, args [][]byte, wanted bool) (done, taken bool) {
	s := r.s
	r.mu.Lock()
	defer r.mu.Unlock()
	quiet := r.queued == 0 && r.sent == r.done
	switch {
	case r.ended:
		s.Quit()
		return true, true
	case !quiet && !wanted || len(r.queue) > relayQueue:
		s.AwaitLeader()
		return false, true
	case quiet && !r.bound && (!wanted || s.Tied()): // it is for this server
		s.StopForwarding()
		if !r.changed { // what a transaction has chosen at the leader holds here too
			s.Adopt(r.client.DB, r.client.Protocol)
		}
		r.changed = true
		return false, false
	}
	if r.changed {
		r.client = s.Identity()
	}
	r.queue = appendRelayed(r.queue, r.srv.table, cmd, args)
	r.queued++
	return true, true
}

// appendRelayed appends a command as clients send it.
func appendRelayed(b []byte, t *command.Table, cmd *command.Command, args [][]byte) []byte {
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
func (r *relay) Flush() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Took implements session.Forwarder.
func (r *relay) Took(n int) {
	if r.unread.Load() == 0 {
		return
	}
	if r.unread.Add(-int64(n)) < 0 {
		r.unread.Store(0) // there were other replies
	}
	select {
	case r.read <- struct{}{}:
	default:
	}
}

// Ended implements session.Forwarder.
func (r *relay) Ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// Busy implements session.Forwarder.
func (r *relay) Busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bound || r.queued > 0 || r.sent != r.done
}

// relayPatience returns for how long commands wait for a leader.
func (srv *Server) relayPatience() time.Duration {
	return relayPatience * time.Duration(srv.config.Get().Raft.Timeout) * time.Millisecond
}

// Stop implements session.Forwarder.
func (r *relay) Stop() {
	r.mu.Lock()
	if !r.stopped {
		r.stopped = true
		close(r.gone)
	}
	if r.conn != nil {
		r.conn.Close()
	}
	r.mu.Unlock()
	all := &r.srv.relays
	all.mu.Lock()
	delete(all.all, r)
	all.mu.Unlock()
}

// run sends commands to the leader, as long as there is a client.
func (r *relay) run() {
	var reading sync.WaitGroup
	defer reading.Wait()
	var frame []byte
	for {
		select {
		case <-r.wake:
		case <-r.gone:
			return
		}
		r.mu.Lock()
		waiting, conn := r.queued > 0 && !r.ended, r.conn
		r.mu.Unlock()
		if !waiting {
			continue
		}
		if conn == nil {
			var in *bufio.Reader
			if conn, in = r.connect(); conn == nil {
				r.fail()
				continue
			}
			reading.Go(func() { r.receive(conn, in) })
		}
		r.mu.Lock()
		if r.conn != conn { // it has ended, and nothing of the queue was sent on it
			r.mu.Unlock()
			r.Flush()
			continue
		}
		frame = frame[:0]
		full := len(r.queue) > relayQueue // the session may wait
		if r.changed {
			frame, r.changed = appendClient(frame, r.client), false
		}
		for part := range slices.Chunk(r.queue, maxFrame) {
			frame = binary.BigEndian.AppendUint32(append(frame, frameCommands), uint32(len(part)))
			frame = append(frame, part...)
			r.sent++
		}
		if r.queue, r.queued = r.queue[:0], 0; cap(r.queue) > relayQueue {
			r.queue = nil
		}
		if full {
			r.post()
		}
		r.mu.Unlock()
		if _, err := conn.Write(frame); err != nil {
			conn.Close() // receive sees to the rest
		}
		if cap(frame) > relayQueue {
			frame = nil
		}
	}
}

// post has the session look at the relay, behind the replies in b. mu is locked.
func (r *relay) post(b ...[]byte) {
	if !r.stopped {
		r.s.LeaderReplied(b...)
	}
}

// appendClient appends the frame that tells the leader of the client.
func appendClient(b []byte, c session.Identity) []byte {
	text, _ := json.Marshal(c)
	b = append(b, frameClient)
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	return append(b, text...)
}

// connect finds the leader and tells it of the client. It returns nil if there is none for too long.
func (r *relay) connect() (net.Conn, *bufio.Reader) {
	g := &r.srv.group
	late := time.NewTimer(r.srv.relayPatience())
	defer late.Stop()
	for {
		if st := g.status.Load(); st.Leader != "" {
			if conn, in, err := r.dial(st.Leader); err == nil {
				return conn, in
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-late.C:
			return nil, nil
		case <-r.gone:
			return nil, nil
		case <-g.ctx.Done():
			return nil, nil
		}
	}
}

var errNoLeader = errors.New("the server does not lead")

// dial connects to the leader.
func (r *relay) dial(addr string) (net.Conn, *bufio.Reader, error) {
	conn, err := r.srv.group.node.Dial(addr, peers.Timeout)
	if err != nil {
		return nil, nil, err
	}
	in, err := r.begin(conn, addr)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, in, nil
}

// begin tells the leader of the client, and takes its first answer.
func (r *relay) begin(conn net.Conn, addr string) (*bufio.Reader, error) {
	conn.SetDeadline(time.Now().Add(peers.Timeout))
	r.mu.Lock()
	client := r.client
	r.mu.Unlock()
	hello, _ := json.Marshal(peers.Question{Ask: peers.AskForward})
	if _, err := conn.Write(appendClient(append(hello, '\n'), client)); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(conn, 16<<10)
	a, replies, err := readAnswer(in)
	if err != nil {
		return nil, err
	}
	if a.flags&answerRefused != 0 {
		return nil, errNoLeader
	}
	conn.SetDeadline(time.Time{})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return nil, net.ErrClosed
	}
	r.conn, r.leader, r.sent, r.changed = conn, addr, 0, false
	r.take(a, replies)
	return in, nil
}

// take takes an answer. mu is locked.
func (r *relay) take(a relayAnswer, replies []byte) {
	r.done, r.bound = a.done, a.flags&answerBound != 0
	r.client.DB, r.client.Protocol = int(a.db), 2
	if a.flags&answerRESP3 != 0 {
		r.client.Protocol = 3
	}
	r.ended = r.ended || a.flags&answerEnd != 0
	r.unread.Add(int64(len(replies)))
	r.post(replies)
}

// fail answers the queued commands, of which none was sent, with an error: there is no leader.
func (r *relay) fail() {
	w := resp.Writer{Proto: 2}
	r.mu.Lock()
	defer r.mu.Unlock()
	for range r.queued {
		w.Error(string(errClusterDown))
	}
	r.queue, r.queued = nil, 0
	r.post(w.Buf)
}

// receive takes what the leader answers until the connection ends.
func (r *relay) receive(conn net.Conn, in *bufio.Reader) {
	for {
		a, replies, err := readAnswer(in)
		if err != nil {
			break
		}
		r.mu.Lock()
		r.take(a, replies)
		r.mu.Unlock()
		buffers.Put(replies)
		if !r.awaitReader() {
			break
		}
	}
	conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	// What was sent may have been done or not: the client learns that by its connection.
	r.ended = r.ended || r.bound || r.sent != r.done
	r.conn = nil
	r.post()
}

// awaitReader waits as long as the client has too much to read, and reports whether it is still there.
func (r *relay) awaitReader() bool {
	for r.unread.Load() > relayUnread {
		select {
		case <-r.read:
		case <-r.gone:
			return false
		}
	}
	return true
}

// leaderKnown ends the connections to a server that does not lead any more.
func (all *relays) leaderKnown(leader string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for r := range all.all {
		r.mu.Lock()
		g := &r.srv.group
		if r.conn != nil && r.leader != leader && (leader != "" || g.silence() > r.srv.relayPatience()) {
			r.conn.Close()
		}
		r.mu.Unlock()
	}
}

// leadLost ends what others, and listeners, have of a server that leads no more.
func (all *relays) leadLost(srv *Server) {
	all.mu.Lock()
	served := slices.Collect(maps.Keys(all.served))
	all.mu.Unlock()
	for _, p := range served {
		p.conn.Close()
	}
	if srv.sessions.Forwards.Load() {
		srv.sessions.EndListeners()
	}
}

// Recheck implements carrier.
func (all *relays) Recheck() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for p := range all.served {
		p.wake()
	}
}

// Close implements carrier.
func (all *relays) Close() {
	all.mu.Lock()
	all.closed = true
	relays, served := slices.Collect(maps.Keys(all.all)), slices.Collect(maps.Keys(all.served))
	all.mu.Unlock()
	for _, r := range relays {
		r.Stop()
	}
	for _, p := range served {
		p.conn.Close()
	}
	all.running.Wait()
}
