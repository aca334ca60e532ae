package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// Garbage collection in a data store: most of the heap is long-lived data, and marking it is expensive. So the heap may
// have half as much garbage as data, and more than that with little data, which keeps collections rare. The percentage
// is set anew after each collection, because the data may grow or shrink many times within a second. In a pause of use
// the system gets memory back: garbage, and pages of the program that only the start needed. This does not happen at
// once, because each page that is needed again costs a page fault: 6 to 10 µs on a virtual machine.

const (
	someGarbage = 64 << 20 // bytes of garbage allowed with little data
	leastHeap   = 4 << 20  // the runtime's smallest heap; less data counts as this much
)

// garbagePercent returns GOGC for live bytes of data. With maxmemory, which limits data without garbage, it allows half
// as much garbage.
func garbagePercent(live uint64, limited bool) int {
	live = max(live, leastHeap)
	garbage := max(live/2, someGarbage)
	if limited {
		garbage /= 2
	}
	return int(garbage * 100 / live)
}

const (
	quiet        = 1 << 20 // a second with fewer allocated bytes is quiet
	pauseSeconds = 10      // consecutive quiet seconds that make a pause
	worth        = 4 << 20 // bytes of possible garbage and free memory that justify a collection in a pause
)

// With maxmemory, memory other than data should add at most half of maxmemory, or this much if that is more. The limit
// for the runtime adds three eighths, because the runtime exceeds its limit a little and does not count the program
// itself.
const beside = 128 << 20

// memoryLimit returns the runtime's memory limit with maxmemory, above which it collects more often, for live bytes of
// data and fixed bytes that it cannot give back. The limit always allows garbage of an eighth of the data: otherwise
// the runtime would collect all the time.
func memoryLimit(maxMemory int64, live, fixed uint64) int64 {
	return max(maxMemory+max(maxMemory*3/8, beside), int64(fixed+live+live/8))
}

// heap has the runtime's figures of the heap, in bytes.
type heap struct {
	allocated uint64 // since the start
	live      uint64 // found by the last collection
	objects   uint64 // including garbage
	free      uint64 // unused and not given back
	cycles    uint64 // number of collections
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(samples)
	return heap{samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64(),
		samples[3].Value.Uint64() + samples[4].Value.Uint64(), samples[5].Value.Uint64()}
}

// releases detects, once a second, that data was removed without the collector's notice. The collector only watches
// allocations, and after a FLUSHALL there may be few for a long time.
type releases struct {
	last, most int64  // bytes of data: a second ago, and the maximum since the last collection
	cycles     uint64 // number of collections a second ago
}

const muchGone = 8 << 20 // bytes of removed data that justify a collection

// next reports whether enough data was removed since the last collection to justify another one.
func (r *releases) next(h heap, used int64) bool {
	if h.cycles != r.cycles {
		r.cycles, r.most = h.cycles, r.last // the collection may have seen data that was removed in this second
	}
	r.last, r.most = used, max(r.most, used)
	return r.most-used > max(muchGone, int64(h.live/4))
}

// pauses detects, once a second, a pause in the use of memory.
type pauses struct {
	last     heap
	dirty    bool   // a second since the last pause was not quiet
	quiet    int    // consecutive quiet seconds
	released uint64 // value of allocated when memory was last given back
}

// next returns whether a pause has begun, and whether there is enough garbage to give back.
func (p *pauses) next(h heap) (pause, release bool) {
	if h.allocated-p.last.allocated > quiet {
		p.dirty, p.quiet = true, 0
	} else if p.quiet++; p.dirty && p.quiet >= pauseSeconds {
		p.dirty, pause = false, true
		// Up to all bytes that were allocated since the last release may be garbage: live objects of the last
		// collection may have become garbage too.
		garbage := min(h.objects, h.allocated-p.released)
		if release = garbage+h.free > max(worth, h.live/8); release {
			p.released = h.allocated
		}
	}
	p.last = h
	return pause, release
}

// tuner sets the garbage percentage. While the server is idle, it prevents the runtime's collection every two minutes,
// which would find nothing. Then the same amount of garbage is allowed, but only the heap's size triggers collections,
// not time.
type tuner struct {
	maxMemory func() int64 // limit of the data in bytes; 0 means none
	stopped   atomic.Bool

	mu      sync.Mutex // protects what follows
	percent int        // the current percentage
	resting bool
	limit   int64 // the current memory limit, unless resting
	given   int64 // the limit of the environment; 0 until known
}

// start sets the garbage percentage, now and after each collection. A collection ends a rest.
func (t *tuner) start() {
	if t.stopped.Load() {
		return
	}
	t.rest(false)
	h, maxMemory := readHeap(), t.maxMemory()
	percent := garbagePercent(h.live, maxMemory != 0)
	t.mu.Lock()
	t.limitMemory(maxMemory, h)
	if difference := percent - t.percent; max(difference, -difference) > t.percent/8 {
		// setting it stops the world for a moment
		t.percent = percent
		debug.SetGCPercent(percent)
	}
	t.mu.Unlock()
	// garbage whose cleanup tells of the next collection; the pointer keeps it out of the shared blocks of tiny objects
	type unused struct{ _ *byte }
	runtime.AddCleanup(new(unused), (*tuner).start, t)
}

// limitMemory makes the runtime collect more often when it would exceed the memory allowed with maxmemory. mu is held.
func (t *tuner) limitMemory(maxMemory int64, h heap) {
	now := debug.SetMemoryLimit(-1)
	if t.given == 0 {
		t.given = now
	}
	limit := t.given
	if maxMemory != 0 {
		taken := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
			{Name: "/memory/classes/heap/free:bytes"}}
		metrics.Read(taken)
		used := taken[0].Value.Uint64() - taken[1].Value.Uint64() - taken[2].Value.Uint64()
		limit = min(limit, memoryLimit(maxMemory, h.live, used-min(used, h.objects)))
	}
	if difference := limit - now; max(difference, -difference) > limit/32 {
		debug.SetMemoryLimit(limit) // stops the world for a moment
	}
}

// rest begins or ends an idle time.
func (t *tuner) rest(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.resting == on || t.stopped.Load() {
		return
	}
	t.resting = on
	if !on {
		debug.SetGCPercent(t.percent)
		debug.SetMemoryLimit(t.limit)
		return
	}
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	used, live := samples[0].Value.Uint64()-samples[1].Value.Uint64(), samples[2].Value.Uint64()
	t.limit = debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(t.limit, int64(used+max(live, leastHeap)*uint64(t.percent)/100)))
	debug.SetGCPercent(-1)
}

// tuneCollector tunes the garbage collector until stop is closed, unless the environment sets GOGC. maxMemory returns
// the limit of the data in bytes, 0 for none; used returns the bytes of data.
func tuneCollector(stop <-chan struct{}, maxMemory, used func() int64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	t := tuner{maxMemory: maxMemory}
	t.start()
	defer func() {
		t.rest(false)
		t.stopped.Store(true)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	p := pauses{last: readHeap(), dirty: true}
	var r releases
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		h := readHeap()
		pause, release := p.next(h)
		switch gone := r.next(h, used()); {
		case release:
			debug.FreeOSMemory()
		case gone:
			runtime.GC() // concurrently with clients
		}
		if pause {
			releaseProgram()
		}
		t.rest(!p.dirty)
	}
}
