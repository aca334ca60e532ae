package terms

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// keys returns the terms of a sequence, and checks their values against the model.
func keys(t require.TestingT, seq iter.Seq2[string, int], model map[string]int) (all []string) {
	for term, v := range seq {
		if want, ok := model[term]; !ok || want != v {
			require.Fail(t, "value", "%q has %d, want %d, %v", term, v, want, ok)
		}
		all = append(all, strings.Clone(term))
	}
	return all
}

// those returns the model's terms for which wanted returns true, in byte order.
func those(model map[string]int, wanted func(string) bool) (all []string) {
	for term := range model {
		if wanted(term) {
			all = append(all, term)
		}
	}
	slices.Sort(all)
	return all
}

// naive matches by trying everything.
func naive(p pattern, term string) bool {
	switch {
	case len(p) == 0:
		return term == ""
	case p[0] == anyRunes:
		return naive(p[1:], term) || term != "" && naive(p, term[width(term):])
	case term == "":
		return false
	case p[0] == anyRune:
		return naive(p[1:], term[width(term):])
	}
	return p[0] == piece(term[0]) && naive(p[1:], term[1:])
}

var letters = []string{"a", "b", "c", "é", "é", "日", "\xff", "\xc3", "\xf0\x9f", "😀", "*", "?", `\`, ""}

func randomTerm(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n + 1) {
		if r.IntN(6) > 0 {
			b.WriteString(letters[r.IntN(3)])
		} else {
			b.WriteString(letters[r.IntN(len(letters))])
		}
	}
	if r.IntN(200) == 0 {
		b.WriteString(strings.Repeat("ab", 100+r.IntN(200)))
	}
	return b.String()
}

func TestDictionaryFindsWhatALookAtAllTermsFinds(t *testing.T) {
	testseed.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 5))
		d := New[int](r.IntN(2) == 0)
		model := map[string]int{}
		var all []string
		for i := range r.IntN(2000) {
			if r.IntN(3) == 0 && len(all) > 0 {
				at := r.IntN(len(all))
				d.Delete(all[at])
				delete(model, all[at])
				all = slices.Delete(all, at, at+1)
				continue
			}
			term := randomTerm(r, 8)
			if _, ok := model[term]; !ok {
				all = append(all, term)
			}
			model[term] = i
			n := d.Set(term, i)
			require.Equal(rt, term, d.Text(n))
			require.Equal(rt, i, d.At(n))
		}
		require.Equal(rt, len(model), d.Len())
		require.Equal(rt, slices.Sorted(maps.Keys(model)), append([]string(nil), keys(rt, d.All(), model)...))
		for range 20 {
			x := randomTerm(r, 3)
			v, ok := d.GetBytes([]byte(x))
			want, there := model[x]
			require.Equal(rt, there, ok)
			require.Equal(rt, want, v)
			_, ok = d.Number(x)
			require.Equal(rt, there, ok)

			require.Equal(rt, those(model, func(s string) bool { return strings.HasPrefix(s, x) }), keys(rt, d.Prefix(x), model))
			got := keys(rt, d.Suffix(x), model)
			slices.Sort(got)
			require.Equal(rt, those(model, func(s string) bool { return strings.HasSuffix(s, x) }), got)
			got = keys(rt, d.Contains(x), model)
			slices.Sort(got)
			require.Equal(rt, those(model, func(s string) bool { return strings.Contains(s, x) }), got)

			x = randomTerm(r, 5)
			for range r.IntN(3) {
				x += []string{"*", "?"}[r.IntN(2)] + randomTerm(r, 2)
			}
			p := parsePattern(x)
			got = keys(rt, d.Matches(x), model)
			slices.Sort(got)
			require.Equal(rt, those(model, func(s string) bool { return len(s) < longTerm && naive(p, s) || len(s) >= longTerm && p.match(s) }), got, "%q", x)

			x = randomTerm(r, 6)
			got = keys(rt, d.Fuzzy(x, 1), model)
			require.True(rt, slices.IsSorted(got))
			for i := range len(x) + 1 { // all single deletions; package spelling tests the other changes
				if y := x[:i] + x[min(i+1, len(x)):]; utf8.ValidString(x) && utf8.ValidString(y) {
					_, there := model[y]
					require.Equal(rt, there, slices.Contains(got, y), "%q %q", x, y)
				}
			}

			for range d.All() { // may end early
				break
			}
			for range d.Fuzzy(x, 3) {
				break
			}
			for range d.Contains("a") {
				break
			}
		}
		for _, term := range all {
			d.Delete(term)
		}
		require.Zero(rt, d.Len())
		require.Empty(rt, keys(rt, d.All(), model))
		require.Empty(rt, keys(rt, d.Contains("a"), model))
	})
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, term string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"**", "abc", true}, {"?", "", false}, {"?", "a", true},
		{"a*", "a", true}, {"a*c", "abbc", true}, {"a*c", "abbcd", false}, {"*b?", "abc", true}, {"*b?", "ab", false},
		{`\*`, "*", true}, {`\*`, "a", false}, {`a\?`, "a?", true}, {`a\?`, "ab", false}, {`\\`, `\`, true}, {`a\`, `a\`, true},
		{"*ab*ab", "abab", true}, {"*ab*ab", "aab", false}, {"?*?", "a", false}, {"?*?", "ab", true},
	} {
		require.Equal(t, c.want, parsePattern(c.pattern).match(c.term), "%q %q", c.pattern, c.term)
	}
}

// A pattern that makes other implementations take exponential time ends after a bounded number of steps.
func TestHostilePatternsEnd(t *testing.T) {
	term := strings.Repeat("a", 10_000)
	require.False(t, parsePattern(strings.Repeat("*a", 1000)+"b").match(term))
	require.True(t, parsePattern(strings.Repeat("*a", 1000)+"*").match(term))
}

func FuzzMatches(f *testing.F) {
	f.Add("a*b?c", "aabbcc")
	f.Add(`\*?*`, "*x")
	f.Fuzz(func(t *testing.T, text, term string) {
		p := parsePattern(text)
		if len(p) > 12 || len(term) > 12 {
			p.match(term)
			return
		}
		require.Equal(t, naive(p, term), p.match(term))
	})
}

// Memory of deleted terms is reused, and returned texts stay valid.
func TestDictionaryOfChangingTermsDoesNotGrow(t *testing.T) {
	d := New[int](true)
	var kept, want []string
	for i := range 2000 {
		d.Set(fmt.Sprint("term", i), i)
	}
	before := d.Bytes()
	for i := range 60_000 {
		d.Delete(fmt.Sprint("term", i))
		d.Set(fmt.Sprint("term", i+2000), i)
		if i%5000 == 0 {
			for term := range d.Prefix("term") {
				kept, want = append(kept, term), append(want, strings.Clone(term))
			}
		}
	}
	require.Equal(t, want, kept)
	require.Less(t, d.Bytes(), before*2)
	for i := range 62_000 {
		d.Delete(fmt.Sprint("term", i))
	}
	require.Less(t, d.Bytes(), before/2)
}

func TestSmallDictionaryTakesLittle(t *testing.T) {
	d := New[int](false)
	for i := range 5 {
		d.Set(fmt.Sprint("tag", i), i)
	}
	require.Less(t, d.Bytes(), 700)
}

// words returns n words like those in texts: made of syllables, most of them short.
func words(n int) []string {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for len(seen) < n {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteByte("bcdfghklmnprstvw"[r.IntN(16)])
			b.WriteByte("aeiou"[r.IntN(5)])
			if r.IntN(3) == 0 {
				b.WriteByte("nrst"[r.IntN(4)])
			}
		}
		seen[b.String()] = true
	}
	all := slices.Collect(maps.Keys(seen))
	slices.Sort(all)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func filled(all []string, suffixes bool) *Dict[*int] {
	d := New[*int](suffixes)
	for _, w := range all {
		d.Set(w, nil)
	}
	return d
}

func BenchmarkFill(b *testing.B) {
	for _, n := range []int{20_000, 1_000_000} {
		for _, suffixes := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/%v", n, suffixes), func(b *testing.B) {
				all := words(n)
				text := 0
				for _, w := range all {
					text += utf8.RuneCountInString(w)
				}
				for b.Loop() {
					d := filled(all, suffixes)
					b.ReportMetric(float64(d.Bytes())/float64(n), "B/term")
				}
				b.ReportMetric(float64(text)/float64(n), "chars/term")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/term")
			})
		}
	}
}

func BenchmarkGet(b *testing.B) {
	all := words(1_000_000)
	d := filled(all, false)
	bytes := make([][]byte, 1<<14)
	for i := range bytes {
		bytes[i] = []byte(all[i])
	}
	i := 0
	for b.Loop() {
		d.GetBytes(bytes[i%len(bytes)])
		i++
	}
}

func BenchmarkFuzzy(b *testing.B) {
	for _, n := range []int{20_000, 1_000_000} {
		all := words(n)
		d := filled(all, false)
		for k := 1; k <= 3; k++ {
			b.Run(fmt.Sprintf("%d/distance=%d", n, k), func(b *testing.B) {
				i, found := 0, 0
				for b.Loop() {
					for range d.Fuzzy(all[i%1000], k) {
						found++
					}
					i++
				}
				b.ReportMetric(float64(found)/float64(b.N), "terms")
			})
		}
	}
}

func BenchmarkContains(b *testing.B) {
	for _, suffixes := range []bool{false, true} {
		d := filled(words(1_000_000), suffixes)
		for _, text := range []string{"standu", "nol"} {
			b.Run(fmt.Sprintf("%s/%v", text, suffixes), func(b *testing.B) {
				found := 0
				for b.Loop() {
					for range d.Contains(text) {
						found++
					}
				}
				b.ReportMetric(float64(found)/float64(b.N), "terms")
			})
		}
	}
}

// Searches by pattern end when told to stop, however few terms they find.
func TestSearchesStop(t *testing.T) {
	for _, suffixes := range []bool{false, true} {
		d := New[int](suffixes)
		for i := range 1000 {
			d.Set(fmt.Sprintf("a%db", i), i)
		}
		d.Set(strings.Repeat("b", longTerm), 0)
		for name, search := range map[string]func(d *Dict[int]) iter.Seq2[string, int]{
			"suffix":   func(d *Dict[int]) iter.Seq2[string, int] { return d.Suffix("b") },
			"contains": func(d *Dict[int]) iter.Seq2[string, int] { return d.Contains("a") },
			"matches":  func(d *Dict[int]) iter.Seq2[string, int] { return d.Matches("*a?x?b*") },
			"fuzzy":    func(d *Dict[int]) iter.Seq2[string, int] { return d.Fuzzy("a55b", 2) },
		} {
			asked, found := 0, 0
			for range search(d.Until(func() bool { asked++; return asked == 10 })) {
				found++
			}
			require.Equal(t, 10, asked, name)
			require.Less(t, found, 10, name)
		}
	}
}
