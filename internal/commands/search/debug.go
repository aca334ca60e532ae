package search

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/engine/search/numbers"
	"github.com/atomredis/atomredis/engine/search/postings"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/server"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/index"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/text"
	"github.com/atomredis/atomredis/resp"
)

// FT.DEBUG shows the content of an index. It shows documents by their numbers, and only live ones. The sub-commands
// of the garbage collector are accepted and do nothing, because there is no collector.

func init() { register([]*command.Command{debugCommand}) }

var debugCommand = &command.Command{Name: "ft.debug", Group: "search", Since: "1.0.0", Arity: -2, Flags: reads | command.Admin,
	ACL: command.CatSearch | command.CatAdmin | dangerous, Summary: "Shows the contents of an index", Complexity: "O(N), where N is what is shown",
	Subs: []*command.Command{
		debug("docidtoid", 4, "Returns the number of a document", "index key", debugNumber),
		debug("docinfo", -4, "Describes a document", "index key [REVEAL | OBFUSCATE]", debugDocument),
		debug("dump_invidx", 4, "Lists the documents with a term", "index term", debugTerm),
		debug("dump_numidx", -4, "Lists the documents with a number or a place", "index field_name", debugNumbers),
		debug("dump_phonetic_hash", 3, "Returns how a word sounds", "word", debugSound),
		debug("dump_tagidx", 4, "Lists the tags of a field and their documents", "index field_name", debugTags),
		debug("dump_terms", 3, "Lists the terms of an index", "index", debugTerms),
		debug("gc_clean_numeric", -3, "Has no effect: garbage is not left", "index", debugNothing),
		debug("gc_continue_schedule", 3, "Has no effect: garbage is not left", "index", debugNothing),
		debug("gc_forcebginvoke", -3, "Has no effect: garbage is not left", "index", debugNothing),
		debug("gc_forceinvoke", -3, "Has no effect: garbage is not left", "index [timeout]", debugCollect),
		debug("gc_stop_schedule", 3, "Has no effect: garbage is not left", "index", debugNothing),
		debug("gc_wait_for_jobs", 2, "Has no effect: garbage is not left", "", func(c *command.Ctx) { c.W.Simple("DONE") }),
		debug("get_max_doc_id", 3, "Returns the highest number of a document", "index", debugLast),
		debug("idtodocid", 4, "Returns the key of a document", "index number", debugKey),
		debug("info_tagidx", -4, "Counts the tags of a field", "index field_name", debugTagCount),
		debug("ttl", 3, "Returns when an index is dropped that nobody uses, in s", "index", debugTTL),
	}}

func debug(name string, arity int, summary, syntax string, do func(*command.Ctx)) *command.Command {
	return &command.Command{Name: "ft.debug|" + name, Group: "search", Since: "1.0.0", Arity: arity, Flags: reads | command.Admin | command.Protected,
		Summary: summary, Syntax: syntax, Complexity: "O(N), where N is what is shown", Allowed: server.DebugAllowed, Do: do}
}

const (
	errNoContext   command.Error = "Can not create a search ctx"
	errNoTerm      command.Error = "Can not find the inverted index"
	errNoField     command.Error = "Could not find given field in index spec"
	errNoDocument  command.Error = "Document not found in index"
	errDocumentOut command.Error = "document was removed"
	errBadNumber   command.Error = "bad id given"
)

// debugged returns the index that a sub-command names. If there is no such index, it writes the error and returns nil.
func debugged(c *command.Ctx) *catalog.Index {
	x := catalogOf(c).Lookup(string(c.Args[2]))
	if x == nil {
		c.Err(errNoContext)
		return nil
	}
	settle(c)
	return x
}

// view calls do with the index that a sub-command names.
func view(c *command.Ctx, do func(index.View)) {
	if x := debugged(c); x != nil {
		x.View(do)
	}
}

// fieldOf calls do with a field of some kinds. If the index has no such field, it writes the error.
func fieldOf(c *command.Ctx, kinds query.Kind, do func(index.View, *query.Field)) {
	view(c, func(v index.View) {
		f, ok := v.Field(string(c.Args[3]))
		if !ok || f.Kind&kinds == 0 {
			c.Err(errNoField)
			return
		}
		do(v, f)
	})
}

// living returns the live documents of a list.
func living(v index.View, list *postings.List) (found []uint64) {
	docs := v.Docs()
	for r := list.View().Reader(); r.Next(); {
		if docs.Alive(r.Doc()) {
			found = append(found, r.Doc())
		}
	}
	return found
}

func writeNumbers(c *command.Ctx, list []uint64) {
	c.W.Array(len(list))
	for _, n := range list {
		c.W.Int(int64(n))
	}
}

func debugTerms(c *command.Ctx) {
	view(c, func(v index.View) {
		mark, n := c.W.Defer(), 0
		for term, list := range v.Text().All() {
			if len(living(v, list)) > 0 {
				c.W.BulkString(term)
				n++
			}
		}
		c.W.EndArray(mark, n)
	})
}

func debugTerm(c *command.Ctx) {
	view(c, func(v index.View) {
		var found []uint64
		if list, ok := v.Text().Get(string(c.Args[3])); ok {
			found = living(v, list)
		}
		if len(found) == 0 {
			c.Err(errNoTerm)
			return
		}
		writeNumbers(c, found)
	})
}

// debugNumbers has all numbers in one list: there are no ranges.
func debugNumbers(c *command.Ctx) {
	fieldOf(c, query.NumericKind|query.GeoKind, func(v index.View, f *query.Field) {
		var found []uint64
		if tree := v.Numbers(f); tree != nil {
			tree.View().Ascend(numbers.Range{Min: math.Inf(-1), Max: math.Inf(1)}, func(i numbers.Item) bool {
				if v.Docs().Alive(i.Doc) {
					found = append(found, i.Doc)
				}
				return true
			})
		}
		slices.Sort(found)
		c.W.Array(1)
		writeNumbers(c, slices.Compact(found))
	})
}

// tagsOf returns the tags of a field with their documents.
func tagsOf(v index.View, f *query.Field) (names []string, docs [][]uint64) {
	tags, _ := v.Tags(f)
	if tags == nil {
		return nil, nil
	}
	for tag, list := range tags.All() {
		if found := living(v, list); len(found) > 0 {
			names, docs = append(names, tag), append(docs, found)
		}
	}
	return names, docs
}

func debugTags(c *command.Ctx) {
	fieldOf(c, query.TagKind, func(v index.View, f *query.Field) {
		names, docs := tagsOf(v, f)
		c.W.Array(len(names))
		for i, name := range names {
			c.W.Array(2)
			c.W.BulkString(name)
			writeNumbers(c, docs[i])
		}
	})
}

func debugTagCount(c *command.Ctx) {
	fieldOf(c, query.TagKind, func(v index.View, f *query.Field) {
		names, _ := tagsOf(v, f)
		c.W.Array(2)
		c.W.BulkString("num_values")
		c.W.Int(int64(len(names)))
	})
}

func debugNumber(c *command.Ctx) {
	if x := debugged(c); x != nil {
		c.W.Int(int64(x.Current(string(c.Args[3]))))
	}
}

func debugKey(c *command.Ctx) {
	view(c, func(v index.View) {
		id, err := strconv.ParseUint(string(c.Args[3]), 10, 64)
		if err != nil {
			c.Err(errBadNumber)
			return
		}
		if d := v.Docs().Get(id); d != nil && v.Docs().Alive(id) {
			c.W.BulkString(d.Key())
			return
		}
		c.Err(errDocumentOut)
	})
}

func debugLast(c *command.Ctx) {
	view(c, func(v index.View) { c.W.Int(int64(v.Docs().Last())) })
}

// debugDocument shows a document, with those of its flags that have a meaning here.
func debugDocument(c *command.Ctx) {
	view(c, func(v index.View) {
		ids := v.Lookup([]string{string(c.Args[3])})
		if len(ids) == 0 {
			c.Err(errNoDocument)
			return
		}
		d := v.Docs().Get(ids[0])
		bits, names := 0, ""
		if _, ok := d.Payload(); ok {
			bits, names = bits|2, names+"HasPayload,"
		}
		if d.Sortables() > 0 {
			bits, names = bits|4, names+"HasSortVector,"
		}
		if d.Len > 0 && !v.Definition().NoOffsets {
			bits, names = bits|8, names+"HasOffsetVector,"
		}
		p := newPairs(c.W)
		p.int("internal_id", int64(ids[0]))
		p.simple("flags", fmt.Sprintf("(0x%x):%s", bits, names))
		p.double("score", d.Score())
		p.int("num_tokens", int64(d.Len))
		p.int("max_freq", int64(d.MaxFreq))
		p.int("refcount", 1)
		if d.Sortables() > 0 {
			writeSortables(p.name("sortables"), v, d)
		}
		p.end()
	})
}

// writeSortables writes the values of SORTABLE fields.
func writeSortables(w *resp.Writer, v index.View, d *docs.Doc) {
	mark, n := w.Defer(), 0
	for _, f := range v.Definition().Fields {
		if !f.Sortable {
			continue
		}
		p := newPairs(w)
		p.int("index", int64(f.SortIndex))
		p.name("field").BulkString(f.Path + " AS " + f.Name)
		p.name("value")
		switch value := d.Sort(f.SortIndex); value.Kind {
		case docs.Number:
			w.BulkString(formatG(value.Number, 17))
		case docs.Text:
			w.BulkString(value.Text)
		default:
			w.Null()
		}
		p.end()
		n++
	}
	w.EndArray(mark, n)
}

// debugSound shows the phonetic code of a word. Redis has two codes for a word; there is one here.
func debugSound(c *command.Ctx) {
	sound := "<" + string(text.AppendMetaphone(nil, c.Args[2]))
	c.W.Array(2)
	c.W.BulkString(sound)
	c.W.BulkString(sound)
}

func debugTTL(c *command.Ctx) {
	x := catalogOf(c).Lookup(string(c.Args[2]))
	switch {
	case x == nil:
		c.Err(noSuchIndex(c.Args[2]))
	case x.Definition().Temporary == 0:
		c.Err("Index is not temporary")
	default:
		idle := c.Host.Keyspace().Now() - x.Touched()
		c.W.Int(max(x.Definition().Temporary-idle/1000, 0))
	}
}

// debugNothing accepts the sub-commands of the garbage collector.
func debugNothing(c *command.Ctx) {
	if catalogOf(c).Lookup(string(c.Args[2])) == nil {
		c.Err(noSuchIndex(c.Args[2]))
		return
	}
	c.W.OK()
}

// debugCollect replies as after a completed collection.
func debugCollect(c *command.Ctx) {
	if debugged(c) != nil {
		c.W.Simple("DONE")
	}
}
