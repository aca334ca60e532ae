package command

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeadlinesBeyond64BitsAreRefused(t *testing.T) {
	const now = 1_000_000
	for _, c := range []struct {
		unit TimeUnit
		n    int64
		at   int64
		ok   bool
	}{
		{InMillis, 1, now + 1, true},
		{InMillis, math.MaxInt64 - now, math.MaxInt64, true},
		{InMillis, math.MaxInt64 - now + 1, 0, false},
		{InMillis, math.MinInt64, math.MinInt64 + now, true},
		{InSeconds, 2, now + 2000, true},
		{InSeconds, math.MaxInt64 / 1000, 0, false},
		{InSeconds, math.MinInt64 / 1000, math.MinInt64/1000*1000 + now, true},
		{InSeconds, math.MinInt64/1000 - 1, 0, false},
		{AtMillis, math.MaxInt64, math.MaxInt64, true},
		{AtMillis, math.MinInt64, math.MinInt64, true},
		{AtSeconds, math.MaxInt64 / 1000, math.MaxInt64 / 1000 * 1000, true},
		{AtSeconds, math.MaxInt64/1000 + 1, 0, false},
	} {
		at, ok := c.unit.Deadline(now, c.n)
		require.Equal(t, c.ok, ok, c)
		require.Equal(t, c.at, at, c)
	}
}

func TestExpireConditionsTreatNoDeadlineAsLaterThanAnyTime(t *testing.T) {
	for _, c := range []struct {
		cond    ExpireConditions
		old, at int64
		want    bool
	}{
		{ExpireConditions{}, 0, 5, true},
		{ExpireConditions{NX: true}, 0, 5, true},
		{ExpireConditions{NX: true}, 9, 5, false},
		{ExpireConditions{XX: true}, 0, 5, false},
		{ExpireConditions{XX: true}, 9, 5, true},
		{ExpireConditions{GT: true}, 0, 5, false},
		{ExpireConditions{GT: true}, 5, 5, false},
		{ExpireConditions{GT: true}, 4, 5, true},
		{ExpireConditions{LT: true}, 0, 5, true},
		{ExpireConditions{LT: true}, 5, 5, false},
		{ExpireConditions{LT: true}, 6, 5, true},
		{ExpireConditions{LT: true, XX: true}, 0, 5, false},
		{ExpireConditions{LT: true, XX: true}, 6, 5, true},
	} {
		require.Equal(t, c.want, c.cond.Allow(c.old, c.at), "%+v", c)
	}
}
