package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// searched makes, changes and drops search indexes, aliases, synonyms and a dictionary, and writes the hashes that the
// indexes cover. The model has the definitions. After each restart the results of queries are compared with the hashes
// themselves.
type searched struct {
	noObserver
	label string
}

const (
	indexKind = "index"
	// indexDatabase is the database of places that belong to no database.
	indexDatabase = -2
	// dictionary is the suffix of the dictionary's name.
	dictionary = ":dictionary"
	// indexedOver is the number above which hashes are in the filtered index.
	indexedOver = 500
)

// indexNames are suffixes of the names of the indexes: over all hashes, over those whose keys begin with 1, and over
// those that pass a filter.
var indexNames = []string{":all", ":ones", ":filtered"}

var (
	indexedWords = []string{"amber", "blue", "cyan", "dun", "ecru"} // each has only itself as stem
	indexedTags  = []string{"x", "y", "z"}
)

func (g *searched) restart(model) {}

func (g *searched) key(r *rand.Rand) string { return g.label + ":" + strconv.Itoa(r.IntN(60)) }

// set makes an HSET of some fields.
func (g *searched) set(r *rand.Rand) []string {
	args := []string{"HSET", g.key(r)}
	if r.IntN(4) > 0 {
		args = append(args, "w", indexedWords[r.IntN(5)]+" "+indexedWords[r.IntN(5)])
	}
	if r.IntN(4) > 0 {
		args = append(args, "t", indexedTags[r.IntN(3)])
	}
	return append(args, "n", strconv.Itoa(r.IntN(2*indexedOver)))
}

func (g *searched) next(r *rand.Rand) *op {
	index := g.label + indexNames[r.IntN(len(indexNames))]
	alias := g.label + ":alias" + strconv.Itoa(r.IntN(2))
	var o *op
	switch r.IntN(40) {
	case 0, 1:
		o = plain(g.create(index)...)
	case 2:
		o = plain("FT.DROPINDEX", index)
		if r.IntN(4) == 0 {
			o = plain("FT.DROPINDEX", index, "DD")
		}
	case 3:
		o = plain("FT.ALTER", index, "SCHEMA", "ADD", "f"+strconv.Itoa(r.IntN(4)), "NUMERIC")
	case 4:
		o = plain("FT.ALIASUPDATE", alias, index)
	case 5:
		o = plain("FT.ALIASDEL", alias)
	case 6:
		o = plain("FT.SYNUPDATE", index, "g"+strconv.Itoa(r.IntN(2)), indexedWords[r.IntN(5)])
	case 7:
		o = plain([]string{"FT.DICTADD", "FT.DICTDEL"}[r.IntN(2)], g.label+dictionary, indexedWords[r.IntN(5)])
	case 8, 9, 10:
		o = plain("DEL", g.key(r), g.key(r))
	case 11:
		o = plain("RENAME", g.key(r), g.key(r))
	case 12, 13:
		o = plain("HDEL", g.key(r), []string{"w", "t", "n"}[r.IntN(3)])
	case 14, 15, 16:
		return transaction(command{args: g.set(r)}, command{args: g.set(r)}, command{args: []string{"DEL", g.key(r)}})
	default:
		return plain(g.set(r)...)
	}
	o.mayFail = true // the index may already exist, or not; the result is checked
	return o
}

// create makes the FT.CREATE of an index.
func (g *searched) create(index string) []string {
	args := []string{"FT.CREATE", index, "PREFIX", "1", g.label + ":"}
	switch {
	case strings.HasSuffix(index, ":ones"):
		args[4] += "1"
	case strings.HasSuffix(index, ":filtered"):
		args = append(args, "FILTER", fmt.Sprintf("@n>%d", indexedOver))
	}
	return append(args, "SCHEMA", "w", "TEXT", "t", "TAG", "n", "NUMERIC", "SORTABLE")
}

func init() {
	maps.Copy(effects, map[string]func(model, *call){
		"FT.CREATE": ftCreate, "FT.DROPINDEX": ftDrop, "FT.ALTER": ftAlter, "FT.ALIASUPDATE": ftAlias, "FT.ALIASDEL": ftAlias,
		"FT.SYNUPDATE": ftSynonym, "FT.DICTADD": ftDict, "FT.DICTDEL": ftDict,
	})
}

// indexPlace is where the model stores an index, or a dictionary.
func (c *call) indexPlace(i int) place {
	p := place{indexDatabase, c.args[i]}
	c.touched = append(c.touched, p)
	return p
}

// ftCreate models FT.CREATE index PREFIX 1 prefix [FILTER filter] SCHEMA … An index has its fields and their types, its
// aliases and its synonyms in elems.
func ftCreate(m model, c *call) {
	if p := c.indexPlace(1); m[p] == nil {
		m[p] = &value{kind: indexKind, elems: map[string]string{"field w": "TEXT", "field t": "TAG", "field n": "NUMERIC"}}
	}
}

// ftDrop models FT.DROPINDEX index [DD].
func ftDrop(m model, c *call) {
	p := c.indexPlace(1)
	x := m[p]
	if x == nil {
		return
	}
	delete(m, p)
	if len(c.args) < 3 {
		return
	}
	for at, v := range m {
		if at.db == 0 && v.kind == "hash" && covers(p.key, at.key, v) {
			c.touched = append(c.touched, at)
			delete(m, at)
		}
	}
}

// covers reports whether an index contains a hash.
func covers(index, key string, v *value) bool {
	label, name, _ := strings.Cut(index, ":")
	switch name {
	case "ones":
		return strings.HasPrefix(key, label+":1")
	case "filtered":
		n, err := strconv.Atoi(v.elems["n"])
		return err == nil && n > indexedOver && strings.HasPrefix(key, label+":")
	}
	return strings.HasPrefix(key, label+":")
}

// ftAlter models FT.ALTER index SCHEMA ADD field NUMERIC.
func ftAlter(m model, c *call) {
	if x := m[c.indexPlace(1)]; x != nil {
		x.elems["field "+c.args[4]] = c.args[5]
	}
}

// ftAlias models FT.ALIASUPDATE alias index and FT.ALIASDEL alias.
func ftAlias(m model, c *call) {
	var to place
	if len(c.args) > 2 {
		if to = c.indexPlace(2); m[to] == nil {
			return
		}
	}
	for p, v := range m {
		if _, has := v.elems["alias "+c.args[1]]; has && v.kind == indexKind {
			c.touched = append(c.touched, p)
			delete(v.elems, "alias "+c.args[1])
		}
	}
	if len(c.args) > 2 {
		m[to].elems["alias "+c.args[1]] = ""
	}
}

// ftSynonym models FT.SYNUPDATE index group term.
func ftSynonym(m model, c *call) {
	if x := m[c.indexPlace(1)]; x != nil {
		x.elems["synonym "+c.args[3]+" "+c.args[2]] = ""
	}
}

// ftDict models FT.DICTADD and FT.DICTDEL dictionary term.
func ftDict(m model, c *call) {
	p := c.indexPlace(1)
	if c.args[0] == "FT.DICTADD" {
		m.open(p, "set").elems[c.args[2]] = ""
	} else if v := m[p]; v != nil {
		delete(v.elems, c.args[2])
	}
}

// readIndexes reads the definitions of all indexes and their dictionaries, and compares the results of queries with the
// hashes. Servers without indexes have none.
func (s *snapshot) readIndexes(c *transcript.Conn) error {
	replies, err := do(c, []string{"SELECT", "0"}, []string{"FT._LIST"})
	if err != nil || strings.HasPrefix(replies[1].Text, "ERR unknown command") {
		return err
	}
	labels := map[string]bool{"searched": true, "w": true} // of workers, whose documents may all be deleted, and of the tests
	for p := range s.data {
		label, _, _ := strings.Cut(p.key, ":")
		labels[label] = true
	}
	for _, index := range replies[1].Elems {
		if err := s.readIndex(c, index.Text); err != nil {
			return fmt.Errorf("index %s: %w", index.Text, err)
		}
	}
	for label := range labels {
		name := label + dictionary
		replies, err := ask(c, []string{"FT.DICTDUMP", name})
		if err != nil {
			return err
		}
		for _, term := range replies[0].Elems {
			s.data.open(place{indexDatabase, name}, "set").elems[term.Text] = ""
		}
	}
	return nil
}

// readIndex reads one index once it contains all keys.
func (s *snapshot) readIndex(c *transcript.Conn, index string) error {
	v := &value{kind: indexKind, elems: map[string]string{}}
	s.data[place{indexDatabase, index}] = v
	var info []transcript.Value
	for until := time.Now().Add(replyTimeout); ; {
		replies, err := ask(c, []string{"FT.INFO", index}, []string{"FT.ALIASLIST", index}, []string{"FT.SYNDUMP", index})
		if err != nil {
			return err
		}
		if fields(replies[0])["percent_indexed"] == "1" {
			info = replies
			break
		}
		if time.Now().After(until) {
			return fmt.Errorf("it is not filled in %v", replyTimeout)
		}
		time.Sleep(time.Millisecond)
	}
	for i, e := range info[0].Elems {
		if e.Text != "attributes" {
			continue
		}
		for _, field := range info[0].Elems[i+1].Elems {
			f := fields(field)
			v.elems["field "+f["attribute"]] = f["type"]
		}
	}
	for _, alias := range info[1].Elems {
		v.elems["alias "+alias.Text] = ""
	}
	for i := 0; i+1 < len(info[2].Elems); i += 2 {
		for _, group := range info[2].Elems[i+1].Elems {
			v.elems["synonym "+info[2].Elems[i].Text+" "+group.Text] = ""
		}
	}
	return s.compareIndex(c, index, v)
}

// compareIndex compares the answers to a few queries with those of a search through all hashes.
func (s *snapshot) compareIndex(c *transcript.Conn, index string, x *value) error {
	queries := map[string]func(hash *value) bool{
		"*":            func(*value) bool { return true },
		"@n:[250 750]": func(h *value) bool { n, err := strconv.Atoi(h.elems["n"]); return err == nil && n >= 250 && n <= 750 },
	}
	for _, tag := range indexedTags {
		queries["@t:{"+tag+"}"] = func(h *value) bool { return h.elems["t"] == tag }
	}
	for _, word := range indexedWords {
		same := synonyms(x, word)
		queries["@w:"+word] = func(h *value) bool {
			return slices.ContainsFunc(strings.Fields(h.elems["w"]), func(w string) bool { return same[w] })
		}
	}
	for query, matches := range queries {
		replies, err := ask(c, []string{"FT.SEARCH", index, query, "NOCONTENT", "LIMIT", "0", "100000", "DIALECT", "2"})
		if err != nil {
			return err
		}
		var found, expected []string
		for _, key := range replies[0].Elems[1:] {
			found = append(found, key.Text)
		}
		for p, v := range s.data {
			if p.db == 0 && v.kind == "hash" && covers(index, p.key, v) && matches(v) {
				expected = append(expected, p.key)
			}
		}
		slices.Sort(found)
		slices.Sort(expected)
		if !slices.Equal(found, expected) || replies[0].Elems[0].Text != strconv.Itoa(len(expected)) {
			return fmt.Errorf("%s finds %s keys %q; a search through all hashes finds %d: %q", query, replies[0].Elems[0].Text, found,
				len(expected), expected)
		}
	}
	return nil
}

// synonyms returns the words that a query for a word finds.
func synonyms(x *value, word string) map[string]bool {
	same := map[string]bool{word: true}
	for e := range x.elems {
		group, ok := strings.CutPrefix(e, "synonym "+word+" ")
		if !ok {
			continue
		}
		for other := range x.elems {
			if w, ok := strings.CutSuffix(other, " "+group); ok && strings.HasPrefix(w, "synonym ") {
				same[strings.TrimPrefix(w, "synonym ")] = true
			}
		}
	}
	return same
}
