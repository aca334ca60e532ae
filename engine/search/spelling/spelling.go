// Package spelling finds texts that are similar to a given one: a few insertions, deletions and replacements of runes
// turn one into the other.
package spelling

import (
	"strings"
	"unicode/utf8"

	"github.com/atomredis/atomredis/engine/search/sorted"
)

// Pattern is the text to compare with, and how.
type Pattern struct {
	Text     string
	Distance int  // maximum number of changes
	Prefix   bool // a prefix of a text suffices

	Stop func() bool // called for each visited text; true ends the search; may be nil
}

// Each calls do for the items whose texts are similar to a pattern, with the smallest number of changes, until do
// returns false. The items are in the byte order of their texts. A byte that is not UTF-8 counts as a rune.
func Each[T any](items sorted.View[T], text func(T) string, p Pattern, do func(item T, distance int) bool) {
	c := newComparer(p)
	for from, more := "", true; more; {
		more = false
		passed := 0 // consecutive texts with prefix c.far
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

// fewPassed is how many dissimilar texts are skipped one by one before a new lookup.
const fewPassed = 8

// comparer compares sorted texts with a pattern. It keeps the rows of the distances between prefixes of the pattern and
// of the last text. The next text only needs new rows after the prefix that both share.
type comparer struct {
	pattern  []rune
	distance int
	prefix   bool
	// rows has for each prefix of the text its distances to the pattern's prefixes whose length differs by at most
	// distance, shortest first. Distances above distance are stored as distance+1.
	rows []uint16
	text string
	ends []int    // offsets where the text's runes end; 0 first
	best []uint16 // the smallest distance between the pattern and any prefix up to there
	// far is a prefix of the last text. No text with this prefix is similar to the pattern. It is "" if no such prefix
	// is known.
	far string
}

func newComparer(p Pattern) *comparer {
	c := &comparer{distance: min(max(0, p.Distance), 1<<14), prefix: p.Prefix, ends: []int{0}} // 1<<14: the limit of rows
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

// runeAt returns the first rune of a text, and its size.
func runeAt(text string) (rune, int) {
	r, size := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && size == 1 {
		r = utf8.MaxRune + 1 + rune(text[0])
	}
	return r, size
}

// compare returns the distance of a text if that is small enough. If not, it may set far.
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
		// No text with this prefix comes closer.
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

// whole returns the distance of the text, up to the last row, to the whole pattern.
func (c *comparer) whole() uint16 {
	width := 2*c.distance + 1
	at := len(c.pattern) - (len(c.rows)/width - 1) + c.distance
	if at < 0 || at >= width {
		return uint16(c.distance + 1)
	}
	return c.rows[len(c.rows)-width+at]
}

// step adds the row for another rune. It reports whether any distance in it is within the limit.
func (c *comparer) step(r rune) bool {
	width := 2*c.distance + 1
	most := uint16(c.distance + 1)
	i := len(c.rows) / width // the length of the text's prefix
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

// isSettled reports whether a text has the same runes whatever follows: it does not end inside one.
func isSettled(text string) bool {
	for i := max(0, len(text)-utf8.UTFMax+1); i < len(text); i++ {
		if !utf8.FullRuneInString(text[i:]) {
			return false
		}
	}
	return true
}

// commonPrefix returns the number of bytes of the common prefix.
func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
