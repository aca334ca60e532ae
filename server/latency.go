package server

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/journal"
)

// histogram counts durations with a precision of two decimal digits: 128 buckets between two powers of two. It is
// laid out as the HDR histograms of Redis, so that the same durations give the same percentiles.
type histogram struct {
	total atomic.Int64
	rows  [histogramRows]atomic.Pointer[histogramRow] // nil while a row has nothing
}

// histogramRow is the buckets of durations of one magnitude. Row 0 has durations below 128 ns, row n those from
// 2^(n+6) on.
type histogramRow [rowBuckets]atomic.Int64

const (
	rowBits       = 7
	rowBuckets    = 1 << rowBits
	histogramRows = 24
	maxDuration   = int64(time.Second) // what takes longer counts as this
)

// add counts n durations in ns.
func (h *histogram) add(ns, n int64) {
	row, bucket := bucketOf(min(max(ns, 1), maxDuration))
	r := h.rows[row].Load()
	for r == nil {
		h.rows[row].CompareAndSwap(nil, new(histogramRow))
		r = h.rows[row].Load()
	}
	r[bucket].Add(n)
	h.total.Add(n)
}

// bucketOf returns where a duration is counted.
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

// each calls fn for the buckets that have something, from the shortest durations on, until it returns false.
func (h *histogram) each(fn func(row, bucket int, n int64) bool) {
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

// percentile returns the duration in ns that p percent of all do not exceed.
func (h *histogram) percentile(p float64) (ns int64) {
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

// steps calls fn with how many durations were not above powers of two, from firstStep on, where that has changed.
func (h *histogram) steps(fn func(micros, count int64)) {
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
			row++ // the double is at the same place of the next row
		}
		seen += n
		return true
	})
	tell()
}

// histogram returns the durations of a command.
func (s *commandStats) histogram() *histogram {
	h := s.durations.Load()
	for h == nil {
		s.durations.CompareAndSwap(nil, new(histogram))
		h = s.durations.Load()
	}
	return h
}

// latencyMonitor has, for kinds of events, when there was one that took as long as latency-monitor-threshold says.
type latencyMonitor struct {
	mu     sync.Mutex // protects what follows
	events map[string]*latencySeries
}

// latencySeries is the latest events of a kind, at most one for each second.
type latencySeries struct {
	samples []latencySample
	max     int64 // ms; of all that there ever were
}

type latencySample struct{ at, ms int64 } // at is in s since 1970

// maxLatencySamples is how many events of a kind are kept.
const maxLatencySamples = 160

// add takes note of an event at time now, in ms since 1970, that took so many ns, if it is as long as threshold, in ms.
func (m *latencyMonitor) add(event string, now, took int64, threshold int) {
	ms := took / int64(time.Millisecond)
	if threshold == 0 || ms < int64(threshold) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.events == nil {
		m.events = map[string]*latencySeries{}
	}
	s := m.events[event]
	if s == nil {
		s = new(latencySeries)
		m.events[event] = s
	}
	s.max = max(s.max, ms)
	if n := len(s.samples); n > 0 && s.samples[n-1].at == now/1000 {
		s.samples[n-1].ms = max(s.samples[n-1].ms, ms)
		return
	}
	if len(s.samples) == maxLatencySamples {
		s.samples = slices.Delete(s.samples, 0, 1)
	}
	s.samples = append(s.samples, latencySample{now / 1000, ms})
}

// What holds clients up beside commands, in the words of Redis where it has some. Evictions are timed in makeRoom.
var (
	holdEvents = [...]string{engine.LockedForExpiry: "expire-cycle", engine.LockForCheckpoint: "checkpoint",
		engine.LockForLoading: "loading"}
	waitEvents = [...]string{journal.WaitWrite: "aof-write", journal.WaitSync: "aof-fsync-always",
		journal.WaitLag: "aof-write-pending-fsync"}
)

// held takes note of work of the keyspace that commands had to wait for.
func (srv *Server) held(by engine.LockReason, took time.Duration) { srv.event(holdEvents[by], took) }

// waited takes note of work of the journal that clients had to wait for.
func (srv *Server) waited(forWhat journal.Wait, took time.Duration) {
	srv.event(waitEvents[forWhat], took)
}

func (srv *Server) event(name string, took time.Duration) {
	if threshold := srv.config.Get().LatencyMonitorThreshold; threshold != 0 {
		srv.latency.add(name, srv.ks.Now(), int64(took), threshold)
	}
}

// series returns a copy of the series of an event; ok is false if there is none.
func (m *latencyMonitor) series(event string) (s latencySeries, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.events[event]
	if found == nil {
		return s, false
	}
	return latencySeries{slices.Clone(found.samples), found.max}, true
}

// names returns the kinds of events that there were, sorted.
func (m *latencyMonitor) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make([]string, 0, len(m.events))
	for name := range m.events {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// reset forgets an event, and reports whether there was one.
func (m *latencyMonitor) reset(event string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.events[event]
	delete(m.events, event)
	return ok
}

// ago returns how long ago a sample was, in the largest unit that fits.
func (s latencySample) ago(now int64) string {
	switch d := max(now-s.at, 0); {
	case d < 60:
		return fmt.Sprintf("%ds", d)
	case d < 60*60:
		return fmt.Sprintf("%dm", d/60)
	case d < 24*60*60:
		return fmt.Sprintf("%dh", d/(60*60))
	default:
		return fmt.Sprintf("%dd", d/(24*60*60))
	}
}

// The size of the picture that LATENCY GRAPH draws.
const (
	graphColumns = 80
	graphRows    = 4
)

// graph draws the samples of a series, at time now in s: a column each, with how long ago it was below it.
func (s *latencySeries) graph(event string, now int64) string {
	const fill = "_o#"
	low, high := int64(math.MaxInt64), int64(0)
	for _, x := range s.samples {
		low, high = min(low, x.ms), max(high, x.ms)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s - high %d ms, low %d ms (all time high %d ms)\n%s\n", event, high, low, s.max,
		strings.Repeat("-", graphColumns))
	first := true
	for part := range slices.Chunk(s.samples, graphColumns) {
		if !first {
			b.WriteByte('\n')
		}
		first = false
		steps := make([]int, len(part)) // how high the column is, in parts of a row
		labels, height := make([]string, len(part)), 0
		for i, x := range part {
			const most = graphRows * len(fill)
			steps[i] = min(int(float64(x.ms-low)*float64(most)/float64(max(high-low, 1))), most-1)
			labels[i] = x.ago(now)
			height = max(height, len(labels[i]))
		}
		line := make([]byte, len(part))
		write := func(mark func(i int) byte) {
			for i := range line {
				line[i] = mark(i)
			}
			b.Write(line)
			b.WriteByte('\n')
		}
		for row := range graphRows {
			write(func(i int) byte {
				switch in := steps[i] - (graphRows-1-row)*len(fill); {
				case in < 0:
					return ' '
				case in >= len(fill):
					return '|'
				default:
					return fill[in]
				}
			})
		}
		write(func(int) byte { return ' ' })
		for row := range height {
			write(func(i int) byte {
				if row < len(labels[i]) {
					return labels[i][row]
				}
				return ' '
			})
		}
	}
	return b.String()
}
