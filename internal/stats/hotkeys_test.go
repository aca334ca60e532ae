package stats_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/stats"
)

func TestHotKeysAreFoundAmongManyOthers(t *testing.T) {
	h := stats.NewHotKeys(stats.HotKeysOptions{CPU: true, Net: true, Count: 3, Sample: 1}, 1000)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 100_000 {
		key := fmt.Sprint("cold", random.IntN(50_000))
		switch i % 10 {
		case 0:
			key = "a"
		case 1, 2:
			key = "b"
		case 3:
			key = fmt.Sprint("c", i%20/10)
		}
		require.True(t, h.Use(2000, 0, [][]byte{[]byte(key)}, 2, 10))
	}
	r := h.Report(3000)
	require.Equal(t, int64(2000), r.DurationMS)
	require.Equal(t, int64(200_000), r.AllNanos)
	require.Equal(t, int64(1_000_000), r.NetBytes)
	require.Equal(t, []string{"b", "a"}, []string{r.CPU[0].Key, r.CPU[1].Key})
	require.Len(t, r.CPU, 3)
	require.InEpsilon(t, 40_000, r.CPU[0].Cost, 0.2)
	require.InEpsilon(t, 200_000, r.Net[0].Cost, 0.2)
}

func TestHotKeysMeasureOnlyWhatIsAskedFor(t *testing.T) {
	h := stats.NewHotKeys(stats.HotKeysOptions{Net: true, Count: 2, Sample: 1, Slots: []int{3, 9},
		Duration: time.Second}, 1000)
	require.True(t, h.Use(1000, 3, [][]byte{[]byte("a"), []byte("b")}, 8, 20))
	require.True(t, h.Use(1000, 4, [][]byte{[]byte("c")}, 1, 5))
	require.True(t, h.Use(1000, -1, nil, 100, 100))
	require.True(t, h.Active(1999))
	require.False(t, h.Use(2000, 3, [][]byte{[]byte("a")}, 8, 20), "its time is up")
	require.False(t, h.Stop(2001))
	r := h.Report(5000)
	r.Spent = 0
	require.Equal(t, stats.HotKeysReport{
		HotKeysTotals: stats.HotKeysTotals{AllNanos: 9, ChosenNanos: 8, SampledNanos: 8, AllBytes: 25, ChosenBytes: 20,
			SampledBytes: 20},
		DurationMS: 1000, CPU: []stats.HotKey{}, Net: []stats.HotKey{{"a", 10}, {"b", 10}}, NetBytes: 20,
	}, r)

	h = stats.NewHotKeys(stats.HotKeysOptions{CPU: true, Count: 1, Sample: 10}, 1000)
	for range 10_000 {
		h.Use(1000, 0, [][]byte{[]byte("a")}, 1, 0)
	}
	r = h.Report(1000)
	require.Equal(t, int64(10_000), r.ChosenNanos)
	require.InDelta(t, 1000, r.SampledNanos, 200)
	require.True(t, h.Stop(1500))
	require.False(t, h.Report(1700).Active)
	require.Equal(t, int64(500), h.Report(1700).DurationMS)
}
