package scripting

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// evaluate returns the results of Lua expressions as text; or the error, with a minus.
func evaluate(t require.TestingT, e *Engine, source string, args ...string) string {
	reply := run(t, e, `
local function text(ok, ...)
	local list = {}
	for i = 1, select('#', ...) do
		list[i] = tostring((select(i, ...)))
	end
	return (ok and '' or '-') .. table.concat(list, ' ')
end
return text(pcall(function() `+source+` end))`, args...)
	_, rest, ok := strings.Cut(reply, "\r\n")
	if !ok || reply[0] != '$' {
		return reply
	}
	return strings.TrimSuffix(rest, "\r\n")
}

func TestLibrariesReplyLikeRedis(t *testing.T) {
	e := newEngine()
	for _, c := range []struct{ source, want string }{
		{"return tostring(cjson.null), type(cjson.null), cjson.null == cjson.new().null", "userdata: (nil) userdata true"},
		{"return cjson._NAME, cjson._VERSION, cmsgpack._NAME, cmsgpack._VERSION", "cjson 2.1.0 cmsgpack lua-cmsgpack 0.4.0"},
		{`return cjson.decode('[1,{"a":null}]')[2].a == cjson.null`, "true"},
		{"return cjson.encode({1, nil, 3}), cjson.encode({}), cjson.encode({a = {}})", `[1,null,3] {} {"a":{}}`},

		// Nesting.
		{"local t = {}; t[1] = t; return cjson.encode(t)", "-user_script:9: Cannot serialise, excessive nesting (1001)"},
		{"cjson.encode_max_depth(1e6); local t = {}; t[1] = t; return cjson.encode(t)",
			"-user_script:9: Cannot serialise, excessive nesting (7998)"},
		{"cjson.encode_max_depth(1e6); local t = {}; t.a = t; return cjson.encode(t)",
			"-user_script:9: Cannot serialise, excessive nesting (4000)"},
		{"return cjson.decode(('['):rep(1001))", "-user_script:9: Found too many nested data structures (1001) at character 1001"},
		{"cjson.decode_max_depth(1e6); return cjson.decode(('['):rep(1e5))",
			"-user_script:9: Found too many nested data structures (7999) at character 7999"},
		{`cjson.decode_max_depth(1e6); return cjson.decode(('{"a":'):rep(1e5))`,
			"-user_script:9: Found too many nested data structures (4000) at character 19996"},
		{"return #cmsgpack.unpack(('\\145'):rep(3999) .. '\\1')", "1"},
		{"return cmsgpack.unpack(('\\145'):rep(4000) .. '\\1')",
			"-user_script:9: stack overflow (in function mp_decode_to_lua_array)"},
		{"return cmsgpack.unpack(('\\129\\1'):rep(1e5))",
			"-user_script:9: stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)"},
		{"return select('#', cmsgpack.unpack(('\\1'):rep(7999)))", "7999"},
		{"return select('#', cmsgpack.unpack(('\\1'):rep(8000)))",
			"-user_script:9: stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)"},
		{"return select('#', struct.unpack(('b'):rep(7997), ('x'):rep(7997)))", "7998"},
		{"return struct.unpack(('b'):rep(7998), ('x'):rep(7998))", "-user_script:9: stack overflow (too many results)"},
		{"local t = {}; t[1] = t; return #cmsgpack.pack(t)", "17"},

		// Lengths that the data claims but does not have.
		{"return cmsgpack.unpack('\\221\\255\\255\\255\\255')", "-user_script:9: Missing bytes in input."},
		{"return cmsgpack.unpack('\\223\\255\\255\\255\\255\\1')", "-user_script:9: Missing bytes in input."},
		{"return cmsgpack.unpack('\\219\\255\\255\\255\\255abc')", "-user_script:9: Missing bytes in input."},
		{"return struct.unpack('c2147483647', 'abc')", "-user_script:9: bad argument #2 to 'unpack' (data string too short)"},

		// The name of the function, and the numbers of its arguments, in messages.
		{"return pcall(string.rep)", "false bad argument #1 to '?' (string expected, got no value)"},
		{"local f = string.rep; return f()", "-user_script:9: bad argument #1 to 'f' (string expected, got no value)"},
		{"return ({string.rep})[1]()", "-user_script:9: bad argument #1 to '?' (string expected, got no value)"},
		{"return ('x'):rep()", "-user_script:9: bad argument #1 to 'rep' (number expected, got no value)"},
		{"return setmetatable({}, {__index = string}):rep(1)",
			"-user_script:9: calling 'rep' on bad self (string expected, got table)"},
		{"return pcall(cjson.decode, 'x')", "false Expected value but found invalid token at character 1"},
		{"return string.gsub('a', 'a', string.rep)", "-bad argument #2 to '?' (number expected, got no value)"},

		{"math.randomseed(1); return math.random(), math.random(10), math.random(-5, 5)", "0.041630344484761 5 4"},
	} {
		require.Equal(t, c.want, evaluate(t, e, c.source), c.source)
	}
}

func TestSettingsOfJSONDoNotOutliveTheScript(t *testing.T) {
	e := newEngine()
	const show = `return cjson.encode_max_depth(), cjson.decode_max_depth(), cjson.encode_number_precision(), cjson.encode_keep_buffer(),
		cjson.encode_invalid_numbers(), cjson.decode_invalid_numbers(), cjson.encode_sparse_array()`
	const defaults = "1000 1000 14 true false true false 2 10"
	require.Equal(t, defaults, evaluate(t, e, show))
	const change = `cjson.encode_max_depth(1); cjson.decode_max_depth(2); cjson.encode_number_precision(3); cjson.encode_keep_buffer(false);
		cjson.encode_invalid_numbers('null'); cjson.decode_invalid_numbers(false); cjson.encode_sparse_array(true, 4, 5); `
	require.Equal(t, "1 2 3 false null false true 4 5", evaluate(t, e, change+show))
	require.Equal(t, defaults, evaluate(t, e, show))
	require.Equal(t, "-", run(t, e, change+"error('x')")[:1])
	require.Equal(t, defaults, evaluate(t, e, show))
	require.Equal(t, "1000", evaluate(t, e, "local c = cjson.new(); c.encode_max_depth(1); return cjson.encode_max_depth()"))
}

func TestTheClockRuns(t *testing.T) {
	require.Equal(t, "true", evaluate(t, newEngine(), `
		local start = os.clock()
		while os.clock() <= start do end
		return start >= 0`))
}

func TestEncodedTablesThatContainEachOtherEndWithinTheLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("with the race detector it takes long, and nothing of it is concurrent")
	}
	e := newEngine()
	for _, encode := range []string{"cjson.encode", "cmsgpack.pack"} {
		reply := evaluate(t, e, "local t = {('x'):rep(1e6)}; for i = 1, 14 do t = {t, t, t, t, t, t, t, t} end; return "+
			encode+"(t)")
		require.Equal(t, "-user_script:9: not enough memory", reply)
	}
	require.Equal(t, "-user_script:9: not enough memory",
		evaluate(t, e, "cjson.encode_sparse_array(false, 0); return cjson.encode({[2^31 - 1] = 1})"))
}

func TestMapsOfAllSizesSurvivePacking(t *testing.T) {
	e := newEngine()
	for _, n := range []int{0, 1, 15, 16, 17, 65535, 65536} {
		source := fmt.Sprintf(`
			local t = {}
			for i = 1, %d do t['k' .. i] = i end
			local n = 0
			for k, v in pairs(cmsgpack.unpack(cmsgpack.pack(t))) do
				n = n + 1
				assert(k == 'k' .. v)
			end
			return n`, n)
		require.Equal(t, fmt.Sprint(n), evaluate(t, e, source))
	}
}

func TestStringsSurviveJSONAndMsgpack(t *testing.T) {
	e := newEngine()
	testseed.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "s"))
		require.Equal(t, "true true", evaluate(t, e, `
			return cjson.decode(cjson.encode({ARGV[1]}))[1] == ARGV[1], cmsgpack.unpack(cmsgpack.pack({[ARGV[1]] = ARGV[1]}))[ARGV[1]] == ARGV[1]`, s))
	})
}

func TestIntegersSurviveStruct(t *testing.T) {
	e := newEngine()
	testseed.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 7).Draw(t, "size")
		limit := int64(1) << (8*size - 1)
		n := rapid.Int64Range(max(-limit, -1<<53), min(limit-1, 1<<53)).Draw(t, "n")
		order := rapid.SampledFrom([]string{"<", ">"}).Draw(t, "order")
		source := fmt.Sprintf("local f = '%s!8 b i%d'; return struct.unpack(f, struct.pack(f, 1, %d)) == 1, select(2, struct.unpack(f, struct.pack(f, 1, %d))) == %d",
			order, size, n, n, n)
		require.Equal(t, "true true", evaluate(t, e, source))
		e.Flush()
	})
}

// fuzzed runs a library's function on arbitrary text.
func fuzzed(f *testing.F, source string) {
	e := newEngine()
	f.Fuzz(func(t *testing.T, text string) {
		require.NotEmpty(t, run(t, e, source, text))
	})
}

func FuzzJSONDecode(f *testing.F) {
	for _, s := range []string{document, `{"a":[1,2.5,-3e4,0x1p4,nan],"b":"\u00e9\ud83d\ude00\n"}`, "[[[", `{"a":`,
		"\"\\u12", "-", "1\x00"} {
		f.Add(s)
	}
	fuzzed(f, "local v = cjson.decode(ARGV[1]); cjson.encode_invalid_numbers(true); cjson.encode_sparse_array(true); return cjson.encode(v)")
}

func FuzzUnpack(f *testing.F) {
	for _, s := range []string{"\x93\x01\xa1a\xc0", "\x82\xa1a\x01\xa1b\xcb?\xf0\x00\x00\x00\x00\x00\x00",
		"\xdd\xff\xff\xff\xff", "\xda\x00\x05abc"} {
		f.Add(s)
	}
	fuzzed(f, "return cmsgpack.pack(cmsgpack.unpack(ARGV[1]))")
}

func FuzzStruct(f *testing.F) {
	for _, s := range []string{"!8bIh<s", "i32c0", "bc0", "!4 > f d l", "i99999999999"} {
		f.Add(s)
	}
	fuzzed(f, "local d = ('\\3\\0ab'):rep(40); pcall(struct.size, ARGV[1]); return {pcall(struct.unpack, ARGV[1], d), pcall(struct.pack, ARGV[1], 1, 2, 'x')}")
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"(a*(.)%w(%s*))", "%f[%w]%a+", "%b()", "[^%]a-z]-$", "()%1", "(((((", "[%"} {
		f.Add(s)
	}
	fuzzed(f, "return {pcall(string.find, 'THE (quick) fox', ARGV[1]), pcall(string.gsub, 'aab(c)', ARGV[1], '%1'), pcall(string.format, ARGV[1], 1, 'x')}")
}
