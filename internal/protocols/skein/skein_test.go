package skein_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/resp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened starts a server with a clock that only FastForward moves.
func opened(t testing.TB) *atomredistest.Server {
	return atomredistest.RunOptions(t, atomredis.Options{Clock: engine.NewManualClock(time.UnixMilli(1e12))})
}

// doer executes commands.
type doer interface {
	Do(ctx context.Context, args ...any) (atomredis.Reply, error)
}

// do executes a command, whose words are separated by spaces: "" is the empty one, and \0 stands for a NUL.
func do(t testing.TB, s doer, line string) string {
	t.Helper()
	var args []any
	for word := range strings.SplitSeq(line, " ") {
		if word == `""` {
			word = ""
		}
		args = append(args, strings.ReplaceAll(word, `\0`, "\x00"))
	}
	r, err := s.Do(t.Context(), args...)
	var refused atomredis.Error
	if errors.As(err, &refused) {
		return string(refused)
	}
	require.NoError(t, err, line)
	return text(r)
}

// text writes a reply as a line.
func text(r atomredis.Reply) string {
	if r.IsNull() {
		return "nil"
	}
	if all, err := r.Slice(); err == nil {
		texts := make([]string, len(all))
		for i, one := range all {
			texts[i] = text(one)
		}
		return "[" + strings.Join(texts, " ") + "]"
	}
	if s, err := r.Text(); err == nil {
		return strings.ReplaceAll(s, "\x00", `\0`)
	}
	return r.String()
}

const (
	unknownService   = "SKEININVALID Unknown service 'x'"
	unknownContainer = "SKEININVALID Service 's' has no container instance 9"
	completed        = "SKEININVALID Container 's_1' has already completed"
)

// Each test begins with two services and three keys. Service s has the running container s_0 and the killed
// container s_1; service t has t_0. The keys are k = 1, l = 2, and m = 3, which s_0 owns.
func TestTheSemanticsAreThoseOfSkein(t *testing.T) {
	for _, test := range []struct{ what, command, want, then, thenWant string }{
		// Ranges.
		{what: "everything", command: `SKEIN.RANGE a "" ""`, want: "[[k 1 nil] [l 2 nil] [m 3 s_0]]"},
		{what: "a NUL is the beginning", command: `SKEIN.RANGE a \0 m KEYS`, want: "[k l]"},
		{what: "the start is in it", command: `SKEIN.RANGE a l "" KEYS`, want: "[l m]"},
		{what: "the end is not", command: `SKEIN.RANGE a "" l KEYS`, want: "[k]"},
		{what: "one key", command: `SKEIN.RANGE a l l\0`, want: "[[l 2 nil]]"},
		{what: "the empty key", command: `SKEIN.PUT a "" VALUE 0`, want: "OK", then: `SKEIN.RANGE a "" \0`, thenWant: "[[ 0 nil]]"},
		{what: "start behind end", command: `SKEIN.RANGE a m k`, want: "[]"},
		{what: "only counted", command: `SKEIN.RANGE a k m NONE`, want: "2"},
		{what: "nothing there", command: `SKEIN.RANGE other "" ""`, want: "[]"},
		{what: "a supplementary character comes before the last ones of 16 bits", command: "SKEIN.PUT a \U0001f600 VALUE 4", want: "OK",
			then:     "SKEIN.TXN a THEN PUT \uffff VALUE 5 RANGE m \"\" KEYS RANGE \ue000 \"\" KEYS RANGE \"\" \ue000 KEYS",
			thenWant: "[1 [OK [m \U0001f600 \uffff] [\uffff] [k l m \U0001f600]]]"},
		{what: "no UTF-8", command: "SKEIN.RANGE a \xff z", want: "ERR the key is not valid UTF-8"},
		{what: "no results", command: "SKEIN.RANGE a k z VALUES", want: "ERR syntax error"},
		{what: "get", command: "SKEIN.GET a m", want: "[3 s_0]", then: "SKEIN.GET a n", thenWant: "nil"},
		{what: "no application", command: `SKEIN.GET "" m`, want: "ERR the name of an application must not be empty, and must not have braces"},

		// DeleteRange.
		{what: "counted before", command: `SKEIN.DEL a "" m`, want: "2", then: `SKEIN.RANGE a "" "" KEYS`, thenWant: "[m]"},
		{what: "taken before", command: `SKEIN.DEL a l "" ITEMS`, want: "[[l 2 nil] [m 3 s_0]]", then: `SKEIN.RANGE a "" "" NONE`,
			thenWant: "1"},
		{what: "keys alone", command: `SKEIN.DEL a l "" KEYS`, want: "[l m]"},
		{what: "nothing to delete", command: `SKEIN.DEL a n "" ITEMS`, want: "[]"},
		{what: "owners are released", command: `SKEIN.DEL a m m\0`, want: "1", then: "HGETALL skein:{a}:owners", thenWant: "[]"},

		// PutKey.
		{what: "the owner is cleared", command: "SKEIN.PUT a m VALUE 4 GET", want: "[3 s_0]", then: "SKEIN.GET a m", thenWant: "[4 nil]"},
		{what: "the owner is kept", command: "SKEIN.PUT a m VALUE 4 KEEPOWNER", want: "OK", then: "SKEIN.GET a m", thenWant: "[4 s_0]"},
		{what: "the owner alone", command: "SKEIN.PUT a k OWNER t_0", want: "OK", then: "SKEIN.GET a k", thenWant: "[1 t_0]"},
		{what: "the value is kept", command: "SKEIN.PUT a m GET", want: "[3 s_0]", then: "SKEIN.GET a m", thenWant: "[3 nil]"},
		{what: "there was nothing", command: "SKEIN.PUT a n VALUE 4 GET", want: "nil"},
		{what: "both ignored", command: "SKEIN.PUT a n KEEPOWNER", want: "SKEININVALID ignore_value & ignore_owner can't both be true"},
		{what: "no value", command: "SKEIN.PUT a n OWNER x_0", want: "SKEINPRECONDITION ignore_value=True & key isn't already set"},
		{what: "no service", command: "SKEIN.PUT a n VALUE 1 OWNER x_0", want: unknownService, then: "SKEIN.GET a n", thenWant: "nil"},
		{what: "no container", command: "SKEIN.PUT a n VALUE 1 OWNER s_9", want: unknownContainer},
		{what: "it has ended", command: "SKEIN.PUT a n VALUE 1 OWNER s_1", want: completed},
		{what: "a negative number", command: "SKEIN.PUT a n VALUE 1 OWNER s_-1",
			want: "SKEININVALID Service 's' has no container instance -1"},
		{what: "no container at all", command: "SKEIN.PUT a n VALUE 1 OWNER s", want: "ERR the container is not of the form service_instance"},
		{what: "values may be words", command: "SKEIN.PUT a n VALUE OWNER OWNER s_0 GET", want: "nil", then: "SKEIN.GET a n",
			thenWant: "[OWNER s_0]"},
		{what: "twice", command: "SKEIN.PUT a n VALUE 1 VALUE 2", want: "ERR syntax error"},
		{what: "of two owners", command: "SKEIN.PUT a n VALUE 1 OWNER s_0 KEEPOWNER", want: "ERR syntax error"},

		// Transactions.
		{what: "no condition", command: "SKEIN.TXN a THEN PUT k VALUE 9 RANGE k l DEL k m ITEMS RANGE k l NONE ELSE DEL a z",
			want: "[1 [OK [[k 9 nil]] [[k 9 nil] [l 2 nil]] 0]]"},
		{what: "the other list", command: "SKEIN.TXN a IF VALUE k = 2 THEN DEL a z ELSE PUT k VALUE 2 GET", want: "[0 [[1 nil]]]"},
		{what: "nothing to do", command: "SKEIN.TXN a", want: "[1 []]"},
		{what: "checked against what there was before", command: "SKEIN.TXN a THEN PUT n VALUE 1 PUT n OWNER s_0",
			want: "SKEINPRECONDITION ignore_value=True & key isn't already set", then: "SKEIN.GET a n", thenWant: "nil"},
		{what: "the first that fails", command: "SKEIN.TXN a THEN PUT k VALUE 9 PUT l VALUE 1 OWNER x_0 PUT n KEEPOWNER", want: unknownService,
			then: "SKEIN.GET a k", thenWant: "[1 nil]"},
		{what: "only the chosen list is checked", command: "SKEIN.TXN a IF NOVALUE k = THEN PUT n KEEPOWNER ELSE PUT n VALUE 1", want: "[0 [OK]]"},
		{what: "a key that is deleted before", command: "SKEIN.TXN a THEN DEL k l PUT k OWNER s_0",
			want: "SKEINPRECONDITION ignore_value=True & key isn't already set", then: "SKEIN.GET a k", thenWant: "[1 nil]"},
		{what: "and is there again", command: "SKEIN.TXN a THEN DEL k l PUT k VALUE 8 PUT k OWNER s_0", want: "[1 [1 OK OK]]",
			then: "SKEIN.GET a k", thenWant: "[8 s_0]"},
		{what: "another one is deleted", command: "SKEIN.TXN a THEN DEL l m PUT k OWNER s_0", want: "[1 [1 OK]]"},
		{what: "what is no operation", command: "SKEIN.TXN a THEN GET k", want: "ERR syntax error"},
		{what: "what is no operator", command: "SKEIN.TXN a IF VALUE k == 1", want: "ERR syntax error"},
		{what: "cut off", command: "SKEIN.TXN a IF VALUE k =", want: "ERR syntax error"},

		// Watches.
		{what: "a watch of no type", command: `SKEIN.WATCH a "" "" MOVE`, want: "ERR syntax error"},
		{what: "events are counted", command: "SKEIN.REVISION a", want: "3", then: "SKEIN.REVISION b", thenWant: "0"},

		// Containers.
		{what: "a new one", command: "SKEIN.CONTAINER ADD a s", want: container("s", 2, "REQUESTED", 0, 0, ""),
			then: "SKEIN.CONTAINER RUN a s", thenWant: "s_2"},
		{what: "of no service", command: "SKEIN.CONTAINER ADD a x", want: unknownService},
		{what: "killed with its keys", command: "SKEIN.CONTAINER KILL a s_0", want: "OK", then: `SKEIN.RANGE a "" "" KEYS`, thenWant: "[k l]"},
		{what: "killed again", command: "SKEIN.CONTAINER KILL a s_1", want: "OK", then: "HGET skein:{a}:containers s_1",
			thenWant: "KILLED 1000000000000 1000000000000 - Killed by user request."},
		{what: "killed without a service", command: "SKEIN.CONTAINER KILL a x_0", want: unknownService},
		{what: "killed without a container", command: "SKEIN.CONTAINER KILL a s_9", want: unknownContainer},
		{what: "ended", command: "SKEIN.CONTAINER END a s_0 FAILED MESSAGE why", want: "1", then: "HGET skein:{a}:containers s_0",
			thenWant: "FAILED 1000000000000 1000000000000 - why"},
		{what: "ended again", command: "SKEIN.CONTAINER END a s_1", want: "0"},
		{what: "both scales", command: "SKEIN.CONTAINER SCALE a s COUNT 1 DELTA 1", want: "SKEININVALID Can't specify both count and delta"},
		{what: "a negative count", command: "SKEIN.CONTAINER SCALE a s COUNT -1", want: "SKEININVALID count must be >= 0"},
		{what: "too many", command: "SKEIN.CONTAINER SCALE a s COUNT 10001", want: "ERR the service has the largest number of containers"},
		{what: "too small a delta", command: "SKEIN.CONTAINER SCALE a s DELTA -5", want: "[" + wasKilled("s", 0) + "]"},
		{what: "scale to what there is", command: "SKEIN.CONTAINER SCALE a s COUNT 1", want: "[]"},
		{what: "scale of no service", command: "SKEIN.CONTAINER SCALE a x COUNT 1", want: unknownService},
		{what: "those that run go last", command: "SKEIN.CONTAINER SCALE a s DELTA 1",
			want: "[" + container("s", 2, "REQUESTED", 0, 0, "") + "]",
			then: "SKEIN.CONTAINER SCALE a s COUNT 1", thenWant: "[" + container("s", 2, "KILLED", 0, 1e12, "Killed by user request.") + "]"},
		{what: "the oldest goes first", command: "SKEIN.CONTAINER RUN a s", want: "s_2", then: "SKEIN.CONTAINER SCALE a s COUNT 1",
			thenWant: "[" + wasKilled("s", 0) + "]"},
		{what: "listed without those that ended", command: "SKEIN.CONTAINER LIST a SERVICE s", want: "[" + runs("s", 0) + "]"},
		{what: "listed by state", command: "SKEIN.CONTAINER LIST a STATE KILLED STATE FAILED", want: "[" + wasKilled("s", 1) + "]"},
		{what: "listed of no service", command: "SKEIN.CONTAINER LIST a SERVICE x", want: unknownService},
		{what: "a service is there once", command: "SKEIN.CONTAINER SERVICE a s 5", want: "[]"},
		{what: "a service has a name of its own", command: "SKEIN.CONTAINER RUN a \x01", want: "ERR the name of a service must be text without control characters, and not empty"},
		{what: "started twice", command: "SKEIN.CONTAINER START a s_0", want: "ERR the container runs already"},
		{what: "started too late", command: "SKEIN.CONTAINER START a s_1", want: completed},
		{what: "renewed without a lease", command: "SKEIN.CONTAINER RENEW a s_0", want: "ERR the container has no lease"},
		{what: "renewed too late", command: "SKEIN.CONTAINER RENEW a s_1 TTL 5", want: completed},
		{what: "a lease of nothing", command: "SKEIN.CONTAINER RUN a s TTL 0", want: "ERR value is out of range"},

		// The application.
		{what: "applications", command: "SKEIN.APPS", want: "[a]"},
		{what: "finished", command: "SKEIN.FINISH a SUCCEEDED well-done", want: "OK", then: "SKEIN.INFO a",
			thenWant: "[keys 2 owned 0 services 2 containers 0 leases 0 revision 5 status SUCCEEDED message well-done]"},
		{what: "finished somehow", command: "SKEIN.FINISH a WELL", want: "ERR syntax error"},
		{what: "a key of another type", command: "SET skein:{b}:leases 1", want: "OK", then: "SKEIN.PUT b k VALUE 1",
			thenWant: "WRONGTYPE Operation against a key holding the wrong kind of value"},
	} {
		t.Run(test.what, func(t *testing.T) {
			s := opened(t)
			require.Equal(t, "["+runs("s", 0)+" "+runs("s", 1)+"]", do(t, s, "SKEIN.CONTAINER SERVICE a s 2"))
			do(t, s, "SKEIN.CONTAINER SERVICE a t 1")
			do(t, s, "SKEIN.CONTAINER KILL a s_1")
			require.Equal(t, "[1 [OK OK OK]]", do(t, s, "SKEIN.TXN a THEN PUT k VALUE 1 PUT m VALUE 3 OWNER s_0 PUT l VALUE 2"))
			require.Equal(t, test.want, do(t, s, test.command), test.command)
			if test.then != "" {
				require.Equal(t, test.thenWant, do(t, s, test.then), test.then)
			}
		})
	}
}

// container is the reply of a container.
func container(service string, n int, state string, start, finish int64, message string) string {
	return fmt.Sprintf("[id %s_%d service %[1]s instance %[2]d state %s start %d finish %d lease - message %s]",
		service, n, state, start, finish, message)
}

func runs(service string, n int) string { return container(service, n, "RUNNING", 1e12, 0, "") }

func wasKilled(service string, n int) string {
	return container(service, n, "KILLED", 1e12, 1e12, "Killed by user request.")
}

// A missing value equals only a missing value, and is neither less nor greater. Bytes are signed.
func TestConditions(t *testing.T) {
	s := opened(t)
	do(t, s, "SKEIN.CONTAINER SERVICE a s 11")
	do(t, s, "SKEIN.CONTAINER SERVICE a \U0001f600 1")
	do(t, s, "SKEIN.TXN a THEN PUT k VALUE b PUT e VALUE \"\" PUT high VALUE \x80 PUT owned VALUE 1 OWNER s_2 PUT far VALUE 1 OWNER \U0001f600_0")
	for _, test := range []struct{ condition, holds string }{ // holds lists the operators for which the condition is true
		{"VALUE k ? b", "= <= >="}, {"VALUE k ? a", "!= > >="}, {"VALUE k ? c", "!= < <="}, {"VALUE k ? bb", "!= < <="},
		{`VALUE k ? ""`, "!= > >="}, {`VALUE e ? ""`, "= <= >="}, {"VALUE none ? b", "!="}, {`VALUE none ? ""`, "!="},
		{"VALUE high ? \x00", "!= < <="}, {"VALUE high ? \x7f", "!= < <="}, {"VALUE high ? \x81", "!= < <="}, {"VALUE k ? \x80", "!= > >="},
		{"NOVALUE k ?", "!="}, {"NOVALUE none ?", "="}, {"NOVALUE e ?", "!="},
		{"OWNER owned ? s_2", "= <= >="}, {"OWNER owned ? s_10", "!= < <="}, {"OWNER owned ? r_9", "!= > >="},
		{"OWNER owned ? nobody_0", "!= > >="}, {"OWNER k ? s_2", "!="}, {"OWNER none ? s_2", "!="},
		{"OWNER far ? \uffff_0", "!= < <="}, {"OWNER far ? \ud7ff_0", "!= > >="},
		{"NOOWNER owned ?", "!="}, {"NOOWNER k ?", "="}, {"NOOWNER none ?", "="},
	} {
		var holds []string
		for _, operator := range []string{"=", "!=", "<", "<=", ">", ">="} {
			if do(t, s, "SKEIN.TXN a IF "+strings.Replace(test.condition, "?", operator, 1)) == "[1 []]" {
				holds = append(holds, operator)
			}
		}
		require.Equal(t, test.holds, strings.Join(holds, " "), test.condition)
	}
	require.Equal(t, "[0 []]", do(t, s, "SKEIN.TXN a IF VALUE k = b NOOWNER k = OWNER owned = s_2 VALUE k = c THEN RANGE a z"))
}

func TestContainersEndWhenTheirLeasesExpire(t *testing.T) {
	s := opened(t)
	events := subscribe(t, s, "skein:{a}:events")
	require.Equal(t, "w_0", do(t, s, "SKEIN.CONTAINER RUN a w TTL 1000"))
	require.Equal(t, "w_1", do(t, s, "SKEIN.CONTAINER RUN a w TTL 2000"))
	do(t, s, "SKEIN.TXN a THEN PUT z VALUE 1 OWNER w_0 PUT b VALUE 2 OWNER w_0 PUT c VALUE 3 OWNER w_1 PUT d VALUE 4")
	s.FastForward(999 * time.Millisecond)
	require.Equal(t, "OK", do(t, s, "SKEIN.CONTAINER RENEW a w_1"))
	s.FastForward(time.Millisecond)
	require.Eventually(t, func() bool { return do(t, s, `SKEIN.RANGE a "" "" KEYS`) == "[c d]" }, 30*time.Second, time.Millisecond)
	require.Equal(t, "FAILED 1000000000000 1000000001000 - The lease has expired.", do(t, s, "HGET skein:{a}:containers w_0"))
	require.Equal(t, "SKEININVALID Container 'w_0' has already completed", do(t, s, "SKEIN.CONTAINER RENEW a w_0"))
	require.Equal(t, "OK", do(t, s, "SKEIN.CONTAINER RENEW a w_1 TTL 5000"))
	s.FastForward(4999 * time.Millisecond)
	require.Equal(t, "[4 nil]", do(t, s, "SKEIN.GET a d"))
	require.Equal(t, "[3 w_1]", do(t, s, "SKEIN.GET a c"))
	s.FastForward(time.Millisecond)
	require.Equal(t, "OK", do(t, s, "SKEIN.PUT a e VALUE 5")) // before or after the timer
	require.Equal(t, "nil", do(t, s, "SKEIN.GET a c"))
	want := []string{"PUT 1 1:z,1:1,3:w_0,", "PUT 2 1:b,1:2,3:w_0,", "PUT 3 1:c,1:3,3:w_1,", "PUT 4 1:d,1:4,",
		"DELETE 5 1:b,1:z,", "DELETE 6 1:c,", "PUT 7 1:e,1:5,"}
	for _, w := range want {
		require.Equal(t, w, events())
	}
}

// subscribe returns a function that waits for the next message of a channel.
func subscribe(t testing.TB, s *atomredistest.Server, channel string) (next func() string) {
	messages := make(chan string, 1<<16)
	iterator := s.Subscribe(t.Context(), channel)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m, err := range iterator {
			if err != nil {
				return
			}
			messages <- string(m.Payload)
		}
	}()
	t.Cleanup(func() { <-done })
	return func() string {
		select {
		case m := <-messages:
			return m
		case <-time.After(30 * time.Second):
			t.Fatal("there is no event")
			return ""
		}
	}
}

// connection is a client that can hang up.
type connection struct {
	net.Conn
	t testing.TB
}

func dial(t testing.TB, s *atomredistest.Server) *connection {
	conn, err := s.Dial(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &connection{conn, t}
}

func (c *connection) send(words ...string) {
	w := resp.Writer{}
	w.Array(len(words))
	for _, word := range words {
		w.BulkString(word)
	}
	_, err := c.Write(w.Buf)
	require.NoError(c.t, err)
}

// receive waits for a reply.
func (c *connection) receive() string {
	var got []byte
	for {
		if r, _, err := resp.NextReply(got); err == nil {
			return text(r)
		}
		buf := make([]byte, 4096)
		n, err := c.Read(buf)
		require.NoError(c.t, err)
		got = append(got, buf[:n]...)
	}
}

func TestContainersEndWithTheirSessions(t *testing.T) {
	s := opened(t)
	one, two := dial(t, s), dial(t, s)
	for i, c := range []*connection{one, two} {
		c.send("SKEIN.CONTAINER", "RUN", "a", "w", "SESSION")
		require.Equal(t, fmt.Sprintf("w_%d", i), c.receive())
	}
	do(t, s, "SKEIN.TXN a THEN PUT k VALUE 1 OWNER w_0 PUT l VALUE 2 OWNER w_1 PUT m VALUE 2 OWNER w_0")
	s.FastForward(1000 * time.Hour)
	require.Equal(t, "[k l m]", do(t, s, `SKEIN.RANGE a "" "" KEYS`))
	one.Close()
	require.Eventually(t, func() bool { return do(t, s, `SKEIN.RANGE a "" "" KEYS`) == "[l]" }, 30*time.Second, time.Millisecond)
	require.Contains(t, do(t, s, "HGET skein:{a}:containers w_0"), "- The session has ended.")
	require.Equal(t, "1", do(t, s, "SKEIN.CONTAINER END a w_1"))
	two.Close()
	require.Equal(t, "[]", do(t, s, `SKEIN.RANGE a "" "" KEYS`))
	require.Contains(t, do(t, s, "HGET skein:{a}:containers w_1"), "SUCCEEDED")
}

func TestContainersAndTheirKeysAfterARestart(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	options := atomredis.Options{Clock: clock, Dir: t.TempDir()}
	db, err := atomredis.Open(options)
	require.NoError(t, err)
	conn, err := db.Dial(t.Context())
	require.NoError(t, err)
	c := &connection{conn, t}
	c.send("SKEIN.CONTAINER", "RUN", "a", "tied", "SESSION")
	require.Equal(t, "tied_0", c.receive())
	do(t, db, "SKEIN.CONTAINER RUN a leased TTL 60000")
	do(t, db, "SKEIN.CONTAINER RUN a leased TTL 90000")
	do(t, db, "SKEIN.CONTAINER RUN a free")
	do(t, db, "SKEIN.TXN a THEN PUT \U0001f600 VALUE 1 OWNER tied_0 PUT l VALUE 2 OWNER leased_0 PUT m VALUE 3 OWNER leased_1 "+
		"PUT n VALUE 4 OWNER free_0 PUT \uffff VALUE 5")
	require.NoError(t, db.Close())
	conn.Close()

	db, err = atomredis.Open(options)
	require.NoError(t, err)
	defer db.Close()
	keysAre := func(want string) {
		t.Helper()
		require.Eventually(t, func() bool { return do(t, db, `SKEIN.RANGE a "" "" KEYS`) == want }, 30*time.Second, time.Millisecond)
	}
	clock.Advance(time.Second) // the schedule searches for stored keys
	keysAre("[l m n \uffff]")
	clock.Advance(59 * time.Second)
	keysAre("[m n \uffff]")
	clock.Advance(30 * time.Second)
	keysAre("[n \uffff]")
	require.Equal(t, "OK", do(t, db, "SKEIN.CONTAINER KILL a free_0"))
	keysAre("[\uffff]")
}

func TestAWatchSeesTheNextEventInItsRange(t *testing.T) {
	s := opened(t)
	waiting := func(c *connection, words ...string) {
		c.send(append([]string{"SKEIN.WATCH", "a"}, words...)...)
	}
	blocked := func(n int) {
		require.Eventually(t, func() bool {
			return strings.Contains(do(t, s, "INFO clients"), fmt.Sprintf("blocked_clients:%d\r\n", n))
		},
			30*time.Second, time.Millisecond)
	}
	all, puts, deletes, gone, timed := dial(t, s), dial(t, s), dial(t, s), dial(t, s), dial(t, s)
	waiting(all, "b", "d")
	waiting(puts, "", "", "PUT")
	waiting(deletes, "b", "", "DELETE")
	waiting(gone, "", "")
	waiting(timed, "x", "", "ALL", "TIMEOUT", "500")
	blocked(5)
	gone.Close()
	blocked(4)
	do(t, s, "SKEIN.CONTAINER RUN a w")
	do(t, s, "SKEIN.PUT a a VALUE 1 OWNER w_0")
	require.Equal(t, "[PUT 1 [[a 1 w_0]]]", puts.receive())
	do(t, s, "SKEIN.TXN a THEN PUT c VALUE 2 PUT e VALUE 3")
	require.Equal(t, "[PUT 2 [[c 2 nil]]]", all.receive())
	waiting(all, "b", "d")
	blocked(3)
	do(t, s, `SKEIN.DEL a "" ""`)
	require.Equal(t, "[DELETE 4 [c]]", all.receive())
	require.Equal(t, "[DELETE 4 [c e]]", deletes.receive())
	s.FastForward(500 * time.Millisecond)
	require.Equal(t, "nil", timed.receive())
	waiting(timed, "", "", "PUT")
	blocked(1)
	do(t, s, "SKEIN.PUT other k VALUE 1")
	r := s.MustDo(t, "EVAL", "redis.call('SKEIN.PUT', 'a', 'k', 'VALUE', '1'); return redis.call('SKEIN.WATCH', 'a', '', '')", 0)
	require.True(t, r.IsNull())
	require.Equal(t, "[PUT 5 [[k 1 nil]]]", timed.receive())
}

// A server and a simple model get the same thousand random commands for each application. Their replies, events and
// stored keys are equal, also after a restart.
func TestRandomCommandsAgainstAModel(t *testing.T) {
	applications := 40
	if testing.Short() {
		applications = 4
	}
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	options := atomredis.Options{Clock: clock, Dir: t.TempDir(), Config: map[string]string{"appendfsync": "no"}}
	s := atomredistest.RunOptions(t, options)
	r := rand.New(rand.NewPCG(31, 2))
	var models []*model
	for i := range applications {
		m := newModel(fmt.Sprint("app", i), s.Now().UnixMilli())
		models = append(models, m)
		next := subscribe(t, s, "skein:{"+m.app+"}:events")
		for j := range 1000 {
			words, want := m.random(r)
			if words == nil {
				ms := int64(r.IntN(500))
				s.FastForward(time.Duration(ms) * time.Millisecond)
				for _, m := range models {
					m.forward(ms)
				}
				s.MustDo(t, "SKEIN.DEL", m.app, "none", "none") // due work is done by now, by this command or by the timer
				continue
			}
			reply, err := s.Do(t.Context(), words...)
			got := text(reply)
			var refused atomredis.Error
			if errors.As(err, &refused) {
				got = string(refused)
			}
			require.Equal(t, want, got, "application %d, command %d: %q", i, j, words)
		}
		for _, want := range m.events {
			require.Equal(t, want, next())
		}
		require.Equal(t, fmt.Sprint(len(m.events)), do(t, s, "SKEIN.REVISION "+m.app))
	}
	for _, m := range models {
		do(t, s, "SKEIN.DEL "+m.app+" none none")
		m.compareStored(t, s)
	}
	require.NoError(t, s.Close())
	again, err := atomredis.Open(options)
	require.NoError(t, err)
	for _, m := range models {
		m.compareStored(t, again)
	}
	require.NoError(t, again.Close())
}

// compareStored compares all keys with the model.
func (m *model) compareStored(t *testing.T, s doer) {
	t.Helper()
	require.Equal(t, m.listed(m.within("", ""), "ITEMS"), do(t, s, `SKEIN.RANGE `+m.app+` "" ""`))
	require.Equal(t, fmt.Sprint(len(m.pairs)), do(t, s, "HLEN skein:{"+m.app+"}"))
	require.Equal(t, fmt.Sprint(len(m.pairs)), do(t, s, "ZCARD skein:{"+m.app+"}:index"))
	owned, leases := 0, 0
	for _, p := range m.pairs {
		if p.owner != "" {
			owned++
		}
	}
	for id, c := range m.containers {
		if c.ttl > 0 {
			leases++
			require.Equal(t, fmt.Sprint(c.deadline), do(t, s, "ZSCORE skein:{"+m.app+"}:leases "+id))
		}
	}
	require.Equal(t, fmt.Sprint(owned), do(t, s, "HLEN skein:{"+m.app+"}:owners"))
	require.Equal(t, fmt.Sprint(owned), do(t, s, "ZCARD skein:{"+m.app+"}:owned"))
	require.Equal(t, fmt.Sprint(leases), do(t, s, "ZCARD skein:{"+m.app+"}:leases"))
}
