package sketches

import (
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/countmin"
	"github.com/atomredis/atomredis/engine/paged"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() {
	command.Register(countMinCommands)
	command.RegisterKind(engine.CountMin, kindOf(func(e *engine.Entry) *paged.Value { return e.CountMin().Stored() }))
}

var countMinCommands = []*command.Command{
	{Name: "cms.incrby", Group: "cms", Since: "2.0.0", Arity: -4, Flags: writes, ACL: command.CatCMS,
		Keys:    command.Keys("i1+r0/1/0[RW,UPDATE]"),
		Summary: "Counts items in a count-min sketch", Syntax: "key item increment [item increment ...]",
		Complexity: "O(n*d), where n is the number of items and d the depth", Do: cmdCMSIncrby},
	{Name: "cms.info", Group: "cms", Since: "2.0.0", Arity: 2, Flags: reads, ACL: command.CatCMS | command.CatFast,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Describes a count-min sketch", Syntax: "key", Complexity: "O(1)", Do: cmdCMSInfo},
	{Name: "cms.initbydim", Group: "cms", Since: "2.0.0", Arity: -4, Flags: writes, ACL: command.CatCMS | command.CatFast,
		Keys:    command.Keys("i1+r0/1/0[OW,INSERT]"),
		Summary: "Makes a count-min sketch of a size", Syntax: "key width depth [CELL_SIZE cell_size]", Complexity: "O(1)", Do: cmdCMSInitbydim},
	{Name: "cms.initbyprob", Group: "cms", Since: "2.0.0", Arity: -4, Flags: writes, ACL: command.CatCMS | command.CatFast,
		Keys:    command.Keys("i1+r0/1/0[OW,INSERT]"),
		Summary: "Makes a count-min sketch that is as exact as one wants", Syntax: "key error probability [CELL_SIZE cell_size]",
		Complexity: "O(1)", Do: cmdCMSInitbyprob},
	{Name: "cms.merge", Group: "cms", Since: "2.0.0", Arity: -4, Flags: writes, ACL: command.CatCMS,
		Keys:       command.Keys("i1+r0/1/0[RW,UPDATE] i2+n0/1/1[RO,ACCESS]"),
		Summary:    "Sets a count-min sketch to the sum of others",
		Syntax:     "key numKeys source [source ...] [WEIGHTS weight [weight ...]]",
		Complexity: "O(n*w*d), where n is the number of sketches, w the width and d the depth",
		Do:         cmdCMSMerge},
	{Name: "cms.query", Group: "cms", Since: "2.0.0", Arity: -3, Flags: reads, ACL: command.CatCMS,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Estimates how often items were counted", Syntax: "key item [item ...]",
		Complexity: "O(n*d), where n is the number of items and d the depth", Do: cmdCMSQuery},
}

const (
	errCMSExists    command.Error = "CMS: key already exists"
	errCMSMissing   command.Error = "CMS: key does not exist"
	errCMSWidth     command.Error = "CMS: invalid width"
	errCMSDepth     command.Error = "CMS: invalid depth"
	errCMSRate      command.Error = "CMS: invalid overestimation value"
	errCMSProb      command.Error = "CMS: invalid prob value"
	errCMSArguments command.Error = "CMS: invalid init arguments"
	errCMSMemory    command.Error = "CMS: Insufficient memory to create the key"
	errCMSNumber    command.Error = "CMS: Cannot parse number"
	errCMSCell      command.Error = "CMS: invalid cell size"
	errCMSOverflow  command.Error = "CMS: INCRBY overflow"
	errCMSUnderflow command.Error = "CMS: INCRBY underflow"
	errCMSMerge     command.Error = "CMS: MERGE overflow"
	errCMSNumkeys   command.Error = "CMS: invalid numkeys"
	errCMSPositive  command.Error = "CMS: Number of keys must be positive"
	errCMSKeys      command.Error = "CMS: wrong number of keys"
	errCMSWeights   command.Error = "CMS: wrong number of keys/weights"
	errCMSWeight    command.Error = "CMS: invalid weight value"
	errCMSDifferent command.Error = "CMS: width/depth is not equal"
	errCMSCells     command.Error = "CMS: cell size is not equal"
	errCMSLayout    command.Error = "CMS: one of the sketches has the layout of an older version"
)

func cmdCMSInitbydim(c *command.Ctx) {
	width, ok := c.IntIn(c.Args[2], 1, math.MaxInt64, errCMSWidth)
	if !ok {
		return
	}
	depth, ok := c.IntIn(c.Args[3], 1, math.MaxInt64, errCMSDepth)
	switch {
	case !ok:
	case width > math.MaxInt64/depth:
		c.Err(errCMSArguments)
	default:
		createCountMin(c, uint64(width), uint64(depth))
	}
}

func cmdCMSInitbyprob(c *command.Ctx) {
	rate, ok := resp.ParseFloat(c.Args[2])
	if !ok || rate <= 0 || rate >= 1 {
		c.Err(errCMSRate)
		return
	}
	probability, ok := resp.ParseFloat(c.Args[3])
	if !ok || probability <= 0 || probability >= 1 {
		c.Err(errCMSProb)
		return
	}
	if float32(probability) == 1 { // RedisBloom stores it in 32 bits
		c.Err(errCMSArguments)
		return
	}
	width, depth := countmin.SizeFor(rate, probability)
	createCountMin(c, width, depth)
}

func createCountMin(c *command.Ctx, width, depth uint64) {
	cell := int64(countmin.UsualCell)
	switch len(c.Args) {
	case 4:
	case 6:
		if !command.EqualFold(c.Args[4], "cell_size") {
			c.Err(command.ErrSyntax)
			return
		}
		var ok bool
		if cell, ok = c.IntIn(c.Args[5], 1, 8, errCMSCell); !ok {
			return
		}
		if !countmin.CellSize(uint64(cell)) {
			c.Err(errCMSCell)
			return
		}
	default:
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	if c.G.Write(c.DB, c.Args[1]) != nil { // of any type
		c.Err(errCMSExists)
		return
	}
	bytes, ok := countmin.Bytes(width, depth, uint64(cell))
	if !ok || lacksRoom(c, bytes) {
		c.Err(errCMSMemory)
		return
	}
	changed(c, c.G.Create(c.DB, c.Args[1], countmin.New(width, depth, uint64(cell))))
	c.W.OK()
}

func cmdCMSIncrby(c *command.Ctx) {
	if len(c.Args)%2 != 0 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	e := toChange(c, engine.CountMin, errCMSMissing)
	if e == nil {
		return
	}
	for i := 3; i < len(c.Args); i += 2 {
		if _, ok := resp.ParseInt(c.Args[i]); !ok {
			c.Err(errCMSNumber)
			return
		}
	}
	c.W.Array(len(c.Args)/2 - 1)
	counted := false
	for i := 2; i < len(c.Args); i += 2 {
		n, _ := resp.ParseInt(c.Args[i+1])
		switch estimate, err := e.CountMin().Add(c.Args[i], n); err {
		case nil:
			c.W.Int(int64(estimate))
			counted = true
		case countmin.ErrUnderflow:
			c.Err(errCMSUnderflow)
		default:
			c.Err(errCMSOverflow)
		}
	}
	if counted {
		changed(c, e)
	}
}

func cmdCMSQuery(c *command.Ctx) {
	e := existing(c, engine.CountMin, errCMSMissing)
	if e == nil {
		return
	}
	c.W.Array(len(c.Args) - 2)
	for _, item := range c.Args[2:] {
		c.W.Int(int64(e.CountMin().Count(item)))
	}
}

func cmdCMSInfo(c *command.Ctx) {
	if e := existing(c, engine.CountMin, errCMSMissing); e != nil {
		s := e.CountMin()
		info(c, []field{number("width", s.Width()), number("depth", s.Depth()), number("count", s.Total()),
			number("cell_size", s.Cell())})
	}
}

func cmdCMSMerge(c *command.Ctx) {
	to := toChange(c, engine.CountMin, errCMSMissing)
	if to == nil {
		return
	}
	n, ok := c.IntIn(c.Args[2], math.MinInt64, math.MaxInt64, errCMSNumkeys)
	if !ok {
		return
	}
	rest := c.Args[3:]
	switch {
	case n < 1:
		c.Err(errCMSPositive)
		return
	case n > int64(len(rest)):
		c.Err(errCMSKeys)
		return
	}
	keys, weights := rest[:n], rest[n:]
	if len(weights) > 0 {
		if !command.EqualFold(weights[0], "weights") {
			c.Err(errCMSKeys)
			return
		}
		if weights = weights[1:]; len(weights) != len(keys) {
			c.Err(errCMSWeights)
			return
		}
	}
	of := make([]countmin.Weighted, n)
	for i, key := range keys {
		of[i].Weight = 1
		if len(weights) > 0 {
			if of[i].Weight, ok = c.IntIn(weights[i], math.MinInt64, math.MaxInt64, errCMSWeight); !ok {
				return
			}
		}
		switch e, ok := c.ReadAs(key, engine.CountMin); {
		case !ok:
			return
		case e == nil:
			c.Err(errCMSMissing)
			return
		default:
			of[i].Sketch = e.CountMin()
		}
	}
	switch to.CountMin().SetSum(of) {
	case nil:
		changed(c, to)
		c.W.OK()
	case countmin.ErrSize:
		c.Err(errCMSDifferent)
	case countmin.ErrCells:
		c.Err(errCMSCells)
	case countmin.ErrLayout:
		c.Err(errCMSLayout)
	default:
		c.Err(errCMSMerge)
	}
}
