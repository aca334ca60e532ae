package pressure

import (
	"math"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/resp"
)

// This file has PRESSURE.PUT, and PRESSURE.CLOSE and PRESSURE.DELETE, which wait for roles too.

// putting is the progress of a PRESSURE.PUT.
type putting struct {
	client   []byte
	timeout  int64
	accepted int  // values
	when     when // the values come due
	with     attributes
	dedup    time.Duration // for which an equal key is refused; 0 without a key
	holds    bool          // the client is the producer, and waits for room
}

func cmdPressurePut(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressurePut)
	if !ok {
		return
	}
	p := &putting{client: a.client(c)}
	if p.timeout, ok = a.wait(c); !ok || !p.read(c, a) || p.step(c, !c.NoBlock) {
		return
	}
	keys := queueOf(c, a).keys
	c.Block(command.Block{
		Keys: [][]byte{keys[qProducerFree], keys[qNotFull], keys[qClosed]}, Shards: queueShards(c.G.Keyspace(), keys),
		Timeout: p.timeout,
		Try:     func(c *command.Ctx, _ []byte) bool { return p.step(c, true) },
		Cancel:  p.cancel,
		Empty:   func(w *resp.Writer) { w.Int(int64(p.accepted)) },
	})
}

// step puts as many values as there is room for, if the client is the producer or can become it, and reports whether
// it has replied. If it has not, and mayWait is set, the client becomes the producer unless another client is.
func (p *putting) step(c *command.Ctx, mayWait bool) (done bool) {
	a, _ := readPressureArgs(c, &pressurePut) // they have been read before
	queue := queueOf
	if p.when == (when{}) && p.with == (attributes{}) && p.dedup == 0 {
		queue = simpleQueueOf
	}
	q := queue(c, a)
	mark := len(c.W.Buf)
	if ok := q.open(); !ok || q.has(qClosed) {
		if p.holds {
			q.giveRole(qProducerFree)
		}
		switch {
		case p.accepted > 0:
			c.W.Buf = c.W.Buf[:mark]
			c.W.Int(int64(p.accepted))
		case ok:
			c.Err(errQueueClosed)
		}
		return true
	}
	q.refresh()
	if p.accepted == 0 && p.dedup > 0 && q.duplicate(a.option(optDedup)) {
		if p.holds {
			q.giveRole(qProducerFree)
		}
		c.Err(errDuplicate)
		return true
	}
	p.holds = p.holds && !q.has(qProducerFree) // the queue may have been created again
	if !p.holds && !q.has(qProducerFree) {
		return false
	}
	n := min(q.room(), int64(len(a.values)-p.accepted))
	all := n == int64(len(a.values)-p.accepted)
	if !p.holds && (n > 0 || mayWait) {
		q.set(qProducer, p.client)
	}
	if !p.holds && !all && mayWait {
		p.holds = true
		q.takeRole(qProducerFree)
	}
	if n > 0 {
		values := a.values[p.accepted : p.accepted+int(n)]
		size := int64(0)
		for _, v := range values {
			size += int64(len(v))
		}
		p.add(q, values)
		if p.dedup > 0 {
			until := c.Now() + p.dedup.Milliseconds()
			q.addTo()
			effect.ZAdd(c, q.keys[qDedup], a.option(optDedup), until)
			q.service().reservations.Note(q.id(), until+forgetEvery)
		}
		q.count(qProducedMessages, qProducedBytes, n, size)
		q.service().stats.count(q, c.Now(), statPut, n)
		p.accepted += int(n)
	}
	if n > 0 || mayWait {
		q.settleNotFull(true)
	}
	if !all {
		return false
	}
	if p.holds {
		q.giveRole(qProducerFree)
	}
	c.W.Int(int64(p.accepted))
	return true
}

// read reads the options for the messages; if they are wrong, it writes an error and ok is false.
func (p *putting) read(c *command.Ctx, a *pressureArgs) (ok bool) {
	if p.when, ok = a.readWhen(c); !ok {
		return false
	}
	if p.with, ok = a.readAttributes(c); !ok {
		return false
	}
	dedup, within := a.option(optDedup), a.option(optWithin)
	if dedup == nil && within == nil {
		return true
	}
	if dedup == nil || within == nil || len(a.values) != 1 {
		c.Err(errDedup)
		return false
	}
	ms, ok := c.IntIn(within, 1, maxWithin.Milliseconds(), errTime)
	p.dedup = time.Duration(ms) * time.Millisecond
	return ok
}

// readAttributes reads the options ATTEMPTS, BACKOFF and PRIORITY; if they are wrong, it writes an error and ok is false.
func (a *pressureArgs) readAttributes(c *command.Ctx) (with attributes, ok bool) {
	for _, o := range []struct {
		option   pressureOption
		to       *int64
		min, max int64
		err      command.Error
	}{
		{optAttempts, &with.limit, 1, maxAttempts, errAttempts},
		{optBackoff, &with.backoff, 1, maxBackoff, errTime},
		{optPriority, &with.priority, 0, maxPriority, errPriority},
	} {
		if v := a.option(o.option); v != nil {
			if *o.to, ok = c.IntIn(v, o.min, o.max, o.err); !ok {
				return with, false
			}
		}
	}
	return with, true
}

const (
	// maxAttempts is the largest limit of attempts.
	maxAttempts = 1_000_000
	// maxWithin is the longest time in which a key is refused.
	maxWithin = 366 * 24 * time.Hour
)

// add adds accepted messages to the list, or keeps them until they come due.
func (p *putting) add(q *pressureQueue, values [][]byte) {
	switch at := p.when.due(q.c.Now()); {
	case at > q.c.Now():
		q.delay(at, p.with, values)
	case p.with == (attributes{}):
		q.push(qMessages, values...)
	default:
		messages := make([]heldMessage, len(values))
		for i, v := range values {
			messages[i] = heldMessage{attributes: p.with, message: v}
		}
		q.enqueue(messages...)
	}
}

// duplicate reports whether a message with a key was put a short time ago.
func (q *pressureQueue) duplicate(key []byte) bool {
	z := effect.ZSet(q.c, q.keys[qDedup])
	if z == nil {
		return false
	}
	until, known := z.Score(key)
	return known && timeOf(until) > q.c.Now()
}

// forgetEvery is the time in ms within which keys that are not refused any more are removed together.
const forgetEvery = 5000

// forgetKeys removes keys that are not refused any more, up to dueBatch, and returns when it should be called again.
func (q *pressureQueue) forgetKeys() (next int64) {
	if ids := q.dueIDs(qDedup); len(ids) > 0 {
		effect.ZRem(q.c, q.keys[qDedup], ids...)
	}
	z := effect.ZSet(q.c, q.keys[qDedup])
	if z == nil || z.Len() == 0 {
		return math.MaxInt64
	}
	_, until := z.At(0)
	return (timeOf(until)/forgetEvery + 1) * forgetEvery
}

// cancel releases the role of a client that does not wait any more.
func (p *putting) cancel(c *command.Ctx) {
	if !p.holds {
		return
	}
	a, _ := readPressureArgs(c, &pressurePut)
	if q := queueOf(c, a); !q.has(qProducerFree) {
		q.giveRole(qProducerFree)
	}
}

// cmdPressureClose closes a queue in the role of its producer, which it needs for an instant only.
func cmdPressureClose(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressureClose)
	if !ok {
		return
	}
	client := a.client(c)
	timeout, ok := a.wait(c)
	if !ok {
		return
	}
	step := func(c *command.Ctx, _ []byte) bool {
		q, ok := openQueue(c, &pressureClose)
		if !ok {
			return true
		}
		q.refresh()
		switch {
		case q.has(qClosed):
			c.Err(errQueueClosed)
		case !q.has(qProducerFree):
			return false
		default:
			q.set(qProducer, client)
			q.push(qClosed, pressureMark, pressureMark)
			q.remove(qSchedules)
			c.W.OK()
		}
		return true
	}
	if step(c, nil) {
		return
	}
	keys := queueOf(c, a).keys
	c.Block(command.Block{Keys: [][]byte{keys[qProducerFree], keys[qClosed]}, Shards: queueShards(c.G.Keyspace(), keys),
		Timeout: timeout,
		Try:     step, Empty: (*resp.Writer).Null})
}

// cmdPressureDelete closes a queue for all clients at once, and removes its keys when no client has a role any more.
// An incomplete deletion can be repeated.
func cmdPressureDelete(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressureDelete)
	if !ok {
		return
	}
	timeout, ok := a.wait(c)
	if !ok {
		return
	}
	q := queueOf(c, a)
	if !q.check() {
		return
	}
	switch {
	case q.has(qBound):
		q.remove(qBound)
		q.push(qNotFull, pressureMark)
		q.push(qClosed, pressureMark, pressureMark)
		q.wakeClosed()
	case !q.has(qClosed):
		c.Err(errNoQueue)
		return
	}
	step := func(c *command.Ctx, _ []byte) bool {
		a, _ := readPressureArgs(c, &pressureDelete) // they have been read before
		q := queueOf(c, a)
		if q.has(qClosed) && !q.has(qBound) { // otherwise another client has removed the keys
			if !q.available(qProducerFree) || !q.available(qConsumerFree) {
				return false
			}
			q.removeAll()
		}
		c.W.OK()
		return true
	}
	if step(c, nil) {
		return
	}
	c.Block(command.Block{Keys: [][]byte{q.keys[qProducerFree], q.keys[qConsumerFree], q.keys[qClosed]},
		Shards:  queueShards(c.G.Keyspace(), q.keys),
		Timeout: timeout, OnRemoval: true, Try: step, Empty: (*resp.Writer).Null})
}

// available reports whether a role is free in a queue that is being deleted. If holders are known, a role without a
// holder is free even without its element.
func (q *pressureQueue) available(free queueKey) bool {
	r := &q.service().roles
	return q.has(free) || r.on && r.holder(q.role(free)) == nil
}
