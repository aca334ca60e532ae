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

// Fabric is what a server knows of executions and listeners that is in no key: indexes of the two caches, which follow
// from them and are made again when they do not fit; who has reserved which executions; and who waits for what.
type Fabric struct {
	host command.Host
	due  due.Schedule // of the caches whose entries expire, by the keys of their deadlines

	// mu protects what follows, and what belongs to it. It is taken last, and no reply is given under it.
	mu  sync.Mutex
	dbs map[int]*fabricDB

	answers    []answer // that the goroutine which gives them has still to give
	answering  bool     // there is that goroutine
	dirty      []streamID
	cleaning   bool // there is a goroutine that cleans the streams in dirty
	accesses   []access
	accessing  bool // there is a goroutine that notes what is in accesses
	closed     bool
	background sync.WaitGroup
}

// fabricDB is what is known of a database.
type fabricDB struct {
	executions executionIndex
	listeners  listenerIndex
	groups     map[string]*group
	ends       map[string]*list.List // of *waiter: those for the end of an execution
	attached   map[string]*list.List // of *waiter: those for a listener of a stream
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
}

// Loaded implements command.Service. The indexes are made when they are needed.
func (f *Fabric) Loaded() { f.due.FindStored() }

// Close implements command.Service.
func (f *Fabric) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.due.Close()
	f.background.Wait()
}

// Events implements command.Service.
func (f *Fabric) Events() engine.EventClass { return 0 }

// Heard implements command.Service.
func (f *Fabric) Heard(command.Client, bool, string, int, string) {}

// session is what the service keeps with a client.
type session struct {
	// Fabric.mu protects what follows.
	locks map[*lock]struct{}
	wait  *waiter // what it waits for, or has waited for last

	busy atomic.Bool // it has locks or a waiter
}

// NewClient implements command.Service.
func (f *Fabric) NewClient() any { return new(session) }

// sessionOf returns what is kept with a client.
func sessionOf(c command.Client) *session { return c.State(fabricID).(*session) }

// Following implements command.Service.
func (*Fabric) Following() {}

// MustSee implements command.Service.
func (f *Fabric) MustSee(c command.Client) bool { return sessionOf(c).busy.Load() }

// Gone implements command.Service: the locks of the client are others' now.
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

// db returns what is known of a database. mu must be locked.
func (f *Fabric) db(n int) *fabricDB {
	d := f.dbs[n]
	if d == nil {
		d = &fabricDB{groups: map[string]*group{}, ends: map[string]*list.List{}, attached: map[string]*list.List{}}
		f.dbs[n] = d
	}
	return d
}

// waiter is a client that waits.
type waiter struct {
	session *session
	finish  func(command.Reply)
	leave   func() // takes it out of where it waits; nil if it does not any more
	// of what it takes, if it waits in a pool
	db     *fabricDB
	filter *filter
}

// await suspends the client until a waiter is answered. try is called once more, and if it fails join, which puts the
// waiter where it waits; both with mu locked. try answers the waiter that it is given.
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

// stopWaiting ends what the client has waited for before: who executes a command has been answered, or given up.
func (s *session) stopWaiting() {
	if s.wait != nil {
		s.wait.stop()
		s.wait = nil
		s.settle()
	}
}

// settle notes whether the session has anything.
func (s *session) settle() { s.busy.Store(s.wait != nil || len(s.locks) > 0) }

// stop takes the waiter out of where it waits.
func (w *waiter) stop() {
	if w.leave != nil {
		w.leave()
		w.leave = nil
	}
}

// joinList puts a waiter at the end of the list that a map has for a name, and returns how it leaves.
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
	lock   *lock // that the waiter has got with it; nil if none
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

// giveAnswers gives the replies that there are. A waiter that has gone does not keep its lock.
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

// The caches that mean something here.
var (
	executionsCache = []byte(keys.Executions)
	listenersCache  = []byte(keys.StreamListeners)
	executionsKey   = []byte(keys.Of(keys.Executions, ""))
	listenersKey    = []byte(keys.Of(keys.StreamListeners, ""))
)

// isFabric reports whether the cache is one of the two whose changes mean something.
func isFabric(cache []byte) bool {
	return string(cache) == keys.Executions || string(cache) == keys.StreamListeners
}

// seen says up to which change of a key an index has it all. Others than the commands here may change the key too.
type seen struct {
	watch   *engine.Watch // nil if the index has nothing
	version uint64
}

// note says that the index has all that is under the key. The guard must hold it.
func (s *seen) note(c *command.Ctx, key []byte) {
	w, version := c.G.Watch(c.DB, key)
	if s.watch != nil {
		c.G.Unwatch(w) // the first one is kept
	}
	s.watch, s.version = w, version
}

// current reports whether the key is as it was when note was called last. The guard must hold it.
func (s *seen) current(c *command.Ctx) bool {
	return s.watch != nil && !c.G.Touched(s.watch, s.version)
}

// changing must be called before a cache that isFabric is changed, under the guard of the change: what others have
// done to it is seen first.
func (f *Fabric) changing(c *command.Ctx, cache []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if string(cache) == keys.Executions {
		f.executions(c)
	} else {
		f.listeners(c)
	}
}

// changed hears of a change of a cache that isFabric, after it was made and under its guard: value is the new value
// of a key, and old the one before.
func (f *Fabric) changed(c *command.Ctx, cache, k, value, old []byte) {
	if string(cache) == keys.Executions {
		f.executionChanged(c, k, value, old)
	} else {
		f.listenerChanged(c, k, value, old)
	}
}

// timeoutOption reads what stands behind TIMEOUT, if anything does. If it is wrong an error is written and ok is false.
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
