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
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/background"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/replication"
	"github.com/atomredis/atomredis/transfer"
)

// What a master does for those that follow it: SYNC and PSYNC send everything as an RDB file, and then the commands
// that change something, as replication.Stream makes them of the journal's. The file is made and sent by a goroutine
// of its own, from a snapshot, while commands go on; what they change gathers until all of the file is sent. If the
// follower does not read, it is the copy that waits. A follower that was away gets what it has missed, if the history
// (replication.History) still has that. A replica passes on to its own followers what its master sends. A server of a
// group that does not lead makes the same stream as the leader; it tells the leader that there are followers here.

// follower is what a session is to others that follow the server.
type follower struct {
	following atomic.Bool // it gets everything, and perhaps what changes
	wishes    replication.Wishes
	feed      *feed // nil before SYNC

	// What Guard.Changes said when Wrote looked last, and where the stream was then.
	changes int
	wrote   int64
	awaits  bool // the client has waited for followers
}

// pristine reports whether the session is not, and has not asked to be, anything special.
func (f *follower) pristine() bool { return !f.following.Load() && f.wishes.Pristine() }

// followers are the sessions that get what changes.
type followers struct {
	running sync.WaitGroup // copies being sent
	scarce  atomic.Bool    // there are fewer good ones than min-replicas-to-write; changes under mu
	active  atomic.Bool    // somebody gets the stream; changes under a guard over everything

	srv    *Server
	keeper *persist.Storage // stores the history with the data; nil if nobody does

	mu      sync.Mutex // protects what follows; under it are locked the journal and mailboxes, and nothing else
	history replication.History
	changes replication.Stream
	list    []*feed
	tail    *transfer.Tail     // of a backup; nil if none gets what changes
	tailed  replication.Stream // for it
	waiters map[*Session]ackWaiter
	asked   int64    // the offset behind the last question what they have executed
	failing failover // what FAILOVER has begun
	alone   int64    // since when nobody gets the stream, in ms since 1970
	wanted  int64    // until when others of the group have followers, in ms since 1970
	asking  bool     // the leader is being told that there are followers here
	timer   engine.Timer
	ticks   int
	closed  bool
}

// feed is how a follower gets what it wants: first a copy of everything, and then the stream.
type feed struct {
	srv     *Server
	s       *Session
	content transfer.Content
	rdbOnly bool
	open    bool // see replication.Wishes

	ctx    context.Context // ends with the session, or when the follower is given up
	cancel context.CancelFunc
	moved  chan struct{} // the session has sent something

	queued  atomic.Int64 // bytes given to the session and not sent
	waiting atomic.Int64 // the length of pending
	source  atomic.Pointer[engine.Snapshot]

	acked, ackedAt atomic.Int64  // what it has executed, and when it said so, in ms since 1970
	synced         atomic.Int64  // what of that is on its disk; -1 if it has not said
	marked         atomic.Bool   // the end of a copy of unknown length has been sent
	loaded         chan struct{} // the follower has told something since

	// Protected by followers.mu.
	pending   []byte // of the stream, until the copy has been sent
	state     replication.FollowerState
	streaming bool // it gets the stream, since the instant that its copy shows

	db int // in which the stream was then, for who makes the copy
}

func newFeed(s *Session) *feed {
	w := &s.follower.wishes
	f := &feed{srv: s.srv, s: s, content: transfer.All, rdbOnly: w.CopyOnly, open: w.OpenEnded,
		moved: make(chan struct{}, 1), loaded: make(chan struct{}, 1)}
	if w.Filtered {
		if f.content = 0; w.Functions {
			f.content = transfer.Functions
		}
	}
	f.synced.Store(-1)
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Follow implements engine.Follower. What is journalled is in the stream in the same order: after a restart the stream
// is made of the journal.
func (f *followers) Follow(now int64, commands []byte, journal engine.Journal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if journal != nil {
		journal.Append(now, commands)
	}
	if f.makes() {
		f.send(f.changes.Translate(commands))
	}
	if f.tail != nil {
		f.tail.Add(f.tailed.Translate(commands))
	}
}

// attach has what changes told to the followers, if it is for anybody. The guard holds everything, and mu is locked.
func (f *followers) attach(g *engine.Guard) {
	wanted := f.tail != nil || f.makes()
	f.active.Store(wanted)
	if wanted {
		g.Follow(f)
	} else {
		g.Follow(nil)
	}
}

// published has those that follow hear of a message too, behind what the client has changed before it.
func (f *followers) published(c *command.Ctx) {
	if !f.active.Load() || c.Origin.In(command.FromMaster) { // what the master sends is passed on as it is
		return
	}
	if c.G.Locked() {
		c.G.Tell(c.Args)
		return
	}
	f.Tell(command.AppendRequest(nil, c.Args))
}

// Tell implements engine.Follower.
func (f *followers) Tell(commands []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.makes() {
		f.insert(commands)
	}
}

// send adds to the stream. mu is locked.
func (f *followers) send(b []byte) {
	f.history.Add(b)
	for _, d := range f.list {
		if d.streaming {
			d.follow(b)
		}
	}
}

// relay adds what the master has sent to the stream, which is in database db from then on.
func (f *followers) relay(b []byte, db int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.send(b)
	f.changes.Resume(db)
}

// follow takes a part of the stream. followers.mu is locked.
func (d *feed) follow(b []byte) {
	if d.state == replication.FollowerOnline {
		d.s.post(0, b)
		return
	}
	d.pending = append(d.pending, b...)
	d.waiting.Store(int64(len(d.pending)))
	set := d.srv.config.Get()
	// As in Redis a limit under the length of the backlog does not hold for what is in there.
	if hard := set.OutputLimits.Replica.Hard; hard != 0 && d.backlog() > max(hard, int64(set.ReplBacklogSize)) &&
		d.ctx.Err() == nil {
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
func (d *feed) acknowledge(offset, synced int64) {
	d.acked.Store(offset)
	d.synced.Store(synced)
	d.ackedAt.Store(d.srv.ks.Now())
	d.srv.countFollowers()
	if d.marked.Load() {
		select {
		case d.loaded <- struct{}{}:
		default:
		}
	}
	d.srv.followed.heard()
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
	srv.stats.copies.Add(1)
	f.serve(d, func() error {
		background.Work()
		err := d.copy(announce)
		if err == nil && !d.rdbOnly {
			err = d.catchUp()
		}
		return err
	})
}

// serve has a follower get what it wants, in the background. mu is locked.
func (f *followers) serve(d *feed, send func() error) {
	f.list = append(f.list, d)
	f.watch()
	f.running.Add(1)
	go func() {
		defer f.running.Done()
		if err := send(); err != nil && d.ctx.Err() == nil {
			d.giveUp("it cannot get what it needs", err)
		}
	}()
}

// goOn has a follower get what followed an offset of a history, if that is there, and what comes.
func (f *followers) goOn(d *feed, id string, offset int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	missed, ok := f.history.Since(id, offset)
	if !ok || f.closed {
		return false
	}
	answer := "+CONTINUE\r\n"
	if d.s.follower.wishes.OtherNames {
		answer = "+CONTINUE " + f.history.ID + "\r\n"
	}
	d.queued.Add(int64(len(answer)))
	d.s.post(0, []byte(answer))
	d.state, d.streaming, d.pending = replication.FollowerCopy, true, missed
	d.waiting.Store(int64(len(missed)))
	d.acked.Store(offset)
	d.srv.stats.partial.Add(1)
	f.serve(d, d.catchUp)
	return true
}

// copy sends everything.
func (d *feed) copy(announce bool) error {
	how := transfer.Copy{Content: d.content, Begun: func(s *engine.Snapshot) { d.source.Store(s) }, About: d.about}
	defer d.source.Store(nil)
	if !d.open {
		return d.copyByFile(how, announce)
	}
	var mark [markLength / 2]byte
	rand.Read(mark[:])
	end := hex.EncodeToString(mark[:])
	how.At = func(g *engine.Guard) { d.begin(g, announce, "$EOF:"+end+"\r\n") }
	if err := d.srv.exporter.Copy(d.ctx, d, how); err != nil {
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
func (d *feed) copyByFile(how transfer.Copy, announce bool) error {
	file, err := os.CreateTemp(d.srv.spoolDir(), "follower-*.rdb")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	os.Remove(file.Name()) // already, where that is possible: nothing must be left if the process is killed
	how.At = func(g *engine.Guard) { d.begin(g, announce, "") }
	if err := d.srv.exporter.Copy(d.ctx, file, how); err != nil {
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
	d.state = replication.FollowerCopy // nothing more is sent to tell that we are there
	f.mu.Unlock()
	if _, err := fmt.Fprintf(d, "$%d\r\n", size); err != nil {
		return err
	}
	buf := make([]byte, feedWindow/4)
	_, err = io.CopyBuffer(onlyWriter{d}, onlyReader{file}, buf)
	return err
}

// about is what the copy tells beside the data: what follows it is in this database.
func (d *feed) about() []rdb.Aux {
	if d.db == replication.NoDatabase {
		return nil
	}
	return []rdb.Aux{{Name: "repl-stream-db", Value: strconv.Itoa(d.db)}}
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
	leads := !d.srv.group.following.Load()
	if !d.rdbOnly && !leads && !f.leaderMakes() {
		d.giveUp("the leader of the group makes no stream yet", nil)
	}
	streaming := !d.rdbOnly && d.ctx.Err() == nil
	if streaming && !f.history.Relayed && leads {
		f.restart(g) // for the new one's sake
	}
	if announce {
		head = fmt.Sprintf("+FULLRESYNC %s %d\r\n", f.history.ID, f.history.Offset) + head
	}
	if d.open {
		d.state = replication.FollowerCopy
	}
	d.db, d.streaming = f.changes.Database(), streaming
	d.queued.Add(int64(len(head)))
	d.s.post(0, []byte(head))
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
			d.state = replication.FollowerOnline
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

// unfollow ends that a session is a follower.
func (srv *Server) unfollow(s *Session) {
	f := &srv.followed
	d := s.follower.feed
	d.cancel()
	f.mu.Lock()
	f.list = slices.DeleteFunc(f.list, func(other *feed) bool { return other == d })
	d.pending = nil
	d.waiting.Store(0)
	f.alone = srv.ks.Now()
	f.mu.Unlock()
	srv.countFollowers()
}

// watch tells followers every second that the server is there: those that wait for a copy, by an empty line, and every
// pingPeriod seconds those that get the stream. Once there has been none for repl-backlog-ttl it ends the history. mu
// is locked.
func (f *followers) watch() {
	if f.timer == nil && !f.closed {
		f.timer = f.srv.ks.Clock().AfterFunc(time.Second, f.look)
	}
}

func (f *followers) look() {
	defer f.srv.countFollowers()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.timer = nil
	if f.closed {
		return
	}
	for _, d := range f.list {
		if d.state == replication.FollowerWaiting {
			d.queued.Add(1)
			d.s.post(0, []byte("\n"))
		}
	}
	set, now, master := f.srv.config.Get(), f.srv.ks.Now(), f.makes()
	f.ticks++
	switch ttl := int64(set.ReplBacklogTTL); {
	case len(f.list) > 0 && f.srv.group.following.Load():
		if f.ticks >= tellLeaderPeriod {
			f.ticks = 0
			f.tellLeader()
		}
	case len(f.list) == 0 && !master:
		return
	case f.unwanted(now):
		if ttl > 0 && (now-max(f.alone, f.wanted))/1000 >= ttl {
			f.mu.Unlock()
			f.srv.endHistory()
			f.mu.Lock()
			return
		}
	case f.ticks >= set.ReplPingReplicaPeriod && master && !f.srv.pause.running(now):
		f.ticks = 0
		f.insert(encodeWords("PING"))
	}
	f.watch()
}

// unwanted reports whether nobody follows, here or elsewhere in the group. mu is locked.
func (f *followers) unwanted(now int64) bool { return len(f.list) == 0 && now >= f.wanted }

// restart has the stream say in which database the next command is, and begins a history if there is none. The guard
// holds everything, and mu is locked.
func (f *followers) restart(g *engine.Guard) {
	if !f.history.Known {
		f.history.Begin(newRunID(), f.history.Offset)
	}
	f.changes.Restart()
	f.note()
	f.attach(g)
}

// endHistory has no stream made any more, for nobody wants it.
func (srv *Server) endHistory() {
	f := &srv.followed
	_ = srv.underAll(func(g *engine.Guard) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.unwanted(srv.ks.Now()) && f.makes() {
			f.history.End(newRunID())
			f.note()
			f.attach(g)
		}
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
		if d.state == replication.FollowerOnline && d.lag() <= int64(set.MinReplicasMaxLag) {
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

// leadLost ends what is made of what is done here. The guard holds everything.
func (f *followers) leadLost() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active.Store(false)
	f.cut()
}

// drop disconnects all: what they have is not what the data is going to be. What is stored is told of that when the
// data is.
func (f *followers) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut()
	f.history.End(newRunID())
}

// cut disconnects all, and ends a backup: they would miss something. mu is locked.
func (f *followers) cut() {
	if f.tail != nil {
		f.tail.Replaced()
	}
	f.disconnect()
}

// status returns what is told of all followers, and the offset at which the stream is.
func (f *followers) status() (list []replication.Follower, offset int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.list {
		st := replication.Follower{Port: d.s.follower.wishes.Port.Load(), State: d.state, Acked: d.acked.Load()}
		if said := d.s.follower.wishes.Host.Load(); said != nil && *said != "" {
			st.Host = *said
		} else {
			st.Host, _, _ = net.SplitHostPort(d.s.peer.Addr)
		}
		st.Lag = d.lag()
		list = append(list, st)
	}
	return list, f.history.Offset
}

// Followers implements replication.Host.
func (srv *Server) Followers() (list []replication.Follower, offset int64) {
	list, offset = srv.followed.status()
	others, index := srv.group.followers()
	return append(others, list...), max(offset, index)
}

// HasStream implements replication.Host.
func (srv *Server) HasStream() bool {
	if l := srv.replica.link(); l != nil {
		return l.status().State == replication.LinkConnected
	}
	f := &srv.followed
	f.mu.Lock()
	defer f.mu.Unlock()
	return !srv.group.following.Load() || f.leaderMakes()
}

// Following implements replication.Client.
func (s *Session) Following() bool { return s.follower.following.Load() }

// StartFollowing implements replication.Client.
func (s *Session) StartFollowing(announce bool) {
	f := &s.follower
	f.following.Store(true)
	f.feed = newFeed(s)
	s.srv.followed.copyTo(s.srv, f.feed, announce)
}

// GoOn implements replication.Client.
func (s *Session) GoOn(id string, offset int64) bool {
	d := newFeed(s)
	was := s.follower.feed
	s.follower.feed = d // which the goroutine that sends may need
	if !s.srv.followed.goOn(d, id, offset) {
		s.follower.feed = was
		s.srv.stats.noPartial.Add(1)
		return false
	}
	s.follower.following.Store(true)
	return true
}

// Wishes implements replication.Client.
func (s *Session) Wishes() *replication.Wishes { return &s.follower.wishes }

// Acknowledge implements replication.Client.
func (s *Session) Acknowledge(offset, synced int64) {
	if f := s.follower.feed; f != nil {
		f.acknowledge(offset, synced)
	}
}
