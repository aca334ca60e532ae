// Package searches makes random indexes, documents and queries (FT.*) for package differential, and compares the replies.
//
// A sequence makes an index with a random schema (schema.go), writes documents of a small vocabulary, and then queries it
// (grammar.go) while documents change. The reference updates its lists and counts in the background, so both servers settle
// before the queries after a change (settle.go). compare.go compares replies, and lists the tolerances.
package searches

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/conformance/differential"
)

// Language is the random sequences of searches.
var Language = differential.Language{Generate: Generate, Same: same, Known: knownReason, Settle: settle, Rewrite: rewrite}

// index is the name of the index of a sequence.
const index = "idx"

// generator makes one sequence.
type generator struct {
	rnd    *rand.Rand
	ops    []differential.Op
	fields []field
	// dialect is the dialect of the current command; 0 leaves it out.
	dialect int
	// wrong allows mistakes in a command.
	wrong bool
	// changes means that documents change after they were first written.
	changes bool
	// suffixes means that texts have WITHSUFFIXTRIE.
	suffixes bool
	// written are the keys written so far.
	written map[string]bool
	// depth is the number of rules being expanded.
	depth int
}

// maxDepth bounds nested rules: deeper ones use their first alternative.
const maxDepth = 9

// Generate returns the sequence for a seed.
func Generate(seed uint64, commands int) []differential.Op {
	g := &generator{rnd: rand.New(rand.NewPCG(seed, 0x736561726368)), written: map[string]bool{}}
	g.changes = g.chance(50)
	if g.chance(40) {
		g.add([]string{"HELLO", "3"})
	}
	// Fields of larger hashes have no defined order.
	g.add([]string{"CONFIG", "SET", "hash-max-listpack-value", "4096"}, []string{"CONFIG", "SET", "search-enable-unstable-features", "yes"})
	g.schema()
	for range 20 + g.rnd.IntN(40) {
		g.add(g.write())
	}
	for n := 0; n < commands; n++ {
		if g.changes && g.chance(2) {
			for range 1 + g.rnd.IntN(10) {
				g.change()
			}
		}
		g.query()
	}
	return g.ops
}

func (g *generator) add(cmds ...[]string) {
	g.ops = append(g.ops, differential.Op{Cmds: cmds})
}

func (g *generator) chance(percent int) bool { return g.rnd.IntN(100) < percent }

func (g *generator) pick(choices ...string) string { return choices[g.rnd.IntN(len(choices))] }

// query adds one query, and the reads of its cursor if it creates one.
func (g *generator) query() {
	g.dialect = g.rnd.IntN(5)
	g.wrong = g.chance(10)
	op := differential.Op{Settles: true}
	words := g.words("COMMAND")
	for repeated(words) {
		words = g.words("COMMAND")
	}
	if strings.Contains(words[2], "KNN") && words[0] == "FT.SEARCH" && g.chance(50) {
		words = append(words, "SORTBY", g.pick("dist", "__v1_score"))
	}
	if words[0] != "FT.TAGVALS" && strings.Contains(words[2], "$") || words[0] != "FT.TAGVALS" && g.chance(3) {
		words = append(words, g.words("PARAMS")...)
	}
	if g.dialect == 4 && slices.Contains(words, "WITHCURSOR") {
		g.dialect = 3 // dialect 4 needs WITHCOUNT below, which cannot be used with a cursor
	}
	if g.dialect > 0 && words[0] != "FT.TAGVALS" {
		words = append(words, "DIALECT", strconv.Itoa(g.dialect))
	}
	if g.wrong && words[0] != "FT.TAGVALS" {
		words = g.spoil(words)
		if words[0] == "FT.SPELLCHECK" {
			words[2] = strings.ReplaceAll(words[2], "$", "") // the reference ends where a word is a parameter
		}
	}
	words = g.scored(words)
	if g.dialect == 4 && (words[0] == "FT.SEARCH" || words[0] == "FT.AGGREGATE") && len(words) > 2 {
		// Without it the reference omits scores, or the documents without the field of SORTBY, or crashes.
		words = slices.Insert(words, 3, "WITHCOUNT")
	}
	op.Cmds = [][]string{words}
	if slices.Contains(words, "WITHCURSOR") {
		op.Chained = true
		for range 4 {
			op.Cmds = append(op.Cmds, []string{"FT.CURSOR", "READ", index, cursor})
		}
	}
	g.ops = append(g.ops, op)
}

// repeated reports whether a search has an option twice. The last one counts, but the reference keeps parts of the
// first one.
func repeated(words []string) bool {
	seen := map[string]bool{}
	for _, w := range words {
		if words[0] == "FT.SEARCH" && slices.Contains([]string{"LIMIT", "SORTBY", "RETURN", "SCORER", "WITHSCORES", "HIGHLIGHT", "SUMMARIZE"}, w) {
			if seen[w] {
				return true
			}
			seen[w] = true
		}
	}
	return false
}

// scored changes the scorer of a query where the reference has no comparable score. For BM25 it counts the lengths of
// removed documents in the average length. With TFIDF and BM25, a range of numbers gets positions among the words if
// its tree has several nodes. And the score is 0 where others are higher, which shows in results with another order.
func (g *generator) scored(words []string) []string {
	scores := words[0] == "FT.SEARCH" || words[0] == "FT.AGGREGATE" && slices.Contains(words, "ADDSCORES")
	if !scores || len(words) < 3 {
		return words
	}
	if ask(words).meetsAll() {
		// The reference counts all documents as a part of an intersection; releases since 8.4 leave them out.
		return withScorer(words, "DOCSCORE")
	}
	if ask(words).skips() {
		// Where the reference skips to a document, only one part of a union counts for its score.
		if g.chance(50) && !slices.Contains(words, "VERBATIM") {
			words = slices.Insert(words, 3, "VERBATIM")
		}
		if ask(words).skips() {
			return withScorer(words, "DOCSCORE")
		}
	}
	ranges := strings.ContainsAny(words[2], "[<>={|") || slices.Contains(words, "FILTER") || slices.Contains(words, "GEOFILTER")
	if g.suffixes && strings.ContainsAny(words[2], "*%") || strings.Contains(words[2], "w'") {
		// Which word of a pattern counts depends on the order in tries.
		return withScorer(words, "DOCSCORE")
	}
	cut := words[0] == "FT.AGGREGATE" || slices.Contains(words, "SORTBY")
	i := slices.Index(words, "SCORER") + 1
	scorer := "BM25STD"
	if i > 0 && i < len(words) {
		scorer = words[i]
	}
	switch {
	case strings.HasPrefix(scorer, "BM25STD") && !g.changes, strings.HasPrefix(scorer, "TFIDF") && !ranges && !cut, scorer == "BM25" && !g.changes && !ranges && !cut,
		scorer == "DISMAX", scorer == "DOCSCORE", scorer == "HAMMING", scorer == "nope":
		return words
	case ranges || cut:
		scorer = g.pick("DISMAX", "DOCSCORE")
	default:
		scorer = g.pick("TFIDF", "TFIDF.DOCNORM", "DISMAX")
	}
	return withScorer(words, scorer)
}

// withScorer sets the scorer of a search.
func withScorer(words []string, scorer string) []string {
	if i := slices.Index(words, "SCORER") + 1; i > 0 && i < len(words) {
		words[i] = scorer
		return words
	}
	return slices.Insert(words, 3, "SCORER", scorer)
}

// spoil puts a mistake into one place of a command, most of the time.
func (g *generator) spoil(words []string) []string {
	i := 2 + g.rnd.IntN(len(words)-2)
	switch g.rnd.IntN(6) {
	case 0:
		return slices.Delete(words, i, i+1)
	case 1:
		return slices.Insert(words, i, g.pick("", "foo", "1", "-1", "LIMIT", "SORTBY", "@t1", "AS", "99999999999999999999", "RETURN"))
	case 2:
		words[i] = g.pick("", "foo", "0", "-1", "2", "1000001", "4294967296", "9223372036854775808", "1.5", "nan", "@", "*")
	default:
		words[2] = g.garble(words[2])
	}
	return words
}

// garble changes one character of a query.
func (g *generator) garble(s string) string {
	at := g.rnd.IntN(len(s) + 1)
	with := g.pick("(", ")", "[", "]", "{", "}", "|", "@", ":", "\"", "'", "*", "%", "~", "-", "=>", "$", ";", ",", " ", "\\", "<", "&", "w'", ".", "inf")
	if at < len(s) && g.chance(40) {
		return s[:at] + s[at+1:]
	}
	return s[:at] + with + s[at:]
}

// rule returns an alternative of a rule. One with a dialect is for that and later ones, one with 9 is an error; a few
// are used anyway.
func (g *generator) rule(name string) string {
	lines := parsed[name]
	if lines == nil {
		panic("searches: no rule " + name)
	}
	if g.depth > maxDepth {
		return lines[0].text
	}
	for {
		n := g.rnd.IntN(lines[len(lines)-1].upTo)
		i, _ := slices.BinarySearchFunc(lines, n+1, func(l line, n int) int { return l.upTo - n })
		if l := lines[i]; (l.dialect <= max(1, g.dialect) && g.applies(l.text)) || g.chance(2) {
			return l.text
		}
	}
}

// applies reports whether the index has the kinds of fields that a line requires.
func (g *generator) applies(line string) bool {
	for _, kind := range []string{"VECTOR", "GEO"} {
		if strings.Contains(line, "<<"+strings.ToLower(kind)+"field>>") &&
			!slices.ContainsFunc(g.fields, func(f field) bool { return f.kind == kind }) {
			return false
		}
	}
	return true
}

// words expands a rule to arguments.
func (g *generator) words(name string) []string {
	g.depth++
	defer func() { g.depth-- }()
	var out []string
	for word := range strings.FieldsSeq(g.rule(name)) {
		switch rest, many := strings.CutPrefix(word, "+"); {
		case many:
			out = append(out, g.words(rest)...)
		case word[0] == '#':
			out = append(out, g.counted(word[1:])...)
		default:
			out = append(out, g.text(word))
		}
	}
	return out
}

// counted expands a rule one to three times, after the resulting number of arguments.
func (g *generator) counted(name string) []string {
	var out []string
	for range 1 + g.rnd.IntN(3) {
		out = append(out, g.words(name)...)
	}
	n := len(out)
	if g.wrong && g.chance(10) {
		n += g.rnd.IntN(3) - 1
	}
	return append([]string{strconv.Itoa(n)}, out...)
}

// text expands the rules in one argument: {name} stands for a rule, or for a name that fill knows.
func (g *generator) text(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "<<")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, ">>")
		if filled, ok := g.fill(name); ok {
			b.WriteString(filled)
		} else {
			g.depth++
			b.WriteString(g.text(g.rule(name)))
			g.depth--
		}
		s = after
	}
}
