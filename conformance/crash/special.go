package crash

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/engine/geo"
	"github.com/atomredis/atomredis/engine/hyperloglog"
	"github.com/atomredis/atomredis/persist/rdb"
)

// special sends commands that treat a value as something other than its type (bits, sketches, positions), or make a
// value from others or from a payload.
type special struct {
	noObserver
	label string
	n     int
}

func (g *special) restart(model) {}

// restored are payloads of RESTORE and their values.
var restored = []struct {
	payload string
	value   value
}{
	{seal("\x00\x05hello"), value{kind: "string", text: "hello"}},
	{seal("\x00\xc0\x2a"), value{kind: "string", text: "42"}},
	{seal("\x01\x03\x01a\x01b\x01c"), value{kind: "list", list: []string{"a", "b", "c"}}},
	{seal("\x02\x03\x011\x012\x013"), value{kind: "set", elems: map[string]string{"1": "", "2": "", "3": ""}}},
	{seal("\x04\x02\x02f1\x01v\x02f2\xc0\x07"), value{kind: "hash", elems: map[string]string{"f1": "v", "f2": "7"}}},
	{seal("\x05\x01\x01a\x00\x00\x00\x00\x00\x00\x02@"), value{kind: "zset", elems: map[string]string{"a": "2.25"}}},
}

func seal(body string) string { return string(rdb.Seal([]byte(body))) }

// The places of GEOADD are near the origin, or so far from it that GEOSEARCHSTORE does not find them.
const (
	nearPlace = "near"
	farPlace  = "far"
)

func (g *special) next(r *rand.Rand) *op {
	g.n++
	number := strconv.Itoa(g.n)
	key := func(kind string) string { return g.label + ":" + kind + strconv.Itoa(r.IntN(3)) }
	switch r.IntN(22) {
	case 0, 1:
		return plain("SETBIT", key("bits"), strconv.Itoa(r.IntN(4000)), strconv.Itoa(r.IntN(2)))
	case 2, 3:
		return plain("BITFIELD", key("bits"), "SET", "u8", "#"+strconv.Itoa(r.IntN(300)), strconv.Itoa(r.IntN(256)),
			"INCRBY", "u8", "#"+strconv.Itoa(r.IntN(300)), strconv.Itoa(r.IntN(1000)))
	case 4:
		return plain("BITOP", "XOR", key("bits"), key("bits"), key("bits"))
	case 5, 6, 7:
		args := []string{"PFADD", key("sketch")}
		for range r.IntN(30) {
			args = append(args, "e"+strconv.Itoa(r.IntN(50_000)))
		}
		return plain(args...)
	case 8:
		return plain("PFMERGE", key("sketch"), key("sketch"))
	case 9:
		return plain("DEL", key("sketch"))
	case 10, 11:
		name, lon := nearPlace, float64(r.IntN(1000))/1000
		if r.IntN(3) == 0 {
			name, lon = farPlace, lon+90
		}
		return plain("GEOADD", key("geo"), strconv.FormatFloat(lon, 'f', -1, 64), strconv.Itoa(r.IntN(5)),
			name+strconv.Itoa(r.IntN(50)))
	case 12:
		return plain("GEOSEARCHSTORE", g.label+":geofound", key("geo"), "FROMLONLAT", "0", "0", "BYRADIUS", "3000", "km")
	case 13, 14:
		return plain("RPUSH", key("list"), strconv.Itoa(r.IntN(1000)), number)
	case 15:
		return plain("SORT", key("list"), []string{"ASC", "DESC"}[r.IntN(2)], "STORE", g.label+":sorted")
	case 16:
		return plain("LMPOP", "2", key("list"), key("list"), []string{"LEFT", "RIGHT"}[r.IntN(2)], "COUNT",
			strconv.Itoa(1+r.IntN(10)))
	case 17:
		return plain("ZMPOP", "2", key("geo"), key("geo"), []string{"MIN", "MAX"}[r.IntN(2)], "COUNT",
			strconv.Itoa(1+r.IntN(3)))
	case 18, 19:
		at := r.IntN(len(restored) - 1) // Redis 7 has no compressed bitmaps, the last one
		args := []string{"RESTORE", key("dump"), "0", restored[at].payload, "REPLACE"}
		if r.IntN(2) == 0 {
			args[2] = strconv.Itoa(10_000_000 + r.IntN(1_000_000))
		}
		return plain(args...)
	case 20:
		return plain("COPY", key("dump"), key("copy"), "REPLACE")
	default:
		o := plain("RENAME", key("dump"), key("copy"))
		o.mayFail = true
		return o
	}
}

// grow extends a text to at least n bytes and returns its bytes.
func grow(text string, n int) []byte {
	b := []byte(text)
	return append(b, make([]byte, max(0, n-len(b)))...)
}

func setbit(m model, c *call) {
	v, at := m.open(c.place(1), "string"), c.int(2)
	b := grow(v.text, at/8+1)
	bit := byte(1) << (7 - at%8)
	if b[at/8] &^= bit; c.args[3] == "1" {
		b[at/8] |= bit
	}
	v.text = string(b)
}

// bitfield models SET and INCRBY of u8 at #n.
func bitfield(m model, c *call) {
	v := m.open(c.place(1), "string")
	for i := 2; i < len(c.args); i += 4 {
		at, err := strconv.Atoi(c.args[i+2][1:])
		if err != nil {
			panic("the generator made a place of " + c.args[i+2])
		}
		b := grow(v.text, at+1)
		if c.args[i] == "SET" {
			b[at] = 0
		}
		b[at] += byte(c.int(i + 3))
		v.text = string(b)
	}
}

// bitop models BITOP XOR to a b.
func bitop(m model, c *call) {
	a, b := m.peek(place{c.db, c.args[3]}, "string").text, m.peek(place{c.db, c.args[4]}, "string").text
	result, kind := grow(a, len(b)), "string"
	for _, key := range c.args[3:] {
		if v := m[place{c.db, key}]; v != nil && v.kind == bitmapKind {
			kind = bitmapKind
		}
	}
	for i := range len(b) {
		result[i] ^= b[i]
	}
	if to := c.place(2); len(result) > 0 {
		m[to] = &value{kind: kind, text: string(result)}
	} else {
		delete(m, to)
	}
}

// maxSparse is the default of hll-sparse-max-bytes.
const maxSparse = 3000

// sketch returns an editor for a HyperLogLog.
func sketch(v *value) hyperloglog.Editor {
	b := []byte(v.text)
	if len(b) == 0 {
		b = hyperloglog.Append(nil)
	}
	return hyperloglog.Edit(b, maxSparse)
}

func pfadd(m model, c *call) {
	p := c.place(1)
	created := m[p] == nil
	v := m.open(p, "string")
	edit := sketch(v)
	for _, e := range c.args[2:] {
		if err := edit.Add([]byte(e)); err != nil {
			panic(err)
		}
	}
	if edit.Changed() || created {
		hyperloglog.Outdate(edit.Bytes())
		v.text = string(edit.Bytes())
	}
}

// pfmerge models PFMERGE to from.
func pfmerge(m model, c *call) {
	var all hyperloglog.Registers
	dense := false
	v := m.open(c.place(1), "string")
	for _, text := range []string{v.text, m.peek(place{c.db, c.args[2]}, "string").text} {
		if text == "" {
			continue
		}
		if err := all.Merge([]byte(text)); err != nil {
			panic(err)
		}
		dense = dense || hyperloglog.IsDense([]byte(text))
	}
	edit := sketch(v)
	var err error
	if dense {
		err = edit.Densify()
	}
	if err == nil {
		err = edit.Raise(&all)
	}
	if err != nil {
		panic(err)
	}
	hyperloglog.Outdate(edit.Bytes())
	v.text = string(edit.Bytes())
}

func geoadd(m model, c *call) {
	v := m.open(c.place(1), "zset")
	lon, _ := strconv.ParseFloat(c.args[2], 64)
	lat, _ := strconv.ParseFloat(c.args[3], 64)
	v.elems[c.args[4]] = strconv.FormatUint(geo.Position{Lon: lon, Lat: lat}.Score(), 10)
}

// geosearchstore models searches that find the near places.
func geosearchstore(m model, c *call) {
	found := newValue("zset")
	for name, score := range m.peek(place{c.db, c.args[2]}, "zset").elems {
		if strings.HasPrefix(name, nearPlace) {
			found.elems[name] = score
		}
	}
	m[c.place(1)] = found
}

// sortStore models SORT list ASC|DESC STORE to, of integers.
func sortStore(m model, c *call) {
	sorted := slices.Clone(m.peek(place{c.db, c.args[1]}, "list").list)
	slices.SortFunc(sorted, func(a, b string) int {
		x, _ := strconv.Atoi(a)
		y, _ := strconv.Atoi(b)
		if c.args[2] == "DESC" {
			return y - x
		}
		return x - y
	})
	m[c.place(4)] = &value{kind: "list", list: sorted}
}

// firstOf returns the first of two keys that exists, as LMPOP and ZMPOP 2 a b choose it.
func firstOf(m model, c *call) place {
	for i := range 2 {
		if p := (place{c.db, c.args[2+i]}); m[p] != nil {
			return c.place(2 + i)
		}
	}
	return c.place(2)
}

func lmpop(m model, c *call) {
	v := m.peek(firstOf(m, c), "list")
	n := min(c.int(6), len(v.list))
	if c.args[4] == "LEFT" {
		v.list = slices.Delete(v.list, 0, n)
	} else {
		v.list = v.list[:len(v.list)-n]
	}
}

func zmpop(m model, c *call) {
	v := m.peek(firstOf(m, c), "zset")
	names := v.ranked()
	if c.args[4] == "MAX" {
		slices.Reverse(names)
	}
	for _, e := range names[:min(c.int(6), len(names))] {
		delete(v.elems, e)
	}
}

// restore models RESTORE key ms payload REPLACE.
func restore(m model, c *call) {
	p := c.place(1)
	for i := range restored {
		if restored[i].payload == c.args[3] {
			v := restored[i].value.clone()
			if ttl := int64(c.int(2)); ttl != 0 {
				c.deadline(v, "PX", ttl)
			}
			m[p] = v
		}
	}
}
