package server

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
)

// memoryState is what INFO tells of memory that cannot be read at that time.
type memoryState struct {
	startup int64        // heap in bytes when the server began
	peak    atomic.Int64 // largest heap that was seen
}

// see notes the size of the heap.
func (m *memoryState) see(heap int64) {
	for peak := m.peak.Load(); heap > peak && !m.peak.CompareAndSwap(peak, heap); peak = m.peak.Load() {
	}
}

// memoryUse is what the runtime tells of its memory, in bytes.
type memoryUse struct {
	heap        int64 // all objects, dead ones that are not collected yet included
	idle        int64 // free, and kept for objects to come
	mapped      int64 // got from the system and not given back
	collections int64
}

func readMemory() memoryUse {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(samples)
	at := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	return memoryUse{heap: at(0), idle: at(1) + at(2), mapped: at(3) - at(4), collections: at(5)}
}

// residentBytes returns how much memory the process occupies, where the system tells.
func residentBytes() (int64, bool) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}

// systemMemory returns how much memory the machine has, where the system tells.
func systemMemory() (int64, bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
