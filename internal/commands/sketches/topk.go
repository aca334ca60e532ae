package sketches

import (
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/paged"
	"github.com/atomredis/atomredis/engine/topk"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() {
	command.Register(topKCommands)
	command.RegisterKind(engine.TopK, kindOf(func(e *engine.Entry) *paged.Value { return e.TopK().Stored() }))
}

var topKCommands = []*command.Command{
	{Name: "topk.add", Group: "topk", Since: "2.0.0", Arity: -3, Flags: writes, ACL: command.CatTopK,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Counts items once each in a top-k list", Syntax: "key item [item ...]",
		Complexity: "O(n*d), where n is the number of items and d the depth", Do: cmdTopKAdd},
	{Name: "topk.count", Group: "topk", Since: "2.0.0", Arity: -3, Flags: reads, ACL: command.CatTopK,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Estimates how often items were counted", Syntax: "key item [item ...]",
		Complexity: "O(n*d), where n is the number of items and d the depth", Do: cmdTopKCount},
	{Name: "topk.incrby", Group: "topk", Since: "2.0.0", Arity: -4, Flags: writes, ACL: command.CatTopK,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Counts items several times in a top-k list", Syntax: "key item increment [item increment ...]",
		Complexity: "O(n*d*i), where n is the number of items, d the depth and i the largest increment",
		Do:         cmdTopKIncrby},
	{Name: "topk.info", Group: "topk", Since: "2.0.0", Arity: 2, Flags: reads, ACL: command.CatTopK | command.CatFast,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Describes a top-k list", Syntax: "key", Complexity: "O(1)", Do: cmdTopKInfo},
	{Name: "topk.list", Group: "topk", Since: "2.0.0", Arity: -2, Flags: reads, ACL: command.CatTopK,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the items that come most often", Syntax: "key [WITHCOUNT]",
		Complexity: "O(k*log(k)), where k is the number of items", Do: cmdTopKList},
	{Name: "topk.query", Group: "topk", Since: "2.0.0", Arity: -3, Flags: reads, ACL: command.CatTopK,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Tells which items are in a top-k list", Syntax: "key item [item ...]",
		Complexity: "O(n), where n is the number of items", Do: cmdTopKQuery},
	{Name: "topk.reserve", Group: "topk", Since: "2.0.0", Arity: -3, Flags: writes, ACL: command.CatTopK | command.CatFast,
		Keys:    command.Keys("i1+r0/1/0[OW,INSERT]"),
		Summary: "Makes a top-k list", Syntax: "key topk [width depth decay]", Complexity: "O(1)", Do: cmdTopKReserve},
}

const (
	errTopKExists    command.Error = "TopK: key already exists"
	errTopKMissing   command.Error = "TopK: key does not exist"
	errTopK          command.Error = "TopK: invalid k"
	errTopKWidth     command.Error = "TopK: invalid width"
	errTopKDepth     command.Error = "TopK: invalid depth"
	errTopKDecay     command.Error = "TopK: invalid decay value. must be '<= 1' & '> 0'"
	errTopKMemory    command.Error = "ERR Insufficient memory to create topk data structure"
	errTopKWithCount command.Error = "WITHCOUNT keyword expected"
	errTopKIncrement command.Error = "TopK: increment must be an integer greater or equal to 0" +
		"                            and smaller or equal to 100,000"
)

func cmdTopKReserve(c *command.Ctx) {
	if len(c.Args) != 3 && len(c.Args) != 6 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	if c.G.Write(c.DB, c.Args[1]) != nil { // of any type
		c.Err(errTopKExists)
		return
	}
	width, depth, decay := int64(8), int64(7), 0.9
	k, ok := c.IntIn(c.Args[2], 1, math.MaxUint32, errTopK)
	if !ok {
		return
	}
	if len(c.Args) == 6 {
		if width, ok = c.IntIn(c.Args[3], 1, math.MaxUint32, errTopKWidth); !ok {
			return
		}
		if depth, ok = c.IntIn(c.Args[4], 1, math.MaxUint32, errTopKDepth); !ok {
			return
		}
		if decay, ok = resp.ParseFloat(c.Args[5]); !ok || decay <= 0 || decay > 1 {
			c.Err(errTopKDecay)
			return
		}
	}
	bytes, ok := topk.Bytes(uint64(width), uint64(depth))
	if !ok || k > topk.MaxK || lacksRoom(c, bytes) {
		c.Err(errTopKMemory)
		return
	}
	changed(c, c.G.Create(c.DB, c.Args[1], topk.New(uint64(k), uint64(width), uint64(depth), decay)))
	c.W.OK()
}

func cmdTopKAdd(c *command.Ctx) {
	e := toChange(c, engine.TopK, errTopKMissing)
	if e == nil {
		return
	}
	c.W.Array(len(c.Args) - 2)
	for _, item := range c.Args[2:] {
		countTopK(c, e, item, 1)
	}
	changed(c, e)
}

// countTopK counts an item, and replies with the item that it displaces.
func countTopK(c *command.Ctx, e *engine.Entry, item []byte, n uint32) {
	if expelled, ok := e.TopK().Add(item, n); ok {
		c.W.BulkString(expelled)
	} else {
		c.W.Null()
	}
}

func cmdTopKIncrby(c *command.Ctx) {
	if len(c.Args)%2 != 0 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	e := toChange(c, engine.TopK, errTopKMissing)
	if e == nil {
		return
	}
	c.W.Array(len(c.Args)/2 - 1)
	any := false
	for i := 2; i < len(c.Args); i += 2 {
		if n, ok := c.IntIn(c.Args[i+1], 0, topk.MaxIncrement, errTopKIncrement); ok {
			countTopK(c, e, c.Args[i], uint32(n))
			any = true
		}
	}
	if any {
		changed(c, e)
	}
}

func cmdTopKQuery(c *command.Ctx) {
	e := existing(c, engine.TopK, errTopKMissing)
	if e == nil {
		return
	}
	c.W.Array(len(c.Args) - 2)
	for _, item := range c.Args[2:] {
		c.W.Bool(e.TopK().Has(item))
	}
}

func cmdTopKCount(c *command.Ctx) {
	e := existing(c, engine.TopK, errTopKMissing)
	if e == nil {
		return
	}
	c.W.Array(len(c.Args) - 2)
	for _, item := range c.Args[2:] {
		c.W.Int(int64(e.TopK().Count(item)))
	}
}

func cmdTopKList(c *command.Ctx) {
	if len(c.Args) > 3 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	counts := len(c.Args) == 3
	if counts && !command.EqualFold(c.Args[2], "withcount") {
		c.Err(errTopKWithCount)
		return
	}
	e := existing(c, engine.TopK, errTopKMissing)
	if e == nil {
		return
	}
	n := e.TopK().Len()
	if counts {
		n *= 2
	}
	c.W.Array(n)
	e.TopK().Each(func(item string, count uint32) {
		c.W.BulkString(item)
		if counts {
			c.W.Int(int64(count))
		}
	})
}

func cmdTopKInfo(c *command.Ctx) {
	if e := existing(c, engine.TopK, errTopKMissing); e != nil {
		l := e.TopK()
		info(c, []field{number("k", l.K()), number("width", l.Width()), number("depth", l.Depth()),
			{"decay", func(w *resp.Writer) { w.Double(l.Decay()) }}})
	}
}
