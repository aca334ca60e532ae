package atom

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/redis/go-redis/v9"
)

// worker serves the commands of an element, one at a time, as a consumer of the element's group.
type worker struct {
	element  *Element
	consumer string
	answer   *answer // answer to the last command; nil once it was sent
}

// handedOut is a command that the server has given to a worker.
type handedOut struct {
	redis.XMessage
	acknowledged bool // the server has acknowledged it
}

// answer is the response to an executed command.
type answer struct {
	id, caller, command string
	data                []byte
	serialization       string
	code                Code
	text                string
}

// run serves commands while oneMore returns true. A command that was handed out is served and answered even if the
// context ends.
func (w *worker) run(ctx context.Context, oneMore func() bool) error {
	var err error
	for err == nil && oneMore() {
		var c handedOut
		if c, err = w.next(ctx); err == nil {
			w.serve(ctx, c)
		}
	}
	ctx = context.WithoutCancel(ctx)
	w.respond(ctx)
	// The consumer has no pending commands; without this it would stay in the group.
	e := w.element
	e.protocol.client.XGroupDelConsumer(ctx, commandKey(e.name), groupName(e.name), w.consumer)
	return err
}

// next sends the answer to the previous command and takes the next one. A command that the server has handed out is
// returned even if the context ends in that moment.
func (w *worker) next(ctx context.Context) (c handedOut, err error) {
	_, err = wait(ctx, forever, func(block time.Duration) (found bool, err error) {
		ctx := context.WithoutCancel(ctx)
		c, found, err = w.tryNext(ctx, block)
		return found, err
	})
	return c, err
}

func (w *worker) tryNext(ctx context.Context, block time.Duration) (c handedOut, found bool, err error) {
	if c, found, known, err := w.nativeNext(ctx, block); known {
		return c, found, err
	}
	w.respond(ctx)
	e := w.element
	read, err := e.protocol.client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: groupName(e.name), Consumer: w.consumer, Streams: []string{commandKey(e.name), ">"}, Count: 1, Block: block,
	}).Result()
	if err != nil || len(read) == 0 || len(read[0].Messages) == 0 {
		return handedOut{}, false, err
	}
	return handedOut{XMessage: read[0].Messages[0]}, true, nil
}

// respond sends the answer to the last command unless it was sent already.
func (w *worker) respond(ctx context.Context) {
	a, e := w.answer, w.element
	if a == nil {
		return
	}
	w.answer = nil
	if cmd, ok := e.protocol.native(ctx, a.native(e.name)...); ok {
		e.responded(ctx, a, cmd.Err())
		return
	}
	pipe := e.protocol.client.Pipeline()
	e.protocol.add(ctx, pipe, responseKey(a.caller), DefaultMaxLen, "data", a.data, "ser", a.serialization,
		"err_code", int(a.code), "err_str", a.text, "cmd_id", a.id, "element", e.name, "cmd", a.command)
	e.commandServed(ctx, pipe, a.id)
	_, err := pipe.Exec(ctx)
	e.report("respond to a command", a.id, err)
}

// serve executes a command and leaves the answer in w.
func (w *worker) serve(ctx context.Context, msg handedOut) {
	e := w.element
	request, caller, name := e.request(msg.XMessage)
	reply := context.WithoutCancel(ctx)
	if caller == "" { // the first entry of an element, or a command without a caller
		e.report("mark a command as served", msg.ID, e.commandServed(reply, e.protocol.client, msg.ID))
		return
	}
	e.mu.Lock()
	c, supported := e.commands[name]
	e.mu.Unlock()
	if !supported {
		c = command{timeout: DefaultResponseTimeout}
	}
	if !msg.acknowledged {
		_, err := e.protocol.add(reply, e.protocol.client, responseKey(caller), DefaultMaxLen,
			"element", e.name, "cmd_id", msg.ID, "timeout", milliseconds(c.timeout)).Result()
		e.report("acknowledge a command", msg.ID, err)
		if err != nil { // the caller gets NoAck, so the command must not be executed
			e.report("mark a command as served", msg.ID, e.commandServed(reply, e.protocol.client, msg.ID))
			return
		}
	}

	a := &answer{id: msg.ID, caller: caller, command: name}
	w.answer = a
	var data any
	var err error
	switch {
	case name == "":
		a.code, a.text = InvalidCommand, "the packet names no command"
	case !supported:
		a.code, a.text = UnsupportedCommand, fmt.Sprintf("there is no command %q", name)
	default:
		request.Data = e.codecs.value(request.Data.Bytes, "", Decoding{Serialization: c.serialization})
		data, err = e.runWithin(ctx, &c, request)
		a.code, a.text = outcome(err)
	}
	if a.data, a.serialization, err = e.codecs.encode("respond", c.serialization, data); err != nil {
		a.data, a.serialization, a.code, a.text = []byte{}, None, SerializationError, err.Error()
	}
}

// request reads a command packet. Missing data is empty data.
func (e *Element) request(msg redis.XMessage) (r *Request, caller, name string) {
	r = &Request{ID: msg.ID, Data: Value{Bytes: []byte{}}, Raw: map[string][]byte{}}
	for field, value := range msg.Values {
		text, _ := value.(string)
		switch field {
		case "element":
			r.Caller = text
		case "cmd":
			r.Name = text
		case "data":
			r.Data.Bytes = []byte(text)
		default:
			r.Raw[field] = []byte(text)
		}
	}
	return r, r.Caller, r.Name
}

// commandServed removes a command from the group's pending entries.
func (e *Element) commandServed(ctx context.Context, c redis.Cmdable, id string) error {
	return c.XAck(ctx, commandKey(e.name), groupName(e.name), id).Err()
}

// runWithin calls the handler of a command, and leaves it alone when its deadline has passed.
func (e *Element) runWithin(ctx context.Context, c *command, r *Request) (any, error) {
	if c.deadline <= 0 {
		return e.run(ctx, c.handler, r)
	}
	if c.hanging.Load() >= maxHanging {
		return nil, fmt.Errorf("%d handlers hang already: %w", maxHanging, DeadlinePassed)
	}
	type result struct {
		data any
		err  error
	}
	ctx, cancel := context.WithTimeout(ctx, c.deadline)
	done := make(chan result, 1)
	go func() {
		defer cancel()
		data, err := e.run(ctx, c.handler, r)
		done <- result{data, err}
	}()
	timer := time.NewTimer(c.deadline)
	defer timer.Stop()
	select {
	case got := <-done:
		return got.data, got.err
	case <-timer.C:
		c.hanging.Add(1)
		go func() {
			<-done
			c.hanging.Add(-1)
		}()
		return nil, fmt.Errorf("after %s: %w", c.deadline, DeadlinePassed)
	}
}

// run calls a handler. A panic is logged with its stack and becomes an error.
func (e *Element) run(ctx context.Context, handler Handler, r *Request) (data any, err error) {
	defer func() {
		if v := recover(); v != nil {
			e.log.Error("atom: a handler panicked", "element", e.name, "command", r.Name, "panic", v, "stack",
				string(debug.Stack()))
			data, err = nil, fmt.Errorf("panic: %v", v)
		}
	}()
	return handler(ctx, r)
}

// outcome returns the code and the text of a handler's error in a response.
func outcome(err error) (Code, string) {
	var user *UserError
	switch {
	case err == nil:
		return NoError, ""
	case errors.As(err, &user) && user.Code > 0:
		return UserErrors + Code(user.Code), user.Message
	case errors.Is(err, DeadlinePassed):
		return DeadlinePassed, err.Error()
	}
	return CallbackFailed, err.Error()
}

// report logs an error that no caller gets.
func (e *Element) report(what, command string, err error) {
	if err != nil {
		e.log.Error("atom: cannot "+what, "element", e.name, "command", command, "error", err)
	}
}
