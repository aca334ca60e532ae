package engine

import (
	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/hashes"
)

// Images of entries: what checkpoints (freeze.go) and snapshots (snapshot.go) share. Both read the keyspace as it was
// at one instant, while commands go on:
//
//   - A flag of an entry says whether it has still to be read (Keyspace.waitsFor). To begin is to give the flag another
//     meaning, one assignment under a lock over everything.
//   - Entries are read in small batches, each under a short lock and after a pause (reader).
//   - Whoever wants to change an entry before its turn leaves an Image of it (Guard.preserve).
//   - A long string is lent to its image. A large value is not copied into it: the image has the parts of the value,
//     which are read later, in batches too. The log of the value keeps the parts that change before that.
//
// Where images wait for their reader, and which parts are read, is not shared, because the two read other things. A
// checkpoint reads what has changed, in the order of the keys, in which the store is written. So it finds an image by
// its entry (shard.images), and of a value in parts it reads those whose names the log has. A snapshot reads
// everything, in no order. It takes all images with the next batch (Snapshot.kept), because until then they are memory
// beyond that of the keyspace, and it walks through all parts of a value.

// Image is an entry as it was when a checkpoint or a snapshot began.
type Image struct {
	// Space and Key name the entry.
	Space uint32
	// Known says that the value is as it is stored, and not in the image.
	Known bool
	// WasExternal says that the store may have a value apart from the head from before.
	WasExternal bool
	text        bool // Head.Blob is a string that is lent, and is to be stored in parts
	inHead      bool // with Known: it is stored in the head
	Key         string
	// Head is what to store. Unless Known, its Blob is the value, also if External is set.
	Head Head

	// values are what has parts, if it is in memory: also if it is Known and only some of it is there. Then has says what.
	values [2]tracked
	has    *held
	loan   *Loan  // of Head.Blob, nil if that is a copy
	stale  uint64 // number of parts that are not needed any more, if not 0
}

// release gives back what the image has borrowed. Only the first call does anything.
func (img *Image) release() {
	if img.loan != nil {
		img.loan.Return()
		img.loan = nil
	}
}

// held returns how many bytes only the image keeps. Lent memory is counted elsewhere.
func (img *Image) held() int64 {
	if img.loan != nil {
		return 0
	}
	return int64(len(img.Head.Blob))
}

// tracked is something that has parts, and what notes their changes.
type tracked struct {
	log   *delta.Log  // nil if changes are not noted
	parts walker      // nil: there is nothing
	copy  *delta.Copy // nil unless it is being copied, or was
}

// tracked returns the structures with parts of a value that is in memory, and large or stored in parts.
func (e *Entry) tracked() (t [2]tracked) {
	v := e.value()
	if p := e.partial(); p != nil {
		v = p.value
	}
	if v == nil || e.flags&flagParts == 0 && !v.Large() {
		return t
	}
	t[0] = tracked{log: v.Log(), parts: v}
	if h, ok := v.(*hashes.Hash); ok {
		if d := h.DeadlineIndex(); d != nil {
			t[1] = tracked{log: d.Log(), parts: d}
		}
	}
	return t
}

// preserve keeps an entry as it is for the checkpoint and the snapshot under way, if they still have to read it, and
// has it counted anew. It must be called before anything of the entry changes.
func (g *Guard) preserve(e *Entry) {
	g.recount(e)
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

// keep leaves an image of an entry to those that have still to read it.
func (g *Guard) keep(e *Entry) {
	if e.flags&g.ks.frozenMark != 0 {
		g.shard(e.shard).images[e] = g.imageToStore(e, new([]byte), g.ks.texts.whole+1)
		e.flags = e.flags&^(g.ks.frozenMark|flagsStoring) | g.ks.storingMark
	}
	if s := g.ks.copying; s != nil && s.waitsFor(e) {
		s.keep(g, e)
	}
}

// lendFrom is the length in bytes from which on a batch has a string lent: to copy it takes long under the lock. Who
// keeps an image copies longer ones too: they are about to change, and one that is lent would be copied for that.
const lendFrom = 32 << 10

// image returns an entry as it is, without its value. Known is set if that is not in memory, but for some of it.
func (g *Guard) image(e *Entry) Image {
	img := Image{
		Space: g.ks.spaces[e.space].number, Key: e.Key(), Known: e.flags&flagUnloaded != 0,
		inHead: e.inHead(),
		Head: Head{Type: e.typ, Deadline: e.deadline, Parts: e.parts(), FieldParts: e.fieldParts(), Length: e.textLength(),
			Count: e.storedCount()},
	}
	if p := e.partial(); p != nil {
		img.values, img.has = e.tracked(), p.held()
	}
	return img
}

// take gives an image the value of its entry, which is in memory: appended to buf, but a string of lent bytes or more
// is lent, and of a value in parts there is where they are.
func (g *Guard) take(img *Image, e *Entry, buf *[]byte, lent int) {
	if e.typ == String && len(e.Bytes()) >= lent {
		img.Head.Blob, img.loan = g.Lend(e)
		return
	}
	if img.values = e.tracked(); img.values[0].parts != nil {
		return
	}
	n := len(*buf)
	*buf = e.appendBlob(*buf)
	img.Head.Blob = (*buf)[n:len(*buf):len(*buf)]
}

// reader is what a checkpoint and a snapshot read with, by one goroutine.
type reader struct {
	// Pause, if it is not nil, is called before each batch that is read under a lock, so that the thread is not put
	// aside by the system while clients wait for the lock.
	Pause func()

	ks *Keyspace
}

func (r *reader) pause() {
	if r.Pause != nil {
		r.Pause()
	}
}

// lockAll calls fn while all shards are held.
func (r *reader) lockAll(fn func()) {
	var g Guard
	g.Lock(r.ks, AllShards, 0)
	defer g.unlockShards()
	fn()
}

// inBatches calls read with all shards held and then emit without, until read reports that there is no more or emit
// fails. Parts of values are read so: a value can have moved to a key in another shard since.
func (r *reader) inBatches(read func() (more bool), emit func() error) error {
	for more := true; more; {
		r.pause()
		r.lockAll(func() { more = read() })
		if err := emit(); err != nil {
			return err
		}
	}
	return nil
}
