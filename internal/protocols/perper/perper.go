// Package perper has the commands on caches of Perper Fabric. These are caches as in Ignite: keys and values are
// objects with types (package binary). docs/perper.md explains it to users.
//
// All data is in ordinary keys (package keys), and every change is journalled as ordinary commands. Each change is
// published on the channel of its cache (package event), under its guard, if there are subscribers. Keys that are
// longs, as in streams, are also indexed by value and by order of insertion.
//
// Commands take and show objects as readable text. With RAW as the last argument, objects are bytes, as the door
// uses them. This file has the table and reads the arguments.
package perper

import (
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/feed"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(commands) }

// Host is what the commands need of the server.
type Host = feed.Host

const (
	writes = command.Write | command.TouchesArbitraryKeys
	adds   = writes | command.DenyOOM
	reads  = command.ReadOnly | command.TouchesArbitraryKeys

	aclCategories = command.CatHash | command.CatSortedSet
)

// entry makes an entry of the table.
func entry(name string, arity int, flags command.Flag, keys func(args [][]byte, fn func(key []byte)), summary, syntax,
	complexity string, do func(c *command.Ctx)) *command.Command {
	return &command.Command{Name: "perper." + name, Group: "perper", Since: version.Number, Arity: arity, Flags: flags,
		ACL: aclCategories, DerivedKeys: keys, Summary: summary, Syntax: syntax, Complexity: complexity, Do: do}
}

const (
	constant = "O(1)"
	expires  = "[EXPIRY created updated accessed] "
	logN     = "O(log(N)) if the key is a long, where N is the number of keys in the cache, else O(1)"
	perKey   = "O(N), where N is the number of keys"
	ofCache  = "O(N), where N is the number of keys in the cache"
)

var commands = []*command.Command{
	entry("caches", 1, reads, one(cachesKey), "Lists the names of the caches", "", "O(N), where N is the number of caches",
		listCaches),
	entry("clear", 2, writes, keysOf, "Removes everything that is in a cache", "cache", ofCache, clearCache),
	entry("config", 2, reads|command.Fast, keysOf, "Returns the configuration that a cache was created with", "cache",
		constant, showConfig),
	entry("create", -2, adds|command.Fast, directoryKeysOf, "Creates a cache",
		"cache [UNLISTED] [IFMISSING] [CONFIG configuration | EXPIRY created updated accessed]",
		constant, create),
	entry("define", 3, adds, defineKeysOf, "Creates, drops or alters a table of SQL", "cache statement",
		"O(N), where N is the number of its columns; O(M) to drop a table, where M is the number of its rows", define),
	entry("destroy", -2, writes, directoryKeysOf, "Removes a cache with everything in it", "cache [UNLISTED]", ofCache, destroy),
	entry("get", -3, reads|command.Fast, shownKeysOf(3), "Returns the value of a key",
		"cache key "+expires+"[RAW]", constant, get),
	entry("getput", -4, adds, shownKeysOf(4), "Sets the value of a key and returns the one before",
		"cache key value "+expires+"[RAW]", logN, getPut),
	entry("getputnx", -4, adds, shownKeysOf(4), "Sets the value of a key that has none, or returns the one that it has",
		"cache key value "+expires+"[RAW]", logN, getPutNX),
	entry("getremove", -3, writes, shownKeysOf(3), "Removes a key and returns its value", "cache key [RAW]", logN, getRemove),
	entry("getreplace", -4, adds, shownKeysOf(4), "Sets the value of a key that has one, and returns that",
		"cache key value "+expires+"[RAW]", constant, getReplace),
	entry("has", -3, reads|command.Fast, keysOf, "Checks whether a cache has a key", "cache key [RAW]", constant, has),
	entry("keys", -4, reads, keysOf, "Returns the keys that are longs, in order", "cache min max [COUNT count] [REV]",
		"O(log(N)+M), where N is the number of keys in the cache and M is the number of keys returned", orderedKeys),
	entry("len", 2, reads|command.Fast, keysOf, "Counts the keys of a cache", "cache", constant, length),
	entry("mget", -4, reads, shownKeysOfMany, "Returns the values of keys",
		"cache numkeys key [key ...] "+expires+"[RAW]", perKey, mget),
	entry("mhas", -4, reads, keysOf, "Counts the keys that a cache has", "cache numkeys key [key ...] [RAW]", perKey, mhas),
	entry("modify", -3, adds, queryKeysOf, "Changes the rows of a table in SQL", "cache statement [ARGS numargs arg [arg ...]] [RAW]",
		"O(N), where N is the number of keys in the cache; O(M) for INSERT and MERGE, where M is the number of rows", modify),
	entry("mput", -5, adds, keysOf, "Sets the values of keys",
		"cache numkeys key value [key value ...] "+expires+"[RAW]",
		"O(N*log(M)), where N is the number of keys and M is the number of keys in the cache", mput),
	entry("mremove", -4, writes, keysOf, "Removes keys", "cache numkeys key [key ...] [RAW]",
		"O(N*log(M)), where N is the number of keys and M is the number of keys in the cache", mremove),
	entry("name", 2, reads|command.Fast, one(cachesKey), "Returns the name of the cache that has an id", "id", constant,
		nameOfID),
	entry("oldest", -2, reads, keysOf, "Returns the keys that are longs, in the order in which they came",
		"cache [COUNT count]", "O(log(N)+M), where N is the number of keys in the cache and M is the number of keys returned",
		oldestKeys),
	entry("put", -4, adds, keysOf, "Sets the value of a key",
		"cache key value "+expires+"[RAW]", logN, put),
	entry("putnx", -4, adds, keysOf, "Sets the value of a key that has none",
		"cache key value "+expires+"[RAW]", logN, putNX),
	entry("puttype", 2, adds, one(typesKey), "Registers a type, or more of one", "definition",
		"O(N), where N is the number of its fields and schemas", putType),
	entry("puttypename", 4, adds|command.Fast, one(typeNamesKey), "Registers the name that a type has on a platform",
		"platform id name", constant, putTypeName),
	entry("query", -3, reads, queryKeysOf, "Asks a cache in SQL", "cache statement [ARGS numargs arg [arg ...]] [RAW]",
		"O(N*log(M)), where N is the number of keys in the cache and M is the number of rows that fit", ask),
	entry("remove", -3, writes, keysOf, "Removes a key", "cache key [RAW]", logN, remove),
	entry("removeif", -4, writes, keysOf, "Removes a key that has a value", "cache key value [RAW]", logN, removeIf),
	entry("replace", -4, adds, keysOf, "Sets the value of a key that has one",
		"cache key value "+expires+"[RAW]", constant, replace),
	entry("replaceif", -5, adds, keysOf, "Sets the value of a key that has another value",
		"cache key old new "+expires+"[RAW]",
		constant, replaceIf),
	entry("scan", -3, reads, shownKeysOf(3), "Walks over the keys and values of a cache",
		"cache cursor [COUNT count] [RAW]", "O(1) for every call, O(N) for a complete walk", scan),
	entry("state", -1, adds|command.Fast, one(stateKey), "Returns or sets the state of the caches for thin clients of Ignite",
		"[ACTIVE | INACTIVE | READONLY]", constant, state),
	entry("type", -2, reads, one(typesKey), "Describes a type that is registered", "id-or-name [RAW]",
		"O(N), where N is the number of its fields and schemas", showType),
	entry("typename", 3, reads|command.Fast, one(typeNamesKey), "Returns the name that a type has on a platform",
		"platform id", constant, typeName),
	entry("types", 1, reads, one(typesKey), "Lists the types that are registered", "",
		"O(N), where N is the number of types", listTypes),
}

// one is the DerivedKeys of commands that always use the same key.
func one(key []byte) func(args [][]byte, fn func(key []byte)) {
	return func(_ [][]byte, fn func(key []byte)) { fn(key) }
}

// The errors of caches.
const (
	errNoCache     command.Error = "NOCACHE the cache does not exist"
	errCacheExists command.Error = "CACHEEXISTS the cache exists already"
	errCacheID     command.Error = "CACHEID another cache has the same id"
	errCacheName   command.Error = "ERR a cache must have a name"
	errObject      command.Error = "BADOBJECT not an object"
	errNullKey     command.Error = "BADOBJECT keys and values cannot be null"
)

// rawWord says that objects are bytes.
const rawWord = "raw"

// arguments are the arguments of a command on a cache.
type arguments struct {
	*cache
	objects [][]byte // encoded
	raw     bool     // objects are bytes, in arguments and replies
	types   binary.Types

	mayExpire bool           // the command has EXPIRY
	expiry    *binary.Expiry // nil if not given
}

// read reads a cache that must exist, and n objects. On an error it writes the reply and ok is false.
func read(c *command.Ctx, n int) (a arguments, ok bool) {
	ok = a.read(c, n)
	return a, ok
}

// readExpiring is read for commands that have EXPIRY.
func readExpiring(c *command.Ctx, n int) (a arguments, ok bool) {
	a.mayExpire = true
	ok = a.read(c, n)
	return a, ok
}

func (a *arguments) read(c *command.Ctx, n int) bool {
	return a.take(c, 2, n) && a.use(c)
}

// use prepares the cache once all arguments have been read.
func (a *arguments) use(c *command.Ctx) bool {
	a.cache = cacheOf(c, c.Args[1])
	a.cache.expiry = a.expiry
	return a.check()
}

// readMany is read for objects, or groups of objects, with their number before them. expiring is as in readExpiring.
func readMany(c *command.Ctx, group int, expiring bool) (a arguments, ok bool) {
	a.mayExpire = expiring
	n, ok := c.IntIn(c.Args[2], 1, int64(len(c.Args)), command.ErrNumKeys)
	if !ok {
		return a, false
	}
	if len(c.Args)-3 < int(n)*group {
		c.Err(command.ErrNumKeysRange)
		return a, false
	}
	ok = a.take(c, 3, int(n)*group) && a.use(c)
	return a, ok
}

// take reads n objects that are keys and values, from argument from on, and EXPIRY and RAW after them.
func (a *arguments) take(c *command.Ctx, from, n int) bool {
	if !a.takeAny(c, from, n) {
		return false
	}
	for _, object := range a.objects {
		if binary.Code(object[0]) == binary.Null {
			c.Err(errNullKey)
			return false
		}
	}
	return true
}

// takeAny is take for objects that may be null.
func (a *arguments) takeAny(c *command.Ctx, from, n int) bool {
	rest := c.Args[from+n:]
	if a.mayExpire && len(rest) > 0 && command.EqualFold(rest[0], "expiry") {
		e, ok := expiryOption(c, rest[1:])
		if !ok {
			return false
		}
		a.expiry, rest = &e, rest[4:]
	}
	switch {
	case len(rest) == 1 && command.EqualFold(rest[0], rawWord):
		a.raw = true
	case len(rest) > 0:
		c.Err(command.ErrSyntax)
		return false
	}
	a.objects = make([][]byte, n)
	for i, arg := range c.Args[from : from+n] {
		object, ok := a.object(arg)
		if !ok {
			c.Err(errObject)
			return false
		}
		a.objects[i] = object
	}
	return true
}

// object reads an argument that is an object.
func (a *arguments) object(arg []byte) (object []byte, ok bool) {
	if !a.raw {
		object, err := binary.ParseText(arg)
		return object, err == nil
	}
	if n, err := binary.Len(arg); err != nil || n != len(arg) {
		return nil, false
	}
	object, err := binary.Unwrap(arg)
	return object, err == nil
}

// show writes an object.
func (a *arguments) show(w *resp.Writer, object []byte) {
	if a.raw {
		w.Bulk(object)
		return
	}
	if a.types == nil {
		a.types = registered(a.c)
	}
	w.Bulk(binary.AppendText(nil, object, a.types))
}

// showOr writes a value into the reply, or null without one.
func (a *arguments) showOr(object []byte, ok bool) {
	if !ok {
		a.c.W.Null()
		return
	}
	a.show(a.c.W, object)
}

// yes writes 1 or 0.
func yes(c *command.Ctx, v bool) {
	if v {
		c.W.Int(1)
		return
	}
	c.W.Int(0)
}
