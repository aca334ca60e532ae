package postings

// A list is rewritten when a quarter of its entries are dead, and more than a few. Each Remove rewrites some entries,
// between other changes, so that no change waits for all of a long list.

const (
	fewDead   = 16            // dead entries that are never worth a rewrite
	sweepStep = 4 * blockSize // entries that one Remove rewrites
)

// sweep is the rewriting of a list.
type sweep struct {
	from Reader // iterates over a view of the list
	to   *List  // the entries that were alive when from passed them
}

// Remove records that a document of the list has died. A rewrite calls alive for each document.
func (l *List) Remove(alive func(doc uint64) bool) {
	l.live--
	if l.live == 0 {
		l.more, l.entries, l.offsets, l.tailN, l.fields = nil, 0, 0, 0, 0
		l.setTail(nil)
		return
	}
	var s *sweep
	if l.more != nil {
		s = l.more.sweep
	}
	if s == nil {
		dead := l.entries - l.live
		if dead < fewDead || dead < l.entries/4 {
			return
		}
		s = &sweep{to: New(l.keep)}
		s.from.Reset(l.View())
		if l.more != nil {
			l.more.sweep = s
		}
	}
	if !s.copy(l, alive, sweepStep) {
		return
	}
	s.to.live = l.live
	*l = *s.to
}

// copy copies about max entries of the list, without dead ones. It reports whether it has reached the list's present
// end.
func (s *sweep) copy(l *List, alive func(doc uint64) bool, max int) bool {
	if s.from.i >= s.from.n { // at the end of the view
		at := s.from.doc
		s.from.Reset(l.View())
		if s.from.Seek(at + 1); s.from.i >= s.from.n {
			return true
		}
		s.keep(alive)
	}
	for range max {
		if !s.from.Next() {
			return s.from.doc == l.last
		}
		s.keep(alive)
	}
	return false
}

// keep copies the present entry if its document is alive.
func (s *sweep) keep(alive func(doc uint64) bool) {
	r := &s.from
	if alive(r.doc) {
		s.to.add(Entry{Doc: r.doc, Freq: r.Freq(), Mask: r.Mask(), Offsets: r.Offsets()})
	}
}
