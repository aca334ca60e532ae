package resp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parseAll feeds input in pieces of the given size and returns the commands, and the error that ended them.
func parseAll(p *Parser, input string, piece int) (commands []string, err error) {
	var buf []byte
	for len(input) > 0 {
		n := min(piece, len(input))
		buf = append(buf, input[:n]...)
		input = input[n:]
		for len(buf) > 0 {
			args, n, err := p.Next(buf, nil)
			if err != nil {
				return commands, err
			}
			if n == 0 {
				break
			}
			if len(args) > 0 {
				commands = append(commands, fmt.Sprintf("%q", args))
			}
			buf = buf[n:]
		}
	}
	return commands, nil
}

func TestParserGivesTheSameForEverySplitOfTheInput(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	for _, test := range []struct {
		input    string
		commands []string
		err      string
	}{
		{input: "*1\r\n$4\r\nPING\r\n", commands: []string{`["PING"]`}},
		{input: "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n", commands: []string{`["ECHO" ""]`, `["PING"]`}},
		{input: "*2\r\n$3\r\nGET\r\n$2\r\n\r\n\r\n", commands: []string{`["GET" "\r\n"]`}},
		{input: "*0\r\n*-1\r\n*-7\r\n*1\r\n$1\r\na\r\n", commands: []string{`["a"]`}},
		{input: "\r\n\nPING\r\n  set  a\tb \n", commands: []string{`["PING"]`, `["set" "a" "b"]`}},
		{input: `set "a\x41\n\"" 'it\'s \n' ""` + "\r\n", commands: []string{`["set" "aA\n\"" "it's \\n" ""]`}},
		{input: "$3\r\n", commands: []string{`["$3"]`}},
		{input: "*1\r\n$4\r\nPINGxx*2\rx$1\r\x00a--$0\r\n++", commands: []string{`["PING"]`, `["a" ""]`}},
		{input: "a\vb 'c'\f\"d\"\r\n", commands: []string{`["a\vb" "c" "d"]`}},
		{input: "PING\r\nPING\x00\r\nPING\r\n", commands: []string{`["PING"]`}},
		{input: "*1\x00\r\n$1\r\na\r\n"},
		{input: "PING \x00\r\n" + long, err: "Protocol error: too big inline request"},
		{input: "*1\r\n\xe9\r\n", err: "Protocol error: expected '$', got '\xe9'"},
		{input: "set \"a\r\n", err: "Protocol error: unbalanced quotes in request"},
		{input: "set \"a\"b\r\n", err: "Protocol error: unbalanced quotes in request"},
		{input: "*a\r\n", err: "Protocol error: invalid multibulk length"},
		{input: "*+1\r\n", err: "Protocol error: invalid multibulk length"},
		{input: "*2147483648\r\n", err: "Protocol error: invalid multibulk length"},
		{input: "*1\r\n$-1\r\n", err: "Protocol error: invalid bulk length"},
		{input: "*1\r\n$-2\r\n", err: "Protocol error: invalid bulk length"},
		{input: "*2\r\n$1\r\na\r\n$-2\r\nxxxx", err: "Protocol error: invalid bulk length"},
		{input: "*1\r\n$\r\n\r\n", err: "Protocol error: invalid bulk length"},
		{input: "*2\r\n$\r\n\r\n$01\r\na\r\n", err: "Protocol error: invalid bulk length"},
		{input: "*1\r\n$01\r\na\r\n", err: "Protocol error: invalid bulk length"},
		{input: "*01\r\n$1\r\na\r\n", err: "Protocol error: invalid multibulk length"},
		{input: "*1\r\n$1x\r\n", err: "Protocol error: invalid bulk length"},
		{input: "*1\r\n$2000000\r\n", err: "Protocol error: invalid bulk length"},
		{input: "*1\r\nPING\r\n", err: "Protocol error: expected '$', got 'P'"},
		{input: "*1\r\n:1\r\n", err: "Protocol error: expected '$', got ':'"},
		{input: "*" + long, err: "Protocol error: too big mbulk count string"},
		{input: "*1\r\n$" + long, err: "Protocol error: too big bulk count string"},
		{input: long, err: "Protocol error: too big inline request"},
	} {
		for _, piece := range []int{1, 2, 3, 7, 1 << 20} {
			if len(test.input) > 1000 && piece < 100 {
				piece *= 5000
			}
			p := &Parser{MaxBulk: 1 << 20}
			commands, err := parseAll(p, test.input, piece)
			name := fmt.Sprintf("%.40q in pieces of %d", test.input, piece)
			require.Equal(t, test.commands, commands, name)
			if test.err == "" {
				require.NoError(t, err, name)
			} else {
				require.EqualError(t, err, test.err, name)
			}
		}
	}
}

func TestParserRefusesLongArgumentsThatArriveAtOnce(t *testing.T) {
	p := &Parser{MaxBulk: 10}
	_, err := parseAll(p, "*1\r\n$11\r\nhello world\r\n", 1000)
	require.EqualError(t, err, "Protocol error: invalid bulk length")
}

func TestParserLimitsUnauthenticatedClients(t *testing.T) {
	p := &Parser{MaxBulk: 1 << 20, Unauthenticated: true}
	_, err := parseAll(p, "*11\r\n", 100)
	require.EqualError(t, err, "Protocol error: unauthenticated multibulk length")
	p = &Parser{MaxBulk: 1 << 20, Unauthenticated: true}
	_, err = parseAll(p, "*1\r\n$16385\r\n", 100)
	require.EqualError(t, err, "Protocol error: unauthenticated bulk length")
	p = &Parser{MaxBulk: 1 << 20, Unauthenticated: true}
	commands, err := parseAll(p, "*1\r\n$4\r\nPING\r\n", 100)
	require.NoError(t, err)
	require.Equal(t, []string{`["PING"]`}, commands)
}

func TestFloatsPrintInTheirShortestForm(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", math.Copysign(0, -1): "-0", 1: "1", -1.5: "-1.5", 0.1: "0.1", 3.3: "3.3", 1e17: "100000000000000000",
		-1e18: "-1000000000000000000", 4e18: "4000000000000000000", 1e19: "1e+19", 1.25e19: "1.25e+19",
		123456789012345680: "123456789012345680", 99999999999999984: "99999999999999984",
		1e20: "1e+20", 1.5e300: "1.5e+300", 1e-7: "1e-7", 3e-6: "0.000003", -2e-5: "-0.00002", 1.5e-10: "1.5e-10",
		0.0001: "0.0001", 123456789.12345679: "1.2345678912345679e+8", 0.30000000000000004: "0.30000000000000004",
		123456.789: "123456.789", 1234567890.125: "1234567890.125",
		math.Inf(1): "inf", math.Inf(-1): "-inf", math.MaxFloat64: "1.7976931348623157e+308", 5e-324: "5e-324",
	} {
		require.Equal(t, want, string(AppendFloat(nil, f)))
	}
}

func TestIntegersAreReadStrictly(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "-1": -1, "9223372036854775807": math.MaxInt64,
		"-9223372036854775808": math.MinInt64} {
		n, ok := ParseInt([]byte(in))
		require.True(t, ok, in)
		require.Equal(t, want, n)
	}
	for _, in := range []string{"", "-", "+1", "01", "-0", " 1", "1 ", "1a", "9223372036854775808",
		"-9223372036854775809", "99999999999999999999", "0x1"} {
		_, ok := ParseInt([]byte(in))
		require.False(t, ok, in)
	}
}

func TestFloatsAreReadAsByStrtod(t *testing.T) {
	for in, want := range map[string]float64{"1": 1, "+1.5": 1.5, ".5": .5, "5.": 5, "0x10": 16, "0x1p4": 16,
		"inf": math.Inf(1), "-INFINITY": math.Inf(-1), "1e3": 1000, "0e5": 0} {
		f, ok := ParseFloat([]byte(in))
		require.True(t, ok, in)
		require.Equal(t, want, f, in)
	}
	for _, in := range []string{"", " 1", "1 ", "nan", "1_000", "1e400", "1e-400", "abc", "1e", "--1", "0x"} {
		_, ok := ParseFloat([]byte(in))
		require.False(t, ok, in)
	}
}

func TestWriterUsesTheTypesOfTheProtocol(t *testing.T) {
	write := func(proto int) string {
		w := &Writer{Proto: proto}
		w.Map(1)
		w.Set(1)
		w.Push(1)
		w.Double(1.5)
		w.Bool(true)
		w.Bool(false)
		w.Null()
		w.NullArray()
		w.Verbatim("txt", "hi")
		return string(w.Buf)
	}
	require.Equal(t, "*2\r\n*1\r\n*1\r\n$3\r\n1.5\r\n:1\r\n:0\r\n$-1\r\n*-1\r\n$2\r\nhi\r\n", write(2))
	require.Equal(t, "%1\r\n~1\r\n>1\r\n,1.5\r\n#t\r\n#f\r\n_\r\n_\r\n=6\r\ntxt:hi\r\n", write(3))
}

func TestDeferredHeadersEndUpInFront(t *testing.T) {
	for _, n := range []int{0, 1, 10, 1000} {
		w := &Writer{Proto: 2}
		w.Simple("before")
		m := w.Defer()
		for i := range n {
			w.Int(int64(i))
		}
		w.EndArray(m, n)
		want := &Writer{Proto: 2}
		want.Simple("before")
		want.Array(n)
		for i := range n {
			want.Int(int64(i))
		}
		require.Equal(t, string(want.Buf), string(w.Buf))
	}
}

func TestErrorsStayOnOneLine(t *testing.T) {
	w := &Writer{}
	w.Error("ERR a\r\nb")
	require.Equal(t, "-ERR a  b\r\n", string(w.Buf))
}

func TestStatusRepliesStayOnOneLine(t *testing.T) {
	for status, want := range map[string]string{"a\r\nb": `a\r\nb`, "\n": `\n`, "\r": `\r`, "PONG": "PONG", "": ""} {
		w := &Writer{}
		w.Simple(status)
		require.Equal(t, "+"+want+"\r\n", string(w.Buf))
	}
}

func FuzzParser(f *testing.F) {
	for _, seed := range []string{"*1\r\n$4\r\nPING\r\n", "*2\r\n$-2\r\n", "set \"a\\x4", "*-1\r\n",
		"PING\r\n*1\r\n$0\r\n\r\n", "*1\r\n$3\r\nabcd\r\n"} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, input []byte, piece int) {
		if piece <= 0 || piece > len(input) {
			piece = len(input) + 1
		}
		whole, err1 := parseAll(&Parser{MaxBulk: 1000}, string(input), len(input)+1)
		pieces, err2 := parseAll(&Parser{MaxBulk: 1000}, string(input), piece)
		require.Equal(t, whole, pieces)
		require.Equal(t, err1 == nil, err2 == nil, "%v / %v", err1, err2)
	})
}

func FuzzFloat(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, bits uint64) {
		v := math.Float64frombits(bits)
		if math.IsNaN(v) {
			return
		}
		back, err := strconv.ParseFloat(string(AppendFloat(nil, v)), 64)
		require.NoError(t, err)
		require.Equal(t, v, back)
	})
}

func BenchmarkParser(b *testing.B) {
	input := []byte("*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000001\r\n$64\r\n" + strings.Repeat("x", 64) + "\r\n")
	p := &Parser{MaxBulk: 1 << 29}
	var args [][]byte
	b.ReportAllocs()
	for b.Loop() {
		args, _, _ = p.Next(input, args)
	}
}

// A caller that receives the last argument separately gets the same arguments.
func TestLastArgumentApart(t *testing.T) {
	command := "*4\r\n$3\r\nSET\r\n$0\r\n\r\n$11\r\nhello world\r\n$8\r\nthe last\r\n"
	start := strings.Index(command, "the last")
	p := Parser{MaxBulk: 1 << 20}
	for n := range command {
		args, taken, err := p.Next([]byte(command[:n]), nil)
		require.NoError(t, err)
		require.Empty(t, args)
		require.Zero(t, taken)
		at, size, ok := p.Last()
		require.Equal(t, n >= start, ok, "after %d bytes", n)
		if !ok {
			continue
		}
		require.Equal(t, start, at)
		require.Equal(t, len("the last"), size)
		args = p.Join([]byte(command[:at]), []byte("other"), nil)
		require.Equal(t, [][]byte{[]byte("SET"), {}, []byte("hello world"), []byte("other")}, args)
		require.Zero(t, p.Missing(0), "it is between commands")
		args, taken, err = p.Next([]byte(command), nil)
		require.NoError(t, err)
		require.Len(t, args, 4)
		require.Equal(t, len(command), taken)
	}
	_, _, ok := p.Last()
	require.False(t, ok)
}

// The arguments of a long command that arrived in pieces get room for all of them at once. The number that a client
// merely claims gets none.
func TestManyArgumentsGetTheirRoomAtOnce(t *testing.T) {
	const count = 50_000
	all := []byte(fmt.Sprintf("*%d\r\n", count) + strings.Repeat("$1\r\na\r\n", count))
	p := Parser{MaxBulk: 1 << 20}
	room := make([][]byte, 0, 16)
	require.LessOrEqual(t, testing.AllocsPerRun(5, func() {
		_, n, err := p.scanned(all[:len(all)-1], all, room)
		require.NoError(t, err)
		require.Equal(t, len(all), n)
	}), 4.0, "it is not moved as it grows")
}

// scanned parses a command of which only part has arrived at first.
func (p *Parser) scanned(part, all []byte, args [][]byte) ([][]byte, int, error) {
	if done, _, err := p.scan(part); done || err != nil {
		return nil, 0, err
	}
	return p.Next(all, args)
}
