// Package suggest has dictionaries of suggestions: texts with scores and payloads. It finds the best ones with a given
// prefix, regardless of case, or with almost that prefix.
//
// A dictionary is a value of the keyspace. Texts are sorted by the bytes of their folded forms, and by their own bytes.
package suggest

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/atomredis/atomredis/engine/listpack"
	"github.com/atomredis/atomredis/engine/paged"
	"github.com/atomredis/atomredis/engine/search/sorted"
	"github.com/atomredis/atomredis/engine/search/spelling"
)

// Limits of texts. Longer texts are not stored, and longer prefixes are refused.
const (
	maxBytes       = 512
	maxRunes       = 255
	maxPrefixBytes = 200
	maxPrefixRunes = 100
)

// Dict is a dictionary of suggestions.
type Dict struct {
	paged.Value
	byText *sorted.Tree[*entry]
	byFold *sorted.Tree[*entry]
	bytes  int // of texts, payloads and entries
}

// entry is a suggestion.
type entry struct {
	text, folded string
	payload      *string // nil if the suggestion has no payload
	score        float32
}

// New returns an empty dictionary.
func New() *Dict {
	d := &Dict{}
	d.byText = sorted.New(func(a, b *entry) int { return strings.Compare(a.text, b.text) })
	d.byFold = sorted.New(func(a, b *entry) int {
		return cmp.Or(strings.Compare(a.folded, b.folded), strings.Compare(a.text, b.text))
	})
	d.Init(d)
	return d
}

// Len returns the number of suggestions.
func (d *Dict) Len() int { return d.byText.Len() }

// find returns the suggestion with a text, or nil if there is none.
func (d *Dict) find(text string) (found *entry) {
	d.byText.Ascend(func(e *entry) bool { return e.text < text }, func(e *entry) bool {
		if e.text == text {
			found = e
		}
		return false
	})
	return found
}

// Add adds a suggestion, or sets its score; with incr it adds to the score. An empty payload leaves the old one. Texts
// that are empty or too long are ignored. It reports whether the dictionary has grown, and
// whether anything changed.
func (d *Dict) Add(text []byte, score float64, incr bool, payload []byte) (added, changed bool) {
	s := float32(score)
	if len(text) == 0 || len(text) > maxBytes || utf8.RuneCount(text) > maxRunes {
		return false, false
	}
	e := d.find(unsafe.String(unsafe.SliceData(text), len(text)))
	d.NoteItem(text)
	if e == nil {
		d.put(string(text), s, payload)
		return true, true
	}
	if incr {
		s += e.score
	}
	e.score = s
	if len(payload) > 0 {
		d.bytes -= e.bytes()
		e.setPayload(payload)
		d.bytes += e.bytes()
	}
	return false, true
}

// put adds a suggestion with a new text.
func (d *Dict) put(text string, score float32, payload []byte) {
	e := &entry{text: text, folded: fold(text), score: score}
	e.setPayload(payload)
	d.bytes += e.bytes()
	d.byText.Set(e)
	d.byFold.Set(e)
}

func (e *entry) setPayload(payload []byte) {
	if len(payload) > 0 {
		p := string(payload)
		e.payload = &p
	}
}

// bytes returns the memory of a suggestion outside of the trees.
func (e *entry) bytes() int {
	n := int(unsafe.Sizeof(*e)) + listpack.Allocated(len(e.text))
	if unsafe.StringData(e.folded) != unsafe.StringData(e.text) {
		n += listpack.Allocated(len(e.folded))
	}
	if e.payload != nil {
		n += int(unsafe.Sizeof(*e.payload)) + listpack.Allocated(len(*e.payload))
	}
	return n
}

// Delete removes a suggestion. It reports whether it existed.
func (d *Dict) Delete(text []byte) bool {
	e := d.find(unsafe.String(unsafe.SliceData(text), len(text)))
	if e == nil {
		return false
	}
	d.NoteItem(text)
	d.bytes -= e.bytes()
	d.byText.Delete(e)
	d.byFold.Delete(e)
	return true
}

// Suggestion is a text with its score and payload, which is empty if there is none. Find returns the score for its
// query.
type Suggestion struct {
	Text    string
	Payload string
	Score   float32
}

func (e *entry) suggestion(score float32) Suggestion {
	s := Suggestion{Text: e.text, Score: score}
	if e.payload != nil {
		s.Payload = *e.payload
	}
	return s
}

// Each calls fn for the suggestions in the byte order of their texts, until fn returns false.
func (d *Dict) Each(fn func(Suggestion) bool) {
	d.byText.Ascend(nil, func(e *entry) bool { return fn(e.suggestion(e.score)) })
}

// Query says which suggestions to return.
type Query struct {
	Prefix string
	Fuzzy  bool // one insertion, deletion or replacement is allowed
	Max    int  // maximum number of results
	Trim   bool // only those with at least a tenth of the best score
}

// Find returns the best suggestions, best first; ok is false if the prefix is too long.
func (d *Dict) Find(q Query) (best []Suggestion, ok bool) {
	if len(q.Prefix) > maxPrefixBytes || utf8.RuneCountInString(q.Prefix) > maxPrefixRunes {
		return nil, false
	}
	if q.Max < 1 {
		return nil, true
	}
	prefix := fold(q.Prefix)
	runes := utf8.RuneCountInString(prefix)
	var found []Suggestion
	worst := float32(math.Inf(-1)) // a score that no longer suffices: enough earlier texts are as good
	cut := func() {
		slices.SortStableFunc(found, func(a, b Suggestion) int { return cmp.Compare(b.Score, a.Score) })
		if len(found) >= q.Max {
			found = found[:q.Max]
			worst = found[q.Max-1].Score
		}
	}
	take := func(e *entry, distance int) bool {
		mayBeExact := len(e.text) >= runes && len(e.text) <= utf8.UTFMax*runes
		if !mayBeExact && 0 <= e.score && e.score <= worst { // its rank cannot exceed its score
			return true
		}
		if rank := e.rank(&q, prefix, distance); !(rank <= worst) {
			found = append(found, e.suggestion(rank))
			if len(found)/2 > q.Max+few {
				cut()
			}
		}
		return true
	}
	if q.Fuzzy {
		p := spelling.Pattern{Text: prefix, Distance: 1, Prefix: true}
		spelling.Each(d.byFold.View, func(e *entry) string { return e.folded }, p, take)
	} else {
		d.byFold.Ascend(func(e *entry) bool { return e.folded < prefix }, func(e *entry) bool {
			return strings.HasPrefix(e.folded, prefix) && take(e, 0)
		})
	}
	cut()
	if q.Trim {
		found = trim(found)
	}
	return found, true
}

// few is how many suggestions beyond twice Max are collected before they are sorted and cut.
const few = 16

// exact is the score of a text that equals the prefix.
const exact = float32(math.MaxInt32)

// rank returns the score of a suggestion for a query, bit for bit that of RediSearch: in single precision between the
// steps, with the length of the prefix in bytes and that of the text in runes.
func (e *entry) rank(q *Query, folded string, distance int) float32 {
	runes := utf8.RuneCountInString(e.text)
	score := e.score
	if isExact(folded, e.text, runes) {
		score = exact
	}
	if q.Fuzzy {
		score = float32(float64(score) * math.Exp(float64(-2*distance)))
	}
	longer := runes - len(q.Prefix)
	return float32(float64(score) / math.Sqrt(float64(1+max(longer, -longer))))
}

// isExact reports whether a text of some runes counts as equal to the folded prefix. RediSearch compares as many bytes
// as there are runes, but a rune has two bytes; so with Fuzzy another text with the same first half is exact too.
func isExact(folded, text string, runes int) bool {
	if runes == 0 || utf8.RuneCountInString(folded) != runes {
		return false
	}
	for bytes := runes; bytes > 0; bytes -= 2 {
		a, n := utf8.DecodeRuneInString(folded)
		b, m := utf8.DecodeRuneInString(text)
		if a != b && (bytes > 1 || byte(a) != byte(b)) {
			return false
		}
		folded, text = folded[n:], text[m:]
	}
	return true
}

// trim returns the suggestions up to the first one with less than a tenth of the best score.
func trim(found []Suggestion) []Suggestion {
	best := float32(0)
	for i, s := range found {
		if best != 0 && float64(s.Score) < float64(best)/10 {
			return found[:i]
		}
		best = max(best, s.Score)
	}
	return found
}

// fold returns the common form of a text and all its case variants, rune for rune. Bytes that are not UTF-8 stay.
func fold(text string) string {
	same := true
	for i := 0; same && i < len(text); i++ {
		same = text[i] < utf8.RuneSelf && (text[i] < 'A' || text[i] > 'Z')
	}
	if same {
		return text
	}
	b := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(b, text[i])
		} else {
			b = utf8.AppendRune(b, foldRune(r))
		}
		i += n
	}
	if string(b) == text {
		return text
	}
	return string(b)
}

func foldRune(r rune) rune {
	switch r {
	case 'ß', 'ẞ': // the first of two
		return 's'
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// Clone returns an independent copy.
func (d *Dict) Clone() *Dict {
	c := New()
	d.byText.Ascend(nil, func(e *entry) bool {
		own := *e
		c.byText.Set(&own)
		c.byFold.Set(&own)
		return true
	})
	c.bytes = d.bytes
	return c
}

// MemoryUsage returns how many bytes of memory the dictionary takes.
func (d *Dict) MemoryUsage() int {
	return int(unsafe.Sizeof(*d)) + d.byText.Bytes() + d.byFold.Bytes() + d.bytes + d.Value.MemoryUsage()
}
