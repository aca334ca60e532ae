package plan

import (
	"math"

	"github.com/atomredis/atomredis/engine/search/docs"
)

// end is the position of an iterator after its last match.
const end = math.MaxUint64

// iterator goes through the documents that match a part of a query, in ascending order.
type iterator interface {
	// seek moves to the first match from a number on and returns it, or end. An iterator that is already there or
	// later does not move. Matches may be dead documents: only the plan's own loop checks that.
	seek(to uint64) uint64
	// doc returns the present match: 0 before the first, end after the last.
	doc() uint64
	// estimate estimates the number of matches; it is rarely too low.
	estimate() int
	// rewind moves before the first match again.
	rewind()
}

// watch checks now and then whether the query must stop. All iterators of a plan share one.
type watch struct {
	stop    func() bool // nil if nothing stops the query
	steps   int
	width   int // cost of a step: how many iterators it may move, in units of between
	stopped bool
}

// between is the number of steps between two checks.
const between = 100

// tick counts a step and reports whether the query must stop.
func (w *watch) tick() bool {
	if w.steps += 1 + w.width; w.steps >= between {
		w.steps = 0
		w.stopped = w.stopped || w.stop != nil && w.stop()
	}
	return w.stopped
}

// cursor is the position of an iterator.
type cursor struct{ at uint64 }

func (c *cursor) doc() uint64 { return c.at }
func (c *cursor) rewind()     { c.at = 0 }

// none is no document.
type none struct{ cursor }

func (n *none) seek(uint64) uint64 { n.at = end; return end }
func (n *none) estimate() int      { return 0 }

// all is all documents.
type all struct {
	cursor
	view   docs.View
	weight float64
}

func (a *all) seek(to uint64) uint64 {
	if a.at < to {
		if a.at = to; to > a.view.Last() {
			a.at = end
		}
	}
	return a.at
}

func (a *all) estimate() int { return a.view.Len() }

// not is the documents that do not match.
type not struct {
	all
	child iterator
	watch *watch
}

func (n *not) seek(to uint64) uint64 {
	for n.at < to {
		if n.all.seek(to) == end || n.child.seek(to) != to {
			break
		}
		if to++; n.watch.tick() {
			n.at = end
		}
	}
	return n.at
}

func (n *not) rewind() { n.at = 0; n.child.rewind() }

// optional matches all documents. Its child is only checked when a document is scored.
type optional struct {
	all
	child iterator
	miss  float64 // the weight of documents that the child does not match
}

// matches reports whether the child matches the present document.
func (o *optional) matches() bool { return o.child.seek(o.at) == o.at }

func (o *optional) rewind() { o.at = 0; o.child.rewind() }

// listed matches documents given by their numbers. They have no score.
type listed struct {
	cursor
	set    set
	weight float64
	kind   string // for PROFILE
	freq   uint32
}

func (l *listed) seek(to uint64) uint64 {
	if l.at < to {
		l.at = l.set.next(to)
	}
	return l.at
}

func (l *listed) estimate() int { return l.set.len() }
func (l *listed) rewind()       { l.at = 0; l.set.rewind() }
