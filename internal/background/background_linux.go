package background

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// priority is the nice value of a thread that works in the background. It computes for seconds where there are many
// keys, and clients are not to wait for it when there are fewer processors than threads with work.
const priority = 5

// Work gives the calling goroutine a thread of its own with a low priority. The thread ends with the goroutine.
func Work() {
	runtime.LockOSThread()
	unix.Setpriority(unix.PRIO_PROCESS, 0, priority) // on Linux 0 is the calling thread; without it everything works too
}

const (
	maxBusy = 300 * time.Microsecond // how long the thread computes between two sleeps; a slice is some milliseconds
	rest    = 50 * time.Microsecond
)

// Pause is called before a lock is taken, and now and then in a long computation.
func (p *Pacer) Pause() {
	if time.Since(p.awake) < maxBusy {
		return
	}
	t := unix.NsecToTimespec(int64(rest))
	unix.Nanosleep(&t, nil)
	p.awake = time.Now()
}
