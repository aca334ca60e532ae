package engine

import (
	"iter"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/atomredis/atomredis/engine/deadlines"
)

// expireBatch is how many keys and fields a timer removes under one guard, so that many with one deadline do not delay
// other commands.
const expireBatch = 64

// Removing a key wakes up the process, which costs far more than the removal. So expirySteps removals, plus one per
// expiryPace of time, happen at their deadlines; further ones wait for the next full expiryPace, together. Only counts
// of keys and events show the delay: no command finds an expired key.
const (
	expiryPace  = 100 // ms, as often as Redis looks by default
	expirySteps = 100
)

// pacer decides when the steps of expiry happen. The zero value is ready.
type pacer struct {
	paid atomic.Int64 // ms since 1970 up to which steps are paid for, expiryPace each; at most expirySteps ahead of now
	last atomic.Int64 // the time of the last step
}

// next returns the expected time of a step whose keys are due at a time.
func (p *pacer) next(at, now int64) int64 {
	if at <= now || p.paid.Load()-now < expirySteps*expiryPace {
		return at
	}
	return (at + expiryPace - 1) / expiryPace * expiryPace
}

// step counts a step. Steps of several shards at the same time count as one.
func (p *pacer) step(now int64) {
	if p.last.Swap(now) != now {
		p.paid.Store(max(min(p.paid.Load(), now+expirySteps*expiryPace), now) + expiryPace)
	}
}

// arm makes sure that the timer of shard i fires at its earliest deadline. The shard must be locked.
func (ks *Keyspace) arm(i int, now int64) {
	s := &ks.shards[i]
	if ks.replaying || ks.replica || ks.passive.Load() || ks.importing.Load() {
		return
	}
	_, at, ok := s.expires.Min()
	if !ok {
		if s.timer != nil {
			ks.disarm(s)
		}
		return
	}
	// A timer that fires too early costs little and finds the right time; a later deadline is not worth a reset.
	if s.timer != nil && s.armed <= at || ks.closed.Load() {
		return
	}
	ks.disarm(s)
	s.armed = at
	ks.running.Add(1)
	wait := time.Duration(max(ks.pacer.next(at, now)-now, 0))
	if wait > time.Hour/time.Millisecond {
		wait = time.Hour / time.Millisecond // far deadlines must not overflow a Duration
	}
	s.timer = ks.clock.AfterFunc(wait*time.Millisecond, func() {
		defer ks.running.Done()
		ks.expireDue(i)
	})
}

// SetActiveExpiry chooses whether expired keys are removed by timers, the default, or only when a command looks them
// up. Timers start again with the next use of each shard.
func (ks *Keyspace) SetActiveExpiry(on bool) { ks.passive.Store(!on) }

// SetExpiredSeen makes expired keys and fields visible to all, for tests.
func (ks *Keyspace) SetExpiredSeen(yes bool) { ks.expiredSeen.Store(yes) }

// SetImporting says that another server's data is being taken over: expired keys are removed only when a command for
// which they have expired looks them up, and Guard.SeesExpired has an effect.
func (ks *Keyspace) SetImporting(on bool) { ks.importing.Store(on) }

// IgnoresDeadlines reports whether the guard treats nothing as expired.
func (g *Guard) IgnoresDeadlines() bool {
	return g.FromMaster || g.SeesExpired && g.ks.importing.Load() || g.ks.expiredSeen.Load()
}

func (ks *Keyspace) disarm(s *shard) {
	if s.timer != nil && s.timer.Stop() {
		ks.running.Done()
	}
	s.timer = nil
}

// expireDue removes due keys and fields of shard i after its timer has fired.
func (ks *Keyspace) expireDue(i int) {
	var g Guard
	s := &ks.shards[i]
	g.Lock(ks, 1<<i, ks.Now())
	start := time.Now()
	s.timer = nil
	ks.pacer.step(g.now)
	if !ks.passive.Load() {
		g.removeDue(s)
	}
	s.stats.ExpiryNanos += int64(time.Since(start))
	g.Unlock()
	ks.tellLocked(LockedForExpiry, start)
}

// removeDue removes a batch of due keys and fields of a shard. more and stay are those of RemoveExpired.
func (g *Guard) removeDue(s *shard) (more, stay bool) {
	left := expireBatch
	for left > 0 {
		e, at, ok := s.expires.Min()
		if due := ok && at <= g.now; !due || g.ks.importing.Load() || g.ks.replica {
			return false, due
		}
		if e.deadline != 0 && e.deadline <= g.now {
			g.expire(e)
			s.stats.ExpiredActively++
			left--
		} else if left--; g.readable(e) {
			n, _ := g.expireFields(e, left+1)
			s.stats.ExpiredFieldsActively += int64(n)
			left -= n
		}
	}
	return true, false
}

// Fields of hashes and members of sets, which are called fields here, expire like keys: a hash or a set is in the
// deadline index of its shard by its own deadline or the earliest of its fields, whichever comes first. Looking up a due
// key removes its expired fields, so that no command sees one.

// expiring is a collection whose elements can have deadlines.
type expiring interface {
	value
	counted
	// NextDeadline returns the earliest deadline of an element, 0 if none expires.
	NextDeadline() int64
	// Deadlines iterates over the elements that expire, with their deadlines.
	Deadlines() iter.Seq2[[]byte, int64]
	// AllExpired reports whether every element has a deadline of now or earlier.
	AllExpired(now int64) bool
	// Expire removes up to max elements whose deadline is now or earlier, and calls fn with each before.
	Expire(now int64, max int, fn func(element []byte)) int
	// DeadlineIndex returns the deadlines of a value stored in parts; nil if there are none.
	DeadlineIndex() *deadlines.Index
}

// elementExpiry says how the elements of a type expire.
type elementExpiry struct {
	class  EventClass
	event  string // that elements have expired
	remove string // the command that removes elements
}

var (
	hashExpiry = &elementExpiry{EventHash, "hexpired", "HDEL"}
	setExpiry  = &elementExpiry{EventSet, "sexpired", "SREM"}
)

// expiring returns the value of an entry whose elements can have deadlines, and loads it if it is not in memory; nil for
// other types.
func (e *Entry) expiring() expiring {
	switch e.typ {
	case Hash:
		return e.Hash()
	case Set:
		return e.Set()
	}
	return nil
}

// nextDeadline returns the earliest deadline of a field, 0 if none expires. The value must be in memory.
func (e *Entry) nextDeadline() int64 {
	switch e.typ { // not through expiring, whose calls cost measurable time
	case Hash:
		return e.Hash().NextDeadline()
	case Set:
		return e.Set().NextDeadline()
	}
	return 0
}

// deadlineIndex returns the deadlines of the fields of a value in memory for storage; nil if it has none.
func deadlineIndex(v any) *deadlines.Index {
	if of, ok := v.(expiring); ok {
		return of.DeadlineIndex()
	}
	return nil
}

// unreadableDelay is the delay in ms before the timer retries a value that could not be read from the store.
const unreadableDelay = 1000

// readable loads a value with due fields, and reports whether that worked. If not, the timer retries later; a command
// that uses the value tries at once, and gets the error.
func (g *Guard) readable(e *Entry) bool {
	if e.flags&flagUnloaded == 0 {
		return true
	}
	if e.loadFrom(e.unloaded()) == nil {
		return true
	}
	defer g.ks.resized(e, e.size())
	s := e.unloaded().copied()
	s.overdue = true
	e.setUnloaded(s)
	g.shard(e.shard).expires.Set(e, g.now+unreadableDelay)
	return false
}

// due reports whether the entry, or one of its fields, has expired.
func (g *Guard) due(e *Entry) bool {
	switch {
	case g.ks.replaying, g.IgnoresDeadlines():
		return false
	case e.flags&flagFields == 0:
		return e.deadline <= g.now
	case e.flags&flagUnloaded != 0 && e.unloaded().overdue:
		return true
	}
	return g.shard(e.shard).expires.At(e) <= g.now
}

// gone reports whether the entry, or all of its fields, have expired.
func (g *Guard) gone(e *Entry) bool {
	switch {
	case e.slot == 0, g.IgnoresDeadlines():
		return false
	case e.deadline != 0 && e.deadline <= g.now:
		return true
	case e.flags&flagFields == 0 || !g.due(e) || !g.readable(e):
		return false
	}
	g.schedule(e) // its known deadline may have been too early
	return e.expiring().AllExpired(g.now)
}

// expireFields removes due fields, up to max of them, or the key if none is left. It returns the number of
// fields and whether the key still exists. The removal is no command's change, and is journalled here.
func (g *Guard) expireFields(e *Entry, max int) (n int, stays bool) {
	v, how := e.expiring(), kinds[e.typ].fields
	stats := &g.ks.shards[e.shard].stats
	changes := g.changes
	defer func() { g.changes = changes }()
	if v.AllExpired(g.now) {
		// Fields that got their deadline together can be many.
		stats.ExpiredFields += int64(v.Len())
		g.Notify(how.class, how.event, g.DB(e), e.Key())
		if g.WantsFields(e.typ) {
			var fields [][]byte
			for field := range v.Deadlines() {
				fields = append(fields, field)
			}
			g.NotifyFields(e, how.event, fields, 1)
		}
		g.Remove(e, EventGeneric, "del")
		if g.ks.journal != nil {
			g.Log(g.DB(e), [][]byte{[]byte("DEL"), bytesOf(e.Key())})
		}
		return v.Len(), false
	}
	g.preserve(e)
	args := [][]byte{[]byte(how.remove), bytesOf(e.Key())}
	log := func() {
		if g.ks.journal != nil && len(args) > 2 {
			g.Log(g.DB(e), args)
		}
		args = args[:2]
	}
	var gone [][]byte // for NotifyFields
	wanted := g.WantsFields(e.typ)
	n = v.Expire(g.now, max, func(field []byte) {
		if wanted {
			gone = append(gone, slices.Clone(field))
		}
		if args = append(args, slices.Clone(field)); len(args) == expireBatch {
			log()
		}
	})
	log()
	if n == 0 {
		g.schedule(e) // the known deadline was too early
		return 0, true
	}
	stats.ExpiredFields += int64(n)
	g.ChangedFields(e, how.event, gone, 1)
	return n, true
}

// schedule must be called when the deadlines of fields may have changed.
func (g *Guard) schedule(e *Entry) {
	if p := e.partial(); p != nil {
		// Fields that are not in memory may expire later than the known deadline.
		known := g.fieldDeadline(e)
		if next := p.view.nextDeadline(); next != 0 && (known == 0 || next < known) {
			g.setFieldDeadline(e, next)
		}
	} else if e.flags&flagUnloaded == 0 {
		if next := e.nextDeadline(); next != 0 || e.flags&flagFields != 0 {
			g.setFieldDeadline(e, next)
		}
	}
}

// fieldDeadline returns a time in ms since 1970 before which no field of an entry expires, 0 if none ever expires.
func (g *Guard) fieldDeadline(e *Entry) int64 {
	switch {
	case e.flags&flagFields == 0:
		return 0
	case e.flags&flagUnloaded == 0:
		return e.nextDeadline()
	case e.unloaded().overdue:
		return 1
	case g.ks.spaces[e.space].dropped != 0:
		return 1 // the time is unknown, and too early does no harm
	}
	return g.shard(e.shard).expires.At(e)
}

// setFieldDeadline records that no field of an entry expires before a time in ms since 1970, or ever if at is 0.
func (g *Guard) setFieldDeadline(e *Entry, at int64) {
	d := &g.shard(e.shard).dbs[g.DB(e)]
	if had := e.flags&flagFields != 0; had != (at != 0) {
		e.flags ^= flagFields
		n := 1
		if had {
			n = -1
		}
		if d.fieldExpires += n; e.typ == Set {
			d.memberExpires += n
		}
	}
	g.place(e, at)
}

// place updates an entry's position in the deadline index. fields is the time before which no field expires, 0 if none
// ever does.
func (g *Guard) place(e *Entry, fields int64) {
	at := e.deadline
	if fields != 0 && (at == 0 || fields < at) {
		at = fields
	}
	s := g.shard(e.shard)
	g.growth -= s.indexSize()
	if at == 0 {
		s.expires.Remove(e)
	} else {
		s.expires.Set(e, at)
	}
	g.growth += s.indexSize()
}

// bytesOf returns the bytes of a string, which must not be written to.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// stringOf returns a string that shares the bytes of b, for calls that do not keep it.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
