package crash

import (
	"math/rand/v2"
	"strconv"
)

// compared sends commands that depend on a key's value: a few keys hold one of a few values.
type compared struct {
	noObserver
	label string
}

func (g *compared) restart(model) {}

func (g *compared) next(r *rand.Rand) *op {
	key := func() string { return g.label + ":key" + strconv.Itoa(r.IntN(4)) }
	val := func() string { return string(rune('a' + r.IntN(3))) }
	condition := []string{"IFEQ", "IFNE"}[r.IntN(2)]
	seconds := strconv.Itoa(1000 + r.IntN(1_000_000))
	switch r.IntN(9) {
	case 0, 1:
		return plain("SET", key(), val(), condition, val())
	case 2:
		return plain("SET", key(), val(), condition, val(), "KEEPTTL")
	case 3:
		return plain("SET", key(), val(), condition, val(), "EX", seconds)
	case 4:
		return plain("DELEX", key(), condition, val())
	case 5:
		return plain("MSETEX", "2", key(), val(), key(), val(), "EX", seconds)
	case 6:
		return plain("MSETEX", "2", key(), val(), key(), val(), "KEEPTTL")
	case 7:
		return plain("MSETEX", "2", key(), val(), key(), val(), []string{"NX", "XX"}[r.IntN(2)])
	default:
		return plain("SET", key(), val())
	}
}

// meets reports whether a value, which may be nil, meets IFEQ or IFNE text.
func (v *value) meets(condition, text string) bool {
	if v == nil {
		return condition == "IFNE"
	}
	return (v.text == text) == (condition == "IFEQ")
}

// delex models DELEX key IFEQ|IFNE text.
func delex(m model, c *call) {
	if p := c.place(1); m[p] != nil && m[p].meets(c.args[2], c.args[3]) {
		delete(m, p)
	}
}

// msetex models MSETEX 2 key text key text [NX|XX|KEEPTTL|EX n].
func msetex(m model, c *call) {
	keys := []place{c.place(2), c.place(4)}
	option := ""
	if len(c.args) > 6 {
		option = c.args[6]
	}
	for _, p := range keys {
		if m[p] != nil && option == "NX" || m[p] == nil && option == "XX" {
			return
		}
	}
	for i, p := range keys {
		v := &value{kind: "string", text: c.args[3+2*i]}
		switch old := m[p]; {
		case option == "EX":
			c.deadline(v, option, int64(c.int(7)))
		case option == "KEEPTTL" && old != nil:
			v.lo, v.hi = old.lo, old.hi
		}
		m[p] = v
	}
}
