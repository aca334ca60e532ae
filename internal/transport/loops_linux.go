package transport

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// loops is the transport on Linux: event loops on epoll, each on a thread of its own. A loop reads from every ready
// connection and lets the sessions execute the input, and after that writes all replies. Its reads and writes never
// block, so they bypass the scheduler. They are recv and send, which do less work in the system than read and write,
// and those of several connections are one system call if the system allows that (see sockcalls).
type loops struct {
	host     Host
	options  LoopOptions
	all      []*loop
	next     atomic.Uint32 // the loop that gets the next client
	together atomic.Bool   // several system calls are made at once
	wg       sync.WaitGroup

	threads threads
}

// NewLoops starts event loops. The error is errors.ErrUnsupported, or wraps it, where there are none.
func NewLoops(h Host, o LoopOptions) (Loops, error) {
	t := &loops{host: h, options: o}
	for i := range o.Loops {
		l, err := newLoop(t, &o.Counters[i])
		if err != nil {
			t.Close()
			return nil, err
		}
		t.all = append(t.all, l)
		t.wg.Add(1)
		go l.run()
	}
	return t, nil
}

// Recheck implements Transport.
func (t *loops) Recheck() {
	for _, l := range t.all {
		if !l.holding.Load() {
			continue
		}
		l.mail.Lock()
		l.mail.recheck = true
		l.mail.Unlock()
		l.interrupt()
	}
}

// Together implements Loops.
func (t *loops) Together() bool { return t.together.Load() }

// Close implements Transport.
func (t *loops) Close() {
	for _, l := range t.all {
		l.mail.Lock()
		l.mail.stop = true
		l.mail.Unlock()
		l.interrupt()
	}
	t.wg.Wait()
	for _, l := range t.all {
		unix.Close(l.epoll)
		unix.Close(l.wakeup)
	}
}
