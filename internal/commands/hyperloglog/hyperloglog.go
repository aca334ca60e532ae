// Package hyperloglog has the commands on HyperLogLogs, which are strings of a certain form.
package hyperloglog

import (
	"strconv"
	"sync"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hyperloglog"
	"github.com/atomredis/atomredis/internal/command"
)

func init() { command.Register(hyperloglogCommands) }

var hyperloglogCommands = []*command.Command{
	{Name: "pfadd", Group: "hyperloglog", Since: "2.8.9", Arity: -2, Flags: command.Write | command.DenyOOM | command.Fast,
		ACL: command.CatHyperLogLog, Keys: command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Adds elements to a HyperLogLog", Syntax: "key [element [element ...]]",
		Complexity: "O(1) for each element", Do: cmdPfadd},
	{Name: "pfcount", Group: "hyperloglog", Since: "2.8.9", Arity: -2, Flags: command.ReadOnly | command.MayReplicate,
		ACL: command.CatHyperLogLog, Keys: command.Keys("i1+r-1/1/0[RW,ACCESS]"),
		Summary: "Estimates how many different elements HyperLogLogs have", Syntax: "key [key ...]",
		Complexity: "O(1) for a single key that has not changed since the last time; else O(N), where N is the number of keys, with a large constant", Do: cmdPfcount},
	{Name: "pfdebug", Group: "hyperloglog", Since: "2.8.9", Arity: 3,
		Flags: command.Write | command.DenyOOM | command.Admin,
		ACL:   command.CatHyperLogLog, Keys: command.Keys("i2+r0/1/0[RW,ACCESS]"),
		Summary: "Shows the registers of a HyperLogLog, or changes its encoding",
		Syntax:  "subcommand key", Complexity: "O(1)", Do: cmdPfdebug},
	{Name: "pfmerge", Group: "hyperloglog", Since: "2.8.9", Arity: -2, Flags: command.Write | command.DenyOOM,
		ACL: command.CatHyperLogLog, Keys: command.Keys("i1+r0/1/0[RW,ACCESS,INSERT] i2+r-1/1/0[RO,ACCESS]"),
		Summary: "Merges HyperLogLogs into one", Syntax: "destkey [sourcekey [sourcekey ...]]",
		Complexity: "O(N), where N is the number of keys, with a large constant", Do: cmdPfmerge},
	{Name: "pfselftest", Group: "hyperloglog", Since: "2.8.9", Arity: 1, Flags: command.Admin, ACL: command.CatHyperLogLog,
		Summary: "Tests the HyperLogLog code", Complexity: "O(1), with a very large constant", Do: cmdPfselftest},
}

const (
	errNoHyperLogLog        command.Error = "WRONGTYPE Key is not a valid HyperLogLog string value."
	errCorruptedHyperLogLog command.Error = "INVALIDOBJ Corrupted HLL object detected"
	errPfdebugNoKey         command.Error = "ERR The specified key does not exist"
	errPfdebugSIMD          command.Error = "ERR Argument must be ON or OFF"
	errPfdebugDense         command.Error = "ERR HLL encoding is not sparse"
)

// aHyperLogLog reports whether e is nil or holds a HyperLogLog; if not, it writes an error.
func aHyperLogLog(c *command.Ctx, e *engine.Entry) bool {
	switch {
	case e == nil:
	case e.Type() != engine.String:
		c.Err(command.ErrWrongType)
		return false
	case !hyperloglog.Is(e.Bytes()):
		c.Err(errNoHyperLogLog)
		return false
	}
	return true
}

type sparseRoom [3072]byte

// sparseRooms has buffers in which sparse HyperLogLogs are edited, large enough for the default of
// hll-sparse-max-bytes.
var sparseRooms = sync.Pool{New: func() any { return new(sparseRoom) }}

// editHyperLogLog returns an editor of the HyperLogLog in e, or of a new one if that is nil. Dense ones are changed
// in place, sparse ones in room.
func editHyperLogLog(c *command.Ctx, e *engine.Entry, room []byte) hyperloglog.Editor {
	maxSparse := c.Host.HyperLogLogSparse()
	switch {
	case e == nil:
		return hyperloglog.Edit(hyperloglog.Append(room), maxSparse)
	case hyperloglog.IsDense(e.Bytes()):
		return hyperloglog.Edit(e.Resize(len(e.Bytes())), maxSparse)
	}
	return hyperloglog.Edit(append(room, e.Bytes()...), maxSparse)
}

// keepHyperLogLog stores the edited value in e, or in a new entry under the key if e is nil.
func keepHyperLogLog(c *command.Ctx, e *engine.Entry, key, edited []byte) *engine.Entry {
	if e == nil {
		e = c.G.CreateString(c.DB, key, edited)
	} else if b := e.Bytes(); &b[0] != &edited[0] {
		e.SetBytes(edited)
	}
	e.SetStringForm(engine.FormRaw)
	return e
}

func cmdPfadd(c *command.Ctx) {
	key := c.Args[1]
	e := c.G.Write(c.DB, key)
	if !aHyperLogLog(c, e) {
		return
	}
	room := sparseRooms.Get().(*sparseRoom)
	defer sparseRooms.Put(room)
	edit := editHyperLogLog(c, e, room[:0])
	var err error
	for _, element := range c.Args[2:] {
		if err = edit.Add(element); err != nil {
			break
		}
	}
	changed := edit.Changed() || e == nil
	if changed && err == nil {
		hyperloglog.Outdate(edit.Bytes())
	}
	if changed {
		e = keepHyperLogLog(c, e, key, edit.Bytes())
	}
	switch {
	case err != nil:
		if changed { // as in Redis, elements added before the error stay, without an event
			c.G.ChangedBookkeeping(e, 0, "")
		}
		c.Err(errCorruptedHyperLogLog)
	case changed:
		c.G.Changed(e, engine.EventString, "pfadd")
		c.W.Int(1)
	default:
		c.W.Int(0)
	}
}

func cmdPfcount(c *command.Ctx) {
	if len(c.Args) > 2 {
		var union hyperloglog.Registers
		if _, ok := mergedRegisters(c, &union, c.Args[1:]); ok {
			c.W.Int(int64(union.Count()))
		}
		return
	}
	key := c.Args[1]
	e := c.Read(key)
	switch {
	case !aHyperLogLog(c, e):
		return
	case e == nil:
		c.W.Int(0)
		return
	}
	n, ok := hyperloglog.Estimate(e.Bytes())
	if !ok {
		var err error
		if n, err = hyperloglog.Count(e.Bytes()); err != nil {
			c.Err(errCorruptedHyperLogLog)
			return
		}
		keepEstimate(c, key, n)
	}
	c.W.Int(int64(n))
}

// keepEstimate stores the estimate of the HyperLogLog under a key, unless writes are forbidden now. Replies do not
// depend on it.
func keepEstimate(c *command.Ctx, key []byte, n uint64) {
	if !c.Host.Writable(c.G) {
		return
	}
	e := c.G.Write(c.DB, key)
	b := e.Resize(len(e.Bytes()))
	hyperloglog.SetEstimate(b, n)
	c.G.Changed(e, 0, "")
	// PFCOUNT is no write command, so the journal gets one that is.
	at, estimate := hyperloglog.EstimateBytes(b)
	c.Journal([]byte("SETRANGE"), key, strconv.AppendInt(nil, int64(at), 10), estimate)
}

// mergedRegisters merges the registers of the HyperLogLogs under keys into all; anyDense says that not all of them
// are sparse. If a key holds another value, it writes an error and ok is false.
func mergedRegisters(c *command.Ctx, all *hyperloglog.Registers, keys [][]byte) (anyDense, ok bool) {
	for _, key := range keys {
		e := c.Read(key)
		if !aHyperLogLog(c, e) {
			return false, false
		}
		if e == nil {
			continue
		}
		anyDense = anyDense || hyperloglog.IsDense(e.Bytes())
		if all.Merge(e.Bytes()) != nil {
			c.Err(errCorruptedHyperLogLog)
			return false, false
		}
	}
	return anyDense, true
}

func cmdPfmerge(c *command.Ctx) {
	key := c.Args[1]
	var all hyperloglog.Registers
	anyDense, ok := mergedRegisters(c, &all, c.Args[1:])
	if !ok {
		return
	}
	e := c.G.Write(c.DB, key)
	room := sparseRooms.Get().(*sparseRoom)
	defer sparseRooms.Put(room)
	edit := editHyperLogLog(c, e, room[:0])
	if anyDense && edit.Densify() != nil || edit.Raise(&all) != nil {
		c.Err(errCorruptedHyperLogLog)
		return
	}
	hyperloglog.Outdate(edit.Bytes())
	e = keepHyperLogLog(c, e, key, edit.Bytes())
	c.G.Changed(e, engine.EventString, "pfadd")
	c.W.OK()
}

func cmdPfdebug(c *command.Ctx) {
	if command.EqualFold(c.Args[1], "simd") {
		pfdebugSIMD(c)
		return
	}
	e := c.G.Write(c.DB, c.Args[2])
	switch {
	case e == nil:
		c.Err(errPfdebugNoKey)
		return
	case !aHyperLogLog(c, e):
		return
	}
	switch sub := c.Args[1]; {
	case command.EqualFold(sub, "getreg"):
		if _, ok := densify(c, e); !ok {
			return
		}
		var all hyperloglog.Registers
		if all.Merge(e.Bytes()) != nil {
			c.Err(errCorruptedHyperLogLog)
			return
		}
		c.W.Array(len(all))
		for _, rank := range all {
			c.W.Int(int64(rank))
		}
	case command.EqualFold(sub, "decode"):
		if hyperloglog.IsDense(e.Bytes()) {
			c.Err(errPfdebugDense)
			return
		}
		c.W.Bulk(hyperloglog.AppendRuns(nil, e.Bytes()))
	case command.EqualFold(sub, "encoding"):
		c.W.Simple(hyperloglog.Encoding(e.Bytes()))
	case command.EqualFold(sub, "todense"):
		if converted, ok := densify(c, e); ok {
			c.W.Int(converted)
		}
	default:
		c.Err(command.Error("ERR Unknown PFDEBUG subcommand '" + string(command.UntilNUL(sub)) + "'"))
	}
}

// pfdebugSIMD does nothing: there is only one way to merge.
func pfdebugSIMD(c *command.Ctx) {
	if how := c.Args[2]; !command.EqualFold(how, "on") && !command.EqualFold(how, "off") {
		c.Err(errPfdebugSIMD)
		return
	}
	c.W.Simple("disabled")
}

// densify makes a HyperLogLog dense and returns 1 if it was sparse; if it is corrupted, it writes an error and ok is
// false. As in Redis, WATCH and events ignore this change.
func densify(c *command.Ctx, e *engine.Entry) (converted int64, ok bool) {
	if hyperloglog.IsDense(e.Bytes()) {
		return 0, true
	}
	edit := hyperloglog.Edit(e.Bytes(), 0)
	if edit.Densify() != nil {
		c.Err(errCorruptedHyperLogLog)
		return 0, false
	}
	keepHyperLogLog(c, e, nil, edit.Bytes())
	c.G.ChangedBookkeeping(e, 0, "")
	return 1, true
}

func cmdPfselftest(c *command.Ctx) {
	if err := hyperloglog.SelfTest(); err != nil {
		c.Err(command.Error("TESTFAILED " + err.Error()))
		return
	}
	c.W.OK()
}
