package bitmaps

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/bitmap"
	"github.com/atomredis/atomredis/engine/roaring"
	"github.com/atomredis/atomredis/internal/command"
)

// bits is a value as a sequence of bits: a string, or a compressed bitmap. Bits behind the end are 0.
type bits struct {
	missing    bool            // there is no key
	bytes      []byte          // of a string
	compressed *roaring.Bitmap // nil for a string
}

// readBits returns the value of a key. If that is neither a string nor a bitmap, it writes an error and ok is false.
func readBits(c *command.Ctx, key []byte) (v bits, ok bool) { return bitsOf(c, c.Read(key)) }

func bitsOf(c *command.Ctx, e *engine.Entry) (v bits, ok bool) {
	switch {
	case e == nil:
		return bits{missing: true}, true
	case e.Type() == engine.String:
		return bits{bytes: e.Bytes()}, true
	case e.Type() == engine.Bitmap:
		return bits{compressed: e.Bitmap()}, true
	}
	c.Err(command.ErrWrongType)
	return bits{}, false
}

// len returns the length in bytes.
func (v bits) len() int {
	if v.compressed != nil {
		return int(v.compressed.Len())
	}
	return len(v.bytes)
}

// work returns about how many bytes are examined by going through the bits between two offsets.
func (v bits) work(from, to int) int {
	n := (to - from) / 8
	if v.compressed != nil {
		return min(n, v.compressed.MemoryUsage())
	}
	return n
}

func (v bits) get(offset int) int {
	if v.compressed != nil {
		return v.compressed.Get(int64(offset))
	}
	return bitmap.Get(v.bytes, offset)
}

// count returns the number of bits that are set between two offsets within the value; to is excluded.
func (v bits) count(from, to int) int {
	if v.compressed != nil {
		return int(v.compressed.Count(int64(from), int64(to)))
	}
	return bitmap.Count(v.bytes, from, to)
}

// find returns the offset of the first bit with a value between two offsets within the value, -1 if there is none; to is
// excluded.
func (v bits) find(bit, from, to int) int {
	if v.compressed != nil {
		return int(v.compressed.Find(bit, int64(from), int64(to)))
	}
	return bitmap.Find(v.bytes, bit, from, to)
}

// field returns an unsigned number of some bits.
func (v bits) field(offset, size int) uint64 {
	if v.compressed != nil {
		return v.compressed.Field(int64(offset), size)
	}
	return bitmap.Field(v.bytes, offset, size)
}

// set changes a bit within the value.
func (v bits) set(offset, bit int) {
	if v.compressed != nil {
		v.compressed.Set(int64(offset), bit)
		return
	}
	bitmap.Set(v.bytes, offset, bit)
}

// setField stores a number within the value.
func (v bits) setField(offset, size int, n uint64) {
	if v.compressed != nil {
		v.compressed.SetField(int64(offset), size, n)
		return
	}
	bitmap.SetField(v.bytes, offset, size, n)
}

// written is the value of a key that a command changes.
type written struct {
	bits
	entry *engine.Entry
	grown bool // it was shorter, or missing
}

// change returns the value under key argument 1 in a form that may be changed, long enough to have the bit at an offset.
// With bitmap-default-roaring a new value is a compressed bitmap, and a string becomes one. If the value is of another
// type, it writes an error and ok is false.
func change(c *command.Ctx, offset int) (w written, ok bool) {
	e := c.G.Write(c.DB, c.Args[1])
	if _, ok := bitsOf(c, e); !ok {
		return written{}, false
	}
	missing, need := e == nil, offset>>3+1
	if (missing || e.Type() == engine.String) && prefersBitmaps(c) {
		e = convert(c, e)
		c.Journal(c.Args...)
	}
	switch {
	case e == nil:
		e = c.G.CreateString(c.DB, c.Args[1], nil)
		fallthrough
	case e.Type() == engine.String:
		n := len(e.Bytes())
		return written{bits{bytes: e.Resize(max(n, need))}, e, n < need}, true
	}
	grown := e.Bitmap().Extend(uint64(need))
	return written{bits{compressed: e.Bitmap()}, e, grown || missing}, true
}

// changed reports that bits have changed.
func (w *written) changed(c *command.Ctx) { c.G.Changed(w.entry, eventOf(w.entry), "setbit") }

// eventOf returns the class of the events of a value.
func eventOf(e *engine.Entry) engine.EventClass {
	if e.Type() == engine.Bitmap {
		return engine.EventBitmap
	}
	return engine.EventString
}
