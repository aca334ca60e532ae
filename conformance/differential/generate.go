// Package differential sends the same random commands to two servers and compares every reply.
package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// The connections of a sequence, as numbers for Op.Conn.
const (
	mainConn = iota
	// otherConn modifies watched keys and unblocks the blocked client.
	otherConn
	// subscriber only subscribes and receives.
	subscriber
	// blocker only sends blocking commands without a timeout.
	blocker
	connCount
)

// connNames are the names of the connections in transcripts.
var connNames = [connCount]string{"", "b", "s", "w"}

// Op is the unit that the minimiser keeps or drops: commands sent in one batch on one connection.
type Op struct {
	Conn int
	Cmds [][]string
	// Settles has the servers settle (Language.Settle) between an operation without it and this one.
	Settles bool
	// Chained sends the commands one by one, each built from the reply before it (Language.Rewrite).
	Chained bool
}

// generator makes one sequence of operations from a random source.
type generator struct {
	rnd *rand.Rand
	ops []Op
	// group is the kind of key that the current command mostly uses.
	group string
	// blocks reports that a client may be waiting on keys.
	blocks bool
	// lastID makes stream IDs increase most of the time.
	lastID int
}

// rule is a line of the grammar.
type rule struct {
	weight int
	words  []string
}

var parsed = parseGrammar()

func parseGrammar() map[string][]rule {
	all := map[string][]rule{}
	for group, text := range grammar {
		for line := range strings.Lines(strings.TrimSpace(text)) {
			weight, form, _ := strings.Cut(strings.TrimSpace(line), " ")
			n, err := strconv.Atoi(weight)
			if err != nil {
				panic(fmt.Sprintf("grammar of %s: %q has no weight", group, line))
			}
			all[group] = append(all[group], rule{n, splitForm(form)})
		}
	}
	return all
}

// splitForm splits at spaces outside of brackets.
func splitForm(form string) []string {
	var words []string
	depth, start := 0, 0
	for i := 0; i <= len(form); i++ {
		switch {
		case i == len(form) || form[i] == ' ' && depth == 0:
			words = append(words, form[start:i])
			start = i + 1
		case form[i] == '[' || form[i] == '(':
			depth++
		case form[i] == ']' || form[i] == ')':
			depth--
		}
	}
	return words
}

// splitChoice splits at bars outside of inner brackets.
func splitChoice(s string) []string {
	var parts []string
	depth, start := 0, 0
	for i := 0; i <= len(s); i++ {
		switch {
		case i == len(s) || s[i] == '|' && depth == 0:
			parts = append(parts, s[start:i])
			start = i + 1
		case s[i] == '[' || s[i] == '(':
			depth++
		case s[i] == ']' || s[i] == ')':
			depth--
		}
	}
	return parts
}

// Generate makes the sequence of operations for a seed, with about the given number of commands.
func Generate(seed uint64, commands int) []Op {
	g := &generator{rnd: rand.New(rand.NewPCG(seed, 0x61746f6d))}
	g.opening()
	// A sequence favours one group, so that its keys grow and are used by many commands.
	favourite := groups[g.rnd.IntN(len(groups))]
	for n := 0; n < commands; n++ {
		group := favourite
		if g.chance(40) {
			group = groups[g.rnd.IntN(len(groups))]
		}
		switch roll := g.rnd.IntN(1000); {
		case roll < 8:
			n += g.transaction(group)
		case roll < 20:
			g.script(group)
		case roll < 22:
			g.grow(group)
		case roll < 26:
			g.block()
		case roll < 29:
			g.subscribe()
		case roll < 34:
			g.spop()
		case roll < 38:
			g.verified()
		case roll < 41:
			g.add(mainConn, append([]string{"COMMAND", g.pick("GETKEYS", "GETKEYSANDFLAGS")}, g.command(group)...))
		case roll < 44:
			g.outOfMemory(group)
		case roll < 60:
			g.add(otherConn, g.command(group))
		default:
			g.add(mainConn, g.command(group))
		}
	}
	return g.ops
}

// opening chooses protocol versions and keyspace events.
func (g *generator) opening() {
	if g.chance(35) {
		g.add(mainConn, []string{"HELLO", "3"})
	}
	if g.chance(25) {
		g.add(otherConn, []string{"CONFIG", "SET", "notify-keyspace-events", "KEA"})
		if g.chance(50) {
			g.add(subscriber, []string{"HELLO", "3"})
		}
		g.add(subscriber, []string{"PSUBSCRIBE", "__key*"})
	}
}

func (g *generator) add(conn int, cmds ...[]string) {
	g.ops = append(g.ops, Op{Conn: conn, Cmds: cmds})
}

func (g *generator) chance(percent int) bool { return g.rnd.IntN(100) < percent }

func (g *generator) pick(choices ...string) string { return choices[g.rnd.IntN(len(choices))] }

// command makes one command of a group, occasionally a broken one.
func (g *generator) command(group string) []string {
	g.group = group
	rules := parsed[group]
	total := 0
	for _, r := range rules {
		total += r.weight
	}
	n := g.rnd.IntN(total)
	var words []string
	for _, r := range rules {
		if n -= r.weight; n < 0 {
			words = g.expand(r.words)
			break
		}
	}
	// A wait costs as much time as many commands, so most waits are left out.
	if (words[0][0] == 'B' || slices.Contains(words, "BLOCK")) && !g.chance(15) {
		return g.command(group)
	}
	// The order in which SWAPDB serves the keys that a client waits for depends on Redis's random hash seed.
	if words[0] == "SWAPDB" && g.blocks {
		return g.command(group)
	}
	return g.spoil(words)
}

// spoil breaks three commands in a hundred. A blocking command is only ever shortened: any other change could make it
// wait forever.
func (g *generator) spoil(words []string) []string {
	if !g.chance(3) {
		if g.chance(3) {
			words[0] = strings.ToLower(words[0])
		}
		return words
	}
	blocking := words[0][0] == 'B' || words[0] == "XREAD" || words[0] == "XREADGROUP" || words[0] == "WAIT"
	// A word that is a valid port would make both servers replicas.
	replica := words[0] == "REPLICAOF" || words[0] == "SLAVEOF"
	sameScores := words[0] == "ZADD" && slices.Contains(lexKeys, words[1])
	// A random choice of minus two thousand million members would exhaust the memory of both servers.
	choice := strings.Contains(words[0], "RAND")
	// Without ABSTTL, a time long past becomes a time to live of a millisecond.
	if slices.Contains(words, "ABSTTL") {
		return words
	}
	if blocking || replica || sameScores || choice || len(words) < 2 || g.chance(40) {
		return words[:1+g.rnd.IntN(len(words))]
	}
	i := 1 + g.rnd.IntN(len(words)-1)
	// An additional argument of ZRANK is an error in Redis 7.0 and an option since; EXEC would show it as a difference.
	if g.chance(30) && words[0] != "ZRANK" && words[0] != "ZREVRANK" {
		return append(words, g.fill("val"))
	}
	// A number that determines the time to live must stay far from the present.
	if isTTL(words, i) {
		words[i] = g.pick("", "abc", "1.5", "9223372036854775808", "-1", "0")
		return words
	}
	words[i] = g.pick("", "abc", "0", "-1", "1.5", "nan", "inf", "9223372036854775807", "-9223372036854775808",
		"9223372036854775808", "FOO", "(1", "\xff\x00", "COUNT")
	return words
}

// isTTL reports whether a word is the time to live of a command, or becomes one.
func isTTL(words []string, i int) bool {
	switch words[0] {
	case "SET", "GETEX", "SETEX", "PSETEX":
		return true
	}
	return strings.Contains(words[0], "EXPIRE") && i == 2
}

func (g *generator) expand(words []string) []string {
	var out []string
	for _, w := range words {
		out = append(out, g.expandWord(w)...)
	}
	return out
}

func (g *generator) expandWord(w string) []string {
	switch {
	case strings.HasPrefix(w, "["):
		if g.chance(65) {
			return nil
		}
		return g.expand(splitForm(g.pick(splitChoice(w[1 : len(w)-1])...)))
	case strings.HasPrefix(w, "("):
		return g.expand(splitForm(g.pick(splitChoice(w[1 : len(w)-1])...)))
	case strings.HasSuffix(w, "..."):
		var out []string
		for range 1 + g.rnd.IntN(3) {
			out = append(out, g.fill(strings.TrimSuffix(w, "...")))
		}
		return out
	case w == "keys" || w == "zkeys":
		n := 1 + g.rnd.IntN(3)
		out := []string{strconv.Itoa(n)}
		for range n {
			out = append(out, g.fill(strings.TrimSuffix(w, "s")))
		}
		return out
	case w == "elements":
		var out []string
		for range 1 + g.rnd.IntN(400) {
			out = append(out, g.fill("element"))
		}
		return out
	case w == "trim":
		return g.trim()
	}
	return []string{g.fill(w)}
}

func (g *generator) trim() []string {
	if g.chance(50) {
		return []string{"MAXLEN", g.pick("0", "2", "5", "100", "-1")}
	}
	return []string{"MINID", g.fill("id")}
}

// transaction adds a transaction, with or without WATCH and disturbances, and returns its number of commands.
func (g *generator) transaction(group string) int {
	if g.chance(60) {
		g.add(mainConn, []string{"WATCH", g.fill("anykey"), g.fill("anykey")})
		if g.chance(30) {
			g.add(mainConn, g.command(group))
		}
		if g.chance(60) {
			g.add(otherConn, g.command(group))
		}
	}
	g.add(mainConn, []string{"MULTI"})
	n := g.rnd.IntN(7)
	for range n {
		g.add(mainConn, g.command(group))
		if g.chance(10) {
			g.add(otherConn, g.command(group))
		}
	}
	// When memory is exhausted, 7.0 refuses to queue even commands that need none, unlike newer versions. So memory is
	// exhausted after queueing.
	full := g.chance(10)
	if full {
		g.limitMemory(true)
	}
	g.add(mainConn, []string{g.pick("EXEC", "EXEC", "EXEC", "EXEC", "DISCARD")})
	if full {
		g.limitMemory(false)
	}
	return n
}

// outOfMemory adds a period in which commands that need memory are refused, because nothing may be evicted.
func (g *generator) outOfMemory(group string) {
	g.limitMemory(true)
	for range 1 + g.rnd.IntN(6) {
		if g.chance(20) {
			g.script(group)
		} else {
			g.add(mainConn, g.command(group))
		}
	}
	g.limitMemory(false)
}

// limitMemory sets a limit that every server exceeds, or none.
func (g *generator) limitMemory(on bool) {
	limit := "0"
	if on {
		limit = "1"
	}
	g.add(otherConn, []string{"CONFIG", "SET", "maxmemory", limit})
}

// callScript runs its arguments as a command; its reply is compared by the rule for that command.
const callScript = "return redis.call(unpack(ARGV))"

// script adds a script that runs one or several generated commands.
func (g *generator) script(group string) {
	cmd := g.command(group)
	if !mayBeScripted(cmd) {
		cmd = []string{"GET", g.fill("key")}
	}
	body := callScript
	switch g.rnd.IntN(6) {
	case 0:
		body = "return redis.pcall(unpack(ARGV))"
	case 1:
		body = "local r = redis.pcall(unpack(ARGV)); return type(r)"
	case 2:
		body = "redis.call('RPUSH', KEYS[1], unpack(ARGV)); return redis.call('LRANGE', KEYS[1], 0, -1)"
	case 3:
		g.add(mainConn, []string{"EVAL", "return {" + g.pick("1", "'a'", "1.5", "true", "false", "nil", "{ok='x'}",
			"{err='y'}") + "," +
			g.pick("{1,{2}}", "-3.7", "tostring(1e15)", "#ARGV", "KEYS[1]", "redis.status_reply('S')") + "}", "1",
			g.fill("anykey"), "arg"})
		return
	}
	name := "EVAL"
	if g.chance(20) {
		name = "EVAL_RO"
	}
	g.add(mainConn, append([]string{name, body, "1", g.fill("anykey")}, cmd...))
}

// mayBeScripted reports whether a script may run a command with the same effect on all servers. Redis before 7.2
// refuses commands that block.
func mayBeScripted(cmd []string) bool {
	switch strings.ToUpper(cmd[0]) {
	case "SELECT", "CLIENT", "BLPOP", "BRPOP", "BLMPOP", "BLMOVE", "BRPOPLPUSH", "BZPOPMIN", "BZPOPMAX", "BZMPOP", "WAIT":
		return false
	case "XREAD", "XREADGROUP":
		return !containsWord(cmd, "BLOCK")
	}
	return true
}

// grow makes a collection cross the sizes at which Redis changes its encoding.
func (g *generator) grow(group string) {
	g.group = group
	n := []int{100, 130, 140, 520}[g.rnd.IntN(4)]
	key, start := g.fill("key"), g.rnd.IntN(100)
	words := map[string][]string{
		"hash": {"HSET", key}, "list": {"RPUSH", key}, "set": {"SADD", key}, "sorted_set": {"ZADD", key},
	}[group]
	if words == nil {
		return
	}
	scores := 17
	if group == "sorted_set" && g.chance(30) {
		words[1], scores = g.fill("lexkey"), 1
	}
	for i := start; i < start+n; i++ {
		switch group {
		case "hash":
			words = append(words, fmt.Sprintf("f%d", i), strconv.Itoa(i))
		case "sorted_set":
			words = append(words, strconv.Itoa(i%scores), fmt.Sprintf("m%d", i))
		default:
			words = append(words, strconv.Itoa(i))
		}
	}
	g.add(mainConn, words)
}

// block adds a command that waits without limit; the runner ends its wait before the next one.
func (g *generator) block() {
	g.group = g.pick("list", "sorted_set", "stream")
	var cmd []string
	switch g.group {
	case "list":
		cmd = g.expand(splitForm(g.pick("BLPOP key... 0", "BRPOP key... 0", "BLMOVE key key (LEFT|RIGHT) (LEFT|RIGHT) 0",
			"BLMPOP 0 keys (LEFT|RIGHT) [COUNT 3]", "BRPOPLPUSH key key 0")))
	case "sorted_set":
		cmd = g.expand(splitForm(g.pick("BZPOPMIN key... 0", "BZPOPMAX key... 0", "BZMPOP 0 keys (MIN|MAX) [COUNT 3]")))
	case "stream":
		cmd = g.expand(splitForm(g.pick("XREAD BLOCK 0 STREAMS key key $ $", "XREAD COUNT 2 BLOCK 0 STREAMS key id",
			"XREADGROUP GROUP group consumer BLOCK 0 STREAMS key >")))
	}
	g.blocks = true
	g.add(blocker, cmd)
}

func (g *generator) subscribe() {
	g.add(subscriber, g.expand(splitForm(g.pick("SUBSCRIBE channel...", "PSUBSCRIBE pattern", "UNSUBSCRIBE channel",
		"PUNSUBSCRIBE pattern",
		"SSUBSCRIBE channel", "SUNSUBSCRIBE channel"))))
}

// spop adds SPOP in a way whose effect is certain: it takes everything, or the key is deleted afterwards.
func (g *generator) spop() {
	g.group = "set"
	key := g.fill("key")
	if g.chance(50) {
		g.add(mainConn, []string{"SPOP", key, "100000"})
		return
	}
	cmd := []string{"SPOP", key}
	if g.chance(60) {
		cmd = append(cmd, g.pick("0", "1", "2", "5", "-1", "abc"))
	}
	g.add(mainConn, []string{"SMEMBERS", key}, cmd, []string{"DEL", key})
}

// verified adds a random choice after the full read that shows the possible choices.
func (g *generator) verified() {
	switch g.rnd.IntN(3) {
	case 0:
		g.group = "set"
		key := g.fill("key")
		g.add(mainConn, []string{"SMEMBERS", key}, []string{"SRANDMEMBER", key, g.fill("count")})
	case 1:
		g.group = "hash"
		key := g.fill("key")
		g.add(mainConn, []string{"HKEYS", key}, []string{"HRANDFIELD", key, g.fill("count")})
	case 2:
		g.group = "sorted_set"
		key := g.fill("key")
		g.add(mainConn, []string{"ZRANGE", key, "0", "-1"}, []string{"ZRANDMEMBER", key, g.fill("count")})
	}
}
