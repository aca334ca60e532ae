package stats

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Histogram counts durations with a precision of two decimal digits: 128 buckets between two powers of two. It is
// laid out as the HDR histograms of Redis, so that the same durations give the same percentiles.
type Histogram struct {
	total atomic.Int64
	rows  [histogramRows]atomic.Pointer[histogramRow] // nil while a row is empty
}

// histogramRow is the buckets of durations of one magnitude. Row 0 has durations below 128 ns, row n those from
// 2^(n+6) on.
type histogramRow [rowBuckets]atomic.Int64

const (
	rowBits       = 7
	rowBuckets    = 1 << rowBits
	histogramRows = 24
	maxDuration   = int64(time.Second) // longer durations count as this
)

// add counts n durations in ns.
func (h *Histogram) add(ns, n int64) {
	row, bucket := bucketOf(min(max(ns, 1), maxDuration))
	r := h.rows[row].Load()
	for r == nil {
		h.rows[row].CompareAndSwap(nil, new(histogramRow))
		r = h.rows[row].Load()
	}
	r[bucket].Add(n)
	h.total.Add(n)
}

// Count returns how many durations were counted.
func (h *Histogram) Count() int64 { return h.total.Load() }

// bucketOf returns the bucket of a duration.
func bucketOf(ns int64) (row, bucket int) {
	shift := max(bits.Len64(uint64(ns))-(rowBits+1), 0)
	at := int(ns >> shift) // below 256
	if shift == 0 && at < rowBuckets {
		return 0, at
	}
	return shift + 1, at - rowBuckets
}

// top returns the longest duration that is counted in a bucket.
func top(row, bucket int) int64 {
	if row == 0 {
		return int64(bucket)
	}
	return int64(bucket+rowBuckets+1)<<(row-1) - 1
}

// each calls fn for the buckets that are not empty, the shortest durations first, until fn returns false.
func (h *Histogram) each(fn func(row, bucket int, n int64) bool) {
	for row := range h.rows {
		r := h.rows[row].Load()
		if r == nil {
			continue
		}
		for b := range r {
			if n := r[b].Load(); n > 0 && !fn(row, b, n) {
				return
			}
		}
	}
}

// Percentile returns the duration in ns that p percent of all do not exceed.
func (h *Histogram) Percentile(p float64) (ns int64) {
	want := max(int64(p/100*float64(h.total.Load())+0.5), 1)
	seen := int64(0)
	h.each(func(row, bucket int, n int64) bool {
		if ns = top(row, bucket); p == 0 {
			ns = bottom(row, bucket)
		}
		seen += n
		return seen < want
	})
	return ns
}

// bottom returns the shortest duration that is counted in a bucket.
func bottom(row, bucket int) int64 {
	if row == 0 {
		return int64(bucket)
	}
	return int64(bucket+rowBuckets) << (row - 1)
}

// firstStep is the duration in ns of the first step of a distribution: about a microsecond.
const firstStep = 1024

// Steps calls fn with the numbers of durations that were not above powers of two, starting with firstStep, for each
// power at which the number has changed.
func (h *Histogram) Steps(fn func(micros, count int64)) {
	row, bucket := bucketOf(firstStep)
	seen, told := int64(0), int64(0)
	tell := func() {
		if seen > told {
			told = seen
			fn(top(row, bucket)/1000, seen)
		}
	}
	h.each(func(r, b int, n int64) bool {
		for r > row || r == row && b > bucket {
			tell()
			row++ // twice the duration is at the same place of the next row
		}
		seen += n
		return true
	})
	tell()
}
