package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/server"
)

func TestClusterModeIsThatOfANodeWithAllSlots(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, append(settings, "cluster-enabled", "yes")...)
		transcript.Run(t, s.Dial, "testdata/cluster.txt")
	})
}

func TestWithoutClusterModeItsCommandsAreRefused(t *testing.T) {
	c := servertest.Start(t, server.Options{}).Connect()
	for _, command := range []string{"CLUSTER INFO", "CLUSTER SLOTS", "CLUSTER HELP", "CLUSTER MYSHARDID",
		"CLUSTER KEYSLOT a", "CLUSTER RESET", "READONLY",
		"READWRITE", "ASKING"} {
		require.Equal(t, "-ERR This instance has cluster support disabled", c.Line(command), command)
	}
	require.Equal(t, "-ERR unknown subcommand 'NOSUCH'. Try CLUSTER HELP.", c.Line("CLUSTER NOSUCH"))
	require.Equal(t, "+OK", c.Line("MSET a 1 b 2"))
	require.Equal(t, "+OK", c.Line("SELECT 1"))
	require.Contains(t, c.Line("INFO server cluster"), "\r\ncluster_enabled:0\r\n")
	require.Contains(t, c.Line("INFO server cluster"), "\r\nredis_mode:standalone\r\n")
	require.Contains(t, c.Line("HELLO"), `"mode" "standalone"`)
}

func TestNothingChangesTheClusterOfOneNode(t *testing.T) {
	srv := servertest.Start(t, server.Options{}, "cluster-enabled", "yes")
	c := srv.Connect()
	id := c.Line("CLUSTER MYID")
	require.Len(t, id, 40)
	require.Len(t, c.Line("CLUSTER MYSHARDID"), 40)
	before := c.Line("CLUSTER NODES")
	for _, command := range []string{"MEET 127.0.0.1 1", "SET-CONFIG-EPOCH 1", "RESET", "RESET HARD"} {
		name, _, _ := strings.Cut(command, " ")
		require.Equal(t, "-ERR CLUSTER "+name+" is not supported: this server is always a cluster of one node", c.Line("CLUSTER "+command))
	}
	for command, want := range map[string]string{
		"FORGET " + id:                "-ERR I tried hard but I can't forget myself...",
		"REPLICATE " + id:             "-ERR Can't replicate myself",
		"REPLICAS " + id:              "[]",
		"SLAVES " + id:                "[]",
		"COUNT-FAILURE-REPORTS " + id: "0",
		"BUMPEPOCH":                   "+STILL 0",
		"SAVECONFIG":                  "+OK",
		"SETSLOT 1 NODE " + id:        "+OK",
		"SETSLOT 1 MIGRATING " + id:   "+OK",
		"SETSLOT 1 IMPORTING " + id:   "-ERR I'm already the owner of hash slot 1",
	} {
		require.Equal(t, want, c.Line("CLUSTER "+command), command)
	}
	require.Equal(t, before, c.Line("CLUSTER NODES"))
	require.Contains(t, c.Line("CLUSTER INFO"), "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:16384\r\n")
	require.Contains(t, c.Line("INFO server cluster"), "\r\ncluster_enabled:1\r\n")
	require.Contains(t, c.Line("INFO server cluster"), "\r\nredis_mode:cluster\r\n")
	require.Contains(t, c.Line("HELLO 3"), `"mode" "cluster"`)
}

// The only node of a cluster gives up slots, and takes them back.
func TestSlotsOfTheOnlyNode(t *testing.T) {
	srv := servertest.Start(t, server.Options{}, "cluster-enabled", "yes")
	c, waits, hears := srv.Connect(), srv.Connect(), srv.Connect()
	id := c.Line("CLUSTER MYID")
	slot := fmt.Sprint(cluster.SlotOf([]byte("a")))
	const down = "-CLUSTERDOWN Hash slot not served"
	require.Equal(t, "+OK", c.Line("SET a 1"))
	require.Equal(t, "+OK", c.Line("SET b 2"))
	require.Contains(t, hears.Line("SSUBSCRIBE {a}news"), "ssubscribe")
	waits.Send("BLPOP", "{a}list", "0")
	c.WaitFor("INFO clients", "blocked_clients:1")

	c.Replies(
		"CLUSTER DELSLOTS "+slot, "+OK",
		"CLUSTER DELSLOTS "+slot, "-ERR Slot "+slot+" is already unassigned",
		"CLUSTER DELSLOTSRANGE 0 1 "+slot+" "+slot, "-ERR Slot "+slot+" is already unassigned",
		"GET a", down, "SET a 2", down, "EVAL return(1) 1 a", down, "GET b", "2",
		"CLUSTER DELSLOTSRANGE 0 1 10 12", "+OK",
		"CLUSTER ADDSLOTS 0 2", "-ERR Slot 2 is already busy",
		"CLUSTER ADDSLOTSRANGE 0 0 1 2", "-ERR Slot 2 is already busy",
		"CLUSTER ADDSLOTS 9 8", "-ERR Slot 9 is already busy",
		"CLUSTER ADDSLOTS 0 0", "-ERR Slot 0 specified multiple times",
		"CLUSTER ADDSLOTS 0 8 0", "-ERR Slot 8 is already busy",
		"CLUSTER ADDSLOTS 0 0 x", "-ERR Invalid or out of range slot",
		"CLUSTER ADDSLOTSRANGE 0 2 x y", "-ERR Slot 2 is already busy",
		"CLUSTER ADDSLOTSRANGE 0 1 x y", "-ERR Invalid or out of range slot",
		"CLUSTER ADDSLOTSRANGE 0 1 1 2", "-ERR Slot 1 specified multiple times",
		"CLUSTER ADDSLOTSRANGE 0 2 1", "-ERR wrong number of arguments for 'cluster|addslotsrange' command",
		"CLUSTER DELSLOTS 1 0", "-ERR Slot 1 is already unassigned",
		"CLUSTER DELSLOTS 0 0", "-ERR Slot 0 is already unassigned",
		"CLUSTER DELSLOTS 8 8 0", "-ERR Slot 8 specified multiple times",
		"CLUSTER DELSLOTS 0 x", "-ERR Invalid or out of range slot",
		"CLUSTER DELSLOTSRANGE 2 3 1 0", "-ERR start slot number 1 is greater than end slot number 0",
		"CLUSTER DELSLOTSRANGE 1 2 1 0", "-ERR Slot 1 is already unassigned",
		"CLUSTER DELSLOTSRANGE 8 9 8 8", "-ERR Slot 8 specified multiple times",
		"TRIMSLOTS RANGES 2 10 12 8 8", "-ERR the slots are served by this node",
		"TRIMSLOTS RANGES 1 10 12", "-ERR TRIMSLOTS is not supported: "+
			"keys of slots that have moved are removed without it, and others stay",
		"CLUSTER SETSLOT 0 MIGRATING "+id, "-ERR I'm not the owner of hash slot 0",
		"CLUSTER SETSLOT 0 IMPORTING "+id, "+OK",
		"CLUSTER SETSLOT 0 IMPORTING x", "-ERR I don't know about node x",
	)
	require.Equal(t, down, waits.Next())
	require.Contains(t, hears.Next(), "sunsubscribe")
	require.Contains(t, c.Line("CLUSTER INFO"), "cluster_state:fail\r\ncluster_slots_assigned:16378\r\n")
	require.Regexp(t, "^\\[\\[2 9 .*\\] \\[13 "+fmt.Sprint(cluster.SlotOf([]byte("a"))-1)+" ", c.Line("CLUSTER SLOTS"))

	require.Equal(t, "+OK", c.Line("CLUSTER SETSLOT "+slot+" NODE "+id))
	require.Equal(t, "1", c.Line("GET a"))
	require.Equal(t, "+OK", c.Line("CLUSTER ADDSLOTS 0 1"))
	require.Equal(t, "+OK", c.Line("CLUSTER ADDSLOTSRANGE 10 12"))
	require.Contains(t, c.Line("CLUSTER INFO"), "cluster_state:ok\r\ncluster_slots_assigned:16384\r\n")

	c.Replies(
		"CLUSTER FLUSHSLOTS", "-ERR DB must be empty to perform CLUSTER FLUSHSLOTS.",
		"FLUSHALL", "+OK",
		"CLUSTER FLUSHSLOTS", "+OK",
		"CLUSTER FLUSHSLOTS", "+OK",
		"SET a 1", down,
		"CLUSTER ADDSLOTSRANGE 0 16383", "+OK",
		"SET a 1", "+OK",
	)
}

// No command may find its slot served and begin to wait for keys after DELSLOTS has answered those who wait.
func TestSlotsAreGivenUpUnderTheGuardOverEverything(t *testing.T) {
	for _, name := range []string{"delslots", "delslotsrange", "flushslots"} {
		cmd, _ := command.NewTable().Lookup([][]byte{[]byte("cluster"), []byte(name)})
		require.Equal(t, command.LockAll, cmd.Lock, name)
	}
}

func TestNodeIsWhereTheClientHasConnectedToUnlessAnnounced(t *testing.T) {
	srv := servertest.Start(t, server.Options{}, "cluster-enabled", "yes")
	c := srv.Connect()
	id := c.Line("CLUSTER MYID")
	_, port, _ := strings.Cut(srv.Addrs()[0].String(), ":")
	steps := []struct{ set, slots, nodes, shard string }{
		{"cluster-announce-ip ", `"127.0.0.1" PORT "ID" []`, "127.0.0.1:PORT@0",
			`"port" PORT "ip" "127.0.0.1" "endpoint" "127.0.0.1"`},
		{"cluster-announce-hostname a.example", `"127.0.0.1" PORT "ID" ["hostname" "a.example"]`,
			"127.0.0.1:PORT@0,a.example",
			`"port" PORT "ip" "127.0.0.1" "endpoint" "127.0.0.1" "hostname" "a.example"`},
		{"cluster-preferred-endpoint-type hostname", `"a.example" PORT "ID" ["ip" "127.0.0.1"]`, "127.0.0.1:PORT@0,a.example",
			`"port" PORT "ip" "127.0.0.1" "endpoint" "a.example" "hostname" "a.example"`},
		{"cluster-announce-ip 10.0.0.9", `"a.example" PORT "ID" ["ip" "10.0.0.9"]`, "10.0.0.9:PORT@0,a.example",
			`"port" PORT "ip" "10.0.0.9" "endpoint" "a.example" "hostname" "a.example"`},
		{"cluster-preferred-endpoint-type unknown-endpoint", `nil PORT "ID" ["ip" "10.0.0.9" "hostname" "a.example"]`,
			"10.0.0.9:PORT@0,a.example",
			`"port" PORT "ip" "10.0.0.9" "endpoint" "" "hostname" "a.example"`},
		{"cluster-announce-port 7", `nil 7 "ID" ["ip" "10.0.0.9" "hostname" "a.example"]`, "10.0.0.9:7@0,a.example",
			`"port" 7 "ip" "10.0.0.9" "endpoint" "" "hostname" "a.example"`},
		{"cluster-announce-bus-port 17", `nil 7 "ID" ["ip" "10.0.0.9" "hostname" "a.example"]`, "10.0.0.9:7@17,a.example",
			`"port" 7 "ip" "10.0.0.9" "endpoint" "" "hostname" "a.example"`},
		{"cluster-announce-hostname ", `nil 7 "ID" ["ip" "10.0.0.9"]`, "10.0.0.9:7@17",
			`"port" 7 "ip" "10.0.0.9" "endpoint" ""`},
		{"cluster-preferred-endpoint-type hostname", `"?" 7 "ID" ["ip" "10.0.0.9"]`, "10.0.0.9:7@17",
			`"port" 7 "ip" "10.0.0.9" "endpoint" "?"`},
	}
	for _, step := range steps {
		name, value, _ := strings.Cut(step.set, " ")
		require.NoError(t, srv.Config().Set(name, value, true))
		fill := strings.NewReplacer("PORT", port, "ID", id).Replace
		require.Equal(t, fill("[[0 16383 ["+step.slots+"]]]"), c.Line("CLUSTER SLOTS"), step.set)
		require.Equal(t, fill("ID "+step.nodes+" myself,master - 0 0 0 connected 0-16383\n"), c.Line("CLUSTER NODES"), step.set)
		require.Equal(t, fill(`[["slots" [0 16383] "nodes" [["id" "ID" `+step.shard+
			` "role" "master" "replication-offset" 0 "health" "online"]]]]`),
			strings.Join(strings.Fields(c.Line("CLUSTER SHARDS")), " "), step.set)
	}
	for value, want := range map[string]error{"a_b": config.ErrHostnameChars,
		strings.Repeat("a", 256): config.ErrHostnameLength, strings.Repeat("a", 255): nil} {
		require.Equal(t, want, srv.Config().Set("cluster-announce-hostname", value, true), value)
	}
}

func TestOwnCommandsMayUseKeysOfDifferentSlots(t *testing.T) {
	c := servertest.Start(t, server.Options{}, "cluster-enabled", "yes").Connect()
	require.NotContains(t, c.Line("PRESSURE.CREATE q"), "CROSSSLOT")
	require.NotContains(t, c.Line("PRESSURE.PUT q m"), "CROSSSLOT")
	require.Equal(t, "1", c.Line("PRESSURE.LEN q"))
}

func TestCustomCommandsCallNothingThatCrossesSlots(t *testing.T) {
	srv := servertest.Start(t, server.Options{}, "cluster-enabled", "yes")
	require.NoError(t, srv.Sessions().Handle(command.Command{Name: "try", Arity: -2, Flags: command.Write},
		func(c *session.Caller) { c.Writer().Raw(c.Call(c.Args()[1:])) }))
	c := srv.Connect()
	require.Equal(t, "-CROSSSLOT Keys in request don't hash to the same slot", c.Line("TRY MSET a 1 b 2"))
	require.Equal(t, "+OK", c.Line("TRY MSET {a}1 1 {a}2 2"))
	require.Equal(t, "-ERR SELECT is not allowed in cluster mode", c.Line("TRY SELECT 1"))
	_, err := srv.Direct(1)
	require.Error(t, err)
}

func TestClientsOfClustersWork(t *testing.T) {
	srv := servertest.Start(t, server.Options{}, "cluster-enabled", "yes")
	ctx := context.Background()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{srv.Addrs()[0].String()}})
	defer c.Close()
	for i := range 100 {
		require.NoError(t, c.Set(ctx, fmt.Sprint("key", i), i, 0).Err())
	}
	pipe := c.Pipeline()
	var sum int
	for i := range 100 {
		pipe.Get(ctx, fmt.Sprint("key", i))
	}
	replies, err := pipe.Exec(ctx)
	require.NoError(t, err)
	for _, r := range replies {
		n, err := r.(*redis.StringCmd).Int()
		require.NoError(t, err)
		sum += n
	}
	require.Equal(t, 4950, sum)
	require.ErrorContains(t, c.MSet(ctx, "a", 1, "b", 2).Err(), "CROSSSLOT")
	require.NoError(t, c.MSet(ctx, "{a}1", 1, "{a}2", 2).Err())
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Incr(ctx, "{a}1")
		p.Incr(ctx, "{a}2")
		return nil
	})
	require.NoError(t, err)
	//lint:ignore SA1019 Older clients use CLUSTER SLOTS.
	slots, err := c.ClusterSlots(ctx).Result()
	require.NoError(t, err)
	require.Equal(t, srv.Addrs()[0].String(), slots[0].Nodes[0].Addr)
	shards, err := c.ClusterShards(ctx).Result()
	require.NoError(t, err)
	require.Equal(t, []redis.SlotRange{{Start: 0, End: 16383}}, shards[0].Slots)
	require.NoError(t, c.ForEachMaster(ctx, func(ctx context.Context,
		node *redis.Client) error {
		return node.FlushAll(ctx).Err()
	}))
	sub := c.SSubscribe(ctx, "news")
	defer sub.Close()
	_, err = sub.Receive(ctx)
	require.NoError(t, err)
	require.NoError(t, c.SPublish(ctx, "news", "x").Err())
	message, err := sub.ReceiveMessage(ctx)
	require.NoError(t, err)
	require.Equal(t, "x", message.Payload)
}

func TestClusterHasTheDatabasesThatItIsGiven(t *testing.T) {
	c := servertest.Start(t, server.Options{}, "cluster-enabled", "yes", "cluster-databases", "20").Connect()
	require.Equal(t, "+OK", c.Line("SELECT 19"))
	require.Equal(t, "-ERR DB index is out of range", c.Line("SELECT 20"))
	require.Equal(t, "+OK", c.Line("SET a 1"))
	require.Equal(t, "1", c.Line("COPY a a DB 3"))
	require.Equal(t, "-ERR DB index is out of range", c.Line("COPY a a DB 20"))
	require.Equal(t, "1", c.Line("MOVE a 4"))
	require.Equal(t, "-ERR SWAPDB is not allowed in cluster mode", c.Line("SWAPDB 3 4"))
	require.Equal(t, "0", c.Line("CLUSTER COUNTKEYSINSLOT 15495"))
	require.Equal(t, "+OK", c.Line("SELECT 4"))
	require.Equal(t, "1", c.Line("CLUSTER COUNTKEYSINSLOT 15495"))
	require.Equal(t, "[\"a\"]", c.Line("CLUSTER GETKEYSINSLOT 15495 10"))

	few := servertest.Start(t, server.Options{}, "cluster-enabled", "yes", "cluster-databases", "2").Connect()
	require.Equal(t, "+OK", few.Line("SELECT 1"))
	require.Equal(t, "-ERR DB index is out of range", few.Line("SELECT 2"))
	require.Equal(t, "-ERR DB index is out of range", few.Line("MOVE a 2"))
}

func TestClusterscanFindsAllKeysOrThoseOfASlot(t *testing.T) {
	c := servertest.Start(t, server.Options{}, "cluster-enabled", "yes").Connect()
	want := map[string]bool{}
	for i := range 500 {
		key := fmt.Sprint("key:", i)
		c.Line("SET " + key + " 1")
		want[key] = true
	}
	c.Line("RPUSH {a}list 1")
	scan := func(options string) map[string]bool {
		found := map[string]bool{}
		for cursor, calls := "0", 0; ; calls++ {
			reply := c.Line("CLUSTERSCAN " + cursor + options)
			fields := strings.Fields(strings.NewReplacer("[", " ", "]", " ", `"`, "").Replace(reply))
			for _, key := range fields[1:] {
				found[key] = true
			}
			if cursor = fields[0]; cursor == "0" {
				return found
			}
			require.Less(t, calls, 1000)
		}
	}
	require.Equal(t, `["0-{06S}-0" []]`, c.Line("CLUSTERSCAN 0"))
	require.Equal(t, want, scan(" TYPE string"))
	require.Equal(t, map[string]bool{"{a}list": true}, scan(" TYPE list COUNT 100"))
	require.Len(t, scan(" MATCH key:1*"), 111)
	slot := cluster.SlotOf([]byte("key:7"))
	inSlot := scan(fmt.Sprint(" SLOT ", slot))
	require.True(t, inSlot["key:7"])
	for key := range inSlot {
		require.Equal(t, slot, cluster.SlotOf([]byte(key)))
	}
	require.Equal(t, map[string]bool{"{a}list": true}, scan(" SLOT 15495 MATCH *list"))

	require.Equal(t, "-ERR the cursor is of another slot than SLOT", c.Line("CLUSTERSCAN 0-{06S}-0 SLOT 1"))
	for _, cursor := range []string{"1", "x", "a-{b}-c", "a-{}-1", "-{a}-1", "a-{b-1"} {
		require.Equal(t, "-ERR invalid cursor", c.Line("CLUSTERSCAN "+cursor), cursor)
	}
	require.Equal(t, "-ERR Invalid or out of range slot", c.Line("CLUSTERSCAN 0 SLOT 16384"))
	require.Equal(t, "-ERR syntax error", c.Line("CLUSTERSCAN 0 SLOT 1 SLOT 1"))
	require.Contains(t, c.Line("CLUSTERSCAN other-{06S}-999 COUNT 1000"), "key:7", "it begins anew")
	require.Equal(t, "-ERR This instance has cluster support disabled",
		servertest.Start(t, server.Options{}).Connect().Line("CLUSTERSCAN 0"))
}

func TestSlotStatsCountKeysAndCosts(t *testing.T) {
	srv := servertest.Start(t, server.Options{}, "cluster-enabled", "yes")
	c := srv.Connect()
	a := cluster.SlotOf([]byte("a")) // 15495
	c.Line("MSET a 1 {a}2 2")
	c.Line("SET b 1")
	one := func(reply string) string { return strings.Join(strings.Fields(reply), " ") }
	require.Equal(t, fmt.Sprintf(`[[%d ["key-count" 2]]]`, a), one(c.Line(fmt.Sprintf("CLUSTER SLOT-STATS SLOTSRANGE %d %[1]d", a))))
	require.Equal(t, fmt.Sprintf(`[[%d ["key-count" 2]] [%d ["key-count" 1]]]`, a, cluster.SlotOf([]byte("b"))),
		one(c.Line("CLUSTER SLOT-STATS ORDERBY KEY-COUNT LIMIT 2")))
	require.Equal(t, `[[0 ["key-count" 0]]]`, one(c.Line("CLUSTER SLOT-STATS ORDERBY KEY-COUNT ASC LIMIT 1")))
	for command, want := range map[string]string{
		"ORDERBY CPU-USEC":           "-ERR Unrecognized sort metric for ORDERBY.",
		"ORDERBY KEY-COUNT LIMIT 0":  "-ERR LIMIT has to lie in between 1 and 16384 (maximum number of slots).",
		"ORDERBY KEY-COUNT ASC DESC": "-ERR syntax error",
		"SLOTSRANGE 5 4":             "-ERR Start slot number 5 is greater than end slot number 4",
		"SLOTSRANGE 0 16384":         "-ERR Invalid or out of range slot",
		"SLOTSRANGE x 4":             "-ERR Invalid or out of range slot",
	} {
		require.Equal(t, want, c.Line("CLUSTER SLOT-STATS "+command), command)
	}

	require.Equal(t, "+OK", c.Line("CONFIG SET cluster-slot-stats-enabled yes"))
	c.Line("PING")
	require.Equal(t, "1", c.Line("GET a"))
	require.Regexp(t, fmt.Sprintf(
		`^\[\[%d \["key-count" 2 "memory-bytes" \d\d+ "cpu-usec" \d+ "network-bytes-in" 20 "network-bytes-out" 7\]\]\]$`, a),
		one(c.Line("CLUSTER SLOT-STATS ORDERBY NETWORK-BYTES-OUT LIMIT 1")))
	for value, want := range map[string]string{
		"mem":         `"key-count" 2 "memory-bytes" \d\d+`,
		"mem cpu":     `"key-count" 2 "memory-bytes" \d\d+ "cpu-usec" \d+`,
		"net":         `"key-count" 2 "network-bytes-in" \d+ "network-bytes-out" \d+`,
		"net cpu mem": `"key-count" 2 "memory-bytes" \d\d+ "cpu-usec" \d+ "network-bytes-in" \d+ "network-bytes-out" \d+`,
	} {
		require.Equal(t, "+OK", c.Call("CONFIG", "SET", "cluster-slot-stats-enabled", value))
		require.Regexp(t, fmt.Sprintf(`^\[\[%d \[%s\]\]\]$`, a, want), one(c.Line("CLUSTER SLOT-STATS ORDERBY KEY-COUNT LIMIT 1")), value)
	}
	require.Equal(t, "+OK", c.Line("CONFIG SET cluster-slot-stats-enabled mem"))
	c.Line("SET b " + strings.Repeat("x", 1000))
	require.Contains(t, one(c.Line("CLUSTER SLOT-STATS ORDERBY MEMORY-BYTES LIMIT 1")), fmt.Sprintf("[[%d ", cluster.SlotOf([]byte("b"))))
	c.Line("FLUSHALL")
	require.Contains(t, one(c.Line("CLUSTER SLOT-STATS ORDERBY MEMORY-BYTES LIMIT 1")), `"memory-bytes" 0]`)
	require.Equal(t, "+OK", c.Line("CONFIG SET cluster-slot-stats-enabled no"))
	require.NotContains(t, c.Line("CLUSTER SLOT-STATS ORDERBY KEY-COUNT LIMIT 1"), "cpu-usec")
}

func TestNoSlotsMigrateToAServerThatHasAll(t *testing.T) {
	c := servertest.Start(t, server.Options{}, "cluster-enabled", "yes").Connect()
	require.Equal(t, "[]", c.Line("CLUSTER MIGRATION STATUS ALL"))
	require.Equal(t, "[]", c.Line("CLUSTER MIGRATION STATUS ID x"))
	require.Equal(t, "0", c.Line("CLUSTER MIGRATION CANCEL ALL"))
	require.Equal(t, "-ERR this node is already the owner of the slot range", c.Line("CLUSTER MIGRATION IMPORT 0 1"))
	require.Equal(t, "-ERR unknown argument", c.Line("CLUSTER MIGRATION STATUS WHAT"))
}
