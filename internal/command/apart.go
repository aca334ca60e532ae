package command

import "iter"

// Commands that take long. A handler that finds that it has much to do says so (Ctx.Long), before it has changed or
// written anything. Where that is possible it ends there: the client waits, a view of the command's keys is taken, the
// guard is given back, and the handler is called again apart: by a goroutine in the background, on a keyspace that has
// nothing but these keys. Of a command that only reads that gives the reply. What a command wants to store it computes
// in a function that it gives to Result; the handler is called a third time, under a guard of the client's, and gets the
// result if nothing that it was made of has changed meanwhile. Otherwise it computes it again, at once.
//
// Where a reply need not be of one instant, as in the SCAN family (Command.InSteps), there is no view: the handler runs
// apart on the keyspace itself, and gives its guard back after each step (Apart.Unlock).
//
// A command that reads very many keys has no view either, because that would take time for each of them. It goes through
// them apart in steps (LongKeys), and its reply counts if none of them has changed before the last one.
//
// So a handler needs no more than these calls, and what a command reads that also writes must be keys of which its key
// specs say RO. A command that changes values in place calls LongChange instead of Long: its view includes the keys that it
// writes, the handler changes the copies apart, and its Result has what becomes of them.

// LongFrom is how much work is long: about so many elements to go through, each of which takes a fraction of a
// microsecond.
const LongFrom = 16384

// longBytes is how many bytes of strings take as long as an element.
const longBytes = 256

// Apart is what a handler has that runs apart, or has run so.
type Apart struct {
	// Keys are the names of all keys of the database, for a command that declares no keys, while it runs apart.
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
}

// Long must be called before work on n elements, of values with so many elements: to take a view of these takes time
// for all of them, which is worth it only if n is not much less. It does not return if the command is to run apart.
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

// Way is how a command runs apart.
type Way uint8

const (
	OnView   Way = iota // on a view of the keys that it reads; one that is InSteps on the keyspace itself
	OnCopies            // on a view of all its keys, which it changes
	OnKeys              // on the keyspace itself, if none of its keys changes
)

func isLong(n, of int) bool { return n >= LongFrom && n >= of/longShare }

// longShare is the part of values that a command must go through to run apart.
const longShare = 16

// LongBytes is Long for work on n bytes of strings.
func (c *Ctx) LongBytes(n int) {
	if n >= LongFrom*longBytes {
		c.long(OnView)
	}
}

func (c *Ctx) long(way Way) {
	if c.Origin == FromClient && !c.NoBlock && c.Apart == nil && c.Client != nil {
		c.Client.RunApart(c, way)
	}
}

// stepBatches is how many batches of keys are read under each lock: their values take some ten microseconds, and the locks of
// all shards about one.
const stepBatches = 8

// nextKeys ends a step of a command that goes through many keys.
func (c *Ctx) nextKeys() {
	if a := c.Apart; a != nil && a.Unlock != nil {
		a.Unlock()
		if !a.Lock() {
			panic(Computed{})
		}
	}
}

// Result returns what compute returns, which the command will store. It may have been computed before, apart; there it
// does not return.
func Result[T any](c *Ctx, compute func() T) T {
	switch a := c.Apart; {
	case a == nil:
		return compute()
	case a.Done:
		return a.Result.(T)
	default:
		a.Result = compute()
		panic(Computed{})
	}
}

// Computed is what ends a handler that runs apart when it has done its work, or when nobody wants that any more.
type Computed struct{}
