package resp

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRepliesAreConverted(t *testing.T) {
	type values struct {
		i    int64
		f    float64
		b    bool
		text string
	}
	for raw, want := range map[string]values{
		":-7\r\n":              {-7, -7, true, "-7"},
		"$2\r\n10\r\n":         {10, 10, true, "10"},
		"+0\r\n":               {0, 0, false, "0"},
		"=6\r\ntxt:12\r\n":     {12, 12, true, "12"},
		",3\r\n":               {3, 3, true, "3"},
		"(123456789012345\r\n": {123456789012345, 123456789012345, true, "123456789012345"},
	} {
		r := Reply{[]byte(raw)}
		i, err := r.Int()
		require.NoError(t, err, raw)
		f, err := r.Float()
		require.NoError(t, err, raw)
		b, err := r.Bool()
		require.NoError(t, err, raw)
		text, err := r.Text()
		require.NoError(t, err, raw)
		require.Equal(t, want, values{i, f, b, text}, raw)
		require.NoError(t, r.Err())
		require.False(t, r.IsNull())
		_, err = r.Slice()
		require.ErrorContains(t, err, "is no array", raw)
		_, err = r.Map()
		require.ErrorContains(t, err, "is no array", raw)
	}
	f, err := Reply{[]byte(",-inf\r\n")}.Float()
	require.NoError(t, err)
	require.Equal(t, math.Inf(-1), f)
	for raw, want := range map[string]int64{"#t\r\n": 1, "#f\r\n": 0} {
		i, err := Reply{[]byte(raw)}.Int()
		require.NoError(t, err)
		require.Equal(t, want, i)
		b, err := Reply{[]byte(raw)}.Bool()
		require.NoError(t, err)
		require.Equal(t, want == 1, b)
		text, err := Reply{[]byte(raw)}.Text()
		require.NoError(t, err)
		require.Equal(t, string(rune('0'+want)), text)
	}
	_, err = Reply{[]byte("$1\r\nx\r\n")}.Int()
	require.ErrorContains(t, err, "is no integer")
	_, err = Reply{[]byte("$1\r\nx\r\n")}.Float()
	require.ErrorContains(t, err, "is no number")
	_, err = Reply{[]byte("*0\r\n")}.Text()
	require.ErrorContains(t, err, "is no string or number")
}

func TestCollectionsAreSplit(t *testing.T) {
	for raw, want := range map[string][]string{
		"*0\r\n":                              {},
		"*2\r\n$1\r\na\r\n_\r\n":              {"a", ""},
		"~1\r\n:5\r\n":                        {"5"},
		"%1\r\n$1\r\nk\r\n$4\r\n\r\n\r\n\r\n": {"k", "\r\n\r\n"},
		">2\r\n+x\r\n$3\r\n*1\r\r\n":          {"x", "*1\r"},
		"*1\r\n$-1\r\n":                       {""},
		"*3\r\n,1.5\r\n#t\r\n=5\r\ntxt:a\r\n": {"1.5", "1", "a"},
	} {
		got, err := Reply{[]byte(raw)}.Texts()
		require.NoError(t, err, raw)
		require.Equal(t, want, got, raw)
	}
	nested, err := Reply{[]byte("*2\r\n*2\r\n:1\r\n%1\r\n+a\r\n*-1\r\n-ERR x\r\n")}.Slice()
	require.NoError(t, err)
	require.Len(t, nested, 2)
	require.Equal(t, Error("ERR x"), nested[1].Err())
	inner, err := nested[0].Slice()
	require.NoError(t, err)
	m, err := inner[1].Map()
	require.NoError(t, err)
	require.True(t, m["a"].IsNull())
	m, err = Reply{[]byte("*2\r\n+a\r\n:1\r\n")}.Map()
	require.NoError(t, err)
	require.Equal(t, map[string]Reply{"a": {[]byte(":1\r\n")}}, m)
	_, err = Reply{[]byte("*1\r\n+a\r\n")}.Map()
	require.ErrorContains(t, err, "is no map")
	_, err = Reply{[]byte("*1\r\n-ERR in it\r\n")}.Texts()
	require.Equal(t, Error("ERR in it"), err)
}

func TestNullsErrorsAndNothingHaveNoValue(t *testing.T) {
	for raw, want := range map[string]error{
		"": ErrNoReply, "_\r\n": ErrNull, "$-1\r\n": ErrNull, "*-1\r\n": ErrNull, "-ERR no\r\n": Error("ERR no"),
		"!6\r\nERR\r\nx\r\n": Error("ERR\r\nx"),
	} {
		r := Reply{[]byte(raw)}
		for _, err := range []error{
			second(r.Int()), second(r.Float()), second(r.Bool()), second(r.Bytes()), second(r.Text()), second(r.Slice()),
			second(r.Texts()), second(r.Map()),
		} {
			require.Equal(t, want, err, raw)
		}
		require.Equal(t, want == ErrNull, r.IsNull(), raw)
	}
}

func second[T any](_ T, err error) error { return err }

func TestMalformedRepliesAreErrors(t *testing.T) {
	for _, raw := range []string{"$9\r\nabc\r\n", "$x\r\n", "*1\r\n", "*9999999999\r\n", "?\r\n", "+no end", "\r\n",
		"%1\r\n+a\r\n", "$-2\r\n", "*1\r\n$3\r\nab"} {
		_, _, err := NextReply([]byte(raw))
		require.Error(t, err, raw)
	}
	for _, raw := range []string{"$9\r\nabc\r\n", "$x\r\n", "$-2\r\n", "+no end", "x\r\n"} {
		r := Reply{[]byte(raw)}
		r.IsNull()
		_, err := r.Text()
		require.Error(t, err, raw)
	}
	for _, raw := range []string{"*1\r\n", "*5\r\n:1\r\n", "*x\r\n", "*"} {
		_, err := Reply{[]byte(raw)}.Slice()
		require.Error(t, err, raw)
	}
}

// The expected texts are what redis-cli -3 shows.
func TestRepliesAreShownAsByRedisCli(t *testing.T) {
	for raw, want := range map[string]string{
		"":                               "(no reply)",
		"+PONG\r\n":                      "PONG",
		"-ERR a b\r\n":                   "(error) ERR a b",
		"!5\r\nERR x\r\n":                "(error) ERR x",
		":12345\r\n":                     "(integer) 12345",
		",3.141\r\n":                     "(double) 3.141",
		"(123\r\n":                       "123",
		"_\r\n":                          "(nil)",
		"$-1\r\n":                        "(nil)",
		"*-1\r\n":                        "(nil)",
		"#t\r\n":                         "(true)",
		"#f\r\n":                         "(false)",
		"$8\r\na\n\"\\\x00\xff\t\r\r\n":  `"a\n\"\\\x00\xff\t\r"`,
		"=8\r\ntxt:a\nb\n\r\n":           "a\nb\n",
		"*0\r\n":                         "(empty array)",
		"~0\r\n":                         "(empty set)",
		"%0\r\n":                         "(empty hash)",
		"~2\r\n:0\r\n:1\r\n":             "1~ (integer) 0\n2~ (integer) 1",
		"%2\r\n:0\r\n#f\r\n:1\r\n#t\r\n": "1# (integer) 0 => (false)\n2# (integer) 1 => (true)",
		"*3\r\n:1\r\n*3\r\n:2\r\n*0\r\n*2\r\n:3\r\n$1\r\nx\r\n$1\r\ny\r\n": "1) (integer) 1\n2) 1) (integer) 2\n   2) (empty array)\n" +
			"   3) 1) (integer) 3\n      2) \"x\"\n3) \"y\"",
		"*10\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n*2\r\n:10\r\n:11\r\n": " 1) (integer) 1\n 2) (integer) 2\n 3) (integer) 3\n" +
			" 4) (integer) 4\n 5) (integer) 5\n 6) (integer) 6\n 7) (integer) 7\n 8) (integer) 8\n 9) (integer) 9\n10) 1) (integer) 10\n    2) (integer) 11",
		"%1\r\n$1\r\na\r\n%1\r\n$1\r\nb\r\n:1\r\n": `1# "a" => 1# "b" => (integer) 1`,
		"*2\r\n:1\r\n": `(malformed) "*2\r\n:1\r\n"`,
	} {
		r := Reply{[]byte(raw)}
		require.Equal(t, want, r.String(), "%q", raw)
		require.Equal(t, want, fmt.Sprint(r))
		require.Equal(t, want, fmt.Sprintf("%v", &r))
	}
}

// For any bytes Reply does not panic, and a valid reply stays the same when it is written and read again.
func FuzzReply(f *testing.F) {
	for _, raw := range []string{"", "+OK\r\n", "-ERR x\r\n", ":1\r\n", "$1\r\na\r\n", "*2\r\n:1\r\n%1\r\n+a\r\n#t\r\n",
		"~1\r\n,1.5\r\n",
		"=5\r\ntxt:a\r\n", "!3\r\nERR\r\n", "(1\r\n", "_\r\n", "$-1\r\n", ">1\r\n*-1\r\n", "*2\r\n:1\r\n", "%9\r\n",
		"$5\r\na\r\n", "#\r\n"} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		_ = NewReply(input).String()
		_, _ = NewReply(input).Map()
		r, rest, err := NextReply(input)
		if err != nil {
			return
		}
		require.Equal(t, input, append(bytes.Clone(r.Encoded()), rest...))
		_, _ = r.Float()
		_, _ = r.Map()
		w := Writer{Proto: 3}
		require.NoError(t, w.Reply(r))
		require.Equal(t, r.Encoded(), w.Buf)
		w = Writer{Proto: 2}
		if w.Reply(r) != nil {
			return
		}
		_, rest, err = NextReply(w.Buf)
		require.NoError(t, err)
		require.Empty(t, rest)
	})
}
