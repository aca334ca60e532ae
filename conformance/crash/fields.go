package crash

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// fieldsOwner is the worker whose hashes have deadlines of fields that are read.
const fieldsOwner = "fields"

// fieldDeadlines gives fields of hashes short and long times to live. A field with a short one is never written again,
// and its hash has a permanent field, so no command depends on whether the field has expired yet.
type fieldDeadlines struct {
	noObserver
	label string
	n     int
}

func (g *fieldDeadlines) restart(model) {}

func (g *fieldDeadlines) next(r *rand.Rand) *op {
	g.n++
	number := strconv.Itoa(g.n)
	// Small hashes, and one that is large.
	at := r.IntN(4)
	hash, size := g.label+":hash"+strconv.Itoa(at), 20
	if at == 3 {
		size = 1000
	}
	first := r.IntN(size)
	f1, f2 := "f"+strconv.Itoa(first), "f"+strconv.Itoa((first+1+r.IntN(size-1))%size)
	seconds := strconv.Itoa(1000 + r.IntN(1_000_000))
	far := strconv.FormatInt(time.Now().UnixMilli()+1_000_000+r.Int64N(1_000_000_000), 10)
	condition := []string{"FNX", "FXX"}[r.IntN(2)]
	switch r.IntN(20) {
	case 0, 1, 2:
		return plain("HSET", hash, f1, number, f2, number)
	case 3:
		return plain("HSETEX", hash, "EX", seconds, "FIELDS", "2", f1, number, f2, number)
	case 4:
		return plain("HSETEX", hash, "PXAT", far, "FIELDS", "1", f1, number)
	case 5:
		return plain("HSETEX", hash, condition, "KEEPTTL", "FIELDS", "1", f1, number)
	case 6:
		return plain("HSETEX", hash, condition, "EX", seconds, "FIELDS", "2", f1, number, f2, number)
	case 7, 8:
		return plain("HEXPIRE", hash, seconds, "FIELDS", "2", f1, f2)
	case 9:
		return plain("HPEXPIRE", hash, seconds+"000", "FIELDS", "1", f1)
	case 10:
		return plain("HPEXPIREAT", hash, far, "FIELDS", "2", f1, f2)
	case 11:
		return plain("HEXPIRE", hash, "0", "FIELDS", "1", f1)
	case 12:
		return plain("HPERSIST", hash, "FIELDS", "2", f1, f2)
	case 13:
		return plain("HGETEX", hash, "PXAT", far, "FIELDS", "2", f1, f2)
	case 14:
		return plain("HGETEX", hash, "PERSIST", "FIELDS", "1", f1)
	case 15:
		return plain("HGETDEL", hash, "FIELDS", "2", f1, f2)
	case 16:
		return plain("HDEL", hash, f1, f2)
	case 17:
		if r.IntN(4) == 0 {
			return plain("DEL", hash)
		}
		return plain("COPY", hash, g.label+":hash"+strconv.Itoa((at+1+r.IntN(3))%4), "REPLACE")
	case 18:
		short := strconv.Itoa(30 + r.IntN(2970))
		return transaction(command{args: []string{"HSET", hash, "stays", number}},
			command{args: []string{"HSETEX", hash, "PX", short, "FIELDS", "2", "short" + number, number, "also" + number,
				number}})
	default:
		short := strconv.FormatInt(time.Now().UnixMilli()+30+r.Int64N(2970), 10)
		return transaction(command{args: []string{"HSET", hash, "stays", number, "short" + number, number}},
			command{args: []string{"HPEXPIREAT", hash, short, "FIELDS", "1", "short" + number}})
	}
}

// alive returns a hash or a set without the fields that may have expired when it was read and were not found.
func (v *value) alive(got *value, read window) *value {
	if v == nil || len(v.fields) == 0 {
		return v
	}
	left := v.clone()
	for f, w := range v.fields {
		found := false
		if got != nil {
			_, found = got.elems[f]
		}
		if w.to+clockSlack < read.from || w.from-clockSlack <= read.to && !found {
			delete(left.elems, f)
			delete(left.fields, f)
		}
	}
	if left.empty() {
		return nil
	}
	return left
}

// sameFields reports whether the found deadlines are within the expected windows.
func sameFields(want, got map[string]window) bool {
	return maps.EqualFunc(want, got, func(w, g window) bool { return w.from <= g.from && g.to <= w.to })
}

// settleFields accepts the found deadlines of a hash or a set as its state.
func (v *value) settleFields(found *value) {
	maps.DeleteFunc(v.elems, func(f, _ string) bool {
		_, there := found.elems[f]
		return (v.kind == "hash" || v.kind == "set") && !there
	})
	v.fields = maps.Clone(found.fields)
}

// readFields reads the deadlines of the fields of a hash or the members of a set.
func (v *value) readFields(c *transcript.Conn, key string) error {
	command, list := "HPEXPIRETIME", "FIELDS"
	if v.kind == "set" {
		command, list = "SPEXPIRETIME", "MEMBERS"
		replies, err := do(c, []string{"BLESS", "GET", key}) // fails if it has expired since it was read
		if err != nil {
			return err
		}
		v.blessed = len(replies[0].Elems) > 0
	}
	for names := range slices.Chunk(slices.Collect(maps.Keys(v.elems)), chunk) {
		replies, err := ask(c, append([]string{command, key, list, strconv.Itoa(len(names))}, names...))
		if err != nil {
			return err
		}
		for i, e := range replies[0].Elems {
			switch at, err := strconv.ParseInt(e.Text, 10, 64); {
			case err != nil:
				return err
			case at >= 0:
				v.setField(names[i], window{at, at})
			case at == -2:
				delete(v.elems, names[i]) // expired since it was read
			}
		}
	}
	return nil
}

func (v *value) setField(field string, w window) {
	if v.fields == nil {
		v.fields = map[string]window{}
	}
	v.fields[field] = w
}

// expireField sets the deadline of an existing field; a deadline in the past removes it.
func (c *call) expireField(v *value, field, unit string, n int64) {
	if _, ok := v.elems[field]; !ok {
		return
	}
	if n == 0 {
		delete(v.elems, field)
		delete(v.fields, field)
		return
	}
	var d value
	c.deadline(&d, unit, n)
	v.setField(field, window{d.lo, d.hi})
}

// hexpire models the commands HEXPIRE, HPEXPIRE and HPEXPIREAT key n FIELDS numfields field ….
func hexpire(m model, c *call) {
	v := m.peek(c.place(1), "hash")
	for _, f := range c.args[5:] {
		c.expireField(v, f, c.args[0][1:], int64(c.int(2)))
	}
}

// hpersist models HPERSIST key FIELDS numfields field ….
func hpersist(m model, c *call) {
	v := m.peek(c.place(1), "hash")
	for _, f := range c.args[4:] {
		delete(v.fields, f)
	}
}

// hgetex models HGETEX key PERSIST|(unit n) FIELDS numfields field ….
func hgetex(m model, c *call) {
	v := m.peek(c.place(1), "hash")
	if c.args[2] == "PERSIST" {
		for _, f := range c.args[5:] {
			delete(v.fields, f)
		}
		return
	}
	for _, f := range c.args[6:] {
		c.expireField(v, f, c.args[2], int64(c.int(3)))
	}
}

// hgetdel models HGETDEL key FIELDS numfields field ….
func hgetdel(m model, c *call) {
	v := m.peek(c.place(1), "hash")
	for _, f := range c.args[4:] {
		delete(v.elems, f)
		delete(v.fields, f)
	}
}

// hsetex models HSETEX key [FNX|FXX] KEEPTTL|(unit n) FIELDS numfields field value ….
func hsetex(m model, c *call) {
	p := c.place(1)
	at := slices.Index(c.args, "FIELDS")
	pairs := c.args[at+2:]
	old := m.peek(p, "hash").elems
	for i := 0; i < len(pairs); i += 2 {
		if _, ok := old[pairs[i]]; ok && c.args[2] == "FNX" || !ok && c.args[2] == "FXX" {
			return
		}
	}
	v := m.open(p, "hash")
	for i := 0; i < len(pairs); i += 2 {
		v.elems[pairs[i]] = pairs[i+1]
		if c.args[at-1] != "KEEPTTL" {
			c.expireField(v, pairs[i], c.args[at-2], int64(c.int(at-1)))
		}
	}
}
