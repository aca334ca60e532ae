package sets

import "slices"

// Set algebra. A nil *Set among the operands is an empty set.

// Intersect calls fn for the members that all sets share, and stops after limit of them if limit is above 0. It walks
// the smallest set. A member is valid during the call.
func Intersect(sets []*Set, limit int, fn func(member []byte)) {
	if len(sets) == 0 {
		return
	}
	sets = slices.Clone(sets)
	slices.SortStableFunc(sets, func(a, b *Set) int { return a.Len() - b.Len() })
	found := 0
	for member := range sets[0].All() {
		if !slices.ContainsFunc(sets[1:], func(s *Set) bool { return !s.Contains(member) }) {
			fn(member)
			if found++; found == limit {
				return
			}
		}
	}
}

// CountUnion returns the number of members of the union of the sets, but at most limit if that is above 0.
func CountUnion(sets []*Set, limit int, lim Limits) int {
	union, largest := new(Set), 0
	for _, s := range sets {
		largest = max(largest, s.Len())
	}
	if limit > 0 && largest >= limit {
		return limit
	}
	for _, s := range sets {
		for member := range s.All() {
			if union.Add(member, lim); limit > 0 && union.Len() == limit {
				return limit
			}
		}
	}
	return union.Len()
}

// Union returns a new set of all members of the sets.
func Union(sets []*Set, lim Limits) *Set {
	union := new(Set)
	for _, s := range sets {
		for member := range s.All() {
			union.Add(member, lim)
		}
	}
	return union
}

// Difference calls fn for the members of the first set that are in none of the others, and stops after limit of them if
// limit is above 0. A member is valid during the call. It chooses the cheaper of two ways: looking up the first set's
// members in all others, or removing the others' members from a copy of the first.
func Difference(sets []*Set, limit int, fn func(member []byte)) {
	if len(sets) == 0 || sets[0].Len() == 0 {
		return
	}
	found := 0
	first, others := sets[0], slices.Clone(sets[1:])
	total := 0
	for _, s := range others {
		total += s.Len()
	}
	// A lookup costs half of a removal, and the largest sets are likely to decide it early.
	if first.Len()*len(others)/2 <= first.Len()+total {
		slices.SortStableFunc(others, func(a, b *Set) int { return b.Len() - a.Len() })
		for member := range first.All() {
			if !slices.ContainsFunc(others, func(s *Set) bool { return s.Contains(member) }) {
				fn(member)
				if found++; found == limit {
					return
				}
			}
		}
		return
	}
	rest := first.Clone()
	for _, s := range others {
		for member := range s.All() {
			rest.Remove(member)
		}
	}
	for member := range rest.All() {
		fn(member)
		if found++; found == limit {
			return
		}
	}
}
