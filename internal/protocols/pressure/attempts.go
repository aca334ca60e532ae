package pressure

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
)

// A reserved message is an attempt. The attempt fails when its time is up, or with PRESSURE.FAIL. The message then
// comes back, at once or after a back-off, or it is dead after its last attempt. PRESSURE.RETURN gives a message back
// without an attempt.

const (
	// maxReason is how many bytes of a reason are kept.
	maxReason = 1024
	// maxBackoff is the longest back-off, in ms.
	maxBackoff = int64(24 * time.Hour / time.Millisecond)
	// maxDoublings is after how many doublings a back-off of 1 ms exceeds maxBackoff.
	maxDoublings = 27
)

// expired is the reason of messages that were not acknowledged in time.
var expired = []byte("not acknowledged in time")

// fate is what becomes of a message after a failed attempt.
type fate string

const (
	fateReady   fate = "READY"
	fateDelayed fate = "DELAYED"
	fateDead    fate = "DEAD"
)

// backoffAfter returns the ms before the next attempt after so many.
func backoffAfter(backoff, attempts int64) int64 {
	if backoff <= 0 {
		return 0
	}
	return min(min(backoff, maxBackoff)<<min(max(attempts-1, 0), maxDoublings), maxBackoff)
}

// reservedMessageOf returns a reserved message with what is known of it. It is valid until the hashes change.
func (q *pressureQueue) reservedMessageOf(id []byte) heldMessage {
	v, _ := effect.HGet(q.c, q.keys[qReserved], id)
	_, message := parseReserved(v)
	h, _ := q.held(id)
	h.message = message
	return h
}

// expire ends reservations whose time is up, in an order in which the oldest message is the first of the queue. A
// message without attributes in a queue without a policy just comes back.
func (q *pressureQueue) expire(ids [][]byte) {
	slices.SortFunc(ids, func(a, b []byte) int { return parseReservedID(b).compare(parseReservedID(a)) })
	policy, plain := q.policy(), [][]byte(nil)
	for _, id := range ids {
		if _, ok := q.held(id); ok || policy != (attributes{}) {
			q.fail(id, expired, -1)
		} else {
			plain = append(plain, id)
		}
	}
	q.giveBack(plain)
}

// fail ends an attempt. A delay that is not negative replaces the back-off.
func (q *pressureQueue) fail(id, reason []byte, delay int64) fate {
	h := q.reservedMessageOf(id)
	h.message, h.reason = bytes.Clone(h.message), reason
	h.attempts++
	policy, r := q.policy(), &q.service().reservations
	q.unreserve([][]byte{id})
	q.service().stats.count(q, q.c.Now(), statFailed, 1)
	if limit := cmp.Or(h.limit, policy.limit); limit > 0 && h.attempts >= limit {
		q.hold(qDead, id, q.c.Now(), &h)
		q.service().stats.count(q, q.c.Now(), statDead, 1)
		q.settleNotFull(true)
		return fateDead
	}
	r.countRedelivered(q.id(), 1)
	if delay < 0 {
		delay = backoffAfter(cmp.Or(h.backoff, policy.backoff), h.attempts)
	}
	if delay > 0 {
		at := q.c.Now() + delay
		q.hold(qDelayed, id, at, &h)
		r.Note(q.id(), at)
		return fateDelayed
	}
	effect.HDel(q.c, q.keys[qHeld], id)
	q.enqueueFirst(h)
	q.settleNotFull(false)
	return fateReady
}

// cmdPressureFail ends an attempt with a reason.
func cmdPressureFail(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressureFail)
	if !ok {
		return
	}
	if len(a.values) != 2 {
		c.Err(command.ErrSyntax)
		return
	}
	id, reason := a.values[0], a.values[1]
	delay := int64(-1)
	if v := a.option(optDelay); v != nil {
		if delay, ok = c.IntIn(v, 0, maxTime, errTime); !ok {
			return
		}
	}
	q := queueOf(c, a)
	if !q.open() {
		return
	}
	q.refresh()
	if !q.isReserved(id) {
		c.W.Null()
		return
	}
	c.W.Simple(string(q.fail(id, reason[:min(len(reason), maxReason)], delay)))
}

// cmdPressureExtend sets a new time for reserved messages.
func cmdPressureExtend(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressureAck)
	if !ok {
		return
	}
	if len(a.values) < 2 {
		c.Err(command.ErrSyntax)
		return
	}
	ms, ok := c.IntIn(a.values[0], 1, maxTime, errTime)
	if !ok {
		return
	}
	q := queueOf(c, a)
	if !q.open() {
		return
	}
	q.refresh()
	n, at, seen := int64(0), c.Now()+ms, map[string]struct{}{}
	for _, id := range a.values[1:] {
		if _, twice := seen[string(id)]; !twice && q.isReserved(id) {
			seen[string(id)] = struct{}{}
			n++
			q.reserve(id, appendReserved(nil, at, bytes.Clone(q.reservedMessageOf(id).message)))
		}
	}
	if n > 0 {
		q.service().reservations.Note(q.id(), at)
	}
	c.W.Int(n)
}

// isReserved reports whether a message is reserved under an id.
func (q *pressureQueue) isReserved(id []byte) bool {
	_, ok := effect.HGet(q.c, q.keys[qReserved], id)
	return ok
}

// cmdPressureRetry puts dead messages back, at the end of their queue, with all their attempts. It takes the oldest
// first, and stops when the queue is full; with ALL also after dueBatch messages, so that other clients need not wait
// for a queue of any length.
func cmdPressureRetry(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressureAck)
	if !ok {
		return
	}
	q := queueOf(c, a)
	if !q.open() {
		return
	}
	q.refresh()
	n := int64(0)
	if len(a.values) == 1 && command.EqualFold(a.values[0], "all") {
		var ids [][]byte
		if z := effect.ZSet(c, q.keys[qDead]); z != nil {
			for i := range min(int64(z.Len()), q.room(), dueBatch) {
				id, _ := z.At(int(i))
				ids = append(ids, bytes.Clone(id))
			}
		}
		n = q.revive(ids)
	} else {
		for _, id := range a.values {
			if z := effect.ZSet(c, q.keys[qDead]); z != nil && q.room() > 0 {
				if _, dead := z.Score(id); dead {
					n += q.revive([][]byte{id})
				}
			}
		}
	}
	q.settleNotFull(false)
	c.W.Int(n)
}

// revive puts dead messages back, and returns how many there were.
func (q *pressureQueue) revive(ids [][]byte) int64 {
	messages := make([]heldMessage, 0, len(ids))
	for _, id := range ids {
		if h, ok := q.held(id); ok {
			h.message, h.attempts = bytes.Clone(h.message), 0
			messages = append(messages, h)
		}
	}
	q.release(qDead, ids)
	q.enqueue(messages...)
	return int64(len(messages))
}
