package crash

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// sketches adds to sketches of all kinds, which are so wide that they are exact for the few items used. A value of
// these kinds has in elems how often each item was added, or the known facts about a t-digest's numbers.
type sketches struct {
	noObserver
	label string
	// only, if not empty, is the kind of all of them.
	only string
	// made are the existing sketches.
	made map[string]bool
	// added are the items of cuckoo filters, by key and item: they may be deleted as often as they were added.
	added map[string]int
}

const (
	bloomKind   = "MBbloom--"
	cuckooKind  = "MBbloomCF"
	countsKind  = "CMSk-TYPE"
	topKind     = "TopK-TYPE"
	digestKind  = "TDIS-TYPE"
	bloomItems  = 1000
	sketchItems = 200
	topItems    = 50
	// mostCopies is the most copies of an item in a cuckoo filter.
	mostCopies = 3
)

func item(n int) string { return "item" + strconv.Itoa(n) }

func (g *sketches) restart(m model) {
	g.made, g.added = map[string]bool{}, map[string]int{}
	for p, v := range m {
		g.made[p.key] = true
		if v.kind == cuckooKind {
			for e, n := range v.elems {
				g.added[p.key+" "+e], _ = strconv.Atoi(n)
			}
		}
	}
}

// reservations describe how each sketch is made: small filters that grow, large ones, and enough of the others to be
// merged.
var reservations = []struct{ kind, args []string }{
	{[]string{"bloom", "0"}, []string{"BF.RESERVE", "", "0.0000001", "5000"}},
	{[]string{"bloom", "1"}, []string{"BF.RESERVE", "", "0.0000001", "500000"}},
	{[]string{"cuckoo", "0"}, []string{"CF.RESERVE", "", "1000000", "BUCKETSIZE", "4"}},
	{[]string{"counts", "0"}, []string{"CMS.INITBYDIM", "", "3000", "6"}},
	{[]string{"counts", "1"}, []string{"CMS.INITBYDIM", "", "3000", "6"}},
	{[]string{"counts", "2"}, []string{"CMS.INITBYDIM", "", "3000", "6"}},
	{[]string{"top", "0"}, []string{"TOPK.RESERVE", "", strconv.Itoa(topItems), "3000", "7", "0.9"}},
	{[]string{"digest", "0"}, []string{"TDIGEST.CREATE", ""}},
	{[]string{"digest", "1"}, []string{"TDIGEST.CREATE", "", "COMPRESSION", "500"}},
}

func (g *sketches) next(r *rand.Rand) *op {
	if g.made == nil {
		g.restart(nil)
	}
	s := reservations[r.IntN(len(reservations))]
	for g.only != "" && s.kind[0] != g.only {
		s = reservations[r.IntN(len(reservations))]
	}
	kind, key := s.kind[0], g.label+":"+s.kind[0]+s.kind[1]
	if !g.made[key] || r.IntN(1000) == 0 {
		g.made[key] = true
		for n := range sketchItems {
			delete(g.added, key+" "+item(n))
		}
		args := slices.Clone(s.args)
		args[1] = key
		return transaction(command{args: []string{"DEL", key}}, command{args: args})
	}
	if r.IntN(100) == 0 {
		return plain("COPY", key, g.label+":copy"+kind, "REPLACE")
	}
	switch kind {
	case "bloom":
		args := [][]string{{"BF.ADD", key}, {"BF.MADD", key}, {"BF.INSERT", key, "ITEMS"}}[r.IntN(3)]
		for range 1 + r.IntN(4) {
			if args = append(args, item(r.IntN(bloomItems))); args[0] == "BF.ADD" {
				break
			}
		}
		return plain(args...)
	case "cuckoo":
		return g.cuckoo(r, key)
	case "counts":
		if a, b := g.label+":counts0", g.label+":counts1"; s.kind[1] == "2" && g.made[a] && g.made[b] && r.IntN(10) == 0 {
			return plain("CMS.MERGE", key, "2", a, b, "WEIGHTS", "2", "1")
		}
		args := []string{"CMS.INCRBY", key}
		for range 1 + r.IntN(3) {
			args = append(args, item(r.IntN(sketchItems)), strconv.Itoa(r.IntN(100)))
		}
		return plain(args...)
	case "top":
		if r.IntN(2) == 0 {
			return plain("TOPK.INCRBY", key, item(r.IntN(topItems)), strconv.Itoa(1+r.IntN(100)))
		}
		return plain("TOPK.ADD", key, item(r.IntN(topItems)), item(r.IntN(topItems)))
	default:
		other := g.label + ":digest" + strconv.Itoa(r.IntN(2))
		if n := r.IntN(100); n == 0 {
			return plain("TDIGEST.RESET", key)
		} else if n < 3 && other != key && g.made[other] {
			return plain("TDIGEST.MERGE", g.label+":merged", "2", key, other, "OVERRIDE")
		}
		args := []string{"TDIGEST.ADD", key}
		for range 1 + r.IntN(5) {
			args = append(args, strconv.Itoa(r.IntN(1000)))
		}
		return plain(args...)
	}
}

// cuckoo adds an item of which the filter does not have the most copies, or deletes one that it has.
func (g *sketches) cuckoo(r *rand.Rand, key string) *op {
	e := item(r.IntN(sketchItems))
	at := key + " " + e
	n := g.added[at]
	switch {
	case n > 0 && (n == mostCopies || r.IntN(2) == 0):
		g.added[at]--
		return plain("CF.DEL", key, e)
	case r.IntN(3) == 0:
		g.added[at] = max(n, 1)
		return plain("CF.ADDNX", key, e)
	case r.IntN(3) == 0:
		g.added[at]++
		return plain("CF.INSERT", key, "ITEMS", e)
	}
	g.added[at]++
	return plain("CF.ADD", key, e)
}

// reserve makes an effect that makes an empty sketch.
func reserve(kind string) func(model, *call) {
	return func(m model, c *call) {
		m[c.place(1)] = newValue(kind)
		if kind == digestKind {
			resetDigest(m, c)
		}
	}
}

func bfadd(m model, c *call) {
	v := m[c.place(1)]
	for _, e := range c.args[2:] {
		if e != "ITEMS" {
			v.elems[e] = "1"
		}
	}
}

func cfadd(m model, c *call) {
	v, e := m[c.place(1)], c.args[len(c.args)-1]
	if c.args[0] != "CF.ADDNX" || v.elems[e] == "" {
		v.elems[e] = addInt(v.elems[e], 1)
	}
}

func cfdel(m model, c *call) {
	v, e := m[c.place(1)], c.args[2]
	if v.elems[e] = addInt(v.elems[e], -1); v.elems[e] == "0" {
		delete(v.elems, e)
	}
}

// incrItems models CMS.INCRBY and TOPK.INCRBY.
func incrItems(m model, c *call) {
	v := m[c.place(1)]
	for i := 2; i < len(c.args); i += 2 {
		if c.args[i+1] != "0" {
			v.elems[c.args[i]] = addInt(v.elems[c.args[i]], c.int(i+1))
		}
	}
}

// cmsmerge models CMS.MERGE to 2 a b WEIGHTS 2 1.
func cmsmerge(m model, c *call) {
	v := m[c.place(1)]
	clear(v.elems)
	for i, weight := range []int{c.int(6), c.int(7)} {
		for e, n := range m[place{c.db, c.args[3+i]}].elems {
			count, _ := strconv.Atoi(n)
			v.elems[e] = addInt(v.elems[e], weight*count)
		}
	}
}

func topkadd(m model, c *call) {
	v := m[c.place(1)]
	for _, e := range c.args[2:] {
		v.elems[e] = addInt(v.elems[e], 1)
	}
}

func resetDigest(m model, c *call) {
	m[c.place(1)].elems = map[string]string{"observations": "0", "min": "nan", "max": "nan", "sum": "nan"}
}

func tdigestadd(m model, c *call) {
	v := m[c.place(1)]
	for _, number := range c.args[2:] {
		v.join(map[string]string{"observations": "1", "min": number, "max": number, "sum": number})
	}
}

// tdigestmerge models TDIGEST.MERGE to 2 a b OVERRIDE.
func tdigestmerge(m model, c *call) {
	v := newValue(digestKind)
	for _, key := range c.args[3:5] {
		v.join(m[place{c.db, key}].elems)
	}
	m[c.place(1)] = v
}

// join adds the numbers of one t-digest to another's.
func (v *value) join(other map[string]string) {
	if v.elems["observations"] == "0" || len(v.elems) == 0 {
		v.elems = maps.Clone(other)
		return
	} else if other["observations"] == "0" {
		return
	}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			panic("no number: " + text)
		}
		return n
	}
	v.elems["min"] = strconv.Itoa(min(number(v.elems["min"]), number(other["min"])))
	v.elems["max"] = strconv.Itoa(max(number(v.elems["max"]), number(other["max"])))
	for _, name := range []string{"observations", "sum"} {
		v.elems[name] = addInt(v.elems[name], number(other[name]))
	}
}

// readSketch queries all items. reply is the reply to the kind's entry in readCommands.
func (v *value) readSketch(c *transcript.Conn, key string, reply transcript.Value) error {
	command, items := "", sketchItems
	switch v.kind {
	case topKind:
		for i := 0; i+1 < len(reply.Elems); i += 2 {
			v.elems[reply.Elems[i].Text] = reply.Elems[i+1].Text
		}
		return nil
	case digestKind:
		return v.readDigest(c, key, reply)
	case bloomKind:
		command, items = "BF.MEXISTS", bloomItems
	case cuckooKind:
		var commands [][]string
		for n := range items {
			commands = append(commands, []string{"CF.COUNT", key, item(n)})
		}
		counts, err := ask(c, commands...)
		if err == nil {
			v.counts(counts)
		}
		return err
	case countsKind:
		command = "CMS.QUERY"
	}
	args := []string{command, key}
	for n := range items {
		args = append(args, item(n))
	}
	replies, err := ask(c, args)
	if err != nil {
		return err
	}
	v.counts(replies[0].Elems)
	// An item that the filter found before it was added is not counted.
	if card, err := strconv.Atoi(reply.Text); v.kind == bloomKind && (err != nil || card > len(v.elems)) {
		return fmt.Errorf("BF.CARD says %s, BF.MEXISTS finds %d items", reply.Text, len(v.elems))
	}
	return nil
}

// counts keeps the counts of the items, by number, that are not 0.
func (v *value) counts(counts []transcript.Value) {
	for n, count := range counts {
		if count.Text != "0" {
			v.elems[item(n)] = count.Text
		}
	}
}

func (v *value) readDigest(c *transcript.Conn, key string, info transcript.Value) error {
	replies, err := ask(c, []string{"TDIGEST.MIN", key}, []string{"TDIGEST.MAX", key},
		[]string{"TDIGEST.TRIMMED_MEAN", key, "0", "1"})
	if err != nil {
		return err
	}
	observations := fields(info)["Observations"]
	v.elems = map[string]string{"observations": observations, "min": replies[0].Text, "max": replies[1].Text, "sum": "nan"}
	if n, _ := strconv.ParseFloat(observations, 64); n > 0 {
		mean, err := strconv.ParseFloat(replies[2].Text, 64)
		if err != nil {
			return err
		}
		v.elems["sum"] = strconv.Itoa(int(math.Round(mean * n)))
	}
	return nil
}

func init() {
	maps.Copy(effects, map[string]func(model, *call){
		"BF.RESERVE": reserve(bloomKind), "BF.ADD": bfadd, "BF.MADD": bfadd, "BF.INSERT": bfadd,
		"CF.RESERVE": reserve(cuckooKind), "CF.ADD": cfadd, "CF.ADDNX": cfadd, "CF.INSERT": cfadd, "CF.DEL": cfdel,
		"CMS.INITBYDIM": reserve(countsKind), "CMS.INCRBY": incrItems, "CMS.MERGE": cmsmerge,
		"TOPK.RESERVE": reserve(topKind), "TOPK.ADD": topkadd, "TOPK.INCRBY": incrItems,
		"TDIGEST.CREATE": reserve(digestKind), "TDIGEST.RESET": resetDigest, "TDIGEST.ADD": tdigestadd,
		"TDIGEST.MERGE": tdigestmerge,
	})
}
