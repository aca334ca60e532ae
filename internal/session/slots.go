package session

import (
	"strings"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
)

// This file finds the slot of a command's keys, in cluster mode.

const (
	errCrossSlot command.Error = "CROSSSLOT Keys in request don't hash to the same slot"
	// Also used if the keys of one command have different slots, as in Redis.
	errScriptForeign   command.Error = "ERR Script attempted to access a non local key in a cluster node"
	errScriptCrossSlot command.Error = "ERR Script attempted to access keys that do not hash to the same slot"

	// ErrTryAgain is the error for a slot whose server is about to change, ErrClusterDown for a slot whose group has
	// no leader.
	ErrTryAgain    command.Error = "TRYAGAIN Who serves the slot is changing"
	ErrClusterDown command.Error = "CLUSTERDOWN The cluster is down"
	// ErrNotServed is the error for a slot that no server has.
	ErrNotServed command.Error = "CLUSTERDOWN Hash slot not served"
)

// redirects reports whether an error tells cluster clients to try another server, or again later.
func redirects(e command.Error) bool {
	return strings.HasPrefix(string(e), "MOVED ") || strings.HasPrefix(string(e), "CLUSTERDOWN ") || e == ErrTryAgain
}

// slotOf is cluster.SlotOfKeys. If there are other shards it also includes keys that commands use without having
// them among their arguments.
func (sh *Shared) slotOf(cmd *command.Command, args [][]byte) (slot int, ok bool) {
	slot, ok = cluster.SlotOfKeys(cmd, args)
	if cmd.DerivedKeys == nil || !ok || sh.Shards == nil || len(sh.Shards.Record().Others) == 0 {
		return slot, ok
	}
	cmd.DerivedKeys(args, func(key []byte) {
		switch n := cluster.SlotOf(key); {
		case slot == cluster.NoSlot:
			slot = n
		case slot != n:
			ok = false
		}
	})
	return slot, ok
}

// elsewhere returns the error that names the server of a slot, "" if this server serves it; see Host.Elsewhere.
func (sh *Shared) elsewhere(slot int, reads bool) command.Error {
	switch {
	case slot == cluster.NoSlot, sh.owns(slot) && (sh.Shards == nil || reads || !sh.Following.Load()):
		return ""
	case sh.Shards == nil:
		return ErrNotServed
	}
	return sh.Host.Elsewhere(slot, reads)
}

// owns reports whether the server, or its shard, has a slot.
func (sh *Shared) owns(slot int) bool {
	if sh.Shards == nil {
		return sh.Cluster == nil || sh.Cluster.Serves(slot)
	}
	return sh.Shards.Now().Own.Has(slot)
}

// oneSlot stores the slot of a transaction, and reports whether it has at most one.
func (s *Session) oneSlot(queue []queuedCommand) bool {
	s.hashSlot = cluster.NoSlot
	for _, q := range queue {
		slot, ok := s.shared.slotOf(q.cmd, q.args)
		switch {
		case !ok:
			return false
		case slot == cluster.NoSlot:
		case s.hashSlot == cluster.NoSlot:
			s.hashSlot = slot
		case s.hashSlot != slot:
			return false
		}
	}
	return true
}
