package schema

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/text"
)

// Limits of a definition.
const (
	MaxFields     = 1024
	MaxTextFields = 128
	plainTexts    = 32 // TEXT fields that FT.ALTER may add up to, without MAXTEXTFIELDS
	MaxPrefixes   = 1_000_000
	MaxStopwords  = 1024
)

// Error is what is wrong with the arguments of FT.CREATE or FT.ALTER, as clients see it.
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

func errorf(format string, args ...any) Error { return Error(fmt.Sprintf(format, args...)) }

// What is wrong with one argument, behind the name of its option.
const (
	noArgument  = "Expected an argument, but none provided"
	badType     = "Could not convert argument to expected type"
	outOfBounds = "Value is outside acceptable bounds"
	unknownWord = "Unknown argument"
)

// Checks are what other packages know of the parts of a definition.
type Checks struct {
	Filter func(expression string) error // of an expression
	Path   func(path string) bool        // whether a JSONPath can be read
	// Unordered reports whether the values under a JSONPath may be in no order.
	Unordered func(path string) bool
}

// reader goes through arguments.
type reader struct {
	rest   [][]byte
	checks Checks
}

func (r *reader) more() bool { return len(r.rest) > 0 }

func (r *reader) next() string {
	s := string(r.rest[0])
	r.rest = r.rest[1:]
	return s
}

// word takes the next argument if it is a word, in whatever case.
func (r *reader) word(word string) bool {
	if !r.more() || !strings.EqualFold(string(r.rest[0]), word) {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

// text takes the argument of an option.
func (r *reader) text(option string) (string, error) {
	if !r.more() {
		return "", errorf("Bad arguments for %s: %s", option, noArgument)
	}
	return r.next(), nil
}

// list takes a number, and so many arguments.
func (r *reader) list(option string) ([]string, error) {
	if !r.more() {
		return nil, errorf("Bad arguments for %s: %s", option, noArgument)
	}
	n, err := strconv.ParseInt(r.next(), 10, 64)
	switch {
	case err != nil:
		return nil, errorf("Bad arguments for %s: %s", option, badType)
	case n < 0:
		return nil, errorf("Bad arguments for %s: %s", option, outOfBounds)
	case n > int64(len(r.rest)):
		return nil, errorf("Bad arguments for %s: %s", option, noArgument)
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.next()
	}
	return list, nil
}

// Parse reads the arguments of FT.CREATE behind the index's name.
func Parse(name string, args [][]byte, checks Checks) (*Definition, error) {
	d := &Definition{Name: name, Score: 1, Stopwords: text.English}
	r := &reader{args, checks}
	for !r.word("SCHEMA") {
		if !r.more() {
			return nil, Error("No schema found")
		}
		if err := d.option(r); err != nil {
			return nil, err
		}
	}
	if !r.more() {
		return nil, Error("Fields arguments are missing")
	}
	fields, err := d.fields(r)
	if err != nil {
		return nil, err
	}
	return d.With(fields), nil
}

// option reads one option of an index.
func (d *Definition) option(r *reader) (err error) {
	switch {
	case r.word("ON"):
		var kind string
		if kind, err = r.text("ON"); err != nil {
			return err
		}
		switch strings.ToUpper(kind) {
		case "HASH":
			d.Source = Hash
		case "JSON":
			d.Source = JSON
		default:
			return errorf("Invalid rule type: %s", kind)
		}
	case r.word("PREFIX"):
		if d.Prefixes, err = r.list("PREFIX"); len(d.Prefixes) > MaxPrefixes {
			return errorf("Number of prefixes (%d) exceeds maximum allowed (%d)", len(d.Prefixes), MaxPrefixes)
		}
	case r.word("FILTER"):
		if d.Filter, err = r.text("FILTER"); err == nil && r.checks.Filter != nil {
			err = r.checks.Filter(d.Filter)
		}
	case r.word("LANGUAGE"):
		var name string
		if name, err = r.text("LANGUAGE"); err != nil {
			return err
		}
		var ok bool
		if d.Language, ok = text.ParseLanguage(name); !ok {
			return Error("Invalid language")
		}
	case r.word("LANGUAGE_FIELD"):
		d.LanguageField, err = r.text("LANGUAGE_FIELD")
	case r.word("SCORE"):
		var score string
		if score, err = r.text("SCORE"); err != nil {
			return err
		}
		if d.Score, err = strconv.ParseFloat(score, 64); err != nil || !(d.Score >= 0 && d.Score <= 1) {
			return Error("Invalid score")
		}
	case r.word("SCORE_FIELD"):
		d.ScoreField, err = r.text("SCORE_FIELD")
	case r.word("PAYLOAD_FIELD"):
		d.PayloadField, err = r.text("PAYLOAD_FIELD")
	case r.word("INDEXALL"):
		var how string
		if how, err = r.text("INDEXALL"); err != nil {
			return err
		}
		switch strings.ToUpper(how) {
		case "ENABLE":
			d.IndexAll = true
		case "DISABLE":
			d.IndexAll = false
		default:
			return Error("Invalid argument for `INDEXALL`, use ENABLE/DISABLE")
		}
	case r.word("TEMPORARY"):
		var seconds string
		if seconds, err = r.text("TEMPORARY"); err != nil {
			return err
		}
		if d.Temporary, err = strconv.ParseInt(seconds, 10, 64); err != nil {
			return errorf("Bad arguments for TEMPORARY: %s", badType)
		}
		if d.Temporary < 0 {
			return errorf("Bad arguments for TEMPORARY: %s", outOfBounds)
		}
	case r.word("STOPWORDS"):
		var words []string
		if words, err = r.list("STOPWORDS"); err != nil {
			return err
		}
		d.Stopwords, d.CustomStopwords = text.NewStopwords(words[:min(len(words), MaxStopwords)]...), true
	case r.word("MAXTEXTFIELDS"):
		d.MaxTextFields = true
	case r.word("NOOFFSETS"):
		d.NoOffsets, d.NoHighlight = true, true
	case r.word("NOHL"):
		d.NoHighlight = true
	case r.word("NOFIELDS"):
		d.NoFields = true
	case r.word("NOFREQS"):
		d.NoFreqs = true
	case r.word("SKIPINITIALSCAN"):
		d.SkipScan = true
	case r.word("NOSCOREIDX"), r.word("ASYNC"):
	default:
		return errorf("Unknown argument `%s`", r.next())
	}
	return err
}

// ParseFields reads the arguments of FT.ALTER behind ADD and returns the definition with them.
func (d *Definition) ParseFields(args [][]byte, checks Checks) (*Definition, error) {
	if len(args) == 0 {
		return nil, Error("No fields provided")
	}
	fields, err := d.fields(&reader{args, checks})
	if err != nil {
		return nil, err
	}
	n := d.With(fields)
	if len(n.texts) > plainTexts && len(d.texts) <= plainTexts && !d.MaxTextFields {
		return nil, Error("Cannot add more fields. Declare index with wide fields to allow adding unlimited fields")
	}
	return n, nil
}

// fields reads fields up to the end.
func (d *Definition) fields(r *reader) ([]*Field, error) {
	var list []*Field
	texts := len(d.texts)
	for r.more() {
		if len(d.Fields)+len(list) == MaxFields {
			return nil, errorf("Schema is limited to %d fields", MaxFields)
		}
		f, err := d.field(r)
		if err != nil {
			return nil, err
		}
		if _, ok := d.Lookup(f.Name); ok || slices.ContainsFunc(list, func(o *Field) bool { return o.Name == f.Name }) {
			return nil, errorf("Duplicate field in schema - %s", f.Name)
		}
		if f.Kind == query.TextKind {
			if texts++; texts > MaxTextFields {
				return nil, errorf("Schema is limited to %d TEXT fields", MaxTextFields)
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
	if r.word("AS") {
		if !r.more() {
			return nil, Error("AS requires an argument")
		}
		f.Name = r.next()
	}
	if d.Source == JSON {
		if r.checks.Path != nil && !r.checks.Path(f.Path) {
			return nil, errorf("Invalid JSONPath '%s' in attribute '%s' in index '%s'", f.Path, f.Name, d.Name)
		}
		if r.checks.Unordered != nil {
			f.Unordered = r.checks.Unordered(f.Path)
		}
	}
	if !r.more() {
		return nil, errorf("Field `%s` does not have a type", f.Name)
	}
	var err error
	switch {
	case r.word("TEXT"):
		f.Kind = query.TextKind
		err = f.textOptions(r)
	case r.word("TAG"):
		f.Kind = query.TagKind
		err = f.tagOptions(r, d.Source)
	case r.word("NUMERIC"):
		f.Kind = query.NumericKind
		f.IndexMissing = r.word("INDEXMISSING")
	case r.word("GEO"):
		f.Kind = query.GeoKind
		f.IndexMissing = r.word("INDEXMISSING")
	case r.word("GEOSHAPE"):
		f.Kind = query.GeoShapeKind
		if f.Flat = r.word("FLAT"); !f.Flat {
			r.word("SPHERICAL")
		}
		f.IndexMissing = r.word("INDEXMISSING")
	case r.word("VECTOR"):
		f.Kind = query.VectorKind
		if f.Vector, err = parseVector(r); err == nil {
			f.IndexMissing = r.word("INDEXMISSING")
			return f, nil
		}
	default:
		return nil, errorf("Invalid field type for field `%s`", f.Name)
	}
	if err != nil {
		return nil, err
	}
	for {
		switch {
		case r.word("SORTABLE"):
			f.Sortable = true
			f.Unfolded = f.takesUnfolded() && r.word("UNF") || d.Source == JSON || f.CaseSensitive || f.Kind == query.NumericKind
			continue
		case r.word("NOINDEX"):
			f.NoIndex = true
			continue
		}
		break
	}
	if f.NoIndex && f.IndexMissing {
		return nil, errorf("'Field cannot be defined with both `NOINDEX` and `INDEXMISSING` `%s` '", f.Name)
	}
	return f, nil
}

// takesUnfolded reports whether the sort values of a field may have a form of their own.
func (f *Field) takesUnfolded() bool { return f.Kind != query.NumericKind }

func (f *Field) textOptions(r *reader) error {
	for {
		switch {
		case r.word("NOSTEM"):
			f.NoStem = true
		case r.word("WEIGHT"):
			if !r.more() {
				return errorf("Bad arguments for weight: %s", badType)
			}
			w, err := strconv.ParseFloat(r.next(), 64)
			if err != nil || math.IsNaN(w) || w < 0 {
				return errorf("Bad arguments for weight: %s", badType)
			}
			f.Weight = w
		case r.word("PHONETIC"):
			if !r.more() {
				return Error("PHONETIC requires an argument")
			}
			f.PhoneticCode = r.next()
			if !slices.Contains([]string{"dm:en", "dm:fr", "dm:pt", "dm:es"}, f.PhoneticCode) {
				return Error("Matcher Format: <2 chars algorithm>:<2 chars language>. Support algorithms: double metaphone (dm). " +
					"Supported languages: English (en), French (fr), Portuguese (pt) and Spanish (es)")
			}
			f.Phonetic = true
		case r.word("WITHSUFFIXTRIE"):
			f.Suffixes = true
		case r.word("INDEXEMPTY"):
			f.IndexEmpty = true
		case r.word("INDEXMISSING"):
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
		case r.word("SEPARATOR"):
			if !r.more() {
				return Error("SEPARATOR requires an argument")
			}
			separator := r.next()
			if len(separator) != 1 {
				return errorf("Tag separator must be a single character. Got `%%s`%s", separator) // the reference has the verb too
			}
			f.Separator = separator[0]
		case r.word("CASESENSITIVE"):
			f.CaseSensitive = true
		case r.word("WITHSUFFIXTRIE"):
			f.Suffixes = true
		case r.word("INDEXEMPTY"):
			f.IndexEmpty = true
		case r.word("INDEXMISSING"):
			f.IndexMissing = true
		default:
			return nil
		}
	}
}
