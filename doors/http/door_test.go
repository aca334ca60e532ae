package http_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
	_ "github.com/atomredis/atomredis/doors/http"
	_ "github.com/atomredis/atomredis/doors/spiderq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a server with the door, in memory if dir is "".
func open(t *testing.T, dir string, config map[string]string) *atomredis.DB {
	all := map[string]string{"door-http": "127.0.0.1:0"}
	for k, v := range config {
		all[k] = v
	}
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", Dir: dir, Config: all})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func do(t *testing.T, db *atomredis.DB, args ...any) {
	t.Helper()
	_, err := db.Do(t.Context(), args...)
	require.NoError(t, err)
}

// browser is an HTTP client with its own connections.
type browser struct {
	t    *testing.T
	http *http.Client
	url  string
}

func browse(t *testing.T, db *atomredis.DB) browser {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return browser{t, &http.Client{Transport: transport}, "http://" + db.DoorAddr("http")}
}

// get requests a page, as a user unless the name is "".
func (b browser) get(path, user, password string, headers ...string) (int, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "GET", b.url+path, nil)
	require.NoError(b.t, err)
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := b.http.Do(r)
	require.NoError(b.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(b.t, err)
	return answer.StatusCode, string(body)
}

// requireValue requires a line of the metrics with this name and value.
func requireValue(t *testing.T, metrics, name, value string) {
	t.Helper()
	require.True(t, regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+" "+value+"$").MatchString(metrics), "%s is not %s", name, value)
}

func TestMetrics(t *testing.T) {
	db := open(t, t.TempDir(), map[string]string{"door-spiderq": "127.0.0.1:0"})
	do(t, db, "SET", "k", "v")
	do(t, db, "SET", "short", "v", "EX", 1000)
	do(t, db, "GET", "k")
	do(t, db, "GET", "nothing")
	_, err := db.Do(t.Context(), "LPUSH", "k", "x")
	require.Error(t, err)
	b := browse(t, db)
	code, text := b.get("/metrics", "", "")
	require.Equal(t, 200, code)
	for name, value := range map[string]string{
		"redis_up": "1", `redis_db_keys{db="db0"}`: "2", `redis_db_keys_expiring{db="db0"}`: "1",
		"redis_keyspace_hits_total": "1", "redis_keyspace_misses_total": "1",
		`redis_commands_total{cmd="set"}`: "2", `redis_commands_total{cmd="get"}`: "2",
		`redis_commands_failed_calls_total{cmd="lpush"}`: "1", `redis_errors_total{err="WRONGTYPE"}`: "1",
		`redis_commands_latency_seconds_count{cmd="set"}`: "2", `redis_commands_latency_seconds_bucket{cmd="set",le="+Inf"}`: "2",
		"redis_config_maxclients": "10000", "redis_aof_enabled": "1", "redis_aof_last_write_status": "1",
		"atomredis_store_tables": `\d+`, "atomredis_store_read_amplification": `\d+`, "redis_memory_used_bytes": `[\d.e+]+`,
		`atomredis_door_connections{door="http"}`: "1", "atomredis_door_spiderq_requests": "0", "go_goroutines": `\d+`,
		"redis_uptime_in_seconds": `\d+`, "redis_slowlog_length": `\d+`,
	} {
		requireValue(t, text, name, value)
	}
	require.Contains(t, text, `redis_version="`)
	require.NotContains(t, text, "redis_stream")

	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)

	code, text = b.get("/metrics", "", "", "Accept", "application/openmetrics-text; version=1.0.0")
	require.Equal(t, 200, code)
	require.True(t, strings.HasSuffix(text, "# EOF\n"))
	code, _ = b.get("/nothing", "", "")
	require.Equal(t, 404, code)
}

func TestMetricsOfStreamsAndSystems(t *testing.T) {
	db := open(t, "", nil)
	for i := range 3 {
		do(t, db, "XADD", "stream:a", fmt.Sprint(i+1, "-1"), "f", "v")
	}
	do(t, db, "XADD", "stream:b", "1-1", "f", "v")
	do(t, db, "XADD", "other", "1-1", "f", "v")
	do(t, db, "XGROUP", "CREATE", "stream:a", "g\xff", "0")
	do(t, db, "XREADGROUP", "GROUP", "g\xff", "c", "COUNT", 2, "STREAMS", "stream:a", ">")
	do(t, db, "PRESSURE.CREATE", "jobs", "BOUND", 5)
	do(t, db, "PRESSURE.PUT", "jobs", "x", "y")
	do(t, db, "SPIDERQ.ADD", "tasks", "k", "v")
	do(t, db, "XADD", "command:camera", "*", "a", "b")
	do(t, db, "XADD", "response:camera", "*", "a", "b")
	b := browse(t, db)
	code, text := b.get("/metrics?stream=stream:*&stream=stream:a&collect=pressure&collect=atom&collect=spiderq", "", "")
	require.Equal(t, 200, code)
	for name, value := range map[string]string{
		`redis_stream_length{db="db0",stream="stream:a"}`:                                           "3",
		`redis_stream_length{db="db0",stream="stream:b"}`:                                           "1",
		`redis_stream_group_messages_pending{db="db0",group="g` + "\uFFFD" + `",stream="stream:a"}`: "2",
		`redis_stream_group_lag{db="db0",group="g` + "\uFFFD" + `",stream="stream:a"}`:              "1",
		`atomredis_pressure_queue_length{queue="jobs"}`:                                             "2",
		`atomredis_pressure_queue_bound{queue="jobs"}`:                                              "5",
		`atomredis_spiderq_queue_queued{queue="tasks"}`:                                             "1",
		`atomredis_atom_element_up{element="camera"}`:                                               "0",
	} {
		requireValue(t, text, name, value)
	}
	require.NotContains(t, text, `stream="other"`)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)

	code, text = b.get("/metrics?stream=*&db=3", "", "")
	require.Equal(t, 200, code)
	require.NotContains(t, text, "redis_stream_length")
	for _, wrong := range []string{"?collect=nothing", "?db=x", "?db=99"} {
		code, text = b.get("/metrics"+wrong, "", "")
		require.Equal(t, 400, code)
		require.Contains(t, text, "ERR ")
	}
}

func TestUsersOfTheDoor(t *testing.T) {
	db := open(t, "", map[string]string{"requirepass": "secret"})
	do(t, db, "ACL", "SETUSER", "viewer", "on", ">v", "+info", "+slowlog|len")
	do(t, db, "ACL", "SETUSER", "nobody", "on", ">n", "-@all")
	b := browse(t, db)
	for _, path := range []string{"/metrics", "/debug/pprof/cmdline"} {
		code, text := b.get(path, "", "")
		require.Equal(t, 401, code)
		require.Equal(t, "NOAUTH Authentication required.\n", text)
	}
	code, text := b.get("/metrics", "default", "wrong")
	require.Equal(t, 401, code)
	require.Contains(t, text, "WRONGPASS")
	code, text = b.get("/metrics", "default", "secret")
	require.Equal(t, 200, code)
	require.Contains(t, text, "redis_commands_latency_seconds")
	// The connection is the same; credentials apply to one request only.
	code, _ = b.get("/metrics", "", "")
	require.Equal(t, 401, code)

	code, text = b.get("/metrics", "viewer", "v")
	require.Equal(t, 200, code)
	require.NotContains(t, text, "redis_commands_latency_seconds")
	code, text = b.get("/metrics?stream=*", "viewer", "v")
	require.Equal(t, 403, code)
	require.Contains(t, text, "NOPERM")
	code, _ = b.get("/metrics", "nobody", "n")
	require.Equal(t, 403, code)
	// Probes need no login, and reveal nothing else.
	code, text = b.get("/healthz", "", "")
	require.Equal(t, 200, code)
	require.Equal(t, "ok\n", text)
	code, text = b.get("/readyz", "", "")
	require.Equal(t, 200, code)
	require.Equal(t, "ok\n", text)
}

// Profiles need enable-debug-command and an authenticated user, but no further permission.
func TestWhoGetsProfiles(t *testing.T) {
	for setting, want := range map[string]int{"no": 403, "local": 200, "yes": 200} {
		db := open(t, "", map[string]string{"requirepass": "secret", "enable-debug-command": setting})
		do(t, db, "ACL", "SETUSER", "nobody", "on", ">n", "-@all")
		b := browse(t, db)
		code, text := b.get("/debug/pprof/cmdline", "nobody", "n")
		require.Equal(t, want, code, setting)
		require.Equal(t, want == 403, strings.Contains(text, "NOPERM"), setting)
		code, text = b.get("/debug/pprof/goroutine?debug=1", "default", "secret")
		require.Equal(t, want, code, setting)
		require.Equal(t, want == 200, strings.Contains(text, "goroutine profile"))
		code, _ = b.get("/debug/pprof/cmdline", "", "")
		require.Equal(t, 401, code, setting)
	}
}

func TestAFollowerWithoutItsMasterIsNotReady(t *testing.T) {
	db := open(t, "", nil)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer free.Close() // without a server behind it
	host, port, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	do(t, db, "REPLICAOF", host, port)
	b := browse(t, db)
	code, text := b.get("/readyz", "", "")
	require.Equal(t, 503, code)
	require.Equal(t, "the master is not there\n", text)
	code, _ = b.get("/healthz", "", "")
	require.Equal(t, 200, code)
	do(t, db, "REPLICAOF", "NO", "ONE")
	require.Eventually(t, func() bool {
		code, _ := b.get("/readyz", "", "")
		return code == 200
	}, time.Minute, time.Millisecond)
}

// Requests with a foreign Host are refused, except probes.
func TestNamesOfTheDoor(t *testing.T) {
	db := open(t, "", map[string]string{"console-hosts": "redis.example.org,other", "enable-debug-command": "yes"})
	b := browse(t, db)
	asUnder := func(host, path string) int {
		r, err := http.NewRequestWithContext(t.Context(), "GET", b.url+path, nil)
		require.NoError(t, err)
		r.Host = host
		answer, err := b.http.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
		return answer.StatusCode
	}
	pages := []string{"/metrics", "/debug/pprof/cmdline", "/console/", "/", "/console/app.js"}
	for _, host := range []string{"evil.example", "evil.example:9121", "127.0.0.1.evil.example", "localhost.evil.example"} {
		for _, path := range append(pages, "/nothing", "/debug/pprof/heap", "//metrics", "/healthz/") {
			require.Equal(t, 421, asUnder(host, path), "%s %s", host, path)
		}
		require.Equal(t, 200, asUnder(host, "/healthz"))
		require.Equal(t, 200, asUnder(host, "/readyz"))
	}
	for _, host := range []string{"localhost:9121", "[::1]:9121", "10.1.2.3", "Redis.example.org", "other:80"} {
		for _, path := range pages {
			require.Equal(t, 200, asUnder(host, path), "%s %s", host, path)
		}
	}
	do(t, db, "CONFIG", "SET", "console-hosts", "*")
	require.Equal(t, 200, asUnder("any.example", "/metrics"))
}

// An idle connection, or one with an incomplete request, is not a client of the server.
func TestConnectionsAreNoClients(t *testing.T) {
	db := open(t, "", nil)
	b := browse(t, db)
	code, _ := b.get("/metrics", "", "")
	require.Equal(t, 200, code)
	reply, err := db.Do(t.Context(), "CLIENT", "LIST")
	require.NoError(t, err)
	require.NotContains(t, reply.String(), "lib-name=door-http")
	info, err := db.Do(t.Context(), "INFO", "door_http")
	require.NoError(t, err)
	require.Contains(t, info.String(), "door_http_clients:0\r\n")
	require.Contains(t, info.String(), "door_http_connections:1\r\n")
}

// A malformed request ends its connection and has no other effect.
func TestMalformedRequests(t *testing.T) {
	db := open(t, "", nil)
	for _, sent := range []string{"\x00\x01\x02", "GET\r\n\r\n", "GET /metrics HTTP/1.1\r\n\r\n", "GET /metrics HTTP/9.9\r\nHost: x\r\n\r\n",
		"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", "*1\r\n$4\r\nPING\r\n",
		"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic !!!\r\nConnection: close\r\n\r\n"} {
		conn, err := net.Dial("tcp", db.DoorAddr("http"))
		require.NoError(t, err)
		conn.Write([]byte(sent)) // may fail, because the door has closed the connection
		conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, bufio.NewReader(conn))
		require.NoError(t, conn.Close())
	}
	code, _ := browse(t, db).get("/metrics", "", "")
	require.Equal(t, 200, code)
}

// Metrics are served while other clients are connected, and while the server closes.
func TestClosingWithPeers(t *testing.T) {
	db, err := atomredis.Open(atomredis.Options{Config: map[string]string{"door-http": "127.0.0.1:0"}})
	require.NoError(t, err)
	conn, err := net.Dial("tcp", db.DoorAddr("http"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET /metr"))
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = io.Copy(io.Discard, conn)
	if err != nil {
		require.ErrorContains(t, err, "reset")
	}
	_, err = db.Do(context.Background(), "PING")
	require.Error(t, err)
}
