package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/resp"
)

// Scans of all keys, for the largest and the most used ones.

// Sampling says which keys a scan examines, and how fast.
type Sampling struct {
	Pattern string        // pattern of the keys' names; "" for all
	Count   int           // COUNT of the SCAN commands; 0 for the server's default
	Pause   time.Duration // after each pauseEvery SCAN commands
}

const (
	pauseEvery = 100
	hottest    = 16 // how many keys HotKeys finds
)

// scan calls fn with the names of all keys, in batches.
func (s *Shell) scan(ctx context.Context, o Sampling, fn func(keys []reply) error) error {
	cursor := "0"
	for n := 1; ; n++ {
		args := []string{"SCAN", cursor}
		if o.Pattern != "" {
			args = append(args, "MATCH", o.Pattern)
		}
		if o.Count > 0 {
			args = append(args, "COUNT", strconv.Itoa(o.Count))
		}
		r, err := s.ask(ctx, args)
		if err != nil {
			return err
		}
		if r.isError() || len(r.items) != 2 {
			return fmt.Errorf("SCAN: %s", r.text)
		}
		if err := fn(r.items[1].items); err != nil {
			return err
		}
		if cursor = string(r.items[0].text); cursor == "0" {
			return nil
		}
		if o.Pause > 0 && n%pauseEvery == 0 {
			if err := s.sleep(ctx, o.Pause); err != nil {
				return err
			}
		}
	}
}

// askAll sends commands in one go and returns their replies.
func (s *Shell) askAll(ctx context.Context, commands [][]string) ([]reply, error) {
	var request []byte
	for _, args := range commands {
		request = appendCommand(request, args)
	}
	if _, err := s.conn.Write(request); err != nil {
		s.Close()
		return nil, err
	}
	replies := make([]reply, 0, len(commands))
	for len(replies) < len(commands) {
		r, err := s.next(ctx)
		if err != nil {
			return nil, err
		}
		if r.kind != '>' {
			replies = append(replies, r)
		}
	}
	return replies, nil
}

// number sends a command whose reply is a number.
func (s *Shell) number(ctx context.Context, args ...string) (int, error) {
	r, err := s.ask(ctx, args)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(r.text))
	if err != nil {
		return 0, fmt.Errorf("%s: %s", args[0], r.text)
	}
	return n, nil
}

// sizes has the measurements of the keys of a type.
type sizes struct {
	kind    string // in the words of TYPE
	command string // command that returns the size of a key; "" if there is none
	unit    string

	keys, sum, largest int
	largestKey         []byte // nil if none has a size
}

// knownSizes returns the types that are always shown.
func knownSizes() []*sizes {
	return []*sizes{
		{kind: "string", command: "STRLEN", unit: "bytes"}, {kind: "list", command: "LLEN", unit: "items"},
		{kind: "set", command: "SCARD", unit: "members"}, {kind: "zset", command: "ZCARD", unit: "members"},
		{kind: "hash", command: "HLEN", unit: "fields"}, {kind: "stream", command: "XLEN", unit: "entries"},
	}
}

// plural returns the plural of a type's name.
func plural(kind string) string {
	if strings.HasSuffix(kind, "sh") {
		return kind + "es"
	}
	return kind + "s"
}

// BigKeys finds the key with the most elements of each type, and counts the keys of each type.
func (s *Shell) BigKeys(ctx context.Context, o Sampling) error {
	return s.sampleSizes(ctx, o, "", func(t *sizes, key string) []string {
		if t.command == "" {
			return nil
		}
		return []string{t.command, key}
	})
}

// MemKeys finds the key of each type that takes the most memory. The server samples so many elements of each key; 0
// means all, a negative number the server's default.
func (s *Shell) MemKeys(ctx context.Context, o Sampling, samples int) error {
	return s.sampleSizes(ctx, o, "bytes", func(_ *sizes, key string) []string {
		if samples < 0 {
			return []string{"MEMORY", "USAGE", key}
		}
		return []string{"MEMORY", "USAGE", key, "SAMPLES", strconv.Itoa(samples)}
	})
}

// sampleSizes finds the largest key of each type. measure returns the command for the size of a key, in units of unit,
// or those of the type if unit is "".
func (s *Shell) sampleSizes(ctx context.Context, o Sampling, unit string, measure func(t *sizes, key string) []string) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	total, err := s.number(ctx, "DBSIZE")
	if err != nil {
		return err
	}
	types := knownSizes()
	sampled, length := 0, 0
	fmt.Fprintf(s.Out, "\n# Looking for the largest key of each type, with SCAN. -i 0.1 waits so many seconds after\n"+
		"# every %d SCAN commands.\n\n", pauseEvery)
	err = s.scan(ctx, o, func(keys []reply) error {
		found, err := s.typesOf(ctx, keys, &types)
		if err != nil {
			return err
		}
		var commands [][]string
		var asked []int
		for i, t := range found {
			if t == nil {
				continue // the key has gone meanwhile
			}
			if args := measure(t, string(keys[i].text)); args != nil {
				commands, asked = append(commands, args), append(asked, i)
			}
		}
		replies, err := s.askAll(ctx, commands)
		if err != nil {
			return err
		}
		size := make([]int, len(keys))
		for n, r := range replies {
			key := keys[asked[n]].text
			if r.isError() { // the key has another type now
				fmt.Fprintf(s.Err, "%s %s: %s\n", commands[n][0], resp.AppendQuoted(nil, key), r.text)
				continue
			}
			size[asked[n]], _ = strconv.Atoi(string(r.text)) // null, for a missing key, is 0
		}
		for i, t := range found {
			if t == nil {
				continue
			}
			key := keys[i].text
			t.keys, t.sum, sampled, length = t.keys+1, t.sum+size[i], sampled+1, length+len(key)
			if size[i] > t.largest {
				t.largest, t.largestKey = size[i], key
				fmt.Fprintf(s.Out, "[%05.2f%%] Biggest %-6s found so far '%s' with %d %s\n", percent(sampled-1, total), t.kind,
					resp.AppendQuoted(nil, key), t.largest, t.units(unit))
			}
		}
		return s.Out.Flush()
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	fmt.Fprintf(s.Out, "\n-------- summary -------\n\nSampled %d keys of %d\nLength of their names in bytes: %d (avg len %.2f)\n\n",
		sampled, max(total, sampled), length, average(length, sampled))
	for _, t := range types {
		if t.largestKey != nil {
			fmt.Fprintf(s.Out, "Biggest %6s found '%s' has %d %s\n", t.kind, resp.AppendQuoted(nil, t.largestKey), t.largest, t.units(unit))
		}
	}
	s.Out.WriteByte('\n')
	for _, t := range types {
		fmt.Fprintf(s.Out, "%d %s with %d %s (%05.2f%% of keys, avg size %.2f)\n", t.keys, plural(t.kind), t.sum, t.units(unit),
			percent(t.keys, sampled), average(t.sum, t.keys))
	}
	return s.Out.Flush()
}

// units returns own, or if that is "" the unit of the type's sizes.
func (t *sizes) units(own string) string {
	if own != "" {
		return own
	}
	return t.unit
}

// typesOf returns the types of keys, nil for missing keys, and adds new types to types.
func (s *Shell) typesOf(ctx context.Context, keys []reply, types *[]*sizes) ([]*sizes, error) {
	commands := make([][]string, len(keys))
	for i, key := range keys {
		commands[i] = []string{"TYPE", string(key.text)}
	}
	replies, err := s.askAll(ctx, commands)
	if err != nil {
		return nil, err
	}
	found := make([]*sizes, len(keys))
	for i, r := range replies {
		if r.isError() {
			return nil, fmt.Errorf("TYPE: %s", r.text)
		}
		kind := string(r.text)
		if kind == "none" {
			continue
		}
		at := slices.IndexFunc(*types, func(t *sizes) bool { return t.kind == kind })
		if at < 0 {
			at = len(*types)
			*types = append(*types, typeOf(kind))
		}
		found[i] = (*types)[at]
	}
	return found, nil
}

// typeOf returns the measurement of a type that knownSizes does not have.
func typeOf(kind string) *sizes {
	if kind == "vectorset" {
		return &sizes{kind: kind, command: "VCARD", unit: "elements"}
	}
	return &sizes{kind: kind, unit: "?"}
}

// hotKey is a key with the server's counter of its use.
type hotKey struct {
	key     []byte
	counter int
}

// HotKeys finds the most used keys. The server counts uses only with a maxmemory-policy of LFU.
func (s *Shell) HotKeys(ctx context.Context, o Sampling) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	total, err := s.number(ctx, "DBSIZE")
	if err != nil {
		return err
	}
	var hot []hotKey // the most used first
	sampled := 0
	fmt.Fprintf(s.Out, "\n# Looking for the keys that are used most, with SCAN. -i 0.1 waits so many seconds after\n"+
		"# every %d SCAN commands.\n\n", pauseEvery)
	err = s.scan(ctx, o, func(keys []reply) error {
		commands := make([][]string, len(keys))
		for i, key := range keys {
			commands[i] = []string{"OBJECT", "FREQ", string(key.text)}
		}
		replies, err := s.askAll(ctx, commands)
		if err != nil {
			return err
		}
		for i, r := range replies {
			switch {
			case r.isError():
				return errors.New(string(r.text)) // the error names the required policy
			case r.kind == '_':
				continue // the key has gone meanwhile
			}
			counter, _ := strconv.Atoi(string(r.text))
			sampled++
			// Keys with equal counters stay in the order in which they are found.
			at := slices.IndexFunc(hot, func(h hotKey) bool { return h.counter < counter })
			if at < 0 {
				at = len(hot)
			}
			if at == hottest || counter == 0 {
				continue
			}
			hot = slices.Insert(hot, at, hotKey{keys[i].text, counter})
			hot = hot[:min(len(hot), hottest)]
			fmt.Fprintf(s.Out, "[%05.2f%%] Hot key '%s' found so far with counter %d\n", percent(sampled-1, total),
				resp.AppendQuoted(nil, keys[i].text), counter)
		}
		return s.Out.Flush()
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	fmt.Fprintf(s.Out, "\n-------- summary -------\n\nSampled %d keys of %d\n", sampled, max(total, sampled))
	for _, h := range hot {
		fmt.Fprintf(s.Out, "hot key found with counter: %d\tkeyname: %s\n", h.counter, resp.AppendQuoted(nil, h.key))
	}
	return s.Out.Flush()
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return min(100, 100*float64(part)/float64(whole))
}

func average(sum, n int) float64 {
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n)
}
