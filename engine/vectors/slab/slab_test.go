package slab

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASlabIsLikeASlice(t *testing.T) {
	for _, width := range []int{1, 3, 1 << 15} {
		rnd := rand.New(rand.NewPCG(1, uint64(width)))
		s, model := New[int](width), []int(nil)
		most := 5000
		if width > 100 {
			most = 12
		}
		for op := range 4 * most {
			if growing := op%(2*most) < most; rnd.IntN(10) < 8 == growing {
				r := s.Push()
				require.Len(t, r, width)
				require.Zero(t, r[0]+r[width-1])
				r[0], r[width-1] = op, op
				model = append(model, op)
			} else if len(model) > 0 {
				s.Pop()
				model = model[:len(model)-1]
			}
			require.Equal(t, len(model), s.Len())
			if n := len(model); n > 0 {
				i := rnd.IntN(n)
				require.Equal(t, model[i], s.At(uint32(i))[width-1])
				view := s.View()
				require.Equal(t, model[i], view.At(uint32(i))[0])
				require.GreaterOrEqual(t, s.Room(), n*width)
			}
			if op%1000 == 0 {
				c := s.Clone()
				c.Push()[0] = -1
				require.Equal(t, len(model), s.Len())
				require.Equal(t, len(model)+1, c.Len())
				s = c
				s.Pop()
			}
		}
	}
}
