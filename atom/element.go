// Package atom lets a Go program take part in a system of atom elements: programs, in any language, that publish data
// on streams and serve each other's commands through one Redis server.
//
//	element, err := atom.New(ctx, client, "camera", atom.Options{})
//	if err != nil {
//		return err
//	}
//	defer element.Close(ctx)
//	_, err = element.EntryWrite(ctx, "frames", map[string]any{"jpeg": jpeg}, atom.WriteOptions{})
//
// An Element may be used by any number of goroutines. Each loop and each wait for commands, entries or items of a
// queue occupies a connection of the client's pool for as long as it lasts; commands that are sent occupy a quarter
// of the pool, four connections at most, and beyond that share one. When the context of an operation ends, such a
// wait ends within a tenth of a second.
package atom

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Options configure an Element. The zero value is ready to use.
type Options struct {
	// Codecs are serializations beside None, Msgpack and Pickle.
	Codecs []Codec
	// Logger takes what concerns no caller: handlers that panic, packets that cannot be answered. nil discards it.
	Logger *slog.Logger
	// OnlyRedisCommands leaves the commands unused that atomredis has beside those of Redis. Without it the server is
	// asked for them once. What the operations do is the same, but hooks of the client do not see ATOM.CALL, ATOM.NEXT
	// and what is sent together with the latter.
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
	joinedAt string // ID of our first entry in the command stream: commands begin after it

	life context.Context // ends with Close
	end  context.CancelCauseFunc

	closing sync.Mutex // held by Close
	left    bool       // the server has forgotten us; protected by closing

	workers sync.WaitGroup // command loops and the inbox's reader; added to under mu, and not after closed

	mu       sync.Mutex // protects what follows
	closed   bool
	streams  map[string]bool // data streams that we have written to
	commands map[string]command
}

// New makes an element known to the system. The client stays the caller's: it must not be closed before the element is.
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
	return e, nil
}

// Name returns the element's name.
func (e *Element) Name() string { return e.name }

// Close ends what the element is doing, waits for handlers that are running, and removes the element: with the last
// element of its name go the response and the command stream and the data streams that this one has written. It must
// not be called from a handler of a command. After an error it may be called again; after success it does nothing.
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
