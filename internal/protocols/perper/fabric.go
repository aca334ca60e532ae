package perper

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/due"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
	"github.com/atomredis/atomredis/resp"
)

// Fabric is a server's state of executions and listeners outside of keys: indexes of the two caches, which are built
// again when they do not match the keys, reservations of executions, and waiting clients.
type Fabric struct {
	host command.Host
	due  due.Schedule // deadlines of entries; an ID is a cache's key of deadlines
	left due.Schedule // when something may be collected; an ID is a key with the suffix keys.Left

	search      atomic.Pointer[search] // a search for references that is under way, or nil
	beforePiece func(cache string)     // nil except in tests

	// mu protects the fields below and what they refer to. It is taken last, and no reply is given under it.
	mu  sync.Mutex
	dbs map[int]*fabricDB

	answers    []answer // replies that the answering goroutine has still to give
	answering  bool     // that goroutine runs
	dirty      []streamID
	cleaning   bool // a goroutine cleans the streams in dirty
	accesses   []access
	accessing  bool // a goroutine runs noteAccesses
	closed     bool
	background sync.WaitGroup
}

// fabricDB is the state of a database.
type fabricDB struct {
	executions executionIndex
	listeners  listenerIndex
	groups     map[string]*group
	ends       map[string]*list.List // of *waiter: waiting for the end of an execution
	attached   map[string]*list.List // of *waiter: waiting for a listener of a stream
}

// streamID is a stream of a database.
type streamID struct {
	db     int
	stream string
}

var fabricID = command.RegisterService(func() command.Service { return &Fabric{dbs: map[int]*fabricDB{}} })

// fabricOf returns the service of a server.
func fabricOf(h command.Host) *Fabric { return h.Service(fabricID).(*Fabric) }

// Start implements command.Service.
func (f *Fabric) Start(h command.Host) {
	f.host = h
	f.due.Start(h, f.expireDue, storedExpiry)
	f.left.Start(h, f.collectLeft, storedLeft)
}

// Loaded implements command.Service. The indexes are built when they are needed.
func (f *Fabric) Loaded() {
	f.due.FindStored()
	f.left.FindStored()
}

// KeysArrived implements command.Arriver: entries may expire here now.
func (f *Fabric) KeysArrived() {
	f.due.FindArrived()
	f.left.FindArrived()
}

// Close implements command.Service.
func (f *Fabric) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.due.Close()
	f.left.Close()
	f.background.Wait()
}

// Events implements command.Service.
func (f *Fabric) Events() engine.EventClass { return 0 }

// Heard implements command.Service.
func (f *Fabric) Heard(command.Client, bool, string, int, string) {}

// session is the service's state of a client.
type session struct {
	// Fabric.mu protects the fields below.
	locks map[*lock]struct{}
	wait  *waiter // the present or last waiter

	busy atomic.Bool // the client has locks or a waiter
}

// NewClient implements command.Service.
func (f *Fabric) NewClient() any { return new(session) }

// sessionOf returns the service's state of a client.
func sessionOf(c command.Client) *session { return c.State(fabricID).(*session) }

// Following implements command.Service.
func (*Fabric) Following() {}

// MustSee implements command.Service.
func (f *Fabric) MustSee(c command.Client) bool { return sessionOf(c).busy.Load() }

// Gone implements command.Service: it releases the locks of the client.
func (f *Fabric) Gone(c command.Client) {
	s := sessionOf(c)
	if !s.busy.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.stopWaiting()
	for l := range s.locks {
		f.unlock(l)
	}
}

// db returns the state of a database. mu must be locked.
func (f *Fabric) db(n int) *fabricDB {
	d := f.dbs[n]
	if d == nil {
		d = &fabricDB{groups: map[string]*group{}, ends: map[string]*list.List{}, attached: map[string]*list.List{}}
		f.dbs[n] = d
	}
	return d
}

// waiter is a waiting client.
type waiter struct {
	session *session
	finish  func(command.Reply)
	leave   func() // removes it from its queue; nil if it does not wait any more
	// if it waits in a pool: the database and filter of executions that it takes
	db     *fabricDB
	filter *filter
}

// await suspends the client until its waiter is answered. It calls try once more, and if that fails, join, which
// adds the waiter to a queue; both with mu locked. try answers the waiter if it succeeds.
func (f *Fabric) await(c *command.Ctx, timeout int64, try func(w *waiter) bool, join func(w *waiter) (leave func())) {
	s := sessionOf(c.Client)
	w := &waiter{session: s}
	w.finish = c.Await(timeout, func(out *resp.Writer) {
		out.Null()
		f.mu.Lock()
		defer f.mu.Unlock()
		w.stop()
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	s.stopWaiting()
	if !try(w) {
		w.leave = join(w)
		s.wait = w
		s.busy.Store(true)
	}
}

// stopWaiting removes the client's last waiter: a client that executes a command does not wait any more.
func (s *session) stopWaiting() {
	if s.wait != nil {
		s.wait.stop()
		s.wait = nil
		s.settle()
	}
}

// settle updates busy.
func (s *session) settle() { s.busy.Store(s.wait != nil || len(s.locks) > 0) }

// stop removes the waiter from its queue.
func (w *waiter) stop() {
	if w.leave != nil {
		w.leave()
		w.leave = nil
	}
}

// joinList appends a waiter to the list for a name, and returns the function that removes it.
func joinList(lists map[string]*list.List, name string, w *waiter) (leave func()) {
	l := lists[name]
	if l == nil {
		l = list.New()
		lists[name] = l
	}
	e := l.PushBack(w)
	return func() {
		l.Remove(e)
		if l.Len() == 0 && lists[name] == l {
			delete(lists, name)
		}
	}
}

// answer is the reply of a waiter.
type answer struct {
	waiter *waiter
	reply  command.Reply
	lock   *lock // the lock that the waiter gets with it, or nil
}

// answer gives a waiter its reply. mu must be locked.
func (f *Fabric) answer(a answer) {
	a.waiter.stop()
	if s := a.waiter.session; s.wait == a.waiter {
		s.wait = nil
		s.settle()
	}
	f.answers = append(f.answers, a)
	if !f.answering && !f.closed {
		f.answering = true
		f.background.Go(f.giveAnswers)
	}
}

// answerAll gives all waiters of a list the same reply. mu must be locked.
func (f *Fabric) answerAll(l *list.List, reply command.Reply) {
	for l != nil && l.Len() > 0 {
		f.answer(answer{waiter: l.Front().Value.(*waiter), reply: reply})
	}
}

// giveAnswers gives the pending replies. A waiter that has disconnected loses its lock.
func (f *Fabric) giveAnswers() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.answers) > 0 {
		all := f.answers
		f.answers = nil
		for _, a := range all {
			given := false
			f.mu.Unlock()
			a.waiter.finish(func(w *resp.Writer) {
				a.reply(w)
				given = true
			})
			f.mu.Lock()
			if a.lock != nil && a.lock.pending == a.waiter {
				if a.lock.pending = nil; !given {
					f.unlock(a.lock)
				}
			}
		}
	}
	f.answering = false
}

// yesReply is a reply of 1.
func yesReply(w *resp.Writer) { w.Int(1) }

// noReply is a reply of 0.
func noReply(w *resp.Writer) { w.Int(0) }

// The caches that the Fabric uses.
var (
	executionsCache = []byte(keys.Executions)
	listenersCache  = []byte(keys.StreamListeners)
	executionsKey   = []byte(keys.Of(keys.Executions, ""))
	listenersKey    = []byte(keys.Of(keys.StreamListeners, ""))
)

// isFabric reports whether the cache is one of the two that the Fabric uses.
func isFabric(cache []byte) bool {
	return string(cache) == keys.Executions || string(cache) == keys.StreamListeners
}

// seen says whether an index matches a key, which other commands may change too.
type seen struct {
	watch   *engine.Watch // nil without an index
	version uint64
}

// note records that the index matches the key. The guard must hold it.
func (s *seen) note(c *command.Ctx, key []byte) {
	w, version := c.G.Watch(c.DB, key)
	if s.watch != nil {
		c.G.Unwatch(w) // keeps the first watch
	}
	s.watch, s.version = w, version
}

// current reports whether the key is unchanged since the last call of note. The guard must hold it.
func (s *seen) current(c *command.Ctx) bool {
	return s.watch != nil && !c.G.Touched(s.watch, s.version)
}

// changing must be called before a change of a cache that isFabric, under the guard of the change: the index first
// catches up with changes of other commands.
func (f *Fabric) changing(c *command.Ctx, cache []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if string(cache) == keys.Executions {
		f.executions(c)
	} else {
		f.listeners(c)
	}
}

// changed handles a change of a cache that isFabric, after it was made and under its guard: value is the new value
// of a key, and old its old one.
func (f *Fabric) changed(c *command.Ctx, cache, k, value, old []byte) {
	if string(cache) == keys.Executions {
		f.executionChanged(c, k, value, old)
	} else {
		f.listenerChanged(c, k, value, old)
	}
}

// timeoutOption reads the option TIMEOUT, if it is given. If it is wrong, it writes an error and ok is false.
func timeoutOption(c *command.Ctx, from int) (ms int64, ok bool) {
	for o := c.Options(from); o.Next(); {
		if !o.Is("timeout") || !o.More() {
			c.Err(command.ErrSyntax)
			return 0, false
		}
		if ms, ok = c.IntTimeout(o.Arg()); !ok {
			return 0, false
		}
	}
	return ms, true
}
