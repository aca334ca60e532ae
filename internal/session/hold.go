package session

import (
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/migrate"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// The behaviour of sessions while slots are about to be exported (migrate.Migrations.Hold), and after another shard
// has got them.

// heldBack makes the session wait if the command must wait, and reports whether it must. e is the result of
// admitting the command.
func (s *Session) heldBack(e command.Error) bool {
	if e != "" && e != ErrTryAgain || s.hashSlot == cluster.NoSlot {
		return false
	}
	until, wait := s.shared.Migrations.Hold(s.hashSlot, s.now, (*heldClient)(s))
	if wait {
		s.beginWait(forSlots, until)
	}
	return wait
}

// WithdrawBlocked withdraws the clients that are blocked on keys of the slots, so that they take nothing while the keys leave.
func (r *Register) WithdrawBlocked(slots *cluster.SlotSet) (list []migrate.Blocked) {
	for _, s := range r.All() {
		if w := s.snapshot().keyWait; w != nil && slots.Has(w.slot) && w.waiter.Withdraw() {
			list = append(list, withdrawn{s, w})
			s.post(mailHeld)
		}
	}
	return list
}

// withdrawn is a session that was blocked, as migrate.Blocked.
type withdrawn struct {
	s *Session
	w *keyWait
}

// Undone implements migrate.Blocked.
func (c withdrawn) Undone() bool { return c.w.left.Load() }

// Resume implements migrate.Blocked.
func (c withdrawn) Resume() { c.s.post(mailMoved) }

// heldClient is a session as migrate.Waiting.
type heldClient Session

// Resume implements migrate.Waiting.
func (c *heldClient) Resume() { (*Session)(c).post(mailResume) }

// SlotsLost answers clients that wait for keys of slots which the server, or its shard, has no longer, and ends subscriptions
// to their shard channels. The guard over everything is held: a command under an earlier guard waits for its keys already,
// and one under a later guard is refused.
func (sh *Shared) SlotsLost(slots *cluster.SlotSet) {
	for _, s := range sh.Clients.All() {
		if w := s.snapshot().keyWait; w != nil && slots.Has(w.slot) && w.waiter.Withdraw() {
			s.post(mailMoved)
		}
	}
	stays := func(kind pubsub.Kind, name string) bool {
		return kind != pubsub.ShardChannel || !slots.Has(cluster.SlotOf([]byte(name)))
	}
	for to := range sh.PubSub.Except(stays) {
		to.(*Session).post(mailUnheard)
	}
}

// endMovedChannels ends the client's subscriptions to shard channels whose slots the server has no longer, and tells it so.
func (s *Session) endMovedChannels() {
	w := resp.Writer{Proto: s.out.Proto}
	for name := range s.modes.subs.Names(pubsub.ShardChannel) {
		if s.shared.owns(cluster.SlotOf([]byte(name))) {
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

// undoHeld undoes a blocked client's half-done work; the client then waits for the end of the hold.
func (s *Session) undoHeld() {
	w := s.blocked.keyWait
	if !w.left.Load() {
		s.takeBack()
		w.deadline.Store(0)
		s.blocked.again.Store(0)
		w.left.Store(true)
	}
}

// endMoved answers a blocked client whose slot the server has no longer, or did not have for a while.
func (s *Session) endMoved() {
	w := s.blocked.keyWait
	if !w.left.Load() && !s.shared.follows() && s.shared.owns(w.slot) {
		s.takeBack()
	}
	e := s.shared.elsewhere(w.slot, true)
	if e == "" {
		e = ErrTryAgain
	}
	s.endBlock([]byte("-" + string(e) + "\r\n"))
}
