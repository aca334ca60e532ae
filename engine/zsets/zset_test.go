package zsets

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/listpack"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// entry is a member of the model, which is a sorted slice.
type entry struct {
	member string
	score  float64
}

func compare(a, b entry) int {
	return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.member, b.member))
}

// check checks the invariants of a set.
func check(t require.TestingT, z *ZSet) {
	l := z.large()
	if l == nil {
		return
	}
	require.Zero(t, z.small.Len())
	require.Equal(t, l.members.Len(), l.order.len)
	var previous *item
	leaves, inners, bytes := 0, 0, 0
	var walk func(b *node, low, high *item) int
	walk = func(b *node, low, high *item) int {
		require.LessOrEqual(t, b.n, maxItems)
		for i := range b.items[b.n:] {
			if b.items[b.n+i] != (item{}) {
				require.Fail(t, "a member is kept in memory where no item is")
			}
		}
		if b.inner == nil {
			for i := range b.items[:b.n] {
				it := &b.items[i]
				ordered := (previous == nil || previous.less(it)) && (low == nil || !it.less(low)) && (high == nil || it.less(high))
				require.True(t, ordered, "items are in order, within the bounds of their node")
				m, ok := l.members.Get(it.member.name())
				require.True(t, ok && *m == it.member, "the tree and the hash table share their members")
				require.Equal(t, *m.score(), it.score)
				previous = it
				bytes += m.size()
			}
			leaves++
			return b.n
		}
		for _, kid := range b.inner.kids[b.n+1:] {
			require.Nil(t, kid)
		}
		total := 0
		for i, kid := range b.inner.kids[:b.n+1] {
			from, to := low, high
			if i > 0 {
				from = &b.items[i-1]
			}
			if i < b.n {
				to = &b.items[i]
			}
			n := walk(kid, from, to)
			require.Positive(t, n, "no node is empty")
			require.EqualValues(t, b.inner.counts[i], n, "counts are right")
			total += n
		}
		inners++
		return total
	}
	if l.order.root != nil {
		require.Equal(t, l.order.len, walk(l.order.root, nil, nil))
	}
	require.Equal(t, [3]int{leaves, inners, bytes}, [3]int{l.order.leaves, l.order.inners, l.bytes})
}

// ascending returns every member in order, by walking.
func ascending(z *ZSet) []entry {
	out := []entry{}
	z.RangeByRank(0, z.Len()-1, false, func(member []byte, score float64) bool {
		out = append(out, entry{string(member), score})
		return true
	})
	return out
}

func TestZSetBehavesAsASortedSlice(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		lim := rapid.SampledFrom([]Limits{DefaultLimits, {}, {5, 64}, {20, 3}, {300, 64}}).Draw(t, "limits")
		sameScores := rapid.Bool().Draw(t, "same scores") // so that ranges by name make sense
		name := rapid.Custom(func(t *rapid.T) string {
			if rapid.Bool().Draw(t, "spread") {
				return fmt.Sprint(rapid.IntRange(0, 400).Draw(t, "number"))
			}
			return rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00ÿ")), 0, 4, -1).Draw(t, "name")
		})
		scores := []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 2.5, 1e300, math.Inf(1), math.Inf(-1)}
		if sameScores {
			scores = scores[:2]
		}
		score := rapid.SampledFrom(scores)
		z, model := New(), []entry{}
		find := func(member string) int {
			return slices.IndexFunc(model, func(e entry) bool { return e.member == member })
		}
		set := func(member string, score float64) {
			if i := find(member); i >= 0 {
				model[i].score = score
			} else {
				model = append(model, entry{member, score})
			}
			slices.SortFunc(model, compare)
		}
		index := func(t *rapid.T) int { return rapid.IntRange(-1, len(model)).Draw(t, "index") }
		var got []entry
		add := func(member []byte, score float64) { got = append(got, entry{string(member), score}) }
		collect := func(member []byte, score float64) bool { add(member, score); return true }
		// expect applies offset and limit to the model's answer.
		expect := func(in []entry, reverse bool, offset, limit int) []entry {
			out := slices.Clone(in)
			if reverse {
				slices.Reverse(out)
			}
			if offset < 0 || offset >= len(out) {
				return nil
			}
			out = out[offset:]
			if limit >= 0 && limit < len(out) {
				out = out[:limit]
			}
			return append([]entry(nil), out...)
		}
		scoreRange := func(t *rapid.T) (ScoreRange, []entry) {
			r := ScoreRange{score.Draw(t, "min"), score.Draw(t, "max"), rapid.Bool().Draw(t, "minex"),
				rapid.Bool().Draw(t, "maxex")}
			var in []entry
			for _, e := range model {
				if (e.score > r.Min || e.score == r.Min && !r.MinEx) && (e.score < r.Max || e.score == r.Max && !r.MaxEx) {
					in = append(in, e)
				}
			}
			return r, in
		}
		lexRange := func(t *rapid.T) (LexRange, []entry) {
			bound := func(label string) LexBound {
				return LexBound{rapid.SampledFrom([]LexKind{LexMin, LexMax, Inclusive, Exclusive}).Draw(t, label),
					[]byte(name.Draw(t, label))}
			}
			r := LexRange{bound("min"), bound("max")}
			above := func(m string, b LexBound) bool {
				return b.Kind == LexMin || b.Kind == Inclusive && m >= string(b.Member) || b.Kind == Exclusive &&
					m > string(b.Member)
			}
			below := func(m string, b LexBound) bool {
				return b.Kind == LexMax || b.Kind == Inclusive && m <= string(b.Member) || b.Kind == Exclusive &&
					m < string(b.Member)
			}
			var in []entry
			for _, e := range model {
				if above(e.member, r.Min) && below(e.member, r.Max) {
					in = append(in, e)
				}
			}
			return r, in
		}
		without := func(gone []entry) {
			model = slices.DeleteFunc(slices.Clone(model), func(e entry) bool { return slices.Contains(gone, e) })
		}
		t.Repeat(map[string]func(*rapid.T){
			"Set": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 1, 50}).Draw(t, "times") {
					m, s := name.Draw(t, "member"), score.Draw(t, "score")
					i := find(m)
					old, existed := z.Set([]byte(m), s, lim)
					require.Equal(t, i >= 0, existed)
					if existed {
						require.Equal(t, model[i].score, old)
					}
					if !existed || old != s { // an equal score does not replace: -0 equals 0
						set(m, s)
					}
				}
			},
			"Incr": func(t *rapid.T) {
				m, delta := name.Draw(t, "member"), score.Draw(t, "delta")
				want := delta
				if i := find(m); i >= 0 {
					want += model[i].score
				}
				sum, ok := z.Incr([]byte(m), delta, lim)
				require.Equal(t, !math.IsNaN(want), ok)
				if ok {
					require.True(t, want == sum)
					set(m, sum)
				}
			},
			"Remove": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 20}).Draw(t, "times") {
					m := name.Draw(t, "member")
					i := find(m)
					old, ok := z.Remove([]byte(m))
					require.Equal(t, i >= 0, ok)
					if ok {
						require.Equal(t, model[i].score, old)
						model = slices.Delete(model, i, i+1)
					}
				}
			},
			"Lookup": func(t *rapid.T) {
				m := name.Draw(t, "member")
				i := find(m)
				s, ok := z.Score([]byte(m))
				rank, s2, ok2 := z.Rank([]byte(m))
				require.Equal(t, i >= 0, ok)
				require.Equal(t, i >= 0, ok2)
				if ok {
					require.Equal(t, i, rank)
					require.Equal(t, model[i].score, s)
					require.Equal(t, s, s2)
					member, s3 := z.At(rank)
					require.Equal(t, m, string(member))
					require.Equal(t, s, s3)
				}
			},
			"RangeByRank": func(t *rapid.T) {
				start, stop, reverse := index(t), index(t), rapid.Bool().Draw(t, "reverse")
				want := slices.Clone(model)
				if reverse {
					slices.Reverse(want)
				}
				if start, stop := max(start, 0), min(stop, len(model)-1); start <= stop {
					want = want[start : stop+1]
				} else {
					want = nil
				}
				got = nil
				z.RangeByRank(start, stop, reverse, collect)
				require.Equal(t, append([]entry(nil), want...), got)
			},
			"RangeByScore": func(t *rapid.T) {
				r, in := scoreRange(t)
				reverse, offset, limit := rapid.Bool().Draw(t, "reverse"), rapid.IntRange(-1, 3).Draw(t, "offset"),
					rapid.IntRange(-1, 5).Draw(t, "limit")
				require.Equal(t, len(in), z.CountByScore(r))
				got = nil
				z.RangeByScore(r, reverse, offset, limit, collect)
				require.Equal(t, expect(in, reverse, offset, limit), got)
			},
			"RangeByLex": func(t *rapid.T) {
				r, in := lexRange(t)
				reverse, offset, limit := rapid.Bool().Draw(t, "reverse"), rapid.IntRange(-1, 3).Draw(t, "offset"),
					rapid.IntRange(-1, 5).Draw(t, "limit")
				got = nil
				z.RangeByLex(r, reverse, offset, limit, collect)
				n := z.CountByLex(r)
				if sameScores {
					require.Equal(t, len(in), n)
					require.Equal(t, expect(in, reverse, offset, limit), got)
				}
			},
			"RemoveRangeByRank": func(t *rapid.T) {
				start, stop := index(t), index(t)
				var want []entry
				if start, stop := max(start, 0), min(stop, len(model)-1); start <= stop {
					want = slices.Clone(model[start : stop+1])
				}
				got = nil
				require.Equal(t, len(want), z.RemoveRangeByRank(start, stop, add))
				require.Equal(t, want, got)
				without(want)
			},
			"RemoveRangeByScore": func(t *rapid.T) {
				r, in := scoreRange(t)
				require.Equal(t, len(in), z.RemoveRangeByScore(r, nil))
				without(in)
			},
			"RemoveRangeByLex": func(t *rapid.T) {
				if !sameScores {
					return
				}
				r, in := lexRange(t)
				got = nil
				require.Equal(t, len(in), z.RemoveRangeByLex(r, add))
				require.Equal(t, in, got)
				without(in)
			},
			"Pop": func(t *rapid.T) {
				count, highest := rapid.IntRange(-1, 5).Draw(t, "count"), rapid.Bool().Draw(t, "highest")
				want := slices.Clone(model)
				pop := z.PopMin
				if highest {
					slices.Reverse(want)
					pop = z.PopMax
				}
				want = append([]entry(nil), want[:max(0, min(count, len(want)))]...)
				got = nil
				require.Equal(t, len(want), pop(count, add))
				require.Equal(t, want, got)
				without(want)
			},
			"Scan": func(t *rapid.T) {
				got = nil
				for cursor := z.Scan(0, 7, add); cursor != 0; {
					cursor = z.Scan(cursor, 7, add)
				}
				require.ElementsMatch(t, model, got)
			},
			"Clone": func(t *rapid.T) {
				c := z.Clone()
				z.Set([]byte("only in the old one"), 1, lim)
				for i := range model {
					z.Incr([]byte(model[i].member), 0.5, lim)
				}
				z.PopMin(3, func([]byte, float64) {})
				check(t, z)
				z = c
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), z.Len())
				require.Equal(t, append([]entry{}, model...), ascending(z))
				check(t, z)
			},
		})
	})
}

func TestCopiesOfASetChangeAlone(t *testing.T) {
	const n = 3000
	sets := []*ZSet{New()}
	for i, m := range members(n) {
		sets[0].Set(m, float64(i), DefaultLimits)
	}
	for range 3 {
		sets = append(sets, sets[len(sets)-1].Clone())
	}
	for i, z := range sets {
		for _, m := range members(n) {
			z.Incr(m, float64(i+1)/10, DefaultLimits)
		}
		z.PopMin(i, func([]byte, float64) {})
	}
	for i, z := range sets {
		check(t, z)
		require.Equal(t, n-i, z.Len())
		for rank, e := range ascending(z) {
			require.Equal(t, float64(rank+i)+float64(i+1)/10, e.score)
		}
	}
}

// TestLargeSetsStayInOrder grows a set over several levels of the tree and shrinks it again.
func TestLargeSetsStayInOrder(t *testing.T) {
	const n = 6000
	for _, order := range []string{"ascending", "descending", "random"} {
		t.Run(order, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			z, model := New(), make([]entry, n)
			for i := range model {
				model[i] = entry{fmt.Sprintf("%06d", i), float64(i / 10)}
			}
			for _, i := range map[string][]int{"random": random.Perm(n)}[order] {
				z.Set([]byte(model[i].member), model[i].score, DefaultLimits)
			}
			for i := range model {
				if order == "descending" {
					i = n - 1 - i
				}
				z.Set([]byte(model[i].member), model[i].score, DefaultLimits)
			}
			check(t, z)
			require.Equal(t, model, ascending(z))
			for range 200 {
				i := random.IntN(n)
				rank, _, _ := z.Rank([]byte(model[i].member))
				require.Equal(t, i, rank)
				member, _ := z.At(i)
				require.Equal(t, model[i].member, string(member))
				from := float64(random.IntN(n / 10))
				require.Equal(t, 10, z.CountByScore(ScoreRange{Min: from, Max: from}))
			}
			for len(model) > 0 {
				switch i := random.IntN(len(model)); random.IntN(4) {
				case 0:
					stop := min(i+random.IntN(400), len(model)-1)
					z.RemoveRangeByRank(i, stop, nil)
					model = slices.Delete(model, i, stop+1)
				case 1:
					for range min(100, len(model)) {
						j := random.IntN(len(model))
						z.Remove([]byte(model[j].member))
						model = slices.Delete(model, j, j+1)
					}
				case 2:
					j := min(100, len(model))
					z.PopMax(j, func([]byte, float64) {})
					model = model[:len(model)-j]
				case 3:
					for range 20 {
						i = random.IntN(len(model))
						if random.IntN(2) == 0 {
							model[i].score = float64(random.IntN(n / 10))
						} else {
							model[i].score += 0.01 // rarely changes the order
						}
						z.Set([]byte(model[i].member), model[i].score, DefaultLimits)
						slices.SortFunc(model, compare)
					}
				}
				check(t, z)
				require.True(t, slices.Equal(model, ascending(z)))
			}
			z.Set([]byte("again"), 1, DefaultLimits)
			require.Equal(t, []entry{{"again", 1}}, ascending(z))
			require.Equal(t, "skiplist", z.Encoding())
		})
	}
}

func TestSmallScoresKeepTheirBits(t *testing.T) {
	keeps := func(score float64) int {
		b := appendSmall(nil, score, 10)
		require.Equal(t, math.Float64bits(score), math.Float64bits(decodeSmall(b)))
		require.EqualValues(t, 10+1+len(b), b[len(b)-1])
		return len(b) - 1
	}
	sizes := map[float64]int{0: 0, 1: 2, -1: 2, 31: 2, 32: 2, 33: 3, 100: 2, 0.5: 2, 1000: 3, 65535: 4, math.Inf(1): 2,
		0.1: 8}
	for score, size := range sizes {
		require.Equal(t, size, keeps(score), score)
	}
	testseed.Check(t, func(t *rapid.T) {
		keeps(rapid.Float64().Draw(t, "score"))
		keeps(float64(rapid.Int32().Draw(t, "whole")))
	})
	keeps(math.Copysign(0, -1))
}

func TestSmallSetsOfLongMembersAreWalkedBothWays(t *testing.T) {
	z := New()
	for i, n := range []int{0, 3, 100, 240, 242, 243, 244, 245, 250, 255, 300, 20_000, 5} {
		z.Set(bytes.Repeat([]byte{byte(i)}, n), 1000-float64(i%3), Limits{20, 1 << 20})
	}
	require.Equal(t, "listpack", z.Encoding())
	up := ascending(z)
	require.True(t, slices.IsSortedFunc(up, compare))
	var down []entry
	z.RangeByRank(0, z.Len()-1, true, func(member []byte, score float64) bool {
		down = append(down, entry{string(member), score})
		return true
	})
	slices.Reverse(down)
	require.Equal(t, up, down)
	for i, e := range up {
		member, _ := z.At(i)
		require.Equal(t, e.member, string(member))
	}
}

func TestSmallSetOutgrowsItsBufferWhateverTheLimits(t *testing.T) {
	z, lim := New(), Limits{1 << 30, 1 << 30}
	long := bytes.Repeat([]byte("m"), listpack.MaxSize/2)
	for i := range 3 {
		require.Equal(t, map[bool]string{false: "listpack", true: "skiplist"}[i == 2], z.Encoding())
		z.Set(long[i:], float64(i), lim)
	}
	for i := range 3 {
		rank, _, _ := z.Rank(long[i:])
		require.Equal(t, i, rank)
	}
	blob := binary.AppendUvarint([]byte("\x01"+one), uint64(listpack.MaxSize))
	_, err := DecodeBlob(append(blob, make([]byte, listpack.MaxSize)...))
	require.ErrorIs(t, err, errTooLong)
}

func TestEncodingFollowsTheLimits(t *testing.T) {
	lim := Limits{Entries: 3, Value: 5}
	z := New()
	for i := range 3 {
		z.Set([]byte{byte(i)}, float64(i), lim)
	}
	z.Set([]byte{0}, 100, lim)
	require.Equal(t, "listpack", z.Encoding())
	z.Set([]byte("new"), 1, lim)
	require.Equal(t, "skiplist", z.Encoding())
	z.PopMin(3, func([]byte, float64) {})
	require.Equal(t, "skiplist", z.Encoding(), "it does not go back")

	z = New()
	z.Set([]byte("short"), 1, lim)
	require.Equal(t, "listpack", z.Encoding())
	z.Set([]byte("longer"), 1, lim)
	require.Equal(t, "skiplist", z.Encoding())
}

func TestScanVisitsWhatStaysWhileMembersComeAndGo(t *testing.T) {
	z := New()
	for i := range 1000 {
		z.Set(fmt.Appendf(nil, "stays%d", i), float64(i), DefaultLimits)
		z.Set(fmt.Appendf(nil, "goes%d", i), float64(i), DefaultLimits)
	}
	seen, step := map[string]bool{}, 0
	note := func(member []byte, _ float64) { seen[string(member)] = true }
	for cursor := z.Scan(0, 10, note); cursor != 0; step++ {
		z.Remove(fmt.Appendf(nil, "goes%d", step*7%1000))
		z.Set(fmt.Appendf(nil, "comes%d", step), 1, DefaultLimits)
		cursor = z.Scan(cursor, 10, note)
	}
	for i := range 1000 {
		require.True(t, seen[fmt.Sprintf("stays%d", i)])
	}
}

func TestRangesStopWhenToldTo(t *testing.T) {
	for _, n := range []int{10, 1000} {
		z := New()
		for i := range n {
			z.Set(fmt.Appendf(nil, "%d", i), float64(i), DefaultLimits)
		}
		for _, reverse := range []bool{false, true} {
			calls := 0
			z.RangeByRank(0, n-1, reverse, func([]byte, float64) bool { calls++; return calls < 3 })
			require.Equal(t, 3, calls)
		}
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	for _, n := range []int{10, 5000} {
		z, member := New(), []byte("7")
		for i := range n {
			z.Set(fmt.Appendf(nil, "%d", i), float64(i), DefaultLimits)
		}
		score := 0.0
		require.Zero(t, testing.AllocsPerRun(100, func() {
			z.Score(member)
			z.Rank(member)
			z.At(3)
			z.CountByScore(ScoreRange{Min: 1, Max: 5})
		}))
		require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
			score = math.Mod(score+617, float64(n))
			z.Set(member, score, DefaultLimits)
		}), 0.0)
	}
}

func members(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = fmt.Appendf(nil, "member:%08d", i)
	}
	return out
}
