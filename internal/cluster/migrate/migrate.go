package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/persist/rdb"
)

// Host is what Migrations needs of the server. Any goroutine may call its methods.
type Host interface {
	// Leads reports whether the server leads its group. It changes only under a guard over everything.
	Leads() bool
	// View returns the cluster as clients see it.
	View() *cluster.View
	// RDBLimits returns the limits of values in a payload.
	RDBLimits() *rdb.Limits
	// AwaitRoom waits until there is memory for another value. It returns ErrNoMemory if nothing can be evicted.
	AwaitRoom(ctx context.Context) error
	// Tiered reports whether some values may be on disk only.
	Tiered() bool
	// InvalidateCaches invalidates the client-side caches of all clients. The guard over everything is held.
	InvalidateCaches()
	// WithdrawBlocked removes the clients that are blocked on keys of slots from their queues, and makes them undo partial
	// work. A guard over everything may be held.
	WithdrawBlocked(slots *cluster.SlotSet) []Blocked
}

// Options is what Migrations needs of the server.
type Options struct {
	Shards   *shards.Shards
	Keyspace *engine.Keyspace
	Config   *config.Config
	Node     *cluster.Node // nil unless cluster-enabled
	Log      *slog.Logger
	Host     Host
}

// Migrations runs the migrations of a server.
type Migrations struct {
	o          Options
	shards     *shards.Shards
	ks         *engine.Keyspace
	host       Host
	ctx        context.Context // ends when the server leaves its group
	node       shards.Node
	running    sync.WaitGroup
	tasks      tasks
	exports    []*exportTask // changes under a guard over everything; any guard may read it
	holds      holds
	trimming   atomic.Bool
	rebalancer rebalancer

	mu      sync.Mutex
	working map[string]*importTask // imports in progress, by task; nil while no keys arrive
}

// ErrNoMemory ends an import whose keys do not fit into memory.
var ErrNoMemory = errors.New("there is not enough memory")

// New returns Migrations without a task.
func New(o Options) *Migrations {
	return &Migrations{o: o, shards: o.Shards, ks: o.Keyspace, host: o.Host, working: map[string]*importTask{}}
}

// Join sets the group, before other servers can ask. ctx ends when the server leaves it.
func (h *Migrations) Join(ctx context.Context, node shards.Node) { h.ctx, h.node = ctx, node }

// Tick makes the leader ask for the outcome of abandoned imports, trim, and take slots if it is to. The server calls it
// periodically, and soon after each change of the record.
func (h *Migrations) Tick() {
	h.resolve()
	h.trim()
	h.rebalance(time.Now())
}

// Wait waits for all goroutines, once the context has ended.
func (h *Migrations) Wait() { h.running.Wait() }

// importSource returns the shard that owns all slots.
func importSource(r *cluster.Record, slots *cluster.SlotSet) (from string, err error) {
	owners, busy := r.Owners(), r.Busy()
	for _, x := range slots.Ranges() {
		of := cluster.SetOf(x)
		if both := busy.Both(&of); !both.Empty() {
			return "", fmt.Errorf("overlapping import exists for slot range: %s", rangeText(x))
		}
		for slot := x.First; slot <= x.Last; slot++ {
			id, _ := owners.Of(slot)
			switch {
			case id == "":
				return "", fmt.Errorf("slot has no owner: %d", slot)
			case from == "":
				from = id
			case from != id:
				return "", errors.New("slots belong to different source nodes")
			}
		}
	}
	if from == r.ID {
		return "", errors.New("this node is already the owner of the slot range")
	}
	return from, nil
}

func rangeText(x cluster.Range) string { return fmt.Sprintf("%d-%d", x.First, x.Last) }

// Import starts an import of slots from the shard that owns them, and returns the name of the task.
func (h *Migrations) Import(slots cluster.SlotSet) (id string, err error) {
	if !h.host.Leads() {
		return "", errors.New("slot migration not allowed on replica.")
	}
	id = replication.NewID()
	var im cluster.Import
	err = h.shards.Change(func(_ *engine.Guard, r *cluster.Record) error {
		from, err := importSource(r, &slots)
		if err != nil {
			return err
		}
		if err := r.BeginImport(id, from, &slots); err != nil {
			return err
		}
		im = *r.Import(id)
		h.works(id, true) // so that resolve leaves it alone
		return nil
	})
	if err != nil {
		h.works(id, false)
		return "", err
	}
	ctx, cancel := context.WithCancelCause(h.ctx)
	task := h.tasks.begin(id, "import", im.Slots, im.From, h.shards.Record().ID)
	task.cancelBy(cancel)
	h.running.Go(func() {
		err := h.runImport(ctx, task, im)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		cancel(nil)
		if err == nil {
			task.finish(nil)
		} else {
			task.failed(err)
		}
		h.works(id, false)
		h.shards.Kick()
	})
	return id, nil
}

// AwaitImport waits for the end of an import and returns its error.
func (h *Migrations) AwaitImport(id string) error {
	t := h.tasks.find(id, "import")
	if t == nil {
		return cluster.ErrNoTask
	}
	look := time.NewTicker(shards.AskEvery)
	defer look.Stop()
	for {
		select {
		case <-t.ended:
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.t.State != "completed" {
				return errors.New(t.t.LastError)
			}
			return nil
		case <-look.C:
			if !h.host.Leads() { // the new leader ends it
				return errLeadLost
			}
		case <-h.ctx.Done():
			return errLeadLost
		}
	}
}

// works records whether a goroutine works on an import. It reports whether that is new.
func (h *Migrations) works(task string, on bool) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, was := h.working[task]
	switch {
	case !on:
		delete(h.working, task)
	case !was:
		h.working[task] = nil
	}
	return was != on
}

// resolve makes the leader ask for the outcome of imports that no goroutine works on.
func (h *Migrations) resolve() {
	if !h.host.Leads() {
		return
	}
	for _, im := range h.shards.Record().Imports {
		if im.Claimed || !h.works(im.Task, true) {
			continue
		}
		h.running.Go(func() {
			defer h.works(im.Task, false)
			h.askOutcome(im)
		})
	}
}

// askOutcome asks the source how an import ended, and completes or drops it.
func (h *Migrations) askOutcome(im cluster.Import) {
	now := h.shards.Record()
	o := now.Other(im.From)
	if o == nil {
		return
	}
	task := h.tasks.find(im.Task, "import")
	if task == nil {
		task = h.tasks.begin(im.Task, "import", im.Slots, im.From, now.ID)
		task.failed(errLeadLost)
	}
	a, err := h.shards.AskShard(o, peers.Question{Ask: peers.AskEnd, Task: im.Task})
	if err != nil || h.settle(a.Shard, im.Task) != nil {
		return // the next Tick asks again
	}
	if i := h.shards.Record().Import(im.Task); i != nil {
		task.finish(nil)
	} else {
		task.finish(task.err())
	}
	h.shards.Kick()
}

// settle applies the committed state of another shard to the record. ended is a task, or "": unless o has its export, the
// other shard will never export it.
func (h *Migrations) settle(o cluster.Other, ended string) error {
	return shards.UnlessUnchanged(h.shards.Change(func(_ *engine.Guard, r *cluster.Record) error {
		news := r.Learn(o, true)
		news = r.Settle() || news
		if ended != "" && r.EndImport(ended) == nil {
			news = true
		}
		if !news {
			return shards.ErrUnchanged
		}
		return nil
	}))
}

// Answers reports whether Answer answers a question.
func Answers(ask string) bool { return ask == peers.AskEnd || ask == peers.AskLoad }

// Answer answers questions of other shards: peers.AskEnd and peers.AskLoad.
func (h *Migrations) Answer(q *peers.Question) (a peers.News, err error) {
	a = h.shards.News()
	if q.Ask == peers.AskLoad {
		err = h.answerLoad(q, &a)
	} else {
		a.Shard, err = h.endTask(q.Task)
	}
	return a, err
}

// endTask ends a task so that its slots are never exported, unless they already are, and returns what the shard has agreed on.
func (h *Migrations) endTask(task string) (o cluster.Other, err error) {
	var guard engine.Guard
	guard.Lock(h.ks, 1, h.ks.Now())
	for _, t := range h.exports {
		if t.task.t.ID == task {
			t.end(errGivenUp)
		}
	}
	guard.Unlock()
	// BetweenChanges waits until an export that is being recorded is committed or taken back.
	err = h.shards.BetweenChanges(func() error {
		node := h.node
		epoch := node.Epoch()
		if node.WaitPosition() == 0 || !h.host.Leads() {
			return shards.ErrNotLeading
		}
		ctx, cancel := context.WithTimeout(h.ctx, 2*peers.Timeout)
		defer cancel()
		if err := node.Sync(ctx); err != nil {
			return err
		}
		if o = h.shards.Record().Public(); node.Epoch() != epoch || !h.host.Leads() {
			return shards.ErrTakenBack
		}
		return nil
	})
	return o, err
}

// CancelTasks cancels the named task, or all tasks if the name is empty, and returns their number.
func (h *Migrations) CancelTasks(id string) (n int) {
	h.tasks.mu.Lock()
	var cancel []func(error)
	for _, t := range h.tasks.list {
		if t.running && (id == "" || t.t.ID == id) && t.cancel != nil {
			cancel = append(cancel, t.cancel)
			t.cancel = nil
		}
	}
	h.tasks.mu.Unlock()
	for _, c := range cancel {
		c(errCancelled)
	}
	return len(cancel)
}

// Tasks returns the tasks that the server works on or has worked on, the latest first.
func (h *Migrations) Tasks() (list []cluster.MigrationTask) {
	h.tasks.mu.Lock()
	for _, t := range h.tasks.list {
		list = append(list, t.t)
		list[len(list)-1].Keys = t.copied.Load()
	}
	h.tasks.mu.Unlock()
	names := map[string]string{}
	for _, s := range h.host.View().Shards {
		names[s.ID] = s.Members[0].ID
	}
	for i := range list {
		for _, shard := range []*string{&list[i].Source, &list[i].Dest} {
			if name, ok := names[*shard]; ok {
				*shard = name // of its leader, as in Redis
			}
		}
	}
	return list
}

// awaitRecord waits until ok accepts the record, at most until a time.
func (h *Migrations) awaitRecord(ctx context.Context, until time.Time, ok func(*cluster.Record) bool) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for ctx.Err() == nil {
		now := h.shards.Now()
		if ok(now.Record) {
			return
		}
		select {
		case <-now.Replaced():
		case <-ctx.Done():
		}
	}
}
