package stats

import (
	"sync"
	"testing"

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
