package arrays

import (
	"bytes"
	"math"
	"slices"
)

// This file has the cursor: where Insert and Ring write, and where LastItems begins.

// Next returns the index where Insert writes next, MaxIndex+1 if there is none left.
func (a *Array) Next() uint64 {
	if !a.inserted {
		return 0
	}
	return a.last + 1
}

// Seek makes Insert write at index next, which is at most MaxIndex+1; there Insert has no room.
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

// write stores an element and moves the cursor to its index.
func (a *Array) write(index uint64, v []byte) {
	a.Set(index, v)
	a.Seek(index + 1)
}

// Ring stores elements, at least one, at the cursor modulo size, which must be positive, and returns the index of the
// last one. An array of another length first becomes a ring of that size: the elements written last, up to the first
// gap, move to the beginning as far as they fit, and all others are deleted. A shorter array whose cursor has not yet
// wrapped around just grows.
func (a *Array) Ring(size uint64, values [][]byte) (last uint64) {
	if n := a.Len(); size < n || size > n && a.inserted && a.Next() < n {
		a.repack(size)
	}
	for _, v := range values {
		a.write(a.Next()%size, v)
	}
	return a.last
}

// repack makes the array a ring of the given size: see Ring.
func (a *Array) repack(size uint64) {
	var kept [][]byte // newest first
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

// back calls fn with the content of up to count indices, backward from the element written last, or from the last
// element if that is gone or unknown. After index 0 it continues at the end. It stops after a full round, or when fn
// returns false.
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
		return n - 1 // meaningless if n is 0
	}
	return a.last
}

// LastItems calls fn with the content of the count indices written last, as back finds them, or with the whole array if
// it is shorter: oldest first, unless newestFirst. ok is false for an index without an element.
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
