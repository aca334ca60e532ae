package pressure

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
)

// This file has PRESSURE.PEEK and PRESSURE.PURGE.

// state is where a message of a queue can be.
type state int

const (
	stateReady state = iota
	stateDelayed
	stateReserved
	stateDead
	numberOfStates
)

var stateWords = [numberOfStates]string{"ready", "delayed", "reserved", "dead"}

// state reads the option STATE; if it is wrong, it writes an error and ok is false.
func (a *pressureArgs) state(c *command.Ctx, otherwise state) (s state, ok bool) {
	v := a.option(optState)
	if v == nil {
		return otherwise, true
	}
	for s, word := range stateWords {
		if command.EqualFold(v, word) {
			return state(s), true
		}
	}
	c.Err(command.ErrSyntax)
	return 0, false
}

// peeked is a message of a queue with what is known of it.
type peeked struct {
	heldMessage
	id []byte // nil for one in the list
	at int64  // when it comes due or back, or when it died
}

// defaultPeek is how many messages PRESSURE.PEEK shows.
const defaultPeek = 10

func cmdPressurePeek(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressurePeek)
	if !ok {
		return
	}
	s, ok := a.state(c, stateReady)
	if !ok {
		return
	}
	count := int64(defaultPeek)
	if v := a.option(optCount); v != nil {
		if count, ok = c.IntIn(v, 1, math.MaxInt64, command.ErrCountPositive); !ok {
			return
		}
	}
	q := queueOf(c, a)
	if !q.open() {
		return
	}
	limit, w := q.policy().limit, c.W
	messages := q.messages(s, count)
	w.Array(len(messages))
	for _, m := range messages {
		w.Map(7)
		w.BulkString("id")
		if m.id == nil {
			w.Null()
		} else {
			w.Bulk(m.id)
		}
		w.BulkString("message")
		w.Bulk(m.message)
		w.BulkString("at")
		if m.id == nil {
			w.Null()
		} else {
			w.Int(m.at)
		}
		w.BulkString("attempts")
		w.Int(m.attempts)
		w.BulkString("limit")
		w.Int(cmp.Or(m.limit, limit))
		w.BulkString("priority")
		w.Int(m.priority)
		w.BulkString("reason")
		if s == stateDead {
			w.Bulk(m.reason)
		} else {
			w.Null()
		}
	}
}

// messages returns the first messages of a state, in the order in which they leave it. They are valid until the keys
// change.
func (q *pressureQueue) messages(s state, count int64) (all []peeked) {
	switch s {
	case stateReady:
		return q.readyMessages(count)
	case stateDelayed, stateDead:
		set := qDelayed
		if s == stateDead {
			set = qDead
		}
		z := effect.ZSet(q.c, q.keys[set])
		if z == nil {
			return nil
		}
		for i := range min(int64(z.Len()), count) {
			id, score := z.At(int(i))
			h, _ := q.held(id)
			all = append(all, peeked{h, bytes.Clone(id), timeOf(score)})
		}
	case stateReserved:
		h := effect.Hash(q.c, q.keys[qReserved])
		if h == nil {
			return nil
		}
		for id, v := range h.All() {
			deadline, _ := parseReserved(v)
			all = append(all, peeked{id: bytes.Clone(id), at: deadline})
		}
		slices.SortFunc(all, func(a, b peeked) int {
			return cmp.Or(cmp.Compare(a.at, b.at), parseReservedID(a.id).compare(parseReservedID(b.id)))
		})
		all = all[:min(int64(len(all)), count)]
		for i := range all {
			all[i].heldMessage = q.reservedMessageOf(all[i].id)
		}
	}
	return all
}

func (q *pressureQueue) readyMessages(count int64) (all []peeked) {
	e := q.peek(qMessages)
	if e == nil || e.Type() != engine.List {
		return nil
	}
	seen, noted := map[string]int64{}, q.has(qNotes)
	e.List().RangeReverse(0, e.List().Len()-1, func(v []byte) bool {
		p := peeked{heldMessage: heldMessage{message: bytes.Clone(v)}}
		if noted {
			field := digest(v)
			before := seen[string(field)]
			seen[string(field)]++
			for _, n := range q.notes(field) {
				if before < n.count {
					p.attributes = n.attributes
					break
				}
				before -= n.count
			}
		}
		all = append(all, p)
		return int64(len(all)) < count
	})
	return all
}

// cmdPressurePurge removes the messages of one state, or all that are not reserved.
func cmdPressurePurge(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressurePurge)
	if !ok {
		return
	}
	s, ok := a.state(c, numberOfStates)
	if !ok {
		return
	}
	if s == stateReserved {
		c.Err(errPurgeReserved)
		return
	}
	q := queueOf(c, a)
	if !q.open() {
		return
	}
	q.refresh()
	n := int64(0)
	if s == stateReady || s == numberOfStates {
		n += q.length()
		q.remove(qMessages)
		q.remove(qNotes)
	}
	if s == stateDelayed || s == numberOfStates {
		n += q.purge(qDelayed)
	}
	if s == stateDead || s == numberOfStates {
		n += q.purge(qDead)
	}
	if n > 0 {
		q.settleNotFull(true)
		q.wakeClosed()
	}
	c.W.Int(n)
}

// purge removes all messages of a sorted set.
func (q *pressureQueue) purge(set queueKey) int64 {
	z := effect.ZSet(q.c, q.keys[set])
	if z == nil {
		return 0
	}
	ids := make([][]byte, z.Len())
	for i := range ids {
		id, _ := z.At(i)
		ids[i] = bytes.Clone(id)
	}
	effect.HDel(q.c, q.keys[qHeld], ids...)
	q.remove(set)
	return int64(len(ids))
}
