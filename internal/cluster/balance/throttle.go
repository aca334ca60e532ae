package balance

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Throttle makes the batches of a migration smaller while they delay the clients of the servers, and larger again when they do
// not. It measures with a probe, and compares with the latency before the first batch.
type Throttle struct {
	Limit time.Duration // of the additional latency; 0 is no limit
	Most  int           // slots of the largest batch
	Pause time.Duration // between two probes
	size  int           // slots of the next batch
	usual time.Duration
}

// Probe returns how long the slowest of the servers takes to answer a small request.
type Probe func(ctx context.Context) time.Duration

// Size is the number of slots of the next batch.
func (t *Throttle) Size() int { return t.size }

const (
	probes     = 20               // before the first batch
	calmTime   = 10 * time.Second // for at most that long it is waited until the latency is low again
	firstBatch = 16               // slots of the first batch if its effect is watched
)

// Begin measures the usual latency.
func (t *Throttle) Begin(ctx context.Context, probe Probe) {
	t.size = t.Most
	if t.Limit == 0 {
		return
	}
	t.size = min(t.Most, firstBatch)
	var took []time.Duration
	for range probes {
		took = append(took, probe(ctx))
		Sleep(ctx, t.Pause)
	}
	t.usual = high(took)
}

// During calls move, and chooses the size of the next batch by the latency meanwhile. It waits until the latency is low again, for
// some seconds at most. It returns the error of move.
func (t *Throttle) During(ctx context.Context, probe Probe, move func() error) error {
	if t.Limit == 0 {
		return move()
	}
	probing, stop := context.WithCancel(ctx)
	var took []time.Duration
	var probes sync.WaitGroup
	probes.Go(func() {
		for probing.Err() == nil {
			if d := probe(probing); probing.Err() == nil {
				took = append(took, d)
			}
			Sleep(probing, t.Pause)
		}
	})
	err := move()
	stop()
	probes.Wait()
	if err != nil {
		return err
	}
	slow := t.next(high(took))
	for end := time.Now().Add(calmTime); slow && time.Now().Before(end) && Sleep(ctx, 10*t.Pause); {
		slow = probe(ctx) > t.usual+t.Limit
	}
	return nil
}

// next chooses the size of the next batch after one during which the latency was so high, and reports whether it was too high.
func (t *Throttle) next(latency time.Duration) (slow bool) {
	if latency > t.usual+t.Limit {
		t.size = max(t.size/2, 1)
		return true
	}
	t.size = min(t.size*2, t.Most)
	return false
}

// high returns the 90th percentile, 0 without any.
func high(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*9/10]
}

// Sleep waits, and reports false if ctx ends meanwhile.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
