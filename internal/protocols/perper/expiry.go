package perper

import (
	"bytes"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/due"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/event"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
)

// Entries of a cache expire by its configuration, or by the command that touches them. The deadlines are in a sorted
// set of the cache. Commands on single keys treat an overdue entry as missing; a timer removes it.

func init() {
	command.Register([]*command.Command{
		entry("ttl", -3, reads|command.Fast, keysOf, "Returns in how many milliseconds an entry of a cache expires",
			"cache key [RAW]", constant, ttl),
	})
}

// Replies of PERPER.TTL for entries that do not expire.
const (
	ttlMissing = -2
	ttlForEver = -1
)

func ttl(c *command.Ctx) {
	a, ok := read(c, 1)
	if !ok {
		return
	}
	k := a.objects[0]
	if _, has := a.get(k); !has {
		c.W.Int(ttlMissing)
		return
	}
	if at, expires := a.deadline(k); expires {
		c.W.Int(at - c.Now())
		return
	}
	c.W.Int(ttlForEver)
}

const errExpiry command.Error = "ERR a duration is a number of milliseconds, -1 for ever, or -2 to leave it"

// expiryOption reads the three durations after EXPIRY. If they are wrong, it writes an error and ok is false.
func expiryOption(c *command.Ctx, args [][]byte) (e binary.Expiry, ok bool) {
	if len(args) < 3 {
		c.Err(command.ErrSyntax)
		return e, false
	}
	for i, ms := range []*int64{&e.Created, &e.Updated, &e.Accessed} {
		if *ms, ok = c.Int(args[i]); !ok {
			return e, false
		}
	}
	if !e.Valid() {
		c.Err(errExpiry)
		return e, false
	}
	return e, true
}

// expiryCode is the property's code in a configuration.
var expiryCode = []byte{byte(binary.PropertyExpiry & 0xff), byte(binary.PropertyExpiry >> 8)}

// stays returns the cache's expiry policy.
func (ca *cache) stays() binary.Expiry {
	if ca.expiry == nil {
		e := binary.NoExpiry
		if b := ca.config(); bytes.Contains(b, expiryCode) {
			if config, err := binary.ParseConfig(b); err == nil {
				e = config.Expiry()
			}
		}
		ca.expiry = &e
	}
	return *ca.expiry
}

// deadline returns the deadline of an entry in ms since 1970; ok is false without one.
func (ca *cache) deadline(k []byte) (at int64, ok bool) {
	z := effect.ZSet(ca.c, ca.names[expiresKey])
	if z == nil {
		return 0, false
	}
	score, ok := z.Score(k)
	return int64(score), ok
}

// overdue reports whether an entry's deadline has passed.
func (ca *cache) overdue(k []byte) bool {
	at, ok := ca.deadline(k)
	return ok && at <= ca.c.Now()
}

// expireOverdue removes an entry that is overdue.
func (ca *cache) expireOverdue(k []byte) {
	if ca.overdue(k) {
		ca.drop(k, event.Expired)
	}
}

// longest is the longest finite duration in ms: deadlines must be integers that a float64 represents exactly.
const longest = 1 << 52

// stay sets the deadline of an existing entry to some time from now.
func (ca *cache) stay(k []byte, ms int64) {
	switch {
	case ms == binary.AsBefore:
	case ms == binary.ForEver || ms > longest:
		effect.ZRem(ca.c, ca.names[expiresKey], k)
	case ms == 0:
		ca.drop(k, event.Expired)
	default:
		at := ca.c.Now() + ms
		effect.ZAdd(ca.c, ca.names[expiresKey], k, at)
		fabricOf(ca.c.Host).due.Note(ca.dueID(), at)
	}
}

// dueID is the ID of the cache in the schedule of deadlines.
func (ca *cache) dueID() due.ID { return due.ID{DB: ca.c.DB, Key: string(ca.names[expiresKey])} }

// accessed updates the deadline of an entry that was read. For a read-only command this happens soon after, in the
// background.
func (ca *cache) accessed(k []byte) {
	ms := ca.stays().Accessed
	if ms == binary.AsBefore {
		return
	}
	if _, has := ca.get(k); !has {
		return
	}
	if ca.c.Cmd.Flags&command.Write != 0 {
		ca.stay(k, ms)
		return
	}
	f := fabricOf(ca.c.Host)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.accesses = append(f.accesses, access{ca.c.DB, string(ca.name), string(k), ms})
	if !f.accessing {
		f.accessing = true
		f.background.Go(f.noteAccesses)
	}
}

// access is an entry that was read, and its new lifetime.
type access struct {
	db         int
	cache, key string
	ms         int64
}

// noteAccesses updates the deadlines of entries that were read.
func (f *Fabric) noteAccesses() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.accesses) > 0 && !f.closed {
		all := f.accesses
		f.accesses = nil
		f.mu.Unlock()
		for _, a := range all {
			f.onCache(a.db, a.cache, func(ca *cache) {
				if _, has := ca.get([]byte(a.key)); has {
					ca.stay([]byte(a.key), a.ms)
				}
			})
		}
		f.mu.Lock()
	}
	f.accessing = false
}

// onCache calls fn with a cache under its own guard, if the cache exists and can be used. No guard may be held.
func (f *Fabric) onCache(db int, name string, fn func(ca *cache)) {
	ks := f.host.Keyspace()
	shards := uint64(0)
	keysOf([][]byte{nil, []byte(name)}, func(k []byte) { shards |= ks.ShardOf(k) })
	due.Under(f.host, due.ID{DB: db, Key: keys.Of(name, "")}, shards, ks.Now(), func(c *command.Ctx) {
		if ca := cacheOf(c, []byte(name)); ca.exists() && ca.quietlyFit() {
			fn(ca)
		}
	})
}

// storedExpiry reports whether a key has the deadlines of a cache.
func storedExpiry(e *engine.Entry) (key string, ok bool) {
	name := string(e.Key())
	return name, e.Type() == engine.ZSet && cacheOfExpiry(name) != ""
}

// cacheOfExpiry returns the cache whose deadlines are in a key, "" for any other key.
func cacheOfExpiry(key string) string {
	name, ok := strings.CutPrefix(key, keys.Prefix+"{")
	if !ok {
		return ""
	}
	if name, ok = strings.CutSuffix(name, "}"+keys.Expires); !ok {
		return ""
	}
	return name
}

// expireBatch is how many entries are removed under one guard.
const expireBatch = 128

// expireDue removes overdue entries of a cache.
func (f *Fabric) expireDue(id due.ID, _ int64) {
	for more := true; more; {
		more = false
		f.onCache(id.DB, cacheOfExpiry(id.Key), func(ca *cache) {
			var overdue [][]byte
			next := int64(0)
			if z := effect.ZSet(ca.c, ca.names[expiresKey]); z != nil {
				z.RangeByRank(0, expireBatch, false, func(member []byte, score float64) bool {
					if next = int64(score); next <= ca.c.Now() {
						overdue = append(overdue, bytes.Clone(member))
						next = 0
					}
					return next == 0
				})
			}
			for _, k := range overdue {
				if !ca.drop(k, event.Expired) {
					effect.ZRem(ca.c, ca.names[expiresKey], k) // the entry alone was removed by another command
				}
			}
			if next != 0 {
				f.due.Note(id, next)
			}
			more = next == 0 && len(overdue) > expireBatch
		})
	}
}
