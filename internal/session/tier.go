package session

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// Values that are not in memory (maxmemory with tier yes). A command that needs one stops before it has changed
// anything, its session waits until the value has been read, and the command runs again; other clients continue meanwhile.
// The values for the next commands of the pipeline are read at the same time. A script or a transaction cannot stop on the
// way, so the values of the keys that it names are read before; others it reads itself, under its guard.

// fetching is what a session has for that.
type fetching struct {
	tries   int             // how often the next command has waited
	left    atomic.Int64    // how many values are to come, and one more while they are asked for
	behind  []parsedCommand // the commands that are executed next
	arrived func()          // valueArrived
	needs   []need          // scratch of fetch
}

// need is a key of which a command needs the value, or some parts of it.
type need struct {
	key  []byte
	some *engine.Some // nil for all
}

const (
	// maxTries is how often a command waits for values. Then it reads them itself, under its guard: some commands find
	// the next key in the value of the one before.
	maxTries = 8
	// maxFetched is how many values a session has read at once.
	maxFetched = 256
)

// mayWait reports whether a call can end early and be made again when it needs a value that is not in memory.
func (s *Session) mayWait(c *command.Ctx) bool {
	return s.shared.Tiered.Load() && c.Origin == command.FromClient && s.fetching.tries < maxTries && !s.namesValues(c.Cmd)
}

// namesValues reports whether the values that a command needs are read before it runs, because it runs others.
func (s *Session) namesValues(cmd *command.Command) bool {
	return cmd.RunsQueue || cmd.Script != nil || cmd.Custom
}

// callTiered is call while values leave memory. Then the session may wait for values, and the command is executed again.
func (s *Session) callTiered(cmd *command.Command, args [][]byte) {
	f := &s.fetching
	if f.tries == 0 && s.namesValues(cmd) && s.fetchNamed(cmd, args) {
		return
	}
	for {
		retry := s.call(cmd, args)
		if retry.Reason != command.RetryAway {
			f.tries = 0
			return
		}
		s.endGuard()
		if s.fetchAway(cmd, args, retry.Away) {
			return
		}
	}
}

// fetchAway has the value read that a call has missed, and others that the command needs. It reports whether the session
// waits.
func (s *Session) fetchAway(cmd *command.Command, args [][]byte, missed *engine.Away) bool {
	needs := append(s.fetching.needs[:0], need{[]byte(missed.Key), missed.Some})
	if missed.Some == nil {
		needs = appendNeeds(needs, cmd, args)
	}
	return s.fetch(missed.DB, needs)
}

// fetchNamed has the values read of the keys that a script names, or the commands of a transaction. It reports whether
// the session waits.
func (s *Session) fetchNamed(cmd *command.Command, args [][]byte) bool {
	s.endGuard()
	needs := appendNeeds(s.fetching.needs[:0], cmd, args)
	if cmd.RunsQueue {
		for _, q := range s.tx.queue {
			needs = appendNeeds(needs, q.cmd, q.args)
		}
	}
	return s.fetch(s.db, needs)
}

// fetch has values read that are not in memory, and those that the commands behind will need. If there are any the session
// waits for them, which fetch reports.
func (s *Session) fetch(db int, needs []need) bool {
	f := &s.fetching
	f.tries++
	own := len(needs)
	if db == s.db {
		for _, p := range f.behind {
			if p.cmd != nil && p.cmd.ArityOK(len(p.args)) {
				needs = appendNeeds(needs, p.cmd, p.args)
			}
		}
	}
	for i := range needs[own:] {
		if n := &needs[own+i]; n.some == nil {
			n.some = engine.UnlessLarge() // of which it will say what it needs
		}
	}
	if f.arrived == nil {
		f.arrived = s.valueArrived
	}
	f.left.Store(1)
	for _, n := range needs[:min(len(needs), maxFetched)] {
		f.left.Add(1)
		if !s.shared.Keyspace.Fetch(db, n.key, n.some, f.arrived) {
			f.left.Add(-1)
		}
	}
	clear(needs)
	f.needs = needs[:0]
	if f.left.Add(-1) == 0 {
		return false
	}
	s.beginWait(forValues, 0)
	s.shared.Counters.TierWaits.Add(1)
	return true
}

// valueArrived is called when a value has come. Any goroutine may call it.
func (s *Session) valueArrived() {
	if s.fetching.left.Add(-1) == 0 {
		s.post(mailFetched)
	}
}

// appendNeeds appends the keys of which a command needs the values: not those that it overwrites or removes. If it
// names an element, that is what it needs, and if it returns nothing of the value, how long that is.
func appendNeeds(needs []need, cmd *command.Command, args [][]byte) []need {
	cmd.EachKey(args, func(i int, spec *command.KeySpec) bool {
		if flags := cmd.UseOfKey(spec, args); needsValue(cmd, flags) {
			n := need{key: args[i]}
			if at := cmd.Element; at != 0 && at < len(args) {
				n.some = engine.SomeElements(args[at])
			} else if cmd.Flags&command.ReadOnly != 0 && !slices.Contains(flags, "access") {
				n.some = engine.OnlyCount()
			}
			needs = append(needs, n)
		}
		return len(needs) < maxFetched
	})
	return needs
}

// needsValue reports whether a command needs the value of a key that it uses as the flags say.
func needsValue(cmd *command.Command, flags []string) bool {
	if slices.Contains(flags, "OW") || slices.Contains(flags, "RM") || slices.Contains(flags, "not_key") {
		return false
	}
	// TYPE, EXISTS, EXPIRE and their like need only the key.
	return cmd.ACL&command.CatKeyspace == 0 || slices.Contains(flags, "access")
}

const (
	// tierExcess is by which part of maxmemory it may be exceeded until commands that need memory wait for values to
	// leave, and tierPause is for how many ms they wait before they look again.
	tierExcess = 8
	TierPause  = 5
	// throttledFrom is the part of that excess from which on such commands of a client are throttled. Less is no reason to
	// wait: usually a checkpoint ends before. minInterval and maxInterval are the ms between two commands, there and at the
	// whole excess.
	throttledFrom = 0.5
	minInterval   = 0.02
	maxInterval   = 1000
)

// mustWait makes the session wait if memory is full of what cannot leave it yet, and reports whether the command must
// wait. The fuller it is, the longer: a checkpoint takes seconds, and clients that went on until there is no room at
// all would stand still for as long. Where values leave, but not as fast as a command brings others, which a script
// does, only the last holds.
func (s *Session) mustWait(cmd *command.Command, args [][]byte) bool {
	leaving := s.room == RoomSoon && s.shared.Tiered.Load()
	if !leaving && s.room != RoomLater || s.shared.Limits.Memory.Load() == 0 || !s.needsMemory(cmd, args, (*command.Command).MayNeedMemory) {
		return false
	}
	excess, now := s.shared.Excess(), float64(s.now)
	switch {
	case excess >= 1:
		s.beginWait(forMemory, s.now+TierPause)
	case leaving || excess < throttledFrom:
		return false
	case s.throttledUntil >= now+1:
		s.beginWait(forMemory, int64(s.throttledUntil))
	default:
		s.throttledUntil = max(s.throttledUntil, now) + throttleInterval(excess)
		return false
	}
	return true
}

// throttleInterval returns the ms between two commands of a client that need memory, for an Excess from throttledFrom to 1.
func throttleInterval(excess float64) float64 {
	return minInterval * math.Pow(maxInterval/minInterval, (excess-throttledFrom)/(1-throttledFrom))
}
