package hashes

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/delta"
)

// storage is what a store holds of a value that is stored in parts.
type storage map[string]string

// write takes what has changed until the checkpoint began.
func (s storage) write(l *delta.Log, p delta.Parts) {
	for _, name := range l.Frozen() {
		if data, ok := l.AppendFrozen(nil, name, p); ok {
			s[name] = string(data)
		} else {
			delete(s, name)
		}
	}
	l.Done()
}

// load builds the hash from its parts.
func (s storage) load(t require.TestingT, log *delta.Log) *Hash {
	l := NewLoader()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		require.NoError(t, l.Add([]byte(name), []byte(s[name])))
	}
	h, err := l.Finish(log)
	require.NoError(t, err)
	return h
}

func TestCheckpointsStoreTheHashAsItWasWhenTheyBegan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		epochs, stored := &delta.Epochs{Current: 1}, storage{}
		log, lim := delta.NewLog(7, epochs), Limits{}
		field := rapid.Map(rapid.IntRange(0, 30), strconv.Itoa)
		h := new(Hash)
		for i := range rapid.IntRange(1, 20).Draw(t, "fields at first") {
			h.Set(strconv.AppendInt(nil, int64(i), 10), []byte("old"), lim)
		}
		require.True(t, h.Large())
		h.Track(log)
		var frozen *Hash // the hash as it was when the checkpoint began that has not ended
		begin := func() {
			if frozen == nil {
				epochs.Current++
				frozen = h.Clone()
			}
		}
		end := func(t *rapid.T) {
			if frozen == nil {
				return
			}
			stored.write(log, h)
			loadedLog := delta.NewLog(7, epochs)
			loaded := stored.load(t, loadedLog)
			require.Equal(t, contents(frozen), contents(loaded))
			require.Equal(t, "hashtable", loaded.Encoding())
			require.Same(t, loadedLog, loaded.Log())
			require.True(t, loadedLog.Clean())
			frozen = nil
			if log.Clean() && rapid.Bool().Draw(t, "go on with what was loaded") {
				h, log = loaded, loadedLog
			}
		}
		begin()
		end(t)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				n := rapid.SampledFrom([]int{0, 1, 10, 64, 65, 200}).Draw(t, "size")
				v := strings.Repeat(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "byte"), n)
				h.Set([]byte(field.Draw(t, "field")), []byte(v), lim)
			},
			"delete": func(t *rapid.T) { h.Delete([]byte(field.Draw(t, "field"))) },
			"delete all": func(*rapid.T) {
				for f := range contents(h) {
					h.Delete([]byte(f))
				}
			},
			"change a clone": func(t *rapid.T) {
				c := h.Clone()
				require.Nil(t, c.Log())
				c.Set([]byte("only in the clone"), nil, lim)
				c.Delete([]byte(field.Draw(t, "field")))
			},
			"begin": func(*rapid.T) { begin() },
			"fail": func(*rapid.T) {
				if frozen != nil {
					log.Abort(log.Frozen())
					frozen = nil
				}
			},
			"end": end,
			"checkpoint": func(t *rapid.T) {
				begin()
				end(t)
			},
		})
		end(t)
		begin()
		end(t)
		require.True(t, log.Clean())
	})
}

func TestTrackingDoesNotAllocateForFieldsThatAreThere(t *testing.T) {
	h := sizes(100)["hashtable"]
	h.Track(delta.NewLog(1, &delta.Epochs{Current: 1}))
	field, miss, value := []byte("f50"), []byte("g"), []byte("v50")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		h.Set(field, value, Limits{})
		h.Delete(miss)
	}))
}

func TestSmallHashIsStoredInItsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := new(Hash)
		text := rapid.OneOf(rapid.StringN(-1, 3, -1), rapid.StringN(100, 200, -1))
		for range rapid.IntRange(0, 50).Draw(t, "fields") {
			h.Set([]byte(text.Draw(t, "field")), []byte(text.Draw(t, "value")), Limits{100, 1000})
		}
		require.False(t, h.Large())
		got, err := DecodeBlob(h.AppendBlob(nil))
		require.NoError(t, err)
		require.Equal(t, pairs(h), pairs(got))
		require.Equal(t, "listpack", got.Encoding())
	})
}

// pairs is the fields and values in order.
func pairs(h *Hash) []string {
	var out []string
	for f, v := range h.All() {
		out = append(out, string(f), string(v))
	}
	return out
}

func TestDecodeBlobRefusesWhatIsNoHash(t *testing.T) {
	tests := []struct {
		name, blob string
		want       error
	}{
		{"nothing", "", errFormat},
		{"unknown format", "\x02", errFormat},
		{"field without value", "\x01\x01a", errCut},
		{"value cut short", "\x01\x01a\x02b", errCut},
		{"enormous length", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", errCut},
		{"length of too many bytes", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", errCut},
		{"field twice", "\x01\x01a\x00\x01a\x01b", errTwice},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := DecodeBlob([]byte(tt.blob))
			require.ErrorIs(t, err, tt.want)
		})
	}
}

func TestLoaderRefusesFieldsOutOfOrder(t *testing.T) {
	for _, second := range []string{"b", "a", ""} {
		l := NewLoader()
		require.NoError(t, l.Add([]byte("b"), nil))
		require.ErrorIs(t, l.Add([]byte(second), nil), errPartsOrder)
	}
}

func FuzzDecodeBlob(f *testing.F) {
	h := new(Hash)
	f.Add(h.AppendBlob(nil))
	set(h, "a", "1")
	set(h, "", strings.Repeat("x", 64))
	f.Add(h.AppendBlob(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeBlob(b)
		if err != nil {
			return
		}
		require.Len(t, contents(h), h.Len())
		again, err := DecodeBlob(h.AppendBlob(nil))
		require.NoError(t, err)
		require.Equal(t, pairs(h), pairs(again))
	})
}

func FuzzLoader(f *testing.F) {
	f.Add([]byte("\x00\x00\x01a\x02bc"))
	f.Add([]byte("\x01b\x00\x01a\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, want := NewLoader(), map[string]string{}
		for len(b) > 0 {
			var name, data []byte
			name, b = chunk(b)
			data, b = chunk(b)
			if l.Add(name, data) != nil {
				return
			}
			want[string(name)] = string(data)
		}
		h, err := l.Finish(nil)
		require.NoError(t, err)
		require.Equal(t, want, contents(h))
		for field, value := range want {
			got, ok := h.AppendPart(nil, field)
			require.True(t, ok)
			require.Equal(t, value, string(got))
		}
	})
}

// chunk takes a length and as many bytes from the front of b, or what there is.
func chunk(b []byte) (element, rest []byte) {
	if len(b) == 0 {
		return nil, nil
	}
	n := min(int(b[0]), len(b)-1)
	return b[1 : 1+n], b[1+n:]
}

func BenchmarkDecodeBlob(b *testing.B) {
	for _, n := range []int{4, 16, 128} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			blob := sizes(n)["listpack"].AppendBlob(nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeBlob(blob); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
