package schema

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/text"
)

// Limits of a definition.
const (
	MaxFields     = 1024
	MaxTextFields = 128
	plainTexts    = 32 // largest number of TEXT fields with FT.ALTER, without MAXTEXTFIELDS
	MaxPrefixes   = 1_000_000
	MaxStopwords  = 1024
)

// Checks are checks of parts of a definition by other packages.
type Checks struct {
	Filter func(expression string) error // of an expression
	Path   func(path string) bool        // whether a JSONPath is valid
	// Unordered reports whether the values under a JSONPath may be in no order.
	Unordered func(path string) bool
}

// reader reads the arguments of a definition.
type reader struct {
	args.Reader
	checks Checks
}

func newReader(list [][]byte, checks Checks) *reader {
	words := make([]string, len(list))
	for i, word := range list {
		words[i] = string(word)
	}
	return &reader{args.New(words...), checks}
}

// next reads an argument that must be there.
func (r *reader) next() string {
	word, _ := r.Next()
	return word
}

// text reads the argument of an option.
func (r *reader) text(option string) (string, error) {
	word, problem := r.Text()
	if problem != args.None {
		return "", problem.For(option)
	}
	return word, nil
}

// choice reads the argument of an option that must be one of some words, in any case. It returns the index of the
// word, or -1, and the argument.
func (r *reader) choice(option string, words ...string) (i int, word string, err error) {
	word, err = r.text(option)
	return indexFold(words, word), word, err
}

// list reads a number, and so many arguments.
func (r *reader) list(option string) ([]string, error) {
	list, problem := r.List()
	if problem != args.None {
		return nil, problem.For(option)
	}
	return list.Rest(), nil
}

// Parse reads the arguments of FT.CREATE after the index's name.
func Parse(name string, words [][]byte, checks Checks) (*Definition, error) {
	d := &Definition{Name: name, Score: 1, Stopwords: text.English}
	r := newReader(words, checks)
	for !r.Match("SCHEMA") {
		if r.Done() {
			return nil, args.Errorf(query.BadArguments, "No schema found")
		}
		if err := d.option(r); err != nil {
			return nil, err
		}
	}
	if d.MaxTextFields && d.NoFields {
		return nil, args.Errorf(query.Invalid, "MAXTEXTFIELDS cannot be used with NOFIELDS")
	}
	if r.Done() {
		return nil, args.Errorf(query.BadArguments, "Fields arguments are missing")
	}
	fields, err := d.fields(r)
	if err != nil {
		return nil, err
	}
	n := d.With(fields)
	n.MaxTextFields = n.MaxTextFields || len(n.texts) > plainTexts && !n.NoFields
	return n, nil
}

// Lasting returns the arguments that Parse has read without SKIPINITIALSCAN, which matters only when an index is created.
func (d *Definition) Lasting(words [][]byte) [][]byte {
	lasting := slices.Clone(words)
	for _, behind := range slices.Backward(d.skips) { // the last one first
		at := len(words) - behind - 1
		lasting = slices.Delete(lasting, at, at+1)
	}
	return lasting
}

// option reads one option of an index.
func (d *Definition) option(r *reader) (err error) {
	switch {
	case r.Match("ON"):
		i, kind, err := r.choice("ON", "HASH", "JSON")
		if err != nil {
			return err
		}
		if i < 0 {
			return args.Errorf(query.AddArguments, "Invalid rule type: %s", kind)
		}
		d.Source = []Source{Hash, JSON}[i]
	case r.Match("PREFIX"):
		if d.Prefixes, err = r.list("PREFIX"); len(d.Prefixes) > MaxPrefixes {
			return args.Errorf(query.LimitExceeded, "Number of prefixes (%d) exceeds maximum allowed (%d)", len(d.Prefixes), MaxPrefixes)
		}
	case r.Match("FILTER"):
		if d.Filter, err = r.text("FILTER"); err == nil && r.checks.Filter != nil {
			err = r.checks.Filter(d.Filter)
		}
	case r.Match("LANGUAGE"):
		var name string
		if name, err = r.text("LANGUAGE"); err != nil {
			return err
		}
		var ok bool
		if d.Language, ok = text.ParseLanguage(name); !ok {
			return args.Errorf(query.AddArguments, "Invalid language")
		}
	case r.Match("LANGUAGE_FIELD"):
		d.LanguageField, err = r.text("LANGUAGE_FIELD")
	case r.Match("SCORE"):
		var score string
		if score, err = r.text("SCORE"); err != nil {
			return err
		}
		if d.Score, err = strconv.ParseFloat(score, 64); err != nil || !(d.Score >= 0 && d.Score <= 1) {
			return args.Errorf(query.AddArguments, "Invalid score")
		}
	case r.Match("SCORE_FIELD"):
		d.ScoreField, err = r.text("SCORE_FIELD")
	case r.Match("PAYLOAD_FIELD"):
		d.PayloadField, err = r.text("PAYLOAD_FIELD")
	case r.Match("INDEXALL"):
		i, _, err := r.choice("INDEXALL", "ENABLE", "DISABLE")
		if err != nil {
			return err
		}
		if i < 0 {
			return args.Errorf(query.AddArguments, "Invalid argument for `INDEXALL`, use ENABLE/DISABLE")
		}
		d.IndexAll = i == 0
	case r.Match("TEMPORARY"):
		var problem args.Problem
		if d.Temporary, problem = r.Int(0, math.MaxInt64); problem != args.None {
			return problem.For("TEMPORARY")
		}
	case r.Match("STOPWORDS"):
		var words []string
		if words, err = r.list("STOPWORDS"); err != nil {
			return err
		}
		d.Stopwords, d.CustomStopwords = text.NewStopwords(words[:min(len(words), MaxStopwords)]...), true
	case r.Match("MAXTEXTFIELDS"):
		d.MaxTextFields = true
	case r.Match("NOOFFSETS"):
		d.NoOffsets, d.NoHighlight = true, true
	case r.Match("NOHL"):
		d.NoHighlight = true
	case r.Match("NOFIELDS"):
		d.NoFields = true
	case r.Match("NOFREQS"):
		d.NoFreqs = true
	case r.Match("SKIPINITIALSCAN"):
		d.SkipScan = true
		d.skips = append(d.skips, r.Len())
	case r.Match("NOSCOREIDX"), r.Match("ASYNC"):
	default:
		return args.Errorf(query.UnknownArgument, "Unknown argument `%s`", r.next())
	}
	return err
}

// ParseFields reads the arguments of FT.ALTER after ADD and returns the definition with the new fields.
func (d *Definition) ParseFields(words [][]byte, checks Checks) (*Definition, error) {
	if len(words) == 0 {
		return nil, args.Errorf(query.NoCode, "No fields provided")
	}
	fields, err := d.fields(newReader(words, checks))
	if err != nil {
		return nil, err
	}
	n := d.With(fields)
	if len(n.texts) > plainTexts && len(d.texts) <= plainTexts && !d.MaxTextFields {
		return nil, args.Errorf(query.LimitExceeded, "Cannot add more fields. Declare index with wide fields to allow adding unlimited fields")
	}
	return n, nil
}

// fields reads fields up to the end.
func (d *Definition) fields(r *reader) ([]*Field, error) {
	var list []*Field
	texts := len(d.texts)
	for !r.Done() {
		if len(d.Fields)+len(list) == MaxFields {
			return nil, args.Errorf(query.LimitExceeded, "Schema is limited to %d fields", MaxFields)
		}
		f, err := d.field(r)
		if err != nil {
			return nil, err
		}
		if _, ok := d.Lookup(f.Name); ok || slices.ContainsFunc(list, func(o *Field) bool { return o.Name == f.Name }) {
			return nil, args.Errorf(query.Invalid, "Duplicate field in schema - %s", f.Name)
		}
		if f.Kind == query.TextKind {
			if texts++; texts > MaxTextFields {
				return nil, args.Errorf(query.LimitExceeded, "Schema is limited to %d TEXT fields", MaxTextFields)
			}
		}
		list = append(list, f)
	}
	return list, nil
}

// field reads one field.
func (d *Definition) field(r *reader) (*Field, error) {
	f := &Field{Path: r.next(), Weight: 1}
	f.Name = f.Path
	if r.Match("AS") {
		if r.Done() {
			return nil, args.Errorf(query.BadArguments, "AS requires an argument")
		}
		f.Name = r.next()
	}
	switch {
	case f.Name == "":
		return nil, args.Errorf(query.Invalid, "Field name cannot be empty")
	case strings.Contains(f.Name, "\x00"):
		return nil, args.Errorf(query.Invalid, "Field name cannot contain null bytes")
	case strings.Contains(f.Path, "\x00"):
		return nil, args.Errorf(query.Invalid, "Field path cannot contain null bytes")
	}
	if d.Source == JSON {
		if r.checks.Path != nil && !r.checks.Path(f.Path) {
			return nil, args.Errorf(query.BadPath, "Invalid JSONPath '%s' in attribute '%s' in index '%s'", f.Path, f.Name, d.Name)
		}
		if r.checks.Unordered != nil {
			f.Unordered = !d.NoOffsets && r.checks.Unordered(f.Path)
		}
	}
	if r.Done() {
		return nil, args.Errorf(query.BadArguments, "Field `%s` does not have a type", f.Name)
	}
	var err error
	switch {
	case r.Match("TEXT"):
		f.Kind = query.TextKind
		err = f.textOptions(r)
	case r.Match("TAG"):
		f.Kind = query.TagKind
		err = f.tagOptions(r, d.Source)
	case r.Match("NUMERIC"):
		f.Kind = query.NumericKind
		f.IndexMissing = r.Match("INDEXMISSING")
	case r.Match("GEO"):
		f.Kind = query.GeoKind
		f.IndexMissing = r.Match("INDEXMISSING")
	case r.Match("GEOSHAPE"):
		f.Kind = query.GeoShapeKind
		if f.Flat = r.Match("FLAT"); !f.Flat {
			r.Match("SPHERICAL")
		}
		f.IndexMissing = r.Match("INDEXMISSING")
	case r.Match("VECTOR"):
		f.Kind = query.VectorKind
		if f.Vector, err = parseVector(r); err == nil {
			f.IndexMissing = r.Match("INDEXMISSING")
			return f, nil
		}
	default:
		return nil, args.Errorf(query.BadArguments, "Invalid field type for field `%s`", f.Name)
	}
	if err != nil {
		return nil, err
	}
	for {
		switch {
		case r.Match("SORTABLE"):
			f.Sortable = true
			f.Unfolded = r.Match("UNF") || d.Source == JSON || f.CaseSensitive || f.Kind == query.NumericKind
			continue
		case r.Match("NOINDEX"):
			f.NoIndex = true
			continue
		}
		break
	}
	if f.NoIndex && f.IndexMissing {
		return nil, args.Errorf(query.BadArguments, "'Field cannot be defined with both `NOINDEX` and `INDEXMISSING` `%s` '", f.Name)
	}
	return f, nil
}

func (f *Field) textOptions(r *reader) error {
	for {
		switch {
		case r.Match("NOSTEM"):
			f.NoStem = true
		case r.Match("WEIGHT"):
			if r.Done() {
				return args.NotConvertible.For("weight")
			}
			w, err := strconv.ParseFloat(r.next(), 64)
			if err != nil || math.IsNaN(w) || w < 0 {
				return args.NotConvertible.For("weight")
			}
			f.Weight = w
		case r.Match("PHONETIC"):
			if r.Done() {
				return args.Errorf(query.BadArguments, "PHONETIC requires an argument")
			}
			f.PhoneticCode = r.next()
			if !slices.Contains([]string{"dm:en", "dm:fr", "dm:pt", "dm:es"}, f.PhoneticCode) {
				return args.Errorf(query.Invalid, "Matcher Format: <2 chars algorithm>:<2 chars language>. Support algorithms: double metaphone (dm). "+
					"Supported languages: English (en), French (fr), Portuguese (pt) and Spanish (es)")
			}
			f.Phonetic = true
		case r.Match("WITHSUFFIXTRIE"):
			f.Suffixes = true
		case r.Match("INDEXEMPTY"):
			f.IndexEmpty = true
		case r.Match("INDEXMISSING"):
			f.IndexMissing = true
		default:
			return nil
		}
	}
}

func (f *Field) tagOptions(r *reader, s Source) error {
	if s == Hash {
		f.Separator = ','
	}
	for {
		switch {
		case r.Match("SEPARATOR"):
			if r.Done() {
				return args.Errorf(query.BadArguments, "SEPARATOR requires an argument")
			}
			separator := r.next()
			if len(separator) != 1 {
				return args.Errorf(query.BadArguments, "Tag separator must be a single character. Got `%%s`%s", separator) // the reference also prints the verb
			}
			f.Separator = separator[0]
		case r.Match("CASESENSITIVE"):
			f.CaseSensitive = true
		case r.Match("WITHSUFFIXTRIE"):
			f.Suffixes = true
		case r.Match("INDEXEMPTY"):
			f.IndexEmpty = true
		case r.Match("INDEXMISSING"):
			f.IndexMissing = true
		default:
			return nil
		}
	}
}
