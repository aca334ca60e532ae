package migrate

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/cluster"
)

// While the last keys of slots are sent, commands on these slots wait in their sessions' input, as under CLIENT PAUSE.
// Clients that are blocked on keys of the slots undo partial work, so that it does not migrate with the keys. They get
// their reply when it is known which shard serves the slots.

// Waiting is a client whose command waits. Implementations are compared.
type Waiting interface {
	// Resume makes the client try its command again. It locks mailboxes only.
	Resume()
}

// Blocked is a client that Host.WithdrawBlocked has withdrawn.
type Blocked interface {
	// Undone reports whether the client has undone its partial work.
	Undone() bool
	// Resume makes the client reply that another shard has the slot, or that the command must be tried again. It locks
	// mailboxes only.
	Resume()
}

// holds are the slots whose commands wait.
type holds struct {
	active atomic.Bool // some slots are held

	mu      sync.Mutex // protects the fields below; only mailboxes are locked under it
	held    []*hold
	waiting map[Waiting]struct{}
}

// hold is the slots of one task.
type hold struct {
	h     *Migrations
	slots cluster.SlotSet
	until int64 // ms since 1970

	withdrawn []Blocked // only the owner of the hold uses it
}

// hold makes commands on slots wait until release is called, at most until a time.
func (h *Migrations) hold(slots cluster.SlotSet, until time.Time) *hold {
	s := &hold{h: h, slots: slots, until: until.UnixMilli()}
	h.holds.mu.Lock()
	defer h.holds.mu.Unlock()
	h.holds.held = append(h.holds.held, s)
	h.holds.active.Store(true)
	return s
}

// release ends the hold and resumes all clients.
func (s *hold) release() {
	all := &s.h.holds
	all.mu.Lock()
	defer all.mu.Unlock()
	all.held = slices.DeleteFunc(slices.Clone(all.held), func(other *hold) bool { return other == s })
	all.active.Store(len(all.held) > 0)
	for c := range all.waiting {
		c.Resume()
	}
	all.waiting = nil
	for _, c := range s.withdrawn {
		c.Resume()
	}
}

// withdraw withdraws clients that are blocked on keys of the slots, and reports whether all withdrawn clients have undone
// their partial work.
func (s *hold) withdraw() (undone bool) {
	s.withdrawn = append(s.withdrawn, s.h.host.WithdrawBlocked(&s.slots)...)
	return !slices.ContainsFunc(s.withdrawn, func(c Blocked) bool { return !c.Undone() })
}

// Holding reports whether commands on some slots wait. h may be nil.
func (h *Migrations) Holding() bool { return h != nil && h.holds.active.Load() }

// Hold reports whether a command on a slot must wait, and until when at most, in ms since 1970. The client is resumed when
// a hold ends.
func (h *Migrations) Hold(slot int, now int64, c Waiting) (until int64, wait bool) {
	all := &h.holds
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, held := range all.held {
		if held.slots.Has(slot) && held.until > now {
			if all.waiting == nil {
				all.waiting = map[Waiting]struct{}{}
			}
			all.waiting[c] = struct{}{}
			return held.until, true
		}
	}
	return 0, false
}
