package server

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/persist/journal"
)

// A server whose log is damaged does not start. If the leader says that it is a member, its data is set aside, and its next
// start copies the group's; it counts for majorities only then.
func TestADamagedLogIsReplacedByTheGroups(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	leader := g.settled()
	damaged := g.followers()[0]
	value := strings.Repeat("v", 1000)
	for range 10 {
		require.Equal(t, "+OK", leader.client().do("SET key "+value))
	}
	damaged.client().waitFor("GET key", value)
	require.Equal(t, "+OK", damaged.client().do("SAVE"))
	require.NoError(t, os.WriteFile(filepath.Join(damaged.dir, "dump.rdb"), []byte("a new server would read it"), 0o600))
	require.Equal(t, "+OK", leader.client().do("SET other "+value))
	damaged.client().waitFor("GET other", value)
	damaged.kill()
	files, err := filepath.Glob(filepath.Join(damaged.dir, "raft", journal.DirName, "*"))
	require.NoError(t, err)
	flipped := 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		if at := bytes.Index(data, []byte(value)); at >= 0 {
			data[at] ^= 1
			require.NoError(t, os.WriteFile(name, data, 0o600))
			flipped++
		}
	}
	require.Equal(t, 1, flipped)

	var others []*groupNode
	for _, n := range g.nodes {
		if n != damaged {
			others = append(others, n)
			n.kill()
		}
	}
	fails := func() string {
		srv, _ := damaged.prepare()
		err := srv.Start()
		require.ErrorAs(t, err, new(*journal.DamageError))
		return err.Error()
	}
	require.NotContains(t, fails(), "leads the group", "without a leader it may have what nobody else has")
	require.NoDirExists(t, filepath.Join(damaged.dir, "damaged-1"))
	for _, n := range others {
		n.start()
	}
	leader = g.leader()
	require.Equal(t, "+OK", leader.client().do("SET key new"))
	require.Contains(t, fails(), leader.addr+" leads the group: the next start copies its data")
	damaged.start()
	g.settled()
	damaged.client().waitFor("GET key", "new")
	require.DirExists(t, filepath.Join(damaged.dir, "damaged-1", "raft", journal.DirName))
	require.DirExists(t, filepath.Join(damaged.dir, "damaged-1", "data"))
}
