package stats

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// Latency has, for each kind of event, the events that took at least latency-monitor-threshold.
type Latency struct {
	mu     sync.Mutex // protects the following fields
	events map[string]*LatencySeries
}

// LatencySeries is the latest events of a kind, at most one for each second.
type LatencySeries struct {
	Samples []LatencySample
	Max     int64 // ms; of all events, also those no longer kept
}

// LatencySample is an event: when it was, in s since 1970, and how many ms it took.
type LatencySample struct{ At, MS int64 }

// maxLatencySamples is how many events of a kind are kept.
const maxLatencySamples = 160

// Add records an event at time now, in ms since 1970, that took the given number of ns, if that is at least
// threshold ms.
func (m *Latency) Add(event string, now, took int64, threshold int) {
	ms := took / int64(time.Millisecond)
	if threshold == 0 || ms < int64(threshold) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.events == nil {
		m.events = map[string]*LatencySeries{}
	}
	s := m.events[event]
	if s == nil {
		s = new(LatencySeries)
		m.events[event] = s
	}
	s.Max = max(s.Max, ms)
	if n := len(s.Samples); n > 0 && s.Samples[n-1].At == now/1000 {
		s.Samples[n-1].MS = max(s.Samples[n-1].MS, ms)
		return
	}
	if len(s.Samples) == maxLatencySamples {
		s.Samples = slices.Delete(s.Samples, 0, 1)
	}
	s.Samples = append(s.Samples, LatencySample{now / 1000, ms})
}

// Series returns a copy of the series of an event; ok is false if there is none.
func (m *Latency) Series(event string) (s LatencySeries, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.events[event]
	if found == nil {
		return s, false
	}
	return LatencySeries{slices.Clone(found.Samples), found.Max}, true
}

// Names returns the kinds of events that there were, sorted.
func (m *Latency) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make([]string, 0, len(m.events))
	for name := range m.events {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Reset removes the series of an event, and reports whether there was one.
func (m *Latency) Reset(event string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.events[event]
	delete(m.events, event)
	return ok
}

// ago returns how long ago a sample was, in the largest unit that fits.
func (s LatencySample) ago(now int64) string {
	switch d := max(now-s.At, 0); {
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

// Graph draws the samples of a series, at time now in s: a column for each, with its age below.
func (s *LatencySeries) Graph(event string, now int64) string {
	const fill = "_o#"
	low, high := int64(math.MaxInt64), int64(0)
	for _, x := range s.Samples {
		low, high = min(low, x.MS), max(high, x.MS)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s - high %d ms, low %d ms (all time high %d ms)\n%s\n", event, high, low, s.Max,
		strings.Repeat("-", graphColumns))
	first := true
	for part := range slices.Chunk(s.Samples, graphColumns) {
		if !first {
			b.WriteByte('\n')
		}
		first = false
		steps := make([]int, len(part)) // the height of the column, in parts of a row
		labels, height := make([]string, len(part)), 0
		for i, x := range part {
			const most = graphRows * len(fill)
			steps[i] = min(int(float64(x.MS-low)*float64(most)/float64(max(high-low, 1))), most-1)
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
