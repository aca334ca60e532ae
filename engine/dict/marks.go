package dict

// marks has a bit for every element of a Table.
type marks struct {
	bits  []uint64
	round uint32
}

// Mark marks element i, which must be from 0 to Len-1, and reports whether it was unmarked. The mark lasts until the
// element is deleted, or until Mark is called with another round, which removes all earlier marks.
func (t *Table[E]) Mark(i int, round uint32) (first bool) {
	m := &t.marks
	if m.round != round {
		clear(m.bits)
		m.round = round
	}
	word, bit := i/64, uint64(1)<<(i%64)
	if word >= len(m.bits) {
		m.bits = append(m.bits, make([]uint64, word+1-len(m.bits))...)
	}
	first = m.bits[word]&bit == 0
	m.bits[word] |= bit
	return first
}

// Unmark removes all marks.
func (t *Table[E]) Unmark() { t.marks = marks{} }

// move transfers the mark of element from to element to, whose number it takes: from equals to or is higher.
func (m *marks) move(from, to int) {
	marked := m.take(from)
	m.take(to)
	if marked && from != to {
		m.bits[to/64] |= 1 << (to % 64)
	}
}

// take removes the mark of element i and reports whether it had one.
func (m *marks) take(i int) bool {
	word, bit := i/64, uint64(1)<<(i%64)
	if word >= len(m.bits) {
		return false
	}
	marked := m.bits[word]&bit != 0
	m.bits[word] &^= bit
	return marked
}
