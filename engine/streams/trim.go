// Trimming: removing entries from the start.

package streams

// References says how to treat consumer groups that still refer to a removed entry.
type References uint8

// The ways to treat references.
const (
	KeepReferences   References = iota // pending entries stay pending
	DeleteReferences                   // they stop being pending in all groups
	OnlyAcknowledged                   // entries that some group still needs stay
)

// DefaultTrimLimit returns how many entries an approximate trim may remove if the command has no LIMIT.
func (lim Limits) DefaultTrimLimit() int {
	n := 100 * min(lim.Entries, 10_000)
	if n <= 0 {
		n = 10_000
	}
	return n
}

// Trim says how to trim. The zero value trims exactly, without a limit, and keeps references.
type Trim struct {
	// Approx removes only blocks of which no entry must stay, so more entries may be left.
	Approx bool
	// Limit, if positive, ends the trim before a block that would exceed this number of removed entries.
	Limit int
	// References says how to treat groups that refer to removed entries.
	References References
}

// TrimByLength removes entries from the start until maxLen are left, and returns the number removed.
func (s *Stream) TrimByLength(maxLen int, how Trim) int {
	return s.trim(how,
		func() bool { return s.length <= maxLen },
		func(b *block) bool { return s.length-int(b.live) >= maxLen },
		func(_ ID, length int) bool { return length <= maxLen })
}

// TrimByMinID removes the entries before min, and returns the number removed.
func (s *Stream) TrimByMinID(min ID, how Trim) int {
	return s.trim(how,
		func() bool { return false },
		func(b *block) bool { return b.last.Less(min) },
		func(id ID, _ int) bool { return !id.Less(min) })
}

// trim removes blocks while whole returns true, and then, unless Approx, entries until keep returns true for one; keep
// gets the present length. It stops early once done returns true.
func (s *Stream) trim(how Trim, done func() bool, whole func(*block) bool,
	keep func(id ID, length int) bool) (removed int) {
	switch {
	case len(s.groups) == 0:
		how.References = KeepReferences
	case how.References == OnlyAcknowledged:
		return s.trimAcknowledged(how, done, whole, keep)
	}
	release := how.References == DeleteReferences
	for s.length > 0 && !done() {
		p, b := s.blocks.first(), s.head()
		live := int(b.live)
		if how.Limit > 0 && removed+live > how.Limit {
			break
		}
		if whole(b) {
			if release {
				s.ackBlock(b)
			}
			removed += live
			s.length -= live
			s.drop(p)
			continue
		}
		if how.Approx {
			break
		}
		for ; live > 0 && !keep(b.first().id, s.length); live-- {
			if release {
				s.AckAll(b.first().id)
			}
			s.remove(p, b.first())
			removed++
		}
		break
	}
	return removed
}

// ackBlock removes the pending entries of a block from all groups.
func (s *Stream) ackBlock(b *block) {
	b.ascend(MinID, MaxID, func(e Entry) bool {
		s.AckAll(e.ID)
		return true
	})
}

// trimAcknowledged is trim for entries that no group needs; needed ones are skipped. Unless approximate, it removes the
// first possible entries, whatever their blocks.
func (s *Stream) trimAcknowledged(how Trim, done func() bool, whole func(*block) bool,
	keep func(id ID, length int) bool) (removed int) {
	given := s.givenToAll()
	var scratch [8]ID
	gone := scratch[:0] // in one block
	var hole ID         // the last one removed after an entry that stays
	passed := false
	for p := s.blocks.first(); s.blocks.valid(p) && !done(); {
		b := s.blocks.at(p)
		base, live, eligible := b.base, int(b.live), whole(b)
		if given.Less(b.first().id) || how.Limit > 0 && removed+live > how.Limit || how.Approx && !eligible {
			break
		}
		gone = gone[:0]
		end := !b.ascend(MinID, given, func(e Entry) bool {
			if keep(e.ID, s.length-len(gone)) {
				return false
			}
			if s.Needed(e.ID) {
				passed = true
				return true
			}
			if gone = append(gone, e.ID); passed {
				hole = e.ID
			}
			return true
		})
		removed += len(gone)
		if len(gone) == live {
			s.length -= live
			s.drop(p)
			p = s.blocks.ceil(base)
		} else {
			for _, id := range gone {
				at, in, _ := s.find(id)
				s.remove(at, in)
			}
			p = s.blocks.next(p)
		}
		if end {
			break
		}
	}
	if s.maxDeletedID.Less(hole) {
		s.note(metaPart)
		s.maxDeletedID = hole
	}
	return removed
}

// givenToAll returns the last ID up to which all groups have received the entries; there must be a group. Nothing after
// it can be acknowledged.
func (s *Stream) givenToAll() ID {
	given := MaxID
	for _, g := range s.groups {
		if g.LastID.Less(given) {
			given = g.LastID
		}
	}
	return given
}
