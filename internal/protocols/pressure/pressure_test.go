package pressure_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/pressure/keys"
	"github.com/atomredis/atomredis/internal/testing/servertest"
)

// pressureServer is a server with clients that are fed directly, and a clock that stands still.
type pressureServer struct {
	*servertest.Stepped
	t require.TestingT
}

func newPressureServer(t require.TestingT, settings ...string) *pressureServer {
	return &pressureServer{servertest.NewStepped(t, settings...), t}
}

// client has a client of that name connect, if there is none.
func (p *pressureServer) client(name string) { p.Open(name, "addr-"+name) }

// step does what a line says, and returns the reply on one line, or "" if there is none yet:
//
//	a PING      client a sends a command; $ stands for the key of the messages of queue q, here and in replies
//	a           what has come for client a since
//	hangup a    client a hangs up
//	+100        so many ms pass
func (p *pressureServer) step(line string) string {
	name, command, sends := strings.Cut(line, " ")
	switch {
	case name == "hangup":
		p.Hangup(command)
		return ""
	case strings.HasPrefix(name, "+"):
		p.Step(name)
		return ""
	}
	p.client(name)
	var reply string
	if sends {
		reply = p.Send(name, strings.Fields(strings.ReplaceAll(command, "$", "__pressure__:q"))...)
	} else {
		p.Pass(0)
		reply = p.Reply(name)
	}
	return strings.ReplaceAll(servertest.OnOneLine(reply), "__pressure__:q", "$")
}

// play does steps, pairs of a line and its reply.
func (p *pressureServer) play(steps ...[2]string) {
	if h, ok := p.t.(interface{ Helper() }); ok {
		h.Helper()
	}
	for i, s := range steps {
		require.Equal(p.t, s[1], p.step(s[0]), "step %d: %s", i, s[0])
	}
}

// eachSharding runs a test with one shard and with many.
func eachSharding(t *testing.T, test func(t *testing.T, p *pressureServer)) {
	for _, shards := range []string{"1", "16"} {
		t.Run(shards+" shards", func(t *testing.T) {
			p := newPressureServer(t, "shards", shards)
			p.Journalled()
			test(t, p)
			p.Finish()
		})
	}
}

// keys returns all keys, sorted, and how often.
func (p *pressureServer) keys() []string {
	var out []string
	for _, line := range p.Dump() {
		out = append(out, strings.Split(line, `"`)[1])
	}
	return out
}

const (
	noQueue     = "-NOQUEUE the queue does not exist"
	queueClosed = "-QUEUECLOSED the queue is closed"
)

// info returns a field of PRESSURE.INFO q.
func (p *pressureServer) info(field string) string {
	words := strings.Fields(p.step("info PRESSURE.INFO q"))
	return words[slices.Index(words, field)+1]
}

func TestPressureCommands(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.PUT q x", noQueue},
			{"a PRESSURE.GET q", noQueue},
			{"a PRESSURE.LEN q", noQueue},
			{"a PRESSURE.INFO q", noQueue},
			{"a PRESSURE.CLOSE q", noQueue},
			{"a PRESSURE.DELETE q", noQueue},
			{"a PRESSURE.ACK q 1-1", noQueue},
			{"a PRESSURE.RETURN q 1-1", noQueue},
			{"a PRESSURE.LIST", "*0"},
			{"a PRESSURE.CREATE q BOUND 3", "+OK"},
			{"a PRESSURE.CREATE q", "-QUEUEEXISTS the queue exists already"},
			{"a PRESSURE.CREATE p PREFIX other", "+OK"},
			{"a PRESSURE.CREATE a:b", "+OK"},
			{"a PRESSURE.LIST", "*2 a:b q"},
			{"a PRESSURE.LIST PREFIX other", "*1 p"},
			{"a PRESSURE.LIST other", "-ERR syntax error"},
			{"a PRESSURE.PUT q x yy", ":2"},
			{"a PRESSURE.LEN q", ":2"},
			{"a PRESSURE.LEN p", noQueue},
			{"a PRESSURE.LEN p PREFIX other", ":0"},
			{"a PRESSURE.PUT p x PREFIX other CLIENT me", ":1"},
			{"a PRESSURE.GET p PREFIX other", "x"},
			{"a PRESSURE.PUT q z CLIENT me TIMEOUT 5", ":1"},
			{"a PRESSURE.INFO q", "*36 length :3 bound :3 closed :0 producer me consumer $-1 producer_free :1 consumer_free :1 " +
				"produced_messages :3 produced_bytes :4 consumed_messages :0 consumed_bytes :0 " +
				"blocked_producers :0 blocked_consumers :0 reserved :0 redelivered :0 delayed :0 dead :0 schedules :0"},
			{"a EXISTS $:not_full", ":0"},
			{"a PRESSURE.GET q CLIENT you", "x"},
			{"a LRANGE $:not_full 0 -1", "*1 0"},
			{"a PRESSURE.GET q COUNT 5", "*2 yy z"},
			{"a GET $:consumer", "addr-a"},
			{"a CLIENT SETNAME me-too", "+OK"},
			{"a PRESSURE.PUT q TIMEOUT 5", ":2"},
			{"a GET $:producer", "me-too"},
			{"a PRESSURE.GET q COUNT 1", "*1 TIMEOUT"},
			{"a PRESSURE.GET q", "5"},
		}...)
		require.Contains(t, p.step("a HELLO 3"), "proto")
		p.play([][2]string{
			{"a PRESSURE.INFO q", "%18 length :0 bound :3 closed :0 producer me-too consumer me-too producer_free :1 consumer_free :1 " +
				"produced_messages :5 produced_bytes :12 consumed_messages :5 consumed_bytes :12 " +
				"blocked_producers :0 blocked_consumers :0 reserved :0 redelivered :0 delayed :0 dead :0 schedules :0"},
			{"a PRESSURE.GET q TIMEOUT 5", ""},
			{"+5", ""},
			{"a", "_"},
			{"a PRESSURE.CLOSE q", "+OK"},
			{"a LRANGE $:closed 0 -1", "*2 0 0"},
			{"a PRESSURE.CLOSE q", queueClosed},
			{"a PRESSURE.PUT q x", queueClosed},
			{"a PRESSURE.GET q", queueClosed},
			{"a PRESSURE.DELETE q", "+OK"},
			{"a PRESSURE.DELETE q", noQueue},
			{"a PRESSURE.DELETE a:b", "+OK"},
			{"a PRESSURE.DELETE p PREFIX other TIMEOUT 7", "+OK"},
		}...)
		require.Empty(t, p.keys())
	})
}

func TestPressureClosedQueueIsDrained(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q x y", ":2"}, {"a PRESSURE.CLOSE q CLIENT c", "+OK"},
			{"a GET $:producer", "c"},
			{"a PRESSURE.GET q", "x"}, {"a PRESSURE.GET q COUNT 9", "*1 y"}, {"a PRESSURE.GET q", queueClosed},
		}...)
	})
}

func TestPressureArgumentsAreChecked(t *testing.T) {
	p := newPressureServer(t)
	p.step("a PRESSURE.CREATE q")
	before := p.Dump()
	for line, want := range map[string]string{
		"PRESSURE.CREATE r BOUND x":                    "-ERR value is not an integer or out of range",
		"PRESSURE.CREATE r BOUND -1":                   "-ERR value is out of range, must be positive",
		"PRESSURE.CREATE r BOUND":                      "-ERR syntax error",
		"PRESSURE.CREATE r BOUND 1 BOUND 2":            "-ERR syntax error",
		"PRESSURE.CREATE r TIMEOUT 1":                  "-ERR syntax error",
		"PRESSURE.CREATE":                              "-ERR wrong number of arguments for 'pressure.create' command",
		"PRESSURE.PUT q":                               "-ERR wrong number of arguments for 'pressure.put' command",
		"PRESSURE.PUT q v TIMEOUT x":                   "-ERR timeout is not an integer or out of range",
		"PRESSURE.PUT q v TIMEOUT 1.5":                 "-ERR timeout is not an integer or out of range",
		"PRESSURE.PUT q v TIMEOUT -1":                  "-ERR timeout is negative",
		"PRESSURE.GET q TIMEOUT -1":                    "-ERR timeout is negative",
		"PRESSURE.GET q COUNT 0":                       "-ERR count should be greater than 0",
		"PRESSURE.GET q COUNT x":                       "-ERR count should be greater than 0",
		"PRESSURE.GET q RESERVE 0":                     "-ERR value is out of range, must be positive",
		"PRESSURE.GET q RESERVE x":                     "-ERR value is not an integer or out of range",
		"PRESSURE.GET q RESERVE":                       "-ERR syntax error",
		"PRESSURE.GET q RESERVE 9223372036854775807":   "-ERR timeout is out of range",
		"PRESSURE.GET q TIMEOUT 9223372036854775807":   "-ERR timeout is out of range",
		"PRESSURE.PUT q v TIMEOUT 9223372036854775807": "-ERR timeout is out of range",
		"PRESSURE.GET q RESERVE -9223372036854775808":  "-ERR value is out of range, must be positive",
		"PRESSURE.GET q BOUND 1":                       "-ERR syntax error",
		"PRESSURE.GET q COUNT 1 COUNT 1":               "-ERR syntax error",
		"PRESSURE.CLOSE q TIMEOUT x":                   "-ERR timeout is not an integer or out of range",
		"PRESSURE.DELETE q TIMEOUT -5":                 "-ERR timeout is negative",
		"PRESSURE.DELETE q CLIENT x":                   "-ERR syntax error",
		"PRESSURE.LEN q x":                             "-ERR syntax error",
		"PRESSURE.INFO q PREFIX":                       "-ERR syntax error",
		"PRESSURE.ACK q":                               "-ERR wrong number of arguments for 'pressure.ack' command",
		"PRESSURE.RETURN q nothing":                    ":0",
		"PRESSURE.ACK q PREFIX nothing":                ":0",
		"PRESSURE.ACK q id PREFIX nothing":             noQueue,
		"PRESSURE.PUT q v PREFIX p CLIENT  x":          noQueue,
	} {
		require.Equal(t, want, p.step("a "+line), line)
	}
	require.Equal(t, before, p.Dump())
	p.Finish()
}

func TestPressureNamesAndValuesHoldAnyBytes(t *testing.T) {
	p := newPressureServer(t)
	send := func(args ...string) string { return p.Send("a", args...) }
	name, prefix, value := "\x00 \r\n\xff", "", strings.Repeat("\x00\r\n\xfe", 50_000)
	require.Equal(t, "+OK\r\n", send("PRESSURE.CREATE", name, "prefix", prefix, "bound", "2"))
	require.Equal(t, ":2\r\n", send("PRESSURE.PUT", name, value, "", "prefix", prefix, "timeout", "0", "client", ""))
	require.Equal(t, fmt.Sprintf("$%d\r\n%s\r\n", len(value), value), send("PRESSURE.GET", name, "prefix", prefix))
	reply := send("PRESSURE.GET", name, "prefix", prefix, "RESERVE", "10")
	require.Regexp(t, `^\*2\r\n\$\d+\r\n1000000000000-\d+\r\n\$0\r\n\r\n$`, reply)
	require.Equal(t, fmt.Sprintf("*1\r\n$%d\r\n%s\r\n", len(name), name), send("PRESSURE.LIST", "PREFIX", prefix))
	require.Equal(t, "$0\r\n\r\n", send("GET", ":"+name+":producer"))
	p.Finish()
}

// If any of the keys has the wrong type, nothing is changed.
func TestPressureWrongTypesChangeNothing(t *testing.T) {
	for _, suffix := range []string{"", keys.Bound, keys.Producer, keys.Consumer, keys.ProducerFree, keys.ConsumerFree,
		keys.NotFull,
		keys.Closed, keys.Reserved, keys.ProducedMessages, keys.ProducedBytes, keys.ConsumedMessages, keys.ConsumedBytes} {
		p := newPressureServer(t)
		p.play([2]string{"a PRESSURE.CREATE q", "+OK"}, [2]string{"a PRESSURE.PUT q x", ":1"})
		key := "$" + suffix
		p.step("a DEL " + key)
		require.Equal(t, ":1", p.step("a SADD "+key+" member"))
		before := p.Dump()
		for _, line := range []string{"PUT q y", "GET q", "GET q RESERVE 5", "ACK q 1-1", "RETURN q 1-1", "LEN q", "INFO q",
			"CLOSE q", "DELETE q", "CREATE q"} {
			require.Equal(t, "-"+string(command.ErrWrongType), p.step("a PRESSURE."+line), "%s: %s", key, line)
		}
		require.Equal(t, before, p.Dump())
		p.Finish()
	}
	p := newPressureServer(t)
	p.step("a PRESSURE.CREATE q")
	for _, key := range []string{"$:stats:produced_messages", "$:stats:consumed_bytes", "$:bound"} {
		p.step("a SET " + key + " many")
		require.Equal(t, "-"+string(command.ErrNotInteger), p.step("a PRESSURE.PUT q x"), key)
		p.step("a DEL " + key)
	}
	require.Equal(t, noQueue, p.step("a PRESSURE.PUT q x"))
	p.Finish()
}

// While a client waits the type of a key can change; it gets the error, and its role goes back.
func TestPressureWrongTypeWhileWaiting(t *testing.T) {
	p := newPressureServer(t)
	p.play([][2]string{
		{"a PRESSURE.CREATE q BOUND 1", "+OK"}, {"a PRESSURE.PUT q x y", ""}, {"b SET $:stats:produced_bytes text", "+OK"},
		{"b RPOP $", "x"}, {"b LPUSH $:not_full 0", ":1"}, {"a", ":1"}, {"b LLEN $:producer_free", ":1"},
	}...)
	p.Finish()
}

func TestPressureTransactionsAndScriptsDoNotWait(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a MULTI", "+OK"}, {"a PRESSURE.CREATE q BOUND 2", "+QUEUED"}, {"a PRESSURE.PUT q x y z", "+QUEUED"},
			{"a PRESSURE.GET q", "+QUEUED"},
			{"a PRESSURE.GET q COUNT 2", "+QUEUED"}, {"a PRESSURE.GET q COUNT 2", "+QUEUED"}, {"a PRESSURE.GET q", "+QUEUED"},
			{"a PRESSURE.GET q RESERVE 9", "+QUEUED"},
			{"a EXEC", "*7 +OK :2 x *1 y *-1 $-1 *-1"},
			{"a EXISTS $:producer_free $:consumer_free $:not_full", ":3"},
			{"b RPOP $:producer_free", "0"},
			{"a EVAL return{redis.call('PRESSURE.PUT',KEYS[1],'v'),redis.call('PRESSURE.CLOSE',KEYS[1]),redis.call('PRESSURE.LEN',KEYS[1])} 1 q", "*3 :0 $-1 :0"},
			{"b LPUSH $:producer_free 0", ":1"},
			{"a EVAL return{redis.call('PRESSURE.PUT',KEYS[1],'v'),redis.call('PRESSURE.GET',KEYS[1]),redis.call('PRESSURE.CLOSE',KEYS[1])} 1 q", "*3 :1 v +OK"},
			{"a EVAL return(redis.call('PRESSURE.DELETE',KEYS[1])) 1 q", "+OK"},
		}...)
		require.Empty(t, p.keys())
	})
}

// All clients wait in one line for a role, whatever commands they use.
func TestPressureRolesGoInOrderOfArrival(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q", "+OK"},
			{"a BRPOP $:producer_free 0", "*2 $:producer_free 0"},
			{"b PRESSURE.PUT q b", ""},
			{"c BRPOP $:producer_free 0", ""},
			{"d PRESSURE.PUT q d", ""},
			{"e PRESSURE.CLOSE q CLIENT e", ""},
			{"f PRESSURE.PUT q f", ""},
			{"x PRESSURE.LEN q", ":0"},
		}...)
		require.Equal(t, ":5", p.info("blocked_producers"))
		p.play([][2]string{
			{"a LPUSH $:producer_free 0", ":1"},
			{"b", ":1"},
			{"c", "*2 $:producer_free 0"},
			{"d", ""},
			{"c LPUSH $:producer_free 0", ":1"},
			{"d", ":1"},
			{"e", "+OK"},
			{"f", queueClosed},
			{"x LRANGE $ 0 -1", "*2 d b"},
			{"x BRPOP $:consumer_free 0", "*2 $:consumer_free 0"},
			{"a PRESSURE.GET q", ""},
			{"b BRPOP $:consumer_free 0", ""},
			{"c PRESSURE.GET q", ""},
			{"d PRESSURE.GET q", ""},
			{"x LPUSH $:consumer_free 0", ":1"},
			{"a", "b"},
			{"b", "*2 $:consumer_free 0"},
			{"c", ""},
			{"b LPUSH $:consumer_free 0", ":1"},
			{"c", "d"},
			{"d", queueClosed},
			{"x EXISTS $:producer_free $:consumer_free", ":2"},
		}...)
	})
}

// A message goes to the consumer, not to who has waited longer for it without the role.
func TestPressureMessagesGoToTheConsumer(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q BOUND 2", "+OK"},
			{"a BRPOP $:consumer_free 0", "*2 $:consumer_free 0"},
			{"b PRESSURE.GET q", ""},
			{"a BRPOP $ $:closed 0", ""},
			{"p BRPOP $:producer_free 0", "*2 $:producer_free 0"},
			{"p BRPOP $:not_full 0", "*2 $:not_full 0"},
			{"p LPUSH $ one", ":1"},
			{"a", "*2 $ one"},
			{"b", ""},
			{"p LPUSH $:not_full 0", ":1"},
			{"p LPUSH $:producer_free 0", ":1"},
			{"a LPUSH $:consumer_free 0", ":1"},
			{"b", ""},
			{"a LLEN $:consumer_free", ":0"},
			{"a GET $:consumer", "addr-b"},
			{"a PRESSURE.PUT q two", ":1"},
			{"b", "two"},
			{"a LLEN $:consumer_free", ":1"},
			{"a LLEN $:not_full", ":1"},
		}...)
	})
}

func TestPressurePutWaitsForRoomAsTheProducer(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q BOUND 2", "+OK"},
			{"a PRESSURE.PUT q 1 2 3 4 5", ""},
			{"b PRESSURE.PUT q x", ""},
			{"c LRANGE $ 0 -1", "*2 2 1"},
			{"c EXISTS $:not_full $:producer_free", ":0"},
			{"c PRESSURE.GET q", "1"},
			{"c PRESSURE.GET q COUNT 2", "*2 2 3"},
			{"a", ":5"},
			{"c PRESSURE.GET q COUNT 9", "*2 4 5"},
			{"b", ":1"},
			{"c EXISTS $:not_full $:producer_free", ":2"},
			{"c PRESSURE.GET q", "x"},
			// A consumer that does its steps itself makes room as well.
			{"a PRESSURE.PUT q 1 2 3 TIMEOUT 10", ""},
			{"c BRPOP $ 0", "*2 $ 1"},
			{"a", ""},
			{"c LPUSH $:not_full 0", ":1"},
			{"a", ":3"},
			{"c EXISTS $:not_full", ":0"},
			{"a PRESSURE.PUT q 4 TIMEOUT 10", ""}, {"+9", ""}, {"a", ""}, {"+1", ""}, {"a", ":0"},
			{"c EXISTS $:producer_free", ":1"},
			{"a PRESSURE.PUT q 4 5 6 TIMEOUT 10", ""},
			{"c PRESSURE.GET q COUNT 2", "*2 2 3"},
			{"c LLEN $", ":2"},
			{"+10", ""},
			{"a", ":2"},
			{"c EXISTS $:producer_free", ":1"},
		}...)
	})
}

// A client that learns that the queue is closed or gone while it waits gives its role back.
func TestPressureWaitersLearnOfTheEnd(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q BOUND 1", "+OK"},
			{"g PRESSURE.GET q", ""}, {"h PRESSURE.GET q COUNT 2", ""},
			{"a PRESSURE.CLOSE q", "+OK"},
			{"g", queueClosed}, {"h", queueClosed},
			{"a EXISTS $:consumer_free $:producer_free", ":2"},
			{"a PRESSURE.DELETE q", "+OK"},
			{"a PRESSURE.CREATE q BOUND 1", "+OK"},
			{"g PRESSURE.PUT q 1 2", ""}, {"h PRESSURE.PUT q 3", ""},
			{"a LPUSH $:closed 0 0", ":2"}, // by a client that is not the producer
			{"g", ":1"}, {"h", queueClosed},
			{"a PRESSURE.DELETE q", "+OK"},
			{"a PRESSURE.CREATE q BOUND 1", "+OK"},
			{"g PRESSURE.GET q", ""}, {"h PRESSURE.GET q", ""}, {"i PRESSURE.PUT q x y z", ":3"}, {"g", "x"}, {"h", "y"},
			{"a PRESSURE.GET q", "z"},
			{"j PRESSURE.PUT q x", ":1"},
			{"b RPOP $:consumer_free", "0"},
			{"k PRESSURE.GET q", ""}, {"l PRESSURE.DELETE q", ""},
			{"k", noQueue},
			{"m PRESSURE.GET q", noQueue},
			{"b LPUSH $:consumer_free 0", ":1"},
			{"l", "+OK"},
		}...)
		require.Empty(t, p.keys())
	})
}

// Some clients spell the keys of the counters as the samples of the specification do.
func TestPressureInfoCountsBothSpellings(t *testing.T) {
	p := newPressureServer(t)
	p.play([][2]string{
		{"a PRESSURE.CREATE q", "+OK"}, {"a PRESSURE.PUT q xyz", ":1"},
		{"a INCRBY $:produced_messages 2", ":2"}, {"a INCRBY $:produced_bytes 10", ":10"},
		{"a INCR $:consumed_messages", ":1"},
		{"a SET $:consumed_bytes 9223372036854775807", "+OK"}, {"a PRESSURE.GET q", "xyz"},
	}...)
	for field, want := range map[string]string{"produced_messages": ":3", "produced_bytes": ":13",
		"consumed_messages": ":2",
		"consumed_bytes":    ":9223372036854775807"} {
		require.Equal(t, want, p.info(field), field)
	}
	p.play([][2]string{{"a SET $:produced_messages many", "+OK"}, {"a DEL $:produced_bytes", ":1"},
		{"a LPUSH $:produced_bytes 5", ":1"}}...)
	require.Equal(t, ":1", p.info("produced_messages"), "what is no number counts nothing")
	require.Equal(t, ":3", p.info("produced_bytes"))
	p.Finish()
}
