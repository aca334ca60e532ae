package migrate

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/wire/peer"
	"github.com/atomredis/atomredis/persist/rdb"
)

// The target's part in a migration. Its leader journals the states of keys. Clients do not see them until the shard claims
// the slots.

// maxUnsynced limits the bytes of states that are journalled and not yet committed.
const maxUnsynced = 8 << 20

// busyTries is how often a source is asked again that has not finished the last migration of a slot.
const busyTries = 20

var (
	errEnded    = errors.New("the import has ended")
	errLeadLost = errors.New("the lead was lost")
)

// importTask is an import that the target's leader runs.
type importTask struct {
	h     *Migrations
	task  *task
	im    cluster.Import
	slots cluster.SlotSet
	epoch uint64 // of the journal when the import began
	bytes int    // of states that may be uncommitted

	mu       sync.Mutex // protects the fields below
	promised bool       // the source may export the slots
	flushed  bool       // keys were removed, so the import must fail
}

// runImport runs an import until the shard claims the slots, or it fails.
func (h *Migrations) runImport(ctx context.Context, task *task, im cluster.Import) error {
	t := &importTask{h: h, task: task, im: im, slots: cluster.SetOf(im.Slots...), epoch: h.node.Epoch()}
	h.mu.Lock()
	h.working[im.Task] = t
	h.mu.Unlock()
	task.enter("connecting")
	err := h.keysOfSlots(ctx, &t.slots, func(db int, key string) error {
		return h.remove(db, key, t.active)
	})
	if err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		err := t.connect(ctx)
		if !errors.Is(err, peer.Busy) || tries == busyTries {
			return err
		}
		select { // the source has just imported the slots, and waits until the other shard knows
		case <-time.After(shards.AskEvery / 2):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// connect asks the source's leader for the slots and applies the frames that it sends.
func (t *importTask) connect(ctx context.Context) error {
	h, im := t.h, t.im
	o := h.shards.Record().Other(im.From)
	if o == nil {
		return cluster.ErrSlotOwner
	}
	a, err := h.shards.AskShard(o, peers.Question{Ask: peers.AskNews})
	if err != nil {
		return err
	}
	if a.Leader == "" {
		return shards.ErrNoID
	}
	c, err := h.node.Dial(a.Leader, peer.Migration, peers.Timeout)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	c.SetIdleTimeout(idleTimeout)
	own := h.shards.News().Shard
	if err := c.Call(exportRequest{Shard: &own, Task: im.Task, Slots: im.Slots}, &struct{}{}); err != nil {
		return err
	}
	c.SetLimit(maxFrame)
	t.task.enter("streaming-buffer")
	return t.read(ctx, c)
}

// active reports whether the import may still change keys. A guard is held.
func (t *importTask) active(now *shards.State) bool {
	im := now.Record.Import(t.im.Task)
	return im != nil && !im.Claimed && t.h.host.Leads() && t.h.node.Epoch() == t.epoch
}

// read applies frames until the end of the import.
func (t *importTask) read(ctx context.Context, c *peer.Conn) error {
	for {
		kind, payload, err := c.Receive()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		switch kind {
		case peer.Failed:
			return peer.AsFailure(payload)
		case frameExported:
			return t.takeOver(c, payload)
		}
		f, err := parseFrame(kind, payload)
		if err == nil {
			err = t.apply(ctx, c, &f)
		}
		if err != nil {
			return err
		}
	}
}

// apply applies a frame: the state of a key, or the end of a round.
func (t *importTask) apply(ctx context.Context, c *peer.Conn, f *frame) error {
	if f.hasState() || f.kind == frameGone {
		return t.put(ctx, f)
	}
	if f.kind == frameLast && !t.promise() {
		return errEmptied
	}
	if err := t.agree(ctx); err != nil {
		return err
	}
	return sendAck(c, f.round)
}

// takeOver claims the slots, which the source has exported.
func (t *importTask) takeOver(c *peer.Conn, exported []byte) error {
	var o cluster.Other
	if err := json.Unmarshal(exported, &o); err != nil {
		return err
	}
	t.task.enter("takeover")
	if err := t.h.settle(o, ""); err != nil {
		return err
	}
	// If this fails, the other shard learns of the claim when it asks. It closes the connection when it knows.
	if sendAck(c, 0) == nil {
		_, _ = c.Next()
	}
	return nil
}

func sendAck(c *peer.Conn, round uint64) error {
	return errors.Join(c.Send(frameAck, binary.AppendUvarint(nil, round)), c.Flush())
}

// promise forbids FLUSHALL and FLUSHDB from now on; it reports false if one has already removed keys.
func (t *importTask) promise() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.promised = !t.flushed
	return t.promised
}

// flush ends the task because keys are about to be removed; it reports false after promise.
func (t *importTask) flush() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flushed = !t.promised
	return t.flushed
}

// MayFlush reports whether FLUSHALL and FLUSHDB may remove all keys. It ends imports, because their keys belong to another
// shard. It reports false while an import may or may not own its slots; the client then tries again.
func (h *Migrations) MayFlush() bool {
	for _, im := range h.shards.Record().Imports {
		if im.Claimed {
			continue
		}
		h.mu.Lock()
		t := h.working[im.Task]
		h.mu.Unlock()
		if t == nil || !t.flush() {
			return false
		}
	}
	return true
}

// agree waits until all states are committed and this server still leads. So the other shard cannot have told a newer
// leader that the task has ended.
func (t *importTask) agree(ctx context.Context) error {
	node := t.h.node
	if node.WaitPosition() == 0 {
		return errLeadLost
	}
	if err := node.Sync(ctx); err != nil {
		return err
	}
	if node.Epoch() != t.epoch {
		return errLeadLost
	}
	t.bytes = 0
	return nil
}

// put applies the state of a key.
func (t *importTask) put(ctx context.Context, f *frame) error {
	ks := t.h.ks
	if !t.slots.Has(cluster.SlotOf(f.key)) || f.db >= ks.Databases() {
		return peer.ErrFrame
	}
	if t.bytes += len(f.key) + len(f.body); t.bytes > maxUnsynced {
		if err := t.agree(ctx); err != nil {
			return err
		}
	}
	if err := t.h.host.AwaitRoom(ctx); err != nil {
		return err
	}
	var value any
	if f.hasState() {
		var err error
		if value, err = rdb.Restore(f.body, t.h.host.RDBLimits()); err != nil {
			return err
		}
		ks.Prepare(value)
	}
	var guard engine.Guard
	guard.Lock(ks, ks.ShardOf(f.key), ks.Now())
	defer guard.Unlock()
	if !t.active(t.h.shards.Now()) {
		return errEnded
	}
	old := guard.Write(f.db, f.key)
	wasBlessed := false
	if old != nil {
		wasBlessed = old.Blessed()
		guard.Remove(old, engine.EventNone, "")
	}
	if f.kind == frameGone || f.deadline != 0 && f.deadline <= guard.Now() {
		if old != nil {
			guard.Log(f.db, [][]byte{[]byte("DEL"), f.key})
		}
		return nil
	}
	t.task.copied.Add(1)
	e := rdb.Create(&guard, f.db, f.key, value)
	guard.SetDeadline(e, f.deadline)
	blessed := f.kind == frameBlessed
	guard.Bless(e, blessed)
	guard.Changed(e, engine.EventNone, "")
	guard.Log(f.db, [][]byte{[]byte("RESTORE"), f.key, strconv.AppendInt(nil, f.deadline, 10), f.body,
		[]byte("REPLACE"), []byte("ABSTTL")})
	if blessed != wasBlessed { // RESTORE keeps the key as blessed as it was
		word := []byte("CLEAR")
		if blessed {
			word = []byte("SET")
		}
		guard.Log(f.db, [][]byte{[]byte("BLESS"), word, f.key, []byte("NO-EVICT")})
	}
	return nil
}
