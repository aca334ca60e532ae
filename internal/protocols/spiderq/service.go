package spiderq

import (
	"errors"
	"strings"
	"sync"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/protocols/due"
	"github.com/atomredis/atomredis/internal/protocols/spiderq/keys"
)

// Service is the state of queues outside of keys.
type Service struct {
	host     command.Host
	schedule due.Schedule
	mu       sync.Mutex // protects what follows
	counters map[due.ID]*[numberOfCounters]int64
	// requeues says that spiderq-restart is requeue and the server has started with stored data: queues with lent,
	// boosted or dropped keys must be requeued. requeued are those that have been.
	requeues bool
	requeued map[due.ID]bool
	loaded   bool // Loaded has been called
}

var serviceID = command.RegisterService(func() command.Service { return &Service{} })

func init() {
	config.Register(config.Directive{Name: "spiderq-restart", Default: "keep", AtStart: true,
		Check: func(value string) error {
			if value != "keep" && value != "requeue" {
				return errors.New("argument must be one of the following: keep, requeue")
			}
			return nil
		}})
}

// Of returns the service of a server.
func Of(h command.Host) *Service { return h.Service(serviceID).(*Service) }

// Start implements command.Service.
func (s *Service) Start(h command.Host) {
	s.host = h
	s.counters, s.requeued = map[due.ID]*[numberOfCounters]int64{}, map[due.ID]bool{}
	s.requeues = h.Directive("spiderq-restart") == "requeue"
	s.schedule.Start(h, func(id due.ID, now int64) { s.under(id, now, (*queue).returnDue) },
		func(e *engine.Entry) (key string, ok bool) {
			name, ok := nameIn(e, engine.ZSet, keys.Lent)
			if !ok && s.stale(due.ID{}) {
				name, ok = nameIn(e, engine.Hash, "")
			}
			return keys.Prefix + "{" + name + "}", ok
		})
}

// stale reports whether a queue must still be requeued.
func (s *Service) stale(id due.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requeues && !s.requeued[id] && !s.schedule.Found()
}

// fresh records that a queue need not be requeued.
func (s *Service) fresh(id due.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requeued[id] = true
}

// under calls fn with a queue under a guard of its own, on behalf of no client. No guard may be held.
func (s *Service) under(id due.ID, now int64, fn func(q *queue)) {
	name := strings.TrimSuffix(strings.TrimPrefix(id.Key, keys.Prefix+"{"), "}")
	names := namesOf([]byte(name))
	due.Under(s.host, id, shardsOf(s.host.Keyspace(), names), now, func(c *command.Ctx) {
		fn(&queue{c: c, service: s, names: names})
	})
}

// Loaded implements command.Service. Keys may have been lent before. Only a start requeues; a follower that becomes
// a master keeps its queues.
func (s *Service) Loaded() {
	s.mu.Lock()
	s.requeues = s.requeues && !s.loaded
	s.loaded = true
	s.mu.Unlock()
	s.schedule.FindStored()
}

// KeysArrived implements command.Arriver: lent keys may come due here now. They are not requeued.
func (s *Service) KeysArrived() { s.schedule.FindArrived() }

// Close implements command.Service.
func (s *Service) Close() { s.schedule.Close() }

// Events implements command.Service.
func (s *Service) Events() engine.EventClass { return 0 }

// Heard implements command.Service.
func (s *Service) Heard(command.Client, bool, string, int, string) {}

// NewClient implements command.Service.
func (s *Service) NewClient() any { return nil }

// Gone implements command.Service. The loans of a disconnected client last until their deadlines.
func (s *Service) Gone(command.Client) {}

// Following implements command.Service.
func (*Service) Following() {}

// MustSee implements command.Service.
func (s *Service) MustSee(command.Client) bool { return false }

// counter is a counter of SPIDERQ.STATS, in the order of the newer version of the protocol.
type counter int

const (
	countPing counter = iota
	countCount
	countAdd
	countUpdate
	countLookup
	countRemove
	countLend
	countRepay
	countHeartbeat
	countStats
	numberOfCounters
)

var counterNames = [numberOfCounters]string{"ping", "count", "add", "update", "lookup", "remove", "lend", "repay",
	"heartbeat", "stats"}

// count counts a command.
func (s *Service) count(id due.ID, n counter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.counters[id]
	if all == nil {
		all = new([numberOfCounters]int64)
		s.counters[id] = all
	}
	all[n]++
}

// counts returns how often the commands were executed.
func (s *Service) counts(id due.ID) (all [numberOfCounters]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.counters[id]; found != nil {
		all = *found
	}
	return all
}
