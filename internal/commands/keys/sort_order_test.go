package keys

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/command"
	_ "github.com/atomredis/atomredis/internal/commands/hashes" // makes the values that SORT reads
	_ "github.com/atomredis/atomredis/internal/commands/lists"
	_ "github.com/atomredis/atomredis/internal/commands/sets"
	_ "github.com/atomredis/atomredis/internal/commands/strings"
	_ "github.com/atomredis/atomredis/internal/commands/zsets"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// sortOf calls SORT and returns its reply.
func sortOf(b *commandtest.Ctx, t testing.TB, words ...string) string {
	return b.Call(commandtest.Named(t, "sort"), append([]string{"sort"}, words...)...)
}

// sortModel is a simple model of SORT.
type sortModel struct {
	desc, alpha, stored, set bool
	by                       map[string]string // nil without BY
}

func (m *sortModel) compare(a, b string) int {
	order := m.compareWeights(a, b)
	if order == 0 && !m.alpha {
		order = cmp.Compare(a, b)
	}
	if m.desc {
		order = -order
	}
	if order == 0 && m.set {
		order = cmp.Compare(a, b)
	}
	return order
}

func (m *sortModel) compareWeights(a, b string) int {
	weight := func(s string) (w string, ok bool) {
		if m.by != nil {
			s, ok = m.by[s]
			return s, ok
		}
		return s, true
	}
	x, hasX := weight(a)
	y, hasY := weight(b)
	switch {
	case m.alpha && (!hasX || !hasY):
		return present(hasX) - present(hasY)
	case m.alpha && m.stored:
		return cmp.Compare(x, y)
	case m.alpha:
		return bytes.Compare(command.UntilNUL([]byte(x)), command.UntilNUL([]byte(y)))
	}
	number := func(s string) float64 {
		n, _ := strconv.ParseFloat(s, 64) // an empty text is 0
		return n
	}
	return cmp.Compare(number(x), number(y))
}

func present(ok bool) int {
	if ok {
		return 1
	}
	return 0
}

func TestSortAgreesWithAModel(t *testing.T) {
	testseed.Check(t, func(rt *rapid.T) {
		b := commandtest.New(t)
		m := sortModel{alpha: rapid.Bool().Draw(rt, "alpha"), desc: rapid.Bool().Draw(rt, "desc"),
			stored: rapid.Bool().Draw(rt, "stored"), set: rapid.Bool().Draw(rt, "set")}
		numbers := rapid.SampledFrom([]string{"", "0", "-0", "1", "01", "1.0", "-3", "-3.5", "17", "1e3", "1e300", "inf",
			"-inf", "9007199254740993"})
		words := rapid.StringOfN(rapid.SampledFrom([]rune{0, 1, 'a', 'b', 'z', 'é'}), 0, 12, -1)
		prefixed := rapid.Map(words, func(s string) string { return "common prefix" + s })
		element := numbers
		if m.alpha {
			element = rapid.OneOf(words, prefixed)
			if rapid.Bool().Draw(rt, "only prefixed") {
				element = prefixed
			}
		}
		elements := rapid.SliceOfN(element, 1, 300).Draw(rt, "elements")
		args := []string{"key"}
		if rapid.Bool().Draw(rt, "by") {
			m.by = map[string]string{}
			for _, e := range elements {
				if rapid.IntRange(0, 3).Draw(rt, "has") > 0 {
					m.by[e] = element.Draw(rt, "weight")
					b.Call(commandtest.Named(t, "set"), "set", "w:"+e, m.by[e])
				}
			}
			args = append(args, "BY", "w:*")
		}
		if m.set {
			slices.Sort(elements)
			elements = slices.Compact(elements)
			b.Call(commandtest.Named(t, "sadd"), append([]string{"sadd", "key"}, elements...)...)
		} else {
			b.Call(commandtest.Named(t, "rpush"), append([]string{"rpush", "key"}, elements...)...)
		}
		if m.alpha {
			args = append(args, "ALPHA")
		}
		if m.desc {
			args = append(args, "DESC")
		}
		slices.SortStableFunc(elements, m.compare)
		if rapid.Bool().Draw(rt, "limit") {
			offset := rapid.IntRange(0, len(elements)+1).Draw(rt, "offset")
			count := rapid.IntRange(0, len(elements)+1).Draw(rt, "count")
			args = append(args, "LIMIT", fmt.Sprint(offset), fmt.Sprint(count))
			elements = elements[min(offset, len(elements)):min(offset+count, len(elements))]
		}
		if m.stored {
			require.Equal(rt, fmt.Sprintf(":%d\r\n", len(elements)), sortOf(b, t, append(args, "STORE", "stored")...))
			require.Equal(rt, commandtest.Bulks(elements...),
				b.Call(commandtest.Named(t, "lrange"), "lrange", "stored", "0", "-1"))
			return
		}
		require.Equal(rt, commandtest.Bulks(elements...), sortOf(b, t, args...))
	})
}

func TestSortWithoutSortingKeepsTheOrder(t *testing.T) {
	b := commandtest.New(t)
	b.Call(commandtest.Named(t, "rpush"), "rpush", "list", "3", "1", "2")
	b.Call(commandtest.Named(t, "zadd"), "zadd", "zset", "1", "x", "2", "y", "3", "z")
	b.Call(commandtest.Named(t, "sadd"), "sadd", "set", "30", "10", "20")
	require.Equal(t, commandtest.Bulks("3", "1", "2"), sortOf(b, t, "list", "BY", "nosort"))
	require.Equal(t, commandtest.Bulks("1"), sortOf(b, t, "list", "BY", "nosort", "LIMIT", "1", "1"))
	require.Equal(t, commandtest.Bulks("y", "x"), sortOf(b, t, "zset", "BY", "nosort", "DESC", "LIMIT", "1", "5"))
	require.Equal(t, commandtest.Bulks("20", "30"), sortOf(b, t, "set", "BY", "nosort", "LIMIT", "1", "2"))
}

func TestOrderOfScoresIsThatOfNumbers(t *testing.T) {
	scores := []float64{math.Inf(-1), -1e300, -2, -1, -5e-324, 0, 5e-324, 1, 1.5, 1e300, math.Inf(1)}
	for i := range scores[1:] {
		require.Less(t, orderOf(scores[i]), orderOf(scores[i+1]))
	}
	require.Equal(t, orderOf(0), orderOf(math.Copysign(0, -1)))
}

// An allocation in each comparison would show as at least one per element.
func TestSortAllocatesNothingForAnElement(t *testing.T) {
	const n = 20_000
	b := commandtest.New(t)
	push := []string{"rpush", "key"}
	for i := range n {
		push = append(push, strconv.Itoa((i*7919)%n/2)) // each twice
	}
	b.Call(commandtest.Named(t, "rpush"), push...)
	for _, options := range [][]string{{}, {"DESC"}, {"ALPHA"}, {"LIMIT", "10", "5"}, {"BY", "w:*"},
		{"BY", "w:*", "ALPHA"}, {"GET", "#"}} {
		sortOf(b, t, append([]string{"key"}, options...)...)
		require.Less(t, testing.AllocsPerRun(2, func() {
			b.Out.Buf = b.Out.Buf[:0]
			cmdSort(&b.Ctx)
		}), 100.0, "%q", options)
	}
}
