package clients_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// The typed methods of go-redis for arrays.
func TestGoRedisOnArrays(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			ctx := t.Context()
			addr, prefix := server(t)
			key := prefix + "array"
			c := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol})
			defer c.Close()
			require.Equal(t, int64(2), c.ARSet(ctx, key, 0, "10", "20").Val())
			require.Equal(t, int64(1), c.ARMSet(ctx, key, redis.AREntry{Index: 1, Value: "21"}, redis.AREntry{Index: 7, Value: "x"}).Val())
			require.Equal(t, "21", c.ARGet(ctx, key, 1).Val())
			require.Equal(t, redis.Nil, c.ARGet(ctx, key, 2).Err())
			require.Equal(t, []any{"10", "21", nil}, c.ARGetRange(ctx, key, 0, 2).Val())
			require.Equal(t, []any{"x", nil}, c.ARMGet(ctx, key, 7, 8).Val())
			require.Equal(t, uint64(8), c.ARLen(ctx, key).Val())
			require.Equal(t, uint64(3), c.ARCount(ctx, key).Val())
			require.Equal(t, []redis.AREntry{{Index: 7, Value: "x"}, {Index: 1, Value: "21"}},
				c.ARScan(ctx, key, 9, 0, &redis.ARScanArgs{Limit: 2}).Val())
			require.Equal(t, "31", c.AROpSum(ctx, key, 0, 9).Val())
			require.Equal(t, int64(20|10|21), c.AROpOr(ctx, key, 0, 9).Val()|20)
			require.Equal(t, int64(1), c.AROpMatch(ctx, key, 0, 9, "x").Val())
			conditions := &redis.ARGrepArgs{Predicates: []redis.ARGrepPredicate{{Type: redis.ARGrepMatch, Value: "1"}}}
			require.Equal(t, []uint64{0, 1}, c.ARGrep(ctx, key, "-", "+", conditions).Val())
			require.Equal(t, []redis.AREntry{{Index: 0, Value: "10"}, {Index: 1, Value: "21"}},
				c.ARGrepWithValues(ctx, key, "-", "+", conditions).Val())
			require.Equal(t, int64(1), c.ARSeek(ctx, key, 8).Val())
			require.Equal(t, uint64(9), c.ARInsert(ctx, key, "y", "z").Val())
			require.Equal(t, uint64(10), c.ARNext(ctx, key).Val())
			require.Equal(t, []any{"z", "y"}, c.ARLastItems(ctx, key, 2, true).Val())
			info, err := c.ARInfoFull(ctx, key).Result()
			require.NoError(t, err)
			require.Equal(t, int64(5), info["count"])
			require.Equal(t, uint64(0), c.ARRing(ctx, key, 2, "r").Val())
			require.Equal(t, int64(1), c.ARDel(ctx, key, 0, 5).Val())
			require.Equal(t, uint64(1), c.ARDelRange(ctx, key, redis.ARRange{Start: 9, End: 0}).Val())
			require.Zero(t, c.Exists(ctx, key).Val())
		})
	}
}
