package streams_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testclient"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/server"
)

// addEntries adds entries 1-0 to n-0 to a stream.
func addEntries(c *testclient.Client, key string, n int) {
	for i := range n {
		c.Line(fmt.Sprintf("XADD %s %d-0 f v", key, i+1))
	}
}

// pendingIDs returns the IDs that are pending in a group.
func pendingIDs(c *testclient.Client, key, group string) string {
	var ids []string
	for _, word := range strings.Fields(strings.NewReplacer("[", " ", "]", " ", `"`,
		" ").Replace(c.Line("XPENDING " + key + " " + group + " - + 1000"))) {
		if strings.HasSuffix(word, "-0") {
			ids = append(ids, strings.TrimSuffix(word, "-0"))
		}
	}
	return strings.Join(ids, " ")
}

func TestTrimmingRegardsGroups(t *testing.T) {
	c := servertest.Start(t, server.Options{}, "stream-node-max-entries", "2").Connect()
	for _, step := range []struct{ command, reply, left, pending string }{
		{"XTRIM s MAXLEN 4", "6", "7 8 9 10", "1 2 4 5 6 7 8"},
		{"XTRIM s MAXLEN 4 KEEPREF", "6", "7 8 9 10", "1 2 4 5 6 7 8"},
		{"XTRIM s MAXLEN 4 DELREF", "6", "7 8 9 10", "7 8"},
		{"XTRIM s DELREF MINID 5", "4", "5 6 7 8 9 10", "5 6 7 8"},
		{"XTRIM s MAXLEN 4 ACKED", "1", "1 2 4 5 6 7 8 9 10", "1 2 4 5 6 7 8"},
		{"XTRIM s MAXLEN 10 ACKED", "0", "1 2 3 4 5 6 7 8 9 10", "1 2 4 5 6 7 8"},
		{"XTRIM s MINID 3 ACKED", "0", "1 2 3 4 5 6 7 8 9 10", "1 2 4 5 6 7 8"},
		{"XTRIM s MAXLEN ~ 7 DELREF", "2", "3 4 5 6 7 8 9 10", "4 5 6 7 8"},
		{"XTRIM s MAXLEN ~ 0 LIMIT 5 DELREF", "4", "5 6 7 8 9 10", "5 6 7 8"},
		{"XTRIM s ACKED MINID ~ 9", "1", "1 2 4 5 6 7 8 9 10", "1 2 4 5 6 7 8"},
		{"XTRIM s MAXLEN ~ 9 ACKED", "0", "1 2 3 4 5 6 7 8 9 10", "1 2 4 5 6 7 8"},
		{"XADD s MAXLEN 2 11-0 f v", "11-0", "10 11", "1 2 4 5 6 7 8"},
		{"XADD s DELREF MAXLEN 2 11-0 f v", "11-0", "10 11", ""},
		{"XADD s NOMKSTREAM MAXLEN = 2 ACKED 11-0 f v", "11-0", "1 2 4 5 6 7 8 9 10 11", "1 2 4 5 6 7 8"},
		{"XADD s ACKED NOMKSTREAM MINID ~ 11 11-0 f v", "11-0", "1 2 4 5 6 7 8 9 10 11", "1 2 4 5 6 7 8"},
		{"XADD s DELREF 11-0 f v", "11-0", "1 2 3 4 5 6 7 8 9 10 11", "1 2 4 5 6 7 8"},
	} {
		c.Line("DEL s")
		addEntries(c, "s", 10)
		c.Line("XGROUP CREATE s g 0")
		c.Line("XREADGROUP GROUP g me COUNT 8 STREAMS s >")
		c.Line("XACK s g 3-0")
		require.Equal(t, step.reply, c.Line(step.command), step.command)
		var left []string
		for i := range 11 {
			if id := fmt.Sprint(i + 1); c.Line("XRANGE s "+id+" "+id) != "[]" {
				left = append(left, id)
			}
		}
		require.Equal(t, step.left, strings.Join(left, " "), step.command)
		require.Equal(t, step.pending, pendingIDs(c, "s", "g"), step.command)
	}
	c.Replies(
		// Without groups, references have no effect.
		"XGROUP DESTROY s g", "1",
		"XTRIM s MAXLEN 3 ACKED", "8",
		"XTRIM s MAXLEN 2 DELREF", "1",

		"XTRIM s MAXLEN 4 DELREF ACKED", "-ERR syntax error",
		"XTRIM s KEEPREF MAXLEN 4 KEEPREF", "-ERR syntax error",
		"XTRIM s KEEPREF DELREF", "-ERR syntax error",
		"XTRIM s MAXLEN ACKED", "-"+string(command.ErrNotInteger),
		"XTRIM s DELREF LIMIT 5", "-ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
		"XTRIM s DELREF LIMIT 0", "-ERR syntax error, XTRIM must be called with a trimming strategy",
		"XTRIM s MAXLEN 5 LIMIT 5 DELREF", "-ERR syntax error, LIMIT cannot be used without the special ~ option",
		"XADD s DELREF ACKED * f v", "-ERR Invalid stream ID specified as stream command argument",
		"XADD s KEEPREF MAXLEN 5 keepref", "-ERR Invalid stream ID specified as stream command argument",
		"XADD s MAXLEN 5 KEEPREF", "-ERR wrong number of arguments for 'xadd' command",
		"XADD s ACKED 12-0 f", "-ERR wrong number of arguments for 'xadd' command",
		"XADD none NOMKSTREAM ACKED 12-0 f v", "",
		"XTRIM none MAXLEN 4 ACKED", "0",
	)
}

func TestReadersClaimWhatHasBeenPendingForLong(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	c := servertest.Start(t, server.Options{Clock: clock}).Connect()
	pass := func(ms int) { clock.Advance(time.Duration(ms) * time.Millisecond) }
	read := func(n int) { c.Line(fmt.Sprintf("XREADGROUP GROUP g a COUNT %d STREAMS s >", n)) }
	entry := func(id, idle, times int) string { return fmt.Sprintf(`["%d-0" ["f" "v"] %d %d]`, id, idle, times) }
	reply := func(entries ...string) string { return `[["s" [` + strings.Join(entries, " ") + `]]]` }

	addEntries(c, "s", 6)
	c.Line("XGROUP CREATE s g 0")
	read(1)
	pass(10)
	read(2)
	pass(10)
	c.Line("XREADGROUP GROUP g a COUNT 1 STREAMS s 0") // 1-0 is delivered a second time
	pass(10)
	c.Replies(
		"XREADGROUP GROUP g b COUNT 1 CLAIM 20 STREAMS s >", reply(entry(2, 20, 1)),
		"XREADGROUP GROUP g b COUNT 3 CLAIM 10 STREAMS s >", reply(entry(3, 20, 1), entry(1, 10, 2), entry(4, 0, 0)),
		"XREADGROUP GROUP g b COUNT 1 CLAIM 1 STREAMS s >", reply(entry(5, 0, 0)),
		"XPENDING s g", `[5 "1-0" "5-0" [["b" "5"]]]`,
		"XPENDING s g - + 9 b", `[["1-0" "b" 0 3] ["2-0" "b" 0 2] ["3-0" "b" 0 2] ["4-0" "b" 0 1] ["5-0" "b" 0 1]]`,
		"XACK s g 2-0 4-0", "2",
		"XDEL s 3-0", "1",
	)
	pass(5)
	c.Replies(
		// NOACK does not affect claimed entries, and pending entries that were deleted are skipped.
		"XREADGROUP GROUP g c NOACK CLAIM 5 STREAMS s >", reply(entry(1, 5, 3), entry(5, 5, 1), entry(6, 0, 0)),
		"XREADGROUP GROUP g c CLAIM 1 STREAMS s >", "nil[]",
		"XREADGROUP GROUP g c CLAIM 9223372036854775807 STREAMS s >", "nil[]",
		"XPENDING s g", `[3 "1-0" "5-0" [["b" "1"] ["c" "2"]]]`,
		// CLAIM affects only the ID >, and the last CLAIM counts.
		"XREADGROUP GROUP g c CLAIM 0 STREAMS s 0", `[["s" [["1-0" ["f" "v"]] ["5-0" ["f" "v"]]]]]`,
		"XREADGROUP CLAIM 1000 GROUP g c CLAIM 0 COUNT 1 STREAMS s >", reply(entry(1, 0, 5)),
		// A group that is set back has entries that are both pending and new.
		"XGROUP SETID s g 4-0", "+OK",
		"XREADGROUP GROUP g c CLAIM 0 STREAMS s >", reply(entry(1, 0, 6), entry(5, 0, 3), entry(5, 0, 0), entry(6, 0, 0)),
		"XPENDING s g 5 5 9", `[["5-0" "c" 0 1]]`,
		// In a transaction.
		"MULTI", "+OK",
		"XREADGROUP GROUP g d COUNT 1 BLOCK 0 CLAIM 0 STREAMS s >", "+QUEUED",
		"XREADGROUP GROUP g d BLOCK 0 CLAIM 1 STREAMS s >", "+QUEUED",
		"EXEC", "["+reply(entry(1, 0, 7))+" nil[]]",
		// In a script.
		"EVAL return(redis.call('xreadgroup','group','g','d','count','1','claim','0','streams',KEYS[1],'>')) 1 s",
		reply(entry(1, 0, 8)),

		"XREADGROUP GROUP g c CLAIM -1 STREAMS s >", "-ERR min-idle-time must be a positive integer",
		"XREADGROUP GROUP g c CLAIM x STREAMS s >", "-ERR min-idle-time is not an integer or out of range",
		"XREADGROUP GROUP g c CLAIM +1 STREAMS s >", "-ERR min-idle-time is not an integer or out of range",
		"XREADGROUP GROUP g c CLAIM -0 STREAMS s >", "-ERR min-idle-time is not an integer or out of range",
		"XREADGROUP GROUP g c CLAIM STREAMS s >", "-ERR min-idle-time is not an integer or out of range",
		"XREADGROUP GROUP g CLAIM 1 c STREAMS s >", "-ERR syntax error",
		"XREADGROUP GROUP g c STREAMS s > CLAIM",
		"-ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified.",
		"XREADGROUP GROUP none c CLAIM 1 STREAMS s >",
		"-NOGROUP No such key 's' or consumer group 'none' in XREADGROUP with GROUP option",
		"XREAD CLAIM 1 STREAMS s 0", "-ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.",
		"XREAD COUNT 1 CLAIM", "-ERR syntax error",
	)
	// Several streams: those without entries to return are left out, and CLAIM affects no ID but >.
	c.Line("XADD t 1-0 f v")
	c.Line("XGROUP CREATE t g 0")
	c.Line("XADD u 1-0 f v")
	c.Line("XGROUP CREATE u g $")
	c.Replies(
		"XREADGROUP GROUP g e CLAIM 0 COUNT 1 STREAMS s t u > > >", `[["s" [`+entry(1, 0, 9)+`]] ["t" [`+entry(1, 0, 0)+`]]]`,
		"XREADGROUP GROUP g e CLAIM 0 COUNT 1 STREAMS t s 0 >", `[["t" [["1-0" ["f" "v"]]]] ["s" [`+entry(1, 0, 10)+`]]]`,
	)
	c.Line("HELLO 3")
	c.Replies(
		"XREADGROUP GROUP g e COUNT 1 CLAIM 0 STREAMS t >", `map["t" [`+entry(1, 0, 2)+`]]`,
	)
}

func TestConsumersTellWhenTheyWereGivenSomethingLast(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	c := servertest.Start(t, server.Options{Clock: clock}).Connect()
	addEntries(c, "s", 1)
	c.Line("XGROUP CREATE s g 0")
	c.Line("XGROUP CREATECONSUMER s g a")
	c.Line("XREADGROUP GROUP g b STREAMS s >")
	clock.Advance(30 * time.Millisecond)
	c.Line("XREADGROUP GROUP g b STREAMS s 9")
	clock.Advance(20 * time.Millisecond)
	c.Replies("XINFO CONSUMERS s g", `[["name" "a" "pending" 0 "idle" 50 "inactive" -1] ["name" "b" "pending" 1 "idle" 20 "inactive" 50]]`)
	full := c.Line("XINFO STREAM s FULL")
	require.Contains(t, full, `["name" "a" "seen-time" 1000000000000 "active-time" -1 "pel-count" 0 "pending" []]`)
	require.Contains(t, full, `["name" "b" "seen-time" 1000000000030 "active-time" 1000000000000 "pel-count" 1 "pending" [["1-0" 1000000000000 1]]]`)
}

// claimReply is a reply to XREADGROUP with CLAIM about one stream.
func claimReply(key string, entries ...string) string { return "*1\r\n" + streamReply(key, entries...) }

// streamReply is the part of a reply about one stream: its key, and entries with one field, their idle time and
// their number of deliveries.
func streamReply(key string, entries ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*2\r\n$%d\r\n%s\r\n*%d\r\n", len(key), key, len(entries))
	for _, e := range entries {
		words := strings.Fields(e)
		fmt.Fprintf(&b, "*4\r\n$%d\r\n%s\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n:%s\r\n:%s\r\n", len(words[0]), words[0], words[1],
			words[2])
	}
	return b.String()
}

// after moves the clock, and returns what a client has received since.
func after(b *servertest.Stepped, ms, client int) string {
	b.Pass(ms)
	b.Advance() // served clients read their replies
	return b.Reply(fmt.Sprint(client))
}

func TestBlockedReadersClaimWhatBecomesIdle(t *testing.T) {
	b := servertest.NewStepped(t).Journalled()
	for _, line := range []string{"XADD s 1-0 f v", "XADD s 2-0 f v", "XADD t 1-0 f v", "XGROUP CREATE s g 0",
		"XGROUP CREATE t g 0",
		"XREADGROUP GROUP g a COUNT 1 STREAMS s >", "+30", "XREADGROUP GROUP g a STREAMS s t > >"} {
		b.Step(line)
	}
	// The entry that becomes idle first ends the wait, and its stream is read.
	require.Empty(t, b.Step("1:XREADGROUP GROUP g b BLOCK 0 CLAIM 100 STREAMS s t > >"))
	require.Empty(t, after(b, 69, 1))
	require.Equal(t, claimReply("s", "1-0 100 1"), after(b, 1, 1))
	require.Equal(t, string(commandtest.Request(strings.Fields("XCLAIM s g b 0 1-0 TIME 1000000000100")...)), b.LastRecord())

	// The client that waited first is served first; the others wait for the next entry.
	b.Step("XACK t g 1-0")
	require.Empty(t, b.Step("1:XREADGROUP GROUP g b COUNT 1 BLOCK 0 CLAIM 100 STREAMS s >"))
	require.Empty(t, b.Step("2:XREADGROUP GROUP g c COUNT 1 BLOCK 0 NOACK CLAIM 100 STREAMS t s > >"))
	require.Empty(t, after(b, 29, 1))
	require.Equal(t, claimReply("s", "2-0 100 1"), after(b, 1, 1))
	require.Empty(t, after(b, 69, 2))
	require.Equal(t, claimReply("s", "1-0 100 2"), after(b, 1, 2))

	// The timeout comes first; a new entry comes first.
	require.Empty(t, b.Step("1:XREADGROUP GROUP g b BLOCK 20 CLAIM 100 STREAMS s >"))
	require.Equal(t, "*-1\r\n", after(b, 20, 1))
	require.Empty(t, b.Step("1:XREADGROUP GROUP g b BLOCK 0 CLAIM 100 STREAMS s >"))
	b.Step("XADD s 3-0 f v")
	require.Equal(t, claimReply("s", "3-0 0 0"), after(b, 0, 1))

	// Nothing is pending when the wait begins.
	b.Step("XGROUP CREATE s h 3-0")
	require.Empty(t, b.Step("1:XREADGROUP GROUP h b BLOCK 0 CLAIM 50 STREAMS s >"))
	b.Step("+10")
	b.Step("XGROUP SETID s h 2-0")
	b.Step("XREADGROUP GROUP h a STREAMS s >")
	require.Empty(t, after(b, 49, 1))
	require.Equal(t, claimReply("s", "3-0 50 1"), after(b, 1, 1))

	// Nothing changes while writes are paused.
	require.Empty(t, b.Step("1:XREADGROUP GROUP h b BLOCK 0 CLAIM 50 STREAMS s >"))
	b.Step("CLIENT PAUSE 300 WRITE")
	require.Empty(t, after(b, 200, 1))
	require.Contains(t, after(b, 200, 1), "3-0")

	// A key that is named twice.
	require.Empty(t, b.Step("1:XREADGROUP GROUP h b BLOCK 0 CLAIM 50 STREAMS s s > >"))
	b.Step("XACK s h 3-0")
	require.Empty(t, after(b, 500, 1))
	require.Greater(t, b.Client("1").Deadline(), b.Now())
	b.Step("XGROUP DESTROY s h")
	require.Equal(t, "-NOGROUP No such key 's' or consumer group 'h' in XREADGROUP with GROUP option\r\n", after(b, 0, 1))
	b.Finish()
}

func TestEveryTransportLooksAfterReadersThatClaim(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		clock := engine.NewManualClock(time.UnixMilli(1e12))
		o.Clock = clock
		s := servertest.Start(t, o, settings...)
		a, b := s.Connect(), s.Connect()
		addEntries(a, "s", 1)
		a.Line("XGROUP CREATE s g 0")
		a.Line("XREADGROUP GROUP g a STREAMS s >")
		for i := range 3 {
			a.Line("XCLAIM s g a 0 1-0 JUSTID") // the clock may have moved since b got its reply
			b.Send("XREADGROUP", "GROUP", "g", "b", "BLOCK", "100000", "CLAIM", "1000", "STREAMS", "s", ">")
			a.WaitFor("INFO clients", "blocked_clients:1\r\n")
			for !b.Ready(time.Millisecond) {
				clock.Advance(time.Second)
			}
			require.Regexp(t, fmt.Sprintf(`^\[\["s" \[\["1-0" \["f" "v"\] \d+000 %d\]\]\]\]$`, i+1), b.Next())
		}
	})
}

func TestTheProgramWaitsForWhatItClaims(t *testing.T) {
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	s := servertest.Start(t, server.Options{Clock: clock})
	a := s.Connect()
	addEntries(a, "s", 1)
	a.Line("XGROUP CREATE s g 0")
	a.Line("XREADGROUP GROUP g a STREAMS s >")
	d, err := s.Direct(0)
	require.NoError(t, err)
	defer d.Release()
	done := make(chan error)
	go func() {
		var args [][]byte
		for _, word := range strings.Fields("XREADGROUP GROUP g b BLOCK 0 CLAIM 1000 STREAMS s >") {
			args = append(args, []byte(word))
		}
		done <- d.Run(t.Context(), args)
	}()
	a.WaitFor("INFO clients", "blocked_clients:1\r\n")
	for ended := false; !ended; {
		clock.Advance(time.Second)
		select {
		case err := <-done:
			require.NoError(t, err)
			ended = true
		case <-time.After(time.Millisecond):
		}
	}
	reply, err := d.Flush()
	require.NoError(t, err)
	require.Contains(t, string(reply), "*4\r\n$3\r\n1-0\r\n")
}

// claimModel is a model of the pending entries in the group g of some streams: when and how often each was
// delivered.
type claimModel map[string]map[int]*claimed

type claimed struct{ at, times int64 }

// claim returns the reply for a reader that claims at most one entry of a stream, nil if there is none: the earliest
// delivered entry that was delivered at latest or before.
func (m claimModel) claim(key string, latest, now int64) []string {
	first := 0
	for id, e := range m[key] {
		if f := m[key][first]; e.at <= latest && (f == nil || e.at < f.at || e.at == f.at && id < first) {
			first = id
		}
	}
	e := m[key][first]
	if e == nil {
		return nil
	}
	reply := []string{fmt.Sprintf("%d-0 %d %d", first, now-e.at, e.times)}
	e.at = now
	e.times++
	return reply
}

// A client that waits with CLAIM gets the entry that becomes idle first, at that time, whatever happens to other
// entries meanwhile.
func TestBlockedReadersClaimInTime(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		b := servertest.NewStepped(t).Journalled()
		keys, model, added := []string{"s", "t"}, claimModel{}, 0
		for _, key := range keys {
			b.Step("XGROUP CREATE " + key + " g 0 MKSTREAM")
			model[key] = map[int]*claimed{}
		}
		minIdle := rapid.Int64Range(1, 60).Draw(t, "min idle")
		anyKey := func() string { return rapid.SampledFrom(keys).Draw(t, "key") }
		add := func(key string) {
			added++
			b.Step(fmt.Sprintf("XADD %s %d-0 f v", key, added))
			model[key][added] = &claimed{b.Now(), 1}
		}
		anyPending := func() (key string, id int) {
			key = anyKey()
			ids := slices.Sorted(maps.Keys(model[key]))
			if len(ids) == 0 {
				return key, 0
			}
			return key, rapid.SampledFrom(ids).Draw(t, "id")
		}
		due := func() int64 {
			due := int64(math.MaxInt64)
			for _, entries := range model {
				for _, e := range entries {
					due = min(due, e.at+minIdle)
				}
			}
			return due
		}
		claimAll := func(now int64) string { // the reply to a reader of all streams, empty if it has to wait
			var all []string
			for _, key := range keys {
				if one := model.claim(key, now-minIdle, now); one != nil {
					all = append(all, streamReply(key, one...))
				}
			}
			if len(all) == 0 {
				return ""
			}
			return fmt.Sprintf("*%d\r\n%s", len(all), strings.Join(all, ""))
		}
		for range rapid.IntRange(1, 8).Draw(t, "waits") {
			for range rapid.IntRange(0, 3).Draw(t, "entries") {
				key := anyKey()
				add(key)
				b.Step("XREADGROUP GROUP g a STREAMS " + key + " >")
				b.Step(fmt.Sprintf("+%d", rapid.IntRange(0, 9).Draw(t, "ms")))
			}
			want := claimAll(b.Now())
			reply := b.Step(fmt.Sprintf("1:XREADGROUP GROUP g b COUNT 1 BLOCK 0 CLAIM %d STREAMS s t > >", minIdle))
			if want != "" {
				require.Equal(t, want, reply)
				continue
			}
			require.Empty(t, reply)
			for b.Waits("1") {
				switch rapid.IntRange(0, 5).Draw(t, "what") {
				case 0:
					key, id := anyPending()
					b.Step(fmt.Sprintf("XACK %s g %d", key, id))
					delete(model[key], id)
				case 1:
					key, id := anyPending()
					b.Step(fmt.Sprintf("XCLAIM %s g a 0 %d", key, id))
					if e := model[key][id]; e != nil {
						e.at = b.Now()
						e.times++
					}
				case 2:
					key := anyKey()
					add(key)
					require.Equal(t, claimReply(key, fmt.Sprintf("%d-0 0 0", added)), after(b, 0, 1))
				default:
					at := due()
					reply := after(b, int(min(at-b.Now(), rapid.Int64Range(1, 20).Draw(t, "ms"))), 1)
					if b.Now() < at {
						require.Empty(t, reply)
						continue
					}
					require.Equal(t, claimAll(at), reply)
				}
			}
		}
		b.Finish()
	})
}

func TestEntriesAreRemovedWithRegardToGroups(t *testing.T) {
	c := servertest.Start(t, server.Options{Clock: engine.NewManualClock(time.UnixMilli(1e12))}).Connect()
	for _, id := range []string{"1-0", "2-0", "3-0", "4-0", "5-0"} {
		c.Line("XADD s " + id + " f v")
	}
	c.Replies(
		"XGROUP CREATE s g 0", "+OK",
		"XGROUP CREATE s h 0", "+OK",
		"XDELEX s ACKED IDS 2 1-0 9-0", "[2 -1]",
	)
	c.Line("XREADGROUP GROUP g me COUNT 4 STREAMS s >")
	c.Line("XREADGROUP GROUP h me COUNT 4 STREAMS s >")
	c.Replies(
		"XDELEX s ACKED IDS 1 1-0", "[2]",
		"XACKDEL s g ACKED IDS 1 1-0", "[2]",
		"XACKDEL s h ACKED IDS 1 1-0", "[1]",
		"XACKDEL s h ACKED IDS 1 1-0", "[-1]",
		"XLEN s", "4",
		"XACKDEL s g IDS 1 2-0", "[1]",
		"XPENDING s h - + 10 me", c.Line("XPENDING s h 2-0 4-0 10 me"),
		"XDELEX s DELREF IDS 2 2-0 3-0", "[-1 1]",
		"XLEN s", "2",
		"XDELEX s IDS 1 4-0", "[1]",
		"XDELEX none IDS 2 1-0 2-0", "[-1 -1]",
		"XACKDEL s none IDS 1 5-0", "[-1]",
		"XACKDEL none g IDS 1 5-0", "[-1]",
		"XDELEX s IDS 0 5-0", "-ERR Number of IDs must be a positive integer",
		"XDELEX s IDS 2 5-0", "-ERR The `numids` parameter must match the number of arguments",
		"XDELEX s IDS 1 5-0 6-0", "-ERR syntax error",
		"XDELEX s KEEPREF ACKED IDS 1 5-0", "-ERR syntax error",
		"XDELEX s IDS 1 5-0 DELREF", "[1]",
	)
	require.Contains(t, c.Line("XPENDING s h"), "[1 \"4-0\" \"4-0\"")
}

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "stream") }
