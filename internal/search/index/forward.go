package index

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
)

// Forward returns the values of TAG and NUMERIC fields of documents without a look at their keys: what the index keeps
// with a document often is the value itself. It is for the documents of one view, and belongs to one query.
type Forward struct {
	x        *Index
	def      *schema.Definition
	docs     *docs.Table
	fields   map[string]*field
	columns  map[*schema.Field]*tagColumn
	removals uint64 // of the index when the view was made
}

// tagColumn has the texts of some tags by their number.
//
// A tag's number is given to another tag only after all documents with it have died. So the text that a living document
// of the view has under a number is the text of that number in all documents of the view.
type tagColumn struct {
	place int
	known []knownTag // by the lower bits of the number; the length is a power of two, or 0
}

type knownTag struct {
	text   string
	number uint32
	set    bool
}

// The numbers of tags that a column keeps: most columns have few tags, whose numbers are small.
const (
	fewTags  = 16
	mostTags = 1024
)

// slot returns the place for a tag. The column grows while two tags want the same place.
func (c *tagColumn) slot(number uint32) *knownTag {
	if len(c.known) == 0 {
		c.known = make([]knownTag, fewTags)
	}
	s := c.at(number)
	if !s.set || s.number == number || len(c.known) == mostTags {
		return s
	}
	before := c.known
	c.known = make([]knownTag, 2*len(before))
	for _, s := range before {
		if s.set {
			*c.at(s.number) = s
		}
	}
	return c.at(number)
}

func (c *tagColumn) at(number uint32) *knownTag { return &c.known[number&uint32(len(c.known)-1)] }

// Forward returns the values of the present documents.
func (v View) Forward() *Forward {
	x := v.x
	return &Forward{x, x.def, x.docs, x.fields, map[*schema.Field]*tagColumn{}, x.removals.Load()}
}

// Current reports whether a document of the view is still in the index, so that its values are those of its key.
func (w *Forward) Current(id uint64) bool {
	if w.x.removals.Load() == w.removals {
		return true
	}
	w.x.mu.RLock()
	defer w.x.mu.RUnlock()
	return w.docs == w.x.docs && w.docs.Alive(id)
}

// Tag returns the value of a TAG field. ok is false if only the key can tell: the value is no single tag as it is
// indexed, or its document has died and no other one with the tag was asked for.
func (w *Forward) Tag(id uint64, d *docs.Doc, f *schema.Field) (text string, ok bool) {
	c := w.columns[f]
	if c == nil {
		c = &tagColumn{place: slices.Index(w.def.Fields, f)}
		w.columns[f] = c
	}
	own := ownOf(d)
	for range takeUvarint(&own) {
		place, exact := takePlace(&own)
		n := takeUvarint(&own)
		if place == c.place {
			if !exact {
				break
			}
			return w.text(id, f, c, uint32(takeUvarint(&own)))
		}
		for range n {
			takeUvarint(&own)
		}
	}
	return "", false
}

// text returns the text of a tag of a document.
func (w *Forward) text(id uint64, f *schema.Field, c *tagColumn, number uint32) (text string, ok bool) {
	slot := c.slot(number)
	if slot.set && slot.number == number {
		return slot.text, true
	}
	w.x.mu.RLock()
	defer w.x.mu.RUnlock()
	if !w.docs.Alive(id) {
		return "", false
	}
	slot.text, slot.number, slot.set = strings.Clone(w.fields[f.Name].tags.Text(number)), number, true
	return slot.text, true
}

// Number returns the value of a NUMERIC field. ok is false if the document has none, or if expressions see it as a text.
func (w *Forward) Number(d *docs.Doc, f *schema.Field) (number float64, ok bool) {
	own := ownOf(d)
	for range takeUvarint(&own) {
		takePlace(&own)
		for range takeUvarint(&own) {
			takeUvarint(&own)
		}
	}
	for range takeUvarint(&own) {
		place, exact := takePlace(&own)
		if w.def.Fields[place] == f {
			return math.Float64frombits(binary.LittleEndian.Uint64(own)), exact
		}
		own = own[8:]
	}
	return 0, false
}

// Has reports whether Tag or Number may know the values of a field.
func (w *Forward) Has(f *schema.Field) bool {
	return w.def.Source == schema.Hash && !f.NoIndex && (f.Kind == query.TagKind || f.Kind == query.NumericKind)
}
