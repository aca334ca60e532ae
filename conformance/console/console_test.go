// Package console tests the console of the HTTP door in a real browser, headless Chromium, if there is one.
// ATOMREDIS_BROWSER=1 enables the tests; ATOMREDIS_SCREENSHOTS names a folder for pictures of each view;
// ATOMREDIS_FULL_TESTS raises the size to a million keys and ten thousand clients.
package console

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	_ "github.com/atomredis/atomredis/doors/http"
	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// pageTimeout is the most time that the page may take for an action; tests wait for it, but do not measure.
const pageTimeout = 30 * time.Second

// open opens a server with the console, in memory if dir is "".
func open(t *testing.T, dir string, config map[string]string) *atomredis.DB {
	all := map[string]string{"door-http": "127.0.0.1:0", "maxclients": "20000"}
	for k, v := range config {
		all[k] = v
	}
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", Dir: dir, Config: all})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// do executes lines of words separated by spaces.
func do(t *testing.T, db *atomredis.DB, lines ...string) {
	t.Helper()
	for _, line := range lines {
		_, err := db.Do(t.Context(), strings.Fields(line))
		require.NoError(t, err, line)
	}
}

// tab is a page open in the browser.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string

	mu       sync.Mutex // protects the following fields
	problems []string   // the browser's complaints: failed scripts, refusals by the policy
	outside  []string   // requests to anybody but the server
}

// browser returns the path of the browser. The test is skipped if there is none, or if nobody has asked for it.
func browser(t *testing.T) (path string) {
	if os.Getenv("ATOMREDIS_BROWSER") == "" {
		t.Skip("ATOMREDIS_BROWSER=1 tries the console in Chromium")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium: apt-get install chromium")
	return ""
}

// browse opens the console of a server.
func browse(t *testing.T, path string, db *atomredis.DB) *tab {
	t.Helper()
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), chromedp.NoFirstRun, chromedp.Headless, chromedp.DisableGPU,
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1440, 960), chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(pageTimeout))
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, url: "http://" + db.DoorAddr("http")}
	require.NoError(t, chromedp.Listen(ctx, b.hear))
	for _, err := range []error{enable(ctx, network.Enable), enable(ctx, log.Enable), enable(ctx, runtime.Enable)} {
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if t.Failed() {
			t.Log(b.problems)
			return
		}
		require.Empty(t, b.problems)
		require.Empty(t, b.outside, "the page asks nobody else")
	})
	return b
}

// enable makes the browser report a kind of event.
func enable[P any](ctx context.Context, command cdp.Command[P, cdp.Empty]) error {
	var all P
	_, err := chromedp.Call(ctx, command, all)
	return err
}

// hear records an event from the browser.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "status of 401") {
			b.problems = append(b.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.url) && !strings.HasPrefix(e.Request.URL, "about:") {
			b.outside = append(b.outside, e.Request.URL)
		}
	}
}

// run executes actions.
func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

// script runs a script in the page.
func (b *tab) script(text string) {
	b.t.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](text))
}

// value returns the value of an expression in the page.
func value[T any](b *tab, expression string, options ...chromedp.EvaluateOption) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, options...))
	require.NoError(b.t, err, expression)
	return v
}

// write types into an element.
func (b *tab) write(selector, text string) {
	b.t.Helper()
	b.run(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// until waits until an expression is true in the page.
func (b *tab) until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(pageTimeout); !value[bool](b, "(() => { try { return !!("+expression+") } catch { return false } })()"); {
		if time.Now().After(end) {
			b.picture("failed")
			require.Fail(b.t, "this does not become true", "%s\n%v\nthe page says:\n%s", expression, b.problems, b.text("body"))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// has waits until an element contains some texts.
func (b *tab) has(selector string, texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		b.until(fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.innerText.includes(%q))", selector, text))
	}
}

// view opens a view.
func (b *tab) view(name string) {
	b.t.Helper()
	b.script(fmt.Sprintf("location.hash = %q", "#/"+name))
	b.until(fmt.Sprintf("document.querySelector('main').className === %q", strings.Split(name, "/")[0]))
}

// press clicks on the first button, or other element matching the selector, that has a text.
func (b *tab) press(selector, text string) {
	b.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%q)].find((e) => e.innerText.includes(%q) && !e.disabled)", selector, text)
	b.until(find)
	b.script(find + ".click()")
}

// fill types into a field, found by its label, as a user would.
func (b *tab) fill(label, value string) {
	b.t.Helper()
	find := fmt.Sprintf("document.querySelector('[aria-label=\"%s\"]')", label)
	b.until(find)
	b.script(fmt.Sprintf("(e => { e.focus(); e.value = %q; e.dispatchEvent(new Event('input', {bubbles: true})) })(%s)", value, find))
}

// text returns the visible text of an element.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return value[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// picture saves a picture of the page, if pictures are wanted.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("ATOMREDIS_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.MkdirAll(dir, 0o755))
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

// enter opens the page and waits until the page knows the user.
func (b *tab) enter() {
	b.t.Helper()
	b.run(chromedp.Navigate(b.url + "/"))
	b.until("!document.querySelector('#user').hidden")
}

// full reports whether tests run at full size.
func full() bool { return os.Getenv("ATOMREDIS_FULL_TESTS") != "" }

// populate writes values of all types, and objects of all systems.
func populate(t *testing.T, db *atomredis.DB) {
	do(t, db, "SET user:1:name Ada", "SET user:2:name Grace", "SET user:2:mail g@example.org EX 86400", "SET plain text",
		"HSET user:1 name Ada born 1815 language English", "RPUSH jobs:list a b c d", "SADD tags red green blue", "ZADD ranking 1 one 2.5 two",
		"XADD events 1-1 type start", "XADD events 2-1 type stop",
		"XGROUP CREATE events workers 0", "XREADGROUP GROUP workers w1 COUNT 1 STREAMS events >",
		`JSON.SET doc $ {"title":"atoms","list":[1,2,{"deep":true}]}`, "BF.ADD sketch:bloom a", "CF.ADD sketch:cuckoo a",
		"CMS.INITBYDIM sketch:cms 100 4",
		"TOPK.RESERVE sketch:topk 3", "TOPK.ADD sketch:topk x x y", "TDIGEST.CREATE sketch:td",
		"TDIGEST.ADD sketch:td 1 2 3 4", "ARSET array 3 x y z",
		"VADD vectors VALUES 3 1 2 3 first", "VADD vectors VALUES 3 3 2 1 second", "PFADD visitors a b c",
		"PRESSURE.CREATE frames BOUND 10", "PRESSURE.PUT frames frame-1 frame-2 frame-3", "PRESSURE.CREATE results",
		"XADD command:camera * a b", "XADD response:camera * language Go version 1.0", "XADD stream:camera:frames * data 1",
		"SPIDERQ.ADD tasks cat small", "SPIDERQ.ADD tasks dog large", "SPIDERQ.LEND tasks 600000 POLL",
		"SKEIN.CONTAINER SERVICE app web 2", "SKEIN.PUT app config VALUE on OWNER web_0", "SKEIN.PUT app lock VALUE me",
		"PERPER.CALL greeter greeter-1 hello ID hello-1", "PERPER.CALL greeter greeter-1 wave ID wave-1")
	for i := range 500 {
		_, err := db.Do(t.Context(), "TS.ADD", "temperature", 1_700_000_000_000+int64(i)*60_000, 20+float64(i%60)/10)
		require.NoError(t, err)
	}
	_, err := db.Do(t.Context(), "SET", "binary:\xff\x00<img src=x onerror=alert(1)>", "\x00\xff\"value\"")
	require.NoError(t, err)
	_, err = db.Do(t.Context(), "HSET", "<script>alert(1)</script>", "<b>field</b>", "<i>value</i>\u202e")
	require.NoError(t, err)
}

func TestViews(t *testing.T) {
	path := browser(t)
	t.Parallel()
	db := open(t, t.TempDir(), map[string]string{"slowlog-log-slower-than": "0", "latency-monitor-threshold": "1"})
	populate(t, db)
	b := browse(t, path, db)
	b.enter()

	b.until("document.querySelectorAll('.plot canvas').length === 9")
	b.has(".tile", "commands/s", "hit rate", "keys", "journal")
	for range 200 {
		do(t, db, "GET plain", "GET missing")
	}
	b.has("main table td", "get")
	b.picture("overview")
	b.until("['pressure', 'atom', 'spiderq', 'skein', 'perper'].every((v) => !document.querySelector(`nav [data-view=${v}]`).hidden)")

	b.view("clients")
	b.has("main table td", "console", "default")
	b.fill("Filter", "name=console")
	b.has(".bar .dim", "of ")
	b.has(".chip", "client list")
	b.picture("clients")

	b.view("slow")
	b.has("main table td", "GET plain")
	b.picture("slow")

	b.view("pressure")
	b.has("main table td", "frames", "results")
	b.press("main tr.pick", "frames")
	b.has("main section table td", "frame-1", "frame-3")
	b.until("document.querySelectorAll('.plot canvas').length === 2")
	b.fill("message", "from the page")
	b.press("main section form button", "Put")
	b.has("main section form output", "put")
	b.has("main table tr.chosen td", "4")
	b.picture("pressure")

	b.view("atom")
	b.has("main table td", "camera")
	b.press("main tr.pick", "camera")
	b.has("main section table td", "frames")
	b.fill("command", "status")
	b.fill("ms", "10")
	b.press("main section form button", "Call")
	b.has("main section form output", "NOACK") // nobody is waiting
	b.picture("atom")

	b.view("spiderq")
	b.has("main table td", "tasks")
	b.press("main tr.pick", "tasks")
	b.has("main section table td", "cat", "dog")
	b.until("[...document.querySelectorAll('main section table td')].some((e) => /in [1-9] min/.test(e.innerText))")
	b.picture("spiderq")

	b.view("skein")
	b.has("main table td", "app")
	b.press("main tr.pick", "app")
	b.has("main section table td", "config", "web_0", "RUNNING")
	b.press("main section button", "Watch")
	b.has("main section", "waiting for changes")
	require.Eventually(t, func() bool { // the page's message is true once the server has its request
		info, err := db.Do(t.Context(), "INFO", "clients")
		return err == nil && strings.Contains(info.String(), "blocked_clients:1")
	}, pageTimeout, 10*time.Millisecond)
	do(t, db, "SKEIN.PUT app fresh VALUE new")
	b.has("main section [role=log]", "PUT", "fresh = new")
	b.has("main section table td", "fresh")
	b.picture("skein")

	b.view("perper")
	b.has("main table td", "greeter")
	b.press("main tr.pick", "greeter")
	b.has("main section table td", "hello-1", "wave-1", "greeter-1")
	b.picture("perper")
	b.until("document.querySelector('nav [data-view=group]').hidden")
}

func TestSearch(t *testing.T) {
	path := browser(t)
	t.Parallel()
	db := open(t, "", nil)
	do(t, db, "FT.CREATE shop PREFIX 1 item: SCHEMA title TEXT WEIGHT 2 tags TAG price NUMERIC SORTABLE look VECTOR FLAT 6 TYPE FLOAT32 DIM 2 DISTANCE_METRIC L2",
		"FT.CREATE people ON JSON PREFIX 1 person: SCHEMA $.name AS name TEXT", `JSON.SET person:1 $ {"name":"Ada<b>"}`)
	for i := range 50 {
		_, err := db.Do(t.Context(), "HSET", fmt.Sprintf("item:%02d", i), "title", fmt.Sprintf("<i>running</i> shoes %d", i), "tags", "sport,shoes", "price", i,
			"look", "\x00\x00\x80?\x00\x00\x00\x00")
		require.NoError(t, err)
	}
	do(t, db, "HSET item:bad price cheap")
	b := browse(t, path, db)
	b.enter()
	b.until("!document.querySelector('nav [data-view=search]').hidden")
	b.view("search")
	b.has("main .bar .dim", "2 indexes")
	b.has("main table td", "shop", "HASH", "item:*", "50", "complete", "people", "JSON")
	b.press("main tr.pick", "shop")
	b.has("main section", "documents", "vectors", "Invalid numeric value", "item:bad", "4 fields")
	b.script("document.querySelector('main section details').open = true")
	b.has("main section details td", "title", "weight 2", "separator ,", "sortable", "dim 2")
	b.has("main section [aria-live]", "1–20 of 50 documents")

	// Found words are marked, and nothing in them is interpreted as HTML.
	b.fill("Query", "run @price:[10 40]")
	b.script("(e => { e.value = 'DESC price'; e.dispatchEvent(new Event('change')) })(document.querySelector('[aria-label=Sort]'))")
	b.press("main section form button", "Search")
	b.has("main section [aria-live]", "1–20 of 31 documents", "<i>running</i> shoes 40", `"\x00\x00\x80?\x00\x00\x00\x00"`)
	b.until("[...document.querySelectorAll('main section mark')].every((e) => e.innerText === 'running') && document.querySelector('main section mark')")
	b.until("!document.querySelector('main section [aria-live] i')")
	b.until("document.querySelector('main section [aria-live] table a').innerText === 'item:40'")
	b.script("document.querySelector('[aria-label=\"Next page\"]').click()")
	b.has("main section [aria-live]", "21–31 of 31 documents")
	b.picture("search")

	b.press("main section form button", "Explain")
	b.has("main section pre", "INTERSECT {", "+run(expanded)", "NUMERIC {10.000000 <= @price <= 40.000000}")
	b.press("main section form button", "Profile")
	b.has("main section .plan", "INTERSECT", "TEXT", "NUMERIC", "0 - 49", "reads", "µs")
	b.has("main section .profile", "parsing time", "Index → Sorter")
	b.has("main section [aria-live]", "1–20 of 31 documents")
	b.picture("search-profile")

	b.fill("Query", "*=>[KNN 2 @look $v AS far]")
	b.fill("Parameters", `v "\x00\x00\x80?\x00\x00\x00\x00"`)
	b.press("main section form button", "Search")
	b.has("main section [aria-live]", "1–2 of", "far")
	b.fill("Query", "@price:[")
	b.press("main section form button", "Search")
	b.has("main section [role=alert]", "Syntax error at offset 7 near price")
	b.fill("Parameters", "v")
	b.press("main section form button", "Profile")
	b.has("main section [role=alert]", "Parameters are names and values")

	b.view("search/people")
	b.has("main section [aria-live]", "1–1 of 1 document", `{"name":"Ada<b>"}`)
	b.press("main section button", "drop the index")
	b.press("main section button", "sure?")
	b.has("main .bar .dim", "1 index")
	reply, err := db.Do(t.Context(), "EXISTS", "person:1")
	require.NoError(t, err)
	require.Equal(t, "(integer) 1", reply.String())

	// Another user sees and drops only what the ACL permits.
	do(t, db, "ACL SETUSER viewer on >v ~* +@read +info -ft.explain")
	b.press("#user", "default")
	b.press("#message button", "another user")
	b.script("document.querySelector('[name=user]').value = 'viewer'")
	b.write("[name=password]", "v\r")
	b.until("document.querySelector('#user').innerText === 'viewer' && !document.querySelector('#login').open")
	b.view("search/shop")
	b.has("main section [aria-live]", "1–20 of 50 documents")
	b.press("main section form button", "Explain")
	b.has("main section [role=alert]", "NOPERM")
	require.NotContains(t, b.text("main"), "drop the index")
}

// The group's servers are shown and changed, and the shards of the cluster are shown.
func TestGroup(t *testing.T) {
	path := browser(t)
	t.Parallel()
	var raft, client []string
	for range 3 {
		raft, client = append(raft, freeport.Addr(t)), append(client, freeport.Addr(t))
	}
	var first *atomredis.DB
	for i := range raft {
		db, err := atomredis.Open(atomredis.Options{Addr: client[i], Dir: t.TempDir(), Config: map[string]string{
			"door-http": "127.0.0.1:0", "raft-addr": raft[i], "raft-peers": strings.Join(raft, ","), "appendonly": "yes",
			"cluster-enabled": "yes", "replica-announce-port": client[i][strings.LastIndexByte(client[i], ':')+1:],
			"raft-timeout": "2000"}}) // a leader that is only busy keeps the lead
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() }) // one that was removed from its group says so
		if i == 0 {
			first = db
		}
	}
	// The page's server must not lose the lead: a page that it is answering then begins anew, without its last message.
	require.Eventually(t, func() bool {
		_, err := first.Do(t.Context(), "RAFT.TRANSFER", raft[1])
		return err == nil || strings.Contains(err.Error(), "leads already")
	}, time.Minute, 50*time.Millisecond)
	b := browse(t, path, first)
	b.enter()
	b.until("!document.querySelector('nav [data-view=group]').hidden")
	b.view("group")
	b.has("main dl", "3 of 3")
	b.has("main table td", raft[0], client[1], raft[2], "leader", "follower", "yes", "B")
	b.has("main table td", "0–16383", "16\u202f384", "3 of 3")
	b.has("main dl", "cluster-rebalance", "no")
	b.has("main table td", "none has moved")
	do(t, first, "CONFIG SET cluster-rebalance auto cluster-rebalance-by keys")
	b.has("main dl", "auto", "keys", "0 slots in 0 batches")

	role := func(server, want string) {
		t.Helper()
		b.until(fmt.Sprintf("[...document.querySelectorAll('main tr')].some((r) => "+
			"r.cells[0].innerText === %q && r.cells[2].innerText === %q)", server, want))
	}
	press := func(server, label string) {
		t.Helper()
		for _, text := range []string{label, "sure?"} {
			b.press(fmt.Sprintf("main [data-server=%q] button", server), text)
		}
	}
	to := raft[1]
	if strings.Contains(b.text("main dl"), to+"\nterm") {
		to = raft[2]
	}
	role(to, "follower")
	b.picture("group")
	press(to, "make it lead")
	role(to, "leader")
	b.has("main output", to+" gets the lead.")

	gone := raft[1]
	if gone == to {
		gone = raft[2]
	}
	role(gone, "follower")
	press(gone, "remove")
	b.until(fmt.Sprintf("!document.querySelector('main table').innerText.includes(%q)", gone))

	nobody := freeport.Addr(t)
	b.fill("raft-addr", nobody)
	b.press("main .panel button", "add the server")
	b.press("main .panel button", "sure?")
	b.has("#message", "no server of a group answers at "+nobody)
	b.press("#message button", "Close")
	b.script("document.querySelector('main [type=checkbox]').click()")
	b.press("main .panel button", "add the server")
	b.press("main .panel button", "sure?")
	role(nobody, "joining")
	b.has("main output", nobody+" is added")
	b.script("document.querySelectorAll('main [type=checkbox]')[1].click()")
	b.press("main .panel button", "add the server")
	b.press("main .panel button", "sure?")
	role(nobody, "learner")
	b.has("main output", nobody+" is a learner")

	// Another user sees the group and cannot change it.
	do(t, first, "ACL SETUSER viewer on >v ~* +@read +info +raft.status +cluster|shards")
	b.press("#user", "default")
	b.press("#message button", "another user")
	b.script("document.querySelector('[name=user]').value = 'viewer'")
	b.write("[name=password]", "v\r")
	b.until("document.querySelector('#user').innerText === 'viewer' && !document.querySelector('#login').open")
	b.view("group")
	b.has("main table td", raft[0], "0–16383")
	require.NotContains(t, b.text("main"), "remove")
	require.NotContains(t, b.text("main"), "add the server")
	require.Contains(t, b.text("main"), "cluster-rebalance")
	require.NotContains(t, b.text("main"), "Slots that move")
}

func TestValuesOfEveryType(t *testing.T) {
	path := browser(t)
	t.Parallel()
	db := open(t, "", nil)
	populate(t, db)
	b := browse(t, path, db)
	b.enter()
	b.view("keys")
	b.has(".tree", "user:", "sketch:", "ranking", `"binary:"`[1:8], "<script>alert(1)</script>")
	b.press(".tree .node", "user:")
	b.has(".tree", "2:")
	b.picture("keys")
	for _, of := range []struct {
		key   string
		texts []string
	}{
		{"plain", []string{"string", "4 bytes", "text"}},
		{"user:1", []string{"hash", "born", "1815"}},
		{"jobs:list", []string{"list", "4 elements", "d"}},
		{"tags", []string{"set", "green"}},
		{"ranking", []string{"zset", "2.5", "two"}},
		{"events", []string{"stream", "1-1", "stop", "workers"}},
		{"doc", []string{"json", `"title": "atoms"`, `"deep": true`}},
		{"temperature", []string{"time series", "500 samples", "firstTimestamp"}},
		{"sketch:bloom", []string{"bloom", "Capacity"}},
		{"sketch:cuckoo", []string{"cuckoo", "Number of buckets"}},
		{"sketch:cms", []string{"count-min", "width", "100"}},
		{"sketch:topk", []string{"top-k", "decay", "x"}},
		{"sketch:td", []string{"t-digest", "Compression", "quantile"}},
		{"array", []string{"array", "3 elements, length 6", "y"}},
		{"vectors", []string{"vectors", "quant-type", "second"}},
		{"visitors", []string{"string", "HYLL"}},
		{"nothing", []string{"There is no such key."}},
	} {
		b.view("keys/" + of.key)
		b.has(".split section:last-child", of.key)
		b.has(".split section:last-child", of.texts...)
		require.NotContains(t, b.text(".split section:last-child"), "ERR", of.key)
		b.picture("key-" + strings.ReplaceAll(of.key, ":", "-"))
	}
	b.view("keys/events")
	b.has(".split section:last-child", "1 pending", "w1", "acknowledge")
	b.picture("key-events-group")
	b.view("keys/vectors")
	b.press(".split button", "near")
	b.has(".split section:last-child", "similarity")

	// Data written through the page exists.
	b.view("keys/user:1")
	b.fill("field", "city")
	b.fill("value", "London")
	b.press(".split form button", "Add")
	b.has(".split td", "London")
	reply, err := db.Do(t.Context(), "HGET", "user:1", "city")
	require.NoError(t, err)
	text, err := reply.Text()
	require.NoError(t, err)
	require.Equal(t, "London", text)

	// Bytes are shown and can be addressed, and nothing in them is interpreted as HTML.
	b.press(".tree .node", `binary:`)
	b.press(".tree .node", `\xff\x00<img src=x`)
	b.has(".split .keyname", `"binary:\xff\x00<img src=x onerror=alert(1)>"`)
	b.has(".split pre", `"\x00\xff\"value\""`)
	b.press(".tree .node", "<script>")
	b.has(".split td", "<b>field</b>", `"<i>value</i>\xe2\x80\xae"`)
	b.until("!document.querySelector('main b, main i:not(.x), main img, main script')?.textContent.includes('value')")
	b.until("!document.querySelector('main img, main script')")
	b.picture("key-hostile")
}

// Setting a value exactly as it is shown leaves it unchanged, for every type that has a form with a value.
func TestSettingWhatIsShownChangesNothing(t *testing.T) {
	path := browser(t)
	t.Parallel()
	db := open(t, "", nil)
	populate(t, db)
	for _, args := range [][]any{{"JSON.SET", "json", "$", `{"a":[1,{"b":9007199254740993}],"s":"é\u2028\"","n":null,"f":1.50}`},
		{"JSON.SET", "json:text", "$", `"text"`}, {"JSON.SET", "json:list", "$", "[]"}, {"SET", "lines", "a\nb\r\n c "}, {"SET", "quoted", `"x"`},
		{"SET", "empty", ""}, {"HSET", "hash:bytes", "\xff", "\x00\r\n"}, {"SET", "in-json", `{"a":{"b":[1,2.50]},"e":[]}`}} {
		_, err := db.Do(t.Context(), args...)
		require.NoError(t, err)
	}
	b := browse(t, path, db)
	b.enter()
	dump := func(key string) string {
		reply, err := db.Do(t.Context(), "DUMP", key)
		require.NoError(t, err)
		text, err := reply.Text()
		require.NoError(t, err)
		return text
	}
	const section = ".split section:last-child"
	for _, key := range []string{"plain", "lines", "quoted", "empty", "json", "json:text", "json:list", "doc", "in-json",
		"binary:\xff\x00<img src=x onerror=alert(1)>"} {
		before, label := dump(key), "Save"
		if strings.HasPrefix(key, "json") || key == "doc" {
			label = "Set"
		}
		b.script("location.hash = '#/keys/' + encodeURIComponent(" + jsBytes(key) + ")")
		b.until("[...document.querySelectorAll('" + section + " form button')].some((b) => b.textContent === '" + label + "')")
		b.press(section+" form button", label)
		b.has(section+" form output", "unchanged")
		require.Equal(t, before, dump(key), key)
		b.script("location.hash = '#/keys'")
		b.has(section, "Choose a key")
	}
	for _, key := range []string{"user:1", "hash:bytes", "jobs:list", "ranking", "array"} {
		before := dump(key)
		b.view("keys/" + key)
		b.has(section+" .keyname", key)
		b.press(section+" td button", "edit")
		b.press(section+" td form button", "Save")
		b.has(section+" td form output", "unchanged")
		require.Equal(t, before, dump(key), key)
	}
	// A path of a document: its value is in the form, and is set with a trailing blank, which does not change the
	// document.
	b.view("keys/json")
	b.has(section+" form button", "Set")
	b.fill("Path", "$.a[1].b")
	b.script("document.querySelector('[aria-label=Path]').dispatchEvent(new Event('change'))")
	b.until("document.querySelector('" + section + " form textarea')?.value === '9007199254740993'")
	before := dump("json")
	b.script("document.querySelector('" + section + " form textarea').value = '9007199254740993 '")
	b.press(section+" form button", "Set")
	b.until("document.querySelector('" + section + " form textarea')?.value === '9007199254740993'")
	require.Equal(t, before, dump("json"))
	b.view("keys/in-json")
	b.has(section+" pre", "\"a\": {", "2.50", "\"e\": []")
}

// jsBytes returns an expression for bytes in the page's form: one character for each byte.
func jsBytes(key string) string {
	runes := make([]rune, len(key))
	for i := range len(key) {
		runes[i] = rune(key[i])
	}
	text, _ := json.Marshal(string(runes)) // strings cannot fail
	return string(text)
}

func TestCommandLine(t *testing.T) {
	path := browser(t)
	t.Parallel()
	db := open(t, "", map[string]string{
		"requirepass": "the-password", "masterauth": "other-password", "slowlog-log-slower-than": "0"})
	populate(t, db)
	do(t, db, "ACL SETUSER viewer on >v ~user:* +@read +info +ping +command|docs", "ACL SETUSER editor on >secret-of-editor ~* +@all")
	b := browse(t, path, db)
	b.run(chromedp.Navigate(b.url + "/"))
	b.until("document.querySelector('#login').open")
	b.picture("login")
	b.write("[name=password]", "wrong\r")
	b.has("#login .error", "WRONGPASS")
	b.write("[name=password]", "the-password\r")
	b.until("!document.querySelector('#user').hidden")

	b.view("shell")
	b.until("document.activeElement.getAttribute('aria-label') === 'Command'")
	b.write("[aria-label=Command]", "hgetal")
	b.has(".complete", "HGETALL")
	b.write("[aria-label=Command]", "\t")
	b.has(".hint", "HGETALL key")
	b.write("[aria-label=Command]", "user:1\r")
	b.has(".out", `1# "name" => "Ada"`)
	for _, step := range [][2]string{
		{`SET "a\xff" 'it''s'`, "Invalid argument(s)"}, {`SET "a\xff" "\x00\n"`, "OK"}, {`GET "a\xff"`, `"\x00\n"`}, {"DBSIZE", "(integer) "}, {"INFO server", "# Server\nredis_version:"}, {"GET plain", `"text"`},
		{"GET missing", "(nil)"}, {"LRANGE jobs:list 0 1", `2) "b"`}, {"NOPE", "(error) ERR unknown command"}, {"SUBSCRIBE c", "(error)"},
		{"CONFIG GET requirepass", `"requirepass" => "(hidden)"`}, {"CONFIG GET *auth*", `"masterauth" => "(hidden)"`},
		{"ACL GETUSER editor", `"(hidden)"`}, {"ACL LIST", "user editor on"},
		{"SLOWLOG GET 128", "(redacted)"},
	} {
		b.write("[aria-label=Command]", step[0]+"\r")
		b.has(".out pre:last-child", step[1])
	}
	b.picture("shell")
	shown := b.text(".out")
	require.NotContains(t, shown, "the-password")
	require.NotContains(t, shown, "other-password")
	require.NotRegexp(t, "[0-9a-f]{64}", shown)
	b.write("[aria-label=Command]", "BLPOP nothing 0\r")
	b.until("document.querySelector('.out pre:last-child').innerText.includes('BLPOP')")
	b.run(chromedp.KeyEvent("c", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.has(".out", "given up")

	// Another user sees only what the ACL permits, and no forms for forbidden actions.
	b.press("#user", "default")
	b.press("#message button", "another user")
	b.script("document.querySelector('[name=user]').value = 'viewer'")
	b.write("[name=password]", "v\r")
	b.until("document.querySelector('#user').innerText === 'viewer' && !document.querySelector('#login').open")
	b.view("keys/user:1")
	b.has(".split td", "Ada")
	require.Zero(t, strings.Count(b.text(".split section:last-child"), "delete"))
	b.until("!document.querySelector('.split form')")
	b.view("keys/plain")
	b.has(".split section:last-child", "NOPERM")
	b.view("clients")
	b.has("main .error", "NOPERM")
	b.picture("viewer")
}

// A million keys and ten thousand clients: no view takes long in the server, or in the page.
func TestMuch(t *testing.T) {
	path := browser(t)
	t.Parallel()
	keys, clients := 30_000, 300
	if full() {
		keys, clients = 1_000_000, 10_000
	}
	db := open(t, "", nil)
	for i := 0; i < keys; i += 10_000 {
		script := "for i = ARGV[1], ARGV[1] + 9999 do redis.call('SET', 'user:' .. (i % 1000) .. ':item:' .. i, i) end " +
			"redis.call('SET', 'flat' .. ARGV[1], 'x')"
		_, err := db.Do(t.Context(), "EVAL", script, 0, i)
		require.NoError(t, err)
	}
	for range clients {
		conn, err := db.Dial(t.Context())
		require.NoError(t, err)
		defer conn.Close()
	}
	b := browse(t, path, db)
	b.enter()
	b.view("clients")
	b.has(".bar .dim", "–200 of ")
	b.press("main .bar button", "›")
	b.has(".bar .dim", "201–")
	b.press("th button", "id")
	b.has(".bar .dim", "201–")
	b.picture("clients-many")

	began := time.Now()
	b.view("keys")
	b.has(".tree .node", "user:", "flat0")
	b.until("!document.querySelector('.tree progress')")
	t.Logf("the tree of %d keys: %v", keys, time.Since(began).Round(time.Millisecond))
	b.has(".bar .dim", " keys")
	b.press(".tree .node", "user:")
	b.until("document.querySelectorAll('.tree li li').length > 100")
	b.until("!document.querySelector('.tree progress')")
	b.press(".tree li li .node", "7:")
	b.has(".tree li li", "item:")
	b.until("!document.querySelector('.tree progress')")
	b.picture("keys-many")
	b.view("pressure")
	b.has("main table td", "no queue")
}

// The time until the page can be used, on the loopback interface.
func TestTimeUntilUsable(t *testing.T) {
	path := browser(t)
	db := open(t, "", nil)
	populate(t, db)
	b := browse(t, path, db)
	b.enter()
	b.until("document.querySelectorAll('.tile').length > 4")
	const usable = `new Promise(resolve => {
		const look = () => document.querySelectorAll('.tile').length > 4 && document.querySelector('main table')
			? resolve(performance.now()) : setTimeout(look, 1);
		look();
	})`
	for _, what := range []string{"first", "second"} {
		if what == "first" {
			require.NoError(t, enable(b.ctx, network.ClearBrowserCache))
		}
		b.script("sessionStorage.clear()")
		b.run(chromedp.Reload())
		t.Logf("usable after %.0f ms (%s load)", value[float64](b, usable, chromedp.EvalAwaitPromise), what)
	}
}

// The page works equally well on a phone, in dark mode, and with the keyboard alone.
func TestPhoneAndKeyboard(t *testing.T) {
	path := browser(t)
	t.Parallel()
	db := open(t, "", nil)
	populate(t, db)
	b := browse(t, path, db)
	b.run(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(2)))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	require.NoError(t, err)
	b.enter()
	b.until("document.querySelectorAll('.tile').length > 4")
	b.until("getComputedStyle(document.body).backgroundColor === 'rgb(20, 23, 26)'")
	b.until("document.documentElement.scrollWidth <= innerWidth")
	b.until("document.querySelectorAll('.plot canvas').length === 9")
	b.picture("phone-overview")
	for _, view := range []string{"clients", "slow", "keys", "pressure", "atom", "spiderq", "skein", "perper", "shell"} {
		b.view(view)
		b.until("document.documentElement.scrollWidth <= innerWidth")
	}
	b.view("keys/user:1")
	b.has(".split td", "Ada")
	b.until("document.documentElement.scrollWidth <= innerWidth")
	b.picture("phone-keys")

	b.script("document.activeElement.blur()")
	b.run(chromedp.EmulateReset(), chromedp.EmulateViewport(1440, 960), chromedp.KeyEvent("1"))
	b.until("document.querySelector('main').className === 'overview'")
	b.until("document.querySelectorAll('.plot canvas').length === 9")
	b.picture("overview-dark")
	b.run(chromedp.KeyEvent("t"))
	b.until("document.documentElement.dataset.theme === 'light'")
	b.run(chromedp.KeyEvent("4"))
	b.until("document.querySelector('main').className === 'keys'")
	b.has(".tree .node", "user:")
	b.run(chromedp.Focus(chromedp.CSS(".tree .node")), chromedp.KeyEvent(kb.ArrowRight))
	b.until("document.querySelectorAll('.tree li li').length > 0 || document.querySelector('.tree [aria-expanded=true]')")
	b.run(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent("/"))
	b.until("document.activeElement.dataset.search !== undefined")
	b.run(chromedp.KeyEvent("plain\r"))
	b.has(".split .keyname", "plain")
}
