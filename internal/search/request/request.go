// Package request reads the arguments of FT.SEARCH and FT.AGGREGATE after the name of the index. It makes all checks
// that need no index, with the reference's errors in its order.
package request

import (
	"math"
	"strings"

	"github.com/atomredis/atomredis/internal/search/aggregate"
	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/summary"
)

// Request has the arguments of a command.
type Request struct {
	Query string

	// How the query is read.
	Verbatim    bool
	NoStopwords bool
	InOrder     bool
	Slop        int     // -1 unless it is given
	Language    *string // nil unless it is given
	Expander    string
	Params      map[string]string
	Dialect     int
	InFields    []string // nil if all count
	InKeys      []string
	HasInKeys   bool // INKEYS 0 finds nothing
	Filters     []NumericFilter
	GeoFilters  []GeoFilter

	// How documents are scored.
	Scorer       string
	Payload      string
	AddScores    bool
	ExplainScore bool
	TanhFactor   int // 0 unless it is given

	// What is returned.
	NoContent    bool
	WithScores   bool
	WithPayloads bool
	WithSortKeys bool
	WithRawIDs   bool
	Counting     Counting
	HasReturn    bool
	Return       []Returned
	Summary      summary.Settings
	Format       Format

	Timeout *int64 // milliseconds; nil unless it is given
	Cursor  *Cursor

	// Plan is the steps of FT.AGGREGATE. For FT.SEARCH it has at most an Arrange; see Arrange.
	Plan aggregate.Plan
}

// NumericFilter is FILTER of FT.SEARCH.
type NumericFilter struct {
	Field                      string
	Min, Max                   float64
	MinExclusive, MaxExclusive bool
}

// GeoFilter is GEOFILTER of FT.SEARCH.
type GeoFilter struct {
	Field            string
	Lon, Lat, Radius float64
	Unit             string // m, km, mi or ft
}

// Returned is a field of RETURN.
type Returned struct{ Path, Name string }

// Counting says whether the exact number of results is requested.
type Counting uint8

// The values of Counting.
const (
	CountByDialect Counting = iota
	CountAll
	CountFound
)

// Format is FORMAT.
type Format uint8

// The formats.
const (
	DefaultFormat Format = iota
	StringFormat
	ExpandFormat
)

// Cursor is WITHCURSOR. Missing values are 0.
type Cursor struct{ Count, MaxIdle int }

// Config has the configured limits and defaults.
type Config struct {
	Dialect      int
	MaxSearch    int // results of FT.SEARCH, and the largest offset of LIMIT
	MaxAggregate int
}

// Arrange returns the SORTBY and LIMIT of FT.SEARCH; without any it is empty.
func (q *Request) Arrange() aggregate.Arrange {
	for _, step := range q.Plan.Steps {
		if a, ok := step.(*aggregate.Arrange); ok {
			return *a
		}
	}
	return aggregate.Arrange{}
}

// parser reads a request.
type parser struct {
	args.Reader
	*Request
	config      Config
	search      bool
	emptyFilter bool
}

// Search reads the arguments of FT.SEARCH, from the query on.
func Search(words []string, c Config) (*Request, error) { return parse(words, c, true) }

// Aggregate reads the arguments of FT.AGGREGATE, from the query on.
func Aggregate(words []string, c Config) (*Request, error) { return parse(words, c, false) }

func parse(words []string, c Config, search bool) (*Request, error) {
	p := &parser{Reader: args.New(words...), config: c, search: search, Request: &Request{Slop: -1, Dialect: c.Dialect}}
	text, ok := p.Next()
	if !ok {
		return nil, args.Errorf(query.BadArguments, "No query string provided")
	}
	p.Query = text
	if err := p.options(); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	for !p.Done() {
		if err := p.step(); err != nil {
			return nil, err
		}
	}
	p.Plan.CountAll = !search && p.Counting == CountAll
	p.Plan.Whole = p.Plan.CountAll && p.Cursor != nil
	return p.Request, nil
}

// options reads the options of queries, up to the first other word.
func (p *parser) options() error {
	for !p.Done() {
		for _, read := range []func() (bool, error){p.flag, p.word, p.special, p.common} {
			found, err := read()
			if err != nil {
				return err
			}
			if found {
				goto next
			}
		}
		return nil
	next:
	}
	return nil
}

// step reads an option that may stand anywhere, or a step of an aggregation.
func (p *parser) step() error {
	if found, err := p.common(); found || err != nil {
		return err
	}
	if word, _ := p.Peek(); p.search {
		if strings.EqualFold(word, "GROUPBY") {
			return args.Errorf(query.Invalid, "option `GROUPBY` is mutually exclusive with simple (i.e. search) options")
		}
		return p.Unknown("<main>")
	}
	if found, err := p.Plan.ParseStep(&p.Reader); found || err != nil {
		return err
	}
	return p.Unknown("<main>")
}

// flag reads an option that is one word.
func (p *parser) flag() (bool, error) {
	for _, f := range []struct {
		keyword string
		flag    *bool
	}{
		{"INORDER", &p.InOrder}, {"VERBATIM", &p.Verbatim}, {"WITHSCORES", &p.WithScores}, {"ADDSCORES", &p.AddScores},
		{"WITHSORTKEYS", &p.WithSortKeys}, {"WITHPAYLOADS", &p.WithPayloads}, {"NOCONTENT", &p.NoContent},
		{"NOSTOPWORDS", &p.NoStopwords}, {"EXPLAINSCORE", &p.ExplainScore},
	} {
		if p.Match(f.keyword) {
			*f.flag = true
			return true, nil
		}
	}
	return false, nil
}

// word reads an option with an argument: a word, a number or a list.
func (p *parser) word() (bool, error) {
	for _, o := range []struct {
		keyword string
		text    *string
	}{{"EXPANDER", &p.Expander}, {"SCORER", &p.Scorer}, {"PAYLOAD", &p.Payload}} {
		if p.Match(o.keyword) {
			text, bad := p.Text()
			*o.text = text
			return true, bad.For(o.keyword)
		}
	}
	switch {
	case p.Match("LANGUAGE"):
		text, bad := p.Text()
		p.Language = &text
		return true, bad.For("LANGUAGE")
	case p.Match("SLOP"):
		n, bad := p.IntOf(math.MinInt32, math.MaxInt32)
		p.Slop = int(n)
		return true, bad.For("SLOP")
	case p.Match("INFIELDS"):
		list, bad := p.List()
		p.InFields = list.Rest()
		return true, bad.For("INFIELDS")
	case p.Match("INKEYS"):
		list, bad := p.List()
		p.InKeys, p.HasInKeys = list.Rest(), true
		return true, bad.For("INKEYS")
	case p.Match("RETURN"):
		list, bad := p.List()
		if bad != args.None {
			return true, bad.For("RETURN")
		}
		p.HasReturn, p.Return = true, nil
		for path, ok := list.Next(); ok; path, ok = list.Next() {
			p.Return = append(p.Return, Returned{path, path})
		}
		return true, nil
	}
	return false, nil
}

// special reads the options that only one of the commands has.
func (p *parser) special() (bool, error) {
	switch {
	case p.Match("SUMMARIZE"):
		if !p.search {
			return true, args.Errorf(query.BadArguments, "SUMMARIZE is not supported on FT.AGGREGATE")
		}
		return true, p.Summary.ParseSummarize(&p.Reader)
	case p.Match("HIGHLIGHT"):
		if !p.search {
			return true, args.Errorf(query.BadArguments, "HIGHLIGHT is not supported on FT.AGGREGATE")
		}
		return true, p.Summary.ParseHighlight(&p.Reader)
	case p.search && p.Match("FILTER"):
		return true, p.numericFilter()
	case p.search && p.Match("GEOFILTER"):
		return true, p.geoFilter()
	case p.Match("WITHCOUNT"):
		p.Counting = CountAll
		return true, nil
	case p.Match("WITHOUTCOUNT"):
		p.Counting = CountFound
		return true, nil
	}
	return false, nil
}

// common reads the options that may stand anywhere.
func (p *parser) common() (bool, error) {
	most := aggregate.Max{Offset: p.config.MaxSearch, Num: p.config.MaxAggregate}
	if p.search {
		most.Num = p.config.MaxSearch
	}
	if found, err := p.Plan.ParseArrange(&p.Reader, p.search, most); found || err != nil {
		return true, err
	}
	switch {
	case p.Match("TIMEOUT"):
		return true, p.timeout()
	case p.Match("WITHCURSOR"):
		return true, p.cursor()
	case p.Match("WITHRAWIDS"):
		p.WithRawIDs = true
		return true, nil
	case p.Match("PARAMS"):
		return true, p.params()
	case p.Match("DIALECT"):
		return true, p.dialect()
	case p.Match("FORMAT"):
		return true, p.format()
	case p.Match("BM25STD_TANH_FACTOR"):
		return true, p.tanhFactor()
	}
	return false, nil
}

// check returns an error for contradictory options, once all options of the query are read.
func (p *parser) check() error {
	switch {
	case p.emptyFilter && p.Dialect >= 2:
		return args.Errorf(query.BadArguments, "Numeric/Geo filter value/s cannot be empty")
	case p.ExplainScore && !p.WithScores:
		return args.Errorf(query.BadArguments, "EXPLAINSCORE must be accompanied with WITHSCORES")
	case p.search && p.AddScores:
		return args.Errorf(query.BadArguments, "ADDSCORES is not supported on FT.SEARCH")
	case !p.HasReturn:
		return nil
	case !p.search:
		return args.Errorf(query.BadArguments, "RETURN is not supported on FT.AGGREGATE")
	}
	p.NoContent = p.NoContent || len(p.Return) == 0
	list := p.Return
	p.Return = nil
	for len(list) > 0 {
		field := list[0]
		list = list[1:]
		if len(list) > 0 && strings.EqualFold(list[0].Path, "AS") {
			if len(list) == 1 {
				return args.Errorf(query.BadArguments, "RETURN path AS name - must be accompanied with NAME")
			}
			if field.Name = list[1].Path; strings.EqualFold(field.Name, "AS") {
				return args.Errorf(query.BadArguments, "Alias for RETURN cannot be `AS`")
			}
			list = list[2:]
		}
		if !p.returns(field.Name) {
			p.Return = append(p.Return, field)
		}
	}
	return nil
}

// returns reports whether RETURN has a name already.
func (p *parser) returns(name string) bool {
	for _, f := range p.Return {
		if f.Name == name {
			return true
		}
	}
	return false
}
