package transport

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// This file decides when the thread of an event loop sleeps although clients may come, and how soon the system schedules it
// when it wakes.

// beQuick asks the system for two things for the calling thread: exact sleeps (see naps), and a short wait for a processor
// after a sleep while checkpoints and the garbage collector keep all of them busy. Since Linux 6.12 a thread with short time
// slices gets the second; older kernels ignore the request.
func beQuick() {
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	if attr, err := unix.SchedGetAttr(0, 0); err == nil && attr.Policy == unix.SCHED_NORMAL {
		attr.Runtime = uint64(shortSlice)
		unix.SchedSetAttr(0, attr, 0)
	}
}

// shortSlice is the shortest slice that the system gives.
const shortSlice = 100 * time.Microsecond

// yieldInterval is how long, in ms, a loop that keeps its processor has had it when it lets the scheduler have it for
// a moment, as soon as no client is ready. From a goroutine that has had one for ten ms the scheduler takes it, at
// any time and with a signal, which holds up the loop for longer. So this must be some ms less.
const yieldInterval = 6

// Naps. When many clients come back one after the other, each as soon as it has a reply, a loop that waits for each
// of them is woken for each, which costs the client's side as much as it costs ours. So while at least napCrowd
// clients send something within a millisecond, a loop for which fewer than napEnough are ready may sleep for napTime
// ns, and then serve all who came meanwhile at once. That makes up to a tenth more requests per second for up to a
// tenth less processor time, where clients send as much as they get answers for. Where they send no more than they
// would anyway, it only makes them wait. Which of the two it is the loop finds out by trying: see trial. But
// pipelines keep clients so busy that naps bring no more requests, and still take less time: of those a loop that is
// nearly full lets some gather in any case.
const (
	napCrowd  = 32
	napEnough = 5
	napTime   = 60_000
	napDepth  = 4 // commands that come at once, on average, are pipelines
)

// napper is what a loop needs to know to decide on naps.
type napper struct {
	tick     int64 // the last ms in which something came
	active   int   // clients that sent something in it
	reads    int   // how often something came in it
	commands int   // how many commands these were, going by the time before of each client
	crowd    int   // what active was in the ms before, in which something came
	deep     bool  // it was pipelines
	received int64 // bytes that clients have sent
	busy     loadMeter
	full     loadMeter
	trial    trial
}

func newNapper() napper {
	return napper{busy: loadMeter{limits: busyLoad}, full: loadMeter{limits: fullLoad}}
}

// naps reports whether to nap after a round in which some clients were served, unless enough are ready.
func (p *napper) naps(served int) bool {
	return (p.gathers() || p.trial.napping) && served > 0 && p.crowd >= napCrowd
}

// gathers reports whether to nap without a trial.
func (p *napper) gathers() bool { return p.full.high && p.deep }

// arrived counts n bytes of a client that sent depth commands before, at the time seen, in ms, at the time now.
func (p *napper) arrived(n, depth int, seen, now int64) {
	if p.tick != now {
		p.crowd, p.deep = p.active, p.commands >= napDepth*p.reads
		p.active, p.reads, p.commands, p.tick = 0, 0, 0, now
		p.busy.measure(now, threadTime)
		p.full.measure(now, threadTime)
		p.trial.update(p.busy.high && !p.gathers(), now, p.received)
	}
	p.received += int64(n)
	p.reads++
	p.commands += depth
	if seen != now {
		p.active++
	}
}

// trial finds out whether naps are of use: for a while a loop naps in every other window of time, and if it got
// clearly more from its clients in these than in the others it goes on with naps, otherwise without. What is compared
// are the medians of single milliseconds: now and then the machine does something else for some of them, which is
// more than naps bring.
//
// It tries again when what it gets changes, and after some time: if naps were of no use soon at first, in case the
// trial was wrong, and then less and less often, because a trial makes clients wait. That they are of no use it
// remembers while it has little to do, as what a trial has found so far, which goes on afterwards: load that comes in
// bursts would otherwise be tried in each. That they are of use it has to find out again, because clients would wait
// for nothing if that has changed.
type trial struct {
	napping bool
	window  int        // of the trial that is under way, from 1 on; 0 if there is none
	rates   [2][]int64 // bytes per ms; of the windows without naps, and with
	rate    int64      // their median when the last trial ended; 0 before
	checks  int        // how often the rate will be looked at before the next trial
	wait    int        // the same if naps are of no use

	// when the window began, or the time between two looks, in ms, and the bytes received until then; 0 while there is
	// little to do
	began, before int64
	at, seen      int64 // when update was last called, and the same
}

const (
	trialWindow = 5 // ms, of which the first does not count: clients find another pace
	fewWindows  = 4 // of a trial that finds no use; all three are multiples of four
	minWindows  = 8 // of one that does
	maxWindows  = 24
	trialGain   = 6   // percent
	rateWindow  = 100 // ms
	rateChange  = 25  // percent
	usefulWait  = 6   // of the rate's windows until the next trial after one in which naps were of use
	minWait     = 4   // and after others
	maxWait     = 64
)

// update is told at time now, in ms, how many bytes have been received, and whether the loop is busy.
func (t *trial) update(busy bool, now, received int64) {
	passed, got, first := now-t.at, received-t.seen, t.at == t.began
	t.at, t.seen = now, received
	switch {
	case !busy:
		if t.napping && t.window == 0 {
			t.reset()
		}
		t.began, t.napping = 0, false
	case t.began == 0 && (t.rate > 0 || t.window > 0): // naps were of no use before, or a trial goes on
		t.began, t.before, t.napping = now, received, t.window%4 >= 2
	case t.began == 0, passed < 0: // the clock was set back
		t.begin(minWait)
	case t.window == 0:
		t.check()
	default:
		if !first && passed > 0 {
			kind := 0
			if t.napping {
				kind = 1
			}
			t.rates[kind] = append(t.rates[kind], got/passed)
		}
		if now-t.began < trialWindow {
			return
		}
		t.began, t.before = now, received
		if t.window%4 != 0 || t.window < fewWindows || !t.end() {
			t.window++
			t.napping = t.window%4 >= 2 // without, with, with, without: what changes steadily counts for both alike
		}
	}
}

// reset forgets everything.
func (t *trial) reset() {
	*t = trial{rates: [2][]int64{t.rates[0][:0], t.rates[1][:0]}}
}

// begin begins a trial.
func (t *trial) begin(wait int) {
	at, seen := t.at, t.seen
	t.reset()
	t.window, t.wait, t.at, t.seen, t.began, t.before = 1, wait, at, seen, at, seen
}

// check begins a trial if what the loop gets has changed, or after some time.
func (t *trial) check() {
	passed := t.at - t.began
	if passed < rateWindow {
		return
	}
	change := (t.seen-t.before)/passed - t.rate
	t.checks--
	switch {
	case max(change, -change) > t.rate*rateChange/100:
		t.begin(minWait)
	case t.checks == 0 && t.napping:
		t.begin(minWait)
	case t.checks == 0:
		t.begin(min(2*t.wait, maxWait))
	default:
		t.began, t.before = t.at, t.seen
	}
}

// end draws the conclusion of a trial, and reports true, if it is clear or the trial has been long enough.
func (t *trial) end() bool {
	without, with := median(t.rates[0]), median(t.rates[1])
	gain := (with - without) * 100
	switch {
	case gain <= without*trialGain/2, t.window >= maxWindows:
	case t.window < minWindows, gain < without*trialGain*2:
		return false
	}
	t.napping, t.window = gain > without*trialGain, 0
	t.rate, t.checks = without, t.wait
	if t.napping {
		t.rate, t.checks = with, usefulWait
	}
	return true
}

// median returns the median of rates, which it sorts; 0 if there are none.
func median(rates []int64) int64 {
	if len(rates) == 0 {
		return 0
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// loadLimits are when a load is high.
type loadLimits struct {
	window    int64 // ms between two measurements at least
	high, low int64 // percent: from high on it is, and until low it stays so, because naps themselves make it less
}

// Clients that wait for replies keep a loop of pipelines at more than fullLoad.high, even while it naps; those that
// send 70 % of what Redis can take must stay below fullLoad.low, or they would wait for naps that nobody gains by:
// see bench/notes/tried.md.
var (
	busyLoad = loadLimits{window: 8, high: 50, low: 35}
	fullLoad = loadLimits{window: 64, high: 76, low: 70}
)

// loadMeter measures for how much of the time a loop computes.
type loadMeter struct {
	limits   loadLimits
	high     bool
	at, used int64 // when it was last measured, in ms, and the processor time until then, in ns
}

// measure is called at time now, in ms; used returns the processor time that the loop has used, in ns.
func (m *loadMeter) measure(now int64, used func() int64) {
	passed := now - m.at
	if passed >= 0 && passed < m.limits.window {
		return
	}
	was := m.used
	m.at, m.used = now, used()
	limit := m.limits.high
	if m.high {
		limit = m.limits.low
	}
	m.high = passed > 0 && m.used-was > passed*1_000_000*limit/100
}

// threadTime returns the processor time that the calling thread has used, in ns.
func threadTime() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return t.Nano()
}
