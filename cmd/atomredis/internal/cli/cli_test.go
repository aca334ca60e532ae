package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atom"
	"github.com/atomredis/atomredis/internal/testing/freeport"
)

// long is a timeout that only passes if the test fails.
const long = 30 * time.Second

func start(t *testing.T, config map[string]string) (addr string) {
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0", Config: config})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db.Addr()
}

func newClient(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { c.Close() })
	return c
}

// at returns the arguments that select a server.
func at(addr string) []string {
	host, port, _ := net.SplitHostPort(addr)
	return []string{"-h", host, "-p", port}
}

// step is one run of the program: its arguments (quotes join words to one), its input, and the expected result.
// Expected text that begins with "re:" is a regular expression.
type step struct {
	line   string
	stdin  string
	code   int
	stdout string
	stderr string
}

var words = regexp.MustCompile(`'[^']*'|\S+`)

func split(line string) []string {
	args := words.FindAllString(line, -1)
	for i, arg := range args {
		args[i] = strings.Trim(arg, "'")
	}
	return args
}

func matches(t *testing.T, want, got, what string) {
	t.Helper()
	if expr, ok := strings.CutPrefix(want, "re:"); ok {
		require.Regexp(t, expr, got, what)
		return
	}
	require.Equal(t, want, got, what)
}

// play runs the steps against a server, in order.
func play(t *testing.T, addr string, steps []step) {
	for _, s := range steps {
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), append(split(s.line), at(addr)...), strings.NewReader(s.stdin), &stdout, &stderr)
		what := fmt.Sprintf("%s: stdout %q, stderr %q", s.line, stdout.String(), stderr.String())
		matches(t, s.stdout, stdout.String(), what)
		matches(t, s.stderr, stderr.String(), what)
		require.Equal(t, s.code, code, what)
	}
}

func TestPressure(t *testing.T) {
	play(t, start(t, nil), []step{
		{line: "pressure list"},
		{line: "pressure list --json", stdout: "[]\n"},
		{line: "pressure create q --bound 3"},
		{line: "pressure create q", code: 1, stderr: "atomredis: pressure: create \"q\": the queue exists already\n"},
		{line: "pressure create q --bound -1", code: 1, stderr: "re:the bound -1 is negative\n$"},
		{line: "pressure list", stdout: "q\n"},
		{line: "pressure put q", stdin: "one\n\ntwo"},
		{line: "pressure put q four --timeout 20ms", code: 1,
			stderr: "atomredis: after 0 messages: pressure: put into \"q\": timed out\n"},
		{line: "pressure get q", stdout: "one\n"},
		{line: "pressure put q 'th ree' --json", stdout: "{\"put\":1}\n"},
		{line: "pressure info q", stdout: "re:^length\t3\nbound\t3\nclosed\tno\nproducer\t.*_pid\\d+_\\d+\nproducer free\tyes\nconsumer\t.*\nconsumer free\tyes\n" +
			"produced messages\t4\nproduced bytes\t12\nconsumed messages\t1\nconsumed bytes\t3\n" +
			"blocked producers\t0\nblocked consumers\t0\nreserved\t0\nredelivered\t0\ndelayed\t0\ndead\t0\nschedules\t0\n$"},
		{line: "pressure info q --json", stdout: `re:^{"length":3,"bound":3,"closed":false,"producer":"[^"]*",.*"redelivered":0,"delayed":0,"dead":0,"schedules":0}` + "\n$"},
		{line: "pressure get q --count 2 -0", stdout: "\x00two\x00"},
		{line: "pressure get none", code: 1, stderr: "atomredis: pressure: open \"none\": the queue does not exist\n"},
		{line: "pressure get none --wait --timeout 20ms", code: 1, stderr: "atomredis: pressure: open \"none\": timed out\n"},
		{line: "pressure get none --wait --create", code: 2, stderr: "re:either --wait or --create"},
		{line: "pressure get none --bound 2", code: 2, stderr: "re:--bound needs --create"},
		{line: "pressure get made --create --bound 2 --timeout 20ms", code: 1,
			stderr: "atomredis: pressure: get from \"made\": timed out\n"},
		{line: "pressure info made --json", stdout: `re:^{"length":0,"bound":2,`},
		{line: "pressure put made x"},
		{line: "pressure get made --create", stdout: "x\n"},
		{line: "pressure put made y"},
		{line: "pressure get made --wait", stdout: "y\n"},
		{line: "pressure delete made"},
		{line: "pressure close q"},
		{line: "pressure close q", code: 1, stderr: "atomredis: pressure: close \"q\": the queue is closed\n"},
		{line: "pressure put q x", code: 1, stderr: "atomredis: after 0 messages: pressure: put into \"q\": the queue is closed\n"},
		{line: "pressure get q --count 2 --json", code: 1, stdout: "\"th ree\"\n",
			stderr: "atomredis: pressure: get from \"q\": the queue is closed\n"},
		{line: "pressure get q --all"},
		{line: "pressure delete q"},
		{line: "pressure delete q", code: 1, stderr: "atomredis: pressure: delete \"q\": the queue does not exist\n"},
		{line: "pressure get q", code: 1, stderr: "atomredis: pressure: open \"q\": the queue does not exist\n"},
		{line: "pressure put q", stdin: "x", code: 1, stderr: "atomredis: pressure: open \"q\": the queue does not exist\n"},
		{line: "pressure put q --create --bound 2 --close -0", stdin: "a\nb\x00c\x00"},
		{line: "pressure put q --create", code: 0, stdin: ""},
		{line: "pressure get q --all --reserve 1m", stdout: "a\nb\nc\n"},
		{line: "pressure info q --json", stdout: `re:"consumed_messages":2,.*"reserved":0`},
		{line: "pressure put r --create --prefix other", stdin: "1\n"},
		{line: "pressure list --prefix other", stdout: "r\n"},
		{line: "pressure get r --prefix other --timeout 1s", stdout: "1\n"},
		{line: "pressure get r --prefix other --timeout 20ms", code: 1,
			stderr: "atomredis: pressure: get from \"r\": timed out\n"},
	})
}

func TestAtom(t *testing.T) {
	addr := start(t, nil)
	e, err := atom.New(t.Context(), newClient(t, addr), "arm", atom.Options{})
	require.NoError(t, err)
	defer e.Close(context.Background())
	require.NoError(t, e.CommandAdd("echo", func(_ context.Context, r *atom.Request) (any, error) {
		return r.Data.Bytes,
			nil
	}, atom.CommandOptions{}))
	require.NoError(t, e.CommandAdd("sum", func(_ context.Context, r *atom.Request) (any, error) {
		var in map[string]int
		if err := r.Data.Decode(&in); err != nil {
			return nil, err
		}
		return map[string]any{"sum": in["x"] + in["y"]}, nil
	}, atom.CommandOptions{Serialization: atom.Msgpack}))
	require.NoError(t, e.CommandAdd("fail", func(context.Context, *atom.Request) (any, error) {
		return nil, &atom.UserError{Code: 5, Message: "no such place"}
	}, atom.CommandOptions{}))
	go e.CommandLoop(context.Background(), atom.CommandLoopOptions{})
	play(t, addr, []step{
		{line: "atom elements", stdout: "arm\n"},
		{line: "atom elements --json", stdout: "[\"arm\"]\n"},
		{line: "atom health arm", stdout: "arm\thealthy\t\n"},
		{line: "atom health arm --json", stdout: "[{\"element\":\"arm\",\"healthy\":true}]\n"},
		{line: "atom health arm leg", code: 1, stdout: "re:^arm\thealthy\t\nleg\tnot healthy\t.+\n$",
			stderr: "atomredis: 1 of 2 elements are not healthy\n"},
		{line: "atom call arm echo hello", stdout: "hello\n"},
		{line: "atom call arm echo -", stdin: "two\nlines", stdout: "two\nlines\n"},
		{line: `atom call arm sum '{"x":1,"y":2}' --ser msgpack`, stdout: "{\"sum\":3}\n"},
		{line: `atom call arm sum '{"x":1,"y":2}' --ser msgpack --json`,
			stdout: `re:^{"cmd_id":"\d+-\d+","err_code":0,"err_str":"","data":{"sum":3}}` + "\n$"},
		{line: `atom call arm sum 'x' --ser msgpack`, code: 2, stderr: "re:is not JSON"},
		{line: `atom call arm sum 'x' --ser xml`, code: 2, stderr: "atomredis: unknown serialization \"xml\"\n"},
		{line: "atom call arm fail", code: 1, stderr: "atomredis: atom: send command \"fail\" to \"arm\": user error 5: no such place\n"},
		{line: "atom call arm fail --json", code: 1, stdout: `re:"err_code":1005,"err_str":"no such place"`,
			stderr: "re:user error 5"},
		{line: "atom call arm nothing", code: 1, stderr: "re:unsupported command"},
		{line: "atom call nobody nothing --timeout 20ms", code: 1, stderr: "re:^atomredis: atom: send command"},
		{line: "atom write sensor celsius t=21.5 unit=C", stdout: "re:^\\d+-\\d+\n$"},
		{line: `atom write sensor celsius t=22.5 'note={"a":[1,"x"]}' --ser msgpack --json`, stdout: "re:^\"\\d+-\\d+\"\n$"},
		{line: "atom read sensor celsius", stdout: "re:^\\d+-\\d+ t=21.5 unit=C\n\\d+-\\d+ note={\"a\":\\[1,\"x\"\\]} t=22.5\n$"},
		{line: "atom read sensor celsius --count 1 --json",
			stdout: `re:^{"fields":{"note":{"a":\[1,"x"\]},"t":22.5},"id":"\d+-\d+"}` + "\n$"},
		{line: "atom read sensor celsius --count 0"},
		{line: "atom write sensor celsius t", code: 2, stderr: "atomredis: \"t\" is not of the form FIELD=VALUE\n"},
		{line: "atom streams", stdout: "sensor\tcelsius\n"},
		{line: "atom streams sensor --json", stdout: "[{\"element\":\"sensor\",\"stream\":\"celsius\"}]\n"},
		{line: "atom info arm", stdout: "re:(?s)language\tGo\n.*version\t" + regexp.QuoteMeta(atom.Version) + "\n"},
		{line: "atom info arm --json", stdout: `re:"language":"Go"`},
		{line: "atom info leg2", code: 1, stderr: "re:no such element"},
		{line: "atom log"},
		{line: "atom log write warning 'low battery' --element arm"},
		{line: "atom log write 3 bad"},
		{line: "atom log", stdout: "re:^\\S+Z\twarning\tarm\t.+\tlow battery\n\\S+Z\terror\tatomredis\t.+\tbad\n$"},
		{line: "atom log --count 1 --json", stdout: `re:^{"element":"atomredis","host":".+","level":"error","msg":"bad","time":".+Z"}` + "\n$"},
		{line: "atom log write loud x", code: 2, stderr: "re:is not a level"},
		{line: "atom param set limits speed=1.5 name=x"},
		{line: "atom param get limits", stdout: "name\tx\nspeed\t1.5\n"},
		{line: "atom param get limits speed --json", stdout: "{\"speed\":\"1.5\"}\n"},
		{line: "atom param set limits speed=2 --ser msgpack", code: 1, stderr: "re:serialization"},
		{line: "atom param set hard v=[1,2] --ser msgpack --no-override --timeout 1m"},
		{line: "atom param set hard v=3 --ser msgpack", code: 1, stderr: "re:override"},
		{line: "atom param get hard", stdout: "v\t[1,2]\n"},
		{line: "atom param list", stdout: "hard\nlimits\n"},
		{line: "atom param list 'l*'", stdout: "limits\n"},
		{line: "atom param delete limits"},
		{line: "atom param get limits", code: 1, stderr: "re:not found"},
		{line: "atom counter get laps", code: 1, stderr: "re:not found"},
		{line: "atom counter set laps 10", stdout: "10\n"},
		{line: "atom counter add laps 5", stdout: "15\n"},
		{line: "atom counter get laps", stdout: "15\n"},
		{line: "atom counter set laps many", code: 2, stderr: "atomredis: \"many\" is not a number\n"},
	})
	var ref bytes.Buffer
	require.Zero(t, Run(t.Context(), append([]string{"atom", "ref", "create", "-", "--timeout", "0"}, at(addr)...),
		strings.NewReader("picture\n"), &ref, io.Discard))
	name := strings.TrimSpace(ref.String())
	play(t, addr, []step{
		{line: "atom ref get " + name, stdout: "picture\n\n"},
		{line: "atom ref get " + name + " --json", stdout: "\"picture\\n\"\n"},
		{line: "atom ref delete " + name},
		{line: "atom ref get " + name, code: 1, stderr: "re:not found"},
		{line: "atom ref create [1] --key k --ser msgpack --json", stdout: "re:^\"reference:.*:k:ser:msgpack\"\n$"},
		{line: "atom elements", stdout: "arm\n"},
	})
}

func TestUsage(t *testing.T) {
	addr := start(t, nil)
	play(t, addr, []step{
		{line: "pressure", code: 2, stderr: "atomredis: atomredis pressure needs a command; see atomredis pressure --help\n"},
		{line: "pressure fetch q", code: 2, stderr: "atomredis: unknown command \"fetch\"; see atomredis pressure --help\n"},
		{line: "pressure gte q", code: 2, stderr: "atomredis: unknown command \"gte\"; did you mean atomredis pressure get?\n"},
		{line: "cluster satrt", code: 2, stderr: "atomredis: unknown command \"satrt\"; did you mean atomredis cluster start?\n"},
		{line: "pressure get q --coutn 1", code: 2, stderr: "atomredis: unknown flag: --coutn; did you mean --count?\n"},
		{line: "pressure get q --hots h", code: 2, stderr: "atomredis: unknown flag: --hots; did you mean --host?\n"},
		{line: "top -once", code: 2, stderr: "atomredis: unknown shorthand flag: 'o' in -once; did you mean --once?\n"},
		{line: "cli --scna", code: 2, stderr: "atomredis: unknown flag: --scna; did you mean --scan?\n"},
		{line: "pressure get", code: 2, stderr: "atomredis: usage: atomredis pressure get QUEUE [flags]\n"},
		{line: "pressure get q r", code: 2, stderr: "re:^atomredis: usage: "},
		{line: "pressure get q --colour", code: 2, stderr: "atomredis: unknown flag: --colour\n"},
		{line: "pressure get q --count x", code: 2, stderr: "re:invalid argument"},
		{line: "pressure get q --count 0", code: 2, stderr: "atomredis: invalid count 0\n"},
		{line: "pressure get q --count 2 --all", code: 2, stderr: "atomredis: either --all or --count\n"},
		{line: "pressure get q --reserve -1s", code: 2, stderr: "atomredis: invalid time -1s\n"},
		{line: "pressure put q --bound 3", code: 2, stderr: "atomredis: --bound needs --create\n"},
		{line: "pressure info q --interval 0s", code: 2, stderr: "atomredis: invalid interval 0s\n"},
		{line: "pressure list -n -1", code: 2, stderr: "atomredis: invalid database -1\n"},
		{line: "atom param", code: 2, stderr: "re:needs a command"},
		{line: "atom read e ''", code: 2, stderr: "atomredis: a stream needs a name\n"},
		{line: "atom log --count -1", code: 2, stderr: "atomredis: invalid count -1\n"},
		{line: "pressure list -n 1", stdout: ""},
		{line: "pressure create d -n 1"},
		{line: "pressure list"},
		{line: "pressure list -n 1", stdout: "d\n"},
	})
	var stderr bytes.Buffer
	require.Equal(t, ExitUsage, Run(t.Context(), []string{"pressure", "list", "-p", "0"}, nil, io.Discard, &stderr))
	require.Equal(t, "atomredis: invalid port 0\n", stderr.String())
}

// TestHelp requires that the help of every command that does something has an example.
func TestHelp(t *testing.T) {
	a := &app{}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		if c.Hidden || !c.HasParent() || c.HasSubCommands() && c.Example == "" {
			return
		}
		require.NotEmpty(t, c.Example, c.CommandPath())
		for _, line := range strings.Split(c.Example, "\n") {
			require.Regexp(t, `^  (.*\| )?atomredis (atom|changes|cli|cluster|completion|man|pressure|skein|top) `, line)
		}
		var stdout, stderr bytes.Buffer
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		require.Zero(t, Run(t.Context(), args, nil, &stdout, &stderr))
		require.Contains(t, stdout.String(), c.Example)
		require.Empty(t, stderr.String())
	}
	visit(a.root())
}

func TestServers(t *testing.T) {
	t.Run("password", func(t *testing.T) {
		addr := start(t, map[string]string{"requirepass": "secret"})
		play(t, addr, []step{
			{line: "pressure list", code: 1, stderr: "re:NOAUTH"},
			{line: "pressure list -a wrong", code: 1, stderr: "re:WRONGPASS"},
			{line: "pressure create q -a secret"},
			{line: "pressure create r -a secret --user default"},
		})
		t.Setenv("REDISCLI_AUTH", "secret")
		play(t, addr, []step{{line: "pressure list", stdout: "q\nr\n"}})
	})
	t.Run("socket", func(t *testing.T) {
		socket := t.TempDir() + "/s"
		db, err := atomredis.Open(atomredis.Options{UnixSocket: socket})
		require.NoError(t, err)
		defer db.Close()
		var stdout bytes.Buffer
		require.Zero(t, Run(t.Context(), []string{"pressure", "put", "q", "m", "--create", "-s", socket}, nil, io.Discard,
			io.Discard))
		require.Zero(t, Run(t.Context(), []string{"pressure", "get", "q", "-s", socket}, nil, &stdout, io.Discard))
		require.Equal(t, "m\n", stdout.String())
	})
	t.Run("nobody there", func(t *testing.T) {
		play(t, freeport.Addr(t), []step{{line: "pressure list", code: 1, stderr: "re:^atomredis: .*connection refused\n$"}})
	})
}

// TestPipeline passes many lines from one program to another through a small queue.
func TestPipeline(t *testing.T) {
	addr := start(t, nil)
	var lines strings.Builder
	for i := range 20000 {
		fmt.Fprintln(&lines, i)
	}
	require.Zero(t, Run(t.Context(), append([]string{"pressure", "create", "q", "--bound", "100"}, at(addr)...), nil,
		io.Discard, io.Discard))
	put := make(chan int, 1)
	go func() {
		put <- Run(t.Context(), append([]string{"pressure", "put", "q", "--close"}, at(addr)...),
			strings.NewReader(lines.String()), io.Discard, os.Stderr)
	}()
	var stdout bytes.Buffer
	require.Zero(t, Run(t.Context(), append([]string{"pressure", "get", "q", "--all"}, at(addr)...), nil, &stdout,
		os.Stderr))
	require.Zero(t, <-put)
	require.Equal(t, lines.String(), stdout.String())
}

// TestALineDoesNotWaitForTheNext requires that a line arrives before the input ends.
func TestALineDoesNotWaitForTheNext(t *testing.T) {
	addr := start(t, nil)
	c := newClient(t, addr)
	r, w := io.Pipe()
	put := make(chan int, 1)
	go func() {
		put <- Run(t.Context(), append([]string{"pressure", "put", "q", "--create"}, at(addr)...), r, io.Discard, os.Stderr)
	}()
	io.WriteString(w, "one\ntw")
	require.Eventually(t, func() bool { return c.LLen(t.Context(), "__pressure__:q").Val() == 1 }, long, time.Millisecond)
	io.WriteString(w, "o\n")
	require.Eventually(t, func() bool { return c.LLen(t.Context(), "__pressure__:q").Val() == 2 }, long, time.Millisecond)
	w.CloseWithError(errors.New("the disk is on fire"))
	require.Equal(t, exitError, <-put)
	require.Equal(t, []string{"two", "one"}, c.LRange(t.Context(), "__pressure__:q", 0, -1).Val())
}

// screen is an output that a test reads while a command writes it.
type screen struct{ lines chan string }

func (s *screen) Write(p []byte) (int, error) {
	for _, line := range strings.SplitAfter(string(p), "\n") {
		if line != "" {
			s.lines <- line
		}
	}
	return len(p), nil
}

// TestWhatGoesOn follows a log and a stream and watches a queue. An interrupt ends each with exit code 0.
func TestWhatGoesOn(t *testing.T) {
	addr := start(t, nil)
	play(t, addr, []step{{line: "pressure create q"}, {line: "atom log write info first"}})
	for _, tc := range []struct {
		line  string
		then  string // a command that causes new output
		wants []string
	}{
		{"atom log --follow", "atom log write info second", []string{"first", "second"}},
		{"atom read sensor t --follow", "atom write sensor t c=5", []string{"c=5"}},
		{"pressure info q --watch --json --interval 1ms", "pressure put q m", []string{`"length":0`, `"length":1`}},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		s := &screen{make(chan string, 1<<16)}
		var stderr bytes.Buffer
		code := make(chan int, 1)
		go func() { code <- Run(ctx, append(split(tc.line), at(addr)...), nil, s, &stderr) }()
		c := newClient(t, addr)
		if strings.HasPrefix(tc.line, "atom") { // the element has joined when its streams exist
			require.Eventually(t, func() bool { return len(c.Keys(ctx, "response:atomredis_*").Val()) == 1 }, long,
				time.Millisecond)
		}
		for i, want := range tc.wants {
			if i == len(tc.wants)-1 {
				play(t, addr, []step{{line: tc.then, stdout: "re:"}})
			}
			for line := range s.lines {
				if strings.Contains(line, want) {
					break
				}
			}
		}
		interrupt()
		require.Equal(t, exitOK, <-code, stderr.String())
		require.Empty(t, c.Keys(t.Context(), "*:atomredis_*").Val(), "nothing is left behind")
	}
}

func TestAnInterruptedPutSaysHowFarItGot(t *testing.T) {
	addr := start(t, nil)
	c := newClient(t, addr)
	ctx, interrupt := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	defer w.Close()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, append([]string{"pressure", "put", "q", "--create", "--close"}, at(addr)...), r, io.Discard, &stderr)
	}()
	io.WriteString(w, "one\n")
	require.Eventually(t, func() bool { return c.LLen(t.Context(), "__pressure__:q").Val() == 1 }, long, time.Millisecond)
	interrupt(errors.New("enough"))
	require.Equal(t, exitError, <-code)
	require.Regexp(t, "^atomredis: after \\d messages: .*enough\n$", stderr.String())
	require.Zero(t, c.Exists(t.Context(), "__pressure__:q:closed").Val())
}

// failing is an output without space.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestReservedMessagesThatCannotBeWrittenComeBack(t *testing.T) {
	addr := start(t, nil)
	play(t, addr, []step{{line: "pressure put q a b --create"}})
	var stderr bytes.Buffer
	require.Equal(t, exitError, Run(t.Context(), append(split("pressure get q --count 2 --reserve 1ms"), at(addr)...),
		nil, failing{}, &stderr))
	require.Contains(t, stderr.String(), "no space left")
	play(t, addr, []step{{line: "pressure get q --count 2", stdout: "a\nb\n"}})
}

func TestTables(t *testing.T) {
	var out bytes.Buffer
	a := &app{out: newWriter(&out), terminal: true}
	require.NoError(t, a.table([]string{"element", "stream"}, [][]string{{"a", "x"}, {"longer", "y\nz"}}))
	require.Equal(t, "ELEMENT  STREAM\na        x\nlonger   \"y\\nz\"\n", out.String())
	out.Reset()
	a.clear()
	require.NoError(t, a.out.Flush())
	require.Equal(t, "\x1b[H\x1b[2J", out.String())
}

func TestInfoWithoutTheServersHelp(t *testing.T) {
	addr := start(t, nil)
	c := newClient(t, addr)
	e, err := atom.New(t.Context(), c, "arm", atom.Options{})
	require.NoError(t, err)
	defer e.Close(context.Background())
	_, err = e.EntryWrite(t.Context(), "pose", map[string]any{"x": 1}, atom.WriteOptions{})
	require.NoError(t, err)
	require.NoError(t, c.XGroupCreate(t.Context(), "command:arm", "command_consumer_group:arm", "$").Err())
	a := &app{client: c}
	info, err := a.infoFromStreams(t.Context(), e, "arm")
	require.NoError(t, err)
	text, err := json.Marshal(info)
	require.NoError(t, err)
	require.Regexp(t, `^{"commands":{"last-id":"\d+-\d+","length":1},"consumers":{},"language":"Go","pending":0,`+
		`"responses":{"last-id":"\d+-\d+","length":1},"streams":{"pose":{"last-id":"\d+-\d+","length":1}},"version":"[\d.]+"}$`, string(text))
	_, err = a.infoFromStreams(t.Context(), e, "leg")
	require.ErrorContains(t, err, `there is no element "leg"`)
}

func TestPressureGetWaitsForAQueue(t *testing.T) {
	addr := start(t, nil)
	got := make(chan string)
	go func() {
		var out bytes.Buffer
		Run(context.Background(), append(split("pressure get later --all --wait"), at(addr)...), strings.NewReader(""),
			&out, &out)
		got <- out.String()
	}()
	client := newClient(t, addr)
	require.Eventually(t, func() bool {
		return strings.Contains(client.Info(t.Context(), "commandstats").Val(), "cmdstat_command")
	}, long, time.Millisecond) // wait for the first look
	play(t, addr, []step{{line: "pressure put later --create --bound 1 --close a b c"}})
	require.Equal(t, "a\nb\nc\n", <-got)
}
