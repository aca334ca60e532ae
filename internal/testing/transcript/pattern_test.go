package transcript

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func parseOne(t require.TestingT, text string) Pattern {
	transcript, err := Parse("test", "> X\n"+text+"\n")
	require.NoError(t, err)
	require.Len(t, transcript.Steps[0].Want, 1)
	return transcript.Steps[0].Want[0]
}

func bulks(texts ...string) Value {
	v := Value{Kind: Array}
	for _, s := range texts {
		v.Elems = append(v.Elems, Value{Kind: Bulk, Text: s})
	}
	return v
}

func TestPatternsMatchWhatTheySay(t *testing.T) {
	integer := func(s string) Value { return Value{Kind: Integer, Text: s} }
	vars := map[string]string{"id": "7"}
	for _, c := range []struct {
		pattern string
		value   Value
		want    bool
	}{
		{`+OK`, Value{Kind: Simple, Text: "OK"}, true},
		{`"OK"`, Value{Kind: Simple, Text: "OK"}, false},
		{`-ERR a b`, Value{Kind: Error, Text: "ERR a b"}, true},
		{`-5`, integer("-5"), true},
		{`100~5`, integer("95"), true},
		{`100~5`, integer("94"), false},
		{`,1.5~0.1`, Value{Kind: Double, Text: "1.55"}, true},
		{`nil`, Value{Kind: Bulk, Null: true}, true},
		{`nil`, Value{Kind: Array, Null: true}, false},
		{`nil[]`, Value{Kind: Array, Null: true}, true},
		{`null`, Value{Kind: Null}, true},
		{`""`, Value{Kind: Bulk, Null: true}, false},
		{`true`, Value{Kind: Boolean, Text: "t"}, true},
		{`"a"*3`, Value{Kind: Bulk, Text: "aaa"}, true},
		{`/^a\/b$/`, Value{Kind: Bulk, Text: "a/b"}, true},
		{`-/^WRONG/`, Value{Kind: Error, Text: "WRONGTYPE x"}, true},
		{`:/^[0-9]+$/`, integer("12"), true},
		{`*`, bulks("x"), true},
		{`*`, Value{Kind: Closed}, false},
		{`closed`, Value{Kind: Closed}, true},
		{`$id`, integer("7"), true},
		{`$id`, Value{Kind: Bulk, Text: "8"}, false},
		{`["a" "b"]`, bulks("a", "b"), true},
		{`["a" "b"]`, bulks("b", "a"), false},
		{`unordered ["a" "b" "b"]`, bulks("b", "a", "b"), true},
		{`unordered ["a" "b" "b"]`, bulks("b", "a", "a"), false},
		{`pairs ["f" "1" "g" "2"]`, bulks("g", "2", "f", "1"), true},
		{`pairs ["f" "1" "g" "2"]`, bulks("g", "1", "f", "2"), false},
		{`set["a" "b"]`, Value{Kind: Set, Elems: bulks("b", "a").Elems}, true},
		{`[+OK -"ERR x" [nil]]`, Value{Kind: Array, Elems: []Value{{Kind: Simple, Text: "OK"}, {Kind: Error, Text: "ERR x"},
			{Kind: Array, Elems: []Value{{Kind: Bulk, Null: true}}}}}, true},
	} {
		require.Equal(t, c.want, parseOne(t, c.pattern).Matches(c.value, vars), "%s against %s", c.pattern, c.value)
	}
}

func TestBadTranscriptsAreRefused(t *testing.T) {
	for _, text := range []string{`"x`, `[1`, `nill`, `:5`, `"x"*y`, `"\xg0"`, `/(/`, `unordered `, `5x`} {
		_, err := Parse("test", "> X\n"+text)
		require.Error(t, err, text)
	}
	for _, text := range []string{`+OK`, `> `, `> "x`, `> "x"y`, `@foo`, `@sleep x`, "@fresh\n+OK"} {
		_, err := Parse("test", text)
		require.Error(t, err, text)
	}
}

func TestRefreshKeepsMarkersThatHold(t *testing.T) {
	require.Equal(t, `unordered ["a" "b"]`, parseOne(t, `unordered ["a" "b"]`).Refresh(bulks("b", "a")).String())
	require.Equal(t, `unordered ["c"]`, parseOne(t, `unordered []`).Refresh(bulks("c")).String())
	require.Equal(t, `[* "new"]`, parseOne(t, `[* "old"]`).Refresh(bulks("any", "new")).String())
	require.Equal(t, `$x="v"`, parseOne(t, `$x="u"`).Refresh(Value{Kind: Bulk, Text: "v"}).String())
}

func anyValue(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		kinds := []byte{Simple, Error, Integer, Bulk, Null, Double, Boolean, BigInt, Verbatim, BulkErr}
		if depth > 0 {
			kinds = append(kinds, Array, Map, Set, Push)
		}
		v := Value{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch v.Kind {
		case Simple, Error:
			v.Text = strings.NewReplacer("\r", "", "\n", "").Replace(string(rapid.SliceOf(rapid.Byte()).Draw(t, "line")))
		case Integer, BigInt:
			v.Text = rapid.StringMatching(`-?[0-9]{1,15}`).Draw(t, "integer")
		case Double:
			v.Text = rapid.SampledFrom([]string{"1.5", "inf", "-inf", "nan", "1e+20"}).Draw(t, "double")
		case Boolean:
			v.Text = rapid.SampledFrom([]string{"t", "f"}).Draw(t, "boolean")
		case Bulk, Verbatim, BulkErr:
			v.Text = string(rapid.SliceOf(rapid.Byte()).Draw(t, "bulk"))
		case Array, Map, Set, Push:
			v.Elems = rapid.SliceOfN(anyValue(depth-1), 0, 4).Draw(t, "elems")
			if v.Kind == Map && len(v.Elems)%2 == 1 {
				v.Elems = v.Elems[1:]
			}
		}
		return v
	})
}

func TestEveryValueSurvivesTheNotation(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		v := anyValue(2).Draw(t, "value")
		p := parseOne(t, literal(v).String())
		require.True(t, p.Matches(v, map[string]string{}), v.String())
		require.Equal(t, literal(v).String(), p.String())
	})
}

func TestEveryCommandSurvivesTheNotation(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		var args []string
		for range rapid.IntRange(1, 5).Draw(t, "count") {
			args = append(args, string(rapid.SliceOf(rapid.Byte()).Draw(t, "arg")))
		}
		transcript, err := Parse("test", "> "+QuoteCommand(args)+"\n+OK\n")
		require.NoError(t, err)
		require.Equal(t, args, transcript.Steps[0].words(nil))
	})
}

// scripted is a server that answers every line of input with the next of its replies.
func scripted(replies ...string) Dialer {
	return func() (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			in := bufio.NewScanner(server)
			for _, reply := range replies {
				if !in.Scan() {
					return
				}
				server.Write([]byte(reply))
			}
		}()
		return client, nil
	}
}

func TestConnReadsOneReplyAtATime(t *testing.T) {
	dial := scripted("+OK\r\n:1\r\n$-1\r\n*-1\r\n*2\r\n$1\r\na\r\n_\r\n%1\r\n+k\r\n,1.5\r\n")
	nc, err := dial()
	require.NoError(t, err)
	c := NewConn(nc)
	c.AppendRaw("PING\n")
	require.NoError(t, c.Flush())
	for _, want := range []string{"+OK", "1", "nil", "nil[]", `["a" null]`, "map[+k ,1.5]", "closed"} {
		v, err := c.Read(time.Second)
		require.NoError(t, err)
		require.Equal(t, want, v.String())
	}
}

func TestConnRefusesBrokenReplies(t *testing.T) {
	for _, reply := range []string{"?\r\n", "$5\r\nab\r\nxyz", "*x\r\n", "$-2\r\n", "+no end", "+bare\n", "\r\n",
		strings.Repeat("*1\r\n", 1000)} {
		nc, err := scripted(reply)()
		require.NoError(t, err)
		c := NewConn(nc)
		c.AppendRaw("PING\n")
		require.NoError(t, c.Flush())
		v, err := c.Read(time.Second)
		require.Error(t, err, "%q gave %s", reply, v)
	}
}
