package pressure

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/resp"
)

// This file has PRESSURE.GET, and PRESSURE.ACK and PRESSURE.RETURN for the messages that it reserves.

// getting is a PRESSURE.GET.
type getting struct {
	client  []byte
	count   int64
	counted bool  // COUNT is given: the reply is an array
	reserve int64 // ms for which the messages are reserved; 0 for no reservation
	holds   bool  // the client is the consumer, and waits for a message
}

func cmdPressureGet(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressureGet)
	if !ok {
		return
	}
	timeout, ok := a.wait(c)
	if !ok {
		return
	}
	r := &getting{client: a.client(c), count: 1}
	if v := a.option(optCount); v != nil {
		r.counted = true
		if r.count, ok = c.IntIn(v, 1, math.MaxInt64, command.ErrCountPositive); !ok {
			return
		}
	}
	if v := a.option(optReserve); v != nil {
		if r.reserve, ok = c.Int(v); !ok {
			return
		}
		if r.reserve <= 0 {
			c.Err(command.ErrNotPositive)
			return
		}
		if r.reserve, ok = c.InTime(r.reserve); !ok {
			return
		}
	}
	if r.step(c, !c.NoBlock) {
		return
	}
	keys := queueOf(c, a).keys
	c.Block(command.Block{
		Keys: [][]byte{keys[qConsumerFree], keys[qMessages], keys[qClosed]}, Shards: queueShards(c.G.Keyspace(), keys),
		Timeout: timeout,
		Try:     func(c *command.Ctx, _ []byte) bool { return r.step(c, true) },
		Cancel:  r.cancel,
		Empty:   r.empty,
	})
}

// empty writes the reply without a message.
func (r *getting) empty(w *resp.Writer) {
	if r.counted || r.reserve > 0 {
		w.NullArray()
	} else {
		w.Null()
	}
}

// step takes messages, if there are any and the client is the consumer or can become it, and reports whether it has
// replied. If it has not, and mayWait is set, the client becomes the consumer unless another client is.
func (r *getting) step(c *command.Ctx, mayWait bool) (done bool) {
	a, _ := readPressureArgs(c, &pressureGet) // valid: they were read before
	q := simpleQueueOf(c, a)
	ok := q.open()
	if ok {
		q.refresh()
		r.holds = r.holds && !q.has(qConsumerFree) // the queue may have been created again
	}
	n := q.length()
	if drained := ok && n == 0 && q.has(qClosed) && !q.has(qReserved) && !q.has(qDelayed); !ok || drained {
		if drained {
			c.Err(errQueueClosed) // a reserved or delayed message would come back
		}
		if r.holds {
			q.giveRole(qConsumerFree)
		}
		return true
	}
	if !r.holds && !q.has(qConsumerFree) || n == 0 && !mayWait {
		return false
	}
	if !r.holds {
		q.set(qConsumer, r.client)
	}
	if n == 0 {
		if !r.holds {
			r.holds = true
			q.takeRole(qConsumerFree)
		}
		return false
	}
	r.take(q, min(n, r.count))
	if r.holds {
		q.giveRole(qConsumerFree)
	}
	return true
}

// take replies with n messages, which must exist. Reserved messages count as consumed, and free their room, when
// they are acknowledged.
func (r *getting) take(q *pressureQueue, n int64) {
	w := q.c.W
	q.service().stats.count(q, q.c.Now(), statTaken, n)
	if r.counted {
		w.Array(int(n))
	}
	if r.reserve == 0 {
		size := int64(0)
		var taken [][]byte
		noted := q.has(qNotes)
		q.pop(qMessages, n, func(v []byte) {
			w.Bulk(v)
			size += int64(len(v))
			if noted {
				taken = append(taken, bytes.Clone(v))
			}
		})
		for _, v := range taken {
			q.takeNote(v)
		}
		q.count(qConsumedMessages, qConsumedBytes, n, size)
		q.settleNotFull(true)
		return
	}
	deadline := q.c.Now() + r.reserve
	if deadline < 0 {
		deadline = math.MaxInt64
	}
	var ids, values [][]byte
	q.pop(qMessages, n, func(v []byte) {
		id := q.service().reservations.newID(q.c.Now())
		w.Array(2)
		w.Bulk(id)
		w.Bulk(v)
		ids, values = append(ids, id), append(values, appendReserved(nil, deadline, v))
	})
	for i, id := range ids {
		q.reserve(id, values[i])
		_, message := parseReserved(values[i])
		if a := q.takeNote(message); a != (attributes{}) {
			q.addTo()
			effect.HSet(q.c, q.keys[qHeld], id, (&heldMessage{attributes: a}).append(nil))
		}
	}
	q.service().reservations.Note(q.id(), deadline)
	q.settleNotFull(false)
}

// cancel releases the role of a client that does not wait any more.
func (r *getting) cancel(c *command.Ctx) {
	if !r.holds {
		return
	}
	a, _ := readPressureArgs(c, &pressureGet)
	if q := queueOf(c, a); !q.has(qConsumerFree) {
		q.giveRole(qConsumerFree)
	}
}

// cmdPressureAck counts reserved messages as consumed, and frees their room.
func cmdPressureAck(c *command.Ctx) {
	q, ids, ok := reservedArgs(c)
	if !ok {
		return
	}
	size := int64(0)
	for _, id := range ids {
		v, _ := q.peek(qReserved).Hash().Get(id)
		_, message := parseReserved(v)
		size += int64(len(message))
	}
	if n := int64(len(ids)); n > 0 {
		q.count(qConsumedMessages, qConsumedBytes, n, size)
		q.unreserve(ids)
		effect.HDel(q.c, q.keys[qHeld], ids...)
		q.service().stats.count(q, q.c.Now(), statAcked, n)
		q.settleNotFull(true)
	}
	c.W.Int(int64(len(ids)))
}

// cmdPressureReturn puts reserved messages back.
func cmdPressureReturn(c *command.Ctx) {
	if q, ids, ok := reservedArgs(c); ok {
		q.giveBack(ids)
		c.W.Int(int64(len(ids)))
	}
}

// reservedArgs reads the arguments of PRESSURE.ACK and PRESSURE.RETURN, and returns the ids of messages that are
// reserved now, without duplicates. If the queue does not exist, it writes an error and ok is false.
func reservedArgs(c *command.Ctx) (q *pressureQueue, ids [][]byte, ok bool) {
	a, ok := readPressureArgs(c, &pressureAck)
	if !ok {
		return nil, nil, false
	}
	q = queueOf(c, a)
	if !q.open() {
		return nil, nil, false
	}
	q.refresh()
	e := q.peek(qReserved)
	if e == nil {
		return q, nil, true
	}
	seen := map[string]struct{}{}
	for _, id := range a.values {
		if _, twice := seen[string(id)]; !twice && e.Hash().Has(id) {
			seen[string(id)] = struct{}{}
			ids = append(ids, id)
		}
	}
	return q, ids, true
}

// giveBack puts reserved messages back at the head of the queue, in their original order.
func (q *pressureQueue) giveBack(ids [][]byte) {
	if len(ids) == 0 {
		return
	}
	back := make([]reservedMessage, len(ids))
	for i, id := range ids {
		h := q.reservedMessageOf(id)
		h.message = bytes.Clone(h.message)
		back[i] = reservedMessage{parseReservedID(id), h}
	}
	slices.SortFunc(back, func(a, b reservedMessage) int { return b.id.compare(a.id) })
	messages := make([]heldMessage, len(back))
	for i := range back {
		messages[i] = back[i].heldMessage
	}
	q.unreserve(ids)
	if q.has(qHeld) {
		effect.HDel(q.c, q.keys[qHeld], ids...)
	}
	q.enqueueFirst(messages...)
	q.service().reservations.countRedelivered(q.id(), len(ids))
	q.settleNotFull(false)
}

// reservedMessage is a message that is put back.
type reservedMessage struct {
	id reservedID
	heldMessage
}

// reservedID is the id of a reserved message: the time of its reservation in ms since 1970, and a growing number. It
// is written "<ms>-<n>".
type reservedID struct{ ms, n uint64 }

func (id reservedID) append(dst []byte) []byte {
	return strconv.AppendUint(append(strconv.AppendUint(dst, id.ms, 10), '-'), id.n, 10)
}
