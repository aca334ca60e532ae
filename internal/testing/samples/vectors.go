package samples

import (
	"fmt"
	"math/rand/v2"

	"github.com/atomredis/atomredis/engine/vectors"
)

var vectorSet = Type{
	Name: "vectorset",
	Values: func() map[string]any {
		filled := func(n int, c vectors.Settings) *vectors.Set {
			s, rnd := vectors.New(c), rand.New(rand.NewPCG(1, 2))
			for i := range n {
				var attributes []byte
				if i%3 == 0 {
					attributes = fmt.Appendf(nil, `{"n":%d}`, i)
				}
				s.Add(fmt.Append(nil, "element ", i), vector(rnd, c.Dim), attributes, 20)
			}
			return s
		}
		return map[string]any{
			"one": filled(1, vectors.Settings{Dim: 3, M: 16}), "small": filled(10, vectors.Settings{Dim: 7, M: 4}),
			"small bits":    filled(10, vectors.Settings{Dim: 70, M: 4, Quant: vectors.Bin}),
			"reduced":       filled(10, vectors.Settings{Dim: 5, M: 16, Quant: vectors.None, Input: 12}),
			"large":         filled(many, vectors.Settings{Dim: 9, M: 5}),
			"large bits":    filled(many, vectors.Settings{Dim: 64, M: 16, Quant: vectors.Bin}),
			"large floats":  filled(many, vectors.Settings{Dim: 8, M: 5, Quant: vectors.None}),
			"large vectors": filled(20, vectors.Settings{Dim: 2000, M: 5}),
		}
	},
	New: func() any { return vectors.New(vectors.Settings{Dim: 4, M: 4}) },
	Change: func(v any, rnd *rand.Rand, _ int64) any {
		s := v.(*vectors.Set)
		for range rnd.IntN(4) {
			name := fmt.Append(nil, "element ", rnd.IntN(s.Len()+5))
			id, ok := s.Find(name)
			switch {
			case ok && rnd.IntN(3) == 0:
				s.SetAttributes(id, number(rnd.IntN(100)))
				continue
			case ok && rnd.IntN(10) == 0:
				s.SetAttributes(id, nil)
				continue
			case ok:
				s.Remove(id)
			}
			if !ok || rnd.IntN(2) == 0 || s.Len() == 0 {
				s.Add(name, vector(rnd, s.Dim()), nil, 20)
			}
		}
		return s
	},
	Empty:    func(v any) bool { return v.(*vectors.Set).Len() == 0 },
	describe: func(v any) []string { return describeVectors(v.(*vectors.Set)) },
}

// describeVectors describes what users see of a set, and its links. Payloads keep neither where the graph is entered nor how
// the matrix of a projection is told.
func describeVectors(s *vectors.Set) []string {
	lines := []string{fmt.Sprint(s.Dim(), s.Quant(), s.M(), s.Added(), s.TopLevel(), s.WithAttributes())}
	for id := range uint32(s.Len()) {
		raw, norm, unit := s.AppendRaw(nil, id)
		attributes, ok := s.Attributes(id)
		line := fmt.Sprintf("%q %q %t %x %v %v", s.Name(id), attributes, ok, raw, norm, unit)
		for level := range s.Level(id) + 1 {
			line += fmt.Sprint(" ", s.Links(id, level))
		}
		lines = append(lines, line)
	}
	if p := s.Projection(); p != nil {
		for row := range p.Output {
			lines = append(lines, fmt.Sprint(p.Input, p.AppendRow(nil, row)))
		}
	}
	return lines
}

func vector(rnd *rand.Rand, dim int) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(rnd.NormFloat64())
	}
	return v
}
