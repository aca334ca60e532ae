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
				switch i % 3 {
				case 0:
					attributes = fmt.Appendf(nil, `{"n":%d}`, i)
				case 1:
					attributes = []byte{}
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
	describe: func(v any) []string { return stored(v.(*vectors.Set)) },
}

func vector(rnd *rand.Rand, dim int) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(rnd.NormFloat64())
	}
	return v
}
