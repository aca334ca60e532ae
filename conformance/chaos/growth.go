package chaos

import (
	"strconv"
	"time"
)

// Growth is the cost of a group of some size when nothing else goes wrong, in simulated time, in which only the network
// takes time.
type Growth struct {
	Nodes int
	// Writes has the durations of the writes of one client, one after the other. Messages is the number of packets that
	// the servers sent each other per write.
	Writes   []time.Duration
	Messages float64
	// Lags has the periods after which all followers had executed a write, from the moment when it was acknowledged.
	Lags []time.Duration
	// Failovers has the periods without an acknowledged write after each loss of the leader.
	Failovers []time.Duration
}

// Grow measures a group of o.Nodes servers with the given numbers of writes and losses of the leader. It is meant for a
// bubble.
func Grow(o Options, writes, losses int) (r Growth, err error) {
	o.Keys = max(o.Keys, 1)
	g, err := o.group()
	if err != nil {
		return r, err
	}
	defer g.end()
	if err := g.awaitWhole(); err != nil {
		return r, err
	}
	r.Nodes = o.Nodes
	before := g.net.packets.Load()
	for i := range writes {
		took, err := g.write(i)
		if err != nil {
			return r, err
		}
		r.Writes = append(r.Writes, took)
		lag, err := g.lag()
		if err != nil {
			return r, err
		}
		r.Lags = append(r.Lags, lag)
	}
	r.Messages = float64(g.net.packets.Load()-before) / float64(writes)
	for i := range losses {
		if err := g.awaitWhole(); err != nil {
			return r, err
		}
		l := g.leader()
		if l == nil {
			continue
		}
		begun := time.Now()
		ended := make(chan error, 1)
		go func() { ended <- g.crash(l) }()
		if _, err := g.write(writes + i); err != nil {
			return r, err
		}
		r.Failovers = append(r.Failovers, time.Since(begun))
		if err := <-ended; err != nil {
			return r, err
		}
	}
	return r, nil
}

// write writes once, to whichever node accepts it, and returns how long that node took.
func (g *group) write(n int) (time.Duration, error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for i := range g.nodes {
			c := g.connect(i)
			if c == nil {
				continue
			}
			begun := time.Now()
			done := g.doAtMaster(c, 0, input{op: opWrite, key: n % g.o.Keys, value: strconv.Itoa(n)})
			took := time.Since(begun)
			c.Close()
			if done {
				return took, nil
			}
		}
	}
	return 0, errNotWhole
}

// lag waits until all nodes have executed what is committed, and returns how long that took.
func (g *group) lag() (time.Duration, error) {
	l := g.leader()
	if l == nil {
		return 0, errNotWhole
	}
	committed, begun := l.srv.Load().GroupStatus().Committed, time.Now()
	for _, n := range g.members() {
		for n.srv.Load().GroupStatus().Applied < committed {
			if time.Since(begun) > time.Minute {
				return 0, errNotWhole
			}
			time.Sleep(usualDelay / 20)
		}
	}
	return time.Since(begun), nil
}
