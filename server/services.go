package server

import (
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

// EachClient calls fn with the name of each client, which may be empty, and its waiter, nil if it is not blocked.
func (srv *Server) EachClient(fn func(name string, waits *engine.Waiter)) {
	srv.sessions.Clients.Each(fn)
}

// followKeyspace has the keyspace, and those who watch it, follow the settings about keys.
func (srv *Server) followKeyspace() {
	c := srv.config
	c.Follow(srv.hearEvents, "notify-keyspace-events")
	c.Follow(func(set *config.Settings) { srv.ks.SetListLimit(set.List) }, "list-max-listpack-size")
	c.Follow(func(set *config.Settings) { srv.ks.SetImporting(set.ImportMode) }, "import-mode")
	c.Follow(func(set *config.Settings) { srv.sessions.Tracking.Limit(set.TrackingTableMaxKeys) }, "tracking-table-max-keys")
}

// hearEvents chooses the events that the server hears of: those that are published, and those that doors and services
// need.
func (srv *Server) hearEvents(set *config.Settings) {
	sh := srv.sessions
	srv.ks.SetEventClasses(set.NotifyKeyspaceEvents | engine.EventClass(sh.DoorEvents.Load()) | sh.ServiceEvents)
}
