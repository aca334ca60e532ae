package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/background"
)

// follower is what a session is to others that follow the server.
type follower struct {
	following atomic.Bool            // it gets everything, and perhaps what changes
	rdbOnly   bool                   // it wants all data and no more
	without   rdbContent             // what it does not want
	openEnded bool                   // it reads a file whose length it is not told before
	port      atomic.Int64           // on which it says it listens; 0 if it has not
	host      atomic.Pointer[string] // where it says it is; nil if it has not
	feed      *feed                  // nil before SYNC
}

// followers are the sessions that get what changes.
type followers struct {
	running sync.WaitGroup // copies being sent
	scarce  atomic.Bool    // there are fewer good ones than min-replicas-to-write; changes under mu
	active  atomic.Bool    // somebody gets the stream; changes under a guard over everything

	mu      sync.Mutex // protects what follows; only mailboxes are locked under it
	changes replicationStream
	list    []*feed
	offset  int64 // how many bytes of the stream there were
	timer   engine.Timer
	ticks   int
	closed  bool
}

// feed is how a follower gets what it wants: first a copy of everything, and then the stream.
type feed struct {
	srv     *Server
	s       *Session
	content rdbContent
	rdbOnly bool
	open    bool // see follower.openEnded

	ctx    context.Context // ends with the session, or when the follower is given up
	cancel context.CancelFunc
	moved  chan struct{} // the session has sent something

	queued  atomic.Int64 // bytes given to the session and not sent
	waiting atomic.Int64 // the length of pending
	source  atomic.Pointer[engine.Snapshot]

	acked, ackedAt atomic.Int64  // what it has executed, and when it said so, in ms since 1970
	marked         atomic.Bool   // the end of a copy of unknown length has been sent
	loaded         chan struct{} // the follower has told something since

	// Protected by followers.mu.
	pending   []byte // of the stream, until the copy has been sent
	state     feedState
	streaming bool // it gets the stream, since the instant that its copy shows
}

// noDatabase is the number of none.
const noDatabase = -1

// feedState is how far a follower has got.
type feedState uint8

const (
	feedWaiting feedState = iota // for the copy to begin
	feedCopy                     // of which it gets parts, or which is being made
	feedOnline
)

// String returns the word that INFO has for it.
func (s feedState) String() string { return [...]string{"wait_bgsave", "send_bulk", "online"}[s] }

func newFeed(s *Session) *feed {
	f := &feed{srv: s.srv, s: s, content: rdbAll &^ s.follower.without, rdbOnly: s.follower.rdbOnly,
		open:  s.follower.openEnded,
		moved: make(chan struct{}, 1), loaded: make(chan struct{}, 1)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Append implements engine.Journal.
func (f *followers) Append(now int64, commands []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.send(f.changes.translate(commands))
}

// send gives all followers a part of the stream.
func (f *followers) send(b []byte) {
	f.offset += int64(len(b))
	for _, d := range f.list {
		if d.streaming {
			d.follow(b)
		}
	}
}

// streaming reports whether anybody gets the stream. mu is locked.
func (f *followers) streaming() bool {
	return slices.ContainsFunc(f.list, func(d *feed) bool { return d.streaming })
}

// follow takes a part of the stream. followers.mu is locked.
func (d *feed) follow(b []byte) {
	if d.state == feedOnline {
		d.s.post(0, b)
		return
	}
	d.pending = append(d.pending, b...)
	d.waiting.Store(int64(len(d.pending)))
	if hard := d.srv.config.Get().OutputLimits.Replica.Hard; hard != 0 && d.backlog() > hard && d.ctx.Err() == nil {
		d.giveUp("it does not read fast enough", nil)
	}
}

// backlog returns how many bytes wait for the follower besides those that its session has. Any goroutine may call it.
func (d *feed) backlog() int64 {
	if d == nil {
		return 0
	}
	n := d.waiting.Load()
	if s := d.source.Load(); s != nil {
		n += s.KeptBytes()
	}
	return n
}

// giveUp closes the connection.
func (d *feed) giveUp(why string, err error) {
	d.cancel()
	args := []any{"client", d.s.id, "addr", d.s.peer.Addr, "reason", why}
	if err != nil {
		args = append(args, "error", err.Error())
	}
	d.srv.log.Warn("closing a follower", args...)
	d.s.post(mailKill)
}

// acknowledge notes what the follower has executed.
func (d *feed) acknowledge(offset int64) {
	d.acked.Store(offset)
	d.ackedAt.Store(d.srv.ks.Now())
	d.srv.countFollowers()
	if d.marked.Load() {
		select {
		case d.loaded <- struct{}{}:
		default:
		}
	}
}

// took notes that the session has sent n bytes. It is called by the session's transport.
func (d *feed) took(n int) {
	if d == nil || n == 0 {
		return
	}
	d.srv.stats.replOut.Add(int64(n))
	d.queued.Add(-int64(n))
	d.signal()
}

func (d *feed) signal() {
	select {
	case d.moved <- struct{}{}:
	default:
	}
}

// feedWindow is how many bytes of the copy may wait in the session.
const feedWindow = 1 << 20

var errUnread = errors.New("the follower has not read anything for longer than repl-timeout")

// Write gives the follower a part of the copy, and waits while it does not read.
func (d *feed) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		if err := d.await(feedWindow); err != nil {
			return 0, err
		}
		n := min(len(rest), feedWindow)
		d.queued.Add(int64(n))
		d.s.post(0, rest[:n])
		rest = rest[n:]
	}
	return len(b), nil
}

// await waits until less than limit bytes wait in the session.
func (d *feed) await(limit int64) error {
	clock := d.srv.ks.Clock()
	for {
		before := d.queued.Load()
		if before < limit || d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		patience := time.Duration(d.srv.config.Get().ReplTimeout) * time.Second
		late := clock.Now().Add(patience)
		timer := clock.AfterFunc(patience, d.signal)
		for d.queued.Load() >= before && d.ctx.Err() == nil && clock.Now().Before(late) {
			select {
			case <-d.moved:
			case <-d.ctx.Done():
			}
		}
		timer.Stop()
		if d.queued.Load() >= before && d.ctx.Err() == nil {
			return errUnread
		}
	}
}

// copyTo has everything sent to a follower, in the background.
func (f *followers) copyTo(srv *Server, d *feed, announce bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		d.s.post(mailKill)
		return
	}
	f.list = append(f.list, d)
	srv.stats.copies.Add(1)
	f.watch(srv)
	f.running.Add(1)
	go func() {
		defer f.running.Done()
		background.Work()
		err := d.copy(announce)
		if err == nil && !d.rdbOnly {
			err = d.catchUp()
		}
		if err != nil && d.ctx.Err() == nil {
			d.giveUp("it cannot get a copy", err)
		}
	}()
}

// copy sends everything.
func (d *feed) copy(announce bool) error {
	how := rdbCopy{content: d.content, begun: func(s *engine.Snapshot) { d.source.Store(s) }}
	defer d.source.Store(nil)
	if !d.open {
		return d.copyByFile(how, announce)
	}
	var mark [markLength / 2]byte
	rand.Read(mark[:])
	end := hex.EncodeToString(mark[:])
	how.at = func(g *engine.Guard) { d.begin(g, announce, "$EOF:"+end+"\r\n") }
	if err := d.srv.encodeRDB(d.ctx, d, how); err != nil {
		return err
	}
	d.source.Store(nil)
	d.marked.Store(true)
	if _, err := io.WriteString(d, end); err != nil || d.rdbOnly {
		return err
	}
	// A Redis finds the end only if nothing comes behind it, until it says that it has got it.
	select {
	case <-d.loaded:
		return nil
	case <-d.ctx.Done():
		return d.ctx.Err()
	}
}

// copyByFile is copy for a follower that must be told the length first.
func (d *feed) copyByFile(how rdbCopy, announce bool) error {
	file, err := os.CreateTemp(d.srv.spoolDir(), "follower-*.rdb")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	os.Remove(file.Name()) // already, where that is possible: nothing must be left if the process is killed
	how.at = func(g *engine.Guard) { d.begin(g, announce, "") }
	if err := d.srv.encodeRDB(d.ctx, writerFunc(func(b []byte) (int, error) {
		if err := d.ctx.Err(); err != nil {
			return 0, err
		}
		return file.Write(b)
	}), how); err != nil {
		return err
	}
	d.source.Store(nil)
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	f := &d.srv.followed
	f.mu.Lock()
	d.state = feedCopy // nothing more is sent to tell that we are there
	f.mu.Unlock()
	if _, err := fmt.Fprintf(d, "$%d\r\n", size); err != nil {
		return err
	}
	buf := make([]byte, feedWindow/4)
	_, err = io.CopyBuffer(onlyWriter{d}, onlyReader{file}, buf)
	return err
}

// onlyWriter and onlyReader hide the methods that would make io.Copy not use its buffer.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

// begin is called at the instant that the copy shows: the stream that the follower gets begins there.
func (d *feed) begin(g *engine.Guard, announce bool, head string) {
	f := &d.srv.followed
	f.mu.Lock()
	defer f.mu.Unlock()
	if announce {
		head = fmt.Sprintf("+FULLRESYNC %s %d\r\n", d.srv.replID(), f.offset) + head
	}
	if d.open {
		d.state = feedCopy
	}
	d.queued.Add(int64(len(head)))
	d.s.post(0, []byte(head))
	if !d.rdbOnly && d.ctx.Err() == nil {
		d.streaming = true
		f.changes.restart() // for the new one's sake it says in which database the next command is
		f.active.Store(true)
		g.Follow(f)
	}
}

// catchUp sends what of the stream has gathered meanwhile, until the follower has all of it.
func (d *feed) catchUp() error {
	f := &d.srv.followed
	for {
		f.mu.Lock()
		pending := d.pending
		d.pending = nil
		if len(pending) < feedWindow/16 {
			if len(pending) > 0 {
				d.s.post(0, pending)
			}
			d.waiting.Store(0)
			d.state = feedOnline
			d.ackedAt.CompareAndSwap(0, d.srv.ks.Now())
			f.mu.Unlock()
			d.srv.countFollowers()
			d.srv.log.Info("a follower has a copy", "client", d.s.id, "addr", d.s.peer.Addr)
			return nil
		}
		f.mu.Unlock()
		if _, err := d.Write(pending); err != nil {
			return err
		}
	}
}

// unfollow ends that a session is a follower. It takes a guard over everything if it was the last one.
func (srv *Server) unfollow(s *Session) {
	f := &srv.followed
	d := s.follower.feed
	d.cancel()
	f.mu.Lock()
	f.list = slices.DeleteFunc(f.list, func(other *feed) bool { return other == d })
	d.pending = nil
	d.waiting.Store(0)
	last := d.streaming && !f.streaming()
	f.mu.Unlock()
	srv.countFollowers()
	if !last {
		return
	}
	s.guard.Lock(srv.ks, engine.AllShards, s.now)
	defer s.guard.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.streaming() { // another one may have come meanwhile
		f.active.Store(false)
		s.guard.Follow(nil)
	}
}

// watch tells followers every second that the server is there, as long as there are any: those that wait for a copy,
// by an empty line, and every pingPeriod seconds those that get the stream. mu is locked.
func (f *followers) watch(srv *Server) {
	if f.timer != nil {
		return
	}
	f.timer = srv.ks.Clock().AfterFunc(time.Second, func() {
		defer srv.countFollowers()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.timer = nil
		if f.closed || len(f.list) == 0 {
			return
		}
		for _, d := range f.list {
			if d.state == feedWaiting {
				d.queued.Add(1)
				d.s.post(0, []byte("\n"))
			}
		}
		if f.ticks++; f.ticks >= srv.config.Get().ReplPingReplicaPeriod && f.streaming() {
			f.ticks = 0
			f.send([]byte("*1\r\n$4\r\nPING\r\n"))
		}
		f.watch(srv)
	})
}

// good returns how many followers count for min-replicas-to-write: they get the stream and have told of late that
// they do.
func (f *followers) good(set *config.Settings) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.countGood(set)
}

// countGood is good with mu locked.
func (f *followers) countGood(set *config.Settings) (n int) {
	for _, d := range f.list {
		if d.state == feedOnline && d.lag() <= int64(set.MinReplicasMaxLag) {
			n++
		}
	}
	return n
}

// lag returns for how many seconds the follower has not told what it has executed.
func (d *feed) lag() int64 {
	at := d.ackedAt.Load()
	if at == 0 {
		return 0
	}
	return max(d.srv.ks.Now()-at, 0) / 1000
}

// countFollowers decides whether clients may write, which depends on how many followers there are
// (min-replicas-to-write).
func (srv *Server) countFollowers() { srv.countFollowersFor(srv.config.Get()) }

// countFollowersFor is countFollowers with settings that come into effect now.
func (srv *Server) countFollowersFor(set *config.Settings) {
	f := &srv.followed
	f.mu.Lock()
	scarce := set.MinReplicasToWrite > 0 && set.MinReplicasMaxLag > 0 && f.countGood(set) < set.MinReplicasToWrite
	changed := f.scarce.Swap(scarce) != scarce
	f.mu.Unlock()
	if changed {
		srv.restrict()
	}
}

// stop ends copies that are being sent, so that nobody has to wait for them, and lets no others begin.
func (f *followers) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
	for _, d := range f.list {
		d.cancel()
	}
}

// drop disconnects all.
func (f *followers) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.list {
		d.s.post(mailKill)
	}
}

// followerStatus is what is told of a follower.
type followerStatus struct {
	host  string
	port  int64 // 0 if it has not said any
	state feedState
	acked int64
	lag   int64 // seconds since it said so
}

// status returns what is told of all followers, and the offset at which the stream is.
func (f *followers) status() (list []followerStatus, offset int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.list {
		st := followerStatus{port: d.s.follower.port.Load(), state: d.state, acked: d.acked.Load()}
		if said := d.s.follower.host.Load(); said != nil && *said != "" {
			st.host = *said
		} else {
			st.host, _, _ = net.SplitHostPort(d.s.peer.Addr)
		}
		st.lag = d.lag()
		list = append(list, st)
	}
	return list, f.offset
}
