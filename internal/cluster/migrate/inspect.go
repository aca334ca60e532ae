package migrate

import (
	"time"

	"github.com/atomredis/atomredis/engine"
)

// State that only tests of the server need.

// SetRateWindow sets for how long the time of commands is counted at least.
func (h *Migrations) SetRateWindow(d time.Duration) {
	h.rebalancer.mu.Lock()
	defer h.rebalancer.mu.Unlock()
	h.rebalancer.rates.window = d
}

// Promised reports whether the source of an import may export the slots, so that their keys must stay here.
func (h *Migrations) Promised(task string) bool {
	h.mu.Lock()
	t := h.working[task]
	h.mu.Unlock()
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.promised
}

// Exporting reports whether slots may still be exported by a task that is under way.
func (h *Migrations) Exporting() bool {
	var guard engine.Guard
	guard.Lock(h.ks, 1, h.ks.Now())
	defer guard.Unlock()
	for _, t := range h.exports {
		if t.err() == nil {
			return true
		}
	}
	return false
}
