//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// apart confines this program to the first of the processors that it may use, until together is called, and the servers
// to the others, for good. If they shared processors, the system would now and then put a server beside the generator,
// which never sleeps, and leave it there for some milliseconds while another processor is idle. The tail of the latency
// would then show how often that happened. With a single processor apart does nothing.
func apart(both [2]*servers.Server) (together func()) {
	var all, own, rest unix.CPUSet
	servers.Check(unix.SchedGetaffinity(0, &all))
	if all.Count() < 2 {
		return func() {}
	}
	first := 0
	for !all.IsSet(first) {
		first++
	}
	own.Set(first)
	rest = all
	rest.Clear(first)
	for _, s := range both {
		confine(s.PID(), &rest)
	}
	confine(os.Getpid(), &own)
	return func() { confine(os.Getpid(), &all) }
}

// confine makes all threads of a process, and those that they create, use only these processors.
func confine(pid int, to *unix.CPUSet) {
	done := map[int]bool{}
	for found := true; found; { // a thread that was not confined yet may have created another
		found = false
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		servers.Check(err)
		for _, t := range threads {
			tid, err := strconv.Atoi(t.Name())
			servers.Check(err)
			if done[tid] {
				continue
			}
			done[tid], found = true, true
			if err := unix.SchedSetaffinity(tid, to); err != unix.ESRCH { // the thread has ended
				servers.Check(err)
			}
		}
	}
}
