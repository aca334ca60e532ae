package shards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication/quorum"
)

// Host is what Shards needs of the server. Any goroutine may call its methods.
type Host interface {
	// Leads reports whether the server leads its group. It changes only under a guard over everything.
	Leads() bool
	// Status returns the latest known state of the group.
	Status() *quorum.Status
	// SlotsLost is called when the shard has stopped serving slots. The guard over everything is held: otherwise a command
	// that has found its slot served could begin to wait for keys afterwards.
	SlotsLost(slots *cluster.SlotSet)
	// SlotsGained is called when the shard has begun to serve slots, whose keys are there. The guard over everything is
	// held.
	SlotsGained()
	// Tick is called every AskEvery, and soon after Kick.
	Tick()
	// Definitions returns a digest of the server's search indexes, "" if it has none.
	Definitions() string
	// Defined is called with the digest of another shard.
	Defined(shard, digest string)
}

// Node is the shared journal of the group, and the connections of its servers; quorum.Node is one.
type Node interface {
	peers.Node
	// Sync waits until all appended records are committed.
	Sync(ctx context.Context) error
	// Epoch changes when appended records may have been taken back.
	Epoch() uint64
	// WaitPosition is 0 if the server does not lead.
	WaitPosition() uint64
}

// Options is what Shards needs of the server.
type Options struct {
	ID        string // of a new shard
	Clustered bool   // cluster-enabled
	Config    *config.Config
	Keyspace  *engine.Keyspace
	Host      Host
}

// Shards holds the record of the server's shard, and learns of other shards.
type Shards struct {
	o         Options
	host      Host
	ks        *engine.Keyspace
	ctx       context.Context // ends when the server leaves its group
	node      Node
	now       atomic.Pointer[State]          // changes under a guard over everything
	committed atomic.Pointer[cluster.Record] // the last record that is committed
	changing  sync.Mutex                     // held from a change of the record until it is committed
	wake      chan struct{}
	running   sync.WaitGroup

	mu        sync.Mutex           // protects the fields below
	seen      map[string]seen      // answers of other shards, by ID
	forgotten map[string]time.Time // until when other shards cannot reintroduce a shard, by ID
}

// State is a record and what follows from it. It is immutable.
type State struct {
	Record *cluster.Record
	ID     string
	Owners *cluster.Owners
	Own    cluster.SlotSet // the slots that the shard serves
	// Foreign are slots that the shard does not serve although it may have keys of them; nil if there are none.
	Foreign  *cluster.SlotSet
	replaced chan struct{} // closed when there is a newer state
}

// Replaced returns a channel that is closed when there is a newer state.
func (st *State) Replaced() <-chan struct{} { return st.replaced }

// seen is the latest answer of a server of another shard, and its time.
type seen struct {
	peers.News
	at time.Time
}

const (
	// AskEvery is how often the other shards are asked.
	AskEvery  = 500 * time.Millisecond
	freshFor  = 3 * time.Second // for how long an answer counts
	forgetFor = time.Minute
)

// Errors of changes of the record.
var (
	ErrNotLeading = errors.New("this server does not lead its shard")
	ErrTakenBack  = errors.New("the lead was lost before the change was agreed on; it may be or not")
	ErrNoID       = errors.New("the shard has no leader yet")
	ErrNoCluster  = errors.New("cluster-enabled is not set")
	// ErrUnchanged aborts a change that would change nothing.
	ErrUnchanged = errors.New("nothing changes")
)

// New returns Shards with an empty record.
func New(o Options) *Shards {
	h := &Shards{o: o, host: o.Host, ks: o.Keyspace, wake: make(chan struct{}, 1), seen: map[string]seen{},
		forgotten: map[string]time.Time{}}
	h.put(&cluster.Record{})
	h.committed.Store(h.Record())
	return h
}

// Join sets the group, before other servers can ask. ctx ends when the server leaves it.
func (h *Shards) Join(ctx context.Context, node Node) { h.ctx, h.node = ctx, node }

// Now returns the present state.
func (h *Shards) Now() *State { return h.now.Load() }

// Record returns the present record, which may not be committed yet.
func (h *Shards) Record() *cluster.Record { return h.now.Load().Record }

// Committed returns the last record that is committed.
func (h *Shards) Committed() *cluster.Record { return h.committed.Load() }

// Led is called when the server starts to lead: its whole record is committed then. The guard over everything is held.
func (h *Shards) Led() { h.committed.Store(h.Record()) }

// BetweenChanges calls fn while no change of the record waits to be committed.
func (h *Shards) BetweenChanges(fn func() error) error {
	h.changing.Lock()
	defer h.changing.Unlock()
	return fn()
}

// put replaces the record. A guard over everything is held, or the server has no clients yet.
func (h *Shards) put(r *cluster.Record) {
	shown := r
	if r.ID == "" { // no record is committed yet
		shown = h.first()
	}
	st := &State{Record: r, ID: shown.ID, Owners: shown.Owners(), replaced: make(chan struct{})}
	st.Own = shown.Serves(st.Owners)
	if foreign := shown.Foreign(&st.Own); !foreign.Empty() {
		st.Foreign = &foreign
	}
	old := h.now.Swap(st)
	if old == nil {
		return
	}
	close(old.replaced)
	if lost := old.Own.Without(&st.Own); !lost.Empty() {
		h.host.SlotsLost(&lost)
	}
	if gained := st.Own.Without(&old.Own); !gained.Empty() {
		h.host.SlotsGained()
	}
}

// first is the record of a new shard.
func (h *Shards) first() *cluster.Record {
	r := &cluster.Record{ID: h.o.ID}
	var slots cluster.SlotSet
	for _, x := range h.o.Config.Get().Cluster.Slots {
		slots.AddRange(cluster.Range{First: x[0], Last: x[1]})
	}
	r.Claim(&slots, 1)
	return r
}

// Apply takes a record from the journal or from a copy of the data. The guard over everything is held.
func (h *Shards) Apply(text []byte) error {
	r := new(cluster.Record)
	if len(text) > 0 {
		if err := json.Unmarshal(text, r); err != nil {
			return fmt.Errorf("the shard's record: %w", err)
		}
	}
	h.put(r)
	h.committed.Store(r)
	h.Kick()
	return nil
}

// Stored returns the record as a checkpoint stores it, nil if h is nil. The guard over everything is held.
func (h *Shards) Stored() []byte {
	if h == nil || h.Record().ID == "" {
		return nil
	}
	text, _ := json.Marshal(h.Record())
	return text
}

// changeTime is how long Change waits for the commit. A change that takes longer is committed later, or taken back with the lead.
const changeTime = 5 * time.Second

// Change changes the record and waits until the change is committed. fn changes a copy, under a guard over everything; if it
// fails, the record stays as it is. With ErrUnchanged too the present record is committed afterwards.
func (h *Shards) Change(fn func(g *engine.Guard, r *cluster.Record) error) error {
	h.changing.Lock()
	defer h.changing.Unlock()
	return h.change(fn, changeTime)
}

// change is Change for a caller that holds changing.
func (h *Shards) change(fn func(g *engine.Guard, r *cluster.Record) error, wait time.Duration) error {
	node := h.node
	r, epoch, err := h.changeUnder(fn)
	if err != nil && !errors.Is(err, ErrUnchanged) || r == h.committed.Load() {
		return err
	}
	ctx, cancel := context.WithTimeout(h.ctx, wait)
	defer cancel()
	if err := node.Sync(ctx); err != nil || node.Epoch() != epoch {
		return ErrTakenBack
	}
	h.committed.Store(r)
	h.Kick()
	return err
}

// confirm makes a record the committed one whose change took longer than Change waits. Without it other shards would never
// hear of the change. It waits briefly: meanwhile no other shard is asked.
func (h *Shards) confirm() {
	if !h.host.Leads() || h.committed.Load() == h.Record() || !h.changing.TryLock() {
		return
	}
	defer h.changing.Unlock()
	_ = h.change(func(*engine.Guard, *cluster.Record) error { return ErrUnchanged }, AskEvery)
}

// changeUnder is the part of Change under the guard. It returns the present record, which the change may have made, and the
// epoch of the journal.
func (h *Shards) changeUnder(fn func(g *engine.Guard, r *cluster.Record) error) (r *cluster.Record, epoch uint64, err error) {
	var g engine.Guard
	g.Lock(h.ks, engine.AllShards, h.ks.Now())
	defer g.Unlock()
	if !h.host.Leads() {
		return nil, 0, ErrNotLeading
	}
	r = h.Record().Clone()
	if err := fn(&g, r); err != nil {
		return h.Record(), h.node.Epoch(), err
	}
	r.Version++
	text, err := json.Marshal(r)
	if err != nil {
		return nil, 0, err
	}
	h.put(r)
	g.Log(0, [][]byte{[]byte("CLUSTER"), []byte("SYNCSLOTS"), []byte("RECORD"), text})
	return r, h.node.Epoch(), nil
}

// Kick makes the server ask the other shards, and call Tick, without waiting for AskEvery.
func (h *Shards) Kick() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Start starts to ask other shards.
func (h *Shards) Start() { h.running.Go(h.watch) }

// Wait waits for all goroutines, once the context has ended.
func (h *Shards) Wait() { h.running.Wait() }
