package timeseries

import (
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/labels"
	"github.com/atomredis/atomredis/engine/timeseries"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

const (
	errUpsert command.Error = "ERR TSDB: Error at upsert, update is not supported when DUPLICATE_POLICY is set to " +
		"BLOCK mode, or either current or new value is NaN and DUPLICATE_POLICY is MAX/MIN/SUM"
	errTooOld     command.Error = "ERR TSDB: Timestamp is older than retention"
	errNoSeries   command.Error = "ERR TSDB: the key is not a TSDB key"
	errIncrement  command.Error = "ERR TSDB: invalid increase/decrease value"
	errNaN        command.Error = "ERR TSDB: cannot increment/decrement NaN value"
	errOutOfOrder command.Error = "TSDB: timestamp must be equal to or higher than the maximum existing timestamp"
	errRetained   command.Error = "ERR TSDB: When a series has compactions, deleting samples or compaction buckets " +
		"beyond the series retention period is not possible"
)

// parseSample reads the time and the value of a sample.
func parseSample(c *command.Ctx, time, value []byte) (x timeseries.Sample, err command.Error) {
	var ok bool
	if x.Value, ok = parseValue(value); !ok {
		if !c.Origin.In(command.Accepted) {
			return x, errValue
		}
		if x.Value, ok = resp.ParseFloat(value); !ok { // a result of TS.INCRBY may be infinite
			return x, errValue
		}
	}
	x.Time, err = parseTime(c, time)
	return x, err
}

// parseTime reads the time of a sample; * is now.
func parseTime(c *command.Ctx, arg []byte) (int64, command.Error) {
	if len(arg) == 1 && arg[0] == '*' {
		return c.Now(), ""
	}
	t, ok := resp.ParseInt(arg)
	switch {
	case !ok:
		return 0, errTime
	case t < 0:
		return 0, errNegative
	}
	return t, ""
}

// parseValue reads a number in JSON's notation, or nan.
func parseValue(b []byte) (float64, bool) {
	i, negative := 0, false
	if i < len(b) && b[i] == '-' {
		negative = true
		i++
	}
	start := i
	n := uint64(0)
	for i < len(b) && b[i]-'0' < 10 {
		n = n*10 + uint64(b[i]-'0')
		i++
	}
	switch digits := i - start; {
	case digits == 0:
		if command.EqualFold(b[start:], "nan") {
			return math.NaN(), true
		}
		return 0, false
	case digits > 1 && b[start] == '0':
		return 0, false
	case i == len(b) && digits <= 15:
		if negative {
			return -float64(n), true
		}
		return float64(n), true
	}
	if i < len(b) && b[i] == '.' {
		point := i
		for i++; i < len(b) && b[i]-'0' < 10; i++ {
		}
		if i == point+1 {
			return 0, false
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		exponent := i
		for i < len(b) && b[i]-'0' < 10 {
			i++
		}
		if i == exponent {
			return 0, false
		}
	}
	if i != len(b) {
		return 0, false
	}
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(b), len(b)), 64)
	return f, err == nil
}

func cmdAdd(c *command.Ctx) {
	key := c.Args[1]
	x, err := parseSample(c, c.Args[2], c.Args[3])
	if err != "" {
		c.Err(err)
		return
	}
	e := c.G.Write(c.DB, key)
	if e == nil {
		addToNew(c, key, x, 4, "ts.add", []byte("TS.ADD"), key, integer(x.Time), c.Args[3])
		return
	}
	if e.Type() != engine.TimeSeries {
		c.Err(errWrongType)
		return
	}
	s := e.Series()
	policy, stated := policyOf(c.Host, s), s.Policy != timeseries.Unset
	if len(c.Args) > 4 {
		if i := find(c.Args, 4, "on_duplicate"); i > 0 {
			if i+1 == len(c.Args) {
				c.Err("ERR TSDB: Couldn't parse ON_DUPLICATE")
				return
			}
			var ok bool
			if policy, ok = timeseries.ParsePolicy(command.Lower(c.Args[i+1])); !ok {
				c.Err(errPolicy)
				return
			}
			stated = true
		}
	}
	if !holdsLinks(c, s) {
		return
	}
	changes := c.G.Changes()
	at, err := add(c, e, x, policy, "ts.add")
	if err != "" {
		c.Err(err)
		return
	}
	if c.G.Changes() != changes {
		switch {
		case !stated:
			journalAdd(c, key, c.Args[3], x.Time, policy)
		case c.Args[2][0] == '*':
			args := append([][]byte(nil), c.Args...)
			args[2] = integer(x.Time)
			c.Journal(args...)
		}
	}
	c.W.Int(at)
}

// journalAdd records that a sample was added under a policy which follows from a directive.
func journalAdd(c *command.Ctx, key, value []byte, time int64, policy timeseries.Policy) {
	c.Journal([]byte("TS.ADD"), key, integer(time), value, []byte("ON_DUPLICATE"), []byte(policy.String()))
}

// addToNew creates a series with a sample, and with options from an argument on. The record of the sample begins with sample.
func addToNew(c *command.Ctx, key []byte, x timeseries.Sample, from int, event string, sample ...[]byte) {
	o := options{settings: defaults(c.Host)}
	if err := parseOptions(c.Args, from, &o); err != "" {
		c.Err(err)
		return
	}
	if i := find(c.Args, from, "on_duplicate"); i > 0 && i+1 < len(c.Args) {
		if _, ok := timeseries.ParsePolicy(command.Lower(c.Args[i+1])); !ok {
			c.Err(errPolicy)
			return
		}
	}
	made, ok := compactions(c, key)
	if !ok {
		return
	}
	e := create(c, key, &o, "")
	if len(made) > 0 {
		c.Journal(appendOptions([][]byte{[]byte("TS.CREATE"), key}, &o)...)
		for i := range made {
			made[i].make(c, e, &o)
		}
	} else {
		sample = appendOptions(sample, &o)
	}
	add(c, e, x, timeseries.Last, event) // cannot fail for a new series
	c.Journal(sample...)
	c.W.Int(x.Time)
}

// make creates the destination of a compaction of ts-compaction-policy, unless the key exists.
func (r *compaction) make(c *command.Ctx, source *engine.Entry, o *options) {
	key := []byte(r.name)
	if c.G.Write(c.DB, key) != nil {
		return
	}
	upper := strings.ToUpper(r.aggregator.String())
	d := options{settings: o.settings}
	d.settings.Retention = r.retention
	d.labels = append(append(d.labels, o.labels...), labels.Label{Name: "aggregation", Value: upper},
		labels.Label{Name: "time_bucket", Value: strconv.FormatInt(r.bucket, 10)})
	dest := create(c, key, &d, "ts.create")
	link(c, source, dest, r.aggregator, r.bucket, r.align)
	c.Journal(appendOptions([][]byte{[]byte("TS.CREATE"), key}, &d)...)
	c.Journal([]byte("TS.CREATERULE"), []byte(source.Key()), key, []byte("AGGREGATION"), []byte(upper),
		integer(r.bucket), integer(r.align))
}

// number returns a value as an argument that reads back as the same.
func number(f float64) []byte { return strconv.AppendFloat(nil, f, 'g', -1, 64) }

// add adds a sample to a series and its compactions. It returns the sample's time, or the newest time if the sample
// was ignored because it is too close to the newest one. The guard holds the links.
func add(c *command.Ctx, e *engine.Entry, x timeseries.Sample, p timeseries.Policy, event string) (int64, command.Error) {
	s := e.Series()
	linked := len(s.Rules()) > 0
	if linked {
		prune(c, e)
	}
	outcome := s.Add(x, p)
	// A value that stays makes rules compute its bucket again: one that is older than its rule counts from then on.
	repair := outcome == timeseries.Inserted || outcome == timeseries.Kept && len(s.Rules()) > 0
	if !outcome.Changed() && !repair {
		c.G.Notify(engine.EventModule, event, c.DB, e.Key())
	}
	switch outcome {
	case timeseries.TooOld:
		return 0, errTooOld
	case timeseries.Refused:
		return 0, errUpsert
	case timeseries.Ignored:
		last, _ := s.Newest()
		return last.Time, ""
	case timeseries.Kept:
		if !repair {
			return x.Time, ""
		}
	case timeseries.Appended:
		if linked {
			s.Advance(x, destinations{c})
		}
	}
	if repair {
		last, _ := s.Newest()
		s.Repair(x.Time, x.Time, last.Time, destinations{c})
	}
	c.G.Wake(e)
	c.G.Changed(e, engine.EventModule, event)
	return x.Time, ""
}

func cmdMadd(c *command.Ctx) {
	args := c.Args[1:]
	if len(args)%3 != 0 {
		c.Err(wrongArguments(c))
		return
	}
	held, unset := true, false // unset says that a series has no policy of its own
	for i := 0; i < len(args); i += 3 {
		if e := c.G.Peek(c.DB, args[i]); e != nil && e.Type() == engine.TimeSeries {
			held = holdsLinks(c, e.Series()) && held
			unset = unset || e.Series().Policy == timeseries.Unset
		}
	}
	if !held {
		return
	}
	now, changes := false, c.G.Changes()
	c.W.Array(len(args) / 3)
	for i := 0; i < len(args); i += 3 {
		now = now || string(args[i+1]) == "*"
		x, err := parseSample(c, args[i+1], args[i+2])
		at, before := x.Time, c.G.Changes()
		if err == "" {
			at, err = addTo(c, args[i], x)
		}
		if err != "" {
			c.Err(err)
			continue
		}
		c.W.Int(at)
		if unset && c.G.Changes() != before {
			journalAdd(c, args[i], args[i+2], x.Time, policyOf(c.Host, c.G.Peek(c.DB, args[i]).Series()))
		}
	}
	if now && !unset && c.G.Changes() != changes {
		args := append([][]byte(nil), c.Args...)
		for i := 2; i < len(args); i += 3 {
			if string(args[i]) == "*" {
				args[i] = integer(c.Now())
			}
		}
		c.Journal(args...)
	}
}

// addTo adds a sample to the series at a key, if there is one.
func addTo(c *command.Ctx, key []byte, x timeseries.Sample) (int64, command.Error) {
	e := c.G.Write(c.DB, key)
	if e == nil || e.Type() != engine.TimeSeries {
		c.G.Notify(engine.EventModule, "ts.add", c.DB, string(key))
		return 0, errNoSeries
	}
	return add(c, e, x, policyOf(c.Host, e.Series()), "ts.add")
}

// incr is TS.INCRBY and TS.DECRBY.
func incr(c *command.Ctx, sign float64, event string) {
	key := c.Args[1]
	by, ok := resp.ParseFloat(c.Args[2])
	if !ok || math.IsNaN(by) {
		c.Err(errIncrement)
		return
	}
	x := timeseries.Sample{Time: c.Now(), Value: sign * by}
	word := []byte("TS.INCRBY")
	if sign < 0 {
		word = []byte("TS.DECRBY")
	}
	if i := find(c.Args, 3, "timestamp"); i > 0 {
		if i+1 == len(c.Args) {
			c.Err(errTime)
			return
		}
		var err command.Error
		if x.Time, err = parseTime(c, c.Args[i+1]); err != "" {
			c.Err(err)
			return
		}
	}
	e := c.G.Write(c.DB, key)
	if e == nil {
		addToNew(c, key, x, 3, event, word, key, c.Args[2], []byte("TIMESTAMP"), integer(x.Time))
		return
	}
	if e.Type() != engine.TimeSeries {
		c.Err(errWrongType)
		return
	}
	s := e.Series()
	if last, some := s.Newest(); some {
		switch {
		case x.Time < last.Time:
			c.Err(errOutOfOrder)
			return
		case math.IsNaN(last.Value):
			c.Err(errNaN)
			return
		}
		x.Value += last.Value
	}
	if !holdsLinks(c, s) {
		return
	}
	changes := c.G.Changes()
	at, err := add(c, e, x, timeseries.Last, event)
	if err != "" {
		c.Err(err)
		return
	}
	if c.G.Changes() != changes {
		c.Journal(word, key, c.Args[2], []byte("TIMESTAMP"), integer(x.Time))
	}
	c.W.Int(at)
}

func cmdDel(c *command.Ctx) {
	from, to, _, _, err := parseRange(c.Args[2], c.Args[3])
	if err != "" {
		c.Err(err)
		return
	}
	e, ok := writeSeries(c, c.Args[1])
	if !ok || !holdsLinks(c, e.Series()) {
		return
	}
	s := e.Series()
	prune(c, e)
	if len(s.Rules()) > 0 && from <= to && !s.MayDelete(from) {
		c.Err(errRetained)
		return
	}
	last, _ := s.Newest()
	n := s.Delete(from, to)
	if n > 0 {
		s.Repair(from, to, last.Time, destinations{c})
		c.G.Wake(e)
		c.G.Changed(e, engine.EventModule, "ts.del")
	} else {
		c.G.Notify(engine.EventModule, "ts.del", c.DB, e.Key())
	}
	c.W.Int(int64(n))
}
