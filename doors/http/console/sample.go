package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/resp"
)

// topics has the topics of feeds by name.
var topics = map[string]func() sampler{
	"overview": of("info", "INFO everything", "latency", "LATENCY HISTOGRAM"),
	"slow":     of("slowlog", "SLOWLOG GET 128", "events", "LATENCY LATEST", "above", "CONFIG GET slowlog-log-slower-than"),
	"clients":  func() sampler { return sampleClients },
	"systems":  sampleSystems,
	"pressure": described(scanFor("__pressure__:*:bound", `^__pressure__:(?s:(.*)):bound$`), "PRESSURE.INFO"),
	"atom":     described(scanFor("command:*", `^command:(?s:(.*))$`), "ATOM.INFO"),
	"spiderq":  described(scanFor("spiderq:{*}*", `^spiderq:\{(?s:(.*))\}`), "SPIDERQ.INFO", "SPIDERQ.STATS"),
	"skein":    described(scanFor("skein:{*}*", `^skein:\{(?s:(.*))\}`), "SKEIN.INFO"),
	"agents":   described(agents.fresh, "PERPER.AGENT"),
	"perper":   of("caches", "PERPER.CACHES", "locks", "PERPER.LOCKS", "executions", "PERPER.LEN executions"),
	"search":   described(func() source { return &indexes{} }, "FT.INFO"),
	"group":    func() sampler { return sampleGroup },
}

// source finds the names of objects, such as indexes or agents.
type source interface {
	// find returns the known names, sorted.
	find(ctx context.Context, c *door.Client) ([]string, error)
	// complete reports whether all keys were examined once.
	complete() bool
}

// indexes finds the indexes of the query engine.
type indexes struct{ known bool }

func (x *indexes) find(ctx context.Context, c *door.Client) ([]string, error) {
	reply, err := c.Do(ctx, "FT._LIST")
	if err != nil {
		return nil, err
	}
	names, err := reply.Texts()
	slices.Sort(names)
	x.known = err == nil
	return names, err
}

func (x *indexes) complete() bool { return x.known }

// agents finds the agents of Perper that have executions.
var agents = finder{command: []any{"PERPER.SCAN", "executions"}, options: []any{"COUNT", 500}, each: 2,
	name: regexp.MustCompile(`^ExecutionData\{agent: "([^"]*)"`)}

// fixed returns a sample that is the same for all viewers.
func fixed(data []byte) sample { return func(url.Values) []byte { return data } }

// run returns the reply of a command. An error reply is a reply too, because a user may be allowed only some commands.
// The error says that no command can be executed.
func run(ctx context.Context, c *door.Client, args ...any) (resp.Reply, error) {
	reply, err := c.Do(ctx, args...)
	if refused := resp.Error(""); errors.As(err, &refused) {
		return reply, nil
	}
	return reply, err
}

// of returns a sampler of the replies to commands. named has names and commands in turn.
func of(named ...string) func() sampler {
	return func() sampler {
		return func(ctx context.Context, c *door.Client) (sample, error) {
			out := strconv.AppendInt([]byte(`{"at":`), time.Now().UnixMilli(), 10)
			for i := 0; i < len(named); i += 2 {
				words := strings.Fields(named[i+1])
				reply, err := run(ctx, c, words)
				if err != nil {
					return nil, err
				}
				out = appendReply(append(out, `,"`+named[i]+`":`...), reply)
			}
			return fixed(append(out, '}')), nil
		}
	}
}

// systems has patterns of keys of the systems with views.
var systems = map[string]*regexp.Regexp{
	"pressure": regexp.MustCompile(`^__pressure__:`), "atom": regexp.MustCompile(`^command:`),
	"spiderq": regexp.MustCompile(`^spiderq:\{`), "skein": regexp.MustCompile(`^skein:\{`), "perper": regexp.MustCompile(`^perper:\{?`),
}

// systemsAgain is the pause between two walks for systems.
const systemsAgain = 30 * time.Second

// inGroup reports whether the server belongs to a group, and clustered whether it is in cluster mode. INFO tells both
// without an error, which the server would count. A user who may not call INFO gets false.
func inGroup(ctx context.Context, c *door.Client) (belongs, clustered bool, err error) {
	reply, err := run(ctx, c, "INFO", "replication", "cluster")
	if err != nil {
		return false, false, err
	}
	info, err := reply.Bytes()
	if err != nil {
		return false, false, nil
	}
	return bytes.Contains(info, []byte("\nraft_state:")), bytes.Contains(info, []byte("\ncluster_enabled:1")), nil
}

// sampleGroup samples the server's group, and in cluster mode the shards and whether they take slots by themselves.
func sampleGroup(ctx context.Context, c *door.Client) (sample, error) {
	_, clustered, err := inGroup(ctx, c)
	if err != nil {
		return nil, err
	}
	commands := []string{"status", "RAFT.STATUS"}
	if clustered {
		commands = append(commands, "shards", "CLUSTER SHARDS", "cluster", "INFO cluster")
	}
	return of(commands...)()(ctx, c)
}

// sampleSystems samples which systems have keys, whether there are indexes, and whether the server belongs to a group. It
// walks over the keys in steps, as a finder does.
func sampleSystems() sampler {
	cursor, found, round := "0", map[string]bool{}, map[string]bool{}
	var again time.Time
	return func(ctx context.Context, c *door.Client) (sample, error) {
		for begin := time.Now(); begin.After(again) && time.Since(begin) < findTime; {
			reply, err := c.Do(ctx, "SCAN", cursor, "COUNT", walkCount)
			if err != nil {
				return nil, err
			}
			next, keys, err := scanned(reply)
			if err != nil {
				return nil, err
			}
			for _, key := range keys {
				for name, pattern := range systems {
					if !round[name] && pattern.MatchString(key) {
						round[name], found[name] = true, true
					}
				}
			}
			if cursor = next; cursor == "0" {
				found, round, again = round, map[string]bool{}, time.Now().Add(systemsAgain)
			}
		}
		reply, err := run(ctx, c, "FT._LIST")
		if err != nil {
			return nil, err
		}
		there := maps.Clone(found)
		if names, err := reply.Texts(); err == nil && len(names) > 0 {
			there["search"] = true
		}
		belongs, _, err := inGroup(ctx, c)
		if err != nil {
			return nil, err
		}
		if belongs {
			there["group"] = true
		}
		data, err := json.Marshal(map[string]any{"found": sorted(there)})
		return fixed(data), err
	}
}

// maxPage is the largest number of clients in a page.
const maxPage = 200

// sampleClients samples CLIENT LIST. A viewer gets one page, from offset on, of the lines that contain the text filter.
// They are ordered by the field sort, descending after a minus sign.
func sampleClients(ctx context.Context, c *door.Client) (sample, error) {
	reply, err := c.Do(ctx, "CLIENT", "LIST")
	if err != nil {
		return nil, err
	}
	text, err := reply.Bytes()
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	commands := map[string]int{}
	for _, line := range lines {
		commands[string(fieldOf(line, "cmd"))]++
	}
	return func(q url.Values) []byte {
		filter, by := []byte(q.Get("filter")), q.Get("sort")
		by, descending := strings.CutPrefix(by, "-")
		found := make([][]byte, 0, len(lines))
		for _, line := range lines {
			if bytes.Contains(line, filter) {
				found = append(found, line)
			}
		}
		if by != "" {
			sortBy(found, by, descending)
		}
		offset, _ := strconv.Atoi(q.Get("offset")) // 0 if malformed
		offset = min(max(offset, 0), len(found))
		page := []binary{}
		for _, line := range found[offset:min(offset+maxPage, len(found))] {
			page = append(page, binary(line))
		}
		data, err := json.Marshal(map[string]any{
			"total": len(lines), "found": len(found), "offset": offset, "page": page, "commands": commands})
		if err != nil {
			return appendError(nil, err.Error())
		}
		return data
	}, nil
}

// fieldOf returns the value of a field in a line of CLIENT LIST.
func fieldOf(line []byte, name string) []byte {
	rest, ok := bytes.CutPrefix(line, []byte(name+"="))
	if !ok {
		_, rest, _ = bytes.Cut(line, []byte(" "+name+"="))
	}
	value, _, _ := bytes.Cut(rest, []byte{' '})
	return value
}

// sortBy sorts lines by a field: numbers by their value, before other text.
func sortBy(lines [][]byte, name string, descending bool) {
	type row struct {
		line, text []byte
		number     float64
	}
	rows := make([]row, len(lines))
	for i, line := range lines {
		text := fieldOf(line, name)
		n, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			n = 1e300
		}
		rows[i] = row{line, text, n}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		order := cmp.Or(cmp.Compare(a.number, b.number), bytes.Compare(a.text, b.text))
		if descending {
			return -order
		}
		return order
	})
	for i, r := range rows {
		lines[i] = r.line
	}
}

const (
	findTime     = 20 * time.Millisecond // limit of a sample for finding names, and again for describing them
	maxFound     = 10_000                // remembered names
	maxDescribed = 1000                  // described names
)

// finder finds names among keys, in steps, so that a sample does not take longer with many keys.
type finder struct {
	command []any          // the command that walks, up to its cursor
	options []any          // the arguments after the cursor
	each    int            // elements per group in a page; the last one of each group is examined
	name    *regexp.Regexp // matches the objects; the first group is the name

	cursor string
	round  map[string]bool // names of this walk
	names  []string        // names of the last walk, sorted
	walked bool            // a walk was completed
}

// fresh returns a new finder for the same objects.
func (f finder) fresh() source { return &f }

// scanFor returns a function that makes a finder of keys.
func scanFor(pattern, name string) func() source {
	return finder{command: []any{"SCAN"}, options: []any{"MATCH", pattern, "COUNT", walkCount}, each: 1,
		name: regexp.MustCompile(name)}.fresh
}

func (f *finder) complete() bool { return f.walked }

// find continues the walk and returns the names, sorted.
func (f *finder) find(ctx context.Context, c *door.Client) ([]string, error) {
	if f.round == nil {
		f.cursor, f.round = "0", map[string]bool{}
	}
	for begin := time.Now(); ; {
		reply, err := run(ctx, c, slices.Concat(f.command, []any{f.cursor}, f.options)...)
		if err != nil {
			return nil, err
		}
		if refused := reply.Err(); refused != nil && strings.HasPrefix(refused.Error(), "NOCACHE ") {
			f.walked, f.round = true, map[string]bool{}
			return nil, nil // no agent was called yet
		}
		cursor, elements, err := scanned(reply)
		if err != nil {
			return nil, err
		}
		for i := f.each - 1; i < len(elements); i += f.each {
			if m := f.name.FindStringSubmatch(elements[i]); m != nil && len(f.round) < maxFound {
				f.round[m[1]] = true
			}
		}
		if f.cursor = cursor; cursor == "0" {
			f.names, f.walked, f.round = sorted(f.round), true, map[string]bool{}
			return f.names, nil
		}
		if time.Since(begin) > findTime {
			all := map[string]bool{}
			for _, name := range f.names {
				all[name] = true
			}
			for name := range f.round {
				all[name] = true
			}
			return sorted(all), nil
		}
	}
}

func sorted(set map[string]bool) []string {
	list := make([]string, 0, len(set))
	for name := range set {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// described samples the replies to commands about each name of a source. A name that does not fit into the time of a
// sample keeps its last replies, and comes first in the next sample.
func described(find func() source, commands ...string) func() sampler {
	return func() sampler {
		f := find()
		known := map[string][]byte{} // JSON by name
		next := 0                    // first name of the next sample
		return func(ctx context.Context, c *door.Client) (sample, error) {
			names, err := f.find(ctx, c)
			if err != nil {
				return nil, err
			}
			shown := names[:min(len(names), maxDescribed)]
			for i, begin := 0, time.Now(); i < len(shown) && (i == 0 || time.Since(begin) < findTime); i++ {
				next = (next + 1) % len(shown)
				name := shown[next]
				data := append(appendBinary([]byte{'['}, []byte(name)), ',')
				data = append(strconv.AppendInt(data, time.Now().UnixMilli(), 10), "]"...)
				for _, command := range commands {
					reply, err := run(ctx, c, command, name)
					if err != nil {
						return nil, err
					}
					data = append(data[:len(data)-1], ',')
					data = append(appendReply(data, reply), ']')
				}
				known[name] = data
			}
			out := strconv.AppendInt([]byte(`{"at":`), time.Now().UnixMilli(), 10)
			out = strconv.AppendInt(append(out, `,"total":`...), int64(len(names)), 10)
			out = strconv.AppendBool(append(out, `,"walked":`...), f.complete())
			out = append(out, `,"items":[`...)
			told := 0
			for _, name := range shown {
				if data := known[name]; data != nil {
					if told++; told > 1 {
						out = append(out, ',')
					}
					out = append(out, data...)
				}
			}
			for name := range known {
				if _, ok := slices.BinarySearch(shown, name); !ok {
					delete(known, name)
				}
			}
			return fixed(append(out, "]}"...)), nil
		}
	}
}
