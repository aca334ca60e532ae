package engine

import (
	"errors"
	"slices"
	"sync"
	"unsafe"

	"github.com/atomredis/atomredis/engine/labels"
	"github.com/atomredis/atomredis/engine/timeseries"
)

// An index finds values by the labels that they carry. It follows keys as they come and go. Loading the directory of
// keys adds values that are not in memory; of those it reads only the labels.

// labelIndex is the index of all databases. A caller that holds all shards may read it without the lock.
type labelIndex struct {
	mu    sync.Mutex
	index labels.Index
}

// labelled finds the labels of a type's values.
type labelled struct {
	of     func(p unsafe.Pointer) []labels.Label
	ofBlob func(blob []byte) ([]labels.Label, error)
	ofPart func(name, data []byte) (l []labels.Label, ok bool, err error)
}

var seriesLabels = &labelled{
	of:     func(p unsafe.Pointer) []labels.Label { return (*timeseries.Series)(p).Labels() },
	ofBlob: timeseries.LabelsOfBlob,
	ofPart: timeseries.LabelsOf,
}

func (e *Entry) labelKey() labels.Key { return labels.Key{Space: e.space, Name: e.Key()} }

// index sets the labels of a new entry, or of one whose labels have changed. Its value is in memory.
func (g *Guard) index(e *Entry) {
	if l := kinds[e.typ].labels; l != nil {
		g.indexAs(e, l.of(e.obj))
	}
}

func (g *Guard) indexAs(e *Entry, l []labels.Label) {
	x := &g.ks.labels
	x.mu.Lock()
	x.index.Set(e.labelKey(), l)
	x.mu.Unlock()
}

// unindex removes the labels of an entry, whose value is removed or moved, and returns them.
func (g *Guard) unindex(e *Entry) []labels.Label {
	if kinds[e.typ].labels == nil {
		return nil
	}
	x := &g.ks.labels
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.index.Delete(e.labelKey())
}

// indexStored is index for an entry whose value may only be in the store.
func (g *Guard) indexStored(e *Entry) error {
	l := kinds[e.typ].labels
	if l == nil {
		return nil
	}
	if e.flags&flagUnloaded == 0 {
		g.index(e)
		return nil
	}
	var found []labels.Label
	if id := e.unloaded().parts; id != 0 {
		err := g.ks.source.Parts(id, func(name, data []byte) (err error) {
			var ok bool
			if found, ok, err = l.ofPart(name, data); ok && err == nil {
				err = errFound
			}
			return err
		})
		if err != nil && !errors.Is(err, errFound) {
			return err
		}
	} else {
		blob, err := g.ks.source.Blob(g.ks.spaces[e.space].number, e.Key())
		if err != nil {
			return err
		}
		if found, err = l.ofBlob(blob); err != nil {
			return err
		}
	}
	g.indexAs(e, found)
	return nil
}

// errFound stops reading parts.
var errFound = errors.New("found")

// dropLabels removes the labels of all keys of a database that is about to be emptied.
func (g *Guard) dropLabels(db int) {
	g.ks.labels.index.DeleteSpace(g.ks.current[db])
}

// Relabelled must be called after the labels of an entry have changed.
func (g *Guard) Relabelled(e *Entry) { g.index(e) }

// Labelled is a key that carries labels.
type Labelled struct {
	DB     int
	Key    string
	Labels []labels.Label // read-only
}

// FindLabelled returns the keys of all databases that fulfil all conditions, sorted. At least one condition must select
// keys. The guard must hold all shards, and be Complete.
func (g *Guard) FindLabelled(matchers []labels.Matcher) []Labelled {
	var found []Labelled
	g.ks.labels.index.Find(matchers, func(key labels.Key, l []labels.Label) {
		if g.alive(key) {
			found = append(found, Labelled{g.ks.spaces[key.Space].db, key.Name, l})
		}
	})
	slices.SortFunc(found, func(a, b Labelled) int {
		return labels.Compare(labels.Key{Space: uint32(a.DB), Name: a.Key}, labels.Key{Space: uint32(b.DB), Name: b.Key})
	})
	return found
}

// LabelNames returns, sorted, the label names of all keys for which counts returns true. The guard must hold all
// shards, and be Complete.
func (g *Guard) LabelNames(counts func(db int, key string) bool) []string {
	return g.ks.labels.index.Names(g.aliveAnd(counts))
}

// LabelValues returns, sorted, the values that the label name has in all keys for which counts returns true. The guard
// must hold all shards, and be Complete.
func (g *Guard) LabelValues(name string, counts func(db int, key string) bool) []string {
	return g.ks.labels.index.Values(name, g.aliveAnd(counts))
}

func (g *Guard) aliveAnd(counts func(db int, key string) bool) func(labels.Key) bool {
	return func(key labels.Key) bool { return g.alive(key) && counts(g.ks.spaces[key.Space].db, key.Name) }
}

// alive reports whether an indexed key has not expired.
func (g *Guard) alive(key labels.Key) bool {
	p, ok := g.ks.shards[g.ks.shardIndex(key.Name)].dbs[g.ks.spaces[key.Space].db].dict.GetString(key.Name)
	return ok && !g.gone(*p)
}
