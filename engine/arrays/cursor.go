package arrays

import (
	"bytes"
	"math"
	"slices"
)

// This file has the cursor: where Insert and Ring write, and LastItems begins.

// Next returns the index where Insert writes next, MaxIndex+1 if there is none left.
func (a *Array) Next() uint64 {
	if !a.inserted {
		return 0
	}
	return a.last + 1
}

// Seek makes Insert write at an index next, up to MaxIndex+1, at which it cannot.
func (a *Array) Seek(next uint64) {
	a.noteCursor()
	a.last, a.inserted = 0, next > 0
	if next > 0 {
		a.last = next - 1
	}
}

// MayInsert reports whether there are indices left for n more elements.
func (a *Array) MayInsert(n int) bool { return uint64(n) <= MaxIndex+1-a.Next() }

// Insert stores elements, at least one, at the cursor, and returns the index of the last one. MayInsert must have
// returned true.
func (a *Array) Insert(values [][]byte) (last uint64) {
	for _, v := range values {
		a.write(a.Next(), v)
	}
	return a.last
}

// write stores an element, behind which the cursor is then.
func (a *Array) write(index uint64, v []byte) {
	a.Set(index, v)
	a.Seek(index + 1)
}

// Ring stores elements, at least one, at the cursor modulo size, which must be positive, and returns the index of the
// last one. An array of another length becomes a ring of that size first: of those that were written last, and without
// a gap between them, as many as find room move to the beginning, and all others go. An array that is shorter, and in
// which the cursor has not yet come back to the beginning, just has room to grow.
func (a *Array) Ring(size uint64, values [][]byte) (last uint64) {
	if n := a.Len(); size < n || size > n && a.inserted && a.Next() < n {
		a.repack(size)
	}
	for _, v := range values {
		a.write(a.Next()%size, v)
	}
	return a.last
}

// repack makes the array a ring of a size: see Ring.
func (a *Array) repack(size uint64) {
	var kept [][]byte // the newest first
	a.back(math.MaxUint64, func(v []byte, ok bool) bool {
		if ok {
			kept = append(kept, bytes.Clone(v))
		}
		return ok && uint64(len(kept)) < size
	})
	a.DeleteRange(0, MaxIndex)
	a.Seek(0)
	slices.Reverse(kept)
	for _, v := range kept {
		a.write(a.Next(), v)
	}
}

// back calls fn with what is at up to count indices, backward from the element that was written last, or the last one
// if that is gone or unknown; behind index 0 comes the end. It stops after a round, or when fn returns false.
func (a *Array) back(count uint64, fn func(v []byte, ok bool) bool) {
	n := a.Len()
	index := a.newest()
	for range min(count, n) {
		if !fn(a.Get(index)) {
			return
		}
		if index == 0 {
			index = n
		}
		index--
	}
}

// newest returns the index at which back begins.
func (a *Array) newest() uint64 {
	if n := a.Len(); !a.inserted || a.last >= n {
		return n - 1 // of no meaning if n is 0
	}
	return a.last
}

// LastItems calls fn with what is at the count indices that were written last, as back finds them, or as many as the
// array has: the oldest first, unless newestFirst. ok is false for an index without an element.
func (a *Array) LastItems(count uint64, newestFirst bool, fn func(v []byte, ok bool)) {
	if newestFirst {
		a.back(count, func(v []byte, ok bool) bool {
			fn(v, ok)
			return true
		})
		return
	}
	n := a.Len()
	if count = min(count, n); count == 0 {
		return
	}
	index, before := a.newest(), count-1
	if index >= before {
		index -= before
	} else {
		index = n - (before - index)
	}
	for range count {
		fn(a.Get(index))
		if index++; index == n {
			index = 0
		}
	}
}
