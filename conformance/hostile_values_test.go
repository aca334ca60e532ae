package conformance

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/server"
)

// refused are commands that request too much, each with the beginning of the error.
var refused = [][2]string{
	{`BF.RESERVE k nan 100`, "ERR bad error rate"},
	{`BF.RESERVE k 0.01 4611686018427387904`, "ERR capacity must be in the range"},
	{`BF.RESERVE k 0.01 -1`, "ERR capacity must be in the range"},
	{`BF.RESERVE k 0.01 100 EXPANSION 9223372036854775807`, ""},
	{`BF.INSERT k CAPACITY 4611686018427387904 ITEMS a`, ""},
	{`BF.LOADCHUNK k 1 garbage`, ""},
	{`BF.LOADCHUNK k 9223372036854775807 garbage`, ""},
	{`CF.RESERVE k 4611686018427387904`, ""},
	{`CF.RESERVE k 9223372036854775808`, ""},
	{`CF.RESERVE k 100 BUCKETSIZE 9223372036854775807`, ""},
	{`CF.RESERVE k 100 MAXITERATIONS 9223372036854775807`, ""},
	{`CF.RESERVE k 100 EXPANSION 9223372036854775807`, ""},
	{`CF.INSERT k CAPACITY 4611686018427387904 ITEMS a`, ""},
	{`CF.LOADCHUNK k 1 garbage`, ""},
	{`CMS.INITBYDIM k 9223372036854775807 9223372036854775807`, ""},
	{`CMS.INITBYDIM k 4611686018427387904 2`, ""},
	{`CMS.INITBYDIM k 0 5`, ""},
	{`CMS.INITBYDIM k -1 5`, ""},
	{`CMS.INITBYPROB k 1e-300 1e-300`, ""},
	{`CMS.INITBYPROB k nan 0.01`, ""},
	{`CMS.INITBYPROB k inf 0.01`, ""},
	{`CMS.INCRBY counts a -1`, ""},
	{`CMS.INCRBY counts a 9223372036854775808`, ""},
	{`CMS.MERGE counts 9223372036854775807 counts`, ""},
	{`CMS.MERGE counts -1 counts`, ""},
	{`TOPK.RESERVE k 9223372036854775807`, ""},
	{`TOPK.RESERVE k 5 9223372036854775807 7 0.9`, ""},
	{`TOPK.RESERVE k 5 100 9223372036854775807 0.9`, ""},
	{`TOPK.RESERVE k 5 100 7 nan`, ""},
	{`TOPK.RESERVE k 5 100 7 -1`, ""},
	{`TOPK.INCRBY top a 9223372036854775807`, ""},
	{`TOPK.INCRBY top a -1`, ""},
	{`TDIGEST.CREATE k COMPRESSION 9223372036854775807`, ""},
	{`TDIGEST.CREATE k COMPRESSION 0`, ""},
	{`TDIGEST.ADD digest nan`, ""},
	{`TDIGEST.ADD digest inf`, ""},
	{`TDIGEST.MERGE k 9223372036854775807 digest`, ""},
	{`TDIGEST.MERGE k 1 digest COMPRESSION 9223372036854775807`, ""},
	{`TDIGEST.QUANTILE digest nan`, ""},
	{`TDIGEST.QUANTILE digest 1e308`, ""},
	{`TDIGEST.BYRANK digest -1`, ""},
	{`TDIGEST.TRIMMED_MEAN digest nan 1`, ""},
	{`TS.CREATE k RETENTION -1`, ""},
	{`TS.CREATE k CHUNK_SIZE 9223372036854775807`, ""},
	{`TS.CREATE k CHUNK_SIZE 0`, ""},
	{`TS.CREATE k IGNORE -1 -1`, ""},
	{`TS.ADD series 9223372036854775808 1`, ""},
	{`TS.ADD series -1 1`, ""},
	{`TS.ADD series 1 inf`, ""},
	{`TS.ADD series 1 1e999`, ""},
	{`TS.INCRBY series 1e999 TIMESTAMP x`, ""},
	{`TS.RANGE series - + AGGREGATION sum 0`, ""},
	{`TS.RANGE series - + AGGREGATION sum -1`, ""},
	{`TS.RANGE series - + AGGREGATION sum 9223372036854775808`, ""},
	{`TS.RANGE series - + AGGREGATION sum 1 EMPTY`, "ERR TSDB: too many empty buckets"},
	{`TS.RANGE series - + COUNT -1`, ""},
	{`TS.RANGE series - + FILTER_BY_VALUE nan nan`, ""},
	{`TS.CREATERULE series other AGGREGATION sum 0`, ""},
	{`TS.CREATERULE series other AGGREGATION sum 9223372036854775808`, ""},
	{`TS.MRANGE - + FILTER a!=b`, ""},
	{`TS.MRANGE - + FILTER`, ""},
	{`JSON.SET k $ nan`, ""},
	{`JSON.SET k $ 1e999`, ""},
	{`JSON.NUMINCRBY doc $.n 1e999`, ""},
	{`JSON.NUMINCRBY doc $.n nan`, ""},
	{`JSON.NUMMULTBY doc $.n 1e308`, ""},
	{`JSON.NUMPOWBY doc $.n 1e308`, ""},
	{`JSON.SET doc $.n 1 FPHA FP1`, ""},
	{`JSON.GET doc $[`, ""},
	{`RESTORE k 0 garbage`, ""},
}

// TestHostileValuesHurtNobody requests values of the types of Redis 8 for which no memory or time suffices. Each
// request is refused, and other clients notice nothing.
func TestHostileValuesHurtNobody(t *testing.T) {
	dial := startServer(t, server.Options{})
	connect := func() *transcript.Conn {
		nc, err := dial()
		require.NoError(t, err)
		t.Cleanup(func() { nc.Close() })
		return transcript.NewConn(nc)
	}
	ask := func(c *transcript.Conn, args ...string) transcript.Value {
		c.Append(args...)
		require.NoError(t, c.Flush())
		v, err := c.Read(time.Minute)
		require.NoError(t, err)
		return v
	}
	c, other := connect(), connect()
	asked := 0
	bystander := func() {
		asked++
		require.Equal(t, "OK", ask(other, "SET", "bystander", fmt.Sprint(asked)).Text)
		require.Equal(t, fmt.Sprint(asked), ask(other, "GET", "bystander").Text)
	}
	for _, line := range []string{"CMS.INITBYDIM counts 100 5", "TOPK.RESERVE top 5", "TDIGEST.CREATE digest", "TDIGEST.ADD digest 1 2",
		"TS.CREATE series", "TS.CREATE other", "TS.ADD series 0 1", "TS.ADD series 9223372036854775807 1",
		`JSON.SET doc $ {"n":1e308}`} {
		require.NotEqual(t, transcript.Error, ask(c, strings.Fields(line)...).Kind, line)
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, r := range refused {
		reply := ask(c, strings.Fields(r[0])...)
		if len(reply.Elems) == 1 { // that of TOPK.INCRBY has a reply for each item
			reply = reply.Elems[0]
		}
		require.Equal(t, transcript.Error, reply.Kind, "%s gave %s", r[0], reply)
		require.True(t, strings.HasPrefix(reply.Text, r[1]), "%s gave %s", r[0], reply)
		bystander()
	}
	require.Equal(t, "0", ask(c, "EXISTS", "k").Text)

	// A tree of 10,000 leaves, and paths of which each step selects all descendants.
	tree := "1"
	for range 4 {
		tree = "[" + strings.Repeat(tree+",", 9) + tree + "]"
	}
	require.Equal(t, "OK", ask(c, "JSON.SET", "tree", "$", tree).Text)
	for _, path := range []string{"$..*..*..*..*", "$" + strings.Repeat("..*", 500), "$" + strings.Repeat("..[0,0,0,0]", 100),
		"$..[?(@..*..*..* == 2)]..[?($..*..* == 2)]"} {
		ask(c, "JSON.TYPE", "tree", path) // it selects few values
		bystander()
	}
	for path, limit := range map[string]string{"$" + strings.Repeat("[*,*,*,*,*,*,*,*]", 100): "too many steps",
		"$" + strings.Repeat("[?(@", 500): "nesting too deep", "$" + strings.Repeat(".a", 2000): "at most 1024 steps"} {
		reply := ask(c, "JSON.DEL", "tree", path)
		require.Equal(t, transcript.Error, reply.Kind, "%.40s gave %.100s", path, reply)
		require.Contains(t, reply.Text, limit)
		bystander()
	}
	require.Equal(t, tree, ask(c, "JSON.GET", "tree", ".").Text)
	require.Equal(t, transcript.Error, ask(c, "JSON.SET", "k", "$", strings.Repeat("[", 1<<20)).Kind)
	ask(c, "DEL", "tree")
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(64<<20))
	bystander()
}
