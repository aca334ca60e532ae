package acl

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/conformance/differential"
)

// generator makes random rules and commands.
type generator struct {
	*rand.Rand
	known []commandInfo
	words []string // keys and other arguments
}

// patterns match some of the keys and channels that commands use.
var patterns = []string{"*", "a", "a*", "b", "b?", "[a-c]*", "k:*", "k:1", "s*", "*:*", "*1", "l*", "z*", "h*", "",
	"?", "**", "{a}*"}

var categories = []string{"all", "keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap",
	"hyperloglog", "geo", "stream",
	"pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting"}

// arguments are the arguments of random commands other than keys.
var arguments = []string{"0", "1", "2", "3", "-1", "10", "x", "*", "STORE", "STREAMS", "KEYS", "GET", "get", "SET",
	"BY", "LIMIT", "COUNT", "EX", "NX",
	"INCRBY", "OVERFLOW", "WRAP", "u8", "STOREDIST", "LEFT", "RIGHT", "AGGREGATE", "WEIGHTS", "a", "b", "c", "k:1",
	"k:2", "b1", "ch"}

func newGenerator(rnd *rand.Rand, known []commandInfo) *generator {
	return &generator{Rand: rnd, known: known, words: slices.Clone(arguments)}
}

func (g *generator) pick(list []string) string { return list[g.IntN(len(list))] }

// commands returns n commands: those of the random comparison, and any others with arguments that may make no sense.
func (g *generator) commands(n int, seed uint64) (list [][]string) {
	for _, op := range differential.Generate(seed, n) {
		for _, cmd := range op.Cmds {
			if len(list) < n/2 && g.knows(cmd) && !storesTwice(cmd) {
				list = append(list, cmd)
				g.words = append(g.words, cmd[1:]...)
			}
		}
	}
	for len(list) < n {
		info := g.known[g.IntN(len(g.known))]
		cmd := slices.Clone(info.words)
		least := max(info.arity, -info.arity)
		if info.arity < 0 {
			least += g.IntN(6)
		}
		for len(cmd) < least {
			cmd = append(cmd, g.pick(arguments))
		}
		if !storesTwice(cmd) {
			list = append(list, cmd)
		}
	}
	return list
}

// storesTwice reports whether a command names two destinations. Redis checks permissions for the first, and GEORADIUS
// stores at the last.
func storesTwice(cmd []string) bool {
	n := 0
	for _, word := range cmd {
		if strings.HasPrefix(strings.ToLower(word), "store") {
			n++
		}
	}
	return n > 1 && strings.HasPrefix(strings.ToLower(cmd[0]), "georadius")
}

// knows reports whether both servers have a command.
func (g *generator) knows(cmd []string) bool {
	return slices.ContainsFunc(g.known, func(info commandInfo) bool {
		return strings.EqualFold(cmd[0], info.words[0]) &&
			(len(info.words) == 1 || len(cmd) > 1 && strings.EqualFold(cmd[1], info.words[1]))
	})
}

// rules returns the rules of a user.
func (g *generator) rules() (rules []string) {
	for range 1 + g.IntN(8) {
		switch g.IntN(8) {
		case 0:
			selector := []string{"("}
			for range g.IntN(6) {
				selector = append(selector, g.rule())
			}
			rules = append(rules, strings.Join(selector, " ")+" )")
		case 1:
			rules = append(rules, g.pick([]string{"off", "on", ">pw", "nopass", "resetpass", "sanitize-payload",
				"skip-sanitize-payload", "clearselectors", "reset", ""}), "on", "nopass")
		default:
			rules = append(rules, g.rule())
		}
	}
	return rules
}

// rule returns a rule that may occur in a selector.
func (g *generator) rule() string {
	sign := g.pick([]string{"+", "-"})
	switch roll := g.IntN(100); {
	case roll < 25:
		return sign + "@" + g.pick(categories)
	case roll < 30:
		return g.pick([]string{"allcommands", "nocommands", "+@all", "-@all"})
	case roll < 45:
		return sign + strings.Join(g.known[g.IntN(len(g.known))].words, "|")
	case roll < 48:
		return "+" + g.known[g.IntN(len(g.known))].words[0] + "|" + g.argument()
	case roll < 70:
		return g.pick([]string{"~", "%R~", "%W~", "%RW~", "%r~", "%wr~"}) + g.pick(patterns)
	case roll < 80:
		// A pattern that matches a word of the commands.
		return g.pick([]string{"~", "~", "%R~", "%W~"}) + g.pattern()
	case roll < 84:
		return g.pick([]string{"allkeys", "resetkeys", "~*"})
	case roll < 96:
		return g.pick([]string{"allchannels", "resetchannels", "&*", "&" + g.pick(patterns), "&ch", "&c*"})
	case roll < 98:
		return "~" + strconv.Itoa(g.IntN(10)) + "*"
	}
	return g.pick([]string{"nope", "%X~a", "+nope", "-get|x", "+@nope", "~a b", "+config|nope", "%", "#x", "<x"})
}

// argument returns a word that may be a first argument.
func (g *generator) argument() string {
	if word := g.pick(g.words); !strings.ContainsAny(word, " \t\n\v\f\r\x00\"'()|") && word != "" {
		return word
	}
	return "x"
}

// pattern returns the beginning of a word followed by a star, or the whole word.
func (g *generator) pattern() string {
	word := g.argument()
	if g.IntN(2) == 0 {
		return word
	}
	return word[:1+g.IntN(len(word))] + "*"
}

// unfit are commands that are not executed: they block, change the connection or the server, or have no single reply.
var unfit = map[string]bool{"acl": true, "auth": true, "hello": true, "quit": true, "reset": true, "monitor": true,
	"subscribe": true, "psubscribe": true,
	"ssubscribe": true, "unsubscribe": true, "punsubscribe": true, "sunsubscribe": true, "client": true, "config": true,
	"debug": true, "shutdown": true,
	"multi": true, "exec": true, "discard": true, "watch": true, "blpop": true, "brpop": true, "blmove": true,
	"brpoplpush": true, "blmpop": true,
	"bzpopmin": true, "bzpopmax": true, "bzmpop": true, "bzmove": true, "xread": true, "xreadgroup": true, "wait": true, "waitaof": true,
	"replicaof": true, "slaveof": true,
	"sync": true, "psync": true, "failover": true, "cluster": true, "save": true, "bgsave": true, "bgrewriteaof": true,
	"module": true, "replconf": true,
	"migrate": true, "swapdb": true, "pfselftest": true, "lastsave": true, "restore-asking": true, "asking": true,
	"readonly": true, "readwrite": true}

// harmless reports whether a command may be executed.
func harmless(cmd []string) bool { return !unfit[strings.ToLower(cmd[0])] }
