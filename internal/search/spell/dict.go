package spell

import (
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/atomredis/atomredis/internal/search/text"
)

// Dict is a dictionary of FT.DICTADD. Words keep their case and are found in any case. The zero value is empty, and
// so is a nil Dict.
type Dict struct {
	folded map[string]string           // by word
	bySize map[int]map[string]struct{} // the words by the number of their characters when folded
}

// Add adds a word. It reports whether it is new; the empty word is never added.
func (d *Dict) Add(word string) bool {
	if _, ok := d.folded[word]; ok || word == "" {
		return false
	}
	if d.folded == nil {
		d.folded, d.bySize = map[string]string{}, map[int]map[string]struct{}{}
	}
	folded := text.Fold(word)
	d.folded[word] = folded
	n := utf8.RuneCountInString(folded)
	if d.bySize[n] == nil {
		d.bySize[n] = map[string]struct{}{}
	}
	d.bySize[n][word] = struct{}{}
	return true
}

// Delete removes a word. It reports whether it was there.
func (d *Dict) Delete(word string) bool {
	folded, ok := d.folded[word]
	if !ok {
		return false
	}
	delete(d.folded, word)
	n := utf8.RuneCountInString(folded)
	if delete(d.bySize[n], word); len(d.bySize[n]) == 0 {
		delete(d.bySize, n)
	}
	return true
}

// Len returns how many words there are.
func (d *Dict) Len() int {
	if d == nil {
		return 0
	}
	return len(d.folded)
}

// Words returns all words in the order of their bytes.
func (d *Dict) Words() []string {
	words := make([]string, 0, d.Len())
	if d != nil {
		for word := range d.folded {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return words
}

// Has reports whether the dictionary has a word, in any case.
func (d *Dict) Has(word string) bool {
	for range d.Near(word, 0) {
		return true
	}
	return false
}

// Near yields the words within a distance of another one, which counts insertions, deletions and replacements of characters.
func (d *Dict) Near(word string, distance int) iter.Seq[string] {
	return func(yield func(string) bool) {
		if d == nil {
			return
		}
		wanted := []rune(text.Fold(word))
		for n := len(wanted) - distance; n <= len(wanted)+distance; n++ {
			for other := range d.bySize[n] {
				if within(wanted, []rune(d.folded[other]), distance) && !yield(other) {
					return
				}
			}
		}
	}
}

// within reports whether a becomes b by at most distance insertions, deletions and replacements.
func within(a, b []rune, distance int) bool {
	if distance == 0 {
		return slices.Equal(a, b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range a {
		diagonal, least := row[0], i+1
		row[0] = i + 1
		for j, s := range b {
			cost := diagonal
			if r != s {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
			least = min(least, cost)
		}
		if least > distance {
			return false
		}
	}
	return row[len(b)] <= distance
}

// Clone returns a copy; nil for nil.
func (d *Dict) Clone() *Dict {
	if d == nil {
		return nil
	}
	c := &Dict{}
	for word := range d.folded {
		c.Add(word)
	}
	return c
}
