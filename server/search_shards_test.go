package server

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
)

// patient gives queries time: after the usual 500 ms a busy machine has only a part of the results.
const patient = "search-timeout=60000"

// searchShards starts shards of one server each that share the slots, and a client of each.
func searchShards(t *testing.T, n int, settings ...string) (list []*testGroup, clients []*testClient) {
	list = startShards(t, n, 1, append(settings, patient)...)
	share := cluster.Slots / n
	for i, g := range list[1:] {
		slots := fmt.Sprint((i+1)*share, " ", (i+2)*share-1)
		if i == n-2 {
			slots = fmt.Sprint((i+1)*share, " ", cluster.Slots-1)
		}
		c := g.leader().client()
		c.waitForTask(c.importSlots(slots), "completed")
	}
	for _, g := range list {
		c := g.leader().client()
		c.waitFor("CLUSTER INFO", "cluster_slots_assigned:16384")
		c.waitFor("CLUSTER INFO", fmt.Sprint("cluster_size:", n))
		clients = append(clients, c)
	}
	return list, clients
}

// route sends a command to the shard of its key, which is the second word.
func route(t *testing.T, clients []*testClient, command string) {
	t.Helper()
	for _, c := range clients {
		reply := c.do(command)
		if strings.HasPrefix(reply, "-MOVED") {
			continue
		}
		require.NotContains(t, reply, "-", command)
		return
	}
	require.Fail(t, "nobody has the key", command)
}

func TestAnyShardAnswersForAll(t *testing.T) {
	t.Parallel()
	_, clients := searchShards(t, 3)
	g := startGroup(t, 1, patient)
	single := g.settled().client()
	r := rand.New(rand.NewPCG(1, 2))
	create := "FT.CREATE x PREFIX 1 d: SCORE_FIELD s SCHEMA t TEXT n NUMERIC SORTABLE u NUMERIC SORTABLE g TAG v VECTOR FLAT 6 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2"
	require.Equal(t, "+OK", clients[1].do(create))
	require.Equal(t, "+OK", single.do(create))
	words := []string{"red", "green", "blue", "black", "white", "grey"}
	for i := range 300 {
		vector := make([]byte, 8)
		for j := range vector {
			vector[j] = byte('A' + r.IntN(26))
		}
		set := fmt.Sprintf("HSET d:%d t %s n %d u %d g %s s 0.%03d v %s", i, words[r.IntN(6)], r.IntN(20), (i*7919)%1000, words[r.IntN(6)],
			(i*7907)%1000, vector)
		route(t, clients, set)
		require.NotContains(t, single.do(set), "-")
	}
	route(t, clients, "HSET d:300 t unusual n 1 u 2000 g rare")
	require.NotContains(t, single.do("HSET d:300 t unusual n 1 u 2000 g rare"), "-")
	for _, query := range []string{
		"FT.TAGVALS x g",
		"FT.SPELLCHECK x rad",
		"FT.SPELLCHECK x rad DISTANCE 2 FULLSCOREINFO",
		"FT.SPELLCHECK x unusua DISTANCE 2",
		"FT.SPELLCHECK x red|unusual FULLSCOREINFO",
		"FT.MGET x d:1 d:2 nothing d:3 d:300",
		"FT.GET x d:7",
		"FT.TAGVALS x t",
		"FT.SEARCH x * LIMIT 0 0",
		"FT.SEARCH x * SORTBY u LIMIT 0 10",
		"FT.SEARCH x red SORTBY u DESC LIMIT 5 10 RETURN 2 n u",
		"FT.SEARCH x @n:[3,7] SORTBY u NOCONTENT LIMIT 0 100",
		"FT.SEARCH x @g:{red} SORTBY u WITHSORTKEYS NOCONTENT",
		"FT.SEARCH x nothing",
		"FT.SEARCH x re* SORTBY u LIMIT 0 3 HIGHLIGHT",
		"FT.AGGREGATE x * GROUPBY 1 @g REDUCE COUNT 0 AS c REDUCE SUM 1 @n AS s REDUCE AVG 1 @n AS a SORTBY 2 @g ASC",
		"FT.AGGREGATE x red LOAD 1 @u APPLY @u+1 AS v SORTBY 2 @v DESC LIMIT 3 7",
		"FT.AGGREGATE x @n:[2,9] LOAD 2 @__key @t SORTBY 2 @u ASC LIMIT 0 20",
		"FT.AGGREGATE x * GROUPBY 0 REDUCE COUNT_DISTINCT 1 @g AS d REDUCE MAX 1 @u AS m",
		"FT.AGGREGATE x * FILTER @n>10 GROUPBY 1 @n REDUCE COUNT 0 AS c SORTBY 2 @n ASC LIMIT 2 3",
		"FT.AGGREGATE y *",
		"FT.AGGREGATE x * GROUPBY 1 @nope",
		"FT.SEARCH y *",
		"FT.SEARCH x @q:[1",
	} {
		want := single.do(query)
		for _, c := range clients {
			require.Equal(t, want, c.do(query), query)
		}
	}
	// Commands with spaces in arguments, and times in replies.
	query := func(c *testClient, args ...string) string {
		v, err := c.Do(testTimeout, args...)
		require.NoError(t, err)
		text, _, _ := strings.Cut(v.String(), "execution_time")
		return text
	}
	for _, args := range [][]string{
		{"FT.SEARCH", "x", "red|blue", "SCORER", "DOCSCORE", "WITHSCORES", "RETURN", "1", "t"},
		{"FT.SEARCH", "x", "*=>[KNN 12 @v $q AS far]", "PARAMS", "2", "q", "ABCDEFGH", "SORTBY", "far", "RETURN", "2", "far", "u", "DIALECT", "2", "LIMIT", "3", "20"},
		{"FT.SEARCH", "x", "(@n:[3 15])=>[KNN 12 @v $q AS far]", "PARAMS", "2", "q", "ABCDEFGH", "SORTBY", "u", "NOCONTENT", "DIALECT", "2", "LIMIT", "0", "20"},
		{"FT.AGGREGATE", "x", "*=>[KNN 25 @v $q AS far]", "PARAMS", "2", "q", "ABCDEFGH", "LOAD", "1", "@n", "GROUPBY", "1", "@n", "REDUCE", "COUNT", "0", "AS", "c", "SORTBY", "2", "@n", "ASC", "DIALECT", "2"},
		{"FT.HYBRID", "x", "SEARCH", "red|blue", "SCORER", "DOCSCORE", "VSIM", "@v", "$q", "PARAMS", "2", "q", "ABCDEFGH", "LOAD", "3", "@u", "@t", "@__score",
			"SORTBY", "2", "@u", "ASC", "LIMIT", "0", "50"},
		{"FT.HYBRID", "x", "SEARCH", "red", "SCORER", "DOCSCORE", "YIELD_SCORE_AS", "ts", "VSIM", "@v", "$q", "KNN", "4", "K", "7", "YIELD_SCORE_AS", "vs",
			"COMBINE", "LINEAR", "4", "ALPHA", "0.5", "BETA", "0.5", "PARAMS", "2", "q", "ABCDEFGH", "LOAD", "1", "@__key"},
		{"FT.HYBRID", "x", "SEARCH", "red|blue", "SCORER", "DOCSCORE", "VSIM", "@v", "$q", "PARAMS", "2", "q", "ABCDEFGH", "GROUPBY", "1", "@g",
			"REDUCE", "COUNT", "0", "AS", "c", "SORTBY", "2", "@g", "ASC"},
	} {
		want := query(single, args...)
		require.NotContains(t, want, "ERR", args)
		for _, c := range clients {
			require.Equal(t, want, query(c, args...), args)
		}
	}
	for _, c := range clients {
		require.Contains(t, c.do("FT.INFO x"), `+num_docs 301 `)
		require.Contains(t, c.do("FT.INFO x"), `+percent_indexed "1" `)
	}

	// Each shard reports its measurements.
	for _, args := range []string{"SEARCH QUERY red SORTBY u NOCONTENT", "AGGREGATE QUERY * GROUPBY 1 @g REDUCE COUNT 0 AS c SORTBY 2 @g ASC",
		"HYBRID QUERY SEARCH red SCORER DOCSCORE VSIM @v $q PARAMS 2 q ABCDEFGH SORTBY 2 @__key ASC"} {
		one, err := single.Do(testTimeout, strings.Fields("FT.PROFILE x "+args)...)
		require.NoError(t, err)
		for _, c := range clients {
			v, err := c.Do(testTimeout, strings.Fields("FT.PROFILE x "+args)...)
			require.NoError(t, err)
			require.Equal(t, one.Elems[0], v.Elems[0], args)
			require.Len(t, v.Elems, len(one.Elems), args)
			if strings.HasPrefix(args, "HYBRID") {
				require.Equal(t, one.Elems[3], v.Elems[3], args)
			}
			measured := v.Elems[len(v.Elems)-1].Elems
			require.Len(t, measured[1].Elems, 3)
			require.Equal(t, 3, strings.Count(fmt.Sprint(measured[1]), "Total profile time")/max(1, strings.Count(args, "HYBRID")*2), args)
		}
	}

	// A cursor reads the parts of all shards.
	for _, c := range clients {
		v, err := c.Do(testTimeout, strings.Fields("FT.AGGREGATE x * LOAD 1 @u WITHCURSOR COUNT 40")...)
		require.NoError(t, err)
		read := map[string]bool{}
		for reads := 1; ; reads++ {
			for _, row := range v.Elems[0].Elems[1:] {
				require.False(t, read[row.Elems[1].Text])
				read[row.Elems[1].Text] = true
			}
			id := v.Elems[1].Text
			if id == "0" {
				break
			}
			require.Less(t, reads, 10)
			v, err = c.Do(testTimeout, "FT.CURSOR", "READ", "x", id)
			require.NoError(t, err)
		}
		require.Len(t, read, 301)
		v, err = c.Do(testTimeout, strings.Fields("FT.AGGREGATE x * LOAD 1 @u WITHCURSOR COUNT 40")...)
		require.NoError(t, err)
		require.Equal(t, "+OK", c.do("FT.CURSOR DEL x "+v.Elems[1].Text))
		require.Contains(t, c.do("FT.CURSOR READ x "+v.Elems[1].Text), "Cursor not found")
	}

	// Pages do not overlap, and are the same at all servers.
	seen := map[string]bool{}
	for at := 0; at <= 300; at += 20 {
		query := fmt.Sprintf("FT.SEARCH x * NOCONTENT LIMIT %d 20", at)
		want := clients[0].do(query)
		for _, c := range clients {
			require.Equal(t, want, c.do(query), query)
		}
		for _, key := range clients[0].list(query)[1:] {
			require.False(t, seen[key], key)
			seen[key] = true
		}
	}
	require.Len(t, seen, 301)

	require.Equal(t, "+OK", clients[0].do("MULTI"))
	require.Equal(t, "+QUEUED", clients[0].do("FT.SEARCH x *"))
	require.Contains(t, clients[0].do("EXEC"), "Cannot perform `FT.SEARCH`: Cannot block")
	require.Contains(t, clients[0].do("EVAL return(redis.call('FT.SEARCH','x','*')) 0"), "Cannot perform `FT.SEARCH`: Cannot block")
}

// Definitions reach all shards, also those that were down, and dropped indexes stay dropped.
func TestDefinitionsReachAllShards(t *testing.T) {
	t.Parallel()
	list, clients := searchShards(t, 3)
	require.Equal(t, "+OK", clients[0].do("FT.CREATE a PREFIX 1 a: SCHEMA t TEXT"))
	require.Equal(t, "+OK", clients[1].do("FT.ALTER a SCHEMA ADD n NUMERIC SORTABLE"))
	require.Equal(t, "+OK", clients[2].do("FT.ALIASADD other a"))
	require.Equal(t, "+OK", clients[0].do("FT.SYNUPDATE a group one two"))
	require.Equal(t, "2", clients[1].do("FT.DICTADD d x y"))
	require.Equal(t, "1", clients[2].do("FT.DICTDEL d y"))
	for _, c := range clients {
		require.Equal(t, `["a"]`, strings.ReplaceAll(c.do("FT._LIST"), "+a", `"a"`))
		require.Contains(t, c.do("FT.INFO other"), "NUMERIC")
		require.Contains(t, c.do("FT.SYNDUMP a"), "group")
		require.Equal(t, `["x"]`, c.do("FT.DICTDUMP d"))
	}
	require.Equal(t, "-SEARCH_INDEX_EXISTS Index already exists", clients[2].do("FT.CREATE a SCHEMA t TEXT"))

	down := list[2].nodes[0]
	down.kill()
	reply := clients[0].do("FT.CREATE b PREFIX 1 b: SCHEMA t TEXT")
	require.Contains(t, reply, "-CLUSTERDOWN The definition is changed here, and shard")
	require.Contains(t, clients[0].do("FT.SEARCH a *"), "-CLUSTERDOWN Shard")
	require.Contains(t, clients[0].do("FT.DROPINDEX a"), "-CLUSTERDOWN")
	down.start()
	list[2].leader()
	clients[2] = down.client()
	for _, c := range clients {
		require.Eventually(t, func() bool { return strings.Trim(c.do("FT._LIST"), "[]+\"") == "b" }, testTimeout, 5*time.Millisecond)
		c.waitUntil("FT.SEARCH b *", "[0]")
		require.Contains(t, c.do("FT.SEARCH other *"), "Index not found: other")
	}

	// A restart keeps them.
	require.Equal(t, "+OK", clients[1].do("SAVE"))
	n := list[1].nodes[0]
	n.kill()
	n.start()
	list[1].leader()
	n.client().waitUntil("FT.SEARCH b *", "[0]")
	require.Equal(t, clients[0].do("FT._LIST"), n.client().do("FT._LIST"))
}

// While slots move, each query finds each document once.
func TestQueriesAreExactWhileSlotsMove(t *testing.T) {
	t.Parallel()
	list, clients := searchShards(t, 2)
	require.Equal(t, "+OK", clients[0].do("FT.CREATE x PREFIX 1 d: SCHEMA n NUMERIC SORTABLE v VECTOR FLAT 6 TYPE FLOAT32 DIM 1 DISTANCE_METRIC L2"))
	const docs = 400
	for i := range docs {
		route(t, clients, fmt.Sprintf("HSET d:%d n %d v abc%c", i, i%10, 'A'+i%26))
	}
	knn := []string{"FT.SEARCH", "x", "*=>[KNN 30 @v $q AS far]", "PARAMS", "2", "q", "abcA", "SORTBY", "n", "NOCONTENT", "LIMIT", "0", "100", "DIALECT", "2"}
	wants := []struct {
		query []string
		items int
	}{
		{strings.Fields("FT.SEARCH x * LIMIT 0 0"), 1},
		{strings.Fields("FT.SEARCH x @n:[3,3] NOCONTENT LIMIT 0 1000"), 1 + docs/10},
		{strings.Fields("FT.SEARCH x * RETURN 1 n LIMIT 0 1000"), 1 + 2*docs},
		{knn, 31},
		{strings.Fields("FT.AGGREGATE x * LOAD 1 @n GROUPBY 1 @n REDUCE COUNT 0 AS c FILTER @c==40"), 11},
	}
	total := []int{docs, docs / 10, docs, 30, 10}
	done := make(chan struct{})
	var querying sync.WaitGroup
	var queries atomic.Int64
	for _, g := range list {
		c := g.leader().client()
		querying.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				w := wants[i%len(wants)]
				v, err := c.Do(testTimeout, w.query...)
				if err != nil || len(v.Elems) != w.items || v.Elems[0].Text != fmt.Sprint(total[i%len(wants)]) {
					t.Errorf("%v after %d: %d items, %v, %v", w.query, queries.Load(), len(v.Elems), err, v.Text)
					return
				}
				queries.Add(1)
			}
		})
	}
	for range 3 {
		for _, c := range []*testClient{clients[1], clients[0]} {
			c.waitForTask(c.importSlots("0 3000 3001 6000"), "completed")
		}
	}
	close(done)
	querying.Wait()
	require.Greater(t, queries.Load(), int64(20))
}

// A shard answers again once it has another leader, and followers ask the leaders of the other shards too.
func TestQueriesGoOnWhenALeaderFails(t *testing.T) {
	t.Parallel()
	list := startShards(t, 2, 3, patient)
	a, b := list[0].leader(), list[1].leader()
	ca, cb := a.client(), b.client()
	cb.waitForTask(cb.importSlots("8192 16383"), "completed")
	ca.waitFor("CLUSTER INFO", "cluster_size:2")
	require.Equal(t, "+OK", ca.do("FT.CREATE x PREFIX 1 d: SCHEMA n NUMERIC SORTABLE"))
	for i := range 50 {
		route(t, []*testClient{ca, cb}, fmt.Sprintf("HSET d:%d n %d", i, i))
	}
	want := "[50]"
	for _, g := range list {
		for _, f := range g.followers() {
			f.client().waitUntil("FT.SEARCH x * LIMIT 0 0", want)
		}
	}
	require.Contains(t, list[1].followers()[0].client().do("FT.CREATE y SCHEMA t TEXT"), "READONLY")
	b.kill()
	for got := ""; got != want; { // the query waits for the next leader, but on a busy machine an election may take longer
		if got = ca.do("FT.SEARCH x * LIMIT 0 0"); got != want {
			require.Contains(t, got, "CLUSTERDOWN ")
		}
	}
	c := list[1].leader().client()
	c.waitUntil("FT.SEARCH x * LIMIT 0 0", want)
	require.Equal(t, "+OK", c.do("FT.DROPINDEX x DD"))
	require.Contains(t, ca.do("FT.SEARCH x *"), "Index not found: x")
	require.Equal(t, "0", ca.do("DBSIZE"))
}

// FLUSHALL on one shard drops the indexes of all, as FT.DROPINDEX does; the keys of the others stay.
func TestFlushedIndexesDoNotComeBack(t *testing.T) {
	t.Parallel()
	_, clients := searchShards(t, 2)
	require.Equal(t, "+OK", clients[0].do("FT.CREATE x SCHEMA t TEXT"))
	require.Equal(t, "+OK", clients[1].do("FLUSHALL"))
	for _, c := range clients {
		c.waitUntil("FT._LIST", "[]")
	}
	require.Equal(t, "+OK", clients[0].do("FT.CREATE x SCHEMA n NUMERIC"))
	for _, c := range clients {
		require.Contains(t, c.do("FT.INFO x"), "NUMERIC")
	}
}

// A TEMPORARY index stays while it is used on any shard.
func TestTemporaryIndexesAreUsedOnAnyShard(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	_, clients := searchShards(t, 2)
	key := "d:{" + cluster.TagOf(1) + "}"
	for used := false; !used; { // again, if the machine was so busy that the index was not used for long
		require.Contains(t, []string{"+OK", "-SEARCH_INDEX_EXISTS Index already exists"},
			clients[0].do("FT.CREATE x PREFIX 1 d: TEMPORARY 1 SCHEMA n NUMERIC"))
		used = true
		last := time.Now()
		for until := last.Add(2500 * time.Millisecond); last.Before(until); time.Sleep(10 * time.Millisecond) {
			require.NotContains(t, clients[0].do("HSET "+key+" n 1"), "-")
			used = used && time.Since(last) < 500*time.Millisecond
			last = time.Now()
		}
		lists := []string{clients[0].do("FT._LIST"), clients[1].do("FT._LIST")}
		if used = used && time.Since(last) < 500*time.Millisecond; used {
			for _, list := range lists {
				require.Contains(t, list, "x")
			}
		}
	}
	for _, c := range clients {
		c.waitUntil("FT._LIST", "[]")
	}
	clients[0].waitUntil("EXISTS "+key, "0")
}

// With cluster-require-full-coverage no, the shards that are up answer.
func TestShardsThatAreDownMayBeLeftOut(t *testing.T) {
	t.Parallel()
	list, clients := searchShards(t, 2, "cluster-require-full-coverage=no")
	require.Equal(t, "+OK", clients[0].do("FT.CREATE x PREFIX 1 d: SCHEMA n NUMERIC"))
	for i := range 20 {
		route(t, clients, fmt.Sprintf("HSET d:%d n 1", i))
	}
	require.Equal(t, "[20]", clients[0].do("FT.SEARCH x * LIMIT 0 0"))
	list[1].nodes[0].kill()
	reply := clients[0].do("FT.SEARCH x * LIMIT 0 0")
	require.NotEqual(t, "[20]", reply)
	require.NotContains(t, reply, "-")
	clients[0].do("HELLO 3")
	require.Contains(t, clients[0].do("FT.SEARCH x * LIMIT 0 0"), "Some shards did not answer: the results are incomplete")
	require.Contains(t, clients[0].do("FT.AGGREGATE x * GROUPBY 0 REDUCE COUNT 0 AS c"), "Some shards did not answer: the results are incomplete")
}
