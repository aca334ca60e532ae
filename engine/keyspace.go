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
	// Slots is into how many slots keys are divided, and SlotOf returns that of a key, from 0 on: the keys of each can be
	// found without a look at the others. 0 means that keys have no slots, which costs nothing.
	Slots  int
	SlotOf func(key []byte) int
	// Clock gives the time. nil means SystemClock.
	Clock Clock
	// Observer hears of changes. nil means nobody.
	Observer Observer
	// Source is where the keyspace is stored. nil means that it is in memory only. See Freeze for how it gets there.
	Source Source
	// LockedFor is called with how long shards were locked for work that no command asked for, without locks. It may be
	// nil.
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

	// What follows changes only while all shards are locked; holding one of them is enough to read it.
	spaces  []space  // those in use and those that were dropped
	current []uint32 // by database, index in spaces

	// For storage, likewise. All is zero without a Source.
	source  Source
	journal Journal
	epochs  delta.Epochs
	mark    flags // of entries that have changed since the last checkpoint began: flagOdd or flagEven
	// of entries that a checkpoint under way has yet to read: the other one, or 0 if there is none
	frozenMark    flags
	storing       *checkpoint // the one that was begun last
	storingMark   flags       // of entries that it has read: flagStoring or flagStoringToo
	nextSpace     uint32
	droppedSpaces []uint32 // their numbers
	replaying     bool     // nothing expires by itself
	fetching      bool     // keys may be in the store that are not in memory
	resets        int      // how often Reset was called
	nextParts     atomic.Uint64
	texts         textSizes
	blob          *unloaded    // of all values that are stored whole, apart from their heads, and not in memory
	inHead        *unloaded    // of all that are stored in their heads, and not in memory
	inParts       *particulars // of those that are stored in parts and not in memory
	tiering       bool         // see SetTier

	// What follows likewise. A snapshot has still to read the entries whose flagCopied differs from copied.
	copying *Snapshot // the one under way; nil if there is none
	copied  flags     // flagCopied or 0
	// what to look at to find out whether a checkpoint or a snapshot has still to read an entry; see waitsFor
	awaited flags

	dirtyTracker DirtyTracker // nil: nobody; changes only while all shards are locked
	indexer      Indexer      // likewise
	replica      bool         // see SetReplica; changes likewise

	snapshots chan struct{} // has room for the one who takes a snapshot

	frequency atomic.Bool // entries know how often they are accessed, not when
	// modifications: entries know when they were changed, not when they were accessed
	modifications atomic.Bool
	used          atomic.Int64 // bytes, as UsedMemory returns them
	loans         loans
	fetcher       fetcher
	labels        labelIndex
	evicting      evictor

	listLimit      atomic.Int64  // of lists that come from the store
	events         atomic.Uint32 // EventClass: what KeyEvent is called for
	observeChanges atomic.Bool
	watchedKeys    []*WatchedKeys // changes only while all shards are locked
	passive        atomic.Bool    // keys are not removed before somebody looks at them
	expiredSeen    atomic.Bool    // nothing has expired for anybody
	importing      atomic.Bool    // see SetImporting
	closed         atomic.Bool
	running        sync.WaitGroup // expiry timers that have fired and not finished
	pacer          pacer          // of expiry
}

// shard is the part of the keyspace whose keys hash to it. mu protects everything in it and every entry reached from
// it.
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
	dropped []uint64         // numbers of values whose parts have gone
	images  map[*Entry]Image // entries that have changed since the checkpoint under way began, as they were
	lost    map[spaceKey]struct{}
	// resident are those whose values may leave memory, if values do; see tier.go.
	resident entryList
	waits    *Guard  // whose holder can wait for values; see Guard.OnAway
	counted  lookups // what there was when it began

	timer Timer // fires at armed, or when the pacer has it; nil if none
	armed int64

	_ [64]byte // keeps the locks of neighbours in different cache lines
}

type dbKey struct {
	db  int
	key string
}

// space is the content of a database: it keeps its identity when databases are swapped, and loses it when they are
// emptied.
type space struct {
	number  uint32 // in the store
	db      int
	dropped uint32 // the epoch in which it was emptied; 0 if it is in use
}

type spaceKey struct {
	space uint32
	key   string
}

type database struct {
	dict dict.Table[*Entry]
	// slots has the numbers of the entries in dict by slot. nil if keys have none, or there has been no key.
	slots *slots.Index
	// expires counts the entries with a deadline; deadlines is the sum of these deadlines.
	expires   int
	deadlines float64
	// fieldExpires counts the hashes of which a field has one.
	fieldExpires int
	// used is how many bytes the table and the entries take, if memory is counted.
	used int
}

// Stats are counters of a keyspace since its start or the last ResetStats.
type Stats struct {
	// Hits and Misses count lookups of keys by reading commands.
	Hits, Misses int64
	// Expired counts keys removed because their time had come, ExpiredActively those of them that a timer removed.
	Expired, ExpiredActively int64
	// ExpiredFields counts fields of hashes likewise.
	ExpiredFields int64
	// Evicted counts keys removed to make room.
	Evicted int64
	// Unloaded counts values that have left memory to make room, Loaded those that were read from the store as a whole, and
	// LoadedParts the parts of values that were read without the others.
	Unloaded, Loaded, LoadedParts int64
	// ExpiryNanos is for how many ns timers removed what had expired.
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

// newSpace gives a database a space that has never been used.
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

// Close stops the expiry timers and waits for those that are running. Nothing may use the keyspace afterwards.
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

// Clock returns the clock that the keyspace follows.
func (ks *Keyspace) Clock() Clock { return ks.clock }

// Now returns the time in ms since 1970.
func (ks *Keyspace) Now() int64 { return ks.clock.Now().UnixMilli() }

// SetEventClasses chooses the events that the Observer hears of.
func (ks *Keyspace) SetEventClasses(c EventClass) { ks.events.Store(uint32(c)) }

// SetListLimit chooses the node size of lists that come from the store; those that are created have their own.
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

// Changes returns how many changes of keys there were since the keyspace began.
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

// ResetStats sets the counters to zero, but for Changes.
func (ks *Keyspace) ResetStats() {
	for i := range ks.shards {
		s := &ks.shards[i]
		s.mu.Lock()
		s.stats = Stats{Changes: s.stats.Changes} // which storage counts on
		s.mu.Unlock()
	}
}

// DBStats describes one database.
type DBStats struct {
	// Keys is the number of keys, Expires the number of those with a deadline.
	Keys, Expires int
	// AvgTTL is the mean time to live of the latter, in ms.
	AvgTTL int64
	// FieldExpires is the number of hashes with fields that have a deadline.
	FieldExpires int
}
