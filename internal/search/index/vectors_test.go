package index

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/search/plan"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
)

// floatsOf returns a vector of floats of 32 bits.
func floatsOf(numbers ...float32) []byte {
	var b []byte
	for _, f := range numbers {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

func vectorFieldOf(v schema.Vector) vectorField {
	v.Dim = 2
	return newVectorField(&schema.Field{Vector: &v})
}

func TestOptionsOfVectorSearches(t *testing.T) {
	fields := map[string]vectorField{
		"flat": vectorFieldOf(schema.Vector{}),
		"hnsw": vectorFieldOf(schema.Vector{Algorithm: schema.HNSW, M: 4}),
		"svs":  vectorFieldOf(schema.Vector{Algorithm: schema.SVS, GraphMaxDegree: 32}),
	}
	const (
		unknown = "SEARCH_OPTION_INVALID Invalid option"
		value   = "SEARCH_VALUE_BAD Invalid value was given"
	)
	for _, c := range []struct {
		field   string
		options []string
		want    string
	}{
		{"flat", nil, ""},
		{"flat", []string{"EF_RUNTIME", "10"}, unknown},
		{"flat", []string{"EPSILON", "0.1"}, unknown},
		{"flat", []string{"FOO", "10"}, unknown},
		{"hnsw", []string{"ef_runtime", "10", "Epsilon", "0.5"}, ""},
		{"hnsw", []string{"EF_RUNTIME", "0"}, value},
		{"hnsw", []string{"EF_RUNTIME", "-5"}, value},
		{"hnsw", []string{"EF_RUNTIME", "1.5"}, value},
		{"hnsw", []string{"EF_RUNTIME", "x"}, value},
		{"hnsw", []string{"EPSILON", "0"}, value},
		{"hnsw", []string{"EPSILON", "nan"}, value},
		{"hnsw", []string{"SEARCH_WINDOW_SIZE", "5"}, unknown},
		{"hnsw", []string{"USE_SEARCH_HISTORY", "ON"}, unknown},
		{"svs", []string{"EF_RUNTIME", "5"}, unknown},
		{"svs", []string{"SEARCH_WINDOW_SIZE", "5", "SEARCH_BUFFER_CAPACITY", "7", "USE_SEARCH_HISTORY", "auto", "EPSILON", "1"}, ""},
		{"svs", []string{"SEARCH_BUFFER_CAPACITY", "0"}, value},
		{"svs", []string{"USE_SEARCH_HISTORY", "maybe"}, value},
	} {
		var options []query.Option
		for i := 0; i < len(c.options); i += 2 {
			options = append(options, query.Option{Name: c.options[i], Value: c.options[i+1]})
		}
		err := fields[c.field].Check(string(floatsOf(1, 2)), options)
		if c.want == "" {
			require.NoError(t, err, "%+v", c)
		} else {
			require.EqualError(t, err, c.want+" (Error parsing vector similarity parameters)", "%+v", c)
		}
	}
	require.EqualError(t, fields["hnsw"].Check("abc", nil),
		"SEARCH_QUERY_BAD Error parsing vector similarity query: query vector blob size (3) does not match index's expected size (8).")
}

func TestVectorsOfAField(t *testing.T) {
	for _, algorithm := range []schema.Algorithm{schema.Flat, schema.HNSW, schema.SVS} {
		f := vectorFieldOf(schema.Vector{Algorithm: algorithm, M: 8, EfConstruction: 100, EfRuntime: 20, GraphMaxDegree: 16,
			ConstructionWidth: 100, SearchWidth: 10, Epsilon: 0.01})
		for i, v := range [][]byte{floatsOf(1, 1), floatsOf(2, 2), floatsOf(5, 1), floatsOf(-3, .5), floatsOf(.5, 0)} {
			f.add(uint64(i+1), [][]byte{v})
		}
		f.add(6, [][]byte{floatsOf(100, 100), floatsOf(1, 2)}) // of JSON
		q := string(floatsOf(1, 1))
		require.Equal(t, []plan.Near{{Doc: 1, Distance: 0}, {Doc: 6, Distance: 1}, {Doc: 5, Distance: 1.25}}, f.Nearest(q, 3, nil, nil, false, nil))
		even := func(doc uint64) bool { return doc%2 == 0 }
		require.Equal(t, []plan.Near{{Doc: 6, Distance: 1}, {Doc: 2, Distance: 2}}, f.Nearest(q, 2, nil, even, false, nil))
		require.Equal(t, []plan.Near{{Doc: 1, Distance: 0}, {Doc: 2, Distance: 2}, {Doc: 5, Distance: 1.25}, {Doc: 6, Distance: 1}},
			f.Within(q, 2, nil, nil))
		for _, vector := range []string{q, q, string(floatsOf(5, 1))} {
			d, ok := f.Distance(vector, 3)
			require.True(t, ok)
			require.Equal(t, map[bool]float64{true: 16, false: 0}[vector == q], d)
		}
		require.False(t, f.holds(3, [][]byte{floatsOf(5, 2)}))
		require.False(t, f.holds(6, [][]byte{floatsOf(100, 100)}))
		require.False(t, f.holds(9, [][]byte{floatsOf(5, 1)}))
		require.True(t, f.holds(3, [][]byte{floatsOf(5, 1)}))
		f.move(3, 7)
		f.remove(1)
		f.remove(1)
		require.Equal(t, 5, f.Len())
		_, ok := f.Distance(q, 3)
		require.False(t, ok)
		require.Equal(t, "[{6 1} {5 1.25} {2 2} {7 16} {4 16.25}]", fmt.Sprint(f.Nearest(q, 100, nil, nil, true, nil)))
		require.Positive(t, f.bytes())
	}
}
