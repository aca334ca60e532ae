package perper

import (
	"cmp"
	"math"
	"slices"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/due"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
)

// This file has the commands on listeners of streams, and removes items that no listener will read.

func init() { command.Register(listenerCommands) }

var listenerCommands = []*command.Command{
	entry("attached", -2, reads|command.Blocking, listenerKeysOf, "Waits until a stream has a listener",
		"stream [TIMEOUT milliseconds]", constant, attached),
	entry("listen", -3, adds, listenedKeysOf, "Sets the position of a listener of a stream, which is created if need be",
		"stream listener [position]", constant, listen),
	entry("listeners", 2, reads, listenerKeysOf, "Lists the listeners of a stream with their positions", "stream",
		"O(N log N), where N is the number of listeners", listListeners),
}

// listenerKeysOf is the DerivedKeys of commands on listeners.
func listenerKeysOf(_ [][]byte, fn func(key []byte)) { fabricKeys(listenersCache, fn) }

// listenedKeysOf is the DerivedKeys of PERPER.LISTEN, which creates the cache and registers the type.
func listenedKeysOf(_ [][]byte, fn func(key []byte)) {
	fabricKeys(listenersCache, fn)
	fn(cachesKey)
}

// listenerType is the type of listeners, which is registered unless an agent has done so.
var listenerType = &binary.Type{ID: binary.ID("StreamListener"), Name: "StreamListener", Fields: []binary.TypeField{
	{Name: "stream", Code: int32(binary.String), ID: streamField},
	{Name: "position", Code: int32(binary.Long), ID: positionField},
}, Schemas: []binary.Schema{schemaOf(streamField, positionField)}}

// schemaOf returns the schema of objects with these fields.
func schemaOf(fields ...int32) binary.Schema {
	return binary.Schema{ID: binary.SchemaID(fields), Fields: fields}
}

// listen places the listener after all items unless a position is given.
func listen(c *command.Ctx) {
	position, ok := int64(math.MaxInt64), true
	if len(c.Args) > 4 {
		c.Err(command.ErrSyntax)
		return
	}
	if len(c.Args) == 4 {
		if position, ok = c.Int(c.Args[3]); !ok {
			return
		}
	}
	ca := cacheOf(c, listenersCache)
	if !listenersFit(c) || !ca.createFor(listenerType) {
		return
	}
	ca.put(binary.AppendString(nil, string(c.Args[2])), binary.AppendObject(nil, listenerType.ID, []binary.Field{
		{ID: streamField, Value: binary.AppendString(nil, string(c.Args[1]))},
		{ID: positionField, Value: binary.AppendLong(nil, position)},
	}))
	c.W.OK()
}

// createFor creates the cache if needed, and registers a type of its values. If it cannot, it writes an error and ok
// is false.
func (ca *cache) createFor(t *binary.Type) (ok bool) {
	if !effect.Is(ca.c, cachesKey, engine.Hash) {
		return false
	}
	if !ca.exists() {
		if err := ca.create(nil); err != "" {
			ca.c.Err(err)
			return false
		}
	}
	if err := register(ca.c, t); err != nil {
		ca.c.Err(command.Error("BADTYPE " + err.Error()))
		return false
	}
	return true
}

// attached replies with 1 when the stream has a listener.
func attached(c *command.Ctx) {
	timeout, ok := timeoutOption(c, 2)
	if !ok || !listenersFit(c) {
		return
	}
	f, stream, db := fabricOf(c.Host), string(c.Args[1]), c.DB
	f.mu.Lock()
	_, x := f.listeners(c)
	has := x.streams[stream] != nil
	f.mu.Unlock()
	switch {
	case has:
		c.W.Int(1)
	case c.NoBlock:
		c.W.Null()
	default:
		f.await(c, timeout, func(w *waiter) bool {
			has := f.db(db).listeners.streams[stream] != nil
			if has {
				f.answer(answer{waiter: w, reply: yesReply})
			}
			return has
		}, func(w *waiter) (leave func()) { return joinList(f.db(db).attached, stream, w) })
	}
}

// listenersFit reports whether the listeners can be read. If not, it writes an error.
func listenersFit(c *command.Ctx) bool {
	return cacheOf(c, listenersCache).typesFit() && effect.Is(c, typesKey, engine.Hash)
}

// listListeners replies with the name and position of each listener, in order of position.
func listListeners(c *command.Ctx) {
	if !listenersFit(c) {
		return
	}
	f := fabricOf(c.Host)
	f.mu.Lock()
	_, x := f.listeners(c)
	var all []listener
	if s := x.streams[string(c.Args[1])]; s != nil {
		for _, l := range s.listeners {
			all = append(all, *l)
		}
	}
	f.mu.Unlock()
	slices.SortFunc(all, func(a, b listener) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.id, b.id))
	})
	c.W.Array(len(all))
	for _, l := range all {
		c.W.Array(2)
		c.W.BulkString(l.id)
		c.W.Int(l.position)
	}
}

// When the last listener at a position of a stream moves on or is removed, items are removed from the oldest on, up
// to the first item at which a listener is. A listener at the smallest position keeps all items.

// persistent is the position of listeners that keep all items.
const persistent = math.MinInt64

// cleanBatch is how many items are removed under one guard.
const cleanBatch = 128

// clean makes a goroutine clean a stream soon. mu must be locked.
func (f *Fabric) clean(id streamID) {
	if slices.Contains(f.dirty, id) || f.closed {
		return
	}
	f.dirty = append(f.dirty, id)
	if !f.cleaning {
		f.cleaning = true
		f.background.Go(f.cleanStreams)
	}
}

// cleanStreams cleans the streams that are dirty, a piece of one at a time.
func (f *Fabric) cleanStreams() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.dirty) > 0 && !f.closed {
		id := f.dirty[0]
		f.dirty = f.dirty[1:]
		f.mu.Unlock()
		more := f.cleanSome(id)
		f.mu.Lock()
		if more {
			f.clean(id)
		}
	}
	f.cleaning = false
}

// cleanSome removes some items of a stream, and reports whether there are more.
func (f *Fabric) cleanSome(id streamID) (more bool) {
	ks := f.host.Keyspace()
	shards := uint64(0)
	hold := func(k []byte) { shards |= ks.ShardOf(k) }
	keysOf([][]byte{nil, []byte(id.stream)}, hold)
	fabricKeys(listenersCache, hold)
	due.Under(f.host, due.ID{DB: id.db, Key: keys.Of(id.stream, "")}, shards, ks.Now(), func(c *command.Ctx) {
		ca := cacheOf(c, []byte(id.stream))
		if !ca.quietlyFit() || !cacheOf(c, listenersCache).quietlyFit() {
			return
		}
		f.mu.Lock()
		_, x := f.listeners(c)
		var removed []int64
		if x.count(id.stream, persistent) == 0 {
			ca.oldest(cleanBatch, func(n int64) bool {
				if x.count(id.stream, n) > 0 {
					return false
				}
				removed = append(removed, n)
				return true
			})
		}
		f.mu.Unlock()
		for _, n := range removed {
			ca.remove(binary.AppendLong(nil, n))
		}
		more = len(removed) == cleanBatch
	})
	return more
}

// quietlyFit is typesFit without a reply.
func (ca *cache) quietlyFit() bool {
	for k, name := range ca.names {
		if e := ca.c.G.Peek(ca.c.DB, name); e != nil && e.Type() != types[k] {
			return false
		}
	}
	return true
}
