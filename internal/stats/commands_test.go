package stats

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
)

func TestCountersAreMadeWhenTheyAreNeeded(t *testing.T) {
	const commands, goroutines, calls = 100, 4, 50
	counters := NewCommands(commands)
	cmd := func(i int) *command.Command { return &command.Command{Index: i} }
	for i := range commands {
		require.Zero(t, counters.Seen(cmd(i)).Calls.Load())
	}
	for range counters.All() {
		t.Fatal("looking at counters makes none")
	}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range calls {
				for _, i := range []int{0, 7, 8, commands - 1} { // of three parts
					counters.Of(cmd(i)).Calls.Add(1)
				}
			}
		})
	}
	wg.Wait()
	total, made := int64(0), 0
	for s := range counters.All() {
		total += s.Calls.Load()
		made++
	}
	require.EqualValues(t, 4*goroutines*calls, total)
	require.Equal(t, 3*len(countersPart{}), made)
	require.EqualValues(t, goroutines*calls, counters.Seen(cmd(8)).Calls.Load())
	require.Zero(t, counters.Seen(cmd(9)).Calls.Load())
	require.Zero(t, uncounted.Calls.Load())
}

func TestSlowCallsAreSummedUp(t *testing.T) {
	counters := NewCommands(20)
	require.Equal(t, CommandTotals{}, counters.Totals())
	a, b := counters.Of(&command.Command{Index: 1}), counters.Of(&command.Command{Index: 15})
	a.Count(3, 7_000_000)
	b.Count(1, 9_000_000)
	a.CountSlow(2000)
	a.CountSlow(4000)
	b.CountSlow(9000)
	require.Equal(t, Slow{2, 6 * time.Millisecond, 4 * time.Millisecond}, a.Slow())
	require.Equal(t, CommandTotals{4, 16 * time.Millisecond, Slow{3, 15 * time.Millisecond, 9 * time.Millisecond}}, counters.Totals())
	a.Reset()
	require.Equal(t, Slow{}, a.Slow())
}

func TestThePeakHasItsTime(t *testing.T) {
	var p Peak
	for _, c := range []struct{ used, now, peak, at int64 }{{0, 5, 0, 5}, {10, 6, 10, 6}, {10, 7, 10, 6}, {3, 8, 10, 6}, {11, 9, 11, 9}} {
		peak, at := p.See(c.used, c.now)
		require.Equal(t, [2]int64{c.peak, c.at}, [2]int64{peak, at})
	}
}
