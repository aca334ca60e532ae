package engine

import (
	"errors"
	"fmt"
	"slices"
)

// Reload reads the stored state of every key again and replaces the value by it. Keys with unsaved changes stay.
// Without a Source, values are encoded and decoded in memory; those that would be stored in parts are copied. That
// checks the stored data against the data in memory. The guard must hold all shards.
func (g *Guard) Reload() error {
	var failed []error
	for i := range g.ks.shards {
		for db := range g.ks.databases {
			var entries []*Entry
			for p := range g.shard(uint8(i)).dbs[db].dict.All() {
				entries = append(entries, *p)
			}
			for _, e := range entries {
				if err := g.reload(e); err != nil {
					failed = append(failed, fmt.Errorf("reload key %q: %w", e.Key(), err))
				} else if e.typ == List && e.flags&flagUnloaded == 0 {
					e.List().Reload()
				}
			}
		}
	}
	return errors.Join(failed...)
}

func (g *Guard) reload(e *Entry) error {
	g.recount(e)
	switch {
	case g.ks.source == nil:
		return g.recode(e)
	case g.ks.frozenMark != 0 || e.flags&flagStored == 0 || e.flags&(flagOdd|flagEven) != 0:
		return nil
	case e.flags&(flagParts|flagExternal) != 0:
		if g.Unload(e) {
			return e.loadFrom(e.unloaded())
		}
		return nil
	}
	h, ok, err := g.ks.source.Head(g.ks.spaces[e.space].number, e.Key())
	switch {
	case err != nil:
		return err
	case !ok:
		return errors.New("the store does not have it")
	case h.Type != e.typ || h.Deadline != e.deadline:
		return fmt.Errorf("the store has a %s that expires at %d, not a %s that expires at %d", h.Type, h.Deadline, e.typ,
			e.deadline)
	}
	return e.decode(slices.Clone(h.Blob), g.ks)
}

// recode encodes and decodes the value of an entry, as if it had been stored and loaded.
func (g *Guard) recode(e *Entry) error {
	if e.typ == String {
		e.form = FormPlain
		return nil
	}
	if e.value().Large() {
		e.setValue(e.CopyValue())
		return nil
	}
	return e.decode(e.appendBlob(nil), g.ks)
}

// StoredLen returns the size of the stored value in bytes; for a value stored in parts, about its size in memory.
func (e *Entry) StoredLen() int {
	e.Load()
	if v := e.value(); v != nil && v.Large() {
		return e.MemoryUsage()
	}
	return len(e.appendBlob(nil))
}
