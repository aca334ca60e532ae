package atomredistest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atomredis/atomredis/resp"
)

// value is the value of a key.
type value struct {
	kind    string   // as TYPE names it
	words   []string // the string; elements; fields and values or members and scores in turn
	entries []Entry
	groups  []string
	expires int64            // ms since 1970; 0 means never
	fields  map[string]int64 // hash fields that expire, with their times
}

// image has all keys, by database.
type image map[int]map[string]*value

// snapshot returns all keys at one instant. It executes no commands, so it changes no statistics and meets no faults.
func (s *Server) snapshot(t testing.TB) image {
	t.Helper()
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	im, db := image{}, 0
	parser := resp.Parser{MaxBulk: b.Len()}
	for rest := b.Bytes(); len(rest) > 0; {
		args, n, err := parser.Next(rest, nil)
		if err != nil || n == 0 || len(args) < 2 {
			t.Fatalf("the snapshot is malformed: %v", err)
		}
		rest = rest[n:]
		words := make([]string, len(args))
		for i, a := range args {
			words[i] = string(a)
		}
		if words[0] == "SELECT" {
			if db, err = strconv.Atoi(words[1]); err != nil {
				t.Fatal(err)
			}
			im[db] = map[string]*value{}
			continue
		}
		im.apply(db, words)
	}
	return im
}

// apply repeats a command of a snapshot that creates a key or adds to it.
func (im image) apply(db int, args []string) {
	key := args[1]
	if args[0] == "XGROUP" {
		key = args[2]
	}
	v := im[db][key]
	if v == nil {
		v = &value{}
		im[db][key] = v
	}
	switch args[0] {
	case "SET":
		v.kind, v.words = "string", args[2:]
	case "RPUSH":
		v.kind, v.words = "list", append(v.words, args[2:]...)
	case "SADD":
		v.kind, v.words = "set", append(v.words, args[2:]...)
	case "HSET":
		v.kind, v.words = "hash", append(v.words, args[2:]...)
	case "ZADD":
		v.kind = "zset"
		for i := 2; i+1 < len(args); i += 2 {
			v.words = append(v.words, args[i+1], args[i])
		}
	case "PEXPIREAT":
		v.expires, _ = strconv.ParseInt(args[2], 10, 64)
	case "HPEXPIREAT": // of one field
		if v.fields == nil {
			v.fields = map[string]int64{}
		}
		v.fields[args[5]], _ = strconv.ParseInt(args[2], 10, 64)
	default:
		v.kind = "stream"
		v.applyToStream(args)
	}
}

// applyToStream repeats a command that builds a stream.
func (v *value) applyToStream(args []string) {
	switch {
	case args[0] == "XADD" && args[2] != "MAXLEN": // that form creates an empty stream
		v.entries = append(v.entries, Entry{args[2], args[3:]})
	case args[0] == "XDEL":
		v.entries = slices.DeleteFunc(v.entries, func(e Entry) bool { return slices.Contains(args[2:], e.ID) })
	case args[0] == "XTRIM" && args[2] == "MAXLEN": // to 0
		v.entries = nil
	case args[0] == "XTRIM": // to an existing entry
		v.entries = v.entries[max(slices.IndexFunc(v.entries, func(e Entry) bool { return e.ID == args[3] }), 0):]
	case args[0] == "XGROUP" && args[1] == "CREATE":
		v.groups = append(v.groups, args[3])
	}
}

// String describes the value on one line, in a fixed order.
func (v *value) String() string {
	var b strings.Builder
	b.WriteString(v.kind)
	list := func(open string, words []string, end string) {
		b.WriteString(" " + open)
		for i, w := range words {
			if i > 0 {
				b.WriteString(" ")
			}
			b.WriteString(strconv.Quote(w))
		}
		b.WriteString(end)
	}
	switch v.kind {
	case "string":
		list("", v.words, "")
	case "list":
		list("[", v.words, "]")
	case "set":
		list("{", slices.Sorted(slices.Values(v.words)), "}")
	case "hash", "zset":
		b.WriteString(" " + v.pairs())
	case "stream":
		b.WriteString(" [")
		for i, e := range v.entries {
			if i > 0 {
				b.WriteString(" ")
			}
			b.WriteString(e.ID)
			list("{", e.Fields, "}")
		}
		b.WriteString("]")
		if len(v.groups) > 0 {
			list("groups ", slices.Sorted(slices.Values(v.groups)), "")
		}
	}
	return b.String()
}

// pairs describes a hash or a sorted set, in order of its fields or members.
func (v *value) pairs() string {
	var pairs []string
	for i := 0; i+1 < len(v.words); i += 2 {
		second := v.words[i+1]
		if v.kind == "hash" {
			second = strconv.Quote(second)
		}
		pairs = append(pairs, strconv.Quote(v.words[i])+": "+second)
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, " ") + "}"
}

// ttl describes the times to live of the key and its fields at the time now.
func (v *value) ttl(now time.Time) string {
	var b strings.Builder
	until := func(at int64) time.Duration { return time.UnixMilli(at).Sub(now).Round(time.Second) }
	if v.expires != 0 {
		fmt.Fprintf(&b, ", expires in %v", until(v.expires))
	}
	for _, field := range slices.Sorted(maps.Keys(v.fields)) {
		fmt.Fprintf(&b, ", field %q expires in %v", field, until(v.fields[field]))
	}
	return b.String()
}
