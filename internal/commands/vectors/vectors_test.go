package vectors

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/commandtest"
)

// blob encodes a vector for FP32.
func blob(v ...float32) string {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return string(b)
}

func TestHostileVectorsAreRefused(t *testing.T) {
	c := commandtest.New(t)
	add, sim := commandtest.Named(t, "vadd"), commandtest.Named(t, "vsim")
	refused := "-" + string(errVector) + "\r\n"
	nan := float32(math.NaN())
	for _, words := range [][]string{
		{"FP32", blob(nan, 1), "a"}, {"FP32", blob(1, -nan), "a"}, {"VALUES", "2", "nan", "1", "a"}, {"VALUES", "0", "a", "b"},
		{"VALUES", "9223372036854775807", "1", "a"}, {"VALUES", "9223372036854775808", "1", "a"}, {"VALUES", "-1", "1", "a"},
		{"VALUES", "1e1", "1", "a"}, {"VALUES", "1", "1e400", "a"}, {"VALUES", "1", "", "a"}, {"FP32", "", "a", "CAS"},
		{"FP32", "123", "a", "CAS"}, {"REDUCE", "0", "VALUES", "1", "1", "a"}, {"REDUCE", "65537", "VALUES", "1", "1", "a"},
		{"REDUCE", "9223372036854775807", "VALUES", "1", "1", "a"}, {"REDUCE", "2", "REDUCE", "2", "VALUES", "1", "1", "a"},
		{"REDUCE", "1", "FP32", "a"}, {"FP32", strings.Repeat("\x00", 4*65537), "a", "CAS"},
		{"REDUCE", "65536", "FP32", strings.Repeat("\x00", 4*513), "a"},
	} {
		require.Equal(t, refused, c.Call(add, append([]string{"vadd", "k"}, words...)...), "%.100q", words)
	}
	require.Nil(t, c.Read([]byte("k")))
	require.Equal(t, ":1\r\n", c.Call(add, "vadd", "k", "FP32", blob(float32(math.Inf(1)), float32(math.Inf(-1))), "a", "M", "4096"))
	require.Equal(t, ":1\r\n", c.Call(add, "vadd", "k", "VALUES", "2", "1e300", "-1e-300", "b", "M", "4096", "EF", "1000000"))
	require.Equal(t, "*2\r\n$1\r\nb\r\n$1\r\na\r\n",
		c.Call(sim, "vsim", "k", "VALUES", "2", "1e308", "0", "COUNT", "9223372036854775807", "EF", "1000000"))
	require.Equal(t, "-ERR invalid EF\r\n", c.Call(sim, "vsim", "k", "VALUES", "2", "1e308", "0", "EF", "1000001"))
	require.Equal(t, refused, c.Call(add, "vadd", "other", "REDUCE", "3", "VALUES", "2", "1", "1", "a"))
	require.Equal(t, refused, c.Call(sim, "vsim", "k", "FP32", blob(nan, 1)))
	require.Equal(t, ":1\r\n", c.Call(add, "vadd", "wide", "FP32", strings.Repeat(blob(1), 65536), "a", "BIN"))
	require.Equal(t, ":1\r\n", c.Call(add, "vadd", "narrow", "REDUCE", "1", "FP32", strings.Repeat(blob(1), 100_000), "a"))
	require.Less(t, c.Read([]byte("k")).MemoryUsage(), 100_000)
}

func TestErrorsHaveOneLine(t *testing.T) {
	c := commandtest.New(t)
	c.Line(t, "VADD k VALUES 2 1 2 a")
	require.Equal(t, "-ERR syntax error in FILTER expression near: $ \r\n",
		c.Call(commandtest.Named(t, "vsim"), "vsim", "k", "ELE", "a", "FILTER", "1 ==\n$\n"))
}

func TestRandomElementsThatAreTooMany(t *testing.T) {
	c := commandtest.New(t)
	c.Line(t, "VADD k VALUES 2 1 2 a")
	const outOfRange = "-ERR value is out of range\r\n"
	require.Equal(t, outOfRange, c.Line(t, "VRANDMEMBER k -9223372036854775807"))
	require.Equal(t, outOfRange, c.Line(t, "VRANDMEMBER k -9223372036854775808"))
	require.Equal(t, commandtest.Bulks("a"), c.Line(t, "VRANDMEMBER k 9223372036854775807"))
}

func FuzzCommands(f *testing.F) {
	f.Add("VALUES", "2", "1", "-2", "e", "Q8", `{"n":1}`, ".n == 1")
	f.Add("FP32", "\x00\x00\x80\x3f\x00\x00\x80\x3f", "e", "CAS", "BIN", "M", "5", "1 in .n")
	f.Add("REDUCE", "2", "VALUES", "1", "3", "e", "NOQUANT", "not .x")
	f.Fuzz(func(t *testing.T, a, b, c1, d, e, g, attributes, expr string) {
		c := commandtest.New(t)
		for _, words := range [][]string{
			{"vadd", "k", a, b, c1, d, e}, {"vadd", "k", a, b, c1, d, e, g}, {"vadd", "k", a, b, c1, d, e, "SETATTR", attributes},
			{"vadd", "k", a, b, c1, d}, {"vsim", "k", "ELE", e, "FILTER", expr, "WITHSCORES", "WITHATTRIBS"}, {"vsim", "k", a, b, c1, d, e},
			{"vsim", "k", a, b, c1, d, "EPSILON", g, "EF", b}, {"vemb", "k", e, g}, {"vemb", "k", d, "RAW"}, {"vlinks", "k", e, "WITHSCORES"},
			{"vinfo", "k"}, {"vrange", "k", a, b, c1}, {"vrange", "k", "-", "+"}, {"vrandmember", "k", b}, {"vsetattr", "k", d, attributes},
			{"vrem", "k", e}, {"vrem", "k", d}, {"vcard", "k"},
		} {
			c.Call(commandtest.Named(t, words[0]), words...)
		}
	})
}

// BenchmarkSimilar runs VSIM among 20,000 elements of 128 dimensions.
func BenchmarkSimilar(b *testing.B) {
	c := commandtest.New(b)
	rnd := rand.New(rand.NewPCG(1, 2))
	vector := func() string {
		v := make([]float32, 128)
		for i := range v {
			v[i] = rnd.Float32()*2 - 1
		}
		return blob(v...)
	}
	add, sim := commandtest.Named(b, "vadd"), commandtest.Named(b, "vsim")
	for i := range 20_000 {
		c.Call(add, "vadd", "k", "FP32", vector(), fmt.Sprint(i), "EF", "50")
	}
	query := vector()
	b.ReportAllocs()
	for b.Loop() {
		c.Call(sim, "vsim", "k", "FP32", query)
	}
}
