package query

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/search/text"
	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// fields is a Schema.
type fields struct {
	byName    map[string]*Field
	text      []*Field
	language  text.Language
	stopwords *text.Stopwords
	synonyms  text.Synonyms
}

func (f *fields) Field(name string) (*Field, bool) {
	field, ok := f.byName[name]
	return field, ok
}

func (f *fields) TextFields() []*Field { return f.text }

// add adds the fields that follow SCHEMA in FT.CREATE.
func (f *fields) add(words []string) {
	kinds := map[string]Kind{
		"TEXT": TextKind, "TAG": TagKind, "NUMERIC": NumericKind, "GEO": GeoKind, "GEOSHAPE": GeoShapeKind, "VECTOR": VectorKind,
	}
	for len(words) > 1 {
		field := &Field{Name: words[0]}
		if words = words[1:]; strings.EqualFold(words[0], "AS") {
			field.Name = words[1]
			words = words[2:]
		}
		field.Kind = kinds[strings.ToUpper(words[0])]
		words = words[1:]
		if field.Kind == VectorKind {
			n, _ := strconv.Atoi(words[1])
			words = words[min(len(words), 2+n):]
		}
		if field.Kind == TextKind {
			field.Number = len(f.text)
			f.text = append(f.text, field)
		}
		f.byName[field.Name] = field
	options:
		for len(words) > 0 {
			n := 1
			switch strings.ToUpper(words[0]) {
			case "WEIGHT", "SEPARATOR":
				n = 2
			case "PHONETIC":
				field.Phonetic = true
				n = 2
			case "NOSTEM":
				field.NoStem = true
			case "INDEXEMPTY":
				field.IndexEmpty = true
			case "INDEXMISSING":
				field.IndexMissing = true
			case "SORTABLE", "NOINDEX", "UNF", "CASESENSITIVE", "WITHSUFFIXTRIE", "FLAT", "SPHERICAL":
			default:
				break options
			}
			words = words[n:]
		}
	}
}

// create makes the Schema of an FT.CREATE.
func create(words []string) *fields {
	f := &fields{byName: map[string]*Field{}, stopwords: text.English}
	for i, w := range words {
		switch strings.ToUpper(w) {
		case "LANGUAGE":
			f.language, _ = text.ParseLanguage(words[i+1])
		case "STOPWORDS":
			n, _ := strconv.Atoi(words[i+1])
			f.stopwords = text.NewStopwords(words[i+2 : i+2+n]...)
		case "SCHEMA":
			f.add(words[i+1:])
			return f
		}
	}
	return f
}

// schemaOf makes a Schema for a test.
func schemaOf(text string) *fields { return create(strings.Fields("SCHEMA " + text)) }

// options reads the options after a query.
func (f *fields) options(words []string) (o Options, e Expansion, verbatim bool) {
	o = Options{Dialect: 1, Schema: f, Stopwords: f.stopwords, Slop: -1}
	e = Expansion{Schema: f, Stemmer: text.NewStemmer(f.language), Synonyms: &f.synonyms}
	for i, w := range words {
		next := func() string { return words[min(i+1, len(words)-1)] }
		switch w {
		case "DIALECT":
			o.Dialect, _ = strconv.Atoi(next())
		case "LANGUAGE":
			l, _ := text.ParseLanguage(next())
			e.Stemmer = text.NewStemmer(l)
		case "VERBATIM":
			verbatim = true
		case "NOSTOPWORDS":
			o.Stopwords = nil
		case "EXPANDER":
			e.Expander = Expander(next())
		case "INORDER":
			o.InOrder = true
		case "SLOP":
			o.Slop, _ = strconv.Atoi(next())
		case "PARAMS":
			n, _ := strconv.Atoi(next())
			o.Params = map[string]string{}
			for j := i + 2; j+1 < min(i+2+n, len(words)); j += 2 {
				o.Params[words[j]] = words[j+1]
			}
		}
	}
	return o, e, verbatim
}

// explain answers a query.
func (f *fields) explain(query string, words ...string) (string, error) {
	o, e, verbatim := f.options(words)
	n, err := Parse(query, o)
	if err == nil && !verbatim {
		n, err = e.Expand(n)
	}
	if err != nil {
		return "", err
	}
	return Explain(n), nil
}

// ours are the errors of this package. Others come from options, from the index, or while a query runs.
var ours = regexp.MustCompile(`^SEARCH_[A-Z_]+ (Syntax error|Unknown field|Expected a [A-Z]+ field|Parameter not found|` +
	`Invalid (value \(|attribute|numeric (range|value \()|GeoFilter)|` +
	"Bad (lower|upper) range|Use `INDEXEMPTY`|field does not support phonetics|'ismissing'|Distance field)")

// expressions are the errors of APPLY and FILTER, which quote the word.
var expressions = regexp.MustCompile(`^SEARCH_EXPR Syntax error at offset \d+ near '.*'$`)

// Every query of the transcripts is accepted or refused, and explained, as there.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("../../../conformance/testdata/search/*.txt")
	require.NoError(t, err)
	explained, refused, read, missing := 0, 0, 0, 0
	unstemmed := map[string]int{}
	for _, file := range files {
		script, err := transcript.ParseFile(file)
		require.NoError(t, err)
		indexes, dialect := map[string]*fields{}, "1"
		for _, step := range script.Steps {
			var words []string
			for _, a := range step.Args {
				words = append(words, a.Text)
			}
			if step.Action == transcript.Fresh || len(words) == 1 {
				clear(indexes)
			}
			if len(words) < 3 || len(step.Newest()) == 0 {
				continue
			}
			want := step.Newest()[0]
			f := indexes[words[1]]
			switch command := strings.ToUpper(words[0]); command {
			case "CONFIG", "FT.CONFIG":
				if name := strings.ToUpper(words[2]); len(words) > 3 && want.Text == "OK" && strings.HasSuffix(name, "DIALECT") {
					dialect = words[3]
				}
			case "FT.CREATE":
				if want.Kind == '+' {
					indexes[words[1]] = create(words[2:])
				}
			case "FT.ALTER":
				if want.Kind == '+' && f != nil {
					f.add(words[slices.Index(words, "ADD")+1:])
				}
			case "FT.SYNUPDATE":
				if want.Kind == '+' && f != nil {
					f.synonyms.Update(words[2], words[3:]...)
				}
			case "FT.EXPLAIN", "FT.EXPLAINCLI", "FT.SEARCH", "FT.AGGREGATE":
				if f == nil || want.Kind == '-' && (want.Match != nil || !ours.MatchString(want.Text)) {
					continue
				}
				beside := slices.Contains(words, "FILTER") || slices.Contains(words, "GEOFILTER")
				if want.Kind == '-' && (beside || expressions.MatchString(want.Text)) {
					continue
				}
				query := words[2]
				got, err := f.explain(query, append([]string{"DIALECT", dialect}, words[3:]...)...)
				expected := want.Text
				if command == "FT.EXPLAINCLI" {
					var lines []string
					for _, line := range want.Elems {
						lines = append(lines, line.Text)
					}
					expected = strings.Join(lines, "\n")
				}
				message := fmt.Sprintf("%s:%d %s\n", filepath.Base(file), step.Line, step.Source)
				switch {
				case want.Kind == '-':
					refused++
					if err == nil || err.Error() != expected {
						t.Errorf("%swant error %s\ngot %v %v", message, expected, got, err)
					}
				case err != nil:
					t.Errorf("%sgot error %v", message, err)
				case strings.HasPrefix(command, "FT.EXPLAIN"):
					if got == expected {
						explained++
						continue
					}
					if i := slices.Index(words, "LANGUAGE"); i > 0 {
						if l, _ := text.ParseLanguage(words[i+1]); !l.Stems() {
							unstemmed[words[i+1]]++
							missing++
							continue
						}
					}
					t.Errorf("%swant\n%sgot\n%s", message, expected, got)
				default:
					read++
				}
			}
		}
	}
	t.Logf("%d explained, %d refused, %d read; without stems: %v", explained, refused, read, unstemmed)
	require.Equal(t, []int{223, 151, 1387, 0}, []int{explained, refused, read, missing})
}
