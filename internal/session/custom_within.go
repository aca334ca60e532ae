package session

import (
	"reflect"
	"runtime"
	"sync/atomic"
)

// This file detects that the calling goroutine is executing the handler of a custom command, so that a handler which
// uses the server from outside gets an error instead of waiting for itself. Goroutines have no accessible IDs, so
// the server's number is written into the stack: a handler is called through a chain of functions, one for each bit
// of the number, and within reads it from the stack. This costs time only while a handler runs.

// handlers counts the handlers of a server that are running.
type handlers struct {
	number  uint32 // of the server, from 1 on
	running atomic.Int32
}

// serverNumbers is the number of the last server.
var serverNumbers atomic.Uint32

// call calls f, a handler.
//
//go:noinline
func (h *handlers) call(f func()) {
	h.running.Add(1)
	defer h.running.Add(-1)
	callFrom(h.number, f)
}

// callFrom calls f from functions that stand for the bits of the number, the lowest bit first.
func callFrom(number uint32, f func()) {
	switch {
	case number == 0:
		f()
	case number&1 == 0:
		zero(number>>1, f)
	default:
		one(number>>1, f)
	}
}

//go:noinline
func zero(rest uint32, f func()) { callFrom(rest, f) }

//go:noinline
func one(rest uint32, f func()) { callFrom(rest, f) }

// The functions that stand for bits, and the one that begins a number.
var (
	zeroEntry = reflect.ValueOf(zero).Pointer()
	oneEntry  = reflect.ValueOf(one).Pointer()
	callEntry = reflect.ValueOf((*handlers).call).Pointer()
)

// within reports whether the calling goroutine is executing a handler of the server.
func (h *handlers) within() bool {
	if h.running.Load() == 0 {
		return false
	}
	var pcs [64]uintptr
	number := uint32(0) // its bits are found from the highest on
	for skip := 1; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		frames := runtime.CallersFrames(pcs[:n])
		for more := n > 0; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if f.Func == nil {
				continue // an inlined function, so none of those below
			}
			switch f.Func.Entry() {
			case zeroEntry:
				number <<= 1
			case oneEntry:
				number = number<<1 | 1
			case callEntry:
				if number == h.number {
					return true
				}
				number = 0
			}
		}
		if n < len(pcs) {
			return false
		}
	}
}
