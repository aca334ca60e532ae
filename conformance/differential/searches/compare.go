// Which replies count as the same.

package searches

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/conformance/differential"
	"github.com/atomredis/atomredis/internal/testing/transcript"
)

type value = transcript.Value

const (
	// digits is the largest relative difference between numbers.
	digits = 1e-9
	// scoreDigits is the same for scores: the reference rounds the argument of their logarithms to 32 bits. Releases since
	// 8.8 and atomredis have 64.
	scoreDigits = 1e-5
	// distanceDigits is the same for distances of vectors, which have 32 bits.
	distanceDigits = 1e-6
)

// same reports whether two replies agree.
func same(args []string, a, b value) bool {
	a, b = older(a), older(b)
	if a.Equal(b) || a.Kind == transcript.Error && strings.HasPrefix(a.Text, "ERR wrong number of arguments for") && strings.EqualFold(a.Text, b.Text) {
		return true
	}
	switch strings.ToUpper(args[0]) {
	case "HELLO":
		return true
	case "FT.SEARCH":
		// Fields of a document have no defined order.
		a, b = sortedDocuments(a), sortedDocuments(b)
		return near(a, b, digitsOf(args))
	case "FT.AGGREGATE":
		return aggregates(args, a, b)
	case "FT.CURSOR":
		// The rows of a page depend on the order, which groups do not have unless the generator requests one.
		return pages(a, b, false, listsOf(args))
	case "FT.SYNDUMP":
		return near(sorted(a), sorted(b), 0)
	case "FT.SPELLCHECK":
		return near(withoutInternal(a), withoutInternal(b), digits)
	}
	return differential.Commands.Same(args, a, b)
}

// withoutInternal removes the stems and sounds that the reference suggests for spelling: its internal terms, with a
// prefix character.
func withoutInternal(v value) value {
	v.Elems = slices.Clone(v.Elems)
	v.Elems = slices.DeleteFunc(v.Elems, func(e value) bool {
		return len(e.Elems) == 2 && (strings.ContainsAny(e.Elems[1].Text[:min(1, len(e.Elems[1].Text))], "+<~") || strings.ContainsAny(e.Elems[0].Text[:min(1, len(e.Elems[0].Text))], "+<~"))
	})
	for i := range v.Elems {
		v.Elems[i] = withoutInternal(v.Elems[i])
	}
	if len(v.Elems) > 0 && v.Elems[0].IsAggregate() && len(v.Elems[0].Elems) == 2 {
		// Equal suggestions have no defined order.
		slices.SortStableFunc(v.Elems, func(a, b value) int { return strings.Compare(a.String(), b.String()) })
	}
	return v
}

func digitsOf(args []string) float64 {
	if slices.ContainsFunc(args, func(word string) bool { return strings.HasSuffix(word, "SCORES") || word == "EXPLAINSCORE" }) {
		return scoreDigits
	}
	if len(args) > 2 && strings.Contains(args[2], "KNN") || len(args) > 2 && strings.Contains(args[2], "VECTOR_RANGE") {
		return distanceDigits
	}
	return digits
}

// near compares replies whose numbers may differ in their last digits. Maps have no defined order.
func near(a, b value, digits float64) bool {
	if a.Kind != b.Kind || a.Null != b.Null || len(a.Elems) != len(b.Elems) {
		return false
	}
	if a.Kind == transcript.Map {
		a, b = sorted(a), sorted(b)
	}
	if withoutSign(a.Text) != withoutSign(b.Text) && !nearText(a.Text, b.Text, digits) {
		return false
	}
	for i := range a.Elems {
		if !near(a.Elems[i], b.Elems[i], digits) {
			return false
		}
	}
	return true
}

func nearText(a, b string, digits float64) bool {
	x, err1 := strconv.ParseFloat(withoutSign(strings.TrimPrefix(a, "#")), 64)
	y, err2 := strconv.ParseFloat(withoutSign(strings.TrimPrefix(b, "#")), 64)
	if err1 != nil || err2 != nil {
		return false
	}
	return x == y || math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) <= digits*max(math.Abs(x), math.Abs(y))
}

// sorted orders the pairs of a map or of a flat list of pairs by name.
func sorted(v value) value {
	if len(v.Elems)%2 != 0 {
		return v
	}
	pairs := slices.Collect(slices.Chunk(v.Elems, 2))
	slices.SortFunc(pairs, func(a, b []value) int { return strings.Compare(a[0].Text, b[0].Text) })
	v.Elems = slices.Concat(pairs...)
	return v
}

// sortedDocuments orders the fields of each document.
func sortedDocuments(v value) value {
	if v.Kind != transcript.Array {
		return v
	}
	v.Elems = slices.Clone(v.Elems)
	for i, e := range v.Elems {
		if e.Kind == transcript.Array {
			v.Elems[i] = sorted(e)
		}
	}
	return v
}

// aggregates compares rows. It ignores the total, which the reference does not count, and the order if no step sorts.
func aggregates(args []string, a, b value) bool {
	if slices.Contains(args, "WITHCURSOR") {
		return pages(a, b, unsortedGroups(args), listsOf(args))
	}
	return nearRows(a, b, digitsOf(args), unsortedGroups(args), listsOf(args))
}

// pages compares replies with a cursor, which is random.
func pages(a, b value, anyOrder bool, lists []string) bool {
	if a.Kind != b.Kind || a.Kind != transcript.Array || len(a.Elems) != 2 || len(b.Elems) != 2 {
		return false
	}
	if (a.Elems[1].Text == "0") != (b.Elems[1].Text == "0") {
		return false
	}
	if anyOrder {
		return len(rows(a.Elems[0])) == len(rows(b.Elems[0])) // a page has some of the groups
	}
	return nearRows(a.Elems[0], b.Elems[0], distanceDigits, false, lists)
}

// unsortedGroups reports whether the rows are groups that no step has sorted.
func unsortedGroups(args []string) bool {
	last := func(word string) int {
		for i := len(args) - 1; i >= 0; i-- {
			if args[i] == word {
				return i
			}
		}
		return -1
	}
	return last("GROUPBY") > last("SORTBY")
}

// nearRows compares rows. lists are the names of the values whose own order is not defined.
func nearRows(a, b value, digits float64, anyOrder bool, lists []string) bool {
	if a.Kind != b.Kind {
		return false
	}
	x, y := rows(a), rows(b)
	if len(x) != len(y) {
		return false
	}
	if anyOrder {
		x, y = slices.Clone(x), slices.Clone(y)
		byText := func(a, b value) int { return strings.Compare(withoutSign(a.String()), withoutSign(b.String())) }
		slices.SortFunc(x, byText)
		slices.SortFunc(y, byText)
	}
	for i := range x {
		if !near(unlist(sorted(x[i]), lists), unlist(sorted(y[i]), lists), digits) {
			return false
		}
	}
	return true
}

// withoutSign returns a text without the sign of a NaN, which depends on the processor.
func withoutSign(text string) string { return strings.ReplaceAll(text, "-nan", "nan") }

// rows returns the rows of an FT.AGGREGATE.
func rows(v value) []value {
	if v.Kind == transcript.Array && len(v.Elems) > 0 {
		return v.Elems[1:]
	}
	if v.Kind == transcript.Map {
		for i := 0; i+1 < len(v.Elems); i += 2 {
			if v.Elems[i].Text == "results" {
				return v.Elems[i+1].Elems
			}
		}
	}
	return []value{v}
}

// listsOf returns the names of the results of TOLIST and RANDOM_SAMPLE; the pages of a cursor have the generator's names.
func listsOf(args []string) []string {
	names := []string{"list", "sample"}
	for i, word := range args {
		if at := slices.Index(args[i:], "AS"); (word == "TOLIST" || word == "RANDOM_SAMPLE") && at > 0 && i+at+1 < len(args) {
			names = append(names, args[i+at+1])
		}
	}
	return names
}

// unlist orders the values of some names, which have no defined order.
func unlist(row value, lists []string) value {
	row.Elems = slices.Clone(row.Elems)
	for i, e := range row.Elems {
		switch {
		case e.Kind == transcript.Map || e.Kind == transcript.Array && row.Kind == transcript.Map && row.Elems[max(0, i-1)].Text == "values":
			row.Elems[i] = unlist(e, lists)
		case i%2 == 1 && slices.Contains(lists, row.Elems[i-1].Text):
			e.Elems = slices.Clone(e.Elems)
			slices.SortFunc(e.Elems, func(a, b value) int { return strings.Compare(a.String(), b.String()) })
			row.Elems[i] = e
		}
	}
	return row
}

// keysOf returns the names of the documents in a reply.
func keysOf(v value) (keys []string) {
	for _, e := range v.Elems {
		if e.Kind == transcript.Bulk && documentKey.MatchString(e.Text) {
			keys = append(keys, e.Text)
		}
		keys = append(keys, keysOf(e)...)
	}
	return keys
}

var documentKey = regexp.MustCompile(`^[dex]:[0-9]+$`)
