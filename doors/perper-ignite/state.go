package perperignite

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
	"github.com/atomredis/atomredis/resp"
)

// This file has the state of the cluster: active, inactive, or active for reads only. It is a key, which a door reads
// again when it is older than stateAge. A change is answered after all doors must have read it.

// stateAge is how old the state may be that a door relies on.
const stateAge = 100 * time.Millisecond

// stateTimeout is how long requests wait for a server that has the state and does not answer.
const stateTimeout = time.Second

// The states on the wire.
var states = []string{keys.Inactive, keys.Active, keys.ReadOnly}

const (
	stateInactive = iota
	stateActive
	stateReadOnly
)

// state is the state of the cluster as the door knows it.
type state struct {
	now  atomic.Int32
	read atomic.Int64 // when it was read, in ns since the door was made; 0 means never

	mu     sync.Mutex // held while the state is read
	client ownClient
	start  time.Time
}

// state returns the state of the cluster.
func (d *igniteDoor) state(ctx context.Context) int {
	s := &d.cluster
	if read := s.read.Load(); read == 0 || time.Since(s.start) > time.Duration(read)+stateAge {
		d.readState(ctx)
	}
	return int(s.now.Load())
}

// readState reads the state. If that fails, the last one stays valid. The state is durable when position is.
func (d *igniteDoor) readState(ctx context.Context) (position uint64) {
	s := &d.cluster
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Since(s.start)
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	reply, position, err := s.client.doAhead(ctx, d.Host, "GET", keys.State)
	if err != nil {
		return position
	}
	word, err := reply.Text()
	if errors.Is(err, resp.ErrNull) {
		word = keys.Active
	}
	s.set(word)
	s.read.Store(int64(max(began, 1)))
	return position
}

// set stores a state that was read.
func (s *state) set(word string) {
	for i, known := range states {
		if known == word {
			s.now.Store(int32(i))
		}
	}
}

// clusterState answers with the state.
func (r *request) clusterState() error {
	if err := r.end(); err != nil {
		return err
	}
	r.p.position = r.p.door.readState(r.p.conn.Context())
	r.out = append(r.out, byte(r.p.door.cluster.now.Load()))
	return nil
}

// setClusterState changes the state. With several servers it waits until their doors know it.
func (r *request) setClusterState() error {
	want := int(r.Byte())
	if r.Err() == nil && want >= len(states) {
		return failed("Unknown state of the cluster: " + strconv.Itoa(want))
	}
	if _, err := r.run("PERPER.STATE", states[want]); err != nil {
		return err
	}
	d := r.p.door
	d.cluster.now.Store(int32(want))
	if d.topology().copies < 2 && !d.sharded() {
		return nil
	}
	select {
	case <-time.After(2 * stateAge):
		return nil
	case <-r.p.conn.Context().Done():
		return r.p.conn.Context().Err()
	}
}

// reading are the operations that a cluster answers while it is active for reads only. Types and the state
// itself are always answered.
var reading = map[int16]bool{1000: true, 1003: true, 1011: true, 1012: true, 1020: true, 1021: true, 1050: true, 1055: true,
	1101: true, 2000: true, 2001: true, 2002: true, 2003: true, 2004: true, 2005: true, 2006: true,
	opStartTransaction: true}

// allowed returns an error if the state of the cluster forbids an operation.
func (p *peer) allowed(op int16) error {
	if op < 1000 || op >= 3000 && op != opStartTransaction {
		return nil
	}
	switch p.door.state(p.conn.Context()) {
	case stateInactive:
		return failed("Can not perform the operation because the cluster is inactive")
	case stateReadOnly:
		if !reading[op] {
			return failed("Failed to perform cache operation (cluster is in read-only mode)")
		}
	}
	return nil
}
