package pressure

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/expiry"
)

// Reserved messages lie in a hash beside their queue until they are acknowledged, returned, or due. The field is the
// id, and the value
//
//	<deadline> <message>
//
// where the deadline, at which the message goes back, is in ms since 1970. Both are all that a restart needs.

// queueID tells queues apart: the database, and the key of the messages.
type queueID struct {
	db   int
	base string
}

// reservations knows when messages are due, and returns them then. Its lock is taken last.
type reservations struct {
	mu          sync.Mutex
	queues      map[queueID]*reservedQueue
	due         expiry.Index[*reservedQueue]
	timer       engine.Timer // fires at armed; nil if there is none
	armed       int64        // ms since 1970
	closed      bool
	finding     bool           // messages may be reserved of which nothing is known
	running     sync.WaitGroup // timers that will fire or have fired and not finished
	last        reservedID     // that was given
	redelivered map[queueID]int64
	service     *Service
}

// reservedQueue is a queue with messages that will be due.
type reservedQueue struct {
	queueID
	earliest int64 // no message is due before, in ms since 1970
	slot     int
}

// SetSlot implements expiry.Item.
func (q *reservedQueue) SetSlot(slot int) { q.slot = slot }

// Slot implements expiry.Item.
func (q *reservedQueue) Slot() int { return q.slot }

// start prepares r for its service. Numbers begin anywhere, so that ids differ from those of the server's earlier
// lives even if the clock has been set back.
func (r *reservations) start(s *Service) {
	r.service = s
	r.queues, r.redelivered = map[queueID]*reservedQueue{}, map[queueID]int64{}
	r.last.n = uint64(rand.Uint32())
}

// close ends the timer and waits for what it has begun.
func (r *reservations) close() {
	r.mu.Lock()
	r.closed = true
	r.disarm()
	r.mu.Unlock()
	r.running.Wait()
}

// newID returns an id that is greater than all before.
func (r *reservations) newID(now int64) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last.ms = max(r.last.ms, uint64(max(now, 0)))
	r.last.n++
	return r.last.append(nil)
}

// note says that a message of the queue will be due at deadline, or before.
func (r *reservations) note(id queueID, deadline int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.queues[id]
	if q == nil {
		q = &reservedQueue{queueID: id, earliest: deadline}
		r.queues[id] = q
	}
	q.earliest = min(q.earliest, deadline)
	r.due.Set(q, q.earliest)
	r.arm()
}

// earliest returns a time before which no message of the queue is due, 0 if nothing is known.
func (r *reservations) earliest(id queueID) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.queues[id]; q != nil {
		return q.earliest
	}
	return 0
}

// looked says that no message of the queue is due any more that was noted.
func (r *reservations) looked(id queueID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.queues[id]; q != nil {
		r.due.Remove(q)
		delete(r.queues, id)
	}
}

// forget drops what is known of a queue that has gone.
func (r *reservations) forget(id queueID) {
	r.looked(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.redelivered, id)
}

// countRedelivered counts messages that went back.
func (r *reservations) countRedelivered(id queueID, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.redelivered[id] += int64(n)
}

// redeliveredFrom returns how many messages went back since the server started.
func (r *reservations) redeliveredFrom(id queueID) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.redelivered[id]
}

// arm makes sure that the timer fires when the next message is due. mu must be locked.
func (r *reservations) arm() {
	now := r.service.host.Keyspace().Now()
	_, at, ok := r.due.Min()
	if look := now + findEvery; r.finding && (!ok || look < at) {
		at, ok = look, true
	}
	if !ok || r.closed || r.timer != nil && r.armed <= at {
		return
	}
	r.disarm()
	r.armed = at
	r.running.Add(1)
	wait := min(max(at-now, 0), maxReservedSleep)
	r.timer = r.service.host.Keyspace().Clock().AfterFunc(time.Duration(wait)*time.Millisecond, func() {
		defer r.running.Done()
		r.fire()
	})
}

// maxReservedSleep in ms keeps far deadlines within a Duration.
const maxReservedSleep = int64(time.Hour / time.Millisecond)

// disarm stops the timer. mu must be locked.
func (r *reservations) disarm() {
	if r.timer != nil && r.timer.Stop() {
		r.running.Done()
	}
	r.timer = nil
}

// fire returns the messages that are due.
func (r *reservations) fire() {
	r.mu.Lock()
	r.timer = nil
	finding := r.finding
	r.mu.Unlock()
	found := finding && r.find()
	now := r.service.host.Keyspace().Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finding = r.finding && !found
	for {
		q, at, ok := r.due.Min()
		if !ok || at > now || r.closed {
			r.arm()
			return
		}
		r.due.Remove(q)
		delete(r.queues, q.queueID)
		r.mu.Unlock()
		r.service.underQueue(q.queueID, now, func(q *pressureQueue) { q.returnDue() })
		r.mu.Lock()
	}
}

// underQueue calls fn with a queue under a guard of its own, on behalf of no client. If a value cannot be read
// everything stays as it is. No guard may be held.
func (s *Service) underQueue(id queueID, now int64, fn func(q *pressureQueue)) {
	keys := newQueueKeys([]byte(id.base))
	var g engine.Guard
	ks := s.host.Keyspace()
	g.Lock(ks, queueShards(ks, keys), now)
	defer g.Unlock()
	if s.host.Follows() {
		return // the master does it
	}
	defer func() {
		if p := recover(); p != nil {
			s.host.Log().Error("cannot look after a pressure queue", "key", id.base, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	q := &pressureQueue{c: &command.Ctx{G: &g, DB: id.db, Host: s.host, NoBlock: true}, keys: keys}
	q.bound = q.integer(qBound)
	fn(q)
}

// returnDue puts those messages back whose time has come, or drops what is reserved of a queue that has gone, and
// notes when the next are due.
func (q *pressureQueue) returnDue() {
	r := &q.service().reservations
	e := q.peek(qReserved)
	if m := q.peek(qMessages); e == nil || e.Type() != engine.Hash || m != nil && m.Type() != engine.List {
		r.looked(q.id())
		return
	}
	if !q.has(qBound) {
		r.looked(q.id())
		q.remove(qReserved)
		q.wakeClosed()
		return
	}
	now := q.c.Now()
	if r.earliest(q.id()) > now {
		return
	}
	var ids [][]byte
	next := int64(0)
	for id, v := range e.Hash().All() {
		switch deadline, _ := parseReserved(v); {
		case deadline <= now:
			ids = append(ids, append([]byte(nil), id...))
		case next == 0 || deadline < next:
			next = deadline
		}
	}
	r.looked(q.id())
	if next != 0 {
		r.note(q.id(), next)
	}
	q.giveBack(ids)
}

// refresh gives back what nobody has any more: roles, and messages that are due.
func (q *pressureQueue) refresh() {
	q.recoverRoles()
	if q.has(qReserved) {
		q.returnDue()
	}
}

// appendReserved appends the value of a field of the hash of reserved messages.
func appendReserved(dst []byte, deadline int64, message []byte) []byte {
	return append(append(strconv.AppendInt(dst, deadline, 10), ' '), message...)
}

// parseReserved reads such a value. One that we have not written is a message that is due.
func parseReserved(v []byte) (deadline int64, message []byte) {
	at, message, ok := bytes.Cut(v, []byte{' '})
	if ok {
		n, err := strconv.ParseInt(string(at), 10, 64)
		if err == nil {
			return n, message
		}
	}
	return 0, v
}

// parseReservedID reads an id. One that we have not given comes before all others.
func parseReservedID(b []byte) (id reservedID) {
	ms, n, _ := strings.Cut(string(b), "-")
	id.ms, _ = strconv.ParseUint(ms, 10, 64)
	id.n, _ = strconv.ParseUint(n, 10, 64)
	return id
}

// compare orders ids by the time when they were given.
func (id reservedID) compare(other reservedID) int {
	return cmp.Or(cmp.Compare(id.ms, other.ms), cmp.Compare(id.n, other.n))
}

// After a start, messages may be reserved of which nothing is known. They are looked for once all keys are in memory.

const (
	findEvery = 100  // ms between looks whether the keys are in memory
	findBatch = 1000 // keys that are looked at under one guard
)

// findStored has messages looked for that were reserved before the start.
func (r *reservations) findStored() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finding = true
	r.arm()
}

// find looks for queues with reserved messages, a piece of the keyspace at a time, and reports whether it could.
func (r *reservations) find() bool {
	s := r.service
	ks := s.host.Keyspace()
	if s.host.Loading() {
		return false
	}
	for db := range ks.Databases() {
		for cursor, more := uint64(0), true; more; more = cursor != 0 && !r.isClosed() {
			var found []queueID
			var g engine.Guard
			g.Lock(ks, engine.AllShards, ks.Now())
			cursor = g.Scan(db, cursor, findBatch, func(e *engine.Entry) {
				if e.Type() != engine.Hash {
					return
				}
				if base, ok := strings.CutSuffix(e.Key(), queueSuffixes[qReserved]); ok {
					found = append(found, queueID{db, strings.Clone(base)})
				}
			})
			g.Unlock()
			for _, id := range found {
				s.underQueue(id, ks.Now(), func(q *pressureQueue) { q.returnDue() })
			}
		}
	}
	return true
}

func (r *reservations) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}
