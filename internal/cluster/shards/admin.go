package shards

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/peers"
)

// This file has the changes of the record that administrators make.

// Meet makes the shards of two servers known to each other. bus is the port of the other server's raft-addr.
func (h *Shards) Meet(host string, bus int) error {
	if !h.host.Leads() {
		return ErrNotLeading
	}
	a, err := h.ask(net.JoinHostPort(host, fmt.Sprint(bus)), peers.Question{Ask: peers.AskNews})
	if err != nil {
		return err
	}
	if a.Shard.ID == h.Record().ID {
		return nil
	}
	if a.Shard.ID == "" || a.Leader == "" {
		return ErrNoID
	}
	if err := h.met(a.Shard); err != nil {
		return err
	}
	h.mu.Lock()
	delete(h.forgotten, a.Shard.ID)
	h.mu.Unlock()
	own := h.News().Shard
	_, err = h.ask(a.Leader, peers.Question{Ask: peers.AskMeet, Shard: &own})
	return err
}

// Forget drops a shard that has no slots.
func (h *Shards) Forget(id string) error {
	return UnlessUnchanged(h.Change(func(_ *engine.Guard, r *cluster.Record) error {
		if slots := r.Owners().SlotsOf(id); !slots.Empty() {
			return errors.New("the shard has slots")
		}
		if r.MigratesWith(id) {
			return cluster.ErrBusy
		}
		if r.Other(id) == nil {
			return ErrUnchanged
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.forgotten[id] = time.Now().Add(forgetFor)
		delete(h.seen, id)
		r.Others = slices.DeleteFunc(r.Others, func(o cluster.Other) bool { return o.ID == id })
		return nil
	}))
}

// AddSlots assigns slots without an owner to the shard.
func (h *Shards) AddSlots(slots cluster.SlotSet) error {
	return h.Change(func(_ *engine.Guard, r *cluster.Record) error {
		o := r.Owners()
		for _, x := range slots.Ranges() {
			for slot := x.First; slot <= x.Last; slot++ {
				if id, _ := o.Of(slot); id != "" {
					return fmt.Errorf("Slot %d is already busy", slot)
				}
			}
		}
		foreign := r.Foreign(&cluster.SlotSet{})
		if both := foreign.Both(&slots); !both.Empty() {
			return fmt.Errorf("Slot %d has keys of another shard that are still to be removed", both.Ranges()[0].First)
		}
		r.Claim(&slots, r.NextEpoch())
		return nil
	})
}

// DropSlots leaves slots of the shard without an owner. Their keys stay.
func (h *Shards) DropSlots(slots cluster.SlotSet) error {
	return h.Change(func(_ *engine.Guard, r *cluster.Record) error {
		own := r.Owners().SlotsOf(r.ID)
		if others := slots.Without(&own); !others.Empty() {
			return fmt.Errorf("Slot %d is already unassigned", others.Ranges()[0].First)
		}
		busy := r.Busy()
		if both := busy.Both(&slots); !both.Empty() {
			return cluster.ErrBusy
		}
		r.Disclaim(&slots)
		return nil
	})
}

// FlushSlots leaves all slots of the shard without an owner. The shard must have no keys.
func (h *Shards) FlushSlots() error {
	return h.Change(func(g *engine.Guard, r *cluster.Record) error {
		if !g.Complete() {
			return errors.New("the keys are still being loaded")
		}
		for db := range h.ks.Databases() {
			if g.Len(db) > 0 {
				return cluster.ErrKeys
			}
		}
		if busy := r.Busy(); !busy.Empty() {
			return cluster.ErrBusy
		}
		r.Claims = nil
		return nil
	})
}

// BumpEpoch makes the epoch of the shard's claims the latest of the cluster, and reports whether it was not. A shard without
// slots has no epoch.
func (h *Shards) BumpEpoch() (epoch uint64, bumped bool, err error) {
	err = h.Change(func(_ *engine.Guard, r *cluster.Record) error {
		for _, c := range r.Claims {
			epoch = max(epoch, c.Epoch)
		}
		own := r.Owners().SlotsOf(r.ID)
		if epoch == r.NextEpoch()-1 || own.Empty() {
			return ErrUnchanged
		}
		if busy := r.Busy(); !busy.Empty() {
			return cluster.ErrBusy
		}
		epoch, bumped = r.NextEpoch(), true
		r.Claim(&own, epoch)
		return nil
	})
	return epoch, bumped, UnlessUnchanged(err)
}
