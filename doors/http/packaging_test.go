package http_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// Every metric in the dashboard and the alerts exists on a server.
func TestDashboardAndAlertsNameMetricsThatExist(t *testing.T) {
	db := open(t, t.TempDir(), map[string]string{"archive": t.TempDir()})
	do(t, db, "XADD", "s", "1-1", "f", "v")
	do(t, db, "XGROUP", "CREATE", "s", "g", "0")
	do(t, db, "PRESSURE.CREATE", "q", "BOUND", 5)
	_, err := db.Do(t.Context(), "LPUSH", "s", "x")
	require.Error(t, err)
	follower := open(t, "", nil)
	do(t, follower, "REPLICAOF", "127.0.0.1", "1")
	raft := freeport.Addr(t)
	member := open(t, t.TempDir(), map[string]string{"raft-addr": raft, "raft-peers": raft, "raft-timeout": "100"})
	require.Eventually(t, func() bool {
		_, text := browse(t, member).get("/metrics", "", "")
		return strings.Contains(text, "atomredis_raft_leads 1\n") && strings.Contains(text, "atomredis_raft_has_leader 1\n") &&
			strings.Contains(text, "atomredis_raft_voters_online 1\n") &&
			strings.Contains(text, `atomredis_raft_member_online{member="`+raft+`"} 1`)
	}, 30*time.Second, 10*time.Millisecond)
	have := map[string]bool{}
	for _, b := range []browser{browse(t, db), browse(t, follower), browse(t, member)} {
		code, text := b.get("/metrics?stream=*&collect=pressure", "", "")
		require.Equal(t, 200, code)
		for line := range strings.Lines(text) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			name, _, _ = strings.Cut(name, "{")
			have[name] = true
		}
	}
	for _, file := range []string{"grafana/atomredis.json", "prometheus/alerts.yml"} {
		content, err := os.ReadFile("../../packaging/" + file)
		require.NoError(t, err)
		names := regexp.MustCompile(`\b(?:atomredis|redis)_\w+`).FindAllString(string(content), -1)
		require.NotEmpty(t, names)
		for _, name := range names {
			require.True(t, have[name], "%s: no metric %s", file, name)
		}
	}
}
