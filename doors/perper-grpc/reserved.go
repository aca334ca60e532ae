package perpergrpc

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"

	"google.golang.org/grpc"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/doors/internal/rpc"
	"github.com/atomredis/atomredis/internal/protocols/perper/event"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
	"github.com/atomredis/atomredis/internal/wire/fabric"
)

// reserved is a call of ReservedExecutions. One goroutine reads the peer's requests, one takes executions, and the
// goroutine of the call watches for removed executions.
type reserved struct {
	ctx    context.Context
	client *door.Client // owns the locks; used by take
	sub    *door.Subscription
	box    *outbox[fabric.ExecutionsResponse]
	filter *fabric.ExecutionsRequest

	mu     sync.Mutex // also keeps messages in the order of their events
	group  string
	groups map[string]bool // groups in which executions were taken
	tokens uint64
	more   chan struct{} // readable when tokens has grown
	// held has the executions that were sent to the peer, except cancelled ones.
	held map[string]bool
	// removed has the executions, with the serial numbers of their events, that were removed while one is being taken:
	// it may be one of them.
	removed   map[string]int64
	interrupt func() // restarts the command that takes an execution
}

// maxRemoved limits removed.
const maxRemoved = 1024

// ReservedExecutions implements fabric.FabricServer.
func (service) ReservedExecutions(
	stream grpc.BidiStreamingServer[fabric.ReservedExecutionsRequest, fabric.ExecutionsResponse],
) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	r := &reserved{ctx: ctx, groups: map[string]bool{}, more: make(chan struct{}, 1), held: map[string]bool{},
		removed: map[string]int64{}, interrupt: func() {}}
	for r.filter == nil {
		m, err := stream.Recv()
		if err != nil {
			return endOf(err)
		}
		r.request(m)
		r.filter = m.Filter
	}
	p := rpc.PeerOf(ctx)
	var err error
	if r.client, err = p.Get(); err != nil {
		return err
	}
	defer func() {
		for group := range r.groups {
			release(r.client, group)
		}
		p.Put(r.client)
	}()
	if r.sub, err = subscribe(ctx, keys.Agent(r.filter.Agent)); err != nil {
		return err
	}
	r.box = newOutbox(stream, r.sub)
	defer r.box.close()
	p.Go(func() { // ends with the call
		for {
			m, err := stream.Recv()
			if err != nil {
				return // a peer without further requests still listens
			}
			r.request(m)
		}
	})
	var failed error
	taking := p.Go(func() {
		failed = r.take()
		cancel()
	})
	err = r.watch()
	cancel()
	<-taking
	if errors.Is(err, context.Canceled) && stream.Context().Err() == nil {
		err = failed
	}
	return r.box.why(err)
}

// endOf returns the error of a call whose peer has stopped sending.
func endOf(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// request executes a message of the peer.
func (r *reserved) request(m *fabric.ReservedExecutionsRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.WorkGroup != "" {
		r.group = m.WorkGroup
	}
	if m.ReserveNext > math.MaxUint64-r.tokens {
		r.tokens = math.MaxUint64
	} else {
		r.tokens += m.ReserveNext
	}
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// take takes executions and sends them while the peer asks for more.
func (r *reserved) take() error {
	for r.asked() {
		taken, err := r.takeOne("NOWAIT")
		if err != nil {
			return err
		}
		if !taken {
			break
		}
	}
	if err := r.box.send(&fabric.ExecutionsResponse{StartOfStream: true}); err != nil {
		return err
	}
	for {
		if !r.asked() {
			select {
			case <-r.more:
			case <-r.ctx.Done():
				return r.ctx.Err()
			}
			continue
		}
		if _, err := r.takeOne(); err != nil {
			return err
		}
	}
}

// asked reports whether the peer asks for more.
func (r *reserved) asked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tokens > 0
}

// takeOne takes an execution and sends it. It reports whether it could, and returns an error if the call must end.
func (r *reserved) takeOne(options ...any) (taken bool, err error) {
	r.mu.Lock()
	group := r.group
	r.groups[group] = true
	ctx, cancel := context.WithCancel(r.ctx)
	r.interrupt = cancel
	r.mu.Unlock()
	defer cancel()
	args := append(filterArgs([]any{"PERPER.NEXT", group}, r.filter), "WITHSERIAL")
	reply, err := r.client.Do(ctx, append(args, options...)...)
	r.mu.Lock()
	defer r.mu.Unlock()
	defer clear(r.removed)
	switch {
	case err != nil && ctx.Err() != nil && r.ctx.Err() == nil:
		return false, nil // the command was interrupted
	case err != nil:
		return false, err
	case reply.IsNull():
		return false, nil
	}
	e, err := reply.Slice()
	if err != nil {
		return false, err
	}
	var id, instance, delegate string
	for i, text := range []*string{&id, &instance, &delegate} {
		if *text, err = e[i].Text(); err != nil {
			return false, err
		}
	}
	serial, err := e[3].Int()
	if err != nil {
		return false, err
	}
	if r.removed[id] > serial {
		return true, nil // removed before it was sent
	}
	r.held[id] = true
	r.tokens--
	return true, r.box.send(response(id, instance, delegate))
}

// watch reports to the peer which of its executions are removed.
func (r *reserved) watch() error {
	for {
		e, err := nextEvent(r.ctx, r.sub)
		if err != nil {
			return err
		}
		if e.Kind != event.ExecutionRemoved {
			continue
		}
		if err := r.remove(e); err != nil {
			return err
		}
	}
}

// remove handles the removal of an execution.
func (r *reserved) remove(e event.Execution) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held[e.Execution] {
		if r.removed[e.Execution] = e.Serial; len(r.removed) > maxRemoved {
			r.interrupt()
		}
		return nil
	}
	delete(r.held, e.Execution)
	m := response(e.Execution, e.Instance, e.Delegate)
	m.Cancelled = true
	return r.box.send(m)
}
