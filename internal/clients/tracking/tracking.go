// Package tracking is the server's part in client-side caching: a Table knows which keys clients have read, or which
// prefixes they asked for, and tells them when such a key changes.
package tracking

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// Peer is a client to which messages go. Its methods may be called by any goroutine, under any lock.
type Peer interface {
	// ID is the client's number. Numbers are not used again.
	ID() int64
	// Protocol is the version of RESP that it speaks.
	Protocol() int
	// Subscribed reports whether it has subscriptions, so that it can be sent messages in RESP2.
	Subscribed() bool
	// Tell gives it a message, which it must not keep. by is who made the change, nil if nobody did: if that is the
	// client itself, the message follows the reply.
	Tell(by *Changer, message []byte)
}

// Host is the server, as far as a Table needs it.
type Host interface {
	// Peer returns the client with that number, nil if there is none. It is called with the table locked.
	Peer(id int64) Peer
	// ObserveChanges says whether the table wants to hear of changes.
	ObserveChanges(on bool)
	// MaxKeys is how many keys the table may know, 0 for as many as there are.
	MaxKeys() int
}

// Table is the invalidation table.
type Table struct {
	host Host
	// mu is taken under guards; under it only the register of clients and mailboxes are locked.
	mu      sync.Mutex
	clients map[int64]*Client // those that track, by number
	// keys tells who read a key since it last changed. Clients that have gone or track no more stay until then: their
	// numbers are not used again. Databases make no difference.
	keys map[string]map[int64]struct{}
	// prefixes tells who wants to hear of all keys that begin so (BCAST).
	prefixes map[string]map[*Client]struct{}
}

// New returns a table in which nobody tracks.
func New(host Host) *Table { return &Table{host: host} }

// Changer is who makes changes: a client, or what serves it while it is blocked. It is used by the goroutine that makes
// them.
type Changer struct {
	// Client is whose changes they are.
	Client *Client
	// Later are messages for the client itself, which follow the reply to its command.
	Later   []byte
	changed []string // keys that clients with prefixes get messages about at the end of the command
}

// Changed reports whether there is something for Table.Broadcast to tell.
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

// Invalidate tells everybody who tracks the key that it has changed. by is who changed it, nil if nobody did. Those
// who listen to prefixes are told of all changes of a command at once, by Broadcast.
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

// Broadcast tells those who listen to prefixes what by has changed since it was called last.
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

// tellListeners sends those who listen to prefixes one message for each of these that some of the keys begin with. mu
// is held.
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

// reader returns the client with that number if it still tracks what it reads.
func (t *Table) reader(id int64) *Client {
	if s := t.clients[id]; s != nil && s.mode&Bcast == 0 {
		return s
	}
	return nil
}

// InvalidateAll tells everybody who tracks that all keys have gone.
func (t *Table) InvalidateAll(by *Changer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := invalidation{all: true}
	for _, s := range t.clients {
		t.tell(s, by, &m)
	}
	clear(t.keys)
}

// tellUnlessLoop is tell, but for a client that made the change itself and does not want to hear of that.
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
	// A RESP2 client cannot be reached otherwise.
}

// remember notes that the client has read keys of a command.
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

// Limit puts a change of the largest number of keys into effect.
func (t *Table) Limit(keys int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shrink(nil, keys)
}

// shrink forgets some keys, and tells who has read them, until at most limit are left; 0 is no limit. mu is held.
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
