package search_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// An index after any history of commands must equal an index that is made afterwards. history has a server with the
// index "a" in database 0, draws commands, and compares it with a new index "b".
type history struct {
	*rapid.T
	s *servertest.Stepped

	head     []string   // of FT.CREATE, up to SCHEMA
	fields   [][]string // the fields of FT.CREATE
	more     [][]string // fields that FT.ALTER may add
	added    int        // how many of more FT.ALTER has added
	synonyms [][]string // group and words
	queries  [][]string // the words after the index; a leading "+" says that the query needs the first of more
	changes  []func(h *history) []string
}

// do sends a command and returns its parsed reply.
func (h *history) do(client string, args ...string) any {
	raw := h.s.Send(client, args...)
	v, rest := parseReply(raw)
	require.Empty(h, rest, args)
	h.Logf("%s: %s -> %.200s", client, strings.Join(args, " "), strings.ReplaceAll(raw, "\r\n", " "))
	return v
}

// parseReply reads a reply of RESP2.
func parseReply(raw string) (v any, rest string) {
	line, rest, _ := strings.Cut(raw, "\r\n")
	if line == "" {
		return nil, rest
	}
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '$':
		if n < 0 {
			return nil, rest
		}
		return rest[:n], rest[n+2:]
	case '*':
		list := make([]any, max(n, 0))
		for i := range list {
			list[i], rest = parseReply(rest)
		}
		return list, rest
	}
	return line, rest
}

// draw returns a random word.
func (h *history) draw(words ...string) string { return words[h.number(0, len(words)-1)] }

// number returns a random number.
func (h *history) number(least, most int) int { return rapid.IntRange(least, most).Draw(h.T, "number") }

// key returns a random key, which the index usually covers.
func (h *history) key() string { return h.draw("d:1", "d:2", "d:3", "d:4", "d:5", "d:6", "x:1", "x:2") }

// creation returns the commands that make an index with the present definition of a.
func (h *history) creation(name string) (commands [][]string) {
	args := slices.Concat([]string{"FT.CREATE", name}, h.head, []string{"SCHEMA"})
	commands = append(commands, slices.Concat(args, slices.Concat(slices.Concat(h.fields, h.more[:h.added])...)))
	for _, words := range h.synonyms {
		commands = append(commands, slices.Concat([]string{"FT.SYNUPDATE", name}, words))
	}
	return commands
}

// run sends commands, in one transaction or one by one, and returns their replies.
func (h *history) run(transaction bool, commands ...[]string) (replies []any) {
	if transaction {
		h.do("0", "MULTI")
	}
	for _, c := range commands {
		replies = append(replies, h.do("0", c...))
	}
	if transaction {
		return h.do("0", "EXEC").([]any)
	}
	return replies
}

// rows returns the sorted rows of a reply to FT.SEARCH, because equal scores and values leave their order open.
func rows(reply any, size int) (total any, list []string) {
	all, ok := reply.([]any)
	if !ok || len(all) == 0 {
		return reply, nil
	}
	for rest := all[1:]; len(rest) >= size; rest = rest[size:] {
		list = append(list, fmt.Sprintf("%q", rest[:size]))
	}
	slices.Sort(list)
	return all[0], list
}

// compare makes the index b and compares the two. With transaction it does so in a transaction, after some changes.
func (h *history) compare(transaction bool) {
	var commands [][]string
	if transaction {
		for range h.number(0, 4) {
			commands = append(commands, h.change())
		}
	}
	commands = append(commands, h.creation("b")...)
	before := len(commands)
	for _, q := range h.queries {
		if q[0] != "+" || h.added > 0 {
			q = q[strings.Count(q[0], "+"):]
			for _, index := range []string{"b", "a"} {
				commands = append(commands, slices.Concat([]string{q[0], index}, q[1:]))
			}
		}
	}
	commands = append(commands, []string{"FT.INFO", "b"}, []string{"FT.INFO", "a"})
	replies := h.run(transaction, append(commands, []string{"FT.DROPINDEX", "b"})...)
	for i := before; i < len(commands); i += 2 {
		require.Equal(h, facts(commands[i], replies[i]), facts(commands[i+1], replies[i+1]), "%q", commands[i])
		require.NotRegexp(h, "^-", replies[i])
	}
	keys, _ := h.do("0", "FT.SEARCH", "a", "*", "NOCONTENT", "LIMIT", "0", "100").([]any)
	for _, key := range keys[1:] {
		require.Equal(h, ":1", h.do("0", "EXISTS", key.(string)))
	}
}

// facts returns the part of a reply that must be equal for both indexes.
func facts(command []string, reply any) string {
	switch command[0] {
	case "FT.TAGVALS":
		return fmt.Sprintf("%q", reply)
	case "FT.INFO":
		info, own := reply.([]any), []any{}
		for _, name := range []string{"+num_docs", "+num_terms", "+num_records"} {
			own = append(own, name, info[slices.Index(info, any(name))+1])
		}
		return fmt.Sprint(own...)
	}
	size := 1
	for _, word := range command {
		switch word {
		case "WITHSCORES", "WITHPAYLOADS", "WITHSORTKEYS":
			size++
		}
	}
	total, list := rows(reply, size)
	return fmt.Sprint(total, "\n", strings.Join(list, "\n"))
}

// change returns a random command that changes keys.
func (h *history) change() []string { return h.changes[h.number(0, len(h.changes)-1)](h) }

// step takes one random step.
func (h *history) step() {
	switch h.number(0, 29) {
	case 0:
		h.compare(h.number(0, 1) == 1)
	case 1, 2:
		h.s.Pass(h.number(1, 2500))
	case 3, 4, 5:
		var commands [][]string
		for range h.number(1, 5) {
			commands = append(commands, h.change())
		}
		h.run(true, commands...)
	case 6, 7, 8:
		script, args := "", []string{}
		for range h.number(1, 4) {
			script += "redis.pcall("
			for i, word := range h.change() {
				if i > 0 {
					script += ", "
				}
				args = append(args, word)
				script += fmt.Sprintf("ARGV[%d]", len(args))
			}
			script += ")\n"
		}
		h.do("0", slices.Concat([]string{"EVAL", script, "0"}, args)...)
	case 9:
		h.do("1", h.draw("FLUSHDB", "FLUSHDB", "DBSIZE"))
	case 10:
		h.do("0", "SWAPDB", "0", "1")
	case 11:
		h.do("1", h.change()...)
	case 12:
		if h.added < len(h.more) {
			h.do("0", slices.Concat([]string{"FT.ALTER", "a", "SCHEMA", "ADD"}, h.more[h.added])...)
			h.added++
		}
	case 13:
		words := []string{h.draw("g1", "g2"), h.draw("run", "hello", "blue"), h.draw("walk", "world", "red")}
		h.synonyms = append(h.synonyms, words)
		h.do("0", slices.Concat([]string{"FT.SYNUPDATE", "a"}, words)...)
	case 14:
		if h.draw("drop", "no", "no") == "drop" {
			h.do("0", slices.Concat([]string{"FT.DROPINDEX", "a"}, [][]string{nil, {"DD"}}[h.number(0, 1)])...)
			h.run(false, h.creation("a")...)
		}
	case 15:
		if payload, ok := h.do("0", "DUMP", h.key()).(string); ok {
			h.do("0", "RESTORE", h.key(), h.draw("0", "1500"), payload, "REPLACE")
		}
	case 16:
		if h.draw("flush", "no", "no", "no") == "flush" {
			h.do("0", h.draw("FLUSHALL", "FLUSHDB"))
			h.synonyms = nil
			h.run(false, h.creation("a")...)
		}
	default:
		h.do("0", h.change()...)
	}
}

// live draws a history and compares the index at its end.
func (h *history) live(t *rapid.T) {
	h.T, h.s = t, servertest.NewStepped(t, "databases", "2", "enable-debug-command", "yes")
	defer h.s.Finish()
	h.do("0", "DEBUG", "SET-ACTIVE-EXPIRE", h.draw("0", "1"))
	h.do("1", "SELECT", "1")
	h.run(false, h.creation("a")...)
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		h.step()
	}
	h.compare(h.number(0, 1) == 1)
}

// keyChanges are commands for keys of any type.
var keyChanges = []func(h *history) []string{
	func(h *history) []string { return []string{h.draw("DEL", "UNLINK"), h.key(), h.key()} },
	func(h *history) []string { return []string{"RENAME", h.key(), h.key()} },
	func(h *history) []string { return []string{"RENAMENX", h.key(), h.key()} },
	func(h *history) []string { return []string{"COPY", h.key(), h.key(), "REPLACE"} },
	func(h *history) []string {
		return []string{"COPY", h.key(), h.key(), "DB", h.draw("0", "1"), "REPLACE"}
	},
	func(h *history) []string { return []string{"MOVE", h.key(), h.draw("0", "1")} },
	func(h *history) []string { return []string{"PEXPIRE", h.key(), h.draw("1", "500", "2000", "-1")} },
	func(h *history) []string { return []string{"PERSIST", h.key()} },
	func(h *history) []string { return []string{"SET", h.key(), "text"} },
	func(h *history) []string { return []string{"SADD", h.key(), "member"} },
	func(h *history) []string { return []string{"GETDEL", h.key()} },
	func(h *history) []string { return []string{"SUNIONSTORE", h.key(), h.key()} },
}

func (h *history) hashField() string {
	return h.draw("t", "u", "g", "n", "p", "place", "lang", "score", "other", "late", "vec", "area")
}

// hashValue returns a random value for a field, which usually fits its type.
func (h *history) hashValue(field string) string {
	switch field {
	case "g":
		return h.draw("red", "red,Blue", "blue, green ,red", "", ",")
	case "n", "late":
		return h.draw("1", "2", "2.5", "-7", "1e3", "inf", "many")
	case "place":
		return h.draw("1,2", "13.361389,38.115556", "-74.0,40.7", "200,1")
	case "vec":
		return h.draw(vector(1, 0), vector(0, 1), vector(-2, 0.5), vector(1, 1), "short")
	case "area":
		return h.draw("POINT(1 1)", "POLYGON((0 0, 0 3, 3 3, 3 0, 0 0))", "POINT(9 9)", "POINT")
	case "lang":
		return h.draw("german", "english", "none")
	case "score":
		return h.draw("0.5", "1", "0", "x")
	}
	words := []string{"hello", "world", "running", "run", "the", "blue", "Wörld", "häuser", "a-b", "smith", "smyth", ""}
	text := h.draw(words...)
	for range h.number(0, 4) {
		text += " " + h.draw(words...)
	}
	return text
}

// hashWithField completes a command with a field and its value.
func (h *history) hashWithField(command ...string) []string {
	field := h.hashField()
	return append(command, field, h.hashValue(field))
}

var hashChanges = []func(h *history) []string{
	func(h *history) []string { return h.hashWithField(h.hashWithField("HSET", h.key())...) },
	func(h *history) []string {
		return h.hashWithField(h.hashWithField(h.hashWithField("HSET", h.key())...)...)
	},
	func(h *history) []string { return h.hashWithField("HSETNX", h.key()) },
	func(h *history) []string { return []string{"HDEL", h.key(), h.hashField(), h.hashField()} },
	func(h *history) []string { return []string{"HINCRBY", h.key(), h.draw("n", "late"), "3"} },
	func(h *history) []string { return []string{"HINCRBYFLOAT", h.key(), h.draw("n", "late"), "0.5"} },
	func(h *history) []string {
		return []string{"HPEXPIRE", h.key(), h.draw("1", "700", "2000", "0"), "FIELDS", "2", h.hashField(), h.hashField()}
	},
	func(h *history) []string { return []string{"HPERSIST", h.key(), "FIELDS", "1", h.hashField()} },
	func(h *history) []string { return []string{"HGETDEL", h.key(), "FIELDS", "1", h.hashField()} },
	func(h *history) []string {
		return []string{"HGETEX", h.key(), "PX", "900", "FIELDS", "1", h.hashField()}
	},
	func(h *history) []string {
		return h.hashWithField("HSETEX", h.key(), "PX", h.draw("1", "800"), "FIELDS", "1")
	},
}

func TestAHistoryOfHashesLeavesTheIndexAsOneBuiltAnew(t *testing.T) {
	search := func(query string, options ...string) []string {
		return slices.Concat([]string{"FT.SEARCH", query, "NOCONTENT", "LIMIT", "0", "100"}, options)
	}
	queries := [][]string{
		search("*"), search("*", "WITHSCORES"), search("*", "WITHSCORES", "SCORER", "DOCSCORE"), search("*", "WITHPAYLOADS"),
		search("hello", "WITHSCORES"), search("hello world|run", "WITHSCORES"), search("@t:hello", "WITHSCORES", "SCORER", "TFIDF"),
		search("@u:run", "WITHSCORES", "SCORER", "BM25"), search("häuser", "WITHSCORES", "LANGUAGE", "german"), search(`"hello world"`, "DIALECT", "2"),
		search("hello run", "SLOP", "1", "INORDER", "WITHSCORES", "SCORER", "TFIDF.DOCNORM"), search("smith", "WITHSCORES"),
		search("wo*", "WITHSCORES"), search("*ll*", "WITHSCORES"), search("%helo%", "WITHSCORES"), search("-hello", "WITHSCORES"),
		search("~hello run", "WITHSCORES"), search("walk", "WITHSCORES"), search("red", "WITHSCORES"),
		search("@g:{red}", "WITHSCORES", "DIALECT", "2"), search("@g:{r*|blue}", "WITHSCORES", "DIALECT", "2"),
		search("@g:{''}", "DIALECT", "2"), search("ismissing(@g)", "DIALECT", "2"), search("@u:''", "DIALECT", "2"),
		search("@n:[2 1000]"), search("@n:[(2 inf]", "SORTBY", "n", "WITHSORTKEYS"), search("*", "SORTBY", "n", "DESC", "WITHSORTKEYS"),
		search("*", "SORTBY", "u", "WITHSORTKEYS"), search("@place:[1 2 500 km]"), search("*", "INKEYS", "3", "d:1", "d:2", "x:1"),
		search("*=>[KNN 100 @vec $q AS near]", "SORTBY", "near", "WITHSORTKEYS", "PARAMS", "2", "q", vector(1, 0.5), "DIALECT", "2"),
		search("hello=>[KNN 100 @vec $q AS near]", "SORTBY", "near", "WITHSORTKEYS", "PARAMS", "2", "q", vector(1, 0.5), "DIALECT", "2"),
		search("@vec:[VECTOR_RANGE 2 $q]", "PARAMS", "2", "q", vector(1, 0.5), "DIALECT", "2"),
		search("@area:[WITHIN $s]", "PARAMS", "2", "s", "POLYGON((0 0, 0 5, 5 5, 5 0, 0 0))", "DIALECT", "3"),
		search("@area:[CONTAINS $s]", "PARAMS", "2", "s", "POINT(2 2)", "DIALECT", "3"),
		{"FT.TAGVALS", "g"}, {"FT.AGGREGATE", "*", "GROUPBY", "2", "@n", "@u", "REDUCE", "COUNT", "0"},
		{"FT.AGGREGATE", "*", "GROUPBY", "1", "@g", "REDUCE", "COUNT", "0"}, search("*", "SORTBY", "g", "WITHSORTKEYS"),
		{"+", "FT.AGGREGATE", "*", "LOAD", "2", "@late", "@g"},
		{"+", "FT.SEARCH", "@late:[1 5]", "NOCONTENT", "LIMIT", "0", "100", "DIALECT", "2"},
		{"+", "FT.SEARCH", "ismissing(@late)", "NOCONTENT", "LIMIT", "0", "100", "DIALECT", "2"},
	}
	for name, head := range map[string][]string{
		"prefix": {"PREFIX", "1", "d:", "LANGUAGE_FIELD", "lang", "SCORE_FIELD", "score", "PAYLOAD_FIELD", "other"},
		"filter": {"FILTER", "@n > 1 || @t == 'hello'", "STOPWORDS", "1", "world"},
	} {
		algorithm := map[string]string{"prefix": "FLAT", "filter": "HNSW"}[name]
		t.Run(name, func(t *testing.T) {
			testseed.Check(t, func(rt *rapid.T) {
				h := history{
					head: head,
					fields: [][]string{{"t", "TEXT", "WEIGHT", "2", "PHONETIC", "dm:en"}, {"u", "TEXT", "NOSTEM", "INDEXEMPTY", "SORTABLE"},
						{"g", "TAG", "INDEXEMPTY", "INDEXMISSING"}, {"n", "NUMERIC", "SORTABLE"}, {"place", "GEO"},
						{"vec", "VECTOR", algorithm, "6", "TYPE", "FLOAT32", "DIM", "2", "DISTANCE_METRIC", "L2"},
						{"area", "GEOSHAPE", "FLAT"}},
					more:    [][]string{{"late", "NUMERIC", "INDEXMISSING"}, {"other", "TEXT", "SORTABLE"}, {"p", "TAG", "SORTABLE"}},
					queries: queries,
					changes: slices.Concat(hashChanges, hashChanges, keyChanges),
				}
				h.live(rt)
			})
		})
	}
}

// jsonValue returns a random JSON value for a path, which usually fits its type.
func (h *history) jsonValue(path string) string {
	switch path {
	case "$.n":
		return h.draw("1", "2.5", "-7", "[1,2,null]", "[3,3]", "null", "\"1\"", "[]", "[[1]]")
	case "$.g":
		return h.draw(`"red"`, `["red","Blue"]`, "true", "null", "[]", `["red",null,"red"]`, `""`, "1", `["a",1]`)
	case "$.place":
		return h.draw(`"1,2"`, `["1,2","3,4"]`, `"x"`, "null")
	case "$.vec":
		return h.draw("[1,0]", "[0,1]", "[[1,1],[-2,0.5]]", "[]", "[1]", "null")
	case "$.list":
		return h.draw(`[]`, `[{"v":1,"w":"red"},{"v":2}]`, `[{"v":"x"}]`, `[{"w":"blue"},{"w":["red"]},{"w":null}]`, "null", "3")
	}
	return h.draw(`"hello world"`, `"running the house"`, `["hello","run"]`, `["hello",null,"big world"]`, `""`, "null", "{}", "5")
}

func (h *history) jsonPath() string {
	return h.draw("$.t", "$.t", "$.g", "$.n", "$.place", "$.list", "$.other", "$.vec")
}

// jsonWith completes a command with a path and its value.
func (h *history) jsonWith(command ...string) []string {
	path := h.jsonPath()
	return append(command, path, h.jsonValue(path))
}

var jsonChanges = []func(h *history) []string{
	func(h *history) []string {
		return []string{"JSON.SET", h.key(), "$", fmt.Sprintf(`{"t":%s,"g":%s,"n":%s,"list":%s}`,
			h.jsonValue("$.t"), h.jsonValue("$.g"), h.jsonValue("$.n"), h.jsonValue("$.list"))}
	},
	func(h *history) []string {
		return []string{"JSON.SET", h.key(), "$", h.draw("{}", "[1]", "7", `{"t":"hello"}`)}
	},
	func(h *history) []string { return h.jsonWith("JSON.SET", h.key()) },
	func(h *history) []string { return h.jsonWith("JSON.SET", h.key()) },
	func(h *history) []string { return h.jsonWith("JSON.MERGE", h.key()) },
	func(h *history) []string { return h.jsonWith(append(h.jsonWith("JSON.MSET", h.key()), h.key())...) },
	func(h *history) []string {
		return []string{"JSON.MERGE", h.key(), "$", `{"t":"hello","n":null,"list":[{"v":9}]}`}
	},
	func(h *history) []string { return []string{h.draw("JSON.DEL", "JSON.FORGET"), h.key(), h.jsonPath()} },
	func(h *history) []string { return []string{"JSON.CLEAR", h.key(), h.jsonPath()} },
	func(h *history) []string {
		return []string{"JSON.NUMINCRBY", h.key(), h.draw("$.n", "$.n[*]", "$..v"), "2"}
	},
	func(h *history) []string { return []string{"JSON.NUMMULTBY", h.key(), "$.n", "0.5"} },
	func(h *history) []string { return []string{"JSON.STRAPPEND", h.key(), h.draw("$.t", "$.g"), `" blue"`} },
	func(h *history) []string { return []string{"JSON.TOGGLE", h.key(), "$.g"} },
	func(h *history) []string { return h.jsonWith("JSON.ARRAPPEND", h.key()) },
	func(h *history) []string { return []string{"JSON.ARRINSERT", h.key(), "$.t", "0", `"world"`} },
	func(h *history) []string { return []string{"JSON.ARRPOP", h.key(), h.jsonPath()} },
	func(h *history) []string { return []string{"JSON.ARRTRIM", h.key(), h.jsonPath(), "0", "0"} },
	func(h *history) []string { return []string{"HSET", h.key(), "t", "hello"} },
}

func TestAHistoryOfJSONLeavesTheIndexAsOneBuiltAnew(t *testing.T) {
	search := func(query string, options ...string) []string {
		return slices.Concat([]string{"FT.SEARCH", query, "NOCONTENT", "LIMIT", "0", "100", "DIALECT", "2"}, options)
	}
	testseed.Check(t, func(rt *rapid.T) {
		h := history{
			head: []string{"ON", "JSON", "PREFIX", "1", "d:", "SCORE_FIELD", "$.n"},
			fields: [][]string{{"$.t", "AS", "t", "TEXT", "SORTABLE"}, {"$.g", "AS", "g", "TAG", "INDEXMISSING", "INDEXEMPTY"},
				{"$.n", "AS", "n", "NUMERIC", "SORTABLE"}, {"$.place", "AS", "place", "GEO"}, {"$.list[*].v", "AS", "v", "NUMERIC"},
				{"$.vec", "AS", "vec", "VECTOR", "FLAT", "6", "TYPE", "FLOAT32", "DIM", "2", "DISTANCE_METRIC", "COSINE"}},
			more: [][]string{{"$.other", "AS", "late", "TEXT", "INDEXMISSING"}, {"$..w", "AS", "w", "TAG"}},
			queries: [][]string{
				search("*", "WITHSCORES", "SCORER", "DOCSCORE"), search("hello", "WITHSCORES"), search("@t:(hello run)", "WITHSCORES", "SCORER", "TFIDF"),
				search("hello big", "SLOP", "101"), search("wo*|house", "WITHSCORES"), search("@g:{red}", "WITHSCORES"), search("@g:{true|false}"),
				search("ismissing(@g)"), search("@g:{''}"), search("@n:[2 3]"), search("*", "SORTBY", "n", "WITHSORTKEYS"),
				search("*", "SORTBY", "t", "DESC", "WITHSORTKEYS"), search("@place:[1 2 500 km]"), search("@v:[1 9]"), {"FT.TAGVALS", "g"},
				search("*=>[KNN 100 @vec $q AS near]", "SORTBY", "near", "WITHSORTKEYS", "PARAMS", "2", "q", vector(1, 0.5)),
				{"FT.AGGREGATE", "*", "GROUPBY", "1", "@n", "REDUCE", "COUNT", "0"},
				{"+", "FT.SEARCH", "ismissing(@late)|@late:hello", "NOCONTENT", "LIMIT", "0", "100", "DIALECT", "2"},
			},
			changes: slices.Concat(jsonChanges, keyChanges[:9]),
		}
		h.live(rt)
	})
}

func TestQueriesInATransactionFindWhatItHasWrittenAndWhatWasThere(t *testing.T) {
	s := servertest.NewStepped(t, "shards", "16")
	defer s.Finish()
	s.Send("0", "FT.CREATE", "x", "SCHEMA", "t", "TEXT", "n", "NUMERIC")
	for i := range 20 {
		s.Send("0", "HSET", fmt.Sprint("d:", i), "t", "hello", "n", fmt.Sprint(i))
	}
	for _, query := range [][]string{
		{"FT.SEARCH", "x", "hello", "SORTBY", "n", "LIMIT", "0", "30"}, {"FT.AGGREGATE", "x", "hello", "LOAD", "1", "n"},
		{"FT.MGET", "x", "d:1", "d:2", "d:20"}, {"FT.INFO", "x"},
	} {
		s.Send("0", "MULTI")
		s.Send("0", "HSET", "d:20", "t", "hello", "n", "20")
		s.Send("0", query...)
		s.Send("0", "DEL", "d:20")
		s.Send("0", query...)
		reply, _ := parseReply(s.Send("0", "EXEC"))
		inside := reply.([]any)
		require.NotRegexp(t, "^-", inside[1], query)
		require.NotRegexp(t, "^-", inside[3], query)
		seen := func(reply any) string {
			if query[0] == "FT.INFO" {
				return facts(query, reply)
			}
			return fmt.Sprint(reply)
		}
		require.NotEqual(t, seen(inside[1]), seen(inside[3]), query)
		const script = "redis.call('HSET', KEYS[1], 't', 'hello', 'n', '20')\n" +
			"local found = redis.call(unpack(ARGV))\nredis.call('DEL', KEYS[1])\nreturn found"
		reply, _ = parseReply(s.Send("0", slices.Concat([]string{"EVAL", script, "1", "d:20"}, query)...))
		require.Equal(t, seen(inside[1]), seen(reply), query)
	}
}
