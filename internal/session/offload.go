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
	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// Commands that take long are offloaded to goroutines of their own, so that no other client waits for them: see
// package command. The session waits, and executes the command again when there is a result. A command that only
// reads was executed at the instant of its view, and the session takes its reply. A value to store also has the
// state of that instant. It is stored only if none of the keys that were read has changed since; otherwise the
// command is offloaded once more, and after that executed completely under its guard. So other clients see only
// states that a sequence of whole commands can produce. Commands whose replies may combine several instants have no
// view: their steps are executed on the keyspace itself, each under a guard of its own. So are the steps of commands
// that read very many keys; their reply is used if none of the keys has changed from before the first step to after
// the last. Queries have no view, and take locks of their own.

// offloads are the offloaded commands of a server, and those that wait for their turn. Their number is bounded so that a
// processor is left for other commands.
type offloads struct {
	running sync.WaitGroup

	mu      sync.Mutex // protects the following fields and offload.state; only mailboxes are locked under it
	most    int        // how many may run at once; 0 before the first
	free    int        // how many more may start
	naming  bool       // a running command reads the names of all keys; only one may do so
	waiting []*offload
}

// offload is a command that is offloaded, waits for its turn, or has a result. The session keeps it until the
// command has been executed. Unless marked otherwise, its fields belong to the session's goroutine, and to its own
// goroutine while it runs.
type offload struct {
	shared *Shared
	tell   func() // tells the session that its turn has come, or that it has run
	state  offloadState
	ready  bool // it can be started; used only by the session's goroutine
	tries  int  // how often the command has been offloaded
	naming bool // it reads the names of all keys

	cmd     *command.Command
	expired bool // the client sees expired keys, as Guard.SeesExpired
	noTouch bool // as Guard.NoTouch
	args    [][]byte
	db      int
	proto   int
	way     command.Way
	user    *acl.User           // nil: the client may do everything
	view    *engine.View        // nil if inSteps, or ownLocks
	names   *engine.Names       // instead of view, if naming
	watches []*watchedKey       // of the keys of view, if the command stores something
	keys    *engine.WatchedKeys // of those that are read in steps
	stop    atomic.Bool         // the result is no longer wanted
	gone    chan struct{}       // closed when the result is no longer wanted; nil unless ownLocks

	handler command.Offload // the part that the handler sees
	reply   []byte
	took    int64  // ns
	epoch   uint64 // Shared.epoch when the view was taken
	failed  bool   // it must be executed under its guard
	stale   bool   // a key has changed, so the reply cannot be used
}

// inSteps reports whether a command is executed in steps, each under a guard of its own.
func (o *offload) inSteps(cmd *command.Command) bool { return cmd.InSteps || o.way == command.OnKeys }

// ownLocks reports whether the handler takes its locks itself.
func (o *offload) ownLocks() bool { return o.way == command.OnOwnLocks }

type offloadState uint8

const (
	offloadQueued    offloadState = iota // it waits for a place
	offloadAdmitted                      // it may start
	offloadRuns                          // its goroutine runs
	offloadDone                          // there is a result, or it has failed
	offloadAbandoned                     // its goroutine runs, and will clean up
	offloadEnded                         // it was given up, or has ended
)

// maxOffloads is how often a command is offloaded before it is executed under its guard, if the keys that it reads
// change each time.
const maxOffloads = 2

// maxViewed is the largest number of keys of a view: taking one takes time for each key.
const maxViewed = command.LongFrom

// Offload implements command.Client. Commands of a client that tracks keys are not offloaded, because an
// invalidation must follow a reply that does not have the change. Commands without keys of their own are not
// tracked.
func (s *Session) Offload(c *command.Ctx, way command.Way) bool {
	locked := way != command.OnOwnLocks // by the session's guard
	if c != &s.ctx || s.modes.tracking.On() && locked || way == command.OnKeys && s.shared.Tiered.Load() {
		return false // reading values into memory takes longer than the command itself
	}
	t, o := &s.shared.offloads, s.offload
	if o == nil && way != command.OnKeys && locked {
		loadRead(c, way) // the command may have to wait for it
	}
	if o != nil && t.is(o) == offloadDone {
		if o.failed || o.tries >= maxOffloads {
			return false
		}
		unwatch(c.G, o.watches)
		o = &offload{shared: s.shared, tell: o.tell, naming: o.naming, tries: o.tries}
	} else if o == nil {
		o = &offload{shared: s.shared, tell: func() { s.post(mailOffload) }, naming: len(c.Cmd.Keys) == 0 && !c.Cmd.InSteps && locked}
	}
	s.offload = o
	if t.is(o) == offloadQueued && !t.enter(o) {
		s.beginWait(forOffload, 0)
		return true
	}
	if !o.look(c, way) {
		t.end(o)
		return false
	}
	o.ready = true
	o.cmd, o.db, o.proto, o.expired, o.noTouch = c.Cmd, c.DB, c.W.Proto, c.G.SeesExpired, c.G.NoTouch
	if a := s.account.Load(); a != nil {
		o.user = a.User()
	}
	o.tries++
	s.beginWait(forOffload, 0)
	return true
}

// startOffload starts the goroutine of the offloaded command if its view has been taken. No guard is held, because the
// arguments, which may be long, are copied.
func (s *Session) startOffload(args [][]byte) {
	if o := s.offload; o.ready {
		o.ready = false
		o.args = ownArgs(args)
		s.shared.offloads.start(o)
	}
}

// ownArgs returns a copy of arguments.
func ownArgs(args [][]byte) [][]byte {
	own := make([][]byte, len(args))
	copyArgs(own, make([]byte, sizeOf(args)), args)
	return own
}

// keysRead returns the keys that a command reads, each once, with the keys that it changes if it changes copies. A
// command that does not write reads all its keys: as in Redis, the key specs of module commands need not say so.
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

// loadRead loads the values of the keys that keysRead returns into memory.
func loadRead(c *command.Ctx, way command.Way) {
	for _, key := range keysRead(c, way) {
		if e := c.G.Peek(c.DB, key); e != nil {
			e.Load()
		}
	}
}

// look takes the view that a command needs; it reports whether there is one.
func (o *offload) look(c *command.Ctx, way command.Way) bool {
	o.epoch, o.way, o.handler.Changes = o.shared.epoch(), way, way == command.OnCopies
	switch {
	case o.ownLocks():
		o.gone = make(chan struct{})
		o.handler.Unwanted = o.gone
		return true
	case o.inSteps(c.Cmd):
		return true
	case o.naming:
		o.names = c.G.Names(c.DB)
		return o.names != nil
	}
	keys := keysRead(c, way)
	if len(keys) > maxViewed {
		return false
	}
	if o.view = c.G.View(c.DB, keys); o.view == nil {
		return false
	}
	if c.Cmd.Flags&command.Write != 0 {
		for _, key := range keys {
			k := &watchedKey{db: c.DB, key: string(key), shard: o.shared.Keyspace.ShardOf(key)}
			k.begin(c.G, false)
			o.watches = append(o.watches, k)
		}
	}
	return true
}

// enter reports whether a command may run now; otherwise the command waits in a queue, and the session gets mail
// when it may start.
func (t *offloads) enter(o *offload) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.most == 0 {
		t.most = max(runtime.GOMAXPROCS(0)-1, 1)
		t.free = t.most
	}
	if !t.admit(o) {
		t.waiting = append(t.waiting, o)
		return false
	}
	return true
}

// admit lets a command start if there is a place for it. mu is locked.
func (t *offloads) admit(o *offload) bool {
	if t.free == 0 || o.naming && t.naming {
		return false
	}
	t.free--
	t.naming = t.naming || o.naming
	o.state = offloadAdmitted
	return true
}

// leave frees the place of a command for waiting ones. mu is locked.
func (t *offloads) leave(o *offload) {
	t.free++
	t.naming = t.naming && !o.naming
	t.waiting = slices.DeleteFunc(t.waiting, func(next *offload) bool {
		admitted := t.admit(next)
		if admitted {
			next.tell()
		}
		return admitted
	})
}

// start starts the goroutine of an admitted command.
func (t *offloads) start(o *offload) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.state = offloadRuns
	t.running.Add(1)
	go o.run()
}

// finished marks a command as done, and reports whether the session still wants the result.
func (t *offloads) finished(o *offload) (wanted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wanted = o.state == offloadRuns; wanted {
		o.state = offloadDone
		o.tell()
	}
	t.leave(o)
	return wanted
}

// end gives up an admitted command: it is to be executed under its guard.
func (t *offloads) end(o *offload) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(o)
	o.state, o.failed = offloadDone, true
}

// drop gives up a command in any state, and reports whether the session must clean up.
func (t *offloads) drop(o *offload) (hasRun bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := o.state
	o.state = offloadEnded
	switch was {
	case offloadQueued:
		if i := slices.Index(t.waiting, o); i >= 0 {
			t.waiting = slices.Delete(t.waiting, i, i+1)
		}
	case offloadAdmitted:
		t.leave(o)
	case offloadRuns:
		o.state = offloadAbandoned
		o.stop.Store(true)
		if o.gone != nil {
			close(o.gone)
		}
		return false
	}
	return true
}

// is returns the state of a command.
func (t *offloads) is(o *offload) offloadState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return o.state
}

// busy reports whether an offloaded command runs, or waits for a place.
func (t *offloads) busy(o *offload) bool {
	state := t.is(o)
	return state == offloadQueued || state == offloadRuns
}

// run executes the command on its view.
func (o *offload) run() {
	defer o.shared.offloads.running.Done()
	background.Work()
	start := o.shared.Ticks()
	if o.way == command.OnKeys {
		o.shared.Scripts.Under(engine.AllShards, o.shared.Keyspace.Now(), func(g *engine.Guard, _ bool) { o.keys = g.WatchKeys(o.db) })
	}
	o.compute()
	if o.keys != nil {
		o.unwatchKeys()
	}
	o.took = o.shared.Ticks() - start
	if !o.shared.offloads.finished(o) {
		o.unwatch()
	}
}

// compute calls the handler on the command's view of the keyspace, or on the keyspace itself.
func (o *offload) compute() {
	var pacer background.Pacer
	var g engine.Guard
	o.failed = true // unless it completes
	defer func() {
		p := recover()
		if o.inSteps(o.cmd) && g.Locked() {
			g.Unlock()
		}
		if _, ok := command.EndedEarly(p); ok {
			o.shared.Keyspace.Prepare(o.handler.Result)
			o.failed = o.stop.Load() || o.inSteps(o.cmd) // an incomplete run has no result
		} else if p != nil {
			o.shared.logPanic(o.cmd, p)
		}
		o.handler.Done = true
	}()
	out := resp.Writer{Proto: o.proto}
	ks, shards, now := o.shared.Keyspace, uint64(engine.AllShards), o.shared.Keyspace.Now
	switch {
	case o.ownLocks():
		shards, g.SeesExpired, g.NoTouch = 0, o.expired, o.noTouch
	case o.inSteps(o.cmd):
		shards, g.SeesExpired, g.NoTouch = o.cmd.Shards(ks, o.args), o.expired, o.noTouch
		if o.keys != nil {
			began := now()
			now = func() int64 { return began }
		}
		o.handler.Unlock = func() {
			g.Unlock()
			pacer.Pause()
		}
		o.handler.Lock = func() bool {
			g.Lock(ks, shards, now())
			return !o.stop.Load() && (o.keys == nil || len(out.Buf) < maxStepsReply)
		}
	case o.names != nil:
		defer o.names.Close()
		o.names.SetPause(pacer.Pause)
		ks = engine.New(engine.Options{Databases: o.db + 1})
		o.handler.Keys = o.names.All(&o.stop)
	default:
		defer o.view.Close()
		o.view.Pause = pacer.Pause
		var err error
		if ks, err = o.view.Keyspace(&o.stop); ks == nil {
			if err != nil {
				o.shared.Log.Error("cannot copy a value", "command", o.cmd.Name, "err", err)
			}
			return
		}
	}
	g.Lock(ks, shards, now())
	o.cmd.Do(&command.Ctx{
		Args: o.args, W: &out, G: &g, DB: o.db, Client: offloadClient{user: o.user, db: o.db}, Host: o.shared.Host, Cmd: o.cmd, Origin: command.FromClient,
		Offload: &o.handler,
	})
	if g.Locked() {
		g.Unlock()
	}
	o.reply, o.failed = out.Buf, o.stop.Load() || g.Changes() > 0
}

// maxStepsReply is the least length in bytes of a reply for which a command that reads many keys is executed under
// its guard, because an offloaded one copies long strings.
const maxStepsReply = 64 << 20

// unwatchKeys ends the watch of the command's keys, and determines whether the reply can be used.
func (o *offload) unwatchKeys() {
	o.shared.Scripts.Under(engine.AllShards, o.shared.Keyspace.Now(), func(g *engine.Guard, _ bool) { g.UnwatchKeys(o.keys) })
	o.stale = !o.failed && o.keys.Changed(func(yield func(key []byte) bool) {
		o.cmd.EachKey(o.args, func(i int, _ *command.KeySpec) bool { return yield(o.args[i]) })
	})
}

// offloadClient stands for the client of an offloaded command, with the permissions that the client had at the
// beginning. The command must call the other methods of its client before it is offloaded.
type offloadClient struct {
	command.Client
	user *acl.User
	db   int
}

// MayReadAll implements command.Client.
func (c offloadClient) MayReadAll(cmd *command.Command, args [][]byte) bool {
	return c.user == nil || c.user.MayReadAll(cmd, args, c.db)
}

// MayRead implements command.Client.
func (c offloadClient) MayRead(cmd *command.Command, key []byte, db int) bool {
	return c.user == nil || c.user.MayRead(cmd, key, db)
}

// unwatch ends the watches of the command's keys. No guard may be held.
func (o *offload) unwatch() {
	if len(o.watches) > 0 {
		o.shared.Scripts.Under(shardsOf(o.watches), o.shared.Keyspace.Now(), func(g *engine.Guard, _ bool) { unwatch(g, o.watches) })
		o.watches = nil
	}
}

// dropOffload gives up the offloaded command, or forgets its result. No guard may be held.
func (s *Session) dropOffload() {
	o := s.offload
	s.offload = nil
	if s.shared.offloads.drop(o) {
		o.unwatch()
	}
}

// takeReply answers a command with the reply of its offload, and reports whether there is one. A reply from before a
// change of the journal's epoch may show changes that were undone, and is not used.
func (s *Session) takeReply(cmd *command.Command, args [][]byte) bool {
	o := s.offload
	if s.shared.offloads.is(o) != offloadDone || o.failed || o.stale || o.handler.Result != nil || o.epoch != s.shared.epoch() {
		return false
	}
	s.endGuard()
	s.flushCalls()
	reply := o.reply
	o.reply = nil
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
	s.calls++
	s.shared.CommandStats.Of(cmd).Count(1, o.took)
	s.ctx.Cmd, s.ctx.Args = cmd, args
	s.heat(&s.ctx, o.took, n)
	s.examine(cmd, args, 1, o.took)
	if m := &s.shared.monitors; m.active() {
		m.feed(s, s.ctx.Origin, cmd, args)
	}
	if s.modes.tracking.On() {
		s.rememberKeys(cmd, args)
	}
	s.lastCmd = cmd
	return true
}

// useResult gives a command the result of its offload, unless the keys that it read have changed since. The command's
// guard is held.
func (s *Session) useResult(c *command.Ctx) {
	o := s.offload
	if s.shared.offloads.is(o) != offloadDone || o.failed || o.handler.Result == nil {
		return
	}
	for _, k := range o.watches {
		if !c.G.Unchanged(k.watch, k.version) {
			return
		}
	}
	c.Offload = &o.handler
}

// close waits for the commands that still run. There are no sessions any more.
func (t *offloads) close() { t.running.Wait() }
