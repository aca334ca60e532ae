// Package atom makes a Go program an element of an atom system. Elements are programs in any language that publish data
// on streams and serve each other's commands through one Redis server.
//
//	element, err := atom.New(ctx, client, "camera", atom.Options{})
//	if err != nil {
//		return err
//	}
//	defer element.Close(ctx)
//	_, err = element.EntryWrite(ctx, "frames", map[string]any{"jpeg": jpeg}, atom.WriteOptions{})
//
// Any number of goroutines may use an Element. Each loop and each wait for commands, entries or items of a queue
// occupies a connection of the client's pool. Calls of CommandSend occupy up to a quarter of the pool, at most four
// connections; further calls share one. A wait ends within a tenth of a second after its context.
package atom

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options configure an Element. The zero value is ready to use.
type Options struct {
	// Codecs are serializations in addition to None, Msgpack and Pickle.
	Codecs []Codec
	// Logger receives errors that no caller gets: handlers that panic, packets that cannot be answered. nil discards
	// them.
	Logger *slog.Logger
	// Heartbeat is how often the element says that it lives, with an expiring key; DeadElements finds those that have
	// not for three times as long. 0 means never.
	Heartbeat time.Duration
	// OnlyRedisCommands makes the element use only the commands of Redis, not the ATOM commands of atomredis. Without
	// it the element asks the server once whether it has them. The operations do the same either way. Hooks of the
	// client do not see ATOM.CALL, nor ATOM.NEXT and the commands that are sent with it.
	OnlyRedisCommands bool
}

// Element is a member of the system, known by its name. Several elements, in one process or in many, may share a
// name; they then share its streams and its commands.
type Element struct {
	name     string
	codecs   codecs
	log      *slog.Logger
	protocol *protocol
	inbox    *inbox
	joinedAt string // ID of the element's first entry in the command stream: its commands follow

	life context.Context // ends with Close
	end  context.CancelCauseFunc

	closing sync.Mutex // held by Close
	left    bool       // the element is removed from the server; protected by closing

	workers sync.WaitGroup // command loops and the inbox's reader; grows only under mu and before closed

	mu       sync.Mutex // protects what follows
	closed   bool
	streams  map[string]bool // data streams that this element has written
	commands map[string]command
}

// New registers an element. The caller still owns the client, and must not close it before the element.
func New(ctx context.Context, client redis.UniversalClient, name string, o Options) (*Element, error) {
	op := fmt.Sprintf("new element %q", name)
	if name == "" {
		return nil, misuse(op, "an element needs a name")
	}
	e := &Element{
		name: name, codecs: newCodecs(o.Codecs), log: o.Logger,
		protocol: &protocol{client: client, caller: newCaller(client), waiting: newWaiting(client)},
		streams:  map[string]bool{}, commands: map[string]command{},
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if o.OnlyRedisCommands {
		e.protocol.commands.state.Store(nativeAbsent)
	}
	e.addReserved()
	responseID, commandID, err := e.protocol.join(ctx, name)
	if err != nil {
		return nil, failed(ctx, op, err)
	}
	e.joinedAt = commandID
	e.life, e.end = context.WithCancelCause(context.Background())
	e.inbox = &inbox{
		protocol: e.protocol, key: responseKey(name), last: responseID, waiting: map[callID]chan<- packet{},
		spawn: func(read func(context.Context)) { e.workers.Go(func() { read(e.life) }) },
	}
	if o.Heartbeat > 0 {
		if err := e.protocol.beat(ctx, name, o.Heartbeat); err != nil {
			e.end(ErrClosed)
			return nil, failed(ctx, op, err)
		}
		e.workers.Go(func() { e.beat(o.Heartbeat) })
	}
	return e, nil
}

// Name returns the element's name.
func (e *Element) Name() string { return e.name }

// Close ends the element's operations, waits for running handlers, and removes the element. The last element of a name
// also removes the response and the command stream, and the data streams that it has written. A handler of a command
// must not call Close. After an error Close may be called again; after success it does nothing.
func (e *Element) Close(ctx context.Context) error {
	e.closing.Lock()
	defer e.closing.Unlock()
	if e.left {
		return nil
	}
	e.mu.Lock()
	e.closed = true
	streams := sortedKeys(e.streams)
	e.mu.Unlock()
	e.end(ErrClosed)
	op := fmt.Sprintf("close element %q", e.name)
	idle := make(chan struct{})
	go func() {
		e.workers.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		return failed(ctx, op, ctx.Err())
	}
	if err := e.protocol.leave(ctx, e.name, streams); err != nil {
		return failed(ctx, op, err)
	}
	e.left = true
	return nil
}

// within returns a context that also ends when the element is closed.
func (e *Element) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.life, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// enter counts a worker that Close has to wait for. The caller calls e.workers.Done.
func (e *Element) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.workers.Add(1)
	return nil
}
