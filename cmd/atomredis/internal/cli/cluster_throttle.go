package cli

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// throttle makes the batches of a migration smaller while they delay the clients of the servers, and larger again when they do
// not. It measures with PING, and compares with the latency before the first batch.
type throttle struct {
	limit time.Duration // of the additional latency; 0 is no limit
	most  int           // slots of the largest batch
	size  int           // slots of the next batch
	usual time.Duration
}

const (
	// probes is the number of PINGs before the first batch, and probePause the time between two.
	probes     = 20
	probePause = 5 * time.Millisecond
	// calmTime is how long it is waited at most until the latency is low again.
	calmTime = 10 * time.Second
)

// begin measures the usual latency of servers.
func (t *throttle) begin(ctx context.Context, servers []*redis.Client) {
	t.size = t.most
	if t.limit == 0 {
		return
	}
	t.size = min(t.most, firstBatch)
	var took []time.Duration
	for range probes {
		took = append(took, ping(ctx, servers))
		sleep(ctx, probePause)
	}
	t.usual = high(took)
}

// firstBatch is the number of slots that move first if their effect is to be watched.
const firstBatch = 16

// during calls move, and chooses the size of the next batch by the latency of servers meanwhile. It waits until the latency is low
// again, for calmTime at most.
func (t *throttle) during(ctx context.Context, servers []*redis.Client, move func() error) error {
	if t.limit == 0 {
		return move()
	}
	probing, stop := context.WithCancel(ctx)
	var took []time.Duration
	var probe sync.WaitGroup
	probe.Go(func() {
		for probing.Err() == nil {
			if d := ping(probing, servers); probing.Err() == nil {
				took = append(took, d)
			}
			sleep(probing, probePause)
		}
	})
	err := move()
	stop()
	probe.Wait()
	if err != nil {
		return err
	}
	slow := t.next(high(took))
	for end := time.Now().Add(calmTime); slow && time.Now().Before(end) && sleep(ctx, 10*probePause); {
		slow = ping(ctx, servers) > t.usual+t.limit
	}
	return nil
}

// next chooses the size of the next batch after one during which the latency was so high, and reports whether it was too high.
func (t *throttle) next(latency time.Duration) (slow bool) {
	if latency > t.usual+t.limit {
		t.size = max(t.size/2, 1)
		return true
	}
	t.size = min(t.size*2, t.most)
	return false
}

// ping returns how long the slowest of some servers takes to answer.
func ping(ctx context.Context, servers []*redis.Client) (slowest time.Duration) {
	for _, s := range servers {
		began := time.Now()
		s.Ping(ctx) // a server that does not answer is slow; the migration itself reports what is wrong
		slowest = max(slowest, time.Since(began))
	}
	return slowest
}

// high returns the 90th percentile, 0 without any.
func high(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*9/10]
}
