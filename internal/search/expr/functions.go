package expr

import (
	"math"

	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
)

// function is a function. A lazy one computes its own arguments, or asks the row.
type function struct {
	name     string
	min, max int // number of arguments
	call     func(args []value.Value) (value.Value, error)
	lazy     func(c *call, row Row) (value.Value, error)
}

// functions are all functions by their names in lower case.
var functions = func() map[string]*function {
	table := []*function{
		{name: "log", min: 1, max: 1, call: ofNumber(math.Log)},
		{name: "log2", min: 1, max: 1, call: ofNumber(math.Log2)},
		{name: "exp", min: 1, max: 1, call: ofNumber(math.Exp)},
		{name: "sqrt", min: 1, max: 1, call: ofNumber(math.Sqrt)},
		{name: "abs", min: 1, max: 1, call: ofNumber(math.Abs)},
		{name: "ceil", min: 1, max: 1, call: ofNumber(math.Ceil)},
		{name: "floor", min: 1, max: 1, call: ofNumber(math.Floor)},

		{name: "lower", min: 1, max: 1, call: lower},
		{name: "upper", min: 1, max: 1, call: upper},
		{name: "substr", min: 3, max: 3, call: substr},
		{name: "strlen", min: 1, max: 1, call: strlen},
		{name: "contains", min: 2, max: 2, call: contains},
		{name: "startswith", min: 2, max: 2, call: startsWith},
		{name: "format", min: 1, max: math.MaxUint16, call: format},
		{name: "split", min: 1, max: 3, call: split},
		{name: "to_number", min: 1, max: 1, call: toNumber},
		{name: "to_str", min: 1, max: 1, call: toStr},

		{name: "exists", min: 1, max: 1, lazy: (*call).exists},
		{name: "case", min: 3, max: 3, lazy: (*call).choose},
		{name: "matched_terms", min: 0, max: 1, lazy: (*call).matchedTerms},

		{name: "timefmt", min: 1, max: 2, call: timeFormat},
		{name: "parsetime", min: 2, max: 2, call: parseTime},
		{name: "minute", min: 1, max: 1, call: minute},
		{name: "hour", min: 1, max: 1, call: ofInstant(hour)},
		{name: "day", min: 1, max: 1, call: ofInstant(day)},
		{name: "month", min: 1, max: 1, call: ofInstant(month)},
		{name: "dayofmonth", min: 1, max: 1, call: ofInstant(dayOfMonth)},
		{name: "dayofweek", min: 1, max: 1, call: ofInstant(dayOfWeek)},
		{name: "dayofyear", min: 1, max: 1, call: ofInstant(dayOfYear)},
		{name: "monthofyear", min: 1, max: 1, call: ofInstant(monthOfYear)},
		{name: "year", min: 1, max: 1, call: ofInstant(year)},

		{name: "geodistance", min: 2, max: 4, call: geoDistance},
	}
	all := map[string]*function{}
	for _, f := range table {
		all[f.name] = f
	}
	return all
}()

// ofNumber makes a function of one number. For other arguments its result is NaN.
func ofNumber(f func(float64) float64) func([]value.Value) (value.Value, error) {
	return func(args []value.Value) (value.Value, error) {
		x, ok := args[0].ToNumber()
		if !ok {
			x = math.NaN()
		}
		return value.Num(f(x)), nil
	}
}

// kindNumbers are the numbers of kinds in errors.
var kindNumbers = map[value.Kind]int{value.Number: 1, value.String: 2, value.Null: 3, value.Array: 5, value.Map: 8}

// checks are what errors call the checks for a kind.
var checks = map[value.Kind]string{
	value.String: "VALIDATE_ARG__STRING(v, 0)", value.Number: "VALIDATE_ARG__TYPE(v, RSValueType_Number)",
}

// must returns an error for an argument of another kind.
func must(kind value.Kind, function string, args []value.Value, i int) error {
	if got := args[i].Kind(); got != kind {
		return errorf(query.BadArguments, "Invalid type (%d) for argument %d in function '%s'. %s was false.",
			kindNumbers[got], i, function, checks[kind])
	}
	return nil
}

// mustText returns an error unless the first n arguments are strings.
func mustText(function string, args []value.Value, n int) error {
	for i := range n {
		if err := must(value.String, function, args, i); err != nil {
			return err
		}
	}
	return nil
}
