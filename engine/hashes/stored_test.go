package hashes

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/deadlines"
	"github.com/atomredis/atomredis/engine/delta"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// storage is what a store has of a value in parts.
type storage map[string]string

// write stores the changes up to the start of the checkpoint.
func (s storage) write(l *delta.Log, p delta.Parts) {
	if l == nil {
		return
	}
	for _, name := range l.Frozen().Sorted() {
		if data, ok := l.AppendFrozen(nil, name, p); ok {
			s[name] = string(data)
		} else {
			delete(s, name)
		}
	}
	l.Done()
}

// load builds the hash from its parts.
func (s storage) load(t require.TestingT, log *delta.Log, deadlines storage, deadlineLog *delta.Log) *Hash {
	l := NewLoader()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		require.NoError(t, l.Add([]byte(name), []byte(s[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(deadlines)) {
		require.NoError(t, l.AddDeadline([]byte(name), []byte(deadlines[name])))
	}
	if deadlineLog == nil {
		h, err := l.Finish(log)
		require.NoError(t, err)
		return h
	}
	h, err := l.FinishDeadlines(log, deadlineLog)
	require.NoError(t, err)
	return h
}

// track does what the keyspace does after a hash has changed.
func track(h *Hash, epochs *delta.Epochs) {
	if d := h.DeadlineIndex(); d != nil && d.Log() == nil {
		d.Track(delta.NewLog(8, epochs))
	}
}

// deadlineLog returns the log of a hash's deadlines, nil if there is none.
func deadlineLog(h *Hash) *delta.Log {
	if d := h.DeadlineIndex(); d != nil {
		return d.Log()
	}
	return nil
}

func TestCheckpointsStoreTheHashAsItWasWhenTheyBegan(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		epochs, stored, storedDeadlines := &delta.Epochs{Current: 1}, storage{}, storage{}
		log, lim := delta.NewLog(7, epochs), Limits{}
		field := rapid.Map(rapid.IntRange(0, 30), strconv.Itoa)
		h := new(Hash)
		for i := range rapid.IntRange(1, 20).Draw(t, "fields at first") {
			h.Set(strconv.AppendInt(nil, int64(i), 10), []byte("old"), lim)
		}
		require.True(t, h.Large())
		h.Track(log)
		var frozen *Hash           // the hash at the start of the unfinished checkpoint
		var frozenIndex *delta.Log // and the log of its deadlines
		begin := func() {
			if frozen == nil {
				epochs.Current++
				frozen, frozenIndex = h.Clone(), deadlineLog(h)
			}
		}
		end := func(t *rapid.T) {
			if frozen == nil {
				return
			}
			stored.write(log, h)
			storedDeadlines.write(frozenIndex, h.DeadlineIndex())
			loadedLog := delta.NewLog(7, epochs)
			var loadedIndex *delta.Log
			if frozenIndex != nil {
				loadedIndex = delta.NewLog(8, epochs)
			}
			loaded := stored.load(t, loadedLog, storedDeadlines, loadedIndex)
			require.Equal(t, contents(frozen), contents(loaded))
			require.Equal(t, deadlinesOf(frozen), deadlinesOf(loaded))
			require.Equal(t, frozen.NextDeadline(), loaded.NextDeadline())
			require.Same(t, loadedIndex, deadlineLog(loaded))
			require.Equal(t, "hashtable", loaded.Encoding())
			require.Same(t, loadedLog, loaded.Log())
			require.True(t, loadedLog.Clean())
			frozen = nil
			if l := deadlineLog(h); log.Clean() && (l == nil || l.Clean()) &&
				rapid.Bool().Draw(t, "go on with what was loaded") {
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
			"update": func(t *rapid.T) {
				h.Update([]byte(field.Draw(t, "field")), make([]byte, rapid.IntRange(0, 200).Draw(t, "size")), lim)
			},
			"delete": func(t *rapid.T) { h.Delete([]byte(field.Draw(t, "field"))) },
			"deadline": func(t *rapid.T) {
				h.SetDeadline([]byte(field.Draw(t, "field")), int64(rapid.IntRange(0, 20).Draw(t, "at")))
				track(h, epochs)
			},
			"expire": func(t *rapid.T) {
				h.Expire(int64(rapid.IntRange(0, 20).Draw(t, "now")), rapid.IntRange(0, 5).Draw(t, "max"), func([]byte) {})
			},
			"delete all": func(*rapid.T) {
				for f := range contents(h) {
					h.Delete([]byte(f))
				}
			},
			"change a clone": func(t *rapid.T) {
				c := h.Clone()
				require.Nil(t, c.Log())
				require.Nil(t, deadlineLog(c))
				c.Set([]byte("only in the clone"), nil, lim)
				c.SetDeadline([]byte("only in the clone"), 5)
				c.Expire(10, 3, func([]byte) {})
				c.Delete([]byte(field.Draw(t, "field")))
			},
			"begin": func(*rapid.T) { begin() },
			"fail": func(*rapid.T) {
				if frozen != nil {
					log.Abort(log.Frozen())
					if frozenIndex != nil {
						frozenIndex.Abort(frozenIndex.Frozen())
					}
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
	testseed.Check(t, func(t *rapid.T) {
		h := new(Hash)
		lim := Limits{100, rapid.SampledFrom([]int{2, 150, 1000}).Draw(t, "limit")}
		text := rapid.OneOf(rapid.StringN(-1, 3, -1), rapid.StringN(100, 200, -1))
		for range rapid.IntRange(0, 50).Draw(t, "fields") {
			field := []byte(text.Draw(t, "field"))
			if h.Set(field, []byte(text.Draw(t, "value")), lim); h.Large() {
				return
			}
			if rapid.IntRange(0, 9).Draw(t, "expires") == 0 {
				h.SetDeadline(field, rapid.Int64Min(1).Draw(t, "deadline"))
			}
		}
		got, err := DecodeBlob(h.AppendBlob(nil))
		require.NoError(t, err)
		require.Equal(t, pairs(h), pairs(got))
		require.Equal(t, h.Encoding(), got.Encoding())
		require.Equal(t, deadlinesOf(h), deadlinesOf(got))
	})
}

// pairs returns the fields and values in order.
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
		{"unknown format", "\x03", errFormat},
		{"field without value", "\x01\x01a", errCut},
		{"value cut short", "\x01\x01a\x02b", errCut},
		{"enormous length", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", errCut},
		{"length of too many bytes", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", errCut},
		{"field twice", "\x01\x01a\x00\x01a\x01b", errTwice},
		{"no deadline", "\x02\x01a\x01b", deadlines.ErrDamaged},
		{"deadline out of range", "\x02\x01a\x01b\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", deadlines.ErrDamaged},
		{"field with deadline twice", "\x02\x01a\x00\x00\x01a\x01b\x05", errTwice},
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

func TestLoaderRefusesDamagedDeadlines(t *testing.T) {
	l := NewLoader()
	require.NoError(t, l.Add([]byte("a"), nil))
	for _, data := range []string{"", "\x00", "\x05\x05", "\x80", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		require.ErrorIs(t, l.AddDeadline([]byte("a"), []byte(data)), deadlines.ErrDamaged, "%q", data)
	}
	require.NoError(t, l.AddDeadline([]byte("a"), []byte("\x05")))
	require.ErrorIs(t, l.AddDeadline([]byte("b"), []byte("\x05")), deadlines.ErrNoElement)
}

func FuzzDecodeBlob(f *testing.F) {
	h := new(Hash)
	f.Add(h.AppendBlob(nil))
	set(h, "a", "1")
	set(h, "", strings.Repeat("x", 64))
	f.Add(h.AppendBlob(nil))
	h.SetDeadline([]byte("a"), 1e12)
	f.Add(h.AppendBlob(nil))
	set(h, "", strings.Repeat("x", 65))
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
		require.Equal(t, h.Encoding(), again.Encoding())
		require.Equal(t, deadlinesOf(h), deadlinesOf(again))
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

// chunk removes a length and as many bytes, or what is left, from the front of b.
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
