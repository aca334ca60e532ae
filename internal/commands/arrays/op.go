package arrays

import (
	"bytes"
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine/arrays"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// Operations on numbers, by their names. The other operations count elements.
var (
	ofNumbers = map[string]func(x, y float64) float64{
		"sum": func(x, y float64) float64 { return x + y },
		"min": math.Min,
		"max": math.Max,
	}
	ofBits = map[string]func(x, y int64) int64{
		"and": func(x, y int64) int64 { return x & y },
		"or":  func(x, y int64) int64 { return x | y },
		"xor": func(x, y int64) int64 { return x ^ y },
	}
)

func cmdOp(c *command.Ctx) {
	from, to, ok := twoIndices(c, c.Args[2:])
	if !ok {
		return
	}
	from, to = min(from, to), max(from, to)
	name := command.Lower(c.Args[4])
	numbers, bits := ofNumbers[name], ofBits[name]
	switch {
	case numbers == nil && bits == nil && name != "match" && name != "used":
		c.Err(errOperation)
		return
	case name == "match" && len(c.Args) != 6:
		c.Err(errMatch)
		return
	case name != "match" && len(c.Args) != 5:
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	a, ok := array(c)
	if !ok {
		return
	}
	long(c, a, from, to, -1)
	switch {
	case numbers != nil:
		if x, ok := fold(a, from, to, parseNumber, numbers); ok {
			c.W.Bulk(appendNumber(nil, x))
		} else {
			c.W.Null()
		}
	case bits != nil:
		if n, ok := fold(a, from, to, parseBits, bits); ok {
			c.W.Int(n)
		} else {
			c.W.Null()
		}
	default:
		n := 0
		a.Each(from, to, func(_ uint64, v []byte) bool {
			if name == "used" || bytes.Equal(v, c.Args[5]) {
				n++
			}
			return true
		})
		c.W.Int(int64(n))
	}
}

// appendNumber appends a number with 17 digits, without zeros at the end.
func appendNumber(dst []byte, x float64) []byte {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return resp.AppendFloat(dst, x)
	}
	return strconv.AppendFloat(dst, x, 'g', 17, 64)
}

// fold joins the elements of a range that parse as numbers; ok is false if none does.
func fold[T any](a *arrays.Array, from, to uint64, parse func([]byte) (T, bool), join func(x, y T) T) (x T, ok bool) {
	a.Each(from, to, func(_ uint64, v []byte) bool {
		y, is := parse(v)
		switch {
		case !is:
		case ok:
			x = join(x, y)
		default:
			x, ok = y, true
		}
		return true
	})
	return x, ok
}

// parseNumber reads an element as a number; ok is false if it is not one.
func parseNumber(v []byte) (x float64, ok bool) {
	if n, ok := resp.ParseInt(v); ok {
		return float64(n), true
	}
	return resp.ParseFloat(v)
}

// parseBits reads an element as an integer. It truncates fractions and clamps numbers that are too large.
func parseBits(v []byte) (n int64, ok bool) {
	if n, ok = resp.ParseInt(v); ok {
		return n, true
	}
	x, ok := resp.ParseFloat(v)
	switch {
	case x >= math.MaxInt64:
		return math.MaxInt64, ok
	case x <= math.MinInt64:
		return math.MinInt64, ok
	}
	return int64(x), ok
}
