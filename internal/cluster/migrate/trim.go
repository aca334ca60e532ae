package migrate

import (
	"context"
	"strings"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/shards"
)

const (
	// scanned is the number of slots and keys that are visited under one guard over everything.
	scanned = 256
	// completeAfter is the pause between two checks whether all keys are in memory.
	completeAfter = 20 * time.Millisecond
)

// keysOfSlots calls fn with the keys of slots, without a guard, until fn fails. Keys that exist all the time are among
// them; keys that come or go meanwhile may be, and some appear twice. It waits until all keys are in memory.
func (h *Migrations) keysOfSlots(ctx context.Context, slots *cluster.SlotSet, fn func(db int, key string) error) error {
	w := slotWalk{ks: h.ks}
	for slot := range cluster.Slots {
		if slots.Has(slot) {
			w.slots = append(w.slots, slot)
		}
	}
	for w.left() {
		if !w.step() {
			w = slotWalk{ks: h.ks, slots: w.slots}
			select {
			case <-time.After(completeAfter):
			case <-ctx.Done():
			}
		}
		for _, n := range w.found {
			if err := fn(n.db, n.key); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// slotWalk is a walk through the keys of slots.
type slotWalk struct {
	ks     *engine.Keyspace
	slots  []int
	at     int       // counts slots, in one database after the other
	cursor uint64    // in the slot; 0 is its beginning
	found  []keyName // by the last step
}

// left reports whether slots remain.
func (w *slotWalk) left() bool { return w.at < w.ks.Databases()*len(w.slots) }

// step finds some keys. It reports false if some keys are not in memory yet; the walk then starts again.
func (w *slotWalk) step() (complete bool) {
	var g engine.Guard
	g.Lock(w.ks, engine.AllShards, w.ks.Now())
	defer g.Unlock()
	if !g.Complete() {
		return false
	}
	w.found = w.found[:0]
	for n := scanned; n > 0 && w.left(); {
		db, slot := w.at/len(w.slots), w.slots[w.at%len(w.slots)]
		w.cursor = g.ScanSlot(db, slot, w.cursor, n, nil, func(e *engine.Entry) {
			w.found = append(w.found, keyName{db, strings.Clone(e.Key())})
			n--
		})
		if n--; w.cursor == 0 {
			w.at++
		}
	}
	return true
}

// remove removes a key if may allows it under the guard.
func (h *Migrations) remove(db int, key string, may func(now *shards.State) bool) error {
	k := []byte(key)
	var g engine.Guard
	g.Lock(h.ks, h.ks.ShardOf(k), h.ks.Now())
	defer g.Unlock()
	if !h.host.Leads() {
		return shards.ErrNotLeading
	}
	if !may(h.shards.Now()) {
		return nil
	}
	if e := g.Write(db, k); e != nil {
		g.Remove(e, engine.EventNone, "")
		g.Log(db, [][]byte{[]byte("DEL"), k})
	}
	return nil
}

// trim makes the leader remove keys of slots that its shard has exported, or failed to import.
func (h *Migrations) trim() {
	if !h.host.Leads() || len(h.shards.Record().Trims) == 0 || !h.trimming.CompareAndSwap(false, true) {
		return
	}
	h.running.Go(func() {
		defer h.trimming.Store(false)
		slots := cluster.SetOf(h.shards.Record().Trims...)
		err := h.keysOfSlots(h.ctx, &slots, func(db int, key string) error {
			return h.remove(db, key, func(now *shards.State) bool {
				trims := cluster.SetOf(now.Record.Trims...)
				return trims.Has(cluster.SlotOf([]byte(key)))
			})
		})
		if err != nil {
			return // the next leader continues
		}
		_ = h.shards.Change(func(_ *engine.Guard, r *cluster.Record) error {
			r.Trimmed(&slots)
			return nil
		})
	})
}
