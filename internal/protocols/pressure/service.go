package pressure

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/protocols/due"
)

// Service is the state of queues outside of keys: the holders of roles, and the deadlines of reserved messages.
type Service struct {
	host         command.Host
	roles        roles
	reservations reservations
	stats        stats
}

func init() {
	config.Register(config.Directive{Name: "pressure-role-recovery", Default: "yes", Check: config.CheckYesNo, AtStart: true})
}

var serviceID = command.RegisterService(func() command.Service { return &Service{} })

// service returns the service of the server that has the queue.
func (q *pressureQueue) service() *Service { return Of(q.c.Host) }

// Of returns the service of a server.
func Of(h command.Host) *Service { return h.Service(serviceID).(*Service) }

// Start implements command.Service.
func (s *Service) Start(h command.Host) {
	s.host = h
	s.roles.on = h.Directive("pressure-role-recovery") == "yes"
	s.roles.holders = map[roleKey]command.Client{}
	s.stats.queues = map[due.ID][]minute{}
	s.reservations.start(s)
}

// Loaded implements command.Service. Messages may have been reserved before.
func (s *Service) Loaded() { s.reservations.FindStored() }

// KeysArrived implements command.Arriver: there may be messages that come due here now.
func (s *Service) KeysArrived() { s.reservations.FindArrived() }

// Following implements command.Service: the leader gives back the roles of this server's clients.
func (s *Service) Following() { s.roles.clear() }

// Close implements command.Service.
func (s *Service) Close() { s.reservations.Close() }

// Events implements command.Service: the holders of roles follow from these events, and keys that were renamed, moved,
// copied or restored may have deadlines.
func (s *Service) Events() engine.EventClass {
	if s.roles.on {
		return engine.EventList | engine.EventEmpty | engine.EventGeneric
	}
	return engine.EventGeneric
}

// NewClient implements command.Service.
func (s *Service) NewClient() any { return new(ownRoles) }
