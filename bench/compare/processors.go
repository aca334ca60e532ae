//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// apart gives this program the first of the processors that it may use, until together is called, and the servers the
// others, for good. As long as they may use the same ones the system now and then puts a server beside the generator,
// which never sleeps, and leaves it there for some milliseconds while another processor is idle: then the tail of the
// latency says how often that happened. With a single processor it does nothing.
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

// confine makes all threads of a process, and those that they create, use these processors only.
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
			if err := unix.SchedSetaffinity(tid, to); err != unix.ESRCH { // it has ended
				servers.Check(err)
			}
		}
	}
}
