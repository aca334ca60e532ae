// The known differences, each with the reason and the queries that may show it.

package searches

import (
	"regexp"
	"slices"
	"strings"

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
		return b.Kind == transcript.Error && a.Kind != transcript.Error && begins(b, "Could not find the value for a parameter name",
			"Could not convert value to a number", "Error converting string", "to_number: cannot convert")
	}},
	{"a range of numbers or places is explained by the nodes of its tree in the reference", func(q *question, a, b value) bool {
		return slices.Contains(q.args, "EXPLAINSCORE") && q.hasRange() && (near(unexplained(a), unexplained(b), digitsOf(q.args)) ||
			slices.Contains(q.args, "SUMMARIZE") && cut(unexplained(a), unexplained(b)))
	}},
	{"an error of a part of the query to which the reference does not come, as nothing matches another part", func(q *question, a, b value) bool {
		return isLate(b) && !begins(b, "Property", "Could not find", "No such property") && a.Kind != transcript.Error
	}},
	{"an empty text beside other parts: the reference takes its field for one without INDEXEMPTY", func(q *question, a, b value) bool {
		return begins(a, "Use `INDEXEMPTY`") && strings.Contains(q.args[2], `:""`) && strings.ContainsAny(q.args[2], " |(")
	}},
	{"two errors, of which the reference tells another one", func(q *question, a, b value) bool {
		rows := func(v value) bool {
			return begins(v, "Invalid type (", "Error converting string", "Could not convert value")
		}
		return (isLate(a) || isLate(b) || rows(a) && rows(b)) && a.Kind == b.Kind || a.Kind == transcript.Error && b.Kind == transcript.Error && (q.args[0] == "FT.SPELLCHECK" || begins(b, "LOAD path AS name"))
	}},
	{"a word with two changes or more: the reference finds some with one more", func(q *question, a, b value) bool {
		return sameKind(a, b) && q.has(func(n query.Node) bool {
			fuzzy, ok := n.(*query.Fuzzy)
			return ok && reachesFarther(fuzzy.Text, fuzzy.Distance)
		})
	}},
	{"spelling at a distance of two: the reference finds some words one change farther", func(q *question, a, b value) bool {
		i := slices.Index(q.args, "DISTANCE")
		if q.args[0] == "FT.SPELLCHECK" && i == 2 { // the query; it may equal an option
			return true
		}
		if q.args[0] != "FT.SPELLCHECK" || i < 0 || i+1 >= len(q.args) || len(q.args[i+1]) != 1 || a.Kind != b.Kind {
			return false
		}
		return slices.ContainsFunc(strings.Fields(q.args[2]), func(word string) bool { return reachesFarther(word, int(q.args[i+1][0]-'0')) })
	}},
	{"words near to each other, and a group without places: the reference looks for places in it", func(q *question, a, b value) bool {
		return sameKind(a, b) && (q.unplaced() || q.near && q.skips())
	}},
	{"words in an order that may be at one place: each needs a place of its own here", func(q *question, a, b value) bool {
		return sameKind(a, b) && q.samePlace()
	}},
	{"which of the words that a pattern stands for is marked", func(q *question, a, b value) bool {
		return q.marks() && (strings.ContainsAny(q.args[2], "*%") || strings.Contains(q.args[2], "w'")) && cut(textless(a), textless(b))
	}},
	{"which word is marked in another language", func(q *question, a, b value) bool {
		return q.marks() && slices.Contains(q.args, "LANGUAGE") && cut(textless(a), textless(b))
	}},
	{"an empty text shifts what is marked in the fields behind it in the reference", func(q *question, a, b value) bool {
		return q.marks() && strings.Contains(a.String(), `""`) && cut(textless(a), textless(b))
	}},
	{"which of two equally near vectors is the last one", func(q *question, a, b value) bool {
		_, knn := q.tree.(*query.KNN)
		return knn && len(a.Elems) == len(b.Elems) && differentKeys(a, b) == 1
	}},
	{"comparisons with what is no number hold for == >= and <= in the reference", func(q *question, a, b value) bool {
		return a.Kind == b.Kind && q.mayCompareNaN()
	}},
	{"NULL is no number for < and > in the reference, and equals what has no value in another way", func(q *question, _, _ value) bool {
		return slices.ContainsFunc(q.expressions(), func(e string) bool { return strings.Contains(e, "NULL") && strings.ContainsAny(e, "<>=") })
	}},
	{"two minus signs cancel each other since 8.2", func(q *question, a, b value) bool {
		return len(q.args) > 2 && opposites.MatchString(q.args[2]) && sameKind(a, b)
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
	{"the word that an error names", func(_ *question, a, b value) bool {
		return a.Kind == transcript.Error && b.Kind == transcript.Error && (strings.HasPrefix(b.Text, a.Text) ||
			begins(a, "MISSING ASC or DESC") && begins(b, "MISSING ASC or DESC"))
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
			q.marks() && sameBut(unsignedKey, textless(a), textless(b)))
	}},
	{"RETURN of a field that no schema has, with HIGHLIGHT of some fields and SUMMARIZE of all", func(_ *question, a, _ value) bool {
		return a.Kind == transcript.Error && strings.HasSuffix(a.Text, "is not in schema")
	}},
	{"EXPLAIN looks at no vectors and no distances", func(q *question, a, b value) bool {
		return strings.HasPrefix(q.args[0], "FT.EXPLAIN") && begins(a, "Error parsing vector similarity", "Distance field", "Property", "Invalid")
	}},
	{"nan is a radius in the reference", func(q *question, _, _ value) bool {
		return slices.Contains(q.args, "GEOFILTER") && slices.Contains(q.args, "nan")
	}},
	{"two errors in the arguments of FT.CREATE", func(_ *question, a, b value) bool {
		return begins(a, "Bad arguments for vector similarity") && begins(b, "Bad arguments for vector similarity") ||
			a.Kind == transcript.Error && begins(b, "Unknown symbol")
	}},
	{"the text of NULL in format(), which is empty in some rows of the reference", func(q *question, a, b value) bool {
		return a.Kind == b.Kind && slices.ContainsFunc(q.expressions(), func(e string) bool {
			return strings.Contains(e, "NULL") && strings.Contains(e, "format(")
		})
	}},
	{"a field without a name: releases since 8.2 say so", func(_ *question, a, b value) bool {
		return begins(b, "Field name cannot be empty")
	}},
	{"a number that is too large is told to be out of bounds", func(_ *question, a, b value) bool {
		return strings.Contains(a.Text, "Value is outside acceptable bounds") && strings.Contains(b.Text, "Could not convert argument")
	}},
	{"LOAD *: the reference has numbers as texts", func(q *question, a, b value) bool {
		i := slices.Index(q.args, "LOAD")
		return q.args[0] == "FT.AGGREGATE" && i > 0 && i+1 < len(q.args) && q.args[i+1] == "*"
	}},
	{"a number with a sign before other letters is a number and a word in the reference, and the opposite of a word here", func(q *question, _, _ value) bool {
		return len(q.args) > 2 && signed.MatchString(q.args[2])
	}},
	{"COUNT_DISTINCTISH has other hashes", func(q *question, a, b value) bool {
		return slices.Contains(q.args, "COUNT_DISTINCTISH") && a.Kind == b.Kind
	}},
	{"a summary of a field without hits lacks its last word in the reference, also where all of it has room", func(q *question, a, b value) bool {
		return slices.Contains(q.args, "SUMMARIZE") && cut(sortedDocuments(a), sortedDocuments(b))
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
func sameKind(a, b value) bool {
	const missing = "Could not find the value for a parameter name"
	return a.Kind == b.Kind || begins(a, missing) || begins(b, missing)
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

// textless returns a reply without the texts of documents.
func textless(v value) value {
	v = sortedDocuments(v)
	v.Elems = slices.Clone(v.Elems)
	for i := range v.Elems {
		if v.Elems[i] = textless(v.Elems[i]); i > 0 && slices.Contains([]string{"t1", "t2", "t3", "one", "two", "three"}, v.Elems[i-1].Text) {
			v.Elems[i].Text = ""
		}
	}
	return v
}

// differentKeys returns how many keys of a are not in b.
func differentKeys(a, b value) int {
	keys := keysOf(b)
	return len(slices.DeleteFunc(keysOf(a), func(key string) bool { return slices.Contains(keys, key) }))
}

// unsignedKey removes the sign of a sort key.
func unsignedKey(s string) string { return strings.TrimLeft(s, "#$") }

// cut reports whether each text of a equals that of b or is cut from it.
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

var opposites = regexp.MustCompile(`-[( ]*-`)

var signed = regexp.MustCompile(`[-+](inf|[0-9.]*[0-9])[\pL_]`)

// knownReason returns the reason of a known difference, "" for an unknown one.
func knownReason(args []string, a, b value) string {
	q := ask(args)
	for _, k := range knownDifferences {
		if k.matches(q, a, b) {
			return k.reason
		}
	}
	return ""
}
