package memory

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync/atomic"

	"github.com/atomredis/atomredis/doors/door"
)

// Message is a published message. Pattern is the pattern of PSubscribe that matched Channel; Subscribe leaves it empty.
type Message = door.Message

// Subscribe subscribes to channels by their names (SUBSCRIBE), and returns an iterator over their messages. The
// subscription is in place when Subscribe returns, and ends with the loop or with ctx. Keyspace events are messages
// too, on channels such as __keyevent@0__:expired, if notify-keyspace-events is configured.
//
// The last step of the iterator has an error: that of ctx, ErrClosed if the DB was closed, or ErrKilled if more
// messages waited than client-output-buffer-limit allows a subscriber. The iterator can be used once: a second loop has
// ErrSubscriptionEnded as its only step. The garbage collector unsubscribes an iterator that is dropped without a loop.
func (db *DB) Subscribe(ctx context.Context, channels ...string) iter.Seq2[Message, error] {
	return db.messages(ctx, door.Subscribe, channels)
}

// PSubscribe is Subscribe for all channels whose names match one of the patterns, with * ? and [] as in PSUBSCRIBE.
// Message.Pattern is the pattern that matched; a message comes once for each pattern that matches.
func (db *DB) PSubscribe(ctx context.Context, patterns ...string) iter.Seq2[Message, error] {
	return db.messages(ctx, door.PSubscribe, patterns)
}

// subscribe is door.Subscribe or door.PSubscribe.
type subscribe func(ctx context.Context, s door.Session, names ...string) (*door.Subscription, error)

// messages subscribes in a session of its own.
func (db *DB) messages(ctx context.Context, by subscribe, names []string) iter.Seq2[Message, error] {
	var messages *door.Subscription
	session, err := db.srv.Direct(db.number)
	if err == nil {
		messages, err = by(ctx, session, names...)
	}
	if err != nil {
		return func(yield func(Message, error) bool) { yield(Message{}, wrap(err)) }
	}
	s := &subscription{ctx: ctx, messages: messages}
	s.stop = context.AfterFunc(ctx, messages.Close) // also without an iteration
	runtime.AddCleanup(s, func(end func()) { end() }, messages.Close)
	return s.each
}

// ErrSubscriptionEnded says that the iterator of Subscribe or PSubscribe was used before.
var ErrSubscriptionEnded = errors.New("atomredis: the subscription has ended with the loop over it")

// subscription is the state of an iterator over messages. The server and the context must not refer to it, not even
// indirectly, so that it can become garbage.
type subscription struct {
	ctx      context.Context
	messages *door.Subscription
	used     atomic.Bool
	stop     func() bool
}

// each implements the iterator.
func (s *subscription) each(yield func(Message, error) bool) {
	if s.used.Swap(true) {
		yield(Message{}, ErrSubscriptionEnded)
		return
	}
	defer s.messages.Close()
	defer s.stop()
	for {
		m, err := s.messages.Next(s.ctx)
		if s.ctx.Err() != nil {
			err = door.ContextError(s.ctx)
		}
		if err != nil {
			yield(Message{}, wrap(err))
			return
		}
		if !yield(m, nil) {
			return
		}
	}
}
