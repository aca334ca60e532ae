package engine

import (
	"slices"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/runs"
)

// Copies of large values as of one instant, made piece by piece while commands continue: for snapshots (snapshot.go)
// and views (view.go). Several copies of one value can be under way at a time.

// copier copies large values.
type copier struct {
	reader
	pieces pieces
	stop   *atomic.Bool // if set, the copy is no longer needed; may be nil
}

func (c *copier) stopped() bool { return c.stop != nil && c.stop.Load() }

// pieces limits how much is read under one lock.
type pieces struct {
	entries, parts int // at most that many entries or parts of a value
	bytes          int // and about that many bytes,
	step           int // checked after each step of so many parts
}

var copiedPieces = pieces{entries: 64, parts: 256, bytes: 64 << 10, step: 16}

// load gives an entry the value whose parts read returns. The value is not stored, and has no logs.
func (c *copier) load(e *Entry, parts, fieldParts uint64, read partsReader) error {
	v, err := c.ks.load(e.typ, parts, fieldParts, read, func(uint64) *delta.Log { return nil })
	if err == nil {
		e.setCollection(v)
	}
	return err
}

// beginCopy preserves the present state of all parts of an image until endCopy. Values that are not stored get a log
// for that time.
func (img *Image) beginCopy() {
	for i := range img.values {
		t := &img.values[i]
		if t.parts == nil {
			continue
		}
		if t.log == nil {
			t.log = delta.NewCopyLog()
			t.parts.Attach(t.log)
		}
		t.copy = t.log.BeginCopy()
	}
}

// endCopy ends a copy and calls fn with the old content of the parts that changed meanwhile. All shards are held.
func (t *tracked) endCopy(fn func(name string, data []byte)) {
	if t.copy == nil || t.copy.Ended() {
		return
	}
	t.log.EndCopy(t.copy, fn)
	if t.log.ID == 0 && !t.log.Copying() {
		t.parts.Attach(nil)
	}
}

// copy gives an entry a value of its own: the one in parts that the image had. Parts that the image lacks are read from
// stored.
func (c *copier) copy(e *Entry, img *Image, stored partsReader) error {
	var parts [len(img.values)]runs.Runs // numbered from 1
	for i := range img.values {
		parts[i] = c.gather(&img.values[i])
	}
	fieldParts := uint64(0)
	if img.values[1].parts != nil {
		fieldParts = 2
	}
	if img.has != nil {
		h := &img.Head
		return c.load(e, h.Parts, h.FieldParts, func(id uint64, fn func(name, data []byte) error) error {
			i := 0
			if id == h.FieldParts {
				i = 1
			}
			return img.has.merge(slices.Collect(parts[i].All()), func(fn func(name, data []byte) error) error { return stored(id, fn) }, fn)
		})
	}
	return c.load(e, 1, fieldParts, func(id uint64, fn func(name, data []byte) error) error {
		for p := range parts[id-1].All() {
			if err := fn(bytesOf(p.Name), bytesOf(p.Data)); err != nil {
				return err
			}
		}
		return nil
	})
}

// gather returns all parts of the value that is being copied.
func (c *copier) gather(t *tracked) runs.Runs {
	if t.parts == nil {
		return nil
	}
	var parts runs.Runs
	var room []runs.Part
	at := delta.Cursor{}
	_ = c.inBatches(func() (more bool) { // no step of it can fail
		more = true
		room = make([]runs.Part, 0, c.pieces.parts+c.pieces.step)
		buf := make([]byte, 0, 2*c.pieces.bytes)
		for n := 0; more && n < c.pieces.parts && len(buf) < c.pieces.bytes; n += c.pieces.step {
			at, more = t.parts.Walk(at, c.pieces.step, func(name string) {
				if t.copy.Touched(name) {
					return
				}
				start := len(buf)
				out, ok := t.parts.AppendPart(append(buf, name...), name)
				if buf = out; ok {
					text := stringOf(buf[start:])
					room = append(room, runs.Part{Name: text[:len(name)], Data: text[len(name):]})
				}
			})
		}
		if more && c.stopped() {
			more = false
		}
		if !more {
			t.endCopy(func(name string, data []byte) { room = append(room, runs.Part{Name: name, Data: stringOf(data)}) })
		}
		return more
	}, func() error {
		if len(room) > 0 {
			parts.Add(room)
		}
		return nil
	})
	parts.Sort()
	return parts
}
