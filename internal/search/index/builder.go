package index

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/engine/search/postings"
	"github.com/atomredis/atomredis/engine/search/shapes"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/text"
)

// Document is a value that can be indexed.
type Document interface {
	// Values returns the values under the path of a field: none if the document lacks it. failure says that a value
	// does not fit the field.
	Values(f *schema.Field) (values []Value, failure string)
	// Text returns the text under a path, for a document's own language, score and payload.
	Text(path string) (value []byte, ok bool)
}

// Filter reports whether an index wants the document of a key.
type Filter func(key string, d Document) bool

// Value is one value of a field.
type Value struct {
	Text     []byte
	Number   float64
	IsNumber bool   // Number has it, not Text
	Vector   []byte // of a VECTOR field, in the field's own form
}

// Builder reads documents. It belongs to one goroutine and is reused.
type Builder struct {
	def      *schema.Definition
	synonyms *text.Synonyms
	doc      Document
	tokens   text.Tokenizer
	stemmers map[text.Language]*text.Stemmer
	options  Options

	key      string
	wanted   bool     // the document fulfils the index's filter
	failed   *Failure // the error if it cannot be indexed
	badShape *Failure // the error of a GEOSHAPE field, without which it is indexed
	score    float64
	length   uint32
	maxFreq  uint32
	payload  []byte
	sort     []docs.Value
	words    []word
	byText   map[string]int // index in words
	letters  []byte         // of words; words refer to it
	tags     []tag          // by field
	tagged   int            // how many fields have tags
	values   []number
	missing  []string // names of fields
	shapes   []shape
	vectors  []vector

	terms   []uint32 // scratch of Index.add
	own     []byte   // likewise
	scratch []byte
}

// Options are the configured options for new documents.
type Options struct {
	MinStem  int // length in bytes from which words are stemmed
	MinSound int // length in bytes from which words get a phonetic code
	TextGap  int // from the last word of a value to the first of the next one of the same field
}

// word is a term of the document.
type word struct {
	text    string // in Builder.letters
	freq    uint32
	mask    postings.Mask
	offsets []uint32
}

type tag struct {
	field int // its place in the definition
	text  string
	exact bool // the field's value is this tag and nothing else
}

type number struct {
	field *schema.Field
	value float64
	exact bool // the field's value is this number in a form that expressions read too
}

type shape struct {
	field string
	shape shapes.Shape
}

type vector struct {
	field   string
	vectors [][]byte
	same    bool // the key's document already has these vectors
}

// NewBuilder returns a builder.
func NewBuilder(o Options) *Builder {
	return &Builder{options: o, stemmers: map[text.Language]*text.Stemmer{}, byText: map[string]int{}}
}

// Build reads the document of a key for an index. filter reports whether an index with a filter wants it; nil is no filter.
func (b *Builder) Build(x *Index, key string, d Document, filter Filter) {
	x.mu.RLock()
	b.def, b.synonyms = x.def, x.synonyms
	x.mu.RUnlock()
	b.read(key, d, filter)
}

// build is Build with the index's lock held.
func (b *Builder) build(x *Index, key string, d Document, filter Filter) {
	b.def, b.synonyms = x.def, x.synonyms
	b.read(key, d, filter)
}

func (b *Builder) read(key string, d Document, filter Filter) {
	b.key, b.doc = key, d
	b.wanted = filter == nil || filter(key, d)
	b.rebuild(b.def)
}

// rebuild reads the document by a definition.
func (b *Builder) rebuild(def *schema.Definition) {
	b.def, b.failed, b.badShape = def, nil, nil
	b.score, b.length, b.maxFreq, b.payload = def.Score, 0, 0, nil
	b.reset()
	if !b.wanted {
		return
	}
	language := def.Language
	if def.LanguageField != "" {
		if v, ok := b.doc.Text(def.LanguageField); ok {
			if l, ok := text.ParseLanguage(string(v)); ok {
				language = l
			}
		}
	}
	if def.ScoreField != "" {
		if v, ok := b.doc.Text(def.ScoreField); ok {
			if s, ok := parseNumber(v); ok {
				b.score = s
			}
		}
	}
	if def.PayloadField != "" {
		if v, ok := b.doc.Text(def.PayloadField); ok {
			b.payload = slices.Clone(v)
		}
	}
	b.tokens.Stopwords, b.tokens.Language = def.Stopwords, language
	stemmer := b.stemmer(language)
	position := 0
	for i, f := range def.Fields {
		values, failure := b.doc.Values(f)
		if failure == "" {
			failure = b.field(i, f, values, &position, stemmer)
		}
		if failure != "" {
			b.failed = &Failure{f.Name, failure}
			b.reset()
			return
		}
	}
}

func (b *Builder) stemmer(l text.Language) *text.Stemmer {
	s := b.stemmers[l]
	if s == nil {
		s = text.NewStemmer(l)
		b.stemmers[l] = s
	}
	return s
}

// reset drops the previous document. It keeps the memory of its words, unless that is very large.
func (b *Builder) reset() {
	clear(b.byText)
	const muchText, manyWords = 1 << 20, 1 << 14
	if cap(b.letters) > muchText || cap(b.words) > manyWords {
		b.letters, b.words = nil, nil
	}
	b.letters, b.words = b.letters[:0], b.words[:0]
	b.tagged = 0
	b.tags, b.values, b.missing, b.shapes, b.vectors = b.tags[:0], b.values[:0], b.missing[:0], b.shapes[:0], b.vectors[:0]
	b.sort = append(b.sort[:0], make([]docs.Value, b.def.Sortables())...)
}

// field reads the values of a field and returns the error if one does not fit.
func (b *Builder) field(place int, f *schema.Field, values []Value, position *int, stemmer *text.Stemmer) (failure string) {
	if len(values) == 0 {
		if f.IndexMissing {
			b.missing = append(b.missing, f.Name)
		}
		return ""
	}
	if f.Sortable {
		if failure := b.sortValue(f, values[0]); failure != "" {
			return failure
		}
	}
	if f.NoIndex {
		return ""
	}
	switch f.Kind {
	case query.TextKind:
		for i, v := range values {
			if i > 0 {
				*position += max(b.options.TextGap, 1) - 1
			}
			b.text(f, v.Text, position, stemmer)
		}
	case query.TagKind:
		before := len(b.tags)
		for _, v := range values {
			b.tag(place, f, v.Text)
		}
		if len(b.tags) > before {
			b.tagged++
			own := b.tags[before:]
			slices.SortFunc(own, func(a, b tag) int { return strings.Compare(a.text, b.text) })
			b.tags = b.tags[:before+len(slices.Compact(own))]
			only := b.tags[before:]
			only[0].exact = len(only) == 1 && len(values) == 1 && only[0].text == string(values[0].Text)
		}
	case query.NumericKind:
		before := len(b.values)
		for _, v := range values {
			n, ok := v.Number, v.IsNumber
			if !ok {
				if n, ok = parseNumber(v.Text); !ok {
					return badNumber(v.Text)
				}
			}
			b.values = append(b.values, number{f, n, len(values) == 1 && !bytes.ContainsAny(v.Text, "xX")})
		}
		b.distinct(before)
	case query.GeoKind:
		before := len(b.values)
		for _, v := range values {
			score, failure := parsePlace(v.Text)
			if failure != "" {
				return failure
			}
			b.values = append(b.values, number{field: f, value: score})
		}
		b.distinct(before)
	case query.GeoShapeKind:
		s, failure := parseShape(f, values[0].Text)
		if failure != "" { // as in the reference, the other values are indexed
			b.badShape = &Failure{f.Name, failure}
			return ""
		}
		b.shapes = append(b.shapes, shape{f.Name, s})
	case query.VectorKind:
		blobs := make([][]byte, len(values))
		for i, v := range values {
			if len(v.Vector) != f.Vector.Bytes() {
				return badVectorSize(len(v.Vector), f.Vector.Bytes())
			}
			blobs[i] = v.Vector
		}
		b.vectors = append(b.vectors, vector{field: f.Name, vectors: blobs})
	}
	return ""
}

// sortValue stores the value by which documents are sorted.
func (b *Builder) sortValue(f *schema.Field, v Value) (failure string) {
	at := &b.sort[f.SortIndex]
	switch {
	case v.IsNumber:
		*at = docs.Value{Kind: docs.Number, Number: v.Number}
	case f.Kind == query.NumericKind:
		n, ok := parseNumber(v.Text)
		if !ok {
			return badNumber(v.Text)
		}
		*at = docs.Value{Kind: docs.Number, Number: n}
	case f.Unfolded:
		*at = docs.Value{Kind: docs.Text, Text: string(v.Text)}
	case !utf8.Valid(v.Text):
		return query.BadValue.With("Invalid UTF-8")
	default:
		*at = docs.Value{Kind: docs.Text, Text: SortForm(v.Text)}
	}
	return ""
}

// failures returns the errors of values that did not fit.
func (b *Builder) failures() []*Failure {
	switch {
	case b.failed != nil:
		return []*Failure{b.failed}
	case b.badShape != nil:
		return []*Failure{b.badShape}
	}
	return nil
}

// distinct removes duplicates of a field's numbers, which begin at from in values.
func (b *Builder) distinct(from int) {
	own := b.values[from:]
	if len(own) > 1 {
		slices.SortFunc(own, func(a, b number) int { return cmp.Compare(a.value, b.value) })
		b.values = b.values[:from+len(slices.Compact(own))]
	}
}

// tag adds the tags of a value.
func (b *Builder) tag(place int, f *schema.Field, value []byte) {
	for rest, more := value, true; more; {
		var one []byte
		one, rest, more = cutByte(rest, f.Separator)
		one = trimBlanks(one)
		if len(one) == 0 && !f.IndexEmpty {
			continue
		}
		b.scratch = b.scratch[:0]
		if f.CaseSensitive {
			b.scratch = append(b.scratch, one...)
		} else {
			b.scratch = text.AppendFold(b.scratch, one)
		}
		b.tags = append(b.tags, tag{field: place, text: b.letter(b.scratch)})
	}
}

// text adds the words of a value. position is that of the last word before it, and then of its own last one.
func (b *Builder) text(f *schema.Field, value []byte, position *int, stemmer *text.Stemmer) {
	mask := postings.Bit(f.Number)
	times, timesStem := repeats(f.Weight), repeats(f.Weight*stemWeight)
	if len(value) == 0 {
		*position++ // an empty text takes a position, even if it is not indexed
		if f.IndexEmpty {
			b.length += times
			b.add(nil, "", mask, times, uint32(*position))
		}
		return
	}
	for b.tokens.Start(value, *position); b.tokens.Next(); {
		t := &b.tokens.Token
		*position = t.Position
		at := uint32(t.Position)
		b.length += times
		b.add(t.Text, "", mask, times, at)
		if !f.NoStem && len(t.Text) >= b.options.MinStem {
			if stem, ok := stemmer.Stem(t.Text); ok && stem != string(t.Text) {
				b.scratch = append(append(b.scratch[:0], text.Stem...), stem...)
				b.add(b.scratch, "", mask, timesStem, at)
			}
		}
		if f.Phonetic && len(t.Text) >= b.options.MinSound {
			b.scratch = text.AppendMetaphone(append(b.scratch[:0], text.Sound...), t.Text)
			if len(b.scratch) > len(text.Sound) {
				b.add(b.scratch, "", mask, times, at)
			}
		}
		for _, group := range b.synonyms.Groups(t.Text) {
			b.add(nil, group, mask, times, at)
		}
	}
}

// stemWeight is the weight of an occurrence of a stem, relative to one of a word.
const stemWeight = 0.2

// repeats returns how often an occurrence counts in a field with a weight.
func repeats(weight float64) uint32 { return uint32(max(1, weight)) }

// add adds an occurrence of a term, which is one of the texts.
func (b *Builder) add(bytes []byte, str string, mask postings.Mask, times, position uint32) {
	if bytes == nil {
		bytes = []byte(str)
	}
	i, known := b.byText[string(bytes)]
	if !known {
		i = len(b.words)
		if i < cap(b.words) { // reuses the memory of its offsets
			b.words = b.words[:i+1]
			w := &b.words[i]
			*w = word{offsets: w.offsets[:0]}
		} else {
			b.words = append(b.words, word{})
		}
		b.words[i].text = b.letter(bytes)
		b.byText[b.words[i].text] = i
	}
	w := &b.words[i]
	w.freq += times
	w.mask = w.mask.Or(mask)
	if n := len(w.offsets); n == 0 || w.offsets[n-1] != position {
		w.offsets = append(w.offsets, position)
	}
	b.maxFreq = max(b.maxFreq, w.freq)
}

// letter keeps the letters of a term until the next document. A full piece of memory is left to the words that refer to it.
func (b *Builder) letter(term []byte) string {
	if len(term) == 0 {
		return ""
	}
	if len(b.letters)+len(term) > cap(b.letters) {
		b.letters = make([]byte, 0, max(2*cap(b.letters), len(term), 1<<12))
	}
	n := len(b.letters)
	b.letters = append(b.letters, term...)
	return unsafe.String(&b.letters[n], len(term))
}
