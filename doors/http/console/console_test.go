package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/doors/http/console"
	"github.com/atomredis/atomredis/internal/testing/freeport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The tests run the console in a door of its own, so that they can reach it.
var made atomic.Pointer[console.Console]

func init() {
	door.Register(door.Kind{Name: "http", Port: 9121,
		Directives: []door.Directive{{Name: "console", Default: "yes"}},
		New: func(h door.Host) (door.Door, error) {
			d := &alone{peers: door.Peers{Host: h}}
			d.console = console.New(console.Options{Host: h, Peer: func(r *http.Request) door.Peer {
				return door.Peer{Addr: r.RemoteAddr, Local: r.Host}
			}})
			d.http.Handler = d.console
			made.Store(d.console)
			return d, nil
		}})
}

// alone is a door with only a console.
type alone struct {
	http    http.Server
	peers   door.Peers
	console *console.Console
}

func (d *alone) Serve(l net.Listener) error {
	d.http.Serve(d.peers.Listener(l))
	return nil
}

func (d *alone) Close() error {
	d.http.Close()
	d.peers.Close()
	d.console.Close()
	return nil
}

func (d *alone) Info(func(field, value string)) {}

// open opens a server with a console.
func open(t *testing.T, config map[string]string) *atomredis.DB {
	all := map[string]string{"door-http": "127.0.0.1:0"}
	for k, v := range config {
		all[k] = v
	}
	db, err := atomredis.Open(atomredis.Options{Config: all})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func do(t *testing.T, db *atomredis.DB, lines ...string) {
	t.Helper()
	for _, line := range lines {
		_, err := db.Do(t.Context(), strings.Fields(line))
		require.NoError(t, err, line)
	}
}

// browser is a user's browser on the console.
type browser struct {
	t    *testing.T
	http http.Client
	url  string
}

func browse(t *testing.T, db *atomredis.DB) *browser {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{t, http.Client{Transport: transport, Jar: jar}, "http://" + db.DoorAddr("http") + console.Path}
}

// send sends a request as a page does. headers replace its own headers, including "Host".
func (b *browser) send(ctx context.Context, path string, body any, headers ...string) *http.Response {
	b.t.Helper()
	method, content := "GET", io.Reader(nil)
	if body != nil {
		text, err := json.Marshal(body)
		require.NoError(b.t, err)
		method, content = "POST", strings.NewReader(string(text))
	}
	r, err := http.NewRequestWithContext(ctx, method, b.url+path, content)
	require.NoError(b.t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := b.http.Do(r)
	require.NoError(b.t, err)
	return answer
}

// ask returns the answer to a request.
func (b *browser) ask(path string, body any, headers ...string) (int, string) {
	b.t.Helper()
	answer := b.send(b.t.Context(), path, body, headers...)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(b.t, err)
	return answer.StatusCode, string(text)
}

// login begins a session.
func (b *browser) login(user, password string) (int, string) {
	b.t.Helper()
	return b.ask("session", map[string]string{"user": user, "password": password})
}

// do executes lines of words and returns the replies.
func (b *browser) do(lines ...string) string {
	b.t.Helper()
	commands := [][]string{}
	for _, line := range lines {
		commands = append(commands, strings.Fields(line))
	}
	code, text := b.ask("do", map[string]any{"commands": commands})
	require.Equal(b.t, 200, code, text)
	return strings.TrimSuffix(strings.TrimPrefix(text, `{"replies":[`), "]}")
}

type object map[string]any

func TestPageHasAPolicyAndAsksNobodyElse(t *testing.T) {
	b := browse(t, open(t, nil))
	answer := b.send(t.Context(), "", nil)
	defer answer.Body.Close()
	require.Equal(t, 200, answer.StatusCode)
	policy := answer.Header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
	for _, file := range []string{"app.js", "style.css", "icon.svg", "uplot/uPlot.iife.min.js", "uplot/LICENSE"} {
		code, text := b.ask(file, nil)
		require.Equal(t, 200, code, file)
		require.NotContains(t, text, "//cdn.", file)
	}
	for _, file := range []string{"nothing.js", "../door.go", "%2e%2e/door.go"} {
		code, _ := b.ask(file, nil)
		require.NotEqual(t, 200, code, file)
	}
}

func TestSessionsOfUsers(t *testing.T) {
	db := open(t, map[string]string{"requirepass": "secret"})
	do(t, db, "ACL SETUSER viewer on >v ~user:* +get +set +acl|whoami", "SET user:1 Ada", "SET other x")
	b := browse(t, db)
	for path, body := range map[string]any{"do": object{}, "may": object{}, "tree": object{}, "events": nil} {
		code, text := b.ask(path, body)
		require.Equal(t, 401, code, path)
		require.Contains(t, text, "NOAUTH")
	}
	code, text := b.ask("session", object{})
	require.Equal(t, 401, code)
	require.Contains(t, text, "NOAUTH")
	code, text = b.login("viewer", "wrong")
	require.Equal(t, 401, code)
	require.Contains(t, text, "WRONGPASS")

	answer := b.send(t.Context(), "session", map[string]string{"user": "viewer", "password": "v"})
	answer.Body.Close()
	cookie := answer.Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, console.Path, cookie.Path)
	require.Equal(t, `"viewer","Ada"`, b.do("ACL WHOAMI", "GET user:1"))
	require.Contains(t, b.do("GET other"), `{"error":"NOPERM`)
	code, text = b.ask("may", object{"commands": [][]string{{"SET", "user:2", "x"}, {"SET", "other", "x"}, {"FLUSHALL"}, {"NOPE"}, {}}})
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"may":[true,false,false,false,false]}`, text)

	// Another login makes another session; the old session and its token end.
	require.Equal(t, 1, made.Load().Sessions())
	code, text = b.login("default", "secret")
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"user":"default"}`, text)
	require.Equal(t, 1, made.Load().Sessions())
	other := browse(t, db)
	code, _ = other.ask("do", object{}, "Cookie", cookie.Name+"="+cookie.Value)
	require.Equal(t, 401, code)

	// The session's clients appear in CLIENT LIST, and killing them ends it.
	require.Contains(t, b.do("CLIENT LIST"), "name=console")
	do(t, db, "CLIENT KILL USER default")
	require.Eventually(t, func() bool { return made.Load().Sessions() == 0 }, time.Minute, time.Millisecond)
	b.http.CloseIdleConnections() // idle connections are clients too, and may have been killed
	code, _ = b.ask("do", object{})
	require.Equal(t, 401, code)
	b.login("viewer", "v")
	do(t, db, "ACL DELUSER viewer")
	require.Eventually(t, func() bool { return made.Load().Sessions() == 0 }, time.Minute, time.Millisecond)
	b.http.CloseIdleConnections()

	b.login("default", "secret")
	code, _ = b.ask("logout", object{})
	require.Equal(t, 200, code)
	require.Zero(t, made.Load().Sessions())
}

func TestUserOfTheDoor(t *testing.T) {
	db := open(t, nil)
	do(t, db, "ACL SETUSER metrics on +info", "CONFIG SET door-http-user metrics")
	b := browse(t, db)
	code, text := b.ask("session", object{})
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"user":"metrics"}`, text)
	require.Contains(t, b.do("DBSIZE"), "NOPERM")
}

func TestOtherOriginsAreRefused(t *testing.T) {
	db := open(t, nil)
	b := browse(t, db)
	for _, c := range []struct {
		path    string
		body    any
		headers []string
		code    int
	}{
		{"session", object{}, []string{"Origin", "http://evil.example"}, 403},
		{"session", object{}, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"session", object{}, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"session", object{}, []string{"Content-Type", "text/plain"}, 415},
		{"session", object{}, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"session", object{}, []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"events", nil, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"events", nil, []string{"Sec-Fetch-Site", "none"}, 403},
		{"events?topic=nothing", nil, []string{"Sec-Fetch-Site", "same-origin"}, 400},
		{"do", nil, nil, 404}, // GET must not change anything
	} {
		code, text := b.ask(c.path, c.body, c.headers...)
		require.Equal(t, c.code, code, "%v: %s", c, text)
	}
	do(t, db, "CONFIG SET console no")
	code, _ := b.ask("", nil)
	require.Equal(t, 404, code)
}

// The session of a closed page ends soon, unless another page continues it.
func TestSessionsOfClosedPages(t *testing.T) {
	db := open(t, nil)
	b := browse(t, db)
	b.ask("session", object{})
	made.Load().SetAfterLeave(time.Hour)
	b.ask("leave", object{})
	require.Contains(t, b.do("PING"), "PONG")
	require.Equal(t, 1, made.Load().Sessions())
	made.Load().SetAfterLeave(time.Millisecond)
	b.ask("leave", object{})
	require.Eventually(t, func() bool { return made.Load().Sessions() == 0 }, time.Minute, time.Millisecond)
}

// The view of the group is offered at a server that belongs to one.
func TestTheGroupIsSampled(t *testing.T) {
	addr := freeport.Addr(t)
	db, err := atomredis.Open(atomredis.Options{Dir: t.TempDir(), Config: map[string]string{"door-http": "127.0.0.1:0",
		"raft-addr": addr, "raft-peers": addr, "appendonly": "yes", "cluster-enabled": "yes"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	b := browse(t, db)
	b.ask("session", object{})
	events := b.listen("topic=systems&topic=group")
	for _, want := range []string{`"group"`, `"status":{"map":["addr","` + addr + `","state","leader"`,
		`"shards":[{"map":["slots",[0,16383]`, "cluster_rebalance:no"} {
		require.Eventually(t, func() bool {
			_, data := events.next()
			return strings.Contains(data, want)
		}, 30*time.Second, time.Millisecond, want)
	}
}

// Samples of the console appear neither in the slow log nor in the latencies; commands of its user do.
func TestTheConsoleDoesNotShowItself(t *testing.T) {
	db := open(t, map[string]string{"slowlog-log-slower-than": "0", "commandlog-reply-larger-than": "1"})
	do(t, db, "SET spiderq:{tasks} x", "RPUSH __pressure__:q x", "SLOWLOG RESET", "CONFIG RESETSTAT")
	b := browse(t, db)
	b.ask("session", object{})
	events := b.listen("topic=overview&topic=systems&topic=clients")
	seen := map[string]string{}
	for len(seen) < 3 {
		topic, data := events.next()
		seen[topic] = data
	}
	require.JSONEq(t, `{"found":["pressure","spiderq"]}`, seen["systems"])
	require.Contains(t, b.do("STRLEN k"), "0")
	for _, log := range []string{"SLOWLOG GET", "COMMANDLOG GET 100 large-reply", "LATENCY HISTOGRAM info scan client|list"} {
		reply, err := db.Do(t.Context(), strings.Fields(log))
		require.NoError(t, err)
		for _, word := range []string{"INFO", "SCAN", "LIST", "info", "scan", "HISTOGRAM"} {
			require.NotContains(t, reply.String(), word, log)
		}
		if log == "SLOWLOG GET" {
			require.Contains(t, reply.String(), "STRLEN")
		}
	}
}

// Requests with too large announced lengths or too many commands are refused before memory is allocated.
func TestRequestsThatAreTooLarge(t *testing.T) {
	db := open(t, nil)
	b := browse(t, db)
	code, _ := b.ask("session", object{"password": strings.Repeat("x", 5000)})
	require.Equal(t, 400, code)
	code, _ = b.ask("session", object{})
	require.Equal(t, 200, code)
	for name, commands := range map[string]any{
		"nothing":  make([][]string, 1001),
		"commands": slices.Repeat([][]string{{}}, 1001), "words": [][]string{make([]string, 1<<17+1)},
		"depth": slices.Repeat([]any{[]any{[]any{}}}, 1001),
	} {
		code, text := b.ask("do", object{"commands": commands})
		require.Equal(t, 400, code, name)
		require.Contains(t, text, "too many commands", name)
	}
	require.Contains(t, b.do("PING"), "PONG")
	conn, err := net.Dial("tcp", db.DoorAddr("http"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("POST /console/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 15000000\r\n\r\n{"))
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err, "nobody waits for the rest")
	require.Equal(t, 400, answer.StatusCode)
}

func TestRepliesKeepEveryByteAndHideSecrets(t *testing.T) {
	db := open(t, map[string]string{"masterauth": "the-secret"})
	b := browse(t, db)
	b.ask("session", object{})
	all := make([]byte, 256)
	runes := make([]rune, 256)
	for i := range all {
		all[i], runes[i] = byte(i), rune(i)
	}
	_, text := b.ask("do", object{"commands": [][]string{{"SET", string(runes), string(runes)}, {"GET", string(runes)}, {"KEYS", "*"}}})
	var got struct{ Replies []any }
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.Equal(t, []any{map[string]any{"status": "OK"}, string(runes), []any{string(runes)}}, got.Replies)
	reply, err := db.Do(t.Context(), "GET", all)
	require.NoError(t, err)
	stored, err := reply.Bytes()
	require.NoError(t, err)
	require.Equal(t, all, stored)

	do(t, db, "HSET h a 1", "SADD s x", "ZADD z 1.5 m")
	require.Equal(t, `null,{"map":["a","1"]},{"set":["x"]},{"double":"1.5"},9007199254740991,{"big":"9007199254740993"},[],true`,
		b.do("GET none", "HGETALL h", "SMEMBERS s", "ZSCORE z m", "INCRBY small 9007199254740991", "INCRBY large 9007199254740993",
			"LRANGE none 0 1", "EVAL redis.setresp(3);return(true) 0"))
	require.Contains(t, b.do("INFO server"), `{"text":"# Server\u000d\u000a`)

	do(t, db, "CONFIG SET requirepass hush-hush", "ACL SETUSER editor on >word-of-editor")
	for _, line := range []string{"CONFIG GET *", "CONFIG GET requirepass", "CONFIG GET masterauth", "ACL LIST", "ACL GETUSER editor",
		"SLOWLOG GET"} {
		text := b.do(line)
		require.NotContains(t, text, `{"error"`, line)
		require.NotContains(t, text, "the-secret", line)
		require.NotContains(t, text, "hush-hush", line)
		require.NotRegexp(t, "[0-9a-f]{64}", text, line)
	}
	require.Equal(t, `{"map":["masterauth","(hidden)"]}`, b.do("CONFIG GET masterauth"))
}

func TestLimitsOfRequests(t *testing.T) {
	db := open(t, nil)
	b := browse(t, db)
	b.ask("session", object{})
	many := make([][]string, 1001)
	for i := range many {
		many[i] = []string{"PING"}
	}
	for path, bodies := range map[string][]any{
		"do": {object{"commands": many}, object{"commands": [][]string{{"GET", "\u0100"}}}, object{"commands": "x"},
			object{"db": 99, "commands": [][]string{{"PING"}}}, []string{}},
		"may":  {object{"commands": many}, object{"db": -1}},
		"tree": {object{"cursor": "x"}, object{"type": 5}},
	} {
		for _, body := range bodies {
			code, text := b.ask(path, body)
			require.Equal(t, 400, code, "%s: %s", path, text)
			require.Contains(t, text, `{"error":"`)
		}
	}
	do(t, db, "SETRANGE large 9000000 x")
	require.Equal(t, `{"error":"the reply is larger than what the console shows"},{"status":"PONG"}`, b.do("GET large", "PING"))
	require.Contains(t, b.do("SUBSCRIBE c", "PING"), `{"error":"subscribe: the command needs a connection of its own"}`)

	// Closing a page cancels its waiting commands.
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		r, _ := http.NewRequestWithContext(ctx, "POST", b.url+"do", strings.NewReader(`{"commands":[["BLPOP","q","0"]]}`))
		r.Header.Set("Content-Type", "application/json")
		answer, err := b.http.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		gone <- err
	}()
	blocked := func(n string) func() bool {
		return func() bool { return strings.Contains(b.do("INFO clients"), "blocked_clients:"+n) }
	}
	require.Eventually(t, blocked("1"), time.Minute, time.Millisecond)
	cancel()
	require.Error(t, <-gone)
	require.Eventually(t, blocked("0"), time.Minute, time.Millisecond)
	do(t, db, "RPUSH q x")
	require.Equal(t, `1`, b.do("LLEN q"))

	// A new session replaces the least recently used one.
	for range console.MaxSessions + 3 {
		code, _ := browse(t, db).ask("session", object{})
		require.Equal(t, 200, code)
	}
	require.Equal(t, console.MaxSessions, made.Load().Sessions())
	code, _ := b.ask("do", object{})
	require.Equal(t, 401, code)
}

func TestSessionsEndWhenNobodyUsesThem(t *testing.T) {
	db := open(t, nil)
	made.Load().SetIdle(20 * time.Millisecond)
	b := browse(t, db)
	var s *stream
	for s == nil { // on a busy machine a session may end before its page listens
		b.ask("session", object{})
		s = b.tryListen("topic=slow")
	}
	for range 3 {
		s.next() // an open page keeps its session
	}
	require.Equal(t, 1, made.Load().Sessions())
	s.close()
	require.Eventually(t, func() bool { return made.Load().Sessions() == 0 }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return made.Load().Feeds() == 0 }, time.Minute, time.Millisecond)
}

// stream is a page that receives events.
type stream struct {
	t     *testing.T
	lines *bufio.Reader
	body  io.Closer
	end   context.CancelFunc
}

func (b *browser) listen(query string) *stream {
	b.t.Helper()
	s := b.tryListen(query)
	require.NotNil(b.t, s)
	return s
}

// tryListen begins to listen; it returns nil if there is no session.
func (b *browser) tryListen(query string) *stream {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	answer := b.send(ctx, "events?"+query, nil)
	if answer.StatusCode == 401 {
		cancel()
		answer.Body.Close()
		return nil
	}
	require.Equal(b.t, 200, answer.StatusCode)
	require.Equal(b.t, "text/event-stream", answer.Header.Get("Content-Type"))
	s := &stream{b.t, bufio.NewReader(answer.Body), answer.Body, cancel}
	b.t.Cleanup(s.close)
	return s
}

func (s *stream) close() {
	s.end()
	s.body.Close()
}

// next returns the next event.
func (s *stream) next() (topic, data string) {
	s.t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		require.NoError(s.t, err)
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			topic = name
		} else if text, ok := strings.CutPrefix(line, "data: "); ok {
			return topic, text
		}
	}
}

func TestStreamsAreSharedAndEnd(t *testing.T) {
	db := open(t, nil)
	do(t, db, "ACL SETUSER viewer on >v +info", "PRESSURE.CREATE frames", "PRESSURE.PUT frames x", "SPIDERQ.ADD tasks k v",
		"SKEIN.PUT app k VALUE v", "XADD command:camera * a b", "PERPER.CALL greeter g hello", "FT.CREATE shop SCHEMA title TEXT")
	b, viewer := browse(t, db), browse(t, db)
	b.ask("session", object{})
	viewer.login("viewer", "v")
	want := map[string]string{"overview": `"latency":{"map":[`, "clients": `"commands":{`, "slow": `"slowlog":[`,
		"pressure": `["frames",`, "atom": `["camera",`, "spiderq": `["tasks",`, "skein": `["app",`, "agents": `["greeter",`, "perper": `"executions":1`,
		"search": `"walked":true,"items":[["shop",`, "systems": `"search"`,
		"group": `"status":{"error":"ERR This server belongs to no group`}
	query := url.Values{}
	for topic := range want {
		query.Add("topic", topic)
	}
	one, two := b.listen(query.Encode()), b.listen(query.Encode())
	for _, s := range []*stream{one, two} {
		for missing := len(want); missing > 0; {
			topic, data := s.next()
			if want[topic] != "" && strings.Contains(data, want[topic]) {
				require.True(t, json.Valid([]byte(data)))
				missing--
			}
			require.NotEmpty(t, want[topic])
		}
	}
	require.Equal(t, len(want), made.Load().Feeds())

	// A user with other permissions sees only what they allow.
	theirs := viewer.listen("topic=overview&topic=clients")
	for range 2 {
		topic, data := theirs.next()
		if topic == "overview" {
			require.Contains(t, data, "used_memory")
			require.Contains(t, data, `"latency":{"error":"NOPERM`)
		} else {
			require.Contains(t, data, `{"error":"NOPERM`)
		}
	}
	require.Equal(t, len(want)+2, made.Load().Feeds())
	one.close()
	theirs.close()
	require.Eventually(t, func() bool { return made.Load().Feeds() == len(want) }, time.Minute, time.Millisecond)

	// A page learns of a logout.
	b.ask("logout", object{})
	for topic := ""; topic != "end"; {
		topic, _ = two.next()
	}
	require.Eventually(t, func() bool { return made.Load().Feeds() == 0 }, time.Minute, time.Millisecond)
}

func TestClientsArePaged(t *testing.T) {
	db := open(t, nil)
	b := browse(t, db)
	b.ask("session", object{})
	for i := range 250 {
		conn, err := db.Dial(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		fmt.Fprintf(conn, "CLIENT SETNAME c%03d\r\n", i)
		_, err = bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
	}
	var got struct {
		Total, Found, Offset int
		Page                 []string
		Commands             map[string]int
	}
	page := func(query string) {
		_, data := b.listen("topic=clients&" + query).next()
		require.NoError(t, json.Unmarshal([]byte(data), &got))
	}
	page("sort=-name&filter=name%3Dc")
	require.Equal(t, 200, len(got.Page))
	require.GreaterOrEqual(t, got.Found, 250)
	require.GreaterOrEqual(t, got.Commands["client|setname"], 250)
	page("sort=name&filter=name%3Dc0&offset=50")
	require.Equal(t, []int{100, 50, 50}, []int{got.Found, got.Offset, len(got.Page)})
	require.Contains(t, got.Page[0], "name=c050 ")
	page("sort=-id&filter=nothing&offset=-5")
	require.Zero(t, got.Found)
}

func TestTreeOfKeys(t *testing.T) {
	db := open(t, nil)
	b := browse(t, db)
	b.ask("session", object{})
	for i := range 5000 {
		do(t, db, fmt.Sprintf("SET user:%d:item:%d x", i%10, i))
	}
	do(t, db, "HSET user:0 a b", "SET flat x", "SET * x", "SET user:a*b:c x")
	_, err := db.Do(t.Context(), "SET", "\xff\x00<b>:k", "v")
	require.NoError(t, err)
	type group struct {
		Keys, Weighed int
		Bytes         int64
		Types         map[string]int
	}
	walk := func(body object) (keys []string, groups map[string]group) {
		groups = map[string]group{}
		for cursor := ""; cursor != "0"; {
			body["cursor"], body["separator"] = cursor, ":"
			code, text := b.ask("tree", body)
			require.Equal(t, 200, code, text)
			var got struct {
				Cursor string
				Keys   []string
				Groups map[string]group
			}
			require.NoError(t, json.Unmarshal([]byte(text), &got))
			cursor = got.Cursor
			keys = append(keys, got.Keys...)
			for name, g := range got.Groups {
				sum := groups[name]
				sum.Keys += g.Keys
				sum.Weighed += g.Weighed
				sum.Bytes += g.Bytes
				groups[name] = sum
			}
		}
		return keys, groups
	}
	keys, groups := walk(object{})
	require.ElementsMatch(t, []string{"flat", "*"}, keys)
	require.Equal(t, 5002, groups["user:"].Keys)
	require.Positive(t, groups["user:"].Bytes)
	require.Less(t, groups["user:"].Weighed, 1000)
	require.Equal(t, 1, groups["\u00ff\x00<b>:"].Keys)
	keys, groups = walk(object{"prefix": "user:"})
	require.Equal(t, []string{"0"}, keys)
	require.Len(t, groups, 11)
	require.Equal(t, 500, groups["3:"].Keys)
	keys, groups = walk(object{"prefix": "user:a*b:"})
	require.Equal(t, []string{"c"}, keys)
	require.Empty(t, groups)
	keys, groups = walk(object{"match": "user:0*", "type": "hash"})
	require.Empty(t, keys)
	require.Equal(t, 1, groups["user:"].Keys)
}
