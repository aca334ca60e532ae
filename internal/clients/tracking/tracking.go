// Package tracking implements the server's side of client-side caching. A Table knows which keys clients have read,
// and which prefixes they asked for. It sends them a message when such a key changes.
package tracking

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// Peer is a client that gets messages. Any goroutine may call its methods, under any lock.
type Peer interface {
	// ID is the client's number. Numbers are not used again.
	ID() int64
	// Protocol is the version of RESP that it speaks.
	Protocol() int
	// Subscribed reports whether it has subscriptions, without which it gets no messages in RESP2.
	Subscribed() bool
	// Tell passes a message, which the peer must not keep. by made the change, or is nil. If by is the client
	// itself, the message follows the reply.
	Tell(by *Changer, message []byte)
}

// Host is the server, as far as a Table needs it.
type Host interface {
	// Peer returns the client with that number, nil if there is none. It is called with the table locked.
	Peer(id int64) Peer
	// ObserveChanges says whether the table needs to know of changes.
	ObserveChanges(on bool)
	// MaxKeys is the largest number of keys in the table; 0 is no limit.
	MaxKeys() int
}

// Table is the invalidation table.
type Table struct {
	host Host
	// mu is taken under guards; under it only the register of clients and mailboxes are locked.
	mu      sync.Mutex
	clients map[int64]*Client // those that track, by number
	// keys has the clients that read a key since it last changed. Clients that disconnect or stop tracking stay in
	// it until then: numbers are never reused. Equal names in different databases are one key.
	keys map[string]map[int64]struct{}
	// prefixes has the clients that want messages about all keys with a prefix (BCAST).
	prefixes map[string]map[*Client]struct{}
}

// New returns a table in which nobody tracks.
func New(host Host) *Table { return &Table{host: host} }

// Changer is the source of changes: a client, or the code that serves it while it is blocked. Only the goroutine
// that makes the changes uses it.
type Changer struct {
	// Client is the client whose changes they are.
	Client *Client
	// Later are messages for the client itself, which follow the reply to its command.
	Later   []byte
	changed []string // keys that clients with prefixes get messages about at the end of the command
}

// Changed reports whether Table.Broadcast has anything to send.
func (s *Changer) Changed() bool { return len(s.changed) > 0 }

// invalidation is one message in the forms in which clients understand it, encoded when first needed.
type invalidation struct {
	keys          []string
	all           bool // every key
	push, message []byte
}

// asPush returns the message for RESP3.
func (m *invalidation) asPush() []byte {
	if m.push == nil {
		w := resp.Writer{Proto: 3}
		w.Push(2)
		w.BulkString("invalidate")
		m.write(&w)
		m.push = w.Buf
	}
	return m.push
}

// asMessage returns the message for a subscriber in RESP2.
func (m *invalidation) asMessage() []byte {
	if m.message == nil {
		w := resp.Writer{Proto: 2}
		w.Array(3)
		w.BulkString("message")
		w.BulkString("__redis__:invalidate")
		m.write(&w)
		m.message = w.Buf
	}
	return m.message
}

func (m *invalidation) write(w *resp.Writer) {
	if m.all {
		w.Null()
		return
	}
	w.Array(len(m.keys))
	for _, key := range m.keys {
		w.BulkString(key)
	}
}

// Invalidate tells all clients that track the key that it has changed. by changed it, or is nil. Clients with
// prefixes get one message for all changes of a command, from Broadcast.
func (t *Table) Invalidate(by *Changer, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.prefixes) > 0 {
		if by == nil {
			t.tellListeners(nil, []string{key})
		} else {
			by.changed = append(by.changed, key)
		}
	}
	m := invalidation{keys: []string{key}}
	readers, ok := t.keys[key]
	if !ok {
		return
	}
	delete(t.keys, key)
	for id := range readers {
		if s := t.reader(id); s != nil {
			t.tellUnlessLoop(s, by, &m)
		}
	}
}

// Broadcast tells clients with prefixes what by has changed since the last call.
func (t *Table) Broadcast(by *Changer) {
	if len(by.changed) == 0 {
		return
	}
	slices.Sort(by.changed)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tellListeners(by, slices.Compact(by.changed))
	clear(by.changed)
	by.changed = by.changed[:0]
}

// tellListeners sends clients with prefixes a message for each prefix that matches some of the keys. mu is held.
func (t *Table) tellListeners(by *Changer, keys []string) {
	for _, prefix := range slices.Sorted(maps.Keys(t.prefixes)) {
		var m invalidation
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				m.keys = append(m.keys, key)
			}
		}
		if len(m.keys) == 0 {
			continue
		}
		for s := range t.prefixes[prefix] {
			t.tellUnlessLoop(s, by, &m)
		}
	}
}

// reader returns the client with that number if it still tracks the keys that it reads.
func (t *Table) reader(id int64) *Client {
	if s := t.clients[id]; s != nil && s.mode&Bcast == 0 {
		return s
	}
	return nil
}

// InvalidateAll tells all tracking clients that all keys are gone.
func (t *Table) InvalidateAll(by *Changer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := invalidation{all: true}
	for _, s := range t.clients {
		t.tell(s, by, &m)
	}
	clear(t.keys)
}

// tellUnlessLoop is tell, but skips a client with NoLoop that made the change itself.
func (t *Table) tellUnlessLoop(s *Client, by *Changer, m *invalidation) {
	if by == nil || s != by.Client || s.mode&NoLoop == 0 {
		t.tell(s, by, m)
	}
}

// tell sends a message to a client that tracks, or to the one that it redirects to.
func (t *Table) tell(s *Client, by *Changer, m *invalidation) {
	target := s.peer
	if id := s.redirect; id != 0 {
		if target = t.host.Peer(id); target == nil {
			s.broken.Store(true)
			if s.peer.Protocol() == 3 {
				w := resp.Writer{Proto: 3}
				w.Push(2)
				w.BulkString("tracking-redir-broken")
				w.Int(id)
				s.peer.Tell(by, w.Buf)
			}
			return
		}
	}
	switch {
	case target.Protocol() == 3:
		target.Tell(by, m.asPush())
	case s.redirect != 0 && target.Subscribed():
		target.Tell(by, m.asMessage())
	}
	// A RESP2 client without subscriptions gets no message.
}

// remember records that the client has read the keys of a command.
func (t *Table) remember(by *Changer, cmd *command.Command, args [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := by.Client.peer.ID()
	cmd.EachKey(args, func(i int, _ *command.KeySpec) bool {
		readers, ok := t.keys[string(args[i])]
		if !ok {
			readers = map[int64]struct{}{}
			if t.keys == nil {
				t.keys = map[string]map[int64]struct{}{}
			}
			t.keys[string(args[i])] = readers
		}
		readers[id] = struct{}{}
		return true
	})
	t.shrink(by, t.host.MaxKeys())
}

// Limit applies a new largest number of keys.
func (t *Table) Limit(keys int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shrink(nil, keys)
}

// shrink drops some keys, and invalidates them for their readers, until at most limit are left; 0 is no limit. mu is
// held.
func (t *Table) shrink(by *Changer, limit int) {
	if limit <= 0 {
		return
	}
	for key, readers := range t.keys {
		if len(t.keys) <= limit {
			return
		}
		delete(t.keys, key)
		m := invalidation{keys: []string{key}}
		for id := range readers {
			if s := t.reader(id); s != nil {
				t.tell(s, by, &m)
			}
		}
	}
}

// Size returns the numbers of clients that track, of keys, of readers of keys, and of prefixes.
func (t *Table) Size() (clients, keys, readers, prefixes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.keys {
		readers += len(r)
	}
	return len(t.clients), len(t.keys), readers, len(t.prefixes)
}
