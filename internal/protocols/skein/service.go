package skein

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/due"
	"github.com/atomredis/atomredis/internal/protocols/internal/feed"
	"github.com/atomredis/atomredis/internal/protocols/skein/event"
	"github.com/atomredis/atomredis/internal/protocols/skein/keys"
	"github.com/atomredis/atomredis/resp"
)

// Service is the state of applications outside of keys. Its lock is taken last.
type Service struct {
	host      command.Host
	schedule  due.Schedule
	answering sync.WaitGroup // goroutines that answer watches

	mu        sync.Mutex // protects what follows
	closed    bool
	revisions map[due.ID]int64
	watches   map[due.ID]map[*watch]struct{}
	holders   map[tied]command.Client
}

// tied is a container that is tied to a session.
type tied struct {
	app       due.ID
	container string
}

// session is the service's state of a client. The lock of the service protects it.
type session struct {
	watch *watch            // the present or last watch
	tied  map[tied]struct{} // the containers that end with it
	busy  atomic.Bool       // watch or tied is set; readable without the lock
}

// settle sets busy.
func (s *session) settle() { s.busy.Store(s.watch != nil || len(s.tied) > 0) }

var serviceID = command.RegisterService(func() command.Service { return &Service{} })

// Of returns the service of a server.
func Of(h command.Host) *Service { return h.Service(serviceID).(*Service) }

func sessionOf(c command.Client) *session { return c.State(serviceID).(*session) }

// Start implements command.Service.
func (s *Service) Start(h command.Host) {
	s.host = h
	s.revisions, s.watches = map[due.ID]int64{}, map[due.ID]map[*watch]struct{}{}
	s.holders = map[tied]command.Client{}
	s.schedule.Start(h, s.look, func(e *engine.Entry) (key string, ok bool) {
		name, ok := nameIn(e, leasesKey)
		return keys.Of(name, ""), ok
	})
}

// look ends containers that are due. During the search for stored items, it also ends containers whose sessions the
// server does not have any more.
func (s *Service) look(id due.ID, now int64) {
	found := s.schedule.Found()
	s.under(id, now, func(a *app) {
		a.expire()
		if !found {
			a.endTied(func(container string) bool { return s.holder(id, container) == nil })
		}
	})
}

// under calls fn with an application under its own guard, without a client. No guard may be held.
func (s *Service) under(id due.ID, now int64, fn func(a *app)) {
	name := strings.TrimSuffix(strings.TrimPrefix(id.Key, keys.Prefix+"{"), "}")
	names := namesOf([]byte(name))
	var shards uint64
	for _, key := range names {
		shards |= s.host.Keyspace().ShardOf(key)
	}
	due.Under(s.host, id, shards, now, func(c *command.Ctx) {
		if a := (&app{c: c, service: s, names: names}); a.typesFit() {
			fn(a)
		}
	})
}

// Loaded implements command.Service. There may be leases, and containers that were tied to sessions.
func (s *Service) Loaded() { s.schedule.FindStored() }

// KeysArrived implements command.Arriver: leases may end here now. Containers that end with a client stay: the client
// may be connected to the server that had the keys.
func (s *Service) KeysArrived() { s.schedule.FindArrived() }

// Close implements command.Service.
func (s *Service) Close() {
	s.schedule.Close()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.answering.Wait()
}

// Events implements command.Service.
func (s *Service) Events() engine.EventClass { return 0 }

// Heard implements command.Service.
func (s *Service) Heard(command.Client, bool, string, int, string) {}

// NewClient implements command.Service.
func (s *Service) NewClient() any { return new(session) }

// Following implements command.Service.
func (*Service) Following() {}

// MustSee implements command.Service: containers end with the client.
func (s *Service) MustSee(c command.Client) bool { return sessionOf(c).busy.Load() }

// Gone implements command.Service.
func (s *Service) Gone(c command.Client) {
	own := sessionOf(c)
	if !own.busy.Load() {
		return
	}
	apps := map[due.ID]struct{}{}
	s.mu.Lock()
	s.unwatch(own.watch)
	for t := range own.tied {
		apps[t.app] = struct{}{}
	}
	s.mu.Unlock()
	for id := range apps {
		s.under(id, s.host.Keyspace().Now(), func(a *app) {
			a.endTied(func(container string) bool { return s.holder(id, container) == c })
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range own.tied { // some are left if the server has become a follower
		delete(s.holders, t)
	}
	clear(own.tied)
	own.settle()
}

// tie ties a container to a client.
func (s *Service) tie(app due.ID, container string, c command.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, own := tied{app, container}, sessionOf(c)
	s.holders[t] = c
	if own.tied == nil {
		own.tied = map[tied]struct{}{}
	}
	own.tied[t] = struct{}{}
	own.settle()
}

// untie removes the tie of a container to a client.
func (s *Service) untie(app due.ID, container string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := tied{app, container}
	if c := s.holders[t]; c != nil {
		delete(s.holders, t)
		own := sessionOf(c)
		delete(own.tied, t)
		own.settle()
	}
}

// holder returns the client that a container is tied to, or nil.
func (s *Service) holder(app due.ID, container string) command.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holders[tied{app, container}]
}

// revision returns the number of events of an application so far.
func (s *Service) revision(app due.ID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revisions[app]
}

// tell publishes a change of an application, and answers watches. The guard of the Ctx holds its keys, so events are
// in the order of the changes.
func (s *Service) tell(a *app, e *event.Event) {
	id := a.id()
	s.mu.Lock()
	s.revisions[id]++
	e.Revision = s.revisions[id]
	if ready := s.take(id, e); len(ready) > 0 && !s.closed {
		s.answering.Go(func() { // no guard may be held
			for _, w := range ready {
				w.finish(w.event.reply)
			}
		})
	}
	s.mu.Unlock()
	if feed.Heard(a.c) {
		feed.Send(a.c, keys.AppendChannel(bytes.Clone(a.names[valuesKey]), a.c.DB), e.Append(nil))
	}
}

// watch is a client that waits for an event. Its texts are copies.
type watch struct {
	app        due.ID
	session    *session
	start, end []byte
	puts       bool // it waits for puts,
	deletes    bool // for deletes
	finish     func(command.Reply)
	event      *seen // the event that has ended the wait
}

// seen is an event with only the keys in a watch's range.
type seen event.Event

// wait adds a watch.
func (s *Service) wait(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatch(w.session.watch) // that wait has been ended
	if s.watches[w.app] == nil {
		s.watches[w.app] = map[*watch]struct{}{}
	}
	s.watches[w.app][w] = struct{}{}
	w.session.watch = w
	w.session.settle()
}

// forget removes a watch at its timeout.
func (s *Service) forget(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatch(w)
}

// unwatch removes a watch, which may be nil. mu must be locked.
func (s *Service) unwatch(w *watch) {
	if w == nil {
		return
	}
	delete(s.watches[w.app], w)
	if len(s.watches[w.app]) == 0 {
		delete(s.watches, w.app)
	}
	if w.session.watch == w {
		w.session.watch = nil
		w.session.settle()
	}
}

// take removes and returns the watches that wait for an event. mu must be locked.
func (s *Service) take(id due.ID, e *event.Event) (ready []*watch) {
	for w := range s.watches[id] {
		if w.event = w.see(e); w.event != nil {
			ready = append(ready, w)
			s.unwatch(w)
		}
	}
	return ready
}

// see returns the part of an event that a watch sees, or nil.
func (w *watch) see(e *event.Event) *seen {
	if e.Type == event.Put && !w.puts || e.Type == event.Delete && !w.deletes {
		return nil
	}
	var found [][]byte
	for _, k := range e.Keys {
		if keys.Contains(w.start, w.end, k) {
			found = append(found, bytes.Clone(k))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &seen{Type: e.Type, Revision: e.Revision, Keys: found, Value: bytes.Clone(e.Value), Owner: bytes.Clone(e.Owner)}
}

// reply is the reply of SKEIN.WATCH.
func (e *seen) reply(w *resp.Writer) {
	w.Array(3)
	w.BulkString(e.Type.String())
	w.Int(e.Revision)
	w.Array(len(e.Keys))
	for _, k := range e.Keys {
		if e.Type == event.Delete {
			w.Bulk(k)
			continue
		}
		w.Array(3)
		w.Bulk(k)
		w.Bulk(e.Value)
		replyText(w, e.Owner)
	}
}
