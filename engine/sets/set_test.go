package sets

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/listpack"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

var usual = Limits{IntsetEntries: 512, ListpackEntries: 128, ListpackValue: 64}

func setOf(lim Limits, members ...string) *Set {
	s := new(Set)
	for _, m := range members {
		s.Add([]byte(m), lim)
	}
	return s
}

// members collects the members from All, and fails if one is repeated.
func members(t require.TestingT, s *Set) map[string]bool {
	m := map[string]bool{}
	for member := range s.All() {
		require.False(t, m[string(member)], "%q comes twice", member)
		m[string(member)] = true
	}
	require.Equal(t, len(m), s.Len())
	return m
}

// requireDeadlines checks which members of a set expire.
func requireDeadlines(t require.TestingT, s *Set, want map[string]int64) {
	require.Equal(t, want, deadlinesOf(s))
	next, latest := int64(0), int64(0)
	for _, at := range want {
		if next == 0 || at < next {
			next = at
		}
		latest = max(latest, at)
	}
	require.Equal(t, next, s.NextDeadline())
	for _, now := range []int64{0, next - 1, next, latest - 1, latest} {
		require.True(t, s.Len() == 0 || s.AllExpired(now) == (len(want) == s.Len() && latest <= now))
	}
	for m := range s.All() {
		at, ok := s.Deadline(m)
		require.True(t, ok)
		require.Equal(t, want[string(m)], at)
	}
	_, ok := s.Deadline([]byte("no member"))
	require.False(t, ok)
}

// deadlinesOf returns the members that expire.
func deadlinesOf(s *Set) map[string]int64 {
	m := map[string]int64{}
	for member, at := range s.Deadlines() {
		m[string(member)] = at
	}
	return m
}

func numbers(n int) []string {
	var list []string
	for i := range n {
		list = append(list, strconv.Itoa(i))
	}
	return list
}

func words(n int) []string {
	var list []string
	for i := range n {
		list = append(list, "w"+strconv.Itoa(i))
	}
	return list
}

// each returns a set of the given members in every representation.
func each(list []string) map[string]*Set {
	sets := map[string]*Set{}
	for _, s := range []*Set{
		setOf(Limits{IntsetEntries: len(list)}, list...),
		setOf(Limits{0, 0, 0}, list...),
		setOf(Limits{len(list) + 1, len(list) + 1, 64}, append([]string{"x"}, list...)...),
	} {
		s.Remove([]byte("x"))
		sets[s.Encoding()] = s
	}
	return sets
}

func TestRepresentationFollowsTheMembersAndTheLimits(t *testing.T) {
	long := strings.Repeat("x", 65)
	tests := []struct {
		name    string
		lim     Limits
		members []string
		want    string
	}{
		{"integers at the limit", usual, numbers(512), "intset"},
		{"integers beyond the limit", usual, numbers(513), "hashtable"},
		{"integers may not be an intset", Limits{0, 128, 64}, numbers(1), "hashtable"},
		{"words at the limit", usual, words(128), "listpack"},
		{"words beyond the limit", usual, words(129), "hashtable"},
		{"known word at the limit", usual, append(words(128), "w0"), "listpack"},
		{"member at the length limit", usual, []string{long[1:]}, "listpack"},
		{"long member first", usual, []string{long}, "hashtable"},
		{"long member later", usual, []string{"a", long}, "hashtable"},
		{"integer into a listpack", usual, []string{"a", "1"}, "listpack"},
		{"word into an intset that leaves room", usual, append(numbers(127), "a"), "listpack"},
		{"word into an intset that leaves none", usual, append(numbers(128), "a"), "hashtable"},
		{"long word into an intset", usual, []string{"1", long}, "hashtable"},
		{"word into an intset of long integers", Limits{512, 128, 3}, []string{"-100", "1", "a"}, "hashtable"},
		{"word into an intset of short integers", Limits{512, 128, 3}, []string{"-10", "100", "a"}, "listpack"},
		{"integer that is not canonical", usual, []string{"1", "01"}, "listpack"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := setOf(tt.lim, tt.members...)
			require.Equal(t, tt.want, s.Encoding())
			got := members(t, s)
			for _, m := range tt.members {
				require.True(t, got[m])
				require.True(t, s.Contains([]byte(m)))
			}
			for m := range got {
				require.True(t, s.Remove([]byte(m)))
				require.False(t, s.Remove([]byte(m)))
			}
			require.Zero(t, s.Len())
			require.Equal(t, tt.want, s.Encoding())
		})
	}
}

func TestCompactSetOutgrowsItsBufferWhateverTheLimits(t *testing.T) {
	lim := Limits{1 << 30, 1 << 30, 1 << 30}
	words := new(Set)
	long := bytes.Repeat([]byte("m"), listpack.MaxSize/2)
	for i := range 3 {
		words.Add(long[i:], lim)
	}
	require.Equal(t, "hashtable", words.Encoding())
	require.Equal(t, 3, words.Len())

	const most = listpack.MaxSize / 8
	blob := []byte("\x01\x08")
	for i := range most {
		blob = binary.LittleEndian.AppendUint64(blob, uint64(i)<<32)
	}
	ints, err := DecodeBlob(blob)
	require.NoError(t, err)
	require.Equal(t, "intset", ints.Encoding())
	require.True(t, ints.Add([]byte("-1"), lim))
	require.Equal(t, "hashtable", ints.Encoding())
	require.Equal(t, most+1, ints.Len())

	ints, err = DecodeBlob(blob)
	require.NoError(t, err)
	require.True(t, ints.Add([]byte("too many for a listpack"), lim))
	require.Equal(t, "hashtable", ints.Encoding())
	require.Equal(t, most+1, ints.Len())

	_, err = DecodeBlob(binary.LittleEndian.AppendUint64(blob, 1<<62))
	require.ErrorIs(t, err, errTooLong)
	blob = binary.AppendUvarint([]byte("\x02"), uint64(listpack.MaxSize))
	_, err = DecodeBlob(append(blob, make([]byte, listpack.MaxSize)...))
	require.ErrorIs(t, err, errTooLong)
}

func TestNilSetReadsAsEmpty(t *testing.T) {
	var s *Set
	require.Zero(t, s.Len())
	require.False(t, s.Contains([]byte("1")))
	require.Empty(t, members(t, s))
	never := func([]byte) { t.Fatal("no members") }
	require.Zero(t, s.Scan(3, 10, never))
	s.Random(3, never)
	s.Sample(3, never)
	_, ok := s.Deadline([]byte("1"))
	require.False(t, ok)
}

func TestBehavesLikeASetOfStrings(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		lim := Limits{
			IntsetEntries:   rapid.SampledFrom([]int{0, 5, 512}).Draw(t, "intset entries"),
			ListpackEntries: rapid.SampledFrom([]int{0, 7, 128}).Draw(t, "listpack entries"),
			ListpackValue:   rapid.SampledFrom([]int{2, 64}).Draw(t, "listpack value"),
		}
		s := new(Set)
		model, expires := map[string]bool{}, map[string]int64{}
		order := map[string]int{"intset": 0, "listpack": 1, "listpackex": 2, "hashtable": 3}
		last := 0
		options := []*rapid.Generator[string]{rapid.Map(rapid.IntRange(-20, 20), strconv.Itoa)}
		if rapid.Bool().Draw(t, "words too") {
			options = append(options, rapid.SampledFrom([]string{"", "-0", "01", "a", "b", "word", "\xff\x00"}))
		}
		member := rapid.OneOf(options...)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				m := member.Draw(t, "member")
				require.Equal(t, !model[m], s.Add([]byte(m), lim))
				model[m] = true
			},
			"remove": func(t *rapid.T) {
				m := member.Draw(t, "member")
				require.Equal(t, model[m], s.Remove([]byte(m)))
				delete(model, m)
				delete(expires, m)
			},
			"deadline": func(t *rapid.T) {
				m, at := member.Draw(t, "member"), rapid.SampledFrom([]int64{0, 1, 2, 3, 255, 256, 1e12, math.MaxInt64}).Draw(t, "at")
				require.Equal(t, model[m], s.SetDeadline([]byte(m), at, lim))
				if delete(expires, m); model[m] && at != 0 {
					expires[m] = at
				}
			},
			"expire": func(t *rapid.T) {
				now, limit, n := rapid.SampledFrom([]int64{0, 1, 2, 255, 1e12}).Draw(t, "now"),
					rapid.IntRange(0, 10).Draw(t, "max"), 0
				removed := s.Expire(now, limit, func(m []byte) {
					require.LessOrEqual(t, expires[string(m)], now)
					require.Contains(t, expires, string(m))
					delete(expires, string(m))
					delete(model, string(m))
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
			"contains": func(t *rapid.T) {
				m := member.Draw(t, "member")
				require.Equal(t, model[m], s.Contains([]byte(m)))
			},
			"pop": func(t *rapid.T) {
				m, ok := s.Pop(nil)
				require.Equal(t, len(model) > 0, ok)
				if ok {
					require.True(t, model[string(m)])
					delete(model, string(m))
					delete(expires, string(m))
				}
			},
			"clone": func(t *rapid.T) {
				old := s
				s = s.Clone()
				for old.Len() > 0 {
					old.Pop(nil)
				}
				old.Add([]byte("other"), lim)
			},
			"": func(t *rapid.T) {
				require.True(t, maps.Equal(model, members(t, s)))
				requireDeadlines(t, s, expires)
				if l := s.large(); l != nil {
					bytes := 0
					for m := range model {
						bytes += textSize([]byte(m))
					}
					require.Equal(t, bytes, l.bytes)
				}
				now := order[s.Encoding()]
				require.GreaterOrEqual(t, now, last, "a representation went back")
				last = now
			},
		})
	})
}

func TestScanVisitsAllMembers(t *testing.T) {
	for encoding, s := range each(numbers(100)) {
		t.Run(encoding, func(t *testing.T) {
			calls, seen := 0, map[string]bool{}
			for cursor := uint64(0); calls == 0 || cursor != 0; calls++ {
				cursor = s.Scan(cursor, 10, func(m []byte) { seen[string(m)] = true })
			}
			require.Len(t, seen, 100)
			require.Equal(t, map[string]int{"intset": 1, "listpack": 1, "hashtable": 10}[encoding], calls)
		})
	}
}

func TestRandomChoosesWithRepetition(t *testing.T) {
	for encoding, s := range each(numbers(10)) {
		t.Run(encoding, func(t *testing.T) {
			for _, count := range []int{-1, 0, 1, 1000} {
				picks, seen := 0, map[string]bool{}
				s.Random(count, func(m []byte) {
					require.True(t, s.Contains(m))
					seen[string(m)] = true
					picks++
				})
				require.Equal(t, max(count, 0), picks)
				if count == 1000 {
					require.Len(t, seen, 10)
				}
			}
		})
	}
}

func TestSampleChoosesWithoutRepetition(t *testing.T) {
	for encoding, s := range each(numbers(10)) {
		t.Run(encoding, func(t *testing.T) {
			for _, count := range []int{-1, 0, 1, 2, 9, 10, 11} {
				seen := map[string]bool{}
				s.Sample(count, func(m []byte) {
					require.True(t, s.Contains(m))
					require.False(t, seen[string(m)])
					seen[string(m)] = true
				})
				require.Len(t, seen, max(0, min(count, 10)))
			}
		})
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	for encoding, s := range each(numbers(100)) {
		t.Run(encoding, func(t *testing.T) {
			hit, miss, scratch := []byte("50"), []byte("a member that is not there"), make([]byte, 0, 32)
			lim := Limits{1000, 1000, 64}
			require.Zero(t, testing.AllocsPerRun(100, func() {
				s.Contains(hit)
				s.Contains(miss)
				s.Add(hit, lim)
				s.Remove(miss)
				n := 0
				for m := range s.All() {
					n += len(m)
				}
			}))
			require.Zero(t, testing.AllocsPerRun(10, func() {
				_, ok := s.Pop(scratch)
				require.True(t, ok)
			}))
		})
	}
}

func TestAlgebraAgreesWithTheDefinitions(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		operand := rapid.Custom(func(t *rapid.T) *Set {
			list := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 12), strconv.Itoa), 0, 12).Draw(t, "members")
			if rapid.Bool().Draw(t, "words") {
				list = append(list, "a")
			}
			if len(list) == 0 {
				return nil
			}
			return setOf(rapid.SampledFrom([]Limits{usual, {}}).Draw(t, "limits"), list...)
		})
		sets := rapid.SliceOfN(operand, 0, 7).Draw(t, "sets")
		given := slices.Clone(sets)

		count := map[string]int{}
		union, intersection, difference := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for i, s := range sets {
			for m := range s.All() {
				k := string(m)
				count[k]++
				union[k] = true
				if count[k] == len(sets) {
					intersection[k] = true
				}
				if i == 0 {
					difference[k] = true
				} else {
					delete(difference, k)
				}
			}
		}

		require.True(t, maps.Equal(union, members(t, Union(sets, usual))))

		got := map[string]bool{}
		Difference(sets, 0, func(m []byte) {
			require.False(t, got[string(m)])
			got[string(m)] = true
		})
		require.True(t, maps.Equal(difference, got))

		limit := rapid.IntRange(0, 5).Draw(t, "limit")
		want := len(intersection)
		if limit > 0 {
			want = min(want, limit)
		}
		got = map[string]bool{}
		Intersect(sets, limit, func(m []byte) {
			require.True(t, intersection[string(m)])
			got[string(m)] = true
		})
		require.Len(t, got, want)
		require.Equal(t, given, sets)
	})
}

func TestDifferenceWithManySetsLeavesTheFirstAsItIs(t *testing.T) {
	first := setOf(usual, words(100)...)
	operands := []*Set{first}
	for _, w := range words(99) {
		operands = append(operands, setOf(usual, w))
	}
	var got []string
	Difference(operands, 0, func(m []byte) { got = append(got, string(m)) })
	require.Equal(t, []string{"w99"}, got)
	require.Equal(t, 100, first.Len())
}

func BenchmarkContains(b *testing.B) {
	for encoding, s := range each(numbers(128)) {
		b.Run(encoding, func(b *testing.B) {
			member := []byte("64")
			b.ReportAllocs()
			for b.Loop() {
				s.Contains(member)
			}
		})
	}
}
