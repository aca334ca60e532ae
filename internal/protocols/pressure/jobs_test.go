package pressure_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/servertest"
)

// peek returns what PRESSURE.PEEK shows of some fields of all messages in a state.
func (p *pressureServer) peek(state string, fields ...string) string {
	words := strings.Fields(p.step("peek PRESSURE.PEEK q COUNT 100 STATE " + state))
	var shown []string
	for i, w := range words {
		for _, f := range fields {
			if w == f {
				shown = append(shown, strings.TrimPrefix(words[i+1], ":"))
			}
		}
	}
	return strings.Join(shown, " ")
}

func TestPressureDelayedMessagesComeDueOnTheirOwn(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q BOUND 4", "+OK"},
			{"a PRESSURE.PUT q late later DELAY 50", ":2"},
			{"a PRESSURE.PUT q early AT 1000000000010", ":1"},
			{"a PRESSURE.PUT q now AT 5", ":1"},
			{"a LRANGE $ 0 -1", "*1 now"},
			{"a PRESSURE.LEN q", ":1"},
			{"b PRESSURE.PUT q full", ""}, // the delayed messages have their places
			{"hangup b", ""},
			{"a PRESSURE.GET q", "now"},
			{"a PRESSURE.GET q TIMEOUT 1", ""}, {"+1", ""}, {"a", "$-1"},
			{"c BRPOP $ 0", ""},
			{"+8", ""}, {"c", ""}, {"+1", ""}, {"c", "*2 $ early"},
			{"+39", ""}, {"a EXISTS $", ":0"}, {"+1", ""}, {"a LRANGE $ 0 -1", "*2 later late"},
			{"a PRESSURE.GET q COUNT 9", "*2 late later"},
			{"a EXISTS $:+delayed $:+held $:+notes", ":0"},
		}...)
		require.Equal(t, ":4", p.info("produced_messages"))
		p.play([][2]string{
			{"a PRESSURE.PUT q x DELAY 5 AT 6", "-ERR syntax error"},
			{"a PRESSURE.PUT q x DELAY -5", "-ERR the time is no number of milliseconds, or out of range"},
			{"a PRESSURE.PUT q x AT 9000000000000000", "-ERR the time is no number of milliseconds, or out of range"},
			{"a PRESSURE.LEN q", ":0"},
		}...)
	})
}

// Clients that give the three old options last put any values, as before.
func TestPressureNewOptionsAreNoValuesOfOldClients(t *testing.T) {
	p := newPressureServer(t)
	p.play([][2]string{
		{"a PRESSURE.CREATE q", "+OK"},
		{"a PRESSURE.PUT q delay 5 attempts 9 TIMEOUT 0 CLIENT me PREFIX __pressure__", ":4"},
		{"a PRESSURE.GET q COUNT 9", "*4 delay 5 attempts 9"},
		{"a PRESSURE.PUT q delay 5 TIMEOUT 0 CLIENT me PREFIX __pressure__ DELAY 7", ":2"},
		{"a PRESSURE.LEN q", ":0"},
		{"+7", ""}, {"a PRESSURE.LEN q", ":2"},
	}...)
	p.Finish()
}

func TestPressureClosedQueueWaitsForDelayedMessages(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q x DELAY 10", ":1"}, {"a PRESSURE.CLOSE q", "+OK"},
			{"b PRESSURE.GET q", ""}, {"+10", ""}, {"b", "x"}, {"b PRESSURE.GET q", queueClosed},
		}...)
		p.play([][2]string{{"a PRESSURE.DELETE q", "+OK"}, {"a DBSIZE", ":0"},
			{"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q x DELAY 10", ":1"}, {"a PRESSURE.CLOSE q", "+OK"},
			{"b PRESSURE.GET q", ""}, {"a PRESSURE.PURGE q", ":1"}, {"b", queueClosed}, {"a PRESSURE.DELETE q", "+OK"},
			{"+10", ""}, {"a DBSIZE", ":0"}}...)
	})
}

func TestPressureFailedMessagesAreTriedAgain(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{{"a PRESSURE.CREATE q BOUND 2", "+OK"}, {"a PRESSURE.PUT q x ATTEMPTS 3 BACKOFF 10", ":1"},
			{"a PRESSURE.PUT q y", ":1"}}...)
		id := p.reserve("a", 5, "x")
		p.play([][2]string{
			{"a PRESSURE.FAIL q 1-1 why", "$-1"},
			{"a PRESSURE.FAIL q " + id[0] + " why", "+DELAYED"},
			{"a PRESSURE.FAIL q " + id[0] + " why", "$-1"},
			{"a PRESSURE.ACK q " + id[0], ":0"},
			{"+9", ""}, {"a PRESSURE.LEN q", ":1"}, {"+1", ""}, {"a LRANGE $ 0 -1", "*2 x y"},
			{"a PRESSURE.GET q", "y"},
		}...)
		require.Equal(t, "x 1 3", p.peek("READY", "message", "attempts", "limit"))
		p.reserve("a", 5, "x")
		require.Equal(t, "x 1", p.peek("RESERVED", "message", "attempts"))
		p.play([][2]string{{"+5", ""}, {"a EXISTS $:reserved", ":0"}}...)
		require.Equal(t, "1000000000035 2", p.peek("DELAYED", "at", "attempts")) // 20 ms after the second attempt
		p.play([][2]string{{"+20", ""}, {"a PRESSURE.LEN q", ":1"}}...)
		id = p.reserve("a", 5, "x")
		p.play([][2]string{{"a PRESSURE.FAIL q " + id[0] + " because", "+DEAD"}, {"a PRESSURE.LEN q", ":0"}}...)
		require.Equal(t, id[0]+" x 1000000000035 3 because", p.peek("DEAD", "id", "message", "at", "attempts", "reason"))
		p.play([][2]string{
			{"a PRESSURE.PUT q 1 2", ":2"},
			{"a PRESSURE.RETRY q " + id[0], ":0"}, // there is no room
			{"a PRESSURE.GET q", "1"},
			{"a PRESSURE.RETRY q 1-1 " + id[0], ":1"},
			{"a LRANGE $ 0 -1", "*2 x 2"}, {"a EXISTS $:+dead $:+held", ":0"},
			{"a PRESSURE.GET q", "2"},
		}...)
		require.Equal(t, "x 0 3", p.peek("READY", "message", "attempts", "limit"))
		id = p.reserve("a", 50, "x")
		p.play([][2]string{{"a PRESSURE.ACK q " + id[0], ":1"}, {"a EXISTS $ $:+dead $:+held $:+notes $:reserved", ":0"}}...)
	})
}

// The list is in the order of the priorities, so that clients of the protocol's steps see it, too.
func TestPressurePriorities(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{{"a PRESSURE.CREATE q", "+OK"},
			{"a PRESSURE.PUT q x PRIORITY 10", "-ERR a priority is a number from 0 to 9"},
			{"a PRESSURE.PUT q a b PRIORITY 0", ":2"}, {"a EXISTS $:+settings $:+notes", ":0"},
			{"a PRESSURE.PUT q c d PRIORITY 5", ":2"}, {"a LRANGE $ 0 -1", "*4 b a d c"},
			{"a PRESSURE.PUT q e", ":1"}, {"a PRESSURE.PUT q f PRIORITY 9", ":1"}, {"a PRESSURE.PUT q g PRIORITY 1", ":1"},
			{"a LPUSH $ old", ":8"}, {"a PRESSURE.PUT q h PRIORITY 5", ":1"}, {"a PRESSURE.PUT q i PRIORITY 3 DELAY 10", ":1"},
			{"a LRANGE $ 0 -1", "*9 old e b a g h d c f"}}...)
		require.Equal(t, "f 9 c 5 d 5 h 5 g 1 a 0 b 0 e 0 old 0", p.peek("READY", "message", "priority"))
		require.Equal(t, "i 3", p.peek("DELAYED", "message", "priority"))

		// What comes back has its priority, and is the first one of it.
		f := p.reserve("b", 5, "f")
		c := p.reserve("b", 50, "c")
		p.play([][2]string{{"a PRESSURE.RETURN q " + f[0], ":1"}, {"a PRESSURE.FAIL q " + c[0] + " why", "+READY"},
			{"a LRANGE $ 0 -1", "*9 old e b a g h d c f"}, {"+10", ""}, {"a PRESSURE.LEN q", ":10"},
			{"a LRANGE $ 0 -1", "*10 old e b a g i h d c f"},
			{"a RPOP $ 7", "*7 f c d h i g a"}, // with an ordinary command
			{"a PRESSURE.PUT q j PRIORITY 2", ":1"}, {"a PRESSURE.PUT q k l", ":2"}, {"a PRESSURE.GET q COUNT 9", "*6 j b e old k l"},
			{"a EXISTS $ $:+held", ":0"}}...)
		id := func() string { return p.reserve("b", 5, "m")[0] }
		p.play([][2]string{{"a PRESSURE.PUT q m PRIORITY 4 ATTEMPTS 1", ":1"}, {"a PRESSURE.PUT q n", ":1"}}...)
		p.play([][2]string{{"a PRESSURE.FAIL q " + id() + " why", "+DEAD"}, {"a PRESSURE.RETRY q ALL", ":1"},
			{"a PRESSURE.GET q", "m"}, {"a PRESSURE.DELETE q", "+OK"}, {"a DBSIZE", ":0"}}...)
	})
}

func TestPressurePolicyOfAQueue(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q ATTEMPTS 2", "+OK"}, {"a HGETALL $:+settings", "*2 attempts 2"},
			{"a LPUSH $ old older", ":2"}, // a client of the protocol's steps
		}...)
		p.reserve("a", 5, "old")
		p.play([][2]string{{"+5", ""}, {"a LRANGE $ 0 -1", "*2 older old"}}...)
		p.reserve("a", 5, "old")
		p.play([][2]string{{"+5", ""}, {"a LRANGE $ 0 -1", "*1 older"}}...)
		require.Equal(t, "old 2 not", p.peek("DEAD", "message", "attempts", "reason"))
		p.play([][2]string{{"a HSET $:+settings attempts 1", ":0"}}...)
		p.reserve("a", 5, "older")
		p.play([][2]string{{"+5", ""}, {"a EXISTS $", ":0"}, {"a PRESSURE.RETRY q ALL", ":2"},
			{"a LRANGE $ 0 -1", "*2 older old"}, {"a PRESSURE.RETRY q ALL", ":0"}}...)
		// A message that is given back has made no attempt.
		id := p.reserve("a", 5, "old")
		p.play([][2]string{{"a PRESSURE.RETURN q " + id[0], ":1"}, {"a LRANGE $ 0 -1", "*2 older old"}}...)
	})
}

func TestPressureReservationsAreExtended(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{{"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q x", ":1"}}...)
		id := p.reserve("a", 10, "x")
		p.play([][2]string{
			{"+9", ""}, {"a PRESSURE.EXTEND q 10 " + id[0] + " 1-1", ":1"}, {"+9", ""}, {"a PRESSURE.LEN q", ":0"},
			{"a PRESSURE.EXTEND q 0 " + id[0], "-ERR the time is no number of milliseconds, or out of range"},
			{"+1", ""}, {"a PRESSURE.LEN q", ":1"}, {"a PRESSURE.EXTEND q 10 " + id[0], ":0"},
			{"a PRESSURE.GET q", "x"},
		}...)
	})
}

const duplicate = "-DUPLICATE a message with this key was put a short time ago"

func TestPressureDuplicatesAreRefused(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q BOUND 2", "+OK"},
			{"a PRESSURE.PUT q one DEDUP k WITHIN 10", ":1"},
			{"a PRESSURE.PUT q two DEDUP k WITHIN 10", duplicate},
			{"a PRESSURE.PUT q two DEDUP l WITHIN 5", ":1"},
			{"a PRESSURE.GET q COUNT 9", "*2 one two"},
			{"+9", ""}, {"a PRESSURE.PUT q three DEDUP k WITHIN 10", duplicate},
			{"+1", ""}, {"a PRESSURE.PUT q three DEDUP k WITHIN 10", ":1"},
			{"a ZCARD $:+dedup", ":2"}, // they are removed some seconds later
			{"a PRESSURE.PUT q four DEDUP k", "-ERR DEDUP and WITHIN need each other, and exactly one message"},
			{"a PRESSURE.PUT q four five DEDUP k WITHIN 1", "-ERR DEDUP and WITHIN need each other, and exactly one message"},
			{"a PRESSURE.PUT q four DEDUP m WITHIN 0", "-ERR the time is no number of milliseconds, or out of range"},
			// A message that waits for room is checked when there is some.
			{"a PRESSURE.PUT q four", ":1"},
			{"b PRESSURE.PUT q five DEDUP n WITHIN 10", ""}, {"c PRESSURE.PUT q six DEDUP n WITHIN 10", ""},
			{"a PRESSURE.GET q COUNT 2", "*2 three four"}, {"b", ":1"}, {"c", duplicate},
			{"a PRESSURE.GET q", "five"},
			{"+4900", ""}, {"a ZCARD $:+dedup", ":3"}, {"+100", ""}, {"a EXISTS $:+dedup", ":0"},
		}...)
	})
}

func TestPressurePurge(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q BOUND 4 ATTEMPTS 1", "+OK"},
			{"a PRESSURE.PUT q dead out x y", ":4"},
		}...)
		p.step("a PRESSURE.FAIL q " + p.reserve("a", 5, "dead")[0] + " why")
		p.reserve("a", 5, "out")
		p.play([][2]string{
			{"a PRESSURE.PUT q later DELAY 10", ":1"},
			{"b PRESSURE.PUT q z", ""},
			{"a PRESSURE.PURGE q STATE RESERVED", "-ERR reserved messages cannot be purged"},
			{"a PRESSURE.PURGE q STATE odd", "-ERR syntax error"},
			{"a PRESSURE.PURGE q STATE DEAD", ":1"}, {"a EXISTS $:+dead", ":0"}, {"b", ""},
			{"a PRESSURE.PURGE q STATE READY", ":2"}, {"b", ":1"},
			{"a PRESSURE.PURGE q STATE DELAYED", ":1"},
			{"a PRESSURE.PURGE q", ":1"}, {"a PRESSURE.PURGE q", ":0"},
		}...)
		require.Equal(t, ":1", p.info("reserved"))
	})
}

func TestPressureStatsByMinute(t *testing.T) {
	p := newPressureServer(t)
	p.play([][2]string{{"a PRESSURE.CREATE q ATTEMPTS 1", "+OK"}, {"a PRESSURE.PUT q x y z", ":3"}}...)
	ids := p.reserve("a", 5, "x", "y")
	p.play([][2]string{
		{"a PRESSURE.ACK q " + ids[0], ":1"}, {"a PRESSURE.FAIL q " + ids[1] + " why", "+DEAD"},
		{"+120000", ""}, {"a PRESSURE.GET q", "z"},
		{"a PRESSURE.STATS q MINUTES 61", "-ERR the number of minutes must be from 1 to 60"},
		{"a PRESSURE.STATS q MINUTES 3", "*3 *12 at :999999960000 put :3 taken :2 acked :1 failed :1 dead :1 " +
			"*12 at :1000000020000 put :0 taken :0 acked :0 failed :0 dead :0 " +
			"*12 at :1000000080000 put :0 taken :1 acked :0 failed :0 dead :0"},
	}...)
	require.True(t, strings.HasPrefix(p.step("a PRESSURE.STATS q"), "*10 "))
	p.Finish()
}

func TestPressureSchedules(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		// The clock stands at 2001-09-09 01:46:40 UTC.
		const bad = "-ERR invalid cron expression, or one that never comes due"
		p.play([][2]string{{"a PRESSURE.CREATE q BOUND 2", "+OK"}}...)
		schedule := func(name, cron, message string) string {
			p.client("a")
			return servertest.OnOneLine(p.Send("a", "PRESSURE.SCHEDULE", "q", name, cron, message))
		}
		require.Equal(t, ":1000000020000", schedule("each", "* * * * *", "tick"))
		require.Equal(t, ":1000000800000", schedule("hour", "CRON_TZ=Europe/Berlin 0 4 * * *", "four"))
		for _, cron := range []string{"", "* * * *", "0 0 30 2 *", "TZ=UTC", "CRON_TZ=", "@never", "61 * * * *", strings.Repeat(" ", 300)} {
			require.Equal(t, bad, schedule("bad", cron, "x"), cron)
		}
		p.play([][2]string{
			{"a PRESSURE.SCHEDULES q", "*2 *8 name each cron * * * * * message tick next :1000000020000 " +
				"*8 name hour cron CRON_TZ=Europe/Berlin 0 4 * * * message four next :1000000800000"},
			{"w BRPOP $ 0", ""},
			{"+19999", ""}, {"w", ""}, {"+1", ""}, {"w", "*2 $ tick"},
			{"+120000", ""}, {"a LRANGE $ 0 -1", "*2 tick tick"},
			{"+60000", ""}, {"a LLEN $", ":2"}, // it is full: the run waits, and becomes one with the next
			{"+60000", ""}, {"a PRESSURE.GET q", "tick"}, {"a PRESSURE.LEN q", ":1"}, {"+1000", ""},
			{"a PRESSURE.GET q COUNT 5", "*2 tick tick"},
			{"a PRESSURE.UNSCHEDULE q each none", ":1"},
			{"+3600000", ""}, {"a LRANGE $ 0 -1", "*1 four"},
		}...)
		require.Equal(t, ":1", p.info("schedules"))
		p.play([][2]string{{"a PRESSURE.CLOSE q", "+OK"}, {"+86400000", ""}, {"a LRANGE $ 0 -1", "*1 four"},
			{"a PRESSURE.SCHEDULES q", "*0"}}...)
		require.Equal(t, queueClosed, schedule("each", "* * * * *", "tick"))
	})
}

// The keys of a queue may be moved and renamed; what is due is still found.
func TestPressureTimersFollowTheirKeys(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q first DELAY 10", ":1"},
			{"a SELECT 1", "+OK"}, {"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q second DELAY 20", ":1"},
			{"a SWAPDB 0 1", "+OK"},
			{"+10", ""}, {"a LRANGE $ 0 -1", "*1 first"},
			{"+10", ""}, {"a SELECT 0", "+OK"}, {"a LRANGE $ 0 -1", "*1 second"},
			{"a PRESSURE.CREATE r", "+OK"}, {"a PRESSURE.PUT q third DELAY 10", ":1"},
			{"a RENAME $:+delayed __pressure__:r:+delayed", "+OK"}, {"a RENAME $:+held __pressure__:r:+held", "+OK"},
			{"+10", ""}, {"a LRANGE __pressure__:r 0 -1", "*1 third"},
			{"a PRESSURE.PUT q fourth DELAY 10", ":1"}, {"a FLUSHALL", "+OK"}, {"+10", ""}, {"a DBSIZE", ":0"},
			// A client that deletes the queue with its own steps knows nothing of the added keys.
			{"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q fifth DELAY 10", ":1"},
			{"a DEL $:bound", ":1"}, {"+10", ""}, {"a EXISTS $ $:+delayed $:+held", ":2"},
			{"+60000", ""}, {"a EXISTS $ $:+delayed $:+held $:+settings", ":0"},
		}...)
	})
}

// Keys of other programs may look like those of a queue. Nothing that is not known to be a queue is changed.
func TestPressureKeysOfOthersStay(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		all := "bull:q:delayed bull:q:+delayed bull:q:+dedup bull:q:+dead"
		for _, key := range strings.Fields(all) {
			p.play([][2]string{{"a ZADD " + key + " 5 x", ":1"}, {"a RENAME " + key + " y", "+OK"}, {"a RENAME y " + key, "+OK"}}...)
		}
		p.play([][2]string{
			{"a HSET bull:q:reserved f v", ":1"}, {"a RENAME bull:q:reserved y", "+OK"}, {"a COPY y bull:q:reserved", ":1"},
			{"+1000000", ""}, {"a EXISTS bull:q:reserved " + all, ":5"},
			// Even beside a key that ends in :bound.
			{"a SET bull:q:bound 5", "+OK"}, {"a DEL bull:q:bound", ":1"}, {"+1000000", ""}, {"a EXISTS bull:q:reserved", ":1"},
		}...)
	})
}

// A queue may be renamed key by key, however long that takes, if :bound goes first and arrives last.
func TestPressureQueuesMoveKeyByKey(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{{"a PRESSURE.CREATE r ATTEMPTS 1", "+OK"},
			{"a PRESSURE.PUT r later DELAY 10", ":1"}, {"a PRESSURE.PUT r out", ":1"}}...)
		p.step("a PRESSURE.GET r RESERVE 10")
		p.play([][2]string{{"a RENAME __pressure__:r:bound b", "+OK"}, {"+100", ""}}...)
		for _, key := range []string{":+held", ":+delayed", ":reserved", ":+settings"} {
			p.play([][2]string{{"a RENAME __pressure__:r" + key + " $" + key, "+OK"}, {"+100000", ""}}...)
		}
		p.play([][2]string{{"a RENAME b $:bound", "+OK"}, {"+0", ""}, {"a LRANGE $ 0 -1", "*1 later"}}...)
		require.Equal(t, "out", p.peek("DEAD", "message"))
	})
}

// A client of the protocol's steps that deletes a queue and creates one of this name gets a clean one.
func TestPressureOldClientsCreateCleanQueues(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		again := [][2]string{{"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q old DELAY 10", ":1"}, {"a PRESSURE.PUT q out", ":1"}}
		p.play(again...)
		p.reserve("a", 5, "out")
		p.play([][2]string{
			{"a DEL $ $:bound", ":1"}, {"a SET $:bound 0", "+OK"}, {"a PRESSURE.PUT q new DELAY 20", ":1"},
			{"+100000", ""}, {"a LRANGE $ 0 -1", "*1 new"}, {"a EXISTS $:reserved", ":0"},
			{"a PRESSURE.GET q", "new"},
			// The timer comes first.
			{"a PRESSURE.PUT q old DELAY 10", ":1"},
			{"a DEL $ $:bound", ":1"}, {"a SET $:bound 0", "+OK"}, {"+10", ""}, {"a EXISTS $ $:+delayed $:+held", ":0"},
			// In one transaction with new messages.
			{"a PRESSURE.PUT q old DELAY 10", ":1"}, {"a MULTI", "+OK"}, {"a DEL $:bound", "+QUEUED"}, {"a SET $:bound 0", "+QUEUED"},
			{"a PRESSURE.PUT q new DELAY 10", "+QUEUED"}, {"a EXEC", "*3 :1 +OK :1"}, {"+100000", ""}, {"a LRANGE $ 0 -1", "*1 new"},
			// A :bound that comes back was only moved.
			{"a PRESSURE.PUT q kept DELAY 10", ":1"}, {"a RENAME $:bound b", "+OK"}, {"+100", ""}, {"a RENAME b $:bound", "+OK"},
			{"+0", ""}, {"a LRANGE $ 0 -1", "*2 kept new"},
		}...)
	})
}

// Scores and numbers that other commands have set do not keep the server busy.
func TestPressureStrangeTimes(t *testing.T) {
	p := newPressureServer(t)
	p.play([][2]string{
		{"a PRESSURE.CREATE q BACKOFF 10", "+OK"},
		{"a ZADD $:+dedup inf far -inf past 1e300 farther", ":3"}, {"a ZADD $:+delayed inf far -inf past", ":2"},
		{"a HSET $:+held far x past y", ":2"},
		{"a PRESSURE.PUT q y DEDUP far WITHIN 5", duplicate},
		{"a ZRANGE $:+dedup 0 -1", "*2 farther far"}, {"a ZRANGE $:+delayed 0 -1", "*1 far"},
		{"+100000", ""}, {"a ZCARD $:+dedup", ":2"},
		{"a PRESSURE.PURGE q", ":2"},
		{"a HSET $:+settings backoff 9223372036854775807 attempts 9223372036854775807", ":1"},
		{"a PRESSURE.PUT q x", ":1"},
	}...)
	id := p.reserve("a", 5, "x")[0]
	p.Send("a", "HSET", "__pressure__:q:+held", id, "9223372036854775806 9223372036854775807 0 0 ")
	p.play([][2]string{{"a PRESSURE.FAIL q " + id + " why", "+DEAD"}}...)
	p.Finish()
}

func TestPressureATimerOutlivesAWrongType(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q x DELAY 10", ":1"}, {"a SET $:+dead wrong", "+OK"},
			{"+5000", ""}, {"a LLEN $", ":0"}, {"a DEL $:+dead", ":1"}, {"+1000", ""}, {"a LRANGE $ 0 -1", "*1 x"},
			// Nobody waits for delayed messages that were deleted.
			{"a PRESSURE.GET q", "x"}, {"a PRESSURE.PUT q x DELAY 10", ":1"}, {"a PRESSURE.CLOSE q", "+OK"},
			{"b PRESSURE.GET q", ""}, {"a DEL $:+delayed", ":1"}, {"b", ""}, {"+10", ""}, {"b", queueClosed},
		}...)
	})
}

func TestPressureManyEqualMessagesHaveOneNote(t *testing.T) {
	p := newPressureServer(t)
	p.play([2]string{"a PRESSURE.CREATE q", "+OK"})
	p.play([2]string{"a PRESSURE.PUT q" + strings.Repeat(" x", 500) + " ATTEMPTS 2", ":500"})
	p.play([2]string{"a PRESSURE.PUT q x x ATTEMPTS 3", ":2"})
	p.step("a RPOP $ 499")
	require.Equal(t, "2 2 2", p.peek("READY", "limit")) // any three: equal messages are interchangeable
	p.play([2]string{"a PRESSURE.PUT q x ATTEMPTS 5", ":1"})
	require.Equal(t, "2 3 3 5", p.peek("READY", "limit")) // notes without a message are gone
	p.play([2]string{"a HVALS $:+notes", "*1 0 2 0 1 ;0 3 0 2 ;0 5 0 1 ;"})
	for limit := range 200 {
		p.step(fmt.Sprintf("a PRESSURE.PUT q x ATTEMPTS %d", 10+limit))
	}
	require.Less(t, len(p.step("a HVALS $:+notes")), 2000)
	p.Finish()
}

func TestPressureRetryAllStopsAfterABatch(t *testing.T) {
	p := newPressureServer(t)
	p.play([2]string{"a PRESSURE.CREATE q ATTEMPTS 1", "+OK"})
	p.play([2]string{"a PRESSURE.PUT q" + strings.Repeat(" x", 1500), ":1500"})
	p.step("a PRESSURE.GET q COUNT 1500 RESERVE 5")
	p.play([][2]string{{"+5", ""}, {"a PRESSURE.RETRY q ALL", ":1000"}, {"a PRESSURE.RETRY q ALL", ":500"}, {"a LLEN $", ":1500"}}...)
	p.Finish()
}

// Values that other commands write into the keys do no harm.
func TestPressureStrangeValuesOfJobs(t *testing.T) {
	p := newPressureServer(t)
	p.play([][2]string{
		{"a PRESSURE.CREATE q", "+OK"},
		{"a HSET $:+held odd message worse 1-2-3-4-5", ":2"}, {"a ZADD $:+delayed 5 odd 6 none 7 worse -inf less", ":4"},
		{"a HSET $:+notes odd odd", ":1"}, {"a HSET $:+schedules odd odd worse 5", ":2"},
		{"a HSET $:+settings attempts odd backoff -5", ":2"}, {"a ZADD $:+dead 5 nobody", ":1"},
		{"a PRESSURE.GET q COUNT 5", "*2 message 1-2-3-4-5"},
		{"a EXISTS $:+delayed $:+held $:+notes $:+schedules", ":1"}, // notes are dropped by the next command
		{"a PRESSURE.RETRY q ALL", ":0"}, {"a EXISTS $:+dead $:+notes", ":0"},
		{"a SET $:+dedup x", "+OK"}, {"a PRESSURE.PUT q x", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
	}...)
	p.Finish()
}

func TestPressureJobsOutliveARestart(t *testing.T) {
	for _, shards := range []string{"1", "16"} {
		t.Run(shards, func(t *testing.T) {
			fs := crashfs.Mem()
			d := servertest.OpenDurable(t, fs, "shards", shards)
			d.Expect("+OK\r\n", "PRESSURE.CREATE q ATTEMPTS 1")
			d.Expect(":1\r\n", "PRESSURE.PUT q dead")
			d.Line("PRESSURE.GET q RESERVE 1")
			d.Expect(":1\r\n", "PRESSURE.PUT q soon DELAY 1")
			d.Expect(":1\r\n", "PRESSURE.PUT q late DELAY 100000000")
			d.Line("PRESSURE.SCHEDULE q often @daily tick")
			d.Drop()
			d = servertest.OpenDurable(t, fs, "shards", shards)
			d.Await("*1\r\n$4\r\nsoon\r\n", "LRANGE __pressure__:q 0 -1")
			d.Await(":1\r\n", "ZCARD __pressure__:q:+dead")
			d.Expect(":1\r\n", "ZCARD __pressure__:q:+delayed")
			d.Expect(":1\r\n", "HLEN __pressure__:q:+schedules")
			d.Expect(":1\r\n", "PRESSURE.RETRY q ALL")
			d.Expect("*2\r\n$4\r\nsoon\r\n$4\r\ndead\r\n", "PRESSURE.GET q COUNT 3")
			d.End()
		})
	}
}

func TestPressureManyMessagesComeDueAtOnce(t *testing.T) {
	p := newPressureServer(t)
	p.play([2]string{"a PRESSURE.CREATE q", "+OK"})
	const n = 2500
	for i := range n {
		p.step(fmt.Sprintf("a PRESSURE.PUT q %d DELAY 10", i))
	}
	p.step("+10")
	got := strings.Fields(p.step(fmt.Sprintf("a PRESSURE.GET q COUNT %d", n)))[1:]
	require.Len(t, got, n)
	for i := range n {
		require.Equal(t, strconv.Itoa(i), got[i])
	}
	p.Finish()
}

func TestPressureSchedulesWaitForTheirZone(t *testing.T) {
	p := newPressureServer(t)
	p.play([][2]string{
		{"a PRESSURE.CREATE q", "+OK"},
	}...)
	zoned := "CRON_TZ=Nowhere/Atall * * * * *"
	require.Equal(t, ":1", p.Send("a", "HSET", "__pressure__:q:+schedules", "s", fmt.Sprintf("5 %d %stick", len(zoned), zoned))[:2])
	p.play([][2]string{{"a PRESSURE.PUT q x DELAY 1", ":1"}, {"+200000", ""}, {"a HLEN $:+schedules", ":1"}, {"a LLEN $", ":1"}}...)
	p.Finish()
}
