package persist

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// backgroundPriority is the nice value of the thread that makes checkpoints. It computes for seconds where there are many keys, and
// clients are not to wait for it when there are fewer processors than threads with work.
const backgroundPriority = 5

// workInBackground gives the calling goroutine a thread of its own with a low priority. The thread ends with the goroutine.
func workInBackground() {
	runtime.LockOSThread()
	unix.Setpriority(unix.PRIO_PROCESS, 0, backgroundPriority) // on Linux 0 is the calling thread; without it everything works too
}

// A thread that computes without a break is put aside by the system whenever its time slice ends, and that is as likely while it holds
// a lock as at any other time: whoever wants the lock then waits for many milliseconds if there are more threads than processors. After
// a short sleep a slice begins anew, so a thread that sleeps now and then before it takes a lock keeps its processor until it has given it back.
const (
	maxBusy = 300 * time.Microsecond // how long the thread computes between two sleeps; a slice is some milliseconds
	rest    = 50 * time.Microsecond
)

// pacer puts the thread to sleep now and then.
type pacer struct{ awake time.Time }

// pause is called before a lock is taken.
func (p *pacer) pause() {
	if time.Since(p.awake) < maxBusy {
		return
	}
	t := unix.NsecToTimespec(int64(rest))
	unix.Nanosleep(&t, nil)
	p.awake = time.Now()
}
