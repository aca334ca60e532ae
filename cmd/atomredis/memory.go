package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// The garbage collector of a data store: most of the heap is data that stays, and to look at all of it is dear. So there may be half as much garbage as data, and with
// little data more than data, which keeps collections rare. How much is decided after each collection: data may become many times as much within a second, and as
// little again. Once nobody needs the memory any more, the system gets it back: garbage, and the pages of the program that only its start needed.
// Not at once: memory that is needed again comes back page by page, and on a virtual machine that took 6 to 10 µs for each.

const (
	someGarbage = 64 << 20 // bytes of garbage that there may be with little data
	leastHeap   = 4 << 20  // bytes of data that the runtime takes less for: with 100 % there may be as much garbage
)

// garbagePercent returns how much garbage there may be, in percent of so many bytes of data. What maxmemory limits is data without garbage; with it there
// may be half as much.
func garbagePercent(live uint64, limited bool) int {
	live = max(live, leastHeap)
	garbage := max(live/2, someGarbage)
	if limited {
		garbage /= 2
	}
	return int(garbage * 100 / live)
}

const (
	quiet    = 1 << 20 // bytes allocated in a second below which it is a quiet one
	patience = 10      // quiet seconds in a row that make a pause
	worth    = 4 << 20 // bytes of possible garbage, and free memory, that are worth a collection in a pause
)

// heap is what the runtime tells of the heap, in bytes.
type heap struct {
	allocated uint64 // since the start
	live      uint64 // what the last collection saw
	objects   uint64 // which includes garbage
	free      uint64 // not used and not given back
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(samples)
	return heap{samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64(), samples[3].Value.Uint64() + samples[4].Value.Uint64()}
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
	} else if p.quiet++; p.dirty && p.quiet >= patience {
		p.dirty, pause = false, true
		// As much of what is there may be garbage as was allocated meanwhile: what the last collection still saw may have become garbage since.
		garbage := min(h.objects, h.allocated-p.released)
		if release = garbage+h.free > max(worth, h.live/8); release {
			p.released = h.allocated
		}
	}
	p.last = h
	return pause, release
}

// tuner sets how much garbage there may be.
type tuner struct {
	limited func() bool // whether the server is to keep within an amount of memory
	percent int         // what was set
	stopped atomic.Bool
}

// start sets how much garbage there may be, now and after each collection.
func (t *tuner) start() {
	if t.stopped.Load() {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := garbagePercent(live[0].Value.Uint64(), t.limited())
	if difference := percent - t.percent; max(difference, -difference) > t.percent/8 { // to set it stops everything for a moment
		t.percent = percent
		debug.SetGCPercent(percent)
	}
	type unused struct{ _ *byte } // what the next collection finds; not without a pointer, because it would share memory with others then
	runtime.AddCleanup(new(unused), (*tuner).start, t)
}

// tuneCollector looks after the garbage collector until stop is closed, unless the environment has set it (GOGC). limited tells whether the
// server is to keep within an amount of memory.
func tuneCollector(stop <-chan struct{}, limited func() bool) {
	if os.Getenv("GOGC") != "" {
		return
	}
	t := tuner{limited: limited}
	t.start()
	defer t.stopped.Store(true)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	p := pauses{last: readHeap(), dirty: true}
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		pause, release := p.next(readHeap())
		if release {
			debug.FreeOSMemory()
		}
		if pause {
			releaseProgram()
		}
	}
}
