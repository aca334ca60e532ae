package atomredis

import (
	"context"
	"iter"
	"sync"

	"github.com/atomredis/atomredis/server"
)

// Message is what was published on a channel.
type Message struct {
	// Pattern is the subscriber's, which matches Channel.
	Pattern, Channel, Payload string
}

// Subscribe subscribes to the channels whose names match one of the patterns, with * ? and [] as in PSUBSCRIBE, and returns an iterator
// over the messages that are published there. The subscription is in place when Subscribe returns, and ends with the loop or with ctx.
// Keyspace events are messages too, on channels such as __keyevent@0__:expired, if notify-keyspace-events is configured.
//
// The last step of the iterator has an error, unless the loop was left before: that of ctx, ErrClosed if the DB was closed, or ErrKilled
// if more messages waited than client-output-buffer-limit allows a subscriber. The iterator can be used once.
func (db *DB) Subscribe(ctx context.Context, patterns ...string) iter.Seq2[Message, error] {
	d, err := db.subscribe(ctx, patterns)
	if err != nil {
		return func(yield func(Message, error) bool) { yield(Message{}, err) }
	}
	end := sync.OnceFunc(d.Release)
	stop := context.AfterFunc(ctx, end) // also if nobody iterates
	return func(yield func(Message, error) bool) {
		defer end()
		defer stop()
		for {
			raw, err := d.Receive(ctx)
			for len(raw) > 0 && err == nil {
				var r Reply
				if r, raw, err = nextReply(raw); err != nil {
					break
				}
				if m, ok := message(r); ok && !yield(m, nil) {
					return
				}
			}
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(Message{}, wrap(err))
				return
			}
		}
	}
}

// subscribe returns a client that has subscribed.
func (db *DB) subscribe(ctx context.Context, patterns []string) (*server.Direct, error) {
	d, err := db.srv.Direct(db.number)
	if err != nil {
		return nil, wrap(err)
	}
	args := [][]byte{[]byte("PSUBSCRIBE")}
	for _, p := range patterns {
		args = append(args, []byte(p))
	}
	var raw []byte
	if err = d.Control(ctx, args); err == nil {
		raw, err = d.Flush() // the confirmations
	}
	if err == nil {
		err = Reply{raw}.Err()
	} else {
		err = wrap(err)
	}
	if err != nil {
		d.Release()
		return nil, err
	}
	return d, nil
}

// message returns the message that a push is.
func message(r Reply) (m Message, ok bool) {
	parts, err := r.Texts()
	if err != nil || len(parts) != 4 || parts[0] != "pmessage" {
		return Message{}, false
	}
	return Message{Pattern: parts[1], Channel: parts[2], Payload: parts[3]}, true
}
