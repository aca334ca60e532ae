package spiderq

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/due"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/spiderq/keys"
)

// key is one of the keys of a queue.
type key uint8

const (
	valuesKey key = iota
	queueKey
	lentKey
	loansKey
	boostsKey
	serialKey
	numberOfKeys
)

var suffixes = [numberOfKeys]string{
	queueKey: keys.Queue, lentKey: keys.Lent, loansKey: keys.Loans, boostsKey: keys.Boosts, serialKey: keys.Serial,
}

var types = [numberOfKeys]engine.Type{
	valuesKey: engine.Hash, queueKey: engine.ZSet, lentKey: engine.ZSet, loansKey: engine.Hash, boostsKey: engine.Hash,
	serialKey: engine.String,
}

// queue is a queue under a guard that holds all its keys.
type queue struct {
	c       *command.Ctx
	service *Service
	names   *[numberOfKeys][]byte
}

func queueOf(c *command.Ctx, name []byte) *queue {
	return &queue{c: c, service: Of(c.Host), names: namesOf(name)}
}

// namesOf returns the keys of the queue of that name.
func namesOf(name []byte) *[numberOfKeys][]byte {
	base := len(keys.Prefix) + len(name) + 2
	buf := make([]byte, 0, int(numberOfKeys)*(base+len(keys.Boosts)))
	all := new([numberOfKeys][]byte)
	for k, suffix := range suffixes {
		start := len(buf)
		buf = append(append(append(append(append(buf, keys.Prefix...), '{'), name...), '}'), suffix...)
		all[k] = buf[start:len(buf):len(buf)]
	}
	return all
}

// keysOf is the DerivedKeys of the commands.
func keysOf(args [][]byte, fn func(key []byte)) {
	for _, k := range namesOf(args[1]) {
		fn(k)
	}
}

// nameOf returns the name of a queue if e is the hash of its values.
func nameOf(e *engine.Entry) (name string, ok bool) {
	return nameIn(e, engine.Hash, "")
}

// nameIn returns the name of a queue if e is its key of that type and suffix.
func nameIn(e *engine.Entry, typ engine.Type, suffix string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(e.Key(), keys.Prefix+"{")
	if !ok || e.Type() != typ {
		return "", false
	}
	if rest, ok = strings.CutSuffix(rest, "}"+suffix); !ok {
		return "", false
	}
	return strings.Clone(rest), true
}

// id identifies the queue.
func (q *queue) id() due.ID { return due.ID{DB: q.c.DB, Key: string(q.names[valuesKey])} }

// shards returns the shards of its keys.
func (q *queue) shards() uint64 { return shardsOf(q.c.G.Keyspace(), q.names) }

func shardsOf(ks *engine.Keyspace, names *[numberOfKeys][]byte) (shards uint64) {
	for _, name := range names {
		shards |= ks.ShardOf(name)
	}
	return shards
}

// check prepares the queue for a command. If a key is of a wrong type, it writes an error and ok is false.
func (q *queue) check() (ok bool) {
	for k, name := range q.names {
		if !effect.Is(q.c, name, types[k]) {
			return false
		}
	}
	if q.c.Cmd.Flags&command.Write != 0 {
		q.refresh()
	}
	return true
}

// typesFit is check without a reply.
func (q *queue) typesFit() bool {
	for k, name := range q.names {
		if e := q.c.G.Peek(q.c.DB, name); e != nil && e.Type() != types[k] {
			return false
		}
	}
	return true
}

// value returns the value of a key; ok is false if the queue does not have it.
func (q *queue) value(k []byte) (v []byte, ok bool) { return effect.HGet(q.c, q.names[valuesKey], k) }

func (q *queue) setValue(k, v []byte)      { effect.HSet(q.c, q.names[valuesKey], k, v) }
func (q *queue) removeValue(k []byte) bool { return effect.HDel(q.c, q.names[valuesKey], k) > 0 }
func (q *queue) values() int               { return effect.HLen(q.c, q.names[valuesKey]) }
func (q *queue) lentCount() int            { return effect.ZCard(q.c, q.names[lentKey]) }

// len returns how many keys are queued, or would be after refresh.
func (q *queue) len() int {
	if q.service.stale(q.id()) {
		return q.values()
	}
	n := effect.ZCard(q.c, q.names[queueKey])
	if z := effect.ZSet(q.c, q.names[lentKey]); z != nil {
		for i := range z.Len() {
			if _, deadline := z.At(i); int64(deadline) > q.c.Now() {
				break
			}
			n++
		}
	}
	return n
}

// firstSerial is the serial of a new queue.
const firstSerial = 1

// serial returns the number of the last change of the queue.
func (q *queue) serial() int64 { return effect.Integer(q.c, q.names[serialKey], firstSerial) }

// nextSerial counts a change.
func (q *queue) nextSerial() int64 {
	n := q.serial() + 1
	effect.Set(q.c, q.names[serialKey], strconv.AppendInt(nil, n, 10))
	return n
}

// add adds a key unless the queue has it, and reports whether it did.
func (q *queue) add(k, v []byte, head bool) bool {
	if _, ok := q.value(k); ok {
		return false
	}
	q.setValue(k, v)
	priority := q.nextSerial()
	if head {
		priority = 0
	}
	effect.HDel(q.c, q.names[boostsKey], k)
	effect.ZAdd(q.c, q.names[queueKey], k, priority)
	return true
}

// first returns the first queued key, which may be empty, with its priority, the smallest; ok is false if there is none.
func (q *queue) first() (priority int64, k []byte, ok bool) {
	z := effect.ZSet(q.c, q.names[queueKey])
	if z == nil || z.Len() == 0 {
		return 0, nil, false
	}
	member, score := z.At(0)
	return int64(score), bytes.Clone(member), true
}

// lend lends the first key that has a value for some ms, replies with it and its lend key, and reports whether there
// was one. The lend key is the present serial, which lending does not change: together with the key it identifies a
// loan.
func (q *queue) lend(ms int64) bool {
	for {
		_, k, ok := q.first()
		if !ok {
			return false
		}
		effect.ZRem(q.c, q.names[queueKey], k)
		v, ok := q.value(k)
		if !ok {
			continue // it was removed
		}
		lendKey := q.serial()
		effect.HSet(q.c, q.names[loansKey], k, strconv.AppendInt(nil, lendKey, 10))
		q.setDeadline(k, ms)
		q.service.count(q.id(), countLend)
		q.c.W.Array(3)
		q.c.W.Int(lendKey)
		q.c.W.Bulk(k)
		q.c.W.Bulk(v)
		return true
	}
}

// setDeadline lets a key be lent for some ms from now on.
func (q *queue) setDeadline(k []byte, ms int64) {
	at := q.c.Now() + ms
	if at < 0 {
		at = math.MaxInt64
	}
	effect.ZAdd(q.c, q.names[lentKey], k, at)
	q.service.schedule.Note(q.id(), at)
}

// has reports whether a key is lent with that lend key.
func (q *queue) has(lendKey int64, k []byte) bool {
	v, ok := effect.HGet(q.c, q.names[loansKey], k)
	if !ok {
		return false
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	return err == nil && n == lendKey
}

// outcome is the new place of a key that is given back.
type outcome int

const (
	penalty outcome = iota
	reward
	front
	drop
)

var outcomes = [...]string{penalty: "penalty", reward: "reward", front: "front", drop: "drop"}

// giveBack ends a loan. A key with boost 0 goes to the end of the queue. A boost of b halves the distance from the
// front b times: 1/2^b of the queue's priorities stay before the key.
func (q *queue) giveBack(k []byte, how outcome) {
	effect.HDel(q.c, q.names[loansKey], k)
	effect.ZRem(q.c, q.names[lentKey], k)
	if how == drop {
		q.setBoost(k, 0)
		return
	}
	smallest, _, _ := q.first()
	serial := q.nextSerial()
	region := serial - smallest
	boost := q.boost(k)
	priority := int64(0)
	switch how {
	case penalty:
		boost = max(boost-1, 0)
	case reward:
		if region>>(boost+1) > 0 {
			boost++
		}
	}
	if how != front {
		q.setBoost(k, boost)
		priority = serial - (region - region>>boost)
	}
	effect.ZAdd(q.c, q.names[queueKey], k, priority)
}

// boost returns the boost of a key.
func (q *queue) boost(k []byte) int64 {
	v, ok := effect.HGet(q.c, q.names[boostsKey], k)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0
	}
	return min(max(n, 0), maxBoost)
}

// maxBoost is larger than any number of effective halvings.
const maxBoost = 62

// setBoost stores the boost of a key; 0 is not stored.
func (q *queue) setBoost(k []byte, boost int64) {
	if boost == 0 {
		effect.HDel(q.c, q.names[boostsKey], k)
	} else if boost != q.boost(k) {
		effect.HSet(q.c, q.names[boostsKey], k, strconv.AppendInt(nil, boost, 10))
	}
}

// refresh returns keys that are due, and requeues the queue after a start if configured.
func (q *queue) refresh() {
	if at := q.service.schedule.Earliest(q.id()); at != 0 && at <= q.c.Now() || q.service.stale(q.id()) {
		q.returnDue()
	}
}

// returnDue returns keys whose loans have expired to the front of the queue, and notes the next deadline.
func (q *queue) returnDue() {
	q.service.schedule.Forget(q.id())
	switch {
	case !q.typesFit():
		return
	case q.service.stale(q.id()):
		q.requeue()
	}
	for {
		z := effect.ZSet(q.c, q.names[lentKey])
		if z == nil || z.Len() == 0 {
			return
		}
		member, deadline := z.At(0)
		if int64(deadline) > q.c.Now() {
			q.service.schedule.Note(q.id(), int64(deadline))
			return
		}
		q.giveBack(bytes.Clone(member), front)
	}
}

// requeue resets the queue as the original does at its start: every key is queued, and no key is lent or boosted.
func (q *queue) requeue() {
	q.service.fresh(q.id())
	for _, k := range []key{queueKey, lentKey, loansKey, boostsKey, serialKey} {
		effect.Del(q.c, q.names[k])
	}
	h := effect.Hash(q.c, q.names[valuesKey])
	if h == nil {
		return
	}
	var all [][]byte
	for k := range h.All() {
		all = append(all, bytes.Clone(k))
	}
	for _, k := range all {
		effect.ZAdd(q.c, q.names[queueKey], k, q.nextSerial())
	}
}
