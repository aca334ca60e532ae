package perper

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/due"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	objects "github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
	"github.com/atomredis/atomredis/resp"
)

// With perper-unreferenced-expiry, streams and calls that nobody refers to are collected.
//
// A stream becomes a candidate when its last listener leaves it, and a call when it is finished; the directive is the time
// until it is due. Candidates with these times are in keys with the suffix keys.Left, so they are journalled as ordinary
// commands. Caches that never had a listener are never candidates.
//
// A candidate that is due is kept for the same time again if anything refers to it: a listener, an unfinished execution of
// its name, for a call also a cache of its name or a reservation, or its name as a string in any cache, wherever in a key
// or a value. For the last, a search walks over all caches in the background, a piece of one under each guard. A value that is
// written while it runs is looked at by the write, because the search may have passed its place. So what has no reference when
// the search ends had none after its start, other than those that were removed meanwhile.

// The keys of candidates.
var (
	leftStreams    = leftOf(listenersCache)
	leftExecutions = leftOf(executionsCache)
)

// leftOf returns the key of the candidates of a cache of the Fabric.
func leftOf(cache []byte) []byte { return []byte(keys.Of(string(cache), keys.Left)) }

// storedLeft reports whether a key has candidates.
func storedLeft(e *engine.Entry) (key string, ok bool) {
	key = string(e.Key())
	return key, e.Type() == engine.ZSet && (key == string(leftStreams) || key == string(leftExecutions))
}

// grace returns how long nobody must have referred to what is collected, 0 if nothing is.
func (f *Fabric) grace() int64 {
	ms, _ := resp.ParseInt([]byte(f.host.Directive(unreferencedExpiry)))
	return ms
}

// leave makes something a candidate, or keeps it for as long again.
func (f *Fabric) leave(c *command.Ctx, key, member []byte) {
	ms := f.grace()
	if ms == 0 {
		return
	}
	at := c.Now() + ms
	effect.ZAdd(c, key, member, at)
	f.left.Note(due.ID{DB: c.DB, Key: string(key)}, at)
}

// search looks for references to candidates in one database.
type search struct {
	db int

	mu    sync.Mutex
	found map[string]bool // by the names of candidates
}

// maxReferenced is the length of the longest name that is looked for.
const maxReferenced = 1 << 16

// note looks for references in an entry of a cache.
func (s *search) note(cache, k, v []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, _ := objects.AsString(k)
	if string(cache) == keys.Executions {
		s.strings(v, own) // an execution does not refer to itself, nor to the stream that it makes
		return
	}
	s.strings(k, string(cache))
	s.strings(v, string(cache))
}

// strings marks the candidates, except one, whose names are string objects within an encoded object. Bytes that only look like
// such an object keep a candidate, too.
func (s *search) strings(object []byte, except string) {
	const head = 5 // the type and the length
	for {
		at := bytes.IndexByte(object, byte(objects.String))
		if at < 0 || len(object)-at < head {
			return
		}
		object = object[at:]
		n := binary.LittleEndian.Uint32(object[1:])
		if n <= maxReferenced && int(n) <= len(object)-head {
			name := object[head : head+int(n)]
			if _, candidate := s.found[string(name)]; candidate && string(name) != except {
				s.found[string(name)] = true
			}
		}
		object = object[1:]
	}
}

// noteReferences is called under the guard of a cache, after an entry was written.
func (f *Fabric) noteReferences(db int, cache, k, v []byte) {
	if s := f.search.Load(); s != nil && s.db == db {
		s.note(cache, k, v)
	}
}

const (
	// collectBatch is how many candidates one search is for.
	collectBatch = 10_000
	// searchBatch is how many entries are looked at under one guard.
	searchBatch = 256
	// retryPause in ms is the least time until what cannot be read is tried again.
	retryPause = 1000
)

// collectLeft collects what is due and without references. If something cannot be read, nothing is collected.
func (f *Fabric) collectLeft(id due.ID, _ int64) {
	for more := true; more && !f.isClosed(); {
		var all []string
		if all, more = f.candidates(id); len(all) == 0 {
			return
		}
		s := &search{db: id.DB, found: map[string]bool{}}
		for _, member := range all {
			s.found[nameOfLeft(id, member)] = false
		}
		f.search.Store(s)
		complete := f.searchCaches(s)
		for _, member := range all {
			complete = complete && f.collectOne(id, s, member)
		}
		f.search.Store(nil)
		if !complete {
			f.left.Note(id, f.host.Keyspace().Now()+max(f.grace(), retryPause))
			return
		}
	}
}

func (f *Fabric) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// nameOfLeft returns the name of a candidate.
func nameOfLeft(id due.ID, member string) string {
	if id.Key == string(leftStreams) {
		return member
	}
	name, _ := objects.AsString([]byte(member))
	return name
}

// candidates returns those that are due, and whether there may be more. It notes when the next one is due. Without the
// directive, and in a cluster, whose other servers may have references, there are none.
func (f *Fabric) candidates(id due.ID) (all []string, more bool) {
	if f.grace() == 0 || f.host.Clustered() {
		return nil, false
	}
	ks := f.host.Keyspace()
	due.Under(f.host, id, ks.ShardOf([]byte(id.Key)), ks.Now(), func(c *command.Ctx) {
		z := effect.ZSet(c, []byte(id.Key))
		if z == nil {
			return
		}
		z.RangeByRank(0, collectBatch, false, func(member []byte, score float64) bool {
			if int64(score) > c.Now() {
				f.left.Note(id, int64(score))
				return false
			}
			if more = len(all) == collectBatch; !more {
				all = append(all, string(member))
			}
			return !more
		})
	})
	return all, more
}

// searchCaches looks at all entries of all caches of a database, and reports whether it could.
func (f *Fabric) searchCaches(s *search) (complete bool) {
	ks := f.host.Keyspace()
	var caches [][]byte
	due.Under(f.host, due.ID{DB: s.db, Key: keys.Caches}, ks.ShardOf(cachesKey), ks.Now(), func(c *command.Ctx) {
		if h := effect.Hash(c, cachesKey); h != nil {
			for _, name := range h.All() {
				caches = append(caches, bytes.Clone(name))
			}
		}
		complete = true
	})
	for _, cache := range caches {
		values := []byte(keys.Of(string(cache), ""))
		for cursor, more := uint64(0), true; more && complete; more = cursor != 0 {
			if complete = false; f.beforePiece != nil {
				f.beforePiece(string(cache))
			}
			due.Under(f.host, due.ID{DB: s.db, Key: string(values)}, ks.ShardOf(values), ks.Now(), func(c *command.Ctx) {
				next := uint64(0)
				if h := effect.Hash(c, values); h != nil {
					next = h.Scan(cursor, searchBatch, func(k, v []byte) { s.note(cache, k, v) })
				}
				cursor, complete = next, !f.isClosed()
			})
		}
	}
	return complete
}

// collectOne collects a candidate that nothing refers to. Otherwise it is due again later. It reports whether it could.
func (f *Fabric) collectOne(id due.ID, s *search, member string) (done bool) {
	ks := f.host.Keyspace()
	name, left := nameOfLeft(id, member), []byte(id.Key)
	shards := uint64(0)
	hold := func(k []byte) { shards |= ks.ShardOf(k) }
	directoryKeysOf([][]byte{nil, []byte(name)}, hold)
	fabricKeys(listenersCache, hold)
	fabricKeys(executionsCache, hold)
	due.Under(f.host, id, shards, ks.Now(), func(c *command.Ctx) {
		z := effect.ZSet(c, left)
		if z == nil {
			done = true
			return
		}
		switch at, ok := z.Score([]byte(member)); {
		case !ok:
		case int64(at) > c.Now():
			f.left.Note(id, int64(at))
		case f.refers(c, s, id, name):
			f.leave(c, left, []byte(member))
		default:
			effect.ZRem(c, left, []byte(member))
			f.remove(c, id, name)
		}
		done = !f.isClosed()
	})
	return done
}

// refers reports whether anything refers to a candidate. The guard holds the keys of the cache of its name and of the Fabric.
func (f *Fabric) refers(c *command.Ctx, s *search, id due.ID, name string) bool {
	ca := cacheOf(c, []byte(name))
	if name == "" || isFabric(ca.name) || len(name) > maxReferenced || !ca.quietlyFit() || !cacheOf(c, listenersCache).quietlyFit() ||
		!cacheOf(c, executionsCache).quietlyFit() {
		return true
	}
	f.mu.Lock()
	d, x := f.executions(c)
	_, l := f.listeners(c)
	referred := x.get(name).active() || l.streams[name] != nil
	if id.Key != string(leftStreams) {
		for _, g := range d.groups {
			referred = referred || g.locks[name] != nil
		}
		referred = referred || ca.exists()
	}
	f.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return referred || s.found[name]
}

// remove removes a stream or a finished execution.
func (f *Fabric) remove(c *command.Ctx, id due.ID, name string) {
	if id.Key == string(leftStreams) {
		if ca := cacheOf(c, []byte(name)); ca.exists() {
			ca.destroy()
		}
		return
	}
	cacheOf(c, executionsCache).remove([]byte(executionID(name)))
}
