package atom

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

func TestNoneTakesBytesTextAndNumbers(t *testing.T) {
	for want, values := range map[string][]any{
		"":      {nil, "", []byte{}, []byte(nil)},
		"a\x00": {"a\x00", []byte("a\x00")},
		"-5":    {-5, int8(-5), int64(-5), float64(-5)},
		"200":   {uint8(200), uint64(200), float32(200)},
		"0.1":   {0.1, float32(0.1)},
	} {
		for _, v := range values {
			data, err := noneCodec{}.Encode(v)
			require.NoError(t, err)
			require.Equal(t, want, string(data))
		}
	}
	for _, v := range []any{true, []int{1}, map[string]any{}, struct{}{}} {
		_, err := noneCodec{}.Encode(v)
		require.Error(t, err)
	}
	var (
		text   string
		number int
		large  int64
		whole  uint64
		real   float64
		raw    []byte
	)
	for _, into := range []any{&text, &number, &large, &whole, &real, &raw} {
		require.NoError(t, noneCodec{}.Decode([]byte("12"), into))
	}
	require.Equal(t, []any{"12", 12, int64(12), uint64(12), 12.0, []byte("12")},
		[]any{text, number, large, whole, real, raw})
	require.Error(t, noneCodec{}.Decode([]byte("x"), &number))
	require.Error(t, noneCodec{}.Decode([]byte("x"), &struct{}{}))
}

func TestValuesOfMsgpack(t *testing.T) {
	for packed, want := range map[string]any{
		"c0": nil, "c3": true, "05": int64(5), "ff": int64(-1), "cb3ff8000000000000": 1.5, "a568656c6c6f": "hello",
		"c402ffff":           []byte{0xff, 0xff},
		"92a16101":           []any{"a", int64(1)},
		"81a16101":           map[string]any{"a": int64(1)},
		"81c4016101":         map[string]any{"a": int64(1)}, // a dictionary with bytes as keys
		"8201a162a16103":     map[any]any{int64(1): "b", "a": int64(3)},
		"cfffffffffffffffff": uint64(1<<64 - 1),
	} {
		data, err := hex.DecodeString(packed)
		require.NoError(t, err)
		var got any
		require.NoError(t, msgpackCodec{}.Decode(data, &got), packed)
		require.EqualValues(t, want, got, packed)
	}
}

// A few bytes from another element must not end the process.
func TestDamagedDataIsRefused(t *testing.T) {
	for name, data := range map[string][]byte{
		"nothing": {}, "a list of 2^32-1": {0xdd, 0xff, 0xff, 0xff, 0xff}, "a map of 2^32-1": {0xdf, 0xff, 0xff, 0xff, 0xff},
		"text of 2^32-1": {0xdb, 0xff, 0xff, 0xff, 0xff}, "a cut length": {0xdd, 0xff}, "a cut number": {0xcf, 1},
		"the unused code": {0xc1},
		"two values":      {1, 2}, "nested lists": append(bytes.Repeat([]byte{0x91}, 100_000), 0xc0),
		"a list as key": {0x81, 0x90, 1},
		"a map as key":  {0x81, 0x80, 1}, "a cut extension": {0xd8, 1},
	} {
		var got any
		require.Error(t, msgpackCodec{}.Decode(data, &got), name)
	}
	lists := append([]byte("(]"), bytes.Repeat([]byte("]"), 100_000)...)
	lists = append(append(lists, bytes.Repeat([]byte("a"), 100_000)...), '.')
	for name, data := range map[string][]byte{
		"nothing": {}, "no value": []byte("."), "two values": []byte("NN."), "a mark": []byte("(."),
		"cut text":     []byte("\x8c\xffab"),
		"text of 2^63": []byte("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"), "append to nothing": []byte("Na."),
		"appends without a mark": []byte("e."), "a memo that is not there": []byte("h\x05."),
		"a memo beyond the next": []byte("Nq\x09."),
		"a class":                []byte("cos\nsystem\n."), "a list in itself": []byte("]\x94h\x00a."), "nested lists": lists,
		"half a pair": []byte("}(Nu."), "a list as key": []byte("}]Ns."), "tuples of nothing": []byte("\x87."),
		"too long a number": append([]byte("\x8a\x20"), append(bytes.Repeat([]byte{1}, 32), '.')...),
	} {
		var got any
		require.Error(t, pickleCodec{}.Decode(data, &got), name)
	}
}

func TestSharedListsOfAPickleCannotGrowWithoutBound(t *testing.T) {
	data := []byte("]\x94") // memo 0
	for i := range byte(60) {
		data = append(data, ']', 0x94, 'h', i, 'a', 'h', i, 'a') // a list with the previous list twice, memo i+1
	}
	data = append(append([]byte("("), data...), 't', '.')
	var got any
	require.ErrorContains(t, pickleCodec{}.Decode(data, &got), "values")
}

func plain() *rapid.Generator[any] {
	leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Float64().AsAny(),
		rapid.String().AsAny(),
		rapid.SliceOf(rapid.Byte()).AsAny())
	named := rapid.MapOf(rapid.String(), leaf)
	return rapid.OneOf(leaf, rapid.SliceOf(leaf).AsAny(), named.AsAny(), rapid.SliceOf(named).AsAny())
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		v := plain().Draw(t, "value")
		for _, codec := range []Codec{msgpackCodec{}, pickleCodec{}} {
			data, err := codec.Encode(v)
			require.NoError(t, err)
			var got, again any
			require.NoError(t, codec.Decode(data, &got))
			data2, err := codec.Encode(got)
			require.NoError(t, err)
			require.NoError(t, codec.Decode(data2, &again))
			require.Equal(t, data, data2)
			require.EqualValues(t, got, again)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x82\xa8language\xa2Go\xa7version\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x80\x04]\x94(K\x01\x8c\x01a\x94e."))
	f.Fuzz(func(_ *testing.T, data []byte) {
		for _, codec := range []Codec{msgpackCodec{}, pickleCodec{}, noneCodec{}} {
			var v any
			var s struct{ A []map[string]int }
			codec.Decode(data, &v)
			codec.Decode(data, &s)
		}
	})
}

func TestSerializationRules(t *testing.T) {
	all := newCodecs(nil)
	for _, test := range []struct {
		ser  string
		d    Decoding
		want string
	}{
		{"", Decoding{}, None},
		{"", Decoding{Serialization: Msgpack}, Msgpack},
		{Msgpack, Decoding{}, Msgpack},
		{None, Decoding{Serialization: Msgpack}, None},
		{None, Decoding{Serialization: Msgpack, Force: true}, Msgpack},
		{Msgpack, Decoding{Force: true}, None},
		{"arrow", Decoding{}, "arrow"},
	} {
		require.Equal(t, test.want, all.value([]byte{1}, test.ser, test.d).Serialization, "%v", test)
	}
	require.ErrorIs(t, Value{}.Decode(new(any)), ErrNotFound)
}

func TestWire(t *testing.T) {
	require.Equal(t, "a", streamKey("", "a"), "a stream without an element is its own key")
	require.Equal(t, 1.0, protocolVersion)
	d, err := parseMilliseconds("999999999999999999")
	require.NoError(t, err)
	require.Positive(t, d)
	for _, bad := range []string{"", "-1", "x", "1.5"} {
		_, err := parseMilliseconds(bad)
		require.Error(t, err)
	}
	clock := risingClock{}
	last := clock.next()
	for range 1000 {
		next := clock.next()
		require.Greater(t, next, last)
		last = next
	}
}
