package pressure

import (
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/internal/command"
	listcommands "github.com/atomredis/atomredis/internal/commands/lists"
	"github.com/atomredis/atomredis/internal/protocols/due"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/pressure/keys"
	"github.com/atomredis/atomredis/resp"
)

// queueKey is one of the keys of a queue of the pressure protocol.
type queueKey uint8

const (
	// a list: messages are pushed at the left and popped at the right, which is the head of the queue
	qMessages queueKey = iota
	// the largest number of messages, 0 for no limit; exists as long as the queue
	qBound
	qProducer     // who was the producer last
	qConsumer     // who was the consumer last
	qProducerFree // a list with one element while there is no producer
	qConsumerFree // a list with one element while there is no consumer
	qProducedMessages
	qProducedBytes
	qConsumedMessages
	qConsumedBytes
	qNotFull // a list with one element while there is room
	qClosed  // a list with elements once the queue is closed

	// Our own additions to the protocol; package keys describes them.
	qReserved
	qSettings // exists if one of the following keys does
	qDelayed
	qDead
	qHeld
	qNotes
	qDedup
	qSchedules

	// The counter of clients that follow the samples of the specification literally.
	qPlainProducedMessages
	qPlainProducedBytes
	qPlainConsumedMessages
	qPlainConsumedBytes
	queueKeys // how many keys there are

	// qChecked is how many of the keys, the first ones, must be of the right type for a command to work.
	qChecked = qSchedules + 1
)

// queueSuffixes are the ends of the keys, after the prefix, a colon and the name of the queue.
var queueSuffixes = [queueKeys]string{
	qMessages: "", qBound: keys.Bound, qProducer: keys.Producer, qConsumer: keys.Consumer,
	qProducerFree: keys.ProducerFree, qConsumerFree: keys.ConsumerFree,
	qProducedMessages: keys.ProducedMessages, qProducedBytes: keys.ProducedBytes,
	qConsumedMessages: keys.ConsumedMessages, qConsumedBytes: keys.ConsumedBytes,
	qNotFull: keys.NotFull, qClosed: keys.Closed, qReserved: keys.Reserved,
	qSettings: keys.Settings, qDelayed: keys.Delayed, qDead: keys.Dead, qHeld: keys.Held, qNotes: keys.Notes,
	qDedup: keys.Dedup, qSchedules: keys.Schedules,
	qPlainProducedMessages: keys.PlainProducedMessages, qPlainProducedBytes: keys.PlainProducedBytes,
	qPlainConsumedMessages: keys.PlainConsumedMessages, qPlainConsumedBytes: keys.PlainConsumedBytes,
}

// queueTypes are the types of the keys that are checked.
var queueTypes = [qChecked]engine.Type{
	qMessages: engine.List, qProducerFree: engine.List, qConsumerFree: engine.List, qNotFull: engine.List,
	qClosed:   engine.List,
	qReserved: engine.Hash, qDelayed: engine.ZSet, qDead: engine.ZSet, qHeld: engine.Hash, qNotes: engine.Hash,
	qDedup: engine.ZSet, qSchedules: engine.Hash, qSettings: engine.Hash,
	qBound: engine.String, qProducer: engine.String, qConsumer: engine.String, qProducedMessages: engine.String,
	qProducedBytes: engine.String, qConsumedMessages: engine.String, qConsumedBytes: engine.String,
}

// pressureMark is the element of the lists whose elements have no meaning.
var pressureMark = []byte("0")

// The commands that changes of a queue are journalled as.
var (
	lpushWord, rpushWord, ltrimWord = []byte("LPUSH"), []byte("RPUSH"), []byte("LTRIM")
	incrbyWord, hdelWord            = []byte("INCRBY"), []byte("HDEL")
)

// pressureQueue is a queue of the pressure protocol under a guard that holds all its keys. It changes them as a
// client of the protocol does with ordinary commands: events, WATCH, blocked clients and the journal see no
// difference. So every change is journalled by its effect, and the commands on queues themselves are never repeated.
type pressureQueue struct {
	c     *command.Ctx
	keys  *[queueKeys][]byte
	bound int64 // as read by open

	// simple says that the command needs none of the keys from qSettings on unless the queue has them. Such a command
	// is as fast as the protocol's steps: check looks up :+settings, and the others only if that exists.
	simple bool
	bare   bool // check has found no :+settings for a simple command: peek finds none of these keys
}

// maxSuffix is the length of the longest of queueSuffixes; all together are not longer than allSuffixes, and those up
// to qSettings not longer than simpleSuffixes.
const (
	maxSuffix      = len(keys.ProducedMessages)
	allSuffixes    = 310
	simpleSuffixes = 190
)

// queueBase returns the key of the messages, with room for a suffix.
func queueBase(a *pressureArgs) []byte {
	prefix := a.prefix()
	base := make([]byte, 0, len(prefix)+1+len(a.name)+maxSuffix)
	return append(append(append(base, prefix...), ':'), a.name...)
}

// newQueueKeys returns the keys of the queue whose messages are at base.
func newQueueKeys(base []byte) *[queueKeys][]byte {
	names := new([queueKeys][]byte)
	addQueueKeys(names, base, 0, queueKeys, allSuffixes)
	return names
}

// addQueueKeys sets those of the keys from first up to last, whose suffixes are not longer than size together.
func addQueueKeys(names *[queueKeys][]byte, base []byte, first, last queueKey, size int) {
	buf := make([]byte, 0, int(last-first)*len(base)+size)
	for k := first; k < last; k++ {
		start := len(buf)
		buf = append(append(buf, base...), queueSuffixes[k]...)
		names[k] = buf[start:len(buf):len(buf)]
	}
}

// queueShards returns the shards of all keys of a queue.
func queueShards(ks *engine.Keyspace, keys *[queueKeys][]byte) (shards uint64) {
	for _, key := range keys {
		shards |= ks.ShardOf(key)
	}
	return shards
}

// queueOf returns the queue that the arguments name.
func queueOf(c *command.Ctx, a *pressureArgs) *pressureQueue {
	return &pressureQueue{c: c, keys: newQueueKeys(queueBase(a))}
}

// simpleQueueOf is queueOf for a simple command.
func simpleQueueOf(c *command.Ctx, a *pressureArgs) *pressureQueue {
	q := &pressureQueue{c: c, keys: new([queueKeys][]byte), simple: true}
	addQueueKeys(q.keys, queueBase(a), 0, qSettings+1, simpleSuffixes)
	return q
}

// openQueue returns the queue that the arguments name; if they are wrong, or the queue does not exist, it writes an
// error and ok is false.
func openQueue(c *command.Ctx, g *pressureGrammar) (q *pressureQueue, ok bool) {
	a, ok := readPressureArgs(c, g)
	if !ok {
		return nil, false
	}
	q = queueOf(c, a)
	return q, q.open()
}

// open checks all keys before anything is changed. If one is wrong, or the queue does not exist, it writes an error
// and ok is false.
func (q *pressureQueue) open() (ok bool) {
	if !q.check() {
		return false
	}
	if !q.has(qBound) {
		q.c.Err(errNoQueue)
		return false
	}
	q.bound = q.integer(qBound)
	return true
}

// check checks all keys and loads their values into memory. If one is of the wrong type or is no number, it writes
// an error and ok is false.
func (q *pressureQueue) check() (ok bool) {
	if q.bare = q.simple && !q.has(qSettings); q.simple && !q.bare {
		q.addKeys()
	}
	if !q.load() {
		q.c.Err(command.ErrWrongType)
		return false
	}
	for _, k := range []queueKey{qBound, qProducedMessages, qProducedBytes, qConsumedMessages, qConsumedBytes} {
		if e := q.peek(k); e != nil {
			if _, ok := q.c.Int(e.Bytes()); !ok {
				return false
			}
		}
	}
	return true
}

// addKeys adds the names that simpleQueueOf has left out.
func (q *pressureQueue) addKeys() {
	addQueueKeys(q.keys, q.keys[qMessages], qSettings+1, queueKeys, allSuffixes-simpleSuffixes)
}

// load loads the values of all checked keys into memory, and reports whether they are of the right types.
func (q *pressureQueue) load() (ok bool) {
	for k := range qChecked {
		if q.bare && k == qSettings {
			break
		}
		e := q.peek(k)
		if e == nil {
			continue
		}
		if e.Type() != queueTypes[k] {
			return false
		}
		e.Load()
	}
	return true
}

// id identifies the queue.
func (q *pressureQueue) id() due.ID { return due.ID{DB: q.c.DB, Key: string(q.keys[qMessages])} }

// peek returns the entry of a key, or nil.
func (q *pressureQueue) peek(k queueKey) *engine.Entry {
	if q.bare && k >= qSettings && k < qChecked {
		return nil
	}
	return q.c.G.Peek(q.c.DB, q.keys[k])
}

// addTo prepares the queue for a change of one of the keys from qDelayed on: :+settings exists as long as the queue.
// A command that is bare never adds to them.
func (q *pressureQueue) addTo() {
	if !q.has(qSettings) {
		effect.HSet(q.c, q.keys[qSettings], settingJobs, []byte("1"))
	}
}

// has reports whether a key exists.
func (q *pressureQueue) has(k queueKey) bool { return q.peek(k) != nil }

// list returns the entry of a list that is about to be changed, nil if there is none.
func (q *pressureQueue) list(k queueKey) *engine.Entry {
	if e := q.c.G.Write(q.c.DB, q.keys[k]); e != nil && e.Type() == engine.List {
		return e
	}
	return nil
}

// size returns the length of a list.
func (q *pressureQueue) size(k queueKey) int64 {
	if e := q.peek(k); e != nil && e.Type() == engine.List {
		return int64(e.List().Len())
	}
	return 0
}

// length returns the number of messages in the queue.
func (q *pressureQueue) length() int64 { return q.size(qMessages) }

// reservedCount returns the number of messages that are handed out.
func (q *pressureQueue) reservedCount() int64 {
	if e := q.peek(qReserved); e != nil && e.Type() == engine.Hash {
		return int64(e.Hash().Len())
	}
	return 0
}

// integer returns the number under a key, 0 if there is none.
func (q *pressureQueue) integer(k queueKey) int64 {
	if e := q.peek(k); e != nil && e.Type() == engine.String {
		n, _ := resp.ParseInt(e.Bytes())
		return n
	}
	return 0
}

// push adds elements at the left of a list.
func (q *pressureQueue) push(k queueKey, elements ...[]byte) {
	q.pushAt(listcommands.Left, lpushWord, k, elements)
}

// pushHead adds elements at the right of a list, which is the head of a queue.
func (q *pressureQueue) pushHead(k queueKey, elements ...[]byte) {
	q.pushAt(listcommands.Right, rpushWord, k, elements)
}

func (q *pressureQueue) pushAt(s listcommands.Side, word []byte, k queueKey, elements [][]byte) {
	c := q.c
	e := c.G.Write(c.DB, q.keys[k])
	switch {
	case e == nil:
		e = c.G.Create(c.DB, q.keys[k], lists.New(c.Host.ListLimit()))
	case e.Type() != engine.List:
		return // the type of the key has changed while a client waited
	}
	for _, v := range elements {
		s.Push(e.List(), v)
	}
	c.G.Changed(e, engine.EventList, s.PushEvent())
	c.Journal(append([][]byte{word, q.keys[k]}, elements...)...)
}

// pop takes up to n elements from the right of a list, and calls use, if it is not nil, with each of them.
func (q *pressureQueue) pop(k queueKey, n int64, use func(v []byte)) {
	e := q.list(k)
	if e == nil || n <= 0 {
		return
	}
	n = min(n, int64(e.List().Len()))
	for range n {
		if use != nil {
			use(listcommands.Right.Peek(e.List()))
		}
		e.List().DropBack()
	}
	listcommands.Removed(q.c, e, listcommands.Right.PopEvent())
	q.c.Journal(listcommands.RightPopWord, q.keys[k], strconv.AppendInt(nil, n, 10))
}

// set stores a string.
func (q *pressureQueue) set(k queueKey, v []byte) { effect.Set(q.c, q.keys[k], v) }

// add adds to a number, up to the largest there is.
func (q *pressureQueue) add(k queueKey, by int64) {
	n := q.integer(k)
	if n > 0 {
		by = min(by, math.MaxInt64-n)
	}
	e := q.c.G.Write(q.c.DB, q.keys[k])
	q.c.Store(e, q.keys[k], strconv.AppendInt(nil, n+by, 10), "incrby")
	q.c.Journal(incrbyWord, q.keys[k], strconv.AppendInt(nil, by, 10))
}

// count adds n messages of some size to the counters of produced or consumed messages and bytes.
func (q *pressureQueue) count(messages, bytes queueKey, n, size int64) {
	q.add(messages, n)
	q.add(bytes, size)
}

// remove deletes a key.
func (q *pressureQueue) remove(k queueKey) { effect.Del(q.c, q.keys[k]) }

// removeAll deletes all keys, and forgets what is known of the queue beside them.
func (q *pressureQueue) removeAll() {
	for k := range queueKeys {
		q.remove(k)
	}
	for _, k := range []queueKey{qProducerFree, qConsumerFree, qNotFull} {
		q.service().roles.forget(q.role(k))
	}
	q.service().reservations.forget(q.id())
	q.service().stats.forget(q.id())
}

// reserve hands out a message under an id.
func (q *pressureQueue) reserve(id, value []byte) { effect.HSet(q.c, q.keys[qReserved], id, value) }

// unreserve ends existing reservations. If the queue is closed and empty and has no reservation left, it wakes
// clients that wait for a message.
func (q *pressureQueue) unreserve(ids [][]byte) {
	if len(ids) == 0 {
		return
	}
	c := q.c
	e := c.G.Write(c.DB, q.keys[qReserved])
	for _, id := range ids {
		e.Hash().Delete(id)
	}
	c.Journal(append([][]byte{hdelWord, q.keys[qReserved]}, ids...)...)
	if e.Hash().Len() > 0 {
		c.G.Changed(e, engine.EventHash, "hdel")
		return
	}
	c.G.Notify(engine.EventHash, "hdel", c.DB, e.Key())
	c.G.Remove(e, engine.EventGeneric, "del")
	q.wakeClosed()
}

// wakeClosed wakes clients that wait for the queue to be closed, although it was closed before.
func (q *pressureQueue) wakeClosed() {
	if e := q.peek(qClosed); e != nil {
		q.c.G.Wake(e)
	}
}

// room returns how many messages fit into the queue. The reserved and the delayed ones have their places, so that
// they can always come back; dead ones have none.
func (q *pressureQueue) room() int64 {
	if q.bound == 0 {
		return math.MaxInt64
	}
	return max(q.bound-q.length()-q.reservedCount()-q.delayedCount(), 0)
}

// settleNotFull makes :not_full match the room, without letting in one message too many: the producer may have
// popped the element and not yet pushed its message. mayAdd is for the producer and for a client that has made room,
// which may add the element.
func (q *pressureQueue) settleNotFull(mayAdd bool) {
	n, room := q.size(qNotFull), q.room() > 0
	switch {
	case !room:
		r, role := &q.service().roles, q.role(qNotFull)
		holder := r.holder(role)
		q.pop(qNotFull, n, nil)
		r.set(role, holder) // removing the element does not make the client its holder
	case n == 0 && mayAdd:
		q.push(qNotFull, pressureMark)
	case n > 1:
		e := q.list(qNotFull)
		e.List().Trim(0, 0)
		listcommands.Removed(q.c, e, "ltrim")
		q.c.Journal(ltrimWord, q.keys[qNotFull], pressureMark, pressureMark)
	}
}

// A waiting client takes its role as any client of the protocol does, by popping the element for a free role, and
// holds it while it waits for room or for a message. A client that can do everything at once does not pop the
// element.

// takeRole pops the element of a free role for the client.
func (q *pressureQueue) takeRole(free queueKey) {
	q.pop(free, 1, nil)
}

// giveRole gives the role back, unless the queue is gone by now.
func (q *pressureQueue) giveRole(free queueKey) {
	q.service().roles.forget(q.role(free))
	if !q.has(free) && (q.has(qBound) || q.has(qClosed)) {
		q.push(free, pressureMark)
	}
}

// role returns the list of a role, or :not_full, as a key of roles.
func (q *pressureQueue) role(k queueKey) roleKey { return roleKey{q.c.DB, string(q.keys[k])} }
