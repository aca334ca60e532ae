package postings

// Reader iterates over a view's documents in ascending order, including dead ones. It decodes only requested data.
type Reader struct {
	v   View
	doc uint64

	block  int // the present block; len(v.blocks) is the tail
	i, n   int // the present entry of the block, and the number of its entries
	cols   [columns]column
	offAt  int // offset in the block's data of the offsets of entry offI
	offI   int
	tail   tailEntry // the present entry in the tail
	first  Mask      // mask of the tail's first entry
	buffer []uint32  // the requested offsets
}

// Reader returns a reader before the first document.
func (v View) Reader() *Reader {
	r := &Reader{v: v}
	r.Reset(v)
	return r
}

// Reset moves r before the first document of a view.
func (r *Reader) Reset(v View) {
	buffer := r.buffer[:0]
	*r = Reader{v: v, buffer: buffer}
	r.enter(0)
}

// enter moves before the first entry of a block, or of the tail.
func (r *Reader) enter(b int) {
	r.block, r.i = b, -1
	if b < len(r.v.blocks) {
		r.n, r.offAt = r.v.blocks[b].open(r.v.keep, &r.cols)
		r.offI = 0
		return
	}
	r.n = r.v.tailN
}

// Next moves to the next document. It returns false at the end.
func (r *Reader) Next() bool {
	r.i++
	if r.i >= r.n {
		if r.block >= len(r.v.blocks) {
			r.i = r.n
			return false
		}
		r.enter(r.block + 1)
		r.i = 0
		if r.n == 0 { // an empty tail
			return false
		}
	}
	if r.block < len(r.v.blocks) {
		r.doc = r.cols[colDoc].at(r.i)
		return true
	}
	r.tail.next(r.v.tail, r.v.keep, &r.first)
	r.doc = r.tail.doc
	return true
}

// Seek moves forward to the first document whose number is at least doc. It returns false at the end.
func (r *Reader) Seek(doc uint64) bool {
	if r.i >= 0 && (r.i >= r.n || r.doc >= doc) {
		return r.i < r.n
	}
	if r.block < len(r.v.blocks) {
		if r.cols[colDoc].at(r.n-1) < doc {
			b := blockOf(r.v.blocks, r.block, doc)
			if b == r.block {
				b++
			}
			r.enter(b)
			if b < len(r.v.blocks) && r.cols[colDoc].at(r.n-1) < doc {
				r.enter(b + 1)
			}
		}
		if r.block < len(r.v.blocks) {
			r.seekInBlock(doc)
			return true
		}
	}
	for r.Next() {
		if r.doc >= doc {
			return true
		}
	}
	return false
}

// seekInBlock moves to the next entry whose document is at least doc; there must be one.
func (r *Reader) seekInBlock(doc uint64) {
	docs := &r.cols[colDoc]
	lo, step := r.i+1, 1
	for lo+step < r.n && docs.at(lo+step-1) < doc {
		lo += step
		step *= 2
	}
	hi := min(lo+step-1, r.n-1)
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); docs.at(mid) < doc {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	r.i, r.doc = lo, docs.at(lo)
}

// Doc returns the present document's number.
func (r *Reader) Doc() uint64 { return r.doc }

// Freq returns how often the term occurs in the present document.
func (r *Reader) Freq() uint32 {
	switch {
	case r.v.keep&Freqs == 0:
		return 1
	case r.block < len(r.v.blocks):
		return uint32(r.cols[colFreq].at(r.i))
	}
	return r.tail.freq
}

// Mask returns the fields in which the term occurs.
func (r *Reader) Mask() Mask {
	switch {
	case r.v.keep&Masks == 0:
		return All
	case r.block < len(r.v.blocks):
		return Mask{r.cols[colLo].at(r.i), r.cols[colHi].at(r.i)}
	}
	return r.tail.mask
}

// Offsets returns the term's positions, ascending; they are valid until the reader moves.
func (r *Reader) Offsets() []uint32 {
	if r.v.keep&Offsets == 0 {
		return nil
	}
	data, at, n := r.v.tail, r.tail.offsets, r.tail.count
	if r.block < len(r.v.blocks) {
		data = r.v.blocks[r.block].data
		counts := &r.cols[colCount]
		skip := 0
		for ; r.offI < r.i; r.offI++ {
			skip += int(counts.at(r.offI))
		}
		r.offAt = skipVarints(data, r.offAt, skip)
		at, n = r.offAt, int(counts.at(r.i))
	}
	r.buffer = r.buffer[:0]
	offset := uint32(0)
	for range n {
		var d uint64
		d, at = uvarint(data, at)
		offset += uint32(d)
		r.buffer = append(r.buffer, offset)
	}
	return r.buffer
}
