package engine

import (
	"cmp"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine/delta"
)

// Checkpoints. Changes since the last one are recorded by entry (flags and shard.dirty), by removed key, by dropped
// value (changes.go), and within large values by part (package delta). Freeze sets these records apart under a short
// lock and begins a new epoch. The frozen entries are then read in the order of their keys (heads.go), in their state
// at the instant of Freeze (image.go).

// Frozen is the data that a checkpoint writes. One goroutine uses it: first Heads, then Parts, then Done or Abort.
type Frozen struct {
	// Spaces are the numbers of the databases' spaces, NextSpace and NextParts the first unused numbers. NextParts is
	// known after Heads.
	Spaces    []uint32
	NextSpace uint32
	NextParts uint64
	// Keys is the number of keys, -1 if it is unknown because they are still being loaded.
	Keys int
	// DroppedSpaces were emptied; everything stored in them is to be deleted, in this order.
	DroppedSpaces []uint32

	reader  // pauses now and then while keys are sorted, too
	epoch   uint32
	dirty   []entryList
	removed [][]removal
	dropped []uint64
	values  []frozenValue
	kept    map[uint64]bool // numbers of parts in use by the keys that Heads has reported
	by      *checkpoint
	written atomic.Int64
	blobs   []byte // of the images of a batch; reused
	fetched byte   // keeps the compiler from dropping the reads
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

// frozenValue is a value with parts to write.
type frozenValue struct {
	id uint64 // the number of its parts
	tracked
	names *delta.Names

	text []byte // a lent string, stored in parts that are all new; it has no log
	loan *Loan  // nil once returned
}

// Freeze begins a checkpoint. It calls at while the whole keyspace is locked: the checkpoint contains exactly the
// changes journalled before. There must be no other unfinished checkpoint.
func (ks *Keyspace) Freeze(at func()) *Frozen {
	f := &Frozen{reader: reader{ks: ks}, kept: map[uint64]bool{}, by: new(checkpoint)}
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
		s.dirty, s.removed, s.dropped = entryList{}, nil, nil
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
	ks.storingMark ^= flagsStoring
	ks.await()
	at()
	return f
}

// Len returns the number of changed and removed keys.
func (f *Frozen) Len() int {
	n := 0
	for i := range f.dirty {
		n += f.dirty[i].len() + len(f.removed[i])
	}
	return n
}

// Empty reports whether there is nothing to write.
func (f *Frozen) Empty() bool {
	return f.Len() == 0 && len(f.dropped) == 0 && len(f.DroppedSpaces) == 0
}

// Written returns how many of the Len keys Heads has finished. Any goroutine may call it.
func (f *Frozen) Written() int { return int(f.written.Load()) }

const (
	freezeBatch  = 64      // entries or parts read under one lock
	freezeBytes  = 1 << 20 // about the most bytes of entries read under one lock, but at least one entry
	maxKeptBlobs = 1 << 20 // size in bytes of the largest buffer kept for the next batch
)

// Heads calls put for every changed key and remove for every removed key, in the order of spaces and keys. It must be
// called first, and returns the first error. put must not keep the image.
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
			images[i].release()
		}
		if err != nil {
			return err
		}
		f.written.Add(int64(n))
	}
	f.NextParts = f.ks.nextParts.Load() // after the numbers given to strings
	return nil
}

// fetch reads the memory of a batch's entries before the lock, so that the lock is held for less time.
func (f *Frozen) fetch(batch []headItem) {
	for i := range batch {
		if e := batch[i].entry; e != nil {
			if key := e.keyUnlocked(); key != "" {
				f.fetched += key[len(key)-1]
			}
		}
	}
}

// read returns the images of the entries in a batch, in its order, without removed ones. It stops after n items once it
// has copied so much that other clients would wait long.
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
	lent := min(lendFrom, f.ks.texts.whole+1)
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
		if e.flags&f.ks.frozenMark == 0 { // changed since the freeze, which left an image
			left := g.shard(e.shard).images
			if img, ok := left[e]; ok {
				delete(left, e)
				images = append(images, img)
				continue
			}
		}
		e.flags = e.flags&^(f.ks.frozenMark|flagsStoring) | f.ks.storingMark
		if e.flags&flagRemoved != 0 {
			continue
		}
		if s := f.ks.spaces[e.space]; s.dropped == 0 || s.dropped > f.epoch {
			images = append(images, g.imageToStore(e, &f.blobs, lent))
		} else if e.flags&flagParts != 0 {
			// The store may have these parts under the key that the value had in another space before.
			f.dropped = appendParts(f.dropped, e)
		}
	}
	return images, len(batch)
}

// emit reports the changes of a batch's keys. A key that occurs more than once was removed and created again.
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
		if img.text { // stays lent until its parts are written
			f.values = append(f.values, frozenValue{id: img.Head.Parts, text: img.Head.Blob, loan: img.loan})
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

// HasParts reports whether a key reported by Heads has the parts stored under id.
func (f *Frozen) HasParts(id uint64) bool { return f.kept[id] }

// Parts calls drop for every value whose parts are all obsolete, put for every changed part, and remove for every
// removed part, in the order of the values' numbers and the parts' names. more are further values to drop. It must be
// called after Heads, and returns the first error.
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

// writeParts reports the changed parts of one value.
func (f *Frozen) writeParts(v *frozenValue, put func(id uint64, name string, data []byte) error,
	remove func(id uint64, name string) error) error {
	f.lockAll(func() { v.names = v.log.Frozen() })
	type part struct {
		start, end int
		ok         bool
	}
	var buf []byte
	var parts [freezeBatch]part
	rest := v.names.Sorted()
	batch := rest[:0]
	return f.inBatches(func() (more bool) {
		n := min(freezeBatch, len(rest))
		batch, rest = rest[:n], rest[n:]
		buf = buf[:0]
		for i, name := range batch {
			start := len(buf)
			var ok bool
			buf, ok = v.log.AppendFrozen(buf, name, v.parts)
			parts[i] = part{start, len(buf), ok}
		}
		if len(rest) == 0 {
			v.log.Done()
		}
		return len(rest) > 0
	}, func() error {
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
		return nil
	})
}

// Done ends a checkpoint after the store has made it durable.
func (f *Frozen) Done() { f.lockAll(f.end) }

func (f *Frozen) end() {
	f.ks.frozenMark = 0
	f.ks.await()
	for i := range f.ks.shards {
		s := &f.ks.shards[i]
		for _, img := range s.images { // images that were not taken
			img.release()
		}
		s.images = nil
	}
}

// Abort ends a checkpoint that has failed: all its changes count as unsaved again.
func (f *Frozen) Abort() {
	var g Guard
	g.Lock(f.ks, AllShards, 0)
	defer g.unlockShards()
	frozen := f.ks.frozenMark
	f.by.failed = true
	f.end()
	for e := range f.all() {
		e.flags &^= frozen
		e.flags |= flagStored | flagExternal // the store's state is unknown; assuming too much does no harm
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

// imageToStore returns an entry's state to store, and marks the entry as stored. buf and lent are as for take, but a
// string in parts is always lent.
func (g *Guard) imageToStore(e *Entry, buf *[]byte, lent int) Image {
	fresh, stale := g.storeText(e)
	img := g.image(e)
	img.Head.FieldDeadline = g.fieldDeadline(e)
	img.WasExternal = e.flags&flagExternal != 0
	img.text, img.stale = fresh, stale
	if img.Head.Length != 0 && !fresh {
		img.Known = true // even if it is in memory
	}
	if !img.Known {
		g.take(&img, e, buf, lent)
	}
	if img.Head.Parts == 0 {
		img.Head.External = img.Known || len(img.Head.Blob) > InlineLimit
	}
	e.flags = e.flags&^flagExternal | flagStored
	if img.Head.External {
		e.flags |= flagExternal
	}
	return img
}
