package sketches

import (
	"math"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/paged"
	"github.com/atomredis/atomredis/engine/tdigest"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

func init() {
	command.Register(tDigestCommands)
	command.RegisterKind(engine.TDigest, kindOf(func(e *engine.Entry) *paged.Value { return e.TDigest().Stored() }))
}

const inNodes = "O(n) for each, where n is the number of nodes"

var tDigestCommands = []*command.Command{
	{Name: "tdigest.add", Group: "tdigest", Since: "2.4.0", Arity: -3, Flags: writes, ACL: command.CatTDigest,
		Keys:    command.Keys("i1+r0/1/0[RW,INSERT]"),
		Summary: "Adds numbers to a t-digest", Syntax: "key value [value ...]",
		Complexity: "O(n), where n is the number of values", Do: cmdTDigestAdd},
	{Name: "tdigest.byrank", Group: "tdigest", Since: "2.4.0", Arity: -3, Flags: reads,
		ACL: command.CatTDigest | command.CatFast, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Estimates the numbers that have ranks", Syntax: "key rank [rank ...]", Complexity: inNodes,
		Do: cmdTDigestByrank},
	{Name: "tdigest.byrevrank", Group: "tdigest", Since: "2.4.0", Arity: -3, Flags: reads,
		ACL: command.CatTDigest | command.CatFast, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Estimates the numbers that have ranks, counted from the greatest on",
		Syntax:  "key reverse_rank [reverse_rank ...]", Complexity: inNodes, Do: cmdTDigestByrevrank},
	{Name: "tdigest.cdf", Group: "tdigest", Since: "2.4.0", Arity: -3, Flags: reads,
		ACL: command.CatTDigest | command.CatFast, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Estimates which parts of the numbers are below values", Syntax: "key value [value ...]",
		Complexity: inNodes, Do: cmdTDigestCDF},
	{Name: "tdigest.create", Group: "tdigest", Since: "2.4.0", Arity: -2, Flags: writes,
		ACL: command.CatTDigest | command.CatFast, Keys: command.Keys("i1+r0/1/0[OW,INSERT]"),
		Summary: "Makes a t-digest", Syntax: "key [COMPRESSION compression]", Complexity: "O(1)", Do: cmdTDigestCreate},
	{Name: "tdigest.info", Group: "tdigest", Since: "2.4.0", Arity: 2, Flags: reads,
		ACL: command.CatTDigest | command.CatFast, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Describes a t-digest", Syntax: "key", Complexity: "O(1)", Do: cmdTDigestInfo},
	{Name: "tdigest.max", Group: "tdigest", Since: "2.4.0", Arity: 2, Flags: reads,
		ACL: command.CatTDigest | command.CatFast, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the greatest number", Syntax: "key", Complexity: "O(1)", Do: cmdTDigestMax},
	{Name: "tdigest.merge", Group: "tdigest", Since: "2.4.0", Arity: -4, Flags: writes, ACL: command.CatTDigest,
		Keys:    command.Keys("i1+r0/1/0[RW,INSERT] i2+n0/1/1[RO,ACCESS]"),
		Summary: "Merges t-digests into one",
		Syntax: "destination-key numkeys source-key [source-key ...] [COMPRESSION compression] " +
			"[OVERRIDE]",
		Complexity: "O(n*log(n)), where n is the number of nodes of all", Do: cmdTDigestMerge},
	{Name: "tdigest.min", Group: "tdigest", Since: "2.4.0", Arity: 2, Flags: reads,
		ACL: command.CatTDigest | command.CatFast, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Returns the least number", Syntax: "key", Complexity: "O(1)", Do: cmdTDigestMin},
	{Name: "tdigest.quantile", Group: "tdigest", Since: "2.4.0", Arity: -3, Flags: reads,
		ACL: command.CatTDigest | command.CatFast, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Estimates the numbers below which parts of all are", Syntax: "key quantile [quantile ...]",
		Complexity: inNodes, Do: cmdTDigestQuantile},
	{Name: "tdigest.rank", Group: "tdigest", Since: "2.4.0", Arity: -3, Flags: reads,
		ACL: command.CatTDigest | command.CatFast, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Estimates how many numbers are below values", Syntax: "key value [value ...]", Complexity: inNodes,
		Do: cmdTDigestRank},
	{Name: "tdigest.reset", Group: "tdigest", Since: "2.4.0", Arity: 2, Flags: writes,
		ACL: command.CatTDigest | command.CatFast, Keys: command.Keys("i1+r0/1/0[RW,DELETE]"),
		Summary: "Removes all numbers from a t-digest", Syntax: "key", Complexity: "O(1)", Do: cmdTDigestReset},
	{Name: "tdigest.revrank", Group: "tdigest", Since: "2.4.0", Arity: -3, Flags: reads,
		ACL: command.CatTDigest | command.CatFast, Keys: command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Estimates how many numbers are above values", Syntax: "key value [value ...]", Complexity: inNodes,
		Do: cmdTDigestRevrank},
	{Name: "tdigest.trimmed_mean", Group: "tdigest", Since: "2.4.0", Arity: 4, Flags: reads, ACL: command.CatTDigest,
		Keys:    command.Keys("i1+r0/1/0[RO,ACCESS]"),
		Summary: "Estimates the mean of the numbers between two quantiles",
		Syntax:  "key low_cut_quantile high_cut_quantile", Complexity: inNodes, Do: cmdTDigestTrimmedMean},
}

const (
	errTDExists      command.Error = "ERR T-Digest: key already exists"
	errTDMissing     command.Error = "ERR T-Digest: key does not exist"
	errTDKeyword     command.Error = "ERR T-Digest: wrong keyword"
	errTDCompression command.Error = "ERR T-Digest: error parsing compression parameter"
	errTDPositive    command.Error = "ERR T-Digest: compression parameter needs to be a positive integer"
	errTDTooLarge    command.Error = "ERR T-Digest: compression parameter must not be above 100000"
	errTDValue       command.Error = "ERR T-Digest: error parsing val parameter"
	errTDFinite      command.Error = "ERR T-Digest: val parameter needs to be a finite number"
	errTDTooMany     command.Error = "ERR T-Digest: overflow detected"
	errTDNumkeys     command.Error = "ERR T-Digest: error parsing numkeys"
	errTDKeys        command.Error = "ERR T-Digest: numkeys needs to be a positive integer"
	errTDQuantile    command.Error = "ERR T-Digest: error parsing quantile"
	errTDQuantileIn  command.Error = "ERR T-Digest: quantile should be in [0,1]"
	errTDCDF         command.Error = "ERR T-Digest: error parsing cdf"
	errTDRankValue   command.Error = "ERR T-Digest: error parsing value"
	errTDRank        command.Error = "ERR T-Digest: error parsing rank"
	errTDRankSign    command.Error = "ERR T-Digest: rank needs to be non negative"
	errTDLow         command.Error = "ERR T-Digest: error parsing low_cut_percentile"
	errTDHigh        command.Error = "ERR T-Digest: error parsing high_cut_percentile"
	errTDCuts        command.Error = "ERR T-Digest: low_cut_percentile and high_cut_percentile should be in [0,1]"
	errTDCutOrder    command.Error = "ERR T-Digest: low_cut_percentile should be lower than high_cut_percentile"

	defaultCompression = 100
)

// compression reads a compression; if it is invalid, it writes an error and ok is false.
func compression(c *command.Ctx, arg []byte) (n int, ok bool) {
	v, ok := c.IntIn(arg, math.MinInt64, math.MaxInt64, errTDCompression)
	switch {
	case !ok:
		return 0, false
	case v < 1:
		c.Err(errTDPositive)
		return 0, false
	case v > tdigest.MaxCompression:
		c.Err(errTDTooLarge)
		return 0, false
	}
	return int(v), true
}

func cmdTDigestCreate(c *command.Ctx) {
	n := defaultCompression
	switch len(c.Args) {
	case 2:
	case 4:
		if !command.EqualFold(c.Args[2], "compression") {
			c.Err(errTDKeyword)
			return
		}
		var ok bool
		if n, ok = compression(c, c.Args[3]); !ok {
			return
		}
	default:
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	e, ok := c.WriteAs(c.Args[1], engine.TDigest)
	switch {
	case !ok:
	case e != nil:
		c.Err(errTDExists)
	default:
		changed(c, c.G.Create(c.DB, c.Args[1], tdigest.New(n)))
		c.W.OK()
	}
}

func cmdTDigestAdd(c *command.Ctx) {
	e := toChange(c, engine.TDigest, errTDMissing)
	if e == nil {
		return
	}
	for _, arg := range c.Args[2:] {
		switch x, ok := resp.ParseFloat(arg); {
		case !ok:
			c.Err(errTDValue)
			return
		case math.IsInf(x, 0):
			c.Err(errTDFinite)
			return
		}
	}
	if !e.TDigest().HasRoom(int64(len(c.Args) - 2)) {
		c.Err(errTDTooMany)
		return
	}
	for _, arg := range c.Args[2:] {
		x, _ := resp.ParseFloat(arg)
		e.TDigest().Add(x)
	}
	changed(c, e)
	c.W.OK()
}

func cmdTDigestReset(c *command.Ctx) {
	if e := toChange(c, engine.TDigest, errTDMissing); e != nil {
		e.TDigest().Reset()
		changed(c, e)
		c.W.OK()
	}
}

func cmdTDigestMerge(c *command.Ctx) {
	n, ok := c.IntIn(c.Args[2], math.MinInt64, math.MaxInt64, errTDNumkeys)
	if !ok {
		return
	}
	rest := c.Args[3:]
	switch {
	case n < 1:
		c.Err(errTDKeys)
		return
	case n > int64(len(rest)):
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	given, override := 0, false
	for words := command.OptionsIn(rest[n:]); words.Next(); {
		switch {
		case words.Is("override"):
			override = true
		case words.Is("compression") && words.More():
			if given, ok = compression(c, words.Arg()); !ok {
				return
			}
		case words.Is("compression"):
			c.Err(command.WrongArity(c.Cmd))
			return
		default:
			c.Err(errTDKeyword)
			return
		}
	}
	to, ok := c.WriteAs(c.Args[1], engine.TDigest)
	if !ok {
		return
	}
	var of []*tdigest.Digest
	size := 0
	if to != nil && !override {
		of, size = append(of, to.TDigest()), to.TDigest().Compression()
	}
	kept := len(of) > 0
	for _, key := range rest[:n] {
		e, ok := c.ReadAs(key, engine.TDigest)
		if !ok {
			return
		}
		if e == nil {
			c.Err(errTDMissing)
			return
		}
		if of = append(of, e.TDigest()); !kept {
			size = max(size, e.TDigest().Compression())
		}
	}
	if given > 0 {
		size = given
	}
	merged := tdigest.New(size)
	for _, d := range of {
		if !merged.HasRoom(d.Weight()) {
			c.Err(errTDTooMany)
			return
		}
		merged.Merge(d)
	}
	if to == nil {
		to = c.G.Create(c.DB, c.Args[1], merged)
	} else {
		deadline := to.Deadline()
		c.G.OverwriteCollection(to, merged)
		c.G.SetDeadline(to, deadline)
	}
	changed(c, to)
	c.W.OK()
}

func cmdTDigestMin(c *command.Ctx) {
	if e := existing(c, engine.TDigest, errTDMissing); e != nil {
		c.W.Double(e.TDigest().Min())
	}
}

func cmdTDigestMax(c *command.Ctx) {
	if e := existing(c, engine.TDigest, errTDMissing); e != nil {
		c.W.Double(e.TDigest().Max())
	}
}

func cmdTDigestQuantile(c *command.Ctx) {
	askTDigest(c, func(arg []byte) (q float64, ok bool) {
		if q, ok = float(c, arg, errTDQuantile); ok && (q < 0 || q > 1) {
			c.Err(errTDQuantileIn)
			return 0, false
		}
		return q, ok
	}, func(d *tdigest.Digest, q float64) { c.W.Double(d.Quantile(q)) })
}

func cmdTDigestCDF(c *command.Ctx) {
	askTDigest(c, func(arg []byte) (float64, bool) { return float(c, arg, errTDCDF) },
		func(d *tdigest.Digest, x float64) { c.W.Double(d.CDF(x)) })
}

func cmdTDigestRank(c *command.Ctx) {
	askTDigest(c, func(arg []byte) (float64, bool) { return float(c, arg, errTDRankValue) },
		func(d *tdigest.Digest, x float64) { c.W.Int(d.Rank(x)) })
}

func cmdTDigestRevrank(c *command.Ctx) {
	askTDigest(c, func(arg []byte) (float64, bool) { return float(c, arg, errTDRankValue) },
		func(d *tdigest.Digest, x float64) { c.W.Int(d.ReverseRank(x)) })
}

func cmdTDigestByrank(c *command.Ctx) {
	askTDigest(c, rankArg(c), func(d *tdigest.Digest, rank int64) { c.W.Double(d.ByRank(rank)) })
}

func cmdTDigestByrevrank(c *command.Ctx) {
	askTDigest(c, rankArg(c), func(d *tdigest.Digest, rank int64) { c.W.Double(d.ByReverseRank(rank)) })
}

// rankArg returns a function that reads a rank.
func rankArg(c *command.Ctx) func(arg []byte) (int64, bool) {
	return func(arg []byte) (rank int64, ok bool) {
		if rank, ok = c.IntIn(arg, math.MinInt64, math.MaxInt64, errTDRank); ok && rank < 0 {
			c.Err(errTDRankSign)
			return 0, false
		}
		return rank, ok
	}
}

// float reads a number; if it is invalid, it writes an error and ok is false.
func float(c *command.Ctx, arg []byte, otherwise command.Error) (x float64, ok bool) {
	if x, ok = resp.ParseFloat(arg); !ok {
		c.Err(otherwise)
	}
	return x, ok
}

// askTDigest reads all arguments after the key with read, and then replies to each with answer.
func askTDigest[T any](c *command.Ctx, read func(arg []byte) (T, bool), answer func(d *tdigest.Digest, question T)) {
	e := existing(c, engine.TDigest, errTDMissing)
	if e == nil {
		return
	}
	questions := make([]T, len(c.Args)-2)
	for i, arg := range c.Args[2:] {
		var ok bool
		if questions[i], ok = read(arg); !ok {
			return
		}
	}
	c.W.Array(len(questions))
	for _, q := range questions {
		answer(e.TDigest(), q)
	}
}

func cmdTDigestTrimmedMean(c *command.Ctx) {
	e := existing(c, engine.TDigest, errTDMissing)
	if e == nil {
		return
	}
	low, ok := float(c, c.Args[2], errTDLow)
	if !ok {
		return
	}
	high, ok := float(c, c.Args[3], errTDHigh)
	switch {
	case !ok:
	case low < 0 || low > 1 || high < 0 || high > 1:
		c.Err(errTDCuts)
	case low >= high:
		c.Err(errTDCutOrder)
	default:
		c.W.Double(e.TDigest().TrimmedMean(low, high))
	}
}

func cmdTDigestInfo(c *command.Ctx) {
	e := existing(c, engine.TDigest, errTDMissing)
	if e == nil {
		return
	}
	d := e.TDigest()
	s := d.State()
	info(c, []field{
		number("Compression", d.Compression()),
		number("Capacity", d.Capacity()),
		number("Merged nodes", s.Merged),
		number("Unmerged nodes", s.Unmerged),
		number("Merged weight", s.MergedWeight),
		number("Unmerged weight", s.UnmergedWeight),
		number("Observations", d.Weight()),
		number("Total compressions", s.Compressions),
		number("Memory usage", d.Size()),
	})
}
