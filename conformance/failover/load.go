//go:build linux

package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// How clients behave: they give up quickly, and do not repeat operations that may have been executed. What they wait for
// servers that are stopped is a part of the measured gaps: a stopped server still accepts connections.
const (
	replyTimeout = 500 * time.Millisecond
	dialTimeout  = 300 * time.Millisecond
	workers      = 4 // of each kind of client
)

func plainOptions(addr string) *redis.Options {
	return &redis.Options{Addr: addr, MaxRetries: -1, DialTimeout: dialTimeout, DialerRetries: 1, ReadTimeout: replyTimeout,
		WriteTimeout: replyTimeout, ContextTimeoutEnabled: true}
}

func sentinelClient(g *group) redis.UniversalClient {
	o := &redis.FailoverOptions{MasterName: masterName, MaxRetries: -1, DialTimeout: dialTimeout, ReadTimeout: replyTimeout,
		WriteTimeout: replyTimeout, ContextTimeoutEnabled: true}
	for _, n := range g.nodes {
		o.SentinelAddrs = append(o.SentinelAddrs, n.ip+":"+sentinelPort)
	}
	return redis.NewFailoverClient(o)
}

func clusterClient(g *group) redis.UniversalClient {
	// A client of clusters learns of a new master from the others only when it requests the map, which it rarely does
	// by default.
	o := &redis.ClusterOptions{ClusterStateReloadInterval: 500 * time.Millisecond, DialTimeout: dialTimeout,
		ReadTimeout: replyTimeout, WriteTimeout: replyTimeout, ContextTimeoutEnabled: true}
	for _, n := range g.nodes {
		o.Addrs = append(o.Addrs, n.addr())
	}
	return redis.NewClusterClient(o)
}

// client returns a client that finds the leader.
func (g *group) client() redis.UniversalClient {
	if slices.Contains(g.o.Clients, "sentinel") {
		return sentinelClient(g)
	}
	return clusterClient(g)
}

// load is a set of clients of one kind that write during a round.
type load struct {
	kind    string
	round   int
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	acked [workers][]int // by worker: the numbers in its set
	times []time.Time    // when writes were acknowledged
	reads int
	wrong error
}

// load starts writing with clients of every kind.
func (g *group) load(ctx context.Context, round int) (all []*load) {
	for _, kind := range g.o.Clients {
		ctx, cancel := context.WithCancel(ctx)
		l := &load{kind: kind, round: round, cancel: cancel}
		for w := range workers {
			l.running.Go(func() { l.work(ctx, g, w) })
		}
		all = append(all, l)
	}
	return all
}

// key is the set of a worker.
func (l *load) key(worker int) string { return fmt.Sprintf("%s:%d:%d", l.kind, worker, l.round) }

// work adds one number after the other to the worker's set. Acknowledged numbers must be there whenever it looks.
func (l *load) work(ctx context.Context, g *group, worker int) {
	var client redis.UniversalClient
	at := worker
	connect := func() {
		switch {
		case l.kind == "plain":
			if client != nil {
				client.Close()
			}
			client = redis.NewClient(plainOptions(g.nodes[at%len(g.nodes)].addr()))
			at++
		case client == nil && l.kind == "sentinel":
			client = sentinelClient(g)
		case client == nil:
			client = clusterClient(g)
		}
	}
	connect()
	defer func() { client.Close() }()
	key := l.key(worker)
	for n := 0; ctx.Err() == nil; n++ {
		err := client.SAdd(ctx, key, n).Err()
		if err == nil {
			l.note(worker, n)
		}
		if err == nil && n%4 == 3 {
			old := l.some(worker, n)
			var there bool
			if there, err = client.SIsMember(ctx, key, old).Result(); err == nil && !there {
				l.fail(fmt.Errorf("%s has no %d any more, which was acknowledged", key, old))
				return
			}
			l.mu.Lock()
			l.reads++
			l.mu.Unlock()
		}
		if err != nil && ctx.Err() == nil {
			connect()
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func (l *load) note(worker, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[worker] = append(l.acked[worker], n)
	l.times = append(l.times, time.Now())
}

// some returns a number that was acknowledged to a worker.
func (l *load) some(worker, seed int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := l.acked[worker]
	return mine[seed*7919%len(mine)]
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = errors.Join(l.wrong, err)
}

func (l *load) stop() {
	l.cancel()
	l.running.Wait()
}

func (l *load) counts() (writes, reads int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.times), l.reads
}

// check checks that all acknowledged numbers are there, and removes them.
func (l *load) check(ctx context.Context, g *group) error {
	if l.wrong != nil {
		return l.wrong
	}
	for w, numbers := range l.acked {
		var members map[string]struct{}
		if err := g.atLeader(ctx, func(c *redis.Client) (err error) {
			members, err = c.SMembersMap(ctx, l.key(w)).Result()
			return err
		}); err != nil {
			return err
		}
		for _, n := range numbers {
			if _, ok := members[strconv.Itoa(n)]; !ok {
				return fmt.Errorf("%s has no %d, which was acknowledged", l.key(w), n)
			}
		}
		if err := g.atLeader(ctx, func(c *redis.Client) error { return c.Del(ctx, l.key(w)).Err() }); err != nil {
			return err
		}
	}
	return nil
}

// gap returns the longest period without an acknowledgement from a moment on.
func (l *load) gap(from time.Time) (longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortFunc(l.times, time.Time.Compare)
	last := from
	for _, at := range l.times {
		if at.After(from) {
			longest, last = max(longest, at.Sub(last)), at
		}
	}
	return longest
}
