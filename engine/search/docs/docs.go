// Package docs has the documents of an index: their numbers, the data for scoring and sorting, and which of them are
// alive.
//
// A changed document gets a new number, the next one; its old number dies. The table belongs to its index, whose lock
// protects it. A View is the table at one instant and is read without the lock: it still sees documents that have died
// since.
//
// A document is one string, with its key and rarely needed data (doc.go), and two numbers. Documents are in pages by
// number (pages.go). A table of hashes leads from a key to a number. So a document takes about 50 bytes beside its
// string.
package docs

import (
	"unsafe"

	"github.com/atomredis/atomredis/engine/dict"
)

// Table has the documents of an index.
type Table struct {
	now  state
	keys dict.Numbers
	pages
	sort int // bytes of the values of SORTABLE fields
}

// View is a table at one instant.
type View struct{ *state }

// state is the table at one instant. It is not exported, but its exported methods are those of View.
type state struct {
	nodes  []*node // for the full pages
	tail   page    // the page being filled
	last   uint64
	live   int
	length uint64
	time   uint64 // counter of additions and removals
}

// New returns an empty table.
func New() *Table { return &Table{} }

// Add adds a document under the next number, which it returns. Its key must not be in the table.
func (t *Table) Add(f Fields) uint64 {
	d, sort := newDoc(&f)
	t.now.time++
	t.now.live++
	t.now.length += uint64(d.Len)
	t.sort += sort
	t.add(&t.now, d)
	t.keys.Add(dict.HashOf(f.Key), uint32(t.now.last%numbers))
	return t.now.last
}

// numbers is how many numbers the table of keys distinguishes. Documents whose numbers are equal there are
// distinguished by key.
const numbers = dict.MaxNumber + 1

// Remove marks the document of a key as dead and returns its number and data; 0 and nil if the key has none.
func (t *Table) Remove(key string) (uint64, *Doc) {
	hash := dict.HashOf(key)
	id, d := t.find(hash, key)
	if d == nil {
		return 0, nil
	}
	t.now.time++
	t.now.live--
	t.now.length -= uint64(d.Len)
	t.sort -= d.sortBytes()
	t.keys.Remove(hash, uint32(id%numbers))
	t.kill(&t.now, id)
	return id, d
}

// Lookup returns the number of the document of a key, or 0 if the key has no document.
func (t *Table) Lookup(key string) uint64 {
	id, _ := t.find(dict.HashOf(key), key)
	return id
}

func (t *Table) find(hash dict.Hash, key string) (uint64, *Doc) {
	var id uint64
	var d *Doc
	_, ok := t.keys.Find(hash, func(n uint32) bool {
		for id = t.now.last - t.now.last%numbers + uint64(n); ; id -= numbers {
			if d = t.now.Get(id); d != nil && d.Key() == key {
				return true
			}
			if id < numbers {
				return false
			}
		}
	})
	if !ok {
		return 0, nil
	}
	return id, d
}

// Get returns an immutable live document, nil for dead or unknown ones.
func (t *Table) Get(id uint64) *Doc { return t.now.Get(id) }

// Alive reports whether a document is alive now.
func (t *Table) Alive(id uint64) bool { return t.now.Alive(id) }

// Last returns the highest number given out. The next one is one above.
func (t *Table) Last() uint64 { return t.now.last }

// Len returns the number of live documents.
func (t *Table) Len() int { return t.now.live }

// Bytes returns the memory that the table takes.
func (t *Table) Bytes() int { return int(unsafe.Sizeof(*t)) + t.keys.MemoryUsage() + t.bytes }

// KeyBytes returns the part of Bytes that leads from keys to numbers.
func (t *Table) KeyBytes() int { return t.keys.MemoryUsage() }

// SortBytes returns the part of Bytes that values of SORTABLE fields take.
func (t *Table) SortBytes() int { return t.sort }

// View returns the present table. Concurrent calls are allowed.
func (t *Table) View() View {
	t.seen()
	s := t.now
	return View{&s}
}

// Len returns the number of live documents.
func (v *state) Len() int { return v.live }

// Length returns the sum of Doc.Len over all live documents.
func (v *state) Length() uint64 { return v.length }

// Last returns the highest number.
func (v *state) Last() uint64 { return v.last }

// Get returns an immutable document that was alive at the view's instant, nil for others, which a reader skips.
func (v *state) Get(id uint64) *Doc {
	p, i := v.place(id)
	if p == nil || v.dead(p, i) {
		return nil
	}
	return &p.docs[i]
}

// Alive reports whether a document was alive, without reading the document.
func (v *state) Alive(id uint64) bool {
	p, i := v.place(id)
	return p != nil && !v.dead(p, i)
}
