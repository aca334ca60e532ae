package plan

import "slices"

// Estimate estimates the number of matches; it is rarely too low.
func (p *Plan) Estimate() int { return min(p.root.estimate(), p.docs.Len()) }

// Work estimates how many documents must be visited for all matches. It is 0 if the first matches in the order of
// Options.SortBy are found without visiting the others.
func (p *Plan) Work() int {
	if _, known := p.known(); known && p.sorted != nil {
		return 0
	}
	return work(p.root)
}

// CountWork is Work for Count.
func (p *Plan) CountWork() int {
	if _, known := p.known(); known {
		return 0
	}
	return p.Work()
}

// work estimates how many documents an iterator and those below it visit.
func work(it iterator) (n int) {
	switch it := bare(it).(type) {
	case *union:
		for _, c := range it.children {
			n += work(c)
		}
		return n
	case *intersect:
		least := it.estimate()
		for _, c := range it.children {
			if r, ok := bare(c).(*ranges); ok && !slices.Contains(it.filters, r) {
				n += work(r) // the ranges are collected first
			} else {
				n += min(work(c), least)
			}
		}
		return n
	case *ranges:
		if it.keep != nil {
			return placeWork * it.count
		}
	case *not:
		return it.estimate() + work(it.child)
	case *optional:
		return it.estimate() + work(it.child)
	case *knn:
		if it.filter != nil {
			n = it.filter.estimate()
		}
	}
	return n + it.estimate()
}

// placeWork is the number of documents that take as long as checking whether a place is in a circle.
const placeWork = 2

// width returns how many iterators there are.
func width(it iterator) int {
	n := 1
	switch it := bare(it).(type) {
	case *union:
		for _, c := range it.children {
			n += width(c)
		}
	case *intersect:
		for _, c := range it.children {
			n += width(c)
		}
	case *not:
		n += width(it.child)
	case *optional:
		n += width(it.child)
	}
	return n
}
