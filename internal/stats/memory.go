package stats

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
)

// Peak is the most memory that was seen in use. Any goroutine may call its method.
type Peak struct {
	mu    sync.Mutex
	bytes int64
	at    int64 // in ms since 1970
}

// See updates the peak with the memory in use, in bytes, at a time in ms since 1970. It returns the peak and its time.
func (p *Peak) See(used, now int64) (bytes, at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if used > p.bytes || p.at == 0 {
		p.bytes, p.at = used, now
	}
	return p.bytes, p.at
}

// Memory has the runtime's numbers about its memory, in bytes.
type Memory struct {
	Heap        int64 // all objects, dead ones that are not collected yet included
	Idle        int64 // free, and kept for future objects
	Mapped      int64 // got from the system and not given back
	Collections int64 // how many there were
}

// ReadMemory reads the numbers from the runtime.
func ReadMemory() Memory {
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
	return Memory{Heap: at(0), Idle: at(1) + at(2), Mapped: at(3) - at(4), Collections: at(5)}
}

// ResidentBytes returns how many bytes of memory the process occupies, if the system provides the number.
func ResidentBytes() (int64, bool) {
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

// SystemMemory returns how many bytes of memory the machine has, if the system provides the number.
func SystemMemory() (int64, bool) {
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

// Ratio returns a/b, or a if b is 0.
func Ratio(a, b int64) float64 { return float64(a) / float64(max(b, 1)) }
