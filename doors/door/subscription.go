package door

import (
	"context"

	"github.com/atomredis/atomredis/resp"
)

// Message is a published message. A keyspace event is a message on __keyspace@<db>__:<key> whose payload
// is the event, or on __keyevent@<db>__:<event> whose payload is the key.
type Message struct {
	// Pattern is the pattern of PSubscribe that matched Channel; "" after Subscribe.
	Pattern, Channel, Payload string
}

// Subscription receives messages in the order of their publication. client-output-buffer-limit pubsub limits unread
// messages.
//
// One goroutine uses it at a time; any goroutine may call Close.
type Subscription struct {
	s   Session
	raw []byte // received messages
}

// Subscribe subscribes to channels. The subscription has its own session, which ends with the client at the latest. It
// is active when Subscribe returns.
func (c *Client) Subscribe(ctx context.Context, channels ...string) (*Subscription, error) {
	return c.subscribe(ctx, "SUBSCRIBE", channels)
}

// PSubscribe is Subscribe for the channels whose names match one of the patterns.
func (c *Client) PSubscribe(ctx context.Context, patterns ...string) (*Subscription, error) {
	return c.subscribe(ctx, "PSUBSCRIBE", patterns)
}

func (c *Client) subscribe(ctx context.Context, command string, names []string) (*Subscription, error) {
	s, err := c.s.Fork()
	if err != nil {
		return nil, err
	}
	return newSubscription(ctx, s, command, names)
}

// Subscribe is Client.Subscribe in the given session, which the subscription owns from then on. If it fails, the session
// is released.
func Subscribe(ctx context.Context, s Session, channels ...string) (*Subscription, error) {
	return newSubscription(ctx, s, "SUBSCRIBE", channels)
}

// PSubscribe is Subscribe for the channels whose names match one of the patterns.
func PSubscribe(ctx context.Context, s Session, patterns ...string) (*Subscription, error) {
	return newSubscription(ctx, s, "PSUBSCRIBE", patterns)
}

func newSubscription(ctx context.Context, s Session, command string, names []string) (*Subscription, error) {
	args := [][]byte{[]byte(command)}
	for _, n := range names {
		args = append(args, []byte(n))
	}
	c := Client{s}
	if err := c.control(ctx, args...); err != nil {
		s.Release()
		return nil, err
	}
	return &Subscription{s: s}, nil
}

// Next waits for a message until ctx ends. The error is ErrSlow if too many messages were unread.
func (s *Subscription) Next(ctx context.Context) (Message, error) {
	for {
		for len(s.raw) > 0 {
			r, rest, err := resp.NextReply(s.raw)
			if err != nil {
				return Message{}, err
			}
			s.raw = rest
			if m, ok := message(r); ok {
				return m, nil
			}
		}
		raw, err := s.s.Receive(ctx)
		if err != nil {
			return Message{}, err
		}
		s.raw = raw
	}
}

// Done is closed when there will be no further messages.
func (s *Subscription) Done() <-chan struct{} { return s.s.Done() }

// Close ends the subscription.
func (s *Subscription) Close() { s.s.Release() }

// message converts a push into a message.
func message(r resp.Reply) (m Message, ok bool) {
	parts, err := r.Texts()
	switch {
	case err != nil || len(parts) < 3:
		return Message{}, false
	case parts[0] == "message" && len(parts) == 3:
		return Message{Channel: parts[1], Payload: parts[2]}, true
	case parts[0] == "pmessage" && len(parts) == 4:
		return Message{Pattern: parts[1], Channel: parts[2], Payload: parts[3]}, true
	}
	return Message{}, false
}
