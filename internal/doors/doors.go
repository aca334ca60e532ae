// Package doors opens the doors of a server, starts and closes them. A door (package doors/door) translates a
// foreign protocol into commands; this package gives it a listener, the clients of its peers, limits and counters.
//
// A change of an address opens the new door first. Then it closes the old listener at once and the old door in the
// background, because a client of that door may be waiting for the change. INFO locks Doors.mu under a guard over
// everything, so nothing may wait for a command under Doors.mu.
package doors

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/listeners"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/tlsconfig"
	"github.com/atomredis/atomredis/internal/transport"
)

// Host is what Doors needs of the server beside its sessions. Any goroutine may call its methods.
type Host interface {
	// Refuse counts a new connection. It returns the error if count clients are too many, or if protected-mode
	// forbids the connection; "" if it may stay.
	Refuse(count int64, protected bool) string
	// Reject counts a client as rejected.
	Reject()
	// Topology returns the servers that have the same data.
	Topology(set *config.Settings) door.Topology
	// Owner returns the ID of the server that executes commands on a key; "" if none is known.
	Owner(key string, set *config.Settings) string
}

// Options are the parts of the server that doors use.
type Options struct {
	Sessions  *session.Shared
	Direct    *session.Directs
	Listeners *listeners.Listeners
	TLS       *tlsconfig.TLS
	Transport transport.Host
	Host      Host
	Given     map[string]net.Listener // listeners in place of those of the configuration, by the name of the kind
}

// Doors are the open doors of a server.
type Doors struct {
	// Sent is the number of bytes sent to the peers of all doors.
	Sent atomic.Int64

	o     Options
	sh    *session.Shared
	conns atomic.Int64 // connections to all doors

	mu      sync.Mutex // protects the fields below; nothing else is locked under it
	open    map[string]*openDoor
	serving bool // from Serve on
	closed  bool
	running sync.WaitGroup // doors that serve, or close in the background
	idle    engine.Timer   // calls endIdle; nil without a timeout
}

// New returns Doors without an open door.
func New(o Options) *Doors { return &Doors{o: o, sh: o.Sessions, open: map[string]*openDoor{}} }

// Open opens the doors of the configuration. Serve or Close must follow.
func (ds *Doors) Open() error {
	set := ds.sh.Config.Get()
	for _, k := range door.Kinds() {
		if err := ds.checkUser(k, set); err != nil {
			return fmt.Errorf("%s-user: %w", k.Directive(), err)
		}
		d, err := ds.openDoor(k, set)
		if err == nil && d != nil {
			err = ds.replace(map[string]*openDoor{k.Name: d})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k.AddressDirective(), err)
		}
	}
	return nil
}

// Serve makes the open doors serve.
func (ds *Doors) Serve() {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.closed {
		return
	}
	ds.serving = true
	for _, d := range ds.open {
		d.serve()
	}
	ds.watchIdle(ds.sh.Config.Get())
}

// watchIdle calls endIdle in a second if there is a timeout. mu is locked.
func (ds *Doors) watchIdle(set *config.Settings) {
	if set.Network.Timeout > 0 && ds.serving && !ds.closed && ds.idle == nil && len(ds.open) > 0 {
		ds.idle = ds.sh.Keyspace.Clock().AfterFunc(time.Second, ds.endIdle)
	}
}

// endIdle ends the clients of peers that have been idle for longer than the timeout, as CLIENT KILL does. The
// activity of several clients of one peer counts for all of them. A peer that is blocked, has subscribed or is a
// monitor is not idle.
func (ds *Doors) endIdle() {
	set := ds.sh.Config.Get()
	if set.Network.Timeout > 0 {
		ds.o.Direct.EndIdle(ds.sh.Keyspace.Now() - int64(set.Network.Timeout)*1000)
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.idle = nil
	ds.watchIdle(set)
}

// checkUser returns an error if the settings name a user for a door's clients that does not exist.
func (ds *Doors) checkUser(k *door.Kind, set *config.Settings) error {
	if name := set.DoorUser(k); name != "" && ds.sh.Users.Get([]byte(name)) == nil {
		return fmt.Errorf("there is no user '%s'", name)
	}
	return nil
}

// Follow applies changes of the doors' directives from now on.
func (ds *Doors) Follow() {
	var names []string
	for _, k := range door.Kinds() {
		names = append(names, k.DirectiveNames()...)
	}
	ds.sh.Config.Apply(func(old, set *config.Settings) (func() error, error) {
		return func() error { return ds.update(set, old) }, ds.update(old, set)
	}, names...)
	ds.sh.Config.Follow(func(set *config.Settings) {
		ds.mu.Lock()
		defer ds.mu.Unlock()
		ds.watchIdle(set)
	}, "timeout")
}

// update opens doors at the addresses of new settings, and then closes those at other addresses. If it fails, all
// doors stay unchanged.
func (ds *Doors) update(old, set *config.Settings) error {
	failed, opened := config.ChangeError{}, map[string]*openDoor{}
	for _, k := range door.Kinds() {
		if set.DoorUser(k) != old.DoorUser(k) {
			if err := ds.checkUser(k, set); err != nil {
				failed[k.Directive()+"-user"] = err
			}
		}
		if set.DoorAddress(k) == old.DoorAddress(k) {
			continue
		}
		d, err := ds.openDoor(k, set)
		if err != nil {
			failed[k.AddressDirective()] = err
			continue
		}
		opened[k.Name] = d // nil closes the door
	}
	if len(failed) > 0 {
		closeUnused(opened)
		return failed
	}
	if err := ds.replace(opened); err != nil {
		return err
	}
	for _, d := range ds.all() {
		d.set.Store(set)
	}
	return nil
}

// closeUnused closes doors that have had no clients.
func closeUnused(list map[string]*openDoor) {
	for _, d := range list {
		if d != nil {
			d.close()
		}
	}
}

// replace replaces doors by name; nil removes one. The addresses of removed doors are free when it returns. Their
// peers are disconnected in the background: one of them may be waiting for this.
func (ds *Doors) replace(with map[string]*openDoor) error {
	if !ds.put(with) {
		closeUnused(with)
		return door.ErrClosed
	}
	return nil
}

// put is replace; it returns false if the server is closed.
func (ds *Doors) put(with map[string]*openDoor) bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.closed {
		return false
	}
	for name, d := range with {
		if before := ds.open[name]; before != nil {
			delete(ds.open, name)
			before.listener.Close()
			ds.running.Go(before.close)
		}
		if d == nil {
			continue
		}
		if ds.open[name] = d; ds.serving {
			d.serve()
		}
	}
	ds.noteEvents()
	return true
}

// noteEvents computes the classes of events that clients of doors can subscribe to. mu is locked.
func (ds *Doors) noteEvents() {
	var classes engine.EventClass
	for _, d := range ds.open {
		c, _ := engine.ParseEventClasses(d.kind.Events)
		classes |= c
	}
	ds.sh.DoorEvents.Store(uint32(classes))
}

// all returns the open doors in order of their names.
func (ds *Doors) all() []*openDoor {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	list := make([]*openDoor, 0, len(ds.open))
	for _, d := range ds.open {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *openDoor) int { return strings.Compare(a.kind.Name, b.kind.Name) })
	return list
}

// Addr returns the address on which a door listens, nil if it is not open.
func (ds *Doors) Addr(name string) net.Addr {
	for _, d := range ds.all() {
		if d.kind.Name == name {
			return d.listener.Addr()
		}
	}
	return nil
}

// End closes an open door, in the background, if one of its directives has the value.
func (ds *Doors) End(name, directive, value string) {
	for _, d := range ds.all() {
		if d.kind.Name != name || d.Setting(directive) != value {
			continue
		}
		d.Log().Info("a client closes a door", "door", name)
		if e, ok := d.door.(door.Ender); ok {
			e.End() // Serve then returns and removes the door
		} else {
			ds.remove(d)
		}
	}
}

// StopListening closes the listeners of all doors, for good.
func (ds *Doors) StopListening() {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.closed = true
	for _, d := range ds.open {
		d.listener.Close()
	}
}

// Close closes all doors for good, and returns when all their goroutines have ended.
func (ds *Doors) Close() {
	ds.StopListening()
	ds.mu.Lock()
	for _, d := range ds.open {
		ds.running.Go(d.close)
	}
	ds.open = nil
	if ds.idle != nil {
		ds.idle.Stop()
	}
	ds.mu.Unlock()
	ds.running.Wait()
}

// remove removes a door that has ended by itself, unless it is already being closed.
func (ds *Doors) remove(d *openDoor) (removed bool) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.closed || ds.open[d.kind.Name] != d {
		return false
	}
	delete(ds.open, d.kind.Name)
	ds.noteEvents()
	ds.running.Go(d.close)
	return true
}

// maxConns returns the limit of connections of all doors together.
func (ds *Doors) maxConns() int64 {
	most := ds.sh.Host.MaxClients()
	if n := int64(ds.sh.Config.Get().Network.DoorMaxClients); n > 0 {
		return min(n, most)
	}
	return max(most/2, 1)
}
