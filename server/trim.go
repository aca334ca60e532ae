package server

import (
	"context"

	"github.com/atomredis/atomredis/cluster"
	"github.com/atomredis/atomredis/engine"
)

// scanned is how many keys are looked at under one guard over everything.
const scanned = 256

// keysOfSlots calls fn with the keys of slots, without a guard, until it fails. A key that is there all the time is among
// them, whatever happens meanwhile; others may be, and some more than once. There is no index by slots: it looks at all
// keys.
func (srv *Server) keysOfSlots(ctx context.Context, slots *cluster.SlotSet, fn func(db int, key string) error) error {
	var names []string
	var scratch []byte
	for db := range srv.ks.Databases() {
		for cursor := uint64(0); ; {
			names = names[:0]
			var g engine.Guard
			g.Lock(srv.ks, engine.AllShards, srv.ks.Now())
			cursor = g.Scan(db, cursor, scanned, func(e *engine.Entry) {
				if scratch = append(scratch[:0], e.Key()...); slots.Has(cluster.SlotOf(scratch)) {
					names = append(names, string(scratch))
				}
			})
			g.Unlock()
			for _, key := range names {
				if err := fn(db, key); err != nil {
					return err
				}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if cursor == 0 {
				break
			}
		}
	}
	return nil
}

// remove removes a key of a slot, if may allows it under the guard.
func (h *shards) remove(db int, key string, may func(now *shardState) bool) error {
	k := []byte(key)
	var g engine.Guard
	g.Lock(h.srv.ks, h.srv.ks.ShardOf(k), h.srv.ks.Now())
	defer g.Unlock()
	if !h.leads() {
		return errNotLeading
	}
	if !may(h.now.Load()) {
		return nil
	}
	if e := g.Write(db, k); e != nil {
		g.Remove(e, engine.EventNone, "")
		g.Log(db, [][]byte{[]byte("DEL"), k})
	}
	return nil
}

// trim has the leader remove the keys of slots that its shard has given away, or has not got after all.
func (h *shards) trim() {
	if !h.leads() || len(h.record().Trims) == 0 || !h.trimming.CompareAndSwap(false, true) {
		return
	}
	h.running.Go(func() {
		defer h.trimming.Store(false)
		slots := cluster.SetOf(h.record().Trims...)
		err := h.srv.keysOfSlots(h.srv.group.ctx, &slots, func(db int, key string) error {
			return h.remove(db, key, func(now *shardState) bool {
				trims := cluster.SetOf(now.record.Trims...)
				return trims.Has(cluster.SlotOf([]byte(key)))
			})
		})
		if err != nil {
			return // whoever leads then goes on
		}
		_ = h.change(func(_ *engine.Guard, r *cluster.Record) error {
			r.Trimmed(&slots)
			return nil
		})
	})
}
