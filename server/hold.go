package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// While the last keys of slots go to another shard, commands on these slots wait in their sessions' input, as under
// CLIENT PAUSE. Clients that are blocked on keys of them have what they have done in part undone, so that it does not
// go with the keys, and are answered when it is known who serves the slots.

// slotHolds are the slots whose commands wait.
type slotHolds struct {
	active atomic.Bool // false: no need to look further

	mu      sync.Mutex // protects what follows; only mailboxes are locked under it
	held    []*slotHold
	waiting map[*Session]struct{}
}

// slotHold is the slots of one task.
type slotHold struct {
	of    *slotHolds
	slots cluster.SlotSet
	until int64 // ms since 1970

	withdrawn map[*Session]*wait // of clients that were blocked; used by who holds
}

// hold has commands on slots wait until release is called, but no longer than until.
func (h *slotHolds) hold(slots cluster.SlotSet, until time.Time) *slotHold {
	s := &slotHold{of: h, slots: slots, until: until.UnixMilli(), withdrawn: map[*Session]*wait{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = append(h.held, s)
	h.active.Store(true)
	return s
}

// release ends it: everybody looks again who serves the slots.
func (s *slotHold) release() {
	h := s.of
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, other := range h.held {
		if other == s {
			h.held = append(h.held[:i:i], h.held[i+1:]...)
			break
		}
	}
	h.active.Store(len(h.held) > 0)
	for c := range h.waiting {
		c.post(mailResume)
	}
	h.waiting = nil
	for c := range s.withdrawn {
		c.post(mailMoved)
	}
}

// withdraw withdraws clients that are blocked on keys of the slots, and reports whether all that are have undone what
// they had done in part.
func (s *slotHold) withdraw(srv *Server) (left bool) {
	for _, c := range srv.clients.all() {
		if w := c.snapshot().wait; w != nil && s.slots.Has(w.slot) && w.waiter.Withdraw() {
			s.withdrawn[c] = w
			c.post(mailHeld)
		}
	}
	for _, w := range s.withdrawn {
		if !w.left.Load() {
			return false
		}
	}
	return true
}

// heldBack reports whether the command, which was admitted unless e says something else, must wait, and if so prepares
// the session for it.
func (s *Session) heldBack(e command.Error) bool {
	if e != "" && e != errTryAgain || s.hashSlot == cluster.NoSlot {
		return false
	}
	h := &s.srv.moves.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, held := range h.held {
		if held.slots.Has(s.hashSlot) && held.until > s.now {
			if h.waiting == nil {
				h.waiting = map[*Session]struct{}{}
			}
			h.waiting[s] = struct{}{}
			s.pausedUntil = held.until
			return true
		}
	}
	return false
}

// redirectBlocked answers clients that wait for keys of slots which another shard has now.
func (srv *Server) redirectBlocked(slots *cluster.SlotSet) {
	for _, s := range srv.clients.all() {
		if w := s.snapshot().wait; w != nil && slots.Has(w.slot) && w.waiter.Withdraw() {
			s.post(mailMoved)
		}
	}
}

// redirectSubscribers ends subscriptions to shard channels of slots which another shard has now.
func (srv *Server) redirectSubscribers(slots *cluster.SlotSet) {
	stays := func(kind pubsub.Kind, name string) bool {
		return kind != pubsub.ShardChannel || !slots.Has(cluster.SlotOf([]byte(name)))
	}
	for to := range srv.pubsub.Except(stays) {
		to.(*Session).post(mailUnheard)
	}
}

// endMovedChannels ends the client's subscriptions to shard channels whose slots have another owner, and tells it so.
func (s *Session) endMovedChannels() {
	own := &s.srv.shards.Now().Own
	w := resp.Writer{Proto: s.out.Proto}
	for name := range s.subs.Names(pubsub.ShardChannel) {
		if own.Has(cluster.SlotOf([]byte(name))) {
			continue
		}
		s.subs.Unsubscribe(pubsub.ShardChannel, name)
		w.Push(3)
		w.BulkString("sunsubscribe")
		w.BulkString(name)
		w.Int(int64(s.subs.Len(pubsub.ShardChannel)))
	}
	s.out.RawPart(w.Buf)
}

// undoHeld has a blocked client undo what it has done in part, and wait for the end of the hold.
func (s *Session) undoHeld() {
	w := s.blocked.wait
	if !w.left.Load() {
		s.takeBack()
		w.deadline.Store(0)
		s.blocked.again.Store(0)
		w.left.Store(true)
	}
}

// endMoved answers a blocked client whose slot has another owner, or had one for a while.
func (s *Session) endMoved() {
	w := s.blocked.wait
	if !w.left.Load() && !s.srv.follows() && s.srv.shards.Now().Own.Has(w.slot) {
		s.takeBack()
	}
	e := s.srv.elsewhere(w.slot, true)
	if e == "" {
		e = errTryAgain
	}
	s.endBlock([]byte("-" + string(e) + "\r\n"))
}
