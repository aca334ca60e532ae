package atom

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// newWaiting returns a client that shares the pool of the given one but does not give up while a command waits on the
// server for a piece of time; nil if the client is of a kind that cannot be told.
func newWaiting(client redis.UniversalClient) *redis.Client {
	c, ok := client.(*redis.Client)
	if !ok {
		return nil
	}
	timeout := c.Options().ReadTimeout
	if timeout <= 0 {
		return c.WithTimeout(0) // as without a limit as the client is
	}
	return c.WithTimeout(timeout + piece)
}

// nativeNext sends the answer to the command before, and takes and acknowledges the next one in the same round trip.
// known is false, and nothing has happened, if the server does not have the commands for it.
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
	_, _ = pipe.Exec(ctx) // the commands have the errors
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

// nextArgs returns the command that takes the next command of the element. The server acknowledges those that the
// element has by now; the others it cannot know the timeout of.
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

// native returns the command that sends the answer in the name of an element.
func (a *answer) native(element string) []any {
	return []any{"atom.respond", element, a.id, a.caller, "cmd", a.command, "data", a.data, "ser", a.serialization,
		"err", int(a.code), a.text}
}

// responded reports an answer that could not be sent. The command has been done all the same.
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
			_ = eachPair("ATOM.NEXT", value, field) // without a map there are no further fields
		default:
			field(name, value)
		}
	})
	return c, err
}
