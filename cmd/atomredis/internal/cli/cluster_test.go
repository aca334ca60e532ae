package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// ask runs the program, and returns its output and exit code.
func ask(args ...string) (out string, code int) {
	var b bytes.Buffer
	code = Run(context.Background(), args, nil, &b, &b)
	return b.String(), code
}

func TestClusterShowsAndChangesAGroup(t *testing.T) {
	var raft, client, announced []string
	var dbs []*atomredis.DB
	for range 3 { // nothing listens at the announced addresses: only the server that is named is asked
		raft, client, announced = append(raft, freeport.Addr(t)), append(client, freeport.Addr(t)), append(announced, freeport.Addr(t))
	}
	for i := range raft {
		db, err := atomredis.Open(atomredis.Options{Addr: client[i], Dir: t.TempDir(), Config: map[string]string{
			"raft-addr": raft[i], "raft-peers": strings.Join(raft, ","), "appendonly": "yes", "raft-timeout": "2000",
			"replica-announce-port": announced[i][strings.LastIndexByte(announced[i], ':')+1:]}})
		require.NoError(t, err)
		dbs = append(dbs, db)
		t.Cleanup(func() { db.Close() })
	}
	require.Eventually(t, func() bool {
		out, code := ask(append([]string{"cluster", "check"}, at(client[1])...)...)
		return code == 0 && out == "ok\n"
	}, 30*time.Second, 50*time.Millisecond)
	out, code := ask(append([]string{"cluster", "status"}, at(client[0])...)...)
	require.Zero(t, code)
	require.True(t, strings.HasPrefix(out, "ADDR\tCLIENT\tROLE\tONLINE\tINDEX\tLAG\n"), out)
	require.Equal(t, 1, strings.Count(out, "\tleader\tyes\t"), out)
	require.Equal(t, 2, strings.Count(out, "\tvoter\tyes\t"), out)

	// Ask each server, also those that do not lead.
	for i := range client {
		require.Eventually(t, func() bool {
			out, code = ask(append([]string{"cluster", "transfer", announced[i]}, at(client[(i+1)%3])...)...)
			return code == 0 || strings.Contains(out, "leads already")
		}, 30*time.Second, 50*time.Millisecond)
		require.Eventually(t, func() bool {
			out, _ = ask(append([]string{"cluster", "status"}, at(client[0])...)...)
			return strings.Contains(out, raft[i]+"\t"+announced[i]+"\tleader\t")
		}, 30*time.Second, 50*time.Millisecond)
	}
	require.Eventually(t, func() bool { // a server ends its connections when it leads no more
		out, code = ask(append([]string{"cluster", "remove", raft[0]}, at(client[1])...)...)
		return code == 0 && out == raft[0]+" is removed.\n"
	}, 30*time.Second, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		out, _ = ask(append([]string{"cluster", "status", "--json"}, at(client[1])...)...)
		return strings.Count(out, `"voter":true`) == 2
	}, 30*time.Second, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		out, code = ask(append([]string{"cluster", "check"}, at(client[1])...)...)
		return code == 1 && strings.Contains(out, "no other may fail")
	}, 30*time.Second, 50*time.Millisecond)

	// An address at which no server of a group answers is not added, unless it is to start later.
	nobody := freeport.Addr(t)
	for _, addr := range []string{nobody, client[0]} {
		out, code = ask(append([]string{"cluster", "add", addr}, at(client[1])...)...)
		require.Equal(t, 1, code)
		require.Contains(t, out, "no server of a group answers at "+addr)
	}
	out, code = ask(append([]string{"cluster", "add", "--later", nobody}, at(client[1])...)...)
	require.Zero(t, code, out)
	require.Equal(t, nobody+" is added, and votes once it has all data.\n", out)

	out, code = ask(append([]string{"cluster", "add", "--later", "--learner", nobody}, at(client[1])...)...)
	require.Zero(t, code, out)
	require.Equal(t, nobody+" is a learner.\n", out)
	for _, db := range dbs[1:] {
		_, err := db.Do(t.Context(), "CONFIG", "SET", "raft-zone", "north")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		out, _ = ask(append([]string{"cluster", "status"}, at(client[1])...)...)
		return strings.HasPrefix(out, "ADDR\tCLIENT\tROLE\tONLINE\tINDEX\tLAG\tZONE\n") && strings.Count(out, "\tnorth\n") == 2 &&
			strings.Contains(out, nobody+"\t\tlearner\tno\t")
	}, 30*time.Second, 50*time.Millisecond)
}

// The status of a cluster has the servers of all shards, whichever server is asked.
func TestClusterStatusShowsAllShards(t *testing.T) {
	dbs, raft, client := startCluster(t, "0-8191", "8192-16382")
	row := func(i int, slots string) string {
		return raft[i] + "\t" + client[i] + "\tleader\tyes\t[0-9]+\t0\t" + slots + "\n"
	}
	status := func(i int, more ...string) (string, int) {
		return ask(append(append([]string{"cluster", "status"}, more...), at(client[i])...)...)
	}
	first, second := row(0, "0-8191"), row(1, "8192-16382")
	const header = "^ADDR\tCLIENT\tROLE\tONLINE\tINDEX\tLAG\tSLOTS\n"
	shows := func(i int, rows string) func() bool {
		return func() bool {
			out, code := status(i)
			return code == 0 && regexp.MustCompile(header+rows+"$").MatchString(out)
		}
	}
	require.Eventually(t, shows(0, first+second), 30*time.Second, 50*time.Millisecond)
	require.Eventually(t, shows(1, second+first), 30*time.Second, 50*time.Millisecond)
	out, code := status(0, "--json")
	require.Zero(t, code)
	require.Regexp(t, `"slots":"0-8191".*"other-shards":\[\{.*"slots":"8192-16382"`, out)

	_, err := dbs[0].Do(t.Context(), "ACL", "SETUSER", "limited", "on", "nopass", "+@all", "-cluster|shards")
	require.NoError(t, err)
	out, code = status(0, "--user", "limited", "--pass", "x") // the own group is shown all the same
	require.Equal(t, 1, code)
	require.Regexp(t, "^ADDR\tCLIENT\tROLE\tONLINE\tINDEX\tLAG\n"+row(0, "")[:len(row(0, ""))-2]+
		"\n.*other shards are not shown: NOPERM .*\n$", out)

	require.NoError(t, dbs[1].Close())
	ends := func() bool {
		out, code = status(0)
		return code == 1 && strings.Contains(out, "no server of the shard of slots 8192-16382 is online")
	}
	for end := time.Now().Add(30 * time.Second); !ends(); time.Sleep(50 * time.Millisecond) {
		require.True(t, time.Now().Before(end), out)
	}
	require.Regexp(t, first, out)
	require.Regexp(t, "\n\t"+client[1]+"\tleader\tno\t[0-9]+\t\t8192-16382\n", out)
	out, _ = status(0, "--json")
	require.Regexp(t, `"leader-client":"`+client[1]+`","problem":.*"members":\[\{"addr":"","client":"`+
		client[1]+`","online":false,"index":[0-9]+\}\]`,
		out)
}

func TestTheServersOfAClusterKeepTheirPorts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	ports, err := clusterPorts(dir, 1, firstPort+500)
	require.NoError(t, err)
	require.Len(t, ports, 1)
	require.Len(t, ports[0], clusterSize)
	require.GreaterOrEqual(t, ports[0][0], firstPort+500)
	again, err := clusterPorts(dir, 2, firstPort) // a directory that has its ports already
	require.NoError(t, err)
	require.Equal(t, ports, again)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "1"), 0o700))
	require.Equal(t, 1, Run(t.Context(), []string{"cluster", "start", "--dir", dir}, nil, io.Discard, io.Discard))
}
