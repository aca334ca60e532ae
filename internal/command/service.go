package command

import "github.com/atomredis/atomredis/engine"

// Service is what a protocol has in a server beside its commands: what it remembers that is in no key, and what it
// does when clients change keys or go away.
type Service interface {
	// Start is called once, before there are clients and keys.
	Start(h Host)
	// Loaded says that keys may be there of which the service has heard nothing: behind a start, and when a follower
	// becomes a master.
	Loaded()
	// Following says that the server follows another one from now on: what clients have of the service here is theirs no
	// more. A guard over everything is held.
	Following()
	// Close ends what the service does by itself, and waits for it.
	Close()

	// Events are the classes of keyspace events that Heard is called with, whatever notify-keyspace-events says.
	Events() engine.EventClass
	// Heard tells of an event that a client has caused, under the guard of its command. own says that the client's own
	// goroutine runs, and not another one that serves it. What a server that follows another one repeats no client of its
	// own has caused.
	Heard(by Client, own bool, event string, db int, key string)

	// NewClient returns what the service keeps with a new client, which Client.State gives back.
	NewClient() any
	// Gone tells that a client has gone. No guard is held.
	Gone(c Client)
	// MustSee reports whether Gone would change anything.
	MustSee(c Client) bool
}

// Keeper is a Service with something that belongs to the data but is no key, like indexes. It is stored with checkpoints, and
// is part of copies and files, as the commands that make it again.
type Keeper interface {
	Service
	// Stored returns the commands as RESP arrays, nil if there are none. A guard over everything is held.
	Stored() []byte
	// Restore makes what Stored has returned, in the place of what there is; nil is nothing. A guard over everything is held, or
	// nothing else runs yet. The keys are loaded afterwards.
	Restore(commands []byte) error
}

// ServiceID tells services apart.
type ServiceID int

// services are those that servers have, in the order of their IDs.
var services []func() Service

// RegisterService says that servers have a service, which create makes. It is called while the program starts.
func RegisterService(create func() Service) ServiceID {
	services = append(services, create)
	return ServiceID(len(services) - 1)
}

// NewServices returns the services of a new server. The ID of each is its place.
func NewServices() []Service {
	made := make([]Service, len(services))
	for i, create := range services {
		made[i] = create()
	}
	return made
}
