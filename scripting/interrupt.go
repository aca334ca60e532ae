package scripting

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Interrupt is how other goroutines stop the running script of an engine, or hold it up. The interpreter looks at it
// before each instruction, and library functions that may run long do so now and then. No script can catch being
// stopped: the next instruction that it executes raises the error again, until it is out.
type Interrupt struct {
	state atomic.Uint32

	mu  sync.Mutex // held while the script is held up
	why string     // written before state becomes stopped
}

const (
	running uint32 = iota
	held
	stopped
)

// Reset makes the interrupt ready for another script. No script may be running. A call of Hold that was meant for the
// last one ends first.
func (in *Interrupt) Reset() {
	in.mu.Lock()
	in.state.Store(running)
	in.mu.Unlock()
}

// Stop ends the script with an error whose text is why. It does nothing if the script has been stopped before.
func (in *Interrupt) Stop(why string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.state.Load() != stopped {
		in.why = why
		in.state.Store(stopped)
	}
}

// Stopped reports whether Stop has been called since Reset.
func (in *Interrupt) Stopped() bool { return in.state.Load() == stopped }

// Hold has the script wait while fn runs, and then stops it with the error that fn returns, if it is not nil. A
// script that is inside a command or library function goes on to the end of it.
func (in *Interrupt) Hold(fn func() error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.state.Load() == stopped {
		return
	}
	in.state.Store(held)
	if err := fn(); err != nil {
		in.why = err.Error()
		in.state.Store(stopped)
		return
	}
	in.state.Store(running)
}

// stops is Stopped for the script itself, which waits here if it is held up.
func (in *Interrupt) stops() bool {
	if in.state.Load() == running {
		return false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.state.Load() == stopped
}

// errStopped is what conversions panic with, which run outside of the interpreter, if the script must stop.
var errStopped = errors.New("the script has been stopped")

// vmContext is how the interpreter asks whether it may go on: its main loop looks at the context of a thread before
// each instruction. Every thread of a virtual machine has this very context, so that Done, as long as the script
// runs, is no more than the load of a word.
type vmContext vm

// Done returns a channel only if the script must stop.
func (c *vmContext) Done() <-chan struct{} {
	if c.interrupt.state.Load() == running || !c.interrupt.stops() {
		return nil
	}
	return closedChannel
}

// Err returns why the script must stop.
func (c *vmContext) Err() error {
	if !c.interrupt.Stopped() {
		return nil
	}
	return errors.New(c.interrupt.why)
}

// Deadline implements context.Context.
func (c *vmContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context.
func (c *vmContext) Value(any) any { return nil }

var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// checkInterrupt raises an error if the script must stop. Library functions that may run long call it now and then.
func checkInterrupt(L *lua.LState) {
	if ctx := L.Context(); ctx.Done() != nil {
		L.RaiseError("%s", ctx.Err().Error())
	}
}

// effort bounds how long a library function goes on without a look at the interrupt.
type effort struct{ spent int }

// effortLimit is how many steps, each about as long as the comparison of two bytes, are taken between two looks.
const effortLimit = 1 << 14

// spend counts n steps.
func (e *effort) spend(L *lua.LState, n int) {
	if e.spent += n; e.spent >= effortLimit {
		e.spent = 0
		checkInterrupt(L)
	}
}

// newThread returns a thread whose interpreter looks at the interrupt.
func (m *vm) newThread(L *lua.LState) (th *lua.LState) {
	m.withoutContext(L, func() { th, _ = L.NewThread() })
	th.SetContext((*vmContext)(m))
	return th
}

// withoutContext calls fn, which creates threads and runs nothing: each would get a context of its own that is
// derived from that of L, and that nobody cancels.
func (m *vm) withoutContext(L *lua.LState, fn func()) {
	L.RemoveContext()
	defer L.SetContext((*vmContext)(m))
	fn()
}
