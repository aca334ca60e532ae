package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/wire/peer"
	"github.com/atomredis/atomredis/persist/rdb"
)

// The source's part in a migration. Its leader sends the states of all keys of the slots, and then, in rounds, of those
// that have changed since. After a round with few changes, commands on the slots wait and the rest is sent. The export is
// recorded under a guard over everything, if nothing has changed by then.

// exportTask is an export that the source's leader runs.
type exportTask struct {
	h     *Migrations
	slots cluster.SlotSet
	epoch uint64 // of the journal; in another epoch changes may have been missed
	task  *task

	mu      sync.Mutex // protects the fields below; nothing is locked under it
	changed map[keyName]struct{}
	size    int   // of changed, in bytes
	ended   error // why the slots must not be exported
	holds   bool  // commands wait
}

// keyName is the name of a key in a database.
type keyName struct {
	db  int
	key string
}

const (
	// idleTimeout is how long the connection may be silent.
	idleTimeout = time.Minute
	// holdTimeout is how long commands wait at most, as cluster-slot-migration-write-pause-timeout of Redis.
	holdTimeout = 10 * time.Second
	// shortRound is the number of changed keys up to which commands wait and the last rounds begin.
	shortRound = 256
	// maxRounds is the number of rounds after which they begin anyway.
	maxRounds = 24
	// maxChanged limits the names of changed keys, in bytes.
	maxChanged = 256 << 20
	// largeDump is the size from which a value is copied before it is dumped, so that no client waits for the dump.
	largeDump = 64 << 10
)

var (
	errEmptied        = errors.New("keys were removed with FLUSHALL or FLUSHDB")
	errTooManyChanges = errors.New("too many keys change")
	errChanged        = errors.New("keys have changed")
	errAnswer         = errors.New("the other shard has sent an unexpected answer")
)

// Touched implements engine.DirtyTracker for all tasks.
func (h *Migrations) Touched(db int, key string, expired bool) {
	slot := cluster.SlotOf(unsafe.Slice(unsafe.StringData(key), len(key)))
	for _, t := range h.exports {
		if t.slots.Has(slot) {
			t.touched(db, key, expired)
		}
	}
}

// Emptied implements engine.DirtyTracker.
func (h *Migrations) Emptied() {
	for _, t := range h.exports {
		t.end(errEmptied)
	}
}

// touched records that a key has changed. A key that expires while commands wait is not sent again: the target has its
// deadline, and expiring keys could keep the last round from ending.
func (t *exportTask) touched(db int, key string, expired bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if expired && t.holds || t.ended != nil {
		return
	}
	if _, ok := t.changed[keyName{db, key}]; ok {
		return
	}
	t.changed[keyName{db, strings.Clone(key)}] = struct{}{}
	if t.size += len(key) + int(unsafe.Sizeof(keyName{})); t.size > maxChanged {
		t.ended = errTooManyChanges
	}
}

// end makes sure that the slots are never exported, unless they already are.
func (t *exportTask) end(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended == nil {
		t.ended = why
	}
}

func (t *exportTask) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

func (t *exportTask) isChanged(db int, key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.changed[keyName{db, key}]
	return ok
}

// take returns and clears the changed keys.
func (t *exportTask) take() map[keyName]struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := t.changed
	t.changed, t.size = map[keyName]struct{}{}, 0
	return keys
}

// beginExport starts to record changes of the keys of the slots.
func (h *Migrations) beginExport(q *exportRequest) (*exportTask, error) {
	if q.Shard == nil {
		return nil, peer.ErrFrame
	}
	t := &exportTask{h: h, slots: cluster.SetOf(q.Slots...), changed: map[keyName]struct{}{}}
	var guard engine.Guard
	guard.Lock(h.ks, engine.AllShards, h.ks.Now())
	defer guard.Unlock()
	if !h.host.Leads() {
		return nil, shards.ErrNotLeading
	}
	if err := h.shards.Record().Clone().AddExport(q.Task, q.Shard.ID, &t.slots); err != nil {
		return nil, err
	}
	for _, other := range h.exports {
		if both := other.slots.Both(&t.slots); !both.Empty() {
			return nil, cluster.ErrBusy
		}
	}
	t.epoch = h.node.Epoch()
	t.task = h.tasks.begin(q.Task, "migrate", q.Slots, h.shards.Record().ID, q.Shard.ID)
	t.task.cancelBy(t.end)
	h.exports = append(slices.Clip(h.exports), t)
	guard.SetDirtyTracker(h)
	return t, nil
}

func (h *Migrations) endExport(t *exportTask) {
	var guard engine.Guard
	guard.Lock(h.ks, engine.AllShards, h.ks.Now())
	defer guard.Unlock()
	h.exports = slices.DeleteFunc(slices.Clone(h.exports), func(other *exportTask) bool { return other == t })
	if len(h.exports) == 0 {
		guard.SetDirtyTracker(nil)
	}
}

// exporting is an exportTask and its connection.
type exporting struct {
	*exportTask
	ctx   context.Context
	c     *peer.Conn
	round uint64
}

// Export serves a connection of peer.Migration. It returns when the other shard has claimed the slots, or the export has
// failed.
func (h *Migrations) Export(c *peer.Conn) {
	c.SetIdleTimeout(idleTimeout)
	q := new(exportRequest)
	if err := c.ReadRequest(q); err != nil {
		return
	}
	t, err := h.beginExport(q)
	if err != nil {
		_ = c.Fail(coded(err))
		return
	}
	defer h.endExport(t)
	s := &exporting{exportTask: t, ctx: h.ctx, c: c}
	err = s.run(q)
	t.end(errors.Join(err, errAnswer))
	t.task.finish(err)
	if err != nil {
		_ = c.Fail(coded(err))
	}
}

// coded gives an error the code by which the target knows it.
func coded(err error) error {
	if errors.Is(err, cluster.ErrBusy) {
		return &peer.Error{Code: peer.Busy, Text: err.Error()}
	}
	return err
}

func (s *exporting) run(q *exportRequest) error {
	if err := s.c.Reply(struct{}{}); err != nil {
		return err
	}
	s.task.enter("send-bulk-and-stream")
	err := s.h.keysOfSlots(s.ctx, &s.slots, func(db int, key string) error {
		if s.isChanged(db, key) {
			return s.err() // a later round sends it
		}
		return s.send(db, key)
	})
	if err != nil {
		return err
	}
	if err := s.endRound(); err != nil {
		return err
	}
	s.task.enter("send-stream")
	for {
		n, err := s.sendChanged()
		if err != nil {
			return err
		}
		if n <= shortRound || s.round > maxRounds {
			break
		}
	}
	return s.handOff(q)
}

// handOff makes commands wait, sends the rest, and records the export.
func (s *exporting) handOff(q *exportRequest) error {
	until := time.Now().Add(holdTimeout)
	s.mu.Lock()
	s.holds = true
	s.mu.Unlock()
	s.task.pause()
	s.task.enter("handoff-prep")
	hold := s.h.hold(s.slots, until)
	defer hold.release()
	for prepared := false; ; {
		if time.Now().After(until) {
			return errTooManyChanges
		}
		left := hold.withdraw()
		n, err := s.sendChanged()
		if err == nil && !prepared {
			prepared, err = true, s.endRound()
		}
		switch {
		case err != nil:
			return err
		case n > 0:
			continue
		case !left: // undoing may write, and then another round follows
			if err := s.pause(); err != nil {
				return err
			}
			continue
		}
		err = s.h.shards.Change(func(_ *engine.Guard, r *cluster.Record) error { return s.exportUnder(r, q, hold) })
		if err == nil {
			break
		}
		if !errors.Is(err, errChanged) {
			return err
		}
	}
	s.task.enter("handoff")
	exported, err := json.Marshal(s.h.shards.Committed().Public())
	if err != nil {
		return err
	}
	if err := errors.Join(s.c.Send(frameExported, exported), s.c.Flush()); err != nil {
		return nil // the export is committed; the other shard will ask
	}
	if s.readAck(0) == nil {
		s.h.shards.Kick()
	}
	s.h.awaitRecord(s.ctx, until, func(r *cluster.Record) bool {
		return !slices.ContainsFunc(r.Exports, func(e cluster.Export) bool { return e.Task == q.Task })
	})
	return nil
}

// exportUnder records the export if the other shard has everything. The guard over everything is held.
func (s *exporting) exportUnder(r *cluster.Record, q *exportRequest, hold *hold) error {
	left := hold.withdraw()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended != nil:
		return s.ended
	case s.epoch != s.h.node.Epoch():
		return shards.ErrTakenBack
	case len(s.changed) > 0 || !left:
		return errChanged
	}
	if err := r.AddExport(q.Task, q.Shard.ID, &s.slots); err != nil {
		return err
	}
	// This server no longer sends invalidations for keys of the slots.
	s.h.host.InvalidateCaches()
	return nil
}

// pause waits a millisecond.
func (s *exporting) pause() error {
	select {
	case <-time.After(time.Millisecond):
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// sendChanged sends the keys that have changed, as a round, and returns their number.
func (s *exporting) sendChanged() (int, error) {
	keys := s.take()
	for k := range keys {
		if err := s.send(k.db, k.key); err != nil {
			return 0, err
		}
	}
	if len(keys) == 0 {
		return 0, s.err()
	}
	return len(keys), s.endRound()
}

// endRound ends a round and waits until the other shard has committed all that was sent.
func (s *exporting) endRound() error {
	s.round++
	kind := frameRound
	if s.holds { // only this goroutine changes it
		kind = frameLast
	}
	if err := errors.Join((&frame{kind: kind, round: s.round}).send(s.c), s.c.Flush()); err != nil {
		return err
	}
	if err := s.readAck(s.round); err != nil {
		return err
	}
	return s.err()
}

// readAck reads the acknowledgement of a round.
func (s *exporting) readAck(round uint64) error {
	kind, payload, err := s.c.Receive()
	if err != nil {
		return err
	}
	if acked, _, err := peer.Number(payload); kind != frameAck || err != nil || acked != round {
		return errAnswer
	}
	return nil
}

// send sends the state of a key.
func (s *exporting) send(db int, key string) error {
	if err := s.err(); err != nil {
		return err
	}
	f, err := s.h.stateOf(s.ctx, db, []byte(key))
	if err != nil {
		return err
	}
	if f.hasState() {
		s.task.copied.Add(1)
	}
	return f.send(s.c)
}

// stateOf returns the state of a key as a frame.
func (h *Migrations) stateOf(ctx context.Context, db int, key []byte) (*frame, error) {
	if h.host.Tiered() {
		come := make(chan struct{})
		if h.ks.Fetch(db, key, nil, func() { close(come) }) {
			select {
			case <-come:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	var g engine.Guard
	g.Lock(h.ks, h.ks.ShardOf(key), h.ks.Now())
	e := g.Peek(db, key)
	if e == nil {
		g.Unlock()
		return &frame{kind: frameGone, db: db, key: key}, nil
	}
	f := &frame{kind: frameState, db: db, key: key, deadline: e.Deadline()}
	if e.Blessed() {
		f.kind = frameBlessed
	}
	if e.MemoryUsage() >= largeDump {
		if v := g.View(db, [][]byte{key}); v != nil {
			g.Unlock()
			return f, f.dumpView(v)
		}
	}
	defer g.Unlock()
	var err error
	f.body, err = rdb.Dump(e)
	return f, err
}

// dumpView dumps the value in a view, and closes the view.
func (f *frame) dumpView(v *engine.View) error {
	defer v.Close()
	ks, err := v.Keyspace(new(atomic.Bool))
	if err != nil {
		return err
	}
	defer ks.Close()
	var g engine.Guard
	g.Lock(ks, engine.AllShards, v.Now())
	defer g.Unlock()
	if e := g.Peek(f.db, f.key); e != nil {
		f.body, err = rdb.Dump(e)
	} else {
		f.kind = frameGone // its fields had expired
	}
	return err
}
