package cluster

import (
	"iter"
	"math/bits"
)

// SlotSet is a set of slots. The zero value is empty.
type SlotSet [Slots / 64]uint64

// AllSlots has all of them.
var AllSlots = func() (s SlotSet) {
	s.AddRange(Range{0, Slots - 1})
	return s
}()

// Has reports whether a slot is in the set; NoSlot never is.
func (s *SlotSet) Has(slot int) bool { return slot >= 0 && s[slot/64]>>(slot%64)&1 != 0 }

// Add adds a slot.
func (s *SlotSet) Add(slot int) { s[slot/64] |= 1 << (slot % 64) }

// Remove takes a slot out.
func (s *SlotSet) Remove(slot int) { s[slot/64] &^= 1 << (slot % 64) }

// AddRange adds slots that follow each other.
func (s *SlotSet) AddRange(r Range) {
	for slot := r.First; slot <= r.Last; slot++ {
		s.Add(slot)
	}
}

// Len returns how many slots there are.
func (s *SlotSet) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Empty reports whether there is none.
func (s *SlotSet) Empty() bool { return *s == SlotSet{} }

// All returns the slots in order.
func (s *SlotSet) All() iter.Seq[int] {
	return func(yield func(slot int) bool) {
		for slot := range Slots {
			if s.Has(slot) && !yield(slot) {
				return
			}
		}
	}
}

// Ranges returns the slots in their order, as ranges that do not touch.
func (s *SlotSet) Ranges() (list []Range) {
	for slot := 0; slot < Slots; slot++ {
		if s[slot/64] == 0 {
			slot |= 63
			continue
		}
		if !s.Has(slot) {
			continue
		}
		r := Range{slot, slot}
		for r.Last+1 < Slots && s.Has(r.Last+1) {
			r.Last++
		}
		list = append(list, r)
		slot = r.Last
	}
	return list
}

// Union returns the slots that are in one of two sets.
func (s *SlotSet) Union(o *SlotSet) (u SlotSet) {
	for i := range s {
		u[i] = s[i] | o[i]
	}
	return u
}

// Both returns the slots that are in both sets.
func (s *SlotSet) Both(o *SlotSet) (u SlotSet) {
	for i := range s {
		u[i] = s[i] & o[i]
	}
	return u
}

// Without returns the slots that are not in another set.
func (s *SlotSet) Without(o *SlotSet) (u SlotSet) {
	for i := range s {
		u[i] = s[i] &^ o[i]
	}
	return u
}

// SetOf returns the slots of ranges.
func SetOf(ranges ...Range) (s SlotSet) {
	for _, r := range ranges {
		s.AddRange(Range{max(r.First, 0), min(r.Last, Slots-1)})
	}
	return s
}
