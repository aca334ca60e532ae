package transport

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// threads are the threads of the event loops, with their processor times. A loop gets another thread when it is
// relieved.
type threads struct {
	mu      sync.Mutex // protects the following fields
	running map[int]struct{}
	ended   ProcessorTimes // of threads that have ended
}

// begin registers the calling thread as a loop's.
func (t *threads) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == nil {
		t.running = map[int]struct{}{}
	}
	t.running[unix.Gettid()] = struct{}{}
}

// end removes the calling thread.
func (t *threads) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := unix.Gettid()
	t.ended.add(timesOf(id))
	delete(t.running, id)
}

// ProcessorTime implements Loops.
func (t *loops) ProcessorTime() time.Duration {
	t.threads.mu.Lock()
	defer t.threads.mu.Unlock()
	sum := t.threads.ended.Total
	for id := range t.threads.running {
		sum += timeOf(id)
	}
	return sum
}

// ProcessorTimes implements Loops.
func (t *loops) ProcessorTimes() ProcessorTimes {
	t.threads.mu.Lock()
	defer t.threads.mu.Unlock()
	sum := t.threads.ended
	for id := range t.threads.running {
		sum.add(timesOf(id))
	}
	return sum
}

func (t *ProcessorTimes) add(o ProcessorTimes) {
	t.System, t.User, t.Total = t.System+o.System, t.User+o.User, t.Total+o.Total
}

// timeOf returns how long a thread of the process has used processors.
func timeOf(id int) time.Duration {
	const schedulerClock, ofThread = 2, 4 // see clock_getcpuclockid(3)
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^id<<3|ofThread|schedulerClock), &spent); err != nil {
		return 0
	}
	return time.Duration(spent.Nano())
}

// timesOf is timeOf with its parts, for which a file has to be read.
func timesOf(id int) ProcessorTimes {
	times := ProcessorTimes{Total: timeOf(id)}
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", id))
	if err != nil {
		return times
	}
	// After the name, which may contain any character, the times are the 12th and the 13th field, in 1/100 s on
	// every machine.
	const tick = time.Second / 100
	if fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]); len(fields) >= 13 {
		user, _ := strconv.ParseInt(string(fields[11]), 10, 64)
		system, _ := strconv.ParseInt(string(fields[12]), 10, 64)
		times.User, times.System = time.Duration(user)*tick, time.Duration(system)*tick
	}
	return times
}
