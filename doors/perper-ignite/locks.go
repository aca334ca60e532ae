package perperignite

import (
	"slices"
	"sync"
)

// lockTable has the keys that pessimistic transactions of all peers have locked. Other clients may still write them; a
// commit fails if they have.
type lockTable struct {
	mu    sync.Mutex // protects what follows, and the locks of transactions
	locks map[lockedKey]*keyLock
}

// lockedKey is a key of a cache.
type lockedKey struct {
	cache int32
	key   string
}

// keyLock is a locked key.
type keyLock struct {
	key   lockedKey
	owner *transaction
	queue []*transaction // the transactions that wait for it, the oldest first
}

// lock locks a key for a transaction, or lets the transaction wait for it and returns false. A transaction waits for
// one lock at a time; transaction.granted tells it that it has the lock.
func (l *lockTable) lock(t *transaction, key lockedKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.locks[key]
	switch {
	case k == nil:
		k = &keyLock{key: key, owner: t}
		if l.locks == nil {
			l.locks = map[lockedKey]*keyLock{}
		}
		l.locks[key] = k
		t.held = append(t.held, k)
		return true
	case k.owner == t:
		return true
	}
	k.queue = append(k.queue, t)
	t.waiting = k
	return false
}

// release takes all locks from a transaction, also the one that it waits for.
func (l *lockTable) release(t *transaction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := t.waiting; k != nil {
		t.waiting = nil
		k.queue = slices.DeleteFunc(k.queue, func(other *transaction) bool { return other == t })
	}
	for _, k := range t.held {
		if len(k.queue) == 0 {
			delete(l.locks, k.key)
			continue
		}
		next := k.queue[0]
		k.owner, k.queue = next, k.queue[1:]
		next.held, next.waiting = append(next.held, k), nil
		select {
		case next.granted <- struct{}{}:
		default: // it has not noticed an earlier one yet
		}
	}
	t.held = nil
}
