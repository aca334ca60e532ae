// Package deadlines stores the deadlines of a hash's fields and of a set's members. It knows no clock.
//
// A small collection stores the deadline of an element behind it, in the form of Append. A large one has an Index beside
// its table.
package deadlines

import (
	"errors"
	"iter"
	"math"
	"unsafe"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/engine/expiry"
)

// Errors of stored deadlines.
var (
	ErrDamaged   = errors.New("stored deadline is damaged")
	ErrNoElement = errors.New("stored deadline belongs to no element")
)

// Table is the table of a large collection, whose elements have numbers from 0.
type Table interface {
	Len() int
	// IndexOf returns the number of an element.
	IndexOf(name []byte) (i int, ok bool)
	// Name returns the name of element i, which is valid as long as the element.
	Name(i int) string
	// KeptName returns the name of element i as a string that may outlive the element.
	KeptName(i int) string
	// Scan calls fn with the names of about count elements and returns the next cursor, as dict.Table.Scan does.
	Scan(cursor uint64, count int, fn func(name string)) uint64
}

// Index orders the expiring elements of a large collection, by their numbers in its table. It is also the stored form of
// the deadlines: a part's name is an element and its data the deadline. A nil *Index may be read and is empty.
type Index struct {
	of    Table
	order expiry.Numbered
	log   *delta.Log // changes of a collection stored in parts; else nil
}

// New returns an empty index of the elements of a table.
func New(of Table) *Index { return &Index{of: of} }

// At returns the deadline of element i, in ms since 1970; 0 means never.
func (x *Index) At(i int) int64 {
	if x == nil {
		return 0
	}
	return x.order.At(i)
}

// Next returns the earliest deadline, 0 if no element expires.
func (x *Index) Next() int64 {
	if x == nil {
		return 0
	}
	_, at, _ := x.order.Min()
	return at
}

// Due returns the number of an element whose deadline is now or earlier.
func (x *Index) Due(now int64) (i int, ok bool) {
	if x == nil {
		return 0, false
	}
	i, at, ok := x.order.Min()
	return i, ok && at <= now
}

// AllBy reports whether every element of the table has a deadline of now or earlier.
func (x *Index) AllBy(now int64) bool {
	return x != nil && x.order.Len() == x.of.Len() && x.order.AllBy(now)
}

// All iterates over the elements that expire, in no order, with their deadlines. The index must not change meanwhile.
func (x *Index) All() iter.Seq2[[]byte, int64] {
	return func(yield func(name []byte, at int64) bool) {
		if x != nil {
			x.order.Each(func(i int, at int64) bool { return yield(bytesOf(x.of.Name(i)), at) })
		}
	}
}

// Set sets the deadline of element i, which must not be 0.
func (x *Index) Set(i int, at int64) {
	x.change(i, func() { x.order.Set(i, at) })
}

// Remove removes the deadline of element i, if it has one.
func (x *Index) Remove(i int) {
	if x.At(i) != 0 {
		x.change(i, func() { x.order.Remove(i) })
	}
}

// change calls fn, which changes the deadline of element i, and notes the change.
func (x *Index) change(i int, fn func()) {
	if x.log == nil {
		fn()
		return
	}
	x.log.Before(bytesOf(x.of.Name(i)), x)
	fn()
	x.log.After(x.of.KeptName(i), x.order.Len())
}

// Deleting must be called before element i is deleted from the table, where the last element then takes its number.
func (x *Index) Deleting(i int) {
	if x != nil {
		x.Remove(i)
		x.order.Renumber(x.of.Len()-1, i)
	}
}

// Track makes the index note changed deadlines in l from now on. All present deadlines count as changed.
func (x *Index) Track(l *delta.Log) {
	x.Attach(l)
	x.order.Each(func(i int, _ int64) bool {
		l.After(x.of.KeptName(i), x.order.Len())
		return true
	})
}

// Attach makes the index note changed deadlines in l from now on; nil ends that.
func (x *Index) Attach(l *delta.Log) { x.log = l }

// Log returns the record of changes, nil if there is none.
func (x *Index) Log() *delta.Log {
	if x == nil {
		return nil
	}
	return x.log
}

// Unnoted stops noting changes, those of the collection in *log and those of deadlines, until the caller calls the
// returned function.
func (x *Index) Unnoted(log **delta.Log) (noted func()) {
	was, own := *log, x.Log()
	*log = nil
	if x != nil {
		x.log = nil
	}
	return func() {
		*log = was
		if x != nil {
			x.log = own
		}
	}
}

// Walk calls fn with the names of the parts among count elements, as the Walk of a collection does.
func (x *Index) Walk(c delta.Cursor, count int, fn func(name string)) (next delta.Cursor, more bool) {
	i := x.of.Len()
	if c.Number != 0 {
		i = min(i, int(min(c.Number, math.MaxInt)))
	}
	c.Number = x.of.Scan(c.Number, count, func(name string) {
		if i--; x.order.At(i) != 0 {
			fn(name)
		}
	})
	return c, c.Number != 0
}

// AppendPart appends the stored deadline of an element to dst; ok is false if the element has none.
func (x *Index) AppendPart(dst []byte, name string) (out []byte, ok bool) {
	if x == nil {
		return dst, false
	}
	i, ok := x.of.IndexOf(bytesOf(name))
	if !ok || x.order.At(i) == 0 {
		return dst, false
	}
	return AppendStored(dst, x.order.At(i)), true
}

// AddPart adds the deadline of an element as AppendPart stores it.
func (x *Index) AddPart(name, data []byte) error {
	at, rest, err := CutStored(data)
	if err != nil || len(rest) > 0 || at == 0 {
		return ErrDamaged
	}
	i, ok := x.of.IndexOf(name)
	if !ok {
		return ErrNoElement
	}
	x.Set(i, at)
	return nil
}

// MemoryUsage returns how many bytes the index takes.
func (x *Index) MemoryUsage() int {
	if x == nil {
		return 0
	}
	return int(unsafe.Sizeof(*x)) + x.order.MemoryUsage()
}

// bytesOf returns the bytes of a string, which must not be modified.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
