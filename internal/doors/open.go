package doors

import (
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/command"
	servercommands "github.com/atomredis/atomredis/internal/commands/server"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/transport"
)

// openDoor is a door with its listener; it is the door's Host.
type openDoor struct {
	in       *Doors
	kind     *door.Kind
	door     door.Door
	listener net.Listener
	set      atomic.Pointer[config.Settings] // the settings, new ones before they take effect

	ending  chan struct{} // closed when the door begins to close
	serving bool          // protected by Doors.mu
	served  chan struct{} // closed when Serve has returned

	conns, accepted, refused atomic.Int64
	bytesIn, bytesOut        atomic.Int64
	sessions                 session.Door
}

// openDoor opens the door of a kind with settings; it returns nil if the settings have no such door. The door does
// not serve yet.
func (ds *Doors) openDoor(k *door.Kind, set *config.Settings) (*openDoor, error) {
	l, err := ds.listen(k, set)
	if err != nil || l == nil {
		return nil, err
	}
	d := &openDoor{in: ds, kind: k, listener: l, ending: make(chan struct{}), served: make(chan struct{})}
	d.set.Store(set)
	if d.door, err = k.New(d); err != nil {
		d.listener.Close()
		return nil, err
	}
	return d, nil
}

// listen listens on the door's address in the settings; l is nil if there is none.
func (ds *Doors) listen(k *door.Kind, set *config.Settings) (l net.Listener, err error) {
	if l := ds.o.Given[k.Name]; l != nil {
		return l, nil
	}
	if k.PortDirective == "" {
		network, address, err := k.ParseAddress(set.Registered[k.Directive()])
		if err != nil || network == "" {
			return nil, err
		}
		return transport.Listen(network, address, set.Network.TCPBacklog)
	}
	endpoints := set.DoorEndpoints(k)
	if len(endpoints) == 0 {
		return nil, nil
	}
	return ds.o.Listeners.OpenCombined(set, endpoints)
}

// serve accepts peers in the background. Doors.mu is locked.
func (d *openDoor) serve() {
	d.serving = true
	log := d.Log().With("door", d.kind.Name, "address", d.listener.Addr().String())
	log.Info("a door is open")
	d.in.running.Go(func() {
		err := d.door.Serve(&listener{d.listener, d})
		close(d.served)
		if !d.in.remove(d) {
			return
		}
		if err != nil {
			log.Error("a door has failed and is closed", "error", err.Error())
		} else {
			log.Info("a door has stopped and is closed")
		}
	})
}

// close disconnects all peers and returns when the door has ended. Doors does not have it any more.
func (d *openDoor) close() {
	close(d.ending)
	d.listener.Close()
	d.in.o.Direct.EndClientsOf(&d.sessions)
	if err := d.door.Close(); err != nil {
		d.Log().Error("a door was closed with an error", "door", d.kind.Name, "error", err.Error())
	}
	d.in.mu.Lock()
	serving := d.serving
	d.in.mu.Unlock()
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
func (d *openDoor) Log() *slog.Logger { return d.in.sh.Log }

// Setting implements door.Host.
func (d *openDoor) Setting(name string) string { return d.set.Load().Registered[name] }

// FirstRequest implements door.Host.
func (d *openDoor) FirstRequest() time.Duration {
	return time.Duration(d.in.sh.Config.Get().Network.DoorFirstRequest) * time.Second
}

// Topology implements door.Host.
func (d *openDoor) Topology() door.Topology { return d.in.o.Host.Topology(d.set.Load()) }

// Owner implements door.Host.
func (d *openDoor) Owner(key string) string { return d.in.o.Host.Owner(key, d.set.Load()) }

// Client implements door.Host.
func (d *openDoor) Client(p door.Peer) (door.Client, error) {
	if sh := d.in.sh; sh.Clients.Len() >= sh.Host.MaxClients() {
		d.in.o.Host.Reject()
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
	e.Door, e.Library, e.AtLeader = &d.sessions, d.kind.Directive(), d.kind.AtLeader
	c, err := d.in.o.Direct.Enter(e)
	if err != nil {
		return door.Client{}, err
	}
	return door.NewClient(c), nil
}

// InfoSections returns the sections of INFO of the open doors.
func (ds *Doors) InfoSections() (sections []servercommands.InfoSection) {
	for _, d := range ds.all() {
		name := strings.ReplaceAll(d.kind.Name, "-", "_")
		sections = append(sections, servercommands.InfoSection{Name: "Door_" + name,
			Write: func(b *servercommands.InfoText, _ *command.Ctx) { d.info(b, "door_"+name+"_", name+"_") }})
	}
	return sections
}

// info writes the door's section: the common fields with the prefix common, and its own fields with the prefix own.
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
