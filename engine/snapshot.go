package engine

import (
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

// Snapshots: the whole keyspace as of one instant, read while commands continue. A flag of each entry says whether a
// snapshot has still to read it. The flag's meaning is inverted when a snapshot begins, so that beginning is one assignment,
// and entries that are created later count as read. Entries are read in the order of the tables. Reading and preserving
// them is shared with checkpoints (image.go), of which one may run at the same time.
//
// A snapshot needs memory for preserved images that are not yet read, and for one large value.

// Snapshot is the keyspace at one instant. One goroutine uses it; others may call KeptBytes.
type Snapshot struct {
	// Now is the instant, in ms since 1970.
	Now int64
	// Stats describe the databases at that instant.
	Stats []DBStats

	copier
	source SourceSnapshot // nil without a Source
	spaces []uint32       // by database: index in Keyspace.spaces
	dbs    map[uint32]int // databases by the number of their space

	// emptied has the tables of databases that were emptied. The map changes only while all shards are locked; reading
	// it needs a lock on one.
	emptied  map[tableKey]*dict.Table[*Entry]
	dropping bool // nothing is kept any more; protected likewise

	names *Names // receives the names, if only they are wanted

	db, shard int      // where read continues
	left      uint64   // and the cursor in the table, 0 for its beginning
	ended     bool     // everything has been read
	found     []*Entry // reused

	one       Entry        // the argument of fn; reused
	text      longString   // its value if that is a string; reused
	keptBytes atomic.Int64 // bytes in kept

	mu     sync.Mutex // protects the fields below; no other lock is taken under it
	kept   []Image
	spare  []Image                 // empty; becomes the next kept
	copies map[*delta.Copy]tracked // unfinished copies of values
}

// tableKey names the part of a space that is in one shard.
type tableKey struct {
	space uint32
	shard int
}

// Snapshot begins a snapshot. It calls at with a guard over everything at the snapshot's instant; if at fails, there is
// no snapshot. It first waits for the end of another snapshot, until ctx ends. All keys must be in memory. The caller
// must call Close.
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
	var source SourceSnapshot
	if ks.source != nil {
		var err error
		if source, err = ks.source.Snapshot(); err != nil {
			return nil, err
		}
	}
	s := g.beginSnapshot(copiedPieces)
	s.source = source
	for db := range s.spaces {
		s.Stats = append(s.Stats, g.DBStats(db))
	}
	return s, nil
}

// beginSnapshot begins a snapshot at the guard's instant. The guard holds all shards.
func (g *Guard) beginSnapshot(pieces pieces) *Snapshot {
	ks := g.ks
	s := &Snapshot{
		Now: g.now, copier: copier{reader: reader{ks: ks}, pieces: pieces}, spaces: slices.Clone(ks.current),
		dbs: map[uint32]int{}, emptied: map[tableKey]*dict.Table[*Entry]{}, copies: map[*delta.Copy]tracked{},
	}
	for db, space := range s.spaces {
		s.dbs[ks.spaces[space].number] = db
	}
	ks.copying = s
	ks.copied ^= flagCopied // present entries now wait to be read; later ones count as read
	ks.await()
	return s
}

// waitsFor reports whether an entry has still to be read.
func (s *Snapshot) waitsFor(e *Entry) bool { return (e.flags^s.ks.copied)&flagCopied != 0 }

// keep preserves the present state of an entry, whose shard is held.
func (s *Snapshot) keep(g *Guard, e *Entry) {
	e.flags ^= flagCopied
	if s.dropping {
		return
	}
	if s.names != nil {
		s.names.add(e)
		return
	}
	img := s.image(g, e, new([]byte), s.ks.texts.whole+1)
	if e.room() > maxSpareText {
		img.Key = strings.Clone(img.Key) // drops the value that follows it in memory
	}
	s.add(img)
}

// image returns an entry's present image, and begins to copy a value in parts.
func (s *Snapshot) image(g *Guard, e *Entry, buf *[]byte, lent int) Image {
	img := g.image(e)
	if !img.Known {
		g.take(&img, e, buf, lent)
	}
	img.beginCopy()
	return img
}

func (s *Snapshot) add(img Image) {
	s.keptBytes.Add(img.held())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, img)
	for _, t := range img.values {
		if t.parts != nil {
			s.copies[t.copy] = t
		}
	}
}

// keepTable preserves the table of a database that is about to be emptied, if the snapshot includes it. The guard holds
// all shards.
func (s *Snapshot) keepTable(space uint32, shard int, d *database) {
	k := tableKey{space, shard}
	if _, ok := s.dbs[s.ks.spaces[space].number]; ok && s.emptied[k] == nil { // else its content is newer
		table := d.dict
		s.emptied[k] = &table
	}
}

// table returns the entries of a space in a shard, which is held.
func (s *Snapshot) table(space uint32, shard int) *dict.Table[*Entry] {
	if t := s.emptied[tableKey{space, shard}]; t != nil {
		return t
	}
	if sp := s.ks.spaces[space]; sp.dropped == 0 {
		return &s.ks.shards[shard].dbs[sp.db].dict
	}
	return new(dict.Table[*Entry]) // it was empty, or nothing of it is kept
}

// readBatch reads the next entries and adds them to the kept ones, with their values in buf.
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
			switch {
			case s.dropping:
			case s.names != nil:
				s.names.add(e)
			default:
				s.add(s.image(&g, e, &buf, lendFrom))
			}
		}
		if s.left == 0 {
			s.nextTable()
			break
		}
	}
	return buf
}

// nextTable advances to the next table.
func (s *Snapshot) nextTable() {
	if s.shard++; s.shard < len(s.ks.shards) {
		return
	}
	s.shard = 0
	if s.db++; s.db == len(s.spaces) {
		s.ended = true
	}
}

// Each calls fn with every key, in no order, until fn fails. The entries are not those of the keyspace, and are valid
// during the call only. Expired keys are left out. Each may be called once.
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

// finish ends the preservation of entries, after all have been read.
func (s *Snapshot) finish() {
	s.lockAll(func() {
		s.ks.copying = nil
		s.ks.await()
		s.emptied = nil
	})
}

// emit passes the preserved images to fn.
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
			s.keptBytes.Add(-kept[i].held())
			if err := s.emitOne(&kept[i], fn); err != nil {
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

// emitOne passes an image to fn as an entry, unless it has expired.
func (s *Snapshot) emitOne(img *Image, fn func(db int, e *Entry) error) error {
	if at := img.Head.Deadline; at != 0 && at <= s.Now && img.values[0].parts == nil {
		return nil
	}
	e, err := s.entry(img)
	if err != nil {
		return &LoadError{img.Key, err}
	}
	if e.deadline != 0 && e.deadline <= s.Now {
		return nil
	}
	if v := e.expiring(); v != nil && v.AllExpired(s.Now) {
		return nil
	}
	return fn(s.dbs[img.Space], e)
}

// release frees the memory of images that are no longer needed.
func release(kept []Image) {
	for i := range kept {
		kept[i].release()
		kept[i] = Image{}
	}
}

// maxSpareKept is the largest number of images whose memory is reused.
const maxSpareKept = 1024

// entry builds a separate entry from an image. It is valid until the next call.
func (s *Snapshot) entry(img *Image) (*Entry, error) {
	e, h := &s.one, &img.Head
	*e = Entry{text: unsafe.StringData(img.Key), keyLen: uint32(len(img.Key)), deadline: h.Deadline, typ: h.Type}
	if h.Blessed {
		e.flags = flagBlessed
	}
	blob := h.Blob
	var err error
	switch {
	case img.values[0].parts != nil:
		err = s.copy(e, img, s.stored)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, t := range img.values {
			delete(s.copies, t.copy)
		}
		return e, err
	case img.Known && h.Length != 0:
		blob, err = loadText(h.Parts, h.Length, s.source.Parts)
	case img.Known && h.Parts != 0:
		return e, s.load(e, h.Parts, h.FieldParts, s.source.Parts)
	case img.inHead:
		blob, err = headBlob(s.source.Head, img.Space, img.Key)
	case img.Known:
		blob, err = s.source.Blob(img.Space, img.Key)
	}
	if err != nil {
		return nil, err
	}
	if h.Type == String {
		s.text.b = blob
		e.obj = unsafe.Pointer(&s.text) // like setLong, but without an allocation
		return e, nil
	}
	return e, e.decode(blob, s.ks)
}

// stored reads the data stored at the snapshot's instant, as Source.Parts does.
func (s *Snapshot) stored(id uint64, fn func(name, data []byte) error) error {
	return s.source.Parts(id, fn)
}

// KeptBytes returns how many bytes are preserved because of changes and not yet emitted. Any goroutine may call it.
func (s *Snapshot) KeptBytes() int64 { return s.keptBytes.Load() }

// Close ends the snapshot. If not everything was read, it must visit every remaining entry.
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

// drop ends the preservation of entries and frees what was preserved.
func (s *Snapshot) drop() {
	s.lockAll(func() {
		s.dropping = true
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, t := range s.copies {
			t.endCopy(func(string, []byte) {})
		}
		release(s.kept)
		s.copies, s.kept, s.spare = nil, nil, nil
		s.keptBytes.Store(0)
	})
}
