package rdb

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/arrays"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestArraysAreDumpedAsRedisDoes(t *testing.T) {
	odd := rapid.SampledFrom([]string{"", "1.5", "-0", "-0.0", "1.0", "0.1", "1e+20", "1e400", "inf", "nan", ".5", "1.", "4611686018427387904",
		"2305843009213693951", "2305843009213693952", "-2305843009213693952", "-2305843009213693953", "1234567", "12345678", "0.30000000000000004"})
	testseed.Check(t, func(t *rapid.T) {
		a := arrays.New()
		for range rapid.IntRange(1, 40).Draw(t, "elements") {
			v := anyText(t)
			if rapid.Bool().Draw(t, "odd") {
				v = []byte(odd.Draw(t, "text"))
			}
			a.Set(rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64Range(0, arrays.MaxIndex)).Draw(t, "index"), v)
		}
		if rapid.Bool().Draw(t, "inserted") {
			a.Seek(rapid.Uint64().Draw(t, "next"))
		}
		w := newWorld()
		payload := dump(t, w.entry(a))
		got, err := Restore(payload, &limits)
		require.NoError(t, err)
		require.Equal(t, describe(a), describe(got))
		require.Equal(t, payload, dump(t, w.entry(got)))

		old := Encoder{buf: []byte{typeModule}}
		older := partsKind("atomARRAY", func(e *engine.Entry) parts { return e.Array() }, arrays.NewLoader)
		older.write(&old, w.entry(a))
		again, err := Restore(Seal(old.buf), &limits)
		require.NoError(t, err)
		require.Equal(t, describe(a), describe(again))
	})
}

// The bytes are those of Redis 8.8: the number of elements, the index that was inserted last, and values of all four
// kinds.
func TestArraysOfRedis(t *testing.T) {
	long := func(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }
	body := "\x1c\x05\x01\x31" +
		"\x00\x01" + long(42) + "\x01\x02" + long(math.Float64bits(1.5)) + "\x02\x02" + long(math.Float64bits(3)) +
		"\x07\x03\x05short" + "\x40\x63\x00\x0clonger value"
	v, err := Restore(Seal([]byte(body)), &limits)
	require.NoError(t, err)
	a := v.(*arrays.Array)
	require.Equal(t, uint64(50), a.Next())
	var found []string
	a.Each(0, arrays.MaxIndex, func(_ uint64, v []byte) bool { found = append(found, string(v)); return true })
	require.Equal(t, []string{"42", "1.5", "3.0", "short", "longer value"}, found)
	payload := dump(t, newWorld().entry(a))
	require.Equal(t, body, string(payload[:len(payload)-footerLength]))
	require.Equal(t, uint16(VersionArrays), binary.LittleEndian.Uint16(payload[len(payload)-footerLength:]))

	for name, body := range map[string]string{
		"no elements":         "\x1c\x00\x00",
		"another flag":        "\x1c\x01\x02\x00\x00\x00",
		"another kind":        "\x1c\x01\x00\x00\x04",
		"an index twice":      "\x1c\x02\x00\x05\x03\x01a\x05\x03\x01b",
		"an index beyond":     "\x1c\x01\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff\x03\x01a",
		"a last index beyond": "\x1c\x01\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x00\x03\x01a",
	} {
		_, err := Restore(Seal([]byte(body)), &limits)
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
}
