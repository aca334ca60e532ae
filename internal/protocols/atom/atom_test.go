package atom_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/server"
)

// atomServer is a server with clients that are fed directly, and a clock that stands still.
type atomServer struct {
	*servertest.Stepped
	t *testing.T
}

// onShards runs a test with one shard and with many.
func onShards(t *testing.T, test func(t *testing.T, b *atomServer)) {
	for _, shards := range []string{"1", "16"} {
		t.Run(shards+" shards", func(t *testing.T) {
			b := &atomServer{servertest.NewStepped(t, "shards", shards).Journalled(), t}
			test(t, b)
			b.Finish()
		})
	}
}

// do sends a command of client 0 and returns the reply.
func (b *atomServer) do(args ...string) string { return b.as(0, args...) }

// as sends a command of a client and returns the replies that the client has received since.
func (b *atomServer) as(client int, args ...string) string {
	return b.Send(fmt.Sprint(client), args...)
}

// answer returns the replies to a client since the last call.
func (b *atomServer) answer(client int) string { return b.Reply(fmt.Sprint(client)) }

// after moves the clock by single ms, so that nothing is late, and returns how many passed until the client got a
// reply.
func (b *atomServer) after(client, ms int) (passed int, answer string) {
	for passed < ms {
		b.Pass(1)
		passed++
		if answer = b.answer(client); answer != "" {
			break
		}
	}
	return passed, answer
}

// comeUp creates the streams of an element.
func (b *atomServer) comeUp(name string) {
	for _, stream := range []string{"response:", "command:"} {
		require.NotContains(b.t, b.do("XADD", stream+name, "MAXLEN", "~", "1024", "*", "language", "Python", "version",
			"2.7.0"), "-ERR")
	}
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// strangeNames are names that must work everywhere.
var strangeNames = []string{"two words", "a:b:c", "*", "[a-z]?", `back\slash`, "nul\x00byte", "line\r\nend",
	"\xff\xfe", ":", strings.Repeat("long", 1000)}

func TestElementsHaveBothStreams(t *testing.T) {
	onShards(t, func(t *testing.T, b *atomServer) {
		require.Equal(t, "*0\r\n", b.do("ATOM.ELEMENTS"))
		for _, name := range []string{"zebra", "ant", "Ant"} {
			b.comeUp(name)
		}
		b.do("XADD", "response:caller", "*", "f", "v") // no command stream
		b.do("XADD", "command:called", "*", "f", "v")  // no response stream
		b.do("SET", "response:other", "no stream")
		b.do("XADD", "command:other", "*", "f", "v")
		b.do("XADD", "response:another", "*", "f", "v")
		b.do("SET", "command:another", "no stream")
		require.Equal(t, commandtest.Bulks("Ant", "ant", "zebra"), b.do("ATOM.ELEMENTS"))
		b.do("PEXPIRE", "command:ant", "10")
		b.Step("+10")
		require.Equal(t, commandtest.Bulks("Ant", "zebra"), b.do("ATOM.ELEMENTS"))
		require.Equal(t, "-ERR wrong number of arguments for 'atom.elements' command\r\n", b.do("ATOM.ELEMENTS", "x"))
		b.do("SELECT", "1")
		require.Equal(t, "*0\r\n", b.do("ATOM.ELEMENTS"))
	})
}

func TestStreamsOfOneElementAndOfAll(t *testing.T) {
	onShards(t, func(t *testing.T, b *atomServer) {
		require.Equal(t, "*0\r\n", b.do("ATOM.STREAMS"))
		b.comeUp("cam")
		b.comeUp("cam:left")
		for _, key := range []string{"stream:camera:frames", "stream:cam:left:frames", "stream:cam:z", "stream:cam:a",
			"stream:alone", "stream:x:y:z"} {
			b.do("XADD", key, "*", "f", "v")
		}
		b.do("SET", "stream:cam:text", "no stream")
		require.Equal(t, commandtest.Bulks("a", "left:frames", "z"), b.do("ATOM.STREAMS", "cam"))
		require.Equal(t, commandtest.Bulks("frames"), b.do("ATOM.STREAMS", "cam:left"))
		require.Equal(t, "*0\r\n", b.do("ATOM.STREAMS", "ca"))
		require.Equal(t, "*6\r\n"+commandtest.Bulks("", "alone")+commandtest.Bulks("cam", "a")+commandtest.Bulks("cam", "z")+
			commandtest.Bulks("cam:left", "frames")+commandtest.Bulks("camera", "frames")+commandtest.Bulks("x", "y:z"),
			b.do("ATOM.STREAMS"))
		require.Equal(t, "-ERR wrong number of arguments for 'atom.streams' command\r\n", b.do("ATOM.STREAMS", "x", "y"))
	})
}

func TestTenThousandStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector, which would see no more than with a few streams")
	}
	onShards(t, func(t *testing.T, b *atomServer) {
		b.comeUp("cam")
		want := make([]string, 10_000)
		for i := range want {
			want[i] = fmt.Sprintf("s%04d", i)
			b.do("XADD", "stream:cam:"+want[i], "1-1", "f", "v")
		}
		require.Equal(t, commandtest.Bulks(want...), b.do("ATOM.STREAMS", "cam"))
		require.Equal(t, "*10000\r\n", b.do("ATOM.STREAMS")[:8])
		require.Contains(t, b.do("ATOM.INFO", "cam"),
			bulk("streams")+"*20000\r\n"+bulk("s0000")+"*4\r\n"+bulk("length")+":1\r\n"+bulk("last-id")+bulk("1-1"))
	})
}

func TestStrangeNamesWorkEverywhere(t *testing.T) {
	onShards(t, func(t *testing.T, b *atomServer) {
		for i, name := range strangeNames {
			b.do("FLUSHALL")
			b.comeUp(name)
			b.do("XADD", "stream:"+name+":"+name, "5-1", name, "v", "ser", name)
			require.Equal(t, commandtest.Bulks(name), b.do("ATOM.ELEMENTS"), "%q", name)
			require.Equal(t, commandtest.Bulks(name), b.do("ATOM.STREAMS", name), "%q", name)
			require.Equal(t, "*1\r\n"+commandtest.Bulks(name, name), b.do("ATOM.STREAMS"), "%q", name)
			require.Contains(t, b.do("ATOM.INFO", name), bulk("state")+bulk("alive"))
			require.Equal(t, commandtest.Bulks("reference:"+name+":1:ser:"+name+":"+name), b.do("ATOM.STREAMREF",
				"stream:"+name+":"+name, "", "reference:"+name+":1", "0"), "%q", name)
			require.Equal(t, "", b.as(1, "ATOM.CALL", name, name, "FROM", name, "DATA", name))
			id := fmt.Sprintf("%d-1", b.Now()) // the first entry is that of coming up
			b.do("XADD", "response:"+name, "*", "element", name, "cmd_id", id, "err_code", "0", "data", name, name, name)
			require.Equal(t, "*12\r\n"+bulk("cmd_id")+bulk(id)+bulk("err_code")+":0\r\n"+bulk("err_str")+"$-1\r\n"+
				bulk("data")+bulk(name)+
				bulk("element")+bulk(name)+bulk(name)+bulk(name), b.answer(1), "%d", i)
			require.Equal(t, bulk(fmt.Sprintf("%d-0", b.Now())), b.do("ATOM.LOG", "0", name, name, name))
		}
	})
}

func TestLogWritesTheFieldsOfTheProtocol(t *testing.T) {
	onShards(t, func(t *testing.T, b *atomServer) {
		require.Equal(t, bulk("1000000000000-0"), b.do("ATOM.LOG", "4", "robot", "low\x00battery", "here"))
		require.Equal(t, bulk("1000000000000-1"), b.do("ATOM.LOG", "7", "", ""))
		require.Equal(t, "*2\r\n*2\r\n"+bulk("1000000000000-0")+commandtest.Bulks("level", "4", "element", "robot",
			"msg", "low\x00battery", "host", "here")+
			"*2\r\n"+bulk("1000000000000-1")+commandtest.Bulks("level", "7", "element", "", "msg", "", "host", "127.0.0.1"),
			b.do("XRANGE", "log", "-", "+"))
		for _, level := range []string{"", "8", "-1", "07", "x", "1.0"} {
			require.Equal(t, "-ERR the level must be an integer from 0 to 7\r\n", b.do("ATOM.LOG", level, "e", "m"))
		}
		require.Equal(t, "-ERR wrong number of arguments for 'atom.log' command\r\n", b.do("ATOM.LOG", "1", "e"))
		require.Equal(t, "-ERR wrong number of arguments for 'atom.log' command\r\n",
			b.do("ATOM.LOG", "1", "e", "m", "h", "x"))
		for range 3000 {
			b.do("ATOM.LOG", "1", "e", "m")
		}
		require.Equal(t, fmt.Sprintf(":%d\r\n", 1024+(3002-1024)%100), b.do("XLEN", "log"))
		b.do("SET", "log", "no stream")
		require.Equal(t, "-"+string(command.ErrWrongType)+"\r\n", b.do("ATOM.LOG", "1", "e", "m"))
	})
}

func TestTheLogWakesItsReaders(t *testing.T) {
	onShards(t, func(t *testing.T, b *atomServer) {
		require.Equal(t, "", b.as(1, "XREAD", "BLOCK", "0", "STREAMS", "log", "$"))
		b.do("ATOM.LOG", "1", "e", "m")
		require.Contains(t, b.answer(1), bulk("msg")+bulk("m"))
	})
}

func TestStreamrefRefersToTheFieldsOfAnEntry(t *testing.T) {
	onShards(t, func(t *testing.T, b *atomServer) {
		b.do("XADD", "s", "1-1", "left", "L1", "right", "R1")
		b.do("XADD", "s", "2-1", "left", "L2", "ser", "msgpack", "right", "\x00\r\n")
		b.do("XADD", "s", "2-2", "", "")
		ref := func(id, timeout string) string { return b.do("ATOM.STREAMREF", "s", id, "reference:me:1", timeout) }
		require.Equal(t, commandtest.Bulks("reference:me:1:ser:none:left", "reference:me:1:ser:none:right"), ref("1-1", "0"))
		require.Equal(t, bulk("L1"), b.do("GET", "reference:me:1:ser:none:left"))
		require.Equal(t, ":-1\r\n", b.do("PTTL", "reference:me:1:ser:none:left"))
		require.Equal(t, commandtest.Bulks("reference:me:1:ser:msgpack:left", "reference:me:1:ser:msgpack:right"),
			ref("2", "1500"))
		require.Equal(t, bulk("\x00\r\n"), b.do("GET", "reference:me:1:ser:msgpack:right"))
		require.Equal(t, ":1500\r\n", b.do("PTTL", "reference:me:1:ser:msgpack:right"))
		require.Equal(t, commandtest.Bulks("reference:me:1:ser:none:"), ref("", "0"), "the newest entry")
		require.Equal(t, bulk(""), b.do("GET", "reference:me:1:ser:none:"))
		b.Step("+1500")
		require.Equal(t, "$-1\r\n", b.do("GET", "reference:me:1:ser:msgpack:right"))
		require.Equal(t, "*0\r\n", ref("3-1", "0"), "there is no such entry")
		require.Equal(t, "*0\r\n", b.do("ATOM.STREAMREF", "none", "", "r", "0"))
		b.do("XTRIM", "s", "MAXLEN", "0")
		require.Equal(t, "*0\r\n", ref("", "0"), "the stream is empty")

		require.Equal(t, "-ERR Invalid stream ID specified as stream command argument\r\n", ref("x", "0"))
		require.Equal(t, "-"+string(command.ErrNotInteger)+"\r\n", ref("1-1", "1.5"))
		require.Equal(t, "-ERR invalid expire time in 'atom.streamref' command\r\n", ref("1-1", "-1"))
		require.Equal(t, "-ERR invalid expire time in 'atom.streamref' command\r\n", ref("1-1", "9223372036854775807"))
		b.do("SET", "text", "v")
		require.Equal(t, "-"+string(command.ErrWrongType)+"\r\n", b.do("ATOM.STREAMREF", "text", "", "r", "0"))
		b.do("XADD", "r:ser:none:f", "1-1", "e", "v", "f", "w")
		require.Equal(t, "-"+string(command.ErrSameObject)+"\r\n", b.do("ATOM.STREAMREF", "r:ser:none:f", "", "r", "0"))
		require.Equal(t, ":0\r\n", b.do("EXISTS", "r:ser:none:e"), "a refusal makes nothing")
	})
}

func TestEntriesOf64MiB(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector takes more than a minute for so much data")
	}
	b := &atomServer{servertest.NewStepped(t, "shards", "16").Journalled(), t}
	large := strings.Repeat("\x00\xff\r\n", 16<<20)
	b.comeUp("e")
	b.Step("+1")
	b.as(1, "ATOM.CALL", "e", "echo", "DATA", large)
	require.Contains(t, b.do("XREVRANGE", "command:e", "+", "-", "COUNT", "1"), bulk("data")+bulk(large))
	b.do("XADD", "response:atomredis", "*", "element", "e", "cmd_id", "1000000000001-0", "data", large, "err_code", "0")
	require.Contains(t, b.answer(1), bulk("data")+bulk(large))
	b.do("XADD", "stream:e:s", "*", "f", large)
	b.do("ATOM.STREAMREF", "stream:e:s", "", "r", "0")
	require.Equal(t, bulk(large), b.do("GET", "r:ser:none:f"))
	b.do("FLUSHALL") // comparing everything again would take long
	b.Finish()
}

func TestInfoTellsWhatAnElementIs(t *testing.T) {
	onShards(t, func(t *testing.T, b *atomServer) {
		require.Equal(t, "-NOELEMENT no such element\r\n", b.do("ATOM.INFO", "robot"))
		b.comeUp("robot")
		b.do("INCRBY", "command_consumer_group_counter:robot", "2")
		b.do("XGROUP", "CREATE", "command:robot", "command_consumer_group:robot", "$")
		b.do("XADD", "stream:robot:pose", "1000000000000-7", "x", "1")
		b.do("XADD", "stream:robotic:pose", "1-1", "x", "1")
		b.Step("+1")
		for range 3 {
			b.do("ATOM.CALL", "robot", "move", "NOWAIT")
		}
		b.Step("+1")
		b.do("XREADGROUP", "GROUP", "command_consumer_group:robot", "worker", "COUNT", "1", "STREAMS", "command:robot", ">")
		b.Step("+5")
		size := func(length int, id string) string {
			return fmt.Sprintf("%%2\r\n%s:%d\r\n%s%s", bulk("length"), length, bulk("last-id"), bulk(id))
		}
		b.do("HELLO", "3")
		require.Equal(t, "%12\r\n"+bulk("language")+bulk("Python")+bulk("version")+bulk("2.7.0")+bulk("state")+
			bulk("alive")+bulk("idle")+":5\r\n"+
			bulk("connections")+":0\r\n"+bulk("instances")+":2\r\n"+bulk("backlog")+":3\r\n"+bulk("pending")+":1\r\n"+
			bulk("consumers")+"%1\r\n"+bulk("worker")+"%2\r\n"+bulk("pending")+":1\r\n"+bulk("idle")+":5\r\n"+
			bulk("commands")+size(4, "1000000000001-2")+bulk("responses")+size(1, "1000000000000-0")+
			bulk("streams")+"%1\r\n"+bulk("pose")+size(1, "1000000000000-7"), b.do("ATOM.INFO", "robot"))
		require.Equal(t, "-ERR wrong number of arguments for 'atom.info' command\r\n", b.do("ATOM.INFO"))
	})
}

func TestInfoOfWhatIsLeftOfAnElement(t *testing.T) {
	onShards(t, func(t *testing.T, b *atomServer) {
		b.do("XADD", "command:c", "1-1", "element", "x", "cmd", "first was trimmed", "data", "")
		b.do("SET", "command_consumer_group_counter:c", "odd")
		require.Equal(t, "*24\r\n"+bulk("language")+"$-1\r\n"+bulk("version")+"$-1\r\n"+bulk("state")+bulk("gone")+
			bulk("idle")+":1000000000000\r\n"+
			bulk("connections")+":0\r\n"+bulk("instances")+bulk("odd")+bulk("backlog")+":1\r\n"+bulk("pending")+":0\r\n"+
			bulk("consumers")+"*0\r\n"+
			bulk("commands")+"*4\r\n"+bulk("length")+":1\r\n"+bulk("last-id")+bulk("1-1")+bulk("responses")+"$-1\r\n"+
			bulk("streams")+"*0\r\n", b.do("ATOM.INFO", "c"))
		b.do("XADD", "response:r", "1-1", "language", "c", "version", "v0.1.0")
		require.Contains(t, b.do("ATOM.INFO", "r"),
			bulk("language")+bulk("c")+bulk("version")+bulk("v0.1.0")+bulk("state")+bulk("gone"))
		b.do("SET", "command:s", "no stream")
		require.Equal(t, "-NOELEMENT no such element\r\n", b.do("ATOM.INFO", "s"))
	})
}

func TestAnElementThatDiedIsGone(t *testing.T) {
	alive := func(b *atomServer) string {
		reply := b.do("ATOM.INFO", "robot")
		if strings.Contains(reply, bulk("state")+bulk("alive")) {
			return "alive"
		}
		require.Contains(b.t, reply, bulk("state")+bulk("gone"))
		return "gone"
	}
	for name, live := range map[string]func(b *atomServer) (die func()){
		"it came up": func(*atomServer) func() { return func() {} },
		"it publishes": func(b *atomServer) func() {
			b.Step("+60000")
			b.do("XADD", "stream:robot:pose", "*", "x", "1")
			return func() {}
		},
		"its connection bears its name": func(b *atomServer) func() {
			b.as(1, "CLIENT", "SETNAME", "robot")
			b.Step("+60000")
			return func() { b.as(1, "RESET") }
		},
		"it waits for commands": func(b *atomServer) func() {
			b.as(1, "XREAD", "BLOCK", "0", "STREAMS", "command:robot", "$")
			b.Step("+60000")
			return func() { b.do("CLIENT", "UNBLOCK", "2") }
		},
		"it has just been given a command": func(b *atomServer) func() {
			b.do("XGROUP", "CREATE", "command:robot", "command_consumer_group:robot", "$")
			b.Step("+60000")
			b.do("ATOM.CALL", "robot", "move", "NOWAIT")
			require.Equal(b.t, "gone", alive(b), "what others write is no sign of its life")
			b.do("XREADGROUP", "GROUP", "command_consumer_group:robot", "worker", "STREAMS", "command:robot", ">")
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onShards(t, func(t *testing.T, b *atomServer) {
				b.comeUp("robot")
				die := live(b)
				require.Equal(t, "alive", alive(b))
				die()
				b.Step("+" + fmt.Sprint(10_000-1))
				b.answer(1)
				b.Step("+1")
				require.Equal(t, "gone", alive(b))
				require.Equal(t, commandtest.Bulks("robot"), b.do("ATOM.ELEMENTS"), "its streams are there until they are removed")
			})
		})
	}
}

func TestOneClientCountsOnce(t *testing.T) {
	onShards(t, func(t *testing.T, b *atomServer) {
		b.comeUp("robot")
		b.as(1, "CLIENT", "SETNAME", "robot")
		b.as(1, "XREAD", "BLOCK", "0", "STREAMS", "command:robot", "$")
		b.as(2, "XREAD", "BLOCK", "0", "STREAMS", "command:robot", "command:robot", "$", "$")
		require.Contains(t, b.do("ATOM.INFO", "robot"), bulk("connections")+":2\r\n")
	})
}

func TestAtomCommandsInTransactionsAndScripts(t *testing.T) {
	onShards(t, func(t *testing.T, b *atomServer) {
		b.comeUp("e")
		b.Step("+1")
		b.do("MULTI")
		b.do("ATOM.CALL", "e", "move")
		b.do("ATOM.CALL", "e", "move", "NOWAIT")
		b.do("ATOM.LOG", "1", "e", "m")
		b.do("ATOM.ELEMENTS")
		require.Equal(t,
			"*4\r\n-"+"ERR ATOM.CALL cannot wait for an answer in a transaction or a script: use NOWAIT\r\n"+
				commandtest.Bulks("cmd_id",
					"1000000000001-0")+bulk("1000000000001-0")+commandtest.Bulks("e"), b.do("EXEC"))
		require.Equal(t, ":2\r\n", b.do("XLEN", "command:e"), "a call that is refused sends nothing")
		require.Equal(t, commandtest.Bulks("cmd_id", "1000000000001-1"), b.do("EVAL",
			"return redis.call('atom.call', 'e', 'move', 'nowait')", "0"))
		require.Contains(t, b.do("EVAL", "return redis.call('atom.call', 'e', 'move')", "0"),
			"ERR ATOM.CALL cannot wait for an answer in a transaction or a script: use NOWAIT")
		require.Equal(t, commandtest.Bulks("e"), b.do("EVAL", "return redis.call('atom.elements')", "0"))
	})
}

// TestCallTimesOutOnEveryTransport checks that the transports follow a deadline that changes while the client waits.
func TestCallTimesOutOnEveryTransport(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		clock := engine.NewManualClock(time.UnixMilli(1e12))
		o.Clock = clock
		s := servertest.Start(t, o, settings...)
		a, b := s.Connect(), s.Connect()
		b.Line("XADD command:e * language c version v")
		for _, ms := range []int{2000, 60} { // later and earlier than the deadline for the acknowledgement
			a.Send("ATOM.CALL", "e", "move")
			b.WaitFor("INFO clients", "blocked_clients:1\r\n")
			id := strings.Split(b.Line("XREVRANGE command:e + - COUNT 1"), `"`)[1]
			b.Line(fmt.Sprintf("XADD response:atomredis * element e cmd_id %s timeout %d", id, ms))
			passed := 0
			for !a.Ready(time.Millisecond) {
				clock.Advance(20 * time.Millisecond)
				passed += 20
			}
			require.Equal(t, fmt.Sprintf("-NORESPONSE no response to command %s within %d ms of its acknowledgement", id, ms),
				a.Next())
			require.GreaterOrEqual(t, passed, ms)
		}
	})
}
