package timeseries

import (
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

const (
	errSameKeys        command.Error = "ERR TSDB: the source key and destination key should be different"
	errHasSource       command.Error = "ERR TSDB: the destination key already has a src rule"
	errHasDestinations command.Error = "ERR TSDB: the destination key already has a dst rule"
	errIsCompaction    command.Error = "ERR TSDB: the source key already has a source rule"
	errNoRule          command.Error = "ERR TSDB: compaction rule does not exist"
)

// eachLink calls fn with the keys that a series is linked with: its source and the destinations of its rules.
func eachLink(s *timeseries.Series, fn func(key string)) {
	if s.Source() != "" {
		fn(s.Source())
	}
	for _, r := range s.Rules() {
		fn(r.Destination)
	}
}

// holdsLinks reports whether the guard holds the shards of all keys that a series is linked with; see
// command.Ctx.Holds. It is cheap for a series without links.
func holdsLinks(c *command.Ctx, s *timeseries.Series) bool {
	if s.Source() == "" && len(s.Rules()) == 0 {
		return true
	}
	var shards uint64
	eachLink(s, func(key string) { shards |= c.G.Keyspace().ShardOf([]byte(key)) })
	return c.Holds(shards)
}

// sourceRule returns the source of the compaction at a key, and the source's rule for it; nil if the series is no
// compaction. The guard holds the links.
func sourceRule(c *command.Ctx, key string, s *timeseries.Series) (*timeseries.Series, *timeseries.Rule) {
	if s.Source() == "" {
		return nil, nil
	}
	e := c.G.PeekString(c.DB, s.Source())
	if e == nil || e.Type() != engine.TimeSeries {
		return nil, nil
	}
	source := e.Series()
	if r := source.Rule(key); r != nil {
		return source, r
	}
	return nil, nil
}

// destination returns the series at the destination of a rule of the series at a key, nil if the rule is void.
func destination(c *command.Ctx, key string, r *timeseries.Rule) *engine.Entry {
	e := c.G.PeekString(c.DB, r.Destination)
	if e == nil || e.Type() != engine.TimeSeries || e.Series().Source() != key {
		return nil
	}
	return e
}

// rules returns the valid rules of the series at a key. The guard holds the links.
func rules(c *command.Ctx, key string, s *timeseries.Series) (live []*timeseries.Rule) {
	for _, r := range s.Rules() {
		if destination(c, key, r) != nil {
			live = append(live, r)
		}
	}
	return live
}

// prune removes void rules from an entry that will be changed.
func prune(c *command.Ctx, e *engine.Entry) {
	s := e.Series()
	if live := rules(c, e.Key(), s); len(live) < len(s.Rules()) {
		var void []string
		for _, r := range s.Rules() {
			if destination(c, e.Key(), r) == nil {
				void = append(void, r.Destination)
			}
		}
		for _, key := range void {
			s.RemoveRule(key)
		}
	}
}

// latest returns the sample of the open bucket for the compaction at a key, if it is newer than all samples of the
// series. It returns nil if it is not, or if the series is no compaction.
func latest(c *command.Ctx, key string, s *timeseries.Series) *timeseries.Sample {
	_, r := sourceRule(c, key, s)
	if r == nil {
		return nil
	}
	sample, ok := r.Open()
	if last, some := s.Newest(); !ok || some && last.Time >= sample.Time {
		return nil
	}
	return &sample
}

// destinations applies the changes of a series' rules to its compactions. The guard holds them.
type destinations struct{ c *command.Ctx }

func (d destinations) Close(r *timeseries.Rule, sample timeseries.Sample) {
	e := d.c.G.Write(d.c.DB, []byte(r.Destination))
	if e.Series().Add(sample, timeseries.Last).Changed() {
		d.changed(e, engine.EventModule)
	}
}

func (d destinations) Replace(r *timeseries.Rule, first, last int64, samples []timeseries.Sample) {
	e := d.c.G.Write(d.c.DB, []byte(r.Destination))
	s := e.Series()
	changed := s.Delete(first, last) > 0
	for _, x := range samples {
		changed = s.Add(x, timeseries.Last).Changed() || changed
	}
	if changed {
		d.changed(e, engine.EventNone)
	}
}

func (d destinations) Newest(r *timeseries.Rule) (last timeseries.Sample, ok bool) {
	return d.c.G.Write(d.c.DB, []byte(r.Destination)).Series().Newest()
}

func (d destinations) changed(e *engine.Entry, class engine.EventClass) {
	d.c.G.Wake(e)
	d.c.G.Changed(e, class, "ts.add:dest")
}

func cmdCreateRule(c *command.Ctx) {
	from, to := c.Args[1], c.Args[2]
	if len(c.Args) != 6 && len(c.Args) != 7 || !command.EqualFold(c.Args[3], "aggregation") {
		c.Err(wrongArguments(c))
		return
	}
	if strings.Contains(string(c.Args[4]), ",") {
		c.Err("ERR TSDB: CREATERULE requires exactly one aggregation type")
		return
	}
	a, ok := timeseries.ParseAggregator(string(c.Args[4]))
	if !ok {
		c.Err(errAggregator)
		return
	}
	bucket, ok := parseBucket(c, c.Args[5])
	if !ok {
		return
	}
	align := int64(0)
	if len(c.Args) == 7 {
		if align, ok = resp.ParseInt(c.Args[6]); !ok || align < 0 {
			c.Err("ERR TSDB: Couldn't parse alignTimestamp")
			return
		}
	}
	if string(from) == string(to) {
		c.Err(errSameKeys)
		return
	}
	source, ok := writeSeries(c, from)
	if !ok {
		return
	}
	dest, ok := writeSeries(c, to)
	if !ok || !holdsLinks(c, source.Series()) || !holdsLinks(c, dest.Series()) {
		return
	}
	s, d := source.Series(), dest.Series()
	if _, r := sourceRule(c, string(from), s); r != nil {
		c.Err(errIsCompaction)
		return
	}
	if _, r := sourceRule(c, string(to), d); r != nil {
		c.Err(errHasSource)
		return
	}
	if len(rules(c, string(to), d)) > 0 {
		c.Err(errHasDestinations)
		return
	}
	link(c, source, dest, a, bucket, align)
	c.G.Changed(source, engine.EventModule, "ts.createrule:src")
	c.G.Changed(dest, engine.EventModule, "ts.createrule:dest")
	c.W.OK()
}

// link makes dest a compaction of source.
func link(c *command.Ctx, source, dest *engine.Entry, a timeseries.Aggregator, bucket, align int64) {
	prune(c, source)
	prune(c, dest)
	s, d := source.Series(), dest.Series()
	s.RemoveRule(dest.Key())
	s.AddRule(dest.Key(), a, bucket, align)
	s.SetSource("") // the old link was void
	d.SetSource(source.Key())
}

// parseBucket reads the length of a bucket; if it is invalid, it writes an error and ok is false.
func parseBucket(c *command.Ctx, arg []byte) (bucket int64, ok bool) {
	bucket, ok = resp.ParseInt(arg)
	switch {
	case !ok:
		c.Err(errAggregation)
	case bucket <= 0:
		c.Err(errBucket)
	default:
		return bucket, true
	}
	return 0, false
}

func cmdDeleteRule(c *command.Ctx) {
	from, to := string(c.Args[1]), string(c.Args[2])
	source, ok := writeSeries(c, c.Args[1])
	if !ok || !holdsLinks(c, source.Series()) {
		return
	}
	r := source.Series().Rule(to)
	if r == nil || destination(c, from, r) == nil {
		c.Err(errNoRule)
		return
	}
	dest := c.G.Write(c.DB, c.Args[2])
	source.Series().RemoveRule(to)
	dest.Series().SetSource("")
	c.G.Changed(source, engine.EventModule, "ts.deleterule:src")
	c.G.Changed(dest, engine.EventModule, "ts.deleterule:dest")
	c.W.OK()
}

// renamed updates the other sides of a series' rules after its key has changed.
func renamed(c *command.Ctx, e *engine.Entry, was string) {
	s := e.Series()
	if source, r := sourceRule(c, was, s); r != nil {
		from := c.G.Write(c.DB, []byte(s.Source()))
		source.RemoveRule(e.Key()) // a void rule: the key belonged to another series, or did not exist
		source.RenameDestination(was, e.Key())
		c.G.Changed(from, engine.EventNone, "")
	}
	for _, r := range rules(c, was, s) {
		to := c.G.Write(c.DB, []byte(r.Destination))
		to.Series().SetSource(e.Key())
		c.G.Changed(to, engine.EventNone, "")
	}
}

// compactions returns the compactions of ts-compaction-policy for a series that is created by a sample. ok is false
// if the guard does not hold their shards; see command.Ctx.Holds.
func compactions(c *command.Ctx, key []byte) (made []compaction, ok bool) {
	if c.Origin.In(command.FromJournal) {
		return nil, true // the command was journalled with its effects
	}
	text := c.Host.Directive(dirCompaction)
	if text == "" {
		return nil, true
	}
	made, _ = parseCompactions(text)
	var shards uint64
	for i := range made {
		r := &made[i]
		r.name = string(key) + "_" + strings.ToUpper(r.aggregator.String()) + "_" + strconv.FormatInt(r.bucket, 10)
		if r.align != 0 {
			r.name += "_" + strconv.FormatInt(r.align, 10)
		}
		shards |= c.G.Keyspace().ShardOf([]byte(r.name))
	}
	return made, c.Holds(shards)
}
