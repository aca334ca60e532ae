package sketches

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/bloom"
	"github.com/atomredis/atomredis/engine/paged"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() {
	command.Register(bloomCommands)
	kind := kindOf(func(e *engine.Entry) *paged.Value { return e.Bloom().Stored() })
	kind.Rebuild = func(r *command.Rebuilder, key []byte, e *engine.Entry) {
		rebuildInChunks(r, "BF.LOADCHUNK", key, e.Bloom())
	}
	command.RegisterKind(engine.Bloom, kind)
}

var bloomCommands = []*command.Command{
	{Name: "bf.add", Group: "bf", Since: "1.0.0", Arity: 3, Flags: writes, ACL: command.CatBloom,
		Keys:    command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Adds an item to a Bloom filter, which is made if it does not exist", Syntax: "key item",
		Complexity: "O(k), where k is the number of hash functions of the last sub-filter", Do: cmdBFAdd},
	{Name: "bf.card", Group: "bf", Since: "2.4.4", Arity: 2, Flags: fastRead, ACL: command.CatBloom | command.CatFast,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Counts the items that were new to a Bloom filter", Syntax: "key", Complexity: "O(1)", Do: cmdBFCard},
	{Name: "bf.debug", Group: "bf", Since: "1.0.0", Arity: 2, Flags: fastRead, ACL: command.CatBloom,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Describes the sub-filters of a Bloom filter", Syntax: "key",
		Complexity: "O(n), where n is the number of sub-filters", Do: cmdBFDebug},
	{Name: "bf.exists", Group: "bf", Since: "1.0.0", Arity: 3, Flags: fastRead, ACL: command.CatBloom,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Tells whether an item may have been added to a Bloom filter", Syntax: "key item",
		Complexity: "O(k), where k is the number of hash functions of all sub-filters", Do: cmdBFExists},
	{Name: "bf.info", Group: "bf", Since: "1.0.0", Arity: -2, Flags: fastRead, ACL: command.CatBloom | command.CatFast,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Describes a Bloom filter", Syntax: "key [<CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION>]",
		Complexity: "O(1)", Do: cmdBFInfo},
	{Name: "bf.insert", Group: "bf", Since: "1.0.0", Arity: -4, Flags: writes, ACL: command.CatBloom,
		Keys:    command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Adds items to a Bloom filter, which is made as the options say if it does not exist",
		Syntax: "key [CAPACITY capacity] [ERROR error] [EXPANSION expansion] [NOCREATE] [NONSCALING] ITEMS item " +
			"[item ...]",
		Complexity: "O(k*n), where k is the number of hash functions and n the number of items", Do: cmdBFInsert},
	{Name: "bf.loadchunk", Group: "bf", Since: "1.0.0", Arity: 4, Flags: writes, ACL: command.CatBloom,
		Keys:    command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Loads a piece of a Bloom filter that BF.SCANDUMP has given", Syntax: "key iterator data",
		Complexity: "O(n), where n is the length of the data", Do: cmdBFLoadchunk},
	{Name: "bf.madd", Group: "bf", Since: "1.0.0", Arity: -3, Flags: writes, ACL: command.CatBloom,
		Keys:    command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Adds items to a Bloom filter, which is made if it does not exist", Syntax: "key item [item ...]",
		Complexity: "O(k*n), where k is the number of hash functions and n the number of items", Do: cmdBFMadd},
	{Name: "bf.mexists", Group: "bf", Since: "1.0.0", Arity: -3, Flags: fastRead, ACL: command.CatBloom,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Tells which items may have been added to a Bloom filter", Syntax: "key item [item ...]",
		Complexity: "O(k*n), where k is the number of hash functions and n the number of items", Do: cmdBFMexists},
	{Name: "bf.reserve", Group: "bf", Since: "1.0.0", Arity: -4, Flags: writes, ACL: command.CatBloom | command.CatFast,
		Keys:    command.Keys("i1+r0/1/0[OW,INSERT]"),
		Summary: "Makes a Bloom filter", Syntax: "key error_rate capacity [EXPANSION expansion] [NONSCALING]",
		Complexity: "O(1)", Do: cmdBFReserve},
	{Name: "bf.scandump", Group: "bf", Since: "1.0.0", Arity: 3, Flags: fastRead, ACL: command.CatBloom,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns a Bloom filter piece by piece", Syntax: "key iterator",
		Complexity: "O(n), where n is the capacity", Do: cmdBFScandump},
}

const (
	errRate          command.Error = "ERR bad error rate"
	errRateRange     command.Error = "ERR error rate must be in the range (0.000000, 1.000000)"
	errCapacity      command.Error = "ERR bad capacity"
	errCapacityRange command.Error = "ERR capacity must be in the range [1, 1073741824]"
	errNoExpansion   command.Error = "ERR no expansion"
	errExpansion     command.Error = "ERR bad expansion"
	errExpansionIn   command.Error = "ERR expansion must be in the range [0, 32768]"
	errNonscaling    command.Error = "Nonscaling filters cannot expand"
	errBFFull        command.Error = "ERR non scaling filter is full"
	errBFLimit       command.Error = "ERR problem inserting into filter"
	errBFMemory      command.Error = "ERR Insufficient memory to create filter"

	errInsertRate      command.Error = "Bad error rate"
	errInsertCapacity  command.Error = "Bad capacity"
	errInsertExpansion command.Error = "Bad expansion"
	errInfoField       command.Error = "Invalid information value"
	errScanIterator    command.Error = "Second argument must be numeric"

	// maxRate takes the place of higher rates, as in Redis.
	maxRate = 0.25
)

// createBloom returns a new filter under key argument 1. On an error it writes the reply and returns nil.
func createBloom(c *command.Ctx, o bloom.Options) *engine.Entry {
	bytes, ok := o.Bytes()
	if !ok || lacksRoom(c, bytes) {
		c.Err(errBFMemory)
		return nil
	}
	return c.G.Create(c.DB, c.Args[1], bloom.New(o))
}

// bloomToAdd returns the filter under key argument 1 to add items to, and creates it with the directives' options if
// needed. On an error it writes the reply and returns nil.
func bloomToAdd(c *command.Ctx) *engine.Entry {
	e, ok := c.WriteAs(c.Args[1], engine.Bloom)
	if !ok || e != nil {
		return e
	}
	return createDefaultBloom(c, defaultBloom(c))
}

// defaultBloom returns the options of the directives.
func defaultBloom(c *command.Ctx) bloom.Options {
	rate, _ := resp.ParseFloat([]byte(c.Host.Directive("bf-error-rate")))
	return bloom.Options{Rate: min(rate, maxRate), Capacity: setting(c, "bf-initial-size"),
		Expansion: uint32(setting(c, "bf-expansion-factor"))}
}

// createDefaultBloom is createBloom for a command that does not have all options, so the options are journalled
// before it.
func createDefaultBloom(c *command.Ctx, o bloom.Options) *engine.Entry {
	e := createBloom(c, o)
	if e != nil {
		c.Journal([]byte("BF.RESERVE"), c.Args[1], strconv.AppendFloat(nil, o.Rate, 'g', -1, 64),
			strconv.AppendUint(nil, o.Capacity, 10), []byte("EXPANSION"), strconv.AppendUint(nil, uint64(o.Expansion), 10))
		c.Journal(c.Args...)
	}
	return e
}

func bloomError(err error) command.Error {
	if err == bloom.ErrFull {
		return errBFFull
	}
	return errBFLimit
}

func cmdBFAdd(c *command.Ctx) {
	e := bloomToAdd(c)
	if e == nil {
		return
	}
	added, err := e.Bloom().Add(c.Args[2])
	if err != nil {
		c.Err(bloomError(err))
		return
	}
	if added {
		changed(c, e)
	}
	c.W.Bool(added)
}

func cmdBFMadd(c *command.Ctx) {
	if e := bloomToAdd(c); e != nil {
		addToBloom(c, e, c.Args[2:])
	}
}

// addToBloom adds items up to the first that cannot be added, and replies.
func addToBloom(c *command.Ctx, e *engine.Entry, items [][]byte) {
	m, n, any := c.W.Defer(), 0, false
	for _, item := range items {
		added, err := e.Bloom().Add(item)
		n++
		if err != nil {
			c.Err(bloomError(err))
			break
		}
		any = any || added
		c.W.Bool(added)
	}
	c.W.EndArray(m, n)
	if any {
		changed(c, e)
	}
}

func cmdBFInsert(c *command.Ctx) {
	o, create, scaling := defaultBloom(c), true, true
	words := c.Options(2)
	for words.Next() && !words.Is("items") {
		switch {
		case words.Is("nocreate"):
			create = false
		case words.Is("nonscaling"):
			scaling = false
		case words.Is("capacity") && words.More():
			n, ok := c.IntIn(words.Arg(), 1, maxCapacity, errInsertCapacity)
			if !ok {
				return
			}
			o.Capacity = uint64(n)
		case words.Is("error") && words.More():
			rate, ok := resp.ParseFloat(words.Arg())
			if !ok || rate <= 0 || rate >= 1 {
				c.Err(errInsertRate)
				return
			}
			o.Rate = rate
		case words.Is("expansion") && words.More():
			n, ok := c.IntIn(words.Arg(), 0, maxExpansion, errInsertExpansion)
			if !ok {
				return
			}
			o.Expansion = uint32(n)
		default:
			c.Err(errUnknown)
			return
		}
	}
	items := words.Rest()
	switch {
	case len(items) == 0:
		c.Err(command.WrongArity(c.Cmd))
		return
	case !scaling:
		o.Expansion = 0
	}
	o.Rate = min(o.Rate, maxRate)
	e, ok := c.WriteAs(c.Args[1], engine.Bloom)
	switch {
	case !ok:
		return
	case e == nil && !create:
		c.Err(errNotFound)
		return
	case e == nil:
		if e = createDefaultBloom(c, o); e == nil {
			return
		}
	}
	addToBloom(c, e, items)
}

func cmdBFReserve(c *command.Ctx) {
	var o bloom.Options
	var ok bool
	if len(c.Args) > 7 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	switch o.Rate, ok = resp.ParseFloat(c.Args[2]); {
	case !ok:
		c.Err(errRate)
		return
	case o.Rate <= 0 || o.Rate >= 1:
		c.Err(errRateRange)
		return
	}
	o.Rate = min(o.Rate, maxRate)
	capacity, ok := c.IntIn(c.Args[3], -1<<63, 1<<63-1, errCapacity)
	if !ok {
		return
	}
	if capacity < 1 || capacity > maxCapacity {
		c.Err(errCapacityRange)
		return
	}
	o.Capacity = uint64(capacity)
	scaling, expansion := true, int64(-1)
	for words := c.Options(4); words.Next(); { // other words are ignored, as in Redis
		switch {
		case words.Is("nonscaling"):
			scaling = false
		case words.Is("expansion") && !words.More():
			c.Err(errNoExpansion)
			return
		case words.Is("expansion"):
			if expansion, ok = c.IntIn(words.Arg(), -1<<63, 1<<63-1, errExpansion); !ok {
				return
			}
			if expansion < 0 || expansion > maxExpansion {
				c.Err(errExpansionIn)
				return
			}
		}
	}
	switch {
	case !scaling && expansion > 0:
		c.Err(errNonscaling)
		return
	case expansion >= 0:
		o.Expansion = uint32(expansion)
	case scaling:
		o.Expansion = uint32(setting(c, "bf-expansion-factor"))
	}
	e, ok := c.WriteAs(c.Args[1], engine.Bloom)
	if !ok {
		return
	}
	if e != nil {
		c.Err(errExists)
		return
	}
	if e = createBloom(c, o); e == nil {
		return
	}
	if scaling && expansion < 0 {
		c.Journal(c.Args[0], c.Args[1], c.Args[2], c.Args[3], []byte("EXPANSION"), strconv.AppendUint(nil, uint64(o.Expansion), 10))
	}
	changed(c, e)
	c.W.OK()
}

func cmdBFExists(c *command.Ctx) {
	e := of(c, c.Args[1], engine.Bloom)
	c.W.Bool(e != nil && e.Bloom().Has(c.Args[2]))
}

func cmdBFMexists(c *command.Ctx) {
	e := of(c, c.Args[1], engine.Bloom)
	c.W.Array(len(c.Args) - 2)
	for _, item := range c.Args[2:] {
		c.W.Bool(e != nil && e.Bloom().Has(item))
	}
}

func cmdBFCard(c *command.Ctx) {
	e, ok := c.ReadAs(c.Args[1], engine.Bloom)
	switch {
	case !ok:
	case e == nil:
		c.W.Int(0)
	default:
		c.W.Int(int64(e.Bloom().Items()))
	}
}

func cmdBFInfo(c *command.Ctx) {
	if len(c.Args) > 3 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	e := existing(c, engine.Bloom, errNotFound)
	if e == nil {
		return
	}
	f := e.Bloom()
	fields := []field{
		number("Capacity", f.Capacity()),
		number("Size", f.Size()),
		number("Number of filters", len(f.Links())),
		number("Number of items inserted", f.Items()),
		{name: "Expansion rate"},
	}
	if expansion, ok := f.Grows(); ok {
		fields[4] = number("Expansion rate", uint64(expansion))
	} else {
		fields[4].value = (*resp.Writer).Null
	}
	if len(c.Args) == 2 {
		info(c, fields)
		return
	}
	i := slices.Index([]string{"capacity", "size", "filters", "items", "expansion"}, command.Lower(c.Args[2]))
	switch {
	case i < 0:
		c.Err(errInfoField)
	case c.W.Proto == 3:
		info(c, fields[i:i+1])
	default:
		c.W.Array(1)
		fields[i].value(c.W)
	}
}

func cmdBFDebug(c *command.Ctx) {
	e := existing(c, engine.Bloom, errNotFound)
	if e == nil {
		return
	}
	f := e.Bloom()
	c.W.Array(1 + len(f.Links()))
	c.W.Simple(fmt.Sprintf("size:%d", f.Items()))
	for _, l := range f.Links() {
		c.W.Simple(fmt.Sprintf("bytes:%d bits:%d hashes:%d hashwidth:%d capacity:%d size:%d ratio:%g", l.Bytes, 8*l.Bytes,
			l.Hashes, f.HashBits(), l.Capacity, l.Items, l.Rate))
	}
}

func cmdBFScandump(c *command.Ctx) {
	at, ok := c.IntIn(c.Args[2], -1<<63, 1<<63-1, errScanIterator)
	if !ok {
		return
	}
	if e := existing(c, engine.Bloom, errNotFound); e != nil {
		scanDump(c, at, e.Bloom(), func() { c.W.Bulk(nil) })
	}
}

func cmdBFLoadchunk(c *command.Ctx) {
	at, ok := c.IntIn(c.Args[2], -1<<63, 1<<63-1, errIterator)
	if !ok {
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.Bloom)
	switch {
	case !ok:
		return
	case e == nil && at != 1:
		c.Err(errNotFound)
		return
	case e == nil:
		f, err := bloom.LoadHeader(c.Args[3])
		if err != nil {
			c.Err(errChunk)
			return
		}
		if lacksRoom(c, f.Bytes()) {
			c.Err(errBFMemory)
			return
		}
		e = c.G.Create(c.DB, c.Args[1], f)
	case at <= 0:
		c.Err(errChunk)
		return
	default:
		if err := e.Bloom().LoadChunk(uint64(at), c.Args[3]); err != nil {
			c.Err(command.Error("ERR " + err.Error()))
			return
		}
	}
	changed(c, e)
	c.W.OK()
}
