package pressure

import (
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file has PRESSURE.PUT, and PRESSURE.CLOSE and PRESSURE.DELETE, which wait for roles too.

// putting is the progress of a PRESSURE.PUT.
type putting struct {
	client   []byte
	timeout  int64
	accepted int  // values
	holds    bool // the client is the producer, and waits for room
}

func cmdPressurePut(c *command.Ctx) {
	a, ok := readPressureArgs(c, &pressurePut)
	if !ok {
		return
	}
	p := &putting{client: a.client(c)}
	if p.timeout, ok = a.wait(c); !ok || p.step(c, !c.NoBlock) {
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
	q := queueOf(c, a)
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
		q.push(qMessages, values...)
		q.count(qProducedMessages, qProducedBytes, n, size)
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
