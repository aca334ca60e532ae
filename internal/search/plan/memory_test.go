package plan

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine/geo"
	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/engine/search/numbers"
	"github.com/atomredis/atomredis/engine/search/postings"
	"github.com/atomredis/atomredis/engine/search/terms"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/text"
)

// attribute is a field of the index in these tests.
type attribute struct {
	query.Field
	path      string
	weight    float64
	separator string
	sensitive bool
	place     int // in Doc.Sort; -1 if it is not SORTABLE
	noIndex   bool
	asIs      bool // UNF: its sort values are not folded
}

// memory is a small index over hashes.
type memory struct {
	attributes   []*attribute
	prefixes     []string
	language     text.Language
	stopwords    *text.Stopwords
	synonyms     text.Synonyms
	score        float64
	scoreField   string
	payloadField string

	hashes  map[string]map[string]string
	docs    *docs.Table
	text    *terms.Dict[*postings.List]
	tags    map[string]*terms.Dict[*postings.List]
	numbers map[string]*numbers.Tree
	missing map[string]*postings.List
	vectors map[string]*flat
	undo    map[string][]func()
	stemmer *text.Stemmer
	sorts   int
}

func (m *memory) Field(name string) (*query.Field, bool) {
	for _, a := range m.attributes {
		if a.Name == name {
			return &a.Field, true
		}
	}
	return nil, false
}

func (m *memory) TextFields() (list []*query.Field) {
	for _, a := range m.attributes {
		if a.Kind == query.TextKind {
			list = append(list, &a.Field)
		}
	}
	return list
}

func (m *memory) Docs() docs.View                         { return m.docs.View() }
func (m *memory) Text() *terms.Dict[*postings.List]       { return m.text }
func (m *memory) Numbers(f *query.Field) *numbers.Tree    { return m.numbers[f.Name] }
func (m *memory) Missing(f *query.Field) *postings.List   { return m.missing[f.Name] }
func (m *memory) Shapes(f *query.Field) Shapes            { return nil }
func (m *memory) Vectors(f *query.Field) Vectors          { return m.vectors[f.Name] }
func (m *memory) attribute(f *query.Field) (a *attribute) { return m.named(f.Name) }
func (m *memory) Single(f *query.Field) (place int, _ bool) {
	a := m.attribute(f)
	return a.place, a.place >= 0
}

func (m *memory) Tags(f *query.Field) (*terms.Dict[*postings.List], bool) {
	return m.tags[f.Name], m.attribute(f).sensitive
}

func (m *memory) named(name string) *attribute {
	for _, a := range m.attributes {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// newMemory makes the index of an FT.CREATE; words follow its name.
func newMemory(words ...string) *memory {
	m := &memory{
		score: 1, stopwords: text.English, hashes: map[string]map[string]string{}, docs: docs.New(),
		text: terms.New[*postings.List](false), tags: map[string]*terms.Dict[*postings.List]{}, numbers: map[string]*numbers.Tree{},
		missing: map[string]*postings.List{}, vectors: map[string]*flat{}, undo: map[string][]func(){},
	}
	for i := 0; i < len(words); i++ {
		next := func() string { i++; return words[i] }
		switch strings.ToUpper(words[i]) {
		case "PREFIX", "STOPWORDS":
			what := words[i]
			n, _ := strconv.Atoi(next())
			list := words[i+1 : i+1+n]
			i += n
			if what == "PREFIX" {
				m.prefixes = list
			} else {
				m.stopwords = text.NewStopwords(list...)
			}
		case "LANGUAGE":
			m.language, _ = text.ParseLanguage(next())
		case "SCORE":
			m.score, _ = strconv.ParseFloat(next(), 64)
		case "SCORE_FIELD":
			m.scoreField = next()
		case "PAYLOAD_FIELD":
			m.payloadField = next()
		case "SCHEMA":
			m.schema(words[i+1:])
			i = len(words)
		}
	}
	m.stemmer = text.NewStemmer(m.language)
	return m
}

// schema adds the fields after SCHEMA.
func (m *memory) schema(words []string) {
	kinds := map[string]query.Kind{
		"TEXT": query.TextKind, "TAG": query.TagKind, "NUMERIC": query.NumericKind, "GEO": query.GeoKind, "VECTOR": query.VectorKind,
	}
	for len(words) > 1 {
		a := &attribute{path: words[0], weight: 1, separator: ",", place: -1}
		a.Name = words[0]
		if words = words[1:]; words[0] == "AS" {
			a.Name = words[1]
			words = words[2:]
		}
		a.Kind = kinds[words[0]]
		words = words[1:]
		switch a.Kind {
		case query.TextKind:
			a.Number = len(m.TextFields())
		case query.TagKind:
			m.tags[a.Name] = terms.New[*postings.List](false)
		case query.VectorKind:
			words = m.vector(a.Name, words)
		default:
			m.numbers[a.Name] = numbers.New()
		}
		m.attributes = append(m.attributes, a)
	options:
		for len(words) > 0 {
			n := 1
			switch words[0] {
			case "WEIGHT":
				a.weight, _ = strconv.ParseFloat(words[1], 64)
				n = 2
			case "SEPARATOR":
				a.separator = words[1]
				n = 2
			case "PHONETIC":
				a.Phonetic = true
				n = 2
			case "NOSTEM":
				a.NoStem = true
			case "INDEXEMPTY":
				a.IndexEmpty = true
			case "INDEXMISSING":
				a.IndexMissing = true
				m.missing[a.Name] = postings.New(0)
			case "WITHSUFFIXTRIE":
				a.Suffixes = true
			case "CASESENSITIVE":
				a.sensitive = true
			case "SORTABLE":
				a.place = m.sorts
				m.sorts++
			case "NOINDEX":
				a.noIndex = true
			case "UNF":
				a.asIs = true
			default:
				break options
			}
			words = words[n:]
		}
	}
}

// sortable returns the sort value of a text.
func (a *attribute) sortable(value string) string {
	if a.asIs || a.sensitive {
		return value
	}
	return strings.ReplaceAll(text.Fold(value), "ß", "ss")
}

// covers reports whether the index has a key.
func (m *memory) covers(key string) bool {
	return len(m.prefixes) == 0 || slices.ContainsFunc(m.prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// hset sets fields of a hash.
func (m *memory) hset(key string, pairs ...string) {
	if m.hashes[key] == nil {
		m.hashes[key] = map[string]string{}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		m.hashes[key][pairs[i]] = pairs[i+1]
	}
	m.changed(key)
}

// changed indexes a key again.
func (m *memory) changed(key string) {
	if _, d := m.docs.Remove(key); d != nil {
		for _, undo := range m.undo[key] {
			undo()
		}
		delete(m.undo, key)
	}
	if hash := m.hashes[key]; len(hash) > 0 && m.covers(key) {
		if err := m.index(key, hash); err != nil {
			for _, undo := range m.undo[key] {
				undo()
			}
			m.docs.Remove(key)
			delete(m.undo, key)
		}
	}
}

// scan indexes all keys again.
func (m *memory) scan() {
	for _, key := range slices.Sorted(maps.Keys(m.hashes)) {
		m.changed(key)
	}
}

// index adds a document.
func (m *memory) index(key string, hash map[string]string) error {
	d := docs.Fields{Key: key, Score: m.score, Sort: make([]docs.Value, m.sorts)}
	if f, err := strconv.ParseFloat(hash[m.scoreField], 64); err == nil {
		d.Score = f
	}
	if p := hash[m.payloadField]; p != "" {
		d.Payload = []byte(p)
	}
	found := map[string]*postings.Entry{}
	length, position := 0, 0
	for _, a := range m.attributes {
		if value, ok := hash[a.path]; ok && a.Kind == query.TextKind && !a.noIndex {
			position = m.words(a, value, position, found, &length)
		}
	}
	d.Len = uint32(length)
	for _, e := range found {
		d.MaxFreq = max(d.MaxFreq, e.Freq)
	}
	id := m.docs.Last() + 1
	defer func() { m.docs.Add(d) }()
	add := func(in *terms.Dict[*postings.List], name string, e postings.Entry) {
		list, ok := in.Get(name)
		if !ok {
			list = postings.New(postings.Freqs | postings.Masks | postings.Offsets)
			in.Set(name, list)
		}
		e.Doc = id
		list.Add(e)
		m.undo[key] = append(m.undo[key], func() { list.Remove(m.docs.Alive) })
	}
	for name, e := range found {
		add(m.text, name, *e)
	}
	for _, a := range m.attributes {
		value, ok := hash[a.path]
		if !ok {
			if list := m.missing[a.Name]; list != nil {
				list.Add(postings.Entry{Doc: id, Freq: 1})
				m.undo[key] = append(m.undo[key], func() { list.Remove(m.docs.Alive) })
			}
			continue
		}
		number := func(v float64) {
			tree, item := m.numbers[a.Name], numbers.Item{Value: v, Doc: id}
			tree.Add(item)
			m.undo[key] = append(m.undo[key], func() { tree.Remove(item) })
		}
		sort := docs.Value{Kind: docs.Text, Text: a.sortable(value)}
		switch a.Kind {
		case query.TagKind:
			seen := map[string]bool{}
			for tag := range strings.SplitSeq(value, a.separator) {
				tag = strings.TrimSpace(tag)
				if !a.sensitive {
					tag = text.Fold(tag)
				}
				if !seen[tag] && !a.noIndex && (tag != "" || a.IndexEmpty) {
					seen[tag] = true
					add(m.tags[a.Name], tag, postings.Entry{Freq: 1})
				}
			}
		case query.NumericKind:
			v, err := number0(value)
			if err != nil {
				return err
			}
			if !a.noIndex {
				number(v)
			}
			sort = docs.Value{Kind: docs.Number, Number: v}
		case query.GeoKind:
			p, err := place(value)
			if err != nil {
				return err
			}
			number(float64(p.Score()))
		case query.VectorKind:
			v, err := m.vectors[a.Name].read(value)
			if err != nil {
				return err
			}
			m.vectors[a.Name].of[id] = v
			m.undo[key] = append(m.undo[key], func() { delete(m.vectors[a.Name].of, id) })
		}
		if a.place >= 0 {
			d.Sort[a.place] = sort
		}
	}
	return nil
}

// words finds the terms of a text.
func (m *memory) words(a *attribute, value string, position int, found map[string]*postings.Entry, length *int) int {
	if value == "" && a.IndexEmpty {
		found[""] = &postings.Entry{Freq: 1, Mask: postings.Bit(a.Number)}
	}
	add := func(name string, weight float64, at int) {
		e := found[name]
		if e == nil {
			e = &postings.Entry{}
			found[name] = e
		}
		e.Freq += max(1, uint32(weight))
		e.Mask = e.Mask.Or(postings.Bit(a.Number))
		e.Offsets = append(e.Offsets, uint32(at))
	}
	t := text.Tokenizer{Stopwords: m.stopwords, Language: m.language}
	for t.Start([]byte(value), position); t.Next(); {
		word := string(t.Token.Text)
		position = t.Token.Position
		*length += int(max(1, uint32(a.weight)))
		add(word, a.weight, position)
		if !a.NoStem && len(word) >= text.MinStem {
			if stem, ok := m.stemmer.Stem([]byte(word)); ok && stem != word {
				add(text.Stem+stem, a.weight*0.2, position)
			}
		}
		if a.Phonetic && len(word) >= text.MinSound {
			if code := text.AppendMetaphone([]byte(text.Sound), []byte(word)); len(code) > len(text.Sound) {
				add(string(code), a.weight, position)
			}
		}
		for _, group := range m.synonyms.Groups([]byte(word)) {
			add(group, a.weight, position)
		}
	}
	return position
}

// number0 reads a number as strtod does.
func number0(s string) (float64, error) {
	if strings.HasPrefix(s, "0x") {
		s += "p0"
	}
	v, err := strconv.ParseFloat(s, 64)
	if err == nil && v != v {
		err = errors.New("not a number")
	}
	return v, err
}

// place reads a position.
func place(s string) (p geo.Position, err error) {
	lon, lat, ok := strings.Cut(s, ",")
	if !ok {
		lon, lat, ok = strings.Cut(s, " ")
	}
	if lat = strings.TrimSpace(lat); !ok {
		return p, errors.New("one number")
	}
	if p.Lon, err = number0(lon); err == nil {
		p.Lat, err = number0(lat)
	}
	if err == nil && !p.Valid() {
		err = errors.New("not on the map")
	}
	return p, err
}
