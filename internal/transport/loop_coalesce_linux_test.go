package transport

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALoopCoalescesWakeUpsOnlyAmongManyClients(t *testing.T) {
	var seen [100]int64
	n := newCoalescer()
	p := &n
	depth := 1
	round := func(now int64, from, to int) {
		for i := from; i < to; i++ {
			p.arrived(10, depth, seen[i], now)
			seen[i] = now
		}
		p.trial.on = true
	}
	round(1, 0, coalesceClients-1)
	round(1, 0, coalesceClients-1) // the same clients again
	round(2, 0, 1)
	require.False(t, p.coalesces(1), "too few clients")
	round(3, 0, coalesceClients)
	require.False(t, p.coalesces(1), "they are counted when the millisecond is over")
	round(5, 0, 1)
	require.True(t, p.coalesces(1))
	require.False(t, p.coalesces(0), "woken for something else")
	round(6, 0, 2)
	require.False(t, p.coalesces(1), "one client in the millisecond before")
	p.clients, p.trial.on = coalesceClients, false
	require.False(t, p.coalesces(1), "it is of no use")
	require.EqualValues(t, 10*(2*(coalesceClients-1)+1+coalesceClients+1+2), p.received)
	gathers := func(now int64) bool {
		round(now, 0, coalesceClients)
		round(now+1, 0, 1)
		p.trial.on, p.full.high = false, true
		return p.coalesces(1)
	}
	require.False(t, gathers(10), "nearly full, but of single commands")
	depth = coalesceDepth
	require.True(t, gathers(20), "nearly full of pipelines")
	p.full.high = false
	require.False(t, p.coalesces(1), "not even nearly full")
}

// TestTrialsFindOutWhetherDelaysPay lets loops serve clients that send more if the loop delays its rounds, and
// others that do not. Sometimes other work takes the machine's time.
func TestTrialsFindOutWhetherDelaysPay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, gain := range []float64{-10, 0, 2, 8, 12} {
		var tr trial
		now, received := int64(1_000_000), 0.0
		rate := 3000.0 // bytes per ms
		pass := func(ms int) (delayed int) {
			for range ms {
				tr.update(true, now, int64(received))
				n := rate * (0.98 + 0.04*rng.Float64())
				if rng.IntN(20) == 0 {
					n = 0
				}
				if tr.on {
					n *= 1 + gain/100
					delayed++
				}
				received += n
				now++
			}
			return delayed
		}
		useful := gain > trialGain
		try := func(why string) {
			pass(1)
			windows, delayed := 1, 0
			for last := tr.window; tr.window > 0; last = tr.window {
				delayed += pass(1)
				if tr.window > last {
					windows++
				}
			}
			if useful {
				delayed-- // after the trial
			}
			require.Equal(t, windows*trialWindow, 2*delayed, "gain %v: %s: half of the trial", gain, why)
			require.Zero(t, windows%4)
			least := fewWindows
			if useful {
				least = minWindows
			}
			require.GreaterOrEqual(t, windows, least)
			require.LessOrEqual(t, windows, maxWindows)
			require.Equal(t, useful, tr.on, "gain %v: %s", gain, why)
		}
		check := func(ms int, when string) {
			want := 0
			if useful {
				want = ms
			}
			require.Equal(t, want, pass(ms), "gain %v: %s", gain, when)
		}
		first := minWait*rateWindow - 1
		if useful {
			first = usefulWait*rateWindow - 1
		}
		try("at first")
		check(first, "after the trial")
		try("after some time")
		check(first/2, "after that")
		tr.update(false, now, int64(received))
		require.False(t, tr.on, "the loop has little to do")
		now += 10_000
		tr.update(false, now, int64(received))
		if useful {
			try("much to do again")
		} else {
			check(first/2, "much to do again")
		}
		rate /= 2
		for tr.window == 0 {
			pass(1)
		}
		try("because the rate has changed")
		now -= 1000
		try("because the clock was set back")
		check(first, "after that trial")
		pass(1)
		require.Equal(t, 1, tr.window)
		tr.update(false, now, int64(received))
		require.Zero(t, tr.rate, "no conclusion")
		try("much to do once more, when the trial goes on")
		for wait := 2 * minWait; ; wait = min(2*wait, maxWait) { // the trial that goes on was the second one of no use
			if useful {
				wait = usefulWait
			}
			check(wait*rateWindow-1, "after one of several trials")
			if wait >= maxWait || useful {
				break
			}
			try("again")
		}
	}
}

// Load that comes in bursts, shorter than a trial, is not tried in each of them.
func TestTrialsGoOnInTheNextBurst(t *testing.T) {
	var tr trial
	now, received, delayed := int64(1_000_000), int64(0), 0
	for range 100 {
		for range trialWindow*fewWindows/2 + 3 {
			tr.update(true, now, received)
			if tr.on {
				delayed++
			}
			received += 3000
			now++
		}
		tr.update(false, now, received)
		require.False(t, tr.on)
		now += 50
	}
	require.GreaterOrEqual(t, delayed, trialWindow*fewWindows/2, "half of a trial at least")
	require.Less(t, delayed, 5*trialWindow*fewWindows, "in few of them")
}

// A loop may be delayed for so long that no window has a part that counts.
func TestTrialsInWhichNothingCanBeMeasured(t *testing.T) {
	var tr trial
	for now := int64(1000); now < 3000; now += 2 * trialWindow {
		tr.update(true, now, now)
		require.False(t, tr.on && tr.window == 0)
	}
}

func TestTheLoadOfALoop(t *testing.T) {
	m := loadMeter{limits: loadLimits{window: 8, high: 50, low: 35}}
	used := int64(0)
	measure := func(now, ns int64) bool {
		used += ns
		m.measure(now, func() int64 { return used })
		return m.high
	}
	require.False(t, measure(1_000_000, 1_000_000), "since the start of the clock")
	require.False(t, measure(1_000_007, 6_900_000), "too early to tell")
	require.True(t, measure(1_000_008, 100_000))
	require.True(t, measure(1_000_010, 0), "as it was last")
	require.True(t, measure(1_000_018, 9_000_000))
	require.True(t, measure(1_000_028, 4_500_000), "less, but because of the delays")
	require.False(t, measure(1_000_038, 3_500_000), "a third of the time")
	require.False(t, measure(1_000_048, 4_500_000), "not enough to begin again")
	require.False(t, measure(1_001_000, 50_000_000), "a pause")
	require.True(t, measure(1_001_010, 9_000_000))
	require.False(t, measure(500_000, 9_000_000), "the clock was set back")
	require.True(t, measure(500_010, 9_000_000))
}
