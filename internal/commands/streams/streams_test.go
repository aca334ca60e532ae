package streams

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestHotStreamCommandsDoNotAllocate(t *testing.T) {
	b := commandtest.New(t)
	for i := range 200 {
		b.Line(t, "XADD s "+strconv.Itoa(i+1)+"-1 field value")
	}
	b.Line(t, "XGROUP CREATE s g 0")
	b.Line(t, "XREADGROUP GROUP g c STREAMS s >")
	for _, line := range []string{
		"XREAD COUNT 10 STREAMS s 150",
		"XREAD STREAMS s none $ 0",
		"XREAD STREAMS s +",
		"XRANGE s 120 130",
		"XREVRANGE s + - COUNT 5",
		"XLEN s",
		"XREADGROUP GROUP g c STREAMS s >",
		"XREADGROUP GROUP g c COUNT 5 STREAMS s 150",
		"XREADGROUP GROUP g c CLAIM 100 STREAMS s >",
		"XPENDING s g",
		"XPENDING s g - + 10", "XPENDING s g - + 10 c",
		"XACK s g 999-9",
		"XTRIM s MAXLEN ~ 500",
	} {
		first := b.Line(t, line)
		require.NotEqual(t, byte('-'), first[0], "%s: %s", line, first)
		allocs := testing.AllocsPerRun(100, func() {
			b.Out.Buf = b.Out.Buf[:0]
			b.Cmd.Do(&b.Ctx)
		})
		require.Zero(t, allocs, line)
	}
}

func TestAddingToATrimmedStreamAllocatesOnlyBlocks(t *testing.T) {
	b := commandtest.New(t)
	b.Line(t, "XADD s MAXLEN ~ 100 * field value")
	allocs := testing.AllocsPerRun(1000, func() {
		b.Out.Buf = b.Out.Buf[:0]
		b.Cmd.Do(&b.Ctx)
	})
	require.Less(t, allocs, 1.0)
}

func TestReadingAndAcknowledgingAllocatesOnlyThePendingRecord(t *testing.T) {
	b := commandtest.New(t)
	for i := range 60 {
		b.Line(t, "XADD s "+strconv.Itoa(i+1)+"-1 field value")
	}
	b.Line(t, "XGROUP CREATE s g 0")
	b.Line(t, "XREADGROUP GROUP g c COUNT 1 STREAMS s >")
	g := b.G.Peek(0, []byte("s")).Stream().Group([]byte("g"))
	read, readArgs := b.Cmd, b.Args
	ack := commandtest.Named(t, "xack")
	ackArgs := [][]byte{[]byte("xack"), []byte("s"), []byte("g"), nil}
	var id []byte
	allocs := testing.AllocsPerRun(50, func() {
		b.Out.Buf = b.Out.Buf[:0]
		b.Args = readArgs
		read.Do(&b.Ctx)
		id = g.LastID.Append(id[:0])
		ackArgs[3] = id
		b.Args = ackArgs
		ack.Do(&b.Ctx)
	})
	require.LessOrEqual(t, allocs, 1.0)
}

func TestPlusReadsTheLastEntryThatIsLeft(t *testing.T) {
	b := commandtest.New(t)
	last := func(id string) string {
		return "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n" + id + "\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
	}
	require.Equal(t, "*-1\r\n", b.Line(t, "XREAD STREAMS s +"))
	for _, id := range []string{"0-1", "1-0", "2-0"} {
		b.Line(t, "XADD s "+id+" f v")
		require.Equal(t, last(id), b.Line(t, "XREAD STREAMS s +"))
	}
	require.Equal(t, last("2-0"), b.Line(t, "XREAD COUNT 5 STREAMS s +"))
	b.Line(t, "XDEL s 2-0")
	require.Equal(t, last("1-0"), b.Line(t, "XREAD STREAMS s +"))
	b.Line(t, "XTRIM s MAXLEN 0")
	require.Equal(t, "*-1\r\n", b.Line(t, "XREAD STREAMS s +"))
	b.Line(t, "XGROUP CREATE s g 0")
	require.Equal(t, "-"+string(errPlusInGroup)+"\r\n", b.Line(t, "XREADGROUP GROUP g c STREAMS s +"))
}

func TestAFailedCommandLeavesNoStream(t *testing.T) {
	for _, line := range []string{
		"XADD s 0-0 f v",
		"XADD s NOMKSTREAM 1-1 f v",
		"XADD s MAXLEN -1 1-1 f v",
		"XGROUP CREATE s g abc MKSTREAM",
		"XGROUP CREATE s g 0",
		"XSETID s 1-1",
		"XTRIM s MAXLEN 0",
	} {
		b := commandtest.New(t)
		b.Line(t, line)
		require.Nil(t, b.G.Peek(0, []byte("s")), line)
	}
}

func TestWhoReadsOrClaimsIsCreated(t *testing.T) {
	for line, creates := range map[string]bool{
		"XREADGROUP GROUP g new STREAMS s >":        true, // nothing is new
		"XREADGROUP GROUP g new STREAMS s none > >": false,

		"XREADGROUP GROUP g new CLAIM 0 STREAMS s >":     true,
		"XREADGROUP GROUP g new CLAIM 99999 STREAMS s >": true,

		"XREADGROUP GROUP g new STREAMS s 0":    true,
		"XCLAIM s g new 0 1-1":                  true,
		"XCLAIM s g new 0 5-5":                  true,
		"XCLAIM s g new 0 5-5 LASTID 7-7":       true,
		"XCLAIM s g new 99999 1-1":              true,
		"XCLAIM s g new 0 2-2":                  true,
		"XCLAIM s g new 0 2-2 FORCE":            true,
		"XAUTOCLAIM s g new 0 0":                true,
		"XAUTOCLAIM s g new 99999 0":            true,
		"XAUTOCLAIM s g new 0 2":                true,
		"XREADGROUP GROUP none new STREAMS s >": false,
		"XREADGROUP GROUP g new STREAMS s x":    false,
		"XCLAIM s g new 0 1-1 NOPE":             false,
		"XAUTOCLAIM s g new 0 0 COUNT 0":        false,
	} {
		b := commandtest.New(t)
		b.Line(t, "XADD s 1-1 f v")
		b.Line(t, "XGROUP CREATE s g 0")
		b.Line(t, "XREADGROUP GROUP g old STREAMS s >")
		b.Line(t, "XADD s 2-2 f v")
		b.Line(t, "XGROUP SETID s g 2-2")
		b.Line(t, line)
		g := b.G.Peek(0, []byte("s")).Stream().Group([]byte("g"))
		require.Equal(t, creates, g.Consumer([]byte("new")) != nil, line)
	}
}

func TestAutoclaimTellsWhereToGoOnAndWhatIsGone(t *testing.T) {
	b := commandtest.New(t)
	for _, line := range []string{
		"XADD s 1-1 f v", "XADD s 2-2 f v", "XADD s 3-3 f v",
		"XGROUP CREATE s g 0", "XREADGROUP GROUP g old STREAMS s >", "XDEL s 1-1",
	} {
		b.Line(t, line)
	}
	require.Equal(t, "*3\r\n$3\r\n3-3\r\n*1\r\n$3\r\n2-2\r\n*1\r\n$3\r\n1-1\r\n",
		b.Line(t, "XAUTOCLAIM s g new 0 - COUNT 2 JUSTID"))
	require.Equal(t, "*3\r\n$3\r\n0-0\r\n*1\r\n*2\r\n$3\r\n3-3\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n*0\r\n",
		b.Line(t, "XAUTOCLAIM s g new 0 3-3"))
}

func TestReadersInAScriptDoNotBlock(t *testing.T) {
	b := commandtest.New(t)
	b.NoBlock = true
	require.Equal(t, "*-1\r\n", b.Line(t, "XREAD BLOCK 0 STREAMS s $"))
	b.Origin = command.FromScript
	require.Equal(t, "*-1\r\n", b.Line(t, "XREAD BLOCK 0 STREAMS s $"))
	require.Equal(t, "-ERR timeout is not an integer or out of range\r\n", b.Line(t, "XREAD BLOCK x STREAMS s $"))
}

func TestAConsumerNamedStreamsMeetsNoKeyOutsideTheGuard(t *testing.T) {
	ks := engine.New(engine.Options{Shards: 16})
	defer ks.Close()
	c := &commandtest.Ctx{}
	c.G, c.W = &c.Guard, &c.Out
	cmd := commandtest.Named(t, "xreadgroup")
	cmd = &command.Command{Name: cmd.Name, Keys: cmd.Keys, Do: cmd.Do, Lock: command.LockKeys}
	for _, line := range []string{
		"XREADGROUP NOACK GROUP g STREAMS STREAMS k >",
		"XREADGROUP NOACK GROUP STREAMS c STREAMS k >",
		"XREADGROUP COUNT 1 GROUP STREAMS STREAMS STREAMS a b > >",
		"XREADGROUP GROUP STREAMS STREAMS STREAMS a b > >",
	} {
		var args [][]byte
		for _, w := range strings.Fields(line) {
			args = append(args, []byte(w))
		}
		c.Guard.Lock(ks, cmd.Shards(ks, args), 1_000_000)
		require.NotPanics(t, func() {
			c.Call(cmd, strings.Fields(line)...)
		}, line)
		c.Guard.Unlock()
		require.Equal(t, byte('-'), c.Out.Buf[0])
	}
}

// Random arguments must never cause a panic, and every call must write exactly one reply.
func TestAnyArgumentsOfStreamCommandsGiveOneReply(t *testing.T) {
	words := []string{"s", "none", "str", "g", "c", "d", "0", "1", "-1", "5", "1-1", "2-2", "3-*", "*", "-", "+", "$",
		">", "(1", "abc", "~", "=",
		"MAXLEN", "MINID", "LIMIT", "NOMKSTREAM", "COUNT", "BLOCK", "STREAMS", "GROUP", "NOACK", "IDLE", "TIME",
		"RETRYCOUNT", "FORCE", "JUSTID",
		"LASTID", "MKSTREAM", "KEEPREF", "DELREF", "ACKED", "CLAIM", "ENTRIESREAD", "ENTRIESADDED", "MAXDELETEDID", "FULL",
		"18446744073709551615-18446744073709551615",
		"9223372036854775807", "-9223372036854775808", ""}
	var all []*command.Command
	for _, group := range [][]*command.Command{streamCommands, xgroupCommands, xinfoCommands} {
		for _, cmd := range group {
			if cmd.Do != nil {
				all = append(all, cmd)
			}
		}
	}
	testseed.Check(t, func(rt *rapid.T) {
		b := commandtest.New(t)
		defer b.Guard.Unlock()
		b.NoBlock = true
		b.Out.Proto = rapid.IntRange(2, 3).Draw(rt, "proto")
		b.G.CreateString(0, []byte("str"), []byte("v"))
		b.Line(t, "XADD s 1-1 f v")
		b.Line(t, "XGROUP CREATE s g 0")
		for range 30 {
			cmd := rapid.SampledFrom(all).Draw(rt, "command")
			line := append(strings.Split(cmd.Name, "|"), rapid.SliceOfN(rapid.SampledFrom(words), 0, 9).Draw(rt, "words")...)
			if !cmd.ArityOK(len(line)) {
				continue
			}
			reply := b.Call(cmd, line...)
			require.Equal(rt, "", afterReply(rt, reply), "%q", line)
		}
	})
}

// afterReply returns what follows the first reply in s.
func afterReply(t require.TestingT, s string) string {
	head, rest, ok := strings.Cut(s, "\r\n")
	require.True(t, ok, "no reply in %q", s)
	n, _ := strconv.Atoi(head[1:])
	switch head[0] {
	case '$':
		if n >= 0 {
			rest = rest[n+2:]
		}
	case '%':
		n *= 2
		fallthrough
	case '*':
		for range max(n, 0) {
			rest = afterReply(t, rest)
		}
	}
	return rest
}

// The IDs that XADD chooses must grow, whatever the clock and earlier IDs are.
func TestIDsGivenOutByTheServerGrow(t *testing.T) {
	testseed.Check(t, func(rt *rapid.T) {
		b := commandtest.New(t)
		defer b.Guard.Unlock()
		last := streams.ID{}
		for range 20 {
			ms := rapid.Uint64Range(999_990, 1_000_010).Draw(rt, "ms")
			arg := rapid.SampledFrom([]string{"*", "MS-*", "MS", "MS-5"}).Draw(rt, "form")
			reply := b.Line(t, "XADD s "+strings.ReplaceAll(arg, "MS", strconv.FormatUint(ms, 10))+" f v")
			if reply[0] == '-' {
				require.NotEqual(rt, "*", arg)
				require.Equal(rt, "-"+streams.ErrIDTooSmall.Error()+"\r\n", reply)
				continue
			}
			id, ok := streams.ParseID([]byte(strings.Split(reply, "\r\n")[1]), 0)
			require.True(rt, ok)
			require.True(rt, last.Less(id), "%v after %v", id, last)
			last = id
		}
	})
}
