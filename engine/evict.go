package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/prefetch"
)

// Eviction: which keys to remove when memory is short. As in Redis, the best of a few random keys is evicted, and the
// others stay in a pool for later draws, so that the choice approaches the best of all keys.

// EvictionPolicy says which keys may be evicted, and which of them go first.
type EvictionPolicy uint8

// The policies, by their names in maxmemory-policy. They choose among all keys or those with a deadline (volatile): the
// ones that were not used for the longest time (LRU) or not changed for the longest time (LRM), the ones used least
// often (LFU), random ones, or those that expire first (TTL).
const (
	NoEviction EvictionPolicy = iota
	AllKeysLRU
	VolatileLRU
	AllKeysLFU
	VolatileLFU
	AllKeysRandom
	VolatileRandom
	VolatileTTL
	AllKeysLRM
	VolatileLRM
	Tier // no key may be evicted; values leave memory instead
)

func (p EvictionPolicy) volatile() bool {
	return p == VolatileLRU || p == VolatileLFU || p == VolatileRandom || p == VolatileTTL || p == VolatileLRM
}

func (p EvictionPolicy) frequency() bool { return p == AllKeysLFU || p == VolatileLFU }

func (p EvictionPolicy) modification() bool { return p == AllKeysLRM || p == VolatileLRM }

func (p EvictionPolicy) random() bool { return p == AllKeysRandom || p == VolatileRandom }

// Eviction is the configuration of evictions.
type Eviction struct {
	Policy EvictionPolicy
	// Samples is how many keys of a database are drawn for each eviction.
	Samples int
	// LogFactor slows the growth of a key's use counter: with 10 the counter is full after about a million uses.
	LogFactor int
	// DecayMinutes is how long a key must be unused for its counter to fall by one; 0 is never.
	DecayMinutes int
	// Tier makes values leave memory before keys are evicted.
	Tier bool
}

// Tiers reports whether values leave memory, which also needs Keyspace.SetTier.
func (how *Eviction) Tiers() bool { return how.Tier || how.Policy == Tier }

// evictor is the keyspace's state for eviction.
type evictor struct {
	how atomic.Pointer[Eviction]

	mu        sync.Mutex // held by the evicting goroutine; taken before any shard; protects the fields below
	Eviction             // a copy of how for the present run
	rng       *rand.Rand
	pool      []candidate // best last
	drawn     []*Entry    // scratch of drawAny
	residents []resident  // scratch of drawResident
	spared    bool        // a draw has met blessed keys
	walking   bool        // a draw has found no key yet, but there are some
	cursor    int         // where its walk through tables goes on
	unstored  bool        // values can leave memory after a checkpoint has stored them
	unread    bool        // values can leave memory after a snapshot has read them
	places    []**Entry   // scratch of drawFrom
}

// candidate is a key that may be evicted.
type candidate struct {
	score uint64 // the highest goes first
	db    int
	shard uint8
	key   string
	entry uintptr // address of its entry; no pointer, so that a removed entry is not kept alive
}

// poolSize is how many candidates are remembered.
const poolSize = 16

// SetEviction chooses how keys are evicted. Entries record their use differently under LFU than under other policies;
// after a change it takes some time until the records are right.
func (ks *Keyspace) SetEviction(how Eviction) {
	ks.evicting.how.Store(&how)
	ks.frequency.Store(how.Policy.frequency())
	ks.modifications.Store(how.Policy.modification())
}

// Relief is the outcome of Evict.
type Relief uint8

const (
	// Relieved: memory is no longer short.
	Relieved Relief = iota
	// AfterCheckpoint: values can leave memory once a checkpoint has stored them.
	AfterCheckpoint
	// AfterSnapshot: values can leave memory once the snapshot under way has read them.
	AfterSnapshot
	// Unrelieved: there is nothing to remove.
	Unrelieved
	// Spared: all keys that could be removed are blessed.
	Spared
)

// Evict makes values leave memory, if SetTier enabled it, and removes keys one by one while more returns true. now is
// in ms since 1970. No guard may be held.
func (ks *Keyspace) Evict(now int64, more func() bool) Relief {
	v := &ks.evicting
	v.mu.Lock()
	defer v.mu.Unlock()
	how := *v.how.Load()
	if how.Policy != v.Policy {
		v.pool = v.pool[:0] // scores of another policy are meaningless
	}
	v.Eviction = how
	if v.rng == nil {
		v.rng = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	if !more() {
		return Relieved
	}
	if how.Tiers() {
		switch {
		case v.relieve(ks, now, more):
			return Relieved
		case v.unstored:
			return AfterCheckpoint
		case v.unread:
			return AfterSnapshot
		}
	}
	for {
		v.spared = false
		switch {
		case v.evictOne(ks, now), v.walking:
		case v.spared:
			return Spared
		default:
			return Unrelieved
		}
		if !more() {
			return Relieved
		}
	}
}

// maxDraws is how often candidates are drawn until a good one is found: other clients may use the keys at the same
// time.
const maxDraws = 100

// evictOne removes one key. It returns false if no key may be evicted, or walking is set.
func (v *evictor) evictOne(ks *Keyspace, now int64) bool {
	if v.Policy == NoEviction || v.Policy == Tier {
		return false
	}
	for range maxDraws {
		if !v.draw(ks, now) {
			return false
		}
		for len(v.pool) > 0 {
			last := len(v.pool) - 1
			c := v.pool[last]
			v.pool[last] = candidate{}
			v.pool = v.pool[:last]
			if v.evict(ks, c, now) {
				return true
			}
		}
	}
	return false
}

// draw puts some keys into the pool, and reports whether there are any.
func (v *evictor) draw(ks *Keyspace, now int64) bool {
	samples := v.Samples
	if v.Policy.random() {
		samples, v.pool = 1, v.pool[:0]
	}
	first, found := v.rng.IntN(len(ks.shards)), 0
	v.walking = false
	for i := range ks.shards {
		// Shards are alike unless they have few keys. Only the deadline index knows the very first key to expire.
		if found >= samples && v.Policy != VolatileTTL {
			break
		}
		var g Guard
		at := (first + i) % len(ks.shards)
		g.Lock(ks, 1<<at, now)
		if !ks.replaying {
			if v.Policy.volatile() {
				found += v.drawVolatile(&g, uint8(at), samples)
			} else {
				found += v.drawAny(&g, uint8(at), samples)
			}
		}
		g.Unlock()
	}
	if v.walking {
		v.cursor += maxWalk
		v.walking = found == 0
	}
	return found > 0
}

// maxWalk is how many entries of a table one draw visits, under the shard's lock, for a key that may be evicted.
const maxWalk = 256

// walk considers entries from the cursor on until one may be evicted. It serves tables in which few may, so that random
// draws miss them.
func (v *evictor) walk(g *Guard, n int, at func(i int) *Entry) (found int) {
	for i := 0; found == 0 && i < min(n, maxWalk); i++ {
		found = v.consider(g, at((v.cursor+i)%n))
	}
	v.walking = true
	return found
}

// drawAny draws keys from each database of a shard.
func (v *evictor) drawAny(g *Guard, at uint8, samples int) (found int) {
	for db := range g.ks.shards[at].dbs {
		d, before := &g.ks.shards[at].dbs[db], found
		if v.spared = v.spared || d.blessed > 0; d.dict.Len() == d.blessed {
			continue
		}
		v.drawFrom(&d.dict, samples)
		for _, e := range v.drawn {
			found += v.consider(g, e)
		}
		if found == before { // few entries are not blessed
			found += v.walk(g, d.dict.Len(), func(i int) *Entry { return *d.dict.At(i) })
		}
	}
	clear(v.drawn) // do not keep removed entries alive
	clear(v.places)
	return found
}

// drawFrom draws keys from a table, or takes all if they are few. It prefetches the memory of all at the same time: it
// is rarely in the processor's caches, and waiting for one after the other would dominate an eviction.
func (v *evictor) drawFrom(d *dict.Table[*Entry], samples int) {
	v.drawn, v.places = v.drawn[:0], v.places[:0]
	var list prefetch.List
	for i := range min(samples, d.Len()) {
		if d.Len() > samples {
			i = v.rng.IntN(d.Len())
		}
		p := d.At(i)
		v.places = append(v.places, p)
		list.Add(uintptr(unsafe.Pointer(p)), 1)
	}
	list.Fetch()
	for _, p := range v.places {
		v.drawn = append(v.drawn, *p)
		list.Add(uintptr(unsafe.Pointer(*p)), int(unsafe.Sizeof(Entry{})))
	}
	list.Fetch()
}

// drawVolatile draws keys with deadlines from a shard, of any database. The index also has hashes of which only fields
// expire.
func (v *evictor) drawVolatile(g *Guard, at uint8, samples int) (found int) {
	index, evictable := &g.ks.shards[at].expires, 0
	for db := range g.ks.shards[at].dbs {
		d := &g.ks.shards[at].dbs[db]
		v.spared = v.spared || d.blessedExpires > 0
		evictable += d.expires - d.blessedExpires
	}
	if evictable == 0 {
		return 0
	}
	if v.Policy == VolatileTTL {
		if e, _, ok := index.Min(); ok {
			found += v.consider(g, e)
		}
	}
	for range 4 * samples {
		if found >= samples || index.Len() == 0 {
			return found
		}
		found += v.consider(g, index.Item(v.rng.IntN(index.Len())))
	}
	if found == 0 { // few entries have a deadline of their own and are not blessed
		found = v.walk(g, index.Len(), index.Item)
	}
	return found
}

// consider puts an entry into the pool if it may be evicted and beats the worst candidate. It returns 1 if the entry
// may be evicted or has just expired, otherwise 0.
func (v *evictor) consider(g *Guard, e *Entry) int {
	switch {
	case g.removeIfGone(e):
		return 1
	case e.deadline == 0 && v.Policy.volatile():
		return 0
	case e.Blessed():
		v.spared = true
		return 0
	}
	score, full := v.score(g, e), len(v.pool) == poolSize
	if full && score <= v.pool[0].score {
		return 1
	}
	at := uintptr(unsafe.Pointer(e))
	if slices.ContainsFunc(v.pool, func(o candidate) bool { return o.entry == at }) {
		return 1 // already a candidate; an entry at a reused address gets in later
	}
	var list prefetch.List // evict will look up the key
	list.Add(uintptr(unsafe.Pointer(e.text)), 1)
	list.Fetch()
	i := 0
	for i < len(v.pool) && v.pool[i].score < score {
		i++
	}
	c := candidate{score: score, db: g.DB(e), shard: e.shard, key: e.Key(), entry: at}
	if full {
		copy(v.pool, v.pool[1:i])
		v.pool[i-1] = c
		return 1
	}
	v.pool = slices.Insert(v.pool, i, c)
	return 1
}

// score ranks an entry: the highest is evicted first.
func (v *evictor) score(g *Guard, e *Entry) uint64 {
	switch {
	case v.Policy.random():
		return v.rng.Uint64()
	case v.Policy == VolatileTTL:
		return math.MaxUint64 - uint64(e.deadline)
	}
	return v.disuse(g, e)
}

// disuse ranks an entry by how long ago, or how rarely, it was used.
func (v *evictor) disuse(g *Guard, e *Entry) uint64 {
	if v.Policy.frequency() {
		return uint64(maxFrequency - g.Frequency(e))
	}
	return uint64(g.IdleTime(e))
}

// evict removes a candidate if it still qualifies: it may be gone, or have been used since it was drawn.
func (v *evictor) evict(ks *Keyspace, c candidate, now int64) bool {
	var g Guard
	g.Lock(ks, 1<<c.shard, now)
	defer g.Unlock()
	p, ok := ks.shards[c.shard].dbs[c.db].dict.GetString(c.key)
	if !ok {
		return false
	}
	e := *p
	if g.removeIfGone(e) {
		return true // its removal made room
	}
	if e.Blessed() || v.Policy.volatile() && e.deadline == 0 || !v.Policy.random() && v.score(&g, e) < c.score {
		return false
	}
	g.evict(e)
	return true
}

// removeIfGone removes an entry that has expired, or all of whose fields have, and reports whether it did. Such a key
// does not count as evicted.
func (g *Guard) removeIfGone(e *Entry) bool { return g.gone(e) && g.unlessExpired(e) == nil }

// evict removes an entry to make room. Like expiry it is no command's change, and is journalled here.
func (g *Guard) evict(e *Entry) {
	db := g.DB(e)
	g.ks.shards[e.shard].stats.Evicted++
	changes := g.changes
	g.Remove(e, EventEvicted, "evicted")
	g.changes = changes
	if g.ks.journal != nil {
		g.Log(db, [][]byte{[]byte("DEL"), bytesOf(e.Key())})
	}
	e.obj, e.strLen = nil, 0 // the next checkpoint may still have the entry in its list
}

// The frequency of use is an eight-bit counter. It grows by one with a probability that falls as it grows, so it is
// about the logarithm of the number of uses, and it decays with time. Entry.access holds it below the minute of its
// last change.

const (
	// newFrequency is the initial counter, so that new keys have time to be used.
	newFrequency = 5
	maxFrequency = 255
)

// firstAccess returns the initial access of a new entry.
func (g *Guard) firstAccess() uint32 {
	if g.ks.frequency.Load() {
		return packAccess(g.now, newFrequency)
	}
	return uint32(g.now / 1000)
}

// packAccess returns the access with a frequency that was last changed at now, in ms since 1970.
func packAccess(now int64, frequency int) uint32 { return minuteOf(now)<<8 | uint32(frequency) }

// minuteOf returns the minutes since 1970 in 16 bits.
func minuteOf(now int64) uint32 { return uint32(now/60_000) & 0xffff }

// countAccess counts one use of an entry.
func (g *Guard) countAccess(e *Entry) {
	n := g.Frequency(e)
	if n < maxFrequency {
		above := max(n-newFrequency, 0)
		if rand.Float64()*float64(above*g.ks.evicting.how.Load().LogFactor+1) < 1 {
			n++
		}
	}
	e.access = packAccess(g.now, n)
}

// CountsFrequency reports whether entries record how often they are used, as the LFU policies need, instead of when.
func (g *Guard) CountsFrequency() bool { return g.ks.frequency.Load() }

// Frequency returns how often an entry was used lately, from 0 to 255 on a logarithmic scale, if CountsFrequency.
func (g *Guard) Frequency(e *Entry) int {
	n := int(e.access & 0xff)
	if decay := g.ks.evicting.how.Load().DecayMinutes; decay > 0 {
		elapsed := int(minuteOf(g.now)-e.access>>8) & 0xffff
		n = max(n-elapsed/decay, 0)
	}
	return n
}

// SetFrequency sets what Frequency returns, if CountsFrequency.
func (g *Guard) SetFrequency(e *Entry, n int) {
	if g.ks.frequency.Load() {
		e.access = packAccess(g.now, min(max(n, 0), maxFrequency))
	}
}

// IdleTime returns for how many seconds an entry has not been used, unless CountsFrequency.
func (g *Guard) IdleTime(e *Entry) int64 { return max(g.now/1000-int64(e.access), 0) }

// SetIdleTime sets what IdleTime returns, unless CountsFrequency.
func (g *Guard) SetIdleTime(e *Entry, seconds int64) {
	if !g.ks.frequency.Load() {
		e.SetAccess(g.now/1000 - seconds)
	}
}
