package engine

import "github.com/atomredis/atomredis/engine/delta"

// Images of entries: what checkpoints (freeze.go) and snapshots (snapshot.go) share. Both read the keyspace as of one
// instant, while commands continue:
//
//   - A flag of an entry says whether it has still to be read (Keyspace.waitsFor). To begin is to invert the flag's
//     meaning, one assignment under a lock over everything.
//   - Entries are read in small batches, each under a short lock and after a pause (reader).
//   - A command that changes an entry before its turn leaves an Image of it (Guard.preserve).
//   - A long string is lent to its image. A large value is not copied into the image, which only lists its parts; these
//     are read later, in batches too. The log of the value keeps the old content of parts that change before that.
//
// The two differ in where images wait and which parts are read. A checkpoint reads changes, in the order of the keys,
// in which the store is written. So it finds an image by its entry (shard.images), and reads the parts of a value that
// its log names. A snapshot reads everything, in no order. It takes all waiting images with the next batch
// (Snapshot.kept), because they are extra memory until then, and it walks through all parts of a value.

// Image is an entry as it was when a checkpoint or a snapshot began.
type Image struct {
	// Space and Key name the entry.
	Space uint32
	// Known says that the store has the value, so the image does not.
	Known bool
	// WasExternal says that the store may have an older value outside of the head.
	WasExternal bool
	text        bool // Head.Blob is a lent string to be stored in parts
	inHead      bool // with Known: the store has it in the head
	Key         string
	// Head is what to store. Unless Known, its Blob is the value, even with External set.
	Head Head

	// values are the value's structures with parts, if in memory. With Known, only some parts may be there: see has.
	values [2]tracked
	has    *held
	loan   *Loan  // of Head.Blob, nil if that is a copy
	stale  uint64 // number of obsolete parts, if not 0
}

// release returns the image's loans. Only the first call has an effect.
func (img *Image) release() {
	if img.loan != nil {
		img.loan.Return()
		img.loan = nil
	}
}

// held returns how many bytes only the image keeps alive. Lent memory is counted elsewhere.
func (img *Image) held() int64 {
	if img.loan != nil {
		return 0
	}
	return int64(len(img.Head.Blob))
}

// tracked is a structure with parts, and the log of its changes.
type tracked struct {
	log   *delta.Log  // nil if changes are not tracked
	parts walker      // nil: there is nothing
	copy  *delta.Copy // nil unless a copy was begun
}

// tracked returns the structures with parts of a value in memory that is large or stored in parts.
func (e *Entry) tracked() (t [2]tracked) {
	v := e.value()
	if p := e.partial(); p != nil {
		v = p.value
	}
	if v == nil || e.flags&flagParts == 0 && !v.Large() {
		return t
	}
	t[0] = tracked{log: v.Log(), parts: v}
	if d := deadlineIndex(v); d != nil {
		t[1] = tracked{log: d.Log(), parts: d}
	}
	return t
}

// preserve saves the state of an entry for the present checkpoint and snapshot, if they still have to read it, and
// schedules the count of its memory. It must be called before any change of the entry.
func (g *Guard) preserve(e *Entry) {
	g.recount(e)
	if g.ks.waitsFor(e) {
		g.keep(e)
	}
}

// waitsFor reports whether a checkpoint or a snapshot still has to read an entry.
func (ks *Keyspace) waitsFor(e *Entry) bool { return (e.flags^ks.copied)&ks.awaited != 0 }

// await updates awaited.
func (ks *Keyspace) await() {
	ks.awaited = ks.frozenMark
	if ks.copying != nil {
		ks.awaited |= flagCopied
	}
}

// keep leaves an image of an entry for the readers that still have to read it.
func (g *Guard) keep(e *Entry) {
	if e.flags&g.ks.frozenMark != 0 {
		g.shard(e.shard).images[e] = g.imageToStore(e, new([]byte), g.ks.texts.whole+1)
		e.flags = e.flags&^(g.ks.frozenMark|flagsStoring) | g.ks.storingMark
	}
	if s := g.ks.copying; s != nil && s.waitsFor(e) {
		s.keep(g, e)
	}
}

// lendFrom is the length in bytes from which a batch lends a string: copying it takes long under the lock. keep copies
// longer ones too: they are about to change, and a lent one would have to be copied for that.
const lendFrom = 32 << 10

// image returns an image of an entry without its value. Known is set if the value is not, or only partly, in memory.
func (g *Guard) image(e *Entry) Image {
	img := Image{
		Space: g.ks.spaces[e.space].number, Key: e.Key(), Known: e.flags&flagUnloaded != 0,
		inHead: e.inHead(),
		Head: Head{Type: e.typ, Deadline: e.deadline, Parts: e.parts(), FieldParts: e.fieldParts(), Length: e.textLength(),
			Count: e.storedCount(), Blessed: e.Blessed()},
	}
	if p := e.partial(); p != nil {
		img.values, img.has = e.tracked(), p.held()
	}
	return img
}

// take adds the value of an entry, which must be in memory, to its image: appended to buf; a string of lent bytes or
// more is lent, and for a value in parts its structures are listed.
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

// reader is the reading side of a checkpoint or a snapshot, used by one goroutine.
type reader struct {
	// Pause, if not nil, is called before each batch that is read under a lock, so that the system does not suspend the
	// thread while clients wait for the lock.
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

// inBatches alternates between read, with all shards held, and emit, without, until read reports that there is no more
// or emit fails. All shards are needed because a value may have moved to a key in another shard.
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
