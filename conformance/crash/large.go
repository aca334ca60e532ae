package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// large changes random elements of one collection with many elements, and occasionally moves or deletes it.
type large struct {
	noObserver
	label, kind string
	// size is the intended number of elements; have is the approximate number.
	size, have int
	// n numbers the contents, so that no two are equal.
	n int
}

// fillStep is the number of elements that a command adds while the collection grows.
const fillStep = 500

func (g *large) key() string { return g.label + ":large" }

func (g *large) restart(m model) {
	g.have = 0
	if v := m[place{0, g.key()}]; v != nil {
		g.have = len(v.list) + len(v.elems)
	}
}

func (g *large) element(n int) string { return fmt.Sprintf("element-%06d", n) }

func (g *large) any(r *rand.Rand) string { return g.element(r.IntN(g.size)) }

// content makes a text, rarely a long one.
func (g *large) content(r *rand.Rand) string {
	g.n++
	length := r.IntN(20)
	if r.IntN(100) == 0 {
		length = r.IntN(20_000)
	}
	return strconv.Itoa(g.n) + strings.Repeat("c", length)
}

func (g *large) next(r *rand.Rand) *op {
	if g.have < g.size {
		return g.grow(r)
	}
	switch r.IntN(400) {
	case 0:
		g.have = 0
		return plain("DEL", g.key())
	case 1:
		return plain("COPY", g.key(), g.label+":copy", "REPLACE")
	case 2:
		return plain("UNLINK", g.label+":copy")
	case 3, 4:
		change := g.change(r)
		change[1] = g.label + ":moved"
		return transaction(command{args: []string{"RENAME", g.key(), change[1]}}, command{args: change},
			command{args: []string{"RENAME", change[1], g.key()}})
	case 5, 6:
		commands := make([]command, 20)
		for i := range commands {
			commands[i].args = g.change(r)
		}
		return transaction(commands...)
	case 7:
		return plain("EXPIRE", g.key(), strconv.Itoa(100_000+r.IntN(100_000)))
	case 8:
		if g.kind == "set" {
			o := plain("SPOP", g.key(), strconv.Itoa(1+r.IntN(20)))
			o.loose = true
			return o
		}
	}
	return plain(g.change(r)...)
}

// grow adds some elements.
func (g *large) grow(r *rand.Rand) *op {
	args := []string{map[string]string{"list": "RPUSH", "hash": "HSET", "set": "SADD", "zset": "ZADD"}[g.kind], g.key()}
	for range min(fillStep, g.size-g.have) {
		e := g.element(g.have)
		g.have++
		switch g.kind {
		case "list":
			args = append(args, g.content(r))
		case "hash":
			args = append(args, e, g.content(r))
		case "set":
			args = append(args, e)
		case "zset":
			args = append(args, strconv.Itoa(r.IntN(g.size)), e)
		}
	}
	return plain(args...)
}

// change makes a command that changes some elements and leaves their number about the same.
func (g *large) change(r *rand.Rand) []string {
	switch g.kind {
	case "list":
		return g.changeList(r)
	case "hash":
		switch r.IntN(6) {
		case 0:
			return []string{"HDEL", g.key(), g.any(r), g.any(r)}
		case 1:
			return []string{"HINCRBY", g.key(), "count" + strconv.Itoa(r.IntN(100)), "1"}
		}
		return []string{"HSET", g.key(), g.any(r), g.content(r), g.any(r), g.content(r)}
	case "set":
		switch r.IntN(3) {
		case 0:
			return []string{"SREM", g.key(), g.any(r), g.any(r)}
		case 1:
			return []string{"SADD", g.key(), g.any(r), g.any(r)}
		}
		return []string{"SMOVE", g.key(), g.label + ":beside", g.any(r)}
	}
	switch r.IntN(20) {
	case 0:
		return []string{"ZREMRANGEBYRANK", g.key(), strconv.Itoa(r.IntN(100)), "102"}
	case 1, 2, 3, 4, 5:
		return []string{"ZREM", g.key(), g.any(r), g.any(r)}
	case 6, 7, 8, 9:
		return []string{"ZINCRBY", g.key(), strconv.Itoa(1 + r.IntN(100)), g.any(r)}
	}
	return []string{"ZADD", g.key(), strconv.Itoa(r.IntN(g.size)), g.any(r), strconv.Itoa(r.IntN(g.size)), g.any(r)}
}

func (g *large) changeList(r *rand.Rand) []string {
	switch r.IntN(12) {
	case 0:
		return []string{"LPUSH", g.key(), g.content(r)}
	case 1:
		return []string{"RPUSH", g.key(), g.content(r)}
	case 2:
		return []string{"LPOP", g.key()}
	case 3:
		return []string{"RPOP", g.key()}
	case 4:
		return []string{"LINSERT", g.key(), "BEFORE", "mark" + strconv.Itoa(r.IntN(20)), g.content(r)}
	case 5:
		return []string{"LREM", g.key(), "1", "mark" + strconv.Itoa(r.IntN(20))}
	case 6:
		return []string{"LSET", g.key(), strconv.Itoa(r.IntN(g.size / 2)), "mark" + strconv.Itoa(r.IntN(20))}
	}
	return []string{"LSET", g.key(), strconv.Itoa(r.IntN(g.size / 2)), g.content(r)}
}
