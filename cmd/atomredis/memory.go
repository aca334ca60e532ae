package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The garbage collector of a data store: most of the heap is data that stays, and to look at all of it is dear. With little data there
// may be more garbage than data, which keeps collections rare. With a lot of data that would be too much memory, so there
// may be half as much. Once nobody needs the memory any more, the system gets it back: garbage, and the pages of the program that only its start needed.
// Not at once: memory that is needed again comes back page by page, and on a virtual machine that took 6 to 10 µs for each.

// limits say how much garbage there may be, in percent of the data, when there are so many bytes of data or more.
var limits = [...]struct {
	live    uint64
	percent int
}{{0, 400}, {8 << 20, 200}, {32 << 20, 100}, {128 << 20, 50}}

// What maxmemory limits is data without garbage; with it there may be less garbage, once there is so much data in bytes that it matters.
const (
	limitedFrom    = 16 << 20
	limitedPercent = 25
)

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

// collector decides, once a second, how the garbage collector works.
type collector struct {
	limit    int // index in limits
	last     heap
	dirty    bool   // there was a second that was not quiet since the last pause
	quiet    int    // seconds in a row
	released uint64 // what had been allocated when memory was last given back
}

// next returns the percentage of garbage, whether a pause has begun, and whether there is garbage that is worth giving back in it.
func (c *collector) next(h heap) (percent int, pause, release bool) {
	for c.limit+1 < len(limits) && h.live >= limits[c.limit+1].live {
		c.limit++
	}
	for h.live < limits[c.limit].live/4*3 { // not back and forth
		c.limit--
	}
	if h.allocated-c.last.allocated > quiet {
		c.dirty, c.quiet = true, 0
	} else if c.quiet++; c.dirty && c.quiet >= patience {
		c.dirty, pause = false, true
		// As much of what is there may be garbage as was allocated meanwhile: what the last collection still saw may have become garbage since.
		garbage := min(h.objects, h.allocated-c.released)
		if release = garbage+h.free > max(worth, h.live/8); release {
			c.released = h.allocated
		}
	}
	c.last = h
	return limits[c.limit].percent, pause, release
}

// tuneCollector looks after the garbage collector until stop is closed, unless the environment has set it (GOGC). limited tells whether the
// server is to keep within an amount of memory.
func tuneCollector(stop <-chan struct{}, limited func() bool) {
	if os.Getenv("GOGC") != "" {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	c := collector{last: readHeap(), dirty: true}
	set := limits[0].percent
	debug.SetGCPercent(set)
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now := readHeap()
		percent, pause, release := c.next(now)
		if now.live >= limitedFrom && limited() {
			percent = min(percent, limitedPercent)
		}
		if percent != set {
			set = percent
			debug.SetGCPercent(percent)
		}
		if release {
			debug.FreeOSMemory()
		}
		if pause {
			releaseProgram()
		}
	}
}
