package stats

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// HotKeysOptions are the options of a measurement of the use of keys.
type HotKeysOptions struct {
	CPU, Net bool          // the time that commands take, and the bytes of their requests and replies
	Count    int           // how many keys of each are reported
	Duration time.Duration // after which it ends; 0 means never
	Sample   int           // one of Sample commands is measured
	// Slots are the slots whose keys are measured, in ascending order; nil means all.
	Slots []int
}

// HotKeys measures which keys are used most, from NewHotKeys until Stop or the end of its duration. Its methods may
// be called by any goroutine.
type HotKeys struct {
	Options HotKeysOptions
	Began   int64 // ms since 1970

	mu sync.Mutex // protects the following fields
	// ended is the time of its end, in ms since 1970; 0 while it runs.
	ended    int64
	cpu, net heavy
	totals   HotKeysTotals
	spent    time.Duration // on counting keys
}

// HotKeysTotals are sums over commands with keys: all of them, those of the chosen slots, and of these the measured
// ones.
type HotKeysTotals struct {
	AllNanos, ChosenNanos, SampledNanos int64
	AllBytes, ChosenBytes, SampledBytes int64
}

// HotKey is a key and its cost in µs or bytes.
type HotKey struct {
	Key  string
	Cost int64
}

// spare is the ratio of counted to reported keys; it makes it likely that the reported keys are correct.
const spare = 16

// NewHotKeys begins to measure at a time in ms since 1970.
func NewHotKeys(o HotKeysOptions, now int64) *HotKeys {
	room := spare * o.Count
	return &HotKeys{Options: o, Began: now, cpu: newHeavy(room), net: newHeavy(room)}
}

// Use counts a command that used keys, of one slot, and ended at a time in ms since 1970. nanos is its duration,
// bytes the size of its request and its reply. Use reports false if the measurement has ended. The keys are not
// kept.
func (h *HotKeys) Use(now int64, slot int, keys [][]byte, nanos, bytes int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over(now) {
		return false
	}
	n := int64(len(keys))
	if n == 0 {
		return true
	}
	t := &h.totals
	t.AllNanos += nanos
	t.AllBytes += bytes
	if h.Options.Slots != nil {
		if _, ok := slices.BinarySearch(h.Options.Slots, slot); !ok {
			return true
		}
	}
	t.ChosenNanos += nanos
	t.ChosenBytes += bytes
	if h.Options.Sample > 1 && rand.IntN(h.Options.Sample) != 0 {
		return true
	}
	t.SampledNanos += nanos
	t.SampledBytes += bytes
	began := time.Now()
	for _, key := range keys {
		if h.Options.CPU {
			h.cpu.add(key, nanos/n)
		}
		if h.Options.Net {
			h.net.add(key, bytes/n)
		}
	}
	h.spent += time.Since(began)
	return true
}

// over reports whether the measurement was stopped or its duration has passed. mu is locked.
func (h *HotKeys) over(now int64) bool {
	if end := h.Began + h.Options.Duration.Milliseconds(); h.ended == 0 && h.Options.Duration > 0 && now >= end {
		h.ended = end
	}
	return h.ended != 0
}

// Active reports whether the measurement still runs at a time in ms since 1970.
func (h *HotKeys) Active(now int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.over(now)
}

// Stop ends the measurement at a time in ms since 1970. It reports false if it had ended before.
func (h *HotKeys) Stop(now int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over(now) {
		return false
	}
	h.ended = max(now, 1)
	return true
}

// HotKeysReport is the result of a measurement.
type HotKeysReport struct {
	HotKeysTotals
	Active     bool
	DurationMS int64
	CPU, Net   []HotKey      // the most expensive first
	NetBytes   int64         // total of the bytes counted for keys
	Spent      time.Duration // on counting keys
}

// Report returns the result up to a time in ms since 1970.
func (h *HotKeys) Report(now int64) HotKeysReport {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := HotKeysReport{HotKeysTotals: h.totals, Active: !h.over(now), CPU: h.cpu.top(h.Options.Count),
		Net: h.net.top(h.Options.Count), NetBytes: h.net.total, Spent: h.spent}
	r.DurationMS = now - h.Began
	if !r.Active {
		r.DurationMS = h.ended - h.Began
	}
	return r
}

// heavy finds the keys with the greatest sums, with memory for a limited number of keys. If there is no room for a
// new key it replaces the key with the least sum and continues with that sum. This bounds the error: a key that is
// not in the memory has at most the least sum in it.
type heavy struct {
	room  int
	byKey map[string]*heavyKey
	least leastFirst
	total int64
}

type heavyKey struct {
	HotKey
	at int // in the heap
}

func newHeavy(room int) heavy { return heavy{room: room, byKey: map[string]*heavyKey{}} }

func (h *heavy) add(key []byte, cost int64) {
	h.total += cost
	k := h.byKey[string(key)]
	switch {
	case k != nil:
	case len(h.least) < h.room:
		k = &heavyKey{HotKey: HotKey{Key: string(key)}}
		h.byKey[k.Key] = k
		heap.Push(&h.least, k)
	default:
		k = h.least[0]
		delete(h.byKey, k.Key)
		k.Key = string(key)
		h.byKey[k.Key] = k
	}
	k.Cost += cost
	heap.Fix(&h.least, k.at)
}

// top returns the n keys with the greatest cost, without those whose cost is 0.
func (h *heavy) top(n int) []HotKey {
	all := make([]HotKey, 0, len(h.least))
	for _, k := range h.least {
		if k.Cost > 0 {
			all = append(all, k.HotKey)
		}
	}
	slices.SortFunc(all, func(a, b HotKey) int { return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Key, b.Key)) })
	return all[:min(n, len(all))]
}

// leastFirst is a heap.
type leastFirst []*heavyKey

func (l leastFirst) Len() int           { return len(l) }
func (l leastFirst) Less(i, j int) bool { return l[i].Cost < l[j].Cost }
func (l leastFirst) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].at, l[j].at = i, j
}
func (l *leastFirst) Push(x any) {
	k := x.(*heavyKey)
	k.at = len(*l)
	*l = append(*l, k)
}
func (l *leastFirst) Pop() any {
	k := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return k
}
