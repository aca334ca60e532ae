package scripts

import (
	"errors"
	"runtime"

	"github.com/atomredis/atomredis/internal/stats"
	"github.com/atomredis/atomredis/scripting"
)

// memoryWatch limits the memory of a script. It measures the growth of the whole process since the script began,
// because no other client changes data while a script runs. The initial heap contains garbage that the script may
// replace, so the limit is one of the process, not of the script alone. Before a script is stopped its garbage is
// collected; that happens again only when the heap has grown by the same amount once more.
type memoryWatch struct {
	base int64 // bytes in use when the script began
	next int64 // growth in bytes at which the script is checked, 0 if not yet known
}

// begin starts to watch another script.
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
