package scripting

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Interrupt lets other goroutines stop or pause the running script of an engine. The interpreter looks at it before
// each instruction, and library functions that may run long look at it now and then. No script can catch being stopped:
// the next instruction raises the error again, until the script has ended.
type Interrupt struct {
	state atomic.Uint32

	mu  sync.Mutex // held while the script is paused
	why string     // written before state becomes stopped
}

const (
	running uint32 = iota
	held
	stopped
)

// Reset makes the interrupt ready for another script. No script may be running. A call of Hold that was meant for the
// last script ends first.
func (in *Interrupt) Reset() {
	in.mu.Lock()
	in.state.Store(running)
	in.mu.Unlock()
}

// Stop ends the script with an error whose text is why. It does nothing if the script was already stopped.
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

// Hold pauses the script while fn runs, and then stops it if fn returns an error. A script inside a command or library
// function continues to the end of it.
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

// stops is Stopped for the script itself; a paused script waits here.
func (in *Interrupt) stops() bool {
	if in.state.Load() == running {
		return false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.state.Load() == stopped
}

// errStopped is the panic value of conversions, which run outside of the interpreter, when the script must stop.
var errStopped = errors.New("the script has been stopped")

// vmContext is how the interpreter asks whether it may continue: its main loop looks at a thread's context before each
// instruction. All threads of a virtual machine share this context, so that while the script runs Done is only the load
// of a word.
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

// effort bounds how long a library function runs without looking at the interrupt.
type effort struct{ spent int }

// effortLimit is the number of steps, each about as long as the comparison of two bytes, between two looks.
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

// withoutContext calls fn, which creates threads and runs nothing. Otherwise each thread would get its own context
// derived from that of L, which nobody cancels.
func (m *vm) withoutContext(L *lua.LState, fn func()) {
	L.RemoveContext()
	defer L.SetContext((*vmContext)(m))
	fn()
}
