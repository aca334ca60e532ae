package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/dict"
)

// Snapshots: the whole keyspace as it is at one instant, read while commands go on. What a snapshot has still to read
// is known by a flag of the entries that changes its meaning when one begins, so that beginning is one assignment,
// and by which new entries are told from old ones. Entries are read in small batches, in the order of the tables;
// whoever wants to change or remove one before its turn leaves what it was (preserve, as for a checkpoint, which may
// be under way at the same time). Large values are copied part by part, and whoever changes a part before its turn
// leaves what it was (package delta). So nobody waits for longer than a batch takes.
//
// What is in memory because of a snapshot is what has been left and not yet been taken, and one large value.

// Snapshot is the keyspace at one instant. One goroutine uses it, but for Held.
type Snapshot struct {
	// Now is the instant, in ms since 1970.
	Now int64
	// Stats describe the databases then.
	Stats []DBStats
	// Pause, if it is not nil, is called before each batch that is read under a lock. See Frozen.Pause.
	Pause func()

	ks     *Keyspace
	pieces pieces
	source SourceSnapshot // nil without a Source
	spaces []uint32       // by database, index in Keyspace.spaces
	dbs    map[uint32]int // and the other way round

	// What is left of databases that were emptied. It changes only while all shards are locked; whoever holds one may
	// read it.
	emptied  map[tableKey]*dict.Table[*Entry]
	dropping bool // nothing is kept any more; changes likewise

	db, shard int      // where read goes on
	left      uint64   // and from where in the table, 0 for its beginning
	ended     bool     // all of it has been read
	found     []*Entry // reused

	one       Entry        // what fn gets; reused
	text      longString   // its value if that is a string
	keptBytes atomic.Int64 // bytes in kept

	mu     sync.Mutex // protects what follows; nothing is locked under it
	kept   []keptEntry
	spare  []keptEntry             // empty; the next kept
	copies map[*valueCopy]struct{} // those that have begun and not ended
}

// tableKey names the part of a space that is in one shard.
type tableKey struct {
	space uint32
	shard int
}

// keptEntry is an entry as it was when the snapshot began.
type keptEntry struct {
	db       int
	key      string
	typ      Type
	deadline int64

	blob   []byte     // the value, unless one of the following is set
	loan   *Loan      // of blob, if that is not a copy
	copy   *valueCopy // of a large value that is in memory
	stored Head       // has what names a value that is not, if unloaded
	space  uint32     // its number
	absent bool       // the value is not in memory, but in source
}

// valueCopy is a copy under way of a large value.
type valueCopy struct {
	typ       Type
	parts     partsCopy
	deadlines partsCopy // of the fields of a hash, if of is not nil
}

// partsCopy copies the parts of a value.
type partsCopy struct {
	of  walker
	log *delta.Log
}

// pieces says how much is read under one lock.
type pieces struct {
	entries, parts int // at most that many entries or parts of a value,
	bytes          int // and as many as make about so many bytes,
	step           int // which is checked whenever so many have been read
}

var snapshotPieces = pieces{entries: 64, parts: 256, bytes: 64 << 10, step: 16}

// Snapshot begins one. at is called with a guard over everything at the instant that it shows; if it fails there is
// none. Another one that is under way is waited for, as long as ctx lasts. All keys must be in memory. Close must be
// called in the end.
func (ks *Keyspace) Snapshot(ctx context.Context, at func(g *Guard) error) (*Snapshot, error) {
	select {
	case ks.snapshots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s, err := ks.beginSnapshot(at)
	if err != nil {
		<-ks.snapshots
	}
	return s, err
}

func (ks *Keyspace) beginSnapshot(at func(g *Guard) error) (*Snapshot, error) {
	var g Guard
	g.Lock(ks, AllShards, ks.Now())
	defer g.Unlock()
	if !g.Complete() {
		panic("engine: a snapshot before all keys are known")
	}
	if err := at(&g); err != nil {
		return nil, err
	}
	s := &Snapshot{
		Now: g.Now(), ks: ks, pieces: snapshotPieces, spaces: slices.Clone(ks.current), dbs: map[uint32]int{},
		emptied: map[tableKey]*dict.Table[*Entry]{}, copies: map[*valueCopy]struct{}{},
	}
	for db, space := range s.spaces {
		s.dbs[space] = db
		s.Stats = append(s.Stats, g.DBStats(db))
	}
	if ks.source != nil {
		var err error
		if s.source, err = ks.source.Snapshot(); err != nil {
			return nil, err
		}
	}
	ks.copying = s
	ks.copied ^= flagCopied // what there is has still to be read, and what comes has not
	ks.await()
	return s, nil
}

// waitsFor reports whether an entry has still to be read.
func (s *Snapshot) waitsFor(e *Entry) bool { return (e.flags^s.ks.copied)&flagCopied != 0 }

// keep keeps an entry as it is, whose shard is held.
func (s *Snapshot) keep(g *Guard, e *Entry) {
	e.flags ^= flagCopied
	if s.dropping {
		return
	}
	k := s.read(g, e, new([]byte), s.ks.texts.whole+1)
	if e.room() > maxSpareText {
		k.key = strings.Clone(k.key) // the value that follows it need not be kept
	}
	s.add(k)
}

func (s *Snapshot) add(k keptEntry) {
	s.keptBytes.Add(k.held())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, k)
	if k.copy != nil {
		s.copies[k.copy] = struct{}{}
	}
}

// read returns what there is to know of an entry. A small value is appended to buf, a string of lent bytes or more is
// lent.
func (s *Snapshot) read(g *Guard, e *Entry, buf *[]byte, lent int) keptEntry {
	k := keptEntry{db: s.dbs[e.space], key: e.Key(), typ: e.typ, deadline: e.deadline}
	v := e.value()
	switch {
	case e.flags&flagUnloaded != 0:
		k.absent, k.space = true, g.ks.spaces[e.space].number
		k.stored = Head{Parts: e.parts(), FieldParts: e.fieldParts(), Length: e.textLength()}
	case e.typ == String && len(e.Bytes()) >= lent:
		k.blob, k.loan = g.Lend(e)
	case v != nil && v.Large():
		k.copy = newValueCopy(e, v)
	default:
		n := len(*buf)
		*buf = e.appendBlob(*buf)
		k.blob = (*buf)[n:len(*buf):len(*buf)]
	}
	return k
}

// keepTable keeps the entries of a database that is about to be emptied, as far as they have still to be read. The
// guard holds all shards.
func (s *Snapshot) keepTable(space uint32, shard int, d *database) {
	k := tableKey{space, shard}
	if _, ok := s.dbs[space]; ok && s.emptied[k] == nil { // otherwise what is there came later
		table := d.dict
		s.emptied[k] = &table
	}
}

// table returns the entries of a space that are in a shard, which is held.
func (s *Snapshot) table(space uint32, shard int) *dict.Table[*Entry] {
	if t := s.emptied[tableKey{space, shard}]; t != nil {
		return t
	}
	if sp := s.ks.spaces[space]; sp.dropped == 0 {
		return &s.ks.shards[shard].dbs[sp.db].dict
	}
	return new(dict.Table[*Entry]) // it was empty, or nothing of it is kept
}

// readBatch reads the next entries, which it adds to those that were kept, with their values in buf.
func (s *Snapshot) readBatch(buf []byte) []byte {
	var g Guard
	g.Lock(s.ks, 1<<s.shard, 0)
	defer g.unlockShards()
	t := s.table(s.spaces[s.db], s.shard)
	for n := 0; n < s.pieces.entries && len(buf) < s.pieces.bytes; n += s.pieces.step {
		found := s.found[:0]
		if t.Len() > 0 {
			s.left = t.Scan(s.left, s.pieces.step, func(p **Entry) {
				if s.waitsFor(*p) {
					found = append(found, *p)
				}
			})
		} else {
			s.left = 0
		}
		s.found = found
		for _, e := range found {
			e.flags ^= flagCopied
			if !s.dropping {
				s.add(s.read(&g, e, &buf, lendFrom))
			}
		}
		if s.left == 0 {
			s.nextTable()
			break
		}
	}
	return buf
}

// nextTable goes on to the next table.
func (s *Snapshot) nextTable() {
	if s.shard++; s.shard < len(s.ks.shards) {
		return
	}
	s.shard = 0
	if s.db++; s.db == len(s.spaces) {
		s.ended = true
	}
}

// Each calls fn with every key, in no order, until it fails. The entries are not those of the keyspace, and are valid
// during the call only. What has expired is left out. It can be called once.
func (s *Snapshot) Each(fn func(db int, e *Entry) error) error {
	var buf []byte
	for !s.ended {
		s.pause()
		if buf = s.readBatch(buf[:0]); cap(buf) > maxKeptBlobs {
			buf = nil
		}
		if err := s.emit(fn); err != nil {
			return err
		}
	}
	s.finish()
	return s.emit(fn)
}

func (s *Snapshot) pause() {
	if s.Pause != nil {
		s.Pause()
	}
}

// finish ends that entries are kept: all have been read.
func (s *Snapshot) finish() {
	var g Guard
	g.Lock(s.ks, AllShards, 0)
	defer g.unlockShards()
	s.ks.copying = nil
	s.ks.await()
	s.emptied = nil
}

// emit gives fn what has been kept.
func (s *Snapshot) emit(fn func(db int, e *Entry) error) error {
	for {
		s.mu.Lock()
		kept := s.kept
		s.kept, s.spare = s.spare, nil
		s.mu.Unlock()
		if len(kept) == 0 {
			return nil
		}
		for i := range kept {
			k := &kept[i]
			s.keptBytes.Add(-k.held())
			if err := s.emitOne(k, fn); err != nil {
				release(kept[i:])
				return err
			}
			release(kept[i : i+1])
		}
		if cap(kept) <= maxSpareKept {
			clear(kept)
			s.mu.Lock()
			s.spare = kept[:0]
			s.mu.Unlock()
		}
	}
}

// emitOne gives fn one entry, unless it has expired.
func (s *Snapshot) emitOne(k *keptEntry, fn func(db int, e *Entry) error) error {
	if k.deadline != 0 && k.deadline <= s.Now && k.copy == nil {
		return nil
	}
	e, err := s.entry(k)
	if err != nil {
		return &LoadError{k.key, err}
	}
	if e.deadline != 0 && e.deadline <= s.Now || e.typ == Hash && e.Hash().AllExpired(s.Now) {
		return nil
	}
	return fn(k.db, e)
}

// held returns how many bytes are kept for the snapshot alone, and are not counted among what is lent.
func (k *keptEntry) held() int64 {
	if k.loan != nil {
		return 0
	}
	return int64(len(k.blob))
}

// release lets go of the memory of entries that nobody needs any more.
func release(kept []keptEntry) {
	for i := range kept {
		if l := kept[i].loan; l != nil {
			l.Return()
		}
		kept[i] = keptEntry{}
	}
}

// maxSpareKept is for how many entries room is kept.
const maxSpareKept = 1024

// entry returns an entry of its own with what was kept. It is valid until the next call.
func (s *Snapshot) entry(k *keptEntry) (*Entry, error) {
	e := &s.one
	*e = Entry{text: unsafe.StringData(k.key), keyLen: uint32(len(k.key)), deadline: k.deadline, typ: k.typ}
	switch {
	case k.copy != nil:
		v, err := s.copy(k.copy)
		if err == nil {
			e.setCollection(v)
		}
		return e, err
	case k.absent && k.stored.Length != 0:
		var err error
		if k.blob, err = loadText(k.stored.Parts, k.stored.Length, s.source.Parts); err != nil {
			return nil, err
		}
	case k.absent && k.stored.Parts != 0:
		v, err := s.ks.load(k.typ, k.stored.Parts, k.stored.FieldParts, s.source.Parts, noLog)
		if err == nil {
			e.setCollection(v)
		}
		return e, err
	case k.absent:
		var err error
		if k.blob, err = s.source.Blob(k.space, k.key); err != nil {
			return nil, err
		}
	}
	if k.typ == String {
		s.text.b = k.blob
		e.obj = unsafe.Pointer(&s.text) // as setLong does, without memory of its own
		return e, nil
	}
	return e, e.decode(k.blob, s.ks)
}

// noLog is for values that are not stored.
func noLog(uint64) *delta.Log { return nil }

// newValueCopy begins a copy of the large value of an entry.
func newValueCopy(e *Entry, v value) *valueCopy {
	c := &valueCopy{typ: e.typ, parts: beginCopy(v, v.Log())}
	if e.typ == Hash {
		if d := e.Hash().DeadlineIndex(); d != nil {
			c.deadlines = beginCopy(d, d.Log())
		}
	}
	return c
}

func beginCopy(w walker, log *delta.Log) partsCopy {
	if log == nil {
		log = delta.NewCopyLog()
		w.Attach(log)
	}
	log.BeginCopy()
	return partsCopy{w, log}
}

// part is a part of a value in its stored form.
type part struct{ name, data string }

// copy returns a value of its own that is as the copied one was.
func (s *Snapshot) copy(c *valueCopy) (any, error) {
	const fields, deadlines = 1, 2
	parts := map[uint64][]part{fields: s.gather(&c.parts)}
	numbers := uint64(0)
	if c.deadlines.of != nil {
		numbers = deadlines
		parts[deadlines] = s.gather(&c.deadlines)
	}
	s.mu.Lock()
	delete(s.copies, c)
	s.mu.Unlock()
	read := func(id uint64, fn func(name, data []byte) error) error {
		for _, p := range parts[id] {
			if err := fn(bytesOf(p.name), bytesOf(p.data)); err != nil {
				return err
			}
		}
		return nil
	}
	return s.ks.load(c.typ, fields, numbers, read, noLog)
}

// gather returns all parts, in the order of their names. It holds all shards while it reads, because the value can
// have moved to a key in another one since.
func (s *Snapshot) gather(c *partsCopy) []part {
	var parts []part
	var g Guard
	at, more := delta.Cursor{}, true
	for more {
		s.pause()
		room := make([]part, 0, s.pieces.parts+s.pieces.step)
		buf := make([]byte, 0, 2*s.pieces.bytes)
		g.Lock(s.ks, AllShards, 0)
		for n := 0; more && n < s.pieces.parts && len(buf) < s.pieces.bytes; n += s.pieces.step {
			at, more = c.of.Walk(at, s.pieces.step, func(name string) {
				if c.log.Touched(name) {
					return
				}
				start := len(buf)
				out, ok := c.of.AppendPart(append(buf, name...), name)
				if buf = out; ok {
					text := stringOf(buf[start:])
					room = append(room, part{text[:len(name)], text[len(name):]})
				}
			})
		}
		if !more {
			c.end(func(name string, data []byte) { room = append(room, part{name, stringOf(data)}) })
		}
		g.unlockShards()
		parts = append(parts, room...)
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.name, b.name) })
	// what changed after it was visited came twice
	return slices.CompactFunc(parts, func(a, b part) bool { return a.name == b.name })
}

// end ends the copy of a value; all shards are held.
func (c *partsCopy) end(fn func(name string, data []byte)) {
	if c.of == nil || !c.log.Copying() {
		return
	}
	c.log.EndCopy(fn)
	if c.log.ID == 0 {
		c.of.Attach(nil)
	}
}

// KeptBytes returns how many bytes have been kept because something changed, and have not been taken yet. Any goroutine
// may call it.
func (s *Snapshot) KeptBytes() int64 { return s.keptBytes.Load() }

// Close ends the snapshot. If not all of it was read that takes the time to look at every entry.
func (s *Snapshot) Close() error {
	s.drop()
	for !s.ended {
		s.pause()
		s.readBatch(nil)
	}
	s.finish()
	<-s.ks.snapshots
	if s.source != nil {
		if err := s.source.Close(); err != nil {
			return fmt.Errorf("end a snapshot of the store: %w", err)
		}
	}
	return nil
}

// drop ends that anything is kept, and lets go of what was.
func (s *Snapshot) drop() {
	var g Guard
	g.Lock(s.ks, AllShards, 0)
	defer g.unlockShards()
	s.dropping = true
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.copies {
		c.parts.end(func(string, []byte) {})
		c.deadlines.end(func(string, []byte) {})
	}
	release(s.kept)
	s.copies, s.kept, s.spare = nil, nil, nil
	s.keptBytes.Store(0)
}
