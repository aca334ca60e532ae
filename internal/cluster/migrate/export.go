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

// The source's part in a move. Its leader sends the states of all keys of the slots, and then, round by round, of those
// that have changed meanwhile, until few have. Then commands of these slots wait, the rest is sent, and if nothing has
// changed when a guard over everything is held, the gift is noted under it.

// give is a task that the leader of the source works on.
type give struct {
	h     *Migrations
	slots cluster.SlotSet
	epoch uint64 // of the journal: what has happened since is known only if it is the same
	task  *task

	mu      sync.Mutex // protects what follows; nothing is locked under it
	changed map[keyName]struct{}
	size    int   // bytes of their names
	ended   error // why the slots must not be given
	holds   bool  // commands wait
}

// keyName is the name of a key in a database.
type keyName struct {
	db  int
	key string
}

const (
	// moveIdle is how long nothing may be heard of the other shard.
	moveIdle = time.Minute
	// moveHold is for how long commands wait at most, as cluster-slot-migration-write-pause-timeout of Redis.
	moveHold = 10 * time.Second
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
	errMoveEmptied = errors.New("keys were removed with FLUSHALL or FLUSHDB")
	errMoveChanges = errors.New("too many keys change")
	errMoveMore    = errors.New("keys have changed")
	errMoveAnswer  = errors.New("the other shard has answered what was not asked")
)

// Touched implements engine.Witness for all tasks.
func (h *Migrations) Touched(db int, key string, expired bool) {
	slot := cluster.SlotOf(unsafe.Slice(unsafe.StringData(key), len(key)))
	for _, g := range h.gives {
		if g.slots.Has(slot) {
			g.touched(db, key, expired)
		}
	}
}

// Emptied implements engine.Witness.
func (h *Migrations) Emptied() {
	for _, g := range h.gives {
		g.end(errMoveEmptied)
	}
}

// touched notes that a key has changed. One that expires while commands wait is not sent again: it has its deadline there,
// and keys that expire could keep the last round from ever coming to its end.
func (g *give) touched(db int, key string, expired bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if expired && g.holds || g.ended != nil {
		return
	}
	if _, ok := g.changed[keyName{db, key}]; ok {
		return
	}
	g.changed[keyName{db, strings.Clone(key)}] = struct{}{}
	if g.size += len(key) + int(unsafe.Sizeof(keyName{})); g.size > maxChanged {
		g.ended = errMoveChanges
	}
}

// end has the slots never given, unless they are.
func (g *give) end(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended == nil {
		g.ended = why
	}
}

func (g *give) err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended
}

func (g *give) isChanged(db int, key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.changed[keyName{db, key}]
	return ok
}

// take returns the keys that have changed since it was called last.
func (g *give) take() map[keyName]struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	keys := g.changed
	g.changed, g.size = map[keyName]struct{}{}, 0
	return keys
}

// beginGive has changes of keys of the slots noted from now on.
func (h *Migrations) beginGive(q *peers.Question) (*give, error) {
	g := &give{h: h, slots: cluster.SetOf(q.Slots...), changed: map[keyName]struct{}{}}
	var guard engine.Guard
	guard.Lock(h.ks, engine.AllShards, h.ks.Now())
	defer guard.Unlock()
	if !h.host.Leads() {
		return nil, shards.ErrNotLeading
	}
	if err := h.shards.Record().Clone().Give(q.Task, q.Shard.ID, &g.slots); err != nil {
		return nil, err
	}
	for _, other := range h.gives {
		if both := other.slots.Both(&g.slots); !both.Empty() {
			return nil, cluster.ErrBusy
		}
	}
	g.epoch = h.node.Epoch()
	g.task = h.tasks.begin(q.Task, "migrate", q.Slots, h.shards.Record().ID, q.Shard.ID)
	g.task.cancelBy(g.end)
	h.gives = append(slices.Clip(h.gives), g)
	guard.SetWitness(h)
	return g, nil
}

func (h *Migrations) endGive(g *give) {
	var guard engine.Guard
	guard.Lock(h.ks, engine.AllShards, h.ks.Now())
	defer guard.Unlock()
	h.gives = slices.DeleteFunc(slices.Clone(h.gives), func(other *give) bool { return other == g })
	if len(h.gives) == 0 {
		guard.SetWitness(nil)
	}
}

// giving is the connection of a task.
type giving struct {
	*give
	ctx   context.Context
	c     net.Conn
	in    *json.Decoder
	w     *bufio.Writer
	round uint64
}

// Export answers peers.AskGive: it works on a task until the slots are given, and the other shard has claimed them, or it fails.
func (h *Migrations) Export(c net.Conn, in *json.Decoder, q *peers.Question) {
	g, err := h.beginGive(q)
	if err != nil {
		_ = json.NewEncoder(c).Encode(peers.News{Error: err.Error()})
		return
	}
	defer h.endGive(g)
	s := &giving{give: g, ctx: h.ctx, c: idleConn{c}, in: in}
	s.w = bufio.NewWriterSize(s.c, 64<<10)
	err = s.run(q)
	g.end(errors.Join(err, errMoveAnswer))
	g.task.finish(err)
	if err != nil {
		_ = (&frame{kind: frameError, body: []byte(err.Error())}).write(s.w)
		_ = s.w.Flush()
	}
}

// idleConn is a connection on which something must happen from time to time.
type idleConn struct{ net.Conn }

func (c idleConn) Read(b []byte) (int, error) {
	c.SetReadDeadline(time.Now().Add(moveIdle))
	return c.Conn.Read(b)
}

func (c idleConn) Write(b []byte) (int, error) {
	c.SetWriteDeadline(time.Now().Add(moveIdle))
	return c.Conn.Write(b)
}

func (s *giving) run(q *peers.Question) error {
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

// handOff sends the rest while commands wait, and gives the slots.
func (s *giving) handOff(q *peers.Question) error {
	until := time.Now().Add(moveHold)
	s.mu.Lock()
	s.holds = true
	s.mu.Unlock()
	s.task.pause()
	s.task.enter("handoff-prep")
	hold := s.h.hold(s.slots, until)
	defer hold.release()
	for prepared := false; ; {
		if time.Now().After(until) {
			return errMoveChanges
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
		err = s.h.shards.Change(func(_ *engine.Guard, r *cluster.Record) error { return s.giveUnder(r, q, hold) })
		if err == nil {
			break
		}
		if !errors.Is(err, errMoveMore) {
			return err
		}
	}
	s.task.enter("handoff")
	given, err := json.Marshal(s.h.shards.Committed().Public())
	if err != nil {
		return err
	}
	if err := errors.Join((&frame{kind: frameGiven, body: given}).write(s.w), s.w.Flush()); err != nil {
		return nil // they are given: the other shard will ask
	}
	var claimed moveAck
	if s.in.Decode(&claimed) == nil {
		s.h.shards.Kick()
	}
	s.h.awaitRecord(s.ctx, until, func(r *cluster.Record) bool {
		return !slices.ContainsFunc(r.Gifts, func(g cluster.Gift) bool { return g.Task == q.Task })
	})
	return nil
}

// giveUnder notes the gift, if the other shard has everything. The guard over everything is held.
func (s *giving) giveUnder(r *cluster.Record, q *peers.Question, hold *hold) error {
	left := hold.withdraw()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended != nil:
		return s.ended
	case s.epoch != s.h.node.Epoch():
		return shards.ErrTakenBack
	case len(s.changed) > 0 || !left:
		return errMoveMore
	}
	if err := r.Give(q.Task, q.Shard.ID, &s.slots); err != nil {
		return err
	}
	// What clients of the slots have in their caches they are told of no longer.
	s.h.host.InvalidateCaches()
	return nil
}

// pause lets others do something.
func (s *giving) pause() error {
	select {
	case <-time.After(time.Millisecond):
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// sendChanged is a round of the keys that have changed, and returns how many these were.
func (s *giving) sendChanged() (int, error) {
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
func (s *giving) endRound() error {
	s.round++
	kind := byte(frameRound)
	if s.holds { // which changes nowhere else
		kind = frameLast
	}
	if err := errors.Join((&frame{kind: kind, round: s.round}).write(s.w), s.w.Flush()); err != nil {
		return err
	}
	var a moveAck
	if err := s.in.Decode(&a); err != nil {
		return err
	}
	if a.Round != s.round {
		return errMoveAnswer
	}
	return s.err()
}

// send sends the state of a key.
func (s *giving) send(db int, key string) error {
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
