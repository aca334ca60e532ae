package engine

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/dict"
	"github.com/atomredis/atomredis/engine/expiry"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/slots"
)

// MaxShards is the largest number of shards: a guard's shards are the bits of a word.
const MaxShards = 64

// AllShards is the shard set of a guard over the whole keyspace.
const AllShards = ^uint64(0)

// Options configure a Keyspace.
type Options struct {
	// Shards is the number of shards, a power of two from 1 to MaxShards. 0 means 1.
	Shards int
	// Databases is the number of databases. 0 means 16.
	Databases int
	// Slots is the number of slots, and SlotOf returns the slot of a key, from 0: the keys of a slot can be found
	// without visiting others. 0 means that keys have no slots, which costs nothing.
	Slots  int
	SlotOf func(key []byte) int
	// Clock gives the time. nil means SystemClock.
	Clock Clock
	// Observer learns of changes. It may be nil.
	Observer Observer
	// Source is where the keyspace is stored. nil means in memory only. Freeze explains how data gets there.
	Source Source
	// LockedFor is called, without locks held, after shards were locked for work that no command asked for, with the
	// time it took. It may be nil.
	LockedFor func(by LockReason, took time.Duration)
}

// Keyspace holds all databases.
type Keyspace struct {
	shards    []shard
	all       uint64 // one bit per shard
	databases int
	slots     int
	slotOf    func(key []byte) int
	clock     Clock
	observer  Observer
	lockedFor func(LockReason, time.Duration)
	seed      maphash.Seed

	// The following fields change only while all shards are locked; reading them needs a lock on one.
	spaces  []space  // those in use and dropped ones
	current []uint32 // by database, index in spaces
	// slotMemory has the bytes of the keys and values of each slot; nil unless CountSlotMemory has begun it.
	slotMemory []atomic.Int64

	// For storage, under the same rule. All are zero without a Source.
	source  Source
	journal Journal
	epochs  delta.Epochs
	mark    flags // of entries changed since the last checkpoint began: flagOdd or flagEven
	// of entries that the present checkpoint has yet to read: the other flag, or 0 if there is none
	frozenMark    flags
	storing       *checkpoint // the last one begun
	storingMark   flags       // of entries that it has read: flagStoring or flagStoringToo
	nextSpace     uint32
	droppedSpaces []uint32 // their numbers
	replaying     bool     // nothing expires by itself
	fetching      bool     // keys may be in the store but not in memory
	resets        int      // number of calls of Reset
	nextParts     atomic.Uint64
	texts         textSizes
	blob          *unloaded    // shared by all values that are stored whole outside their heads, and are not in memory
	inHead        *unloaded    // shared by all values that are stored in their heads, and are not in memory
	inParts       *particulars // shared by values that are stored in parts and are not in memory
	tiering       bool         // see SetTier

	// Also under the rule above. A snapshot has still to read the entries whose flagCopied differs from copied.
	copying *Snapshot // the snapshot under way; nil if there is none
	copied  flags     // flagCopied or 0
	// the flags that say whether a checkpoint or a snapshot has still to read an entry; see waitsFor
	awaited flags

	dirtyTracker DirtyTracker // may be nil; changes only while all shards are locked
	indexer      Indexer      // likewise
	replica      bool         // see SetReplica; changes likewise

	snapshots chan struct{} // has room for one: the goroutine that takes a snapshot

	frequency atomic.Bool // entries record how often they are accessed instead of when
	// modifications: entries record when they were changed instead of accessed
	modifications atomic.Bool
	used          atomic.Int64 // bytes, as UsedMemory returns them
	loans         loans
	fetcher       fetcher
	labels        labelIndex
	evicting      evictor

	listLimit      atomic.Int64  // of lists loaded from the store
	events         atomic.Uint32 // EventClass: the events for KeyEvent
	observeChanges atomic.Bool
	watchedKeys    []*WatchedKeys // changes only while all shards are locked
	passive        atomic.Bool    // expired keys stay until a command looks them up
	expiredSeen    atomic.Bool    // no command treats anything as expired
	importing      atomic.Bool    // see SetImporting
	closed         atomic.Bool
	running        sync.WaitGroup // timers of expiry that are pending or running
	pacer          pacer          // of expiry
}

// shard is the part of the keyspace whose keys hash to it. mu protects its fields and all entries reached from it.
type shard struct {
	mu      sync.Mutex
	dbs     []database
	expires expiry.Index[*Entry]
	queues  map[dbKey]*waitQueue
	watches map[dbKey]*Watch
	stats   Stats

	// For storage; see freeze.go and directory.go.
	dirty   entryList
	removed []removal
	dropped []uint64         // numbers of values whose parts are obsolete
	images  map[*Entry]Image // the old state of entries changed since the present checkpoint began
	lost    map[spaceKey]struct{}
	// resident has the entries whose values may leave memory, if tiering; see tier.go.
	resident entryList
	waits    *Guard  // the guard whose holder can wait for values; see Guard.OnAway
	counted  lookups // counters when that began

	timer Timer // fires at armed, or when the pacer decides; nil if none
	armed int64

	_ [64]byte // keeps the locks of adjacent shards in different cache lines
}

type dbKey struct {
	db  int
	key string
}

// space is the content of a database: it keeps its identity when databases are swapped, and loses it when they are
// emptied.
type space struct {
	number  uint32 // its number in the store
	db      int
	dropped uint32 // the epoch in which it was emptied; 0 while in use
}

type spaceKey struct {
	space uint32
	key   string
}

type database struct {
	dict dict.Table[*Entry]
	// slots has the numbers of the entries in dict by slot. It is nil if keys have no slots, or there has been no key.
	slots *slots.Index
	// expires is the number of entries with a deadline; deadlines is the sum of their deadlines.
	expires   int
	deadlines float64
	// fieldExpires is the number of hashes and sets with fields that have a deadline.
	fieldExpires int
	// memberExpires is the number of sets among them.
	memberExpires int
	blessed       int // number of blessed keys
	// blessedExpires is the number of those with a deadline.
	blessedExpires int
	// used is how many bytes the table and the entries take, if memory is counted.
	used int
}

// Stats are counters of a keyspace since its start or the last ResetStats.
type Stats struct {
	// Hits and Misses count lookups of keys by reading commands.
	Hits, Misses int64
	// Expired counts keys removed because they had expired, ExpiredActively those of them removed by a timer.
	Expired, ExpiredActively int64
	// ExpiredFields counts expired fields of hashes and members of sets, ExpiredFieldsActively those removed by a timer.
	ExpiredFields, ExpiredFieldsActively int64
	// Evicted counts keys removed to make room.
	Evicted int64
	// Unloaded counts values that have left memory to make room, Loaded values read from the store as a whole, and
	// LoadedParts parts of values that were read separately.
	Unloaded, Loaded, LoadedParts int64
	// ExpiryNanos is the total time in ns that timers spent removing expired keys.
	ExpiryNanos int64
	// Changes counts changes of keys.
	Changes int64
}

// New returns an empty keyspace.
func New(o Options) *Keyspace {
	o.Shards = max(o.Shards, 1)
	if o.Databases <= 0 {
		o.Databases = 16
	}
	if o.Clock == nil {
		o.Clock = SystemClock{}
	}
	if o.Shards > MaxShards || bits.OnesCount(uint(o.Shards)) != 1 {
		panic("engine: the number of shards must be a power of two up to 64")
	}
	ks := &Keyspace{
		shards:    make([]shard, o.Shards),
		all:       AllShards >> (MaxShards - o.Shards),
		databases: o.Databases,
		slots:     o.Slots,
		slotOf:    o.SlotOf,
		clock:     o.Clock,
		observer:  o.Observer,
		lockedFor: o.LockedFor,
		seed:      maphash.MakeSeed(),
		source:    o.Source,
		epochs:    delta.Epochs{Current: 1},
		mark:      flagOdd, storingMark: flagStoring,
		texts:     storedTexts,
		snapshots: make(chan struct{}, 1),
	}
	ks.blob = &unloaded{particulars: &particulars{ks: ks}}
	ks.inHead = &unloaded{particulars: &particulars{ks: ks, head: true}}
	ks.inParts = &particulars{ks: ks}
	ks.SetEviction(Eviction{})
	ks.SetListLimit(lists.DefaultLimit)
	for db := range o.Databases {
		ks.newSpace(db)
	}
	for i := range ks.shards {
		ks.shards[i].dbs = make([]database, o.Databases)
		ks.shards[i].queues = map[dbKey]*waitQueue{}
		ks.shards[i].watches = map[dbKey]*Watch{}
	}
	return ks
}

// newSpace gives a database a new space.
func (ks *Keyspace) newSpace(db int) {
	ks.addSpace(db, ks.nextSpace)
	ks.nextSpace++
}

func (ks *Keyspace) addSpace(db int, number uint32) {
	ks.spaces = append(ks.spaces, space{number: number, db: db})
	i := uint32(len(ks.spaces) - 1)
	if db == len(ks.current) {
		ks.current = append(ks.current, i)
	}
	ks.current[db] = i
}

// Close stops the expiry timers and waits for running ones. The keyspace must not be used afterwards.
func (ks *Keyspace) Close() {
	ks.closed.Store(true)
	for i := range ks.shards {
		s := &ks.shards[i]
		s.mu.Lock()
		ks.disarm(s)
		s.mu.Unlock()
	}
	ks.running.Wait()
	ks.fetcher.running.Wait()
}

// Databases returns the number of databases.
func (ks *Keyspace) Databases() int { return ks.databases }

// Shards returns the number of shards.
func (ks *Keyspace) Shards() int { return len(ks.shards) }

// Clock returns the keyspace's clock.
func (ks *Keyspace) Clock() Clock { return ks.clock }

// Now returns the time in ms since 1970.
func (ks *Keyspace) Now() int64 { return ks.clock.Now().UnixMilli() }

// SetEventClasses chooses the events that the Observer gets.
func (ks *Keyspace) SetEventClasses(c EventClass) { ks.events.Store(uint32(c)) }

// SetListLimit sets the node size of lists that come from the store; new lists have their own.
func (ks *Keyspace) SetListLimit(l lists.Limit) { ks.listLimit.Store(int64(l)) }

// ObserveChanges turns the Observer's KeyChanged and Flushed calls on or off.
func (ks *Keyspace) ObserveChanges(on bool) { ks.observeChanges.Store(on) }

// ShardOf returns the shard set of a single key.
func (ks *Keyspace) ShardOf(key []byte) uint64 {
	if len(ks.shards) == 1 {
		return 1
	}
	return 1 << ks.index(maphash.Bytes(ks.seed, key))
}

func (ks *Keyspace) shardIndex(key string) uint8 {
	if len(ks.shards) == 1 {
		return 0
	}
	return ks.index(maphash.String(ks.seed, key))
}

func (ks *Keyspace) index(hash uint64) uint8 { return uint8(hash) & uint8(len(ks.shards)-1) }

// Changes returns the number of changes of keys since the keyspace was created.
func (ks *Keyspace) Changes() int64 {
	n := int64(0)
	for i := range ks.shards {
		s := &ks.shards[i]
		s.mu.Lock()
		n += s.stats.Changes
		s.mu.Unlock()
	}
	return n
}

// ResetStats sets the counters to zero, except Changes.
func (ks *Keyspace) ResetStats() {
	for i := range ks.shards {
		s := &ks.shards[i]
		s.mu.Lock()
		s.stats = Stats{Changes: s.stats.Changes} // storage relies on it
		s.mu.Unlock()
	}
}

// DBStats describes one database.
type DBStats struct {
	// Keys is the number of keys, Expires the number of those with a deadline.
	Keys, Expires int
	// AvgTTL is the mean time to live of the latter, in ms.
	AvgTTL int64
	// FieldExpires is the number of hashes and sets with fields or members that have a deadline.
	FieldExpires int
	// MemberExpires is the number of sets among them.
	MemberExpires int
	// Blessed is the number of keys that are never evicted.
	Blessed int
}
