package session

import (
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
)

// observer passes on the engine's events.
type observer Shared

// Observer returns the observer of the keyspace's changes.
func (sh *Shared) Observer() engine.Observer { return (*observer)(sh) }

// KeyEvent tells services of a keyspace event and publishes it.
func (o *observer) KeyEvent(owner any, class engine.EventClass, event string, db int, key string) {
	from, _ := owner.(*origin)
	if sh := (*Shared)(o); class&sh.ServiceEvents != 0 && from != nil && !sh.follows() {
		sh.tellServices(from, class, event, db, key)
	}
	var by *pubsub.Subscriptions
	if from != nil && from == &from.session.origin {
		by = &from.session.modes.subs
	}
	o.publish(by, class, event, db, key)
}

// publish publishes a keyspace event on those of its two channels that are enabled: for all clients, or only for
// those of doors. by is the client whose command has caused it, or nil.
func (o *observer) publish(by *pubsub.Subscriptions, class engine.EventClass, event string, db int, key string) {
	if !o.PubSub.Heard() {
		return
	}
	all, doors := o.Config.Get().Clients.NotifyKeyspaceEvents, engine.EventClass(o.DoorEvents.Load())
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
			o.PubSub.Publish(by, channel, []byte(m.payload), false)
		} else {
			o.PubSub.PublishToDoors(by, channel, []byte(m.payload))
		}
	}
}

// SubkeyEvent publishes which fields of a hash a keyspace event is about, on those of the four channels for that
// which are enabled. It leaves out names that would make a channel or a message ambiguous.
func (o *observer) SubkeyEvent(owner any, class engine.EventClass, event string, db int, key string, subkeys [][]byte) {
	enabled := o.Config.Get().Clients.NotifyKeyspaceEvents
	if enabled&class == 0 || !o.PubSub.Heard() {
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
		o.PubSub.Publish(by, channel("__subkeyspace@", key), append([]byte(event+"|"), list...), false)
	}
	if enabled&engine.EventSubkeyevent != 0 {
		message := append(strconv.AppendInt(nil, int64(len(key)), 10), ':')
		message = append(append(append(message, key...), '|'), list...)
		o.PubSub.Publish(by, channel("__subkeyevent@", event), message, false)
	}
	if enabled&engine.EventSubkeyspaceItem != 0 && !strings.Contains(key, "\n") {
		for _, subkey := range subkeys {
			o.PubSub.Publish(by, channel("__subkeyspaceitem@", key, "\n", string(subkey)), []byte(event), false)
		}
	}
	if enabled&engine.EventSubkeyspaceEvent != 0 && plain {
		o.PubSub.Publish(by, channel("__subkeyspaceevent@", event, "|", key), list, false)
	}
}

// KeyChanged invalidates clients' caches of a key.
func (o *observer) KeyChanged(owner any, _ int, key string) {
	o.Tracking.Invalidate(changerOf(owner), key)
}

// Flushed invalidates clients' caches altogether.
func (o *observer) Flushed(owner any, _ int) {
	o.Tracking.InvalidateAll(changerOf(owner))
}
