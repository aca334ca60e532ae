package aggregate

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"

	"github.com/atomredis/atomredis/internal/search/args"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/value"
)

// reducer computes a value of each group from its rows. The state of a group can be written by one server and merged by another.
type reducer interface {
	// grow adds a group, whose number is the next one.
	grow()
	// add adds a row to a group.
	add(group int, r *Row)
	// result returns the value of a group. No row may be added afterwards.
	result(group int) value.Value
	// encode appends the state of a group.
	encode(dst []byte, group int) []byte
	// merge adds the state that encode has written at the beginning of b, and returns what follows it.
	merge(group int, b []byte) ([]byte, error)
}

// errPart is the error for an invalid part of another server.
var errPart = errors.New("invalid part of an aggregation")

// maxSample is the largest number of values that RANDOM_SAMPLE returns, and the largest resolution of QUANTILE.
const maxSample = 1000

// reducerBuilder makes reducers from their arguments.
type reducerBuilder struct {
	args.Reader
	name    string // as written
	scope   *scope
	load    *loadStage
	budget  *budget
	options *Options
}

// build makes a reducer.
func (b *reducerBuilder) build() (reducer, error) {
	build, ok := map[string]func(*reducerBuilder) (reducer, error){
		"COUNT":             (*reducerBuilder).count,
		"SUM":               (*reducerBuilder).sum,
		"AVG":               (*reducerBuilder).avg,
		"MIN":               (*reducerBuilder).min,
		"MAX":               (*reducerBuilder).max,
		"STDDEV":            (*reducerBuilder).stddev,
		"QUANTILE":          (*reducerBuilder).quantile,
		"TOLIST":            (*reducerBuilder).toList,
		"FIRST_VALUE":       (*reducerBuilder).firstValue,
		"RANDOM_SAMPLE":     (*reducerBuilder).randomSample,
		"COUNT_DISTINCT":    (*reducerBuilder).countDistinct,
		"COUNT_DISTINCTISH": (*reducerBuilder).countDistinctish,
		"HLL":               (*reducerBuilder).hll,
		"HLL_SUM":           (*reducerBuilder).hllSum,
		"COLLECT":           (*reducerBuilder).collect,
	}[strings.ToUpper(b.name)]
	if !ok {
		return nil, args.Errorf(query.NoReducer, "No such reducer: %s", b.name)
	}
	return build(b)
}

// key reads a name.
func (b *reducerBuilder) key() (int, error) {
	word, ok := b.Next()
	if !ok {
		return 0, args.Errorf(query.BadArguments, "Missing arguments for %s", b.name)
	}
	name, ok := strings.CutPrefix(word, "@")
	if !ok && b.options.Prefixed && !strings.HasPrefix(word, "$") {
		return 0, MissingPrefix(word, b.name)
	}
	return b.slot(name)
}

// MissingPrefix is the error for a name without @ where it needs one.
func MissingPrefix(name, context string) error {
	return args.Errorf(query.BadArguments,
		"Missing prefix: name requires '@' prefix, JSON path require '$' prefix, got: %s in %s", name, context)
}

// slot returns the slot of a name.
func (b *reducerBuilder) slot(name string) (int, error) {
	c, ok := b.scope.find(name, b.load)
	if !ok {
		return 0, args.Errorf(query.NoProperty, "Property not loaded nor in pipeline: `%s`", name)
	}
	return c.Slot, nil
}

// finished refuses further arguments.
func (b *reducerBuilder) finished() error {
	if b.Done() {
		return nil
	}
	return b.Unknown(b.name)
}

// of is a reducer of one name, with a state of type T for each group.
type of[T any] struct {
	slot   int
	states []T
	budget *budget
}

func newOf[T any](b *reducerBuilder) (of[T], error) {
	slot, err := b.key()
	return of[T]{slot: slot, budget: b.budget}, err
}

func (o *of[T]) grow() {
	var zero T
	o.states = append(o.states, zero)
	o.budget.take(32)
}

// numbers calls add for the number in a row, or for each number of an array.
func numbers(v value.Value, add func(float64)) {
	for _, item := range v.Items() {
		if f, ok := item.ToNumber(); ok {
			add(f)
		}
	}
	if f, ok := v.ToNumber(); ok {
		add(f)
	}
}

// Functions to append and parse the states of reducers.

func appendFloat(dst []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
}

func cutFloat(b []byte) (float64, []byte, error) {
	if len(b) < 8 {
		return 0, nil, errPart
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:], nil
}

// cutInt reads a non-negative number.
func cutInt(b []byte) (int, []byte, error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > math.MaxInt {
		return 0, nil, errPart
	}
	return int(n), b[size:], nil
}

// cutCount reads a number of items that follow, each of at least one byte.
func cutCount(b []byte) (int, []byte, error) {
	n, b, err := cutInt(b)
	if err == nil && n > len(b) {
		err = errPart
	}
	return n, b, err
}

func cutText(b []byte) (string, []byte, error) {
	n, b, err := cutCount(b)
	if err != nil {
		return "", nil, err
	}
	return string(b[:n]), b[n:], nil
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}
