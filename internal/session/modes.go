package session

import (
	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/clients/tracking"
	"github.com/atomredis/atomredis/internal/replication/psync"
)

// modes are what a client has asked its connection to be, beside its database, its user and its protocol. They belong
// to the goroutine of the session's transport, but for what their types say.
type modes struct {
	options   clients.Options
	subs      pubsub.Subscriptions
	tracking  tracking.Client
	monitor   bool
	follower  psync.Follower
	debugging bool // it has asked for the Lua debugger: it wants to see its scripts' changes rolled back
}

// pristine reports whether none is other than at the beginning.
func (m *modes) pristine() bool {
	return m.options == clients.Options{} && !m.subs.Any() && m.tracking.Pristine() && !m.monitor &&
		m.follower.Pristine() && !m.debugging
}
