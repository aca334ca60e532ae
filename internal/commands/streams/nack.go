package streams

import (
	"fmt"
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/command"
)

// This file has XNACK, with which a consumer releases pending entries.

func init() { command.Register(nackCommands) }

var nackCommands = []*command.Command{
	{Name: "xnack", Group: "stream", Since: "8.8.0", Arity: -7, Flags: command.Write | command.Fast,
		ACL: command.CatStream, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary:    "Releases pending entries, for any consumer to claim",
		Syntax:     "key group <SILENT | FAIL | FATAL> <IDS numids id [id ...]> [RETRYCOUNT count] [FORCE]",
		Complexity: "O(1) for each entry", Do: cmdXnack},
}

const (
	errNackMode    command.Error = "ERR mode must be SILENT, FAIL, or FATAL"
	errNackNumIDs  command.Error = "ERR numids must be a positive integer"
	errNackTooFew  command.Error = "ERR number of IDs doesn't match numids"
	errNackNoIDs   command.Error = "ERR syntax error, expected IDS keyword"
	errNackRetries command.Error = "ERR Invalid RETRYCOUNT value, must be >= 0"
)

// How XNACK counts the delivery that has failed.
type nackMode uint8

const (
	nackSilent nackMode = iota // as if not delivered
	nackFail                   // as a delivery
	nackFatal                  // as the last of too many deliveries
)

// deliveries returns the new delivery count of an entry that was delivered n times.
func (m nackMode) deliveries(n int64) int64 {
	switch m {
	case nackSilent:
		return max(n-1, 0)
	case nackFatal:
		return math.MaxInt64
	}
	return n
}

// nack has the arguments of XNACK.
type nack struct {
	mode    nackMode
	ids     []streams.ID
	retries int64 // negative: not given
	force   bool
}

// parse reads the arguments; if they are wrong, it writes an error and ok is false.
func (n *nack) parse(c *command.Ctx) (ok bool) {
	switch {
	case command.EqualFold(c.Args[3], "silent"):
		n.mode = nackSilent
	case command.EqualFold(c.Args[3], "fail"):
		n.mode = nackFail
	case command.EqualFold(c.Args[3], "fatal"):
		n.mode = nackFatal
	default:
		c.Err(errNackMode)
		return false
	}
	n.retries = -1
	for o := c.Options(4); o.Next(); {
		switch {
		case o.Is("ids") && o.More() && n.ids == nil:
			count, ok := c.IntIn(o.Arg(), 1, math.MaxInt64, errNackNumIDs)
			if !ok {
				return false
			}
			if count > int64(o.Left()) {
				c.Err(errNackTooFew)
				return false
			}
			if n.ids, ok = streamIDs(c, nil, o.Rest()[:count]); !ok {
				return false
			}
			o.Skip(int(count))
		case o.Is("retrycount") && o.More():
			if n.retries, ok = c.Int(o.Arg()); !ok {
				return false
			}
			if n.retries < 0 {
				c.Err(errNackRetries)
				return false
			}
		case o.Is("force"):
			n.force = true
		default:
			c.Err(command.Error(fmt.Sprintf("ERR Unrecognized XNACK option '%s'", command.UntilNUL(o.Word()))))
			return false
		}
	}
	if n.ids == nil {
		c.Err(errNackNoIDs)
	}
	return n.ids != nil
}

func cmdXnack(c *command.Ctx) {
	var n nack
	if !n.parse(c) {
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.Stream)
	if !ok {
		return
	}
	g, ok := groupOf(c, e)
	if !ok {
		return
	}
	var s *streams.Stream
	if n.force {
		s = entriesNamed(e, n.ids).Stream()
	}
	released := int64(0)
	for _, id := range n.ids {
		pending, before := g.FindPending(id), int64(0)
		if pending == nil && (!n.force || !s.Has(id)) {
			continue
		}
		if pending != nil {
			before = pending.DeliveryCount
		}
		deliveries := n.mode.deliveries(before)
		if n.retries >= 0 {
			deliveries = n.retries
		}
		if pending != nil {
			g.Release(pending, deliveries)
		} else {
			g.AddReleased(id, deliveries)
		}
		released++
	}
	if released > 0 {
		c.G.ChangedBookkeeping(e, 0, "")
		c.G.Wake(e) // wakes clients that wait with CLAIM
	}
	c.W.Int(released)
}
