package arrays

import (
	"slices"
	"sort"
)

// This file finds pages. They are grouped; pages and groups are in the order of their numbers.

const (
	// groupPages is the maximum number of pages in a group.
	groupPages = 512
	// slicePages is the number of pages in what Info calls a slice, which begins at a multiple of it.
	slicePages = 16
)

// group has at least one page, except while pages are removed.
type group struct {
	first uint64 // at most the lowest page number here, and above all numbers of the group before
	pages []*page
}

// cursor is the position of a page.
type cursor struct {
	a *Array
	// The page and its group. Past either end, group is none.
	group, page int
}

// at returns the page at a cursor, nil if there is none.
func (a *Array) at(c cursor) *page {
	if c.group < 0 || c.group >= len(a.groups) {
		return nil
	}
	return a.groups[c.group].pages[c.page]
}

// next advances by a page.
func (c *cursor) next() {
	if c.page++; c.page == len(c.a.groups[c.group].pages) {
		c.group, c.page = c.group+1, 0
	}
}

// back goes back by a page.
func (c *cursor) back() {
	if c.page--; c.page < 0 {
		if c.group--; c.group >= 0 {
			c.page = len(c.a.groups[c.group].pages) - 1
		}
	}
}

// groupOf returns the group that has or would have a page with this number.
func (a *Array) groupOf(number uint64) int {
	g := sort.Search(len(a.groups), func(i int) bool { return a.groups[i].first > number })
	return max(g-1, 0)
}

// indexOf returns the index in the group that a page with this number has or would have.
func (g *group) indexOf(number uint64) int {
	return sort.Search(len(g.pages), func(i int) bool { return g.pages[i].number >= number })
}

// seek returns the position of the first page with this number or a greater one.
func (a *Array) seek(number uint64) cursor {
	if len(a.groups) == 0 {
		return cursor{a: a}
	}
	c := cursor{a: a, group: a.groupOf(number)}
	g := &a.groups[c.group]
	if c.page = g.indexOf(number); c.page == len(g.pages) {
		c.group, c.page = c.group+1, 0
	}
	return c
}

// page returns the page with a number, nil if there is none.
func (a *Array) page(number uint64) *page {
	if p := a.at(a.seek(number)); p != nil && p.number == number {
		return p
	}
	return nil
}

// insert adds a page.
func (a *Array) insert(p *page) {
	a.pages++
	a.memory += p.memory()
	if !a.hasSlice(p.number / slicePages) {
		a.slices++
	}
	if len(a.groups) == 0 {
		a.groups = append(a.groups, group{p.number, []*page{p}})
		return
	}
	at := a.groupOf(p.number)
	g := &a.groups[at]
	i := g.indexOf(p.number)
	if len(g.pages) == groupPages {
		if i == groupPages && at == len(a.groups)-1 { // appending leaves full groups behind
			a.groups = append(a.groups, group{p.number, []*page{p}})
			return
		}
		half := g.pages[groupPages/2:]
		a.groups = slices.Insert(a.groups, at+1, group{half[0].number, slices.Clone(half)})
		g = &a.groups[at]
		clear(half)
		g.pages = g.pages[:groupPages/2]
		if p.number >= a.groups[at+1].first {
			g, i = &a.groups[at+1], i-groupPages/2
		}
	}
	g.pages = slices.Insert(g.pages, i, p)
	g.first = min(g.first, p.number)
}

// hasSlice reports whether a slice has pages.
func (a *Array) hasSlice(slice uint64) bool {
	p := a.at(a.seek(slice * slicePages))
	return p != nil && p.number/slicePages == slice
}

// removeEmpty removes the pages without elements between two numbers.
func (a *Array) removeEmpty(from, to uint64) {
	first := a.groupOf(from)
	last := min(a.groupOf(to), len(a.groups)-1)
	for i := first; i <= last; i++ {
		g := &a.groups[i]
		g.pages = slices.DeleteFunc(g.pages, func(p *page) bool {
			if p.empty() {
				a.pages--
				a.memory -= p.memory()
			}
			return p.empty()
		})
		if len(g.pages) > 0 && len(g.pages) < cap(g.pages)/4 {
			g.pages = slices.Clone(g.pages)
		}
	}
	n := first
	for i := first; i <= last; i++ {
		if len(a.groups[i].pages) > 0 {
			a.groups[n] = a.groups[i]
			n++
		}
	}
	a.groups = slices.Delete(a.groups, n, last+1)
	if len(a.groups) < cap(a.groups)/4 {
		a.groups = slices.Clone(a.groups)
	}
}
