package pressure

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/due"
	"github.com/atomredis/atomredis/internal/protocols/pressure/keys"
)

// Roles of pressure queues. A client that does the steps of the protocol with ordinary commands takes the producer's
// role by popping the element of :producer_free, and gives it back by pushing one. The same holds for the consumer
// and :consumer_free. The producer also pops the element of :not_full before it pushes a message. A client that
// disconnects in between would leave the queue without the element for ever. So the server records which client has
// popped which element, and gives them back when the session closes. After a restart no holder is known; a role that
// was taken before is given back when a client asks for it.

// roleKey is a list whose element stands for a right that at most one client has.
type roleKey struct {
	db  int
	key string
}

// roles knows the holders of elements. Its lock is taken last.
type roles struct {
	on bool // pressure-role-recovery; constant, because holders must be known from the start

	mu sync.Mutex
	// the connected client that has popped the element; also in the client's owned
	holders map[roleKey]command.Client
}

// ownRoles has the elements that a client holds. The lock of roles protects owned.
type ownRoles struct {
	owned map[roleKey]struct{}
	limit int          // of len(owned), from which the session checks for removed queues
	count atomic.Int32 // len(owned), readable without the lock

	// suspects are queues whose roles the session must check once its command has ended. Only its own goroutine uses
	// them.
	suspects []due.ID
}

// minHeldLimit is the smallest ownRoles.limit.
const minHeldLimit = 64

// ownedBy returns the elements that a client holds.
func ownedBy(c command.Client) *ownRoles { return c.State(serviceID).(*ownRoles) }

// isRoleList reports whether a key ends like a role list. It is called for every push to and pop from any list.
func isRoleList[K string | []byte](key K) bool {
	n := len(key)
	if n < len(keys.NotFull) || key[n-5] != '_' {
		return false
	}
	return roleListBase(string(key)) >= 0
}

// roleListBase returns the index of the suffix in the key of a role list, -1 for any other key.
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
	case "rename_to", "move_to", "copy_to", "restore":
		base, ok := queueWithDue(key)
		if !ok {
			if base, ok = strings.CutSuffix(key, keys.Bound); ok {
				s.reservations.forgetDeleted(due.ID{DB: db, Key: base})
			}
		}
		if ok {
			s.reservations.Note(due.ID{DB: db, Key: strings.Clone(base)}, s.host.Keyspace().Now())
		}
	case "del":
		if base, ok := strings.CutSuffix(key, keys.Bound); ok {
			s.reservations.noteDeleted(due.ID{DB: db, Key: strings.Clone(base)}, s.host.Keyspace().Now())
		}
	}
	if !s.roles.on {
		return
	}
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

// pushed records that a client has pushed to a list, of a role or not.
func (r *roles) pushed(c command.Client, db int, key string) {
	switch {
	case isRoleList(key):
		r.forget(roleKey{db, key})
		if base, ok := strings.CutSuffix(key, queueSuffixes[qProducerFree]); ok {
			r.forget(roleKey{db, base + queueSuffixes[qNotFull]}) // the former producer does not need it any more
		}
	case ownedBy(c).count.Load() > 0:
		// The message uses the room that the element of :not_full stood for.
		k := roleKey{db, key + queueSuffixes[qNotFull]}
		if r.holder(k) == c {
			r.forget(k)
		}
	}
}

// missed records that a client has found a role list empty. If no holder is known, the client will check the queue.
// Only the client's own goroutine calls it.
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
	// Clients that delete queues pop roles and never give them back. Other goroutines that serve the client leave
	// the check to its next own command.
	if len(h.owned) > max(h.limit, minHeldLimit) && own {
		h.limit = 2 * len(h.owned)
		for k := range h.owned {
			s.suspect(c, k.queue())
		}
	}
}

// suspect makes a client check a queue when its command has ended.
func (s *Service) suspect(c command.Client, id due.ID) {
	h := ownedBy(c)
	if len(h.suspects) == 0 {
		c.After(func(now int64) { s.lookAt(h, now) })
	}
	h.suspects = append(h.suspects, id)
}

// set makes a client the holder; nil is no holder.
func (r *roles) set(k roleKey, c command.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c == nil {
		r.drop(k)
	} else {
		r.put(k, c)
	}
}

// put is set with mu locked.
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

// forget removes the holder of an element.
func (r *roles) forget(k roleKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(k)
}

// clear removes all holders.
func (r *roles) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.holders {
		r.drop(k)
	}
}

// drop is forget with mu locked.
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

// holder returns the known holder of an element, or nil.
func (r *roles) holder(k roleKey) command.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holders[k]
}

// Holder returns the client that has popped the element of a list, nil if none is known.
func (s *Service) Holder(db int, list string) command.Client {
	return s.roles.holder(roleKey{db, list})
}

// Holders returns the number of lists with a known holder.
func (s *Service) Holders() int {
	s.roles.mu.Lock()
	defer s.roles.mu.Unlock()
	return len(s.roles.holders)
}

// MustSee implements command.Service: closing a client that has roles gives them back.
func (s *Service) MustSee(c command.Client) bool { return ownedBy(c).count.Load() > 0 }

// Gone implements command.Service. It gives back the client's elements.
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

// lookAt gives back the roles without a holder of a client's suspects, and drops removed queues. No guard may be
// held.
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

// releaseRoles gives back a client's elements of the queue.
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

// recoverRoles gives back the roles of clients from before the server's start. It skips a queue that a client is
// creating step by step: its later keys are missing, and no client has had a role in it yet.
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

// restoreNotFull makes :not_full match the room after a role was given back. The former holder may have taken the
// element, or have disconnected before it added the element, or before it removed a second one. If another client
// still holds the element, that client will add it.
func (q *pressureQueue) restoreNotFull() {
	if q.has(qBound) {
		q.settleNotFull(q.service().roles.holder(q.role(qNotFull)) == nil)
	}
}
