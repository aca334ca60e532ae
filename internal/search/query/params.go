package query

import (
	"math"
	"strconv"
	"strings"
)

// paramKind says how to read the value of a parameter.
type paramKind uint8

const (
	wordParam   paramKind = iota // a word; a number is not expanded
	rawParam                     // unchanged
	tagParam                     // without escapes
	numberParam                  // a number
	minParam                     // the lower end of a range
	maxParam                     // the upper end of a range
	sizeParam                    // a number of documents
	unitParam                    // a unit of length
)

// param is a parameter of a query and the target of its value.
type param struct {
	name string
	kind paramKind
	sign int // of a number: -1 negates it
	text *string
	num  *float64
	size *int64
	of   *Common // of the word

	shown *string // a tag's form in EXPLAIN; nil for others
}

// noParameter is the error for a parameter that PARAMS does not have.
func noParameter(name string) *Error { return errorf(NoParameter, "Parameter not found `%s`", name) }

// resolve sets all parameters of a tree.
func resolve(n Node, values map[string]string) error {
	for _, p := range n.Of().params {
		value, ok := values[p.name]
		if !ok {
			return noParameter(p.name)
		}
		if err := p.apply(value); err != nil {
			return err
		}
	}
	n.Of().params = nil
	for i := range optionsOf(n) {
		o := &optionsOf(n)[i]
		if o.param == "" {
			continue
		}
		value, ok := values[o.param]
		if !ok {
			return noParameter(o.param)
		}
		o.Value, o.param = value, ""
	}
	return children(n, func(child Node) error { return resolve(child, values) })
}

// optionsOf returns the options of a vector search.
func optionsOf(n Node) []Option {
	if n, ok := n.(*KNN); ok {
		return n.Options
	}
	return nil
}

// apply sets a parameter.
func (p param) apply(value string) error {
	invalid := errorf(NotNumeric, "Invalid numeric value (%s) for parameter `%s`", value, p.name)
	switch p.kind {
	case wordParam:
		*p.text = normalize(value)
		if _, ok := parseDouble(value); ok {
			p.of.Verbatim = true
		}
	case rawParam:
		*p.text = value
	case tagParam:
		*p.text = unescape(value)
		if p.shown != nil {
			*p.shown = value
		}
	case unitParam:
		*p.text = strings.ToLower(value)
	case numberParam:
		f, ok := parseDouble(value)
		if !ok {
			return invalid
		}
		*p.num = float64(p.sign) * f
	case minParam, maxParam:
		if value == "" {
			return invalid
		}
		return p.applyBound(value)
	case sizeParam:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return invalid
		}
		*p.size = n
	}
	return nil
}

// applyBound sets an end of a range. A parenthesis in the value is ignored: only one in the query makes the end
// exclusive.
func (p param) applyBound(value string) error {
	value = strings.TrimPrefix(value, "(")
	f, ok := parseDouble(value)
	switch f *= float64(p.sign); {
	case !ok, math.IsInf(f, 1) && p.kind == minParam, math.IsInf(f, -1) && p.kind == maxParam:
		if p.kind == minParam {
			return errorf(BadArguments, "Bad lower range: %s", value)
		}
		return errorf(BadArguments, "Bad upper range: %s", value)
	}
	*p.num = f
	return nil
}

// parseDouble parses a number.
func parseDouble(s string) (float64, bool) {
	if s == "" || strings.ContainsAny(s, "_xXpP") {
		return 0, false // Go accepts more forms of numbers
	}
	f, err := strconv.ParseFloat(s, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	tooSmall := f == 0 && strings.ContainsAny(mantissa, "123456789")
	return f, err == nil && !tooSmall && !math.IsNaN(f)
}
