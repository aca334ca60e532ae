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

// Request is a received command.
type Request struct {
	ID     string // ID of the entry in the element's command stream
	Caller string // the element that sent it
	Name   string // name of the command
	Data   Value
	// Raw holds the fields of the packet that the specification does not name.
	Raw map[string][]byte
}

// Handler executes a command. Its result is serialized as the response's data, even if it returns an error too. A
// *UserError is sent with its code; any other error, or a panic, as CallbackFailed. Handlers may run at the same time.
// The context ends with the command loop.
type Handler func(ctx context.Context, r *Request) (any, error)

// CommandOptions say how a command is served.
type CommandOptions struct {
	// Timeout limits how long callers wait for the response. 0 means DefaultResponseTimeout.
	Timeout time.Duration
	// Deadline releases callers and the loop from a handler that hangs. The handler's context ends after this time. If
	// the handler has not returned then, the response is DeadlinePassed, the loop continues, and what the handler
	// returns later is dropped. 0 means none. Close does not wait for such a handler.
	Deadline time.Duration
	// Serialization is that of the data of the request, which does not name its own, and of the response. Empty means
	// None.
	Serialization string
}

// command is a handler of an element with its options.
type command struct {
	handler       Handler
	timeout       time.Duration
	serialization string
	deadline      time.Duration
	hanging       *atomic.Int64 // handlers that run on after the deadline
}

// maxHanging is how many handlers of a command may run on after their deadline. Further commands are then answered
// without a call of the handler, so that goroutines do not pile up.
const maxHanging = 100

var reserved = []string{versionCommand, healthcheckCommand, commandListCommand}

// CommandAdd makes the element serve a command; a running command loop serves it at once. It replaces a command of the
// same name. A running loop may still acknowledge it with the former timeout for a tenth of a second. The names
// "version", "healthcheck" and "command_list" are reserved.
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
	if o.Deadline < 0 {
		return misuse(op, "a deadline of %s", o.Deadline)
	}
	e.setCommand(name, command{handler, o.Timeout, o.Serialization, o.Deadline, new(atomic.Int64)})
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

// HealthcheckSet replaces the check by which other elements learn whether this one is ready. Without a check an element
// is healthy while it runs a command loop. The text of the error is reported to other elements as the reason.
func (e *Element) HealthcheckSet(check func(ctx context.Context) error) {
	e.setCommand(healthcheckCommand, command{handler: func(ctx context.Context, _ *Request) (any, error) {
		return nil, check(ctx)
	}})
}

// CommandLoopOptions configure a command loop.
type CommandLoopOptions struct {
	// Workers is how many commands are served at the same time. 0 means one.
	Workers int
	// Loops is how many commands to serve before the loop returns. 0 means no limit.
	Loops int
}

// CommandLoop serves the commands sent to the element since New. It returns nil after o.Loops commands, or the error of
// the context when that ends, after it has finished the commands that it has begun. Loops of elements with the same
// name, in any language, share the commands: each command is served by one of them.
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
	// A worker that fails stops the others, and the loop returns its error.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failure error
	var first sync.Once
	var left atomic.Int64 // commands that no worker has claimed yet
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

// SendOptions configure CommandSend.
type SendOptions struct {
	// Serialization is that of the command's data, and of a response that does not name its own. Empty means None.
	Serialization string
	// Force uses Serialization for the response even if the response names another one.
	Force bool
	// AckTimeout limits the wait for the acknowledgement. 0 means DefaultAckTimeout.
	AckTimeout time.Duration
	// AckOnly makes CommandSend return when the command is acknowledged, with a Response without data.
	AckOnly bool
	// Raw holds further fields of the packet; the handler finds them in Request.Raw.
	Raw map[string][]byte
}

// Response is the answer to a command.
type Response struct {
	ID   string // ID of the command in the command stream of the element that served it
	Data Value
	// Code and Message are the error in the response, which CommandSend also returns as an *Error.
	Code    Code
	Message string
}

// CommandSend sends a command to an element and waits for the response, for as long as the element's acknowledgement
// allows. The error is an *Error. Its code is NoAck or NoResponse if the element did not answer in time, or the code of
// the response if that is not NoError; in this case the Response is returned too.
func (e *Element) CommandSend(ctx context.Context, element, command string, data any, o SendOptions) (*Response,
	error) {
	op := fmt.Sprintf("send command %q to %q", command, element)
	if element == "" || command == "" {
		return nil, misuse(op, "both need a name")
	}
	payload := []byte{} // nil is empty data in every serialization, as in Python
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
	if !o.AckOnly && len(o.Raw) == 0 { // ATOM.CALL supports neither
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

// response reads a response packet, or the acknowledgement of a call with AckOnly.
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
