package plan

import (
	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/engine/search/numbers"
	"github.com/atomredis/atomredis/engine/search/postings"
	"github.com/atomredis/atomredis/engine/search/terms"
	"github.com/atomredis/atomredis/internal/search/query"
)

// Index is what a plan reads. Its methods are called only while the plan is made, and the index is locked for reading
// then. A plan keeps views of what it needs, and runs without the lock.
type Index interface {
	query.Schema
	// Docs returns the documents.
	Docs() docs.View
	// Text returns the terms of all TEXT fields, with the prefixes of package text.
	Text() *terms.Dict[*postings.List]
	// Tags returns the tags of a TAG field, folded unless it is case-sensitive.
	Tags(f *query.Field) (tags *terms.Dict[*postings.List], caseSensitive bool)
	// Numbers returns the numbers of a NUMERIC field, or of a GEO field the scores of its places.
	Numbers(f *query.Field) *numbers.Tree
	// Single returns the index in Doc.Sort of a SORTABLE NUMERIC field of which no document has more than one
	// number; false for other fields. Such numbers are compared document by document, and their order is that of
	// SORTBY.
	Single(f *query.Field) (place int, ok bool)
	// Missing returns the documents that lack a field with INDEXMISSING; nil if there are none.
	Missing(f *query.Field) *postings.List
	// Shapes returns the shapes of a GEOSHAPE field.
	Shapes(f *query.Field) Shapes
	// Vectors returns the vectors of a VECTOR field.
	Vectors(f *query.Field) Vectors
}

// Shapes is the shapes of a GEOSHAPE field.
type Shapes interface {
	// Find returns the documents whose shape has a relation to one, in ascending order.
	Find(p query.Predicate, wkt string) ([]uint64, error)
}

// Vectors is the vectors of a VECTOR field.
type Vectors interface {
	// Check returns the reference's error for a vector or options with which the index cannot search.
	Check(vector string, options []query.Option) error
	// Nearest returns the k documents nearest to a vector among the allowed ones; nil allows all. Without exact the
	// result is approximate. stop is called now and then, and ends the search.
	Nearest(vector string, k int, options []query.Option, allowed func(doc uint64) bool, exact bool, stop func() bool) []Near
	// Within returns the documents within a distance, in ascending order of their numbers. stop is as in Nearest.
	Within(vector string, radius float64, options []query.Option, stop func() bool) []Near
	// Distance returns the distance of a document; false if it has no vector.
	Distance(vector string, doc uint64) (float64, bool)
	// Effort returns about how many vectors Nearest compares.
	Effort(k int, options []query.Option) int
	// Len returns how many documents have a vector.
	Len() int
}

// Near is a document and its distance from a vector.
type Near struct {
	Doc      uint64
	Distance float64
}
