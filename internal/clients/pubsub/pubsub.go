// Package pubsub delivers published messages: a Hub knows which clients have subscribed to which channels.
//
// While the next command of a pipeline publishes too, the hub keeps messages, to give them to subscribers together. It
// sends them before that client does anything else, and before anybody else's message, and before a subscription begins
// or ends, so that all clients see one order.
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

// Subscriber is who gets messages. Its methods may be called by any goroutine, under any lock.
type Subscriber interface {
	// ThroughDoor reports whether it has come through a door.
	ThroughDoor() bool
	// Deliver gives it messages, which it must not keep. own says that its own command has published them; they belong
	// behind the reply.
	Deliver(messages []byte, own bool)
}

// Hub knows who has subscribed to what. Its zero value is ready for use.
type Hub struct {
	// mu is taken last: nothing else is locked under it but what subscribers lock in Deliver.
	mu          sync.Mutex
	subscribers [kinds]map[string]*subscribers
	// count of channels and patterns of all kinds, so that nobody prepares a message that nobody hears.
	count atomic.Int64
	// buf is where messages are encoded; reused.
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

// Publish sends a message to the subscribers of a channel and of patterns that match it, and returns how many there
// were. by is the client whose command publishes it, or nil. more says that the client's next command publishes too,
// and that nobody can tell a message that is sent then from one that is sent now: the message may be kept until
// EndPublishing, and the arguments must stay as they are until then.
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

// PublishToDoors is Publish for subscribers that have come through doors.
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
// there are. doors leaves out those that have not come through doors.
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

// maxKept is how long a message is that is kept, in bytes: with longer ones it is the copies that take the time.
const maxKept = 4 << 10

// sendOrKeep delivers one message to the subscribers of a channel and returns how many there are. If the client has
// more to publish, it may be delivered with what comes: to give subscribers a pipeline's messages at once takes much
// less time than one after the other.
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

// sendKept delivers what has been kept.
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

// Heard reports whether there are any subscriptions.
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

// Counts returns how many have subscribed to each of some names, all at one moment.
func (h *Hub) Counts(kind Kind, names [][]byte) []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := make([]int, len(names))
	for i, name := range names {
		counts[i] = len(h.subscribers[kind][string(name)].list())
	}
	return counts
}

// Except returns those who have subscribed to a name that allowed is false for; patterns are names of kind Pattern.
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
