package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/scripting"
)

// This file is what happens while a script runs: it is watched, clients are told that the server is busy if it takes
// long, and it can be killed.

// The answers to those who come while a script runs, and to those who want to kill it.
const (
	errBusyScript   command.Error = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	errBusyFunction command.Error = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
	errNotBusy      command.Error = "NOTBUSY No scripts in execution right now."
	errUnkillable   command.Error = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can " +
		"either wait the script " +
		"termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
)

// What a script is stopped with.
const (
	killedByUser     = "Script killed by user with SCRIPT KILL..."
	killedByShutdown = "Script killed because the server is shutting down."
	killedForMemory  = "Script killed because it used more memory than script-memory-limit allows."
)

// scriptRun is the script that is running. There is at most one, for it runs under a guard over the whole keyspace.
// While scripts are in use a timer looks every few milliseconds whether it is still the same one as before, so that a
// script that ends soon costs no timer.
type scriptRun struct {
	interrupt scripting.Interrupt

	// busy is what clients are answered because a script runs for too long; nil if none does, or if it has been stopped.
	// It can be read at any time, without mu.
	busy atomic.Pointer[command.Error]
	// used says that a script may have run.
	used atomic.Bool

	mu      sync.Mutex // protects what follows; a leaf in the order of locks
	current *scriptCaller
	number  uint64 // of scripts that were begun
	wrote   bool   // the current one has called a command that may write
	slow    bool   // the current one has made the server busy
	closing bool   // the server is being closed
	// What the guard of the current one does at its end; see Session.underWatches.
	atItsEnd []func(g *engine.Guard, written bool)
	timer    *time.Timer
	watching bool // the timer is set

	// becomesBusy is closed when a script makes the server busy; nil if nobody waits for that.
	becomesBusy chan struct{}

	// What follows is used by the timer's function only.
	seen  uint64        // number when it looked last
	since time.Duration // since when the current script is known to run, on the clock of Server.ticks
	heap  memoryWatch
}

const (
	// watchInterval is how often a running script is looked at.
	watchInterval = 10 * time.Millisecond
	// closePatience is how long a script may go on when the server is to be closed.
	closePatience = time.Second
)

// beginScript notes that a script begins. endScript must follow.
func (srv *Server) beginScript(h *scriptCaller) {
	r := &srv.scripts.run
	r.mu.Lock()
	r.current, r.wrote, r.slow = h, false, false
	r.number++
	r.interrupt.Reset()
	if r.closing {
		r.interrupt.Stop(killedByShutdown)
	}
	if !r.watching {
		r.watching = true
		if r.timer == nil {
			r.timer = time.AfterFunc(srv.watchEvery(), srv.watchScript)
		} else {
			r.timer.Reset(srv.watchEvery())
		}
	}
	r.mu.Unlock()
}

// endScript notes that the script that was begun last, under g, has ended.
func (srv *Server) endScript(g *engine.Guard) {
	r := &srv.scripts.run
	r.mu.Lock()
	r.current = nil
	slow, written, do := r.slow, r.wrote, r.atItsEnd
	r.atItsEnd = nil
	r.busy.Store(nil)
	r.mu.Unlock()
	for _, f := range do {
		f(g, written)
	}
	if t, ok := srv.transport.(reliever); ok && slow {
		t.resume()
	}
}

// reliever is a transport whose goroutines serve more than one client.
type reliever interface {
	// relieve has other goroutines go on with what is held up because a client's command waits for the end of a script,
	// or is one. It is called by one goroutine at a time, again and again while the script runs.
	relieve()
	// resume has the transport do what it has put off because a script was running.
	resume()
}

// watchEvery returns how long the timer is set for: a script must be found to be over the limit soon after it is.
func (srv *Server) watchEvery() time.Duration {
	limit := srv.config.Get().BusyAfter()
	if limit <= 0 {
		return watchInterval
	}
	return max(min(watchInterval, limit/4), time.Millisecond)
}

// watchScript is the timer's function.
func (srv *Server) watchScript() {
	r := &srv.scripts.run
	now := time.Duration(srv.ticks())
	r.mu.Lock()
	same := r.number == r.seen
	r.seen = r.number
	running := r.current != nil
	if !running && same {
		r.watching = false
		r.mu.Unlock()
		return
	}
	if !same {
		r.since = now
		r.heap.begin()
	}
	ran := now - r.since
	limit := srv.config.Get().BusyAfter()
	if running && limit > 0 && ran >= limit && !r.slow && !r.interrupt.Stopped() {
		srv.log.Warn("a script runs for longer than busy-reply-threshold; it can be ended with SCRIPT KILL or FUNCTION KILL", "duration", ran)
		answer := r.current.busyAnswer()
		r.busy.Store(&answer)
		r.slow = true
		if r.becomesBusy != nil {
			close(r.becomesBusy)
			r.becomesBusy = nil
		}
	}
	if running && r.closing && (r.slow || ran >= closePatience) {
		r.interrupt.Stop(killedByShutdown)
	}
	slow := running && r.slow
	r.mu.Unlock()

	if running && same {
		if limit := srv.config.Get().ScriptMemoryLimit; limit > 0 {
			r.heap.check(&r.interrupt, limit)
		}
	}
	if t, ok := srv.transport.(reliever); ok && slow {
		t.relieve()
	}
	r.mu.Lock()
	r.timer.Reset(srv.watchEvery())
	r.mu.Unlock()
}

// lock takes the shards for a command of the client. It returns what the client is answered instead if a script holds
// them for too long.
func (s *Session) lock(g *engine.Guard, shards uint64) command.Error {
	r := &s.srv.scripts.run
	r.expect(shards)
	for !g.TryLock(s.srv.ks, shards, s.now) {
		if answer := r.busy.Load(); answer != nil {
			return *answer
		}
		if r.lockUnlessBusy(g, s.srv.ks, shards, s.now) {
			break
		}
	}
	return ""
}

// lockUnlessBusy takes the shards, unless a script makes the server busy first. It reports whether the guard has them.
func (r *scriptRun) lockUnlessBusy(g *engine.Guard, ks *engine.Keyspace, shards uint64, now int64) bool {
	if !r.used.Load() {
		g.Lock(ks, shards, now)
		return true
	}
	busy := r.nextBusy()
	return r.busy.Load() == nil && g.LockUnless(busy, ks, shards, now)
}

// atEnd leaves something to the guard of the script that has made the server busy. It reports whether there is one.
func (r *scriptRun) atEnd(do func(g *engine.Guard, written bool)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil || !r.slow {
		return false
	}
	r.atItsEnd = append(r.atItsEnd, do)
	return true
}

// expect must be called before shards are locked under which a script may run, which are all.
func (r *scriptRun) expect(shards uint64) {
	if shards == engine.AllShards && !r.used.Load() {
		r.used.Store(true)
	}
}

// nextBusy returns what is closed when a script next makes the server busy.
func (r *scriptRun) nextBusy() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.becomesBusy == nil {
		r.becomesBusy = make(chan struct{})
	}
	return r.becomesBusy
}

// closeScripts makes sure that no script goes on for long: the server is being closed.
func (srv *Server) closeScripts() {
	r := &srv.scripts.run
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
}

// mayWrite reports whether the script may call its first command that may write. From then on it cannot be killed.
func (r *scriptRun) mayWrite() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrote = r.wrote || !r.interrupt.Stopped()
	return r.wrote
}

// kill ends the running script, a function or not, and returns why that is not possible.
func (r *scriptRun) kill(function bool) command.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.current == nil:
		return errNotBusy
	case r.wrote:
		return errUnkillable
	case (r.current.function != "") != function:
		return r.current.busyAnswer()
	}
	r.interrupt.Stop(killedByUser) // Redis's text says the same of functions
	r.busy.Store(nil)              // it ends at once: who comes now waits for that
	return ""
}

// function returns the name and the command of the function that is running, and when it began, as Server.ticks gives
// it.
func (r *scriptRun) function() (name string, args [][]byte, began int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil || r.current.function == "" {
		return "", nil, 0, false
	}
	return r.current.function, cloneArgs(r.current.args), r.current.began, true
}

// busyAnswer returns what clients are answered while the script runs for too long.
func (h *scriptCaller) busyAnswer() command.Error {
	if h.function != "" {
		return errBusyFunction
	}
	return errBusyScript
}

// scriptBusy reports whether a script is running for so long that clients are told.
func (srv *Server) scriptBusy() bool { return srv.scripts.run.busy.Load() != nil }

// busyScript returns the error that keeps a command from running because a script is running, "" if none does.
func (srv *Server) busyScript(cmd *command.Command) command.Error {
	if answer := srv.scripts.run.busy.Load(); answer != nil && cmd.Flags&command.AllowBusy == 0 {
		return *answer
	}
	return ""
}

func cmdScriptKill(c *command.Ctx) {
	if e := serverOf(c).scripts.run.kill(false); e != "" {
		c.Err(e)
		return
	}
	c.W.OK()
}
