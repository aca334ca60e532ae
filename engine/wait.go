package engine

import (
	"slices"
	"sync"
)

// Waiter is a blocked client's place in the queues of the keys it waits for. After a change of one of the keys, and
// before any other command runs, Try is called for the key's waiters in order of arrival.
type Waiter struct {
	// DB and Keys are the awaited keys; the waiter owns Keys.
	DB   int
	Keys []string
	// OnRemoval makes removals of keys count as changes, as readers of consumer groups need.
	OnRemoval bool
	// Shards are those that Try uses beside that of its key. If the guard that changed the key does not hold them, the
	// queue is served right afterwards under another guard that does.
	Shards uint64
	// Client is the waiting client.
	Client WaitingClient

	mu    sync.Mutex // protects done and left, and makes calls of Try exclusive
	done  bool
	left  bool // it has left all queues
	nodes []waitNode
	node  [1]waitNode // memory for nodes
}

// WaitingClient is the client of a Waiter.
type WaitingClient interface {
	// Try performs the client's command for a changed key, and reports whether it succeeded. If not, it may have done a
	// part, and the waiter keeps its places in all queues. It may be called from any goroutine.
	Try(g *Guard, key string) bool
	// Served is called after a successful Try, under the guard; the waiter is then done.
	Served()
}

// waitNode is a waiter's place in one queue. The queue's shard protects it.
type waitNode struct {
	waiter     *Waiter
	shard      uint8
	queue      *waitQueue // nil after it has left the queue
	prev, next *waitNode
}

// waitQueue holds the waiters of one key, first come first served. Its shard's lock protects it.
type waitQueue struct {
	dbKey
	shard       uint8
	first, last *waitNode
	streams     int // number of waiters with Stream set
	ready       bool
}

// Wait adds w to the end of the queues of its keys, whose shards the guard must hold. It must be called under the guard
// that found nothing to take, so that no change is missed.
func (g *Guard) Wait(w *Waiter) {
	w.nodes = w.node[:0]
	if len(w.Keys) > 1 {
		w.nodes = make([]waitNode, 0, len(w.Keys)) // nodes must not move
	}
	for i, key := range w.Keys {
		if slices.Contains(w.Keys[:i], key) {
			continue
		}
		index := g.ks.shardIndex(key)
		s := g.shard(index)
		id := dbKey{w.DB, key}
		q := s.queues[id]
		if q == nil {
			q = &waitQueue{dbKey: id, shard: index}
			s.queues[id] = q
		}
		w.nodes = append(w.nodes, waitNode{waiter: w, shard: index, queue: q})
		n := &w.nodes[len(w.nodes)-1]
		if n.prev = q.last; n.prev != nil {
			n.prev.next = n
		} else {
			q.first = n
		}
		q.last = n
		if w.OnRemoval {
			q.streams++
		}
	}
}

// Withdraw ends the wait of a client that times out, is unblocked or disconnects. It returns false if the waiter was
// already served; otherwise Try will not be called any more. Leave must follow in both cases.
func (w *Waiter) Withdraw() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := !w.done
	w.done = true
	return waiting
}

// Leave removes a served or withdrawn waiter from its queues, at time now. No guard may be held.
func (ks *Keyspace) Leave(w *Waiter, now int64) {
	w.mu.Lock()
	left := w.left
	w.mu.Unlock()
	if left {
		return
	}
	var g Guard
	g.Lock(ks, ks.shardsOf(w), now)
	g.unlinkLocked(w)
	g.Unlock()
}

// serveAgain serves the keys of a waiter under a guard that holds all shards of its Try, and returns the waiters after
// it that need further shards.
func (ks *Keyspace) serveAgain(w *Waiter, now int64) []*Waiter {
	var g Guard
	g.Lock(ks, w.AllShards(ks), now)
	for _, key := range w.Keys { // not w.nodes: w may have left, but those after it still wait
		if q, ok := g.shard(ks.shardIndex(key)).queues[dbKey{w.DB, key}]; ok {
			g.markReady(q)
		}
	}
	g.release()
	return g.again
}

// ServeKeys calls Try, at time now, for all waiters of w's keys, in order, as if the keys had changed. No guard may be
// held.
func (ks *Keyspace) ServeKeys(w *Waiter, now int64) {
	for again := ks.serveAgain(w, now); len(again) > 0; {
		again = append(again[1:], ks.serveAgain(again[0], now)...)
	}
}

// AllShards returns the shards of the waiter's keys and those that its Try uses.
func (w *Waiter) AllShards(ks *Keyspace) uint64 { return ks.shardsOf(w) | w.Shards }

// EachWaiter calls fn with the waiters of a key, whose shard the guard must hold, in order of arrival.
func (g *Guard) EachWaiter(db int, key []byte, fn func(w *Waiter)) {
	q := g.shardOfKey(key).queues[dbKey{db, string(key)}]
	if q == nil {
		return
	}
	for n := q.first; n != nil; n = n.next {
		fn(n.waiter)
	}
}

func (ks *Keyspace) shardsOf(w *Waiter) uint64 {
	var set uint64
	for _, k := range w.Keys {
		set |= 1 << ks.shardIndex(k)
	}
	return set
}

func (g *Guard) markReady(q *waitQueue) {
	if !q.ready {
		q.ready = true
		g.ready = append(g.ready, q)
	}
}

// serve calls Try for the waiters of changed keys, in the order in which the keys changed. A waiter's changes may make
// further keys ready.
func (g *Guard) serve() {
	if len(g.ready) > 0 {
		g.now = max(g.now, g.ks.Now()) // a transaction may have taken long, and what it left may have expired
	}
	for i := 0; i < len(g.ready); i++ {
		q := g.ready[i]
		q.ready = false
		g.serveQueue(q)
	}
	clear(g.ready)
	g.ready = g.ready[:0]
}

func (g *Guard) serveQueue(q *waitQueue) {
	for n := q.first; n != nil; {
		if q.streams == 0 && g.PeekString(q.db, q.key) == nil {
			return // nothing left: skip thousands of waiters
		}
		next := n.next
		w := n.waiter
		w.mu.Lock()
		switch {
		case w.done:
			g.unlinkLocked(w)
		case !g.Holds(w.Shards):
			g.again = append(g.again, w) // nobody after it may be served before it
			w.mu.Unlock()
			return
		case w.try(g, q.key):
			w.done = true
			w.left = g.unlinkLocked(w)
			w.Client.Served()
		}
		w.mu.Unlock()
		n = next
	}
}

// try calls Try for a waiter of a changed key. If several of its keys have changed under the guard, it takes the first
// in the waiter's own order.
func (w *Waiter) try(g *Guard, key string) bool {
	if len(w.Keys) == 1 || w.OnRemoval {
		return w.Client.Try(g, key)
	}
	for _, k := range w.Keys {
		if (k == key || g.isReady(dbKey{w.DB, k})) && w.Client.Try(g, k) {
			return true
		}
	}
	return false
}

// isReady reports whether the waiters of a key that has changed under the guard are still to be served.
func (g *Guard) isReady(k dbKey) bool {
	i := g.ks.shardIndex(k.key)
	if !g.Holds(1 << i) {
		return false
	}
	q := g.shard(i).queues[k]
	return q != nil && q.ready
}

// unlinkLocked removes a waiter from its queues in shards that the guard holds, and reports whether these are all.
func (g *Guard) unlinkLocked(w *Waiter) (all bool) {
	all = true
	for i := range w.nodes {
		n := &w.nodes[i]
		switch {
		case g.locked&(1<<n.shard) == 0:
			all = false
		case n.queue != nil:
			g.unlinkWaiter(n)
		}
	}
	return all
}

func (g *Guard) unlinkWaiter(n *waitNode) {
	q := n.queue
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		q.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		q.last = n.prev
	}
	if n.waiter.OnRemoval {
		q.streams--
	}
	n.queue, n.prev, n.next = nil, nil, nil
	if q.first == nil {
		delete(g.ks.shards[q.shard].queues, q.dbKey)
	}
}
