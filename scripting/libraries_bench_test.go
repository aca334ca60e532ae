package scripting

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/resp"
)

// document is a kilobyte of JSON, as programs store it.
const document = `[{"id":255230422,"name":"user 606","email":"user759@example.com","active":true,"balance":625.72,"tags":["a","b","c"],` +
	`"address":{"street":"Main Street 5","city":"Springfield","zip":"12345"}},{"id":648945391,"name":"user 35","email":"user490@example.com",` +
	`"active":false,"balance":237.96,"tags":["d","e"],"address":{"street":"Side Street 17","city":"Shelbyville","zip":"54321"}},` +
	`{"id":861206429,"name":"user 263","email":"user853@example.com","active":true,"balance":0.18,"tags":[],"address":null},` +
	`{"id":123,"name":"Sørensen","email":"s\u00f8ren@example.com","active":true,"balance":-17,"tags":["a \"quoted\" tag","x"],` +
	`"address":{"street":"Vesterbrogade 3\nBaghuset","city":"København","zip":"1620"}},{"id":9007199254740991,"name":"last","email":"",` +
	`"active":false,"balance":1e21,"tags":["one","two","three","four","five","six"],"address":{"street":"","city":"","zip":""}}]`

// benchmarkLoop measures one iteration of a loop over body. setup comes before the loop.
func benchmarkLoop(b *testing.B, setup, body string) {
	e := newEngine()
	script, err := e.Load([]byte(setup + " for i = 1, 100 do " + body + " end"))
	require.NoError(b, err)
	args := [][]byte{[]byte(document)}
	w := resp.Writer{Proto: 2}
	b.ReportAllocs()
	for i := 0; i < b.N; i += 100 {
		w.Buf = w.Buf[:0]
		e.Run(script, nil, nil, args, &w)
	}
	require.Equal(b, "$-1\r\n", string(w.Buf))
}

func BenchmarkJSONRoundTrip(b *testing.B) {
	benchmarkLoop(b, "", "cjson.encode(cjson.decode(ARGV[1]))")
}

func BenchmarkJSONDecode(b *testing.B) { benchmarkLoop(b, "", "cjson.decode(ARGV[1])") }

func BenchmarkJSONEncode(b *testing.B) {
	benchmarkLoop(b, "local t = cjson.decode(ARGV[1])", "cjson.encode(t)")
}

func BenchmarkMsgpackRoundTrip(b *testing.B) {
	benchmarkLoop(b, "local t = cjson.decode(ARGV[1])", "cmsgpack.unpack(cmsgpack.pack(t))")
}

func BenchmarkStructRoundTrip(b *testing.B) {
	benchmarkLoop(b, "", "struct.unpack('>IHs', struct.pack('>IHs', i, 3, 'abc'))")
}

func BenchmarkBitXor(b *testing.B) {
	benchmarkLoop(b, "local x = 0", "x = bit.bxor(x, bit.lshift(i, 3))")
}

func BenchmarkFormat(b *testing.B) {
	benchmarkLoop(b, "", "string.format('%s:%05d:%.2f', 'key', i, i / 3)")
}

func BenchmarkGsub(b *testing.B) {
	benchmarkLoop(b, "", "string.gsub('hello world from lua', '(%w+)', '<%1>')")
}
