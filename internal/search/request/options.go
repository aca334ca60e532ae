package request

import (
	"math"
	"strings"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
)

func (p *parser) timeout() (err error) {
	p.Timeout, err = Timeout(&p.Reader)
	return err
}

// Timeout reads what follows TIMEOUT.
func Timeout(r *args.Reader) (*int64, error) {
	if r.Done() {
		return nil, args.Errorf(query.BadArguments, "Need argument for TIMEOUT")
	}
	n, bad := r.Int(0, math.MaxInt64)
	if bad != args.None {
		return nil, args.Errorf(query.BadArguments, "TIMEOUT requires a non negative integer")
	}
	return &n, nil
}

func (p *parser) cursor() (err error) {
	p.Cursor, err = readCursor(&p.Reader)
	return err
}

// readCursor reads the options after WITHCURSOR.
func readCursor(r *args.Reader) (*Cursor, error) {
	c := &Cursor{}
	for {
		option := ""
		target := &c.Count
		switch {
		case r.Match("COUNT"):
			option = "COUNT"
		case r.Match("MAXIDLE"):
			option, target = "MAXIDLE", &c.MaxIdle
		default:
			return c, nil
		}
		n, bad := r.Int(1, min(math.MaxUint32, math.MaxInt))
		if bad != args.None {
			return nil, bad.For(option)
		}
		*target = int(n)
	}
}

func (p *parser) params() (err error) {
	p.Params, err = Params(&p.Reader, p.Params)
	return err
}

// Params reads the arguments of PARAMS. before must be nil: only one PARAMS is allowed.
func Params(r *args.Reader, before map[string]string) (map[string]string, error) {
	list, bad := r.List()
	switch {
	case bad != args.None:
		return nil, bad.For("PARAMS")
	case before != nil:
		return nil, args.Errorf(query.AddArguments, "Multiple PARAMS are not allowed. Parameters can be defined only once")
	case list.Len() == 0 || list.Len()%2 != 0:
		return nil, args.Errorf(query.AddArguments, "Parameters must be specified in PARAM VALUE pairs")
	}
	params := map[string]string{}
	for !list.Done() {
		name, _ := list.Next()
		if _, ok := params[name]; ok {
			return nil, args.Errorf(query.AddArguments, "Duplicate parameter `%s`", name)
		}
		params[name], _ = list.Next()
	}
	return params, nil
}

func (p *parser) dialect() (err error) {
	if p.Dialect, err = Dialect(&p.Reader); err != nil {
		return err
	}
	return p.expandNeedsDialect()
}

// Dialect reads what follows DIALECT.
func Dialect(r *args.Reader) (int, error) {
	if r.Done() {
		return 0, args.Errorf(query.BadArguments, "Need an argument for DIALECT")
	}
	n, bad := r.Int(1, 4)
	if bad != args.None {
		return 0, args.Errorf(query.BadArguments, "DIALECT requires a non negative integer >=1 and <= 4")
	}
	return int(n), nil
}

func (p *parser) format() error {
	word, ok := p.Next()
	switch {
	case !ok:
		return args.Errorf(query.BadValue, "Need an argument for FORMAT")
	case strings.EqualFold(word, "EXPAND"):
		p.Format = ExpandFormat
	case strings.EqualFold(word, "STRING"):
		p.Format = StringFormat
	default:
		return args.Errorf(query.BadArguments, "FORMAT %s is not supported", word)
	}
	return nil
}

// expandNeedsDialect returns an error for a DIALECT that does not support FORMAT EXPAND.
func (p *parser) expandNeedsDialect() error {
	if p.Format == ExpandFormat && p.Dialect < 3 {
		return args.Errorf(query.LimitExceeded, "EXPAND format requires dialect 3 or greater")
	}
	return nil
}

func (p *parser) tanhFactor() error {
	const least, most = 1, 10000
	if p.Done() {
		return args.Errorf(query.BadArguments, "Need an argument for BM25STD_TANH_FACTOR")
	}
	n, bad := p.Int(least, most)
	if bad != args.None {
		return args.Errorf(query.BadArguments, "BM25STD_TANH_FACTOR must be between %d and %d inclusive", least, most)
	}
	p.TanhFactor = int(n)
	return nil
}

// numericFilter reads FILTER field min max.
func (p *parser) numericFilter() (err error) {
	list, bad := p.Take(3)
	if bad != args.None {
		return args.Errorf(query.BadArguments, "FILTER requires 3 arguments")
	}
	words := list.Rest()
	f := NumericFilter{Field: words[0]}
	p.emptyFilter = p.emptyFilter || words[1] == "" || words[2] == ""
	if f.Min, f.MinExclusive, err = bound(words[1], "lower", -1); err != nil {
		return err
	}
	if f.Max, f.MaxExclusive, err = bound(words[2], "upper", 1); err != nil {
		return err
	}
	p.Filters = append(p.Filters, f)
	return nil
}

// bound reads an end of a range: a number, after a parenthesis if it is excluded. Infinity must be on its own side.
func bound(word, side string, infinity int) (f float64, exclusive bool, err error) {
	number, exclusive := strings.CutPrefix(word, "(")
	if number == "" {
		return 0, exclusive, nil
	}
	f, ok := value.ParseNumber(number)
	if !ok || math.IsNaN(f) || math.IsInf(f, -infinity) {
		return 0, false, args.Errorf(query.BadArguments, "Bad %s range: %s", side, word)
	}
	return f, exclusive, nil
}

// geoFilter reads GEOFILTER field lon lat radius unit.
func (p *parser) geoFilter() error {
	list, bad := p.Take(5)
	if bad != args.None {
		return args.Errorf(query.BadArguments, "GEOFILTER requires 5 arguments")
	}
	f := GeoFilter{}
	f.Field, _ = list.Next()
	for _, number := range []struct {
		name string
		f    *float64
	}{{"<lon>", &f.Lon}, {"<lat>", &f.Lat}, {"<radius>", &f.Radius}} {
		if word, _ := list.Peek(); word == "" {
			p.emptyFilter = true
			_, _ = list.Next()
			continue
		}
		if *number.f, bad = list.Double(); bad != args.None {
			return bad.For(number.name)
		}
	}
	unit, _ := list.Next()
	switch f.Unit = strings.ToLower(unit); f.Unit {
	case "m", "km", "mi", "ft":
	default:
		return args.Errorf(query.BadArguments, "Unknown distance unit %s", unit)
	}
	p.GeoFilters = append(p.GeoFilters, f)
	return nil
}
