package crash

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// sequence writes the same number to keys of several types at once, in a transaction or a script, so that after a
// restart all of them have the same number.
type sequence struct {
	label  string
	script bool
	// loaded reports that the server knows the script.
	loaded bool
	n      int
}

// sequenceKept is the number of elements that the collections of a sequence keep.
const sequenceKept = 300

// sequenceScript does the same as commands. The first seven keys are given, the eighth is in database 1.
const sequenceScript = `
local n, k, old = ARGV[1], KEYS, ARGV[2]
redis.call('SET', k[1], n)
redis.call('HSET', k[2], 'n', n, 'f' .. n, n)
redis.call('HDEL', k[2], 'f' .. old)
redis.call('SADD', k[3], n)
redis.call('SREM', k[3], old)
redis.call('ZADD', k[4], n, n)
redis.call('ZREM', k[4], old)
redis.call('RPUSH', k[5], n)
redis.call('LTRIM', k[5], -300, -1)
redis.call('XADD', k[6], 'MAXLEN', '=', '300', n .. '-0', 'n', n)
redis.call('INCR', k[7])
redis.call('SELECT', '1')
redis.call('SET', k[1], n, 'EX', '100000')
redis.call('SELECT', '0')
return n`

func (g *sequence) keys() []string {
	keys := make([]string, 0, 7)
	for _, s := range []string{"text", "hash", "set", "zset", "list", "stream", "count"} {
		keys = append(keys, g.label+":"+s)
	}
	return keys
}

func (g *sequence) commands() []command {
	g.n++
	n, old, k := strconv.Itoa(g.n), strconv.Itoa(g.n-sequenceKept), g.keys()
	commands := []command{
		{args: []string{"SET", k[0], n}},
		{args: []string{"HSET", k[1], "n", n, "f" + n, n}},
		{args: []string{"HDEL", k[1], "f" + old}},
		{args: []string{"SADD", k[2], n}},
		{args: []string{"SREM", k[2], old}},
		{args: []string{"ZADD", k[3], n, n}},
		{args: []string{"ZREM", k[3], old}},
		{args: []string{"RPUSH", k[4], n}},
		{args: []string{"LTRIM", k[4], strconv.Itoa(-sequenceKept), "-1"}},
		{args: []string{"XADD", k[5], "MAXLEN", "=", strconv.Itoa(sequenceKept), n + "-0", "n", n}},
		{args: []string{"INCR", k[6]}},
		{db: 1, args: []string{"SET", k[0], n, "EX", "100000"}},
	}
	return commands
}

func (g *sequence) next(r *rand.Rand) *op {
	commands := g.commands()
	if !g.script {
		if r.IntN(3) > 0 { // mostly in one database
			commands[len(commands)-1] = command{args: []string{"SET", g.label + ":last", strconv.Itoa(g.n)}}
		}
		return transaction(commands...)
	}
	o := &op{commands: commands}
	args := []string{"EVALSHA", scriptSHA, "7"}
	if r.IntN(20) == 0 {
		args = []string{"EVAL", sequenceScript, "7"}
	}
	if !g.loaded && args[0] == "EVALSHA" {
		o.loose = true // the server may not know it: wait for its answer
	}
	args = append(append(args, g.keys()...), strconv.Itoa(g.n), strconv.Itoa(g.n-sequenceKept))
	o.wire = [][]string{args}
	return o
}

func (g *sequence) observe(o *op) {
	switch {
	case o.void:
		g.n--
	case g.script:
		g.loaded = true
	}
}

func (g *sequence) restart(m model) {
	g.n, g.loaded = 0, false
	if v := m[place{0, g.label + ":text"}]; v != nil {
		g.n, _ = strconv.Atoi(v.text)
	}
}

// expiring makes keys with short and long times to live. A key with a short one is never written again.
type expiring struct {
	noObserver
	label string
	n     int
}

func (g *expiring) restart(model) {}

func (g *expiring) next(r *rand.Rand) *op {
	g.n++
	number := strconv.Itoa(g.n)
	fresh, long := g.label+":short"+number, g.label+":long"+strconv.Itoa(r.IntN(60))
	ttl := strconv.Itoa(30 + r.IntN(2970))
	at := strconv.FormatInt(time.Now().UnixMilli()+30+r.Int64N(2970), 10)
	seconds := strconv.Itoa(1000 + r.IntN(1_000_000))
	far := strconv.FormatInt(time.Now().UnixMilli()+1_000_000+r.Int64N(1_000_000_000), 10)
	switch r.IntN(20) {
	case 0:
		return plain("SET", fresh, number, "PX", ttl)
	case 1:
		return plain("SET", fresh, number, "PXAT", at)
	case 2:
		return transaction(command{args: []string{"HSET", fresh, "a", number, "b", "x"}},
			command{args: []string{"PEXPIRE", fresh, ttl}})
	case 3:
		return transaction(command{args: []string{"SADD", fresh, number, "x"}},
			command{args: []string{"PEXPIREAT", fresh, at}})
	case 4:
		return transaction(command{args: []string{"RPUSH", fresh, number, "x"}},
			command{args: []string{"EXPIRE", fresh, "1000"}},
			command{args: []string{"PEXPIRE", fresh, ttl}})
	case 5:
		return transaction(command{args: []string{"ZADD", fresh, number, "x"}},
			command{args: []string{"PEXPIREAT", fresh, at}},
			command{args: []string{"PERSIST", fresh}}, command{args: []string{"PEXPIREAT", fresh, at}})
	case 6:
		return transaction(command{args: []string{"SET", fresh, number}}, command{args: []string{"GETEX", fresh, "PX", ttl}})
	case 7:
		return plain("EXPIRE", long, "-1")
	case 8:
		return plain("DEL", long)
	case 9:
		return plain("GETEX", long, "PERSIST")
	case 10:
		return plain("GETEX", long, "PXAT", far)
	case 11:
		return plain("GETEX", long, "EX", seconds)
	case 12:
		return plain("SET", long, number, "KEEPTTL")
	case 13:
		return plain("EXPIRE", long, seconds)
	case 14:
		return plain("PEXPIREAT", long, far)
	case 15:
		return plain("APPEND", long, number)
	case 16:
		o := plain("RENAME", long, g.label+":long"+strconv.Itoa(r.IntN(60)))
		o.mayFail = true
		return o
	case 17:
		return plain("GETSET", long, number)
	default:
		return plain("SET", long, number, "EX", seconds)
	}
}

// grouped works on a stream with a group, as three consumers on one connection, so that the state of the group is known
// exactly.
type grouped struct {
	label string
	// newer reports that the server has XDELEX and XACKDEL.
	newer   bool
	created bool
	added   int
	// given are entries that may be pending.
	given []string
}

// groupedLimit is the number of entries at which a new stream is begun.
const groupedLimit = 2000

func (g *grouped) next(r *rand.Rand) *op {
	key, consumer := g.label+":stream", "c"+strconv.Itoa(r.IntN(3))
	if !g.created || g.added > groupedLimit {
		g.created, g.added, g.given = true, 0, nil
		commands := []command{{args: []string{"DEL", key}},
			{args: []string{"XGROUP", "CREATE", key, groupName, "0", "MKSTREAM"}}}
		for i := range 3 {
			commands = append(commands, command{args: []string{"XGROUP", "CREATECONSUMER", key, groupName,
				"c" + strconv.Itoa(i)}})
		}
		return transaction(commands...)
	}
	switch n := r.IntN(20); {
	case n < 7:
		g.added++
		o := plain("XADD", key, "*", "n", strconv.Itoa(g.added), "x", "y")
		o.loose = true
		return o
	case n < 12:
		return plain("XREADGROUP", "GROUP", groupName, consumer, "COUNT", strconv.Itoa(1+r.IntN(4)), "STREAMS", key, ">")
	case n < 13:
		return plain("XAUTOCLAIM", key, groupName, consumer, "0", "0-0", "COUNT", strconv.Itoa(1+r.IntN(4)))
	case len(g.given) == 0:
		return plain("XACK", key, groupName, "1-1")
	case n < 14:
		return plain("XCLAIM", key, groupName, consumer, "0", g.given[r.IntN(len(g.given))])
	default:
		i := r.IntN(len(g.given))
		id := g.given[i]
		references := []string{"KEEPREF", "DELREF", "ACKED"}[r.IntN(3)]
		if g.newer && n < 15 && references != "KEEPREF" { // it would leave entries pending that are gone
			return plain("XDELEX", key, references, "IDS", "1", id)
		}
		g.given[i] = g.given[len(g.given)-1]
		g.given = g.given[:len(g.given)-1]
		if g.newer && n < 17 {
			return plain("XACKDEL", key, groupName, references, "IDS", "1", id)
		}
		return plain("XACK", key, groupName, id)
	}
}

func (g *grouped) observe(o *op) {
	if o.commands[0].args[0] != "XREADGROUP" {
		return
	}
	for _, s := range o.replies[0].Elems {
		for _, e := range s.Elems[1].Elems {
			g.given = append(g.given, e.Elems[0].Text)
		}
	}
}

func (g *grouped) restart(m model) {
	g.created, g.added, g.given = false, 0, nil
	if v := m[place{0, g.label + ":stream"}]; v != nil {
		g.created, g.added = true, v.stream.added
		for id := range v.stream.groups[groupName].pending {
			g.given = append(g.given, id.String())
		}
	}
}
