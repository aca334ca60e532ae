package server

import (
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// What the sessions do while slots are about to be exported (migrate.Migrations.Hold), and when another shard has them.

// heldBack reports whether the command, which was admitted unless e says something else, must wait, and if so prepares
// the session for it.
func (s *Session) heldBack(e command.Error) bool {
	if e != "" && e != errTryAgain || s.hashSlot == cluster.NoSlot {
		return false
	}
	until, wait := s.srv.migrations.Hold(s.hashSlot, s.now, (*heldClient)(s))
	if wait {
		s.pausedUntil = until
	}
	return wait
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
	for name := range s.modes.subs.Names(pubsub.ShardChannel) {
		if own.Has(cluster.SlotOf([]byte(name))) {
			continue
		}
		s.modes.subs.Unsubscribe(pubsub.ShardChannel, name)
		w.Push(3)
		w.BulkString("sunsubscribe")
		w.BulkString(name)
		w.Int(int64(s.modes.subs.Len(pubsub.ShardChannel)))
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
