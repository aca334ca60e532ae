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
	// scoreDigits is the largest relative difference between scores.
	scoreDigits = 1e-9
	// distanceDigits is the same for distances of vectors, which have 32 bits.
	distanceDigits = 1e-6
)

// same reports whether two replies agree.
func same(args []string, a, b value) bool {
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
		return pages(a, b, false)
	case "FT.SYNDUMP":
		return near(sorted(a), sorted(b), 0)
	case "FT.SPELLCHECK":
		return near(withoutInternal(a), withoutInternal(b), scoreDigits)
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
	if len(args) > 2 && strings.Contains(args[2], "KNN") || len(args) > 2 && strings.Contains(args[2], "VECTOR_RANGE") {
		return distanceDigits
	}
	return scoreDigits
}

// near compares replies whose numbers may differ in their last digits. Maps have no defined order.
func near(a, b value, digits float64) bool {
	if a.Kind != b.Kind || a.Null != b.Null || len(a.Elems) != len(b.Elems) {
		return false
	}
	if a.Kind == transcript.Map {
		a, b = sorted(a), sorted(b)
	}
	if a.Text != b.Text && !nearText(a.Text, b.Text, digits) {
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
	x, err1 := strconv.ParseFloat(strings.Replace(strings.TrimPrefix(a, "#"), "-nan", "nan", 1), 64)
	y, err2 := strconv.ParseFloat(strings.Replace(strings.TrimPrefix(b, "#"), "-nan", "nan", 1), 64)
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
		return pages(a, b, unsortedGroups(args))
	}
	return nearRows(a, b, digitsOf(args), unsortedGroups(args))
}

// pages compares replies with a cursor, which is random.
func pages(a, b value, anyOrder bool) bool {
	if a.Kind != b.Kind || a.Kind != transcript.Array || len(a.Elems) != 2 || len(b.Elems) != 2 {
		return false
	}
	if (a.Elems[1].Text == "0") != (b.Elems[1].Text == "0") {
		return false
	}
	if anyOrder {
		return len(rows(a.Elems[0])) == len(rows(b.Elems[0])) // a page has some of the groups
	}
	return nearRows(a.Elems[0], b.Elems[0], distanceDigits, false)
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

func nearRows(a, b value, digits float64, anyOrder bool) bool {
	if a.Kind != b.Kind {
		return false
	}
	x, y := rows(a), rows(b)
	if len(x) != len(y) {
		return false
	}
	if anyOrder {
		x, y = slices.Clone(x), slices.Clone(y)
		byText := func(a, b value) int { return strings.Compare(unsigned(a), unsigned(b)) }
		slices.SortFunc(x, byText)
		slices.SortFunc(y, byText)
	}
	for i := range x {
		if !near(unlist(sorted(x[i])), unlist(sorted(y[i])), digits) {
			return false
		}
	}
	return true
}

// unsigned is the text of a row. The sign of a NaN depends on the processor.
func unsigned(row value) string { return strings.ReplaceAll(row.String(), "-nan", "nan") }

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

// unlist orders the values collected by TOLIST and RANDOM_SAMPLE, which have no defined order.
func unlist(row value) value {
	row.Elems = slices.Clone(row.Elems)
	for i, e := range row.Elems {
		switch {
		case e.Kind == transcript.Map || e.Kind == transcript.Array && row.Kind == transcript.Map && row.Elems[max(0, i-1)].Text == "values":
			row.Elems[i] = unlist(e)
		case i%2 == 1 && slices.Contains([]string{"list", "sample"}, row.Elems[i-1].Text):
			e.Elems = slices.Clone(e.Elems)
			slices.SortFunc(e.Elems, func(a, b value) int { return strings.Compare(a.String(), b.String()) })
			row.Elems[i] = e
		}
	}
	return row
}

// known is a difference that has an explanation and is counted, but not reported.
type known struct {
	reason  string
	matches func(args []string, a, b value) bool
}

var knownDifferences = []known{
	{"an error in a later row: the reference replies with the rows before it", func(_ []string, a, b value) bool {
		return b.Kind == transcript.Error && a.Kind != transcript.Error && slices.ContainsFunc(rowErrors, func(text string) bool {
			return strings.HasPrefix(b.Text, text)
		})
	}},
	{"a range of numbers or places is explained by the nodes of its tree in the reference", func(args []string, a, b value) bool {
		return slices.Contains(args, "EXPLAINSCORE") && near(unexplained(a), unexplained(b), digitsOf(args))
	}},
	{"an error of a part of the query to which the reference does not come, as nothing matches another part", func(_ []string, a, b value) bool {
		return (strings.HasPrefix(b.Text, "Use `INDEXEMPTY`") || strings.HasPrefix(b.Text, "Error parsing vector similarity") || strings.HasPrefix(b.Text, "Invalid numeric range")) && a.Kind != transcript.Error
	}},
	{"two errors, of which the reference tells another one", func(_ []string, a, b value) bool {
		late := func(v value) bool {
			return strings.HasPrefix(v.Text, "Use `INDEXEMPTY`") || strings.HasPrefix(v.Text, "Error parsing vector similarity") ||
				strings.HasPrefix(v.Text, "Property") || strings.HasPrefix(v.Text, "Could not find") || strings.HasPrefix(v.Text, "No such property") ||
				strings.HasPrefix(v.Text, "Invalid numeric range")
		}
		return a.Kind == transcript.Error && b.Kind == transcript.Error && late(a) && late(b)
	}},
	{"a word with two changes or more: the reference finds some with one more", func(args []string, a, b value) bool {
		return len(args) > 2 && strings.Contains(args[2], "%%") && a.Kind == b.Kind
	}},
	{"SLOP, INORDER and phrases with filters: ranges of numbers and several tags and opposites have places among the words in the reference", func(args []string, a, b value) bool {
		return len(args) > 2 && (strings.ContainsAny(args[2], "[<>={-~") || slices.Contains(args, "FILTER") || slices.Contains(args, "GEOFILTER") || slices.Contains(args, "INKEYS")) && a.Kind == b.Kind &&
			(strings.Contains(args[2], "$slop") || strings.Contains(args[2], "$inorder") || slices.Contains(args, "SLOP") || slices.Contains(args, "INORDER") || strings.ContainsAny(args[2], "\"'"))
	}},
	{"a weight of a union: the reference forgets it where only one part has matches", func(args []string, a, b value) bool {
		return len(args) > 2 && strings.Contains(args[2], "$weight") && strings.Contains(args[2], "|") && a.Kind == b.Kind
	}},
	{"a phrase with a word twice, and INORDER: each needs a place of its own here", func(args []string, a, b value) bool {
		return len(args) > 2 && (twice(args[2]) || slices.Contains(args, "INORDER") || strings.Contains(args[2], "$inorder")) && a.Kind == b.Kind
	}},
	{"an optional part within another one is scored as * in the reference", func(args []string, a, b value) bool {
		return len(args) > 2 && strings.Count(args[2], "~") > 1 && a.Kind == b.Kind
	}},
	{"which of the words that a pattern stands for is marked", func(args []string, a, b value) bool {
		return (slices.Contains(args, "HIGHLIGHT") || slices.Contains(args, "SUMMARIZE")) && (strings.ContainsAny(args[2], "*%") || strings.Contains(args[2], "w'")) &&
			sameKeys(a, b)
	}},
	{"an empty text shifts what is marked in the fields behind it in the reference", func(args []string, a, b value) bool {
		return (slices.Contains(args, "HIGHLIGHT") || slices.Contains(args, "SUMMARIZE")) && strings.Contains(a.String(), `""`) && sameKeys(a, b)
	}},
	{"spelling at a distance of two: the reference finds some words one change farther", func(args []string, a, b value) bool {
		i := slices.Index(args, "DISTANCE")
		return args[0] == "FT.SPELLCHECK" && i > 0 && i+1 < len(args) && args[i+1] != "1" && a.Kind == b.Kind
	}},
	{"comparisons with what is no number hold for == >= and <= in the reference", func(args []string, a, b value) bool {
		i := slices.Index(args, "FILTER")
		return args[0] == "FT.AGGREGATE" && i > 0 && i+1 < len(args) && strings.ContainsAny(args[i+1], "/%^(") && a.Kind == b.Kind
	}},
	{"the case of tags in EXPLAIN, and their escapes", func(args []string, a, b value) bool {
		plain := strings.NewReplacer("\\", "")
		return strings.HasPrefix(args[0], "FT.EXPLAIN") && strings.EqualFold(plain.Replace(a.String()), plain.Replace(b.String()))
	}},
	{"an opposite of an opposite is scored as * in the reference", func(args []string, a, b value) bool {
		return len(args) > 2 && opposites.MatchString(args[2]) && a.Kind == b.Kind
	}},
	{"the word that an error names", func(_ []string, a, b value) bool {
		return a.Kind == transcript.Error && b.Kind == transcript.Error && (strings.HasPrefix(b.Text, a.Text) ||
			strings.HasPrefix(a.Text, "MISSING ASC or DESC") && strings.HasPrefix(b.Text, "MISSING ASC or DESC"))
	}},
	{"the reference forgets the words that matched where rows are sorted", func(args []string, a, b value) bool {
		return args[0] == "FT.AGGREGATE" && strings.Contains(strings.Join(args, " "), "matched_terms") && a.Kind == b.Kind
	}},
	{"NOFIELDS: INFIELDS of unknown fields finds all in the reference", func(args []string, a, b value) bool {
		return slices.Contains(args, "INFIELDS") && slices.Contains(args, "nope") && a.Kind == b.Kind
	}},
	{"tags of several words, and unions of them, score nothing in KNN of the reference", func(args []string, a, b value) bool {
		return len(args) > 2 && strings.Contains(args[2], "KNN") && strings.Contains(args[2], "{") && a.Kind == b.Kind
	}},
	{"a range that ends in letters is no range in dialect 1 of the reference", func(args []string, a, b value) bool {
		return len(args) > 2 && strings.Contains(args[2], "inf") && strings.HasPrefix(b.Text, "Syntax error")
	}},
	{"the sign of the key that rows are sorted by, where all fields are returned", func(args []string, a, b value) bool {
		return slices.Contains(args, "WITHSORTKEYS") && sameKeys(a, b)
	}},
	{"RETURN of a field that no schema has, with HIGHLIGHT of some fields and SUMMARIZE of all", func(_ []string, a, _ value) bool {
		return strings.HasSuffix(a.Text, "is not in schema")
	}},
	{"EXPLAIN looks at no vectors and no distances", func(args []string, a, b value) bool {
		return strings.HasPrefix(args[0], "FT.EXPLAIN") && a.Kind == transcript.Error
	}},
	{"the weight of an optional part replaces all weights in it in the reference", func(args []string, a, b value) bool {
		return len(args) > 2 && strings.Contains(args[2], "~") && strings.Contains(args[2], "$weight") && a.Kind == b.Kind
	}},
	{"NULL is no number for < and > in the reference", func(args []string, a, _ value) bool {
		return args[0] == "FT.AGGREGATE" && strings.Contains(strings.Join(args, " "), "NULL")
	}},
	{"which word is marked in another language", func(args []string, a, b value) bool {
		return slices.Contains(args, "LANGUAGE") && (slices.Contains(args, "HIGHLIGHT") || slices.Contains(args, "SUMMARIZE")) && sameKeys(a, b)
	}},
	{"two errors in arguments, of which the reference tells another one", func(args []string, a, b value) bool {
		return a.Kind == transcript.Error && b.Kind == transcript.Error && (args[0] == "FT.SPELLCHECK" || strings.HasPrefix(b.Text, "LOAD path AS name"))
	}},
	{"nan is a radius in the reference", func(args []string, _, _ value) bool {
		return slices.Contains(args, "GEOFILTER") && slices.Contains(args, "nan")
	}},
	{"where a syntax error is, after inf", func(args []string, a, b value) bool {
		return len(args) > 2 && strings.Contains(args[2], "inf") && strings.HasPrefix(a.Text, "Syntax error") && strings.HasPrefix(b.Text, "Syntax error")
	}},
	{"the text of an error about a value", func(_ []string, a, b value) bool {
		return a.Kind == transcript.Error && b.Kind == transcript.Error && strings.HasPrefix(a.Text, "Error converting string") && strings.HasPrefix(b.Text, "Error converting string")
	}},
	{"a number that is too large is told to be out of bounds", func(_ []string, a, b value) bool {
		return strings.Contains(a.Text, "Value is outside acceptable bounds") && strings.Contains(b.Text, "Could not convert argument")
	}},
	{"the text of an error of arguments of a function", func(_ []string, a, b value) bool {
		return strings.HasPrefix(a.Text, "Invalid type (") && strings.HasPrefix(b.Text, "Invalid type (")
	}},
	{"LOAD *: the reference has numbers as texts", func(args []string, a, b value) bool {
		i := slices.Index(args, "LOAD")
		return i > 0 && i+1 < len(args) && args[i+1] == "*"
	}},
	{"a number with a sign before other letters is a number and a word in the reference, and the opposite of a word here", func(args []string, _, _ value) bool {
		return len(args) > 2 && signed.MatchString(args[2])
	}},
	{"COUNT_DISTINCTISH has other hashes", func(args []string, a, b value) bool {
		return slices.Contains(args, "COUNT_DISTINCTISH") && a.Kind == b.Kind
	}},
	{"a summary of a field without hits lacks its last word in the reference, also where all of it has room", func(args []string, a, b value) bool {
		return slices.Contains(args, "SUMMARIZE") && cut(sortedDocuments(a), sortedDocuments(b))
	}},
	{"a syntax error in the reference: a union of two words with something else", func(args []string, a, b value) bool {
		return len(args) > 2 && strings.HasPrefix(a.Text, "Syntax error") && strings.Contains(args[2], "|")
	}},
}

// cut reports whether each text of a equals that of b or is a prefix of it.
func cut(a, b value) bool {
	if a.Kind == transcript.Map {
		a, b = sorted(a), sorted(b)
	}
	if a.Kind != b.Kind || len(a.Elems) != len(b.Elems) {
		return false
	}
	for i := range a.Elems {
		if !cut(a.Elems[i], b.Elems[i]) {
			return false
		}
	}
	whole := strings.Join(strings.Fields(b.Text), " ")
	return a.Text == b.Text || nearText(a.Text, b.Text, scoreDigits) || strings.HasPrefix(whole, strings.Join(strings.Fields(a.Text), " "))
}

// unexplained removes the explanations of scores.
func unexplained(v value) value {
	if len(v.Elems) == 2 && (v.Elems[1].Kind == transcript.Simple ||
		v.Elems[1].Kind == transcript.Array && len(v.Elems[1].Elems) > 0 && v.Elems[1].Elems[0].Kind == transcript.Simple) {
		return v.Elems[0]
	}
	v = sortedDocuments(v)
	v.Elems = slices.Clone(v.Elems)
	for i := range v.Elems {
		v.Elems[i] = unexplained(v.Elems[i])
	}
	return v
}

var signed = regexp.MustCompile(`[-+](inf|[0-9.]*[0-9])[\pL_]`)

var opposites = regexp.MustCompile(`[-~]\(*[-~]`)

var phrases = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// twice reports whether a query has a phrase that contains a word twice.
func twice(query string) bool {
	return slices.ContainsFunc(phrases.FindAllString(query, -1), func(phrase string) bool {
		words := strings.Fields(strings.ToLower(strings.Trim(phrase, `"'`)))
		slices.Sort(words)
		return len(slices.Compact(slices.Clone(words))) < len(words)
	})
}

// sameKeys reports whether the results of two searches are the same documents in the same order.
func sameKeys(a, b value) bool {
	return slices.Equal(keysOf(a), keysOf(b))
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

// rowErrors are the beginnings of errors of expressions.
var rowErrors = []string{"Could not find the value for a parameter name", "Could not convert value to a number",
	"Error converting string", "to_number: cannot convert"}

// knownReason returns the reason for which a difference is known, "" if it is not.
func knownReason(args []string, a, b value) string {
	for _, k := range knownDifferences {
		if k.matches(args, a, b) {
			return k.reason
		}
	}
	return ""
}
