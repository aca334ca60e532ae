package sketches

import (
	"fmt"
	"math"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/cuckoo"
	"github.com/atomredis/atomredis/engine/paged"
	"github.com/atomredis/atomredis/internal/command"
)

func init() {
	command.Register(cuckooCommands)
	kind := kindOf(func(e *engine.Entry) *paged.Value { return e.Cuckoo().Stored() })
	kind.Rebuild = func(r *command.Rebuilder, key []byte, e *engine.Entry) {
		rebuildInChunks(r, "CF.LOADCHUNK", key, e.Cuckoo())
	}
	command.RegisterKind(engine.Cuckoo, kind)
}

const inSubFilters = "O(n), where n is the number of sub-filters"

var cuckooCommands = []*command.Command{
	{Name: "cf.add", Group: "cf", Since: "1.0.0", Arity: 3, Flags: writes, ACL: command.CatCuckoo,
		Keys:    command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Adds an item to a cuckoo filter, which is made if it does not exist", Syntax: "key item",
		Complexity: inSubFilters, Do: cmdCFAdd},
	{Name: "cf.addnx", Group: "cf", Since: "1.0.0", Arity: 3, Flags: writes, ACL: command.CatCuckoo,
		Keys:    command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Adds an item to a cuckoo filter unless it seems to be there", Syntax: "key item",
		Complexity: inSubFilters, Do: cmdCFAddnx},
	{Name: "cf.compact", Group: "cf", Since: "1.0.0", Arity: 2, Flags: command.Write | command.Module,
		ACL: command.CatCuckoo, Keys: command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Moves items of a cuckoo filter to its older sub-filters, and removes those that are empty", Syntax: "key",
		Complexity: "O(n), where n is the size of the filter", Do: cmdCFCompact},
	{Name: "cf.count", Group: "cf", Since: "1.0.0", Arity: 3, Flags: fastRead, ACL: command.CatCuckoo,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Estimates how often an item is in a cuckoo filter", Syntax: "key item", Complexity: inSubFilters,
		Do: cmdCFCount},
	{Name: "cf.debug", Group: "cf", Since: "1.0.0", Arity: 2, Flags: fastRead, ACL: command.CatCuckoo,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Describes a cuckoo filter in a line", Syntax: "key", Complexity: inSubFilters, Do: cmdCFDebug},
	{Name: "cf.del", Group: "cf", Since: "1.0.0", Arity: 3, Flags: command.Write | command.Fast | command.Module,
		ACL: command.CatCuckoo, Keys: command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Deletes an item once from a cuckoo filter", Syntax: "key item", Complexity: inSubFilters, Do: cmdCFDel},
	{Name: "cf.exists", Group: "cf", Since: "1.0.0", Arity: 3, Flags: fastRead, ACL: command.CatCuckoo,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Tells whether an item may be in a cuckoo filter", Syntax: "key item", Complexity: inSubFilters,
		Do: cmdCFExists},
	{Name: "cf.info", Group: "cf", Since: "1.0.0", Arity: 2, Flags: fastRead, ACL: command.CatCuckoo | command.CatFast,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Describes a cuckoo filter", Syntax: "key", Complexity: "O(1)", Do: cmdCFInfo},
	{Name: "cf.insert", Group: "cf", Since: "1.0.0", Arity: -4, Flags: writes, ACL: command.CatCuckoo,
		Keys:    command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Adds items to a cuckoo filter, which is made as the options say if it does not exist",
		Syntax:  "key [CAPACITY capacity] [NOCREATE] ITEMS item [item ...]", Complexity: inItems, Do: cmdCFInsert},
	{Name: "cf.insertnx", Group: "cf", Since: "1.0.0", Arity: -4, Flags: writes, ACL: command.CatCuckoo,
		Keys:    command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Adds items to a cuckoo filter unless they seem to be there",
		Syntax:  "key [CAPACITY capacity] [NOCREATE] ITEMS item [item ...]", Complexity: inItems, Do: cmdCFInsertnx},
	{Name: "cf.loadchunk", Group: "cf", Since: "1.0.0", Arity: 4, Flags: writes, ACL: command.CatCuckoo,
		Keys:    command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Loads a piece of a cuckoo filter that CF.SCANDUMP has given", Syntax: "key iterator data",
		Complexity: "O(n), where n is the length of the data", Do: cmdCFLoadchunk},
	{Name: "cf.mexists", Group: "cf", Since: "1.0.0", Arity: -3, Flags: fastRead, ACL: command.CatCuckoo,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Tells which items may be in a cuckoo filter", Syntax: "key item [item ...]", Complexity: inItems,
		Do: cmdCFMexists},
	{Name: "cf.reserve", Group: "cf", Since: "1.0.0", Arity: -3, Flags: writes, ACL: command.CatCuckoo | command.CatFast,
		Keys:    command.Keys("i1+r0/1/0[OW,INSERT]"),
		Summary: "Makes a cuckoo filter",
		Syntax: "key capacity [BUCKETSIZE bucketsize] [MAXITERATIONS maxiterations] " +
			"[EXPANSION expansion]",
		Complexity: "O(1)", Do: cmdCFReserve},
	{Name: "cf.scandump", Group: "cf", Since: "1.0.0", Arity: 3, Flags: fastRead, ACL: command.CatCuckoo,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns a cuckoo filter piece by piece", Syntax: "key iterator",
		Complexity: "O(n), where n is the capacity", Do: cmdCFScandump},
}

const inItems = "O(n*m), where n is the number of items and m that of sub-filters"

const (
	errCFCapacityRange command.Error = "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]"
	errCFInsertRange   command.Error = "Capacity must be in the range [cf-bucket-size * 2, 1073741824]"
	errCFFull          command.Error = "Filter is full"
	errCFExpansions    command.Error = "Maximum expansions reached"
	errCFLimit         command.Error = "ERR Insufficient memory"
	errCFDelete        command.Error = "Not found"
	errCFCompact       command.Error = "Cuckoo filter was not found"
	errCFPosition      command.Error = "Invalid position"
	errCFHeader        command.Error = "Invalid header"
	errCFCreate        command.Error = "Couldn't create filter!"
	errCFChunk         command.Error = "Couldn't load chunk!"
	errCFMemory        command.Error = "ERR Insufficient memory to create filter"
)

// defaultCuckoo returns the options of the directives.
func defaultCuckoo(c *command.Ctx) cuckoo.Options {
	return cuckoo.Options{Capacity: setting(c, "cf-initial-size"), BucketSize: uint32(setting(c, "cf-bucket-size")),
		Iterations: uint32(setting(c, "cf-max-iterations")), Expansion: uint32(setting(c, "cf-expansion-factor"))}
}

// createCuckoo returns a new filter under key argument 1, and journals all its options. On an error it writes the
// reply and returns nil.
func createCuckoo(c *command.Ctx, o cuckoo.Options) *engine.Entry {
	o.Capacity = max(o.Capacity, 2*uint64(o.BucketSize)) // directives may contradict each other
	bytes, ok := o.Bytes()
	if !ok || lacksRoom(c, bytes) {
		c.Err(errCFMemory)
		return nil
	}
	number := func(n uint32) []byte { return strconv.AppendUint(nil, uint64(n), 10) }
	c.Journal([]byte("CF.RESERVE"), c.Args[1], strconv.AppendUint(nil, o.Capacity, 10), []byte("BUCKETSIZE"), number(o.BucketSize),
		[]byte("MAXITERATIONS"), number(o.Iterations), []byte("EXPANSION"), number(o.Expansion))
	return c.G.Create(c.DB, c.Args[1], cuckoo.New(o))
}

// cuckooToAdd returns the filter under key argument 1 to add items to, and creates it if needed. On an error it
// writes the reply and returns nil.
func cuckooToAdd(c *command.Ctx, o cuckoo.Options) *engine.Entry {
	e, ok := c.WriteAs(c.Args[1], engine.Cuckoo)
	switch {
	case !ok:
		return nil
	case e == nil:
		if e = createCuckoo(c, o); e != nil {
			c.Journal(c.Args...)
		}
	case !c.Origin.In(command.Accepted) && uint64(len(e.Cuckoo().Links())) >= setting(c, "cf-max-expansions"):
		c.Err(errCFExpansions) // even if there is room, as in Redis
		return nil
	}
	return e
}

func cmdCFAdd(c *command.Ctx) {
	if e := cuckooToAdd(c, defaultCuckoo(c)); e != nil {
		addOneToCuckoo(c, e)
	}
}

func cmdCFAddnx(c *command.Ctx) {
	e := cuckooToAdd(c, defaultCuckoo(c))
	switch {
	case e == nil:
	case e.Cuckoo().Has(c.Args[2]):
		c.W.Bool(false)
	default:
		addOneToCuckoo(c, e)
	}
}

// addOneToCuckoo adds argument 2, and replies.
func addOneToCuckoo(c *command.Ctx, e *engine.Entry) {
	switch err := e.Cuckoo().Add(c.Args[2], math.MaxInt); err {
	case nil:
		changed(c, e)
		c.W.Bool(true)
	case cuckoo.ErrFull:
		c.Err(errCFFull)
	default:
		c.Err(errCFLimit)
	}
}

func cmdCFInsert(c *command.Ctx) {
	insertIntoCuckoo(c, false, func(added bool) {
		switch {
		case added:
			c.W.Bool(true)
		case c.W.Proto == 3:
			c.W.Bool(false)
		default:
			c.W.Int(-1)
		}
	})
}

func cmdCFInsertnx(c *command.Ctx) {
	insertIntoCuckoo(c, true, func(added bool) {
		if added {
			c.W.Int(1)
		} else {
			c.W.Int(-1)
		}
	})
}

// insertIntoCuckoo adds items; with new it skips those that the filter seems to have. It calls reply for each item
// that is added or for which there is no room.
func insertIntoCuckoo(c *command.Ctx, new bool, reply func(added bool)) {
	o, create := defaultCuckoo(c), true
	words := c.Options(2)
	for words.Next() && !words.Is("items") {
		switch {
		case words.Is("nocreate"):
			create = false
		case words.Is("capacity") && words.More():
			n, ok := c.IntIn(words.Arg(), math.MinInt64, math.MaxInt64, errInsertCapacity)
			if !ok {
				return
			}
			if n < 2*int64(o.BucketSize) || n > maxCapacity {
				c.Err(errCFInsertRange)
				return
			}
			o.Capacity = uint64(n)
		case !words.More():
			c.Err(command.WrongArity(c.Cmd))
			return
		default:
			c.Err(errUnknown)
			return
		}
	}
	items := words.Rest()
	if len(items) == 0 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	if !create {
		if e, ok := c.ReadAs(c.Args[1], engine.Cuckoo); !ok || e == nil {
			if ok {
				c.Err(errNotFound)
			}
			return
		}
	}
	e := cuckooToAdd(c, o)
	if e == nil {
		return
	}
	any := false
	c.W.Array(len(items))
	for _, item := range items {
		if new && e.Cuckoo().Has(item) {
			c.W.Int(0)
			continue
		}
		added := e.Cuckoo().Add(item, math.MaxInt) == nil
		any = any || added
		reply(added)
	}
	if any {
		changed(c, e)
	}
}

func cmdCFReserve(c *command.Ctx) {
	if len(c.Args)%2 == 0 || len(c.Args) > 9 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	o := defaultCuckoo(c)
	capacity, ok := c.IntIn(c.Args[2], math.MinInt64, math.MaxInt64, errInsertCapacity)
	if !ok {
		return
	}
	for i := 3; i+1 < len(c.Args); i += 2 { // other words are ignored, as in Redis
		switch word, value := c.Args[i], c.Args[i+1]; {
		case command.EqualFold(word, "bucketsize"):
			ok = cuckooOption(c, "BUCKETSIZE", value, 1, cuckoo.MaxBucketSize, &o.BucketSize)
		case command.EqualFold(word, "maxiterations"):
			ok = cuckooOption(c, "MAXITERATIONS", value, 1, cuckoo.MaxIterations, &o.Iterations)
		case command.EqualFold(word, "expansion"):
			ok = cuckooOption(c, "EXPANSION", value, 0, maxExpansion, &o.Expansion)
		}
		if !ok {
			return
		}
	}
	if capacity < 2*int64(o.BucketSize) || capacity > maxCapacity {
		c.Err(errCFCapacityRange)
		return
	}
	o.Capacity = uint64(capacity)
	e, ok := c.WriteAs(c.Args[1], engine.Cuckoo)
	if !ok {
		return
	}
	if e != nil {
		c.Err(errExists)
		return
	}
	if e = createCuckoo(c, o); e != nil {
		changed(c, e)
		c.W.OK()
	}
}

// cuckooOption reads an option of CF.RESERVE; if it is wrong, it writes an error and ok is false.
func cuckooOption(c *command.Ctx, name string, value []byte, min, max int64, to *uint32) (ok bool) {
	n, ok := c.IntIn(value, math.MinInt64, math.MaxInt64, command.Error("Couldn't parse "+name))
	if !ok {
		return false
	}
	if n < min || n > max {
		c.Err(command.Error(fmt.Sprintf("%s: value must be in the range [%d, %d]", name, min, max)))
		return false
	}
	*to = uint32(n)
	return true
}

func cmdCFDel(c *command.Ctx) {
	e := c.G.Write(c.DB, c.Args[1])
	switch {
	case e == nil || e.Type() != engine.Cuckoo:
		c.Err(errCFDelete)
	case e.Cuckoo().Delete(c.Args[2]):
		changed(c, e)
		c.W.Bool(true)
	default:
		c.W.Bool(false)
	}
}

func cmdCFCompact(c *command.Ctx) {
	e := toChange(c, engine.Cuckoo, errCFCompact)
	if e == nil {
		return
	}
	if e.Cuckoo().Compact() {
		changed(c, e)
	}
	c.W.OK()
}

func cmdCFExists(c *command.Ctx) {
	e := of(c, c.Args[1], engine.Cuckoo)
	c.W.Bool(e != nil && e.Cuckoo().Has(c.Args[2]))
}

func cmdCFMexists(c *command.Ctx) {
	e := of(c, c.Args[1], engine.Cuckoo)
	c.W.Array(len(c.Args) - 2)
	for _, item := range c.Args[2:] {
		c.W.Bool(e != nil && e.Cuckoo().Has(item))
	}
}

func cmdCFCount(c *command.Ctx) {
	if e := of(c, c.Args[1], engine.Cuckoo); e != nil {
		c.W.Int(int64(e.Cuckoo().Count(c.Args[2])))
		return
	}
	c.W.Int(0)
}

func cmdCFInfo(c *command.Ctx) {
	e := existing(c, engine.Cuckoo, errNotFound)
	if e == nil {
		return
	}
	f := e.Cuckoo()
	info(c, []field{
		number("Size", f.Size()),
		number("Number of buckets", f.Links()[0]),
		number("Number of filters", len(f.Links())),
		number("Number of items inserted", f.Items()),
		number("Number of items deleted", f.Deleted()),
		number("Bucket size", f.BucketSize()),
		number("Expansion rate", f.Expansion()),
		number("Max iterations", f.Iterations()),
	})
}

func cmdCFDebug(c *command.Ctx) {
	if e := existing(c, engine.Cuckoo, errNotFound); e != nil {
		f := e.Cuckoo()
		c.W.Simple(fmt.Sprintf("bktsize:%d buckets:%d items:%d deletes:%d filters:%d max_iterations:%d expansion:%d",
			f.BucketSize(), f.Links()[0], f.Items(), f.Deleted(), len(f.Links()), f.Iterations(), f.Expansion()))
	}
}

func cmdCFScandump(c *command.Ctx) {
	at, ok := c.IntIn(c.Args[2], 0, math.MaxInt64, errCFPosition)
	if !ok {
		return
	}
	switch e := existing(c, engine.Cuckoo, errNotFound); {
	case e == nil:
	case e.Cuckoo().Items() == 0:
		c.W.Array(2)
		c.W.Int(0)
		c.W.Null()
	default:
		scanDump(c, at, e.Cuckoo(), c.W.Null)
	}
}

func cmdCFLoadchunk(c *command.Ctx) {
	at, ok := c.IntIn(c.Args[2], 1, math.MaxInt64, errCFPosition)
	if !ok {
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.Cuckoo)
	switch {
	case !ok:
		return
	case e != nil && at == 1:
		c.Err(errExists)
		return
	case e == nil && at != 1:
		c.Err(errNotFound)
		return
	case e == nil:
		f, err := cuckoo.LoadHeader(c.Args[3])
		switch err {
		case nil:
		case cuckoo.ErrHeader:
			c.Err(errCFHeader)
			return
		default:
			c.Err(errCFCreate)
			return
		}
		if lacksRoom(c, f.Bytes()) {
			c.Err(errCFMemory)
			return
		}
		e = c.G.Create(c.DB, c.Args[1], f)
	case e.Cuckoo().LoadChunk(uint64(at), c.Args[3]) != nil:
		c.Err(errCFChunk)
		return
	}
	changed(c, e)
	c.W.OK()
}
