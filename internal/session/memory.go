package session

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/atomredis/atomredis/internal/command"
)

// The sessions' part of maxmemory and maxmemory-clients: the memory of a client, which commands need memory, and which
// clients are disconnected when all take too much. The server evicts keys.

const errOOM command.Error = "OOM command not allowed when used memory > 'maxmemory'."

// Room is the result of Host.MakeRoom.
type Room uint8

const (
	RoomEnough  Room = iota
	RoomSoon         // keys are still being evicted
	RoomLater        // nothing can leave memory before it is stored
	RoomNowhere      // there is nothing to evict
)

// needsMemory reports whether needs returns true for a command, or for one of those that EXEC runs.
func (s *Session) needsMemory(cmd *command.Command, args [][]byte,
	needs func(cmd *command.Command, host command.Host, args [][]byte) bool) bool {
	if cmd.RunsQueue {
		return slices.ContainsFunc(s.tx.queue, func(q queuedCommand) bool { return needs(q.cmd, s.ctx.Host, q.args) })
	}
	return needs(cmd, s.ctx.Host, args)
}

// Excess returns the degree to which maxmemory is exceeded: at 1 nothing may be added before something has been
// removed.
func (sh *Shared) Excess() float64 {
	limit := sh.Limits.Memory.Load()
	return float64(sh.UsedMemory()-limit) / float64(max(limit/tierExcess, 1))
}

// countMemory counts the memory of a client whose info d has just been refreshed. s.info is locked.
func (s *Session) countMemory(d *clientInfo) {
	n := int64(unsafe.Sizeof(*s)) + int64(d.Input+d.InputFree+max(d.Output, d.Buffer)) + d.Queued + int64(s.modes.subs.Bytes())
	lent := int64(s.out.Lent())
	if s.modes.follower.Following() {
		n, lent = 0, 0 // as in Redis the output for replicas does not count, because evicting keys makes it longer
	}
	if n != d.Memory || lent != d.lent {
		s.shared.Clients.lent.Add(lent - d.lent)
		s.shared.Clients.memory.Add(n - d.Memory)
		d.Memory, d.lent = n, lent
	}
}

// uncountMemory is countMemory for a client that is gone.
func (s *Session) uncountMemory() {
	s.info.Lock()
	defer s.info.Unlock()
	s.shared.Clients.memory.Add(-s.infoData.Memory)
	s.shared.Clients.lent.Add(-s.infoData.lent)
	s.infoData.Memory, s.infoData.lent = 0, 0
}

// evictClients disconnects clients, the largest first, until all clients together take no more than limit bytes. It
// may be called under a guard.
func (sh *Shared) evictClients(limit int64) {
	type client struct {
		s *Session
		d clientInfo
	}
	var all []client
	sum := int64(0)
	for _, s := range sh.Clients.All() {
		d := s.snapshot()
		if s.dying() || d.Closing {
			continue // its memory is about to be freed
		}
		sum += d.Memory
		if !d.NoEvict && d.Memory > 0 {
			all = append(all, client{s, d})
		}
	}
	slices.SortFunc(all, func(a, b client) int { return cmp.Compare(b.d.Memory, a.d.Memory) })
	for _, c := range all {
		if sum <= limit {
			return
		}
		sh.Log.Info("disconnecting a client because clients use more memory than maxmemory-clients allows", "client", c.s.id,
			"addr", c.s.peer.Addr, "bytes", c.d.Memory)
		if w := c.d.keyWait; w != nil {
			w.waiter.Withdraw() // from now on it takes no elements
		}
		c.s.Kill()
		sh.Counters.Evicted.Add(1)
		sum -= c.d.Memory
	}
}
