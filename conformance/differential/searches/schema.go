// Indexes, and documents for them.

package searches

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/conformance/differential"
)

// field is a field of the index.
type field struct {
	name, kind string
	sortable   bool
	separator  string
	dimensions int
	// wide means that a vector has 64-bit numbers.
	wide bool
	// phonetic fields index sounds. Their words are long enough for a sound: the reference gives a shorter word the
	// sound of the preceding word.
	phonetic bool
}

// schema adds the commands that make the index.
func (g *generator) schema() {
	g.fields = []field{{name: "t1", kind: "TEXT"}, {name: "g1", kind: "TAG", separator: ","}, {name: "n1", kind: "NUMERIC"}}
	for _, f := range []field{{name: "t2", kind: "TEXT"}, {name: "t3", kind: "TEXT"}, {name: "g2", kind: "TAG", separator: ","},
		{name: "n2", kind: "NUMERIC"}, {name: "p1", kind: "GEO"}, {name: "v1", kind: "VECTOR", dimensions: 2 + g.rnd.IntN(4)}} {
		if g.chance(60) {
			g.fields = append(g.fields, f)
		}
	}
	g.rnd.Shuffle(len(g.fields), func(i, j int) { g.fields[i], g.fields[j] = g.fields[j], g.fields[i] })
	if g.chance(20) {
		g.wrong = true
		words := g.spoil(g.create())
		for slices.Contains(words, "") { // releases since 8.2 refuse a field without a name
			words = g.spoil(g.create())
		}
		g.add(words)
		g.add([]string{"FT.DROPINDEX", index})
		g.wrong = false
	}
	g.ops = append(g.ops, differential.Op{Cmds: [][]string{g.create()}})
	if g.chance(20) {
		for range 2 {
			g.add([]string{"FT.SYNUPDATE", index, g.pick("s1", "s2"), g.vocabulary(), g.vocabulary()})
		}
	}
	g.ops = append(g.ops, differential.Op{Cmds: [][]string{{"FT.SYNDUMP", index}}, Settles: true})
}

// create makes an FT.CREATE.
func (g *generator) create() []string {
	words := []string{"FT.CREATE", index, "ON", "HASH"}
	maybe := func(percent int, option ...string) {
		if g.chance(percent) {
			words = append(words, option...)
		}
	}
	maybe(70, "PREFIX", "2", "d:", "e:")
	// The reference keeps a document that lacks a field of a filter.
	maybe(10, "FILTER", g.pick("exists(@t1)", "!exists(@n1)", "startswith(@__key, 'd:1')"))
	maybe(10, "LANGUAGE", g.pick("english", "german", "french", "Spanish"))
	maybe(10, "SCORE", g.pick("0.5", "1", "0"))
	maybe(20, "SCORE_FIELD", "score")
	maybe(20, "PAYLOAD_FIELD", "payload")
	maybe(3, "NOOFFSETS")
	maybe(3, "NOHL")
	maybe(5, "NOFIELDS")
	maybe(5, "NOFREQS")
	maybe(10, "STOPWORDS", "2", "the", "cat")
	maybe(5, "STOPWORDS", "0")
	words = append(words, "SCHEMA")
	texts := true
	g.suffixes = g.chance(20)
	for i := range g.fields {
		f := &g.fields[i]
		texts = texts && f.kind == "TEXT"
		words = append(words, f.name, f.kind)
		switch f.kind {
		case "TEXT":
			maybe(15, "NOSTEM")
			maybe(20, "WEIGHT", g.pick("2", "0.5", "3.7", "1"))
			// The reference does not find sounds in a field that comes after fields of another kind.
			if texts {
				if f.phonetic = g.chance(10); f.phonetic {
					words = append(words, "PHONETIC", "dm:en")
				}
			}
			// If only some fields have it, the reference leaves out words in wildcards.
			if g.suffixes {
				words = append(words, "WITHSUFFIXTRIE")
			}
			maybe(15, "INDEXEMPTY")
		case "TAG":
			f.separator = ","
			if g.chance(20) {
				f.separator = g.pick(";", "|")
				words = append(words, "SEPARATOR", f.separator)
			}
			maybe(20, "CASESENSITIVE")
			maybe(10, "WITHSUFFIXTRIE")
			maybe(15, "INDEXEMPTY")
		case "VECTOR":
			f.wide = g.chance(30)
			words = append(words, "FLAT", "6", "TYPE", map[bool]string{false: "FLOAT32", true: "FLOAT64"}[f.wide], "DIM", strconv.Itoa(f.dimensions),
				"DISTANCE_METRIC", g.pick("L2", "L2", "IP", "COSINE"))
		}
		maybe(15, "INDEXMISSING")
		if f.kind == "VECTOR" {
			continue
		}
		f.sortable = g.chance(40)
		if f.sortable {
			words = append(words, "SORTABLE")
			if f.kind == "TEXT" || f.kind == "TAG" {
				maybe(20, "UNF")
			}
		}
	}
	return words
}

// key is the name of a document; some belong to no index with prefixes.
func (g *generator) key() string {
	return g.pick("d:", "d:", "d:", "d:", "d:", "e:", "x:") + strconv.Itoa(g.rnd.IntN(60))
}

// write makes an HSET of one document.
func (g *generator) write() []string {
	key := g.key()
	for !g.changes && g.written[key] {
		key += "0"
	}
	g.written[key] = true
	words := []string{"HSET", key}
	for _, f := range g.fields {
		if g.chance(94) {
			words = append(words, f.name, g.value(f))
		}
	}
	for _, extra := range []string{"score", "payload", "lang", "other"} {
		if g.chance(30) {
			words = append(words, extra, map[string]string{"score": g.pick("1", "0.5", "0.25", "0", "abc"),
				"payload": g.pick("aaaa", "abcd", "zzzz", "x", ""), "lang": g.pick("english", "german", "klingon"),
				"other": g.vocabulary()}[extra])
		}
	}
	if len(words) == 2 {
		words = append(words, "other", "x")
	}
	return words
}

// change adds commands that change or remove a document.
func (g *generator) change() {
	key := g.key()
	switch g.rnd.IntN(10) {
	case 0, 1:
		g.add([]string{"DEL", key})
	case 2:
		g.add([]string{"HDEL", key, g.fields[g.rnd.IntN(len(g.fields))].name})
	case 3:
		g.add([]string{"PEXPIREAT", key, g.pick("1", "4102444800123")})
	case 4:
		g.add([]string{"HINCRBY", key, "n1", "1"})
	case 5:
		g.add([]string{"HSETNX", key, "other", "y"})
	default:
		g.add(g.write())
	}
}

// value makes a value of a field, sometimes one that cannot be indexed.
func (g *generator) value(f field) string {
	switch f.kind {
	case "TEXT":
		if g.chance(5) {
			return g.pick("", " ", "the", "a, the")
		}
		s := g.wordOf(f)
		for range g.rnd.IntN(12) {
			s += g.pick(" ", " ", " ", " ", " ", " ", ", ", ". ", "-", "  ") + g.wordOf(f)
		}
		return s
	case "TAG":
		if g.chance(5) {
			return g.pick("", " ", ",", " red ")
		}
		s := g.tag()
		for range g.rnd.IntN(3) {
			s += g.pick("", " ") + f.separator + g.pick("", " ") + g.tag()
		}
		return s
	case "NUMERIC":
		if g.chance(2) {
			return g.pick("abc", "", "nan", "1,5", "1e400")
		}
		return g.number()
	case "GEO":
		if g.chance(2) {
			return g.pick("abc", "200,1", "1", "")
		}
		return strconv.FormatFloat(float64(g.rnd.IntN(2000))/1000+13, 'f', -1, 64) + g.pick(",", " ") +
			strconv.FormatFloat(float64(g.rnd.IntN(2000))/1000+52, 'f', -1, 64)
	case "VECTOR":
		if g.chance(2) {
			return "short"
		}
		return g.vector(f)
	}
	panic("searches: no values for " + f.kind)
}

// vector makes a vector of small integers: their distances are not rounded.
func (g *generator) vector(f field) string {
	var b []byte
	for range f.dimensions {
		x := float64(g.rnd.IntN(200) - 100)
		if f.wide {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		} else {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		}
	}
	return string(b)
}

// words are the vocabulary of texts.
var words = []string{"run", "running", "runs", "runner", "hello", "help", "helper", "helping", "world", "word", "words", "sword", "cat", "cats",
	"concatenate", "the", "a", "an", "is", "quick", "quickly", "fox", "foxes", "12", "3.5", "foo_bar", "Hello", "WORLD", "ünïcode", "Straße", "smith", "smyth",
	"a1", "ab", "abc", "abcd", "bcd", "x", "relate", "relational", "hopping", "hope"}

func (g *generator) vocabulary() string {
	// The first words are much more frequent than the last.
	n := g.rnd.IntN(len(words))
	return words[min(n, g.rnd.IntN(len(words)))]
}

// wordOf is a word for a field.
func (g *generator) wordOf(f field) string {
	const shortest = 3 // shorter words have no sound
	for {
		if w := g.vocabulary(); !f.phonetic || len(w) >= shortest && w != "3.5" {
			return w
		}
	}
}

func (g *generator) tag() string {
	return g.pick("red", "red", "green", "blue", "Red", "dark red", "a-b", "a1", "redder", "x y z", "12", "the")
}

func (g *generator) number() string {
	if g.chance(10) {
		return g.pick("0", "-1", "1e3", "0.1", "3.14159", "1000000000000", "-2.5", "1234567.891", "0.333333333333333", "123456789012")
	}
	return strconv.Itoa(g.rnd.IntN(20))
}

// named picks a field of a kind, "" for any; if the index has none the name is unknown.
func (g *generator) named(kind string, sortable bool) field {
	var all []field
	for _, f := range g.fields {
		if (kind == "" || f.kind == kind) && (!sortable || f.sortable) {
			all = append(all, f)
		}
	}
	if len(all) == 0 || g.wrong && g.chance(5) {
		return field{name: g.pick("nope", "t1", "n1"), dimensions: 2}
	}
	return all[g.rnd.IntN(len(all))]
}
