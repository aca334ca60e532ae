package documents

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// TestBatchesDoWhatChangesOneByOneDo replaces and removes random places of random documents, in batches and one by one.
func TestBatchesDoWhatChangesOneByOneDo(t *testing.T) {
	m := &modelTest{T: t, r: testseed.Rand(t), epochs: delta.Epochs{Current: 1}}
	for range 100 {
		v, _ := m.random([]int{5, 60, 4000, 20000}[m.r.IntN(4)], 0)
		one := New(v)
		all := one.Clone()
		var places []*Place
		remove, members := m.r.IntN(2) == 0, m.r.IntN(2) == 0
		var walk func(v Value, at *Place)
		walk = func(v Value, at *Place) {
			object := v.Kind() == Object
			v.Elements(func(i int, name string, element Value) bool {
				inner := at.Element(i)
				if object {
					inner = at.Member(name)
				}
				if m.r.IntN(3) == 0 && (!remove || members == object) {
					places = append(places, inner)
				}
				walk(element, inner)
				return true
			})
		}
		walk(one.Root(), nil)
		places = Outermost(places)
		batch := all.Batch()
		for i := range places {
			p := places[len(places)-1-i]
			if remove && members {
				p = places[i]
			}
			if remove {
				batch.Remove(p)
				continue
			}
			v, _ := m.random([]int{0, 0, 3}[m.r.IntN(3)], 5)
			require.True(t, Equal(one.valueAt(p), batch.Find(p)))
			require.True(t, one.Replace(p, v.Clone()))
			batch.Replace(p, v)
		}
		if remove {
			for _, p := range places {
				require.True(t, one.Remove(p))
			}
		}
		batch.Do()
		check(t, one)
		check(t, all)
		require.Equal(t, printed(one.Root()), printed(all.Root()))
	}
}

func (d *Document) valueAt(p *Place) Value {
	v, _ := d.Find(p)
	return v
}
