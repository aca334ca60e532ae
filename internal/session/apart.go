package session

import (
	"bytes"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/background"
	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// Commands that take long run apart, so that nobody else waits for them: see package command. The session waits as it
// does for values that are not in memory, and has the command executed again when there is a result. A command that
// only reads has been executed at the instant of its view then, and its reply is taken. What a command stores is as of
// that instant too, so it counts only if none of the keys that were read has changed since; else the command runs apart
// once more, and after that at once under its guard. So what others see is always one of the states that commands
// executed one after the other would have led to. Commands whose replies need not be of one instant have no view: their
// steps are executed on the keyspace itself, each under a guard of its own. So are those of commands that read very many
// keys, whose reply counts if none of the keys has changed from before the first step to after the last.

// aparts are the commands of a server that run apart, and those that wait for their turn. Their number is bounded so that a
// processor is left for other commands.
type aparts struct {
	running sync.WaitGroup

	mu      sync.Mutex // protects what follows, and work.state; nothing is locked under it but mailboxes
	most    int        // how many may run; 0 before the first
	free    int        // how many of them do not
	naming  bool       // one of those that run reads the names of all keys, of which there can be only one
	waiting []*work
}

// work is a command that runs apart, or waits for its turn, or has run. The session has it until the command has been
// executed, and what is not marked otherwise belongs to the session's goroutine, while it is running to its own.
type work struct {
	shared *Shared
	tell   func() // tells the session that its turn has come, or that it has run
	state  workState
	waits  bool // the session waits; used by its goroutine only
	ready  bool // it can be started; likewise
	tries  int  // how often the command has run apart
	naming bool // it reads the names of all keys

	cmd     *command.Command
	expired bool // the client sees expired keys, as Guard.SeesExpired
	noTouch bool // as Guard.NoTouch
	args    [][]byte
	db      int
	proto   int
	way     command.Way
	view    *engine.View        // nil if inSteps
	names   *engine.Names       // instead of view, if naming
	watches []*watchedKey       // of the keys of view, if the command stores something
	keys    *engine.WatchedKeys // of those that are read in steps
	stop    atomic.Bool         // the result is no longer wanted

	apart  command.Apart
	reply  []byte
	took   int64  // ns
	epoch  uint64 // Shared.epoch when the view was taken
	failed bool   // it can only be executed whole
	stale  bool   // a key has changed, so that the reply is of no use
}

// inSteps reports whether a command is executed on the keyspace itself.
func (w *work) inSteps(cmd *command.Command) bool { return cmd.InSteps || w.way == command.OnKeys }

type workState uint8

const (
	workWaits   workState = iota // for its turn
	workMay                      // it is its turn
	workRuns                     // its goroutine runs
	workHasRun                   // there is a result, or it has failed
	workIsLeft                   // its goroutine runs, and will clean up
	workIsEnded                  // it has been given up, or is over
)

// wentApart is what RunApart panics with.
type wentApart struct{}

// maxApart is how often a command runs apart before it is executed whole, if what it reads changes each time.
const maxApart = 2

// maxViewed is of how many keys there may be a view: to take one takes time for each of them.
const maxViewed = command.LongFrom

// RunApart implements command.Client. A client that tracks keys has its commands executed whole: it must hear of a
// change behind the reply that does not have it.
func (s *Session) RunApart(c *command.Ctx, way command.Way) {
	if c != &s.ctx || s.modes.tracking.On() || way == command.OnKeys && s.shared.Tiered.Load() {
		return // to read values into memory takes longer than to go through them
	}
	t, w := &s.shared.aparts, s.work
	if w == nil && way != command.OnKeys {
		loadRead(c, way) // for which the command may have to wait
	}
	if w != nil && t.is(w) == workHasRun {
		if w.failed || w.tries >= maxApart {
			return
		}
		unwatch(c.G, w.watches)
		w = &work{shared: s.shared, tell: w.tell, naming: w.naming, tries: w.tries}
	} else if w == nil {
		w = &work{shared: s.shared, tell: func() { s.post(mailApart) }, naming: len(c.Cmd.Keys) == 0 && !c.Cmd.InSteps}
	}
	s.work = w
	if t.is(w) == workWaits && !t.enter(w) {
		w.waits = true
		panic(wentApart{})
	}
	if !w.look(c, way) {
		t.end(w)
		return
	}
	w.waits, w.ready = true, true
	w.cmd, w.db, w.proto, w.expired, w.noTouch = c.Cmd, c.DB, c.W.Proto, c.G.SeesExpired, c.G.NoTouch
	w.tries++
	panic(wentApart{})
}

// startWork has the command run whose view has been taken, if it has. No guard is held: a copy is made of the arguments,
// which may be long.
func (s *Session) startWork(args [][]byte) {
	if w := s.work; w.ready {
		w.ready = false
		w.args = ownArgs(args)
		s.shared.aparts.start(w)
	}
}

// ownArgs returns a copy of arguments.
func ownArgs(args [][]byte) [][]byte {
	own := make([][]byte, len(args))
	copyArgs(own, make([]byte, sizeOf(args)), args)
	return own
}

// keysRead returns the keys that a command reads, or also those that it changes if it does so on copies, each once. One that
// does not write reads them all: as in Redis, specs of commands of modules need not say so.
func keysRead(c *command.Ctx, way command.Way) (keys [][]byte) {
	c.Cmd.EachKey(c.Args, func(i int, spec *command.KeySpec) bool {
		if way == command.OnCopies || c.Cmd.Flags&command.Write == 0 || slices.Contains(c.Cmd.UseOfKey(spec, c.Args), "RO") {
			keys = append(keys, c.Args[i])
		}
		return true
	})
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal)
}

// loadRead brings the values of the keys into memory that keysRead returns.
func loadRead(c *command.Ctx, way command.Way) {
	for _, key := range keysRead(c, way) {
		if e := c.G.Peek(c.DB, key); e != nil {
			e.Load()
		}
	}
}

// look takes the view that a command needs; it reports whether there is one.
func (w *work) look(c *command.Ctx, way command.Way) bool {
	w.epoch, w.way, w.apart.Changes = w.shared.epoch(), way, way == command.OnCopies
	switch {
	case w.inSteps(c.Cmd):
		return true
	case w.naming:
		w.names = c.G.Names(c.DB)
		return w.names != nil
	}
	keys := keysRead(c, way)
	if len(keys) > maxViewed {
		return false
	}
	if w.view = c.G.View(c.DB, keys); w.view == nil {
		return false
	}
	if c.Cmd.Flags&command.Write != 0 {
		for _, key := range keys {
			k := &watchedKey{db: c.DB, key: string(key), shard: w.shared.Keyspace.ShardOf(key)}
			k.begin(c.G, false)
			w.watches = append(w.watches, k)
		}
	}
	return true
}

// enter reports whether a command may run now; else it waits for its turn, of which the session will be told.
func (t *aparts) enter(w *work) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.most == 0 {
		t.most = max(runtime.GOMAXPROCS(0)-1, 1)
		t.free = t.most
	}
	if !t.admit(w) {
		t.waiting = append(t.waiting, w)
		return false
	}
	return true
}

// admit gives a command its turn if there is a place for it. mu is locked.
func (t *aparts) admit(w *work) bool {
	if t.free == 0 || w.naming && t.naming {
		return false
	}
	t.free--
	t.naming = t.naming || w.naming
	w.state = workMay
	return true
}

// leave gives the place of a command to those that wait. mu is locked.
func (t *aparts) leave(w *work) {
	t.free++
	t.naming = t.naming && !w.naming
	t.waiting = slices.DeleteFunc(t.waiting, func(next *work) bool {
		admitted := t.admit(next)
		if admitted {
			next.tell()
		}
		return admitted
	})
}

// start has a command run whose turn it is.
func (t *aparts) start(w *work) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.state = workRuns
	t.running.Add(1)
	go w.run()
}

// finished notes that a command has run, and reports whether the session wants to know.
func (t *aparts) finished(w *work) (wanted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wanted = w.state == workRuns; wanted {
		w.state = workHasRun
		w.tell()
	}
	t.leave(w)
	return wanted
}

// end gives a command up that has its turn: it is to be executed whole.
func (t *aparts) end(w *work) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(w)
	w.state, w.failed = workHasRun, true
}

// drop gives a command up, whatever it does, and reports whether the session must clean up.
func (t *aparts) drop(w *work) (hasRun bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := w.state
	w.state = workIsEnded
	switch was {
	case workWaits:
		if i := slices.Index(t.waiting, w); i >= 0 {
			t.waiting = slices.Delete(t.waiting, i, i+1)
		}
	case workMay:
		t.leave(w)
	case workRuns:
		w.state = workIsLeft
		w.stop.Store(true)
		return false
	}
	return true
}

// is returns what a command does.
func (t *aparts) is(w *work) workState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return w.state
}

// run executes the command on its view.
func (w *work) run() {
	defer w.shared.aparts.running.Done()
	background.Work()
	start := w.shared.Ticks()
	if w.way == command.OnKeys {
		w.shared.Scripts.Under(engine.AllShards, w.shared.Keyspace.Now(), func(g *engine.Guard, _ bool) { w.keys = g.WatchKeys(w.db) })
	}
	w.compute()
	if w.keys != nil {
		w.unwatchKeys()
	}
	w.took = w.shared.Ticks() - start
	if !w.shared.aparts.finished(w) {
		w.unwatch()
	}
}

func (w *work) compute() {
	var pacer background.Pacer
	var g engine.Guard
	w.failed = true // unless it comes to its end
	defer func() {
		p := recover()
		if w.inSteps(w.cmd) && g.Locked() {
			g.Unlock()
		}
		if _, ok := p.(command.Computed); ok {
			w.shared.Keyspace.Prepare(w.apart.Result)
			w.failed = w.stop.Load() || w.inSteps(w.cmd) // where this is no result
		} else if p != nil {
			w.shared.logPanic(w.cmd, p)
		}
		w.apart.Done = true
	}()
	out := resp.Writer{Proto: w.proto}
	ks, shards, now := w.shared.Keyspace, uint64(engine.AllShards), w.shared.Keyspace.Now
	switch {
	case w.inSteps(w.cmd):
		shards, g.SeesExpired, g.NoTouch = w.cmd.Shards(ks, w.args), w.expired, w.noTouch
		if w.keys != nil {
			began := now()
			now = func() int64 { return began }
		}
		w.apart.Unlock = func() {
			g.Unlock()
			pacer.Pause()
		}
		w.apart.Lock = func() bool {
			g.Lock(ks, shards, now())
			return !w.stop.Load() && (w.keys == nil || len(out.Buf) < maxStepsReply)
		}
	case w.names != nil:
		defer w.names.Close()
		w.names.SetPause(pacer.Pause)
		ks = engine.New(engine.Options{Databases: w.db + 1})
		w.apart.Keys = w.names.All(&w.stop)
	default:
		defer w.view.Close()
		w.view.Pause = pacer.Pause
		var err error
		if ks, err = w.view.Keyspace(&w.stop); ks == nil {
			if err != nil {
				w.shared.Log.Error("cannot copy a value", "command", w.cmd.Name, "err", err)
			}
			return
		}
	}
	g.Lock(ks, shards, now())
	w.cmd.Do(&command.Ctx{
		Args: w.args, W: &out, G: &g, DB: w.db, Client: apartClient{}, Host: w.shared.Host, Cmd: w.cmd, Origin: command.FromClient,
		Apart: &w.apart,
	})
	if g.Locked() {
		g.Unlock()
	}
	w.reply, w.failed = out.Buf, w.stop.Load() || g.Changes() > 0
}

// maxStepsReply is the length from which on the reply of a command that reads many keys is not made apart, where long strings
// are copied.
const maxStepsReply = 64 << 20

// unwatchKeys ends the watch of the command's keys, and finds out whether the reply can be used.
func (w *work) unwatchKeys() {
	w.shared.Scripts.Under(engine.AllShards, w.shared.Keyspace.Now(), func(g *engine.Guard, _ bool) { g.UnwatchKeys(w.keys) })
	w.stale = !w.failed && w.keys.Changed(func(yield func(key []byte) bool) {
		w.cmd.EachKey(w.args, func(i int, _ *command.KeySpec) bool { return yield(w.args[i]) })
	})
}

// apartClient is the client of a command that runs apart. It is none: what such a command needs of it it has asked
// before.
type apartClient struct{ command.Client }

func (apartClient) MayReadAll(*command.Command, [][]byte) bool { return true }

// unwatch ends the watches of the command's keys. No guard may be held.
func (w *work) unwatch() {
	if len(w.watches) > 0 {
		w.shared.Scripts.Under(shardsOf(w.watches), w.shared.Keyspace.Now(), func(g *engine.Guard, _ bool) { unwatch(g, w.watches) })
		w.watches = nil
	}
}

// isApart reports whether the command that the session executes next still runs apart, or waits for its turn.
func (s *Session) isApart() bool {
	switch s.shared.aparts.is(s.work) {
	case workWaits, workRuns:
		s.work.waits = true
	default:
		s.work.waits = false
	}
	return s.work.waits
}

// endWork ends the work of a command that has been executed; it reports false if that runs apart now.
func (s *Session) endWork() bool {
	if s.work.waits {
		return false
	}
	s.endGuard()
	s.dropWork()
	return true
}

// dropWork gives up the command that runs apart, or forgets that it has. No guard may be held.
func (s *Session) dropWork() {
	w := s.work
	s.work = nil
	if s.shared.aparts.drop(w) {
		w.unwatch()
	}
}

// wentApart ends the call of a command that runs apart now, or will. There is no reply from mark on.
func (s *Session) wentApart(c *command.Ctx, mark int) {
	c.W.Truncate(mark)
	c.G.MayWait(false)
	if !c.Cmd.Slow && !s.exact {
		s.uncountCall()
	}
}

// takeReply answers a command with the reply that it has made apart, and reports whether there is one. What has been
// taken back since its view must not be told.
func (s *Session) takeReply(cmd *command.Command, args [][]byte) bool {
	w := s.work
	if s.shared.aparts.is(w) != workHasRun || w.failed || w.stale || w.apart.Result != nil || w.epoch != s.shared.epoch() {
		return false
	}
	s.endGuard()
	s.flushCalls()
	reply := w.reply
	w.reply = nil
	n := len(reply)
	if reply[0] == '-' {
		s.shared.CommandStats.Of(cmd).Failed.Add(1)
		s.shared.Counters.Errors.Count(reply[1:])
	}
	if s.out.Len() == 0 && cap(reply) >= buffers.Large {
		s.out.Buf, reply = reply, nil
	} else {
		s.out.Raw(reply)
	}
	buffers.Put(reply)
	s.shared.CommandStats.Of(cmd).Count(1, w.took)
	s.ctx.Cmd, s.ctx.Args = cmd, args
	s.heat(&s.ctx, w.took, n)
	s.examine(cmd, args, 1, w.took)
	if m := &s.shared.monitors; m.active() {
		m.feed(s, s.ctx.Origin, cmd, args)
	}
	s.lastCmd = cmd
	return true
}

// useResult gives a command the result that it has computed apart, unless the keys that it read have changed since. The
// command's guard is held.
func (s *Session) useResult(c *command.Ctx) {
	w := s.work
	if s.shared.aparts.is(w) != workHasRun || w.failed || w.apart.Result == nil {
		return
	}
	for _, k := range w.watches {
		if !c.G.Unchanged(k.watch, k.version) {
			return
		}
	}
	c.Apart = &w.apart
}

// close waits for what still runs. There are no sessions any more.
func (t *aparts) close() { t.running.Wait() }
