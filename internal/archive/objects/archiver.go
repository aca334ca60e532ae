package objects

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/archive"
	"github.com/atomredis/atomredis/internal/background"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
)

const (
	tick        = time.Second           // between two looks at the journal
	shortTick   = 10 * time.Millisecond // least time between them
	pieceSize   = 16 << 20              // bytes of records at which a piece is uploaded at once
	lookAgain   = time.Minute           // between two looks at the head, and at the end of the archive by a follower
	reachPace   = time.Minute           // between two updates of the reach
	settled     = 10 * time.Second      // after that time the records of a moment are in the journal: commands take less long
	silence     = 5 * time.Minute       // after that time without a change an archive is free for another server
	longestWait = 30 * time.Second
	roundTime   = 10 * time.Minute // for the requests of a round: one that hangs must not stop the archiver
	uploadTime  = 2 * time.Minute  // for a piece
	closeTime   = 5 * time.Second  // for the last upload
	idle        = time.Hour
)

func init() {
	archive.Register(archive.Implementation{New: func(o archive.Options) archive.Archiver { return newArchiver(o) }, Check: check})
}

// check is archive.Check.
func check(url string) error {
	s, err := Open(disk.System, url)
	if d, ok := s.(*dir); ok && !filepath.IsAbs(d.root) {
		return fmt.Errorf("archive %s: the path of a directory must be absolute", url)
	}
	return err
}

// archiver implements archive.Archiver. All its work is done by one goroutine, except for the upload of a base.
type archiver struct {
	o        archive.Options
	ctx      context.Context // ends the uploads
	cancel   context.CancelFunc
	baseCtx  context.Context // likewise, of bases
	endBases context.CancelFunc
	stop     chan struct{} // closed by Close
	bases    sync.WaitGroup
	wake     chan struct{}
	running  sync.WaitGroup

	// Owned by the goroutine.
	req      context.Context // of the requests of a round
	set      archive.Settings
	store    Store
	own      string // the chain that this server has written last
	failed   int    // attempts since the last success
	followed time.Time
	others   struct { // what another server has written
		state string
		since time.Time
	}

	mu      sync.Mutex // protects the following fields
	begun   bool
	closed  bool
	noBases bool
	c       *chain // that this server writes; nil if it does not; only the goroutine changes it and its fields
	status  archive.Status
	behind  time.Time // since when it is not known what is in the archive; zero if it is
	journal journal.Journal
}

// chain is a chain that this server writes. The fields are read by Status with archiver.mu held.
type chain struct {
	name     string
	volumes  []string // the last two
	known    bool     // at is known
	at       journal.Place
	reader   journal.Reader // nil if it must be opened
	buf      []byte         // records to upload
	next     piece          // about buf
	since    time.Time      // when buf began
	making   *making        // the base being made; nil if there is none
	baseTime int64          // of the last base, 0 if there is none
	announce bool           // head must be written
	looked   time.Time      // at head
	pruned   bool           // retention has been applied since the last base
	sample   struct {       // see settle
		at       time.Time
		appended uint64
	}
	reached time.Time // time of the last reach
}

func newArchiver(o archive.Options) *archiver {
	a := &archiver{o: o, stop: make(chan struct{}), wake: make(chan struct{}, 1)}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.baseCtx, a.endBases = context.WithCancel(a.ctx)
	a.begins(o.Settings().URL)
	return a
}

// begins publishes that the archiver begins with an archive.
func (a *archiver) begins(url string) {
	a.status, a.behind = archive.Status{State: archive.Off, LagBytes: -1}, time.Time{}
	if url != "" {
		a.status.State, a.behind = archive.Starting, a.now()
	}
}

// Start implements archive.Archiver.
func (a *archiver) Start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begun || a.closed {
		return
	}
	a.begun = true
	a.running.Go(a.run)
}

// Changed implements archive.Archiver.
func (a *archiver) Changed() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Stop implements archive.Archiver.
func (a *archiver) Stop() {
	a.mu.Lock()
	a.noBases = true
	a.mu.Unlock()
	a.endBases()
	a.bases.Wait()
}

// Close implements archive.Archiver.
func (a *archiver) Close() {
	a.mu.Lock()
	first := !a.closed
	a.closed = true
	a.mu.Unlock()
	if first {
		close(a.stop)
	}
	limit := time.AfterFunc(closeTime, a.cancel)
	a.running.Wait()
	limit.Stop()
	a.cancel()
}

func (a *archiver) run() {
	background.Work()
	for {
		wait := a.round()
		timer := a.o.Clock.AfterFunc(wait, a.Changed)
		select {
		case <-a.wake:
			timer.Stop()
		case <-a.stop:
			timer.Stop()
			a.last()
			return
		}
	}
}

// now is the present time of the server's clock.
func (a *archiver) now() time.Time { return a.o.Clock.Now() }

// round does what there is to do, and returns when to look again.
func (a *archiver) round() time.Duration {
	set := a.o.Settings()
	if set.URL != a.set.URL {
		a.leave()
		a.store, a.own, a.followed, a.failed = nil, "", time.Time{}, 0
		a.mu.Lock()
		a.begins(set.URL)
		a.mu.Unlock()
	}
	a.set = set
	j := a.o.Records()
	if set.URL == "" {
		return idle
	}
	if j == nil {
		return tick
	}
	a.mu.Lock()
	a.journal = j
	a.mu.Unlock()
	var cancel context.CancelFunc
	a.req, cancel = context.WithTimeout(a.ctx, roundTime)
	defer cancel()
	err := a.openStore()
	if err == nil {
		if a.o.Leads() {
			err = a.lead(j)
		} else {
			err = a.follow()
		}
	}
	return a.noted(err)
}

func (a *archiver) openStore() (err error) {
	if a.store == nil {
		a.store, err = Open(a.o.FS, a.set.URL)
	}
	return err
}

// noted records the result of a round, and returns when to look again.
func (a *archiver) noted(err error) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.LastError = err
	if err == nil {
		if a.failed > 0 {
			a.o.Log.Info("the archive can be written again", "archive", a.store.String())
		}
		switch c := a.c; {
		case a.status.State != archive.Failing:
		case c == nil:
			a.status.State = archive.Starting
		case c.baseTime == 0:
			a.status.State = archive.Base
		default:
			a.status.State = archive.Running
		}
		if a.c != nil && a.c.baseTime != 0 {
			a.behind = time.Time{}
		}
		a.failed = 0
		return min(tick, max(a.set.Interval, shortTick))
	}
	if a.failed == 0 {
		a.o.Log.Warn("the archive cannot be written", "error", err.Error())
		if a.behind.IsZero() {
			a.behind = a.now()
		}
	}
	a.failed++
	a.status.Failures++
	a.status.State = archive.Failing
	return min(tick<<min(a.failed, 6), longestWait)
}

// state publishes what the archiver is doing.
func (a *archiver) state(s archive.State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.State = s
}

// leave stops writing the present chain.
func (a *archiver) leave() {
	c := a.c
	if c == nil {
		return
	}
	if c.making != nil {
		c.making.cancel(errLeft)
		<-c.making.done
	}
	if c.reader != nil {
		c.reader.Close()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.c, a.followed = nil, time.Time{}
	a.behind = a.now()
}

var errLeft = errors.New("the archive is left to another server")

// follow finds out what the leader has archived: this server keeps the rest of the journal, because it may lead next.
func (a *archiver) follow() error {
	a.leave()
	if a.now().Sub(a.followed) < lookAgain {
		return nil
	}
	a.state(archive.Following)
	var h head
	ok, err := getJSON(a.req, a.store, headName, &h)
	if err != nil {
		return err
	}
	if ok {
		t, err := tailOf(a.req, a.store, h)
		if err != nil {
			return err
		}
		a.upTo(&t)
	}
	a.followed = a.now()
	a.mu.Lock()
	a.behind = time.Time{}
	a.mu.Unlock()
	return nil
}

// upTo publishes the end of the archive.
func (a *archiver) upTo(t *tail) {
	a.mu.Lock()
	a.status.Position, a.status.Time, a.status.BaseTime = t.at, time.UnixMilli(t.through), time.UnixMilli(t.last.time)
	a.mu.Unlock()
	a.o.Keep(t.at.LSN)
}

// lead writes to the archive.
func (a *archiver) lead(j journal.Journal) error {
	if a.c == nil {
		if err := a.attach(j); err != nil || a.c == nil {
			return err
		}
	}
	c := a.c
	if err := a.confirm(c); err != nil || a.c == nil {
		return err
	}
	err := a.advanceBase(c, j)
	if err == nil && c.known {
		err = a.advance(c, j, false)
	}
	if errors.Is(err, journal.ErrReleased) || errors.Is(err, journal.ErrForeign) {
		a.o.Log.Warn("the journal does not continue what is in the archive; a new base follows", "position", c.at.String(), "reason",
			err.Error())
		a.leave()
		a.mu.Lock()
		a.status.Gaps++
		a.mu.Unlock()
		a.beginChain(j)
		return nil
	}
	if errors.Is(err, errLeft) {
		return nil // the next round follows
	}
	return err
}

// attach finds the chain to continue, or begins one. It does neither while another server writes.
func (a *archiver) attach(j journal.Journal) error {
	var h head
	ok, err := getJSON(a.req, a.store, headName, &h)
	if err != nil {
		return err
	}
	if !ok {
		a.beginChain(j)
		return nil
	}
	t, err := tailOf(a.req, a.store, h)
	if err == errNoBase {
		a.beginChain(j)
		return nil
	}
	if err != nil {
		return err
	}
	r, err := j.Follow(t.at)
	switch {
	case err == nil:
		a.o.Log.Info("the archive is continued", "archive", a.store.String(), "chain", h.Chain, "position", t.at.String())
		a.upTo(&t)
		a.begin(&chain{name: h.Chain, volumes: t.volumes, known: true, at: t.at, reader: r, baseTime: t.last.time,
			looked: a.now(), reached: time.UnixMilli(t.through)})
		return nil
	case !errors.Is(err, journal.ErrReleased) && !errors.Is(err, journal.ErrForeign):
		return err
	case h.Chain != a.own && !a.silent(fmt.Sprint(h, t)):
		a.state(archive.Waiting)
		return nil
	}
	a.o.Log.Warn("the journal does not continue what is in the archive; a new base follows", "position", t.at.String(), "reason",
		err.Error())
	a.mu.Lock()
	a.status.Gaps++
	a.mu.Unlock()
	a.beginChain(j)
	return nil
}

// silent reports whether the state of the archive has been the same for long.
func (a *archiver) silent(state string) bool {
	if a.others.state != state {
		a.others.state, a.others.since = state, a.now()
		a.o.Log.Warn("another server has written to the archive; this one begins when the archive has not changed for a while",
			"archive", a.store.String(), "wait", silence)
	}
	return a.now().Sub(a.others.since) >= silence
}

// begin begins to write a chain.
func (a *archiver) begin(c *chain) {
	a.own = c.name
	a.mu.Lock()
	defer a.mu.Unlock()
	a.c = c
	if c.known {
		a.behind, a.status.State = time.Time{}, archive.Running
	} else {
		a.status.State = archive.Base
	}
}

// beginChain begins a new chain with a base.
func (a *archiver) beginChain(j journal.Journal) {
	var id [4]byte
	rand.Read(id[:])
	now := a.now()
	a.begin(&chain{name: now.UTC().Format(chainTime) + "-" + hex.EncodeToString(id[:]), looked: now})
	a.c.making = a.makeBase(a.c.name, j)
}

// confirm looks now and then whether the archive still names the chain.
func (a *archiver) confirm(c *chain) error {
	if c.baseTime == 0 || c.announce || a.now().Sub(c.looked) < lookAgain {
		return nil
	}
	var h head
	ok, err := getJSON(a.req, a.store, headName, &h)
	if err != nil {
		return err
	}
	c.looked = a.now()
	if !ok {
		c.announce = true
	} else if h.Chain != c.name {
		a.o.Log.Error("another server writes to the archive, and this one does not any more", "archive", a.store.String(), "chain", h.Chain)
		a.leave()
		a.own = ""
		a.others.state = ""
	}
	return nil
}

// advance uploads records. all is set when the server ends: then nothing waits for more.
func (a *archiver) advance(c *chain, j journal.Journal, all bool) error {
	for {
		now := a.now()
		if c.reader == nil {
			r, err := j.Follow(c.at)
			if err != nil {
				return err
			}
			c.reader = r
		}
		appended := j.Appended()
		if a.o.Lazy() && j.Durable() < appended {
			_ = j.Sync(a.req) // a failed journal has nothing more to read
		}
		ended, err := a.fill(c)
		if len(c.buf) > 0 && (err != nil || all || len(c.buf) >= pieceSize || now.Sub(c.since) >= a.set.Interval) {
			if err := a.upload(c); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		if ended {
			return a.settle(c, j, now, appended)
		}
		if a.req.Err() != nil {
			return a.req.Err()
		}
	}
}

// fill reads records until there are enough for a piece; ended reports that there are no more.
func (a *archiver) fill(c *chain) (ended bool, err error) {
	a.mu.Lock()
	buf, next := c.buf, c.next
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		c.buf, c.next = buf, next
	}()
	var pause background.Pacer
	for len(buf) < pieceSize {
		pause.Pause()
		e, ok, err := c.reader.Next()
		if err != nil {
			c.reader.Close()
			c.reader = nil
			return false, err
		}
		if !ok {
			return true, nil
		}
		if len(buf) == 0 {
			next = piece{from: c.at, first: e.Now, through: e.Now}
			c.since = a.now()
		}
		buf = appendRecord(buf, &e)
		next.to, next.through = e.After, max(next.through, e.Now)
	}
	return false, nil
}

// upload uploads the records that are read.
func (a *archiver) upload(c *chain) error {
	if !a.o.Leads() {
		return errLeft // the next leader uploads them
	}
	var out bytes.Buffer
	w, err := newBlockWriter(&out, header{Kind: "log", Server: version.Number, Group: a.o.Group()})
	if err == nil {
		_, err = w.Write(c.buf)
	}
	if err == nil {
		err = w.end()
	}
	if err == nil {
		name := pieceName(c.name, c.volumes[len(c.volumes)-1], &c.next)
		ctx, cancel := context.WithTimeout(a.req, uploadTime)
		err = a.store.Put(ctx, name, bytes.NewReader(out.Bytes()), int64(out.Len()))
		cancel()
	}
	if err != nil {
		return err
	}
	a.mu.Lock()
	c.at = c.next.to
	a.status.Position, a.status.Time = c.at, time.UnixMilli(c.next.through)
	a.status.Pieces++
	a.status.Bytes += int64(out.Len())
	if c.buf = c.buf[:0]; cap(c.buf) > 2*pieceSize {
		c.buf = nil
	}
	a.mu.Unlock()
	a.o.Keep(c.at.LSN)
	return nil
}

// settle finds out up to which time the archive is complete although nothing happens, and notes it now and then. Everything
// durable has been read, and at the time now the journal ended at appended.
func (a *archiver) settle(c *chain, j journal.Journal, now time.Time, appended uint64) error {
	s := &c.sample
	if s.at.IsZero() || len(c.buf) > 0 {
		s.at, s.appended = now, appended
		return nil
	}
	if now.Sub(s.at) < settled || j.Durable() < s.appended {
		return nil
	}
	complete := s.at
	s.at, s.appended = now, appended
	a.mu.Lock()
	if complete.After(a.status.Time) {
		a.status.Time = complete
	}
	a.mu.Unlock()
	if complete.Sub(c.reached) < reachPace || c.baseTime == 0 || !a.o.Leads() {
		return nil
	}
	return a.note(c, complete)
}

// note writes the reach of a chain.
func (a *archiver) note(c *chain, complete time.Time) error {
	err := putJSON(a.req, a.store, c.name+"/"+reachName, reach{c.at.String(), stamp(complete.UnixMilli())})
	if err == nil {
		c.reached = complete
	}
	return err
}

// last uploads what is left when the server ends.
func (a *archiver) last() {
	c, j := a.c, a.journal
	if c == nil {
		return
	}
	var err error
	a.req = a.ctx
	if m := c.making; m != nil && j != nil {
		<-m.done // Stop has ended it
		err = a.advanceBase(c, j)
	}
	if err == nil && c.baseTime != 0 && a.o.Leads() && j != nil {
		if err = j.Sync(a.req); err == nil {
			err = a.advance(c, j, true)
		}
		if err == nil && !a.o.Group() && j.Durable() == j.Appended() { // nothing can happen any more
			err = a.note(c, a.now())
		}
	}
	if err != nil {
		a.o.Log.Warn("the end of the journal is not in the archive; the next start continues", "error", err.Error())
	}
	a.leave()
}

// Status implements archive.Archiver.
func (a *archiver) Status() archive.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.status
	since := a.behind
	if c := a.c; c != nil {
		if len(c.buf) > 0 {
			since = time.UnixMilli(c.next.first)
		}
		if c.known {
			s.LagBytes = a.unread(c)
		}
	}
	if s.State == archive.Following && s.LastError == nil {
		s.LagBytes = 0
	}
	if s.LagBytes != 0 && !since.IsZero() {
		s.Lag = max(a.o.Clock.Now().Sub(since), 0)
	}
	return s
}

// unread returns archive.Status.LagBytes.
func (a *archiver) unread(c *chain) int64 {
	end := a.journal.Durable()
	if a.o.Group() {
		place, err := a.journal.End()
		if err != nil {
			return -1
		}
		end = place.LSN
	}
	return int64(max(end, c.at.LSN) - c.at.LSN)
}
