package command

import "iter"

// Commands that take long are offloaded. A handler with much work announces it (Ctx.Long), before it has changed or
// written anything. If the command can be offloaded, the call ends there ([Retry]). The session takes a view of the
// command's keys and releases the guard, and the client waits. A background goroutine calls the handler again, on a
// keyspace that has only these keys. If the command only reads, the reply of that call is its reply. If it stores a
// value, the handler passes a function that computes the value to Result. Then the handler is called a third time,
// under the client's guard. It gets the result if no key that was read has changed meanwhile; otherwise it computes
// the value again, at once.
//
// If a reply need not show one instant, as in the SCAN family (Command.InSteps), there is no view: the offloaded
// handler works on the keyspace itself, and releases its guard after each step (Offload.Unlock).
//
// A command that reads very many keys has no view either, because taking it costs time for each key. The offloaded
// handler goes through the keys in steps (LongKeys). Its reply is used if no key has changed before the last step.
//
// A command that takes no shards (its Flags are AllKeys and FollowsKeys) locks what it reads itself. It has no view
// either: the offloaded handler works on the server's keyspace, and its reply is used unchanged. Such a command
// announces much work with LongQuery.
//
// So a handler needs no more than these calls. A key that a command reads, and that writes another one, must be RO in its
// key specs. A command that changes values in place calls LongChange instead of Long: its view includes the keys that it
// writes, the offloaded handler changes the copies, and its Result says what becomes of them.

// LongFrom is the number of elements from which work is long. Each element takes a fraction of a microsecond.
const LongFrom = 16384

// LongQueryFrom is the number of documents from which a query is long: scoring, sorting or grouping each one takes
// longer.
const LongQueryFrom = LongFrom / 2

// longBytes is the number of bytes of strings that take as long as one element.
const longBytes = 256

// Offload is the state of an offloaded command for its handler, in the offloaded call and in the one that gets its
// result.
type Offload struct {
	// Keys are the names of all keys of the database, for an offloaded call of a command that declares no keys.
	Keys iter.Seq[string]
	// Unlock and Lock are for commands that are InSteps or have called LongKeys; otherwise they are nil. Unlock
	// releases the guard between two steps, and after the last. Lock takes it again; everything may have changed. It
	// returns false if the reply is no longer wanted.
	Unlock func()
	Lock   func() bool
	// Changes says that the keyspace includes the keys that the command changes: the handler has called LongChange.
	Changes bool
	// Result is what Result has computed; nil if it has not.
	Result any
	// Done says that the handler is called for the last time.
	Done bool
	// Unwanted is closed when the reply is no longer wanted. It is nil for commands that have a view.
	Unwanted <-chan struct{}
}

// Wanted reports whether the reply is still wanted: the client has not disconnected or been killed. Handlers that
// have called LongQuery ask now and then, and end soon after it returns false; their reply is dropped.
func (a *Offload) Wanted() bool {
	if a == nil {
		return true
	}
	select {
	case <-a.Unwanted:
		return false
	default:
		return true
	}
}

// Long must be called before work on n elements of values whose size is of. A view costs time for all elements of
// the values, so it pays only if n is not much smaller. Long does not return if the command is offloaded.
func (c *Ctx) Long(n, of int) {
	if isLong(n, of) {
		c.long(OnView)
	}
}

// LongChange is Long for a command that changes values in place.
func (c *Ctx) LongChange(n, of int) {
	if isLong(n, of) {
		c.long(OnCopies)
	}
}

// LongKeys must be called by a command that only reads before it goes through its n keys with WarmKeys.
func (c *Ctx) LongKeys(n int) {
	if n >= LongFrom {
		c.long(OnKeys)
	}
}

// LongQuery must be called by a command that takes no shards before it works on n documents. It must have changed nothing.
func (c *Ctx) LongQuery(n int) {
	if n >= LongQueryFrom {
		c.long(OnOwnLocks)
	}
}

// Way is a way to offload a command.
type Way uint8

const (
	OnView     Way = iota // on a view of the keys that it reads; if it is InSteps, on the keyspace itself
	OnCopies              // on a view of all its keys, which it changes
	OnKeys                // on the keyspace itself, if none of its keys changes
	OnOwnLocks            // on the keyspace itself, with locks that the handler takes
)

func isLong(n, of int) bool { return n >= LongFrom && n >= of/longShare }

// longShare: a command is offloaded only if it goes through at least 1/longShare of its values.
const longShare = 16

// LongBytes is Long for work on n bytes of strings.
func (c *Ctx) LongBytes(n int) {
	if n >= LongFrom*longBytes {
		c.long(OnView)
	}
}

func (c *Ctx) long(way Way) {
	if c.Origin == FromClient && !c.NoBlock && c.Offload == nil && c.Client != nil {
		if c.Client.Offload(c, way) {
			offloaded()
		}
	}
}

// stepBatches is the number of batches of keys that are read under each lock. Reading their values takes some ten
// microseconds, and locking all shards about one.
const stepBatches = 8

// nextKeys ends a step of a command that goes through many keys.
func (c *Ctx) nextKeys() {
	if a := c.Offload; a != nil && a.Unlock != nil {
		a.Unlock()
		if !a.Lock() {
			computed()
		}
	}
}

// Result returns what compute returns, which the command will store. An offloaded call may have computed it; in that
// call Result does not return.
func Result[T any](c *Ctx, compute func() T) (result T) {
	switch a := c.Offload; {
	case a == nil:
		result = compute()
	case a.Done:
		result = a.Result.(T)
	default:
		a.Result = compute()
		computed()
	}
	return result
}
