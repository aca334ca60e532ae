package server

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeadlinesBeyond64BitsAreRefused(t *testing.T) {
	const now = 1_000_000
	for _, c := range []struct {
		unit timeUnit
		n    int64
		at   int64
		ok   bool
	}{
		{inMillis, 1, now + 1, true},
		{inMillis, math.MaxInt64 - now, math.MaxInt64, true},
		{inMillis, math.MaxInt64 - now + 1, 0, false},
		{inMillis, math.MinInt64, math.MinInt64 + now, true},
		{inSeconds, 2, now + 2000, true},
		{inSeconds, math.MaxInt64 / 1000, 0, false},
		{inSeconds, math.MinInt64 / 1000, math.MinInt64/1000*1000 + now, true},
		{inSeconds, math.MinInt64/1000 - 1, 0, false},
		{atMillis, math.MaxInt64, math.MaxInt64, true},
		{atMillis, math.MinInt64, math.MinInt64, true},
		{atSeconds, math.MaxInt64 / 1000, math.MaxInt64 / 1000 * 1000, true},
		{atSeconds, math.MaxInt64/1000 + 1, 0, false},
	} {
		at, ok := c.unit.deadline(now, c.n)
		require.Equal(t, c.ok, ok, c)
		require.Equal(t, c.at, at, c)
	}
}

func TestExpireConditionsTreatNoDeadlineAsLaterThanAnyTime(t *testing.T) {
	for _, c := range []struct {
		cond    expireConditions
		old, at int64
		want    bool
	}{
		{expireConditions{}, 0, 5, true},
		{expireConditions{nx: true}, 0, 5, true},
		{expireConditions{nx: true}, 9, 5, false},
		{expireConditions{xx: true}, 0, 5, false},
		{expireConditions{xx: true}, 9, 5, true},
		{expireConditions{gt: true}, 0, 5, false},
		{expireConditions{gt: true}, 5, 5, false},
		{expireConditions{gt: true}, 4, 5, true},
		{expireConditions{lt: true}, 0, 5, true},
		{expireConditions{lt: true}, 5, 5, false},
		{expireConditions{lt: true}, 6, 5, true},
		{expireConditions{lt: true, xx: true}, 0, 5, false},
		{expireConditions{lt: true, xx: true}, 6, 5, true},
	} {
		require.Equal(t, c.want, c.cond.allow(c.old, c.at), "%+v", c)
	}
}
