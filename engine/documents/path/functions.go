package path

import (
	"math"
	"strings"

	"github.com/atomredis/atomredis/engine/documents"
)

// function is a function that expressions can call.
type function struct {
	least, most int // number of arguments; most is 0 if unlimited
	do          func(e *evaluator, c *call, arguments [][]documents.Value) []documents.Value
}

var functions map[string]*function

func init() {
	functions = map[string]*function{
		"length":   {1, 1, length},
		"count":    {1, 1, count},
		"value":    {1, 1, value},
		"keys":     {1, 1, func(e *evaluator, _ *call, a [][]documents.Value) []documents.Value { return e.keys(a[0]) }},
		"match":    {2, 2, matches(true)},
		"search":   {2, 2, matches(false)},
		"concat":   {1, 0, concat},
		"abs":      {1, 1, ofOne(abs)},
		"ceiling":  {1, 1, ofOne(rounded(math.Ceil))},
		"floor":    {1, 1, ofOne(rounded(math.Floor))},
		"first":    {1, 1, element(0)},
		"last":     {1, 1, element(-1)},
		"index":    {2, 2, index},
		"min":      {1, 1, aggregate(func(n numbers) float64 { return n.least })},
		"max":      {1, 1, aggregate(func(n numbers) float64 { return n.most })},
		"sum":      {1, 1, aggregate(func(n numbers) float64 { return n.sum })},
		"avg":      {1, 1, aggregate(func(n numbers) float64 { return n.sum / float64(n.count) })},
		"stddev":   {1, 1, aggregate(func(n numbers) float64 { return math.Sqrt(n.squares / float64(n.count)) })},
		"append":   {2, 2, appended},
		"subsetof": {2, 2, related("subsetof")},
		"anyof":    {2, 2, related("anyof")},
		"noneof":   {2, 2, related("noneof")},
	}
}

func one(v documents.Value) []documents.Value { return []documents.Value{v} }

// ofOne makes a function of exactly one value.
func ofOne(fn func(v documents.Value) []documents.Value) func(*evaluator, *call, [][]documents.Value) []documents.Value {
	return func(_ *evaluator, _ *call, a [][]documents.Value) []documents.Value {
		if len(a[0]) != 1 {
			return nil
		}
		return fn(a[0][0])
	}
}

func nothing(*evaluator, *call, [][]documents.Value) []documents.Value { return nil }

func length(_ *evaluator, c *call, a [][]documents.Value) []documents.Value {
	n, ok := len(a[0]), isList(c.arguments[0])
	if !ok && n == 1 {
		n, ok = size(a[0][0])
	}
	if !ok {
		return nil
	}
	return one(documents.Int(int64(n)))
}

func count(_ *evaluator, _ *call, a [][]documents.Value) []documents.Value {
	return one(documents.Int(int64(len(a[0]))))
}

func value(_ *evaluator, _ *call, a [][]documents.Value) []documents.Value {
	if len(a[0]) != 1 {
		return nil
	}
	return a[0]
}

// keys returns the names of the members of objects.
func (e *evaluator) keys(vals []documents.Value) (names []documents.Value) {
	for _, v := range vals {
		if v.Kind() != documents.Object || !e.spend(v.Len()) {
			continue
		}
		v.Elements(func(_ int, name string, _ documents.Value) bool {
			names = append(names, documents.Text(name))
			return e.results(len(names))
		})
	}
	return names
}

func matches(whole bool) func(*evaluator, *call, [][]documents.Value) []documents.Value {
	return func(e *evaluator, _ *call, a [][]documents.Value) []documents.Value {
		if len(a[0]) == 0 || len(a[1]) != 1 || a[1][0].Kind() != documents.String {
			return nil
		}
		expression := a[1][0].Text()
		for _, v := range a[0] {
			if e.match(v, expression, whole) {
				return one(documents.Bool(true))
			}
		}
		return one(documents.Bool(false))
	}
}

func concat(e *evaluator, _ *call, a [][]documents.Value) []documents.Value {
	var b strings.Builder
	for _, vals := range a {
		if len(vals) != 1 || vals[0].Kind() != documents.String {
			return nil
		}
		text := vals[0].Text()
		if !e.spend(len(text) / 64) {
			return nil
		}
		b.WriteString(text)
	}
	return one(documents.Text(b.String()))
}

func abs(v documents.Value) []documents.Value {
	switch i, ok := v.Int(); {
	case ok && i == math.MinInt64:
		return nil
	case ok:
		return one(documents.Int(max(i, -i)))
	case v.Kind() == documents.Number:
		return one(documents.Double(math.Abs(v.Float())))
	}
	return nil
}

func rounded(round func(float64) float64) func(documents.Value) []documents.Value {
	return func(v documents.Value) []documents.Value {
		if _, ok := v.Int(); ok {
			return one(v)
		}
		f := round(v.Float())
		if v.Kind() != documents.Number || f < math.MinInt64 || f >= -math.MinInt64 {
			return nil
		}
		return one(documents.Int(int64(f)))
	}
}

func element(i int) func(*evaluator, *call, [][]documents.Value) []documents.Value {
	return func(_ *evaluator, c *call, a [][]documents.Value) []documents.Value {
		return listOf(c.arguments[0], a[0]).at(float64(i))
	}
}

func index(_ *evaluator, c *call, a [][]documents.Value) []documents.Value {
	if len(numbersOnly(a[1])) == 0 {
		return nil
	}
	return listOf(c.arguments[0], a[0]).at(math.Trunc(a[1][0].Float()))
}

// at returns an element, from the end if i is negative.
func (l list) at(i float64) []documents.Value {
	if i < 0 {
		i += float64(l.n)
	}
	switch {
	case i < 0 || i >= float64(l.n):
		return nil
	case l.vals != nil:
		return one(l.vals[int(i)])
	}
	return one(l.array.At(int(i)))
}

// numbers summarises some numbers.
type numbers struct {
	count            int
	least, most, sum float64
	mean, squares    float64 // and the sum of the squared distances from the mean
}

func aggregate(fn func(numbers) float64) func(*evaluator, *call, [][]documents.Value) []documents.Value {
	return func(e *evaluator, c *call, a [][]documents.Value) []documents.Value {
		l := listOf(c.arguments[0], a[0])
		if !e.spend(l.n) || l.n == 0 {
			return nil
		}
		n := numbers{least: math.Inf(1), most: math.Inf(-1)}
		strict := true
		l.each(func(v documents.Value) bool {
			if strict = v.IsNumber(); !strict {
				return false
			}
			f := v.Float()
			n.count++
			n.least, n.most, n.sum = min(n.least, f), max(n.most, f), n.sum+f
			distance := f - n.mean
			n.mean += distance / float64(n.count)
			n.squares += distance * (f - n.mean)
			return true
		})
		if !strict {
			return nil
		}
		return finite(fn(n))
	}
}

// appended returns the elements of an array, or any other values of a path, and one more.
func appended(e *evaluator, c *call, a [][]documents.Value) (vals []documents.Value) {
	if len(a[1]) == 0 && !isList(c.arguments[1]) {
		return nil
	}
	if len(a[0]) == 1 && a[0][0].Kind() == documents.Array && !isList(c.arguments[0]) {
		if !e.spend(a[0][0].Len()) || !e.results(a[0][0].Len()) {
			return nil
		}
		a[0][0].Elements(func(_ int, _ string, v documents.Value) bool {
			vals = append(vals, v)
			return true
		})
	} else {
		vals = append(vals, a[0]...)
	}
	if len(a[1]) == 1 && !isList(c.arguments[1]) {
		return append(vals, a[1][0])
	}
	return append(vals, documents.NewArray(a[1]...))
}

func related(operator string) func(*evaluator, *call, [][]documents.Value) []documents.Value {
	return func(e *evaluator, c *call, a [][]documents.Value) []documents.Value {
		l, set := listOf(c.arguments[0], a[0]), listOf(c.arguments[1], a[1])
		if !l.isArray || !set.isArray {
			return nil
		}
		return one(documents.Bool(e.relates(operator, l, set)))
	}
}
