package server

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/glob"
	"github.com/atomredis/atomredis/resp"
)

// hub knows who has subscribed to what. mu is taken last: nothing else is locked under it but mailboxes.
type hub struct {
	mu       sync.Mutex
	channels map[string]*subscribers
	patterns map[string]*subscribers
	shards   map[string]*subscribers
	// count of channels and patterns, so that nobody prepares a message that nobody hears.
	count atomic.Int64
	// buf is where messages are encoded; reused.
	buf []byte
	// kept is what a pipeline has published so far; see sendOrKeep.
	kept keptMessages
}

// keptMessages are messages of one client to the subscribers of one channel.
type keptMessages struct {
	by       *Session
	to       *subscribers
	kind     string
	channel  []byte
	payloads [][]byte
}

// subscribers are the clients that have subscribed to one channel or pattern.
type subscribers struct {
	all   []*Session // in no order
	place map[*Session]int
}

// list returns the clients; s may be nil.
func (s *subscribers) list() []*Session {
	if s == nil {
		return nil
	}
	return s.all
}

func (s *subscribers) add(c *Session) {
	s.place[c] = len(s.all)
	s.all = append(s.all, c)
}

func (s *subscribers) remove(c *Session) {
	i, last := s.place[c], len(s.all)-1
	moved := s.all[last]
	s.all[i], s.place[moved] = moved, i
	s.all[last] = nil
	s.all = s.all[:last]
	delete(s.place, c)
}

// subscriptions are those of one client.
type subscriptions struct {
	channels, patterns, shards map[string]struct{}
	count                      int // of all three
}

// subscriptionKind is one of the three ways to subscribe.
type subscriptionKind struct {
	subscribed, unsubscribed string // the first word of the confirmations
	of                       func(s *subscriptions) *map[string]struct{}
	in                       func(h *hub) *map[string]*subscribers
	// total is the number that confirmations show.
	total func(s *subscriptions) int
}

var (
	byChannel = &subscriptionKind{"subscribe", "unsubscribe",
		func(s *subscriptions) *map[string]struct{} { return &s.channels },
		func(h *hub) *map[string]*subscribers { return &h.channels },
		func(s *subscriptions) int { return len(s.channels) + len(s.patterns) }}
	byPattern = &subscriptionKind{"psubscribe", "punsubscribe",
		func(s *subscriptions) *map[string]struct{} { return &s.patterns },
		func(h *hub) *map[string]*subscribers { return &h.patterns },
		byChannel.total}
	byShard = &subscriptionKind{"ssubscribe", "sunsubscribe",
		func(s *subscriptions) *map[string]struct{} { return &s.shards },
		func(h *hub) *map[string]*subscribers { return &h.shards },
		func(s *subscriptions) int { return len(s.shards) }}
)

// subscribe adds the session to the subscribers of name.
func (h *hub) subscribe(s *Session, kind *subscriptionKind, name string) {
	mine := kind.of(&s.subs)
	if _, ok := (*mine)[name]; ok {
		return
	}
	if *mine == nil {
		*mine = map[string]struct{}{}
	}
	(*mine)[name] = struct{}{}
	s.subs.count++

	h.mu.Lock()
	defer h.mu.Unlock()
	h.sendKept()
	all := kind.in(h)
	if *all == nil {
		*all = map[string]*subscribers{}
	}
	if (*all)[name] == nil {
		(*all)[name] = &subscribers{place: map[*Session]int{}}
		h.count.Add(1)
	}
	(*all)[name].add(s)
}

// unsubscribe removes the session from the subscribers of name.
func (h *hub) unsubscribe(s *Session, kind *subscriptionKind, name string) {
	mine := *kind.of(&s.subs)
	if _, ok := mine[name]; !ok {
		return
	}
	delete(mine, name)
	s.subs.count--

	h.mu.Lock()
	defer h.mu.Unlock()
	h.sendKept()
	all := *kind.in(h)
	all[name].remove(s)
	if len(all[name].all) == 0 {
		delete(all, name)
		h.count.Add(-1)
	}
}

// unsubscribeAll ends all subscriptions of the client without telling it.
func (s *Session) unsubscribeAll() {
	for _, kind := range []*subscriptionKind{byChannel, byPattern, byShard} {
		for name := range *kind.of(&s.subs) {
			s.srv.pubsub.unsubscribe(s, kind, name)
		}
	}
}

// publish sends a message to the subscribers of a channel and returns how many there were. by is the client whose
// command publishes it, or nil; more says that the message may be kept until endPublishing, and that the arguments
// stay as they are until then.
func (h *hub) publish(by *Session, channel, payload []byte, more bool) int {
	if h.count.Load() == 0 {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.patterns) == 0 {
		return h.sendOrKeep(by, h.channels[string(channel)], "message", channel, payload, more)
	}
	h.sendKept()
	return h.sendToAll(by, channel, payload, false)
}

// publishToDoors is publish for subscribers that have come through doors.
func (h *hub) publishToDoors(by *Session, channel, payload []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sendKept()
	h.sendToAll(by, channel, payload, true)
}

// sendToAll delivers a message to the subscribers of a channel and of patterns that match it, and returns how many
// there are. doors leaves out those that have not come through doors.
func (h *hub) sendToAll(by *Session, channel, payload []byte, doors bool) int {
	payloads := [][]byte{payload}
	n := h.send(by, h.channels[string(channel)], doors, "message", payloads, channel)
	for pattern, subs := range h.patterns {
		if pattern == "*" || glob.Match([]byte(pattern), channel, false) {
			n += h.send(by, subs, doors, "pmessage", payloads, []byte(pattern), channel)
		}
	}
	return n
}

// publishShard is publish for the subscribers of a shard channel.
func (h *hub) publishShard(by *Session, channel, payload []byte, more bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sendOrKeep(by, h.shards[string(channel)], "smessage", channel, payload, more)
}

// maxKept is how long a message is that is kept, in bytes: with longer ones it is the copies that take the time.
const maxKept = 4 << 10

// sendOrKeep delivers one message to the subscribers of a channel and returns how many there are. If the client has
// more to publish, it may be delivered with what comes: to leave a pipeline's messages in the mailboxes at once takes
// much less time than one after the other. Whatever is sent and whoever subscribes or ends that first has sent what
// is kept, so that all clients see one order.
func (h *hub) sendOrKeep(by *Session, to *subscribers, kind string, channel, payload []byte, more bool) int {
	n := len(to.list())
	if n == 0 {
		return 0
	}
	k := &h.kept
	if k.to != to || k.by != by {
		h.sendKept()
		k.by, k.to, k.kind, k.channel = by, to, kind, channel
	}
	k.payloads = append(k.payloads, payload)
	if !more || len(payload) > maxKept {
		h.sendKept()
	}
	return n
}

// sendKept delivers what has been kept.
func (h *hub) sendKept() {
	k := &h.kept
	if k.to == nil {
		return
	}
	h.send(k.by, k.to, false, k.kind, k.payloads, k.channel)
	clear(k.payloads)
	*k = keptMessages{payloads: k.payloads[:0]}
}

// send delivers one message for each payload to some clients, and returns how many clients there are. Encoded
// messages are shared by all clients of one protocol version. doors is as in sendToAll.
func (h *hub) send(by *Session, to *subscribers, doors bool, kind string, payloads [][]byte, names ...[]byte) int {
	var encoded [4]struct{ start, end int } // in w.Buf
	w := resp.Writer{Buf: h.buf[:0]}
	for _, s := range to.list() {
		if doors && s.door == nil {
			continue
		}
		proto := s.proto.Load()
		e := &encoded[proto]
		if e.end == 0 {
			w.Proto, e.start = int(proto), len(w.Buf)
			for _, payload := range payloads {
				w.Push(2 + len(names))
				w.BulkString(kind)
				for _, name := range names {
					w.Bulk(name)
				}
				w.Bulk(payload)
			}
			e.end = len(w.Buf)
		}
		s.push(by, w.Buf[e.start:e.end])
	}
	if h.buf = w.Buf; cap(h.buf) > keepBuffer {
		h.buf = nil
	}
	return len(to.list())
}

// morePublishing reports that the client's next command publishes too, as far as is known, and that nobody can tell a
// message that is sent then from one that is sent now. If so, process calls endPublishing behind the last of them.
func morePublishing(c *command.Ctx) bool {
	s := sessionOf(c)
	if c.NoBlock || s.next != c.Cmd || s.subs.count > 0 {
		return false
	}
	s.publishing = true
	return true
}

// endPublishing delivers what has been kept of the client's messages.
func (s *Session) endPublishing() {
	s.publishing = false
	h := &s.srv.pubsub
	h.mu.Lock()
	h.sendKept()
	h.mu.Unlock()
}

// push gives the session a published message, caused by a command of the client by (nil if by none).
func (s *Session) push(by *Session, message []byte) {
	if by == s {
		s.origin.pushed = true
	}
	s.post(0, message)
}

// publishKeyEvent publishes a keyspace event on its two channels, as far as they are enabled: for everybody, or for
// the clients of doors alone.
func (srv *Server) publishKeyEvent(by *Session, class engine.EventClass, event string, db int, key string) {
	if srv.pubsub.count.Load() == 0 {
		return
	}
	all, doors := srv.config.Get().NotifyKeyspaceEvents, engine.EventClass(srv.doors.events.Load())
	if all&class == 0 {
		all = 0
	}
	if doors&class == 0 {
		doors = 0
	}
	var channel []byte
	for _, m := range [...]struct {
		form                 engine.EventClass
		name, about, payload string
	}{
		{engine.EventKeyspace, "__keyspace@", key, event},
		{engine.EventKeyevent, "__keyevent@", event, key},
	} {
		if (all|doors)&m.form == 0 {
			continue
		}
		channel = strconv.AppendInt(append(channel[:0], m.name...), int64(db), 10)
		channel = append(append(channel, "__:"...), m.about...)
		if all&m.form != 0 {
			srv.pubsub.publish(by, channel, []byte(m.payload), false)
		} else {
			srv.pubsub.publishToDoors(by, channel, []byte(m.payload))
		}
	}
}
