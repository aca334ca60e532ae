package hashes

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/listpack"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

var usual = Limits{Entries: 128, Value: 64}

func contents(h *Hash) map[string]string {
	m := map[string]string{}
	for f, v := range h.All() {
		m[string(f)] = string(v)
	}
	return m
}

// deadlines returns the fields that expire.
func deadlinesOf(h *Hash) map[string]int64 {
	m := map[string]int64{}
	for f, at := range h.Deadlines() {
		m[string(f)] = at
	}
	return m
}

func set(h *Hash, field, value string) bool { return h.Set([]byte(field), []byte(value), usual) }

func TestBecomesLargeBeyondTheLimitsAndStaysLarge(t *testing.T) {
	long := strings.Repeat("x", 65)
	tests := []struct {
		name   string
		lim    Limits
		sets   [][2]string
		encode string
	}{
		{"at the value limit", usual, [][2]string{{long[1:], long[1:]}}, "listpack"},
		{"long value", usual, [][2]string{{"f", long}}, "hashtable"},
		{"long field", usual, [][2]string{{long, "v"}}, "hashtable"},
		{"long value replaces a short one", usual, [][2]string{{"f", "v"}, {"f", long}}, "hashtable"},
		{"at the entry limit", Limits{2, 64}, [][2]string{{"a", ""}, {"b", ""}, {"b", "1"}}, "listpack"},
		{"beyond the entry limit", Limits{2, 64}, [][2]string{{"a", ""}, {"b", ""}, {"c", ""}}, "hashtable"},
		{"no small hashes", Limits{0, 64}, [][2]string{{"a", ""}}, "hashtable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h Hash
			want := map[string]string{}
			for _, s := range tt.sets {
				h.Set([]byte(s[0]), []byte(s[1]), tt.lim)
				want[s[0]] = s[1]
			}
			require.Equal(t, tt.encode, h.Encoding())
			require.Equal(t, want, contents(&h))
			for f := range want {
				require.True(t, h.Delete([]byte(f)))
			}
			require.Zero(t, h.Len())
			require.Equal(t, tt.encode, h.Encoding())
		})
	}
}

func TestSmallHashOutgrowsItsBufferWhateverTheLimits(t *testing.T) {
	lim := Limits{1 << 30, 1 << 30}
	long, many := new(Hash), new(Hash)
	value := bytes.Repeat([]byte("v"), listpack.MaxSize/2)
	for i := range 3 {
		require.Equal(t, map[bool]string{false: "listpack", true: "hashtable"}[i == 2], long.Encoding())
		require.True(t, long.Set([]byte{byte(i)}, value[i:], lim))
	}
	for i := range 3 {
		v, _ := long.Get([]byte{byte(i)})
		require.Len(t, v, len(value)-i)
	}
	blob := binary.AppendUvarint([]byte("\x01\x01f"), uint64(listpack.MaxSize))
	_, err := DecodeBlob(append(blob, make([]byte, listpack.MaxSize)...))
	require.ErrorIs(t, err, errTooLong)

	fields := make([]byte, 4)
	for i := range 1<<15 + 10 {
		if i < 1<<15-1 {
			// Without the search of Set, which would take long.
			many.small.Append(binary.BigEndian.AppendUint32(fields[:0], uint32(i)), nil)
			continue
		}
		require.Equal(t, i, many.Len())
		require.True(t, many.Set(binary.BigEndian.AppendUint32(fields[:0], uint32(i)), nil, lim))
	}
	require.Equal(t, "hashtable", many.Encoding())
	require.Equal(t, 1<<15+10, many.Len())
	require.Len(t, contents(many), 1<<15+10)
}

func TestSmallHashKeepsTheOrderOfItsFields(t *testing.T) {
	var h Hash
	for _, f := range []string{"c", "a", "d", "b"} {
		set(&h, f, f)
	}
	set(&h, "a", "a longer value")
	h.Delete([]byte("d"))
	var got []string
	for f, v := range h.All() {
		got = append(got, string(f), string(v))
	}
	require.Equal(t, []string{"c", "c", "a", "a longer value", "b", "b"}, got)
}

func TestFieldsAreNotConfusedWithValues(t *testing.T) {
	var h Hash
	set(&h, "a", "b")
	require.False(t, h.Has([]byte("b")))
	require.False(t, h.Delete([]byte("b")))
	require.True(t, set(&h, "b", "a"))
	require.Equal(t, map[string]string{"a": "b", "b": "a"}, contents(&h))
}

func TestBehavesLikeAMap(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		lim := Limits{
			Entries: rapid.SampledFrom([]int{0, 4, 128}).Draw(t, "entries"),
			Value:   rapid.SampledFrom([]int{3, 64}).Draw(t, "value"),
		}
		h := new(Hash)
		model, expires := map[string]string{}, map[string]int64{}
		field := rapid.Map(rapid.IntRange(0, 20), strconv.Itoa)
		wasLarge := false
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				f := field.Draw(t, "field")
				n := rapid.SampledFrom([]int{0, 1, 3, 4, 64, 65, 300, 2000, 70_000}).Draw(t, "size")
				v := strings.Repeat(rapid.SampledFrom([]string{"a", "b", "\x00", "\xff"}).Draw(t, "byte"), n)
				_, had := model[f]
				require.Equal(t, !had, h.Set([]byte(f), []byte(v), lim))
				model[f] = v
				delete(expires, f)
			},
			"update": func(t *rapid.T) {
				f, v := field.Draw(t, "field"), strings.Repeat("u", rapid.SampledFrom([]int{0, 3, 65, 300, 3000}).Draw(t, "size"))
				_, had := model[f]
				require.Equal(t, !had, h.Update([]byte(f), []byte(v), lim))
				model[f] = v
			},
			"deadline": func(t *rapid.T) {
				f, at := field.Draw(t, "field"), rapid.SampledFrom([]int64{0, 1, 2, 3, 255, 256, 1e12, math.MaxInt64}).Draw(t, "at")
				_, had := model[f]
				require.Equal(t, had, h.SetDeadline([]byte(f), at))
				if delete(expires, f); had && at != 0 {
					expires[f] = at
				}
			},
			"expire": func(t *rapid.T) {
				now, limit, n := rapid.SampledFrom([]int64{0, 1, 2, 255, 1e12}).Draw(t, "now"),
					rapid.IntRange(0, 10).Draw(t, "max"), 0
				removed := h.Expire(now, limit, func(f []byte) {
					require.LessOrEqual(t, expires[string(f)], now)
					require.Contains(t, expires, string(f))
					delete(expires, string(f))
					delete(model, string(f))
					n++
				})
				require.Equal(t, n, removed)
				require.LessOrEqual(t, n, limit)
				if n < limit {
					for _, at := range expires {
						require.Greater(t, at, now)
					}
				}
			},
			"get": func(t *rapid.T) {
				f := field.Draw(t, "field")
				want, had := model[f]
				v, ok := h.Get([]byte(f))
				require.Equal(t, had, ok)
				require.Equal(t, had, h.Has([]byte(f)))
				require.Equal(t, want, string(v))
			},
			"delete": func(t *rapid.T) {
				f := field.Draw(t, "field")
				_, had := model[f]
				require.Equal(t, had, h.Delete([]byte(f)))
				delete(model, f)
				delete(expires, f)
			},
			"clone": func(t *rapid.T) {
				old := h
				h = h.Clone()
				for f := range model {
					old.Set([]byte(f), []byte("gone"), lim)
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), h.Len())
				require.True(t, maps.Equal(model, contents(h)))
				require.Equal(t, expires, deadlinesOf(h))
				next := int64(0)
				for _, at := range expires {
					if next == 0 || at < next {
						next = at
					}
				}
				require.Equal(t, next, h.NextDeadline())
				for _, now := range []int64{0, 1, 2, 255, 1e12, math.MaxInt64} {
					all := len(expires) == len(model)
					for _, at := range expires {
						all = all && at <= now
					}
					require.Equal(t, all, h.AllExpired(now) || len(model) == 0)
				}
				for f := range 21 {
					name := strconv.Itoa(f)
					at, ok := h.Deadline([]byte(name))
					_, exists := model[name]
					require.Equal(t, exists, ok)
					require.Equal(t, expires[name], at)
				}
				if l := h.large(); l != nil {
					bytes := 0
					for f := range l.fields.All() {
						bytes += f.size()
					}
					require.Equal(t, bytes, l.bytes)
				}
				picked := 0
				h.Sample(h.Len(), func(f, v []byte) {
					require.Equal(t, model[string(f)], string(v))
					picked++
				})
				require.Equal(t, len(model), picked)
				h.Random(2, func(f, v []byte) { require.Equal(t, model[string(f)], string(v)) })
				h.Random(1, func(f, v []byte) { require.Equal(t, model[string(f)], string(v)) })
				large := h.Encoding() == "hashtable"
				require.True(t, large || !wasLarge, "a large hash became small")
				wasLarge = large
			},
		})
	})
}

// sizes returns hashes of n fields in both representations.
func sizes(n int) map[string]*Hash {
	small, large := new(Hash), new(Hash)
	for i := range n {
		f, v := fmt.Appendf(nil, "f%d", i), fmt.Appendf(nil, "v%d", i)
		small.Set(f, v, Limits{n, 64})
		large.Set(f, v, Limits{0, 0})
	}
	return map[string]*Hash{small.Encoding(): small, large.Encoding(): large}
}

func requirePair(t require.TestingT, field, value []byte) {
	require.Equal(t, "v"+string(field[1:]), string(value))
}

func TestScanVisitsAllFields(t *testing.T) {
	for encoding, h := range sizes(100) {
		t.Run(encoding, func(t *testing.T) {
			calls, seen := 0, map[string]bool{}
			for cursor := uint64(0); calls == 0 || cursor != 0; calls++ {
				cursor = h.Scan(cursor, 10, func(f, v []byte) {
					requirePair(t, f, v)
					seen[string(f)] = true
				})
			}
			require.Len(t, seen, 100)
			require.Equal(t, map[string]int{"listpack": 1, "hashtable": 10}[encoding], calls)
		})
	}
}

func TestRandomChoosesWithRepetition(t *testing.T) {
	for encoding, h := range sizes(10) {
		t.Run(encoding, func(t *testing.T) {
			for _, count := range []int{-1, 0, 1, 1000} {
				picks, seen := 0, map[string]bool{}
				h.Random(count, func(f, v []byte) {
					requirePair(t, f, v)
					seen[string(f)] = true
					picks++
				})
				require.Equal(t, max(count, 0), picks)
				if count == 1000 {
					require.Len(t, seen, 10)
				}
			}
		})
	}
	new(Hash).Random(5, func(_, _ []byte) { t.Fatal("an empty hash has no fields") })
}

func TestSampleChoosesWithoutRepetition(t *testing.T) {
	for encoding, h := range sizes(10) {
		t.Run(encoding, func(t *testing.T) {
			for _, count := range []int{-1, 0, 1, 2, 9, 10, 11} {
				seen := map[string]bool{}
				h.Sample(count, func(f, v []byte) {
					requirePair(t, f, v)
					require.False(t, seen[string(f)])
					seen[string(f)] = true
				})
				require.Len(t, seen, max(0, min(count, 10)))
			}
		})
	}
}

func TestReplacingALongValueByAShortOneFreesIt(t *testing.T) {
	var h Hash
	h.Set([]byte("f"), bytes.Repeat([]byte("x"), 1000), usual)
	set(&h, "f", "short")
	v, _ := h.Get([]byte("f"))
	require.Equal(t, "short", string(v))
	require.Less(t, h.MemoryUsage(), 100)
	h.Set([]byte("f"), bytes.Repeat([]byte("x"), 2000), usual)
	set(&h, "f", "short")
	f, ok := h.large().fields.GetString("f")
	require.True(t, ok)
	_, _, size := f.bounds()
	require.Less(t, size, 100)
}

// A hash of a few hundred bytes needs no table, whatever its encoding.
func TestLongValuesStayInTheBufferWhileItIsSmall(t *testing.T) {
	var h Hash
	value := bytes.Repeat([]byte("x"), 300)
	for range 3 {
		h.Set([]byte("a"), value, usual)
		h.Set([]byte("b"), value, usual)
		require.True(t, h.SetDeadline([]byte("b"), 5))
		require.Equal(t, "hashtable", h.Encoding())
		require.False(t, h.Large())
		require.LessOrEqual(t, h.MemoryUsage(), 16+640)
	}
	h.Set([]byte("c"), value, usual)
	require.False(t, h.Large())
	require.Equal(t, map[string]int64{"b": 5}, deadlinesOf(&h))
	h.Set([]byte("d"), value, usual)
	require.True(t, h.Large())
	require.Equal(t, map[string]int64{"b": 5}, deadlinesOf(&h))
	require.Len(t, contents(&h), 4)
}

func TestReplacingAndReadingDoNotAllocate(t *testing.T) {
	for encoding, h := range sizes(100) {
		t.Run(encoding, func(t *testing.T) {
			lim := Limits{100, 64}
			field, miss, value := []byte("f50"), []byte("g"), []byte("v50")
			require.Zero(t, testing.AllocsPerRun(100, func() {
				h.Set(field, value, lim)
				h.Get(field)
				h.Has(miss)
				h.Delete(miss)
				n := 0
				for _, v := range h.All() {
					n += len(v)
				}
			}))
		})
	}
}

func BenchmarkSetReplace(b *testing.B) {
	for encoding, h := range sizes(128) {
		b.Run(encoding, func(b *testing.B) {
			field, value, lim := []byte("f64"), []byte("v64"), Limits{128, 64}
			b.ReportAllocs()
			for b.Loop() {
				h.Set(field, value, lim)
			}
		})
	}
}

func TestDeadlinesThatDoNotFitMakeASmallHashLarge(t *testing.T) {
	lim := Limits{1 << 30, 1 << 30}
	var h Hash
	for i := range 1<<16/3 + 1 {
		// Without the search of Set, which would take long.
		h.small.Append(binary.BigEndian.AppendUint32(nil, uint32(i)), nil)
	}
	last := make([]byte, 4)
	require.True(t, h.SetDeadline(last, 0))
	require.False(t, h.SetDeadline([]byte("none"), 7))
	require.Equal(t, "listpack", h.Encoding())
	require.True(t, h.SetDeadline(last, 7))
	require.Equal(t, "hashtable", h.Encoding())
	require.Equal(t, 1<<16/3+1, h.Len())
	require.Equal(t, map[string]int64{string(last): 7}, deadlinesOf(&h))

	var full Hash
	full.Set([]byte("f"), make([]byte, listpack.MaxSize-30), lim)
	require.True(t, full.SetDeadline([]byte("f"), 1))
	require.Equal(t, "listpackex", full.Encoding())
	for at := int64(1); full.Encoding() != "hashtable"; at <<= 8 {
		require.Positive(t, at)
		full.Set(fmt.Append(nil, at), nil, lim)
		require.True(t, full.SetDeadline([]byte("f"), at))
		require.Equal(t, at, full.NextDeadline())
	}
}

func TestExpiredFieldsAreGivenOutBeforeTheyGo(t *testing.T) {
	for encoding, h := range sizes(10) {
		t.Run(encoding, func(t *testing.T) {
			for i := range 10 {
				require.True(t, h.SetDeadline(fmt.Appendf(nil, "f%d", i), int64(i+1)))
			}
			var gone []string
			n := h.Expire(5, 3, func(f []byte) {
				v, ok := h.Get(f)
				require.True(t, ok)
				requirePair(t, f, v)
				gone = append(gone, string(f))
			})
			require.Equal(t, 3, n)
			require.Equal(t, []string{"f0", "f1", "f2"}, gone)
			require.Equal(t, int64(4), h.NextDeadline())
			require.Equal(t, 7, h.Expire(100, 100, func([]byte) {}))
			require.Zero(t, h.Len())
			require.Zero(t, h.NextDeadline())
		})
	}
}

func TestMemoryOfDeadlinesCounts(t *testing.T) {
	for encoding, h := range sizes(100) {
		t.Run(encoding, func(t *testing.T) {
			before := h.MemoryUsage()
			for i := range 100 {
				h.SetDeadline(fmt.Appendf(nil, "f%d", i), 1e12)
			}
			require.Greater(t, h.MemoryUsage(), before+400)
		})
	}
}

// A deadline takes 16 bytes in a large hash, whichever fields have one, and nothing after its removal.
func TestDeadlinesTakeLittleMemory(t *testing.T) {
	const n = 100_000
	fields, h := names(n), new(Hash)
	for _, f := range fields {
		h.Set(f, []byte("v"), Limits{})
	}
	without := h.MemoryUsage()
	for i, f := range fields {
		require.True(t, h.SetDeadline(f, int64(1+i*7919%n)))
	}
	require.InDelta(t, 16*n, h.MemoryUsage()-without, n)
	for _, f := range fields[1:] {
		h.SetDeadline(f, 0)
	}
	require.Less(t, h.MemoryUsage()-without, 64<<10+4*n)
	h.SetDeadline(fields[0], 0)
	require.InDelta(t, without, h.MemoryUsage(), 200)
	for _, f := range fields {
		h.SetDeadline(f, 5)
	}
	require.Equal(t, n-1, h.Expire(5, n-1, func([]byte) {}))
	require.Less(t, h.MemoryUsage(), 128<<10)
}
