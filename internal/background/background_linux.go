package background

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// priority is the nice value of background threads. With many keys they compute for seconds, and clients must not
// wait for them when there are fewer processors than busy threads.
const priority = 5

// Work gives the calling goroutine a thread of its own with a low priority. The thread ends with the goroutine.
func Work() {
	runtime.LockOSThread()
	unix.Setpriority(unix.PRIO_PROCESS, 0, priority) // on Linux 0 is the calling thread; an error does no harm
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
