package server

import (
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/clients/tracking"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/config"
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

// followKeyspace has the keyspace, and those who watch it, follow the settings about keys.
func (srv *Server) followKeyspace() {
	c := srv.config
	c.Follow(srv.hearEvents, "notify-keyspace-events")
	c.Follow(func(set *config.Settings) { srv.ks.SetListLimit(set.List) }, "list-max-listpack-size")
	c.Follow(func(set *config.Settings) { srv.ks.SetImporting(set.ImportMode) }, "import-mode")
	c.Follow(func(set *config.Settings) { srv.tracking.Limit(set.TrackingTableMaxKeys) }, "tracking-table-max-keys")
}

// hearEvents chooses the events that the server hears of: those that are published, and those that doors and services
// need.
func (srv *Server) hearEvents(set *config.Settings) {
	srv.ks.SetEventClasses(set.NotifyKeyspaceEvents | engine.EventClass(srv.doors.events.Load()) | srv.serviceEvents)
}

// KeyEvent tells services of a keyspace event and publishes it.
func (o *observer) KeyEvent(owner any, class engine.EventClass, event string, db int, key string) {
	from, _ := owner.(*origin)
	if srv := (*Server)(o); class&srv.serviceEvents != 0 && from != nil && !srv.follows() {
		srv.tellServices(from, class, event, db, key)
	}
	var by *pubsub.Subscriptions
	if from != nil && from == &from.session.origin {
		by = &from.session.modes.subs
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

// SubkeyEvent publishes which fields of a hash a keyspace event is about, on those of the four channels for that which
// are enabled. Names that a channel or a message could not be told apart with are left out there.
func (o *observer) SubkeyEvent(owner any, class engine.EventClass, event string, db int, key string, subkeys [][]byte) {
	enabled := o.config.Get().NotifyKeyspaceEvents
	if enabled&class == 0 || !o.pubsub.Heard() {
		return
	}
	var by *pubsub.Subscriptions
	if from, _ := owner.(*origin); from != nil && from == &from.session.origin {
		by = &from.session.modes.subs
	}
	channel := func(name string, about ...string) []byte {
		c := strconv.AppendInt([]byte(name), int64(db), 10)
		c = append(c, "__:"...)
		for _, a := range about {
			c = append(c, a...)
		}
		return c
	}
	var list []byte
	for i, subkey := range subkeys {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(append(strconv.AppendInt(list, int64(len(subkey)), 10), ':'), subkey...)
	}
	plain := !strings.Contains(event, "|")
	if enabled&engine.EventSubkeyspace != 0 && plain {
		o.pubsub.Publish(by, channel("__subkeyspace@", key), append([]byte(event+"|"), list...), false)
	}
	if enabled&engine.EventSubkeyevent != 0 {
		message := append(strconv.AppendInt(nil, int64(len(key)), 10), ':')
		message = append(append(append(message, key...), '|'), list...)
		o.pubsub.Publish(by, channel("__subkeyevent@", event), message, false)
	}
	if enabled&engine.EventSubkeyspaceItem != 0 && !strings.Contains(key, "\n") {
		for _, subkey := range subkeys {
			o.pubsub.Publish(by, channel("__subkeyspaceitem@", key, "\n", string(subkey)), []byte(event), false)
		}
	}
	if enabled&engine.EventSubkeyspaceEvent != 0 && plain {
		o.pubsub.Publish(by, channel("__subkeyspaceevent@", event, "|", key), list, false)
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
