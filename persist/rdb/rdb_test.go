package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/testing/samples"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

var limits = Limits{
	Hash: hashes.Limits{Entries: 16, Value: 64},
	Set:  sets.Limits{IntsetEntries: 16, ListpackEntries: 16, ListpackValue: 64},
	ZSet: zsets.Limits{Entries: 16, Value: 64}, List: lists.DefaultLimit, Stream: streams.DefaultLimits,
}

// world is a keyspace for creating entries.
type world struct {
	ks *engine.Keyspace
	g  engine.Guard
	n  int
}

func newWorld() *world {
	w := &world{ks: engine.New(engine.Options{})}
	w.g.Lock(w.ks, engine.AllShards, 1000)
	return w
}

// entry returns an entry with a value.
func (w *world) entry(value any) *engine.Entry {
	w.n++
	key := fmt.Appendf(nil, "key %d", w.n)
	if text, ok := value.([]byte); ok {
		return w.g.CreateString(0, key, text)
	}
	return w.g.Create(0, key, value)
}

// dump returns the payload of an entry.
func dump(t require.TestingT, e *engine.Entry) []byte {
	payload, err := Dump(e)
	require.NoError(t, err)
	return payload
}

func describe(value any) string { return samples.For(value).Describe(value) }

// anyText draws a string of one of the kinds with different stored forms.
func anyText(t *rapid.T) []byte {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return strconv.AppendInt(nil, rapid.Int64().Draw(t, "number"), 10)
	case 1:
		n := rapid.SampledFrom([]int64{0, -1, 127, 128, -128, -129, 4095, 4096, -4096, -4097, 32767, 32768, -32769,
			1<<23 - 1, 1 << 23,
			-1<<23 - 1, math.MaxInt32, math.MaxInt32 + 1, math.MinInt32 - 1, math.MaxInt64, math.MinInt64}).Draw(t, "edge")
		return strconv.AppendInt(nil, n, 10)
	case 2:
		return bytes.Repeat([]byte(rapid.SampledFrom([]string{"a", "ab", "abc", "\x00"}).Draw(t, "unit")),
			rapid.IntRange(0, 700).Draw(t, "times"))
	case 3:
		return []byte(rapid.SampledFrom([]string{"", "-0", "007", "+1", "1.5", "-"}).Draw(t, "odd"))
	}
	return rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")
}

// anyValue draws a value of any type.
func anyValue(t *rapid.T) any {
	n := rapid.IntRange(1, 40).Draw(t, "elements")
	switch rapid.IntRange(0, 5).Draw(t, "type") {
	case 0:
		return anyText(t)
	case 1:
		l := lists.New(limits.List)
		for range n {
			l.PushBack(anyText(t))
		}
		return l
	case 2:
		s := &sets.Set{}
		for range n {
			s.Add(anyText(t), limits.Set)
		}
		return s
	case 3:
		z := zsets.New()
		for range n {
			f := rapid.Float64().Filter(func(f float64) bool { return !math.IsNaN(f) }).Draw(t, "score")
			z.Set(anyText(t), f, limits.ZSet)
		}
		return z
	case 4:
		h := &hashes.Hash{}
		expires := rapid.Bool().Draw(t, "expires")
		for range n {
			f := anyText(t)
			h.Set(f, anyText(t), limits.Hash)
			if expires && rapid.Bool().Draw(t, "this one") {
				h.SetDeadline(f, rapid.Int64Range(1, maxElementDeadline).Draw(t, "at"))
			}
		}
		return h
	}
	return anyStream(t, n)
}

func anyStream(t *rapid.T, n int) *streams.Stream {
	s := streams.New()
	id := func() streams.ID {
		return streams.ID{Ms: rapid.Uint64Range(0, 60).Draw(t, "ms"), Seq: rapid.Uint64Range(0, 3).Draw(t, "seq")}
	}
	for i := range n {
		fields := [][]byte{[]byte("field"), anyText(t)}
		if rapid.Bool().Draw(t, "other fields") {
			fields = append(fields, anyText(t), anyText(t))
		}
		require.NoError(t, s.Append(streams.ID{Ms: uint64(i) + 1, Seq: 1}, fields, limits.Stream))
	}
	for range rapid.IntRange(0, 5).Draw(t, "deleted") {
		s.Delete(streams.ID{Ms: rapid.Uint64Range(0, 60).Draw(t, "ms"), Seq: 1})
	}
	for _, name := range []string{"g", "7"}[:rapid.IntRange(0, 2).Draw(t, "groups")] {
		g, _ := s.CreateGroup([]byte(name), id(), rapid.Int64Range(-1, 50).Draw(t, "read"))
		for _, name := range []string{"c", "long " + strings.Repeat("name", 10)} {
			c, _ := g.CreateConsumer([]byte(name), rapid.Int64Range(0, 1e15).Draw(t, "seen"))
			for range rapid.IntRange(0, 5).Draw(t, "pending") {
				g.AddPending(id(), c, rapid.Int64Range(0, 1e15).Draw(t, "time"), rapid.Int64Range(0, 1e6).Draw(t, "count"))
			}
		}
	}
	return s
}

func TestPayloadsHaveWhatWasDumped(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		w := newWorld()
		value := anyValue(t)
		want := describe(value)
		payload := dump(t, w.entry(value))
		got, err := Restore(payload, &limits)
		require.NoError(t, err)
		require.Equal(t, want, describe(got))
		require.Equal(t, payload, func() []byte { // also in the order of the rebuilt collection
			if _, isSet := got.(*sets.Set); isSet {
				return payload
			}
			if _, isHash := got.(*hashes.Hash); isHash {
				return payload
			}
			return dump(t, w.entry(got))
		}())
	})
}

func TestPayloadsThatAreCutOrChangedAreRefused(t *testing.T) {
	w := newWorld()
	testseed.Check(t, func(t *rapid.T) {
		payload := dump(t, w.entry(anyValue(t)))
		i := rapid.IntRange(0, len(payload)-1).Draw(t, "at")
		refused := func(payload []byte) {
			if bytes.HasSuffix(payload, make([]byte, 8)) {
				return // it claims to have no checksum
			}
			_, err := Restore(payload, &limits)
			require.ErrorIs(t, err, ErrChecksum)
		}
		refused(payload[:i])
		changed := bytes.Clone(payload)
		changed[i] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		refused(changed)
		if body := payload[:len(payload)-footerLength]; i < len(body) {
			_, err := Restore(Seal(body[:i]), &limits)
			require.Error(t, err)
		}
		_, err := Restore(Seal(append(payload[:len(payload)-footerLength:len(payload)-footerLength], 0)), &limits)
		require.ErrorIs(t, err, ErrCorrupt)
	})
}

func TestLZF(t *testing.T) {
	var table lzfTable
	testseed.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 20000).Draw(t, "text")
		if rapid.Bool().Draw(t, "runs") {
			text = bytes.Repeat(text[:min(len(text), 50)], 500)
		}
		out, ok := compress([]byte("x"), text, &table)
		if !ok {
			require.Equal(t, "x", string(out))
			return
		}
		require.LessOrEqual(t, len(out)-1, len(text)-4)
		back, ok := decompress([]byte("y"), out[1:], len(text))
		require.True(t, ok)
		require.True(t, bytes.Equal(append([]byte("y"), text...), back))
		_, ok = decompress(nil, out[1:], len(text)+1)
		require.False(t, ok)
		_, ok = decompress(nil, out[1:], len(text)-1)
		require.False(t, ok)
	})
	text := bytes.Repeat([]byte("a"), 1<<20)
	out, ok := compress(nil, text, &table)
	require.True(t, ok)
	require.Less(t, len(out), len(text)/80)
}

func TestLengthsThatPromiseMuchTakeNoMemory(t *testing.T) {
	huge := appendLength(nil, math.MaxInt64/2)
	for _, body := range [][]byte{
		append([]byte{typeString}, huge...),
		append([]byte{typeList}, huge...),
		append([]byte{typeSet}, huge...),
		append([]byte{typeZSet}, huge...),
		append([]byte{typeHash}, huge...),
		append([]byte{typeStream2}, huge...),
		append(append([]byte{typeString, 0xc3, 1}, huge...), 'a'),
		append([]byte{typeString, 0xc3}, append(huge, huge...)...),
	} {
		_, err := Restore(Seal(body), &limits)
		require.Error(t, err)
		file := append([]byte("REDIS0010"), append([]byte{body[0], 1, 'k'}, body[1:]...)...)
		_, err = NewReader(iotest.OneByteReader(bytes.NewReader(file)), limits).Next()
		require.Error(t, err)
	}
	allocated := testing.AllocsPerRun(10, func() {
		_, _ = Restore(Seal(append([]byte{typeString}, huge...)), &limits)
	})
	require.Less(t, allocated, 20.0)
}

// Forms that are only read.

func text(s string) []byte { return append(appendLength(nil, uint64(len(s))), s...) }

func testListpack(elements ...string) string {
	var b []byte
	for _, e := range elements {
		b = appendListpackString(b, []byte(e))
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(6+len(b)+1))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(elements)))
	return string(append(append(out, b...), 0xff))
}

// testZiplist encodes integers of every width, and strings with lengths of every width.
func testZiplist(elements ...string) string {
	var b []byte
	prev, tail := 0, 10
	for _, e := range elements {
		start := len(b)
		tail = 10 + start
		if prev < 254 {
			b = append(b, byte(prev))
		} else {
			b = binary.LittleEndian.AppendUint32(append(b, 254), uint32(prev))
		}
		if n, ok := canonicalInt([]byte(e)); ok {
			switch {
			case n >= 0 && n <= 12:
				b = append(b, 0xf1+byte(n))
			case n == int64(int8(n)):
				b = append(b, 0xfe, byte(n))
			case n == int64(int16(n)):
				b = append(b, 0xc0, byte(n), byte(n>>8))
			case n >= -1<<23 && n < 1<<23:
				b = append(b, 0xf0, byte(n), byte(n>>8), byte(n>>16))
			case n == int64(int32(n)):
				b = binary.LittleEndian.AppendUint32(append(b, 0xd0), uint32(n))
			default:
				b = binary.LittleEndian.AppendUint64(append(b, 0xe0), uint64(n))
			}
		} else {
			switch {
			case len(e) < 1<<6:
				b = append(b, byte(len(e)))
			case len(e) < 1<<14:
				b = append(b, 0x40|byte(len(e)>>8), byte(len(e)))
			default:
				b = binary.BigEndian.AppendUint32(append(b, 0x80), uint32(len(e)))
			}
			b = append(b, e...)
		}
		prev = len(b) - start
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(10+len(b)+1))
	out = binary.LittleEndian.AppendUint32(out, uint32(tail))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(elements)))
	return string(append(append(out, b...), 0xff))
}

func testIntset(width int, numbers ...int64) string {
	out := binary.LittleEndian.AppendUint32(nil, uint32(width))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(numbers)))
	for _, n := range numbers {
		out = append(out, binary.LittleEndian.AppendUint64(nil, uint64(n))[:width]...)
	}
	return string(out)
}

var long = strings.Repeat("long ", 51)

func TestOldForms(t *testing.T) {
	numbers := []string{"0", "12", "13", "-1", "127", "-128", "128", "32767", "-32768", "32768", "8388607", "8388608",
		"-2147483648", "2147483648", "-9223372036854775808"}
	mixed := append([]string{"a", "", long, strings.Repeat("x", 20000)}, numbers...)
	all := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	list := func(elements ...string) any {
		l := lists.New(limits.List)
		for _, e := range elements {
			l.PushBack([]byte(e))
		}
		return l
	}
	set := func(elements ...string) any {
		s := &sets.Set{}
		for _, e := range elements {
			s.Add([]byte(e), limits.Set)
		}
		return s
	}
	hash := func(pairs ...string) any {
		h := &hashes.Hash{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set([]byte(pairs[i]), []byte(pairs[i+1]), limits.Hash)
		}
		return h
	}
	zset := func(pairs ...any) any {
		z := zsets.New()
		for i := 0; i < len(pairs); i += 2 {
			z.Set([]byte(pairs[i].(string)), pairs[i+1].(float64), limits.ZSet)
		}
		return z
	}
	expiring := hash("f", "1", "g", "2", "h", "3").(*hashes.Hash)
	expiring.SetDeadline([]byte("f"), 5000)
	expiring.SetDeadline([]byte("h"), 7000)
	members := set("a", "b", "3").(*sets.Set)
	members.SetDeadline([]byte("a"), 5000, limits.Set)
	members.SetDeadline([]byte("3"), 7000, limits.Set)
	millis := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	// The second value is followed by two unused bytes, and the third has a length of five bytes.
	zipmap := "\x03\x01f\x01\x00v\x03foo\x03\x02bar__\x00\xfe\xff\x00\x00\x00\x00" + long + "\xff"

	for _, form := range []struct {
		name string
		body []byte
		want any
	}{
		{"8 bits", []byte{typeString, 0xc0, 0x80}, []byte("-128")},
		{"16 bits", []byte{typeString, 0xc1, 0x00, 0x80}, []byte("-32768")},
		{"32 bits", []byte{typeString, 0xc2, 0xff, 0xff, 0xff, 0x7f}, []byte("2147483647")},
		{"compressed", []byte{typeString, 0xc3, 5, 10, 0, 'a', 0xe0, 0, 0}, []byte("aaaaaaaaaa")},
		{"list", all([]byte{typeList, 2}, text("a"), text("b")), list("a", "b")},
		{"ziplist", all([]byte{typeListZiplist}, text(testZiplist(mixed...))), list(mixed...)},
		{"ziplists", all([]byte{typeListZiplists, 3}, text(testZiplist("a", "b")), text(testZiplist()),
			text(testZiplist(mixed...))), list(append([]string{"a", "b"}, mixed...)...)},
		{"listpacks", all([]byte{typeListListpacks, 3, containerPacked}, text(testListpack(mixed...)),
			[]byte{containerPlain}, text(long), []byte{containerPacked}, text(testListpack("z"))),
			list(append(slices.Clone(mixed), long, "z")...)},
		{"set", all([]byte{typeSet, 2}, text("a"), text("1")), set("a", "1")},
		{"16-bit integers", all([]byte{typeSetIntset}, text(testIntset(2, -32768, -1, 0, 7, 32767))),
			set("-32768", "-1", "0", "7", "32767")},
		{"32-bit integers", all([]byte{typeSetIntset}, text(testIntset(4, -40000, 40000))), set("-40000", "40000")},
		{"64-bit integers", all([]byte{typeSetIntset}, text(testIntset(8, math.MinInt64, math.MaxInt64))),
			set("-9223372036854775808", "9223372036854775807")},
		{"set listpack", all([]byte{typeSetListpack}, text(testListpack(mixed...))), set(mixed...)},
		{"zset", all([]byte{typeZSetText, 4}, text("a"), []byte("\x031.5"), text("b"), []byte{254}, text("c"), []byte{255},
			text("d"), []byte("\x02-0")), zset("a", 1.5, "b", math.Inf(1), "c", math.Inf(-1), "d", math.Copysign(0, -1))},
		{"zset 2", all([]byte{typeZSet, 1}, text("a"), millis(math.Float64bits(0.1))), zset("a", 0.1)},
		{"zset ziplist", all([]byte{typeZSetZiplist}, text(testZiplist("5", "1", "b", "2.5", "c", "inf"))),
			zset("5", 1.0, "b", 2.5, "c", math.Inf(1))},
		{"zset listpack", all([]byte{typeZSetListpack}, text(testListpack("5", "1", "b", "2.5", "c", "-inf"))),
			zset("5", 1.0, "b", 2.5, "c", math.Inf(-1))},
		{"hash", all([]byte{typeHash, 1}, text("f"), text("v")), hash("f", "v")},
		{"zipmap", all([]byte{typeHashZipmap}, text(zipmap)), hash("f", "v", "foo", "bar", "", long)},
		{"hash ziplist", all([]byte{typeHashZiplist}, text(testZiplist("1", "2", "f", long))), hash("1", "2", "f", long)},
		{"hash listpack", all([]byte{typeHashListpack}, text(testListpack("1", "2", "f", long))), hash("1", "2", "f", long)},
		{"expiring fields", all([]byte{typeHashExpire}, millis(5000), []byte{3}, []byte{1}, text("f"), text("1"), []byte{0},
			text("g"), text("2"), appendLength(nil, 2001), text("h"), text("3")), expiring},
		{"expiring fields of a candidate", all([]byte{typeHashExpireEarly}, []byte{3}, appendLength(nil, 5000), text("f"),
			text("1"), []byte{0}, text("g"), text("2"), appendLength(nil, 7000), text("h"), text("3")), expiring},
		{"expiring listpack", all([]byte{typeHashPack}, millis(5000),
			text(testListpack("f", "1", "5000", "g", "2", "0", "h", "3", "7000"))), expiring},
		{"expiring listpack of a candidate", all([]byte{typeHashPackEarly},
			text(testListpack("f", "1", "5000", "g", "2", "0", "h", "3", "7000"))), expiring},
		{"expiring members", all([]byte{typeSetExpire}, millis(5000), []byte{3}, []byte{1}, text("a"), []byte{0}, text("b"),
			appendLength(nil, 2001), text("3")), members},
		{"expiring listpack of members", all([]byte{typeSetPack}, millis(5000),
			text(testListpack("a", "5000", "b", "0", "3", "7000"))), members},
	} {
		t.Run(form.name, func(t *testing.T) {
			got, err := Restore(Seal(form.body), &limits)
			require.NoError(t, err)
			require.Equal(t, describe(form.want), describe(got))
			for i := 0; i < len(form.body); i += 1 + len(form.body)/500 { // truncation anywhere is an error
				_, err := Restore(Seal(form.body[:i]), &limits)
				require.Error(t, err)
			}
		})
	}
}

func TestWhatRedisNeverWritesIsRefused(t *testing.T) {
	all := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, body := range map[string][]byte{
		"unknown type":         {8},
		"unknown length":       {typeString, 0x82, 0, 0, 0, 0},
		"unknown string":       {typeString, 0xc4},
		"string as a length":   {typeList, 0xc0, 1},
		"empty list":           {typeList, 0},
		"empty listpack":       all([]byte{typeHashListpack}, text(testListpack())),
		"member twice":         all([]byte{typeSet, 2}, text("a"), text("a")),
		"member twice in zset": all([]byte{typeZSetListpack}, text(testListpack("a", "1", "a", "2"))),
		"field twice":          all([]byte{typeHashListpack}, text(testListpack("a", "1", "a", "2"))),
		"odd listpack":         all([]byte{typeHashListpack}, text(testListpack("a", "1", "a"))),
		"no score":             all([]byte{typeZSetListpack}, text(testListpack("a", "b"))),
		"not a number":         all([]byte{typeZSetText, 1}, text("a"), []byte{253}),
		"binary NaN": all([]byte{typeZSet, 1}, text("a"),
			binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN()))),
		"integers out of order": all([]byte{typeSetIntset}, text(testIntset(2, 2, 1))),
		"integers twice":        all([]byte{typeSetIntset}, text(testIntset(2, 1, 1))),
		"strange integers":      all([]byte{typeSetIntset}, text(testIntset(3, 1))),
		"wrong count": all([]byte{typeSetListpack},
			text(strings.Replace(testListpack("a"), "\x01\x00", "\x02\x00", 1))),
		"wrong way back": all([]byte{typeSetListpack}, text(strings.Replace(testListpack("a"), "a\x02", "a\x03", 1))),
		"wrong length before": all([]byte{typeListZiplist},
			text(strings.Replace(testZiplist("a", "b"), "a\x03", "a\x04", 1))),
		"unknown container":          {typeListListpacks, 1, 3},
		"module":                     {typeModule, 0x81, 1, 2, 3, 4, 5, 6, 7, 8},
		"member with deadline twice": all([]byte{typeSetPack}, make([]byte, 8), text(testListpack("a", "0", "a", "5"))),
		"member without deadline":    all([]byte{typeSetPack}, make([]byte, 8), text(testListpack("a"))),
		"empty listpack of members":  all([]byte{typeSetPack}, make([]byte, 8), text(testListpack())),
		"member far off":             all([]byte{typeSetPack}, make([]byte, 8), text(testListpack("a", "281474976710656"))),
		"field far off":              all([]byte{typeHashExpireEarly, 1}, appendLength(nil, 1<<48), text("f"), text("v")),
	} {
		_, err := Restore(Seal(body), &limits)
		require.Error(t, err, name)
		if name == "module" {
			require.ErrorIs(t, err, ErrUnsupported)
		} else {
			require.ErrorIs(t, err, ErrCorrupt, name)
		}
	}
}

func TestOldStreams(t *testing.T) {
	// Two entries with the master's fields, the first one deleted, and one with other fields.
	pack := testListpack("2", "1", "2", "f", "g", "0",
		"3", "0", "0", "gone", "gone", "5",
		"2", "5", "1", "1", "2", "5",
		"0", "7", "-3", "1", "h", "3", "6")
	block := bytes.Join([][]byte{text(string(appendStreamID(nil, streams.ID{Ms: 100, Seq: 5}))), text(pack)}, nil)
	millis := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	group := func(read []byte, active []byte) []byte {
		return bytes.Join([][]byte{
			{1}, text("group"), {64, 105, 6}, read, // 64, 105 is 105 in 14 bits
			{1}, appendStreamID(nil, streams.ID{Ms: 105, Seq: 6}), millis(900), {3},
			{1}, text("consumer"), millis(950), active, {1}, appendStreamID(nil, streams.ID{Ms: 105, Seq: 6}),
		}, nil)
	}
	last := []byte{2, 64, 107, 2}
	more := []byte{64, 105, 6, 64, 100, 5, 3}
	want := `stream last 107-2 deleted %s added %d 105-6 "f"="1" "g"="2" 107-2 "h"="3" group "group" last 105-6 read %d consumer "consumer" seen 950 pending 1 105-6 for "consumer" at 900, 3 times`
	for _, form := range []struct {
		typ    byte
		body   []byte
		want   string
		active int64
	}{
		{typeStream, bytes.Join([][]byte{{1}, block, last, group(nil, nil)}, nil), fmt.Sprintf(want, "0-0", 2, 1), 950},
		{typeStream2, bytes.Join([][]byte{{1}, block, last, more, group([]byte{2}, nil)}, nil),
			fmt.Sprintf(want, "100-5", 3, 2), 950},
		{typeStream3, bytes.Join([][]byte{{1}, block, last, more, group([]byte{2}, millis(940))}, nil),
			fmt.Sprintf(want, "100-5", 3, 2), 940},
		// Redis 5 counts entries that XTRIM has removed.
		{typeStream, bytes.Join([][]byte{{1}, block, {4, 64, 107, 2}, group(nil, nil)}, nil), fmt.Sprintf(want, "0-0", 4, 3), 950},
	} {
		body := append([]byte{form.typ}, form.body...)
		got, err := Restore(Seal(body), &limits)
		require.NoError(t, err)
		require.Equal(t, form.want, describe(got))
		require.Equal(t, form.active, got.(*streams.Stream).Group([]byte("group")).Consumers()[0].ActiveTime)
		for i := range body {
			_, err := Restore(Seal(body[:i]), &limits)
			require.Error(t, err)
		}
	}
}

func TestFunctionsOfCandidatesOfRedis7(t *testing.T) {
	old := func(parts ...[]byte) []byte { return append([]byte{opFunctionOld}, bytes.Join(parts, nil)...) }
	described := old(text("lib"), text("LUA"), []byte{1}, text("what it does"), text("code"))
	both := append(bytes.Clone(described), old(text("other"), text("LUA"), []byte{0}, text(""))...)
	want := []string{"#!LUA name=lib\ncode", "#!LUA name=other\n"}
	_, err := RestoreFunctions(Seal(both))
	require.ErrorIs(t, err, ErrUnsupported)
	items, err := readAll(NewReader(bytes.NewReader(append(append([]byte("REDIS0010"), both...), "\xff\x00\x00\x00\x00\x00\x00\x00\x00"...)), limits))
	require.NoError(t, err)
	require.Equal(t, []string{"rdb.Function " + want[0], "rdb.Function " + want[1]}, items)
}

// file returns a file with everything that a file can have.
func file(version int) []byte {
	b := fmt.Appendf(nil, "REDIS%04d", version)
	for _, part := range [][]byte{
		{opAux}, text("redis-ver"), text("7.4.0"), {opAux}, text("bits"), {0xc0, 64},
		{opModuleAux, 0x81, 1, 2, 3, 4, 5, 6, 7, 8, 2, 1, 1, 5, 3, 1, 2, 3, 4, 4, 1, 2, 3, 4, 5, 6, 7, 8, 5}, text("datum"),
		{0},
		{opFunction}, text("#!lua name=x"),
		{opSelectDB, 3, opResize, 5, 2, opSlotInfo, 1, 2, 3},
		{opExpireMillis, 1, 2, 0, 0, 0, 0, 0, 0, typeString}, text("a"), text("1"),
		{opExpire, 2, 0, 0, 0, opFreq, 9, typeList}, text("b"), {1}, text("x"),
		{opIdle, 64, 200, typeHash}, text("empty"), {0},
		{opIdle, 64, 200, typeSet}, text("c"), {1}, text("y"),
		{opSelectDB, 0, typeString}, text(long), text(long),
		{opEOF},
	} {
		b = append(b, part...)
	}
	if version >= 5 {
		b = binary.LittleEndian.AppendUint64(b, checksum(0, b))
	}
	return b
}

// readAll returns the items of a file.
func readAll(r *Reader) (items []string, err error) {
	for {
		item, err := r.Next()
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return items, err
		}
		switch item := item.(type) {
		case *Key:
			items = append(items, fmt.Sprintf("%d %q %s at %d idle %d", item.DB, item.Key, describe(item.Value), item.Deadline,
				item.Idle))
			if item.Blessed {
				items = append(items, "blessed")
			}
		case *Module: // the data is left for skipping
			items = append(items, fmt.Sprintf("module %s %d", item.Name, item.Version))
		default:
			items = append(items, fmt.Sprintf("%T %v", item, item))
		}
	}
}

func TestFilesAreReadWhole(t *testing.T) {
	want := []string{"rdb.Aux {redis-ver 7.4.0}", "rdb.Aux {bits 64}", "module AQIDBAUGB 776", "rdb.Function #!lua name=x",
		`3 "a" string "1" at 513 idle -1`, `3 "b" list "x" at 2000 idle -1`,
		`3 "c" set "y"@0 at 0 idle 200`, fmt.Sprintf("0 %q string %q at 0 idle -1", long, long)}
	for version := 1; version <= Newest; version++ {
		f := file(version)
		for _, r := range []io.Reader{bytes.NewReader(f), iotest.OneByteReader(bytes.NewReader(f)),
			iotest.DataErrReader(bytes.NewReader(f))} {
			reader := NewReader(r, limits)
			items, err := readAll(reader)
			require.NoError(t, err)
			require.Equal(t, want, items)
			require.Equal(t, version, reader.Version)
			require.Equal(t, 1, reader.Empty)
			require.Empty(t, reader.Rest())
		}
		reader := NewReader(bytes.NewReader(append(f, "more"...)), limits)
		_, err := readAll(reader)
		require.NoError(t, err)
		require.Equal(t, "more", string(reader.Rest()))
	}
}

func TestFilesThatAreCutOrChangedAreRefused(t *testing.T) {
	f := file(10)
	for i := range f {
		_, err := readAll(NewReader(bytes.NewReader(f[:i]), limits))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		changed := bytes.Clone(f)
		changed[i] ^= 4
		if i >= len(magic) && i < headLength || i >= len(f)-8 {
			continue // another version or checksum may be valid
		}
		_, err = readAll(NewReader(bytes.NewReader(changed), limits))
		require.Error(t, err, i)
	}
	off := append(bytes.Clone(f[:len(f)-8]), make([]byte, 8)...)
	_, err := readAll(NewReader(bytes.NewReader(off), limits))
	require.NoError(t, err, "rdbchecksum no")
	for head, want := range map[string]error{"REDIS0099": ErrUnsupported, "REDIS0000": ErrCorrupt,
		"REDIS00x1": ErrCorrupt, "VALKEZ080": ErrCorrupt} {
		_, err := readAll(NewReader(strings.NewReader(head), limits))
		require.ErrorIs(t, err, want)
	}
	broken := errors.New("broken")
	_, err = readAll(NewReader(io.MultiReader(bytes.NewReader(f[:50]), iotest.ErrReader(broken)), limits))
	require.ErrorIs(t, err, broken)
}

func TestFilesAreWrittenAsTheyAreRead(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		w := newWorld()
		var out bytes.Buffer
		e := NewEncoder(&out)
		e.Begin(VersionExpiringFields, Aux{"name", "value"})
		e.Function("code")
		want := []string{"rdb.Aux {name value}", "rdb.Function code"}
		n := rapid.IntRange(0, 5).Draw(t, "keys")
		e.SelectDB(7, n, 0)
		for range n {
			value := anyValue(t)
			entry := w.entry(value)
			w.g.SetDeadline(entry, rapid.Int64Range(0, 1e15).Draw(t, "deadline"))
			want = append(want, fmt.Sprintf("7 %q %s at %d idle -1", entry.Key(), describe(value), entry.Deadline()))
			if rapid.Bool().Draw(t, "blessed") {
				w.g.Bless(entry, true)
				want = append(want, "blessed")
			}
			e.Key(entry)
		}
		require.NoError(t, e.End())
		items, err := readAll(NewReader(&out, limits))
		require.NoError(t, err)
		require.Equal(t, want, items)
	})
}

func TestATypeWithoutAFormIsRefused(t *testing.T) {
	known := kinds[engine.List]
	defer func() { kinds[engine.List] = known }()
	kinds[engine.List] = kind{}
	w := newWorld()
	l := w.entry(listOf("a"))
	const want = `key "key 1": a list has no form in RDB files`
	_, err := Dump(l)
	require.EqualError(t, err, want)
	require.Zero(t, SavedLen(l, true, limits.List))
	var out bytes.Buffer
	e := NewEncoder(&out)
	e.Begin(Version)
	e.Key(w.entry([]byte("text")))
	e.Key(l)
	require.EqualError(t, e.Err(), want)
	e.Key(w.entry([]byte("text")))
	require.EqualError(t, e.End(), want)
	require.Empty(t, out.Bytes(), "no file that looks whole")
}

func TestErrorsOfTheWriterAreTold(t *testing.T) {
	broken := errors.New("broken")
	e := NewEncoder(writerFunc(func([]byte) (int, error) { return 0, broken }))
	e.Begin(Version)
	e.Function(strings.Repeat(long, 10000))
	require.ErrorIs(t, e.End(), broken)
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// FuzzRDB reads an untrusted file. The result can be written, and read again with the same result.
func FuzzRDB(f *testing.F) {
	for version := 1; version <= Newest; version++ {
		f.Add(file(version))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b), limits)
		for {
			item, err := r.Next()
			if err != nil {
				return
			}
			if key, ok := item.(*Key); ok {
				requireRoundTrip(t, key.Value)
			}
		}
	})
}

// FuzzRestore reads an untrusted payload with a valid checksum over b.
func FuzzRestore(f *testing.F) {
	for typ := byte(0); typ <= typeHashPack; typ++ {
		f.Add(append([]byte{typ, 1}, text(testListpack("a", "1", "b", "2"))...))
		f.Add(append([]byte{typ}, text(testListpack("a", "1", "b", "2"))...))
		f.Add(append([]byte{typ}, text(testZiplist("a", "1", "b", "2"))...))
	}
	f.Add(append([]byte{typeSetIntset}, text(testIntset(2, 1, 2))...))
	f.Add(append([]byte{typeHashZipmap}, text("\x01\x01f\x01\x00v\xff")...))
	f.Add([]byte{typeString, 0xc3, 5, 10, 0, 'a', 0xe0, 0, 0})
	for _, payload := range [][]byte{jsonValue(0, jsonObject, 1, jsonMember, "a", jsonArray, 1, jsonNumber, 1.5), jsonValue(2, "{}", 1, "a", "b")} {
		f.Add(payload[:len(payload)-footerLength])
	}
	s := streams.New()
	_ = s.Append(streams.ID{Ms: 5}, [][]byte{[]byte("f"), []byte("v")}, limits.Stream)
	g, _ := s.CreateGroup([]byte("g"), streams.ID{}, 0)
	c, _ := g.CreateConsumer([]byte("c"), 7)
	g.AddPending(streams.ID{Ms: 5}, c, 8, 1)
	dumped := dump(f, newWorld().entry(s))
	f.Add(dumped[:len(dumped)-footerLength])
	for _, typ := range samples.Types {
		for _, value := range typ.Values() {
			if payload := dump(f, newWorld().entry(value)); len(payload) < 1000 {
				f.Add(payload[:len(payload)-footerLength])
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if value, err := Restore(Seal(b), &limits); err == nil {
			requireRoundTrip(t, value)
		}
	})
}

func requireRoundTrip(t *testing.T, value any) {
	want := describe(value)
	again, err := Restore(dump(t, newWorld().entry(value)), &limits)
	require.NoError(t, err)
	require.Equal(t, want, describe(again))
}

func listOf(elements ...string) *lists.List {
	l := lists.New(limits.List)
	for _, v := range elements {
		l.PushBack([]byte(v))
	}
	return l
}

// The lengths come from DEBUG OBJECT of Redis 7.0.15; those of small sets follow the form of 7.4.
func TestSavedLenIsThatOfRedis(t *testing.T) {
	w := newWorld()
	list := func(elements ...string) *engine.Entry { return w.entry(listOf(elements...)) }
	set := func(members ...string) *engine.Entry {
		s := &sets.Set{}
		for _, m := range members {
			s.Add([]byte(m), limits.Set)
		}
		return w.entry(s)
	}
	text := func(s string) *engine.Entry { return w.entry([]byte(s)) }
	for _, c := range []struct {
		name  string
		entry *engine.Entry
		want  int
		plain int
	}{
		{"empty string", text(""), 1, 1},
		{"small number", text("12"), 2, 2},
		{"large number", text("2147483648"), 11, 11},
		{"twenty bytes", text(strings.Repeat("a", 20)), 21, 21},
		{"twenty-one bytes", text(strings.Repeat("a", 21)), 9, 22},
		{"many bytes", text(strings.Repeat("a", 100000)), 1151, 100005},
		{"small list", list("a", "1", "300", "-70000"), 23, 23},
		{"list of two nodes", list(strings.Repeat("b", 5000), strings.Repeat("c", 5000)), 161, 10035},
		{"integers", set("1", "2", "3"), 15, 15},
		{"wide integers", set("1", "2", "100000"), 21, 21},
		{"small set", set("a", "b"), 14, 14},
	} {
		require.Equal(t, c.want, SavedLen(c.entry, true, limits.List), c.name)
		require.Equal(t, c.plain, SavedLen(c.entry, false, limits.List), c.name)
	}
}
