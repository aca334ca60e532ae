package rdb

// This file has the forms of collections whose elements expire: hashes and sets.

// maxElementDeadline is the latest time at which an element can expire, in ms since 1970.
const maxElementDeadline = 1<<48 - 1

// noElementExpires stands for the earliest deadline of a collection without deadlines.
const noElementExpires = maxElementDeadline + 1

// checkElementDeadline returns an error for a time at which no element can expire. 0 is never.
func checkElementDeadline(at int64) error {
	if at < 0 || at > maxElementDeadline {
		return corrupt("an element that expires at %d", at)
	}
	return nil
}

// expiring calls fn for each element of a collection, with its deadline, to read the element. The deadline stands before
// the element: as a time, or with relative, the form since Redis 7.4, relative to one millisecond before the earliest
// deadline, which comes first.
func (d *decoder) expiring(relative bool, fn func(at int64) error) error {
	base := int64(0)
	if relative {
		first, err := d.millis()
		if err != nil {
			return err
		}
		if first != noElementExpires {
			if err := checkElementDeadline(first); err != nil {
				return err
			}
		}
		base = first - 1
	}
	return d.elements(func() error {
		defer d.recycle()
		n, err := d.length()
		if err != nil {
			return err
		}
		at := int64(n)
		if err := checkElementDeadline(at); err != nil { // as the sum could overflow; fn checks that
			return err
		}
		if at != 0 {
			at += base
		}
		return fn(at)
	})
}

// expiringPack calls fn for each element of a small collection to read it from a listpack. With relative, the form since
// Redis 7.4, the earliest deadline stands before.
func (d *decoder) expiringPack(relative bool, fn func(p *packed) error) error {
	if relative {
		if _, err := d.millis(); err != nil {
			return err
		}
	}
	return d.packed(listpack, fn)
}

// elementDeadline writes the deadline of an element, 0 for none, relative to the earliest one.
func (e *Encoder) elementDeadline(first, at int64) {
	after := uint64(0)
	if at != 0 {
		after = uint64(at - first + 1)
	}
	e.length(after)
}
