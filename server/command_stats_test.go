package server

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/command"
)

func TestCountersAreMadeWhenTheyAreNeeded(t *testing.T) {
	const commands, goroutines, calls = 100, 4, 50
	counters := newCommandCounters(commands)
	cmd := func(i int) *command.Command { return &command.Command{Index: i} }
	for i := range commands {
		require.Zero(t, counters.seen(cmd(i)).calls.Load())
	}
	for range counters.all() {
		t.Fatal("looking at counters makes none")
	}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range calls {
				for _, i := range []int{0, 7, 8, commands - 1} { // of three parts
					counters.of(cmd(i)).calls.Add(1)
				}
			}
		})
	}
	wg.Wait()
	total, made := int64(0), 0
	for s := range counters.all() {
		total += s.calls.Load()
		made++
	}
	require.EqualValues(t, 4*goroutines*calls, total)
	require.Equal(t, 3*len(countersPart{}), made)
	require.EqualValues(t, goroutines*calls, counters.seen(cmd(8)).calls.Load())
	require.Zero(t, counters.seen(cmd(9)).calls.Load())
	require.Zero(t, uncounted.calls.Load())
}
