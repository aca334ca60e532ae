package transfer

import (
	"context"
	"sync"

	"github.com/atomredis/atomredis/engine"
)

// Stream has the commands that change data, as followers of the server execute them.
type Stream interface {
	// BeginTail sends the stream to t from now on. The guard holds everything.
	BeginTail(g *engine.Guard, t *Tail)
	// CutTail stops sending to t, and reports whether t was receiving the stream.
	CutTail(t *Tail) bool
	// EndTail is CutTail, and ends the stream if it has no other receivers. No guard is held.
	EndTail(t *Tail)
}

// Tail takes the stream for a backup. Any goroutine may call its methods.
type Tail struct {
	limit  int64 // of pending, in bytes; 0 means no limit
	cancel context.CancelCauseFunc
	more   chan struct{}

	mu      sync.Mutex // protects the following fields
	pending []byte
}

func newTail(limit int64, cancel context.CancelCauseFunc) *Tail {
	return &Tail{limit: limit, cancel: cancel, more: make(chan struct{}, 1)}
}

// Add takes a part of the stream, which it does not keep. It may be called under any lock.
func (t *Tail) Add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending = append(t.pending, b...); t.limit > 0 && int64(len(t.pending)) > t.limit {
		t.pending = nil
		t.cancel(errBackupSlow)
	}
	select {
	case t.more <- struct{}{}:
	default:
	}
}

// Replaced ends the backup, because the data is replaced by that of another server without commands in the stream.
func (t *Tail) Replaced() { t.cancel(errBackupReplica) }

// take returns what has arrived since the last call.
func (t *Tail) take() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.pending
	t.pending = nil
	return b
}
