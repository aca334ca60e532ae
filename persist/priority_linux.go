package persist

import (
	"runtime"

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
