package command

import "github.com/atomredis/atomredis/engine"

// A call of a handler may end early. If the handler cannot continue, the call ends by a panic with a [Retry], and
// the handler is called again from its start later:
//
//	reason          why the call ends                           when the handler is called again
//	RetryAway       it reads a value that is not in memory      the value has been read from the store
//	RetryOffloaded  it has much to do (Ctx.Long)                at once by a goroutine of its own, or when there is a
//	                                                            place for one; then by the client, with the result
//	RetryComputed   the offloaded call has its result (Result)  by the client, with the result
//
// Handlers need no code for this, because a call ends early only before it has changed anything: engine.Guard.OnAway
// and Ctx.Long ensure that. Its output is dropped. A handler that recovers from panics must pass a Retry on.
//
// Only this file panics with a Retry. The two functions that call handlers recover it: Session.run for a client, and
// offload.compute, which has a goroutine of its own; both ask EndedEarly. A panic with anything else is a bug, or a
// stored value that cannot be read (engine.LoadError).

// Retry says why a call of a handler has ended early. The zero value says that it has not.
type Retry struct {
	Reason RetryReason
	Away   *engine.Away // the value, if it is one that is not in memory
}

// RetryReason is why a call of a handler has ended early.
type RetryReason uint8

// The reasons. 0 stands for no reason.
const (
	RetryAway RetryReason = 1 + iota
	RetryOffloaded
	RetryComputed
)

// EndedEarly returns why a call that panicked with p has ended early; ok is false if p is not a Retry.
func EndedEarly(p any) (retry Retry, ok bool) {
	retry, ok = p.(Retry)
	return retry, ok
}

// AwaitValue ends the call of a handler that needs a value which is not in memory. It is for engine.Guard.OnAway.
func AwaitValue(a *engine.Away) { panic(Retry{Reason: RetryAway, Away: a}) }

// offloaded ends the call of a handler whose command is offloaded.
func offloaded() { panic(Retry{Reason: RetryOffloaded}) }

// computed ends an offloaded call that has its result, or whose result nobody wants any more.
func computed() { panic(Retry{Reason: RetryComputed}) }
