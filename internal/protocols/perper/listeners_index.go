package perper

import (
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
)

// The ids of the fields of listeners.
var (
	streamField   = binary.ID("stream")
	positionField = binary.ID("position")
)

// listener is an entry of the cache of listeners. An unreadable one has no stream.
type listener struct {
	id, stream string
	position   int64
	listens    bool
}

// readListener reads an entry of the cache. The guard must hold the key of the types.
func readListener(c *command.Ctx, k, value []byte) *listener {
	l := &listener{}
	id, isText := binary.AsString(k)
	o, err := binary.ParseObject(value)
	if err != nil || !isText {
		return l
	}
	l.id = id
	hasStream, hasPosition := false, false
	err = o.Fields(registered(c).Schemas(), func(f binary.Field) bool {
		switch f.ID {
		case streamField:
			l.stream, hasStream = binary.AsString(f.Value)
		case positionField:
			l.position, hasPosition = binary.AsLong(f.Value)
		}
		return true
	})
	l.listens = err == nil && hasStream && hasPosition
	return l
}

// listenerIndex has the listeners of a database by stream and position.
type listenerIndex struct {
	seen    seen
	entries map[string]*listener
	streams map[string]*listened
}

// listened is a stream with listeners.
type listened struct {
	listeners map[string]*listener // by the key of the cache
	at        map[int64]int        // number of listeners by position
}

// listeners returns the index of the listeners. The guard must hold the keys of the cache and of the types, and mu be
// locked.
func (f *Fabric) listeners(c *command.Ctx) (*fabricDB, *listenerIndex) {
	d := f.db(c.DB)
	x := &d.listeners
	if !x.seen.current(c) {
		f.indexListeners(c, d)
	}
	return d, x
}

// indexListeners builds the index again, and serves waiters for which a change was missed.
func (f *Fabric) indexListeners(c *command.Ctx, d *fabricDB) {
	d.listeners = listenerIndex{seen: d.listeners.seen, entries: map[string]*listener{}, streams: map[string]*listened{}}
	d.listeners.seen.note(c, listenersKey)
	if h := effect.Hash(c, listenersKey); h != nil {
		for k, v := range h.All() {
			d.listeners.add(string(k), readListener(c, k, v))
		}
	}
	for stream, waiters := range d.attached {
		if d.listeners.streams[stream] != nil {
			f.answerAll(waiters, yesReply)
		}
	}
}

// add adds an entry of the cache.
func (x *listenerIndex) add(key string, l *listener) {
	x.entries[key] = l
	if !l.listens {
		return
	}
	s := x.streams[l.stream]
	if s == nil {
		s = &listened{listeners: map[string]*listener{}, at: map[int64]int{}}
		x.streams[l.stream] = s
	}
	s.listeners[key] = l
	s.at[l.position]++
}

// remove removes an entry of the cache.
func (x *listenerIndex) remove(key string) {
	l := x.entries[key]
	delete(x.entries, key)
	if l == nil || !l.listens {
		return
	}
	s := x.streams[l.stream]
	delete(s.listeners, key)
	if s.at[l.position]--; s.at[l.position] == 0 {
		delete(s.at, l.position)
	}
	if len(s.listeners) == 0 {
		delete(x.streams, l.stream)
	}
}

// count returns how many listeners of a stream are at a position.
func (x *listenerIndex) count(stream string, position int64) int {
	if s := x.streams[stream]; s != nil {
		return s.at[position]
	}
	return 0
}

// listenerChanged handles a change of the cache of listeners.
func (f *Fabric) listenerChanged(c *command.Ctx, k, value, old []byte) {
	var was, is *listener
	if old != nil {
		was = readListener(c, k, old)
	}
	if value != nil {
		is = readListener(c, k, value)
	}
	alone := f.noteListener(c, string(k), was, is)
	if is != nil && is.listens {
		effect.ZRem(c, leftStreams, []byte(is.stream))
	}
	if alone {
		f.leave(c, leftStreams, []byte(was.stream))
	}
}

// noteListener updates the index, serves waiters, and cleans the stream. alone says that its last listener has left it.
func (f *Fabric) noteListener(c *command.Ctx, key string, was, is *listener) (alone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.db(c.DB)
	x := &d.listeners
	x.seen.note(c, listenersKey)
	x.remove(key)
	if is != nil {
		x.add(key, is)
	}
	if is != nil && is.listens {
		f.answerAll(d.attached[is.stream], yesReply)
	}
	if was != nil && was.listens && x.count(was.stream, was.position) == 0 && x.count(was.stream, persistent) == 0 {
		f.clean(streamID{c.DB, was.stream})
	}
	return was != nil && was.listens && x.streams[was.stream] == nil
}
