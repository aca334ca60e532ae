package expiry

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

type thing struct {
	at   int64
	slot int
}

func (t *thing) SetSlot(s int) { t.slot = s }
func (t *thing) Slot() int     { return t.slot }

func TestIndexGivesItemsInOrderOfDeadline(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		var x Index[*thing]
		live := map[*thing]bool{}
		var all []*thing
		pick := func() *thing { return all[rapid.IntRange(0, len(all)-1).Draw(t, "pick")] }
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch op := rapid.IntRange(0, 3).Draw(t, "op"); {
			case op < 2 || len(all) == 0:
				n := &thing{at: rapid.Int64Range(0, 50).Draw(t, "at")}
				all = append(all, n)
				live[n] = true
				x.Set(n, n.at)
			case op == 2:
				n := pick()
				n.at = rapid.Int64Range(0, 50).Draw(t, "move")
				live[n] = true
				x.Set(n, n.at)
			default:
				n := pick()
				delete(live, n)
				x.Remove(n)
				require.Zero(t, n.Slot())
			}
			require.Equal(t, len(live), x.Len())
			latest := int64(-1)
			for n := range live {
				require.Equal(t, n.at, x.At(n))
				latest = max(latest, n.at)
			}
			require.True(t, x.AllBy(latest))
			require.Equal(t, len(live) == 0, x.AllBy(latest-1))
		}
		last := int64(-1)
		for x.Len() > 0 {
			n, at, ok := x.Min()
			require.True(t, ok)
			require.True(t, live[n])
			require.Equal(t, n.at, at)
			require.GreaterOrEqual(t, at, last)
			last = at
			delete(live, n)
			x.Remove(n)
		}
		require.Empty(t, live)
	})
}

func BenchmarkIndexMove(b *testing.B) {
	var x Index[*thing]
	things := make([]*thing, 1<<20)
	for i := range things {
		things[i] = &thing{}
		x.Set(things[i], int64(i))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		x.Set(things[i*7919&(1<<20-1)], int64(1<<20+i))
	}
}
