package crash

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// databases is the number of databases.
const databases = 16

// chunk is the number of keys read in one pipeline.
const chunk = 200

// takeSnapshot reads all data of the server.
func takeSnapshot(c *transcript.Conn) (*snapshot, error) {
	s := &snapshot{data: model{}, owned: map[string][]place{}}
	s.read.from = time.Now().UnixMilli()
	for db := range databases {
		if err := s.readDatabase(c, db); err != nil {
			return nil, fmt.Errorf("reading database %d: %w", db, err)
		}
	}
	if err := s.readLibrary(c); err != nil {
		return nil, err
	}
	if err := s.readIndexes(c); err != nil {
		return nil, err
	}
	s.read.to = time.Now().UnixMilli()
	for p := range s.data {
		owner, _, _ := strings.Cut(p.key, ":")
		s.owned[owner] = append(s.owned[owner], p)
	}
	return s, nil
}

func (s *snapshot) readDatabase(c *transcript.Conn, db int) error {
	if _, err := ask(c, []string{"SELECT", strconv.Itoa(db)}); err != nil {
		return err
	}
	keys, err := scan(c)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(keys, chunk) {
		if err := s.readKeys(c, db, part); err != nil {
			return err
		}
	}
	return nil
}

// ask is do, with an error for every error reply.
func ask(c *transcript.Conn, commands ...[]string) ([]transcript.Value, error) {
	replies, err := do(c, commands...)
	for i, v := range replies {
		if v.Kind == transcript.Error {
			return nil, fmt.Errorf("%s: %s", transcript.QuoteCommand(commands[i]), v.Text)
		}
	}
	return replies, err
}

func scan(c *transcript.Conn) ([]string, error) {
	seen := map[string]bool{}
	var keys []string
	for cursor := "0"; ; {
		replies, err := ask(c, []string{"SCAN", cursor, "COUNT", "1000"})
		if err != nil {
			return nil, err
		}
		for _, k := range replies[0].Elems[1].Elems {
			if !seen[k.Text] {
				seen[k.Text] = true
				keys = append(keys, k.Text)
			}
		}
		if cursor = replies[0].Elems[0].Text; cursor == "0" {
			return keys, nil
		}
	}
}

// readCommands are the commands that read a whole value, without the key.
var readCommands = map[string][]string{
	"string": {"GET"}, "list": {"LRANGE", "0", "-1"}, "hash": {"HGETALL"}, "set": {"SMEMBERS"},
	"zset": {"ZRANGE", "0", "-1", "WITHSCORES"}, "stream": {"XRANGE", "-", "+"},
	seriesKind: {"TS.RANGE", "-", "+"}, documentKind: {"JSON.GET"},
	bloomKind: {"BF.CARD"}, cuckooKind: {"CF.INFO"}, countsKind: {"CMS.INFO"}, topKind: {"TOPK.LIST", "WITHCOUNT"},
	digestKind: {"TDIGEST.INFO"}, vectorKind: {"VRANGE", "-", "+"}, arrayKind: {"ARSCAN", "0", lastElement},
}

func (s *snapshot) readKeys(c *transcript.Conn, db int, keys []string) error {
	var commands [][]string
	for _, k := range keys {
		commands = append(commands, []string{"TYPE", k}, []string{"PEXPIRETIME", k})
	}
	about, err := ask(c, commands...)
	if err != nil {
		return err
	}
	commands = commands[:0]
	var places []place
	for i, k := range keys {
		kind, deadline := about[2*i].Text, about[2*i+1].Text
		read := readCommands[kind]
		if deadline == "-2" || kind == "none" {
			continue // expired since SCAN
		}
		if read == nil {
			return fmt.Errorf("key %s is of the unknown type %s", transcript.Quote(k), kind)
		}
		v := newValue(kind)
		if deadline != "-1" {
			if v.lo, err = strconv.ParseInt(deadline, 10, 64); err != nil {
				return err
			}
			v.hi = v.lo
		}
		p := place{db, k}
		s.data[p] = v
		places = append(places, p)
		commands = append(commands, append([]string{read[0], k}, read[1:]...))
	}
	contents, err := ask(c, commands...)
	if err != nil {
		return err
	}
	for i, p := range places {
		if err := s.fill(c, p, contents[i]); err != nil {
			return fmt.Errorf("key %s: %w", p, err)
		}
	}
	return nil
}

// fill stores the server's reply in the value of a key.
func (s *snapshot) fill(c *transcript.Conn, p place, reply transcript.Value) error {
	v, elems := s.data[p], reply.Elems
	switch v.kind {
	case "string":
		v.text = reply.Text
		if reply.Null {
			delete(s.data, p) // expired since TYPE
		}
	case "list":
		for _, e := range elems {
			v.list = append(v.list, e.Text)
		}
	case "set":
		for _, e := range elems {
			v.elems[e.Text] = ""
		}
	case "hash", "zset":
		for i := 0; i+1 < len(elems); i += 2 {
			v.elems[elems[i].Text] = elems[i+1].Text
		}
	case "stream":
		return v.stream.read(c, p.key, elems)
	case seriesKind:
		return v.readSeries(c, p.key, elems)
	case documentKind:
		return json.Unmarshal([]byte(reply.Text), &v.doc)
	case bloomKind, cuckooKind, countsKind, topKind, digestKind:
		return v.readSketch(c, p.key, reply)
	case vectorKind:
		return v.readVectors(c, p.key, elems)
	case arrayKind:
		return v.readArray(c, p.key, elems)
	case bitmapKind:
		return v.readBitmap(reply)
	case pathHashKind:
		v.readPaths(reply)
		return nil
	}
	count := len(elems)
	if v.kind == "hash" || v.kind == "zset" {
		count /= 2
	}
	if v.elems != nil && len(v.elems) != count {
		return fmt.Errorf("%d elements, of which %d are different", count, len(v.elems))
	}
	if v.kind == "hash" && strings.HasPrefix(p.key, fieldsOwner+":") ||
		v.kind == "set" && strings.HasPrefix(p.key, membersOwner+":") {
		if err := v.readFields(c, p.key); err != nil {
			return err
		}
	}
	if v.empty() {
		delete(s.data, p) // expired since TYPE
	}
	return nil
}

func (s *stream) read(c *transcript.Conn, key string, entries []transcript.Value) error {
	for _, e := range entries {
		var fields []string
		for _, f := range e.Elems[1].Elems {
			fields = append(fields, f.Text)
		}
		s.entries = append(s.entries, entry{parseID(e.Elems[0].Text), strings.Join(fields, "\x00")})
	}
	replies, err := ask(c, []string{"XINFO", "STREAM", key}, []string{"XINFO", "GROUPS", key})
	if err != nil {
		return err
	}
	info := fields(replies[0])
	s.last, s.deleted = parseID(info["last-generated-id"]), parseID(info["max-deleted-entry-id"])
	s.added, _ = strconv.Atoi(info["entries-added"])
	if info["length"] != strconv.Itoa(len(s.entries)) {
		return fmt.Errorf("a stream of length %s has %d entries", info["length"], len(s.entries))
	}
	for _, g := range replies[1].Elems {
		info := fields(g)
		if err := s.readGroup(c, key, info["name"], parseID(info["last-delivered-id"])); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) readGroup(c *transcript.Conn, key, name string, last streamID) error {
	g := &group{last: last, consumers: map[string]bool{}, pending: map[streamID]pending{}}
	s.groups[name] = g
	replies, err := ask(c, []string{"XINFO", "CONSUMERS", key, name}, []string{"XPENDING", key, name, "-", "+", "1000000"})
	if err != nil {
		return err
	}
	pendingOf := map[string]int{}
	for _, e := range replies[1].Elems {
		count, _ := strconv.Atoi(e.Elems[3].Text)
		g.pending[parseID(e.Elems[0].Text)] = pending{e.Elems[1].Text, count}
		pendingOf[e.Elems[1].Text]++
	}
	for _, consumer := range replies[0].Elems {
		info := fields(consumer)
		g.consumers[info["name"]] = true
		if info["pending"] != strconv.Itoa(pendingOf[info["name"]]) {
			return fmt.Errorf("consumer %s has %s pending entries, XPENDING lists %d", info["name"], info["pending"],
				pendingOf[info["name"]])
		}
	}
	return nil
}

// fields reads a flat list of names and values; values that are neither texts nor numbers become empty.
func fields(v transcript.Value) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(v.Elems); i += 2 {
		m[v.Elems[i].Text] = v.Elems[i+1].Text
	}
	return m
}
