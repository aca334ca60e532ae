package spell

import (
	"strings"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/request"
)

// Options are the options of FT.SPELLCHECK.
type Options struct {
	Distance         int
	Full             bool
	Include, Exclude []string // dictionaries
	Dialect          int      // 0 unless it is given
	Params           map[string]string
}

// ParseOptions reads the options after the query. As in the reference, it ignores unknown words.
func ParseOptions(words []string) (Options, error) {
	o := Options{Distance: 1}
	for r := args.New(words...); !r.Done(); {
		var err error
		switch {
		case r.Match("DISTANCE"):
			o.Distance, err = distance(&r)
		case r.Match("TERMS"):
			err = o.terms(&r)
		case r.Match("DIALECT"):
			o.Dialect, err = request.Dialect(&r)
		case r.Match("PARAMS"):
			o.Params, err = request.Params(&r, o.Params)
		case r.Match("FULLSCOREINFO"):
			o.Full = true
		default:
			_, _ = r.Next()
		}
		if err != nil {
			return Options{}, err
		}
	}
	return o, nil
}

func distance(r *args.Reader) (int, error) {
	if r.Done() {
		return 0, args.Errorf(query.NoCode, "DISTANCE arg is given but no DISTANCE comes after")
	}
	n, bad := r.Int(1, 4)
	if bad != args.None {
		return 0, args.Errorf(query.NoCode, "bad distance given, distance must be a natural number between 1 to 4")
	}
	return int(n), nil
}

func (o *Options) terms(r *args.Reader) error {
	if r.Len() < 2 {
		return args.Errorf(query.NoCode, "TERM arg is given but no TERM params comes after")
	}
	operation, _ := r.Next()
	name, _ := r.Next()
	switch {
	case strings.EqualFold(operation, "INCLUDE"):
		o.Include = append(o.Include, name)
	case strings.EqualFold(operation, "EXCLUDE"):
		o.Exclude = append(o.Exclude, name)
	default:
		return args.Errorf(query.NoCode, "bad format, exclude/include operation was not given")
	}
	return nil
}

// Missing returns the error for a dictionary in the options that does not exist, nil if all exist.
func (o *Options) Missing(has func(name string) bool) error {
	for _, names := range [][]string{o.Include, o.Exclude} {
		for _, name := range names {
			if !has(name) {
				return args.Errorf(query.NoCode, "Dict does not exist: %s", name)
			}
		}
	}
	return nil
}
