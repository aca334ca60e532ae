package summary

import (
	"math"
	"slices"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
)

// Settings are the styles of fields by HIGHLIGHT and SUMMARIZE.
type Settings struct {
	all    Style
	fields []named
}

// named is the style of one field.
type named struct {
	name string
	Style
}

// Empty reports whether no option was given.
func (s *Settings) Empty() bool { return s.all == Style{} && len(s.fields) == 0 }

// For returns the style of a field: its own style combined with the style for all fields. If there is a FIELDS,
// other fields stay unchanged.
func (s *Settings) For(name string) Style {
	if len(s.fields) == 0 {
		return s.all
	}
	i := slices.IndexFunc(s.fields, func(f named) bool { return f.name == name })
	if i < 0 {
		return Style{}
	}
	style := s.fields[i].Style
	if style.Highlight == nil {
		style.Highlight = s.all.Highlight
	}
	if style.Summarize == nil {
		style.Summarize = s.all.Summarize
	}
	return style
}

// Names returns the fields that have a style of their own.
func (s *Settings) Names() []string {
	names := make([]string, len(s.fields))
	for i, f := range s.fields {
		names[i] = f.name
	}
	return names
}

// field returns the style of a field to change it.
func (s *Settings) field(name string) *Style {
	for i := range s.fields {
		if s.fields[i].name == name {
			return &s.fields[i].Style
		}
	}
	s.fields = append(s.fields, named{name: name})
	return &s.fields[len(s.fields)-1].Style
}

// set changes the style of some fields, of all without names.
func (s *Settings) set(names []string, change func(*Style)) {
	if len(names) == 0 {
		change(&s.all)
	}
	for _, name := range names {
		change(s.field(name))
	}
}

// ParseHighlight reads what follows HIGHLIGHT: FIELDS n f…, then TAGS open close.
func (s *Settings) ParseHighlight(r *args.Reader) error {
	names, ok := parseFields(r)
	h := DefaultHighlight()
	for ok && r.Match("TAGS") {
		h.Open, _ = r.Next()
		h.Close, ok = r.Next()
	}
	if !ok {
		return args.Errorf(query.BadArguments, "Bad arguments for HIGHLIGHT")
	}
	s.set(names, func(style *Style) { style.Highlight = &h })
	return nil
}

// ParseSummarize reads what follows SUMMARIZE: FIELDS n f…, then LEN, FRAGS and SEPARATOR in any order.
func (s *Settings) ParseSummarize(r *args.Reader) error {
	names, ok := parseFields(r)
	o := DefaultSummarize()
	for more := ok; more && ok; {
		switch {
		case r.Match("LEN"):
			o.Words, ok = number(r)
		case r.Match("FRAGS"):
			o.Fragments, ok = number(r)
		case r.Match("SEPARATOR"):
			o.Separator, ok = r.Next()
		default:
			more = false
		}
	}
	if !ok {
		return args.Errorf(query.BadArguments, "Bad arguments for SUMMARIZE")
	}
	s.set(names, func(style *Style) { style.Summarize = &o })
	return nil
}

// number reads a number that is small enough to compute with.
func number(r *args.Reader) (int, bool) {
	n, bad := r.Count()
	return min(n, math.MaxInt32/8), bad == args.None
}

// parseFields reads FIELDS, if it is next.
func parseFields(r *args.Reader) ([]string, bool) {
	if !r.Match("FIELDS") {
		return nil, true
	}
	list, bad := r.List()
	return list.Rest(), bad == args.None
}
