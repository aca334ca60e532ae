package paged

import (
	"encoding/binary"
	"errors"
)

// chunkBytes is about the size of a chunk in bytes.
const chunkBytes = 1 << 20

var errChunk = errors.New("a chunk is malformed")

// Chunk returns pages from a position on in the form that LoadChunk reads: for each the numbers of array and page, as
// unsigned varints, and its bytes. next is the position after them, 0 at the end. Positions start at 1 and count the
// pages of all arrays, written to or not.
func (v *Value) Chunk(from uint64) (data []byte, next uint64) {
	from = max(from, 1)
	first := uint64(1) // position of an array's first page
	for array := range v.arrays {
		b := &v.arrays[array]
		end := first + uint64(b.Pages())
		if from < end {
			for i, page := range b.from(int(max(from, first) - first)) {
				data = binary.AppendUvarint(data, uint64(array))
				data = append(binary.AppendUvarint(data, uint64(i)), page...)
				if next = first + uint64(i) + 1; len(data) >= chunkBytes {
					return data, next
				}
			}
		}
		first = end
	}
	return data, next
}

// LoadChunk writes the pages of a chunk: all of them, or none if there is an error.
func (v *Value) LoadChunk(data []byte) error {
	if err := v.eachPage(data, func(int, int, []byte) {}); err != nil {
		return err
	}
	return v.eachPage(data, func(array, page int, data []byte) { copy(v.Write(array, page), data) })
}

// eachPage calls fn with the pages of a chunk.
func (v *Value) eachPage(data []byte, fn func(array, page int, data []byte)) error {
	for len(data) > 0 {
		array, n := binary.Uvarint(data)
		if n <= 0 || array >= uint64(len(v.arrays)) {
			return errChunk
		}
		page, m := binary.Uvarint(data[n:])
		b := &v.arrays[array]
		if m <= 0 || page >= uint64(b.Pages()) || b.sizeOf(int(page)) > len(data)-n-m {
			return errChunk
		}
		data = data[n+m:]
		size := b.sizeOf(int(page))
		fn(int(array), int(page), data[:size])
		data = data[size:]
	}
	return nil
}
