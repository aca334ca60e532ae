package plan

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/search/query"
)

// flat is a vector field that compares all vectors.
type flat struct {
	of     map[uint64][]float64
	dim    int
	size   int // of a number
	cosine bool
	hnsw   bool // it has the options of a graph
}

// vector makes the vectors of a field from the words after VECTOR, and returns the rest of the words.
func (m *memory) vector(name string, words []string) []string {
	f := &flat{of: map[uint64][]float64{}, size: 4, hnsw: words[0] == "HNSW"}
	n, _ := strconv.Atoi(words[1])
	options := words[2 : 2+n]
	for i := 0; i+1 < n; i += 2 {
		switch value := options[i+1]; options[i] {
		case "DIM":
			f.dim, _ = strconv.Atoi(value)
		case "TYPE":
			if value == "FLOAT64" {
				f.size = 8
			}
		case "DISTANCE_METRIC":
			f.cosine = value == "COSINE"
		}
	}
	m.vectors[name] = f
	return words[2+n:]
}

// blob is a vector of one number.
func blob(f float32) string {
	return string(binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)))
}

// read returns the numbers of a vector.
func (f *flat) read(s string) ([]float64, error) {
	if len(s) != f.dim*f.size {
		return nil, fmt.Errorf("query vector blob size (%d) does not match index's expected size (%d).", len(s), f.dim*f.size)
	}
	v := make([]float64, f.dim)
	for i := range v {
		if part := []byte(s[i*f.size:]); f.size == 4 {
			v[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(part)))
		} else {
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(part))
		}
	}
	return v, nil
}

func (f *flat) Check(vector string, options []query.Option) error {
	if _, err := f.read(vector); err != nil {
		return &query.Error{Code: query.Invalid, Text: "Error parsing vector similarity query: " + err.Error()}
	}
	for _, o := range options {
		switch strings.ToUpper(o.Name) {
		case "EF_RUNTIME":
			if n, err := strconv.Atoi(o.Value); f.hnsw && (err != nil || n <= 0) {
				return badVector(query.BadValue, "Invalid value was given")
			}
		case "EPSILON":
		default:
			return badVector(query.BadOption, "Invalid option")
		}
		if !f.hnsw {
			return badVector(query.BadOption, "Invalid option")
		}
	}
	return nil
}

func (f *flat) Effort(int, []query.Option) int { return f.Len() }

func (f *flat) Distance(vector string, doc uint64) (float64, bool) {
	q, _ := f.read(vector)
	v, ok := f.of[doc]
	if !ok {
		return 0, false
	}
	sum, dot, x, y := 0.0, 0.0, 0.0, 0.0
	for i := range v {
		sum += (v[i] - q[i]) * (v[i] - q[i])
		dot += v[i] * q[i]
		x += v[i] * v[i]
		y += q[i] * q[i]
	}
	if f.cosine {
		return 1 - dot/math.Sqrt(x*y), true
	}
	return sum, true
}

func (f *flat) Len() int { return len(f.of) }

func (f *flat) Nearest(vector string, k int, _ []query.Option, allowed func(uint64) bool, _ bool, _ func() bool) (list []Near) {
	for doc := range f.of {
		if allowed == nil || allowed(doc) {
			d, _ := f.Distance(vector, doc)
			list = append(list, Near{doc, d})
		}
	}
	slices.SortFunc(list, func(a, b Near) int { return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.Doc, b.Doc)) })
	return list[:min(k, len(list))]
}

func (f *flat) Within(vector string, radius float64, _ []query.Option, _ func() bool) (list []Near) {
	for doc := range f.of {
		if d, _ := f.Distance(vector, doc); d <= radius {
			list = append(list, Near{doc, d})
		}
	}
	slices.SortFunc(list, func(a, b Near) int { return cmp.Compare(a.Doc, b.Doc) })
	return list
}
