package session

import (
	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/clients/tracking"
	"github.com/atomredis/atomredis/internal/replication/psync"
)

// modes are the settings that a client has chosen for its connection, other than its database, user and protocol.
// They belong to the goroutine of the session's transport, except where their types say otherwise.
type modes struct {
	options   clients.Options
	subs      pubsub.Subscriptions
	tracking  tracking.Client
	monitor   bool
	follower  psync.Follower
	debugging bool // it has asked for the Lua debugger: the changes of its scripts are to be rolled back
}

// pristine reports whether all modes are those of a new connection.
func (m *modes) pristine() bool {
	return m.options == clients.Options{} && !m.subs.Any() && m.tracking.Pristine() && !m.monitor &&
		m.follower.Pristine() && !m.debugging
}
