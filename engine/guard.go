package engine

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Guard is the right to use some shards of a keyspace. It is the unit of atomicity: everything that a command (or a
// transaction, or a script) does happens under one guard, and clients that waited for it are served before the guard
// ends. One goroutine uses a Guard; it may be locked again after Unlock.
type Guard struct {
	// Owner is passed to the Observer with every change; the guard itself does not use it.
	Owner any
	// expiring says that the key being removed has expired.
	expiring bool
	// NoTouch keeps reads from changing the time of last access (CLIENT NO-TOUCH).
	NoTouch bool
	// FromMaster says that the guard runs the master's commands in a replica: they see no key as expired.
	FromMaster bool
	// Writes says that a command that changes data runs: in a writable replica it removes the expired keys that it
	// looks up.
	Writes bool
	// SeesExpired makes an importing keyspace treat nothing as expired for the guard (CLIENT IMPORT-SOURCE).
	SeesExpired bool

	ks     *Keyspace
	locked uint64 // the locked shards
	now    int64
	ready  []*waitQueue // queues whose key has changed under this guard
	again  []*Waiter    // waiters that need more shards

	pending []countedLater // entries whose memory is counted at the end of the guard
	growth  int            // bytes counted but not yet reported

	changes  int         // see Changes
	onAway   func(*Away) // see OnAway; nil if the caller does not wait
	repeats  int         // the value of changes at OnAway
	toIndex  []string    // keys not yet reported to the Indexer
	record   []byte      // commands for the journal
	recordDB int         // the database selected at the record's end
	told     []byte      // commands for the follower only
}

// maxKeptRecord is the size in bytes of the largest record buffer that a guard keeps for reuse.
const maxKeptRecord = 64 << 10

// Lock locks the given shards (bits as ShardOf returns them; AllShards for all). now, in ms since 1970, is the time of
// everything done under the guard.
func (g *Guard) Lock(ks *Keyspace, shards uint64, now int64) {
	g.ks, g.locked, g.now = ks, shards&ks.all, now
	ks.lock(g.locked)
}

// Unlock serves the clients that waited for the changes, and unlocks the shards.
func (g *Guard) Unlock() {
	g.release()
	g.Owner = nil
	for len(g.again) > 0 {
		w := g.again[0]
		g.again = append(g.again[1:], g.ks.serveAgain(w, g.now)...)
	}
}

// release is Unlock without the waiters in again.
func (g *Guard) release() {
	if g.onAway != nil {
		g.OnAway(nil)
	}
	if len(g.ready) > 0 {
		g.serve()
	}
	g.Index()
	if len(g.pending) > 0 || g.growth != 0 {
		g.count()
	}
	if len(g.record) > 0 {
		g.ks.journal.Append(g.now, g.record)
		if g.record = g.record[:0]; cap(g.record) > maxKeptRecord { // the journal has kept the buffer
			g.record = nil
		}
		g.recordDB = 0
	}
	if len(g.told) > 0 {
		g.tell()
	}
	for m := g.locked; m != 0; m &= m - 1 {
		g.ks.arm(bits.TrailingZeros64(m), g.now)
	}
	g.unlockShards()
}

// unlockShards unlocks the shards. It suffices for a guard that has changed nothing.
func (g *Guard) unlockShards() {
	g.ks.unlock(g.locked)
	g.locked = 0
}

// Changes returns the number of changes under this and earlier guards of g. Expiry does not count.
func (g *Guard) Changes() int { return g.changes }

// Log adds a command to the guard's record in the journal: args in database db, which are not kept. Besides, the guard
// records only expired keys by itself, so the caller must log how to repeat each change.
func (g *Guard) Log(db int, args [][]byte) {
	if g.ks.journal == nil {
		return
	}
	g.logIn(db)
	g.record = appendCommand(g.record, args)
}

// Record has commands prepared for Guard.LogRecord without a guard.
type Record struct{ text []byte }

// Add adds a command. It does not keep args.
func (r *Record) Add(args ...[]byte) { r.text = appendCommand(r.text, args) }

// Bytes returns the commands as RESP arrays.
func (r *Record) Bytes() []byte { return r.text }

// Empty reports whether there are no commands.
func (r *Record) Empty() bool { return len(r.text) == 0 }

// LogRecord is Log for prepared commands.
func (g *Guard) LogRecord(db int, r *Record) {
	if g.ks.journal == nil {
		return
	}
	g.logIn(db)
	g.record = append(g.record, r.text...)
}

// logIn selects the database of the record's next commands.
func (g *Guard) logIn(db int) {
	if db != g.recordDB {
		g.recordDB = db
		g.record = appendCommand(g.record, [][]byte{[]byte("SELECT"), strconv.AppendInt(nil, int64(db), 10)})
	}
}

// Journals reports whether Log has an effect: there must be a journal, and it must not be being replayed.
func (g *Guard) Journals() bool { return g.ks.journal != nil }

// Logged reports whether the guard has something to journal.
func (g *Guard) Logged() bool { return len(g.record) > 0 }

// Locked reports whether the guard holds any shards.
func (g *Guard) Locked() bool { return g.locked != 0 }

// HoldsOnly reports whether the guard holds the given shards and no others.
func (g *Guard) HoldsOnly(shards uint64) bool { return g.locked != 0 && g.locked == shards&g.ks.all }

// Quiet reports whether the guard's end can wait: no client is to be served, and little is to be journalled or counted.
// Then the next command on the same shards at the same time may run under the same guard.
func (g *Guard) Quiet() bool {
	return len(g.ready) == 0 && len(g.again) == 0 && len(g.pending) < maxKeptPending && len(g.record) < maxKeptRecord
}

// Now returns the guard's time in ms since 1970.
func (g *Guard) Now() int64 { return g.now }

// SetBack limits the guard's time, and that of its record, to at most to, in ms since 1970.
func (g *Guard) SetBack(to int64) { g.now = min(g.now, to) }

// Shards returns the shards that the guard holds.
func (g *Guard) Shards() uint64 { return g.locked }

// Holds reports whether the guard holds all of the given shards.
func (g *Guard) Holds(shards uint64) bool { return shards&g.ks.all&^g.locked == 0 }

// Keyspace returns the keyspace that the guard locks.
func (g *Guard) Keyspace() *Keyspace { return g.ks }

func (g *Guard) shard(i uint8) *shard {
	if g.locked&(1<<i) == 0 {
		panic("engine: key outside of the guard's shards")
	}
	return &g.ks.shards[i]
}

// Peek returns the entry of a key, or nil. It changes neither statistics nor the access time.
func (g *Guard) Peek(db int, key []byte) *Entry {
	i := uint8(0)
	if len(g.ks.shards) > 1 {
		i = uint8(bits.TrailingZeros64(g.ks.ShardOf(key)))
	}
	p, ok := g.shard(i).dbs[db].dict.Get(key)
	if !ok {
		if g.ks.fetching {
			return g.fetch(db, string(key))
		}
		return nil
	}
	return g.unlessExpired(*p)
}

// PeekString is Peek for a key that is a string.
func (g *Guard) PeekString(db int, key string) *Entry {
	p, ok := g.shard(g.ks.shardIndex(key)).dbs[db].dict.GetString(key)
	if !ok {
		if g.ks.fetching {
			return g.fetch(db, key)
		}
		return nil
	}
	return g.unlessExpired(*p)
}

func (g *Guard) unlessExpired(e *Entry) *Entry {
	if e.slot == 0 || !g.due(e) {
		return e
	}
	if g.ks.replica {
		return g.inReplica(e)
	}
	if e.deadline != 0 && e.deadline <= g.now {
		g.expire(e)
		return nil
	}
	if _, stays := g.expireFields(e, math.MaxInt); !stays {
		return nil
	}
	return e
}

// Read returns the entry of a key for a command that reads it, or nil. It counts a hit or a miss.
func (g *Guard) Read(db int, key []byte) *Entry {
	e := g.Peek(db, key)
	if e == nil {
		g.shardOfKey(key).stats.Misses++
		if g.wants(EventKeyMiss) {
			g.Notify(EventKeyMiss, "keymiss", db, string(key))
		}
		return nil
	}
	g.ks.shards[e.shard].stats.Hits++
	g.touch(e)
	return e
}

// Write returns the entry of a key for a command that will change it, or nil. Only entries from Write, ReadToWrite
// and the functions that create them may be changed.
func (g *Guard) Write(db int, key []byte) *Entry {
	e := g.Peek(db, key)
	if e != nil {
		g.touch(e)
		g.preserve(e)
	}
	return e
}

// ReadToWrite is Read for a command that may then change the entry.
func (g *Guard) ReadToWrite(db int, key []byte) *Entry {
	e := g.Read(db, key)
	if e != nil {
		g.preserve(e)
	}
	return e
}

func (g *Guard) touch(e *Entry) {
	if g.NoTouch {
		return
	}
	if g.ks.frequency.Load() {
		g.countAccess(e)
		return
	}
	if !g.ks.modifications.Load() {
		e.access = uint32(g.now / 1000)
	}
}

// modified records the time of an entry's change, if the eviction policy uses that instead of its use.
func (g *Guard) modified(e *Entry) {
	if g.ks.modifications.Load() {
		e.access = uint32(g.now / 1000)
	}
}

func (g *Guard) shardOfKey(key []byte) *shard {
	if len(g.ks.shards) == 1 {
		return g.shard(0)
	}
	return g.shard(uint8(bits.TrailingZeros64(g.ks.ShardOf(key))))
}

// Create adds an entry with a collection as its value under a key that must not exist. The collection may be empty
// until the command ends. The caller reports the change with Changed.
func (g *Guard) Create(db int, key []byte, value any) *Entry {
	e := g.insert(db, string(key), nil)
	e.setCollection(value)
	g.index(e)
	return e
}

// CreateString adds an entry with a copy of v as its value under a key that must not exist.
func (g *Guard) CreateString(db int, key, v []byte) *Entry {
	return g.insert(db, stringOf(key), v)
}

// insert adds an entry with copies of a key and a string.
func (g *Guard) insert(db int, key string, str []byte) *Entry {
	e := g.prepare(db, key, str)
	g.link(db, e)
	return e
}

// prepare returns a new entry for link.
func (g *Guard) prepare(db int, key string, str []byte) *Entry {
	e := newEntry(key, str)
	e.space, e.shard, e.access, e.flags = g.ks.current[db], g.ks.shardIndex(key), g.firstAccess(), g.ks.copied
	return e
}

// link adds an entry. Its value must be set before the guard ends.
func (g *Guard) link(db int, e *Entry) {
	g.add(e, &g.shard(e.shard).dbs[db])
	g.Wake(e)
	g.Notify(EventNew, "new", db, e.Key())
}

// Overwrite replaces the value of an entry, whatever its type, by a copy of v, and keeps its deadline.
func (g *Guard) Overwrite(e *Entry, v []byte) {
	g.becomeString(e)
	e.SetBytes(v)
}

// Exchange is Overwrite without a copy: the entry then owns v, which must have more than 1 KiB. It returns the memory
// of the old value if that was a string outside its key's memory and is unused, else nil.
func (g *Guard) Exchange(e *Entry, v []byte) (old []byte) {
	g.becomeString(e)
	return e.exchange(v)
}

// becomeString prepares an entry for a new string value.
func (g *Guard) becomeString(e *Entry) {
	g.Overwritten(e, e.typ, String)
	if e.typ != String {
		g.unindex(e)
		g.dropFields(e)
		g.dropParts(e)
		e.discard()
		e.typ = String
		g.Wake(e)
	}
}

// OverwriteCollection replaces the value of an entry by a collection and removes its deadline. As in Redis, clients
// that wait for a key of the new type keep waiting until one is created; only readers of a replaced stream learn that
// it is gone.
func (g *Guard) OverwriteCollection(e *Entry, value any) {
	old := e.typ
	if e.typ == Stream {
		g.Wake(e)
	}
	g.unindex(e)
	g.dropFields(e)
	g.dropParts(e)
	e.setCollection(value)
	g.index(e)
	g.SetDeadline(e, 0)
	g.Overwritten(e, old, e.typ)
}

// Replace gives an entry returned by Write a changed copy of its collection. The caller reports the change with
// Changed.
func (g *Guard) Replace(e *Entry, value any) {
	g.unindex(e)
	g.dropFields(e)
	g.dropParts(e)
	e.setCollection(value)
	g.index(e)
}

// Overwritten publishes that a value of type old was replaced. The methods that replace a value call it. A caller that
// removes an entry and creates a new one under the same key calls it after the new one's event.
func (g *Guard) Overwritten(e *Entry, old, now Type) {
	if !g.wants(EventOverwritten | EventTypeChanged) {
		return
	}
	db := g.DB(e)
	g.Notify(EventOverwritten, "overwritten", db, e.Key())
	if old != now {
		g.Notify(EventTypeChanged, "type_changed", db, e.Key())
	}
}

// Changed must be called after every change of an entry's value or deadline. It alone informs everything that depends
// on the change; event is published if its class is enabled.
func (g *Guard) Changed(e *Entry, class EventClass, event string) {
	if e.typ == Hash || e.typ == Set {
		g.schedule(e)
	}
	if g.ks.source != nil {
		g.markDirty(e)
	}
	g.modified(e)
	g.announce(e, class, event)
}

// announce informs everything that depends on an entry that it has changed or gone.
func (g *Guard) announce(e *Entry, class EventClass, event string) {
	db := g.DB(e)
	g.changed(&g.ks.shards[e.shard], db, e.Key())
	g.Notify(class, event, db, e.Key())
}

// DB returns the number of the database that an entry is in.
func (g *Guard) DB(e *Entry) int { return g.ks.spaces[e.space].db }

// Remove deletes an entry and informs everything that depends on it, as Changed does. Afterwards only the entry's key
// may be used.
func (g *Guard) Remove(e *Entry, class EventClass, event string) {
	e.long().leave()
	g.unlink(e)
	g.dropParts(e)
	g.announce(e, class, event)
}

// unlink removes the entry from its database.
func (g *Guard) unlink(e *Entry) {
	g.setDeadline(e, 0)
	g.setBlessed(e, false)
	g.dropFields(e)
	g.unindex(e)
	g.Wake(e)
	s := g.shard(e.shard)
	g.preserve(e)
	if g.ks.source != nil {
		g.forget(e)
	}
	d := &s.dbs[g.DB(e)]
	g.uncount(e)
	was := d.tableSize()
	if i, ok := d.dict.IndexOf(bytesOf(e.Key())); ok {
		g.ks.deleteAt(d, i)
	}
	g.grew(d, d.tableSize()-was)
}

// add adds a new entry to a database.
func (g *Guard) add(e *Entry, d *database) {
	g.countLater(e, 0)
	was := d.tableSize()
	g.ks.insert(d, e)
	g.grew(d, d.tableSize()-was)
}

// expire removes an expired entry. The removal is no command's change, and is journalled here.
func (g *Guard) expire(e *Entry) {
	g.ks.shards[e.shard].stats.Expired++
	changes := g.changes
	g.expiring = true
	g.Remove(e, EventExpired, "expired")
	g.expiring = false
	g.changes = changes
	if g.ks.journal != nil {
		g.Log(g.DB(e), [][]byte{[]byte("DEL"), bytesOf(e.Key())})
	}
}

// NeverCame counts a key as expired whose deadline had passed when it was to be created.
func (g *Guard) NeverCame(key []byte) { g.shardOfKey(key).stats.Expired++ }

// SetDeadline makes an entry expire at a time in ms since 1970, or never if at is 0. The caller reports the change.
func (g *Guard) SetDeadline(e *Entry, at int64) {
	if at != e.deadline && e.inHead() {
		e.load() // its head will be rewritten; reading may fail, so it comes first
	}
	g.setDeadline(e, at)
}

func (g *Guard) setDeadline(e *Entry, at int64) {
	if at == e.deadline {
		return
	}
	g.preserve(e)
	fields := g.fieldDeadline(e)
	d := &g.shard(e.shard).dbs[g.DB(e)]
	before := d.expires
	if e.deadline != 0 {
		d.expires--
		d.deadlines -= float64(e.deadline)
	}
	if e.deadline = at; at != 0 {
		d.expires++
		d.deadlines += float64(at)
	}
	if e.Blessed() {
		d.blessedExpires += d.expires - before
	}
	g.place(e, fields)
}

// dropFields notes that an entry loses its value, and with it fields with deadlines.
func (g *Guard) dropFields(e *Entry) {
	if e.flags&flagFields != 0 {
		g.preserve(e)
		g.setFieldDeadline(e, 0)
	}
}

// ChangedBookkeeping is Changed for a stream's data beside its entries: groups, consumers, pending entries, its last
// ID. As in Redis, WATCH and clients' caches ignore such changes.
func (g *Guard) ChangedBookkeeping(e *Entry, class EventClass, event string) {
	if g.ks.source != nil {
		g.markDirty(e)
	}
	g.modified(e)
	g.changes++
	g.ks.shards[e.shard].stats.Changes++
	if g.ks.dirtyTracker != nil {
		g.ks.dirtyTracker.Touched(g.DB(e), e.Key(), false)
	}
	g.Notify(class, event, g.DB(e), e.Key())
}

// Noted is called after a value has recorded its own use. That is not a change to clients: it is not journalled, and is
// stored with the value eventually.
func (g *Guard) Noted(e *Entry) {
	if g.ks.source != nil {
		g.markDirty(e)
	}
	g.modified(e)
}

// Wake lets the clients that wait for an entry's key try again. The guard does so by itself for keys that appear, go,
// or change their type; clients of streams and lists also wait for other changes.
func (g *Guard) Wake(e *Entry) {
	if s := g.shard(e.shard); len(s.queues) > 0 {
		if q, ok := s.queues[dbKey{g.DB(e), e.Key()}]; ok {
			g.markReady(q)
		}
	}
}

// changed informs everything that remembers a key of shard s that the key has changed.
func (g *Guard) changed(s *shard, db int, key string) {
	g.changes++
	s.stats.Changes++
	if len(s.watches) > 0 {
		if w, ok := s.watches[dbKey{db, key}]; ok {
			w.version++
		}
	}
	if len(g.ks.watchedKeys) > 0 {
		g.ks.noteChanged(g.ks.shardIndex(key), db, key)
	}
	if g.ks.observeChanges.Load() {
		owner := g.Owner
		if g.expiring {
			owner = nil // no client made the change
		}
		g.ks.observer.KeyChanged(owner, db, key)
	}
	if g.ks.dirtyTracker != nil {
		g.ks.dirtyTracker.Touched(db, key, g.expiring)
	}
	if g.ks.indexer != nil {
		g.mustIndex(db, key)
	}
}

func (g *Guard) wants(class EventClass) bool { return EventClass(g.ks.events.Load())&class != 0 }

// Notify publishes a keyspace event if its class is enabled.
func (g *Guard) Notify(class EventClass, event string, db int, key string) {
	if g.wants(class) && g.ks.observer != nil {
		g.ks.observer.KeyEvent(g.Owner, class, event, db, key)
	}
}

// ChangedFields is Changed for fields of a hash or members of a set: those at the beginning of each step of list.
func (g *Guard) ChangedFields(e *Entry, event string, list [][]byte, step int) {
	g.Changed(e, kinds[e.typ].fields.class, event)
	g.NotifyFields(e, event, list, step)
}

// WantsFields reports whether NotifyFields has a receiver for values of a type, hashes or sets.
func (g *Guard) WantsFields(typ Type) bool {
	return g.wants(EventSubkeys) && g.wants(kinds[typ].fields.class) && g.ks.observer != nil
}

// NotifyFields publishes the fields or members that an event is about, if that is enabled: those at the beginning of
// each step of list.
func (g *Guard) NotifyFields(e *Entry, event string, list [][]byte, step int) {
	if len(list) == 0 || !g.WantsFields(e.typ) {
		return
	}
	fields := list
	if step > 1 {
		fields = make([][]byte, 0, len(list)/step)
		for i := 0; i < len(list); i += step {
			fields = append(fields, list[i])
		}
	}
	g.ks.observer.SubkeyEvent(g.Owner, kinds[e.typ].fields.class, event, g.DB(e), e.Key(), fields)
}

// NotifyEmpty tells the Observer, if enabled, that a command asked for elements of a key that has none.
func (g *Guard) NotifyEmpty(db int, key []byte) {
	g.Notify(EventEmpty, "empty", db, unsafe.String(unsafe.SliceData(key), len(key)))
}

// Move gives an entry another key, in the same or another database. The new key must not exist. The caller holds the
// shards of both keys and reports the changes of both with Changed and Vanished.
func (g *Guard) Move(e *Entry, db int, key []byte) *Entry {
	at, blessed := e.deadline, e.Blessed()
	e.LoadWhole() // its memory is registered under the key
	fields, carried := g.fieldDeadline(e), g.unindex(e)
	g.unlink(e)
	moved := g.insert(db, stringOf(key), nil)
	if moved.typ = e.typ; e.obj == nil {
		moved.SetBytes(e.Bytes())
	} else {
		const withValue = flagParts | flagUnloaded
		moved.obj, moved.flags = e.obj, moved.flags&^withValue|e.flags&withValue
		g.ks.loans.moved(moved)
	}
	if len(carried) > 0 {
		g.indexAs(moved, carried)
	}
	moved.form, moved.access = e.form, e.access
	g.SetDeadline(moved, at)
	g.setBlessed(moved, blessed)
	if fields != 0 {
		g.setFieldDeadline(moved, fields)
	}
	return moved
}

// Vanished reports that a key is gone because its entry was moved.
func (g *Guard) Vanished(db int, key []byte, class EventClass, event string) {
	g.changed(g.shardOfKey(key), db, string(key))
	g.Notify(class, event, db, string(key))
}

// Copy adds a copy of an entry, with its deadline, under a key that must not exist. The copy's value is v, from
// CopyValue.
func (g *Guard) Copy(e *Entry, v *Value, db int, key []byte) *Entry {
	c := g.insert(db, stringOf(key), nil)
	c.setValue(v)
	g.index(c)
	g.SetDeadline(c, e.deadline)
	g.schedule(c)
	return c
}

// Len returns the number of keys in a database. The guard must hold all shards, as for all functions below.
func (g *Guard) Len(db int) int {
	n := 0
	for i := range g.ks.shards {
		n += g.shard(uint8(i)).dbs[db].dict.Len()
	}
	return n
}

// Stats returns the counters, summed over all shards.
func (g *Guard) Stats() Stats {
	var sum Stats
	for i := range g.ks.shards {
		s := &g.shard(uint8(i)).stats
		sum.Hits += s.Hits
		sum.Misses += s.Misses
		sum.Expired += s.Expired
		sum.ExpiredActively += s.ExpiredActively
		sum.ExpiredFields += s.ExpiredFields
		sum.ExpiredFieldsActively += s.ExpiredFieldsActively
		sum.Evicted += s.Evicted
		sum.Unloaded += s.Unloaded
		sum.Loaded += s.Loaded
		sum.LoadedParts += s.LoadedParts
		sum.ExpiryNanos += s.ExpiryNanos
		sum.Changes += s.Changes
	}
	return sum
}

// Remembered returns the numbers of keys that clients watch (a WatchKeys counts as one), that they wait for, and that
// some wait to be gone. The guard must hold all shards.
func (g *Guard) Remembered() (watched, awaited, awaitedGone int) {
	watched = len(g.ks.watchedKeys)
	for i := range g.ks.shards {
		s := g.shard(uint8(i))
		watched += len(s.watches)
		awaited += len(s.queues)
		for _, q := range s.queues {
			if q.streams > 0 {
				awaitedGone++
			}
		}
	}
	return watched, awaited, awaitedGone
}

// DBStats returns the size of a database.
func (g *Guard) DBStats(db int) DBStats {
	var sum DBStats
	var deadlines float64
	for i := range g.ks.shards {
		d := &g.shard(uint8(i)).dbs[db]
		sum.Keys += d.dict.Len()
		sum.Expires += d.expires
		sum.FieldExpires += d.fieldExpires
		sum.MemberExpires += d.memberExpires
		sum.Blessed += d.blessed
		deadlines += d.deadlines
	}
	if sum.Expires > 0 {
		sum.AvgTTL = max(int64(deadlines/float64(sum.Expires))-g.now, 0)
	}
	return sum
}

// maxRandomTries is how often RandomKey draws in a replica, where expired keys stay.
const maxRandomTries = 100

// RandomKey returns the entry of a random key of a database, all with the same probability; nil if there is none.
func (g *Guard) RandomKey(db int) *Entry {
	tries := 0
	for {
		n := g.Len(db)
		if n == 0 {
			return nil
		}
		i := rand.IntN(n)
		for s := range g.ks.shards {
			d := &g.ks.shards[s].dbs[db].dict
			if i < d.Len() {
				e := *d.At(i)
				if found := g.unlessExpired(e); found != nil {
					return found
				}
				if tries++; g.ks.replica && tries == maxRandomTries {
					return e // as in Redis: there may be no live key
				}
				break // draw again
			}
			i -= d.Len()
		}
	}
}

// Each calls fn for every entry of a database, in no order, until fn returns false. fn must not change the keyspace.
func (g *Guard) Each(db int, fn func(e *Entry) bool) {
	for i := range g.ks.shards {
		for p := range g.shard(uint8(i)).dbs[db].dict.All() {
			if e := *p; !g.gone(e) && !fn(e) {
				return
			}
		}
	}
}

// Scan walks a database piecewise: it visits about count entries starting at cursor and returns the next cursor, 0 at
// the end; 0 also starts. An entry that is present from the first call to the last is visited at least once, whatever
// is added and removed meanwhile. fn must not change the keyspace.
//
// A cursor has the shard's number in its low bits, and above them the number of that shard's entries left to visit.
//
// If match is not nil, keys for which it returns false are skipped. Expired keys among the others are removed.
func (g *Guard) Scan(db int, cursor uint64, count int, match func(key string) bool, fn func(e *Entry)) uint64 {
	return g.scan(db, noSlot, cursor, count, match, fn)
}

// scan is Scan of the entries of one slot, or of all slots.
func (g *Guard) scan(db, slot int, cursor uint64, count int, match func(key string) bool, fn func(e *Entry)) uint64 {
	shift := bits.Len(uint(len(g.ks.shards) - 1))
	i := int(cursor & uint64(len(g.ks.shards)-1))
	left := cursor >> shift
	for i < len(g.ks.shards) {
		d := &g.shard(uint8(i)).dbs[db]
		visited := 0
		if d.len(slot) > 0 {
			var expired []*Entry
			left = d.scan(slot, left, count, func(e *Entry) {
				visited++
				switch {
				case match != nil && !match(e.Key()):
				case g.gone(e):
					expired = append(expired, e)
				default:
					fn(e)
				}
			})
			for _, e := range expired {
				g.unlessExpired(e)
			}
		} else {
			left = 0
		}
		if left != 0 {
			return left<<shift | uint64(i)
		}
		// A cursor of 0 means the start between calls, but the end within a shard.
		i++
		if count -= visited; count <= 0 {
			for i < len(g.ks.shards) {
				if n := g.ks.shards[i].dbs[db].len(slot); n > 0 {
					return uint64(n)<<shift | uint64(i)
				}
				i++
			}
		}
	}
	return 0
}

// Flush removes all keys of a database, or of all databases if db is -1, and returns how many there were.
func (g *Guard) Flush(db int) int {
	first, last := db, db
	if db < 0 {
		first, last = 0, g.ks.databases-1
	}
	removed := 0
	emptied := make([]bool, g.ks.databases)
	g.ks.noteAllChanged(db)
	g.uncountFlushed(first, last)
	for n := first; n <= last; n++ {
		g.dropLabels(n)
	}
	for i := range g.ks.shards {
		s := g.shard(uint8(i))
		index, used := s.indexSize(), 0
		for n := first; n <= last; n++ {
			d := &s.dbs[n]
			removed += d.dict.Len()
			emptied[n] = emptied[n] || d.dict.Len() > 0
			s.stats.Changes += int64(d.dict.Len())
			g.touchWaiting(s, func(k dbKey) bool {
				_, exists := d.dict.GetString(k.key)
				return k.db == n && exists
			})
			g.dropDeadlines(s, d)
			used += d.used
			if c := g.ks.copying; c != nil {
				c.keepTable(g.ks.current[n], i, d)
			}
			*d = database{}
		}
		g.growth += s.indexSize() - index - used
	}
	g.countSlotMemory(g.ks.slotMemory != nil)
	g.changes++ // also without keys: indexes and dictionaries go too, and followers must do the same
	for n := first; n <= last; n++ {
		if emptied[n] || g.ks.fetching {
			g.ks.loans.emptied(g.ks.current[n])
			g.ks.dropSpace(n)
		}
	}
	g.unlistFlushed()
	if g.ks.observeChanges.Load() {
		g.ks.observer.Flushed(g.Owner, db)
	}
	if g.ks.dirtyTracker != nil {
		g.ks.dirtyTracker.Emptied()
	}
	if x := g.ks.indexer; x != nil { // its call may remove the indexer
		for n := first; n <= last; n++ {
			x.Emptied(g, n)
		}
	}
	return removed
}

// dropDeadlines removes the entries of a database that is about to be dropped from the deadline index.
func (g *Guard) dropDeadlines(s *shard, d *database) {
	if d.fieldExpires == 0 && d.expires == s.expires.Len() {
		s.expires.Clear()
		return
	}
	for p := range d.dict.All() {
		s.expires.Remove(*p)
	}
}

// Swap exchanges the contents of two databases.
func (g *Guard) Swap(a, b int) {
	if a == b {
		return
	}
	// Reading the store may fail, so all relevant keys are looked up before anything is exchanged.
	before := len(g.ready)
	for i := range g.ks.shards {
		s := g.shard(uint8(i))
		g.touchWaiting(s, func(k dbKey) bool {
			other := b
			switch k.db {
			case b:
				other = a
			case a:
			default:
				return false
			}
			_, was := s.dbs[k.db].dict.GetString(k.key) // in memory: clients that watch or wait have looked it up
			is := g.PeekString(other, k.key) != nil     // an expired key does not count
			return was || is
		})
	}
	// Clients that wait for several keys are always served in the same order.
	slices.SortFunc(g.ready[before:], func(a, b *waitQueue) int { return strings.Compare(a.key, b.key) })
	g.ks.noteAllChanged(a)
	g.ks.noteAllChanged(b)
	g.changes++
	for i := range g.ks.shards {
		dbs := g.shard(uint8(i)).dbs
		dbs[a], dbs[b] = dbs[b], dbs[a]
	}
	spaces, current := g.ks.spaces, g.ks.current
	current[a], current[b] = current[b], current[a]
	spaces[current[a]].db, spaces[current[b]].db = a, b
	if g.ks.dirtyTracker != nil {
		g.ks.dirtyTracker.Emptied()
	}
	if g.ks.indexer != nil && (a == 0 || b == 0) {
		g.ks.indexer.Exchanged(g)
	}
}

// touchWaiting treats watched and awaited keys as changed if affected returns true.
func (g *Guard) touchWaiting(s *shard, affected func(k dbKey) bool) {
	for k, w := range s.watches {
		if affected(k) {
			w.version++
		}
	}
	for k, q := range s.queues {
		if affected(k) {
			g.markReady(q)
		}
	}
}
