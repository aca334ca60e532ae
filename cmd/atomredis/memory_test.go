package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCollector(t *testing.T) {
	const mb = 1 << 20
	c := collector{}
	for i, step := range []struct {
		heap    heap
		percent int
		rest    int  // quiet seconds that follow
		release bool // at the end of them
	}{
		{heap{0, 1 * mb, 2 * mb, 0}, 400, 0, false},
		{heap{200 * mb, 100 * mb, 200 * mb, 0}, 100, patience - 1, false}, // busy
		{heap{400 * mb, 150 * mb, 300 * mb, 0}, 50, patience - 1, false},
		{heap{402 * mb, 150 * mb, 300 * mb, 0}, 50, patience, true},          // a pause, with 150 MB of garbage
		{heap{402 * mb, 150 * mb, 300 * mb, 0}, 50, 2 * patience, false},     // only once
		{heap{600 * mb, 110 * mb, 120 * mb, 0}, 50, patience - 1, false},     // a little less data changes nothing
		{heap{602 * mb, 110 * mb, 120 * mb, 10 * mb}, 50, patience, true},    // free memory
		{heap{800 * mb, 90 * mb, 95 * mb, 0}, 100, patience, true},           // what the last collection saw may be garbage by now
		{heap{805 * mb, 90 * mb, 95 * mb, 0}, 100, patience, false},          // not worth it
		{heap{900 * mb, 26 * mb, 40 * mb, 1 * mb}, 100, patience - 1, false}, // fewer
		{heap{950 * mb, 10 * mb, 40 * mb, 1 * mb}, 200, patience - 1, false},
		{heap{960 * mb, 2 * mb, 40 * mb, 1 * mb}, 400, patience, true},
	} {
		percent, _, release := c.next(step.heap)
		for range step.rest {
			require.False(t, release, "step %d", i)
			_, _, release = c.next(step.heap)
		}
		require.Equal(t, step.percent, percent, "step %d", i)
		require.Equal(t, step.release, release, "step %d", i)
	}
	require.NotZero(t, readHeap().objects)
}

func TestReleasedPagesOfTheProgramComeBack(t *testing.T) {
	releaseProgram()
	for range 3 {
		require.NotZero(t, readHeap().objects)
		releaseProgram()
	}
}
