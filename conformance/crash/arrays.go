package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// arrays changes a sparse array, a large one, a log and a ring. A value of this kind has the elements, by index, in
// elems, and the cursor in text.
type arrays struct {
	noObserver
	label string
	n     int
}

const (
	arrayKind   = "array"
	largeArray  = 20_000
	ringSize    = 700
	lastElement = "18446744073709551614"
)

func (g *arrays) restart(model) {}

// content makes a unique element, rarely a long one.
func (g *arrays) content(r *rand.Rand) string {
	g.n++
	length := r.IntN(20)
	if r.IntN(50) == 0 {
		length = r.IntN(3000)
	}
	return strconv.Itoa(g.n) + strings.Repeat("c", length)
}

// contents appends elements to a command's arguments.
func (g *arrays) contents(r *rand.Rand, args ...string) []string {
	for range 1 + r.IntN(5) {
		args = append(args, g.content(r))
	}
	return args
}

// index is one of a few indices far from one another, or of many adjacent ones.
func (g *arrays) index(r *rand.Rand, kind string) uint64 {
	if kind == "sparse" {
		return uint64(1) << r.IntN(63) * uint64(r.IntN(3))
	}
	return r.Uint64N(largeArray)
}

func (g *arrays) next(r *rand.Rand) *op {
	kind := []string{"sparse", "large", "large", "log", "ring"}[r.IntN(5)]
	key := g.label + ":" + kind
	switch n := r.IntN(1000); {
	case n == 0:
		return plain("DEL", key)
	case n < 5:
		return plain("COPY", key, key+"copy", "REPLACE")
	case n < 15:
		return transaction(command{args: g.change(r, kind, key)}, command{args: g.change(r, kind, key)})
	}
	return plain(g.change(r, kind, key)...)
}

// change makes a command.
func (g *arrays) change(r *rand.Rand, kind, key string) []string {
	at := func() string { return strconv.FormatUint(g.index(r, kind), 10) }
	switch kind {
	case "ring":
		return g.contents(r, "ARRING", key, strconv.Itoa(ringSize))
	case "log":
		switch r.IntN(20) {
		case 0:
			return []string{"ARSEEK", key, strconv.Itoa(r.IntN(largeArray))}
		case 1:
			from := r.IntN(largeArray)
			return []string{"ARDELRANGE", key, strconv.Itoa(from), strconv.Itoa(from + r.IntN(largeArray/20))}
		}
		return g.contents(r, "ARINSERT", key)
	}
	switch r.IntN(10) {
	case 0, 1:
		return []string{"ARDEL", key, at(), at()}
	case 2:
		from := g.index(r, kind)
		return []string{"ARDELRANGE", key, strconv.FormatUint(from+r.Uint64N(100), 10), strconv.FormatUint(from, 10)}
	case 3, 4, 5:
		return []string{"ARMSET", key, at(), g.content(r), at(), g.content(r), at(), g.content(r)}
	}
	return g.contents(r, "ARSET", key, at())
}

// number is an argument that is an index.
func (c *call) number(i int) uint64 {
	n, err := strconv.ParseUint(c.args[i], 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// openArray returns the array of a key, and makes an empty one if there is none.
func (m model) openArray(p place) *value {
	v := m.open(p, arrayKind)
	if v.text == "" {
		v.text = "0"
	}
	return v
}

func arset(m model, c *call) {
	v := m.openArray(c.place(1))
	for i, content := range c.args[3:] {
		v.elems[strconv.FormatUint(c.number(2)+uint64(i), 10)] = content
	}
}

func armset(m model, c *call) {
	v := m.openArray(c.place(1))
	for i := 2; i < len(c.args); i += 2 {
		v.elems[c.args[i]] = c.args[i+1]
	}
}

func ardelrange(m model, c *call) {
	from, to := min(c.number(2), c.number(3)), max(c.number(2), c.number(3))
	v := m.peek(c.place(1), arrayKind)
	for i := from; i <= to; i++ {
		delete(v.elems, strconv.FormatUint(i, 10))
	}
}

// put stores elements at the cursor.
func (v *value) put(contents []string, size uint64) {
	for _, content := range contents {
		at, _ := strconv.ParseUint(v.text, 10, 64)
		at %= size
		v.elems[strconv.FormatUint(at, 10)] = content
		v.text = strconv.FormatUint(at+1, 10)
	}
}

func arinsert(m model, c *call) { m.openArray(c.place(1)).put(c.args[2:], 1<<63) }

// arring models ARRING with a constant size, of an array from which nothing is deleted.
func arring(m model, c *call) { m.openArray(c.place(1)).put(c.args[3:], c.number(2)) }

func arseek(m model, c *call) {
	if v := m[c.place(1)]; v != nil {
		v.text = c.args[2]
	}
}

// readArray reads an array of the elements that ARSCAN has found.
func (v *value) readArray(c *transcript.Conn, key string, elements []transcript.Value) error {
	length := "0"
	for _, e := range elements {
		v.elems[e.Elems[0].Text] = e.Elems[1].Text
		last, err := strconv.ParseUint(e.Elems[0].Text, 10, 64)
		if err != nil {
			return err
		}
		length = strconv.FormatUint(last+1, 10)
	}
	replies, err := ask(c, []string{"ARNEXT", key}, []string{"ARCOUNT", key}, []string{"ARLEN", key})
	if err != nil {
		return err
	}
	v.text = replies[0].Text
	if count := strconv.Itoa(len(v.elems)); replies[1].Text != count || replies[2].Text != length {
		return fmt.Errorf("%s elements up to index %s; ARCOUNT says %s, ARLEN %s", count, length, replies[1].Text, replies[2].Text)
	}
	return nil
}

func init() {
	maps.Copy(effects, map[string]func(model, *call){
		"ARSET": arset, "ARMSET": armset, "ARDEL": remove, "ARDELRANGE": ardelrange, "ARINSERT": arinsert, "ARRING": arring,
		"ARSEEK": arseek,
	})
}
