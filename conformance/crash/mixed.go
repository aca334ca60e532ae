package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// mixed sends commands of all kinds to a few small keys of each type.
type mixed struct {
	noObserver
	label string
	n     int
}

func (g *mixed) restart(model) {}

// mixedLength is the approximate length that lists and streams reach.
const mixedLength = 200

func (g *mixed) next(r *rand.Rand) *op {
	switch n := r.IntN(100); {
	case n < 8:
		commands := make([]command, 2+r.IntN(6))
		mayFail := false
		for i := range commands {
			commands[i].args = g.command(r)
			mayFail = mayFail || fails(commands[i].args)
		}
		o := transaction(commands...)
		o.mayFail = mayFail
		return o
	case n < 11:
		return g.chosenByServer(r)
	}
	o := plain(g.command(r)...)
	o.mayFail = fails(o.commands[0].args)
	return o
}

// fails reports whether a command may find its key or element missing.
func fails(args []string) bool { return args[0] == "RENAME" || args[0] == "LSET" }

// key names one of n keys of a kind.
func (g *mixed) key(r *rand.Rand, kind string, n int) string {
	return g.label + ":" + kind + strconv.Itoa(r.IntN(n))
}

// pair names two different keys of a kind.
func (g *mixed) pair(r *rand.Rand, kind string) (string, string) {
	n := r.IntN(3)
	return g.label + ":" + kind + strconv.Itoa(n), g.label + ":" + kind + strconv.Itoa((n+1+r.IntN(2))%3)
}

// fresh makes a text that was not used before.
func (g *mixed) fresh(r *rand.Rand) string {
	g.n++
	return strconv.Itoa(g.n) + strings.Repeat("v", r.IntN(30))
}

// chosenByServer makes an operation whose outcome the server chooses.
func (g *mixed) chosenByServer(r *rand.Rand) *op {
	g.n++
	key := g.key(r, "stream", 2)
	o := plain("SPOP", g.key(r, "set", 3), strconv.Itoa(1+r.IntN(3)))
	switch r.IntN(3) {
	case 0:
		o = plain("XADD", key, "MAXLEN", "~", strconv.Itoa(mixedLength), strconv.Itoa(g.n)+"-1", "f", g.fresh(r))
	case 1:
		o = plain("XTRIM", key, "MAXLEN", "~", strconv.Itoa(mixedLength/2))
	}
	if o.commands[0].args[0] != "SPOP" {
		o.wire = append(o.wire, []string{"XLEN", key})
		o.replyAt[0] = 1
	}
	o.loose = true
	return o
}

// command makes a command whose outcome follows from the data.
func (g *mixed) command(r *rand.Rand) []string {
	switch r.IntN(6) {
	case 0:
		return g.textCommand(r)
	case 1:
		return g.listCommand(r)
	case 2:
		return g.hashCommand(r)
	case 3:
		return g.setCommand(r)
	case 4:
		return g.zsetCommand(r)
	default:
		return g.anyCommand(r)
	}
}

func (g *mixed) textCommand(r *rand.Rand) []string {
	text, count := g.key(r, "text", 3), g.key(r, "count", 2)
	switch r.IntN(12) {
	case 0:
		return []string{"INCR", count}
	case 1:
		return []string{"INCRBY", count, strconv.Itoa(r.IntN(1000))}
	case 2:
		return []string{"DECRBY", count, strconv.Itoa(r.IntN(1000))}
	case 3:
		return []string{"INCRBYFLOAT", g.key(r, "float", 2), strconv.FormatFloat(float64(r.IntN(4000)-2000)/4, 'f', -1, 64)}
	case 4, 5:
		return []string{"APPEND", text, g.fresh(r)}
	case 6:
		return []string{"SETRANGE", text, strconv.Itoa(r.IntN(500)), g.fresh(r)}
	case 7:
		return []string{"GETSET", text, g.fresh(r)}
	case 8:
		return []string{"GETDEL", text}
	case 9:
		return []string{"MSET", text, g.fresh(r), g.label + ":other", g.fresh(r)}
	default:
		return []string{"SET", text, g.fresh(r)}
	}
}

func (g *mixed) listCommand(r *rand.Rand) []string {
	list, to := g.pair(r, "list")
	switch r.IntN(10) {
	case 0, 1:
		return []string{"LPUSH", list, g.fresh(r), g.fresh(r)}
	case 2:
		return []string{"RPUSH", list, g.fresh(r), g.fresh(r), strconv.Itoa(r.IntN(10))}
	case 3:
		return []string{"LPOP", list}
	case 4:
		return []string{"RPOP", list, strconv.Itoa(1 + r.IntN(3))}
	case 5:
		return []string{"LSET", list, strconv.Itoa(r.IntN(mixedLength / 4)), g.fresh(r)}
	case 6:
		return []string{"LTRIM", list, strconv.Itoa(-mixedLength), "-1"}
	case 7:
		return []string{"LINSERT", list, []string{"BEFORE", "AFTER"}[r.IntN(2)], strconv.Itoa(r.IntN(10)), g.fresh(r)}
	case 8:
		return []string{"LREM", list, "1", strconv.Itoa(r.IntN(10))}
	default:
		return []string{"LMOVE", list, to, "LEFT", "RIGHT"}
	}
}

func (g *mixed) hashCommand(r *rand.Rand) []string {
	hash := g.key(r, "hash", 3)
	switch r.IntN(3) {
	case 0:
		return []string{"HINCRBY", hash, "count" + strconv.Itoa(r.IntN(10)), strconv.Itoa(r.IntN(100))}
	case 1:
		return []string{"HDEL", hash, "f" + strconv.Itoa(r.IntN(200)), "count" + strconv.Itoa(r.IntN(10))}
	default:
		return []string{"HSET", hash, "f" + strconv.Itoa(r.IntN(200)), g.fresh(r), "f" + strconv.Itoa(r.IntN(200)),
			g.fresh(r)}
	}
}

func (g *mixed) setCommand(r *rand.Rand) []string {
	set, to := g.pair(r, "set")
	// Sets of numbers as well as of words.
	member := func() string {
		if n := r.IntN(300); n < 280 {
			return strconv.Itoa(n)
		}
		return "m" + strconv.Itoa(r.IntN(50))
	}
	switch r.IntN(8) {
	case 0, 1, 2:
		return []string{"SADD", set, member(), member(), member()}
	case 3:
		return []string{"SREM", set, member(), member()}
	case 4, 5:
		return []string{"SMOVE", set, to, member()}
	case 6:
		return []string{"SDIFFSTORE", g.label + ":setresult", set, to}
	default:
		return []string{"SUNIONSTORE", g.label + ":setresult", set, to}
	}
}

func (g *mixed) zsetCommand(r *rand.Rand) []string {
	zset, other := g.pair(r, "zset")
	member := func() string { return "m" + strconv.Itoa(r.IntN(200)) }
	switch r.IntN(7) {
	case 0, 1:
		return []string{"ZADD", zset, strconv.Itoa(r.IntN(100)), member(), strconv.Itoa(r.IntN(100)) + ".5", member()}
	case 2:
		return []string{"ZINCRBY", zset, strconv.Itoa(r.IntN(10) + 1), member()}
	case 3:
		return []string{"ZREM", zset, member(), member()}
	case 4:
		return []string{"ZPOPMIN", zset, "2"}
	case 5:
		return []string{"ZREMRANGEBYRANK", zset, "3", "5"}
	default:
		return []string{"ZUNIONSTORE", g.label + ":zsetresult", "2", zset, other}
	}
}

// anyCommand makes a command on streams, or one that works on keys of all types.
func (g *mixed) anyCommand(r *rand.Rand) []string {
	kind := []string{"text", "list", "hash", "set", "zset"}[r.IntN(5)]
	key, to := g.pair(r, kind)
	stream := g.key(r, "stream", 2)
	g.n++
	switch r.IntN(10) {
	case 0:
		return []string{"RENAME", key, to}
	case 1:
		return []string{"COPY", key, to, "REPLACE"}
	case 2:
		return []string{"EXPIRE", key, strconv.Itoa(10_000 + r.IntN(100_000))}
	case 3:
		return []string{"PERSIST", key}
	case 4:
		return []string{[]string{"DEL", "UNLINK"}[r.IntN(2)], key}
	case 5:
		return []string{"XDEL", stream, fmt.Sprintf("%d-1", max(1, g.n-r.IntN(300)))}
	case 6:
		return []string{"XTRIM", stream, "MAXLEN", strconv.Itoa(mixedLength)}
	default:
		return []string{"XADD", stream, fmt.Sprintf("%d-1", g.n), "f", g.fresh(r)}
	}
}
