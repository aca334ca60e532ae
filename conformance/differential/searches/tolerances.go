// The known differences, each with the reason and the queries that may show it.

package searches

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// known is a difference that has an explanation and is counted, not reported.
type known struct {
	reason  string
	matches func(q *question, a, b value) bool
}

var knownDifferences = []known{
	{"an error in a later row: the reference replies with the rows before it", func(_ *question, a, b value) bool {
		return isOfRow(b) && a.Kind != transcript.Error
	}},
	{"an error of a part of the query to which the reference does not come, as nothing matches another part", func(q *question, a, b value) bool {
		return isLate(b) && !begins(b, "Property", "Could not find", "No such property") && a.Kind != transcript.Error
	}},
	{"an empty text beside other parts: the reference takes its field for one without INDEXEMPTY", func(q *question, a, b value) bool {
		return begins(a, "Use `INDEXEMPTY`") && strings.Contains(q.args[2], `:""`) && strings.ContainsAny(q.args[2], " |(")
	}},
	{"two errors, of which the reference tells another one", func(q *question, a, b value) bool {
		switch {
		case a.Kind != b.Kind:
			return false
		case isLate(a), isLate(b), isOfRow(a) && isOfRow(b):
			return true
		}
		return a.Kind == transcript.Error && (q.args[0] == "FT.SPELLCHECK" || begins(b, "LOAD path AS name"))
	}},
	{"a word with two changes or more: the reference finds some with one more", func(q *question, a, b value) bool {
		return sameKind(a, b) && q.has(func(n query.Node) bool {
			fuzzy, ok := n.(*query.Fuzzy)
			return ok && reachesFarther(fuzzy.Text, fuzzy.Distance)
		})
	}},
	{"spelling at a distance of two: the reference finds some words one change farther", func(q *question, a, b value) bool {
		i := slices.Index(q.args, "DISTANCE")
		if q.args[0] == "FT.SPELLCHECK" && (i == 2 || q.args[2] == "TERMS") { // the query, which the reference takes for an option
			return true
		}
		if q.args[0] != "FT.SPELLCHECK" || i < 0 || i+1 >= len(q.args) || len(q.args[i+1]) != 1 || a.Kind != b.Kind {
			return false
		}
		words := strings.FieldsFunc(q.args[2], func(r rune) bool { return r == ' ' || r == '\\' })
		return slices.ContainsFunc(words, func(word string) bool { return reachesFarther(word, int(q.args[i+1][0]-'0')) })
	}},
	{"words near to each other, and a group without places: the reference looks for places in it", func(q *question, a, b value) bool {
		return sameKind(a, b) && (q.unplaced() || q.ordered() && q.skips())
	}},
	{"words in an order that may be at one place: each needs a place of its own here", func(q *question, a, b value) bool {
		return sameKind(a, b) && q.samePlace()
	}},
	{"which of the words that a pattern stands for is marked", func(q *question, a, b value) bool {
		return q.marks() && (strings.ContainsAny(q.args[2], "*%") || strings.Contains(q.args[2], "w'")) && q.sameUnmarked(a, b)
	}},
	{"which word is marked in another language", func(q *question, a, b value) bool {
		return q.marks() && slices.Contains(q.args, "LANGUAGE") && q.sameUnmarked(a, b)
	}},
	{"an empty text shifts what is marked in the fields behind it in the reference", func(q *question, a, b value) bool {
		return q.marks() && (strings.Contains(a.String(), `""`) || slices.Contains(q.args, "RETURN")) && q.sameUnmarked(a, b)
	}},
	{"which of two equally near vectors is the last one", func(q *question, a, b value) bool {
		_, knn := q.tree.(*query.KNN)
		return knn && len(a.Elems) == len(b.Elems) && (differentKeys(a, b) == 1 || q.args[0] == "FT.AGGREGATE" && differentRows(a, b) == 1)
	}},
	{"comparisons with what is no number hold for == >= and <= in the reference", func(q *question, a, b value) bool {
		return a.Kind == b.Kind && q.mayCompareNaN()
	}},
	{"NULL is no number for < and > in the reference, and equals what has no value in another way", func(q *question, a, b value) bool {
		return sameKind(a, b) && slices.ContainsFunc(q.expressions(), nullCompared.MatchString)
	}},
	{"two minus signs cancel each other since 8.2", func(q *question, a, b value) bool {
		return len(q.args) > 2 && opposites.MatchString(q.args[2]) && (sameKind(a, b) || begins(b, "field does not support phonetics"))
	}},
	{"rows sorted by what is only another name of a property stay as they are in the reference", func(q *question, a, b value) bool {
		return a.Kind == b.Kind && q.sortsByAlias()
	}},
	{"two errors in the arguments of EXPLAIN, where SORTBY is that of FT.AGGREGATE in the reference", func(q *question, a, b value) bool {
		return strings.HasPrefix(q.args[0], "FT.EXPLAIN") && slices.Contains(q.args, "SORTBY") && a.Kind == transcript.Error && b.Kind == transcript.Error
	}},
	{"the case of tags in EXPLAIN, and their escapes", func(q *question, a, b value) bool {
		plain := strings.NewReplacer("\\", "")
		return strings.HasPrefix(q.args[0], "FT.EXPLAIN") && strings.EqualFold(plain.Replace(a.String()), plain.Replace(b.String()))
	}},
	{"the word that an error names, where the reference has moved the letters behind an escape", func(q *question, a, b value) bool {
		place, _, named := strings.Cut(b.Text, " near ")
		return a.Kind == transcript.Error && b.Kind == transcript.Error && (strings.HasPrefix(b.Text, a.Text) ||
			begins(a, "MISSING ASC or DESC") && begins(b, "MISSING ASC or DESC") ||
			named && strings.Contains(q.args[2], `\`) && begins(a, place+" near "))
	}},
	{"the reference forgets the words that matched where rows are sorted", func(q *question, a, b value) bool {
		at := slices.IndexFunc(q.args, func(word string) bool { return strings.Contains(word, "matched_terms") })
		return q.args[0] == "FT.AGGREGATE" && at > 0 && slices.Contains(q.args[:at], "SORTBY") && a.Kind == b.Kind
	}},
	{"NOFIELDS: INFIELDS of unknown fields finds all in the reference", func(q *question, a, b value) bool {
		return a.Kind == b.Kind && q.inUnknownFields()
	}},
	{"what a filter of KNN scores: tags and distances nothing in the reference, and it explains the filter beside the distance", func(q *question, a, b value) bool {
		if a.Kind != b.Kind || !q.has(func(n query.Node) bool { _, ok := n.(*query.KNN); return ok }) {
			return false
		}
		return slices.Contains(q.args, "EXPLAINSCORE") && near(unexplained(a), unexplained(b), distanceDigits) ||
			strings.Contains(strings.Join(q.expressions(), " "), "matched_terms") || q.has(func(n query.Node) bool {
			switch n.(type) {
			case *query.Tag, *query.VectorRange:
				return true
			}
			return false
		})
	}},
	{"a range that ends in letters is no range in dialect 1 of the reference", func(q *question, a, b value) bool {
		return len(q.args) > 2 && strings.Contains(q.args[2], "inf") && begins(b, "Syntax error")
	}},
	{"the sign of the key that rows are sorted by, where all fields are returned", func(q *question, a, b value) bool {
		return slices.Contains(q.args, "WITHSORTKEYS") && (sameBut(unsignedKey, a, b) ||
			q.marks() && sameBut(unsignedKey, q.unmarked(a), q.unmarked(b)))
	}},
	{"RETURN of a field that no schema has, with HIGHLIGHT of some fields and SUMMARIZE of all", func(_ *question, a, _ value) bool {
		return a.Kind == transcript.Error && strings.HasSuffix(a.Text, "is not in schema")
	}},
	{"EXPLAIN looks at no vectors and no distances", func(q *question, a, b value) bool {
		return strings.HasPrefix(q.args[0], "FT.EXPLAIN") && begins(a, "Error parsing vector similarity", "Distance field", "Property", "Invalid")
	}},
	{"nan is a radius in the reference, and the end of a range without numbers", func(q *question, _, b value) bool {
		return slices.Contains(q.args, "nan") &&
			(slices.Contains(q.args, "GEOFILTER") || begins(b, "Bad lower range: nan", "Bad upper range: nan"))
	}},
	{"a parameter ends at its first zero byte in the reference", func(_ *question, a, b value) bool {
		return begins(a, "Duplicate parameter ``") && b.Kind == transcript.Error
	}},
	{"two errors in the arguments of FT.CREATE", func(_ *question, a, b value) bool {
		return begins(a, "Bad arguments for vector similarity") && begins(b, "Bad arguments for vector similarity") ||
			a.Kind == transcript.Error && begins(b, "Unknown symbol")
	}},
	{"DIM has a limit here", func(_ *question, a, b value) bool {
		return a.Kind != transcript.Error && b.Kind == transcript.Error && strings.HasSuffix(b.Text, "`DIM`: Value is outside acceptable bounds")
	}},
	{"the text of NULL in format(), which is empty in some rows of the reference", func(q *question, a, b value) bool {
		return a.Kind == b.Kind && slices.ContainsFunc(q.expressions(), func(e string) bool {
			return strings.Contains(e, "NULL") && strings.Contains(e, "format(")
		})
	}},
	{"whether a number is out of bounds or none", func(_ *question, a, b value) bool {
		const outside, other = "Value is outside acceptable bounds", "Could not convert argument"
		return strings.Contains(a.Text, outside) && strings.Contains(b.Text, other) ||
			strings.Contains(a.Text, other) && strings.Contains(b.Text, outside)
	}},
	{"MAX has one error in the reference, whatever is wrong", func(_ *question, a, b value) bool {
		return begins(a, "Bad arguments for MAX: ") && begins(b, "Bad arguments for MAX: ")
	}},
	{"the reference does not apply the upper limit of BM25STD_TANH_FACTOR", func(_ *question, a, b value) bool {
		return begins(b, "BM25STD_TANH_FACTOR must be between") && a.Kind != transcript.Error
	}},
	{"no document has words: in the reference the average length is 0, and scores are not a number", func(q *question, a, b value) bool {
		return otherScores(a, b) && strings.Contains(a.String(), "nan") && !strings.Contains(b.String(), "nan") &&
			digitsOf(q.args) == scoreDigits
	}},
	{"the remainder of a power, whose last digit differs", func(q *question, a, b value) bool {
		return sameKind(a, b) && slices.ContainsFunc(q.expressions(), func(e string) bool {
			return strings.Contains(e, "^") && strings.Contains(e, "%")
		})
	}},
	{"LOAD *: the reference has numbers as texts", func(q *question, a, b value) bool {
		i := slices.Index(q.args, "LOAD")
		return q.args[0] == "FT.AGGREGATE" && i > 0 && i+1 < len(q.args) && q.args[i+1] == "*" && slices.ContainsFunc(q.args[i+2:], isStep)
	}},
	{"a number with a sign before other letters is a number and a word in the reference, and the opposite of a word here",
		func(q *question, a, b value) bool {
			return len(q.args) > 2 && signed.MatchString(q.args[2]) &&
				(sameKind(a, b) || begins(a, "Syntax error") || begins(b, "Syntax error"))
		}},
	{"COUNT_DISTINCTISH has other hashes", func(q *question, a, b value) bool {
		return slices.Contains(q.args, "COUNT_DISTINCTISH") && a.Kind == b.Kind
	}},
	{"a summary of a field without hits lacks its last word in the reference, also where all of it has room",
		func(q *question, a, b value) bool {
			return slices.Contains(q.args, "SUMMARIZE") && lacksLastWords(sortedDocuments(a), sortedDocuments(b))
		}},
	{"a part of a union is an intersection without matches: the reference counts it, releases since 8.4 do not",
		func(q *question, a, b value) bool {
			return otherScores(a, b) && q.has(func(n query.Node) bool {
				_, union := n.(*query.Union)
				return union && slices.ContainsFunc(below(n), func(child query.Node) bool {
					switch child.(type) {
					case *query.Intersect, *query.Phrase:
						return true
					}
					return false
				})
			})
		}},
	{"rows are sorted by the summary of a text in the reference, says WITHSORTKEYS", func(q *question, a, b value) bool {
		keyless := func(s string) string {
			if strings.HasPrefix(s, "$") || strings.HasPrefix(s, "#") {
				return "$"
			}
			return s
		}
		a, b = changed(q.unmarked(a), keyless), changed(q.unmarked(b), keyless)
		return slices.Contains(q.args, "WITHSORTKEYS") && q.marks() && (near(a, b, digitsOf(q.args)) || lacksLastWords(a, b))
	}},
	{"to_str of a computed text is null in the reference up to 8.8", func(q *question, a, b value) bool {
		return sameKind(a, b) && slices.ContainsFunc(q.expressions(), strOfComputed.MatchString)
	}},
	{"to_str of a property of an earlier row: groups of the reference have freed memory", func(q *question, a, b value) bool {
		return sameKind(a, b) && slices.Contains(q.args, "GROUPBY") && slices.ContainsFunc(q.expressions(), func(e string) bool {
			return strings.Contains(e, "to_str(")
		})
	}},
	{"an optional word counts for the last document that has it in another field in the reference", func(q *question, a, b value) bool {
		return otherScores(a, b) && q.has(func(n query.Node) bool {
			optional, ok := n.(*query.Optional)
			return ok && within(optional.Child, func(n query.Node) bool { return isText(n) && !n.Of().Fields.All() })
		})
	}},
	{"a time beyond the years of gmtime is any time in the reference", func(q *question, a, b value) bool {
		return sameKind(a, b) && slices.ContainsFunc(q.expressions(), farTime.MatchString)
	}},
	{"the negation of a range of vectors finds the last one of them in the reference", func(q *question, a, b value) bool {
		return sameKind(a, b) && q.has(func(n query.Node) bool {
			not, ok := n.(*query.Not)
			return ok && within(not.Child, func(n query.Node) bool { _, ok := n.(*query.VectorRange); return ok })
		})
	}},
	{"a query with invalid UTF-8", func(q *question, a, b value) bool {
		return a.Kind == b.Kind && len(q.args) > 2 && !utf8.ValidString(q.args[2])
	}},
	{"the start of an hour, day or month after 2100: the reference takes each fourth year for a leap year",
		func(q *question, a, b value) bool {
			return slices.ContainsFunc(q.expressions(), startOfTime.MatchString) && same(q.args, changed(a, lateTime), changed(b, lateTime))
		}},
	{"a union of one part: releases since 8.2 take the part itself, without the weight of the union and with its places",
		func(q *question, a, b value) bool {
			weighted := func(n query.Node) bool { return mayBeUnion(n) && n.Of().Weight != 1 }
			return otherScores(a, b) && q.has(weighted) ||
				sameKind(a, b) && differentKeys(a, b) == 0 && q.ordered() && q.has(mayBeUnion)
		}},
	{"the order of a few matches whose scores differ in the last digit", func(q *question, a, b value) bool {
		return q.args[0] == "FT.SEARCH" && !slices.Contains(q.args, "SORTBY") && q.hasTerms() &&
			len(documentsOf(a)) > 0 && q.sameButOrder(a, b)
	}},
	{"lists that are computed are equal to each other in the reference when rows are sorted", func(q *question, a, b value) bool {
		return sameKind(a, b) && slices.Contains(q.args, "SORTBY") && slices.ContainsFunc(q.expressions(), func(e string) bool {
			return strings.Contains(e, "split(") || strings.Contains(e, "matched_terms(")
		})
	}},
	{"only one part of a union has matched where the reference skips to a document", func(q *question, a, b value) bool {
		return sameKind(a, b) && q.skips() && strings.Contains(strings.Join(q.expressions(), " "), "matched_terms")
	}},
	{"a syntax error in the reference: a union of two words with something else", func(q *question, a, b value) bool {
		return len(q.args) > 2 && begins(a, "Syntax error") && strings.Count(q.args[2], "|") > 1
	}},
}

// begins reports whether a value is an error that begins with one of some texts.
func begins(v value, texts ...string) bool {
	return v.Kind == transcript.Error && slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(v.Text, text) })
}

// sameKind reports whether two replies have the same kind, or one of them is an error of a row.
func sameKind(a, b value) bool { return a.Kind == b.Kind || isOfRow(a) || isOfRow(b) }

// isOfRow reports whether a value is an error in the expressions of a row.
func isOfRow(v value) bool {
	return begins(v, "Could not find the value for a parameter name", "Invalid type (", "Error converting string", "Could not convert value",
		"to_number: cannot convert", "Unknown format specifier")
}

// isLate reports whether a value is an error that a server reports only when it plans or executes a query.
func isLate(v value) bool {
	return begins(v, "Use `INDEXEMPTY`", "Error parsing vector similarity", "Property", "Could not find", "No such property", "Invalid numeric range")
}

// sameBut reports whether two replies are the same once their texts are changed.
func sameBut(change func(string) string, a, b value) bool {
	return near(changed(sortedDocuments(a), change), changed(sortedDocuments(b), change), scoreDigits)
}

// changed returns a value with its texts changed.
func changed(v value, change func(string) string) value {
	v.Text = change(v.Text)
	v.Elems = slices.Clone(v.Elems)
	for i := range v.Elems {
		v.Elems[i] = changed(v.Elems[i], change)
	}
	return v
}

// sameUnmarked reports whether two replies are the same but for what is marked in the texts of documents.
func (q *question) sameUnmarked(a, b value) bool {
	a, b = q.unmarked(a), q.unmarked(b)
	return near(a, b, digitsOf(q.args)) || slices.Contains(q.args, "SUMMARIZE") && lacksLastWords(a, b)
}

// unmarked returns a reply without the marks in the texts of documents, and without the texts if they are summaries.
func (q *question) unmarked(v value) value {
	v = sortedDocuments(v)
	v.Elems = slices.Clone(v.Elems)
	for i := range v.Elems {
		if v.Elems[i] = q.unmarked(v.Elems[i]); i > 0 && slices.Contains(textNames, v.Elems[i-1].Text) {
			v.Elems[i].Text = q.tags().Replace(v.Elems[i].Text)
			if slices.Contains(q.args, "SUMMARIZE") {
				v.Elems[i].Text = ""
			}
		}
	}
	return v
}

// textNames are the names of fields in replies that may have texts with marks.
var textNames = []string{"t1", "t2", "t3", "one", "two", "three"}

// tags returns a replacer that removes the marks.
func (q *question) tags() *strings.Replacer {
	opens, closes := "<b>", "</b>"
	if i := slices.Index(q.args, "TAGS"); i > 0 && i+2 < len(q.args) {
		opens, closes = q.args[i+1], q.args[i+2]
	}
	return strings.NewReplacer(opens, "", closes, "")
}

// differentKeys returns how many keys of a are not in b.
func differentKeys(a, b value) int {
	keys := keysOf(b)
	return len(slices.DeleteFunc(keysOf(a), func(key string) bool { return slices.Contains(keys, key) }))
}

// otherScores reports whether two replies may have the same matches with other scores. A page of them then has other ones.
func otherScores(a, b value) bool { return a.Kind == b.Kind && len(keysOf(a)) == len(keysOf(b)) }

// sameButOrder reports whether two replies have the same documents, none more than two places from its place in the other.
func (q *question) sameButOrder(a, b value) bool {
	x, y := documentsOf(a), documentsOf(b)
	if len(x) != len(y) {
		return false
	}
	for i, doc := range x {
		at := slices.IndexFunc(y, func(other value) bool { return keysOf(other)[0] == keysOf(doc)[0] })
		if at < 0 || at < i-2 || at > i+2 || !near(sortedDocuments(doc), sortedDocuments(y[at]), digitsOf(q.args)) && !(q.marks() && q.sameUnmarked(doc, y[at])) {
			return false
		}
	}
	return true
}

// documentsOf returns the documents in a reply of FT.SEARCH, each as a list or a map.
func documentsOf(v value) (docs []value) {
	n := len(keysOf(v))
	switch {
	case n == 0:
	case v.Kind == transcript.Map:
		docs = rows(v)
	case (len(v.Elems)-1)%n == 0:
		for doc := range slices.Chunk(v.Elems[1:], (len(v.Elems)-1)/n) {
			docs = append(docs, value{Kind: transcript.Array, Elems: doc})
		}
	}
	if slices.ContainsFunc(docs, func(doc value) bool { return len(keysOf(doc)) != 1 }) {
		return nil
	}
	return docs
}

// differentRows returns how many rows of a are not among those of b.
func differentRows(a, b value) int {
	others := rows(b)
	return len(slices.DeleteFunc(slices.Clone(rows(a)), func(row value) bool {
		return slices.ContainsFunc(others, func(other value) bool { return near(sorted(row), sorted(other), distanceDigits) })
	}))
}

// unsignedKey removes the sign of a sort key.
func unsignedKey(s string) string { return strings.TrimLeft(s, "#$") }

// lacksLastWords reports whether a equals b, except that texts of a may lack the last word.
func lacksLastWords(a, b value) bool {
	if a.Kind == transcript.Map {
		a, b = sorted(a), sorted(b)
	}
	if a.Kind != b.Kind || len(a.Elems) != len(b.Elems) {
		return false
	}
	for i := range a.Elems {
		if !lacksLastWords(a.Elems[i], b.Elems[i]) {
			return false
		}
	}
	if a.Text == b.Text || nearText(a.Text, b.Text, scoreDigits) {
		return true
	}
	last := strings.LastIndexAny(b.Text, separators) + 1
	if last == 0 {
		last = min(1, len(b.Text)) // the reference leaves the first byte of a single word
	}
	return a.Text == strings.TrimRight(b.Text[:last], " ")
}

// separators are the characters between words.
const separators = " ,./(){}[]:;~!@#$%^&*-=+|'`\"<>?"

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

// opposites matches a negation of a negation.
var opposites = regexp.MustCompile(`-[( ]*((@[a-z0-9|]+:)?[( ]*-|@[a-z0-9]+ *!=)`)

// strOfComputed matches to_str of what is no property.
var strOfComputed = regexp.MustCompile(`to_str\([^@]`)

// farTime matches the functions of a time that may be far away.
var farTime = regexp.MustCompile(`(hour|day\w*|month\w*|year|timefmt)\(.*(\*|\^)`)

// startOfTime matches the functions that return the start of an hour, day or month.
var startOfTime = regexp.MustCompile(`\b(hour|day|month)\(`)

// lateTime replaces times after 2100 by a word.
func lateTime(s string) string {
	const year2100 = 4102444800
	if f, err := strconv.ParseFloat(s, 64); err == nil && f >= year2100 {
		return "late"
	}
	return s
}

// isStep reports whether a word of FT.AGGREGATE begins a step that reads values.
func isStep(word string) bool {
	return slices.Contains([]string{"APPLY", "FILTER", "GROUPBY", "SORTBY"}, strings.ToUpper(word))
}

// nullCompared matches a comparison with NULL.
var nullCompared = regexp.MustCompile(`NULL[ )]*[<>=!]=?|[<>=][ (]*NULL`)

var signed = regexp.MustCompile(`[-+](inf|[0-9.]*[0-9])[\pL_]`)

// knownReason returns the reason of a known difference, "" for an unknown one.
func knownReason(args []string, a, b value) string {
	q := ask(args)
	a, b = older(a), older(b)
	reason := q.known(a, b)
	if reason != "" || !slices.Contains(args, "EXPLAINSCORE") || !q.hasRange() && !q.nests() && !q.nearest() {
		return reason
	}
	const explained = "the reference explains a range by the nodes of its tree, puts intersections first in others, and adds the distance of KNN"
	a, b = unexplained(a), unexplained(b)
	if near(a, b, digitsOf(args)) {
		return explained
	}
	if reason = q.known(a, b); reason != "" {
		reason = explained + "; " + reason
	}
	return reason
}

// known returns the reason of a known difference between two replies, "" for an unknown one.
func (q *question) known(a, b value) string {
	for _, k := range knownDifferences {
		if k.matches(q, a, b) {
			return k.reason
		}
	}
	return ""
}
