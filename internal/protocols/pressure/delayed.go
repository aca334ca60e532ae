package pressure

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
)

// Delayed messages are in a sorted set beside their queue until they come due. The server then adds them to the list,
// as their producer would have done, in the order of their times.

// dueBatch is how many delayed messages come due under one guard.
const dueBatch = 1000

// delayedCount returns the number of delayed messages.
func (q *pressureQueue) delayedCount() int64 {
	if q.bare {
		return 0
	}
	return int64(effect.ZCard(q.c, q.keys[qDelayed]))
}

// delay keeps messages until a time.
func (q *pressureQueue) delay(at int64, a attributes, messages [][]byte) {
	for _, m := range messages {
		q.hold(qDelayed, q.service().reservations.newID(q.c.Now()), at, &heldMessage{attributes: a, message: m})
	}
	q.service().reservations.Note(q.id(), at)
}

// nextDelayed returns when the next message comes due; ok is false if none is delayed.
func (q *pressureQueue) nextDelayed() (at int64, ok bool) {
	z := effect.ZSet(q.c, q.keys[qDelayed])
	if z == nil || z.Len() == 0 {
		return 0, false
	}
	_, score := z.At(0)
	return timeOf(score), true
}

// dueIDs returns the first ids of a sorted set whose time has come.
func (q *pressureQueue) dueIDs(set queueKey) (ids [][]byte) {
	z := effect.ZSet(q.c, q.keys[set])
	if z == nil {
		return nil
	}
	for i := range min(z.Len(), dueBatch) {
		id, score := z.At(i)
		if timeOf(score) > q.c.Now() {
			break
		}
		ids = append(ids, bytes.Clone(id))
	}
	return ids
}

// timeOf returns the time of a score, in ms since 1970. Other clients may have set it to anything, infinity included.
func timeOf(score float64) int64 {
	switch {
	case !(score > 0):
		return 0
	case score > float64(maxTime):
		return maxTime
	}
	return int64(score)
}

// enqueueDelayed adds the delayed messages that are due to the list. It leaves the rest of very many to the timer.
func (q *pressureQueue) enqueueDelayed() {
	ids := q.dueIDs(qDelayed)
	if len(ids) == 0 {
		return
	}
	messages := make([]heldMessage, 0, len(ids))
	for _, id := range ids {
		if h, ok := q.held(id); ok {
			h.message = bytes.Clone(h.message)
			messages = append(messages, h)
		}
	}
	q.release(qDelayed, ids)
	q.enqueue(messages...)
	q.settleNotFull(false)
	if len(messages) == 0 {
		q.wakeClosed()
	}
}

// when is the time at which messages of a PRESSURE.PUT come due.
type when struct {
	delay int64 // ms from their acceptance on
	at    int64 // ms since 1970; 0 if only delay counts
}

// readWhen reads the options DELAY and AT; if they are wrong, it writes an error and ok is false.
func (a *pressureArgs) readWhen(c *command.Ctx) (w when, ok bool) {
	delay, at := a.option(optDelay), a.option(optAt)
	switch {
	case delay != nil && at != nil:
		c.Err(command.ErrSyntax)
		return w, false
	case delay != nil:
		w.delay, ok = c.IntIn(delay, 0, maxTime, errTime)
	case at != nil:
		w.at, ok = c.IntIn(at, 0, maxTime, errTime)
	default:
		ok = true
	}
	return w, ok
}

// maxTime is the largest time and delay in ms: a float64 represents their sum exactly.
const maxTime = int64(1) << 51

// due returns the time at which messages that are accepted now come due.
func (w when) due(now int64) int64 { return max(w.at, now+w.delay) }

// dueKeys are the keys from which something may come due.
var dueKeys = [...]queueKey{qReserved, qDelayed, qSchedules, qDedup}

// mayComeDue reports whether anything of the queue may come due.
func (q *pressureQueue) mayComeDue() bool {
	return slices.ContainsFunc(dueKeys[:], q.has)
}

// wrongTypePause is after how many ms a queue is looked at again that has a key of a wrong type.
const wrongTypePause = 1000

// comeDue does everything that is due in the queue: it returns reserved messages, adds delayed ones to the list and
// runs schedules. It notes the next time. Unless the timer asks, it relies on the noted time, and the queue has just
// been opened. Without :bound there is no queue (yet): then nothing changes, for the keys may be those of another
// program, or of a queue that is on its way here key by key.
func (q *pressureQueue) comeDue(timer bool) {
	r := &q.service().reservations
	if !timer && r.Earliest(q.id()) > q.c.Now() {
		return
	}
	r.Forget(q.id())
	q.dropLeftovers(timer)
	if !q.has(qBound) {
		return
	}
	if timer && !q.load() { // everything is in memory before the first change
		r.Note(q.id(), q.c.Now()+wrongTypePause)
		return
	}
	if timer && (q.has(qDelayed) || q.has(qSchedules) || q.has(qDedup)) {
		q.addTo() // these keys may have come here without it
	}
	if q.bare { // there is nothing but :reserved
		if next := q.returnDue(); next != math.MaxInt64 {
			r.Note(q.id(), next)
		}
		return
	}
	next := min(q.returnDue(), q.runSchedules(), q.forgetKeys())
	q.enqueueDelayed()
	if at, ok := q.nextDelayed(); ok {
		next = min(next, at)
	} else if timer { // other clients may have deleted the delayed messages
		q.settleNotFull(q.service().roles.holder(q.role(qNotFull)) == nil)
		q.wakeClosed()
	}
	if next != math.MaxInt64 {
		r.Note(q.id(), next)
	}
}

// hasDue reports whether an entry is one from which comeDue may find something to do, and the key of its queue.
func hasDue(e *engine.Entry) (key string, ok bool) {
	if e.Type() != engine.Hash && e.Type() != engine.ZSet {
		return "", false
	}
	key, ok = queueWithDue(e.Key())
	return strings.Clone(key), ok
}

// queueWithDue returns the key of the queue of a key from which comeDue may find something to do.
func queueWithDue(key string) (base string, ok bool) {
	for _, k := range dueKeys {
		if base, ok = strings.CutSuffix(key, queueSuffixes[k]); ok {
			return base, true
		}
	}
	return "", false
}
