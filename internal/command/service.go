package command

import "github.com/atomredis/atomredis/engine"

// Service is a protocol's part of the server beside its commands: state outside of keys, and hooks for changes of
// keys and for clients that disconnect.
type Service interface {
	// Start is called once, before there are clients and keys.
	Start(h Host)
	// Loaded says that keys may exist for which Heard was not called: after a start, and when a follower becomes a
	// master.
	Loaded()
	// Following says that the server follows another one from now on: its clients lose what they hold in the
	// service. A guard over everything is held.
	Following()
	// Close stops the service's goroutines and waits for them.
	Close()

	// Events are the classes of keyspace events that Heard is called with, whatever notify-keyspace-events says.
	Events() engine.EventClass
	// Heard is called for an event that a client has caused, under the guard of its command. own says that the
	// client's own goroutine calls it, and not another one that serves the client. It is not called for commands
	// that a follower repeats.
	Heard(by Client, own bool, event string, db int, key string)

	// NewClient returns the service's state for a new client, which Client.State returns.
	NewClient() any
	// Gone is called when a client has disconnected. No guard is held.
	Gone(c Client)
	// MustSee reports whether Gone would change anything.
	MustSee(c Client) bool
}

// Arriver is a Service that must learn of keys for which Heard was not called and which came after Loaded.
type Arriver interface {
	Service
	// KeysArrived says that another shard has sent keys. A guard over everything may be held.
	KeysArrived()
}

// Keeper is a Service with data outside of keys, such as indexes. The data is part of checkpoints, copies and files,
// as commands that make it again.
type Keeper interface {
	Service
	// Stored returns the commands as RESP arrays, nil if there are none. A guard over everything is held.
	Stored() []byte
	// Restore replaces the data by that of Stored; nil is no data. A guard over everything is held, or nothing else
	// runs yet. The keys are loaded afterwards.
	Restore(commands []byte) error
}

// ServiceID identifies a service.
type ServiceID int

// services create the services of a server, in the order of their IDs.
var services []func() Service

// RegisterService adds a service, made by create, to every server. It is called while the program starts.
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
