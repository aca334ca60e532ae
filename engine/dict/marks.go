package dict

// marks has a bit for every element of a Table.
type marks struct {
	bits  []uint64
	round uint32
}

// Mark marks element number i, which must be from 0 to Len-1, and reports whether it was not marked yet. The element
// is marked until it is deleted, or until Mark is called with another round: then no element is marked but that one.
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

// Unmark takes the marks off all elements.
func (t *Table[E]) Unmark() { t.marks = marks{} }

// move gives element to, which goes, the mark of element from, which takes its number: from is to, or a higher number.
func (m *marks) move(from, to int) {
	marked := m.take(from)
	m.take(to)
	if marked && from != to {
		m.bits[to/64] |= 1 << (to % 64)
	}
}

// take takes the mark off element i, and says whether it had one.
func (m *marks) take(i int) bool {
	word, bit := i/64, uint64(1)<<(i%64)
	if word >= len(m.bits) {
		return false
	}
	marked := m.bits[word]&bit != 0
	m.bits[word] &^= bit
	return marked
}
