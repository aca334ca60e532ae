package server

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
)

// This file is what the server does for services, and how events reach them.

func (srv *Server) startServices() {
	srv.services = command.NewServices()
	srv.sessions.Services = srv.services
	for _, s := range srv.services {
		s.Start(srv)
		srv.sessions.ServiceEvents |= s.Events()
	}
	srv.ks.SetEventClasses(srv.sessions.ServiceEvents) // others only once everything that was stored is there
}

func (srv *Server) servicesLoaded() {
	for _, s := range srv.services {
		s.Loaded()
	}
}

func (srv *Server) closeServices() {
	for _, s := range srv.services {
		s.Close()
	}
}

// keptMark begins what is stored beside the keys if services keep something: behind it are the length of what is stored of
// functions, that, and the commands of the services.
const keptMark = "kept\x01"

// kept returns the commands that make what services keep beside the keys. A guard over everything is held.
func (srv *Server) kept() (commands []byte) {
	for _, s := range srv.services {
		if k, ok := s.(command.Keeper); ok {
			commands = append(commands, k.Stored()...)
		}
	}
	return commands
}

// withKept returns what is stored of functions with what services keep.
func (srv *Server) withKept(functions []byte) []byte {
	commands := srv.kept()
	if len(commands) == 0 {
		return functions
	}
	b := binary.AppendUvarint([]byte(keptMark), uint64(len(functions)))
	return append(append(b, functions...), commands...)
}

// splitKept returns the parts of what withKept has returned.
func splitKept(b []byte) (functions, commands []byte, err error) {
	rest, ok := bytes.CutPrefix(b, []byte(keptMark))
	if !ok {
		return b, nil, nil
	}
	n, size := binary.Uvarint(rest)
	if size <= 0 || n > uint64(len(rest)-size) {
		return nil, nil, errors.New("what services keep: what is stored is damaged")
	}
	rest = rest[size:]
	return rest[:n:n], rest[n:], nil
}

// restoreKept has services make what they have kept.
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

// followKeyspace has the keyspace, and those who watch it, follow the settings about keys.
func (srv *Server) followKeyspace() {
	c := srv.config
	c.Follow(srv.hearEvents, "notify-keyspace-events")
	c.Follow(func(set *config.Settings) { srv.ks.SetListLimit(set.Types.List) }, "list-max-listpack-size")
	c.Follow(func(set *config.Settings) { srv.ks.SetImporting(set.Clients.ImportMode) }, "import-mode")
	c.Follow(func(set *config.Settings) { srv.sessions.Tracking.Limit(set.Clients.TrackingTableMaxKeys) }, "tracking-table-max-keys")
}

// hearEvents chooses the events that the server hears of: those that are published, and those that doors and services
// need.
func (srv *Server) hearEvents(set *config.Settings) {
	sh := srv.sessions
	srv.ks.SetEventClasses(set.Clients.NotifyKeyspaceEvents | engine.EventClass(sh.DoorEvents.Load()) | sh.ServiceEvents)
}
