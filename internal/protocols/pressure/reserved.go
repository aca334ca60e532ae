package pressure

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/due"
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
}

// start prepares r for its service. Numbers begin at a random one, so that ids differ from those of earlier runs of
// the server even if the clock has been set back.
func (r *reservations) start(s *Service) {
	r.redelivered = map[due.ID]int64{}
	r.last.n = uint64(rand.Uint32())
	r.Start(s.host, func(id due.ID, now int64) {
		s.underQueue(id, now, func(q *pressureQueue) { q.returnDue() })
	}, func(e *engine.Entry) (key string, ok bool) {
		if key, ok = strings.CutSuffix(e.Key(), queueSuffixes[qReserved]); !ok || e.Type() != engine.Hash {
			return "", false
		}
		return strings.Clone(key), true
	})
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

// returnDue puts due messages back, or drops the reservations of a removed queue, and notes the next deadline.
func (q *pressureQueue) returnDue() {
	r := &q.service().reservations
	e := q.peek(qReserved)
	if m := q.peek(qMessages); e == nil || e.Type() != engine.Hash || m != nil && m.Type() != engine.List {
		r.Forget(q.id())
		return
	}
	if !q.has(qBound) {
		r.Forget(q.id())
		q.remove(qReserved)
		q.wakeClosed()
		return
	}
	now := q.c.Now()
	if r.Earliest(q.id()) > now {
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
	r.Forget(q.id())
	if next != 0 {
		r.Note(q.id(), next)
	}
	q.giveBack(ids)
}

// refresh gives back roles without a holder, and due messages.
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
