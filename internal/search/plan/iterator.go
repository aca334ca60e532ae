package plan

import (
	"math"

	"github.com/atomredis/atomredis/engine/search/docs"
)

// end is the number at which an iterator stands behind its last match.
const end = math.MaxUint64

// iterator goes through the documents that match a part of a query, in ascending order.
type iterator interface {
	// seek goes to the first match from a number on and returns it, or end. An iterator that stands there or behind stays.
	// Numbers may be those of dead documents: only the plan's own loop looks at that.
	seek(to uint64) uint64
	// doc returns the match at which the iterator stands: 0 in front of the first, end behind the last.
	doc() uint64
	// estimate returns about how many matches there are, and seldom fewer than there are.
	estimate() int
	// rewind goes in front of the first match again.
	rewind()
}

// watch asks now and then whether the query has to stop. All iterators of a plan share one.
type watch struct {
	stop    func() bool // nil if nothing stops the query
	steps   int
	width   int // of a step: how many iterators it may move, in units of between
	stopped bool
}

// between is how many steps are made between two questions.
const between = 100

// tick counts a step and reports whether the query has to stop.
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

// optional is all documents. Its child is only looked at when a document is scored.
type optional struct {
	all
	child iterator
}

// matches reports whether the child matches the present document.
func (o *optional) matches() bool { return o.child.seek(o.at) == o.at }

func (o *optional) rewind() { o.at = 0; o.child.rewind() }

// listed is documents that are known by their numbers. They do not score.
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
