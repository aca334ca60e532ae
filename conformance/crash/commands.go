package crash

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// command is a command that changes data, in a database.
type command struct {
	db   int
	args []string
	// reply is the server's reply that shows the command's outcome; nil while it is unknown.
	reply *transcript.Value
}

// call is one execution of a command on a model.
type call struct {
	command
	// when is the time between sending and reply.
	when window
	// found is the server's state in the end. It decides choices of the server whose reply was lost.
	found   *snapshot
	touched []place
}

// place names the key in an argument, and records that it may change.
func (c *call) place(i int) place {
	p := place{c.db, c.args[i]}
	c.touched = append(c.touched, p)
	return p
}

func (c *call) int(i int) int {
	n, err := strconv.Atoi(c.args[i])
	if err != nil {
		panic("the generator made a number of " + c.args[i])
	}
	return n
}

// effects are the commands that the model implements, as far as the generators use them. Keys always have the right
// type.
var effects = map[string]func(model, *call){}

func init() {
	maps.Copy(effects, map[string]func(model, *call){
		"SET": set, "MSET": mset, "GETSET": getset, "GETDEL": del, "GETEX": getex, "INCR": incr, "INCRBY": incr,
		"DECRBY":      incr,
		"INCRBYFLOAT": incrbyfloat, "APPEND": appendText, "SETRANGE": setrange,
		"DEL": del, "UNLINK": del, "RENAME": rename, "COPY": copyKey, "MOVE": move, "EXPIRE": expire, "PEXPIRE": expire,
		"PEXPIREAT": expire, "PERSIST": persist, "FLUSHDB": flushdb, "SWAPDB": swapdb,
		"LPUSH": push, "RPUSH": push, "LPOP": pop, "RPOP": pop, "LSET": lset, "LTRIM": ltrim, "LINSERT": linsert,
		"LREM":  lrem,
		"LMOVE": lmove,
		"HSET":  hset, "HDEL": remove, "HINCRBY": hincrby,
		"SADD": sadd, "SREM": remove, "SMOVE": smove, "SPOP": spop, "SUNIONSTORE": setStore, "SDIFFSTORE": setStore,
		"ZADD": zadd, "ZREM": remove, "ZINCRBY": zincrby, "ZPOPMIN": zpopmin, "ZREMRANGEBYRANK": zremrangebyrank,
		"ZUNIONSTORE": zunionstore,
		"XADD":        xadd, "XTRIM": xtrim, "XDEL": xdel, "XGROUP": xgroup, "XREADGROUP": xreadgroup, "XACK": xack,
		"XAUTOCLAIM": xautoclaim, "XCLAIM": xclaim, "XDELEX": xdelex, "XACKDEL": xackdel,
		"SETBIT": setbit, "BITFIELD": bitfield, "BITOP": bitop, "PFADD": pfadd, "PFMERGE": pfmerge,
		"GEOADD": geoadd, "GEOSEARCHSTORE": geosearchstore, "SORT": sortStore, "LMPOP": lmpop, "ZMPOP": zmpop,
		"RESTORE": restore,
		"HEXPIRE": hexpire, "HPEXPIRE": hexpire, "HPEXPIREAT": hexpire, "HPERSIST": hpersist, "HGETEX": hgetex,
		"HGETDEL": hgetdel,
		"SEXPIRE": sexpire, "SPEXPIRE": sexpire, "SPEXPIREAT": sexpire, "SPERSIST": spersist, "SADDEX": saddex,
		"BLESS":  bless,
		"HSETEX": hsetex, "DELEX": delex, "MSETEX": msetex, "FUNCTION": function, "FCALL": fcall,
	})
}

// apply executes a command on the model and returns the keys that may have changed.
func (m model) apply(c *call) []place {
	effects[c.args[0]](m, c)
	for _, p := range c.touched {
		if v := m[p]; v != nil && v.empty() {
			delete(m, p)
		}
	}
	return c.touched
}

// deadline sets the time to live from an option of SET and GETEX, or the name of a command of the EXPIRE family.
func (c *call) deadline(v *value, unit string, n int64) {
	switch unit {
	case "EX", "EXPIRE":
		v.lo, v.hi = c.when.from+n*1000, c.when.to+n*1000
	case "PX", "PEXPIRE":
		v.lo, v.hi = c.when.from+n, c.when.to+n
	case "PXAT", "PEXPIREAT":
		v.lo, v.hi = n, n
	}
}

func set(m model, c *call) {
	p := c.place(1)
	v := &value{kind: "string", text: c.args[2]}
	for i := 3; i < len(c.args); i++ {
		if c.args[i] == "KEEPTTL" {
			if old := m[p]; old != nil {
				v.lo, v.hi = old.lo, old.hi
			}
			continue
		}
		if c.args[i] == "IFEQ" || c.args[i] == "IFNE" {
			if !m[p].meets(c.args[i], c.args[i+1]) {
				return
			}
			i++
			continue
		}
		c.deadline(v, c.args[i], int64(c.int(i+1)))
		i++
	}
	m[p] = v
}

func mset(m model, c *call) {
	for i := 1; i < len(c.args); i += 2 {
		m[c.place(i)] = &value{kind: "string", text: c.args[i+1]}
	}
}

func getset(m model, c *call) { m[c.place(1)] = &value{kind: "string", text: c.args[2]} }

func getex(m model, c *call) {
	v := m[c.place(1)]
	switch {
	case v == nil:
	case c.args[2] == "PERSIST":
		v.lo, v.hi = 0, 0
	default:
		c.deadline(v, c.args[2], int64(c.int(3)))
	}
}

func incr(m model, c *call) {
	v := m.open(c.place(1), "string")
	by := 1
	if len(c.args) > 2 {
		by = c.int(2)
	}
	if c.args[0] == "DECRBY" {
		by = -by
	}
	v.text = addInt(v.text, by)
}

func addInt(text string, by int) string {
	n, _ := strconv.Atoi(text)
	return strconv.Itoa(n + by)
}

// addFloat adds as Redis does, for small numbers that are exact in binary.
func addFloat(text, by string) string {
	a, _ := strconv.ParseFloat(text, 64)
	b, _ := strconv.ParseFloat(by, 64)
	return strconv.FormatFloat(a+b, 'f', -1, 64)
}

func incrbyfloat(m model, c *call) {
	v := m.open(c.place(1), "string")
	v.text = addFloat(v.text, c.args[2])
}

func appendText(m model, c *call) { m.open(c.place(1), "string").text += c.args[2] }

func setrange(m model, c *call) {
	v, at := m.open(c.place(1), "string"), c.int(2)
	b := append([]byte(v.text), make([]byte, max(0, at+len(c.args[3])-len(v.text)))...)
	copy(b[at:], c.args[3])
	v.text = string(b)
}

func del(m model, c *call) {
	for i := range c.args[1:] {
		delete(m, c.place(i+1))
	}
}

func rename(m model, c *call) {
	from, to := c.place(1), c.place(2)
	if v := m[from]; v != nil {
		delete(m, from)
		m[to] = v
	}
}

// copyKey models COPY from to [DB n] REPLACE.
func copyKey(m model, c *call) {
	v := m[place{c.db, c.args[1]}]
	to := place{c.db, c.args[2]}
	if c.args[3] == "DB" {
		to.db = c.int(4)
	}
	c.touched = append(c.touched, to)
	if v != nil {
		m[to] = v.clone()
		m[to].blessed = false
		if v.kind == seriesKind {
			m[to].list = nil // rules are not copied
		}
	}
}

func move(m model, c *call) {
	from := c.place(1)
	to := place{c.int(2), c.args[1]}
	c.touched = append(c.touched, to)
	if v := m[from]; v != nil && m[to] == nil {
		delete(m, from)
		m[to] = v
	}
}

func expire(m model, c *call) {
	p := c.place(1)
	n := int64(c.int(2))
	switch v := m[p]; {
	case v == nil:
	case n < 0:
		delete(m, p)
	default:
		c.deadline(v, c.args[0], n)
	}
}

func persist(m model, c *call) {
	if v := m[c.place(1)]; v != nil {
		v.lo, v.hi = 0, 0
	}
}

func flushdb(m model, c *call) {
	c.touchDatabase(m, c.db)
	for _, p := range c.touched {
		delete(m, p)
	}
}

func swapdb(m model, c *call) {
	a, b := c.int(1), c.int(2)
	c.touchDatabase(m, a)
	c.touchDatabase(m, b)
	swapped := model{}
	for p, v := range m {
		switch p.db {
		case a:
			swapped[place{b, p.key}] = v
		case b:
			swapped[place{a, p.key}] = v
		default:
			continue
		}
		delete(m, p)
	}
	maps.Copy(m, swapped)
	c.touchDatabase(m, a)
	c.touchDatabase(m, b)
}

func (c *call) touchDatabase(m model, db int) {
	for p := range m {
		if p.db == db {
			c.touched = append(c.touched, p)
		}
	}
}

func push(m model, c *call) {
	v := m.open(c.place(1), "list")
	elems := slices.Clone(c.args[2:])
	if c.args[0] == "RPUSH" {
		v.list = append(v.list, elems...)
		return
	}
	slices.Reverse(elems)
	v.list = slices.Insert(v.list, 0, elems...)
}

func pop(m model, c *call) {
	v := m.peek(c.place(1), "list")
	n := 1
	if len(c.args) > 2 {
		n = c.int(2)
	}
	n = min(n, len(v.list))
	if c.args[0] == "LPOP" {
		v.list = slices.Delete(v.list, 0, n)
	} else {
		v.list = v.list[:len(v.list)-n]
	}
}

func lset(m model, c *call) {
	v, i := m.peek(c.place(1), "list"), c.int(2)
	if i < len(v.list) {
		v.list[i] = c.args[3]
	}
}

// ltrim models LTRIM key start stop with start counted from the left and stop from the right, as a negative number.
func ltrim(m model, c *call) {
	v := m.peek(c.place(1), "list")
	start, end := c.int(2), len(v.list)+c.int(3)+1
	if start < 0 {
		start = max(0, len(v.list)+start)
	}
	if start >= end {
		v.list = nil
		return
	}
	v.list = slices.Clone(v.list[start:end])
}

func linsert(m model, c *call) {
	v := m.peek(c.place(1), "list")
	if i := slices.Index(v.list, c.args[3]); i >= 0 {
		if c.args[2] == "AFTER" {
			i++
		}
		v.list = slices.Insert(v.list, i, c.args[4])
	}
}

// lrem models LREM key 1 element.
func lrem(m model, c *call) {
	v := m.peek(c.place(1), "list")
	if i := slices.Index(v.list, c.args[3]); i >= 0 {
		v.list = slices.Delete(v.list, i, i+1)
	}
}

// lmove models LMOVE from to LEFT RIGHT.
func lmove(m model, c *call) {
	from, to := c.place(1), c.place(2)
	if v := m[from]; v != nil {
		e := v.list[0]
		v.list = slices.Delete(v.list, 0, 1)
		w := m.open(to, "list")
		w.list = append(w.list, e)
	}
}

func hset(m model, c *call) {
	v := m.open(c.place(1), "hash")
	for i := 2; i < len(c.args); i += 2 {
		v.elems[c.args[i]] = c.args[i+1]
		delete(v.fields, c.args[i])
	}
}

func hincrby(m model, c *call) {
	v := m.open(c.place(1), "hash")
	v.elems[c.args[2]] = addInt(v.elems[c.args[2]], c.int(3))
}

// remove models HDEL, SREM and ZREM.
func remove(m model, c *call) {
	v := m.peek(c.place(1), "hash")
	for _, e := range c.args[2:] {
		delete(v.elems, e)
		delete(v.fields, e)
	}
}

func sadd(m model, c *call) {
	v := m.open(c.place(1), "set")
	for _, e := range c.args[2:] {
		v.elems[e] = ""
	}
}

func smove(m model, c *call) {
	from, to := m.peek(c.place(1), "set"), c.place(2)
	if _, ok := from.elems[c.args[3]]; ok {
		delete(from.elems, c.args[3])
		m.open(to, "set").elems[c.args[3]] = ""
	}
}

// spop models SPOP key n. The reply names the removed members; without it they are the ones missing in the end.
func spop(m model, c *call) {
	p := c.place(1)
	v := m.peek(p, "set")
	if c.reply != nil {
		for _, e := range c.reply.Elems {
			delete(v.elems, e.Text)
		}
		return
	}
	n := min(c.int(2), len(v.elems))
	left := c.found.data.peek(p, "set")
	for _, e := range slices.Collect(maps.Keys(v.elems)) {
		if _, ok := left.elems[e]; !ok && n > 0 {
			delete(v.elems, e)
			n--
		}
	}
	if n > 0 { // fewer are missing than it removes, so it cannot have been executed: make the difference show
		clear(v.elems)
	}
}

func setStore(m model, c *call) {
	to := c.place(1)
	result := maps.Clone(m.peek(place{c.db, c.args[2]}, "set").elems)
	for _, key := range c.args[3:] {
		for e := range m.peek(place{c.db, key}, "set").elems {
			if c.args[0] == "SUNIONSTORE" {
				result[e] = ""
			} else {
				delete(result, e)
			}
		}
	}
	m[to] = &value{kind: "set", elems: result}
}

func zadd(m model, c *call) {
	v := m.open(c.place(1), "zset")
	for i := 2; i < len(c.args); i += 2 {
		v.elems[c.args[i+1]] = c.args[i]
	}
}

func zincrby(m model, c *call) {
	v := m.open(c.place(1), "zset")
	v.elems[c.args[3]] = addFloat(v.elems[c.args[3]], c.args[2])
}

// ranked lists the members of a sorted set in order.
func (v *value) ranked() []string {
	type member struct {
		name  string
		score float64
	}
	members := make([]member, 0, len(v.elems))
	for e, s := range v.elems {
		score, _ := strconv.ParseFloat(s, 64)
		members = append(members, member{e, score})
	}
	slices.SortFunc(members, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.score, b.score),
			strings.Compare(a.name, b.name))
	})
	names := make([]string, len(members))
	for i, e := range members {
		names[i] = e.name
	}
	return names
}

func zpopmin(m model, c *call) {
	v := m.peek(c.place(1), "zset")
	for _, e := range v.ranked()[:min(c.int(2), len(v.elems))] {
		delete(v.elems, e)
	}
}

// zremrangebyrank models ZREMRANGEBYRANK with ranks from 0 on.
func zremrangebyrank(m model, c *call) {
	v := m.peek(c.place(1), "zset")
	names := v.ranked()
	for _, e := range names[min(c.int(2), len(names)):min(c.int(3)+1, len(names))] {
		delete(v.elems, e)
	}
}

// zunionstore models ZUNIONSTORE to 2 a b.
func zunionstore(m model, c *call) {
	to := c.place(1)
	result := maps.Clone(m.peek(place{c.db, c.args[3]}, "zset").elems)
	for e, s := range m.peek(place{c.db, c.args[4]}, "zset").elems {
		result[e] = addFloat(result[e], s)
	}
	m[to] = &value{kind: "zset", elems: result}
}
