package session

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
)

// Values that are not in memory (maxmemory with tier yes). A command that needs one stops before it has changed
// anything, its session waits until the value has been read, and the command runs again; other clients continue
// meanwhile. The values for the next commands of the pipeline are read at the same time. A script or a transaction
// cannot stop after it has started, so the values of the keys that it names are read before; it reads other values
// itself, under its guard.

// fetching is the state of a session that reads values.
type fetching struct {
	tries   int             // how often the next command has waited
	left    atomic.Int64    // how many values are still being read, plus one while they are requested
	behind  []parsedCommand // the commands that are executed next
	arrived func()          // valueArrived
	needs   []need          // scratch of fetch
}

// need is a key whose value, or parts of it, a command needs.
type need struct {
	key  []byte
	some *engine.Some // nil for all
}

const (
	// maxTries is how often a command waits for values. Then it reads them itself, under its guard. Several tries
	// are needed because some commands find the next key in the value of the one before.
	maxTries = 8
	// maxFetched is the most values that a session requests at once.
	maxFetched = 256
)

// mayWait reports whether a call that needs a value which is not in memory can end early and be repeated.
func (s *Session) mayWait(c *command.Ctx) bool {
	return s.shared.Tiered.Load() && c.Origin == command.FromClient && s.fetching.tries < maxTries && !s.namesValues(c.Cmd)
}

// namesValues reports whether the values that a command needs are read before it runs, because it runs other
// commands.
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

// fetchAway requests the value that a call lacked, and other values that the command needs. It reports whether the
// session waits.
func (s *Session) fetchAway(cmd *command.Command, args [][]byte, missed *engine.Away) bool {
	needs := append(s.fetching.needs[:0], need{[]byte(missed.Key), missed.Some})
	if missed.Some == nil {
		needs = appendNeeds(needs, cmd, args)
	}
	return s.fetch(missed.DB, needs)
}

// fetchNamed requests the values of the keys that a script, or the commands of a transaction, name. It reports
// whether the session waits.
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

// fetch requests the needed values that are not in memory, and those that the next commands will need. It reports
// whether there are any; the session then waits for them.
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
			n.some = engine.UnlessLarge() // for a large value the call will request its parts
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

// valueArrived is called when a value has been read. Any goroutine may call it.
func (s *Session) valueArrived() {
	if s.fetching.left.Add(-1) == 0 {
		s.post(mailFetched)
	}
}

// appendNeeds appends the keys whose values a command needs, without those that it overwrites or removes. If the
// command names an element it needs only that one, and if its reply has no part of the value it needs only the
// length.
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
	// maxmemory may be exceeded by 1/tierExcess of it before commands that need memory wait for values to leave
	// memory. They check again every tierPause ms.
	tierExcess = 8
	TierPause  = 5
	// throttledFrom is the Excess from which a client's commands that need memory are throttled. At a lower Excess
	// they do not wait, because a checkpoint usually ends in time. minInterval is the time in ms between two
	// commands at that Excess, maxInterval the time at an Excess of 1.
	throttledFrom = 0.5
	minInterval   = 0.02
	maxInterval   = 1000
)

// mustWait makes the session wait if memory is full of values that cannot leave it yet, and reports whether the
// command must wait. The fuller the memory, the longer the wait: a checkpoint takes seconds, and without throttling
// clients would fill the memory and then stop for that long. If values leave memory, but more slowly than commands
// such as scripts add others, commands wait only at the full excess.
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
