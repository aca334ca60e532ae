package atom_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
)

// onGroup runs a test with an element e that has a group, and client 1 waits for its commands.
func onGroup(t *testing.T, test func(t *testing.T, b *atomServer)) {
	onElement(t, func(t *testing.T, b *atomServer) {
		require.Equal(t, "", b.as(1, "ATOM.NEXT", "e"))
		test(t, b)
	})
}

// send sends a command to the element e, and returns its ID.
func (b *atomServer) send(fields ...string) (id string) {
	reply := b.do(append([]string{"XADD", "command:e", "*"}, fields...)...)
	require.Equal(b.t, uint8('$'), reply[0], reply)
	return reply[len("$15\r\n") : len(reply)-len("\r\n")]
}

// handed is the reply to ATOM.NEXT with a command without data, and an encoded acknowledgement.
func handed(id, caller, command, ack string) string {
	return "*12\r\n" + bulk("cmd_id") + bulk(id) + bulk("element") + bulk(caller) + bulk("cmd") + bulk(command) +
		bulk("data") + "$-1\r\n" +
		bulk("ack") + ack + bulk("raw") + "*0\r\n"
}

// pending returns the number of commands of the element e that were handed out and are unfinished.
func (b *atomServer) pending() string {
	return b.do("XPENDING", "command:e", "command_consumer_group:e")[:len("*4\r\n:0")]
}

func (b *atomServer) responses(caller string) string {
	return b.do("XRANGE", "response:"+caller, "-", "+")
}

func TestACommandIsHandedOutAcknowledgedAndAnswered(t *testing.T) {
	onGroup(t, func(t *testing.T, b *atomServer) {
		require.Equal(t, "", b.as(2, "ATOM.CALL", "e", "move", "DATA", "to\x00\r\n"))
		const id, ack, response = "1000000000001-0", "1000000000001-0", "1000000000001-1"
		require.Equal(t, "*12\r\n"+bulk("cmd_id")+bulk(id)+bulk("element")+bulk("atomredis")+bulk("cmd")+bulk("move")+
			bulk("data")+bulk("to\x00\r\n")+
			bulk("ack")+":1000\r\n"+bulk("raw")+"*0\r\n", b.answer(1))
		require.Equal(t, "*1\r\n*2\r\n"+bulk(ack)+commandtest.Bulks("element", "e", "cmd_id", id, "timeout", "1000"),
			b.responses("atomredis"))
		require.Equal(t, "*4\r\n:1", b.pending())
		require.Equal(t, "", b.answer(2))
		require.Equal(t, ":1\r\n", b.as(1, "ATOM.RESPOND", "e", id, "atomredis", "CMD", "move", "DATA", "\x00there\r\n"))
		require.Equal(t, "*14\r\n"+bulk("cmd_id")+bulk(id)+bulk("err_code")+":0\r\n"+bulk("err_str")+bulk("")+bulk("data")+
			bulk("\x00there\r\n")+
			bulk("ser")+bulk("none")+bulk("element")+bulk("e")+bulk("cmd")+bulk("move"), b.answer(2))
		require.Equal(t, "*1\r\n*2\r\n"+bulk(response)+commandtest.Bulks("data", "\x00there\r\n", "ser", "none",
			"err_code", "0", "err_str", "", "cmd_id", id,
			"element", "e", "cmd", "move"), b.do("XREVRANGE", "response:atomredis", "+", "-", "COUNT", "1"))
		require.Equal(t, "*4\r\n:0", b.pending())
	})
}

func TestAResponseAndTheNextCommandInOneRoundTrip(t *testing.T) {
	onGroup(t, func(t *testing.T, b *atomServer) {
		first := b.send("element", "me", "cmd", "a")
		require.Equal(t, handed(first, "me", "a", ":1000\r\n"), b.answer(1))
		require.Equal(t, ":1\r\n", b.Input("1", append(commandtest.Request("ATOM.RESPOND", "e", first, "me"),
			commandtest.Request("ATOM.NEXT", "e")...)), "although the next command is still waited for")
		second := b.send("element", "me", "cmd", "b")
		require.Equal(t, handed(second, "me", "b", ":1000\r\n"), b.answer(1))
	})
}

func TestNextRepliesWithAMapOfEverythingInTheCommand(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		b.as(1, "HELLO", "3")
		require.Equal(t, "", b.as(1, "ATOM.NEXT", "e"))
		id := b.send("more", "1", "cmd", "c", "timeout", "2", "element", "me", "more", "3", "cmd_id", "4")
		require.Equal(t, "%6\r\n"+bulk("cmd_id")+bulk(id)+bulk("element")+bulk("me")+bulk("cmd")+bulk("c")+bulk("data")+
			"_\r\n"+bulk("ack")+":1000\r\n"+
			bulk("raw")+"%4\r\n"+bulk("more")+bulk("1")+bulk("timeout")+bulk("2")+bulk("more")+bulk("3")+bulk("cmd_id")+
			bulk("4"), b.answer(1))
		id = b.send("element", "me", "data", "")
		require.Equal(t, "%6\r\n"+bulk("cmd_id")+bulk(id)+bulk("element")+bulk("me")+bulk("cmd")+"_\r\n"+bulk("data")+
			bulk("")+bulk("ack")+"_\r\n"+
			bulk("raw")+"%0\r\n", b.as(1, "ATOM.NEXT", "e", "ACK", "NO"),
			"a command without a name is for the element to refuse")
	})
}

func TestNextAcknowledgesAsItIsTold(t *testing.T) {
	for _, tc := range []struct {
		options []string
		want    string // the timeout; "" without an acknowledgement
	}{
		{nil, "1000"},
		{[]string{"ACK", "70"}, "70"},
		{[]string{"ACK", "0"}, "0"},
		{[]string{"ack", "no"}, ""},
		{[]string{"ACKFOR", "move", "5"}, "5"},
		{[]string{"ACKFOR", "turn", "5"}, "1000"},
		{[]string{"ACK", "70", "ACKFOR", "turn", "5", "move", "9223372036854775807"}, "9223372036854775807"},
		{[]string{"ACK", "NO", "ACKFOR", "turn", "5", "move", "0"}, "0"},
		{[]string{"ACK", "NO", "ACKFOR", "Move", "5"}, ""},
		{[]string{"ACKFOR", "ACK", "7", "move", "6"}, "6"},
	} {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprint(tc.options, waits), func(t *testing.T) {
				onElement(t, func(t *testing.T, b *atomServer) {
					next := append([]string{"ATOM.NEXT", "e"}, tc.options...)
					if waits {
						require.Equal(t, "", b.as(1, next...))
					}
					id := b.send("element", "me", "cmd", "move")
					answer := b.answer(1)
					if !waits {
						answer = b.as(1, next...)
					}
					if tc.want == "" {
						require.Equal(t, handed(id, "me", "move", "$-1\r\n"), answer)
						require.Equal(t, ":0\r\n", b.do("EXISTS", "response:me"))
						return
					}
					require.Equal(t, handed(id, "me", "move", ":"+tc.want+"\r\n"), answer)
					require.Equal(t, "*1\r\n*2\r\n"+bulk("1000000000001-0")+commandtest.Bulks("element", "e",
						"cmd_id", id, "timeout", tc.want), b.responses("me"))
				})
			})
		}
	}
}

func TestNextPassesOverWhatCannotBeAnswered(t *testing.T) {
	onGroup(t, func(t *testing.T, b *atomServer) {
		b.do("SET", "response:text", "v")
		b.do("XADD", "response:full", "18446744073709551615-18446744073709551615", "f", "v")
		improper := func() {
			b.comeUp("e")
			b.send("cmd", "move")
			b.send("element", "", "cmd", "move")
			b.send("element", "text", "cmd", "move")
			b.send("element", "full", "cmd", "move")
		}
		improper()
		require.Equal(t, "", b.answer(1))
		require.Equal(t, "*4\r\n:0", b.pending())
		id := b.send("element", "me", "cmd", "move")
		require.Equal(t, handed(id, "me", "move", ":1000\r\n"), b.answer(1))
		improper()
		id = b.send("element", "me", "cmd", "turn")
		require.Equal(t, handed(id, "me", "turn", ":1000\r\n"), b.as(1, "ATOM.NEXT", "e"))
		require.Equal(t, "*4\r\n:2", b.pending())
		require.Equal(t, bulk("v"), b.do("GET", "response:text"))
	})
}

func TestNextMakesTheGroup(t *testing.T) {
	onShards(t, func(t *testing.T, b *atomServer) {
		require.Equal(t, "", b.as(1, "ATOM.NEXT", "e"), "even without a stream")
		require.Contains(t, b.as(2, "ATOM.CALL", "e", "move", "NOWAIT"), bulk("cmd_id"))
		require.Contains(t, b.answer(1), bulk("move"))

		b.do("XGROUP", "DESTROY", "command:e", "command_consumer_group:e")
		b.comeUp("e")
		id := b.send("element", "me", "cmd", "since")
		require.Equal(t, handed(id, "me", "since", ":1000\r\n"), b.as(1, "ATOM.NEXT", "e"),
			"what was sent before it came up is of no interest")

		b.do("DEL", "command:e")
		b.send("element", "me", "cmd", "old", "language", "no sign of coming up")
		require.Equal(t, "", b.as(1, "ATOM.NEXT", "e"), "nobody knows when it came up")
		id = b.send("element", "me", "cmd", "new")
		require.Equal(t, handed(id, "me", "new", ":1000\r\n"), b.answer(1))

		const noGroup = "-NOGROUP No such key 'command:x' or consumer group 'command_consumer_group:x'\r\n"
		require.Equal(t, noGroup, b.do("ATOM.NEXT", "x", "NOMKSTREAM"))
		b.do("XADD", "command:x", "*", "element", "me", "cmd", "move")
		require.Equal(t, noGroup, b.do("ATOM.NEXT", "x", "NOMKSTREAM"))
		b.do("XGROUP", "CREATE", "command:x", "command_consumer_group:x", "0")
		require.Contains(t, b.do("ATOM.NEXT", "x", "NOMKSTREAM"), bulk("move"), "the group is as it is")
	})
}

func TestNextIsAConsumerOfTheGroup(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		require.Equal(t, "", b.as(1, "ATOM.NEXT", "e"))
		require.Equal(t, "", b.as(2, "XREADGROUP", "GROUP", "command_consumer_group:e", "w", "BLOCK", "0", "STREAMS",
			"command:e", ">"))
		first := b.send("element", "me", "cmd", "a")
		require.Equal(t, handed(first, "me", "a", ":1000\r\n"), b.answer(1), "who came first is served first")
		require.Equal(t, "", b.answer(2))
		require.Equal(t, "", b.as(1, "ATOM.NEXT", "e", "CONSUMER", "v"))
		second := b.send("element", "me", "cmd", "b")
		require.Equal(t, "", b.answer(1))
		require.Contains(t, b.answer(2), bulk(second))
		third := b.send("element", "me", "cmd", "c")
		require.Equal(t, handed(third, "me", "c", ":1000\r\n"), b.answer(1))
		require.Equal(t, "*3\r\n*4\r\n"+bulk(first)+bulk("e")+":0\r\n:1\r\n*4\r\n"+bulk(second)+bulk("w")+
			":0\r\n:1\r\n*4\r\n"+bulk(third)+bulk("v")+":0\r\n:1\r\n",
			b.do("XPENDING", "command:e", "command_consumer_group:e", "-", "+", "10"))
	})
}

func TestCommandsSentAtOnceAreHandedOutInTheirOrder(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		require.Equal(t, "", b.as(1, "ATOM.NEXT", "e"))
		require.Equal(t, "", b.as(2, "ATOM.NEXT", "e"))
		b.do("MULTI")
		for _, command := range []string{"a", "b", "c"} {
			b.do("XADD", "command:e", "*", "element", "me", "cmd", command)
		}
		b.do("EXEC")
		require.Equal(t, handed("1000000000001-0", "me", "a", ":1000\r\n"), b.answer(1))
		require.Equal(t, handed("1000000000001-1", "me", "b", ":1000\r\n"), b.answer(2))
		require.Equal(t, handed("1000000000001-2", "me", "c", ":1000\r\n"), b.as(2, "ATOM.NEXT", "e"))
	})
}

func TestAnElementServesItself(t *testing.T) {
	onGroup(t, func(t *testing.T, b *atomServer) {
		require.Equal(t, "", b.as(2, "ATOM.CALL", "e", "move", "FROM", "e"))
		require.Contains(t, b.answer(1), bulk("element")+bulk("e")+bulk("cmd")+bulk("move"))
		require.Equal(t, ":1\r\n", b.as(1, "ATOM.RESPOND", "e", "1000000000001-0", "e", "ERR", "1005", "too far", "SER",
			"msgpack"))
		require.Contains(t, b.answer(2), bulk("err_code")+":1005\r\n"+bulk("err_str")+bulk("too far")+bulk("data")+bulk("")+
			bulk("ser")+bulk("msgpack"))
	})
}

func TestNextWaits(t *testing.T) {
	for _, tc := range []struct {
		options []string
		passed  int
	}{
		{nil, 3000}, {[]string{"TIMEOUT", "0"}, 3000}, {[]string{"TIMEOUT", "70"}, 70},
		{[]string{"timeout", "9223372036854775807"}, 3000},
	} {
		t.Run(fmt.Sprint(tc.options), func(t *testing.T) {
			onElement(t, func(t *testing.T, b *atomServer) {
				require.Equal(t, "", b.as(1, append([]string{"ATOM.NEXT", "e"}, tc.options...)...))
				passed, answer := b.after(1, 3000)
				require.Equal(t, tc.passed, passed)
				if passed == 3000 {
					require.Empty(t, answer)
					return
				}
				require.Equal(t, "$-1\r\n", answer)
				b.send("element", "me", "cmd", "move")
				require.Equal(t, "+PONG\r\n", b.as(1, "PING"))
				require.Equal(t, "*4\r\n:0", b.pending(), "nothing is handed out to those who wait no longer")
			})
		})
	}
}

func TestTheWaitForACommandEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(b *atomServer)
		want string
	}{
		"the stream is deleted": {func(b *atomServer) { b.do("UNLINK", "command:e") },
			"-UNBLOCKED the stream key no longer exists\r\n"},
		"the stream expires": {func(b *atomServer) { b.do("PEXPIRE", "command:e", "1"); b.Step("+1") },
			"-UNBLOCKED the stream key no longer exists\r\n"},
		"the stream is replaced": {func(b *atomServer) { b.do("SET", "command:e", "v") },
			"-UNBLOCKED the stream key no longer exists\r\n"},
		"everything is flushed": {func(b *atomServer) { b.do("FLUSHALL") },
			"-UNBLOCKED the stream key no longer exists\r\n"},
		"the group is destroyed": {func(b *atomServer) {
			b.do("XGROUP", "DESTROY", "command:e",
				"command_consumer_group:e")
		}, "-NOGROUP the consumer group this client was blocked on no longer exists\r\n"},
		"the client is unblocked": {func(b *atomServer) { b.do("CLIENT", "UNBLOCK", "2") }, "$-1\r\n"},
		"the client is unblocked with an error": {func(b *atomServer) { b.do("CLIENT", "UNBLOCK", "2", "ERROR") },
			"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"},
		"not by trimming": {func(b *atomServer) { b.do("XTRIM", "command:e", "MAXLEN", "0") }, ""},
		"not by what is removed at once": {func(b *atomServer) {
			b.do("MULTI")
			b.do("XADD", "command:e", "*", "element", "me", "cmd", "move")
			b.do("XTRIM", "command:e", "MAXLEN", "0")
			b.do("EXEC")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			onGroup(t, func(t *testing.T, b *atomServer) {
				tc.end(b)
				require.Equal(t, tc.want, b.answer(1))
			})
		})
	}
}

func TestWhoHangsUpTakesNoCommand(t *testing.T) {
	onGroup(t, func(t *testing.T, b *atomServer) {
		b.Hangup("1")
		id := b.send("element", "me", "cmd", "move")
		require.Equal(t, "*4\r\n:0", b.pending())
		require.Equal(t, handed(id, "me", "move", ":1000\r\n"), b.as(2, "ATOM.NEXT", "e"))
	})
}

func TestNextInAnotherDatabase(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		b.as(1, "SELECT", "3")
		require.Equal(t, "", b.as(1, "ATOM.NEXT", "e"))
		b.send("element", "me", "cmd", "move")
		require.Equal(t, "", b.answer(1))
		b.do("SELECT", "3")
		id := b.send("element", "me", "cmd", "move")
		require.Equal(t, handed(id, "me", "move", ":1000\r\n"), b.answer(1))
		require.Equal(t, ":1\r\n", b.do("XLEN", "response:me"))
	})
}

func TestServingInTransactionsAndScripts(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		id := b.send("element", "me", "cmd", "move")
		b.do("MULTI")
		b.do("ATOM.NEXT", "e")
		b.do("ATOM.NEXT", "e")
		b.do("ATOM.RESPOND", "e", id, "me")
		require.Equal(t, "*3\r\n"+handed(id, "me", "move", ":1000\r\n")+"$-1\r\n:1\r\n", b.do("EXEC"),
			"without a command there is no wait")
		require.Equal(t, ":2\r\n", b.do("XLEN", "response:me"))
		id = b.send("element", "me", "cmd", "turn")
		require.Equal(t, bulk(id), b.do("EVAL", "return redis.call('atom.next', 'e')[2]", "0"))
		require.Equal(t, "$-1\r\n", b.do("EVAL", "return redis.call('atom.next', 'e')", "0"))
		require.Equal(t, ":1\r\n", b.do("EVAL", "return redis.call('atom.respond', 'e', ARGV[1], 'me')", "0", id))
	})
}

func TestRespondWritesTheFieldsOfTheProtocol(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		require.Equal(t, ":0\r\n", b.do("ATOM.RESPOND", "e", "5", "me"), "there is no group")
		require.Equal(t, "", b.as(1, "ATOM.NEXT", "e"))
		require.Equal(t, ":0\r\n", b.do("atom.respond", "e", "6-1", "me", "err", "-1", "", "ser", "", "data", "cmd", "cmd",
			"data"), "it was not handed out")
		id := b.send("element", "me", "cmd", "c")
		require.Equal(t, ":1\r\n", b.do("ATOM.RESPOND", "e", id, "you"))
		require.Equal(t, ":0\r\n", b.do("ATOM.RESPOND", "e", id, "you"), "it has been done")
		require.Equal(t, "*3\r\n*2\r\n"+bulk("1000000000001-0")+commandtest.Bulks("data", "", "ser", "none",
			"err_code", "0", "err_str", "", "cmd_id", "5-0", "element", "e", "cmd", "")+
			"*2\r\n"+bulk("1000000000001-1")+commandtest.Bulks("data", "cmd", "ser", "", "err_code", "-1", "err_str",
			"", "cmd_id", "6-1", "element", "e", "cmd", "data")+
			"*2\r\n"+bulk("1000000000001-2")+commandtest.Bulks("element", "e", "cmd_id", id, "timeout", "1000"),
			b.responses("me"))
		require.Equal(t, ":2\r\n", b.do("XLEN", "response:you"))
		for range 3000 {
			b.do("ATOM.RESPOND", "e", "1-1", "me")
		}
		require.Equal(t, fmt.Sprintf(":%d\r\n", 1024+(3003-1024)%100), b.do("XLEN", "response:me"))
	})
}

func TestServingRefusesWhatIsWrong(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		b.do("SET", "command:text", "v")
		b.do("SET", "response:text", "v")
		for want, calls := range map[command.Error][][]string{
			"ERR wrong number of arguments for 'atom.next' command":    {{"NEXT"}},
			"ERR wrong number of arguments for 'atom.respond' command": {{"RESPOND"}, {"RESPOND", "e", "1-1"}},
			command.ErrSyntax: {{"NEXT", "e", "x"}, {"NEXT", "e", "CONSUMER"}, {"NEXT", "e", "TIMEOUT"}, {"NEXT", "e", "ACK"},
				{"NEXT", "e", "ACKFOR"},
				{"NEXT", "e", "ACKFOR", "c"}, {"NEXT", "e", "ACKFOR", "c", "5", "d"}, {"RESPOND", "e", "1-1", "me", "x"},
				{"RESPOND", "e", "1-1", "me", "CMD"},
				{"RESPOND", "e", "1-1", "me", "DATA"}, {"RESPOND", "e", "1-1", "me", "SER"},
				{"RESPOND", "e", "1-1", "me", "ERR", "5"}},
			command.ErrTimeoutNotInteger: {{"NEXT", "e", "TIMEOUT", "x"}, {"NEXT", "e", "ACK", "1.5"},
				{"NEXT", "e", "ACKFOR", "c",
					"9223372036854775808"},
				{"NEXT", "e", "ACKFOR", "c", "5", "d", "x"}, {"NEXT", "e", "ACKFOR", "c", "x", "d", "5"}},
			command.ErrTimeoutNegative: {{"NEXT", "e", "TIMEOUT", "-1"}, {"NEXT", "e", "ACK",
				"-1"}, {"NEXT", "e", "ACKFOR", "c", "-1"}},
			"ERR the name of an element must not be empty": {{"NEXT", ""}, {"RESPOND", "", "1-1", "me"},
				{"RESPOND", "e", "1-1", ""}},
			command.ErrNotInteger: {{"RESPOND", "e", "1-1", "me", "ERR", "x", "text"},
				{"RESPOND", "e", "1-1", "me", "ERR", "1.5", "text"}},
			"ERR Invalid stream ID specified as stream command argument": {{"RESPOND", "e", "x", "me"}, {"RESPOND",
				"e", "", "me"}, {"RESPOND", "e", "+", "me"}},
			command.ErrWrongType: {{"NEXT", "text"}, {"RESPOND", "text", "1-1", "me"}, {"RESPOND", "e", "1-1", "text"}},
		} {
			for _, args := range calls {
				args[0] = "ATOM." + args[0]
				require.Equal(t, "-"+string(want)+"\r\n", b.do(args...), "%q", args)
			}
		}
		require.Equal(t, ":0\r\n", b.do("EXISTS", "response:me"))
		require.Equal(t, "*0\r\n", b.do("XINFO", "GROUPS", "command:e"), "a refusal makes nothing")
	})
}

func TestServingWithStrangeNames(t *testing.T) {
	onShards(t, func(t *testing.T, b *atomServer) {
		for _, name := range strangeNames {
			b.do("FLUSHALL")
			b.comeUp(name)
			require.Equal(t, "", b.as(1, "ATOM.NEXT", name, "CONSUMER", name, "ACK", "NO", "ACKFOR", name, "5"))
			require.Equal(t, "", b.as(2, "ATOM.CALL", name, name, "FROM", name, "DATA", name))
			id := fmt.Sprintf("%d-1", b.Now()) // the first entry is that of coming up
			require.Equal(t, "*12\r\n"+bulk("cmd_id")+bulk(id)+bulk("element")+bulk(name)+bulk("cmd")+bulk(name)+bulk("data")+
				bulk(name)+
				bulk("ack")+":5\r\n"+bulk("raw")+"*0\r\n", b.answer(1), "%q", name)
			require.Equal(t, ":1\r\n", b.do("ATOM.RESPOND", name, id, name, "CMD", name, "DATA", name, "SER", name, "ERR", "0",
				name))
			require.Equal(t, "*14\r\n"+bulk("cmd_id")+bulk(id)+bulk("err_code")+":0\r\n"+bulk("err_str")+bulk(name)+
				bulk("data")+bulk(name)+
				bulk("ser")+bulk(name)+bulk("element")+bulk(name)+bulk("cmd")+bulk(name), b.answer(2), "%q", name)
		}
	})
}

func TestAnElementThatWaitsInNextIsAlive(t *testing.T) {
	onGroup(t, func(t *testing.T, b *atomServer) {
		b.Step("+60000")
		require.Contains(t, b.do("ATOM.INFO", "e"), bulk("state")+bulk("alive"))
		b.do("CLIENT", "UNBLOCK", "2")
		b.answer(1)
		require.Contains(t, b.do("ATOM.INFO", "e"), bulk("state")+bulk("gone"))
	})
}
