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

// The garbage collector of a data store: most of the heap is data that stays, and to look at all of it is dear. So
// there may be half as much garbage as data, and with little data more than data, which keeps collections rare. How
// much is decided after each collection: data may become many times as much within a second, and as little again.
// Once nobody needs the memory any more, the system gets it back: garbage, and the pages of the program that only its
// start needed. Not at once: memory that is needed again comes back page by page, and on a virtual machine that took
// 6 to 10 µs for each.

const (
	someGarbage = 64 << 20 // bytes of garbage that there may be with little data
	leastHeap   = 4 << 20  // bytes of data that the runtime takes less for: with 100 % there may be as much garbage
)

// garbagePercent returns how much garbage there may be, in percent of so many bytes of data. What maxmemory limits is
// data without garbage; with it there may be half as much.
func garbagePercent(live uint64, limited bool) int {
	live = max(live, leastHeap)
	garbage := max(live/2, someGarbage)
	if limited {
		garbage /= 2
	}
	return int(garbage * 100 / live)
}

const (
	quiet        = 1 << 20 // bytes allocated in a second below which it is a quiet one
	pauseSeconds = 10      // quiet seconds in a row that make a pause
	worth        = 4 << 20 // bytes of possible garbage, and free memory, that are worth a collection in a pause
)

// With maxmemory, the memory beside the data should add at most half of it, or this much if that is more. The limit given
// to the runtime adds three eighths, because the runtime exceeds its limit a little and does not count the program itself.
const beside = 128 << 20

// memoryLimit returns how much memory the runtime may take with maxmemory before it collects more often than else, when it
// has found live bytes of data and takes fixed bytes for what it cannot give back. However little that leaves, there
// may be an eighth as much garbage as data: otherwise it would collect all the time.
func memoryLimit(maxMemory int64, live, fixed uint64) int64 {
	return max(maxMemory+max(maxMemory*3/8, beside), int64(fixed+live+live/8))
}

// heap is what the runtime tells of the heap, in bytes.
type heap struct {
	allocated uint64 // since the start
	live      uint64 // what the last collection saw
	objects   uint64 // which includes garbage
	free      uint64 // not used and not given back
	cycles    uint64 // how many collections there were
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

// releases finds out, once a second, when data has gone of which the collector does not know: it looks at how much has
// been allocated, and after a FLUSHALL little may be for long.
type releases struct {
	last, most int64  // bytes of data, a second ago and at most since the last collection
	cycles     uint64 // collections until then
}

const muchGone = 8 << 20 // bytes of data that are worth a collection once they have gone

// next reports whether so much has gone since the last collection that another one is worth its while.
func (r *releases) next(h heap, used int64) bool {
	if h.cycles != r.cycles {
		r.cycles, r.most = h.cycles, r.last // what has gone in this second may have been seen as it was
	}
	r.last, r.most = used, max(r.most, used)
	return r.most-used > max(muchGone, int64(h.live/4))
}

// pauses finds out, once a second, when there is a pause in the use of memory.
type pauses struct {
	last     heap
	dirty    bool   // there was a second that was not quiet since the last pause
	quiet    int    // seconds in a row
	released uint64 // what had been allocated when memory was last given back
}

// next returns whether a pause has begun, and whether there is garbage that is worth giving back in it.
func (p *pauses) next(h heap) (pause, release bool) {
	if h.allocated-p.last.allocated > quiet {
		p.dirty, p.quiet = true, 0
	} else if p.quiet++; p.dirty && p.quiet >= pauseSeconds {
		p.dirty, pause = false, true
		// As much of what is there may be garbage as was allocated meanwhile: what the last collection still saw may have
		// become garbage since.
		garbage := min(h.objects, h.allocated-p.released)
		if release = garbage+h.free > max(worth, h.live/8); release {
			p.released = h.allocated
		}
	}
	p.last = h
	return pause, release
}

// tuner sets how much garbage there may be. While nothing happens it keeps the runtime from looking at all data every
// two minutes, which finds nothing: then there may be as much garbage as else, but it is the size of the heap that
// says so, and not the time.
type tuner struct {
	maxMemory func() int64 // within how many bytes the server is to keep its data, 0 if there is no limit
	stopped   atomic.Bool

	mu      sync.Mutex // protects what follows
	percent int        // what was set
	resting bool
	limit   int64 // that of the memory, unless resting
	given   int64 // that of the environment; 0 until it is known
}

// start sets how much garbage there may be, now and after each collection, which ends a rest.
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
		// to set it stops everything for a moment
		t.percent = percent
		debug.SetGCPercent(percent)
	}
	t.mu.Unlock()
	// what the next collection finds; not without a pointer, because it would share memory with others then
	type unused struct{ _ *byte }
	runtime.AddCleanup(new(unused), (*tuner).start, t)
}

// limitMemory has the runtime collect more often if it would take too much memory beside maxmemory. mu is held.
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
		debug.SetMemoryLimit(limit) // which stops everything for a moment
	}
}

// rest begins or ends a time in which nothing happens.
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

// tuneCollector looks after the garbage collector until stop is closed, unless the environment has set it (GOGC).
// maxMemory tells within how many bytes the server is to keep its data, 0 if there is no limit, and used how many it has.
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
			runtime.GC() // beside clients
		}
		if pause {
			releaseProgram()
		}
		t.rest(!p.dirty)
	}
}
