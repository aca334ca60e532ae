package stats

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// HotKeysOptions say what is measured of the use of keys.
type HotKeysOptions struct {
	CPU, Net bool          // the time that commands take, and the bytes of their requests and replies
	Count    int           // how many keys of each are reported
	Duration time.Duration // after which it ends by itself; 0 is never
	Sample   int           // one of so many commands is looked at
	// Slots are those whose keys are looked at, in ascending order; nil is all.
	Slots []int
}

// HotKeys measures which keys are used most, from when it is made until it is stopped. Its methods may be called by any
// goroutine.
type HotKeys struct {
	Options HotKeysOptions
	Began   int64 // ms since 1970

	mu sync.Mutex // protects what follows
	// ended is when it was stopped, in ms since 1970; 0 is not yet.
	ended    int64
	cpu, net heavy
	totals   HotKeysTotals
}

// HotKeysTotals are sums over commands with keys: all of them, those of the chosen slots, and of these the ones that
// were looked at.
type HotKeysTotals struct {
	AllNanos, ChosenNanos, SampledNanos int64
	AllBytes, ChosenBytes, SampledBytes int64
}

// HotKey is a key and what it cost: µs or bytes.
type HotKey struct {
	Key  string
	Cost int64
}

// spare is how many times more keys are counted than are reported, so that the reported ones are the right ones.
const spare = 16

// NewHotKeys begins to measure at a time in ms since 1970.
func NewHotKeys(o HotKeysOptions, now int64) *HotKeys {
	room := spare * o.Count
	return &HotKeys{Options: o, Began: now, cpu: newHeavy(room), net: newHeavy(room)}
}

// Use counts a command that used keys, of one slot, and ended at a time in ms since 1970. It took so many ns, and its
// request and its reply had so many bytes. It reports false if the measurement has ended. The keys are not kept.
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
	for _, key := range keys {
		if h.Options.CPU {
			h.cpu.add(key, nanos/n)
		}
		if h.Options.Net {
			h.net.add(key, bytes/n)
		}
	}
	return true
}

// over reports whether the measurement has ended, if only because its time is up. mu is locked.
func (h *HotKeys) over(now int64) bool {
	if end := h.Began + h.Options.Duration.Milliseconds(); h.ended == 0 && h.Options.Duration > 0 && now >= end {
		h.ended = end
	}
	return h.ended != 0
}

// Active reports whether it goes on at a time in ms since 1970.
func (h *HotKeys) Active(now int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.over(now)
}

// Stop ends it at a time in ms since 1970. It reports false if it had ended.
func (h *HotKeys) Stop(now int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over(now) {
		return false
	}
	h.ended = max(now, 1)
	return true
}

// HotKeysReport is what was measured.
type HotKeysReport struct {
	HotKeysTotals
	Active     bool
	DurationMS int64
	CPU, Net   []HotKey // the most expensive first
	NetBytes   int64    // all that was counted for keys
}

// Report tells what has been measured at a time in ms since 1970.
func (h *HotKeys) Report(now int64) HotKeysReport {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := HotKeysReport{HotKeysTotals: h.totals, Active: !h.over(now), CPU: h.cpu.top(h.Options.Count),
		Net: h.net.top(h.Options.Count), NetBytes: h.net.total}
	r.DurationMS = now - h.Began
	if !r.Active {
		r.DurationMS = h.ended - h.Began
	}
	return r
}

// heavy finds the keys of the greatest sums with memory for a limited number of keys. When a new key finds no room it
// takes the place of the least one and goes on from its sum, which bounds the error: a key that is not there has no
// more than the least one that is.
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

// top returns the greatest n, but none without a cost.
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
