package migrate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/persist/rdb"
)

// The source's part in a migration. Its leader sends the states of all keys of the slots, and then, round by round, of those
// that have changed meanwhile, until few have. Then commands of these slots wait, the rest is sent, and if nothing has
// changed when a guard over everything is held, the export is noted under it.

// exportTask is a task that the leader of the source works on.
type exportTask struct {
	h     *Migrations
	slots cluster.SlotSet
	epoch uint64 // of the journal: what has happened since is known only if it is the same
	task  *task

	mu      sync.Mutex // protects what follows; nothing is locked under it
	changed map[keyName]struct{}
	size    int   // bytes of their names
	ended   error // why the slots must not be exported
	holds   bool  // commands wait
}

// keyName is the name of a key in a database.
type keyName struct {
	db  int
	key string
}

const (
	// idleTimeout is how long nothing may be heard of the other shard.
	idleTimeout = time.Minute
	// holdTimeout is for how long commands wait at most, as cluster-slot-migration-write-pause-timeout of Redis.
	holdTimeout = 10 * time.Second
	// shortRound is how many keys may have changed for the last round to begin.
	shortRound = 256
	// maxRounds is after how many rounds it begins anyway.
	maxRounds = 24
	// maxChanged is how many bytes the names of changed keys may have.
	maxChanged = 256 << 20
	// largeDump is from how many bytes on a value is copied before it is dumped, so that nobody waits for that.
	largeDump = 64 << 10
)

var (
	errEmptied        = errors.New("keys were removed with FLUSHALL or FLUSHDB")
	errTooManyChanges = errors.New("too many keys change")
	errChanged        = errors.New("keys have changed")
	errAnswer         = errors.New("the other shard has answered what was not asked")
)

// Touched implements engine.Witness for all tasks.
func (h *Migrations) Touched(db int, key string, expired bool) {
	slot := cluster.SlotOf(unsafe.Slice(unsafe.StringData(key), len(key)))
	for _, t := range h.exports {
		if t.slots.Has(slot) {
			t.touched(db, key, expired)
		}
	}
}

// Emptied implements engine.Witness.
func (h *Migrations) Emptied() {
	for _, t := range h.exports {
		t.end(errEmptied)
	}
}

// touched notes that a key has changed. One that expires while commands wait is not sent again: it has its deadline there,
// and keys that expire could keep the last round from ever coming to its end.
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

// end has the slots never exported, unless they are.
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

// take returns the keys that have changed since it was called last.
func (t *exportTask) take() map[keyName]struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := t.changed
	t.changed, t.size = map[keyName]struct{}{}, 0
	return keys
}

// beginExport has changes of keys of the slots noted from now on.
func (h *Migrations) beginExport(q *peers.Question) (*exportTask, error) {
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
	guard.SetWitness(h)
	return t, nil
}

func (h *Migrations) endExport(t *exportTask) {
	var guard engine.Guard
	guard.Lock(h.ks, engine.AllShards, h.ks.Now())
	defer guard.Unlock()
	h.exports = slices.DeleteFunc(slices.Clone(h.exports), func(other *exportTask) bool { return other == t })
	if len(h.exports) == 0 {
		guard.SetWitness(nil)
	}
}

// exporting is the connection of a task.
type exporting struct {
	*exportTask
	ctx   context.Context
	c     net.Conn
	in    *json.Decoder
	w     *bufio.Writer
	round uint64
}

// Export answers peers.AskExport: it works on a task until the slots are exported, and the other shard has claimed them, or it fails.
func (h *Migrations) Export(c net.Conn, in *json.Decoder, q *peers.Question) {
	t, err := h.beginExport(q)
	if err != nil {
		_ = json.NewEncoder(c).Encode(peers.News{Error: err.Error()})
		return
	}
	defer h.endExport(t)
	s := &exporting{exportTask: t, ctx: h.ctx, c: idleConn{c}, in: in}
	s.w = bufio.NewWriterSize(s.c, 64<<10)
	err = s.run(q)
	t.end(errors.Join(err, errAnswer))
	t.task.finish(err)
	if err != nil {
		_ = (&frame{kind: frameError, body: []byte(err.Error())}).write(s.w)
		_ = s.w.Flush()
	}
}

// idleConn is a connection on which something must happen from time to time.
type idleConn struct{ net.Conn }

func (c idleConn) Read(b []byte) (int, error) {
	c.SetReadDeadline(time.Now().Add(idleTimeout))
	return c.Conn.Read(b)
}

func (c idleConn) Write(b []byte) (int, error) {
	c.SetWriteDeadline(time.Now().Add(idleTimeout))
	return c.Conn.Write(b)
}

func (s *exporting) run(q *peers.Question) error {
	if err := json.NewEncoder(s.c).Encode(peers.News{}); err != nil {
		return err
	}
	s.task.enter("send-bulk-and-stream")
	err := s.h.keysOfSlots(s.ctx, &s.slots, func(db int, key string) error {
		if s.isChanged(db, key) {
			return s.err() // it comes later
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

// handOff sends the rest while commands wait, and exports the slots.
func (s *exporting) handOff(q *peers.Question) error {
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
		case !left: // who undoes what the command has done writes, or not
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
	if err := errors.Join((&frame{kind: frameExported, body: exported}).write(s.w), s.w.Flush()); err != nil {
		return nil // they are exported: the other shard will ask
	}
	var claimed ack
	if s.in.Decode(&claimed) == nil {
		s.h.shards.Kick()
	}
	s.h.awaitRecord(s.ctx, until, func(r *cluster.Record) bool {
		return !slices.ContainsFunc(r.Exports, func(e cluster.Export) bool { return e.Task == q.Task })
	})
	return nil
}

// exportUnder notes the export, if the other shard has everything. The guard over everything is held.
func (s *exporting) exportUnder(r *cluster.Record, q *peers.Question, hold *hold) error {
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
	// What clients of the slots have in their caches they are told of no longer.
	s.h.host.InvalidateCaches()
	return nil
}

// pause lets others do something.
func (s *exporting) pause() error {
	select {
	case <-time.After(time.Millisecond):
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// sendChanged is a round of the keys that have changed, and returns how many these were.
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

// endRound waits until the other shard has agreed on all that was sent.
func (s *exporting) endRound() error {
	s.round++
	kind := byte(frameRound)
	if s.holds { // which changes nowhere else
		kind = frameLast
	}
	if err := errors.Join((&frame{kind: kind, round: s.round}).write(s.w), s.w.Flush()); err != nil {
		return err
	}
	var a ack
	if err := s.in.Decode(&a); err != nil {
		return err
	}
	if a.Round != s.round {
		return errAnswer
	}
	return s.err()
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
	return f.write(s.w)
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

// dumpView dumps the value in a view, and closes that.
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
