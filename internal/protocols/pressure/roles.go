package pressure

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/due"
	"github.com/atomredis/atomredis/internal/protocols/pressure/keys"
)

// Roles of pressure queues. A client that does the steps of the protocol with commands of its own takes the role of a
// queue's producer by popping the element of :producer_free, and gives it back by pushing one; likewise the
// consumer's with :consumer_free, and the producer takes the element of :not_full before it puts a message in. A
// client that goes away between the two would leave the queue without the element for ever. So the server notes who
// has popped which of them: what a session still has when it is closed is given back. Nobody has anything after a
// restart; roles that were taken then are given back when somebody asks for them.

// roleKey is one of the lists whose elements stand for what at most one client can have.
type roleKey struct {
	db  int
	key string
}

// roles knows who has what. Its lock is taken last.
type roles struct {
	on bool // pressure-role-recovery; never changes, because who has what must be known from the start

	mu sync.Mutex
	// who has popped the element and is still connected; each is also in the owned of the client
	holders map[roleKey]command.Client
}

// ownRoles is what a client has. The lock of roles protects owned.
type ownRoles struct {
	owned map[roleKey]struct{}
	limit int          // of len(owned), from which the session looks for queues that have gone
	count atomic.Int32 // len(owned), for those who have not locked

	// suspects are queues whose roles the session has to look at once its command has ended. Only its own goroutine uses
	// them.
	suspects []due.ID
}

// minHeldLimit is the least ownRoles.limit.
const minHeldLimit = 64

// ownedBy returns what a client has.
func ownedBy(c command.Client) *ownRoles { return c.State(serviceID).(*ownRoles) }

// isRoleList reports whether a key ends like those of the lists. It is asked for every list that is pushed to or
// popped from.
func isRoleList[K string | []byte](key K) bool {
	n := len(key)
	if n < len(keys.NotFull) || key[n-5] != '_' {
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
func (k roleKey) queue() due.ID { return due.ID{DB: k.db, Key: k.key[:roleListBase(k.key)]} }

// Heard implements command.Service.
func (s *Service) Heard(by command.Client, own bool, event string, db int, key string) {
	switch event {
	case "lpop", "rpop":
		if isRoleList(key) {
			s.took(by, own, roleKey{db, strings.Clone(key)})
		}
	case "lpush", "rpush":
		s.roles.pushed(by, db, key)
	case "empty":
		if isRoleList(key) {
			s.missed(by, roleKey{db, strings.Clone(key)})
		}
	}
}

// pushed notes that a client has pushed to a list of whatever kind.
func (r *roles) pushed(c command.Client, db int, key string) {
	switch {
	case isRoleList(key):
		r.forget(roleKey{db, key})
		if base, ok := strings.CutSuffix(key, queueSuffixes[qProducerFree]); ok {
			r.forget(roleKey{db, base + queueSuffixes[qNotFull]}) // who was the producer needs it no more
		}
	case ownedBy(c).count.Load() > 0:
		// The message takes the place that the element of :not_full stood for.
		k := roleKey{db, key + queueSuffixes[qNotFull]}
		if r.holder(k) == c {
			r.forget(k)
		}
	}
}

// missed notes that a client has found a list empty. If it is that of something which nobody is known to have, the
// client will look at the queue. Only its own goroutine finds lists empty.
func (s *Service) missed(c command.Client, k roleKey) {
	if s.roles.holder(k) == nil {
		s.suspect(c, k.queue())
	}
}

// took makes a client the holder.
func (s *Service) took(c command.Client, own bool, k roleKey) {
	r, h := &s.roles, ownedBy(c)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(k, c)
	// Clients that delete queues pop roles and never give them back. Others that serve the client leave it to the next command
	// of its own.
	if len(h.owned) > max(h.limit, minHeldLimit) && own {
		h.limit = 2 * len(h.owned)
		for k := range h.owned {
			s.suspect(c, k.queue())
		}
	}
}

// suspect has a client look at a queue as soon as its command has ended.
func (s *Service) suspect(c command.Client, id due.ID) {
	h := ownedBy(c)
	if len(h.suspects) == 0 {
		c.After(func(now int64) { s.lookAt(h, now) })
	}
	h.suspects = append(h.suspects, id)
}

// set makes a client the holder; nil says that nobody is.
func (r *roles) set(k roleKey, c command.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c == nil {
		r.drop(k)
	} else {
		r.put(k, c)
	}
}

// put is set for those who have locked mu.
func (r *roles) put(k roleKey, c command.Client) {
	r.drop(k)
	r.holders[k] = c
	h := ownedBy(c)
	if h.owned == nil {
		h.owned = map[roleKey]struct{}{}
	}
	h.owned[k] = struct{}{}
	h.count.Store(int32(len(h.owned)))
}

// forget says that nobody has the element any more.
func (r *roles) forget(k roleKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(k)
}

// clear says that nobody has anything any more.
func (r *roles) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.holders {
		r.drop(k)
	}
}

// drop is forget for those who have locked mu.
func (r *roles) drop(k roleKey) {
	c := r.holders[k]
	if c == nil {
		return
	}
	delete(r.holders, k)
	h := ownedBy(c)
	delete(h.owned, k)
	h.count.Store(int32(len(h.owned)))
}

// holder returns who has the element, nil if nobody is known to have it.
func (r *roles) holder(k roleKey) command.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holders[k]
}

// Holder returns the client that has popped the element of a list, nil if nobody is known to have it.
func (s *Service) Holder(db int, list string) command.Client {
	return s.roles.holder(roleKey{db, list})
}

// Holders returns of how many lists it is known who has the element.
func (s *Service) Holders() int {
	s.roles.mu.Lock()
	defer s.roles.mu.Unlock()
	return len(s.roles.holders)
}

// MustSee implements command.Service: closing a client that has roles gives them back.
func (s *Service) MustSee(c command.Client) bool { return ownedBy(c).count.Load() > 0 }

// Gone implements command.Service. It gives back what the client had.
func (s *Service) Gone(c command.Client) {
	h := ownedBy(c)
	if h.count.Load() == 0 {
		return
	}
	queues := map[due.ID]struct{}{}
	s.roles.mu.Lock()
	for k := range h.owned {
		queues[k.queue()] = struct{}{}
	}
	s.roles.mu.Unlock()
	for id := range queues {
		s.underQueue(id, s.host.Keyspace().Now(), func(q *pressureQueue) { q.releaseRoles(c) })
	}
}

// lookAt gives back the roles of a client's suspects that nobody has, and forgets queues that have gone. No guard may
// be held.
func (s *Service) lookAt(h *ownRoles, now int64) {
	suspects := h.suspects
	h.suspects = nil
	for _, id := range suspects {
		s.underQueue(id, now, func(q *pressureQueue) {
			if !q.has(qBound) && !q.has(qClosed) {
				for _, k := range roleLists {
					s.roles.forget(q.role(k))
				}
			}
			q.recoverRoles()
		})
	}
}

// releaseRoles gives back what a client has of the queue.
func (q *pressureQueue) releaseRoles(c command.Client) {
	r := &q.service().roles
	for _, k := range roleLists {
		if r.holder(q.role(k)) != c {
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

// recoverRoles gives back the roles that were taken by clients that were connected before the server started. Of a
// queue that is being created by a client step by step nobody has had a role yet: its later keys are missing.
func (q *pressureQueue) recoverRoles() {
	r := &q.service().roles
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

// restoreNotFull brings :not_full in line with the room there is, after a role was given back: whoever had it may
// have taken the element, or have gone before adding it, or between adding it and removing another. Who still has the
// element will add it.
func (q *pressureQueue) restoreNotFull() {
	if q.has(qBound) {
		q.settleNotFull(q.service().roles.holder(q.role(qNotFull)) == nil)
	}
}
