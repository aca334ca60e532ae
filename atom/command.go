package atom

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Request is a command that another element has sent.
type Request struct {
	ID     string // of the entry in our command stream
	Caller string // the element that has sent it
	Name   string // of the command
	Data   Value
	// Raw holds the fields of the packet beside those that the specification names.
	Raw map[string][]byte
}

// Handler does a command. What it returns is serialized and becomes the response's data, also beside an error. An
// error that is a *UserError travels with its code, any other as CallbackFailed; so does a panic. Handlers may run at
// the same time. The context ends with the command loop.
type Handler func(ctx context.Context, r *Request) (any, error)

// CommandOptions say how a command is served.
type CommandOptions struct {
	// Timeout is how long callers wait for the response. 0 means DefaultResponseTimeout.
	Timeout time.Duration
	// Serialization is for the request's data, which does not say itself how it was written, and for the response's. Empty
	// means None.
	Serialization string
}

// command is what an element serves under a name.
type command struct {
	handler       Handler
	timeout       time.Duration
	serialization string
}

var reserved = []string{versionCommand, healthcheckCommand, commandListCommand}

// CommandAdd makes the element serve a command, from its next command loop or, if one is running, at once. A command
// that is there already is replaced; a loop that is running may acknowledge it with the former timeout for a tenth of
// a second. The names "version", "healthcheck" and "command_list" are reserved.
func (e *Element) CommandAdd(name string, handler Handler, o CommandOptions) error {
	op := fmt.Sprintf("add command %q", name)
	switch {
	case name == "":
		return misuse(op, "a command needs a name")
	case handler == nil:
		return misuse(op, "a command needs a handler")
	case slices.Contains(reserved, name):
		return misuse(op, "the name is reserved")
	case e.codecs[orNone(o.Serialization)] == nil:
		return &Error{Code: SerializationError, Op: op, Err: fmt.Errorf("unknown serialization %q", o.Serialization)}
	}
	e.setCommand(name, command{handler, o.Timeout, o.Serialization})
	return nil
}

func (e *Element) setCommand(name string, c command) {
	if c.timeout <= 0 {
		c.timeout = DefaultResponseTimeout
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.commands[name] = c
}

// addReserved adds the commands that every element answers.
func (e *Element) addReserved() {
	e.HealthcheckSet(func(context.Context) error { return nil })
	e.setCommand(versionCommand, command{serialization: Msgpack, handler: func(context.Context, *Request) (any, error) {
		return map[string]any{"language": Language, "version": protocolVersion}, nil
	}})
	e.setCommand(commandListCommand, command{serialization: Msgpack,
		handler: func(context.Context, *Request) (any, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			names := slices.DeleteFunc(sortedKeys(e.commands), func(name string) bool { return slices.Contains(reserved, name) })
			return names, nil
		}})
}

// HealthcheckSet replaces the check that tells others whether this element is ready. Without one an element is
// healthy while it runs a command loop. The text of the error is the reason that others get to see.
func (e *Element) HealthcheckSet(check func(ctx context.Context) error) {
	e.setCommand(healthcheckCommand, command{handler: func(ctx context.Context, _ *Request) (any, error) {
		return nil, check(ctx)
	}})
}

// CommandLoopOptions say how a command loop works.
type CommandLoopOptions struct {
	// Workers is how many commands are served at the same time. 0 means one.
	Workers int
	// Loops is how many commands to serve before the loop returns. 0 means no limit.
	Loops int
}

// CommandLoop serves the commands that are sent to the element, those since New included, until the context ends,
// with whose error it returns. Before that it finishes what it has begun. Loops of elements with the same name,
// whatever language they are written in, share the commands: each is served by one of them.
func (e *Element) CommandLoop(ctx context.Context, o CommandLoopOptions) error {
	op := fmt.Sprintf("command loop of %q", e.name)
	if o.Workers < 0 || o.Loops < 0 {
		return misuse(op, "%d workers, %d loops", o.Workers, o.Loops)
	}
	if err := e.enter(); err != nil {
		return failed(ctx, op, err)
	}
	defer e.workers.Done()
	ctx, cancel := e.within(ctx)
	defer cancel()
	if err := e.protocol.makeGroup(ctx, e.name, e.joinedAt); err != nil {
		return failed(ctx, op, err)
	}
	// A worker that fails stops the others; what it failed of is what the loop returns.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failure error
	var first sync.Once
	var left atomic.Int64 // commands that nobody has set out to serve yet
	left.Store(int64(o.Loops))
	var workers sync.WaitGroup
	for range max(o.Workers, 1) {
		workers.Go(func() {
			w := &worker{element: e, consumer: uuid()}
			if err := w.run(ctx, func() bool { return o.Loops == 0 || left.Add(-1) >= 0 }); err != nil {
				first.Do(func() { failure = failed(ctx, op, err) })
				stop()
			}
		})
	}
	workers.Wait()
	return failure
}

// SendOptions say how a command is sent.
type SendOptions struct {
	// Serialization is for the data of the command, and for that of a response that does not name its own. Empty means
	// None.
	Serialization string
	// Force takes Serialization for the response even if that names another one.
	Force bool
	// AckTimeout is how long to wait for the acknowledgement. 0 means DefaultAckTimeout.
	AckTimeout time.Duration
	// AckOnly returns when the command is acknowledged, with a Response without data.
	AckOnly bool
	// Raw holds further fields for the packet; the Raw of the Request has them.
	Raw map[string][]byte
}

// Response is the answer to a command.
type Response struct {
	ID   string // of the command, in the command stream of the element that served it
	Data Value
	// Code and Message are the error of the response, which CommandSend also returns as an *Error.
	Code    Code
	Message string
}

// CommandSend sends a command to an element and waits for the response, for as long as the element's acknowledgement
// says. The error is an *Error: with NoAck or NoResponse if the element did not answer in time, with the code of the
// response if that is not NoError (then the Response is returned too).
func (e *Element) CommandSend(ctx context.Context, element, command string, data any, o SendOptions) (*Response,
	error) {
	op := fmt.Sprintf("send command %q to %q", command, element)
	if element == "" || command == "" {
		return nil, misuse(op, "both need a name")
	}
	payload := []byte{} // no data is empty in every serialization, as in Python
	if data != nil {
		var err error
		if payload, _, err = e.codecs.encode(op, o.Serialization, data); err != nil {
			return nil, err
		}
	}
	fields := []any{"element", e.name, "cmd", command, "data", payload}
	for _, name := range sortedKeys(o.Raw) {
		if name == "element" || name == "cmd" || name == "data" {
			return nil, misuse(op, "the raw field %q is reserved", name)
		}
		fields = append(fields, name, o.Raw[name])
	}
	if o.AckTimeout <= 0 {
		o.AckTimeout = DefaultAckTimeout
	}
	if err := e.enter(); err != nil {
		return nil, failed(ctx, op, err)
	}
	defer e.workers.Done()
	ctx, cancel := e.within(ctx)
	defer cancel()
	var p packet
	var err error
	called := false
	if !o.AckOnly && len(o.Raw) == 0 { // which ATOM.CALL does not know
		p, called, err = e.protocol.call(ctx, e.name, element, command, payload, o.AckTimeout)
	}
	if !called {
		p, err = e.inbox.call(ctx, element, fields, o.AckTimeout, o.AckOnly)
	}
	if missing := Code(0); errors.As(err, &missing) {
		return nil, &Error{Code: missing, Op: op}
	}
	if err != nil {
		return nil, failed(ctx, op, err)
	}
	return e.response(op, p, Decoding{o.Serialization, o.Force})
}

// response reads a response packet, or an acknowledgement if that is all that was waited for.
func (e *Element) response(op string, p packet, d Decoding) (*Response, error) {
	r := &Response{ID: idOf(p).id}
	if data, ok := p.field("data"); ok {
		ser, _ := p.field(serField)
		r.Data = e.codecs.value([]byte(data), ser, d)
	}
	if text, ok := p.field("err_code"); ok {
		code, err := strconv.Atoi(text)
		if err != nil {
			return nil, misuse(op, "the response has the error code %q", text)
		}
		r.Code = Code(code)
	}
	r.Message, _ = p.field("err_str")
	if r.Code == NoError {
		return r, nil
	}
	failure := &Error{Code: r.Code, Op: op}
	if r.Message != "" {
		failure.Err = errors.New(r.Message)
	}
	return r, failure
}
