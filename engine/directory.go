package engine

import (
	"errors"
	"time"
)

// The directory of keys. After a start the keys are in the store. Until all of them are in memory, a key that is not
// found in memory is looked up in the store; shard.lost has the keys of the store that have been removed since. A key
// that was loaded or created is never looked up again.

// StoredState describes a whole stored keyspace.
type StoredState struct {
	// Spaces are the numbers of the databases' spaces; databases without one get a new number.
	Spaces []uint32
	// NextSpace and NextParts are the first unused numbers.
	NextSpace uint32
	NextParts uint64
}

// ErrTooFewDatabases is returned by Restore if more databases are stored than the keyspace has.
var ErrTooFewDatabases = errors.New("the store has more databases than are configured")

// Restore makes a new keyspace the one that its Source has. Next, the commands of the journal must be repeated, under
// guards with the time of each record; until EndReplay nothing expires by itself.
func (ks *Keyspace) Restore(s StoredState) error {
	if len(s.Spaces) > ks.databases {
		return ErrTooFewDatabases
	}
	ks.replaying = true
	if len(s.Spaces) == 0 {
		return nil
	}
	ks.spaces, ks.current = nil, nil
	ks.nextSpace = s.NextSpace
	ks.nextParts.Store(s.NextParts)
	for db := range ks.databases {
		if db < len(s.Spaces) {
			ks.addSpace(db, s.Spaces[db])
		} else {
			ks.newSpace(db)
		}
	}
	ks.fetching = true
	for i := range ks.shards {
		ks.shards[i].lost = map[spaceKey]struct{}{}
	}
	return nil
}

// EndReplay ends the phase that Restore began: from now on keys expire and changes go to j, which may be nil.
func (ks *Keyspace) EndReplay(j Journal) {
	var g Guard
	g.Lock(ks, AllShards, ks.Now())
	defer g.Unlock()
	g.SetJournal(j)
}

// SetJournal is EndReplay under a guard that holds all shards. Earlier changes under the guard are not journalled.
func (g *Guard) SetJournal(j Journal) {
	g.ks.replaying = false
	g.ks.journal = j
}

// Complete reports whether all keys are in memory. Until then, functions of a Guard over a whole database (Len,
// DBStats, RandomKey, Each, Scan) see only the keys in memory.
func (g *Guard) Complete() bool { return !g.ks.fetching }

// fetch loads a key from the store, if the store has it.
func (g *Guard) fetch(db int, key string) *Entry {
	i := g.ks.current[db]
	s := g.shard(g.ks.shardIndex(key))
	if _, ok := s.lost[spaceKey{i, key}]; ok {
		return nil
	}
	h, ok, err := g.ks.source.Head(g.ks.spaces[i].number, key)
	if err == nil && ok {
		var e *Entry
		if e, err = g.restore(db, key, h); err == nil {
			return g.unlessExpired(e)
		}
	}
	if err != nil {
		panic(&LoadError{key, err})
	}
	return nil
}

// restore adds the entry of a stored key. It keeps the head's blob.
func (g *Guard) restore(db int, key string, h Head) (*Entry, error) {
	e := newEntry(key, nil)
	e.space, e.shard, e.access = g.ks.current[db], g.ks.shardIndex(key), g.firstAccess()
	e.typ, e.flags = h.Type, flagStored|g.ks.copied
	switch {
	case h.Parts != 0:
		e.flags |= flagParts
		e.setUnloaded(g.ks.standIn(h.Parts, h.FieldParts, h.Length+h.Count)) // one of Length and Count is 0
	case h.External:
		e.flags |= flagExternal
		e.setUnloaded(g.ks.blob)
	case g.ks.tiering && len(h.Blob) >= leastLeaving && kinds[h.Type].labels == nil:
		e.setUnloaded(g.ks.inHead)
	default:
		if err := e.decode(h.Blob, g.ks); err != nil {
			return nil, err
		}
	}
	if err := g.indexStored(e); err != nil {
		return nil, err
	}
	g.add(e, &g.shard(e.shard).dbs[db])
	g.setDeadline(e, h.Deadline)
	g.setBlessed(e, h.Blessed)
	if g.ks.tiering {
		g.ks.enlist(e)
	}
	if h.FieldDeadline != 0 {
		g.setFieldDeadline(e, h.FieldDeadline)
	}
	return e, nil
}

// directoryBatch is how many keys are loaded into memory under one lock.
const directoryBatch = 256

// storedKey is a key with its stored head.
type storedKey struct {
	key  string
	head Head
}

// LoadDirectory loads all keys into memory while the keyspace is in use. heads calls fn for every key that is stored in
// a space, until fn returns false; fn keeps neither key nor head. loaded is called now and then with the number of keys
// read; it ends the loading by returning false.
func (ks *Keyspace) LoadDirectory(heads func(space uint32, fn func(key []byte, h Head) bool) error,
	loaded func(n int) bool) error {
	for {
		if done, err := ks.loadDirectory(heads, loaded); done || err != nil {
			return err
		}
	}
}

// Complete reports whether all keys are in memory.
func (ks *Keyspace) Complete() bool {
	var g Guard
	g.Lock(ks, AllShards, 0)
	defer g.unlockShards()
	return g.Complete()
}

// loadDirectory is LoadDirectory, but stops when Reset intervenes.
func (ks *Keyspace) loadDirectory(heads func(space uint32, fn func(key []byte, h Head) bool) error,
	loaded func(n int) bool) (done bool, err error) {
	var g Guard
	g.Lock(ks, AllShards, 0)
	var indexes []uint32
	if ks.fetching {
		indexes = append(indexes, ks.current...)
	}
	spaces, resets := append([]space(nil), ks.spaces...), ks.resets
	g.unlockShards()

	total := 0
	for _, i := range indexes {
		batch := make([]storedKey, 0, directoryBatch)
		var failed error
		more := true
		flush := func() bool {
			more, failed = ks.loadBatch(i, batch)
			total += len(batch)
			clear(batch)
			batch = batch[:0]
			return more && failed == nil && loaded(total)
		}
		stopped := false
		err := heads(spaces[i].number, func(key []byte, h Head) bool {
			h.Blob = append([]byte(nil), h.Blob...)
			batch = append(batch, storedKey{string(key), h})
			if len(batch) == directoryBatch {
				stopped = !flush()
			}
			return !stopped
		})
		if err == nil && !stopped {
			stopped = !flush()
		}
		if err = errors.Join(err, failed); err != nil {
			return false, err
		}
		if stopped && more {
			return true, nil // loaded returned false
		}
	}
	g.Lock(ks, AllShards, 0)
	defer g.unlockShards()
	if ks.resets != resets {
		return false, nil
	}
	ks.fetching = false
	for i := range ks.shards {
		ks.shards[i].lost = nil
	}
	return true, nil
}

// loadBatch adds the keys of a space that are not in memory yet. more is false if the space was emptied.
func (ks *Keyspace) loadBatch(space uint32, batch []storedKey) (more bool, err error) {
	var shards uint64
	for i := range batch {
		shards |= 1 << ks.shardIndex(batch[i].key)
	}
	var g Guard
	g.Lock(ks, max(shards, 1), ks.Now())
	defer ks.tellLocked(LockForLoading, time.Now())
	defer g.Unlock()
	if ks.spaces[space].dropped != 0 {
		return false, nil
	}
	db := ks.spaces[space].db
	for i := range batch {
		k := &batch[i]
		s := g.shard(ks.shardIndex(k.key))
		if _, ok := s.lost[spaceKey{space, k.key}]; ok {
			continue
		}
		if _, ok := s.dbs[db].dict.GetString(k.key); ok {
			continue
		}
		if _, err := g.restore(db, k.key, k.head); err != nil {
			return false, &LoadError{k.key, err}
		}
	}
	return true, nil
}

// dropSpace gives a database that was emptied a new space.
func (ks *Keyspace) dropSpace(db int) {
	if ks.source == nil {
		return
	}
	s := &ks.spaces[ks.current[db]]
	s.dropped = ks.epochs.Current
	ks.droppedSpaces = append(ks.droppedSpaces, s.number)
	ks.newSpace(db)
}
