package index

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/engine/search/vectors"
	"github.com/atomredis/atomredis/internal/search/plan"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
)

// vectorField is the vectors of a VECTOR field; nil for a field of another kind. Searches may run beside changes.
type vectorField = *fieldVectors

// fieldVectors implements plan.Vectors.
type fieldVectors struct {
	x         *vectors.Index
	algorithm schema.Algorithm
	queries   sync.Pool // of *madeQuery: a plan computes many distances from the same vector
}

// madeQuery is a query with its vector.
type madeQuery struct {
	vector string
	*vectors.Query
}

// The types and metrics of package schema as those of package vectors.
var (
	_ = [1]struct{}{}[vectors.Uint8-vectors.Type(schema.Uint8)]
	_ = [1]struct{}{}[vectors.Cosine-vectors.Metric(schema.Cosine)]
)

// newVectorField returns a field without vectors.
func newVectorField(f *schema.Field) vectorField {
	v := f.Vector
	o := vectors.Options{Type: vectors.Type(v.Type), Metric: vectors.Metric(v.Metric), Dim: v.Dim, Epsilon: v.Epsilon}
	switch v.Algorithm {
	case schema.HNSW:
		o.Graph, o.M, o.BuildEF, o.EF = true, v.M, v.EfConstruction, v.EfRuntime
	case schema.SVS: // one level, on which a vector has 2 M links
		o.Graph, o.M, o.BuildEF, o.EF = true, v.GraphMaxDegree/2, v.ConstructionWidth, v.SearchWidth
	}
	return &fieldVectors{x: vectors.New(o), algorithm: v.Algorithm}
}

// add enters the vectors of a document that has none. remove takes them out, if there are any.
func (f *fieldVectors) add(doc uint64, vectors [][]byte) { f.x.Add(doc, vectors...) }
func (f *fieldVectors) remove(doc uint64)                { f.x.Remove(doc) }

// holds reports whether a document has exactly these vectors. If so, move gives them another number in a thousandth
// of the time of remove and add.
func (f *fieldVectors) holds(doc uint64, vectors [][]byte) bool { return f.x.Holds(doc, vectors...) }
func (f *fieldVectors) move(from, to uint64)                    { f.x.Move(from, to) }

// bytes returns the memory that the vectors take.
func (f *fieldVectors) bytes() int { return f.x.Bytes() }

// Effort implements plan.Vectors.
func (f *fieldVectors) Effort(k int, options []query.Option) int {
	s, _ := f.search(options)
	return f.x.Effort(k, s)
}

// Len implements plan.Vectors.
func (f *fieldVectors) Len() int { return f.x.Len() }

// Errors of options.
var (
	errVectorOption = badVectorOption(query.BadOption, "Invalid option")
	errVectorValue  = badVectorOption(query.BadValue, "Invalid value was given")
)

func badVectorOption(code query.Code, text string) error {
	return &query.Error{Code: code, Text: text + " (Error parsing vector similarity parameters)"}
}

// Check implements plan.Vectors.
func (f *fieldVectors) Check(vector string, options []query.Option) error {
	if want := f.x.VectorBytes(); len(vector) != want {
		return &query.Error{Code: query.Invalid, Text: fmt.Sprintf(
			"Error parsing vector similarity query: query vector blob size (%d) does not match index's expected size (%d).",
			len(vector), want)}
	}
	_, err := f.search(options)
	return err
}

// search reads the options of a query. The plan has checked that each occurs once, and reads those about filters.
func (f *fieldVectors) search(options []query.Option) (s vectors.Search, err error) {
	for _, o := range options {
		positive := func(of schema.Algorithm) (n int) {
			if f.algorithm != of {
				err = errVectorOption
			} else if n, err = strconv.Atoi(o.Value); err != nil || n <= 0 {
				err = errVectorValue
			}
			return n
		}
		switch strings.ToUpper(o.Name) {
		case "EF_RUNTIME":
			s.EF = positive(schema.HNSW)
		case "SEARCH_WINDOW_SIZE":
			s.EF = positive(schema.SVS)
		case "SEARCH_BUFFER_CAPACITY": // has no effect: the graph keeps all candidates that it visits
			positive(schema.SVS)
		case "USE_SEARCH_HISTORY": // likewise
			switch value := strings.ToUpper(o.Value); {
			case f.algorithm != schema.SVS:
				err = errVectorOption
			case value != "ON" && value != "OFF" && value != "AUTO":
				err = errVectorValue
			}
		case "EPSILON":
			if f.algorithm == schema.Flat {
				err = errVectorOption
			} else if s.Epsilon, err = strconv.ParseFloat(o.Value, 64); err != nil || !(s.Epsilon > 0) {
				err = errVectorValue
			}
		default:
			err = errVectorOption
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// query returns a query with a vector of the right size, to be put into f.queries.
func (f *fieldVectors) query(vector string) *madeQuery {
	if q, ok := f.queries.Get().(*madeQuery); ok && q.vector == vector {
		return q
	}
	return &madeQuery{vector, f.x.Query([]byte(vector))}
}

// Nearest implements plan.Vectors.
func (f *fieldVectors) Nearest(vector string, k int, options []query.Option, allowed func(doc uint64) bool, exact bool,
	stop func() bool) []plan.Near {
	s, _ := f.search(options) // valid: Check has accepted them
	s.Allowed, s.Exact, s.Stop = allowed, exact, stop
	return nears(f.x.Query([]byte(vector)).Nearest(k, s))
}

// Within implements plan.Vectors.
func (f *fieldVectors) Within(vector string, radius float64, options []query.Option, stop func() bool) []plan.Near {
	s, _ := f.search(options)
	s.Stop = stop
	return nears(f.x.Query([]byte(vector)).Within(radius, s))
}

// Distance implements plan.Vectors.
func (f *fieldVectors) Distance(vector string, doc uint64) (float64, bool) {
	q := f.query(vector)
	defer f.queries.Put(q)
	return q.Distance(doc)
}

func nears(found []vectors.Near) []plan.Near {
	out := make([]plan.Near, len(found))
	for i, n := range found {
		out[i] = plan.Near(n)
	}
	return out
}
