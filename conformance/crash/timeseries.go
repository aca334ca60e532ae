package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// series adds samples, also late ones, to series from which others are compacted, and to one that keeps only the last
// samples. A value of this kind has its samples in elems, the time of the last one in text and its rules in list.
type series struct {
	noObserver
	label string
	// last is the last time of each series; a series exists if it has an entry.
	last map[string]int64
}

const (
	seriesKind = "TSDB-TYPE"
	// bucket is the width of the buckets of compactions, recent the retention of the series that keeps the last
	// samples, in ms.
	bucket = 100
	recent = 5000
	// oldest is how far before the last sample late ones may lie; deletions are further back.
	oldest = 1000
)

func (g *series) key(kind string, i int) string { return fmt.Sprintf("%s:%s%d", g.label, kind, i) }

func (g *series) restart(m model) {
	g.last = map[string]int64{}
	for p, v := range m {
		g.last[p.key], _ = strconv.ParseInt(v.text, 10, 64)
	}
}

// create makes series 0 or 1 with its compactions, or series 2, which keeps only the last samples.
func (g *series) create(i int) *op {
	key := g.key("series", i)
	g.last[key] = 0
	chunks := []string{"CHUNK_SIZE", []string{"128", "4096", "256"}[i], "DUPLICATE_POLICY", "LAST"}
	one := func(args ...string) command { return command{args: args} }
	if i == 2 {
		return transaction(one("DEL", key),
			command{args: slices.Concat([]string{"TS.CREATE", key, "RETENTION", strconv.Itoa(recent)}, chunks,
				[]string{"LABELS", "series", key})})
	}
	sum, most := g.key("sum", i), g.key("max", i)
	return transaction(one("DEL", key, sum, most),
		command{args: slices.Concat([]string{"TS.CREATE", key}, chunks, []string{"LABELS", "series", key})},
		one("TS.CREATE", sum, "CHUNK_SIZE", "128", "ENCODING", "UNCOMPRESSED", "LABELS", "series", sum),
		one("TS.CREATE", most, "LABELS", "series", most),
		one("TS.CREATERULE", key, sum, "AGGREGATION", "sum", strconv.Itoa(bucket)),
		one("TS.CREATERULE", key, most, "AGGREGATION", "max", strconv.Itoa(bucket)))
}

// at returns a time for a sample: a later one than all before, or occasionally a late one.
func (g *series) at(r *rand.Rand, key string) string {
	if last := g.last[key]; r.IntN(5) == 0 && last > 2*oldest {
		return strconv.FormatInt(last-r.Int64N(oldest), 10)
	}
	g.last[key] += 1 + r.Int64N(40)
	return strconv.FormatInt(g.last[key], 10)
}

func (g *series) next(r *rand.Rand) *op {
	if g.last == nil {
		g.restart(nil)
	}
	i := r.IntN(3)
	key := g.key("series", i)
	last, there := g.last[key]
	if !there || r.IntN(2000) == 0 {
		return g.create(i)
	}
	number := func() string { return strconv.Itoa(r.IntN(2000) - 1000) }
	switch r.IntN(12) {
	case 0, 1, 2, 3:
		args := []string{"TS.MADD"}
		for range 1 + r.IntN(20) {
			args = append(args, key, g.at(r, key), number())
		}
		if other := g.key("series", r.IntN(3)); g.last[other] > 0 {
			args = append(args, other, g.at(r, other), number())
		}
		return plain(args...)
	case 4:
		g.last[key] += r.Int64N(40)
		return plain([]string{"TS.INCRBY", "TS.DECRBY"}[r.IntN(2)], key, strconv.Itoa(r.IntN(100)), "TIMESTAMP",
			strconv.FormatInt(g.last[key], 10))
	case 5:
		if i < 2 && last > 4*oldest && r.IntN(4) == 0 {
			to := last - 2*oldest - r.Int64N(oldest)
			return plain("TS.DEL", key, strconv.FormatInt(to-r.Int64N(500), 10), strconv.FormatInt(to, 10))
		}
	case 6:
		if r.IntN(10) == 0 {
			return plain("COPY", key, g.key("copy", i), "REPLACE")
		}
	}
	return plain("TS.ADD", key, g.at(r, key), number())
}

func (v *value) lastTime() int64 {
	n, _ := strconv.ParseInt(v.text, 10, 64)
	return n
}

// tscreate models TS.CREATE key … with RETENTION recent, or none.
func tscreate(m model, c *call) {
	v := newValue(seriesKind)
	v.text = "0"
	m[c.place(1)] = v
}

// tscreaterule models TS.CREATERULE from to AGGREGATION aggregator bucket of a series without samples.
func tscreaterule(m model, c *call) {
	v := m[c.place(1)]
	v.list = append(v.list, c.args[2]+" "+strings.ToUpper(c.args[4]))
}

func tsadd(m model, c *call) { c.sample(m, c.place(1), c.args[2], c.args[3]) }

func tsmadd(m model, c *call) {
	for i := 1; i < len(c.args); i += 3 {
		c.sample(m, c.place(i), c.args[i+1], c.args[i+2])
	}
}

// tsincrby models TS.INCRBY and TS.DECRBY key n TIMESTAMP time, not before the last one.
func tsincrby(m model, c *call) {
	p, by := c.place(1), c.int(2)
	if c.args[0] == "TS.DECRBY" {
		by = -by
	}
	v := m[p]
	c.sample(m, p, c.args[4], addInt(v.elems[v.text], by))
}

// sample adds a sample to a series, and updates the series compacted from it.
func (c *call) sample(m model, p place, at, number string) {
	v := m[p]
	before := v.lastTime()
	v.elems[at] = number
	when, _ := strconv.ParseInt(at, 10, 64)
	if when > before {
		v.text = at
	}
	if strings.HasSuffix(p.key, ":series2") {
		for e := range v.elems {
			if n, _ := strconv.ParseInt(e, 10, 64); n < v.lastTime()-recent {
				delete(v.elems, e)
			}
		}
	}
	if when < before {
		c.compact(m, p, when)
	} else if len(v.elems) > 1 {
		c.compact(m, p, before)
	}
}

// tsdel models TS.DEL key from to that deletes nothing from the last bucket.
func tsdel(m model, c *call) {
	p := c.place(1)
	v := m[p]
	from, to := int64(c.int(2)), int64(c.int(3))
	for at := from; at <= to; at++ {
		delete(v.elems, strconv.FormatInt(at, 10))
	}
	for at := from; at < to+bucket; at += bucket {
		c.compact(m, p, at)
	}
}

// compact recomputes the bucket of a time in the series compacted from a series, unless it is the last one.
func (c *call) compact(m model, p place, at int64) {
	v := m[p]
	start := at - at%bucket
	if start+bucket > v.lastTime() {
		return
	}
	sum, most, n := 0, 0, 0
	for at := start; at < start+bucket; at++ {
		text, ok := v.elems[strconv.FormatInt(at, 10)]
		if !ok {
			continue
		}
		number, _ := strconv.Atoi(text)
		if sum += number; n == 0 || number > most {
			most = number
		}
		n++
	}
	for _, rule := range v.list {
		name, aggregator, _ := strings.Cut(rule, " ")
		to := place{p.db, name}
		c.touched = append(c.touched, to)
		dest, name := m[to], strconv.FormatInt(start, 10)
		switch {
		case n == 0:
			delete(dest.elems, name)
			continue
		case aggregator == "SUM":
			dest.elems[name] = strconv.Itoa(sum)
		default:
			dest.elems[name] = strconv.Itoa(most)
		}
		if start > dest.lastTime() {
			dest.text = name
		}
	}
}

// readSeries fills a series with the samples from TS.RANGE, and queries the rest.
func (v *value) readSeries(c *transcript.Conn, key string, samples []transcript.Value) error {
	for _, e := range samples {
		v.elems[e.Elems[0].Text] = e.Elems[1].Text
	}
	replies, err := ask(c, []string{"TS.INFO", key}, []string{"TS.QUERYINDEX", "series=" + key})
	if err != nil {
		return err
	}
	info := replies[0].Elems
	for i := 0; i+1 < len(info); i += 2 {
		switch info[i].Text {
		case "lastTimestamp":
			v.text = info[i+1].Text
		case "rules":
			for _, rule := range info[i+1].Elems {
				v.list = append(v.list, rule.Elems[0].Text+" "+rule.Elems[2].Text)
			}
		}
	}
	found := slices.ContainsFunc(replies[1].Elems, func(e transcript.Value) bool { return e.Text == key })
	if !found && !strings.Contains(key, ":copy") {
		return fmt.Errorf("the index of labels has not this series, but %s", replies[1])
	}
	return nil
}

func init() {
	maps.Copy(effects, map[string]func(model, *call){
		"TS.CREATE": tscreate, "TS.CREATERULE": tscreaterule, "TS.ADD": tsadd, "TS.MADD": tsmadd, "TS.INCRBY": tsincrby,
		"TS.DECRBY": tsincrby, "TS.DEL": tsdel,
	})
}
