package server

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
)

// This file stores the state of services and passes events to them.

func (srv *Server) startServices() {
	srv.services = command.NewServices()
	srv.sessions.Services = srv.services
	for _, s := range srv.services {
		s.Start(srv)
		srv.sessions.ServiceEvents |= s.Events()
	}
	srv.ks.SetEventClasses(srv.sessions.ServiceEvents) // other events only once all stored data is loaded
}

func (srv *Server) servicesLoaded() {
	for _, s := range srv.services {
		s.Loaded()
	}
}

// keysArrived tells services that another shard has sent keys.
func (srv *Server) keysArrived() {
	for _, s := range srv.services {
		if a, ok := s.(command.Arriver); ok {
			a.KeysArrived()
		}
	}
}

func (srv *Server) closeServices() {
	for _, s := range srv.services {
		s.Close()
	}
}

// keptMark begins the data that is stored in addition to the keys if services have state to store. After it come the
// length of the stored functions, the functions, and the commands of the services.
const keptMark = "kept\x01"

// kept returns the commands that restore the state of services outside the keys. A guard over everything is held.
func (srv *Server) kept() (commands []byte) {
	for _, s := range srv.services {
		if k, ok := s.(command.Keeper); ok {
			commands = append(commands, k.Stored()...)
		}
	}
	return commands
}

// withKept returns the stored functions together with the state of services.
func (srv *Server) withKept(functions []byte) []byte {
	commands := srv.kept()
	if len(commands) == 0 {
		return functions
	}
	b := binary.AppendUvarint([]byte(keptMark), uint64(len(functions)))
	return append(append(b, functions...), commands...)
}

// splitKept returns the two parts of a result of withKept.
func splitKept(b []byte) (functions, commands []byte, err error) {
	rest, ok := bytes.CutPrefix(b, []byte(keptMark))
	if !ok {
		return b, nil, nil
	}
	n, size := binary.Uvarint(rest)
	if size <= 0 || n > uint64(len(rest)-size) {
		return nil, nil, errors.New("the stored state of services is damaged")
	}
	rest = rest[size:]
	return rest[:n:n], rest[n:], nil
}

// restoreKept restores the state of services.
func (srv *Server) restoreKept(commands []byte) error {
	for _, s := range srv.services {
		if k, ok := s.(command.Keeper); ok {
			if err := k.Restore(commands); err != nil {
				return err
			}
		}
	}
	return nil
}

// EachClient calls fn with the name of each client, which may be empty, and its waiter, nil if it is not blocked.
func (srv *Server) EachClient(fn func(name string, waits *engine.Waiter)) {
	srv.sessions.Clients.Each(fn)
}

// followKeyspace applies changes of the settings about keys to the keyspace and its observers.
func (srv *Server) followKeyspace() {
	c := srv.config
	c.Follow(srv.hearEvents, "notify-keyspace-events")
	c.Follow(func(set *config.Settings) { srv.ks.SetListLimit(set.Types.List) }, "list-max-listpack-size")
	c.Follow(func(set *config.Settings) { srv.ks.SetImporting(set.Clients.ImportMode) }, "import-mode")
	c.Follow(func(set *config.Settings) { srv.sessions.Tracking.Limit(set.Clients.TrackingTableMaxKeys) }, "tracking-table-max-keys")
}

// hearEvents chooses the events that the keyspace reports: those that are published, and those that doors and
// services need.
func (srv *Server) hearEvents(set *config.Settings) {
	sh := srv.sessions
	srv.ks.SetEventClasses(set.Clients.NotifyKeyspaceEvents | engine.EventClass(sh.DoorEvents.Load()) | sh.ServiceEvents)
}
