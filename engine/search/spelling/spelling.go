// Package spelling finds the texts that are like one text: that become it by a few insertions, deletions and replacements of
// runes.
package spelling

import (
	"strings"
	"unicode/utf8"

	"github.com/atomredis/atomredis/engine/search/sorted"
)

// Pattern is what texts are compared with.
type Pattern struct {
	Text     string
	Distance int  // how many changes are allowed
	Prefix   bool // a beginning of a text suffices

	Stop func() bool // is asked for each text that is looked at, and ends the search; may be nil
}

// Each calls do for the items whose texts are like a pattern, with the least number of changes, until it returns false. The
// items are in the order of their texts' bytes. A byte that is not UTF-8 is a rune of its own.
func Each[T any](items sorted.View[T], text func(T) string, p Pattern, do func(item T, distance int) bool) {
	c := newComparer(p)
	for from, more := "", true; more; {
		more = false
		passed := 0 // texts that begin with c.far
		before := func(item T) bool {
			t := text(item)
			return t < from || c.far != "" && strings.HasPrefix(t, c.far)
		}
		items.Ascend(before, func(item T) bool {
			if p.Stop != nil && p.Stop() {
				return false
			}
			t := text(item)
			if c.far != "" && strings.HasPrefix(t, c.far) {
				if passed++; passed > fewPassed {
					from, more = c.far, true
					return false
				}
				return true
			}
			passed = 0
			distance, near := c.compare(t)
			return !near || do(item, distance)
		})
	}
}

// fewPassed is how many texts are passed one by one before the next ones are looked up.
const fewPassed = 8

// comparer compares texts in their order with a pattern. It keeps the rows of the table of distances between the pattern's
// beginnings and those of the last text, so that the next text needs only those behind what both have in common.
type comparer struct {
	pattern  []rune
	distance int
	prefix   bool
	// rows has for each beginning of the text the distances to the beginnings of the pattern whose length differs by at most
	// distance, the shortest first. Those above distance are distance+1.
	rows []uint16
	text string
	ends []int    // where the runes of the text end; 0 first
	best []uint16 // the least distance between the pattern and any beginning up to there
	// far is a prefix of the last text. No text with this prefix is like the pattern. It is "" if no such prefix is known.
	far string
}

func newComparer(p Pattern) *comparer {
	c := &comparer{distance: min(max(0, p.Distance), 1<<14), prefix: p.Prefix, ends: []int{0}} // 1<<14: rows have no room for more
	for i := 0; i < len(p.Text); {
		r, size := runeAt(p.Text[i:])
		c.pattern = append(c.pattern, r)
		i += size
	}
	for j := -c.distance; j <= c.distance; j++ {
		d := c.distance + 1
		if j >= 0 && j <= len(c.pattern) {
			d = j
		}
		c.rows = append(c.rows, uint16(d))
	}
	c.best = []uint16{c.whole()}
	return c
}

// runeAt returns the first rune of a text.
func runeAt(text string) (rune, int) {
	r, size := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && size == 1 {
		r = utf8.MaxRune + 1 + rune(text[0])
	}
	return r, size
}

// compare returns the distance of a text, if that is small enough. If not, it may set far.
func (c *comparer) compare(text string) (distance int, near bool) {
	c.far = ""
	width := 2*c.distance + 1
	common := commonPrefix(c.text, text)
	if !isSettled(text[:common]) {
		common = max(0, common-utf8.UTFMax+1)
	}
	depth := len(c.ends) - 1
	for c.ends[depth] > common {
		depth--
	}
	c.text, c.ends, c.best, c.rows = text, c.ends[:depth+1], c.best[:depth+1], c.rows[:(depth+1)*width]
	for at := c.ends[depth]; at < len(text); {
		r, size := runeAt(text[at:])
		at += size
		c.ends = append(c.ends, at)
		more := c.step(r)
		best := c.best[len(c.best)-1]
		if more {
			best = min(best, c.whole())
		}
		c.best = append(c.best, best)
		if more {
			continue
		}
		// Nothing that begins so comes nearer.
		if c.prefix && int(best) <= c.distance {
			return int(best), true
		}
		if isSettled(text[:at]) {
			c.far = text[:at]
		}
		return 0, false
	}
	d := c.whole()
	if c.prefix {
		d = c.best[len(c.best)-1]
	}
	return int(d), int(d) <= c.distance
}

// whole returns the distance between the text up to the last row and the whole pattern.
func (c *comparer) whole() uint16 {
	width := 2*c.distance + 1
	at := len(c.pattern) - (len(c.rows)/width - 1) + c.distance
	if at < 0 || at >= width {
		return uint16(c.distance + 1)
	}
	return c.rows[len(c.rows)-width+at]
}

// step adds the row for one rune more. It reports whether anything in it is within the distance.
func (c *comparer) step(r rune) bool {
	width := 2*c.distance + 1
	most := uint16(c.distance + 1)
	i := len(c.rows) / width // the length of the text's beginning
	before := len(c.rows) - width
	near := false
	for at := range width {
		best := most
		if j := i + at - c.distance; j >= 0 && j <= len(c.pattern) {
			if at+1 < width {
				best = min(best, c.rows[before+at+1]+1)
			}
			if at > 0 {
				best = min(best, c.rows[len(c.rows)-1]+1)
			}
			if j > 0 {
				d := c.rows[before+at]
				if c.pattern[j-1] != r {
					d++
				}
				best = min(best, d)
			}
		}
		near = near || best < most
		c.rows = append(c.rows, best)
	}
	return near
}

// isSettled reports whether a text has the same runes whatever follows: it does not end within one.
func isSettled(text string) bool {
	for i := max(0, len(text)-utf8.UTFMax+1); i < len(text); i++ {
		if !utf8.FullRuneInString(text[i:]) {
			return false
		}
	}
	return true
}

// commonPrefix returns how many bytes two texts begin with alike.
func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
