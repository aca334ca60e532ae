package resp

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/redcon"

	"github.com/atomredis/atomredis/internal/buffers"
)

// Writer builds replies in the protocol version of one client. Types that RESP2 lacks are written as Redis does for
// RESP2 clients: maps and sets as arrays, doubles as bulk strings, booleans as 1 and 0.
type Writer struct {
	// Buf holds the replies so far, except for lent parts.
	Buf []byte
	// Proto is 2 or 3.
	Proto int
	// Lends allows BulkLent: the sender of the replies asks for all Pieces of them, and not for Buf alone.
	Lends bool
	// Expected is the number of bytes to make room for once more than a few are written, so that Buf need not grow and
	// move again and again.
	Expected int

	whole     []byte // the array of Buf from its first byte on, if Buf begins further on: see cut
	parts     []part // in order; Buf has bytes after each
	partBytes int    // the sum of parts
	aside     int    // how many of these bytes were set aside: they are the writer's own
}

// maxKeptLent is the number of parts that a writer keeps room for.
const maxKeptLent = 64

// part is a part of the replies that lies in memory of others, or was set aside.
type part struct {
	at   int // the index in Buf before which the part belongs
	data []byte
	loan Loan // nil if it was set aside
}

// release returns the memory of a part. Memory set aside is left to the garbage collector, since it may be very much.
func (l *part) release() {
	if l.loan != nil {
		l.loan.Return()
	}
}

// Loan is memory of others that stays unchanged until it is returned.
type Loan interface {
	// Return returns it.
	Return()
}

// lineBreaks replaces line breaks by the escapes used in program texts.
var lineBreaks = strings.NewReplacer("\r", `\r`, "\n", `\n`)

// OK writes the status reply OK.
func (w *Writer) OK() { w.Buf = redcon.AppendOK(w.Buf) }

// Simple writes a status reply. The reply is always one line: a line break in s becomes a backslash and a letter.
func (w *Writer) Simple(s string) {
	if strings.IndexByte(s, '\n') >= 0 || strings.IndexByte(s, '\r') >= 0 {
		s = lineBreaks.Replace(s)
	}
	w.Buf = append(w.Buf, '+')
	w.Buf = append(w.Buf, s...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// Error writes an error reply: its code word and text, without the leading '-'. Line breaks at its end are dropped,
// others become spaces.
func (w *Writer) Error(s string) {
	s = strings.TrimRight(s, "\r\n")
	w.Buf = append(w.Buf, '-')
	start := len(w.Buf)
	w.Buf = append(w.Buf, s...)
	for i, c := range w.Buf[start:] {
		if c == '\r' || c == '\n' {
			w.Buf[start+i] = ' '
		}
	}
	w.Buf = append(w.Buf, '\r', '\n')
}

// Int writes an integer reply.
func (w *Writer) Int(n int64) {
	if n == int64(int(n)) {
		w.header(':', int(n))
		return
	}
	w.Buf = append(w.Buf, ':')
	w.Buf = strconv.AppendInt(w.Buf, n, 10)
	w.Buf = append(w.Buf, '\r', '\n')
}

// Uint writes an integer reply, which may be larger than an int64 holds.
func (w *Writer) Uint(n uint64) {
	if n <= math.MaxInt64 {
		w.Int(int64(n))
		return
	}
	w.Buf = append(w.Buf, ':')
	w.Buf = strconv.AppendUint(w.Buf, n, 10)
	w.Buf = append(w.Buf, '\r', '\n')
}

// largeReply is the length from which all writers share the room for replies.
const largeReply = 16 << 10

// room makes room for n more bytes if the replies are, or become, that long.
func (w *Writer) room(n int) {
	if cap(w.Buf)-len(w.Buf) < n && len(w.Buf)+n > largeReply {
		w.Buf = buffers.Grow(w.Buf, max(n, w.Expected-len(w.Buf)))
	}
}

// Reserve makes room for replies of n bytes that are about to be written.
func (w *Writer) Reserve(n int) { w.room(n) }

// Bulk writes a bulk string.
func (w *Writer) Bulk(b []byte) {
	w.room(len(b) + 32) // including the header
	w.header('$', len(b))
	w.Buf = append(w.Buf, b...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// BulkLent is Bulk without a copy. b, which must not be empty, must not change until the writer returns the loan, once
// b has been sent or removed.
func (w *Writer) BulkLent(b []byte, loan Loan) {
	w.header('$', len(b))
	w.parts = append(w.parts, part{at: len(w.Buf), data: b, loan: loan})
	w.partBytes += len(b)
	w.Buf = append(w.Buf, '\r', '\n')
}

// BulkString writes a bulk string.
func (w *Writer) BulkString(s string) {
	w.room(len(s) + 32)
	w.header('$', len(s))
	w.Buf = append(w.Buf, s...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// BulkInt writes n as a bulk string.
func (w *Writer) BulkInt(n int64) {
	var scratch [20]byte
	w.Bulk(strconv.AppendInt(scratch[:0], n, 10))
}

// Null writes the null bulk string of RESP2, or RESP3's null.
func (w *Writer) Null() {
	if w.Proto == 3 {
		w.Buf = append(w.Buf, "_\r\n"...)
		return
	}
	w.Buf = redcon.AppendNull(w.Buf)
}

// NullArray writes the null array of RESP2, or RESP3's null.
func (w *Writer) NullArray() {
	if w.Proto == 3 {
		w.Buf = append(w.Buf, "_\r\n"...)
		return
	}
	w.Buf = append(w.Buf, "*-1\r\n"...)
}

// Array starts an array of n replies.
func (w *Writer) Array(n int) { w.header('*', n) }

// Map starts a map of n pairs of replies.
func (w *Writer) Map(n int) {
	if w.Proto == 3 {
		w.header('%', n)
		return
	}
	w.header('*', 2*n)
}

// Set starts a set of n replies.
func (w *Writer) Set(n int) {
	if w.Proto == 3 {
		w.header('~', n)
		return
	}
	w.header('*', n)
}

// Push starts an out-of-band message of n replies.
func (w *Writer) Push(n int) {
	if w.Proto == 3 {
		w.header('>', n)
		return
	}
	w.header('*', n)
}

// Attribute starts n pairs of information about the reply that follows, and reports true. RESP2 has no attributes; then
// it reports false, and nothing must be written.
func (w *Writer) Attribute(n int) bool {
	if w.Proto == 3 {
		w.header('|', n)
	}
	return w.Proto == 3
}

// BigNumber writes an integer of any size; a bulk string in RESP2.
func (w *Writer) BigNumber(digits string) {
	if w.Proto != 3 {
		w.BulkString(digits)
		return
	}
	w.Buf = append(append(append(w.Buf, '('), digits...), "\r\n"...)
}

// Double writes a double; a bulk string in RESP2.
func (w *Writer) Double(f float64) {
	var scratch [40]byte
	b := AppendFloat(scratch[:0], f)
	if w.Proto == 3 {
		w.Buf = append(w.Buf, ',')
		w.Buf = append(w.Buf, b...)
		w.Buf = append(w.Buf, '\r', '\n')
		return
	}
	w.Bulk(b)
}

// Bool writes a boolean; 1 or 0 in RESP2.
func (w *Writer) Bool(v bool) {
	switch {
	case w.Proto == 3 && v:
		w.Buf = append(w.Buf, "#t\r\n"...)
	case w.Proto == 3:
		w.Buf = append(w.Buf, "#f\r\n"...)
	case v:
		w.Int(1)
	default:
		w.Int(0)
	}
}

// Verbatim writes text with its three-letter format; a bulk string in RESP2.
func (w *Writer) Verbatim(format, text string) {
	if w.Proto == 3 {
		w.header('=', len(text)+4)
		w.Buf = append(w.Buf, format...)
		w.Buf = append(w.Buf, ':')
		w.Buf = append(w.Buf, text...)
		w.Buf = append(w.Buf, '\r', '\n')
		return
	}
	w.BulkString(text)
}

// Raw appends replies that are already encoded.
func (w *Writer) Raw(b []byte) { w.Buf = append(w.Buf, b...) }

// Unread output is kept in parts. A single piece would be moved as it grows, take three times its size for a while, and
// delay other clients meanwhile.
const (
	asideFrom = 64 << 10  // from this many bytes on, Buf is set aside instead of moved
	asideRoom = 128 << 10 // bytes of room made next
)

// RawPart is Raw for output that may pile up. It must not be called within a reply: marks do not survive it.
func (w *Writer) RawPart(b []byte) {
	for w.Lends && len(w.Buf) >= asideFrom && cap(w.Buf)-len(w.Buf) < len(b) {
		n := cap(w.Buf) - len(w.Buf)
		w.Buf = append(w.Buf, b[:n]...)
		b = b[n:]
		w.setAside()
	}
	w.Buf = append(buffers.Grow(w.Buf, len(b)), b...)
}

// setAside leaves the content of Buf where it lies, except for its last byte and the bytes before lent parts.
func (w *Writer) setAside() {
	from, last := 0, len(w.Buf)-1
	if k := len(w.parts); k > 0 {
		from = w.parts[k-1].at
	}
	next := append(buffers.Get(from+asideRoom), w.Buf[:from]...)
	if data := w.Buf[from:last]; len(data) > 0 {
		w.parts = append(w.parts, part{at: from, data: data})
		w.partBytes += len(data)
		w.aside += len(data)
	}
	w.Buf, w.whole = append(next, w.Buf[last]), nil
}

// Len returns the length of the replies in bytes, including lent parts.
func (w *Writer) Len() int { return len(w.Buf) + w.partBytes }

// Lent returns how many bytes of the replies lie in memory of others.
func (w *Writer) Lent() int { return w.partBytes - w.aside }

// Pieces returns the first n bytes of the replies as the pieces in which they lie. No piece is empty.
func (w *Writer) Pieces(n int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		from := 0
		for i := range w.parts {
			l := &w.parts[i]
			if own := min(l.at-from, n); own > 0 {
				if !yield(w.Buf[from : from+own]) {
					return
				}
				n -= own
			}
			from = l.at
			if n == 0 {
				return
			}
			part := l.data[:min(len(l.data), n)]
			if !yield(part) {
				return
			}
			if n -= len(part); n == 0 {
				return
			}
		}
		if n > 0 {
			yield(w.Buf[from : from+n])
		}
	}
}

// Sent removes the first n bytes of the replies.
func (w *Writer) Sent(n int) {
	done := 0 // parts that were sent
	for ; done < len(w.parts); done++ {
		l := &w.parts[done]
		if n <= l.at {
			break
		}
		k := min(n-l.at, len(l.data))
		l.data = l.data[k:]
		w.took(l, k)
		if n -= k; len(l.data) > 0 {
			break
		}
		l.release()
	}
	if w.parts = slices.Delete(w.parts, 0, done); len(w.parts) == 0 && cap(w.parts) > maxKeptLent {
		w.parts = nil
	}
	w.cut(n)
	w.shift(0, -n)
}

// took records that n bytes of a part were removed.
func (w *Writer) took(l *part, n int) {
	w.partBytes -= n
	if l.loan == nil {
		w.aside -= n
	}
}

// cut removes the first n bytes of Buf. The rest is moved to the beginning of its array only once at least half as much
// has been removed. So at most two bytes are moved for each byte sent, however slowly a client reads and however much.
func (w *Writer) cut(n int) {
	whole, rest := w.whole, w.Buf[n:]
	if !sameEnd(whole, w.Buf) { // it has grown, and moved
		whole = w.Buf
	}
	if len(rest)/2 > cap(whole)-cap(rest) {
		w.Buf, w.whole = rest, whole
		return
	}
	w.Buf, w.whole = whole[:copy(whole[:len(rest)], rest)], nil
}

// sameEnd reports whether two slices end at the same byte of the same array.
func sameEnd(a, b []byte) bool {
	return cap(a) > 0 && cap(b) > 0 && &a[:cap(a)][cap(a)-1] == &b[:cap(b)][cap(b)-1]
}

// Truncate removes everything written since Buf was mark bytes long.
func (w *Writer) Truncate(mark int) {
	keep := len(w.parts)
	for ; keep > 0 && w.parts[keep-1].at >= mark; keep-- {
		l := &w.parts[keep-1]
		w.took(l, len(l.data))
		l.release()
	}
	w.parts = slices.Delete(w.parts, keep, len(w.parts))
	w.Buf = w.Buf[:mark]
}

// shift records that everything written since Buf was mark bytes long has moved by n bytes. Earlier parts end in Buf,
// and lie before mark.
func (w *Writer) shift(mark, n int) {
	for i := range w.parts {
		if l := &w.parts[i]; l.at >= mark {
			l.at += n
		}
	}
}

// Mark is the place in the replies where the header of a collection is inserted once its size is known.
type Mark int

// Defer marks the start of a collection of still unknown size; one of the End methods must follow.
func (w *Writer) Defer() Mark { return Mark(len(w.Buf)) }

// EndArray inserts the header of an array of n replies at the mark.
func (w *Writer) EndArray(m Mark, n int) { w.insertHeader(m, '*', n) }

// EndMap inserts the header of a map of n pairs at the mark.
func (w *Writer) EndMap(m Mark, n int) {
	if w.Proto == 3 {
		w.insertHeader(m, '%', n)
		return
	}
	w.insertHeader(m, '*', 2*n)
}

// EndSet inserts the header of a set of n replies at the mark.
func (w *Writer) EndSet(m Mark, n int) {
	if w.Proto == 3 {
		w.insertHeader(m, '~', n)
		return
	}
	w.insertHeader(m, '*', n)
}

func (w *Writer) header(kind byte, n int) {
	switch {
	case n < 0:
	case n < 10:
		w.Buf = append(w.Buf, kind, byte('0'+n), '\r', '\n')
		return
	case n < 100:
		w.Buf = append(w.Buf, kind, byte('0'+n/10), byte('0'+n%10), '\r', '\n')
		return
	case n < 1000:
		w.Buf = append(w.Buf, kind, byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10), '\r', '\n')
		return
	}
	w.Buf = append(w.Buf, kind)
	w.Buf = strconv.AppendInt(w.Buf, int64(n), 10)
	w.Buf = append(w.Buf, '\r', '\n')
}

func (w *Writer) insertHeader(m Mark, kind byte, n int) {
	end := len(w.Buf)
	w.header(kind, n)
	var scratch [24]byte
	head := scratch[:copy(scratch[:], w.Buf[end:])]
	copy(w.Buf[int(m)+len(head):], w.Buf[m:end])
	copy(w.Buf[m:], head)
	w.shift(int(m), len(head))
}
