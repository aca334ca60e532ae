package shards

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// This file asks the other shards for their records, and answers them.

// watch asks the other shards periodically, and calls Tick.
func (h *Shards) watch() {
	ctx := h.ctx
	for ctx.Err() == nil {
		if h.host.Leads() && h.Record().ID == "" && h.o.Clustered {
			_ = h.Change(func(_ *engine.Guard, r *cluster.Record) error {
				if r.ID != "" {
					return ErrUnchanged
				}
				*r = *h.first()
				return nil
			})
		}
		h.confirm()
		h.askAll()
		h.host.Tick()
		select {
		case <-h.wake:
		case <-time.After(AskEvery):
		case <-ctx.Done():
		}
	}
}

// askAll asks all other shards. The leader records their answers.
func (h *Shards) askAll() {
	var asking sync.WaitGroup
	for _, o := range h.Record().Others {
		asking.Go(func() { _, _ = h.AskShard(&o, peers.Question{Ask: peers.AskNews}) })
	}
	asking.Wait()
	if !h.host.Leads() {
		return
	}
	if h.learn(h.Record().Clone()) {
		_ = h.Change(func(_ *engine.Guard, r *cluster.Record) error {
			if !h.learn(r) {
				return ErrUnchanged
			}
			return nil
		})
	}
}

// learn applies the answers of other shards to a record, and settles it. It reports whether the record has changed.
func (h *Shards) learn(r *cluster.Record) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range r.Others {
		last, ok := h.seen[o.ID]
		if !ok {
			continue
		}
		news = r.Learn(last.Shard, true) || news
		for _, k := range last.Known {
			if time.Now().After(h.forgotten[k.ID]) && len(k.Addrs) > 0 {
				news = r.Learn(k, false) || news
			}
		}
	}
	return r.Settle() || news
}

// AskShard asks the servers of a shard in turn, the leader first, until one answers.
func (h *Shards) AskShard(o *cluster.Other, q peers.Question) (a peers.News, err error) {
	h.mu.Lock()
	leader := h.seen[o.ID].Leader
	h.mu.Unlock()
	err = ErrNoID
	for _, addr := range leaderFirst(o.Addrs, leader) {
		if a, err = h.ask(addr, q); err == nil && a.Shard.ID == o.ID {
			return a, nil
		}
	}
	return a, err
}

// ask asks a server and keeps its answer.
func (h *Shards) ask(addr string, q peers.Question) (a peers.News, err error) {
	c, err := h.node.Dial(addr, peer.Shards, peers.Timeout)
	if err != nil {
		return a, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(peers.Timeout))
	if q.Ask != peers.AskNews {
		c.SetDeadline(time.Now().Add(peers.TaskTimeout))
	}
	if err := c.Call(q, &a); err != nil {
		return a, err
	}
	h.mu.Lock()
	if old, ok := h.seen[a.Shard.ID]; !ok || a.Shard.Version >= old.Shard.Version {
		h.seen[a.Shard.ID] = seen{a, time.Now()}
	}
	h.mu.Unlock()
	if a.Leads && q.Ask == peers.AskNews && h.Record().Other(a.Shard.ID) != nil {
		h.host.Defined(a.Shard.ID, a.Definitions)
	}
	return a, nil
}

// Answer answers AskNews and AskMeet.
func (h *Shards) Answer(q *peers.Question) (a peers.News, err error) {
	switch {
	case !h.o.Clustered:
		err = ErrNoCluster
	case q.Ask == peers.AskMeet && q.Shard != nil:
		err = h.met(*q.Shard)
	case q.Ask != peers.AskNews:
		err = errQuestion
	}
	return h.News(), err
}

var errQuestion = errors.New("unknown question")

// Unknown reports whether another server does not know a question. It says so without a code.
func Unknown(err error) bool {
	answer, ok := errors.AsType[*peer.Error](err)
	return ok && (answer.Text == errQuestion.Error() || answer.Text == ErrNoCluster.Error())
}

// News returns the shard's committed record, for other shards.
func (h *Shards) News() peers.News {
	r := h.committed.Load()
	st := h.host.Status()
	a := peers.News{Shard: r.Public(), Known: r.Others, Leader: st.Leader, Leads: h.host.Leads(), Term: st.Term,
		Definitions: h.host.Definitions()}
	for _, m := range st.Members {
		a.Shard.Addrs = append(a.Shard.Addrs, m.Addr)
		a.Members = append(a.Members, peers.Member{Addr: m.Addr, Client: m.Client, Leads: m.Addr == st.Leader,
			Online: m.Online, Index: m.Index})
	}
	return a
}

// conflict returns why two shards cannot be in one cluster.
func conflict(a *cluster.Record, b *cluster.Other) error {
	if a.Other(b.ID) != nil {
		return nil
	}
	of := cluster.Record{ID: b.ID, Claims: b.Claims}
	theirs, ours := of.Owners().SlotsOf(b.ID), a.Owners().SlotsOf(a.ID)
	if both := ours.Both(&theirs); !both.Empty() {
		return fmt.Errorf("both shards have slot %d: CLUSTER FLUSHSLOTS has one without keys give its slots up",
			both.Ranges()[0].First)
	}
	return nil
}

// met records the shard that CLUSTER MEET has introduced.
func (h *Shards) met(o cluster.Other) error {
	return UnlessUnchanged(h.Change(func(_ *engine.Guard, r *cluster.Record) error {
		if r.ID == "" {
			return ErrNoID
		}
		if err := conflict(r, &o); err != nil {
			return err
		}
		if !r.Learn(o, true) {
			return ErrUnchanged
		}
		return nil
	}))
}

// UnlessUnchanged returns err, or nil if it is ErrUnchanged.
func UnlessUnchanged(err error) error {
	if errors.Is(err, ErrUnchanged) {
		return nil
	}
	return err
}
