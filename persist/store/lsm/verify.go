package lsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"

	"github.com/cockroachdb/pebble/v2"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store"
)

// Verify reads everything in the store in a directory, which no process has open, without changing it. It calls report
// for every damage, and for anything superfluous or odd that is not damage. It returns the meta record as far as it can
// be read, and the first damage as the error.
func Verify(fs disk.FS, dir string, report func(string)) (store.Meta, error) {
	o := Options{FS: fs, Dir: dir}
	o.setDefaults()
	lock, err := lockDir(o.FS, dir)
	if err != nil {
		return store.Meta{}, err
	}
	v := verifier{report: report, spaces: map[uint32]bool{}, values: map[uint64]bool{}}
	v.db, err = openReadOnly(o, true)
	if err != nil {
		v.damage(located(err))
		if v.db, err = openReadOnly(o, false); err != nil {
			return store.Meta{}, errors.Join(v.err, lock.Close())
		}
	}
	db := v.db
	meta := v.run()
	return meta, errors.Join(v.err, db.close(), lock.Close())
}

// openReadOnly opens the data in a directory for Verify and Salvage. Unless strict is set, missing or truncated files
// only show when they are read.
func openReadOnly(o Options, strict bool) (*database, error) {
	dir := o.FS.PathJoin(o.Dir, dataDir)
	salvaged := o.FS.PathJoin(o.Dir, salvagedDir)
	switch ok, err := exists(o.FS, salvaged); {
	case err != nil:
		return nil, err
	case ok:
		dir = salvaged // it replaces the data when the store is opened
	}
	cache := pebble.NewCache(o.CacheSize)
	defer cache.Unref()
	return openDatabase(o.FS, dir, cache, o.Log, func(error) {}, func(p *pebble.Options) {
		p.ReadOnly = true
		p.DisableConsistencyCheck = !strict
		p.EventListener.DataCorruption = func(pebble.DataCorruptionInfo) {} // the error has it, too
	})
}

func exists(fs disk.FS, path string) (bool, error) {
	_, err := fs.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// located adds the file that an error is about, if Pebble has named it.
func located(err error) error {
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		return fmt.Errorf("%s: %w", info.Path, info.Details)
	}
	return err
}

// verifier is one run of Verify.
type verifier struct {
	db     *database
	report func(string)
	err    error
	spaces map[uint32]bool // spaces of the databases; false once a key elsewhere was reported
	values map[uint64]bool // numbers of values with parts
	key    []byte          // reused
}

func (v *verifier) damage(err error) {
	v.report(err.Error())
	if v.err == nil {
		v.err = err
	}
}

func (v *verifier) run() store.Meta {
	meta, ok, err := v.db.meta()
	if err != nil {
		v.damage(fmt.Errorf("meta record: %w", located(err)))
		if copied, ok, err := v.db.metaAt(metaCopyKey); err == nil && ok {
			meta = copied
		}
	} else if !ok && !v.empty() {
		v.damage(fmt.Errorf("meta record: %w", errMissing))
	}
	for _, space := range meta.Spaces {
		v.spaces[space] = true
	}
	// Only the function could return an error, and it returns none.
	_ = v.db.walkHeads(func(space uint32, key []byte, h engine.Head) error {
		v.head(space, key, h)
		return nil
	}, v.damage)
	if err := v.orphans(); err != nil {
		v.damage(fmt.Errorf("cannot look for data without a key: %w", located(err)))
	}
	return meta
}

// empty reports whether nothing at all is stored.
func (v *verifier) empty() bool {
	empty := true
	err := v.db.scan([]byte{prefixHead}, func(_, _ []byte) bool {
		empty = false
		return false
	})
	return empty && err == nil
}

// head verifies the data of a key.
func (v *verifier) head(space uint32, key []byte, h engine.Head) {
	if ok, known := v.spaces[space]; !ok && !known {
		v.report(fmt.Sprintf("space %d belongs to no database; its first key is %q", space, key))
		v.spaces[space] = false
	}
	for _, id := range h.AllParts() {
		if v.values[id] {
			v.damage(fmt.Errorf("key %s: its parts, those of value %d, belong to another key too", strconv.Quote(string(key)),
				id))
		}
	}
	if err := v.db.check(space, key, h, &v.key); err != nil {
		v.damage(err)
	}
	for _, id := range h.AllParts() {
		v.values[id] = true
	}
}

// orphans reports values and parts without a key.
func (v *verifier) orphans() error {
	failed := error(nil)
	err := v.db.scan([]byte{prefixBlob}, func(key, _ []byte) bool {
		v.key = append(append(v.key[:0], prefixHead), key[1:]...)
		b, ok, err := v.db.get(v.key)
		if failed = err; failed != nil {
			return false
		}
		if h, err := decodeHead(b); !ok || err == nil && !h.External {
			v.report(fmt.Sprintf("value %q belongs to no key", key[1:]))
		}
		return true
	})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	it, err := v.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixPart}, UpperBound: []byte{prefixPart + 1}})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; {
		if len(it.Key()) < partsKeySize {
			v.damage(fmt.Errorf("key %q is not that of a part", it.Key()))
			ok = it.Next()
			continue
		}
		id := binary.BigEndian.Uint64(it.Key()[1:])
		if !v.values[id] {
			v.report(fmt.Sprintf("parts of value %d belong to no key", id))
		}
		ok = it.SeekGE(after(appendPartsKey(nil, id)))
	}
	return it.Close()
}

// check reads the data of a head outside of it. buf is reused.
func (d *database) check(space uint32, key []byte, h engine.Head, buf *[]byte) error {
	var err error
	switch {
	case h.External:
		*buf = append(appendSpaceKey((*buf)[:0], prefixBlob, space), key...)
		var ok bool
		if _, ok, err = d.get(*buf); err == nil && !ok {
			err = errMissing
		}
	case h.Length != 0:
		err = engine.ReadText(h.Parts, h.Length, d.parts, func([]byte) {})
	default:
		for _, id := range h.AllParts() {
			*buf = appendPartsKey((*buf)[:0], id)
			if err = d.scan(*buf, func(_, _ []byte) bool { return true }); err != nil {
				break
			}
		}
	}
	if err != nil {
		return fmt.Errorf("value of key %s in space %d: %w", strconv.Quote(string(key)), space, located(err))
	}
	return nil
}

// walkHeads calls fn for every head, until fn fails, and returns its error. Damage is reported and skipped.
func (d *database) walkHeads(fn func(space uint32, key []byte, h engine.Head) error, damage func(error)) error {
	end := []byte{prefixHead + 1}
	for from := []byte{prefixHead}; from != nil; {
		last := from
		var failed error
		err := d.scanFrom(from, end, func(key, value []byte) bool {
			last = append(last[:0:0], key...)
			if len(key) < spaceKeySize {
				damage(fmt.Errorf("key %q is not that of a head", key))
				return true
			}
			space, name := binary.BigEndian.Uint32(key[1:]), key[spaceKeySize:]
			h, err := decodeHead(value)
			if err != nil {
				damage(fmt.Errorf("key %s in space %d: %w", strconv.Quote(string(name)), space, err))
				return true
			}
			failed = fn(space, name, h)
			return failed == nil
		})
		if failed != nil || err == nil {
			return failed
		}
		from = d.readableAfter(last, end)
		damage(fmt.Errorf("keys after %s and before %s: %w", describe(last), describe(from), located(err)))
	}
	return nil
}

// describe describes the position of a head for people.
func describe(key []byte) string {
	switch {
	case key == nil:
		return "the end"
	case len(key) < spaceKeySize:
		return "the first"
	}
	return fmt.Sprintf("%q in space %d", key[spaceKeySize:], binary.BigEndian.Uint32(key[1:]))
}

// readableAfter returns a position after last, where reading has failed, from which it succeeds again: the first one if
// the damage is contiguous, as far as few steps can tell. It returns nil if there is none before end.
func (d *database) readableAfter(last, end []byte) []byte {
	readable := func(place []byte) bool { return d.scanFrom(place, end, func(_, _ []byte) bool { return false }) == nil }
	// next finds the lowest byte from first on such that reading works from prefix followed by that byte; ok is false
	// if even 0xff fails.
	next := func(prefix []byte, first int) (b int, ok bool) {
		at := func(b int) bool { return readable(append(bytes.Clone(prefix), byte(b))) }
		if first > 0xff || !at(0xff) {
			return 0, false
		}
		return first + sort.Search(0xff-first, func(i int) bool { return at(first + i) }), true
	}
	for n := len(last); n > 0; n-- {
		first := 0
		if n < len(last) {
			first = int(last[n]) + 1
		}
		b, ok := next(last[:n], first)
		if !ok {
			continue
		}
		place := append(bytes.Clone(last[:n]), byte(b))
		// The data before it may be readable at its end.
		for b > first && len(place) < len(last)+searchDepth {
			failing := append(place[:len(place)-1:len(place)-1], byte(b-1))
			first = 0
			if b, ok = next(failing, first); !ok {
				break
			}
			place = append(failing, byte(b))
		}
		return place
	}
	return nil
}

// searchDepth is how much longer than the last readable key the position found by readableAfter may be.
const searchDepth = 32
