// Expectations about replies: values, with markers where an exact value would be too strict.

package transcript

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Pattern is an expected reply.
type Pattern struct {
	Kind  byte
	Null  bool
	Text  string
	Elems []Pattern

	// Any accepts every reply.
	Any bool
	// Match accepts every text that it matches, in place of Text.
	Match *regexp.Regexp
	// Tolerance is the greatest difference of a number from Text.
	Tolerance float64
	// Order is the comparison of elements.
	Order Order
	// Capture names the variable that takes the text of the reply.
	Capture string
	// Ref names the variable whose text the reply must have, whatever its type.
	Ref string
}

// Order is a way to compare the elements of an aggregate.
type Order int

// The orders. Maps and sets of RESP3 are always compared without order.
const (
	// Exact wants every element at its place.
	Exact Order = iota
	// Unordered compares the elements as a multiset.
	Unordered
	// Pairs compares a flat list of keys and values as a multiset of pairs.
	Pairs
)

// Matches reports whether the reply is as expected. Captures are stored in vars, references read from it.
func (p Pattern) Matches(v Value, vars map[string]string) bool {
	if !p.accepts(v, vars) {
		return false
	}
	if p.Capture != "" {
		vars[p.Capture] = v.Text
	}
	return true
}

func (p Pattern) accepts(v Value, vars map[string]string) bool {
	switch {
	case p.Any:
		return v.Kind != Closed
	case p.Ref != "":
		text, ok := vars[p.Ref]
		return ok && !v.IsAggregate() && v.Text == text
	case p.Kind != v.Kind || p.Null != v.Null:
		return false
	case p.Match != nil:
		return p.Match.MatchString(v.Text)
	case p.Tolerance > 0:
		want, err1 := strconv.ParseFloat(p.Text, 64)
		got, err2 := strconv.ParseFloat(v.Text, 64)
		return err1 == nil && err2 == nil && math.Abs(want-got) <= p.Tolerance
	case !v.IsAggregate():
		return p.Text == v.Text
	case len(p.Elems) != len(v.Elems):
		return false
	}
	switch p.order() {
	case Unordered:
		return matchGroups(p.Elems, v.Elems, 1, vars)
	case Pairs:
		return len(v.Elems)%2 == 0 && matchGroups(p.Elems, v.Elems, 2, vars)
	}
	for i := range p.Elems {
		if !p.Elems[i].Matches(v.Elems[i], vars) {
			return false
		}
	}
	return true
}

func (p Pattern) order() Order {
	switch p.Kind {
	case Set:
		return Unordered
	case Map:
		return Pairs
	}
	return p.Order
}

// matchGroups finds a separate group of values for every group of size patterns. It takes the first that fits, which
// is correct as long as markers inside one unordered reply do not overlap.
func matchGroups(patterns []Pattern, values []Value, size int, vars map[string]string) bool {
	used := make([]bool, len(values)/size)
next:
	for i := 0; i < len(patterns); i += size {
		for j := range used {
			if !used[j] && matchRun(patterns[i:i+size], values[j*size:], vars) {
				used[j] = true
				continue next
			}
		}
		return false
	}
	return true
}

func matchRun(patterns []Pattern, values []Value, vars map[string]string) bool {
	for i, p := range patterns {
		if !p.Matches(values[i], vars) {
			return false
		}
	}
	return true
}

// Refresh is the pattern for a newly recorded value: it keeps the markers of p wherever they still hold.
func (p Pattern) Refresh(v Value) Pattern {
	if p.Ref != "" || p.Matches(v, map[string]string{}) {
		return p
	}
	fresh := literal(v)
	fresh.Capture = p.Capture
	if p.Kind == v.Kind {
		fresh.Order = p.Order
		if p.order() == Exact && len(p.Elems) == len(v.Elems) {
			for i := range p.Elems {
				fresh.Elems[i] = p.Elems[i].Refresh(v.Elems[i])
			}
		}
	}
	return fresh
}

// String renders the pattern as lines of a transcript.
func (p Pattern) String() string { return p.render("") }

func (p Pattern) render(indent string) string {
	line := p.inline(indent == "")
	if len(p.Elems) == 0 || len(indent)+len(line) <= lineWidth {
		return indent + line
	}
	var b strings.Builder
	b.WriteString(indent + p.prefix() + aggregateWords[p.Kind] + "[\n")
	step := 1
	if p.order() == Pairs && len(p.Elems)%2 == 0 {
		step = 2
	}
	for i := 0; i < len(p.Elems); i += step {
		first := p.Elems[i].render(indent + "  ")
		b.WriteString(first)
		if step == 2 {
			b.WriteString(" " + strings.TrimLeft(p.Elems[i+1].render(indent+"  "), " "))
		}
		b.WriteByte('\n')
	}
	b.WriteString(indent + "]")
	return b.String()
}

// prefix returns the markers before a value.
func (p Pattern) prefix() string {
	s := ""
	if p.Capture != "" {
		s = "$" + p.Capture + "="
	}
	switch p.Order {
	case Unordered:
		s += "unordered "
	case Pairs:
		s += "pairs "
	}
	return s
}

func (p Pattern) inline(top bool) string {
	return p.prefix() + p.body(top)
}

func (p Pattern) body(top bool) string {
	switch {
	case p.Any:
		return "*"
	case p.Ref != "":
		return "$" + p.Ref
	case p.Null && p.Kind == Array:
		return "nil[]"
	case p.Null:
		return "nil"
	}
	text := Quote(p.Text)
	if p.Match != nil {
		text = "/" + strings.ReplaceAll(p.Match.String(), "/", `\/`) + "/"
	}
	switch p.Kind {
	case Closed:
		return "closed"
	case Null:
		return "null"
	case Boolean:
		return map[string]string{"t": "true", "f": "false"}[p.Text]
	case Integer, Double, BigInt:
		return p.number()
	case Simple, Error:
		if p.Match == nil && plainLine(p.Text, p.Kind, top) {
			text = p.Text
		}
		return string(p.Kind) + text
	case Verbatim, BulkErr:
		return string(p.Kind) + text
	case Bulk:
		return text
	}
	parts := make([]string, len(p.Elems))
	for i, e := range p.Elems {
		parts[i] = e.inline(false)
	}
	return aggregateWords[p.Kind] + "[" + strings.Join(parts, " ") + "]"
}

func (p Pattern) number() string {
	s := p.Text
	switch p.Kind {
	case Double:
		s = "," + s
	case BigInt:
		s = "(" + s
	}
	if p.Match != nil {
		return ":/" + strings.ReplaceAll(p.Match.String(), "/", `\/`) + "/"
	}
	if p.Tolerance > 0 {
		s += "~" + strconv.FormatFloat(p.Tolerance, 'g', -1, 64)
	}
	return s
}

// plainLine reports whether a status or an error can stand without quotes: at the top level it may hold
// spaces, because it takes the whole line; inside an aggregate it is one word.
func plainLine(s string, kind byte, top bool) bool {
	if s == "" || s != strings.TrimSpace(s) || strings.ContainsAny(s[:1], `"/`) || kind == Error && s[0] >= '0' &&
		s[0] <= '9' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' || !top && strings.IndexByte(` []"`, s[i]) >= 0 {
			return false
		}
	}
	return true
}
