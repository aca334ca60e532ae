package clients_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// The typed methods of go-redis for JSON.
func TestGoRedisOnJSON(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			ctx := t.Context()
			addr, prefix := server(t)
			key := prefix + "json"
			c := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol})
			defer c.Close()
			require.NoError(t, c.JSONSet(ctx, key, "$", `{"a":[1,2],"s":"x","n":{"a":[3]},"b":true,"i":5}`).Err())
			require.Equal(t, redis.Nil, c.JSONSetMode(ctx, key, "$.i", "6", "NX").Err())
			require.Equal(t, `[[1,2],[3]]`, c.JSONGet(ctx, key, "$..a").Val())
			require.Equal(t, []int64{4, 3}, c.JSONArrAppend(ctx, key, "$..a", 7, 8).Val())
			require.Equal(t, []int64{1, -1}, c.JSONArrIndex(ctx, key, "$..a", 2).Val())
			require.Equal(t, []int64{5}, c.JSONArrInsert(ctx, key, "$.a", 0, `"z"`).Val())
			length, err := c.JSONArrLen(ctx, key, "$.a").Result()
			require.NoError(t, err)
			require.Equal(t, []int64{5}, length)
			require.Equal(t, []string{`"z"`}, c.JSONArrPop(ctx, key, "$.a", 0).Val())
			stop := 1
			require.Equal(t, []int64{2}, c.JSONArrTrimWithArgs(ctx, key, "$.a", &redis.JSONArrTrimArgs{Stop: &stop}).Val())
			require.Equal(t, int64(1), c.JSONClear(ctx, key, "$.n.a").Val())
			require.NoError(t, c.JSONMerge(ctx, key, "$", `{"n":{"b":1}}`).Err())
			require.Equal(t, `[7.5]`, c.JSONNumIncrBy(ctx, key, "$.i", 2.5).Val())
			keys, err := c.JSONObjKeys(ctx, key, "$.n").Result()
			require.NoError(t, err)
			require.Equal(t, []any{[]any{"a", "b"}}, keys)
			objects, err := c.JSONObjLen(ctx, key, "$.n").Result()
			require.NoError(t, err)
			require.Equal(t, int64(2), *objects[0])
			texts, err := c.JSONStrAppend(ctx, key, "$.s", `"y"`).Result()
			require.NoError(t, err)
			require.Equal(t, int64(2), *texts[0])
			require.Equal(t, int64(2), *c.JSONStrLen(ctx, key, "$.s").Val()[0])
			require.Equal(t, int64(0), *c.JSONToggle(ctx, key, "$.b").Val()[0])
			require.NoError(t, c.JSONType(ctx, key, "$.s").Err())
			require.NoError(t, c.JSONMSetArgs(ctx, []redis.JSONSetArgs{{Key: key + "2", Path: "$", Value: `{"s":1}`}}).Err())
			require.Equal(t, []any{`["xy"]`, `[1]`}, c.JSONMGet(ctx, "$.s", key, key+"2").Val())
			require.Equal(t, `{"a":[1,2],"s":"xy","n":{"a":[],"b":1},"b":false,"i":7.5}`, c.JSONGet(ctx, key, ".").Val())
			require.Equal(t, int64(1), c.JSONDel(ctx, key, "$.n").Val())
			require.Equal(t, int64(1), c.JSONForget(ctx, key, "$").Val())
			require.Equal(t, int64(0), c.Exists(ctx, key).Val())
			require.NoError(t, c.Del(ctx, key+"2").Err())
		})
	}
}
