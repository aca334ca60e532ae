package roaring

import (
	"encoding/binary"
	"errors"

	"github.com/RoaringBitmap/roaring/v2"
)

// The portable format for 64 bits, which all libraries of roaring bitmaps read: the number of buckets in eight bytes,
// and for each the high half of its numbers in four, and the low halves as a roaring bitmap in the portable format.
// Integers are little-endian.

const (
	bucketBits  = 1 << 32 // numbers of a bucket
	bucketPages = bucketBits / pageBits
)

var errPortable = errors.New("roaring: not the portable format")

// AppendPortable appends the set bits in the portable format; the length is not part of it.
func (r *Bitmap) AppendPortable(dst []byte) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, 0)
	buckets := uint64(0)
	for pages := r.pages; len(pages) > 0; buckets++ {
		high := pages[0].number / bucketPages
		bucket := roaring.New()
		for len(pages) > 0 && pages[0].number/bucketPages == high {
			bucket.Or(roaring.AddOffset64(pages[0].bits, int64(pages[0].number%bucketPages*pageBits)))
			pages = pages[1:]
		}
		bucket.RunOptimize()
		dst = appendPortable(binary.LittleEndian.AppendUint32(dst, uint32(high)), bucket)
	}
	binary.LittleEndian.PutUint64(dst[start:], buckets)
	return dst
}

// FromPortable returns the bitmap of a length in bytes whose set bits are data in the portable format. It does not keep
// data. Malformed data, a bit behind the end, and a length above MaxBytes are errors.
func FromPortable(data []byte, length uint64) (*Bitmap, error) {
	if len(data) < 8 || length > MaxBytes {
		return nil, errPortable
	}
	r := &Bitmap{length: length}
	buckets := binary.LittleEndian.Uint64(data)
	data = data[8:]
	for next := uint64(0); buckets > 0; buckets-- {
		if len(data) < 4 {
			return nil, errPortable
		}
		high := uint64(binary.LittleEndian.Uint32(data))
		if high < next {
			return nil, errPortable
		}
		next = high + 1
		bucket, rest, err := readPortable(data[4:])
		if err != nil {
			return nil, errPortable
		}
		data = rest
		if !bucket.IsEmpty() && (high*bucketBits+uint64(bucket.Maximum()))/8 >= length {
			return nil, errBehind
		}
		r.addBucket(high, bucket)
	}
	if len(data) > 0 {
		return nil, errPortable
	}
	return r, nil
}

// addBucket divides a bucket into pages, behind those that exist.
func (r *Bitmap) addBucket(high uint64, bucket *roaring.Bitmap) {
	for at := uint64(0); at < bucketBits; {
		value := bucket.NextValue(uint32(at))
		if value < 0 {
			return
		}
		number := uint64(value) / pageBits
		piece := roaring.New()
		piece.AddRange(number*pageBits, (number+1)*pageBits)
		piece.And(bucket)
		piece = roaring.AddOffset64(piece, -int64(number*pageBits))
		piece.RunOptimize()
		r.append(high*bucketPages+number, piece)
		at = (number + 1) * pageBits
	}
}
