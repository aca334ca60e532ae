package api_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
	_ "github.com/atomredis/atomredis/doors/http"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api is an open server, and a program that uses it as the default user.
type api struct {
	t     *testing.T
	db    *atomredis.DB
	http  *http.Client
	url   string
	token string // none if it is ""
}

// open opens a server whose default user has the password "secret", in memory unless dir is given.
func open(t *testing.T, dir string, config map[string]string) api {
	all := map[string]string{"door-http": "127.0.0.1:0", "http-api": "yes", "requirepass": "secret"}
	for k, v := range config {
		all[k] = v
	}
	db, err := atomredis.Open(atomredis.Options{Dir: dir, Config: all})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return api{t, db, &http.Client{Transport: transport}, "http://" + db.DoorAddr("http"), "secret"}
}

// as is the same program with another token.
func (a api) as(token string) api {
	a.token = token
	return a
}

// do executes a command of the server's own program, and returns the reply as text.
func (a api) do(args ...any) string {
	a.t.Helper()
	r, err := a.db.Do(a.t.Context(), args...)
	require.NoError(a.t, err)
	text, err := r.Text()
	require.NoError(a.t, err)
	return text
}

// send sends a request. headers are names and values; "Host" replaces the host.
func (a api) send(ctx context.Context, method, path string, body io.Reader, headers ...string) *http.Response {
	a.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, a.url+path, body)
	require.NoError(a.t, err)
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := a.http.Do(r)
	require.NoError(a.t, err)
	return answer
}

// ask returns the status and the text of an answer.
func (a api) ask(method, path, body string, headers ...string) (int, string) {
	a.t.Helper()
	answer := a.send(a.t.Context(), method, path, strings.NewReader(body), headers...)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(a.t, err)
	return answer.StatusCode, string(text)
}

// require requires an answer.
func (a api) require(status int, want, method, path, body string, headers ...string) {
	a.t.Helper()
	code, text := a.ask(method, path, body, headers...)
	require.Equal(a.t, want, text)
	require.Equal(a.t, status, code)
}

func TestCommandInTheBody(t *testing.T) {
	a := open(t, "", nil)
	a.require(200, `{"result":"OK"}`, "POST", "/", `["SET","k","v","EX",100]`)
	a.require(200, `{"result":"v"}`, "POST", "/", `["get","k"]`)
	a.require(200, `{"result":null}`, "POST", "/", `["GET","nothing"]`)
	a.require(200, `{"result":3}`, "POST", "/", ` [ "RPUSH" , "l" , 1 , 2.50 , true ] `)
	a.require(200, `{"result":["1","2.50","true"]}`, "PUT", "/", `["LRANGE","l",0,-1]`)
	a.require(200, `{"result":[]}`, "POST", "/", `["LRANGE","nothing",0,-1]`)
	a.require(200, `{"result":"PONG"}`, "POST", "/", `["PING"]`)
	a.require(200, `{"result":9223372036854775807}`, "POST", "/", `["INCRBY","n",9223372036854775807]`)
	a.do("HSET", "h", "f", "v")
	a.do("ZADD", "z", "1.5", "m")
	a.require(200, `{"result":["f","v"]}`, "POST", "/", `["HGETALL","h"]`)
	a.require(200, `{"result":["m","1.5"]}`, "POST", "/", `["ZRANGE","z",0,-1,"WITHSCORES"]`)
	a.require(200, `{"result":["0",["h"]]}`, "POST", "/", `["SCAN",0,"TYPE","hash","COUNT",100]`)
	a.require(200, `{"result":[1,[null,"a"],{"error":"ERR x"}]}`, "POST", "/", `["EVAL","return {1,{false,'a'},{err='ERR x'}}",0]`)
	a.require(200, `{"result":["request"]}`, "POST", "/", `["EVAL","return {redis.call('ECHO','request')}",0]`)
}

func TestCommandInThePath(t *testing.T) {
	a := open(t, "", nil)
	a.require(200, `{"result":"OK"}`, "GET", "/set/k/v?EX=100", "")
	ttl := func(most int) {
		n, err := strconv.Atoi(a.do("TTL", "k"))
		require.NoError(t, err)
		require.True(t, most/2 < n && n <= most, n)
	}
	ttl(100)
	a.require(200, `{"result":null}`, "POST", "/set/k?EX=50&NX=", "body")
	a.require(200, `{"result":"v"}`, "GET", "/GET/k", "")
	a.require(200, `{"result":"OK"}`, "POST", "/set/k?EX=50&XX", `{"a": "\u00e4"}`)
	ttl(50)
	a.require(200, `{"result":"{\"a\": \"\\u00e4\"}"}`, "POST", "/get/k", "")
	a.require(200, `{"result":"OK"}`, "PUT", "/mset/a%2Fb/x%20y/c+d", "+")
	a.require(200, `{"result":["x y","+"]}`, "GET", "/mget/a%2Fb/c+d", "")
	a.require(200, `{"result":"OK"}`, "GET", "/mset//x/y/", "")
	a.require(200, `{"result":["x",""]}`, "GET", "/mget//y", "")
	a.require(200, `{"result":"b c"}`, "GET", "/echo?b+c", "")
	a.require(200, `{"result":"default"}`, "GET", "/acl/whoami", "")
	a.require(200, `{"result":"OK"}`, "POST", "/JSON.SET/j/$", `{"a":1}`, "Upstash-Sync-Token", "anything")
	a.require(200, `{"result":"OK"}`, "POST", "/set/k/v?_db=3", "")
	a.require(200, `{"result":"v"}`, "POST", "/?_db=3", `["GET","k"]`)
	a.require(400, `{"error":"ERR DB index is out of range"}`, "GET", "/get/k?_db=99", "")
	code, text := a.ask("HEAD", "/incr/n", "")
	require.Equal(t, 200, code)
	require.Empty(t, text)
	require.Equal(t, "1", a.do("GET", "n"))
}

func TestPipeline(t *testing.T) {
	a := open(t, t.TempDir(), map[string]string{"appendfsync": "always"})
	a.require(200, `[{"result":"OK"},{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"},`+
		`{"error":"ERR unknown command 'NOTHING', with args beginning with: 'x' "},{"result":null},{"result":"OK"},{"result":null},`+
		`{"error":"ERR multi: the command needs a connection of its own"},{"result":2}]`, "POST", "/pipeline",
		`[["SET","s","v"],["LPUSH","s",1],["NOTHING","x"],["GET","nothing"],["SELECT",1],["GET","s"],["MULTI"],["RPUSH","l",1,2]]`)
	a.require(200, `[]`, "POST", "/pipeline", `[]`)
	a.require(200, `[{"result":"djE="},{"error":"ERR syntax error"}]`, "POST", "/pipeline", `[["ECHO","v1"],["SET","k","v","x"]]`,
		"Upstash-Encoding", "base64")
	a.require(200, "+OK\r\n-ERR syntax error\r\n-ERR watch: the command needs a connection of its own\r\n*2\r\n$1\r\nv\r\n$-1\r\n",
		"POST", "/pipeline", `[["SET","k","v"],["SET","k","v","x"],["WATCH","k"],["MGET","k","x"]]`, "Upstash-Response-Format", "resp2")
	a.require(200, `[{"result":"OK"},{"result":"OK"},{"result":"program"}]`, "POST", "/pipeline",
		`[["CLIENT","SETINFO","LIB-NAME","x"],["client","setname","program"],["CLIENT","GETNAME"]]`)
}

func TestTransaction(t *testing.T) {
	a := open(t, "", nil)
	a.require(200, `[{"result":"OK"},{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"},{"result":["v"]}]`,
		"POST", "/multi-exec", `[["SET","s","v"],["LPUSH","s",1],["MGET","s"]]`, "Upstash-Response-Format", "resp2")
	a.require(200, `[{"result":"OK"},{"result":"dg=="}]`, "POST", "/multi-exec", `[["SET","s","v"],["GET","s"]]`,
		"Upstash-Encoding", "base64")
	a.require(200, `[]`, "POST", "/multi-exec", `[]`)
	for _, test := range [][2]string{
		{`[["SET","t","v"],["NOTHING"]]`, "ERR unknown command 'NOTHING', with args beginning with: "},
		{`[["SET","t","v"],["GET"]]`, "ERR wrong number of arguments for 'get' command"},
		{`[["SET","t","v"],["WATCH","k"]]`, "ERR watch: the command needs a connection of its own"},
		{`[["SET","t","v"],["SUBSCRIBE","c"]]`, "ERR subscribe: the command needs a connection of its own"},
	} {
		a.require(400, `{"error":"`+test[1]+`"}`, "POST", "/multi-exec", test[0])
		require.Equal(t, "0", a.do("EXISTS", "t"))
	}
}

func TestRequestsThatAreMalformed(t *testing.T) {
	a := open(t, "", nil)
	const command = `{"error":"ERR a command must be a JSON array of strings, numbers and booleans"}`
	for _, body := range []string{"", "x", "{}", `"PING"`, "[]", `[["PING"]]`, `["PING",null]`, `["PING",{"a":1}]`, `["PING"`, `["PING"]]`,
		`["PING"] 1`, `["PING" "x"]`, `["PING",]`, `[1 2]`, "null", "[\"PING\x00\"]", strings.Repeat("[", 100_000)} {
		a.require(400, command, "POST", "/", body)
	}
	for _, path := range []string{"/pipeline", "/multi-exec"} {
		for _, body := range []string{"", "x", "{}", `["PING"]`, `[["PING"],[]]`, `[["PING"],["PING",[]]]`, `[["PING"]`, `[["PING"]],`} {
			a.require(400, `{"error":"ERR the commands must be a JSON array of arrays of strings, numbers and booleans"}`, "POST", path, body)
		}
		a.require(400, `{"error":"ERR the request has more than 131072 words"}`, "POST", path,
			`[["PING"`+strings.Repeat(`,1`, 131072)+`]]`)
	}
	a.require(400, `{"error":"ERR the path or the query is malformed"}`, "GET", "/set/k?EX=%zz", "")
	a.require(400, `{"error":"ERR Upstash-Response-Format must be json or resp2"}`, "GET", "/get/k", "", "Upstash-Response-Format", "xml")
	a.require(400, `{"error":"ERR Upstash-Encoding has no meaning for the format resp2"}`, "GET", "/get/k", "",
		"Upstash-Response-Format", "resp2", "Upstash-Encoding", "base64")
	for _, method := range []string{"DELETE", "PATCH"} {
		a.require(405, `{"error":"ERR the method must be one of GET, HEAD, POST, PUT"}`, method, "/get/k", "")
	}
	a.require(400, `{"error":"ERR unknown command 'favicon.ico', with args beginning with: "}`, "GET", "/favicon.ico", "")
	a.require(400, `{"error":"ERR wrong number of arguments for 'get' command"}`, "GET", "/get", "")
	a.require(400, `{"error":"ERR auth: the command needs a connection of its own"}`,
		"POST", "/", `["AUTH","x"]`)
	a.require(413, `{"error":"ERR the body is larger than 16777216 bytes"}`, "POST", "/set/k", strings.Repeat("x", 16<<20+1))

	// A body of unknown length has the same limit.
	body := func(n int) io.Reader { return io.MultiReader(strings.NewReader(strings.Repeat("x", n))) }
	answer := a.send(t.Context(), "POST", "/set/k", body(1<<20))
	require.NoError(t, answer.Body.Close())
	require.Equal(t, "1048576", a.do("STRLEN", "k"))
	answer = a.send(t.Context(), "POST", "/set/k", body(17<<20))
	require.NoError(t, answer.Body.Close())
	require.Equal(t, 413, answer.StatusCode)
	require.Equal(t, "1048576", a.do("STRLEN", "k"))
}

func TestBinaryValues(t *testing.T) {
	a := open(t, "", nil)
	value := make([]byte, 256)
	for i := range value {
		value[i] = byte(i)
	}
	value = append(value, "\u00e4\u2028<>&\U0001F600\xed\xa0\x80"...)
	a.require(200, `{"result":"OK"}`, "POST", "/set/k", string(value))
	require.Equal(t, string(value), a.do("GET", "k"))
	a.require(200, `{"result":"`+base64.StdEncoding.EncodeToString(value)+`"}`, "GET", "/get/k", "", "Upstash-Encoding", "base64")
	code, text := a.ask("GET", "/get/k", "")
	require.Equal(t, 200, code)
	var answer struct{ Result string }
	require.NoError(t, json.Unmarshal([]byte(text), &answer))
	require.Equal(t, string([]rune(string(value))), answer.Result, "each byte that is not UTF-8 is U+FFFD")
	a.require(200, "$"+fmt.Sprint(len(value))+"\r\n"+string(value)+"\r\n", "GET", "/get/k", "", "Upstash-Response-Format", "resp2")

	// In base64 only a status OK stays as it is.
	a.require(200, `{"result":"OK"}`, "GET", "/set/k/OK", "", "Upstash-Encoding", "BASE64")
	a.require(200, `{"result":"T0s="}`, "GET", "/get/k", "", "Upstash-Encoding", "base64")
	a.require(200, `{"result":"UE9ORw=="}`, "GET", "/ping", "", "Upstash-Encoding", "base64")
	a.require(200, `{"result":["T0s=",1,["YQ==",null,""]]}`, "POST", "/", `["EVAL","return {{ok='OK'},1,{'a',false,''}}",0]`,
		"Upstash-Encoding", "base64")
	a.require(400, `{"error":"ERR unknown command 'x', with args beginning with: "}`, "GET", "/x", "", "Upstash-Encoding", "base64")
}

func TestLargeReplies(t *testing.T) {
	a := open(t, "", nil)
	large := strings.Repeat("0123456789abcde\n", 1<<20) // 16 MB
	a.do("SET", "k", large)
	code, text := a.ask("GET", "/get/k", "", "Upstash-Encoding", "base64")
	require.Equal(t, 200, code)
	require.Equal(t, `{"result":"`+base64.StdEncoding.EncodeToString([]byte(large))+`"}`, text)
	var answers []struct{ Result string }
	_, text = a.ask("POST", "/pipeline", `[["GET","k"],["GET","k"],["ECHO","x"]]`)
	require.NoError(t, json.Unmarshal([]byte(text), &answers))
	require.Len(t, answers, 3)
	require.Equal(t, large, answers[1].Result)
	require.Equal(t, "x", answers[2].Result)

	members := make([]any, 100_000)
	for i := range members {
		members[i] = i
	}
	a.do("RPUSH", "l", members)
	_, text = a.ask("GET", "/lrange/l/0/-1", "")
	var list struct{ Result []string }
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	require.Len(t, list.Result, len(members))
	require.Equal(t, "99999", list.Result[99999])
}

// Requests are refused without a token, whatever the default user may do, and with a wrong one.
func TestTokens(t *testing.T) {
	a := open(t, "", nil)
	a.do("ACL", "SETUSER", "reader", "on", ">r:s", ">second", "~k", "+get", "+subscribe", "+exec", "resetchannels")
	a.do("SET", "k", "v")
	none := a.as("")
	none.require(200, `{"result":"v"}`, "GET", "/get/k?_token=secret", "")
	none.require(200, `{"result":"v"}`, "GET", "/get/k?_token=reader%3Ar:s", "")
	none.require(200, `[{"result":"v"}]`, "POST", "/pipeline?_token=default:secret", `[["GET","k"]]`)
	none.require(200, `{"result":"v"}`, "GET", "/get/k", "", "Authorization", "bearer reader:second")
	a.as("reader:r:s").require(200, `{"result":"v"}`, "POST", "/", `["GET","k"]`)
	a.as("reader:second").require(400,
		`{"error":"NOPERM User reader has no permissions to run the 'set' command"}`, "GET", "/set/k/x", "")
	a.as("reader:second").require(400, `{"error":"NOPERM No permissions to access a key"}`, "GET", "/get/other", "")
	a.as("reader:second").require(400, `{"error":"NOPERM No permissions to access a channel"}`, "GET", "/subscribe/c", "")
	a.as("reader:second").require(400, `{"error":"NOPERM User reader has no permissions to run the 'monitor' command"}`, "GET", "/monitor", "")
	a.as("reader:second").require(400, `{"error":"NOPERM User reader has no permissions to run the 'select' command"}`,
		"GET", "/get/k?_db=1", "")

	const wrong, missing = `{"error":"WRONGPASS invalid username-password pair or user is disabled."}`,
		`{"error":"NOAUTH Authentication required."}`
	for _, token := range []string{"wrong", "reader:wrong", "nobody:secret", ":secret", "default:", "reader:r"} {
		a.as(token).require(401, wrong, "GET", "/get/k", "")
		a.as(token).require(401, wrong, "POST", "/subscribe/c", "")
	}
	none.require(401, wrong, "POST", "/", "not read", "Authorization", "Bearer wrong")
	none.require(401, wrong, "GET", "/get/k?_token=secret", "", "Authorization", "Bearer wrong")
	none.require(401, missing, "GET", "/get/k", "", "Authorization", "Basic ZGVmYXVsdDpzZWNyZXQ=")
	none.require(401, missing, "GET", "/get/k", "", "Authorization", "Bearer ")
	none.require(401, missing, "GET", "/get/k?_token=", "")
	for _, path := range []string{"/", "/pipeline", "/multi-exec", "/monitor", "/get/k"} {
		none.require(401, missing, "POST", path, "not read")
	}
	answer := none.send(t.Context(), "POST", "/", strings.NewReader(strings.Repeat("x", 1<<20)))
	require.NoError(t, answer.Body.Close())
	require.Equal(t, `Bearer realm="atomredis"`, answer.Header.Get("WWW-Authenticate"))
	require.True(t, answer.Close, "the connection of a peer that sends much is closed")

	// A page that does not know the password cannot use the query if any token is right.
	a.do("CONFIG", "SET", "requirepass", "")
	a.do("ACL", "SETUSER", "guest", "on", "nopass", "~k", "+get")
	none.require(401, missing, "GET", "/get/k", "")
	for _, token := range []string{"x", "secret", "default:x", "guest:x", "guest:"} {
		none.require(401, missing, "GET", "/get/k?_token="+token, "")
	}
	none.require(401, missing, "GET", "/get/k?_token=", "")
	none.require(200, `{"result":"v"}`, "GET", "/get/k?_token=reader:second", "")
	a.as("anything").require(200, `{"result":"v"}`, "GET", "/get/k", "")
	a.as("guest:x").require(200, `{"result":"v"}`, "GET", "/get/k", "")
	a.do("ACL", "DELUSER", "reader")
	a.as("reader:second").require(401, wrong, "GET", "/get/k", "")
	require.Contains(t, a.do("INFO", "door_http"), "http_api_requests_refused:")
}

// Pages may use the interface if their origin is listed or the server's own. A program has no origin.
func TestOrigins(t *testing.T) {
	a := open(t, "", map[string]string{"http-api-origins": "https://app.example,http://localhost:3000"})
	const refused = `{"error":"ERR the request comes from an origin that http-api-origins does not list"}`
	for _, origin := range []string{"https://evil.example", "http://app.example", "https://app.example:444", "null",
		"https://app.example.evil.example", "https://evil.example/https://app.example"} {
		for _, method := range []string{"GET", "POST", "OPTIONS"} {
			a.require(403, refused, method, "/set/k/v", "", "Origin", origin)
		}
	}
	for _, site := range []string{"cross-site", "same-site"} {
		a.require(403, refused, "GET", "/set/k/v", "", "Sec-Fetch-Site", site)
	}
	a.require(403, refused, "OPTIONS", "/set/k/v", "")
	require.Equal(t, "0", a.do("EXISTS", "k"))
	for _, headers := range [][]string{{"Origin", "https://app.example"}, {"Origin", "http://localhost:3000", "Sec-Fetch-Site", "cross-site"},
		{"Origin", a.url}, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}} {
		a.require(200, `{"result":"OK"}`, "GET", "/set/k/v", "", headers...)
	}
	for _, path := range []string{"/", "/get/k"} {
		answer := a.as("").send(t.Context(), "OPTIONS", path, nil, "Origin", "https://app.example",
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,upstash-encoding")
		require.NoError(t, answer.Body.Close())
		require.Equal(t, 204, answer.StatusCode)
		require.Equal(t, "https://app.example", answer.Header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, "GET, HEAD, POST, PUT", answer.Header.Get("Access-Control-Allow-Methods"))
		require.Equal(t, "authorization,upstash-encoding", answer.Header.Get("Access-Control-Allow-Headers"))
	}
	answer := a.as("").send(t.Context(), "GET", "/get/k", nil, "Origin", "https://app.example")
	require.NoError(t, answer.Body.Close())
	require.Equal(t, 401, answer.StatusCode)
	require.Equal(t, "https://app.example", answer.Header.Get("Access-Control-Allow-Origin"), "a page sees why it was refused")
	require.Equal(t, "Origin", answer.Header.Get("Vary"))

	a.do("CONFIG", "SET", "http-api-origins", "*")
	a.require(200, `{"result":"v"}`, "GET", "/get/k", "", "Origin", "https://any.example")
	a.require(200, `{"result":"v"}`, "GET", "/get/k", "", "Sec-Fetch-Site", "cross-site")
	for _, wrong := range []string{"app.example", "https://app.example/", "https://", "https://a,", "https://a/b", "https://App.example",
		"HTTPS://app.example", "https://app.example:443", "http://app.example:80", "https://app.example,http://App.example"} {
		_, err := a.db.Do(t.Context(), "CONFIG", "SET", "http-api-origins", wrong)
		require.Error(t, err, wrong)
	}

	a.do("CONFIG", "SET", "http-api-origins", "https://app.example:80,http://app.example:443,http://[::1]:8080")

	// As for all paths, a page whose host name was rebound to this address is refused.
	require.Equal(t, 421, first(a.ask("POST", "/", `["PING"]`, "Host", "evil.example")))
}

func first(code int, _ string) int { return code }

func TestOffByDefault(t *testing.T) {
	a := open(t, "", map[string]string{"http-api": "no"})
	for _, path := range []string{"/get/k", "/pipeline", "/openapi.json", "/subscribe/c"} {
		require.Equal(t, 404, first(a.ask("GET", path, "")))
	}
	require.Equal(t, 405, first(a.ask("POST", "/", `["PING"]`)))
	a.do("CONFIG", "SET", "http-api", "yes")
	a.require(200, `{"result":"PONG"}`, "POST", "/", `["PING"]`)

	// The paths of the door are no commands.
	require.Equal(t, 200, first(a.ask("GET", "/healthz", "")))
	require.Equal(t, 200, first(a.ask("GET", "/console/", "")))
	require.Equal(t, 200, first(a.ask("GET", "/", "")))
}

// A request has a client of its own, which is not there any more when it was answered.
func TestRequestsLeaveNoClients(t *testing.T) {
	a := open(t, "", nil)
	a.require(200, `[{"result":"OK"},{"result":"OK"}]`, "POST", "/pipeline", `[["SELECT",1],["CLIENT","SETNAME","x"]]`)
	a.require(200, `{"result":null}`, "GET", "/client/getname", "")
	require.NotContains(t, a.do("CLIENT", "LIST"), "lib-name=door-http")
	require.Contains(t, a.do("INFO", "door_http"), "door_http_clients:0\r\n")
	require.Contains(t, a.do("INFO", "door_http"), "http_api_requests:2\r\n")
}

// A command that waits ends with its peer, and then takes nothing.
func TestBlockingCommands(t *testing.T) {
	a := open(t, "", nil)
	a.do("RPUSH", "q", "x")
	a.require(200, `{"result":["q","x"]}`, "POST", "/", `["BLPOP","q",0]`)
	a.require(200, `{"result":null}`, "POST", "/", `["BLPOP","q",0.01]`)
	ctx, hangUp := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		r, _ := http.NewRequestWithContext(ctx, "POST", a.url+"/", strings.NewReader(`["BLPOP","q",0]`))
		r.Header.Set("Authorization", "Bearer secret")
		_, err := a.http.Do(r)
		failed <- err
	}()
	waiting := func() bool { return strings.Contains(a.do("CLIENT", "LIST"), "cmd=blpop") }
	require.Eventually(t, waiting, time.Minute, time.Millisecond)
	hangUp()
	require.ErrorIs(t, <-failed, context.Canceled)
	require.Eventually(t, func() bool { return !waiting() }, time.Minute, time.Millisecond)
	a.do("RPUSH", "q", "y")
	require.Equal(t, "1", a.do("LLEN", "q"))
}

// events reads the lines of a stream.
func (a api) events(method, path, body string, headers ...string) (next func() string, answer *http.Response) {
	a.t.Helper()
	answer = a.send(a.t.Context(), method, path, strings.NewReader(body), append([]string{"Accept", "text/event-stream"}, headers...)...)
	a.t.Cleanup(func() { answer.Body.Close() })
	require.Equal(a.t, 200, answer.StatusCode)
	require.Equal(a.t, "text/event-stream", answer.Header.Get("Content-Type"))
	lines := bufio.NewReader(answer.Body)
	return func() string {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err.Error()
		}
		return strings.TrimSuffix(line, "\n")
	}, answer
}

func TestSubscriptions(t *testing.T) {
	a := open(t, "", nil)
	next, answer := a.events("POST", "/subscribe/c/d%2Fe", "[]", "Upstash-Encoding", "base64")
	require.Equal(t, []string{"data: subscribe,c,1", "", "data: subscribe,d/e,2", ""}, []string{next(), next(), next(), next()})
	a.require(200, `{"result":1}`, "POST", "/publish/c/hello", "")
	a.require(200, `{"result":1}`, "POST", "/publish/d%2Fe", "two\nlines\r\n\rand \xff, a, b")
	require.Equal(t, []string{"data: message,c,hello", ""}, []string{next(), next()})
	require.Equal(t, []string{"data: message,d/e,two", "data: lines", "data: ", "data: and \uFFFD, a, b", ""},
		[]string{next(), next(), next(), next(), next()})
	require.Contains(t, a.do("INFO", "door_http"), "http_api_streams:1\r\n")
	answer.Body.Close()
	require.Eventually(t, func() bool { return strings.Contains(a.do("INFO", "door_http"), "http_api_streams:0\r\n") }, time.Minute,
		time.Millisecond)
	a.require(200, `{"result":0}`, "POST", "/publish/c/hello", "")

	// An EventSource of a browser sends GET, and cannot set headers.
	next, _ = a.as("").events("GET", "/psubscribe/c*?_token=secret", "")
	require.Equal(t, []string{"data: psubscribe,c*,1", ""}, []string{next(), next()})
	a.do("PUBLISH", "cd", "x,y")
	require.Equal(t, []string{"data: pmessage,c*,cd,x,y", ""}, []string{next(), next()})
	a.do("CLIENT", "KILL", "TYPE", "pubsub")
	require.Equal(t, "EOF", next())

	next, _ = a.events("POST", "/", `["SUBSCRIBE","c","c"]`)
	require.Equal(t, []string{"data: subscribe,c,1", "", "data: subscribe,c,1", ""}, []string{next(), next(), next(), next()})
	a.require(400, `{"error":"ERR wrong number of arguments for 'subscribe' command"}`, "POST", "/subscribe", "")
	a.require(200, `[{"error":"ERR subscribe: the command needs a connection of its own"}]`, "POST", "/pipeline", `[["SUBSCRIBE","c"]]`)
	answer = a.send(t.Context(), "HEAD", "/subscribe/c", nil)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, 405, answer.StatusCode)
	require.Equal(t, "GET, POST, PUT", answer.Header.Get("Allow"))
	a.do("CONFIG", "SET", "door-http", "")
	requireEnd(t, next)
}

// requireEnd requires that a stream ends without a further event.
func requireEnd(t *testing.T, next func() string) {
	t.Helper()
	line := next()
	for line == ":" || line == "" {
		line = next()
	}
	require.Regexp(t, "EOF|reset", line)
}

// Streams end when commands are not permitted any more.
func TestStreamsEndWithTheDirective(t *testing.T) {
	a := open(t, "", nil)
	next, _ := a.events("POST", "/subscribe/c", "")
	require.Equal(t, []string{"data: subscribe,c,1", ""}, []string{next(), next()})
	a.do("CONFIG", "SET", "http-api", "no")
	a.do("PUBLISH", "c", "message")
	requireEnd(t, next)
}

func TestMonitor(t *testing.T) {
	a := open(t, "", nil)
	next, _ := a.events("POST", "/monitor", "[]")
	require.Equal(t, []string{`data: "OK"`, ""}, []string{next(), next()})
	a.require(200, `{"result":"OK"}`, "GET", "/set/k/v", "")
	for {
		line := next()
		require.NotContains(t, line, "secret")
		if strings.Contains(line, `"set"`) {
			require.Regexp(t, `^data: \d+\.\d{6} \[0 127\.0\.0\.1:\d+\] "set" "k" "v"$`, line)
			break
		}
	}
	a.do("CLIENT", "KILL", "USER", "default")
	for line := ""; line != "EOF"; line = next() {
		require.NotContains(t, line, "reset")
	}
}

// Connections are limited as for all doors.
func TestPeersAreLimited(t *testing.T) {
	a := open(t, "", map[string]string{"maxclients": "20", "door-maxclients": "2"})
	_, _ = a.events("POST", "/subscribe/a", "")
	_, _ = a.events("POST", "/subscribe/b", "")
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.Copy(io.Discard, conn)
	if err != nil {
		require.ErrorContains(t, err, "reset")
	}
	require.Contains(t, a.do("INFO", "door_http"), "door_http_connections_rejected:1\r\n")
}

// A pipeline ends when its peer has gone.
func TestPipelinesEndWithTheirPeer(t *testing.T) {
	a := open(t, "", nil)
	a.do("SET", "k", strings.Repeat("x", 1<<20))
	answer := a.send(t.Context(), "POST", "/pipeline", strings.NewReader("["+strings.Repeat(`["GET","k"],`, 64)+`["INCR","n"]]`),
		"Upstash-Encoding", "base64")
	require.NoError(t, answer.Body.Close())
	require.Eventually(t, func() bool { return strings.Contains(a.do("INFO", "door_http"), "door_http_clients:0\r\n") }, time.Minute,
		time.Millisecond)
	require.Equal(t, "0", a.do("EXISTS", "n"))
}
