package transport

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// This file decides when an event loop delays its next round so that one round serves several clients, and how soon the
// system schedules the loop's thread when it wakes.

// beQuick asks the system for two things for the calling thread: exact sleeps (see coalescer), and a short wait for a processor
// after a sleep while checkpoints and the garbage collector keep all of them busy. Since Linux 6.12 a thread with short time
// slices gets the second; older kernels ignore the request.
func beQuick() {
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	if attr, err := unix.SchedGetAttr(0, 0); err == nil && attr.Policy == unix.SCHED_NORMAL {
		attr.Runtime = uint64(shortSlice)
		unix.SchedSetAttr(0, attr, 0)
	}
}

// shortSlice is the shortest time slice that the system allows.
const shortSlice = 100 * time.Microsecond

// yieldInterval is the time in ms after which a loop that keeps its processor gives it to the scheduler for a
// moment, as soon as no client is ready. After ten ms the scheduler takes the processor from a goroutine at any
// time, with a signal, which delays the loop for longer. So this must be some ms less.
const yieldInterval = 6

// Coalescing of wake-ups, as network cards coalesce interrupts. When many clients send their next command as soon as
// they have a reply, a loop wakes for each of them, which costs the clients' side as much as ours. So while at least
// coalesceClients clients send within a millisecond, a loop for which fewer than coalesceReady are ready may sleep
// for coalesceDelay ns and then serve all that have come. Where clients send as fast as they get replies, this makes
// up to a tenth more requests a second for up to a tenth less processor time. Where they do not, it only adds
// latency. The loop tries both (see trial). Pipelines keep clients so busy that a delay brings no more requests but
// still saves time: a loop that is nearly full of them delays its rounds in any case.
const (
	coalesceClients = 32
	coalesceReady   = 5
	coalesceDelay   = 60_000
	coalesceDepth   = 4 // average number of commands at once that counts as pipelines
)

// coalescer has the numbers with which a loop decides on a delay.
type coalescer struct {
	tick     int64 // the last ms with input
	active   int   // clients that sent input in it
	reads    int   // number of inputs in it
	commands int   // estimated number of commands in it, from the earlier input of each client
	clients  int   // active of the previous ms with input
	deep     bool  // the clients sent pipelines
	received int64 // bytes that clients have sent
	busy     loadMeter
	full     loadMeter
	trial    trial
}

func newCoalescer() coalescer {
	return coalescer{busy: loadMeter{limits: busyLoad}, full: loadMeter{limits: fullLoad}}
}

// coalesces reports whether to delay the next round, after one in which some clients were served, unless enough are ready.
func (p *coalescer) coalesces(served int) bool {
	return (p.gathers() || p.trial.on) && served > 0 && p.clients >= coalesceClients
}

// gathers reports whether to delay without a trial.
func (p *coalescer) gathers() bool { return p.full.high && p.deep }

// arrived counts n bytes of a client that sent depth commands before, at the time seen, in ms, at the time now.
func (p *coalescer) arrived(n, depth int, seen, now int64) {
	if p.tick != now {
		p.clients, p.deep = p.active, p.commands >= coalesceDepth*p.reads
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

// trial finds out whether delays pay: a loop delays its rounds in every other window of time, and if clients sent
// clearly more in these windows it continues with delays, otherwise without. It compares the medians of single
// milliseconds, because other work of the machine takes some of them completely, which has a greater effect than
// delays.
//
// It tries again when the clients' rate changes, and after some time: soon at first if delays did not pay, in case
// the trial was wrong, and then less and less often, because a trial makes clients wait. While the loop has little
// to do it remembers that delays did not pay, and what an unfinished trial has found: otherwise load that comes in
// bursts would be tried in each burst. It does not remember that delays paid, because clients would wait in vain if
// that has changed.
type trial struct {
	on     bool
	window int        // number of the current trial's window, from 1 on; 0 if there is none
	rates  [2][]int64 // bytes per ms; of the windows without delays, and with
	rate   int64      // their median when the last trial ended; 0 before
	checks int        // how many times the rate is checked before the next trial
	wait   int        // the same if delays do not pay

	// The start of the window, or of the time between two checks, in ms, and the bytes received until then; 0 while
	// there is little to do.
	began, before int64
	at, seen      int64 // when update was last called, and the same
}

const (
	trialWindow = 5 // ms, the first ms does not count, because the clients' rate changes
	fewWindows  = 4 // of a trial that finds no use; all three are multiples of four
	minWindows  = 8 // of a trial that finds a use
	maxWindows  = 24
	trialGain   = 6   // percent
	rateWindow  = 100 // ms
	rateChange  = 25  // percent
	usefulWait  = 6   // windows of the rate until the next trial after one in which delays paid
	minWait     = 4   // and after others
	maxWait     = 64
)

// update is told at time now, in ms, how many bytes have been received, and whether the loop is busy.
func (t *trial) update(busy bool, now, received int64) {
	passed, got, first := now-t.at, received-t.seen, t.at == t.began
	t.at, t.seen = now, received
	switch {
	case !busy:
		if t.on && t.window == 0 {
			t.reset()
		}
		t.began, t.on = 0, false
	case t.began == 0 && (t.rate > 0 || t.window > 0): // delays did not pay before, or a trial continues
		t.began, t.before, t.on = now, received, t.window%4 >= 2
	case t.began == 0, passed < 0: // the clock was set back
		t.begin(minWait)
	case t.window == 0:
		t.check()
	default:
		if !first && passed > 0 {
			kind := 0
			if t.on {
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
			t.on = t.window%4 >= 2 // without, with, with, without: a steady change affects both equally
		}
	}
}

// reset clears all measurements.
func (t *trial) reset() {
	*t = trial{rates: [2][]int64{t.rates[0][:0], t.rates[1][:0]}}
}

// begin begins a trial.
func (t *trial) begin(wait int) {
	at, seen := t.at, t.seen
	t.reset()
	t.window, t.wait, t.at, t.seen, t.began, t.before = 1, wait, at, seen, at, seen
}

// check begins a trial if the rate has changed, or after some time.
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
	case t.checks == 0 && t.on:
		t.begin(minWait)
	case t.checks == 0:
		t.begin(min(2*t.wait, maxWait))
	default:
		t.began, t.before = t.at, t.seen
	}
}

// end sets the result of a trial, and reports true, if the result is clear or the trial has been long enough.
func (t *trial) end() bool {
	without, with := median(t.rates[0]), median(t.rates[1])
	gain := (with - without) * 100
	switch {
	case gain <= without*trialGain/2, t.window >= maxWindows:
	case t.window < minWindows, gain < without*trialGain*2:
		return false
	}
	t.on, t.window = gain > without*trialGain, 0
	t.rate, t.checks = without, t.wait
	if t.on {
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

// loadLimits define a high load.
type loadLimits struct {
	window    int64 // ms between two measurements at least
	high, low int64 // percent: the load is high from high on, until it falls below low, because delays lower the load
}

// Clients that wait for replies keep a loop of pipelines at more than fullLoad.high, even with delays; those that
// send 70 % of the requests that Redis can serve must stay below fullLoad.low, or delays would only make them wait:
// see bench/notes/tried.md.
var (
	busyLoad = loadLimits{window: 8, high: 50, low: 35}
	fullLoad = loadLimits{window: 64, high: 76, low: 70}
)

// loadMeter measures for which part of the time a loop computes.
type loadMeter struct {
	limits   loadLimits
	high     bool
	at, used int64 // the time of the last measurement, in ms, and the processor time until then, in ns
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
