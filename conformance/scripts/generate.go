package scripts

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// generator makes random calls of the libraries.
type generator struct{ rnd *rand.Rand }

func newGenerator(seed uint64) *generator { return &generator{rand.New(rand.NewPCG(seed, 0x5c))} }

func (g *generator) chance(percent int) bool { return g.rnd.IntN(100) < percent }

func (g *generator) pick(choices ...string) string { return choices[g.rnd.IntN(len(choices))] }

// call returns a random call.
func (g *generator) call() expr {
	makers := []func() call{g.encode, g.decode, g.roundTrip, g.configure, g.pack, g.unpack, g.structPack, g.structUnpack,
		g.structSize,
		g.bitwise, g.format, g.format, g.find, g.find, g.substitute, g.toNumber, g.toNumber, g.toString, g.strings,
		g.mathematics, g.lists}
	c := makers[g.rnd.IntN(len(makers))]()
	switch c.function {
	case "f", "unpack", "table.concat": // with other tables the results depend on the length of a table with holes
		return c
	}
	if g.chance(3) && len(c.args) > 0 {
		c.args[g.rnd.IntN(len(c.args))] = g.anything()
	}
	if g.chance(2) && len(c.args) > 0 {
		c.args = c.args[:len(c.args)-1]
	}
	if g.chance(2) {
		c.args = append(c.args, g.anything())
	}
	switch {
	case g.chance(10):
		c.form = protected
	case g.chance(10) && strings.HasPrefix(c.function, "string.") && len(c.args) > 0:
		if _, ok := c.args[0].(text); ok {
			c.form = method
		}
	}
	return c
}

// anything returns a value of any type.
func (g *generator) anything() expr {
	switch g.rnd.IntN(8) {
	case 0:
		return atom("nil")
	case 1:
		return atom(g.pick("true", "false"))
	case 2:
		return g.number()
	case 3:
		return g.numberText()
	case 4:
		return text(g.bytes(g.rnd.IntN(10)))
	case 5:
		return g.value(2)
	case 6:
		return atom("cjson.null")
	}
	return atom("function() end")
}

// edges are numbers near which conversions change behaviour.
var edges = []float64{0, 1, 2, 10, 15, 16, 31, 32, 99, 100, 127, 128, 255, 256, 1000, 32767, 32768, 65535, 65536,
	1 << 24, 1<<31 - 1, 1 << 31,
	1<<32 - 1, 1 << 32, 1 << 51, 1 << 52, 1 << 53, 1e14, 1e15, 1e16, 1e17, 1 << 62, 1 << 63, 1 << 64, 1e20, 1e22, 1e100,
	math.MaxFloat64,
	5e-324, 1e-5, 1e-4, 0.1, 0.5, 1.5, 2.5, 1.0 / 3, math.MaxFloat32, 1e-320, 123456789012345, 99999999999999.5,
	0.00001234567890123456}

func (g *generator) float() float64 {
	var f float64
	switch g.rnd.IntN(6) {
	case 0:
		f = edges[g.rnd.IntN(len(edges))]
	case 1:
		f = edges[g.rnd.IntN(len(edges))] + float64(g.rnd.IntN(5)-2)
	case 2:
		f = float64(g.rnd.IntN(300))
	case 3:
		f = float64(g.rnd.Uint64() >> g.rnd.IntN(64))
	case 4:
		f = math.Trunc(g.rnd.Float64()*1e6) / 1e3
	default:
		for f = math.Float64frombits(g.rnd.Uint64()); f != f || math.IsInf(f, 0); f = math.Float64frombits(g.rnd.Uint64()) {
		}
		return f
	}
	if f != 0 && g.chance(35) {
		f = -f
	}
	return f
}

// number returns a number that Lua's parser reads the same everywhere. Negative zero has no literal, because Lua 5.1
// identifies it with the zero that occurred first in a script.
func (g *generator) number() expr {
	switch g.rnd.IntN(25) {
	case 0:
		return atom("1/0")
	case 1:
		return atom("-1/0")
	case 2:
		return atom("0/0")
	}
	return atom(literal(g.float()))
}

func literal(f float64) string {
	if f == 0 {
		return "0"
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}

// small returns an integer suitable for positions and sizes.
func (g *generator) small() expr {
	if g.chance(8) {
		return g.number()
	}
	if g.chance(5) {
		return text(strconv.Itoa(g.rnd.IntN(9)))
	}
	return atom(strconv.Itoa(g.rnd.IntN(16) - 5))
}

// numberText returns a string that is a number, or almost one.
func (g *generator) numberText() expr {
	s := ""
	switch g.rnd.IntN(8) {
	case 0:
		s = g.pick("0x", "0X", "-0x", "+0x") + strconv.FormatUint(g.rnd.Uint64()>>g.rnd.IntN(64), 16)
	case 1:
		s = g.pick("", "-", "+") + g.pick("inf", "nan", "Infinity", "NAN(12)", "nan(", "infi", "INF", "na")
	case 2:
		s = "0x" + g.pick("", "1", ".8", "a.", "F.f") + g.pick("", "p", "p3", "P-2", "p+", "e5")
	case 3:
		s = strings.Repeat(g.pick("0", "9", "12"), g.rnd.IntN(30)) +
			g.pick("", ".", "."+strings.Repeat("7", g.rnd.IntN(30))) + g.pick("", "e", "e5", "E-30", "e+400")
	case 4:
		s = g.pick("-", "+", "--", "") + g.pick(".", ".5", "5.", "1e", "1e+", "1_0", "1d", "08", "1x", "")
	default:
		s = strconv.FormatFloat(g.float(), "gef"[g.rnd.IntN(3)], g.rnd.IntN(19)-1, 64)
	}
	if g.chance(20) {
		s = g.pick(" ", "\t", "\n\v", "\f\r", "") + s + g.pick(" ", "\t ", "\x00", "\x00x", " x", "\xa0")
	}
	if g.chance(10) {
		s = string(g.mutate([]byte(s), "0123456789.eExX+-pPnaif \x00"))
	}
	return text(s)
}

func (g *generator) bytes(n int) string {
	b := make([]byte, n)
	for i := range b {
		switch g.rnd.IntN(10) {
		case 0:
			b[i] = byte(g.rnd.IntN(256))
		case 1:
			b[i] = g.pick("\x00", "\"", "\\", "\n", "\r", "/", "%", "\x7f", "\xff", "\t")[0]
		default:
			b[i] = "abcxyzABC0123 .,-_()[]"[g.rnd.IntN(22)]
		}
	}
	return string(b)
}

// mutate changes a few bytes; new ones come from the alphabet or are random.
func (g *generator) mutate(b []byte, alphabet string) []byte {
	for range 1 + g.rnd.IntN(3) {
		c := alphabet[g.rnd.IntN(len(alphabet))]
		if g.chance(15) {
			c = byte(g.rnd.IntN(256))
		}
		at := g.rnd.IntN(len(b) + 1)
		switch op := g.rnd.IntN(4); {
		case op == 0:
			b = append(b[:at:at], append([]byte{c}, b[at:]...)...)
		case at == len(b):
		case op == 1:
			b = append(b[:at:at], b[at+1:]...)
		case op == 2:
			b[at] = c
		case g.chance(50):
			b = b[:at]
		}
	}
	return b
}

// value returns a value to encode. A table has a list or one key, so its elements have only one possible order.
func (g *generator) value(depth int) expr {
	kinds := 6
	if depth > 0 {
		kinds = 9
	}
	switch g.rnd.IntN(kinds) {
	case 0, 1:
		return g.number()
	case 2, 3:
		return text(g.bytes(g.rnd.IntN(12)))
	case 4:
		return atom(g.pick("true", "false"))
	case 5:
		return atom(g.pick("nil", "cjson.null", "cjson.null", "function() end"))
	case 6:
		return table{{g.key(), g.value(depth - 1)}}
	}
	var t table
	n := g.rnd.IntN(6)
	if g.chance(10) {
		n = g.rnd.IntN(40)
	}
	for range n {
		t = append(t, field{nil, g.value(depth - 1)})
	}
	return t
}

// plain returns a value that can be encoded, with tables of several keys.
func (g *generator) plain(depth int) expr {
	kinds := 3
	if depth > 0 {
		kinds = 5
	}
	switch g.rnd.IntN(kinds) {
	case 0:
		return atom(literal(g.float()))
	case 1:
		return text(g.bytes(g.rnd.IntN(12)))
	case 2:
		return atom(g.pick("true", "false", "cjson.null"))
	}
	var t table
	for range g.rnd.IntN(5) {
		t = append(t, field{nil, g.plain(depth - 1)})
	}
	for range g.rnd.IntN(5) {
		t = append(t, field{text("k" + g.bytes(g.rnd.IntN(4))), g.plain(depth - 1)})
	}
	return t
}

// key returns a possible key of a table. Large positive integers would make long arrays: of the table in the
// interpreter under test, and of its JSON in both.
func (g *generator) key() expr {
	for {
		key := g.value(0)
		if key == expr(atom("nil")) || key == expr(atom("0/0")) {
			continue
		}
		if a, ok := key.(atom); ok {
			if f, err := strconv.ParseFloat(string(a), 64); err == nil && f > 1e5 && f == math.Trunc(f) && f < 1<<31 {
				continue
			}
		}
		return key
	}
}

// settings returns statements that create a JSON library c with random settings.
func (g *generator) settings() []string {
	list := []string{"local c=cjson.new()"}
	for range g.rnd.IntN(4) {
		list = append(list, g.pick("c.encode_sparse_array(true)", "c.encode_sparse_array(false,0)",
			"c.encode_sparse_array(true,1,3)",
			"c.encode_max_depth("+strconv.Itoa(1+g.rnd.IntN(4))+")", "c.decode_max_depth("+strconv.Itoa(1+g.rnd.IntN(4))+")",
			"c.encode_number_precision("+strconv.Itoa(1+g.rnd.IntN(14))+")", "c.encode_keep_buffer(false)",
			`c.encode_invalid_numbers("null")`, "c.encode_invalid_numbers(true)", "c.decode_invalid_numbers(false)"))
	}
	return list
}

// json returns a call of a function of the JSON library, perhaps with settings.
func (g *generator) json(function string, args ...expr) call {
	if g.chance(40) {
		return call{before: g.settings(), function: "c." + function, args: args}
	}
	return call{function: "cjson." + function, args: args}
}

func (g *generator) encode() call {
	if g.chance(10) { // sparse arrays
		n := strconv.Itoa(1 + g.rnd.IntN(30))
		t := table{{atom(n), g.value(0)}}
		for range g.rnd.IntN(4) {
			t = append(t, field{nil, atom("1")})
		}
		if len(t) > 1 { // if it becomes an object, the order of its keys is undefined
			return call{before: []string{"local c=cjson.new()"}, function: "c.encode", args: []expr{t}}
		}
		return g.json("encode", t)
	}
	return g.json("encode", g.value(4))
}

func (g *generator) roundTrip() call {
	if g.chance(50) {
		return call{function: "cjson.decode", args: []expr{call{function: "cjson.encode", args: []expr{g.plain(3)}}}}
	}
	return call{function: "cmsgpack.unpack", args: []expr{call{function: "cmsgpack.pack",
		args: []expr{g.plain(3), g.plain(1)}}}}
}

func (g *generator) configure() call {
	functions := []string{"encode_sparse_array", "encode_max_depth", "decode_max_depth", "encode_number_precision",
		"encode_keep_buffer",
		"encode_invalid_numbers", "decode_invalid_numbers"}
	c := call{before: []string{"local c=cjson.new()"}, function: "c." + functions[g.rnd.IntN(len(functions))]}
	for range g.rnd.IntN(4) {
		switch g.rnd.IntN(5) {
		case 0:
			c.args = append(c.args, text(g.pick("on", "off", "null", "ON", "5")))
		case 1:
			c.args = append(c.args, g.anything())
		case 2:
			c.args = append(c.args, atom(g.pick("true", "false", "nil")))
		default:
			c.args = append(c.args, g.small())
		}
	}
	return c
}

const jsonAlphabet = "{}[]:,\"\\u0123456789abcdefntr+-.eE xX\x00"

func (g *generator) decode() call {
	b := []byte(g.jsonText(4))
	if g.chance(35) {
		b = g.mutate(b, jsonAlphabet)
	}
	return g.json("decode", text(b))
}

func (g *generator) jsonText(depth int) string {
	space := func() string {
		if g.chance(85) {
			return ""
		}
		return g.pick(" ", "\t", "\n", "\r\n", "  ", "\f")
	}
	kinds := 6
	if depth > 0 {
		kinds = 10
	}
	var b strings.Builder
	b.WriteString(space())
	switch kind := g.rnd.IntN(kinds); kind {
	case 0, 1:
		b.WriteString(string(g.numberText().(text)))
	case 2:
		b.WriteString(literal(g.float()))
	case 3, 4:
		b.WriteString(g.jsonString())
	case 5:
		b.WriteString(g.pick("true", "false", "null", "nul", "True", "NaN", "Infinity", "-Infinity"))
	case 6, 7:
		b.WriteByte('[')
		for i := range g.rnd.IntN(5) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(g.jsonText(depth - 1))
		}
		b.WriteString(space() + "]")
	default:
		b.WriteByte('{')
		for i := range g.rnd.IntN(4) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(space() + g.jsonString() + space() + ":" + g.jsonText(depth-1))
		}
		b.WriteString(space() + "}")
	}
	b.WriteString(space())
	return b.String()
}

func (g *generator) jsonString() string {
	var b strings.Builder
	b.WriteByte('"')
	for range g.rnd.IntN(6) {
		switch g.rnd.IntN(8) {
		case 0:
			b.WriteString(g.pick(`\n`, `\t`, `\r`, `\b`, `\f`, `\/`, `\\`, `\"`, `\u0000`, `\ud83d\ude00`, `\uD83D`, `\ude00`,
				`\uFFFF`, `\x`, `\u12`))
		case 1:
			b.WriteString(`\u` + strconv.FormatUint(0x10000+g.rnd.Uint64N(0x10000), 16)[1:])
		default:
			b.WriteByte("abcdefxyz 0123é/"[g.rnd.IntN(16)])
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (g *generator) pack() call {
	c := call{function: "cmsgpack.pack"}
	for range 1 + g.rnd.IntN(3) {
		c.args = append(c.args, g.value(4))
	}
	if g.chance(5) {
		c.args = append(c.args, call{function: "string.rep",
			args: []expr{text("a"), atom(g.pick("31", "32", "255", "256", "65535", "65536"))}})
	}
	return c
}

func (g *generator) unpack() call {
	var b []byte
	for range 1 + g.rnd.IntN(3) {
		b = g.message(b, 3, true)
	}
	if g.chance(30) {
		b = g.mutate(b, "\x00\x7f\x80\x81\x90\x91\xa0\xa1\xc0\xc1\xc2\xc4\xc7\xca\xcb\xcc\xd0\xd4\xd9\xe0\xff")
	}
	c := call{function: "cmsgpack.unpack", args: []expr{text(b)}}
	switch g.rnd.IntN(4) {
	case 0:
		c.function = "cmsgpack.unpack_one"
		if g.chance(60) {
			c.args = append(c.args, g.small())
		}
	case 1:
		c.function = "cmsgpack.unpack_limit"
		c.args = append(c.args, g.small())
		if g.chance(60) {
			c.args = append(c.args, g.small())
		}
	}
	return c
}

// message appends a value in MessagePack. Integers that may become keys are not large positive ones.
func (g *generator) message(b []byte, depth int, large bool) []byte {
	random := func(first byte, n int) []byte {
		b = append(b, first)
		for range n {
			b = append(b, byte(g.rnd.IntN(256)))
		}
		return b
	}
	kinds := 8
	if depth > 0 {
		kinds = 11
	}
	switch g.rnd.IntN(kinds) {
	case 0:
		return append(b, byte(g.rnd.IntN(128)))
	case 1:
		return append(b, 0xe0|byte(g.rnd.IntN(32)))
	case 2:
		return append(b, 0xc0+byte(g.rnd.IntN(4)))
	case 3:
		if !large {
			return random(0xcd, 2)
		}
		size := g.rnd.IntN(4)
		return random(0xcc+byte(size), 1<<size)
	case 4:
		if !large {
			return random(0xd1, 2)
		}
		size := g.rnd.IntN(4)
		return random(0xd0+byte(size), 1<<size)
	case 5:
		return random(0xca, 4)
	case 6:
		return random(0xcb, 8)
	case 7:
		s := g.bytes(g.rnd.IntN(10))
		switch g.rnd.IntN(4) {
		case 0:
			b = append(b, 0xd9, byte(len(s)))
		case 1:
			b = append(b, 0xda, 0, byte(len(s)))
		case 2:
			b = append(b, 0xdb, 0, 0, 0, byte(len(s)))
		default:
			b = append(b, 0xa0|byte(len(s)))
		}
		return append(b, s...)
	case 8:
		n := g.rnd.IntN(4)
		if g.chance(20) {
			b = append(b, 0xdc, 0, byte(n))
		} else {
			b = append(b, 0x90|byte(n))
		}
		for range n {
			b = g.message(b, depth-1, true)
		}
		return b
	}
	n := g.rnd.IntN(4)
	if g.chance(20) {
		b = append(b, 0xdf, 0, 0, 0, byte(n))
	} else {
		b = append(b, 0x80|byte(n))
	}
	for range n {
		b = g.message(b, 0, false)
		b = g.message(b, depth-1, true)
	}
	return b
}

func (g *generator) structFormat() string {
	var b strings.Builder
	for range 1 + g.rnd.IntN(6) {
		switch g.rnd.IntN(14) {
		case 0:
			b.WriteString(g.pick(">", "<", "!", " ", "!4", "!8", "!2", "!1", "!16", "!3", "!0", "!64"))
		case 1:
			b.WriteString(g.pick("i", "I") + strconv.Itoa(g.rnd.IntN(34)))
		case 2:
			b.WriteString("c" + strconv.Itoa(g.rnd.IntN(6)))
		case 3:
			b.WriteString(g.pick("bc0", "Bc0", "hc0", "c1c0"))
		case 4:
			b.WriteString(g.pick("i2147483647", "c2147483648", "q", "z", "\x00", "%", "c99", "I99999999999", "4"))
		default:
			b.WriteString(g.pick("b", "B", "h", "H", "l", "L", "T", "i", "I", "f", "d", "s", "x", "c"))
		}
	}
	return b.String()
}

func (g *generator) structPack() call {
	format := g.structFormat()
	c := call{function: "struct.pack", args: []expr{text(format)}}
	for i := range len(format) {
		switch format[i] {
		case 'c', 's':
			c.args = append(c.args, text(g.bytes(g.rnd.IntN(7))))
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I', 'f', 'd':
			if g.chance(5) {
				c.args = append(c.args, g.numberText())
			} else {
				c.args = append(c.args, g.number())
			}
		}
	}
	return c
}

func (g *generator) structUnpack() call {
	data := make([]byte, g.rnd.IntN(60))
	for i := range data {
		data[i] = byte(g.rnd.IntN(256))
		if g.chance(50) {
			data[i] = byte(g.rnd.IntN(4))
		}
	}
	c := call{function: "struct.unpack", args: []expr{text(g.structFormat()), text(data)}}
	if g.chance(40) {
		c.args = append(c.args, g.small())
	}
	return c
}

func (g *generator) structSize() call {
	return call{function: "struct.size", args: []expr{text(g.structFormat())}}
}

func (g *generator) bitwise() call {
	c := call{function: "bit." + g.pick("tobit", "tohex", "bnot", "band", "bor", "bxor", "lshift", "rshift", "arshift",
		"rol", "ror", "bswap")}
	for range 1 + g.rnd.IntN(3) {
		switch g.rnd.IntN(6) {
		case 0:
			c.args = append(c.args, g.small())
		case 1:
			c.args = append(c.args, g.numberText())
		default:
			c.args = append(c.args, g.number())
		}
	}
	return c
}
