package migrate

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
)

// tasks are the migrations that this server has worked on, the latest first.
type tasks struct {
	mu   sync.Mutex
	list []*task
}

// maxEnded is the number of ended tasks that are kept.
const maxEnded = 32

// task is the visible state of a migration.
type task struct {
	mu      *sync.Mutex // of tasks; protects the fields below
	t       cluster.MigrationTask
	running bool
	paused  time.Time
	cancel  func(why error)
	why     error         // why it failed on this server; the source may have exported the slots anyway
	ended   chan struct{} // closed when it has ended
	copied  atomic.Int64  // keys; mu does not protect it
}

var (
	errCancelled = errors.New("Cancelled due to user request")
	errGivenUp   = errors.New("the target has given up")
)

// begin records a task that this server has started.
func (m *tasks) begin(id, operation string, slots []cluster.Range, source, dest string) *task {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	t := &task{mu: &m.mu, running: true, ended: make(chan struct{}), t: cluster.MigrationTask{ID: id, Slots: slots,
		Source: source, Dest: dest, Operation: operation, State: "none", Created: now, Started: now}}
	m.list = slices.Insert(m.list, 0, t)
	ended := 0
	m.list = slices.DeleteFunc(m.list, func(t *task) bool {
		if !t.running {
			ended++
		}
		return !t.running && ended > maxEnded
	})
	return t
}

// find returns a task, nil if this server has not worked on it.
func (m *tasks) find(id, operation string) *task {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.list {
		if t.t.ID == id && t.t.Operation == operation {
			return t
		}
	}
	return nil
}

func (t *task) enter(state string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.t.State = state
}

// pause records when commands began to wait.
func (t *task) pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = time.Now()
}

func (t *task) cancelBy(cancel func(why error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel = cancel
}

// failed records why a task stopped. Its outcome is open until the source has answered.
func (t *task) failed(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.why, t.cancel = why, nil
	t.t.LastError = command.OneLine(why.Error())
}

func (t *task) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// finish records the end of a task; a nil err is success.
func (t *task) finish(err error) {
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
	case errors.Is(err, errCancelled):
		t.t.State, t.t.LastError = "canceled", err.Error()
	default:
		t.t.State, t.t.LastError = "failed", command.OneLine(err.Error())
	}
}
