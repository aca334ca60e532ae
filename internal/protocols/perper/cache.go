package perper

import (
	"bytes"
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/internal/feed"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/event"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
	"github.com/atomredis/atomredis/resp"
)

// The keys that all caches share.
var (
	cachesKey    = []byte(keys.Caches)
	typesKey     = []byte(keys.Types)
	typeNamesKey = []byte(keys.TypeNames)
	stateKey     = []byte(keys.State)
)

// key is one of the keys of a cache.
type key uint8

const (
	valuesKey key = iota
	configKey
	orderKey
	insertedKey
	expiresKey
	numberOfKeys
)

var suffixes = [numberOfKeys]string{configKey: keys.Config, orderKey: keys.Order, insertedKey: keys.Inserted,
	expiresKey: keys.Expires}

var types = [numberOfKeys]engine.Type{valuesKey: engine.Hash, configKey: engine.String, orderKey: engine.ZSet,
	insertedKey: engine.ZSet, expiresKey: engine.ZSet}

// cache is a cache under a guard that holds all its keys. Its methods take and return encoded keys and values.
type cache struct {
	c     *command.Ctx
	name  []byte
	names *[numberOfKeys][]byte
	// channel is the channel for changes; nil without subscribers.
	channel []byte
	items   []byte // the channel of new items; nil before the first
	asked   bool   // subscribers were looked up
	message []byte // the last event; reused
	// expiry is the expiry policy; nil until it is read.
	expiry *binary.Expiry
}

func cacheOf(c *command.Ctx, name []byte) *cache {
	return &cache{c: c, name: name, names: namesOf(name)}
}

// namesOf returns the keys of the cache of that name.
func namesOf(name []byte) *[numberOfKeys][]byte {
	base := len(keys.Prefix) + len(name) + 2
	buf := make([]byte, 0, int(numberOfKeys)*(base+len(keys.Inserted)))
	all := new([numberOfKeys][]byte)
	for k, suffix := range suffixes {
		start := len(buf)
		buf = append(append(append(append(append(buf, keys.Prefix...), '{'), name...), '}'), suffix...)
		all[k] = buf[start:len(buf):len(buf)]
	}
	return all
}

// keysOf is the DerivedKeys of commands whose first argument is a cache.
func keysOf(args [][]byte, fn func(key []byte)) {
	for _, k := range namesOf(args[1]) {
		fn(k)
	}
	if isFabric(args[1]) {
		fn(typesKey) // their changes need the types
		fn(leftOf(args[1]))
	}
}

// shownKeysOf is keysOf for commands whose replies have objects. Unless they end with RAW, the names of types are
// read too. Options begin at args[n]; a key before it may be the word RAW.
func shownKeysOf(n int) func(args [][]byte, fn func(key []byte)) {
	return func(args [][]byte, fn func(key []byte)) {
		keysOf(args, fn)
		if len(args) <= n || !command.EqualFold(args[len(args)-1], rawWord) {
			fn(typesKey)
		}
	}
}

// shownKeysOfMany is shownKeysOf for keys with their number before them.
func shownKeysOfMany(args [][]byte, fn func(key []byte)) {
	n, _ := resp.ParseInt(args[2])
	shownKeysOf(3+int(min(max(n, 0), int64(len(args)))))(args, fn)
}

// directoryKeysOf is keysOf for commands that create or destroy a cache.
func directoryKeysOf(args [][]byte, fn func(key []byte)) {
	keysOf(args, fn)
	if !unlisted(args) {
		fn(cachesKey)
	}
}

// unlisted reports whether a command that creates or destroys a cache leaves the list of caches as it is. With several shards
// the list and the cache may be at different servers. The option stands first, so that no other option can have it as a value.
func unlisted(args [][]byte) bool { return len(args) > 2 && command.EqualFold(args[2], "unlisted") }

// typesFit reports whether all keys have the right types. If not, it writes an error.
func (ca *cache) typesFit() bool {
	for k, name := range ca.names {
		if !effect.Is(ca.c, name, types[k]) {
			return false
		}
	}
	return true
}

// exists reports whether the cache exists.
func (ca *cache) exists() bool { return ca.c.G.Peek(ca.c.DB, ca.names[configKey]) != nil }

// check reports whether the cache exists and can be used. If not, it writes an error.
func (ca *cache) check() bool {
	if !ca.typesFit() {
		return false
	}
	if !ca.exists() {
		ca.c.Err(errNoCache)
		return false
	}
	return true
}

// create creates the cache, which must not exist, with the configuration as received. It returns an error if another
// cache has its id.
func (ca *cache) create(config []byte) command.Error {
	id := strconv.AppendInt(nil, int64(binary.Hash(string(ca.name))), 10)
	if other, ok := effect.HGet(ca.c, cachesKey, id); ok && !bytes.Equal(other, ca.name) {
		return errCacheID
	}
	ca.createUnlisted(config)
	effect.HSet(ca.c, cachesKey, id, ca.name)
	return ""
}

// createUnlisted is create without an entry in the list of caches.
func (ca *cache) createUnlisted(config []byte) {
	if config == nil {
		config = []byte{}
	}
	effect.Set(ca.c, ca.names[configKey], config)
}

// destroy removes the cache and everything in it.
func (ca *cache) destroy() {
	ca.destroyUnlisted()
	effect.HDel(ca.c, cachesKey, strconv.AppendInt(nil, int64(binary.Hash(string(ca.name))), 10))
}

// destroyUnlisted is destroy without the entry in the list of caches.
func (ca *cache) destroyUnlisted() {
	if isFabric(ca.name) {
		ca.clear()
	}
	for _, k := range ca.names {
		effect.Del(ca.c, k)
	}
	ca.tell(event.Destroyed, nil, nil, nil)
}

// config returns the configuration as received, empty without one.
func (ca *cache) config() []byte {
	if e := ca.c.G.Peek(ca.c.DB, ca.names[configKey]); e != nil && e.Type() == engine.String {
		return e.Bytes()
	}
	return nil
}

// len returns the number of keys.
func (ca *cache) len() int { return effect.HLen(ca.c, ca.names[valuesKey]) }

// get returns the value of a key, valid until the cache changes; ok is false if the key is missing.
func (ca *cache) get(k []byte) (v []byte, ok bool) {
	if ca.overdue(k) {
		return nil, false
	}
	return effect.HGet(ca.c, ca.names[valuesKey], k)
}

// put sets the value of a key and sends the event.
func (ca *cache) put(k, v []byte) {
	ca.expireOverdue(k)
	ca.changing()
	old, had := ca.get(k)
	if had && ca.watched() {
		old = bytes.Clone(old)
	}
	effect.HSet(ca.c, ca.names[valuesKey], k, v)
	fabricOf(ca.c.Host).noteReferences(ca.c.DB, ca.name, k, v)
	if had {
		ca.changed(event.Updated, k, v, old)
		ca.stay(k, ca.stays().Updated)
		ca.expireFinished(k, v)
		return
	}
	if n, ok := binary.AsLong(k); ok {
		member := keys.OrderOf(n)
		effect.ZAdd(ca.c, ca.names[orderKey], member, 0)
		serial := int64(1)
		if z := effect.ZSet(ca.c, ca.names[insertedKey]); z != nil && z.Len() > 0 {
			_, last := z.At(z.Len() - 1)
			serial = int64(last) + 1
		}
		effect.ZAdd(ca.c, ca.names[insertedKey], member, serial)
		ca.tellItem(n)
	}
	ca.changed(event.Created, k, v, nil)
	ca.stay(k, ca.stays().Created)
	ca.expireFinished(k, v)
}

// remove removes a key and sends the event. It reports whether the key existed.
func (ca *cache) remove(k []byte) bool {
	ca.expireOverdue(k)
	return ca.drop(k, event.Removed)
}

// drop removes a key and sends an event of a kind. It reports whether the key existed.
func (ca *cache) drop(k []byte, kind event.Kind) bool {
	ca.changing()
	old, had := effect.HGet(ca.c, ca.names[valuesKey], k)
	if !had {
		return false
	}
	if ca.watched() {
		old = bytes.Clone(old)
	}
	effect.HDel(ca.c, ca.names[valuesKey], k)
	if n, ok := binary.AsLong(k); ok {
		member := keys.OrderOf(n)
		effect.ZRem(ca.c, ca.names[orderKey], member)
		effect.ZRem(ca.c, ca.names[insertedKey], member)
	}
	effect.ZRem(ca.c, ca.names[expiresKey], k)
	ca.changed(kind, k, nil, old)
	return true
}

// clear removes all keys of the cache, and returns their number.
func (ca *cache) clear() int {
	n := ca.len()
	if n == 0 {
		return 0
	}
	ca.changing()
	var removed [][2][]byte
	if ca.watched() {
		for k, v := range effect.Hash(ca.c, ca.names[valuesKey]).All() {
			removed = append(removed, [2][]byte{bytes.Clone(k), bytes.Clone(v)})
		}
	}
	for _, k := range []key{valuesKey, orderKey, insertedKey, expiresKey} {
		effect.Del(ca.c, ca.names[k])
	}
	for _, entry := range removed {
		ca.changed(event.Removed, entry[0], nil, entry[1])
	}
	return n
}

// ordered calls fn with the keys that are longs between from and to, both included, in order or in reverse, until fn
// returns false or after most keys; a negative most is no limit. fn must not change the cache.
func (ca *cache) ordered(from, to int64, reverse bool, most int, fn func(n int64) bool) {
	z := effect.ZSet(ca.c, ca.names[orderKey])
	if z == nil {
		return
	}
	r := zsets.LexRange{Min: zsets.LexBound{Kind: zsets.Inclusive, Member: keys.OrderOf(from)},
		Max: zsets.LexBound{Kind: zsets.Inclusive, Member: keys.OrderOf(to)}}
	z.RangeByLex(r, reverse, 0, most, longs(fn))
}

// oldest calls fn with the keys that are longs in order of insertion, until fn returns false or after most keys; a
// negative most is no limit. fn must not change the cache.
func (ca *cache) oldest(most int, fn func(n int64) bool) {
	z := effect.ZSet(ca.c, ca.names[insertedKey])
	if z == nil || most == 0 {
		return
	}
	last := math.MaxInt
	if most > 0 {
		last = most - 1
	}
	z.RangeByRank(0, last, false, longs(fn))
}

// longs returns a function that calls fn with members of Order and Inserted, and skips invalid ones.
func longs(fn func(n int64) bool) func(member []byte, _ float64) bool {
	return func(member []byte, _ float64) bool {
		n, ok := keys.FromOrder(member)
		return !ok || fn(n)
	}
}

// heard reports whether there may be subscribers to changes.
func (ca *cache) heard() bool {
	if !ca.asked {
		if ca.asked = true; feed.Heard(ca.c) {
			ca.channel = []byte(keys.Events(string(ca.name)))
		}
	}
	return ca.channel != nil
}

// watched reports whether there may be subscribers to changes, or the Fabric uses them.
func (ca *cache) watched() bool { return ca.heard() || isFabric(ca.name) }

// changing must be called before the cache is changed.
func (ca *cache) changing() {
	if isFabric(ca.name) {
		fabricOf(ca.c.Host).changing(ca.c, ca.name)
	}
}

// changed reports a change that was made: a key with its new and its old value.
func (ca *cache) changed(kind event.Kind, k, value, old []byte) {
	if isFabric(ca.name) {
		fabricOf(ca.c.Host).changed(ca.c, ca.name, k, value, old)
	}
	ca.tell(kind, k, value, old)
}

// tellItem publishes a new key that is a long.
func (ca *cache) tellItem(n int64) {
	if !ca.heard() {
		return
	}
	if ca.items == nil {
		ca.items = []byte(keys.Items(string(ca.name)))
	}
	ca.message = strconv.AppendInt(ca.message[:0], n, 10)
	feed.Send(ca.c, ca.items, ca.message)
}

// tell publishes an event.
func (ca *cache) tell(kind event.Kind, k, value, old []byte) {
	if !ca.heard() {
		return
	}
	e := event.Event{Kind: kind, Key: k, Value: value, Old: old}
	ca.message = e.Append(ca.message[:0])
	feed.Send(ca.c, ca.channel, ca.message)
}

// registered returns the registered types. The guard must hold their key.
func registered(c *command.Ctx) binary.Types {
	known := map[int32]*binary.Type{}
	return func(id int32) *binary.Type {
		t, ok := known[id]
		if !ok {
			if b, found := effect.HGet(c, typesKey, strconv.AppendInt(nil, int64(id), 10)); found {
				if t, _ = binary.ParseType(b); t != nil && t.ID != id {
					t = nil
				}
			}
			known[id] = t
		}
		return t
	}
}
