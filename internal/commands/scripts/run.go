package scripts

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/scripting"
)

// This file watches the running script, makes clients get BUSY if it takes long, and kills it.

// ErrBusyScript and ErrBusyFunction are the errors for clients while a script or a function has been running for too
// long.
const (
	ErrBusyScript   command.Error = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	ErrBusyFunction command.Error = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
)

// Errors of SCRIPT KILL and FUNCTION KILL.
const (
	errNotBusy    command.Error = "NOTBUSY No scripts in execution right now."
	errUnkillable command.Error = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can " +
		"either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
)

// Errors that stop a script.
const (
	killedByUser     = "Script killed by user with SCRIPT KILL..."
	killedByShutdown = "Script killed because the server is shutting down."
	killedForMemory  = "Script killed because it used more memory than script-memory-limit allows."
)

// Running is a running script or function.
type Running struct {
	// Function is the name of the function; empty for a script.
	Function string
	// Args are the arguments of FCALL, for FUNCTION STATS. They are views.
	Args [][]byte
}

// busyAnswer returns the error for clients while the script runs for too long.
func (r *Running) busyAnswer() command.Error {
	if r.Function != "" {
		return ErrBusyFunction
	}
	return ErrBusyScript
}

// running is the state of the running script. At most one runs, under a guard over the whole keyspace. While scripts
// are in use, a timer checks every few milliseconds whether the same script still runs, so that a short script needs
// no timer of its own.
type running struct {
	interrupt scripting.Interrupt
	base      time.Time // origin of the times below

	// busy is the error for clients while a script runs for too long; nil if none does, or if it has been stopped.
	// It can be read at any time, without mu.
	busy atomic.Pointer[command.Error]
	// used says that scripts are in use.
	used atomic.Bool

	mu      sync.Mutex // protects the fields below; a leaf in the order of locks
	runs    bool
	current Running       // valid if runs is set
	began   time.Duration // start of the current function
	number  uint64        // count of started scripts
	wrote   bool          // the current script has called a command that may write
	slow    bool          // the current script has made the server busy
	closing bool          // the server is closing
	// Functions to run at the end of the current script's guard; see Under.
	atItsEnd []func(g *engine.Guard, written bool)
	timer    *time.Timer
	watching bool // the timer is set

	// becomesBusy is closed when a script makes the server busy; nil without waiters.
	becomesBusy chan struct{}

	// Only the timer's function uses the fields below.
	seen  uint64        // number at the last check
	since time.Duration // when the current script was first seen
	heap  memoryWatch
}

const (
	// watchInterval is the interval of checks of a running script.
	watchInterval = 10 * time.Millisecond
	// closeTimeout is how long a script may continue when the server closes.
	closeTimeout = time.Second
)

// run watches a script of the client of c. do runs the script; h executes its commands.
func (s *Scripts) run(c *command.Ctx, what Running, l Limits, do func(h scripting.Host)) {
	client := clientOf(c)
	h := client.BeginScript(c, l)
	s.Begin(what)
	defer s.End(c.G)
	do(h)
	client.EndScript()
}

// Begin records that a script begins. End must follow.
func (s *Scripts) Begin(what Running) {
	s.mu.Lock()
	s.runs, s.current, s.wrote, s.slow = true, what, false, false
	if what.Function != "" {
		s.began = s.now()
	}
	s.number++
	s.interrupt.Reset()
	if s.closing {
		s.interrupt.Stop(killedByShutdown)
	}
	if !s.watching {
		s.watching = true
		if s.timer == nil {
			s.timer = time.AfterFunc(s.watchEvery(), s.watch)
		} else {
			s.timer.Reset(s.watchEvery())
		}
	}
	s.mu.Unlock()
}

// End records that the last script, which ran under g, has ended.
func (s *Scripts) End(g *engine.Guard) {
	s.mu.Lock()
	s.runs, s.current = false, Running{}
	slow, written, do := s.slow, s.wrote, s.atItsEnd
	s.atItsEnd = nil
	s.busy.Store(nil)
	s.mu.Unlock()
	for _, f := range do {
		f(g, written)
	}
	if slow {
		s.server.Resume()
	}
}

// now returns the time since base. Unlike the server's clock, it never jumps.
func (s *Scripts) now() time.Duration { return time.Since(s.base) }

// watchEvery returns the interval of the timer: short enough to find a script over the limit soon.
func (s *Scripts) watchEvery() time.Duration {
	limit := s.server.Config.Get().BusyAfter()
	if limit <= 0 {
		return watchInterval
	}
	return max(min(watchInterval, limit/4), time.Millisecond)
}

// watch is the timer's function.
func (s *Scripts) watch() {
	now := s.now()
	s.mu.Lock()
	same := s.number == s.seen
	s.seen = s.number
	runs := s.runs
	if !runs && same {
		s.watching = false
		s.mu.Unlock()
		return
	}
	if !same {
		s.since = now
		s.heap.begin()
	}
	ran := now - s.since
	limit := s.server.Config.Get().BusyAfter()
	if runs && limit > 0 && ran >= limit && !s.slow && !s.interrupt.Stopped() {
		s.server.Log.Warn("a script runs for longer than busy-reply-threshold; it can be ended with SCRIPT KILL or "+
			"FUNCTION KILL", "duration", ran)
		answer := s.current.busyAnswer()
		s.busy.Store(&answer)
		s.slow = true
		if s.becomesBusy != nil {
			close(s.becomesBusy)
			s.becomesBusy = nil
		}
	}
	if runs && s.closing && (s.slow || ran >= closeTimeout) {
		s.interrupt.Stop(killedByShutdown)
	}
	slow := runs && s.slow
	s.mu.Unlock()

	if runs && same {
		if limit := s.server.Config.Get().Scripts.MemoryLimit; limit > 0 {
			s.heap.check(&s.interrupt, limit)
		}
	}
	if slow {
		s.server.Relieve()
	}
	s.mu.Lock()
	s.timer.Reset(s.watchEvery())
	s.mu.Unlock()
}

// Lock takes the shards for a command of a client. It returns the error for the client if a script holds them for too long. now
// is in ms since 1970.
func (s *Scripts) Lock(g *engine.Guard, shards uint64, now int64) command.Error {
	s.Expect(shards)
	for !g.TryLock(s.server.Keyspace, shards, now) {
		if answer := s.busy.Load(); answer != nil {
			return *answer
		}
		if s.lockUnlessBusy(g, shards, now) {
			break
		}
	}
	return ""
}

// Under calls do under a guard over the shards. It does not wait for a script that has made the server busy: do then
// runs at the end of the script's guard; written says whether the script wrote. The caller must hold no guard.
func (s *Scripts) Under(shards uint64, now int64, do func(g *engine.Guard, written bool)) {
	var g engine.Guard
	for !g.TryLock(s.server.Keyspace, shards, now) {
		if s.atEnd(do) || s.lockUnlessBusy(&g, shards, now) {
			break
		}
	}
	if g.Locked() {
		do(&g, false)
		g.Unlock()
	}
}

// lockUnlessBusy takes the shards, unless a script makes the server busy first. It reports whether the guard has them.
func (s *Scripts) lockUnlessBusy(g *engine.Guard, shards uint64, now int64) bool {
	if !s.used.Load() {
		g.Lock(s.server.Keyspace, shards, now)
		return true
	}
	busy := s.nextBusy()
	return s.busy.Load() == nil && g.LockUnless(busy, s.server.Keyspace, shards, now)
}

// atEnd registers do to run at the end of the script that has made the server busy. It reports whether there is such
// a script.
func (s *Scripts) atEnd(do func(g *engine.Guard, written bool)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.runs || !s.slow {
		return false
	}
	s.atItsEnd = append(s.atItsEnd, do)
	return true
}

// Expect must be called before shards are locked. A script may run if they are all shards.
func (s *Scripts) Expect(shards uint64) {
	if shards == engine.AllShards && !s.used.Load() {
		s.used.Store(true)
	}
}

// nextBusy returns a channel that is closed when a script next makes the server busy.
func (s *Scripts) nextBusy() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.becomesBusy == nil {
		s.becomesBusy = make(chan struct{})
	}
	return s.becomesBusy
}

// Stop ends running scripts soon, because the server closes.
func (s *Scripts) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
}

// MayWrite reports whether the script may call its first write command. From then on the script cannot be killed.
func (s *Scripts) MayWrite() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote = s.wrote || !s.interrupt.Stopped()
	return s.wrote
}

// kill stops the running script or function, or returns the error if it cannot.
func (s *Scripts) kill(function bool) command.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.runs:
		return errNotBusy
	case s.wrote:
		return errUnkillable
	case (s.current.Function != "") != function:
		return s.current.busyAnswer()
	}
	s.interrupt.Stop(killedByUser) // Redis has the same text for functions
	s.busy.Store(nil)              // it ends at once: new commands wait for its end
	return ""
}

// function returns the name, the command and the running time of the running function.
func (s *Scripts) function() (name string, args [][]byte, ran time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.runs || s.current.Function == "" {
		return "", nil, 0, false
	}
	for _, arg := range s.current.Args {
		args = append(args, bytes.Clone(arg))
	}
	return s.current.Function, args, s.now() - s.began, true
}

// Busy returns the error for clients while a script runs for too long; "" if none does.
func (s *Scripts) Busy() command.Error {
	if answer := s.busy.Load(); answer != nil {
		return *answer
	}
	return ""
}

// Refusal returns the error for a command while a script has been running for too long; "" if the command may run.
func (s *Scripts) Refusal(cmd *command.Command) command.Error {
	if answer := s.busy.Load(); answer != nil && cmd.Flags&command.AllowBusy == 0 {
		return *answer
	}
	return ""
}
