package aggregate

import (
	"math"
	"strings"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
)

const (
	MaxSortKeys   = 8
	maxProperties = 65535
)

// Max has the largest numbers of LIMIT.
type Max struct{ Offset, Num int }

// ParseArrange reads a LIMIT or a SORTBY. It returns false if the next word is neither. FT.SEARCH has another SORTBY: one field
// without @.
func (p *Plan) ParseArrange(r *args.Reader, search bool, most Max) (bool, error) {
	switch {
	case r.Match("LIMIT"):
		return true, p.parseLimit(r, most)
	case r.Match("SORTBY"):
		return true, p.parseSortBy(r, search)
	}
	return false, nil
}

func (p *Plan) parseLimit(r *args.Reader, most Max) error {
	a := p.arrange()
	if r.Len() < 2 {
		return args.Errorf(query.BadArguments, "LIMIT requires two arguments")
	}
	offset, bad := r.Int(0, math.MaxInt)
	num, worse := int64(0), args.None
	if bad == args.None {
		num, worse = r.Int(0, math.MaxInt)
	}
	switch {
	case bad != args.None || worse != args.None:
		return args.Errorf(query.BadArguments, "LIMIT needs two numeric arguments")
	case num == 0 && offset != 0:
		return args.Errorf(query.LimitExceeded, "The `offset` of the LIMIT must be 0 when `num` is 0")
	case num > int64(most.Num):
		return args.Errorf(query.LimitExceeded, "LIMIT exceeds maximum of %d", most.Num)
	case num > 0 && offset > int64(most.Offset):
		return args.Errorf(query.LimitExceeded, "OFFSET exceeds maximum of %d", most.Offset)
	}
	p.CountOnly = p.CountOnly || num == 0
	a.Limited, a.Offset, a.Num = true, int(offset), int(num)
	return nil
}

func (p *Plan) parseSortBy(r *args.Reader, search bool) error {
	a := p.arrange()
	switch {
	case a.Sorted && search:
		return args.Errorf(query.BadArguments, "Multiple SORTBY steps are not allowed")
	case a.Sorted:
		return args.Errorf(query.BadArguments, "Multiple SORTBY steps are not allowed. Sort multiple fields in a single step")
	}
	a.Sorted = true
	if search {
		name, ok := r.Next()
		if !ok {
			return args.Errorf(query.BadArguments, "Bad SORTBY arguments")
		}
		a.Keys = []Key{{Name: name, Desc: r.Match("DESC")}}
		if !a.Keys[0].Desc {
			r.Match("ASC")
		}
		if r.Match("MAX") {
			return args.Errorf(query.BadArguments, "SORTBY MAX is not supported by FT.SEARCH")
		}
		return nil
	}
	list, bad := r.List()
	if bad != args.None {
		return bad.For("SORTBY")
	}
	keys, err := parseKeys(list)
	if err != nil {
		return err
	}
	a.Keys = keys
	if r.Match("MAX") {
		n, bad := r.Count()
		if bad != args.None {
			return bad.For("MAX")
		}
		a.Num = n
	}
	return nil
}

// parseKeys reads the keys of SORTBY, each with an optional direction behind it.
func parseKeys(r args.Reader) (keys []Key, err error) {
	for word, ok := r.Next(); ok; word, ok = r.Next() {
		name, isKey := strings.CutPrefix(word, "@")
		switch {
		case isKey && len(keys) == MaxSortKeys:
			return nil, args.Errorf(query.LimitExceeded, "Cannot sort by more than %d fields", MaxSortKeys)
		case isKey:
			keys = append(keys, Key{Name: name})
		case len(keys) > 0 && strings.EqualFold(word, "ASC"):
			keys[len(keys)-1].Desc = false
		case len(keys) > 0 && strings.EqualFold(word, "DESC"):
			keys[len(keys)-1].Desc = true
		default:
			return nil, args.Errorf(query.BadArguments, "MISSING ASC or DESC after sort field (%s)", word)
		}
	}
	return keys, nil
}

// ParseStep reads a LOAD, GROUPBY, APPLY or FILTER. It returns false if the next word is none of them.
func (p *Plan) ParseStep(r *args.Reader) (bool, error) {
	var step Step
	var err error
	switch {
	case r.Match("LOAD"):
		step, err = parseLoad(r)
	case r.Match("GROUPBY"):
		step, err = parseGroup(r)
	case r.Match("APPLY"):
		step, err = parseApply(r)
	case r.Match("FILTER"):
		text, bad := r.Text()
		step, err = &Filter{text}, bad.For("APPLY/FILTER")
	default:
		return false, nil
	}
	p.Steps = append(p.Steps, step)
	return true, err
}

func parseLoad(r *args.Reader) (Step, error) {
	list, bad := r.List()
	if bad == args.NotConvertible {
		if word, _ := r.Next(); word != "*" {
			return nil, args.Errorf(query.BadArguments, "Bad arguments for LOAD: Expected number of fields or `*`")
		}
		return &Load{All: true}, nil
	}
	load := &Load{}
	for path, ok := list.Next(); ok; path, ok = list.Next() {
		path = strings.TrimPrefix(path, "@")
		name := path
		if list.Match("AS") {
			if name, ok = list.Next(); !ok {
				return nil, args.Errorf(query.BadArguments, "LOAD path AS name - must be accompanied with NAME")
			}
			if strings.EqualFold(name, "AS") {
				return nil, args.Errorf(query.BadArguments, "Alias for LOAD cannot be `AS`")
			}
		}
		load.Fields = append(load.Fields, Loaded{path, name})
	}
	return load, bad.For("LOAD")
}

func parseApply(r *args.Reader) (Step, error) {
	text, bad := r.Text()
	if bad != args.None {
		return nil, bad.For("APPLY/FILTER")
	}
	apply := &Apply{Expr: text, As: text}
	if r.Match("AS") {
		name, ok := r.Next()
		if !ok {
			return nil, args.Errorf(query.BadArguments, "AS needs argument")
		}
		apply.As = name
	}
	return apply, nil
}

func parseGroup(r *args.Reader) (Step, error) {
	list, bad := r.List()
	if bad == args.None && list.Len() > maxProperties {
		bad = args.OutOfBounds
	}
	if bad != args.None {
		return nil, bad.For("GROUPBY")
	}
	group := &Group{}
	for word, ok := list.Next(); ok; word, ok = list.Next() {
		name, isName := strings.CutPrefix(word, "@")
		if !isName {
			return nil, args.Errorf(query.BadArguments, "Bad arguments for GROUPBY: Unknown property `%s`. Did you mean `@%s`?", word, word)
		}
		group.By = append(group.By, name)
	}
	for r.Match("REDUCE") {
		reduce, err := parseReduce(r)
		if err != nil {
			return nil, err
		}
		group.Reduce = append(group.Reduce, reduce)
	}
	return group, nil
}

func parseReduce(r *args.Reader) (reduce Reduce, err error) {
	name, bad := r.Text()
	if bad != args.None {
		return reduce, bad.For("REDUCE")
	}
	list, bad := r.List()
	if bad != args.None {
		return reduce, bad.For(name)
	}
	reduce = Reduce{Name: name, Args: list.Rest()}
	if r.Match("AS") {
		reduce.Alias, bad = r.Text()
		return reduce, bad.For("AS")
	}
	plain := make([]string, len(reduce.Args))
	for i, word := range reduce.Args {
		plain[i] = strings.TrimLeft(word, "@")
	}
	reduce.Alias = "__generated_alias" + lowerASCII(name+strings.Join(plain, ","))
	return reduce, nil
}

// lowerASCII returns a text with its ASCII letters in lower case.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
