package scripts

import (
	"errors"
	"runtime"

	"github.com/atomredis/atomredis/internal/stats"
	"github.com/atomredis/atomredis/scripting"
)

// memoryWatch bounds the memory that a script uses. What the whole process has grown by since the script began is
// held against it: while a script runs nobody else changes data. The heap that is in use when it begins contains
// garbage, which it may replace; so what is bounded is the process, not exactly the script. The heap contains garbage
// later too, and a script may make much of it, so the garbage is collected before a script is judged; that happens
// again only when the heap has grown by as much once more.
type memoryWatch struct {
	base int64 // bytes in use when the script began
	next int64 // bytes of growth at which it is judged, 0 if that is not known yet
}

// begin notes that there is another script.
func (w *memoryWatch) begin() { w.base, w.next = stats.ReadMemory().Heap, 0 }

// check stops the script if it uses more than limit bytes.
func (w *memoryWatch) check(in *scripting.Interrupt, limit int) {
	if w.next == 0 {
		w.next = int64(limit)
	}
	if stats.ReadMemory().Heap-w.base <= w.next {
		return
	}
	in.Hold(func() error {
		runtime.GC()
		grown := stats.ReadMemory().Heap - w.base
		if grown > int64(limit) {
			return errors.New(killedForMemory)
		}
		w.next = grown + int64(limit)
		return nil
	})
}
