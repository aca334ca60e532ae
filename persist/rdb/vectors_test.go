package rdb

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/vectors"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// anyVectorSet draws a set from which elements have been removed.
func anyVectorSet(t *rapid.T) *vectors.Set {
	c := vectors.Settings{Dim: rapid.IntRange(1, 70).Draw(t, "dimensions"), M: rapid.IntRange(4, 8).Draw(t, "M"),
		Quant: vectors.Quantisation(rapid.IntRange(0, 2).Draw(t, "quantisation"))}
	if rapid.Bool().Draw(t, "projected") {
		c.Input = c.Dim + rapid.IntRange(0, 10).Draw(t, "more")
	}
	s := vectors.New(c)
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "vectors"), 0))
	for i := range rapid.IntRange(1, 60).Draw(t, "elements") {
		v := make([]float32, max(c.Dim, c.Input))
		for k := range v {
			v[k] = float32(r.NormFloat64())
		}
		var attributes []byte
		if r.IntN(3) == 0 {
			attributes = fmt.Appendf(nil, `{"n":%d}`, i)
		}
		s.Add(fmt.Append(nil, "element ", i), s.Project(v), attributes, 20)
	}
	for range rapid.IntRange(0, s.Len()-1).Draw(t, "gone") {
		s.Remove(uint32(r.IntN(s.Len())))
	}
	return s
}

// requireSameVectors compares what users see of sets, and their links.
func requireSameVectors(t require.TestingT, want, got *vectors.Set) {
	require.Equal(t, []any{want.Len(), want.Dim(), want.M(), want.Quant(), want.Added(), want.TopLevel(), want.WithAttributes()},
		[]any{got.Len(), got.Dim(), got.M(), got.Quant(), got.Added(), got.TopLevel(), got.WithAttributes()})
	for id := range uint32(want.Len()) {
		require.Equal(t, want.Name(id), got.Name(id))
		attributes, _ := want.Attributes(id)
		have, _ := got.Attributes(id)
		require.Equal(t, attributes, have)
		raw, norm, unit := want.AppendRaw(nil, id)
		haveRaw, haveNorm, haveUnit := got.AppendRaw(nil, id)
		require.Equal(t, []any{raw, norm, unit}, []any{haveRaw, haveNorm, haveUnit})
		require.Equal(t, want.Level(id), got.Level(id))
		for level := range want.Level(id) + 1 {
			require.Equal(t, want.Links(id, level), got.Links(id, level))
		}
	}
	p, q := want.Projection(), got.Projection()
	require.Equal(t, p == nil, q == nil)
	if p == nil {
		return
	}
	require.Equal(t, []int{p.Input, p.Output}, []int{q.Input, q.Output})
	for row := range p.Output {
		require.Equal(t, p.AppendRow(nil, row), q.AppendRow(nil, row))
	}
}

func TestVectorSetsAreDumpedAsRedisDoes(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		w, s := newWorld(), anyVectorSet(t)
		payload := dump(t, w.entry(s))
		got, err := Restore(payload, &limits)
		require.NoError(t, err)
		requireSameVectors(t, s, got.(*vectors.Set))
		require.Equal(t, payload, dump(t, w.entry(got)))

		old := Encoder{buf: []byte{typeModule}}
		older := partsKind("atomVECTR", func(e *engine.Entry) parts { return e.Vectors() }, vectors.NewLoader)
		older.write(&old, w.entry(got))
		again, err := Restore(Seal(old.buf), &limits)
		require.NoError(t, err)
		require.Equal(t, describe(got), describe(again))
	})
}

// A set of a Redis may have other numbers, another order, more links than fit here, and elements in version 1.
func TestVectorSetsOfRedis(t *testing.T) {
	set := func(config, flags uint64, data ...any) []byte {
		e := Encoder{buf: []byte{typeModule}}
		e.length(moduleID(vectorModule, 0))
		w := ModuleWriter{&e}
		w.Uint(2, uint64(len(data)/4), config, flags)
		for _, datum := range data {
			switch datum := datum.(type) {
			case string:
				w.Text(datum)
			case []uint64:
				w.Uint(uint64(len(datum)))
				w.Uint(datum...)
			}
		}
		e.length(moduleEnd)
		return e.buf
	}
	const flat = 1 << 24
	one := uint64(math.Float32bits(1))
	half := uint64(math.Float32bits(2)) | uint64(math.Float32bits(0.5))<<32
	good := func() []any {
		return []any{"b", "", "\x7f\x00", []uint64{9, flat, 1, 8, 4, 0, half}, "a", "{}", "\x81\x7f", []uint64{4, 0, 1, 8, 9, one}}
	}
	restore := func(config, flags uint64, data ...any) (*vectors.Set, error) {
		v, err := Restore(Seal(set(config, flags, data...)), &limits)
		if err != nil {
			return nil, err
		}
		return v.(*vectors.Set), nil
	}
	const q8 = 4<<8 | 1
	s, err := restore(q8, flagAttributes, good()...)
	require.NoError(t, err)
	require.Equal(t, []any{2, uint64(9), "b", "a", []uint32{1}}, []any{s.Len(), s.Added(), s.Name(0), s.Name(1), s.Links(0, 0)})
	attributes, ok := s.Attributes(1)
	require.Equal(t, "{}", attributes)
	require.True(t, ok)
	_, ok = s.Attributes(0)
	require.False(t, ok)
	require.Equal(t, []float32{1, 0}, s.AppendVector(nil, 0))
	s, err = restore(1, flagAttributes, good()...)
	require.NoError(t, err)
	require.Equal(t, vectors.DefaultM, s.M())

	for name, change := range map[string]func(data []any){
		"one way":               func(d []any) { d[7] = []uint64{4, 0, 0, 8, one} },
		"a link to nobody":      func(d []any) { d[3] = []uint64{9, 0, 1, 8, 5, half} },
		"a link to itself":      func(d []any) { d[3] = []uint64{9, 0, 1, 8, 9, half} },
		"a level without links": func(d []any) { d[3] = []uint64{9, 1, 1, 8, 4, half} },
		"too many levels":       func(d []any) { d[3] = append([]uint64{9, 17}, slices.Repeat([]uint64{0, 8}, 18)...) },
		"too many parameters":   func(d []any) { d[3] = []uint64{9, 0, 1, 8, 4, half, 1} },
		"too few parameters":    func(d []any) { d[3] = []uint64{9, 0, 1, 8, 4} },
		"another version":       func(d []any) { d[3] = []uint64{9, 2 << 24, 1, 8, 4, 0, half} },
		"a name twice":          func(d []any) { d[4] = "b" },
		"a number twice":        func(d []any) { d[7] = []uint64{9, 0, 1, 8, 9, one} },
		"a short vector":        func(d []any) { d[2] = "\x7f" },
		"a component beyond":    func(d []any) { d[2] = "\x80\x00" },
		"a length that is none": func(d []any) { d[7] = []uint64{4, 0, 1, 8, 9, uint64(math.Float32bits(float32(math.NaN())))} },
	} {
		data := good()
		change(data)
		_, err := restore(q8, flagAttributes, data...)
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
	for _, config := range []uint64{4<<8 | 3, 3<<8 | 1} {
		_, err := restore(config, flagAttributes, good()...)
		require.ErrorIs(t, err, ErrCorrupt)
	}
	_, err = restore(q8, 0)
	require.ErrorIs(t, err, ErrCorrupt, "no elements")

	// Ten elements that are all linked have one link more than fits.
	var data []any
	for i := range uint64(10) {
		node := []uint64{i + 1, 0, 9, 9}
		for other := range uint64(10) {
			if other != i {
				node = append(node, other+1)
			}
		}
		data = append(data, fmt.Sprint(i), "", "\x7f\x00", append(node, one))
	}
	s, err = restore(q8, flagAttributes, data...)
	require.NoError(t, err)
	for id := range uint32(10) {
		require.NotEmpty(t, s.Links(id, 0))
		for _, other := range s.Links(id, 0) {
			require.Contains(t, s.Links(other, 0), id)
		}
	}
	file := set(q8, flagAttributes, good()...)
	for i := range file {
		_, err := Restore(Seal(bytes.Clone(file[:i])), &limits)
		require.Error(t, err)
	}
}
