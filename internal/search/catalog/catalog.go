// Package catalog has the search indexes of a server, by their names and aliases, and keeps them up to date with the
// keyspace: it is the engine's Indexer. It knows neither commands nor replies.
//
// Changes of the catalog (Create, Alter, Drop, …) need a guard over the whole keyspace; reading needs none. The
// engine calls Update at the end of each guard, so the index has the changes of a command before its client gets the
// reply.
//
// Fill fills a new index with existing keys: at once if there are few, otherwise in steps between commands. Until it
// is full, queries find only the documents so far, and Index.Progress says how far it is.
package catalog

import (
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/search/index"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/spell"
)

// Catalog is the indexes of a server.
type Catalog struct {
	builders   sync.Pool // *builder
	options    func() index.Options
	generation atomic.Int64 // of the options

	ks     *engine.Keyspace
	log    *slog.Logger
	active atomic.Pointer[[]*Index] // indexes that follow keys; replaced as a whole

	mu      sync.RWMutex // protects what follows
	byName  map[string]*Index
	aliases map[string]*Index
	dicts   map[string]*spell.Dict

	// OnEmptied is called before everything is removed because the keyspace was emptied; it may be nil.
	OnEmptied func()

	stop    chan struct{}
	running sync.WaitGroup // goroutines that fill indexes
}

// builder reads documents; it has an index.Builder and reused memory.
type builder struct {
	*index.Builder
	hash  index.HashDocument
	json  index.JSONDocument
	paths index.Paths

	generation int64 // of its options
}

// Index is an index of the catalog.
type Index struct {
	*index.Index
	Name string
	// Filter reports whether a document passes the filter; nil if the index has no filter.
	Filter index.Filter

	Uses    atomic.Int64 // by queries and FT.INFO
	Dialect [5]atomic.Bool
	Cursors Cursors

	touched atomic.Int64 // time of the last query or change, in ms since 1970; only for TEMPORARY

	args    [][]byte    // of the command that makes it: FT._CREATEIFNX, with the fields of FT.ALTER
	waiting atomic.Bool // for the keys that are being loaded
	scan    atomic.Pointer[scan]
	gone    atomic.Bool
}

// scan is the progress of filling an index.
type scan struct {
	done, total atomic.Int64
}

// Progress returns which part of the keyspace has been indexed since the index was made, from 0 to 1.
func (x *Index) Progress() float64 {
	s := x.scan.Load()
	if s == nil {
		return 1
	}
	total := s.total.Load()
	if total == 0 {
		return 0
	}
	return min(float64(s.done.Load())/float64(total), 1)
}

// Filling reports whether existing keys are being indexed.
func (x *Index) Filling() bool { return x.scan.Load() != nil }

// Touch notes that the index is used.
func (x *Index) Touch(now int64) { x.touched.Store(now) }

// Touched returns when it was used last.
func (x *Index) Touched() int64 { return x.touched.Load() }

// Gone reports whether the index was dropped.
func (x *Index) Gone() bool { return x.gone.Load() }

// New returns an empty catalog over a keyspace. It calls options before it reads documents.
func New(ks *engine.Keyspace, log *slog.Logger, options func() index.Options) *Catalog {
	c := &Catalog{ks: ks, log: log, options: options, byName: map[string]*Index{}, aliases: map[string]*Index{}, dicts: map[string]*spell.Dict{},
		stop: make(chan struct{})}
	c.active.Store(&[]*Index{})
	return c
}

// Reconfigured makes the catalog read documents with new options.
func (c *Catalog) Reconfigured() { c.generation.Add(1) }

// builder returns a builder with the present options, to be put into builders.
func (c *Catalog) builder() *builder {
	now := c.generation.Load()
	if b, ok := c.builders.Get().(*builder); ok && b.generation == now {
		return b
	}
	return &builder{Builder: index.NewBuilder(c.options()), generation: now}
}

// Close ends the catalog's goroutines.
func (c *Catalog) Close() {
	close(c.stop)
	c.running.Wait()
}

// Lookup returns the index with a name or an alias, or nil if no index has it.
func (c *Catalog) Lookup(name string) *Index {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if x := c.byName[name]; x != nil {
		return x
	}
	return c.aliases[name]
}

// Named returns the index with a name, or nil if no index has it. It does not look at aliases.
func (c *Catalog) Named(name string) *Index {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byName[name]
}

// List returns all indexes in the order of their names.
func (c *Catalog) List() []*Index {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.SortedFunc(maps.Values(c.byName), func(a, b *Index) int { return strings.Compare(a.Name, b.Name) })
}

// Create adds an index, which is empty. args are those of the FT._CREATEIFNX that makes it again; they are kept. As
// for every change of the set of indexes, all shards are held, or nothing else runs yet.
func (c *Catalog) Create(def *schema.Definition, filter index.Filter, args [][]byte) *Index {
	x := &Index{Index: index.New(def), Name: def.Name, Filter: filter, args: args}
	c.mu.Lock()
	c.byName[def.Name] = x
	c.mu.Unlock()
	c.follow()
	return x
}

// Alter gives an index a definition with further fields, whose arguments are added to those of its command.
func (c *Catalog) Alter(x *Index, def *schema.Definition, fields [][]byte) {
	x.Extend(def)
	c.mu.Lock()
	defer c.mu.Unlock()
	x.args = append(slices.Clip(x.args), fields...)
}

// Drop removes an index and its aliases.
func (c *Catalog) Drop(x *Index) {
	c.mu.Lock()
	delete(c.byName, x.Name)
	maps.DeleteFunc(c.aliases, func(_ string, of *Index) bool { return of == x })
	c.mu.Unlock()
	x.gone.Store(true)
	x.Cursors.dropped()
	c.follow()
}

// Clear removes all indexes, aliases and dictionaries.
func (c *Catalog) Clear() {
	for _, x := range c.List() {
		c.Drop(x)
	}
	c.mu.Lock()
	clear(c.dicts)
	c.mu.Unlock()
	c.follow()
}

// follow makes the engine report changes as long as there is an index, or a dictionary, which is removed when the
// keyspace is emptied.
func (c *Catalog) follow() {
	list := c.List()
	c.active.Store(&list)
	c.mu.RLock()
	none := len(list)+len(c.dicts) == 0
	c.mu.RUnlock()
	if none {
		c.ks.SetIndexer(nil)
	} else {
		c.ks.SetIndexer(c)
	}
}

// Update implements engine.Indexer.
func (c *Catalog) Update(g *engine.Guard, keys []string) {
	list := *c.active.Load()
	if len(list) == 0 {
		return
	}
	b := c.builder()
	defer c.builders.Put(b)
	for _, x := range list {
		c.safely(x, func() { b.update(g, x, keys) })
	}
}

// safely calls do, which updates an index. A panic is a bug that must not reach the client that changed the
// documents.
func (c *Catalog) safely(x *Index, do func()) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("a document could not be indexed", "index", x.Name, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	do()
}

// update updates an index with the present state of keys. Keys that were changed together are updated together.
func (b *builder) update(g *engine.Guard, x *Index, keys []string) {
	if x.waiting.Load() {
		return
	}
	def := x.Definition()
	if def.Temporary > 0 {
		x.Touch(g.Now())
	}
	if len(keys) == 1 {
		if def.Covers(keys[0]) {
			b.put(g, x, keys[0], nil)
		}
		return
	}
	covered := keys[:0:0]
	for i, key := range keys {
		// The last mention of a key counts. Searching all of them would take quadratic time.
		if def.Covers(key) && !slices.Contains(keys[i+1:min(len(keys), i+maxLook)], key) {
			covered = append(covered, key)
		}
	}
	if len(covered) == 0 {
		return
	}
	x.Change(func(put func(string, index.Document, index.Filter), remove func(string)) {
		for _, key := range covered {
			if d := b.document(g.PeekString(0, key), def.Source); d != nil {
				put(strings.Clone(key), d, x.Filter)
			} else {
				remove(key)
			}
		}
	}, b.Builder)
}

// maxLook is how far ahead update searches for another mention of a key; updating a key twice does no harm.
const maxLook = 32

// put updates an index with the present state of a key. Its shard is held. e is its entry, nil if it must be looked
// up.
func (b *builder) put(g *engine.Guard, x *Index, key string, e *engine.Entry) {
	if e == nil {
		e = g.PeekString(0, key)
	}
	d := b.document(e, x.Definition().Source)
	if d == nil {
		x.Remove(key)
		return
	}
	b.Build(x.Index, strings.Clone(key), d, x.Filter)
	x.Put(b.Builder)
}

// document returns an entry as a document of an index over a type of keys; nil if it is none.
func (b *builder) document(e *engine.Entry, s schema.Source) index.Document {
	switch {
	case e == nil:
	case s == schema.Hash && e.Type() == engine.Hash:
		b.hash.Hash = e.Hash()
		return &b.hash
	case s == schema.JSON && e.Type() == engine.JSON:
		b.json.Root, b.json.Paths = e.JSON().Root(), &b.paths
		return &b.json
	}
	return nil
}

// Emptied implements engine.Indexer. As in Redis, indexes are removed with the keyspace.
func (c *Catalog) Emptied(_ *engine.Guard, db int) {
	if db == 0 {
		if c.OnEmptied != nil {
			c.OnEmptied()
		}
		c.Clear()
	}
}

// Exchanged implements engine.Indexer: indexes are over database 0, whatever it holds.
func (c *Catalog) Exchanged(g *engine.Guard) {
	for _, x := range c.List() {
		x.Clear()
		c.Fill(g, x)
	}
}

// Alias returns the index with an alias, or nil if no index has it.
func (c *Catalog) Alias(name string) *Index {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.aliases[name]
}

// SetAlias sets an alias of an index; nil removes the alias.
func (c *Catalog) SetAlias(name string, x *Index) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x == nil {
		delete(c.aliases, name)
	} else {
		c.aliases[name] = x
	}
}

// Aliases returns the other names of an index, in order.
func (c *Catalog) Aliases(x *Index) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var names []string
	for name, of := range c.aliases {
		if of == x {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Dictionary calls do with a dictionary for spelling, or with nil if no dictionary has the name. The dictionary must not be read
// after do returns.
func (c *Catalog) Dictionary(name string, do func(d *spell.Dict)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	do(c.dicts[name])
}

// HasDictionary reports whether there is a dictionary of a name.
func (c *Catalog) HasDictionary(name string) (has bool) {
	c.Dictionary(name, func(d *spell.Dict) { has = d != nil })
	return has
}

// AddToDictionary adds words and returns how many are new.
func (c *Catalog) AddToDictionary(name string, words []string) (added int) {
	defer c.follow()
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dicts[name]
	if d == nil {
		d = &spell.Dict{}
		c.dicts[name] = d
	}
	for _, w := range words {
		if d.Add(w) {
			added++
		}
	}
	return added
}

// RemoveFromDictionary removes words and returns how many were there.
func (c *Catalog) RemoveFromDictionary(name string, words []string) (removed int) {
	defer c.follow()
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dicts[name]
	if d == nil {
		return 0
	}
	for _, w := range words {
		if d.Delete(w) {
			removed++
		}
	}
	if d.Len() == 0 {
		delete(c.dicts, name)
	}
	return removed
}
