package keys

import (
	"errors"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist/rdb"
)

// This file has DUMP and RESTORE. A payload is always checked completely, so sanitize-dump-payload has no effect.

func init() { command.Register(dumpCommands) }

var dumpCommands = []*command.Command{
	{Name: "dump", Group: "generic", Since: "2.6.0", Arity: 2, Flags: command.ReadOnly, ACL: command.CatKeyspace,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Serializes a value for RESTORE", Syntax: "key",
		Complexity: "O(N), where N is the number of elements of the value", Do: cmdDump},
	{Name: "restore", Group: "generic", Since: "2.6.0", Arity: -4, Flags: command.Write | command.DenyOOM,
		ACL: command.CatKeyspace | command.CatDangerous, Keys: command.Keys("i1+r0/1/0[OW,UPDATE]"),
		Summary: "Creates a key from the output of DUMP",
		Syntax:  restoreSyntax, Complexity: restoreComplexity, Do: cmdRestore},
	{Name: "restore-asking", Group: "server", Since: "3.0.0", Arity: -4,
		Flags: command.Write | command.DenyOOM | command.Asking,
		ACL:   command.CatKeyspace | command.CatDangerous, Keys: command.Keys("i1+r0/1/0[OW,UPDATE]"),
		Summary: "RESTORE as cluster nodes send it to each other",
		Syntax:  restoreSyntax, Complexity: restoreComplexity, Do: cmdRestore},
}

const (
	restoreSyntax     = "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]"
	restoreComplexity = "O(N), where N is the number of elements of the value; O(N*log(N)) for a sorted set"
)

const (
	errIdleTime   command.Error = "ERR Invalid IDLETIME value, must be >= 0"
	errFrequency  command.Error = "ERR Invalid FREQ value, must be >= 0 and <= 255"
	errRestoreTTL command.Error = "ERR Invalid TTL value, must be >= 0"
	errBusyKey    command.Error = "BUSYKEY Target key name already exists."
	errBadData    command.Error = "ERR Bad data format"
)

func cmdDump(c *command.Ctx) {
	e := c.Look(c.Args[1], false)
	if e == nil {
		c.W.Null()
		return
	}
	long(c, e)
	payload, err := rdb.DumpAlone(e)
	if err != nil {
		c.Err(command.Error("ERR " + err.Error()))
		return
	}
	c.W.Bulk(payload)
}

// payloadElement is about how many bytes a small element takes in a payload.
const payloadElement = 16

// restored returns the value of the payload, or the error to reply with.
func restored(c *command.Ctx) any {
	limits := c.Host.RDBLimits()
	// The checksum may have been skipped when the command was accepted.
	limits.SkipChecksum = limits.SkipChecksum || c.Origin.In(command.Accepted)
	value, err := rdb.Restore(c.Args[3], limits)
	switch {
	case errors.Is(err, rdb.ErrChecksum):
		return command.ErrPayload
	case err != nil:
		return errBadData
	}
	return value
}

func cmdRestore(c *command.Ctx) {
	replace, absolute := false, false
	idle, frequency := int64(-1), int64(-1)
	for o := c.Options(4); o.Next(); {
		var ok bool
		switch {
		case o.Is("replace"):
			replace = true
		case o.Is("absttl"):
			absolute = true
		case o.Is("idletime") && o.More() && frequency == -1:
			if idle, ok = c.Int(o.Arg()); !ok {
				return
			}
			if idle < 0 {
				c.Err(errIdleTime)
				return
			}
		case o.Is("freq") && o.More() && idle == -1:
			if frequency, ok = c.Int(o.Arg()); !ok {
				return
			}
			if frequency < 0 || frequency > 255 {
				c.Err(errFrequency)
				return
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	key := c.Args[1]
	old := c.G.Write(c.DB, key)
	if old != nil && !replace {
		c.Err(errBusyKey)
		return
	}
	ttl, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	if ttl < 0 {
		c.Err(errRestoreTTL)
		return
	}
	if n := len(c.Args[3]); rdb.HoldsString(c.Args[3]) {
		c.LongBytes(n)
	} else {
		c.Long(n/payloadElement, 0)
	}
	value := command.Result(c, func() any { return restored(c) })
	c.Host.PayloadChecked()
	if err, ok := value.(command.Error); ok {
		c.Err(err)
		return
	}
	if ttl > 0 && !absolute {
		ttl += c.Now()
	}
	c.W.OK()
	if ttl != 0 && c.Over(ttl) { // the key would expire at once
		if old != nil {
			c.G.Remove(old, engine.EventGeneric, "del")
			c.JournalDelete(key)
		}
		c.G.NeverCame(key)
		return
	}
	blessed := false
	if old != nil {
		blessed = old.Blessed()
		c.G.Remove(old, engine.EventNone, "")
	}
	e := rdb.Create(c.G, c.DB, key, value)
	c.G.SetDeadline(e, ttl)
	c.G.Bless(e, blessed)
	if idle >= 0 {
		c.G.SetIdleTime(e, idle)
	}
	if frequency >= 0 {
		c.G.SetFrequency(e, int(frequency))
	}
	c.G.Changed(e, engine.EventGeneric, "restore")
	if old != nil {
		c.G.Overwritten(e, old.Type(), e.Type())
	}
	if ttl != 0 && !absolute {
		args := append([][]byte{c.Args[0], key, strconv.AppendInt(nil, ttl, 10)}, c.Args[3:]...)
		c.Journal(append(args, []byte("ABSTTL"))...)
	}
}
