package atom_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/testing/servertest"
)

// call sends a command to the element e from client 1, and returns its ID.
func (b *atomServer) call(options ...string) (id string) {
	require.Equal(b.t, "", b.as(1, append([]string{"ATOM.CALL", "e", "move"}, options...)...))
	reply := b.do("XREVRANGE", "command:e", "+", "-", "COUNT", "1")
	return strings.Split(reply, "\r\n")[3]
}

// respond adds an entry to the response stream of the anonymous caller.
func (b *atomServer) respond(fields ...string) {
	b.t.Helper()
	require.NotContains(b.t, b.do(append([]string{"XADD", "response:atomredis", "*"}, fields...)...), "-ERR")
}

func (b *atomServer) ack(id, timeout string) {
	b.respond("element", "e", "cmd_id", id, "timeout", timeout)
}

// done is the reply to a call whose response has only the required fields.
func done(id string) string {
	return "*10\r\n" + bulk("cmd_id") + bulk(id) + bulk("err_code") + ":0\r\n" + bulk("err_str") + "$-1\r\n" +
		bulk("data") + "$-1\r\n" + bulk("element") + bulk("e")
}

func noAck(id string, ms int) string {
	return fmt.Sprintf("-NOACK command %s was not acknowledged within %d ms\r\n", id, ms)
}

func noResponse(id string, ms int) string {
	return fmt.Sprintf("-NORESPONSE no response to command %s within %d ms of its acknowledgement\r\n", id, ms)
}

// onElement runs a test with an element e.
func onElement(t *testing.T, test func(t *testing.T, b *atomServer)) {
	onShards(t, func(t *testing.T, b *atomServer) {
		b.comeUp("e")
		b.Step("+1")
		test(t, b)
	})
}

func TestCallIsAnsweredByAcknowledgementAndResponse(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		id := b.call("DATA", "to\x00\r\n")
		require.Equal(t, "1000000000001-0", id)
		require.Equal(t, "*1\r\n*2\r\n"+bulk(id)+commandtest.Bulks("element", "atomredis", "cmd", "move", "data",
			"to\x00\r\n"),
			b.do("XRANGE", "command:e", id, id))
		b.ack(id, "1000")
		require.Equal(t, "", b.answer(1))
		b.respond("data", "\x00there\r\n", "ser", "none", "err_code", "0", "err_str", "", "cmd_id", id, "element", "e",
			"cmd", "move")
		require.Equal(t, "*14\r\n"+bulk("cmd_id")+bulk(id)+bulk("err_code")+":0\r\n"+bulk("err_str")+bulk("")+bulk("data")+
			bulk("\x00there\r\n")+
			bulk("ser")+bulk("none")+bulk("element")+bulk("e")+bulk("cmd")+bulk("move"), b.answer(1))
		require.Equal(t, "+PONG\r\n", b.as(1, "PING"))
	})
}

func TestCallAnswersWithAMap(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		b.as(1, "HELLO", "3")
		id := b.call()
		b.respond("element", "e", "cmd_id", id, "err_code", "1005", "err_str", "too far")
		require.Equal(t, "%5\r\n"+bulk("cmd_id")+bulk(id)+bulk("err_code")+":1005\r\n"+bulk("err_str")+bulk("too far")+
			bulk("data")+"_\r\n"+bulk("element")+bulk("e"), b.answer(1))
		id = b.call()
		b.respond("element", "e", "cmd_id", id, "err_code", "odd", "extra", "1", "extra", "2")
		require.Equal(t, "%7\r\n"+bulk("cmd_id")+bulk(id)+bulk("err_code")+bulk("odd")+bulk("err_str")+"_\r\n"+bulk("data")+
			"_\r\n"+
			bulk("element")+bulk("e")+bulk("extra")+bulk("1")+bulk("extra")+bulk("2"), b.answer(1))
		require.Equal(t, "%1\r\n"+bulk("cmd_id")+bulk("1000000000001-2"), b.as(1, "ATOM.CALL", "e", "move", "NOWAIT"))
	})
}

func TestCallFromANameUsesItsResponseStream(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		id := b.call("FROM", "me")
		require.Contains(t, b.do("XRANGE", "command:e", id, id), bulk("element")+bulk("me"))
		b.respond("element", "e", "cmd_id", id, "err_code", "0")
		require.Equal(t, "", b.answer(1))
		b.do("XADD", "response:me", "*", "element", "e", "cmd_id", id, "err_code", "0")
		require.Equal(t, done(id), b.answer(1))
		id = b.call("FROM", "e", "TIMEOUT", "0") // the element calls itself
		b.do("XADD", "response:e", "*", "element", "e", "cmd_id", id, "err_code", "0")
		require.Equal(t, done(id), b.answer(1))
	})
}

func TestCallTimesOut(t *testing.T) {
	const ever = 3000
	for _, tc := range []struct {
		name    string
		options []string
		ackAt   int // ms; 0 if never
		timeout string
		passed  int
		want    func(id string) string
	}{
		{"without an acknowledgement", nil, 0, "", 1000, func(id string) string { return noAck(id, 1000) }},
		{"without an acknowledgement in the given time", []string{"TIMEOUT", "50"}, 0, "", 50,
			func(id string) string { return noAck(id, 50) }},
		{"without an acknowledgement, which may take for ever", []string{"TIMEOUT", "0"}, 0, "", ever,
			func(string) string { return "" }},
		{"after a late acknowledgement", nil, 999, "500", 1499, func(id string) string { return noResponse(id, 500) }},
		{"after an early acknowledgement", nil, 1, "500", 501, func(id string) string { return noResponse(id, 500) }},
		{"after an acknowledgement that promises a late response", nil, 10, "2000", 2010,
			func(id string) string { return noResponse(id, 2000) }},
		{"after an acknowledgement that promises nothing", nil, 10, "0", ever, func(string) string { return "" }},
		{"after an acknowledgement that promises too much", nil, 10, "9223372036854775807", ever,
			func(string) string { return "" }},
		{"after an acknowledgement without end", []string{"TIMEOUT", "0"}, 70, "5", 75,
			func(id string) string { return noResponse(id, 5) }},
		{"at once if the acknowledgement is wrong", nil, 3, "soon", 3, func(string) string {
			return "-ERR the element acknowledged the command with a timeout that is not a number of milliseconds\r\n"
		}},
		{"at once if the acknowledgement is negative", nil, 3, "-1", 3, func(string) string {
			return "-ERR the element acknowledged the command with a timeout that is not a number of milliseconds\r\n"
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onElement(t, func(t *testing.T, b *atomServer) {
				id := b.call(tc.options...)
				passed, answer := 0, ""
				if tc.ackAt > 0 {
					passed, answer = b.after(1, tc.ackAt)
					require.Empty(t, answer)
					b.ack(id, tc.timeout)
					answer = b.answer(1)
				}
				if answer == "" {
					var more int
					more, answer = b.after(1, ever-passed)
					passed += more
				}
				require.Equal(t, tc.want(id), answer)
				require.Equal(t, tc.passed, passed)
				if answer != "" {
					b.respond("element", "e", "cmd_id", id, "err_code", "0")
					require.Equal(t, "+PONG\r\n", b.as(1, "PING"), "a late response goes nowhere")
				}
			})
		})
	}
}

func TestCallTakesOnlyItsOwnAnswers(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		b.respond("element", "e", "cmd_id", "1000000000001-0", "err_code", "0", "data", "older than the command")
		id := b.call()
		for _, other := range [][]string{
			{"element", "e", "cmd_id", "1000000000001-1", "err_code", "0"},
			{"element", "other", "cmd_id", id, "err_code", "0"},
			{"element", "e", "cmd_id", id + "0", "timeout", "1"},
			{"element", "other", "cmd_id", id, "timeout", "1"},
			{"cmd_id", id, "err_code", "0"},
			{"element", "e", "err_code", "0"},
			{"element", "e", "cmd_id", id},
			{"language", "Python", "version", "2.7.0"},
		} {
			b.respond(other...)
			require.Equal(t, "", b.answer(1), "%q", other)
		}
		b.Step("+900")
		b.ack(id, "300")
		b.Step("+200")
		b.ack(id, "5000") // a second acknowledgement changes nothing
		b.Step("+99")
		require.Equal(t, "", b.answer(1))
		b.Step("+1")
		require.Equal(t, noResponse(id, 300), b.answer(1))
	})
}

func TestCallsThatShareAResponseStream(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		first := b.call()
		require.Equal(t, "", b.as(2, "ATOM.CALL", "e", "turn"))
		second := "1000000000001-1"
		b.respond("element", "e", "cmd_id", second, "err_code", "0")
		require.Equal(t, done(second), b.answer(2))
		require.Equal(t, "", b.answer(1))
		b.respond("element", "e", "cmd_id", first, "err_code", "0")
		require.Equal(t, done(first), b.answer(1))
	})
}

func TestCallIsServedByATransaction(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		id := b.call()
		b.do("MULTI")
		b.ack(id, "1")
		b.respond("element", "e", "cmd_id", id, "err_code", "0")
		b.do("XTRIM", "response:atomredis", "MAXLEN", "1")
		b.do("EXEC")
		require.Equal(t, done(id), b.answer(1))
	})
}

func TestCallSurvivesTheRemovalOfTheResponseStream(t *testing.T) {
	for name, remove := range map[string]func(b *atomServer){
		"it is deleted": func(b *atomServer) { b.do("UNLINK", "response:atomredis") },
		"it expires":    func(b *atomServer) { b.do("PEXPIRE", "response:atomredis", "1"); b.Step("+1") },
		"it is overwritten": func(b *atomServer) {
			b.do("SET", "response:atomredis", "v")
			b.do("DEL",
				"response:atomredis")
		},
		"it is trimmed":               func(b *atomServer) { b.do("XTRIM", "response:atomredis", "MAXLEN", "0") },
		"everything is flushed":       func(b *atomServer) { b.do("FLUSHALL") },
		"the databases are exchanged": func(b *atomServer) { b.do("SWAPDB", "0", "1") },
		"it is renamed":               func(b *atomServer) { b.do("RENAME", "response:atomredis", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			onElement(t, func(t *testing.T, b *atomServer) {
				for range 5 {
					b.respond("some", "entry") // its ID is larger than those after the removal in the same millisecond
				}
				id := b.call()
				remove(b)
				require.Equal(t, "", b.answer(1))
				b.respond("element", "e", "cmd_id", id, "err_code", "0")
				require.Equal(t, done(id), b.answer(1))
			})
		})
	}
}

func TestCallThatHangsUpLeavesNothingBehind(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		id := b.call()
		b.ack(id, "1000")
		b.Hangup("1")
		require.Contains(t, b.do("INFO", "clients"), "blocked_clients:0\r\n")
		b.respond("element", "e", "cmd_id", id, "err_code", "0")
		require.Equal(t, "", b.answer(1))
	})
}

func TestCallIsUnblocked(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		client := strings.Trim(b.as(1, "CLIENT", "ID"), ":\r\n")
		id := b.call()
		require.Equal(t, ":1\r\n", b.do("CLIENT", "UNBLOCK", client))
		require.Equal(t, noAck(id, 1000), b.answer(1))
		id = b.call()
		b.ack(id, "70")
		require.Equal(t, ":1\r\n", b.do("CLIENT", "UNBLOCK", client, "TIMEOUT"))
		require.Equal(t, noResponse(id, 70), b.answer(1))
		b.call()
		require.Equal(t, ":1\r\n", b.do("CLIENT", "UNBLOCK", client, "ERROR"))
		require.Equal(t, "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n", b.answer(1))
	})
}

func TestCallRefusesWhatIsWrong(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		b.do("SET", "command:text", "v")
		b.do("SET", "response:text", "v")
		for want, calls := range map[command.Error][][]string{
			"ERR wrong number of arguments for 'atom.call' command": {{}, {"e"}},
			command.ErrSyntax: {{"e", "c", "DATA"}, {"e", "c", "FROM"}, {"e", "c", "TIMEOUT"}, {"e", "c", "x"}, {"e", "c",
				"NOWAIT", "x"}},
			command.ErrTimeoutNotInteger: {{"e", "c", "TIMEOUT", "x"}, {"e", "c", "TIMEOUT", "1.5"},
				{"e", "c", "TIMEOUT", "9223372036854775808"}},
			command.ErrTimeoutNegative:                     {{"e", "c", "TIMEOUT", "-1"}},
			"ERR the name of an element must not be empty": {{"", "c"}, {"e", "c", "FROM", ""}},
			"NOELEMENT no such element":                    {{"nobody", "c"}, {"nobody", "c", "NOWAIT"}, {"E", "c"}},
			command.ErrWrongType:                           {{"text", "c"}, {"e", "c", "FROM", "text"}},
		} {
			for _, args := range calls {
				require.Equal(t, "-"+string(want)+"\r\n", b.do(append([]string{"ATOM.CALL"}, args...)...), "%q", args)
			}
		}
		require.Equal(t, ":1\r\n", b.do("XLEN", "command:e"))
		require.Equal(t, ":0\r\n", b.do("EXISTS", "command:nobody"))
		b.do("XADD", "command:e", "18446744073709551615-18446744073709551615", "f", "v")
		require.Equal(t, "-ERR The stream has exhausted the last possible ID, unable to add more items\r\n",
			b.do("ATOM.CALL", "e", "c"))
	})
}

func TestCallOptionsComeInAnyOrderAndCase(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		require.Equal(t, commandtest.Bulks("cmd_id", "1000000000001-0"), b.do("atom.Call", "e", "c", "nowait", "from",
			"me", "Timeout", "5", "data", "nowait"))
		require.Equal(t, "*1\r\n*2\r\n"+bulk("1000000000001-0")+commandtest.Bulks("element", "me", "cmd", "c", "data",
			"nowait"), b.do("XREVRANGE", "command:e", "+", "-", "COUNT", "1"))
		require.Equal(t, commandtest.Bulks("cmd_id", "1000000000001-1"), b.do("ATOM.CALL", "e", "", "NOWAIT"))
		require.Equal(t, "*1\r\n*2\r\n"+bulk("1000000000001-1")+commandtest.Bulks("element", "atomredis", "cmd", "",
			"data", ""), b.do("XREVRANGE", "command:e", "+", "-", "COUNT", "1"))
	})
}

func TestCallsAreTrimmedAsOthersDo(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		for range 3000 {
			b.do("ATOM.CALL", "e", "c", "NOWAIT")
		}
		require.Equal(t, fmt.Sprintf(":%d\r\n", 1024+(3001-1024)%100), b.do("XLEN", "command:e"))
	})
}

func TestCallIsHeardByReadersOfTheCommandStream(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		b.do("XGROUP", "CREATE", "command:e", "command_consumer_group:e", "$")
		require.Equal(t, "", b.as(2, "XREADGROUP", "GROUP", "command_consumer_group:e", "w", "BLOCK", "0", "STREAMS",
			"command:e", ">"))
		id := b.call()
		require.Contains(t, b.answer(2), bulk(id))
		b.Step("+1000")
		require.Equal(t, noAck(id, 1000), b.answer(1))
	})
}

func TestCallInAnotherDatabase(t *testing.T) {
	onElement(t, func(t *testing.T, b *atomServer) {
		b.as(1, "SELECT", "3")
		require.Equal(t, "-NOELEMENT no such element\r\n", b.as(1, "ATOM.CALL", "e", "c"))
		b.as(1, "XADD", "command:e", "1-1", "f", "v")
		require.Equal(t, "", b.as(1, "ATOM.CALL", "e", "c"))
		b.respond("element", "e", "cmd_id", "1000000000001-0", "err_code", "0")
		require.Equal(t, "", b.answer(1))
		b.do("SELECT", "3")
		b.respond("element", "e", "cmd_id", "1000000000001-0", "err_code", "0")
		require.Equal(t, done("1000000000001-0"), b.answer(1))
	})
}

// BenchmarkCallAmongWaiters measures an acknowledgement and a response of one call while others wait on the same
// stream.
func BenchmarkCallAmongWaiters(b *testing.B) {
	for _, waiting := range []int{0, 10, 100, 1000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			h := servertest.NewStepped(b)
			defer h.Finish()
			send := h.Send
			const element, caller = "element", "caller"
			send(element, "XADD", "command:e", "1-1", "language", "c", "version", "v")
			for i := range waiting {
				send(fmt.Sprint(i), "ATOM.CALL", "e", "c", "TIMEOUT", "0")
			}
			b.ReportAllocs()
			for range b.N {
				h.Clock.Advance(time.Millisecond)
				id := fmt.Sprintf("%d-0", h.Now())
				send(caller, "ATOM.CALL", "e", "c")
				send(element, "XADD", "response:atomredis", "MAXLEN", "~", "1024", "*", "element", "e", "cmd_id", id, "timeout",
					"1000")
				send(element, "XADD", "response:atomredis", "MAXLEN", "~", "1024", "*", "data", "", "ser", "none", "err_code",
					"0", "err_str", "",
					"cmd_id", id, "element", "e", "cmd", "c")
				if h.Reply(caller) == "" {
					b.Fatal("no answer")
				}
			}
		})
	}
}
