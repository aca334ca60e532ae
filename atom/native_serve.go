package atom

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// newWaiting returns a client that shares the pool of the given one, and whose read timeout is longer than a piece of a
// wait; nil if the client's type does not support that.
func newWaiting(client redis.UniversalClient) *redis.Client {
	c, ok := client.(*redis.Client)
	if !ok {
		return nil
	}
	timeout := c.Options().ReadTimeout
	if timeout <= 0 {
		return c.WithTimeout(0) // the client has no limit either
	}
	return c.WithTimeout(timeout + piece)
}

// nativeNext sends the answer to the previous command, and takes and acknowledges the next one in the same round trip.
// known is false, and nothing has happened, if the server does not have the ATOM commands.
func (w *worker) nativeNext(ctx context.Context, block time.Duration) (c handedOut, found, known bool, err error) {
	e, p := w.element, w.element.protocol
	if p.waiting == nil || !p.hasCommands(ctx) {
		return c, false, false, nil
	}
	pipe := p.waiting.Pipeline()
	var responded *redis.Cmd
	if w.answer != nil {
		responded = pipe.Do(ctx, w.answer.native(e.name)...)
	}
	next := pipe.Do(ctx, e.nextArgs(w.consumer, block)...)
	_, _ = pipe.Exec(ctx) // the errors are in the commands
	if isUnknownCommand(next.Err()) {
		p.commands.state.Store(nativeAbsent)
		return c, false, false, nil
	}
	if responded != nil {
		e.responded(ctx, w.answer, responded.Err())
		w.answer = nil
	}
	switch reply, err := next.Result(); {
	case errors.Is(err, redis.Nil):
		return c, false, true, nil
	case err != nil:
		return c, false, true, err
	default:
		c, err = commandHandedOut(reply)
		return c, err == nil, true, err
	}
}

// nextArgs returns the ATOM.NEXT that takes the element's next command. It lists the commands that the element has now,
// with their timeouts, for the server to acknowledge; commands that are added later are not acknowledged by the server.
func (e *Element) nextArgs(consumer string, block time.Duration) []any {
	args := []any{"atom.next", e.name, "consumer", consumer, "timeout", milliseconds(block), "nomkstream", "ack", "no",
		"ackfor"}
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, c := range e.commands {
		args = append(args, name, milliseconds(c.timeout))
	}
	return args
}

// native returns the ATOM.RESPOND that sends the answer for an element.
func (a *answer) native(element string) []any {
	return []any{"atom.respond", element, a.id, a.caller, "cmd", a.command, "data", a.data, "ser", a.serialization,
		"err", int(a.code), a.text}
}

// responded logs an answer that could not be sent. The command was executed nevertheless.
func (e *Element) responded(ctx context.Context, a *answer, err error) {
	if err != nil {
		e.report("respond to a command", a.id, err)
		e.report("mark a command as served", a.id, e.commandServed(ctx, e.protocol.client, a.id))
	}
}

// commandHandedOut reads the reply to ATOM.NEXT.
func commandHandedOut(reply any) (c handedOut, err error) {
	c.Values = map[string]any{}
	field := func(name string, value any) {
		if text, ok := value.(string); ok {
			c.Values[name] = text
		}
	}
	err = eachPair("ATOM.NEXT", reply, func(name string, value any) {
		switch name {
		case "cmd_id":
			c.ID, _ = value.(string)
		case "ack":
			c.acknowledged = value != nil
		case "raw":
			_ = eachPair("ATOM.NEXT", value, field) // a reply without a map has no further fields
		default:
			field(name, value)
		}
	})
	return c, err
}
