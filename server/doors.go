package server

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	servercommands "github.com/atomredis/atomredis/internal/commands/server"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/transport"
)

// This file opens and closes doors. Their directives are in doors_config.go, their connections in doors_conn.go.

// doors are those that are open.
type doors struct {
	conns  atomic.Int64   // connections to all of them
	events *atomic.Uint32 // session.Shared.DoorEvents

	mu      sync.Mutex // protects what follows; nothing else is locked under it
	open    map[string]*openDoor
	serving bool // from the end of Start on
	closed  bool
	running sync.WaitGroup // doors that serve, or are being closed in the background
	idle    engine.Timer   // for endIdle; nil if it is not to be called
}

// openDoor is a door with its listener; it is the door's Host.
type openDoor struct {
	srv      *Server
	kind     *door.Kind
	door     door.Door
	listener net.Listener
	set      atomic.Pointer[config.Settings] // those that are about to be in effect, if they are changing

	ending  chan struct{} // closed when it is being closed
	serving bool          // protected by doors.mu
	served  chan struct{} // closed when Serve has returned

	conns, accepted, refused atomic.Int64
	bytesIn, bytesOut        atomic.Int64
	sessions                 session.Door
}

// openDoor opens a door as the settings say; it is nil if they say that there is none. It does not serve yet.
func (srv *Server) openDoor(k *door.Kind, set *config.Settings) (*openDoor, error) {
	l, err := srv.listenForDoor(k, set)
	if err != nil || l == nil {
		return nil, err
	}
	d := &openDoor{srv: srv, kind: k, listener: l, ending: make(chan struct{}), served: make(chan struct{})}
	d.set.Store(set)
	if d.door, err = k.New(d); err != nil {
		d.listener.Close()
		return nil, err
	}
	return d, nil
}

// listenForDoor begins to listen where the settings say that a door is; l is nil if they say that there is none.
func (srv *Server) listenForDoor(k *door.Kind, set *config.Settings) (l net.Listener, err error) {
	if k.PortDirective == "" {
		network, address, err := k.ParseAddress(set.Registered[k.Directive()])
		if err != nil || network == "" {
			return nil, err
		}
		return transport.Listen(network, address, set.TCPBacklog)
	}
	endpoints := set.DoorEndpoints(k)
	if len(endpoints) == 0 {
		return nil, nil
	}
	return srv.listeners.OpenCombined(set, endpoints)
}

// openDoors opens the doors that the settings ask for. serveDoors has them serve, or closeDoors closes them.
func (srv *Server) openDoors(set *config.Settings) error {
	for _, k := range door.Kinds() {
		if err := srv.checkDoorUser(k, set); err != nil {
			return fmt.Errorf("%s-user: %w", k.Directive(), err)
		}
		d, err := srv.openDoor(k, set)
		if err == nil && d != nil {
			err = srv.replaceDoors(map[string]*openDoor{k.Name: d})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k.AddressDirective(), err)
		}
	}
	return nil
}

// serveDoors has the doors that are open serve.
func (srv *Server) serveDoors() {
	ds := &srv.doors
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.closed {
		return
	}
	ds.serving = true
	for _, d := range ds.open {
		d.serve()
	}
	srv.watchIdle(srv.config.Get())
}

// watchIdle has endIdle called in a second if there is a timeout. doors.mu is locked.
func (srv *Server) watchIdle(set *config.Settings) {
	ds := &srv.doors
	if set.Timeout > 0 && ds.serving && !ds.closed && ds.idle == nil && len(ds.open) > 0 {
		ds.idle = srv.ks.Clock().AfterFunc(time.Second, srv.endIdle)
	}
}

// endIdle ends the clients of doors' peers that have done nothing for longer than the timeout, as CLIENT KILL does. What
// several clients of one peer do counts for all of them, and a peer that waits or has subscribed is not idle.
func (srv *Server) endIdle() {
	set := srv.config.Get()
	if set.Timeout > 0 {
		srv.direct.EndIdle(srv.ks.Now() - int64(set.Timeout)*1000)
	}
	ds := &srv.doors
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.idle = nil
	srv.watchIdle(set)
}

// checkDoorUser returns why the settings cannot say as which user a door's clients act.
func (srv *Server) checkDoorUser(k *door.Kind, set *config.Settings) error {
	if name := set.DoorUser(k); name != "" && srv.users.Get([]byte(name)) == nil {
		return fmt.Errorf("there is no user '%s'", name)
	}
	return nil
}

// followDoors has doors follow their settings.
func (srv *Server) followDoors() {
	var names []string
	for _, k := range door.Kinds() {
		names = append(names, k.DirectiveNames()...)
	}
	srv.config.Apply(func(old, set *config.Settings) (func() error, error) {
		return func() error { return srv.updateDoors(set, old) }, srv.updateDoors(old, set)
	}, names...)
	srv.config.Follow(func(set *config.Settings) {
		srv.doors.mu.Lock()
		defer srv.doors.mu.Unlock()
		srv.watchIdle(set)
	}, "timeout")
}

// updateDoors opens doors where new settings say, and then closes those that were somewhere else. If it fails all are
// as they were.
func (srv *Server) updateDoors(old, set *config.Settings) error {
	failed, opened := config.ChangeError{}, map[string]*openDoor{}
	for _, k := range door.Kinds() {
		if set.DoorUser(k) != old.DoorUser(k) {
			if err := srv.checkDoorUser(k, set); err != nil {
				failed[k.Directive()+"-user"] = err
			}
		}
		if set.DoorAddress(k) == old.DoorAddress(k) {
			continue
		}
		d, err := srv.openDoor(k, set)
		if err != nil {
			failed[k.AddressDirective()] = err
			continue
		}
		opened[k.Name] = d // or nil, which closes it
	}
	if len(failed) > 0 {
		closeUnused(opened)
		return failed
	}
	if err := srv.replaceDoors(opened); err != nil {
		return err
	}
	for _, d := range srv.doors.all() {
		d.set.Store(set)
	}
	return nil
}

// replaceDoors puts doors, or nil for none, in the places of those that have the same names. The address of a door
// that goes is free when it returns. Its peers are disconnected in the background: one of them may be who waits for
// this.
func (srv *Server) replaceDoors(with map[string]*openDoor) error {
	if srv.doors.replace(with) {
		return nil
	}
	closeUnused(with)
	return door.ErrClosed
}

// closeUnused closes doors that have had no clients.
func closeUnused(list map[string]*openDoor) {
	for _, d := range list {
		if d != nil {
			d.close()
		}
	}
}

// replace is replaceDoors; done is false if the server is closed.
func (ds *doors) replace(with map[string]*openDoor) (done bool) {
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
		if ds.open == nil {
			ds.open = map[string]*openDoor{}
		}
		if ds.open[name] = d; ds.serving {
			d.serve()
		}
	}
	ds.noteEvents()
	return true
}

// noteEvents finds out which events there have to be. mu is locked.
func (ds *doors) noteEvents() {
	var classes engine.EventClass
	for _, d := range ds.open {
		c, _ := engine.ParseEventClasses(d.kind.Events)
		classes |= c
	}
	ds.events.Store(uint32(classes))
}

// all returns the doors that are open, in order of their names.
func (ds *doors) all() []*openDoor {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	list := make([]*openDoor, 0, len(ds.open))
	for _, d := range ds.open {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *openDoor) int { return strings.Compare(a.kind.Name, b.kind.Name) })
	return list
}

// stopListening closes the listeners of all doors.
func (ds *doors) stopListening() {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.closed = true
	for _, d := range ds.open {
		d.listener.Close()
	}
}

// close closes all doors, for good, and returns when no goroutine of theirs is left.
func (ds *doors) close() {
	ds.stopListening()
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

// remove forgets a door that has ended by itself, unless it is being closed.
func (ds *doors) remove(d *openDoor) (removed bool) {
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

// CloseDoor implements skein.Host and spiderq.Host.
func (srv *Server) CloseDoor(name, directive, value string) {
	for _, d := range srv.doors.all() {
		if d.kind.Name != name || d.Setting(directive) != value {
			continue
		}
		srv.log.Info("a client closes a door", "door", name)
		if e, ok := d.door.(door.Ender); ok {
			e.End() // Serve returns, which removes it
		} else {
			srv.doors.remove(d)
		}
	}
}

// serve has peers accepted in the background. doors.mu is locked.
func (d *openDoor) serve() {
	d.serving = true
	log := d.srv.log.With("door", d.kind.Name, "address", d.listener.Addr().String())
	log.Info("a door is open")
	d.srv.doors.running.Go(func() {
		err := d.door.Serve(&doorListener{d.listener, d})
		close(d.served)
		if !d.srv.doors.remove(d) {
			return
		}
		if err != nil {
			log.Error("a door has failed and is closed", "error", err.Error())
		} else {
			log.Info("a door has stopped and is closed")
		}
	})
}

// close disconnects all peers and returns when nothing of the door is left. Nobody finds it among those that are open.
func (d *openDoor) close() {
	close(d.ending)
	d.listener.Close()
	d.srv.direct.EndClientsOf(&d.sessions)
	if err := d.door.Close(); err != nil {
		d.srv.log.Error("a door was closed with an error", "door", d.kind.Name, "error", err.Error())
	}
	d.srv.doors.mu.Lock()
	serving := d.serving
	d.srv.doors.mu.Unlock()
	if serving {
		<-d.served
	}
}

// isEnding reports whether the door is being closed.
func (d *openDoor) isEnding() bool {
	select {
	case <-d.ending:
		return true
	default:
		return false
	}
}

// Log implements door.Host.
func (d *openDoor) Log() *slog.Logger { return d.srv.log }

// Setting implements door.Host.
func (d *openDoor) Setting(name string) string { return d.set.Load().Registered[name] }

// FirstRequest implements door.Host.
func (d *openDoor) FirstRequest() time.Duration {
	return time.Duration(d.srv.config.Get().DoorFirstRequest) * time.Second
}

// Client implements door.Host.
func (d *openDoor) Client(p door.Peer) (door.Client, error) {
	srv := d.srv
	if srv.sessions.Clients.Len() >= srv.MaxClients() {
		srv.stats.rejected.Add(1)
		return door.Client{}, door.ErrTooManyClients
	}
	if d.isEnding() {
		return door.Client{}, door.ErrClosed
	}
	return d.enter(session.Entrance{Peer: transport.Peer{Addr: p.Addr, Local: p.Local}, User: d.set.Load().DoorUser(d.kind)})
}

// OwnClient implements door.Host.
func (d *openDoor) OwnClient() (door.Client, error) {
	at := "@" + d.kind.Directive() + ":0"
	return d.enter(session.Entrance{Peer: transport.Peer{Addr: at, Local: at}, Own: true})
}

// enter starts a session of the door.
func (d *openDoor) enter(e session.Entrance) (door.Client, error) {
	e.Door, e.Library = &d.sessions, d.kind.Directive()
	c, err := d.srv.direct.Enter(e)
	if err != nil {
		return door.Client{}, err
	}
	return door.NewClient(c), nil
}

// DoorAddr returns the address on which a door listens, nil if it is not open.
func (srv *Server) DoorAddr(name string) net.Addr {
	for _, d := range srv.doors.all() {
		if d.kind.Name == name {
			return d.listener.Addr()
		}
	}
	return nil
}

// infoSections returns the sections of INFO of the doors that are open.
func (ds *doors) infoSections() (sections []servercommands.InfoSection) {
	for _, d := range ds.all() {
		name := strings.ReplaceAll(d.kind.Name, "-", "_")
		sections = append(sections, servercommands.InfoSection{Name: "Door_" + name,
			Write: func(b *servercommands.InfoText, _ *command.Ctx) { d.info(b, "door_"+name+"_", name+"_") }})
	}
	return sections
}

// info writes the door's section: the fields of every door, and its own ones, each with a prefix.
func (d *openDoor) info(b *servercommands.InfoText, common, own string) {
	b.Text(common+"address", d.listener.Addr().String())
	b.Number(common+"connections", d.conns.Load())
	b.Number(common+"connections_received", d.accepted.Load())
	b.Number(common+"connections_rejected", d.refused.Load())
	b.Number(common+"clients", d.sessions.Clients.Load())
	b.Number(common+"commands", d.sessions.Commands.Load())
	b.Number(common+"input_bytes", d.bytesIn.Load())
	b.Number(common+"output_bytes", d.bytesOut.Load())
	d.door.Info(func(field, value string) { b.Text(own+field, command.OneLine(value)) })
}
