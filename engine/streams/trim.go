// Trimming: removing entries from the start.

package streams

// DefaultTrimLimit returns how many entries an approximate trim may remove if
// the command has no LIMIT.
func (lim Limits) DefaultTrimLimit() int {
	n := 100 * min(lim.Entries, 10_000)
	if n <= 0 {
		n = 10_000
	}
	return n
}

// TrimByLength removes entries from the start until maxLen are left, and
// returns the number removed. With approx only whole blocks go, so that more
// may be left. At most limit entries go, and then whole blocks only; zero is
// no limit.
func (s *Stream) TrimByLength(maxLen int, approx bool, limit int) int {
	return s.trim(approx, limit,
		func() bool { return s.length <= maxLen },
		func(b *block) bool { return s.length-int(b.live) >= maxLen },
		func(slot) bool { return s.length <= maxLen })
}

// TrimByMinID removes the entries before min, and returns the number removed.
// approx and limit are as in TrimByLength.
func (s *Stream) TrimByMinID(min ID, approx bool, limit int) int {
	return s.trim(approx, limit,
		func() bool { return false },
		func(b *block) bool { return b.last.Less(min) },
		func(at slot) bool { return !at.id.Less(min) })
}

// trim removes blocks while whole allows it, and then, unless approx, entries
// of the next block until keep. It stops before all of that when done.
func (s *Stream) trim(approx bool, limit int, done func() bool, whole func(*block) bool, keep func(slot) bool) int {
	removed := 0
	for s.length > 0 && !done() {
		p, b := s.blocks.first(), s.head()
		live := int(b.live)
		if limit > 0 && removed+live > limit {
			break
		}
		if whole(b) {
			removed += live
			s.length -= live
			s.drop(p)
			continue
		}
		if approx {
			break
		}
		for ; live > 0 && !keep(b.first()); live-- {
			s.remove(p, b.first())
			removed++
		}
		break
	}
	return removed
}
