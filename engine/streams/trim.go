// Trimming: removing entries from the start.

package streams

// References says what becomes of the consumer groups that still refer to an entry that is to be removed.
type References uint8

// Outcomes of trimming.
const (
	KeepReferences   References = iota // what is pending stays pending
	DeleteReferences                   // it is not pending any more, in any group
	OnlyAcknowledged                   // entries that some group still needs are not removed
)

// DefaultTrimLimit returns how many entries an approximate trim may remove if
// the command has no LIMIT.
func (lim Limits) DefaultTrimLimit() int {
	n := 100 * min(lim.Entries, 10_000)
	if n <= 0 {
		n = 10_000
	}
	return n
}

// Trim says how to trim. The zero value removes everything that is asked for, and keeps references.
type Trim struct {
	// Approx removes entries only from blocks of which none has to stay, so that more may be left.
	Approx bool
	// Limit, if it is positive, has the trim end before a block with which more entries would go.
	Limit int
	// References says what becomes of groups that refer to what goes.
	References References
}

// TrimByLength removes entries from the start until maxLen are left, and
// returns the number removed.
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

// trim removes blocks while whole allows it, and then, unless approximately, entries until keep, which is told how
// many there are at that time. It stops before all of that when done.
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

// ackBlock ends that the entries of a block are pending.
func (s *Stream) ackBlock(b *block) {
	b.ascend(MinID, MaxID, func(e Entry) bool {
		s.AckAll(e.ID)
		return true
	})
}

// trimAcknowledged is trim for entries that no group needs; those that are needed are passed over. Unless it is
// approximate, which entries go does not depend on blocks: the first ones that may.
func (s *Stream) trimAcknowledged(how Trim, done func() bool, whole func(*block) bool,
	keep func(id ID, length int) bool) (removed int) {
	given := s.givenToAll()
	var scratch [8]ID
	gone := scratch[:0] // of one block
	var hole ID         // the last one that went from behind an entry that stays
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

// givenToAll returns the last ID up to which all groups have been given the entries; there must be a group. Nothing
// behind it can be acknowledged.
func (s *Stream) givenToAll() ID {
	given := MaxID
	for _, g := range s.groups {
		if g.LastID.Less(given) {
			given = g.LastID
		}
	}
	return given
}
