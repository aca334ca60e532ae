package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
)

// Other clusters migrate slots key by key, with SETSLOT and MIGRATE. Here IMPORTING, sent to the target, migrates the slot
// with all its keys at once, as CLUSTER MIGRATION does, and replies when that is done. The further steps of tools then have
// nothing to do: the source has no keys of the slot, and SETSLOT NODE names the present owner. A slot never has keys on two
// servers, so that no client gets ASK.

// knownAfter is how long NODE waits until the shard has heard of a migration between others.
const knownAfter = 5 * time.Second

func setslot(c *command.Ctx) {
	n, ok := slot(c, c.Args[2])
	if !ok {
		return
	}
	if !viewOf(c).Leads() {
		c.Err("ERR You can use SETSLOT only with masters.")
		return
	}
	o := c.Options(3)
	o.Next()
	switch {
	case o.Is("stable") && o.Left() == 0:
		stableSlot(c, n)
	case o.Is("migrating") && o.Left() == 1:
		migratingSlot(c, n, o.Arg())
	case o.Is("importing") && o.Left() == 1:
		importingSlot(c, n, o.Arg())
	case o.Is("node") && o.Left() == 1:
		nodeOfSlot(c, n, o.Arg())
	default:
		c.Err(errSetslot)
	}
}

// ownerOf returns the shard that has a slot, as clients see it; nil if none has.
func ownerOf(v *cluster.View, slot int) *cluster.ShardView {
	for i := range v.Shards {
		if v.Shards[i].Slots.Has(slot) {
			return &v.Shards[i]
		}
	}
	return nil
}

// otherNode returns the shard of a node, which must lead it; otherwise it writes an error.
func otherNode(c *command.Ctx, v *cluster.View, id []byte) *cluster.ShardView {
	s, m := v.Find(string(id))
	switch {
	case m == nil:
		c.Err(command.Error(fmt.Sprintf("ERR I don't know about node %s", command.UntilNUL(id))))
	case !m.Leads:
		c.Err("ERR Target node is not a master")
	default:
		return s
	}
	return nil
}

// stableSlot ends a migration of the slot.
func stableSlot(c *command.Ctx, slot int) {
	if h := shardsOf(c); h != nil {
		for _, t := range h.Tasks() {
			if t.Ended.IsZero() && slices.ContainsFunc(t.Slots, func(r cluster.Range) bool { return r.First <= slot && slot <= r.Last }) {
				h.CancelTasks(t.ID)
			}
		}
	}
	c.W.OK()
}

// migratingSlot only checks: the target moves the slot, or has done so.
func migratingSlot(c *command.Ctx, slot int, id []byte) {
	v := viewOf(c)
	owner := ownerOf(v, slot)
	to := otherNode(c, v, id)
	switch {
	case to == nil:
	case owner == to || owner == &v.Shards[0]:
		c.W.OK()
	default:
		c.Err(command.Error(fmt.Sprintf("ERR I'm not the owner of hash slot %d", slot)))
	}
}

// importingSlot moves the slot here.
func importingSlot(c *command.Ctx, slot int, id []byte) {
	v := viewOf(c)
	h := shardsOf(c)
	if ownerOf(v, slot) == &v.Shards[0] {
		c.Err(command.Error(fmt.Sprintf("ERR I'm already the owner of hash slot %d", slot)))
		return
	}
	if otherNode(c, v, id) == nil {
		return
	}
	if h == nil { // there is no other node that could have the slot
		c.W.OK()
		return
	}
	var slots cluster.SlotSet
	slots.Add(slot)
	later(c, func() error {
		task, err := h.Import(slots)
		if err != nil {
			return err
		}
		return h.AwaitImport(task)
	})
}

// nodeOfSlot confirms the owner of the slot once this shard has learned of it. It also assigns a slot without an
// owner.
func nodeOfSlot(c *command.Ctx, slot int, id []byte) {
	host, local := c.Host.(Host), clientOf(c).LocalAddr()
	v := host.ClusterView(local)
	owner := ownerOf(v, slot)
	node, m := v.Find(string(id))
	switch {
	case m == nil:
		c.Err(command.Error(fmt.Sprintf("ERR Unknown node %s", command.UntilNUL(id))))
	case owner == node:
		c.W.OK()
	case owner == nil && m.Myself:
		var slots cluster.SlotSet
		slots.Add(slot)
		add(c, slots)
	default:
		id := string(id)
		later(c, func() error {
			for end := time.Now().Add(knownAfter); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				v := host.ClusterView(local)
				if node, _ := v.Find(id); node != nil && node.Slots.Has(slot) {
					return nil
				}
				if v.Shards[0].Slots.Has(slot) {
					break // the slot has not moved
				}
			}
			return errors.New("the slot has not moved: CLUSTER SETSLOT IMPORTING at its new node moves it")
		})
	}
}
