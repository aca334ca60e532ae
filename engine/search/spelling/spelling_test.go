package spelling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/search/sorted"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// distance computes the distance by its definition; with prefix the smallest one of any prefix.
func distance(text, pattern string, prefix bool) int {
	runes := func(s string) (all []rune) {
		for len(s) > 0 {
			r, n := runeAt(s)
			all, s = append(all, r), s[n:]
		}
		return all
	}
	t, p := runes(text), runes(pattern)
	row := make([]int, len(p)+1)
	for j := range row {
		row[j] = j
	}
	best := len(p)
	for i := range t {
		diagonal := row[0]
		row[0]++
		for j := range p {
			d := diagonal
			if t[i] != p[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
		best = min(best, row[len(p)])
	}
	if prefix {
		return best
	}
	return row[len(p)]
}

// check compares Each with a walk over all texts.
func check(t require.TestingT, texts []string, p Pattern) {
	tree := sorted.New(strings.Compare)
	for _, text := range texts {
		tree.Set(text)
	}
	var want, got []string
	for _, text := range slices.Compact(slices.Sorted(slices.Values(texts))) {
		if d := distance(text, p.Text, p.Prefix); d <= p.Distance {
			want = append(want, fmt.Sprintf("%q %d", text, d))
		}
	}
	Each(tree.View, func(s string) string { return s }, p, func(text string, d int) bool {
		got = append(got, fmt.Sprintf("%q %d", text, d))
		return true
	})
	require.Equal(t, want, got, "%+v", p)
}

var letters = []string{"a", "b", "c", "é", "日", "\xff", "\xc3", "\xf0\x9f", "😀", "\x98", "\x80"}

func TestEachFindsTheTextsThatAreNear(t *testing.T) {
	testseed.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 6))
		text := func(n int) (s string) {
			for range r.IntN(n + 1) {
				if r.IntN(5) > 0 {
					s += letters[r.IntN(3)]
				} else {
					s += letters[r.IntN(len(letters))]
				}
			}
			return s
		}
		texts := make([]string, r.IntN(400))
		for i := range texts {
			texts[i] = text(8)
		}
		for range 20 {
			check(rt, texts, Pattern{Text: text(6), Distance: r.IntN(4), Prefix: r.IntN(2) == 0})
		}
	})
}

func FuzzEach(f *testing.F) {
	f.Add("hello", "hallo", "\xc3\xa9", "helo", 1, true)
	f.Fuzz(func(t *testing.T, text, a, b, c string, k int, prefix bool) {
		if len(text)+len(a)+len(b)+len(c) > 200 || k < 0 || k > 10 {
			return
		}
		check(t, []string{a, b, c, a + b, b + a, a + c}, Pattern{Text: text, Distance: k, Prefix: prefix})
	})
}
