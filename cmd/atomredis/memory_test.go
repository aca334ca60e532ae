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
		release bool
	}{
		{heap{0, 1 * mb, 2 * mb, 0}, 400, false},
		{heap{200 * mb, 100 * mb, 200 * mb, 0}, 100, false}, // busy
		{heap{400 * mb, 150 * mb, 300 * mb, 0}, 50, false},
		{heap{400 * mb, 150 * mb, 300 * mb, 0}, 50, true},  // a pause, with 150 MB of garbage
		{heap{400 * mb, 150 * mb, 300 * mb, 0}, 50, false}, // only once
		{heap{600 * mb, 110 * mb, 120 * mb, 0}, 50, false}, // a little less data changes nothing
		{heap{600 * mb, 110 * mb, 120 * mb, 10 * mb}, 50, true},
		{heap{800 * mb, 90 * mb, 95 * mb, 0}, 100, false},
		{heap{800 * mb, 90 * mb, 92 * mb, 1 * mb}, 100, false}, // not worth it
		{heap{900 * mb, 26 * mb, 40 * mb, 1 * mb}, 100, false},
		{heap{950 * mb, 10 * mb, 40 * mb, 1 * mb}, 200, false},
		{heap{950 * mb, 2 * mb, 40 * mb, 1 * mb}, 400, true},
	} {
		percent, _, release := c.next(step.heap)
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
