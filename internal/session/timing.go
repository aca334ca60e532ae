package session

import (
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/stats"
	"github.com/atomredis/atomredis/persist/journal"
)

// How long commands take. Reading the clock costs as much as a tenth of a short command, so that runs of equal
// commands whose cost is constant share one reading (pendingCalls), and only commands that may be slow are measured by
// themselves. Each command of a run counts with the mean. If a run is slow enough for the slow log or the latency monitor,
// the session's next commands are measured one by one; with thresholds under a millisecond all commands are. The latency
// monitor gets a slow run as one event, because other clients waited for all of it. The slow log does not get it, because
// the slow command is not known.

// Timing has the settings about durations that sessions read for every batch.
type Timing struct {
	limit    atomic.Int64 // in ns: the least duration of a slow command; math.MaxInt64 without one
	exact    atomic.Bool  // all commands are measured one by one
	tracking atomic.Bool  // latency-tracking
	// large is the least number of bytes of a request or a reply that is logged as large.
	large atomic.Int64
	hot   atomic.Pointer[stats.HotKeys] // the measurement of HOTKEYS; nil if there is none
	slots atomic.Bool                   // the cost of commands is counted for each slot
}

const (
	// exactBelow is the limit below which a run of maxPendingCalls short commands could reach it without any of them being slow.
	exactBelow = int64(time.Millisecond)
	// exactAfterSlow is how many commands are measured one by one after a slow run.
	exactAfterSlow = 256
)

// Set takes over the settings.
func (t *Timing) Set(set *config.Settings) {
	limit := int64(math.MaxInt64)
	if n := set.Monitoring.SlowlogLogSlowerThan; n >= 0 && set.Monitoring.SlowlogMaxLen > 0 {
		limit = min(int64(n), math.MaxInt64/int64(time.Microsecond)) * int64(time.Microsecond)
	}
	if n := set.Monitoring.LatencyMonitorThreshold; n > 0 {
		limit = min(limit, min(int64(n), math.MaxInt64/int64(time.Millisecond))*int64(time.Millisecond))
	}
	t.limit.Store(limit)
	t.slots.Store(set.Cluster.Enabled && set.Cluster.SlotStats.OfCommands())
	t.setExact()
	t.tracking.Store(set.Monitoring.LatencyTracking)
	large := int64(math.MaxInt64)
	if n := set.Monitoring.CommandlogRequestLargerThan; n >= 0 && set.Monitoring.CommandlogLargeRequestMaxLen > 0 {
		large = int64(n)
	}
	if n := set.Monitoring.CommandlogReplyLargerThan; n >= 0 && set.Monitoring.CommandlogLargeReplyMaxLen > 0 {
		large = min(large, int64(n))
	}
	t.large.Store(large)
}

// Measure begins to measure the use of keys, or ends it if hot is nil.
func (t *Timing) Measure(hot *stats.HotKeys) {
	t.hot.Store(hot)
	t.setExact()
}

// measured ends a measurement whose duration has passed, unless another one has begun.
func (t *Timing) measured(hot *stats.HotKeys) {
	t.hot.CompareAndSwap(hot, nil)
	t.setExact()
}

func (t *Timing) setExact() {
	t.exact.Store(t.hot.Load() != nil || t.slots.Load() || t.limit.Load() < exactBelow)
}

// pendingCalls counts consecutive calls of one command, which are common in pipelines, so that the clock is read and
// the shared counters are changed once for several calls.
type pendingCalls struct {
	cmd   *command.Command // nil: nothing is counted
	calls int64
	args  [][]byte // of the only call; nil if they may be invalid when the call is flushed
	start int64    // Shared.Ticks when the first of them began
}

// maxPendingCalls bounds how many calls share a reading of the clock.
const maxPendingCalls = maxAhead

// begin counts a call that is about to begin, or reports that it is to be measured alone, from start to Session.end.
func (s *Session) begin(c *command.Ctx) (start int64, alone bool) {
	t := &s.pendingCalls
	if c.Cmd.Slow || s.exact {
		s.flushCalls()
		return t.start, true
	}
	if t.cmd != c.Cmd || t.calls == maxPendingCalls {
		inScript := c.Origin.In(command.FromScript)
		if t.cmd != nil || inScript {
			s.flushCalls() // otherwise the clock has just been read
		}
		t.cmd = c.Cmd
		if t.args = c.Args; inScript {
			t.args = nil
		}
	}
	t.calls++
	return 0, false
}

// uncountCall undoes begin: the call will be repeated.
func (s *Session) uncountCall() {
	if s.pendingCalls.calls--; s.pendingCalls.calls == 0 {
		s.pendingCalls.cmd = nil
	}
}

// end counts a call that was measured alone. Its reply has so many bytes.
func (s *Session) end(c *command.Ctx, start int64, reply int) {
	s.flushCalls() // of the commands that it has called
	took := s.pendingCalls.start - start
	s.heat(c, took, reply)
	s.shared.CommandStats.Of(c.Cmd).Count(1, took)
	if b := s.blocked; s.isBlocked() && b.ctx.Cmd == c.Cmd && !c.NoBlock {
		b.took = took // the call has not ended: endBlock examines it
		return
	}
	s.examine(c.Cmd, c.Args, 1, took)
	if s.exactCalls > 0 {
		s.exactCalls--
	}
}

// flushCalls adds the counted calls to the server's statistics and begins a new measurement.
func (s *Session) flushCalls() {
	now := s.shared.Ticks()
	t := s.pendingCalls
	s.pendingCalls = pendingCalls{start: now}
	if t.cmd != nil {
		s.shared.CommandStats.Of(t.cmd).Count(t.calls, now-t.start)
		s.examine(t.cmd, t.args, t.calls, now-t.start)
	}
	s.exact = s.exactCalls > 0 || s.shared.Timing.exact.Load()
}

// examine records the duration of calls of a command, took ns in total. args are those of a single call; nil if they
// are not known.
func (s *Session) examine(cmd *command.Command, args [][]byte, calls, took int64) {
	if took > exactBelow {
		s.now = s.shared.Keyspace.Now() // slow commands must not leave the following ones in the past
	}
	if s.unobserved {
		return
	}
	if s.shared.Timing.tracking.Load() {
		s.shared.CommandStats.Of(cmd).Observe(took/calls, calls)
	}
	if took < s.shared.Timing.limit.Load() {
		return
	}
	set := s.shared.Config.Get()
	if calls > 1 {
		s.exactCalls = exactAfterSlow
	} else if n := set.Monitoring.SlowlogLogSlowerThan; n >= 0 && took/int64(time.Microsecond) >= int64(n) &&
		cmd.Flags&command.SkipSlowlog == 0 && args != nil {
		s.log(stats.SlowCommands, cmd, args, took/int64(time.Microsecond), set.Monitoring.SlowlogMaxLen)
		s.shared.CommandStats.Of(cmd).CountSlow(took / int64(time.Microsecond))
		if s.shared.Slow != nil {
			s.tellSlow(cmd, args, took)
		}
	}
	event := "command"
	if cmd.Flags&command.Fast != 0 {
		event = "fast-command"
	}
	s.shared.Latency.Add(event, s.now, took, set.Monitoring.LatencyMonitorThreshold)
}

// SlowCommand describes a slow command for Options.Slow, without its arguments.
type SlowCommand struct {
	Name      string // in lower case, of a sub-command with a bar
	End       time.Time
	Took      time.Duration
	Keys      int // how many
	Arguments int // how many, with the name
	DB        int
	Client    int64 // the number of the client
	Addr      string
}

// tellSlow adds a slow command and its duration in ns to the slow log and LATENCY, and calls Options.Slow.
func (s *Session) tellSlow(cmd *command.Command, args [][]byte, took int64) {
	keys := 0
	cmd.EachKey(args, func(int, *command.KeySpec) bool {
		keys++
		return true
	})
	s.shared.Slow(SlowCommand{Name: cmd.Name, End: time.Now(), Took: time.Duration(took), Keys: keys, Arguments: len(args), DB: s.db,
		Client: int64(s.id), Addr: s.peer.Addr})
}

// log adds a command to a log, which keeps the given number of entries.
func (s *Session) log(kind stats.LogKind, cmd *command.Command, args [][]byte, value int64, entries int) {
	set := s.shared.Config.Get()
	s.shared.CommandLogs[kind].Add(s.shared.Keyspace.Now(), s.peer.Addr, s.modes.options.Name, cmd, args, value,
		stats.LogLimits{Entries: entries, Args: set.Monitoring.SlowlogEntryMaxArgc, Bytes: set.Monitoring.SlowlogEntryMaxStringLen})
}

// logLarge logs a command of the client if its request or its reply has as many bytes as the settings say.
func (s *Session) logLarge(cmd *command.Command, args [][]byte, request, reply int) {
	if cmd == nil || cmd.Flags&command.SkipSlowlog != 0 || s.unobserved {
		return
	}
	set := s.shared.Config.Get()
	if n := set.Monitoring.CommandlogRequestLargerThan; n >= 0 && request >= n && set.Monitoring.CommandlogLargeRequestMaxLen > 0 {
		s.log(stats.LargeRequests, cmd, args, int64(request), set.Monitoring.CommandlogLargeRequestMaxLen)
	}
	if n := set.Monitoring.CommandlogReplyLargerThan; n >= 0 && reply >= n && set.Monitoring.CommandlogLargeReplyMaxLen > 0 {
		s.log(stats.LargeReplies, cmd, args, int64(reply), set.Monitoring.CommandlogLargeReplyMaxLen)
	}
}

// heat adds the cost of a call to the measurements of its keys and their slot, if there are any.
func (s *Session) heat(c *command.Ctx, took int64, reply int) {
	hot, bySlot := s.shared.Timing.hot.Load(), s.shared.Timing.slots.Load()
	if hot == nil && !bySlot || !c.Origin.In(command.FromClient|command.FromQueue) {
		return
	}
	var room [16][]byte
	keys := room[:0]
	c.Cmd.EachKey(c.Args, func(i int, _ *command.KeySpec) bool {
		keys = append(keys, c.Args[i])
		return true
	})
	slot := cluster.NoSlot
	micros, request := took/int64(time.Microsecond), requestSize(c.Args)
	if s.shared.Cluster != nil && len(keys) > 0 {
		slot = cluster.SlotOf(keys[0])
		if counters := s.shared.Cluster.Stats.Load(); counters != nil {
			counters[slot].Micros.Add(micros)
			counters[slot].In.Add(int64(request))
			counters[slot].Out.Add(int64(reply))
		}
	}
	if hot != nil && !hot.Use(s.shared.Keyspace.Now(), slot, keys, took, int64(request+reply)) {
		s.shared.Timing.measured(hot)
	}
}

// requestSize returns how many bytes the arguments have as a request.
func requestSize(args [][]byte) int {
	n := len("*\r\n") + len(strconv.Itoa(len(args)))
	for _, a := range args {
		n += len("$\r\n\r\n") + len(strconv.Itoa(len(a))) + len(a)
	}
	return n
}

// Names of events other than commands that delay clients; those of Redis where it has one. The server measures
// evictions.
var (
	holdEvents = [...]string{engine.LockedForExpiry: "expire-cycle", engine.LockForCheckpoint: "checkpoint",
		engine.LockForLoading: "loading"}
	waitEvents = [...]string{journal.WaitWrite: "aof-write", journal.WaitSync: "aof-fsync-always",
		journal.WaitLag: "aof-write-pending-fsync"}
)

// Held records work of the keyspace that commands had to wait for.
func (sh *Shared) Held(by engine.LockReason, took time.Duration) { sh.event(holdEvents[by], took) }

// Waited records work of the journal that clients had to wait for.
func (sh *Shared) Waited(forWhat journal.Wait, took time.Duration) {
	sh.event(waitEvents[forWhat], took)
}

func (sh *Shared) event(name string, took time.Duration) {
	if threshold := sh.Config.Get().Monitoring.LatencyMonitorThreshold; threshold != 0 {
		sh.Latency.Add(name, sh.Keyspace.Now(), int64(took), threshold)
	}
}
