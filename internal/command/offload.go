package command

import "iter"

// Commands that take long are offloaded. A handler that has much to do says so (Ctx.Long), before it has changed or
// written anything. Where the command can be offloaded the call ends there ([Retry]): the client waits, a view of the command's
// keys is taken, the guard is released, and a goroutine in the background calls the handler again, on a keyspace that has
// nothing but these keys. The reply of that call is the reply of a command that only reads. A value to store is computed
// in a function that the handler passes to Result. Then the handler is called a third time, under a guard of the client's.
// It gets the result if none of the keys that were read has changed meanwhile, and otherwise computes it again, at once.
//
// Where a reply need not be of one instant, as in the SCAN family (Command.InSteps), there is no view: the offloaded
// handler works on the keyspace itself, and releases its guard after each step (Offload.Unlock).
//
// A command that reads very many keys has no view either, because taking it costs time for each key. The offloaded
// handler goes through the keys in steps (LongKeys). Its reply is used if no key has changed before the last step.
//
// A command that takes no shards (its Flags are AllKeys and FollowsKeys) locks what it reads itself. It has no view either: the
// offloaded handler works on the server's keyspace, as it would in place, and its reply is used as it is. LongQuery says that
// such a command has much to compute.
//
// So a handler needs no more than these calls. A key that a command reads, and that writes another one, must be RO in its
// key specs. A command that changes values in place calls LongChange instead of Long: its view includes the keys that it
// writes, the offloaded handler changes the copies, and its Result says what becomes of them.

// LongFrom is how much work is long: about so many elements to go through, each of which takes a fraction of a
// microsecond.
const LongFrom = 16384

// LongQueryFrom is how many documents take a query as long: each has a score, or a place in an order or a group.
const LongQueryFrom = LongFrom / 2

// longBytes is how many bytes of strings take as long as an element.
const longBytes = 256

// Offload is what the handler of an offloaded command has, in the offloaded call and in the one that gets its result.
type Offload struct {
	// Keys are the names of all keys of the database, for an offloaded call of a command that declares no keys.
	Keys iter.Seq[string]
	// Unlock gives the guard of a command that is InSteps, or has called LongKeys, back between two steps, and after the
	// last. Lock takes it again; everything may have changed. It reports false if nobody wants the reply any more. They are
	// nil for other commands.
	Unlock func()
	Lock   func() bool
	// Changes says that the keyspace includes the keys that the command changes: the handler has called LongChange.
	Changes bool
	// Result is what Result has computed; nil if it has not.
	Result any
	// Done says that the handler is called for the last time.
	Done bool
	// Unwanted is closed when nobody wants the reply any more. It is nil for commands that have a view.
	Unwanted <-chan struct{}
}

// Wanted reports whether somebody still wants the reply: the client has not gone, and has not been killed. Handlers that have
// called LongQuery ask it now and then, and end soon when it reports false; what they reply then does not matter.
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

// Long must be called before work on n elements, of values with so many elements: to take a view of these takes time
// for all of them, which is worth it only if n is not much less. It does not return if the command is offloaded.
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

// Way is how a command is offloaded.
type Way uint8

const (
	OnView     Way = iota // on a view of the keys that it reads; one that is InSteps on the keyspace itself
	OnCopies              // on a view of all its keys, which it changes
	OnKeys                // on the keyspace itself, if none of its keys changes
	OnOwnLocks            // on the keyspace itself, with locks that the handler takes
)

func isLong(n, of int) bool { return n >= LongFrom && n >= of/longShare }

// longShare is the part of values that a command must go through to be offloaded.
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

// stepBatches is how many batches of keys are read under each lock: their values take some ten microseconds, and the locks of
// all shards about one.
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

// Result returns what compute returns, which the command will store. It may have been computed by an offloaded call,
// where Result does not return.
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
