package rdb

import "github.com/atomredis/atomredis/engine/paged"

// wholeArray is the size of the largest array that is assembled in memory before it is written.
const wholeArray = 1 << 20

// array writes an array as a string. A large one is compressed page by page, so that it takes no more memory.
func (w ModuleWriter) array(a *paged.Bytes) {
	if a.Size() <= wholeArray {
		w.e.moduleString(a.Append(make([]byte, 0, a.Size()), 0, a.Size()))
		return
	}
	w.e.length(moduleString)
	var page, packed []byte
	size := uint64(0)
	for at := uint64(0); at < a.Size() && !w.e.plain; at += paged.PageSize {
		packed = w.e.packedPage(packed[:0], a, at, &page)
		size += uint64(len(packed))
	}
	compressed := size > 0 && size < a.Size()
	if compressed {
		w.e.buf = append(w.e.buf, lengthSpecial<<6|specialLZF)
		w.e.length(size)
	}
	w.e.length(a.Size())
	for at := uint64(0); at < a.Size(); at += paged.PageSize {
		if compressed {
			w.e.buf = w.e.packedPage(w.e.buf, a, at, &page)
		} else {
			w.e.buf = a.Append(w.e.buf, at, min(at+paged.PageSize, a.Size()))
		}
		w.e.written()
	}
}

// packedPage appends the compressed form of a page. page is a buffer.
func (e *Encoder) packedPage(dst []byte, a *paged.Bytes, at uint64, page *[]byte) []byte {
	*page = a.Append((*page)[:0], at, min(at+paged.PageSize, a.Size()))
	if e.table == nil {
		e.table = new(lzfTable)
	}
	out, ok := compress(dst, *page, e.table)
	if ok {
		return out
	}
	for b := *page; len(b) > 0; {
		n := min(len(b), lzfLiteral)
		dst = append(append(dst, byte(n-1)), b[:n]...)
		b = b[n:]
	}
	return dst
}
