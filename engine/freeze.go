package engine

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine/delta"
)

// Checkpoints. What has changed since the last one is known by entry (flags and shard.dirty), by removed key, by
// dropped value, and within large values by part (package delta). Freeze sets all of that apart for an instant's lock
// and begins a new epoch. The frozen entries are then read in small batches; whoever wants to change one before its
// turn leaves a copy of it as it was (preserve). So the checkpoint is the keyspace at the instant of Freeze, whatever
// happens meanwhile.

// removal is a key that has gone since the last checkpoint and may be in the store.
type removal struct {
	space    uint32
	key      string
	external bool
}

// Image is an entry as it was when a checkpoint began.
type Image struct {
	// Space and Key name the entry.
	Space uint32
	Key   string
	// Head is what to store. Unless Known, its Blob is the value, also if External is set.
	Head Head
	// Known says that the value is as it is stored, and only the rest of the head is new.
	Known bool
	// WasExternal says that the store may have a value apart from the head from before.
	WasExternal bool

	values [2]tracked // what has parts, if it is in memory
	text   []byte     // a string of which all parts are to be written
	loan   *Loan      // of the value, if it is not a copy
	stale  uint64     // number of parts that are not needed any more, if not 0
}

// Frozen is what a checkpoint has to write. One goroutine uses it: first Heads, then Parts, then Done or Abort.
type Frozen struct {
	// Spaces are the numbers of the spaces of the databases, NextSpace and NextParts the first numbers that are not in
	// use. NextParts is known when Heads has returned.
	Spaces    []uint32
	NextSpace uint32
	NextParts uint64
	// Keys is how many keys there are, -1 if that is not known because they are still being loaded.
	Keys int
	// DroppedSpaces have been emptied; all that is stored in them goes, in this order.
	DroppedSpaces []uint32
	// Pause, if it is not nil, is called before each batch that is read under a lock, so that the thread is not put
	// aside by the system while clients wait for the lock, and now and then while keys are sorted.
	Pause func()

	ks      *Keyspace
	epoch   uint32
	dirty   []dirtyList
	removed [][]removal
	dropped []uint64
	values  []frozenValue
	kept    map[uint64]bool // the numbers of parts that are in use, of those that Heads has named
	by      *checkpoint
	written atomic.Int64
	blobs   []byte // of the images of a batch; reused
	fetched byte   // keeps the compiler from dropping the reads
}

// dirtyList is a list of changed entries. It grows by chunks: copying a list of millions would hold up whoever is
// adding.
type dirtyList struct {
	chunks [][]*Entry
	swept  int // where sweep goes on
}

const dirtyChunk = 4096

func (l *dirtyList) add(e *Entry) {
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last]) == dirtyChunk {
		l.chunks = append(l.chunks, make([]*Entry, 0, dirtyChunk))
		last++
	}
	l.chunks[last] = append(l.chunks[last], e)
}

// sweepStep is how many entries of a dirtyList are looked at for one that has gone.
const sweepStep = 4

// sweep drops entries that have gone from the list: they are nothing to the next checkpoint, and would keep their
// memory until then. It is called whenever one goes, and looks at a few of the list each time, so that about a
// quarter of the list has gone at most.
func (l *dirtyList) sweep() {
	for range sweepStep {
		n := l.len()
		if l.swept >= n {
			l.swept = 0
			return
		}
		at := &l.chunks[l.swept/dirtyChunk][l.swept%dirtyChunk]
		if (*at).flags&flagRemoved == 0 {
			l.swept++
			continue
		}
		last := len(l.chunks) - 1
		chunk := l.chunks[last]
		end := len(chunk) - 1
		*at, chunk[end] = chunk[end], nil
		if l.chunks[last] = chunk[:end]; end == 0 {
			l.chunks[last] = nil
			l.chunks = l.chunks[:last]
		}
	}
}

func (l *dirtyList) len() int {
	if len(l.chunks) == 0 {
		return 0
	}
	return (len(l.chunks)-1)*dirtyChunk + len(l.chunks[len(l.chunks)-1])
}

// all iterates over the changed entries.
func (f *Frozen) all() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, l := range f.dirty {
			for _, c := range l.chunks {
				for _, e := range c {
					if !yield(e) {
						return
					}
				}
			}
		}
	}
}

// frozenValue is a value of which parts have to be written.
type frozenValue struct {
	id uint64 // their number
	tracked
	names *delta.Names

	text []byte // a string, lent, of which all parts are new; there is no log then
	loan *Loan  // nil once it was returned
}

// Freeze begins a checkpoint. at is called while the whole keyspace is locked: what was journalled before then is in
// the checkpoint, and nothing else. There must be no other unfinished one.
func (ks *Keyspace) Freeze(at func()) *Frozen {
	f := &Frozen{ks: ks, kept: map[uint64]bool{}, by: new(checkpoint)}
	var g Guard
	g.Lock(ks, AllShards, ks.Now())
	defer ks.tellLocked(LockForCheckpoint, time.Now())
	defer g.Unlock()
	f.epoch = ks.epochs.Current
	if f.Keys = -1; g.Complete() {
		f.Keys = 0
		for db := range ks.databases {
			f.Keys += g.Len(db)
		}
	}
	for i := range ks.shards {
		s := &ks.shards[i]
		f.dirty = append(f.dirty, s.dirty)
		f.removed = append(f.removed, s.removed)
		f.dropped = append(f.dropped, s.dropped...)
		s.dirty, s.removed, s.dropped = dirtyList{}, nil, nil
		s.images = map[*Entry]Image{}
	}
	f.DroppedSpaces, ks.droppedSpaces = ks.droppedSpaces, nil
	slices.Sort(f.DroppedSpaces)
	for _, i := range ks.current {
		f.Spaces = append(f.Spaces, ks.spaces[i].number)
	}
	f.NextSpace, ks.storing = ks.nextSpace, f.by
	ks.epochs.Current++
	ks.frozenMark, ks.mark = ks.mark, ks.mark^(flagOdd|flagEven)
	ks.await()
	at()
	return f
}

// Len returns how many keys have changed or gone.
func (f *Frozen) Len() int {
	n := 0
	for i := range f.dirty {
		n += f.dirty[i].len() + len(f.removed[i])
	}
	return n
}

// Empty reports that there is nothing to write.
func (f *Frozen) Empty() bool {
	return f.Len() == 0 && len(f.dropped) == 0 && len(f.DroppedSpaces) == 0
}

// Written returns how many of them Heads is through with. Any goroutine may call it.
func (f *Frozen) Written() int { return int(f.written.Load()) }

// headItem is a key that Heads has to deal with.
type headItem struct {
	key      string
	entry    *Entry // nil for a removed key
	space    uint32
	external bool // of a removed key
}

// headRef stands for a headItem while all of them are sorted. There may be millions, so it is small and the garbage
// collector need not look at it.
type headRef struct {
	start uint64 // see sortBehind
	at    uint32 // in headList
	space uint32
}

// headList is what headRefs refer to: chunks of entries, and after these chunks of removed keys. All have room for
// dirtyChunk.
type headList struct {
	entries [][]*Entry
	removed [][]removal
}

// item returns what a reference stands for.
func (l *headList) item(r headRef) headItem {
	chunk, i := int(r.at/dirtyChunk), r.at%dirtyChunk
	if chunk < len(l.entries) {
		e := l.entries[chunk][i]
		return headItem{key: e.keyUnlocked(), entry: e, space: r.space}
	}
	removed := &l.removed[chunk-len(l.entries)][i]
	return headItem{key: removed.key, space: r.space, external: removed.external}
}

func (l *headList) key(r headRef) string { return l.item(r).key }

// heads returns what has changed and gone, sorted by space and key.
func (f *Frozen) heads() (l *headList, refs []headRef) {
	l = new(headList)
	for i := range f.dirty {
		l.entries = append(l.entries, f.dirty[i].chunks...)
		l.removed = slices.AppendSeq(l.removed, slices.Chunk(f.removed[i], dirtyChunk))
	}
	var g Guard
	g.Lock(f.ks, AllShards, 0)
	spaces := slices.Clone(f.ks.spaces)
	g.unlockShards()
	refs = make([]headRef, 0, f.Len())
	for c, chunk := range l.entries {
		f.pause()
		for i, e := range chunk {
			refs = append(refs, headRef{at: uint32(c*dirtyChunk + i), space: spaces[e.space].number})
		}
	}
	for c, chunk := range l.removed {
		for i := range chunk {
			refs = append(refs, headRef{at: uint32((len(l.entries)+c)*dirtyChunk + i), space: chunk[i].space})
		}
	}
	sortHeads(refs, l.key, f.pause)
	return l, refs
}

// sortHeads sorts by space and key. It calls pause now and then.
func sortHeads(refs []headRef, key func(headRef) string, pause func()) {
	slices.SortFunc(refs, func(a, b headRef) int { return cmp.Compare(a.space, b.space) })
	for len(refs) > 0 {
		n := 1
		for n < len(refs) && refs[n].space == refs[0].space {
			n++
		}
		sortBehind(refs[:n], key, 0, sortRounds, pause)
		refs = refs[n:]
	}
}

const (
	sortRounds = 3  // more would be for keys that are made to take long
	sortFew    = 16 // so few are sorted by their whole keys at once
)

// sortBehind sorts by keys that have the first known bytes in common. Keys tend to have much in common at their
// beginning. The eight bytes behind that decide most, without a look at the keys, which are somewhere else in memory;
// those that are equal in them are sorted in another round, by what is behind what these have in common.
func sortBehind(refs []headRef, key func(headRef) string, known, rounds int, pause func()) {
	common := key(refs[0])
	for i, r := range refs {
		if i%freezeBatch == 0 {
			pause()
		}
		n := known
		for k := key(r); n < min(len(common), len(k)) && k[n] == common[n]; n++ {
		}
		common = common[:n]
	}
	for i := range refs {
		if i%freezeBatch == 0 {
			pause()
		}
		var b [8]byte
		copy(b[:], key(refs[i])[len(common):])
		refs[i].start = binary.BigEndian.Uint64(b[:])
	}
	sortByStart(refs, 0, pause)
	for len(refs) > 0 {
		n := 1
		for n < len(refs) && refs[n].start == refs[0].start {
			n++
		}
		if equal := refs[:n]; n > sortFew && rounds > 1 {
			sortBehind(equal, key, len(common), rounds-1, pause)
		} else if n > 1 {
			slices.SortFunc(equal, func(a, b headRef) int { return cmp.Compare(key(a), key(b)) })
		}
		refs = refs[n:]
	}
}

const (
	radixFew = 64 // so few are sorted by comparing them: it takes about as long as another pass by a byte
	// from so many on there are pauses between buckets; to look at the clock takes as long as to move a few
	radixPause = 1 << 12
)

// sortByStart sorts by start, of which they have the first bytes in common: by the byte behind these, in place
// (American flag sort), and then each bucket by the next one.
func sortByStart(refs []headRef, bytes int, pause func()) {
	pause()
	if len(refs) <= radixFew {
		slices.SortFunc(refs, func(a, b headRef) int { return cmp.Compare(a.start, b.start) })
		return
	}
	if bytes == 8 {
		return
	}
	shift := 8 * (7 - bytes)
	var next, end [256]int // where the next one of a bucket goes, and where the bucket ends
	for i := range refs {
		end[byte(refs[i].start>>shift)]++
	}
	for b, begin := 0, 0; b < len(end); b++ {
		next[b], end[b] = begin, begin+end[b]
		begin = end[b]
	}
	for b := range end {
		if len(refs) >= radixPause {
			pause()
		}
		for next[b] < end[b] {
			ref := refs[next[b]]
			for to := byte(ref.start >> shift); int(to) != b; to = byte(ref.start >> shift) {
				refs[next[to]], ref = ref, refs[next[to]]
				next[to]++
			}
			refs[next[b]] = ref
			next[b]++
		}
	}
	for b, begin := 0, 0; b < len(end); b++ {
		if end[b] > begin+1 {
			sortByStart(refs[begin:end[b]], bytes+1, pause)
		}
		begin = end[b]
	}
}

const (
	freezeBatch  = 64      // how many entries or parts are read under one lock
	freezeBytes  = 1 << 20 // and about how many bytes of entries at most, but one entry in any case
	maxKeptBlobs = 1 << 20 // size in bytes of the largest buffer that is kept for the next batch
)

// Heads calls put for every key that has changed and remove for every key that has gone, in the order of their spaces
// and keys. It is called first, and ends with the first error. put does not keep the image.
func (f *Frozen) Heads(put func(*Image) error, remove func(space uint32, key string, wasExternal bool) error) error {
	list, refs := f.heads()
	items := make([]headItem, 0, freezeBatch)
	images := make([]Image, 0, freezeBatch)
	for len(refs) > 0 {
		items = items[:0]
		for _, r := range refs {
			item := list.item(r)
			if n := len(items); n >= freezeBatch && (item.space != items[n-1].space || item.key != items[n-1].key) {
				break
			}
			items = append(items, item)
		}
		f.pause()
		f.fetch(items)
		var n int
		images, n = f.read(items, images[:0])
		refs = refs[n:]
		err := f.emit(items[:n], images, put, remove)
		for i := range images {
			if l := images[i].loan; l != nil {
				l.Return()
			}
		}
		if err != nil {
			return err
		}
		f.written.Add(int64(n))
	}
	f.NextParts = f.ks.nextParts.Load() // behind those that the strings have got
	return nil
}

// fetch reads the memory of a batch's entries, so that it is near when they are read under the lock, which is then
// held for less time.
func (f *Frozen) fetch(batch []headItem) {
	for i := range batch {
		if e := batch[i].entry; e != nil {
			if key := e.keyUnlocked(); key != "" {
				f.fetched += key[len(key)-1]
			}
		}
	}
}

func (f *Frozen) pause() {
	if f.Pause != nil {
		f.Pause()
	}
}

// read returns the images of the entries in a batch, in its order; nothing for those that had gone. It ends early,
// after n of them, when it has copied so much that others would wait for long.
func (f *Frozen) read(batch []headItem, images []Image) (_ []Image, n int) {
	var g Guard
	var shards uint64
	for i := range batch {
		if e := batch[i].entry; e != nil {
			shards |= 1 << e.shard
		}
	}
	if f.blobs = f.blobs[:0]; cap(f.blobs) > maxKeptBlobs {
		f.blobs = nil
	}
	g.Lock(f.ks, shards, 0)
	defer f.ks.tellLocked(LockForCheckpoint, time.Now())
	defer g.unlockShards()
	for i := range batch {
		if len(f.blobs) >= freezeBytes && (batch[i].space != batch[i-1].space || batch[i].key != batch[i-1].key) {
			return images, i
		}
		e := batch[i].entry
		if e == nil {
			continue
		}
		if e.flags&f.ks.frozenMark == 0 { // somebody has changed it since, and left an image
			left := g.shard(e.shard).images
			if img, ok := left[e]; ok {
				delete(left, e)
				images = append(images, img)
				continue
			}
		}
		e.flags &^= f.ks.frozenMark
		if e.flags&flagRemoved != 0 {
			continue
		}
		if s := f.ks.spaces[e.space]; s.dropped == 0 || s.dropped > f.epoch {
			images = append(images, g.image(e, &f.blobs, true))
		} else if e.flags&flagParts != 0 {
			// The store may have the parts under a key that the value had in another space before.
			f.dropped = appendParts(f.dropped, e)
		}
	}
	return images, len(batch)
}

// emit tells what has become of the keys of a batch. A key that is in it more than once was removed and created anew.
func (f *Frozen) emit(batch []headItem, images []Image, put func(*Image) error,
	remove func(uint32, string, bool) error) error {
	for len(batch) > 0 {
		first := batch[0]
		external, gone := false, false
		for len(batch) > 0 && batch[0].space == first.space && batch[0].key == first.key {
			external = external || batch[0].external
			gone = gone || batch[0].entry == nil
			batch = batch[1:]
		}
		if len(images) == 0 || images[0].Space != first.space || images[0].Key != first.key {
			if gone && !f.inDroppedSpace(first.space) {
				if err := remove(first.space, first.key, external); err != nil {
					return err
				}
			}
			continue
		}
		img := &images[0]
		images = images[1:]
		img.WasExternal = img.WasExternal || external
		if err := put(img); err != nil {
			return err
		}
		for _, id := range img.Head.AllParts() {
			f.kept[id] = true
		}
		for _, t := range img.values {
			if t.log != nil {
				f.values = append(f.values, frozenValue{id: t.log.ID, tracked: t})
			}
		}
		if img.text != nil { // which stays lent until its parts have been written
			f.values = append(f.values, frozenValue{id: img.Head.Parts, text: img.text, loan: img.loan})
			img.loan = nil
		}
		if img.stale != 0 {
			f.dropped = append(f.dropped, img.stale)
		}
	}
	return nil
}

func (f *Frozen) inDroppedSpace(space uint32) bool {
	_, ok := slices.BinarySearch(f.DroppedSpaces, space)
	return ok
}

// HasParts reports whether Heads has named a key whose value has its parts under id.
func (f *Frozen) HasParts(id uint64) bool { return f.kept[id] }

// Parts calls drop for every value whose parts all go, put for every part that has changed, and remove for every part
// that has gone, in the order of the values' numbers and the parts' names. more are further values to drop. It is
// called after Heads, and ends with the first error.
func (f *Frozen) Parts(more []uint64, drop func(id uint64) error, put func(id uint64, name string, data []byte) error,
	remove func(id uint64, name string) error) error {
	dropped := append(slices.Clone(f.dropped), more...)
	slices.Sort(dropped)
	dropped = slices.Compact(dropped)
	slices.SortFunc(f.values, func(a, b frozenValue) int { return cmp.Compare(a.id, b.id) })
	for i := range f.values {
		v := &f.values[i]
		for len(dropped) > 0 && dropped[0] < v.id {
			if err := drop(dropped[0]); err != nil {
				return err
			}
			dropped = dropped[1:]
		}
		var err error
		if v.text != nil {
			err = v.writeText(f.ks.texts.piece, put)
		} else {
			err = f.writeParts(v, put, remove)
		}
		if err != nil {
			return err
		}
	}
	for _, id := range dropped {
		if err := drop(id); err != nil {
			return err
		}
	}
	return nil
}

// writeParts tells of the changed parts of one value. It holds all shards while it reads, because a value can have
// moved to a key in another shard since the checkpoint began.
func (f *Frozen) writeParts(v *frozenValue, put func(id uint64, name string, data []byte) error,
	remove func(id uint64, name string) error) error {
	var g Guard
	g.Lock(f.ks, AllShards, 0)
	v.names = v.log.Frozen()
	g.unlockShards()
	names := v.names.Sorted()

	type part struct {
		start, end int
		ok         bool
	}
	var buf []byte
	var parts [freezeBatch]part
	for len(names) > 0 {
		batch := names[:min(freezeBatch, len(names))]
		names = names[len(batch):]
		buf = buf[:0]
		f.pause()
		g.Lock(f.ks, AllShards, 0)
		for i, name := range batch {
			start := len(buf)
			var ok bool
			buf, ok = v.log.AppendFrozen(buf, name, v.parts)
			parts[i] = part{start, len(buf), ok}
		}
		g.unlockShards()
		for i, name := range batch {
			var err error
			if p := parts[i]; p.ok {
				err = put(v.id, name, buf[p.start:p.end])
			} else {
				err = remove(v.id, name)
			}
			if err != nil {
				return err
			}
		}
	}
	g.Lock(f.ks, AllShards, 0)
	v.log.Done()
	g.unlockShards()
	return nil
}

// Done ends a checkpoint that is safe in the store.
func (f *Frozen) Done() {
	var g Guard
	g.Lock(f.ks, AllShards, 0)
	defer g.unlockShards()
	f.end()
}

func (f *Frozen) end() {
	f.ks.frozenMark = 0
	f.ks.await()
	for i := range f.ks.shards {
		s := &f.ks.shards[i]
		for _, img := range s.images { // those that nobody has taken
			if img.loan != nil {
				img.loan.Return()
			}
		}
		s.images = nil
	}
}

// Abort ends a checkpoint that has failed: everything that it was to write counts as changed again.
func (f *Frozen) Abort() {
	var g Guard
	g.Lock(f.ks, AllShards, 0)
	defer g.unlockShards()
	frozen := f.ks.frozenMark
	f.by.failed = true
	f.end()
	for e := range f.all() {
		e.flags &^= frozen
		e.flags |= flagStored | flagExternal // what the store has is not known any more; more than there is does no harm
		if e.flags&flagRemoved == 0 {
			g.markDirty(e)
		} else {
			s := g.shard(e.shard)
			s.removed = append(s.removed, removal{f.ks.spaces[e.space].number, e.Key(), true})
		}
		for _, t := range e.tracked() {
			if t.log != nil {
				t.log.Abort(t.log.Frozen())
			}
		}
	}
	for i := range f.values {
		if v := &f.values[i]; v.text == nil {
			v.log.Abort(v.names)
		} else {
			v.release()
		}
	}
	s := &f.ks.shards[0]
	for _, removed := range f.removed {
		for _, r := range removed {
			r.external = true
			s.removed = append(s.removed, r)
		}
	}
	s.dropped = append(s.dropped, f.dropped...)
	f.ks.droppedSpaces = append(f.ks.droppedSpaces, f.DroppedSpaces...)
}

// markDirty notes that an entry differs from what is stored.
func (g *Guard) markDirty(e *Entry) {
	ks := g.ks
	if ks.waitsFor(e) {
		panic("engine: a key was changed that was not asked for with Write")
	}
	if e.flags&ks.mark == 0 {
		e.flags |= ks.mark
		g.shard(e.shard).dirty.add(e)
	}
	if e.typ != String && e.flags&flagParts == 0 {
		if v := e.value(); v != nil && v.Large() {
			v.Track(delta.NewLog(ks.nextParts.Add(1), &ks.epochs))
			e.flags |= flagParts
		}
	}
	if e.typ == Hash && e.flags&(flagParts|flagUnloaded) == flagParts {
		if d := e.Hash().DeadlineIndex(); d != nil && d.Log() == nil {
			d.Track(delta.NewLog(ks.nextParts.Add(1), &ks.epochs))
		}
	}
}

// preserve keeps an entry as it is for the checkpoint and the snapshot under way, if they still have to read it, and
// takes it out of the count of memory. It must be called before anything of the entry changes.
func (g *Guard) preserve(e *Entry) {
	if g.ks.counting {
		g.uncount(e)
	}
	if g.ks.waitsFor(e) {
		g.keep(e)
	}
}

// waitsFor reports whether a checkpoint or a snapshot has still to read an entry.
func (ks *Keyspace) waitsFor(e *Entry) bool { return (e.flags^ks.copied)&ks.awaited != 0 }

// await brings awaited up to date.
func (ks *Keyspace) await() {
	ks.awaited = ks.frozenMark
	if ks.copying != nil {
		ks.awaited |= flagCopied
	}
}

// keep keeps an entry for those that have still to read it.
func (g *Guard) keep(e *Entry) {
	if e.flags&g.ks.frozenMark != 0 {
		g.shard(e.shard).images[e] = g.image(e, new([]byte), false)
		e.flags &^= g.ks.frozenMark
	}
	if s := g.ks.copying; s != nil && s.waitsFor(e) {
		s.keep(g, e)
	}
}

// lendFrom is the length in bytes from which on a string is lent to a checkpoint: to copy it takes long under the lock.
const lendFrom = 32 << 10

// image returns what is to be stored of an entry, and notes that it will be. The value is appended to buf, unless it
// is known or stored in parts. A string in parts is lent instead; so is any long one if briefly is set.
func (g *Guard) image(e *Entry, buf *[]byte, briefly bool) Image {
	fresh, stale := g.storeText(e)
	img := Image{
		Space: g.ks.spaces[e.space].number, Key: e.Key(),
		Head: Head{Type: e.typ, Deadline: e.deadline, FieldDeadline: g.fieldDeadline(e), Parts: e.parts(),
			FieldParts: e.fieldParts(), Length: e.textLength()},
		WasExternal: e.flags&flagExternal != 0,
		stale:       stale,
	}
	switch {
	case fresh:
		img.text, img.loan = g.Lend(e)
	case e.flags&flagUnloaded != 0:
		img.Head.External = img.Head.Parts == 0
		img.Known = true
	case img.Head.Length != 0:
		img.Known = true
	case img.Head.Parts != 0:
		img.values = e.tracked()
	}
	if img.Head.Parts == 0 && !img.Known {
		if briefly && e.typ == String && len(e.Bytes()) >= lendFrom {
			img.Head.Blob, img.loan = g.Lend(e)
		} else {
			n := len(*buf)
			*buf = e.appendBlob(*buf)
			img.Head.Blob = (*buf)[n:len(*buf):len(*buf)]
		}
		img.Head.External = len(img.Head.Blob) > InlineLimit
	}
	e.flags = e.flags&^flagExternal | flagStored
	if img.Head.External {
		e.flags |= flagExternal
	}
	return img
}

// maxSpareText is how many bytes of memory behind a removed key are kept with it until the next checkpoint.
const maxSpareText = 64

// forget notes that a key is gone from its database. The entry must have been preserved.
func (g *Guard) forget(e *Entry) {
	s := g.shard(e.shard)
	space := g.ks.spaces[e.space].number
	e.flags |= flagRemoved
	if e.flags&flagStored != 0 {
		key := e.Key()
		if e.room() > maxSpareText {
			key = strings.Clone(key) // the value that follows it need not be kept
		}
		s.removed = append(s.removed, removal{space, key, e.flags&flagExternal != 0})
	}
	if e.flags&g.ks.mark != 0 {
		s.dirty.sweep()
	}
	if s.lost != nil {
		s.lost[spaceKey{e.space, e.Key()}] = struct{}{}
	}
}

// dropParts notes that the value of an entry, if it is stored in parts, is not needed any more.
func (g *Guard) dropParts(e *Entry) {
	if e.typ == String {
		e.dropText()
	}
	if e.flags&flagParts == 0 {
		return
	}
	s := g.shard(e.shard)
	s.dropped = appendParts(s.dropped, e)
	e.flags &^= flagParts
}

// appendParts appends the numbers of the parts of an entry that has some.
func appendParts(ids []uint64, e *Entry) []uint64 {
	h := Head{Parts: e.parts(), FieldParts: e.fieldParts()}
	return append(ids, h.AllParts()...)
}
