package atomredis

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/resp"
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
// if more messages waited than client-output-buffer-limit allows a subscriber. The iterator can be used once: a second loop has
// ErrSubscriptionEnded as its only step. An iterator that is dropped without a loop is unsubscribed when the garbage collector finds it.
func (db *DB) Subscribe(ctx context.Context, patterns ...string) iter.Seq2[Message, error] {
	d, err := db.subscribe(ctx, patterns)
	if err != nil {
		return func(yield func(Message, error) bool) { yield(Message{}, err) }
	}
	end := sync.OnceFunc(d.Release)
	s := &subscription{ctx: ctx, d: d, end: end}
	s.stop = context.AfterFunc(ctx, end) // also if nobody iterates
	runtime.AddCleanup(s, func(end func()) { end() }, end)
	return s.messages
}

// ErrSubscriptionEnded says that the iterator of Subscribe was used before.
var ErrSubscriptionEnded = errors.New("atomredis: the subscription has ended with the loop over it")

// subscription is what an iterator over messages works with. Nothing that the server or the context refers to may refer to it, so that it is
// found to be garbage.
type subscription struct {
	ctx  context.Context
	d    *server.Direct
	used atomic.Bool
	end  func()
	stop func() bool
}

// messages is the iterator.
func (s *subscription) messages(yield func(Message, error) bool) {
	if s.used.Swap(true) {
		yield(Message{}, ErrSubscriptionEnded)
		return
	}
	defer s.end()
	defer s.stop()
	for {
		raw, err := s.d.Receive(s.ctx)
		for len(raw) > 0 && err == nil {
			var r Reply
			if r, raw, err = resp.NextReply(raw); err != nil {
				break
			}
			if m, ok := message(r); ok && !yield(m, nil) {
				return
			}
		}
		if s.ctx.Err() != nil {
			err = server.ContextError(s.ctx)
		}
		if err != nil {
			yield(Message{}, wrap(err))
			return
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
		err = resp.NewReply(raw).Err()
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
