package zsets

// This file finds and removes members by rank, score and name. Ranges of scores and names are converted to ranges of
// ranks first, so that there is one way to walk and one to remove.

// ScoreRange is the scores from Min to Max; MinEx and MaxEx exclude the bound itself. A bound may be infinite, but not
// NaN.
type ScoreRange struct {
	Min, Max     float64
	MinEx, MaxEx bool
}

// LexBound is an end of a range of names.
type LexBound struct {
	Kind   LexKind
	Member []byte // for Inclusive and Exclusive
}

// LexKind says how a LexBound bounds.
type LexKind int8

// The kinds of bounds, with their notation in commands.
const (
	LexMin    LexKind = iota // "-": before every name
	LexMax                   // "+": after every name
	Inclusive                // "[name"
	Exclusive                // "(name"
)

// LexRange is the names from Min to Max. It is meant for sets with equal scores; in other sets the result is
// unspecified.
type LexRange struct{ Min, Max LexBound }

// span is a range of ranks: from (included) to (excluded).
type span struct{ from, to int }

func (s span) len() int { return max(s.to-s.from, 0) }

// ranks limits a range of ranks to those that exist.
func (z *ZSet) ranks(start, stop int) span {
	start, stop = max(start, 0), min(stop, z.Len()-1)
	if start > stop {
		return span{}
	}
	return span{start, stop + 1}
}

// scored returns the ranks of a range of scores.
func (z *ZSet) scored(r ScoreRange) span {
	first := func(reached func(score float64) bool) int {
		if l := z.large(); l != nil {
			return l.order.first(func(it *item) bool { return reached(it.score) })
		}
		return z.firstSmall(func(_ []byte, score float64) bool { return reached(score) })
	}
	return span{
		first(func(score float64) bool { return score > r.Min || score == r.Min && !r.MinEx }),
		first(func(score float64) bool { return score > r.Max || score == r.Max && r.MaxEx }),
	}
}

// named returns the ranks of a range of names.
func (z *ZSet) named(r LexRange) span {
	first := func(reached func(name string) bool) int {
		if l := z.large(); l != nil {
			return l.order.first(func(it *item) bool { return reached(it.member.Key()) })
		}
		return z.firstSmall(func(name []byte, _ float64) bool { return reached(text(name)) })
	}
	return span{first(r.Min.begins), first(r.Max.ended)}
}

// begins reports whether a name is at or after the lower bound b.
func (b LexBound) begins(name string) bool {
	switch b.Kind {
	case Inclusive:
		return name >= text(b.Member)
	case Exclusive:
		return name > text(b.Member)
	}
	return b.Kind == LexMin
}

// ended reports whether a name is after the upper bound b.
func (b LexBound) ended(name string) bool {
	switch b.Kind {
	case Inclusive:
		return name > text(b.Member)
	case Exclusive:
		return name >= text(b.Member)
	}
	return b.Kind == LexMin
}

// firstSmall returns the rank of the first member of a small set for which reached returns true, Len if there is none.
func (z *ZSet) firstSmall(reached func(member []byte, score float64) bool) int {
	rank := 0
	for p := z.small.First(); p >= 0; rank++ {
		var member []byte
		var score float64
		if member, score, p = z.pair(p); reached(member, score) {
			break
		}
	}
	return rank
}

// RangeByRank calls fn with the members of rank start to stop, both included, until fn returns false.
// In reverse, ranks count from the highest member, and the walk goes down. The part of the range
// outside the set is ignored.
func (z *ZSet) RangeByRank(start, stop int, reverse bool, fn func(member []byte, score float64) bool) {
	s := z.ranks(start, stop)
	if reverse {
		s = span{z.Len() - s.to, z.Len() - s.from}
	}
	z.walk(s, reverse, fn)
}

// RangeByScore calls fn with the members whose scores are in the range, ascending, or descending if reverse, until fn
// returns false. It skips the first offset ones and stops after limit; a negative limit is no limit. A negative offset
// finds nothing.
func (z *ZSet) RangeByScore(r ScoreRange, reverse bool, offset, limit int, fn func(member []byte, score float64) bool) {
	z.walk(z.scored(r).part(reverse, offset, limit), reverse, fn)
}

// RangeByLex is RangeByScore for names.
func (z *ZSet) RangeByLex(r LexRange, reverse bool, offset, limit int, fn func(member []byte, score float64) bool) {
	z.walk(z.named(r).part(reverse, offset, limit), reverse, fn)
}

// CountByScore returns the number of members in the range.
func (z *ZSet) CountByScore(r ScoreRange) int { return z.scored(r).len() }

// CountByLex returns the number of members in the range.
func (z *ZSet) CountByLex(r LexRange) int { return z.named(r).len() }

// RemoveRangeByRank removes the members of rank start to stop, both included, and returns their number. If fn is not
// nil, it is first called with each of them, ascending; the view is valid until fn returns.
func (z *ZSet) RemoveRangeByRank(start, stop int, fn func(member []byte, score float64)) int {
	return z.remove(z.ranks(start, stop), fn)
}

// RemoveRangeByScore is RemoveRangeByRank for a range of scores.
func (z *ZSet) RemoveRangeByScore(r ScoreRange, fn func(member []byte, score float64)) int {
	return z.remove(z.scored(r), fn)
}

// RemoveRangeByLex is RemoveRangeByRank for a range of names.
func (z *ZSet) RemoveRangeByLex(r LexRange, fn func(member []byte, score float64)) int {
	return z.remove(z.named(r), fn)
}

// PopMin removes the count lowest members and returns how many it removed. It calls fn with each of them, ascending;
// the view is valid until fn returns.
func (z *ZSet) PopMin(count int, fn func(member []byte, score float64)) int {
	return z.remove(span{0, min(count, z.Len())}, fn)
}

// PopMax removes the count highest members and returns how many it removed. It calls fn with each of them, descending;
// the view is valid until fn returns.
func (z *ZSet) PopMax(count int, fn func(member []byte, score float64)) int {
	s := span{z.Len() - max(0, min(count, z.Len())), z.Len()}
	z.walk(s, true, func(member []byte, score float64) bool {
		fn(member, score)
		return true
	})
	return z.remove(s, nil)
}

// part returns the rest of a span after an offset and with a limit, counted from the end where a walk starts.
func (s span) part(reverse bool, offset, limit int) span {
	n := s.len()
	if offset < 0 || offset >= n {
		return span{}
	}
	n -= offset
	if limit >= 0 {
		n = min(n, limit)
	}
	if reverse {
		return span{s.to - offset - n, s.to - offset}
	}
	return span{s.from + offset, s.from + offset + n}
}

// walk calls fn with the members in s.
func (z *ZSet) walk(s span, reverse bool, fn func(member []byte, score float64) bool) {
	todo := s.len()
	if todo == 0 {
		return
	}
	start := s.from
	if reverse {
		start = s.to - 1
	}
	if l := z.large(); l != nil {
		visit := func(it *item) bool {
			todo--
			return fn(it.member.name(), it.score) && todo > 0
		}
		if reverse {
			l.order.root.descend(start, visit)
		} else {
			l.order.root.ascend(start, visit)
		}
		return
	}
	for p := z.seek(start); todo > 0; todo-- {
		member, score, next := z.pair(p)
		if reverse {
			next = z.before(p)
		}
		if !fn(member, score) {
			return
		}
		p = next
	}
}

// remove removes the members in s. If fn is not nil, it is called with each of them before.
func (z *ZSet) remove(s span, fn func(member []byte, score float64)) int {
	n := s.len()
	if n == 0 {
		return 0
	}
	if l := z.large(); l != nil {
		l.order.remove(s.from, n, func(it item) {
			name := it.member.name()
			l.log.Before(name, z)
			l.members.Delete(name)
			l.bytes -= it.member.size()
			l.log.After(it.member.Key(), l.members.Len())
			if fn != nil {
				fn(name, it.score)
			}
		})
		return n
	}
	if fn != nil {
		z.walk(s, false, func(member []byte, score float64) bool {
			fn(member, score)
			return true
		})
	}
	z.small.Delete(z.seek(s.from), 2*n)
	return n
}
