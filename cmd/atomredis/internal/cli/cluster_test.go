package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
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
	var raft, client []string
	for range 3 {
		raft, client = append(raft, freeport.Addr(t)), append(client, freeport.Addr(t))
	}
	for i := range raft {
		db, err := atomredis.Open(atomredis.Options{Addr: client[i], Dir: t.TempDir(), Config: map[string]string{
			"raft-addr": raft[i], "raft-peers": strings.Join(raft, ","), "appendonly": "yes", "raft-timeout": "500",
			"replica-announce-port": client[i][strings.LastIndexByte(client[i], ':')+1:]}})
		require.NoError(t, err)
		t.Cleanup(func() { db.Close() })
	}
	require.Eventually(t, func() bool {
		out, code := ask(append([]string{"cluster", "check"}, at(client[1])...)...)
		return code == 0 && out == "ok\n"
	}, 30*time.Second, 50*time.Millisecond)
	out, code := ask(append([]string{"cluster", "status"}, at(client[0])...)...)
	require.Zero(t, code)
	require.Equal(t, 1, strings.Count(out, "\tleader\tyes\t"), out)
	require.Equal(t, 2, strings.Count(out, "\tvoter\tyes\t"), out)

	// Ask each server, also those that do not lead.
	for i := range client {
		require.Eventually(t, func() bool {
			out, code = ask(append([]string{"cluster", "transfer", client[i]}, at(client[(i+1)%3])...)...)
			return code == 0 || strings.Contains(out, "leads already")
		}, 30*time.Second, 50*time.Millisecond)
		require.Eventually(t, func() bool {
			out, _ = ask(append([]string{"cluster", "status"}, at(client[0])...)...)
			return strings.Contains(out, raft[i]+"\t"+client[i]+"\tleader\t")
		}, 30*time.Second, 50*time.Millisecond)
	}
	out, code = ask(append([]string{"cluster", "remove", raft[0]}, at(client[1])...)...)
	require.Zero(t, code, out)
	require.Eventually(t, func() bool {
		out, _ = ask(append([]string{"cluster", "status", "--json"}, at(client[1])...)...)
		return strings.Count(out, `"voter":true`) == 2
	}, 30*time.Second, 50*time.Millisecond)
	out, code = ask(append([]string{"cluster", "check"}, at(client[1])...)...)
	require.Equal(t, 1, code)
	require.Contains(t, out, "no other may fail")
}

func TestTheServersOfAClusterKeepTheirPorts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	ports, err := clusterPorts(dir, 1)
	require.NoError(t, err)
	require.Len(t, ports, 1)
	require.Len(t, ports[0], clusterSize)
	again, err := clusterPorts(dir, 2) // a directory that has its ports already
	require.NoError(t, err)
	require.Equal(t, ports, again)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "1"), 0o700))
	require.Equal(t, 1, Run(t.Context(), []string{"cluster", "start", "--dir", dir}, nil, io.Discard, io.Discard))
}
