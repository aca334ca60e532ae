package pressure

import (
	"bytes"
	"cmp"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/due"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
)

// Reserved messages are in a hash beside their queue until they are acknowledged, returned, or due. The field is the
// id, and the value is
//
//	<deadline> <message>
//
// with the time at which the message goes back, in ms since 1970. A restart needs nothing else.

// reservations knows when messages are due, and returns them then. Its lock is taken last.
type reservations struct {
	due.Schedule

	mu          sync.Mutex // protects what follows
	last        reservedID // that was given
	redelivered map[due.ID]int64
	deleted     map[due.ID]int64 // queues whose :bound was deleted → when
	deletions   atomic.Int64     // the length of deleted; mu need not be locked
}

const (
	// leftoverPause is after how many ms the timer removes what the deletion of a queue has left: MIGRATE deletes :bound
	// too, and then the other keys may be on their way.
	leftoverPause = 60_000
	// maxDeleted is how many deleted queues are remembered. What others leave stays until PRESSURE.CREATE.
	maxDeleted = 10_000
)

// noteDeleted records that the :bound of a queue was deleted. Clients of the protocol's steps delete queues so, and
// leave the added keys behind.
func (r *reservations) noteDeleted(id due.ID, now int64) {
	r.mu.Lock()
	if len(r.deleted) < maxDeleted {
		r.deleted[id] = now
	}
	r.deletions.Store(int64(len(r.deleted)))
	r.mu.Unlock()
	r.Note(id, now+leftoverPause)
}

// deletedAt returns when the :bound of a queue was deleted, if leftovers may still be there.
func (r *reservations) deletedAt(id due.ID) (at int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok = r.deleted[id]
	return at, ok
}

// forgetDeleted records that a queue has no leftovers.
func (r *reservations) forgetDeleted(id due.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.deleted, id)
	r.deletions.Store(int64(len(r.deleted)))
}

// dropLeftovers removes the added keys of a deleted queue once there is a new one, or when its time has come.
func (q *pressureQueue) dropLeftovers(timer bool) {
	r := &q.service().reservations
	if r.deletions.Load() == 0 {
		return
	}
	at, ok := r.deletedAt(q.id())
	if !ok {
		return
	}
	if q.bare {
		q.bare = false
		q.addKeys() // they may have come here without :+settings
	}
	if !q.has(qBound) && (!timer || q.c.Now() < at+leftoverPause) {
		r.Note(q.id(), at+leftoverPause)
		return
	}
	r.forgetDeleted(q.id())
	for k := qReserved; k < qChecked; k++ {
		if k != qReserved || q.reservedIsOurs() {
			q.remove(k)
		}
	}
	q.settleNotFull(true)
	q.wakeClosed()
}

// reservedIsOurs reports whether :reserved has reserved messages: another program may have a key of this name.
func (q *pressureQueue) reservedIsOurs() bool {
	h := effect.Hash(q.c, q.keys[qReserved])
	if h == nil {
		return false
	}
	for id := range h.All() {
		if parseReservedID(id).ms == 0 {
			return false
		}
	}
	return true
}

// firstNumber is the least number of an id: ids of one time then have equally many digits, so that a sorted set has
// them in their order.
const firstNumber = 1_000_000_000

// start prepares r for its service. Numbers begin at a random one, so that ids differ from those of earlier runs of
// the server even if the clock has been set back.
func (r *reservations) start(s *Service) {
	r.redelivered, r.deleted = map[due.ID]int64{}, map[due.ID]int64{}
	r.last.n = firstNumber + uint64(rand.Uint32())
	r.Start(s.host, s.comeDue, hasDue)
}

// comeDue does what is due in a queue. If databases were swapped, the queue may be in another one by now.
func (s *Service) comeDue(id due.ID, now int64) {
	if s.host.Follows() {
		s.reservations.forgetDeleted(id) // the master removes them
	}
	for db := range s.host.Keyspace().Databases() {
		s.underQueue(due.ID{DB: db, Key: id.Key}, now, func(q *pressureQueue) {
			if db == id.DB || q.mayComeDue() {
				q.comeDue(true)
			}
		})
	}
}

// newID returns an id that is greater than all before.
func (r *reservations) newID(now int64) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last.ms = max(r.last.ms, uint64(max(now, 0)))
	r.last.n++
	return r.last.append(nil)
}

// forget drops the state of a removed queue.
func (r *reservations) forget(id due.ID) {
	r.Forget(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.redelivered, id)
	delete(r.deleted, id)
	r.deletions.Store(int64(len(r.deleted)))
}

// countRedelivered counts messages that went back.
func (r *reservations) countRedelivered(id due.ID, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.redelivered[id] += int64(n)
}

// redeliveredFrom returns how many messages went back since the server started.
func (r *reservations) redeliveredFrom(id due.ID) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.redelivered[id]
}

// underQueue calls fn with a queue under its own guard, without a client. No guard may be held.
func (s *Service) underQueue(id due.ID, now int64, fn func(q *pressureQueue)) {
	keys := newQueueKeys([]byte(id.Key))
	due.Under(s.host, id, queueShards(s.host.Keyspace(), keys), now, func(c *command.Ctx) {
		q := &pressureQueue{c: c, keys: keys}
		q.bound = q.integer(qBound)
		fn(q)
	})
}

// returnDue ends the reservations that are due, and returns the time of the next one.
func (q *pressureQueue) returnDue() (next int64) {
	next = math.MaxInt64
	h := effect.Hash(q.c, q.keys[qReserved])
	if h == nil {
		return next
	}
	var ids [][]byte
	for id, v := range h.All() {
		if deadline, _ := parseReserved(v); deadline <= q.c.Now() {
			ids = append(ids, bytes.Clone(id))
		} else {
			next = min(next, deadline)
		}
	}
	q.expire(ids)
	return next
}

// refresh gives back roles without a holder, does what is due, and drops the notes of messages that others have taken.
// The queue must just have been opened.
func (q *pressureQueue) refresh() {
	q.recoverRoles()
	q.dropLeftovers(false)
	if q.bare && !q.has(qReserved) {
		return
	}
	if q.mayComeDue() {
		q.comeDue(false)
	}
	if q.has(qNotes) && !q.has(qMessages) {
		q.remove(qNotes)
	}
}

// appendReserved appends the value of a field of the hash of reserved messages.
func appendReserved(dst []byte, deadline int64, message []byte) []byte {
	return append(append(strconv.AppendInt(dst, deadline, 10), ' '), message...)
}

// parseReserved reads such a value. An invalid one counts as a message that is due.
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

// parseReservedID reads an id. An invalid one comes before all others.
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
