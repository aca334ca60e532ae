package migrate

import (
	"time"

	"github.com/atomredis/atomredis/internal/cluster"
)

const (
	rateWindow = time.Minute     // for which the time of commands is counted at least
	wantedFor  = 5 * time.Minute // for which sampling goes on after the last question
)

// rates are the times that commands have taken lately, by slot. They are sampled while somebody asks for them, this server or the
// leader of another shard, and not for others: most servers never need them.
type rates struct {
	window time.Duration // 0 is rateWindow
	until  time.Time     // when sampling ends
	at     [2]time.Time  // of samples; the second one is later
	micros [2]*[cluster.Slots]int64
}

func (r *rates) pace() time.Duration {
	if r.window != 0 {
		return r.window
	}
	return rateWindow
}

// sample keeps the counters now and then, if they are wanted. counters is nil if nothing is counted.
func (r *rates) sample(now time.Time, counters *cluster.SlotStats) {
	if counters == nil || !now.Before(r.until) {
		r.forget()
		return
	}
	if now.Sub(r.at[1]) < r.pace() {
		return
	}
	r.at[0], r.micros[0] = r.at[1], r.micros[1]
	r.at[1], r.micros[1] = now, new([cluster.Slots]int64)
	for slot := range counters {
		r.micros[1][slot] = counters[slot].Micros.Load()
	}
}

// forget drops the samples: the next ones do not continue them.
func (r *rates) forget() { r.at, r.micros = [2]time.Time{}, [2]*[cluster.Slots]int64{} }

// read returns the microseconds since the older sample, which is one or two times the window ago. It makes sample go on.
func (r *rates) read(now time.Time, counters *cluster.SlotStats, own *cluster.SlotSet, loads *[cluster.Slots]int64) error {
	r.until = now.Add(wantedFor)
	switch {
	case counters == nil:
		return errNoTimes
	case r.micros[0] == nil:
		return errNoRates
	}
	for slot := range loads {
		if own.Has(slot) {
			loads[slot] = max(counters[slot].Micros.Load()-r.micros[0][slot], 0)
		}
	}
	return nil
}

// rateWindow returns for how long the time of commands is counted at least.
func (h *Migrations) rateWindow() time.Duration {
	h.rebalancer.mu.Lock()
	defer h.rebalancer.mu.Unlock()
	return h.rebalancer.rates.pace()
}
