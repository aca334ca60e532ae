package crash

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// whole empties and swaps databases of its own, and writes large values and many keys in them.
type whole struct {
	noObserver
	label string
	n     int
}

// The databases of the worker: one is emptied, two are swapped, and keys are moved to the last.
const (
	flushed = 8
	swapA   = 9
	swapB   = 10
	target  = 11
)

const (
	// bigSize is the length of a big value.
	bigSize = 1 << 20
	// manyKeys is the number of small keys, manyStep the number that one command writes.
	manyKeys = 3000
	manyStep = 100
)

func (g *whole) restart(model) {}

func (g *whole) key(kind string, i int) string { return g.label + ":" + kind + strconv.Itoa(i) }

// big makes a text of a given size, different from every other.
func (g *whole) big(size int) string {
	g.n++
	unit := strconv.Itoa(g.n) + "-0123456789abcdef."
	return strings.Repeat(unit, size/len(unit)+1)[:size]
}

func (g *whole) next(r *rand.Rand) *op {
	g.n++
	n := strconv.Itoa(g.n)
	swapped := swapA + r.IntN(2)
	o := g.one(r, n, swapped)
	if o.commands[0].args[0] == "RENAME" {
		o.mayFail = true
	}
	return o
}

func (g *whole) one(r *rand.Rand, n string, swapped int) *op {
	small := g.key("small", r.IntN(50))
	switch r.IntN(60) {
	case 0:
		return inDatabase(flushed, "FLUSHDB")
	case 1:
		return transaction(command{db: flushed, args: []string{"FLUSHDB"}},
			command{db: flushed, args: []string{"SET", small, n}},
			command{db: swapA, args: []string{"SET", g.key("flushes", 0), n}})
	case 2, 3:
		return plain("SWAPDB", strconv.Itoa(swapA), strconv.Itoa(swapB))
	case 4:
		return transaction(command{db: swapA, args: []string{"SET", small, n}},
			command{db: swapA, args: []string{"SWAPDB", strconv.Itoa(swapA), strconv.Itoa(swapB)}},
			command{db: swapA, args: []string{"APPEND", small, n}})
	case 5, 6:
		return inDatabase(swapped, "MOVE", small, strconv.Itoa(target))
	case 7:
		return inDatabase(swapped, "COPY", small, small, "DB", strconv.Itoa(target), "REPLACE")
	case 8:
		return inDatabase(target, "UNLINK", small, g.key("small", r.IntN(50)))
	case 9, 10:
		return inDatabase(swapped, "SET", g.key("big", r.IntN(2)), g.big(bigSize))
	case 11:
		return inDatabase(swapped, "APPEND", g.key("big", r.IntN(2)), g.big(1000))
	case 12:
		return inDatabase(swapped, "SETRANGE", g.key("big", r.IntN(2)), strconv.Itoa(r.IntN(bigSize)), g.big(1000))
	case 13:
		return inDatabase(swapped, "HSET", g.key("hash", 0), "f"+strconv.Itoa(r.IntN(2)), g.big(bigSize/4))
	case 14, 15, 16, 17:
		args := []string{"MSET"}
		for i, first := 0, r.IntN(manyKeys); i < manyStep; i++ {
			args = append(args, g.key("many", (first+i)%manyKeys), n)
		}
		return inDatabase(flushed, args...)
	case 18, 19:
		args := []string{"DEL"}
		for range manyStep {
			args = append(args, g.key("many", r.IntN(manyKeys)))
		}
		return inDatabase(flushed, args...)
	case 20, 21, 22:
		return inDatabase(flushed, "RENAME", g.key("many", r.IntN(manyKeys)), g.key("many", r.IntN(manyKeys)))
	case 23, 24, 25, 26, 27, 28, 29, 30:
		return inDatabase(flushed, "INCR", g.key("many", r.IntN(manyKeys)))
	case 31, 32, 33, 34:
		return inDatabase(swapped, "HSET", g.key("hash", 1+r.IntN(20)), n, n, "f", n)
	case 35, 36:
		return inDatabase(swapped, "DEL", g.key("hash", r.IntN(21)))
	case 37:
		return inDatabase(swapped, "EXPIRE", small, strconv.Itoa(10_000+r.IntN(1000)))
	default:
		return inDatabase(swapped, "SET", small, n)
	}
}
