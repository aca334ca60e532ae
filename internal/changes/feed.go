package changes

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/background"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/resp"
)

// Options are what a feed needs of its server.
type Options struct {
	Records func() journal.Journal // returns the journal; nil while there is no journal to read
	Table   *command.Table
	FS      disk.FS
	Dir     func() string // the data directory
	Write   Writer
	// Lazy reports whether nobody syncs the journal for long (appendfsync no). Then readers do.
	Lazy func() bool
}

// Feed reads the changes of a server. Any goroutine may call its methods.
type Feed struct {
	o Options

	ctx     context.Context // ends with the server
	cancel  context.CancelFunc
	running sync.WaitGroup

	waiting atomic.Int64
	reads   atomic.Int64
	sent    atomic.Int64

	jobs chan func() // for the workers, which read files

	mu   sync.Mutex
	more chan struct{} // closed when more may be durable
	done bool
	busy int // workers that exist

	snapshots snapshots
}

// New returns the feed of a server.
func New(o Options) *Feed {
	f := &Feed{o: o, more: make(chan struct{}), jobs: make(chan func())}
	rand.Read(f.snapshots.key[:])
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

func (f *Feed) records() journal.Journal { return f.o.Records() }

// Close ends all reads, and waits for them.
func (f *Feed) Close() {
	f.mu.Lock()
	f.done = true
	f.mu.Unlock()
	f.cancel()
	f.running.Wait()
	f.snapshots.mu.Lock()
	s := f.snapshots.last
	f.snapshots.mu.Unlock()
	if s != nil {
		f.drop(s)
	}
}

// Woken is called when more of the journal may have become durable.
func (f *Feed) Woken() {
	if f.waiting.Load() == 0 {
		return
	}
	f.mu.Lock()
	close(f.more)
	f.more = make(chan struct{})
	f.mu.Unlock()
}

// next returns a channel that is closed when more of the journal becomes durable after this call.
func (f *Feed) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.more
}

// Begin returns the context of a read. It ends with the server, or by cancel.
func (f *Feed) Begin() (ctx context.Context, cancel context.CancelFunc) {
	return context.WithCancel(f.ctx)
}

// Go runs a read in the background. It does nothing in a server that ends.
func (f *Feed) Go(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.done {
		f.running.Go(fn)
	}
}

const (
	// maxWorkers is how many reads of files are under way at a time.
	maxWorkers = 4
	// turn is how long a worker reads for one reader while others may wait for it.
	turn = 10 * time.Millisecond
	// wakePause is how often a reader looks that gets nothing of what is written.
	wakePause = 5 * time.Millisecond
)

// work executes fn in a worker, and reports false if the server ends. A reader that waits for changes has no thread: only the
// workers have one, of low priority, so that clients do not wait for readers that catch up.
func (f *Feed) work(fn func()) bool {
	done := make(chan struct{})
	job := func() {
		defer close(done)
		fn()
	}
	f.mu.Lock()
	if f.busy < maxWorkers && !f.done {
		select {
		case f.jobs <- job: // to an idle one
			f.mu.Unlock()
			<-done
			return true
		default:
		}
		f.busy++
		f.running.Go(f.worker)
	}
	f.mu.Unlock()
	select {
	case f.jobs <- job:
		<-done
		return true
	case <-f.ctx.Done():
		return false
	}
}

// worker executes jobs until the server ends.
func (f *Feed) worker() {
	background.Work()
	for {
		select {
		case job := <-f.jobs:
			job()
		case <-f.ctx.Done():
			return
		}
	}
}

// Errors of Read and Places.
var (
	ErrNoJournal = errors.New("ERR the server has no journal: changes are read from a server with a data directory and appendonly yes")
	ErrForeign   = errors.New("CHANGESGONE the position belongs to another history: begin with FROM 0")
)

// Places returns the oldest position that can be read from, and the present end.
func (f *Feed) Places() (oldest, end journal.Place, err error) {
	j := f.records()
	if j == nil {
		return oldest, end, ErrNoJournal
	}
	oldest, end, err = j.Places()
	return oldest, end, f.explained(err)
}

// Here returns the present end. It does no I/O, and may be called under a guard.
func (f *Feed) Here() (journal.Place, error) {
	j := f.records()
	if j == nil {
		return journal.Place{}, ErrNoJournal
	}
	end, err := j.End()
	return end, f.explained(err)
}

// explained returns the error for a client.
func (f *Feed) explained(err error) error {
	switch {
	case err == nil || errors.Is(err, ErrNoJournal):
		return err
	case errors.Is(err, ErrNoRoom):
		return ErrNoRoom
	case errors.Is(err, journal.ErrForeign):
		return ErrForeign
	case errors.Is(err, journal.ErrReleased):
		text := "CHANGESGONE the changes after the position are not kept any more: begin with FROM 0"
		if j := f.records(); j != nil {
			if oldest, _, err := j.Places(); err == nil {
				text = "CHANGESGONE the oldest position kept is " + oldest.String() + ": begin with FROM 0"
			}
		}
		return errors.New(text)
	}
	return errors.New("ERR the journal cannot be read: " + command.OneLine(err.Error()))
}

// Query describes a read.
type Query struct {
	// From is where it begins. After that, From is the position up to which all changes were left out.
	From *atomic.Pointer[Position]
	// Count and Bytes end it: so many changes, or so many bytes of reply. There is at least one change.
	Count, Bytes int
	// Wait makes it wait for the first change.
	Wait   bool
	Filter Filter
}

// Page is the result of a read.
type Page struct {
	Next    Position // where to read on
	Changes int
	Encoded []byte // the changes as elements of a reply: each is an array of position, time in ms, and an array of commands
	// Rights is what Filter.Rights returned before the first change was read.
	Rights any
}

// lazySync is how often a waiting reader syncs a journal that nobody else syncs.
const lazySync = time.Second

// Read reads changes. It returns an empty page if there are none, and after ctx has ended.
func (f *Feed) Read(ctx context.Context, q *Query) (p Page, err error) {
	f.reads.Add(1)
	p.Next = *q.From.Load()
	if p.Next.Start {
		at, ok, err := f.begin(ctx)
		if !ok {
			return p, err
		}
		q.From.Store(&at)
		p.Next = at
	}
	for p.Next.Snapshot != "" {
		at := p.Next
		if !f.work(func() { p, err = f.readSnapshot(ctx, at, q) }) || err != nil || p.Changes > 0 || ctx.Err() != nil {
			return p, err
		}
	}
	return f.readJournal(ctx, p.Next, q)
}

// readJournal is Read from a position in the journal on.
func (f *Feed) readJournal(ctx context.Context, at Position, q *Query) (p Page, err error) {
	p.Next = at
	j := f.records()
	if j == nil {
		return p, ErrNoJournal
	}
	f.waiting.Add(1)
	defer f.waiting.Add(-1)
	b := batch{f: f, q: q, d: decoder{table: f.o.Table, filter: &q.Filter}, p: p}
	defer b.close()
	synced := false
	for looks := 0; ctx.Err() == nil && !b.full(); {
		more := f.next()
		if !f.work(func() { b.read(ctx, j) }) {
			break
		}
		looked := time.Now()
		switch {
		case b.err != nil && b.p.Changes > 0: // the next read will tell
			return b.page(), nil
		case b.err != nil:
			return b.p, f.explained(b.err)
		case !b.atEnd:
			continue // it was another reader's turn
		case !synced && f.o.Lazy() && j.Durable() < j.Appended():
			synced = true
			_ = j.Sync(ctx) // a failed journal has nothing more to read
			continue
		case b.p.Changes > 0 || !q.Wait:
			return b.page(), nil
		}
		var again <-chan time.Time
		if synced = false; f.o.Lazy() {
			again = time.After(lazySync)
		}
		select {
		case <-more:
		case <-again:
		case <-ctx.Done():
		}
		if looks++; looks > 1 {
			select {
			case <-time.After(wakePause - time.Since(looked)):
			case <-ctx.Done():
			}
		}
	}
	return b.page(), nil
}

// batch reads a page of the journal, in one or more turns of the workers.
type batch struct {
	f     *Feed
	q     *Query
	d     decoder
	r     journal.Reader // nil before the first turn
	w     resp.Writer
	p     Page
	err   error
	atEnd bool // the last turn has read all that is durable
}

// full reports whether the page is complete.
func (b *batch) full() bool { return b.p.Changes >= b.q.Count || b.w.Len() >= b.q.Bytes }

func (b *batch) close() {
	if b.r != nil {
		b.r.Close()
	}
}

// page returns the page, which ends the batch.
func (b *batch) page() Page {
	b.p.Encoded = b.w.Buf
	b.f.sent.Add(int64(b.p.Changes))
	return b.p
}

// read reads for a turn.
func (b *batch) read(ctx context.Context, j journal.Journal) {
	b.atEnd = false
	if b.r == nil {
		if b.r, b.err = j.Follow(b.p.Next.Place); b.err != nil {
			b.r = nil
			return
		}
	}
	if b.p.Changes == 0 {
		b.p.Rights = b.q.Filter.Rights()
	}
	var pause background.Pacer
	for until := time.Now().Add(turn); ctx.Err() == nil && !b.full() && time.Now().Before(until); {
		e, ok, err := b.r.Next()
		if b.err = err; err != nil || !ok {
			b.atEnd = true
			return
		}
		pause.Pause()
		if b.d.encode(&b.w, &e) {
			b.p.Changes++
		}
		b.p.Next.Place = e.After
		if b.p.Changes == 0 {
			at := b.p.Next
			b.q.From.Store(&at)
		}
	}
}

// Stats are the counters of a feed.
type Stats struct {
	Active      int64 // reads under way, waiting ones included
	Reads, Sent int64 // reads and changes since the start
}

// Retained returns the length in bytes of what the journal keeps only for readers.
func (f *Feed) Retained() int64 {
	if j := f.records(); j != nil {
		return j.Retained()
	}
	return 0
}

// Stats returns the feed's counters.
func (f *Feed) Stats() Stats { return Stats{f.waiting.Load(), f.reads.Load(), f.sent.Load()} }
