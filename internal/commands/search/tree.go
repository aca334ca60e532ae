package search

import (
	"math"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/plan"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/request"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/text"
)

// settingsOf returns the configuration of requests.
func settingsOf(h command.Host) request.Config {
	return request.Config{Dialect: int(integer(h, "search-default-dialect")), MaxSearch: int(integer(h, "search-max-search-results")),
		MaxAggregate: int(integer(h, "search-max-aggregate-results"))}
}

// language returns the language of a query.
func language(q *request.Request, def *schema.Definition) (text.Language, error) {
	if q.Language == nil {
		return def.Language, nil
	}
	l, ok := text.ParseLanguage(*q.Language)
	if !ok {
		return l, args.Errorf(query.Invalid, "No such language")
	}
	return l, nil
}

// scorer returns the scorer of a query.
func scorer(h command.Host, q *request.Request) (plan.Scorer, error) {
	name := q.Scorer
	if name == "" {
		name = h.Directive("search-default-scorer")
	}
	s, ok := plan.ParseScorer(name)
	if !ok {
		return s, args.Errorf(query.Invalid, "No such scorer %s", name)
	}
	return s, nil
}

// treeOf returns the query with its filters as a tree.
func treeOf(q *request.Request, def *schema.Definition, synonyms *text.Synonyms, ids func(keys []string) []uint64) (query.Node, error) {
	language, err := language(q, def)
	if err != nil {
		return nil, err
	}
	o := query.Options{Dialect: q.Dialect, Schema: def, Params: q.Params, Language: language, Slop: q.Slop, InOrder: q.InOrder}
	if !q.NoStopwords {
		o.Stopwords = def.Stopwords
	}
	root, err := query.Parse(q.Query, o)
	if err != nil {
		return nil, err
	}
	for _, f := range q.Filters {
		node, err := numericFilter(q, def, f)
		if err != nil {
			return nil, err
		}
		root = query.Filter(root, node)
	}
	for _, f := range q.GeoFilters {
		node, err := geoFilter(q, def, f)
		if err != nil {
			return nil, err
		}
		root = query.Filter(root, node)
	}
	if q.HasInKeys {
		root = query.Filter(root, query.NewIDs(ids(q.InKeys)...))
	}
	if !q.Verbatim {
		e := query.Expansion{Expander: query.Expander(q.Expander), Schema: def, Stemmer: text.NewQueryStemmer(language), Synonyms: synonyms}
		if root, err = e.Expand(root); err != nil {
			return nil, err
		}
	}
	// Words are expanded as without INFIELDS, even if none of its fields has stems.
	if len(q.InFields) > 0 {
		var fields []*query.Field
		for _, name := range q.InFields {
			if f, ok := def.Field(name); ok && f.Kind == query.TextKind {
				fields = append(fields, f)
			}
		}
		query.Narrow(root, query.OnlyIn(fields...))
	}
	return root, nil
}

// numericFilter returns the node of FILTER. Up to dialect 1 an unknown field finds nothing.
func numericFilter(q *request.Request, def *schema.Definition, f request.NumericFilter) (query.Node, error) {
	field, ok := def.Field(f.Field)
	switch {
	case !ok && q.Dialect >= 2:
		return nil, args.Errorf(query.Invalid, "Unknown Field '%s'", f.Field)
	case ok && field.Kind != query.NumericKind && q.Dialect >= 2:
		return nil, args.Errorf(query.Invalid, "Field is not a numeric field, field: %s", f.Field)
	case f.Min > f.Max:
		return nil, args.Errorf(query.Syntax, "Invalid numeric range (min > max): @%s:[%f %f]", f.Field, f.Min, f.Max)
	case !ok || field.Kind != query.NumericKind:
		return query.NewEmpty(), nil
	}
	return query.NewNumeric(field, f.Min, f.Max, f.MinExclusive, f.MaxExclusive), nil
}

// geoFilter returns the node of GEOFILTER.
func geoFilter(q *request.Request, def *schema.Definition, f request.GeoFilter) (query.Node, error) {
	field, ok := def.Field(f.Field)
	switch {
	case math.Abs(f.Lon) > 180 || math.Abs(f.Lat) > 85.05112878:
		return nil, args.Errorf(query.Syntax, "Invalid GeoFilter lat/lon")
	case f.Radius <= 0:
		return nil, args.Errorf(query.Syntax, "Invalid GeoFilter radius")
	case !ok && q.Dialect >= 2:
		return nil, args.Errorf(query.Invalid, "Unknown Field, field: %s", f.Field)
	case ok && field.Kind != query.GeoKind && q.Dialect >= 2:
		return nil, args.Errorf(query.Invalid, "Field is not a geo field, field: %s", f.Field)
	case !ok || field.Kind != query.GeoKind:
		return query.NewEmpty(), nil
	}
	return query.NewGeo(field, f.Lon, f.Lat, f.Radius, f.Unit), nil
}
