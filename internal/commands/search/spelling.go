package search

import (
	"bytes"
	"iter"

	"github.com/atomredis/atomredis/engine/search/postings"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/index"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/spell"
)

// spellCheck is FT.SPELLCHECK.
func spellCheck(c *command.Ctx) {
	x := find(c, c.Args[1])
	if x == nil {
		return
	}
	o, err := spell.ParseOptions(words(c.Args[3:]))
	if err == nil {
		err = o.Missing(catalogOf(c).HasDictionary)
	}
	if err != nil {
		fail(c, err)
		return
	}
	if o.Dialect == 0 {
		o.Dialect = int(integer(c.Host, "search-default-dialect"))
	}
	uses(x, o.Dialect)
	if spread(c, func(f *fan) { f.spelling(o) }) {
		return
	}
	if c.G.Locked() {
		c.G.Index()
	}
	list, total, err := spellings(c, x, o)
	if err != nil {
		fail(c, err)
		return
	}
	writeWords(c, spell.Merge([][]spell.Word{list}, total, o), o.Full, total)
}

// spellings returns suggestions for the words of a query from the server's own index, and the number of its
// documents.
func spellings(c *command.Ctx, x *catalog.Index, o spell.Options) (list []spell.Word, total int, err error) {
	cat := catalogOf(c)
	dict := func(name string) (found *spell.Dict) {
		cat.Dictionary(name, func(d *spell.Dict) { found = d.Clone() })
		return found
	}
	x.View(func(v index.View) {
		var root query.Node
		if root, err = query.Parse(string(c.Args[2]), query.Options{Dialect: o.Dialect, Schema: v.Definition(), Params: o.Params, Slop: -1}); err == nil {
			total = v.Docs().Len()
			c.LongQuery(len(bytes.Fields(c.Args[2])) * v.Text().Len() / termsWork)
			list = spell.Candidates(root, spelled{v, c.Offload}, o, dict)
		}
	})
	return list, total, err
}

// writeWords writes the suggestions: a list of words in RESP2, a map in RESP3.
func writeWords(c *command.Ctx, list []spell.Word, full bool, total int) {
	w := c.W
	if w.Proto >= 3 {
		p := newPairs(w)
		if full {
			p.int("total_docs", int64(total))
		}
		results := newPairs(p.name("results"))
		for _, word := range list {
			w.BulkString(word.Text)
			results.n++
			if word.Known {
				w.Error("term exists in index")
				continue
			}
			w.Array(len(word.Suggestions))
			for _, s := range word.Suggestions {
				w.Map(1)
				w.BulkString(s.Term)
				w.Double(s.Score)
			}
		}
		results.end()
		p.end()
		return
	}
	mark, n := w.Defer(), 0
	if full {
		w.Int(int64(total))
		n++
	}
	for _, word := range list {
		n++
		w.Array(3)
		w.Simple("TERM")
		w.BulkString(word.Text)
		if word.Known {
			w.Simple("term exists in index")
			continue
		}
		w.Array(len(word.Suggestions))
		for _, s := range word.Suggestions {
			w.Array(2)
			w.Double(s.Score)
			w.BulkString(s.Term)
		}
	}
	w.EndArray(mark, n)
}

// termsWork is how many terms can be compared with a word in the time of visiting one document.
const termsWork = 4

// spelled is an index as package spell sees it. The index is locked for reading.
type spelled struct {
	index.View
	offload *command.Offload
}

// Len implements spell.Index.
func (s spelled) Len() int { return s.View.Docs().Len() }

// Has implements spell.Index.
func (s spelled) Has(term string) bool {
	_, ok := s.Text().Get(term)
	return ok
}

// Near implements spell.Index.
func (s spelled) Near(word string, distance int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for term := range s.Text().Until(s.unwanted).Fuzzy(word, distance) {
			if !yield(term) {
				return
			}
		}
	}
}

// unwanted reports whether the reply is no longer wanted.
func (s spelled) unwanted() bool { return !s.offload.Wanted() }

// Docs implements spell.Index.
func (s spelled) Docs(term string, fields query.Fields) int {
	list, ok := s.Text().Get(term)
	switch {
	case !ok || fields.None():
		return 0
	case fields.All():
		return list.Len()
	}
	var mask postings.Mask
	for _, f := range fields.List() {
		mask = mask.Or(postings.Bit(f.Number))
	}
	docs := s.View.Docs()
	for r := list.View().Reader(); r.Next(); {
		if r.Mask().Meets(mask) && docs.Alive(r.Doc()) {
			return list.Len()
		}
	}
	return 0
}
