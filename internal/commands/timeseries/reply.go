package timeseries

import (
	"bytes"
	"math"
	"strconv"
	"sync"

	"github.com/atomredis/atomredis/engine/labels"
	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/resp"
)

// writeValue writes the value of a sample: a double, in RESP2 a simple string.
func writeValue(w *resp.Writer, v float64) {
	if w.Proto == 3 {
		w.Double(v)
		return
	}
	w.Buf = append(appendValue(append(w.Buf, '+'), v), '\r', '\n')
}

// appendValue appends the shortest text that reads back as v, as RedisTimeSeries writes it: with an exponent below 1
// and from 1E16 on.
func appendValue(dst []byte, v float64) []byte {
	a := math.Abs(v)
	if a < 1e12 && v != 0 {
		// A decimal of at most 15 digits with the same value is the shortest.
		if n := int64(v); float64(n) == v {
			return strconv.AppendInt(dst, n, 10)
		} else if a >= 1 {
			if k := int64(math.Round(a * 1000)); float64(k)/1000 == a {
				if v < 0 {
					dst = append(dst, '-')
				}
				dst = strconv.AppendInt(dst, k/1000, 10)
				k %= 1000
				dst = append(dst, '.', byte('0'+k/100), byte('0'+k/10%10), byte('0'+k%10))
				return bytes.TrimRight(dst, "0")
			}
		}
	}
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	case v == 0 || a >= 1 && a < 1e16:
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, v, 'E', -1, 64)
	e := at + bytes.IndexByte(dst[at:], 'E') + 1
	digits := e + 1 // after the sign
	for digits < len(dst)-1 && dst[digits] == '0' {
		digits++
	}
	if dst[e] == '-' {
		e++
	}
	return append(dst[:e], dst[digits:]...)
}

// writeSample writes a time with a value.
func writeSample(w *resp.Writer, x timeseries.Sample) {
	w.Array(2)
	w.Int(x.Time)
	writeValue(w, x.Value)
}

// rowSize is about the size of a row with one value in a reply, in bytes.
const rowSize = 32

// writeRows writes rows of width values each.
func writeRows(w *resp.Writer, rows *timeseries.Rows, width int) {
	w.Reserve(len(rows.Times)*rowSize + 16)
	w.Array(len(rows.Times))
	values := rows.Values
	var text timeText
	for _, t := range rows.Times {
		w.Array(1 + width)
		w.Buf = append(text.append(append(w.Buf, ':'), t), '\r', '\n')
		for _, v := range values[:width] {
			writeValue(w, v)
		}
		values = values[width:]
	}
}

// timeText formats times, and reuses the leading digits, which rarely change. Without it, formatting takes a third
// of the time of a long reply.
type timeText struct {
	high int64 // the number in text; 0 if text is empty
	text [20]byte
	n    int
}

// low is 10 to the number of trailing digits that are formatted each time.
const low = 1_000_000

// append appends a time, which is not negative, in decimal.
func (x *timeText) append(dst []byte, t int64) []byte {
	high := t / low
	if high == 0 {
		return strconv.AppendInt(dst, t, 10)
	}
	if high != x.high {
		x.high, x.n = high, len(strconv.AppendInt(x.text[:0], high, 10))
	}
	rest := uint32(t - high*low)
	a, b, c := rest/10_000*2, rest/100%100*2, rest%100*2
	dst = append(dst, x.text[:x.n]...)
	return append(dst, pairs[a], pairs[a+1], pairs[b], pairs[b+1], pairs[c], pairs[c+1])
}

// pairs are the digits of the numbers from 00 to 99.
var pairs = func() (p [200]byte) {
	for i := range 100 {
		p[2*i], p[2*i+1] = byte('0'+i/10), byte('0'+i%10)
	}
	return p
}()

// spareRows are rows with memory to reuse.
var spareRows = sync.Pool{New: func() any { return new(timeseries.Rows) }}

// maxSpareRows is the largest number of times in reused rows; larger rows are left to the garbage collector.
const maxSpareRows = 1 << 17

func giveBack(rows *timeseries.Rows) {
	if cap(rows.Times) <= maxSpareRows && cap(rows.Values) <= maxSpareRows {
		rows.Reset()
		spareRows.Put(rows)
	}
}

// shown says which labels of series a reply shows.
type shown struct {
	all      bool
	selected [][]byte
}

// write writes labels of a series.
func (s *shown) write(w *resp.Writer, l []labels.Label) {
	n := len(l)
	if !s.all {
		n = len(s.selected)
	}
	begin, pair := w.Array, true
	if w.Proto == 3 {
		begin, pair = w.Map, false
	}
	begin(n)
	if s.all {
		for _, x := range l {
			if pair {
				w.Array(2)
			}
			w.BulkString(x.Name)
			w.BulkString(x.Value)
		}
		return
	}
	for _, name := range s.selected {
		if pair {
			w.Array(2)
		}
		w.Bulk(name)
		if value, ok := valueOf(l, string(name)); ok {
			w.BulkString(value)
		} else {
			w.Null()
		}
	}
}

// valueOf returns the value of the first label with a name.
func valueOf(l []labels.Label, name string) (string, bool) {
	for i := range l {
		if l[i].Name == name {
			return l[i].Value, true
		}
	}
	return "", false
}
