package server

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine"
)

// Roles of pressure queues. A client that does the steps of the protocol with commands of its own takes the role of a queue's
// producer by popping the element of :producer_free, and gives it back by pushing one; likewise the consumer's with
// :consumer_free, and the producer takes the element of :not_full before it puts a message in. A client that goes away between
// the two would leave the queue without the element for ever. So the server notes who has popped which of them: what a session
// still has when it is closed is given back. Nobody has anything after a restart; roles that were taken then are given back
// when somebody asks for them.

// roleKey is one of the lists whose elements stand for what at most one client can have.
type roleKey struct {
	db  int
	key string
}

// roles knows who has what. Its lock is taken last.
type roles struct {
	srv *Server
	on  bool // pressure-role-recovery; never changes, because who has what must be known from the start

	mu      sync.Mutex
	holders map[roleKey]*Session // who has popped the element and is still connected; each is also in the session's held
}

// heldRoles is what a session has. The lock of roles protects held.
type heldRoles struct {
	held  map[roleKey]struct{}
	limit int          // of len(held), from which the session looks for queues that have gone
	count atomic.Int32 // len(held), for those who have not locked

	// suspects are queues whose roles the session has to look at once its command has ended. Only its own goroutine uses them.
	suspects []queueID
}

// minHeldLimit is the least heldRoles.limit.
const minHeldLimit = 64

func (r *roles) start(srv *Server) {
	r.srv, r.on = srv, srv.config.Get().PressureRoleRecovery
	r.holders = map[roleKey]*Session{}
	if r.on {
		srv.ks.SetEventClasses(roleEvents) // others only once everything that was stored is there
	}
}

// isRoleList reports whether a key ends like those of the lists. It is asked for every list that is pushed to or popped from.
func isRoleList[K string | []byte](key K) bool {
	n := len(key)
	if n < len(":not_full") || key[n-5] != '_' {
		return false
	}
	return roleListBase(string(key)) >= 0
}

// roleListBase returns where in the key of one of the lists its suffix begins, -1 if the key is of no such list.
func roleListBase(key string) int {
	for _, k := range roleLists {
		if strings.HasSuffix(key, queueSuffixes[k]) {
			return len(key) - len(queueSuffixes[k])
		}
	}
	return -1
}

// roleLists are the lists, in the order in which a producer pops them.
var roleLists = [...]queueKey{qProducerFree, qConsumerFree, qNotFull}

// queue returns the queue of a list.
func (k roleKey) queue() queueID { return queueID{k.db, k.key[:roleListBase(k.key)]} }

// roleEvents are the events from which follows who has what.
const roleEvents = engine.EventList | engine.EventEmpty

// heard takes note of an event of a list of whatever kind, which a client has caused.
func (r *roles) heard(by *origin, event string, db int, key string) {
	if !r.on {
		return
	}
	switch event {
	case "lpop", "rpop":
		if isRoleList(key) {
			r.took(by, roleKey{db, strings.Clone(key)})
		}
	case "lpush", "rpush":
		r.pushed(by.session, db, key)
	case "empty":
		if isRoleList(key) {
			r.missed(by.session, roleKey{db, strings.Clone(key)})
		}
	}
}

// pushed notes that a client has pushed to a list of whatever kind.
func (r *roles) pushed(s *Session, db int, key string) {
	switch {
	case isRoleList(key):
		r.forget(roleKey{db, key})
		if base, ok := strings.CutSuffix(key, queueSuffixes[qProducerFree]); ok {
			r.forget(roleKey{db, base + queueSuffixes[qNotFull]}) // who was the producer needs it no more
		}
	case s.roles.count.Load() > 0:
		// The message takes the place that the element of :not_full stood for.
		k := roleKey{db, key + queueSuffixes[qNotFull]}
		if r.holder(k) == s {
			r.forget(k)
		}
	}
}

// missed notes that a client has found a list empty. If it is that of something which nobody is known to have, the session will look at
// the queue. Only its own goroutine finds lists empty.
func (r *roles) missed(s *Session, k roleKey) {
	if r.holder(k) == nil {
		s.roles.suspects = append(s.roles.suspects, k.queue())
	}
}

// took makes a client's session the holder.
func (r *roles) took(by *origin, k roleKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := by.session
	r.put(k, s)
	// Who deletes queues pops roles and never gives them back. Other goroutines act for the session with another origin.
	if h := &s.roles; len(h.held) > max(h.limit, minHeldLimit) && by == &s.origin {
		h.limit = 2 * len(h.held)
		for k := range h.held {
			h.suspects = append(h.suspects, k.queue())
		}
	}
}

// set makes a session the holder; nil says that nobody is.
func (r *roles) set(k roleKey, s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s == nil {
		r.drop(k)
	} else {
		r.put(k, s)
	}
}

// put is set for those who have locked mu.
func (r *roles) put(k roleKey, s *Session) {
	r.drop(k)
	r.holders[k] = s
	h := &s.roles
	if h.held == nil {
		h.held = map[roleKey]struct{}{}
	}
	h.held[k] = struct{}{}
	h.count.Store(int32(len(h.held)))
}

// forget says that nobody has the element any more.
func (r *roles) forget(k roleKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(k)
}

// drop is forget for those who have locked mu.
func (r *roles) drop(k roleKey) {
	s := r.holders[k]
	if s == nil {
		return
	}
	delete(r.holders, k)
	delete(s.roles.held, k)
	s.roles.count.Store(int32(len(s.roles.held)))
}

// holder returns who has the element, nil if nobody is known to have it.
func (r *roles) holder(k roleKey) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holders[k]
}

// release gives back what a session has that is being closed. No guard may be held.
func (r *roles) release(s *Session) {
	queues := map[queueID]struct{}{}
	r.mu.Lock()
	for k := range s.roles.held {
		queues[k.queue()] = struct{}{}
	}
	r.mu.Unlock()
	for id := range queues {
		r.srv.underQueue(id, r.srv.ks.Now(), func(q *pressureQueue) { q.releaseRoles(s) })
	}
}

// lookAtSuspects gives back the roles of queues that nobody has, and forgets queues that have gone. No guard may be held.
func (s *Session) lookAtSuspects() {
	suspects := s.roles.suspects
	s.roles.suspects = nil
	for _, id := range suspects {
		s.srv.underQueue(id, s.now, func(q *pressureQueue) {
			if !q.has(qBound) && !q.has(qClosed) {
				for _, k := range roleLists {
					serverOf(q.c).roles.forget(q.role(k))
				}
			}
			q.recoverRoles()
		})
	}
}

// releaseRoles gives back what s has of the queue.
func (q *pressureQueue) releaseRoles(s *Session) {
	r := &serverOf(q.c).roles
	for _, k := range roleLists {
		if r.holder(q.role(k)) != s {
			continue
		}
		if k == qNotFull {
			r.forget(q.role(k))
		} else {
			q.giveRole(k)
		}
	}
	q.restoreNotFull()
}

// recoverRoles gives back the roles that were taken by clients that were connected before the server started. Of a queue that
// is being created by a client step by step nobody has had a role yet: its later keys are missing.
func (q *pressureQueue) recoverRoles() {
	r := &serverOf(q.c).roles
	if !r.on || !q.has(qBound) {
		return
	}
	lost := func(free queueKey) bool { return !q.has(free) && r.holder(q.role(free)) == nil }
	producer := lost(qProducerFree) && (q.has(qProducer) || q.has(qConsumer) || q.has(qConsumerFree) || q.has(qNotFull))
	consumer := lost(qConsumerFree) && (q.has(qConsumer) || q.has(qNotFull) || q.bound != 0 && q.has(qMessages))
	if producer {
		q.giveRole(qProducerFree)
	}
	if consumer {
		q.giveRole(qConsumerFree)
	}
	if producer || consumer {
		q.restoreNotFull()
	}
}

// restoreNotFull brings :not_full in line with the room there is, after a role was given back: whoever had it may have taken the
// element, or have gone before adding it, or between adding it and removing another. Who still has the element will add it.
func (q *pressureQueue) restoreNotFull() {
	if q.has(qBound) {
		q.settleNotFull(serverOf(q.c).roles.holder(q.role(qNotFull)) == nil)
	}
}
