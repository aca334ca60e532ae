package pressure

import (
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
)

// Service is what a server knows of queues that is in no key: who has which role, and when reserved messages are due.
type Service struct {
	host         command.Host
	roles        roles
	reservations reservations
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
	s.reservations.start(s)
}

// Loaded implements command.Service. Messages may have been reserved before.
func (s *Service) Loaded() { s.reservations.FindStored() }

// Following implements command.Service: the leader gives back the roles that clients of this server had.
func (s *Service) Following() { s.roles.clear() }

// Close implements command.Service.
func (s *Service) Close() { s.reservations.Close() }

// Events implements command.Service: who has which role follows from these.
func (s *Service) Events() engine.EventClass {
	if s.roles.on {
		return engine.EventList | engine.EventEmpty
	}
	return 0
}

// NewClient implements command.Service.
func (s *Service) NewClient() any { return new(ownRoles) }
