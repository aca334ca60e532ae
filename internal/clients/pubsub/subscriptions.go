package pubsub

import (
	"iter"
	"maps"
	"sync/atomic"
)

// Subscriptions are one client's subscriptions; the client also publishes through them. Only the client's goroutine
// uses them.
type Subscriptions struct {
	hub   *Hub
	to    Subscriber
	names [kinds]map[string]struct{}
	count int // of all kinds
	bytes int // of memory for their names
	// publishing says that the hub may have kept messages of this client. Only the client's goroutine uses it.
	publishing bool
	// protocol is the version of RESP in which the client reads messages.
	protocol atomic.Int32
}

// Join connects the subscriber with the hub. It is called once, before anything else.
func (s *Subscriptions) Join(h *Hub, to Subscriber) { s.hub, s.to = h, to }

// SetProtocol says in which version of RESP, 2 or 3, the client reads messages. It is called before the client
// subscribes, and whenever the version changes.
func (s *Subscriptions) SetProtocol(version int) { s.protocol.Store(int32(version)) }

// Subscribe subscribes to a name, unless the client already has.
func (s *Subscriptions) Subscribe(kind Kind, name string) {
	if _, ok := s.names[kind][name]; ok {
		return
	}
	if s.names[kind] == nil {
		s.names[kind] = map[string]struct{}{}
	}
	s.names[kind][name] = struct{}{}
	s.count++
	s.bytes += len(name) + nameOverhead

	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sendKept()
	if h.subscribers[kind] == nil {
		h.subscribers[kind] = map[string]*subscribers{}
	}
	subs := h.subscribers[kind][name]
	if subs == nil {
		subs = &subscribers{place: map[*Subscriptions]int{}}
		h.subscribers[kind][name] = subs
		h.count.Add(1)
	}
	subs.add(s)
}

// Unsubscribe ends the subscription to a name, if the client has it.
func (s *Subscriptions) Unsubscribe(kind Kind, name string) {
	if _, ok := s.names[kind][name]; !ok {
		return
	}
	delete(s.names[kind], name)
	s.count--
	s.bytes -= len(name) + nameOverhead

	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sendKept()
	subs := h.subscribers[kind][name]
	subs.remove(s)
	if len(subs.all) == 0 {
		delete(h.subscribers[kind], name)
		h.count.Add(-1)
	}
}

// UnsubscribeAll ends all subscriptions.
func (s *Subscriptions) UnsubscribeAll() {
	for kind := range kinds {
		for name := range s.names[kind] {
			s.Unsubscribe(kind, name)
		}
	}
}

// Names returns the names that the client has subscribed to. The caller may unsubscribe while it iterates.
func (s *Subscriptions) Names(kind Kind) iter.Seq[string] { return maps.Keys(s.names[kind]) }

// Len returns how many subscriptions of a kind there are.
func (s *Subscriptions) Len(kind Kind) int { return len(s.names[kind]) }

// Bytes returns about how many bytes the client's subscriptions take.
func (s *Subscriptions) Bytes() int { return s.bytes }

// nameOverhead is about how many bytes a subscription takes beside its name, here and in the hub.
const nameOverhead = 64

// Any reports whether the client has any subscription.
func (s *Subscriptions) Any() bool { return s.count > 0 }

// Publishing reports whether the hub may have kept messages of this client; EndPublishing delivers them.
func (s *Subscriptions) Publishing() bool { return s.publishing }

// EndPublishing delivers the client's kept messages.
func (s *Subscriptions) EndPublishing() {
	s.publishing = false
	s.hub.mu.Lock()
	s.hub.sendKept()
	s.hub.mu.Unlock()
}

// Publish is Hub.Publish for this client. more says that its next command publishes too. Messages of a client with
// subscriptions are not kept, because it might receive them itself.
func (s *Subscriptions) Publish(channel, payload []byte, more bool) int {
	return s.hub.Publish(s, channel, payload, more && s.count == 0)
}

// PublishShard is Publish to a shard channel.
func (s *Subscriptions) PublishShard(channel, payload []byte, more bool) int {
	return s.hub.PublishShard(s, channel, payload, more && s.count == 0)
}
