package server

import (
	"strconv"

	"github.com/atomredis/atomredis/tracking"

	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/pubsub"
)

// origin is who makes changes: a client, or what serves it while it is blocked. It is used by the goroutine that makes
// them.
type origin struct {
	session *Session
	pushed  bool // the running command has published something to its own client; it follows the reply
	tracking.Changer
}

// observer passes on what the engine tells of keys.
type observer Server

// hearEvents chooses the events that the server hears of: those that are published, and those that doors and services
// need.
func (srv *Server) hearEvents(set *config.Settings) {
	srv.ks.SetEventClasses(set.NotifyKeyspaceEvents | engine.EventClass(srv.doors.events.Load()) | srv.serviceEvents)
}

// KeyEvent tells services of a keyspace event and publishes it.
func (o *observer) KeyEvent(owner any, class engine.EventClass, event string, db int, key string) {
	from, _ := owner.(*origin)
	if class&o.serviceEvents != 0 && from != nil {
		(*Server)(o).tellServices(from, class, event, db, key)
	}
	var by *pubsub.Subscriptions
	if from != nil && from == &from.session.origin {
		by = &from.session.subs
	}
	o.publish(by, class, event, db, key)
}

// publish publishes a keyspace event on its two channels, as far as they are enabled: for everybody, or for the clients
// of doors alone. by is the client whose command has caused it, or nil.
func (o *observer) publish(by *pubsub.Subscriptions, class engine.EventClass, event string, db int, key string) {
	if !o.pubsub.Heard() {
		return
	}
	all, doors := o.config.Get().NotifyKeyspaceEvents, engine.EventClass(o.doors.events.Load())
	if all&class == 0 {
		all = 0
	}
	if doors&class == 0 {
		doors = 0
	}
	var channel []byte
	for _, m := range [...]struct {
		form                 engine.EventClass
		name, about, payload string
	}{
		{engine.EventKeyspace, "__keyspace@", key, event},
		{engine.EventKeyevent, "__keyevent@", event, key},
	} {
		if (all|doors)&m.form == 0 {
			continue
		}
		channel = strconv.AppendInt(append(channel[:0], m.name...), int64(db), 10)
		channel = append(append(channel, "__:"...), m.about...)
		if all&m.form != 0 {
			o.pubsub.Publish(by, channel, []byte(m.payload), false)
		} else {
			o.pubsub.PublishToDoors(by, channel, []byte(m.payload))
		}
	}
}

// KeyChanged invalidates clients' caches of a key.
func (o *observer) KeyChanged(owner any, _ int, key string) {
	o.tracking.Invalidate(changerOf(owner), key)
}

// Flushed invalidates clients' caches altogether.
func (o *observer) Flushed(owner any, _ int) {
	o.tracking.InvalidateAll(changerOf(owner))
}

// changerOf returns who makes a change, of which the engine knows the owner; nil if it is nobody.
func changerOf(owner any) *tracking.Changer {
	if from, _ := owner.(*origin); from != nil {
		return &from.Changer
	}
	return nil
}
