package clients_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// inBoth runs a test of go-redis in both protocols; key makes the name of a key.
func inBoth(t *testing.T, check func(t *testing.T, ctx context.Context, c *redis.Client, key func(string) string)) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			addr, prefix := server(t)
			c := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol})
			defer c.Close()
			err := c.TSQueryIndex(t.Context(), []string{"of=nothing"}).Err()
			if redis.HasErrorPrefix(err, "ERR unknown command") { // a Redis without these types
				t.Skip(err)
			}
			require.NoError(t, err)
			check(t, t.Context(), c, func(name string) string { return prefix + name })
		})
	}
}

// result returns a value and fails if there is an error.
func result[V any](t *testing.T) func(V, error) V {
	return func(v V, err error) V {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// The typed methods of go-redis for time series.
func TestGoRedisOnTimeSeries(t *testing.T) {
	inBoth(t, func(t *testing.T, ctx context.Context, c *redis.Client, key func(string) string) {
		series, sums, label := key("series"), key("sums"), "of="+key("series")
		type samples = []redis.TSTimestampValue
		of := func(pairs ...float64) (all samples) {
			for i := 0; i < len(pairs); i += 2 {
				all = append(all, redis.TSTimestampValue{Timestamp: int64(pairs[i]), Value: pairs[i+1]})
			}
			return all
		}
		got := func(all samples) samples {
			for i := range all {
				all[i].Values = nil
			}
			return all
		}
		require.NoError(t, c.TSCreateWithArgs(ctx, series, &redis.TSOptions{Retention: 100_000, DuplicatePolicy: "LAST",
			Labels: map[string]string{"of": series}}).Err())
		require.NoError(t, c.TSCreate(ctx, sums).Err())
		require.NoError(t, c.TSCreateRule(ctx, series, sums, redis.Sum, 10).Err())
		require.Equal(t, int64(1), c.TSAdd(ctx, series, 1, 1.5).Val())
		require.Equal(t, []int64{2, 11}, c.TSMAdd(ctx, [][]any{{series, 2, 2}, {series, 11, 3}}).Val())
		require.Equal(t, int64(11), c.TSIncrByWithArgs(ctx, series, 1, &redis.TSIncrDecrOptions{Timestamp: 11}).Val())
		require.Equal(t, of(1, 1.5, 2, 2, 11, 4), got(result[samples](t)(c.TSRange(ctx, series, 0, 100).Result())))
		require.Equal(t, of(11, 4, 2, 2), got(result[samples](t)(c.TSRevRange(ctx, series, 2, 100).Result())))
		require.Equal(t, of(0, 3.5), got(result[samples](t)(c.TSRange(ctx, sums, 0, 100).Result())))
		require.Equal(t, of(10, 4), samples{result[redis.TSTimestampValue](t)(
			c.TSGetWithArgs(ctx, sums, &redis.TSGetOptions{Latest: true}).Result())})
		require.Equal(t, of(0, 2, 10, 4), got(result[samples](t)(c.TSRangeWithArgs(ctx, series, 0, 100,
			&redis.TSRangeOptions{Aggregators: []redis.Aggregator{redis.Max}, BucketDuration: 10}).Result())))
		require.Equal(t, []string{series}, c.TSQueryIndex(ctx, []string{label}).Val())
		require.Contains(t, result[map[string][]any](t)(c.TSMRange(ctx, 0, 100, []string{label}).Result()), series)
		require.Contains(t, result[map[string][]any](t)(c.TSMRevRange(ctx, 0, 100, []string{label}).Result()), series)
		require.Contains(t, result[map[string][]any](t)(c.TSMGet(ctx, []string{label}).Result()), series)
		info := result[map[string]any](t)(c.TSInfo(ctx, series).Result())
		require.Equal(t, []any{int64(3), int64(100_000)}, []any{info["totalSamples"], info["retentionTime"]})
		require.NoError(t, c.TSAlter(ctx, series, &redis.TSAlterOptions{ChunkSize: 256}).Err())
		rows := result[[]redis.TSNRangePivotRow](t)(c.TSNRange(ctx, []string{series, series}, "-", 1).Result())
		require.Equal(t, []redis.TSNRangePivotRow{{Timestamp: 1, Values: []float64{1.5, 1.5}}}, rows)
		require.Equal(t, of(11, 4), got(result[samples](t)(c.TSRead(ctx, series, 3).Result())))
		require.Equal(t, []string{"of"}, c.TSQueryLabels(ctx, []string{label}).Val())
		require.Equal(t, int64(2), c.TSDel(ctx, series, 1, 2).Val())
		require.NoError(t, c.TSDeleteRule(ctx, series, sums).Err())
	})
}

// The typed methods of go-redis for sketches.
func TestGoRedisOnSketches(t *testing.T) {
	inBoth(t, func(t *testing.T, ctx context.Context, c *redis.Client, key func(string) string) {
		bloom, cuckoo, counts, top, digest := key("bf"), key("cf"), key("cms"), key("topk"), key("td")
		require.NoError(t, c.BFReserve(ctx, bloom, 0.001, 100).Err())
		require.True(t, c.BFAdd(ctx, bloom, "a").Val())
		require.Equal(t, []bool{false, true}, c.BFMAdd(ctx, bloom, "a", "b").Val())
		require.Equal(t, []bool{true, false}, c.BFMExists(ctx, bloom, "b", "c").Val())
		require.Equal(t, []bool{true}, result[[]bool](t)(c.BFInsert(ctx, bloom, &redis.BFInsertOptions{NoCreate: true}, "c").Result()))
		require.Equal(t, int64(3), c.BFCard(ctx, bloom).Val())
		require.Equal(t, int64(3), result[redis.BFInfo](t)(c.BFInfo(ctx, bloom).Result()).ItemsInserted)
		require.Equal(t, int64(100), result[redis.BFInfo](t)(c.BFInfoCapacity(ctx, bloom).Result()).Capacity)
		for at := int64(0); ; {
			dump := result[redis.ScanDump](t)(c.BFScanDump(ctx, bloom, at).Result())
			if at = dump.Iter; at == 0 {
				break
			}
			require.NoError(t, c.BFLoadChunk(ctx, bloom+"2", at, dump.Data).Err())
		}
		require.True(t, c.BFExists(ctx, bloom+"2", "c").Val())

		require.NoError(t, c.CFReserve(ctx, cuckoo, 100).Err())
		require.True(t, c.CFAdd(ctx, cuckoo, "a").Val())
		require.False(t, c.CFAddNX(ctx, cuckoo, "a").Val())
		require.Equal(t, []bool{true, true}, c.CFInsert(ctx, cuckoo, &redis.CFInsertOptions{}, "b", "b").Val())
		require.Equal(t, []int64{0, 1}, c.CFInsertNX(ctx, cuckoo, &redis.CFInsertOptions{NoCreate: true}, "a", "c").Val())
		require.Equal(t, int64(2), c.CFCount(ctx, cuckoo, "b").Val())
		require.True(t, c.CFDel(ctx, cuckoo, "a").Val())
		require.Equal(t, []bool{false, true}, c.CFMExists(ctx, cuckoo, "a", "b").Val())
		require.Equal(t, int64(3), result[redis.CFInfo](t)(c.CFInfo(ctx, cuckoo).Result()).NumItemsInserted)
		for at := int64(0); ; {
			dump, err := c.CFScanDump(ctx, cuckoo, at).Result()
			if err == redis.Nil || err == nil && dump.Iter == 0 {
				break // the end has no data
			}
			require.NoError(t, err)
			at = dump.Iter
			require.NoError(t, c.CFLoadChunk(ctx, cuckoo+"2", at, dump.Data).Err())
		}
		require.True(t, c.CFExists(ctx, cuckoo+"2", "b").Val())

		require.NoError(t, c.CMSInitByDim(ctx, counts, 1000, 5).Err())
		require.NoError(t, c.CMSInitByDim(ctx, counts+"2", 1000, 5).Err())
		require.Equal(t, []int64{5, 10}, c.CMSIncrBy(ctx, counts, "a", 5, "b", 10).Val())
		require.NoError(t, c.CMSMergeWithWeight(ctx, counts+"2", map[string]int64{counts: 2}).Err())
		require.Equal(t, []int64{10, 0}, c.CMSQuery(ctx, counts+"2", "a", "c").Val())
		require.Equal(t, redis.CMSInfo{Width: 1000, Depth: 5, Count: 15, CellSize: 4}, result[redis.CMSInfo](t)(c.CMSInfo(ctx, counts).Result()))

		require.NoError(t, c.TopKReserveWithOptions(ctx, top, 2, 50, 4, 0.9).Err())
		require.NoError(t, c.TopKAdd(ctx, top, "a", "b", "a").Err())
		require.Equal(t, []string{"b"}, c.TopKIncrBy(ctx, top, "c", 7).Val())
		require.Equal(t, []bool{true, false}, c.TopKQuery(ctx, top, "a", "b").Val())
		require.Equal(t, []string{"c", "a"}, c.TopKList(ctx, top).Val())
		require.Equal(t, map[string]int64{"c": 7, "a": 2}, c.TopKListWithCount(ctx, top).Val())
		require.Equal(t, redis.TopKInfo{K: 2, Width: 50, Depth: 4, Decay: 0.9}, result[redis.TopKInfo](t)(c.TopKInfo(ctx, top).Result()))

		require.NoError(t, c.TDigestCreateWithCompression(ctx, digest, 500).Err())
		require.NoError(t, c.TDigestAdd(ctx, digest, 1, 2, 3, 4).Err())
		require.NoError(t, c.TDigestMerge(ctx, digest+"2", &redis.TDigestMergeOptions{Compression: 100}, digest, digest).Err())
		require.Equal(t, []float64{1, 4}, c.TDigestQuantile(ctx, digest, 0, 1).Val())
		require.Equal(t, []float64{0.5}, c.TDigestCDF(ctx, digest, 2.5).Val())
		require.Equal(t, []int64{1}, c.TDigestRank(ctx, digest, 2).Val())
		require.Equal(t, []int64{2}, c.TDigestRevRank(ctx, digest, 2).Val())
		require.Equal(t, []float64{2}, c.TDigestByRank(ctx, digest, 1).Val())
		require.Equal(t, []float64{3}, c.TDigestByRevRank(ctx, digest, 1).Val())
		require.Equal(t, []float64{1, 4, 2.5}, []float64{c.TDigestMin(ctx, digest).Val(), c.TDigestMax(ctx, digest).Val(),
			c.TDigestTrimmedMean(ctx, digest, 0, 1).Val()})
		require.Equal(t, int64(8), result[redis.TDigestInfo](t)(c.TDigestInfo(ctx, digest+"2").Result()).Observations)
		require.NoError(t, c.TDigestReset(ctx, digest).Err())
	})
}

// The typed methods of go-redis for vector sets.
func TestGoRedisOnVectorSets(t *testing.T) {
	inBoth(t, func(t *testing.T, ctx context.Context, c *redis.Client, key func(string) string) {
		set := key("vectors")
		near := &redis.VectorValues{Val: []float64{1, 0.1}}
		require.True(t, c.VAddWithArgs(ctx, set, "a", &redis.VectorValues{Val: []float64{1, 0}},
			&redis.VAddArgs{NoQuant: true, SetAttr: `{"n":1}`}).Val())
		require.True(t, c.VAddWithArgs(ctx, set, "b", &redis.VectorValues{Val: []float64{0, 1}}, &redis.VAddArgs{NoQuant: true}).Val())
		require.Equal(t, []int64{2, 2}, []int64{c.VCard(ctx, set).Val(), c.VDim(ctx, set).Val()})
		require.Equal(t, []string{"a", "b"}, c.VSim(ctx, set, near).Val())
		require.Equal(t, []string{"b", "a"}, c.VSim(ctx, set, &redis.VectorRef{Name: "b"}).Val())
		require.Equal(t, []string{"a"}, c.VSimWithArgs(ctx, set, near, &redis.VSimArgs{Count: 5, Filter: ".n == 1"}).Val())
		scores := result[[]redis.VectorScore](t)(c.VSimWithScores(ctx, set, near).Result())
		require.Len(t, scores, 2)
		require.InDelta(t, 0.9975, scores[0].Score, 0.001)
		require.JSONEq(t, `{"n":1}`, c.VGetAttr(ctx, set, "a").Val())
		require.True(t, c.VSetAttr(ctx, set, "b", map[string]int{"n": 2}).Val())
		require.True(t, c.VIsMember(ctx, set, "b").Val())
		require.Len(t, c.VEmb(ctx, set, "a", false).Val(), 2)
		require.NotEmpty(t, result[map[string]any](t)(c.VInfo(ctx, set).Result()))
		require.NoError(t, c.VLinks(ctx, set, "a").Err())
		require.Len(t, c.VRandMemberCount(ctx, set, 5).Val(), 2)
		require.True(t, c.VRem(ctx, set, "a").Val())
	})
}
