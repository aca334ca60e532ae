// Package pubsub delivers published messages: a Hub knows which clients have subscribed to which channels.
//
// While the next command of a pipeline publishes too, the hub keeps messages to deliver them together. It delivers
// them before that client does anything else, before another client's message, and before a subscription begins or
// ends. So all clients see one order.
package pubsub

import (
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/resp"
)

// Kind is one of the ways to subscribe.
type Kind uint8

// The kinds of subscriptions: to a channel by name, to all channels that match a pattern, and to a shard channel.
const (
	Channel Kind = iota
	Pattern
	ShardChannel
	kinds
)

// Subscriber is a client that gets messages. Any goroutine may call its methods, under any lock.
type Subscriber interface {
	// ThroughDoor reports whether the client connected through a door.
	ThroughDoor() bool
	// Deliver passes messages, which the subscriber must not keep. own says that its own command published them;
	// they follow its reply.
	Deliver(messages []byte, own bool)
}

// Hub knows who has subscribed to what. Its zero value is ready for use.
type Hub struct {
	// mu is taken last: under it, only Deliver locks anything else.
	mu          sync.Mutex
	subscribers [kinds]map[string]*subscribers
	// count is the number of channels and patterns of all kinds. At 0, no message is encoded.
	count atomic.Int64
	// buf is a reused buffer for encoded messages.
	buf []byte
	// kept is what a pipeline has published so far; see sendOrKeep.
	kept keptMessages
}

// keepBuffer is the largest buffer that is kept for reuse, in bytes.
const keepBuffer = 64 << 10

// keptMessages are messages of one client to the subscribers of one channel.
type keptMessages struct {
	by       *Subscriptions
	to       *subscribers
	word     string
	channel  []byte
	payloads [][]byte
}

// subscribers are the clients that have subscribed to one channel or pattern.
type subscribers struct {
	all   []*Subscriptions // in no order
	place map[*Subscriptions]int
}

// list returns the clients; s may be nil.
func (s *subscribers) list() []*Subscriptions {
	if s == nil {
		return nil
	}
	return s.all
}

func (s *subscribers) add(c *Subscriptions) {
	s.place[c] = len(s.all)
	s.all = append(s.all, c)
}

func (s *subscribers) remove(c *Subscriptions) {
	i, last := s.place[c], len(s.all)-1
	moved := s.all[last]
	s.all[i], s.place[moved] = moved, i
	s.all[last] = nil
	s.all = s.all[:last]
	delete(s.place, c)
}

// Publish sends a message to the subscribers of a channel and of patterns that match it, and returns their number.
// by is the client whose command publishes it, or nil. more says that the client's next command publishes too. The
// hub may then keep the message until EndPublishing, and the arguments must not change until then.
func (h *Hub) Publish(by *Subscriptions, channel, payload []byte, more bool) int {
	if !h.Heard() {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.subscribers[Pattern]) == 0 {
		return h.sendOrKeep(by, h.subscribers[Channel][string(channel)], "message", channel, payload, more)
	}
	h.sendKept()
	return h.sendToAll(by, channel, payload, false)
}

// PublishToDoors is Publish for subscribers that connected through doors only.
func (h *Hub) PublishToDoors(by *Subscriptions, channel, payload []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sendKept()
	h.sendToAll(by, channel, payload, true)
}

// PublishShard is Publish for the subscribers of a shard channel.
func (h *Hub) PublishShard(by *Subscriptions, channel, payload []byte, more bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sendOrKeep(by, h.subscribers[ShardChannel][string(channel)], "smessage", channel, payload, more)
}

// sendToAll delivers a message to the subscribers of a channel and of patterns that match it, and returns how many
// there are. doors leaves out clients that did not connect through a door.
func (h *Hub) sendToAll(by *Subscriptions, channel, payload []byte, doors bool) int {
	payloads := [][]byte{payload}
	n := h.send(by, h.subscribers[Channel][string(channel)], doors, "message", payloads, channel)
	for pattern, subs := range h.subscribers[Pattern] {
		if pattern == "*" || glob.Match([]byte(pattern), channel, false) {
			n += h.send(by, subs, doors, "pmessage", payloads, []byte(pattern), channel)
		}
	}
	return n
}

// maxKept is the size of the longest message that is kept, in bytes. For longer ones copying dominates the cost.
const maxKept = 4 << 10

// sendOrKeep delivers one message to the subscribers of a channel and returns their number. If the client has more
// to publish, it may keep the message: delivering a pipeline's messages together takes much less time.
func (h *Hub) sendOrKeep(by *Subscriptions, to *subscribers, word string, channel, payload []byte, more bool) int {
	n := len(to.list())
	if n == 0 {
		return 0
	}
	k := &h.kept
	if k.to != to || k.by != by {
		h.sendKept()
		k.by, k.to, k.word, k.channel = by, to, word, channel
	}
	k.payloads = append(k.payloads, payload)
	if !more || len(payload) > maxKept {
		h.sendKept()
	} else {
		by.publishing = true
	}
	return n
}

// sendKept delivers the kept messages.
func (h *Hub) sendKept() {
	k := &h.kept
	if k.to == nil {
		return
	}
	h.send(k.by, k.to, false, k.word, k.payloads, k.channel)
	clear(k.payloads)
	*k = keptMessages{payloads: k.payloads[:0]}
}

// send delivers one message for each payload to some clients, and returns how many clients there are. Encoded
// messages are shared by all clients of one protocol version. doors is as in sendToAll.
func (h *Hub) send(by *Subscriptions, to *subscribers, doors bool, word string, payloads [][]byte, names ...[]byte) int {
	var encoded [4]struct{ start, end int } // in w.Buf
	w := resp.Writer{Buf: h.buf[:0]}
	for _, s := range to.list() {
		if doors && !s.to.ThroughDoor() {
			continue
		}
		proto := int(s.protocol.Load())
		e := &encoded[proto]
		if e.end == 0 {
			w.Proto, e.start = proto, len(w.Buf)
			for _, payload := range payloads {
				w.Push(2 + len(names))
				w.BulkString(word)
				for _, name := range names {
					w.Bulk(name)
				}
				w.Bulk(payload)
			}
			e.end = len(w.Buf)
		}
		s.to.Deliver(w.Buf[e.start:e.end], by == s)
	}
	if h.buf = w.Buf; cap(h.buf) > keepBuffer {
		h.buf = nil
	}
	return len(to.list())
}

// Heard reports whether any client has a subscription.
func (h *Hub) Heard() bool { return h.count.Load() != 0 }

// Len returns how many channels or patterns of a kind have subscribers.
func (h *Hub) Len(kind Kind) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subscribers[kind])
}

// Names returns the channels or patterns of a kind that have subscribers, in no order.
func (h *Hub) Names(kind Kind) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := make([]string, 0, len(h.subscribers[kind]))
	for name := range h.subscribers[kind] {
		names = append(names, name)
	}
	return names
}

// Counts returns the number of subscribers of each name, all at one instant.
func (h *Hub) Counts(kind Kind, names [][]byte) []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := make([]int, len(names))
	for i, name := range names {
		counts[i] = len(h.subscribers[kind][string(name)].list())
	}
	return counts
}

// Except returns the subscribers of names for which allowed returns false; patterns are names of kind Pattern.
func (h *Hub) Except(allowed func(kind Kind, name string) bool) map[Subscriber]bool {
	found := map[Subscriber]bool{}
	h.mu.Lock()
	defer h.mu.Unlock()
	for kind := range kinds {
		for name, subs := range h.subscribers[kind] {
			if allowed(kind, name) {
				continue
			}
			for _, s := range subs.all {
				found[s.to] = true
			}
		}
	}
	return found
}
