package server

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/archive"
	"github.com/atomredis/atomredis/internal/archive/objects"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/testing/freeport"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/persist/disk"
)

// startWithWitness starts two servers with data and a witness, which comes first.
func startWithWitness(t *testing.T, settings ...string) (g *testGroup, witness *groupNode) {
	t.Helper()
	g = &testGroup{t: t, settings: settings}
	for range 3 {
		g.nodes = append(g.nodes, &groupNode{addr: freeport.Addr(t), dir: t.TempDir(), g: g})
	}
	witness = g.nodes[0]
	witness.settings = []string{"raft-witness=yes"}
	for _, n := range g.nodes {
		n.start()
	}
	t.Cleanup(func() {
		for _, n := range g.nodes {
			if n.Server != nil {
				n.Close()
			}
		}
	})
	return g, witness
}

// With a witness, either of two servers may fail: the other one has all that was acknowledged.
func TestTwoServersAndAWitness(t *testing.T) {
	t.Parallel()
	g, witness := startWithWitness(t)
	first := g.settled()
	require.NotSame(t, witness, first)
	witness.waitForState("witness")
	c := first.client()
	for i := range 200 {
		require.Equal(t, "+OK", c.do(fmt.Sprintf("SET key:%d %d", i, i)))
	}
	require.Equal(t, "1", c.do("WAIT 1 0"), "the witness does not count")

	// Nothing is to be had from the witness, and nobody is sent there.
	w := witness.client()
	require.NotContains(t, w.do("INFO keyspace"), "db0")
	require.Contains(t, w.do("GET key:1"), "MASTERDOWN The server is a witness")
	require.Contains(t, w.do("SET key:1 x"), "READONLY")
	require.Contains(t, w.do("PSYNC ? -1"), "NOMASTERLINK")
	require.Contains(t, w.do("INFO replication"), "raft_state:witness")
	require.Contains(t, c.do("INFO replication"), "connected_slaves:1\r\n")
	require.Contains(t, c.do("RAFT.TRANSFER "+witness.addr), "no other server can lead")
	require.Contains(t, c.do("RAFT.ADD "+witness.addr+" LEARNER"), "a witness has no data, and cannot be a learner")
	require.Equal(t, quorum.Witness, g.member(witness).Role)

	first.kill()
	second := g.leader()
	require.NotSame(t, witness, second)
	require.Equal(t, "199", second.client().do("GET key:199"))
	g.ask("SET alone yes")
	first.start()
	first.client().waitFor("GET alone", "yes")
	g.settled()

	// A witness restarts, and it may lose its directory.
	for range 2 {
		witness.kill()
		g.ask("SET without yes")
		witness.start()
		g.settled()
		witness.kill()
		witness.dir = t.TempDir()
		witness.start()
		witness.waitForState("witness")
		g.becomes(witness, quorum.Witness)
	}
	require.NotContains(t, witness.client().do("INFO keyspace"), "db0")
}

// A witness that joins a group with data gets none, also if the log does not begin with the first entry.
func TestAWitnessJoins(t *testing.T) {
	t.Parallel()
	g := &testGroup{t: t, settings: []string{"checkpoint-size=1mb"}, segment: 64 << 10}
	g.begin(2)
	leader, value := g.settled(), strings.Repeat("v", 100<<10)
	for i := range 60 {
		g.ask(fmt.Sprintf("SET key:%d %s", i, value))
	}
	require.Eventually(t, func() bool {
		leader = g.leader()
		leader.client().do("SAVE")
		return leader.group.node().Size() < 3<<20
	}, testTimeout, 10*time.Millisecond)
	n := &groupNode{addr: freeport.Addr(t), dir: t.TempDir(), g: g, settings: []string{"raft-witness=yes"}}
	g.ask("RAFT.ADD " + n.addr)
	n.start()
	g.nodes = append(g.nodes, n)
	g.settled()
	require.Equal(t, quorum.Witness, g.member(n).Role)
	require.NotContains(t, n.client().do("INFO keyspace"), "db0")
	require.Eventually(t, func() bool { return g.leader().client().do("RAFT.CHECK") == "[]" }, testTimeout, 10*time.Millisecond)
}

// All three servers have the same archive: the two with data write to it in turn, and the witness neither archives nor keeps its log
// for that.
func TestAnArchiveOfAGroupWithAWitness(t *testing.T) {
	t.Parallel()
	r := testseed.Rand(t)
	in := filepath.Join(t.TempDir(), "archive")
	g, witness := startWithWitness(t, "archive="+in, "archive-interval=50ms", "archive-base-interval=60", "checkpoint-size=1mb",
		"enable-debug-command=yes")
	digest := func(of func() *Server) (digest string) {
		require.Eventually(t, func() bool {
			reply, err := do(t, of(), 0, "DEBUG", "DIGEST")
			digest = reply.String()
			return err == nil
		}, testTimeout, 10*time.Millisecond, "the lead may move")
		return digest
	}
	leads := func() *Server { return g.leader().Server }
	digests, times := map[time.Time]string{}, []time.Time{}
	written := func() {
		for i := range 10 {
			g.ask(fmt.Sprint("SET key:", r.IntN(30), " ", i, strings.Repeat("x", 50_000)))
		}
		require.Eventually(t, func() bool {
			st := g.leader().archived.Status()
			return st.State == archive.Running && st.LagBytes == 0
		}, testTimeout, 10*time.Millisecond)
		time.Sleep(2 * time.Millisecond) // the next change has another time
		now := time.Now()
		times, digests[now] = append(times, now), digest(leads)
		time.Sleep(2 * time.Millisecond)
	}
	for range 2 {
		leader := g.settled()
		written()
		leader.kill() // the new leader archives the rest
		require.NotSame(t, witness, g.leader())
		g.ask("SET alone yes")
		leader.start()
		g.settled()
		written()
		witness.kill()
		g.ask("SET without yes")
		witness.dir = t.TempDir()
		witness.start()
		g.becomes(witness, quorum.Witness)
		written()
		var other *groupNode
		for _, n := range g.followers() {
			if n != witness {
				other = n
			}
		}
		g.handOver(g.leader(), other)
		written()
	}
	g.ask("SET last 1")
	written()

	require.Equal(t, archive.Witness, witness.archived.Status().State)
	require.Contains(t, witness.client().do("INFO persistence"), "archive_state:witness")
	require.Zero(t, witness.archived.retention(witness.config.Get()).FromBytes)
	require.Equal(t, "+OK", witness.client().do("CONFIG SET archive-interval 1"))
	for _, n := range g.nodes {
		require.Zero(t, n.archived.Status().Gaps)
	}
	store, err := objects.Open(disk.System, in)
	require.NoError(t, err)
	chains, err := objects.Check(t.Context(), store, nil)
	require.NoError(t, err)
	require.Len(t, chains, 1)
	require.Empty(t, chains[0].Problems)
	for _, at := range times[:len(times)-1] {
		got, _, err := backTo(t, in, at)
		require.NoError(t, err)
		require.Equal(t, digests[at], digest(func() *Server { return got.Server }))
		require.NoError(t, got.Close())
	}
}

// A directory without data is not used for a server with data, nor the other way round.
func TestADirectoryIsThatOfAWitnessOrNot(t *testing.T) {
	t.Parallel()
	g, witness := startWithWitness(t)
	g.settled()
	g.ask("SET key value")
	other := g.followers()[0]
	if other == witness {
		other = g.followers()[1]
	}
	for n, want := range map[*groupNode]string{
		witness: "the directory is that of a witness, which has no data",
		other:   "the directory has data, and a witness begins without",
	} {
		n.kill()
		before := n.settings
		n.settings = nil
		if before == nil {
			n.settings = []string{"raft-witness=yes"}
		}
		srv, l := n.prepare()
		require.ErrorContains(t, srv.Start(), want)
		l.Close()
		n.settings = before
		n.start()
		g.settled()
	}
}

func TestSettingsOfAWitness(t *testing.T) {
	for settings, want := range map[string]string{
		"raft-addr=":          "raft-witness needs raft-addr: a witness votes in a group",
		"cluster-enabled=yes": "a witness has no slots: raft-witness needs cluster-enabled no, also if the group is a shard",
		"appendonly=yes":      "",
	} {
		conf := config.NewConfig()
		for _, pair := range []string{"raft-addr=127.0.0.1:1", "raft-peers=127.0.0.1:1", "raft-witness=yes", settings} {
			name, value, _ := strings.Cut(pair, "=")
			require.NoError(t, conf.Set(name, value, false))
		}
		err := checkGroup(conf.Get())
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want)
	}
}
