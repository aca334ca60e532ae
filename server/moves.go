package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/cluster/peers"
	"github.com/atomredis/atomredis/internal/cluster/shards"
	"github.com/atomredis/atomredis/internal/command"
	clustercommands "github.com/atomredis/atomredis/internal/commands/cluster"
	"github.com/atomredis/atomredis/internal/replication"
)

// Slots that have keys move from one shard to another (internal/cluster/moves.go has what the shards agree on meanwhile). The
// leader of the target works on an import until it is claimed or has failed. Then, or if it was another server that had
// begun, it asks the leader of the source what has become of the task: that has given the slots, or ends the task so that
// it never can.

// migrations has the migrations of slots that the server works on.
type migrations struct {
	srv      *Server
	shards   *shards.Shards
	running  sync.WaitGroup
	tasks    moves
	gives    []*give // changes under a guard over everything; any guard may read it
	holds    slotHolds
	trimming atomic.Bool

	mu      sync.Mutex
	working map[string]*getting // imports in progress, by task; nil before keys come and afterwards
}

func (h *migrations) leads() bool { return !h.srv.group.following.Load() }

// moves are the tasks that this server has worked on, the last ones first.
type moves struct {
	mu    sync.Mutex
	tasks []*moveTask
}

// maxEnded is how many tasks are kept that have ended.
const maxEnded = 32

// moveTask is what is told of a task.
type moveTask struct {
	mu      *sync.Mutex // that of moves; protects what follows
	t       clustercommands.MoveTask
	running bool
	paused  time.Time
	cancel  func(why error)
	why     error         // of a task that has failed, as far as this server knows
	ended   chan struct{} // closed when it has ended
}

var (
	errMoveCancelled = errors.New("Cancelled due to user request")
	errMoveAsked     = errors.New("the target has given up")
)

// begin notes a task that is worked on from now on.
func (m *moves) begin(id, operation string, slots []cluster.Range, source, dest string) *moveTask {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	t := &moveTask{mu: &m.mu, running: true, ended: make(chan struct{}), t: clustercommands.MoveTask{ID: id, Slots: slots,
		Source: source, Dest: dest, Operation: operation, State: "none", Created: now, Started: now}}
	m.tasks = slices.Insert(m.tasks, 0, t)
	ended := 0
	m.tasks = slices.DeleteFunc(m.tasks, func(t *moveTask) bool {
		if !t.running {
			ended++
		}
		return !t.running && ended > maxEnded
	})
	return t
}

// find returns a task, nil if nothing is known of it.
func (m *moves) find(id, operation string) *moveTask {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.tasks {
		if t.t.ID == id && t.t.Operation == operation {
			return t
		}
	}
	return nil
}

func (t *moveTask) enter(state string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.t.State = state
}

// pause notes that commands wait from now on.
func (t *moveTask) pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = time.Now()
}

func (t *moveTask) cancelBy(cancel func(why error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel = cancel
}

// failed notes why a task goes no further. What the source has done is still to be asked.
func (t *moveTask) failed(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.why, t.cancel = why, nil
	t.t.LastError = command.OneLine(why.Error())
}

func (t *moveTask) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// finish notes that a task has come to its end, well if err is nil.
func (t *moveTask) finish(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.running {
		return
	}
	t.running, t.cancel, t.t.Ended = false, nil, time.Now()
	close(t.ended)
	switch {
	case err == nil:
		t.t.State, t.t.LastError = "completed", ""
		if !t.paused.IsZero() {
			t.t.Paused = t.t.Ended.Sub(t.paused)
		}
	case errors.Is(err, errMoveCancelled):
		t.t.State, t.t.LastError = "canceled", err.Error()
	default:
		t.t.State, t.t.LastError = "failed", command.OneLine(err.Error())
	}
}

// importSource returns the shard that has all slots.
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

// Import begins to get slots from the shard that has them, and returns the name of the task.
func (h *migrations) Import(slots cluster.SlotSet) (id string, err error) {
	if !h.leads() {
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
		h.works(id, true) // so that nobody asks what has become of it
		return nil
	})
	if err != nil {
		h.works(id, false)
		return "", err
	}
	ctx, cancel := context.WithCancelCause(h.srv.group.ctx)
	task := h.tasks.begin(id, "import", im.Slots, im.From, h.shards.Record().ID)
	task.cancelBy(cancel)
	h.running.Go(func() {
		err := h.get(ctx, task, im)
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

// AwaitMove waits until an import has ended, and returns why if it has failed.
func (h *migrations) AwaitMove(id string) error {
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
			if !h.leads() { // whoever leads now ends it
				return errMoveLead
			}
		case <-h.srv.group.ctx.Done():
			return errMoveLead
		}
	}
}

// works notes whether something works on an import; it reports false if it is no news.
func (h *migrations) works(task string, on bool) (news bool) {
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

// resolve has the leader find out what has become of imports that nobody works on.
func (h *migrations) resolve() {
	if !h.leads() {
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

// askOutcome ends an import, in one way or the other, if the source says which.
func (h *migrations) askOutcome(im cluster.Import) {
	now := h.shards.Record()
	o := now.Other(im.From)
	if o == nil {
		return
	}
	task := h.tasks.find(im.Task, "import")
	if task == nil {
		task = h.tasks.begin(im.Task, "import", im.Slots, im.From, now.ID)
		task.failed(errMoveLead)
	}
	a, err := h.shards.AskShard(o, peers.Question{Ask: peers.AskEnd, Task: im.Task})
	if err != nil || h.settle(a.Shard, im.Task) != nil {
		return // it is asked again
	}
	if i := h.shards.Record().Import(im.Task); i != nil {
		task.finish(nil)
	} else {
		task.finish(task.err())
	}
	h.shards.Kick()
}

// settle has the shard learn what another one has agreed on, and do what follows. ended is a task of that shard's which
// can never be given any more unless it has been.
func (h *migrations) settle(o cluster.Other, ended string) error {
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

// endTask has the slots of a task never given, unless they have been, and returns what the shard has agreed on.
func (h *migrations) endTask(task string) (o cluster.Other, err error) {
	var guard engine.Guard
	guard.Lock(h.srv.ks, 1, h.srv.ks.Now())
	for _, g := range h.gives {
		if g.task.t.ID == task {
			g.end(errMoveAsked)
		}
	}
	guard.Unlock()
	// If an export is being noted, it is known afterwards whether it is committed.
	err = h.shards.BetweenChanges(func() error {
		node := h.srv.group.node
		epoch := node.Epoch()
		if node.WaitPosition() == 0 || !h.leads() {
			return shards.ErrNotLeading
		}
		ctx, cancel := context.WithTimeout(h.srv.group.ctx, 2*peers.Timeout)
		defer cancel()
		if err := node.Sync(ctx); err != nil {
			return err
		}
		if o = h.shards.Record().Public(); node.Epoch() != epoch || !h.leads() {
			return shards.ErrTakenBack
		}
		return nil
	})
	return o, err
}

// CancelMoves cancels the task with a name, or all if that is empty, and returns how many these were.
func (h *migrations) CancelMoves(id string) (n int) {
	h.tasks.mu.Lock()
	var cancel []func(error)
	for _, t := range h.tasks.tasks {
		if t.running && (id == "" || t.t.ID == id) && t.cancel != nil {
			cancel = append(cancel, t.cancel)
			t.cancel = nil
		}
	}
	h.tasks.mu.Unlock()
	for _, c := range cancel {
		c(errMoveCancelled)
	}
	return len(cancel)
}

// Moves returns the tasks that the server works on or has worked on, the last ones first.
func (h *migrations) Moves() (list []clustercommands.MoveTask) {
	h.tasks.mu.Lock()
	for _, t := range h.tasks.tasks {
		list = append(list, t.t)
	}
	h.tasks.mu.Unlock()
	names := map[string]string{}
	for _, s := range h.srv.ClusterView("").Shards {
		names[s.ID] = s.Members[0].ID
	}
	for i := range list {
		for _, shard := range []*string{&list[i].Source, &list[i].Dest} {
			if name, ok := names[*shard]; ok {
				*shard = name // that of who leads it, as Redis has it
			}
		}
	}
	return list
}

// awaitRecord waits until the record is as ok wants it, but no longer than until.
func (h *migrations) awaitRecord(ctx context.Context, until time.Time, ok func(*cluster.Record) bool) {
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
