package search

import (
	"math"
	"slices"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/index"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/search/text"
	"github.com/atomredis/atomredis/resp"
)

// FT.INFO. All names and most texts are simple strings; numbers that need not be whole are doubles, which are texts in RESP2.

// pairs writes a map whose length is known only at the end: a flat array in RESP2.
type pairs struct {
	w    *resp.Writer
	mark resp.Mark
	n    int
}

func newPairs(w *resp.Writer) *pairs { return &pairs{w: w, mark: w.Defer()} }

func (p *pairs) end() { p.w.EndMap(p.mark, p.n) }

// name begins a member.
func (p *pairs) name(name string) *resp.Writer {
	p.w.Simple(name)
	p.n++
	return p.w
}

func (p *pairs) simple(name, value string)      { p.name(name).Simple(value) }
func (p *pairs) int(name string, value int64)   { p.name(name).Int(value) }
func (p *pairs) double(name string, v float64)  { p.name(name).Double(v) }
func (p *pairs) megabytes(name string, n int64) { p.double(name, float64(n)/(1<<20)) }

// info is FT.INFO.
func info(c *command.Ctx) {
	x := find(c, c.Args[1])
	if x == nil {
		return
	}
	x.Uses.Add(1)
	if !spread(c, func(f *fan) { f.info(x) }) {
		writeInfo(c, x, figuresOf(c, x))
	}
}

// figures are the figures that FT.INFO shows of an index beside its definition.
type figures struct {
	index.Stats
	Filling      bool
	Progress     float64 // 0 to 1
	Cursors      int
	AllCursors   int // of all indexes
	Capacity     int64
	UsedDialects [5]bool
}

// figuresOf returns the figures of an index on this server.
func figuresOf(c *command.Ctx, x *catalog.Index) *figures {
	f := &figures{Stats: x.Stats(), Filling: x.Filling(), Progress: x.Progress(), Cursors: x.Cursors.Len(),
		Capacity: integer(c.Host, "search-index-cursor-limit")}
	for _, other := range catalogOf(c).List() {
		other.Cursors.Expire(c.Host.Keyspace().Now())
		f.AllCursors += other.Cursors.Len()
	}
	for d := range f.UsedDialects {
		f.UsedDialects[d] = x.Dialect[d].Load()
	}
	if hides := hidden(c.Host); hides != nil {
		f.Docs -= x.Hidden(hides)
	}
	return f
}

// writeInfo writes the reply.
func writeInfo(c *command.Ctx, x *catalog.Index, s *figures) {
	def := x.Definition()
	p := newPairs(c.W)
	p.simple("index_name", x.Name)
	writeFlags(p.name("index_options"), []flag{{"NOFREQS", def.NoFreqs}, {"NOFIELDS", def.NoFields}, {"NOOFFSETS", def.NoOffsets},
		{"NOHL", def.NoHighlight}, {"MAXTEXTFIELDS", def.MaxTextFields}})
	p.name("index_definition")
	writeDefinition(c.W, def)
	p.name("attributes").Array(len(def.Fields))
	for _, f := range def.Fields {
		writeAttribute(c.W, f)
	}
	p.int("num_docs", int64(s.Docs))
	p.int("max_doc_id", int64(s.MaxDoc))
	p.int("num_terms", int64(s.Terms))
	p.int("num_records", s.Records)
	p.megabytes("inverted_sz_mb", s.Inverted)
	p.megabytes("vector_index_sz_mb", s.Vectors)
	p.int("total_inverted_index_blocks", int64(s.Terms))
	p.megabytes("offset_vectors_sz_mb", s.Offsets)
	p.megabytes("doc_table_size_mb", s.DocTable)
	p.megabytes("sortable_values_size_mb", s.SortValues)
	p.megabytes("key_table_size_mb", s.KeyTable)
	p.megabytes("tag_overhead_sz_mb", s.Tags)
	p.megabytes("text_overhead_sz_mb", s.Text)
	p.megabytes("total_index_memory_sz_mb", s.Bytes())
	p.megabytes("geoshapes_sz_mb", s.Shapes)
	p.double("records_per_doc_avg", ratio(s.Records, int64(s.Docs)))
	p.double("bytes_per_record_avg", ratio(s.Inverted, s.Records))
	p.double("offsets_per_term_avg", ratio(s.Offsets, s.Records))
	p.double("offset_bits_per_record_avg", ratio(8*s.Offsets, s.Records))
	p.int("hash_indexing_failures", s.Failures.Count)
	p.double("total_indexing_time", s.Spent.Seconds()*1000)
	p.int("indexing", boolInt(s.Filling))
	p.double("percent_indexed", s.Progress)
	p.int("number_of_uses", x.Uses.Load())
	p.int("cleaning", 0)
	writeCollector(p.name("gc_stats"))
	writeCursors(p.name("cursor_stats"), s)
	if def.CustomStopwords {
		list := slices.Sorted(slices.Values(def.Stopwords.Words()))
		p.name("stopwords_list").Array(len(list))
		for _, word := range list {
			c.W.BulkString(word)
		}
	}
	dialects := newPairs(p.name("dialect_stats"))
	for d := 1; d <= 4; d++ {
		dialects.int("dialect_"+string(rune('0'+d)), boolInt(s.UsedDialects[d]))
	}
	dialects.end()
	errors := newPairs(p.name("Index Errors"))
	writeFailures(errors, s.Failures)
	errors.simple("background indexing status", "OK")
	errors.end()
	p.name("field statistics").Array(len(def.Fields))
	for i, f := range def.Fields {
		field := newPairs(c.W)
		field.simple("identifier", f.Path)
		field.simple("attribute", f.Name)
		failures := newPairs(field.name("Index Errors"))
		writeFailures(failures, s.Fields[i].Failures)
		failures.end()
		if f.Kind == query.VectorKind {
			field.int("memory", s.Fields[i].Vectors)
			field.int("marked_deleted", s.Fields[i].Removed)
		}
		field.end()
	}
	p.end()
}

// ratio returns a/b, NaN if b is 0.
func ratio(a, b int64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return float64(a) / float64(b)
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// flag is a word and whether to show it.
type flag struct {
	word string
	is   bool
}

// writeFlags writes the words of the flags that are set.
func writeFlags(w *resp.Writer, flags []flag) {
	mark, n := w.Defer(), 0
	for _, f := range flags {
		if f.is {
			w.Simple(f.word)
			n++
		}
	}
	w.EndArray(mark, n)
}

// writeDefinition writes the options of FT.CREATE for the index as a whole.
func writeDefinition(w *resp.Writer, def *schema.Definition) {
	p := newPairs(w)
	p.simple("key_type", def.Source.String())
	prefixes := def.Prefixes
	if len(prefixes) == 0 {
		prefixes = []string{""}
	}
	p.name("prefixes").Array(len(prefixes))
	for _, prefix := range prefixes {
		w.Simple(prefix)
	}
	if def.Filter != "" {
		p.simple("filter", def.Filter)
	}
	if def.Language != text.Language(0) {
		p.simple("default_language", def.Language.String())
	}
	if def.LanguageField != "" {
		p.simple("language_field", def.LanguageField)
	}
	p.double("default_score", def.Score)
	if def.ScoreField != "" {
		p.simple("score_field", def.ScoreField)
	}
	if def.PayloadField != "" {
		p.simple("payload_field", def.PayloadField)
	}
	if def.IndexAll {
		p.simple("indexes_all", "true")
	} else {
		p.simple("indexes_all", "false")
	}
	p.end()
}

// writeAttribute writes a field. Its flags follow the pairs in RESP2, and are a list of their own in RESP3.
func writeAttribute(w *resp.Writer, f *schema.Field) {
	mark, n := w.Defer(), 0
	simple := func(name, value string) {
		w.Simple(name)
		w.Simple(value)
		n++
	}
	number := func(name string, value int) {
		w.Simple(name)
		w.Int(int64(value))
		n++
	}
	simple("identifier", f.Path)
	simple("attribute", f.Name)
	simple("type", index.KindName(f.Kind))
	switch f.Kind {
	case query.TextKind:
		w.Simple("WEIGHT")
		w.Double(f.Weight)
		n++
	case query.TagKind:
		separator := ""
		if f.Separator != 0 {
			separator = string(rune(f.Separator))
		}
		simple("SEPARATOR", separator)
	case query.GeoShapeKind:
		if f.Flat {
			simple("coord_system", "FLAT")
		} else {
			simple("coord_system", "SPHERICAL")
		}
	case query.VectorKind:
		v := f.Vector
		simple("algorithm", v.Algorithm.String())
		simple("data_type", v.Type.String())
		number("dim", v.Dim)
		simple("distance_metric", v.Metric.String())
		switch v.Algorithm {
		case schema.HNSW:
			number("M", v.M)
			number("ef_construction", v.EfConstruction)
		case schema.SVS:
			number("graph_max_degree", v.GraphMaxDegree)
			number("construction_window_size", v.ConstructionWidth)
			if v.Compression == "" {
				simple("compression", "NO_COMPRESSION")
			} else {
				simple("compression", v.Compression)
				number("training_threshold", v.TrainingThreshold)
				if v.Reduce > 0 {
					number("reduced_dim", v.Reduce)
				}
			}
		}
	}
	flags := []flag{{"CASESENSITIVE", f.CaseSensitive}, {"SORTABLE", f.Sortable}, {"UNF", f.Sortable && f.Unfolded},
		{"NOSTEM", f.NoStem}, {"NOINDEX", f.NoIndex}, {"WITHSUFFIXTRIE", f.Suffixes}, {"INDEXEMPTY", f.IndexEmpty},
		{"INDEXMISSING", f.IndexMissing}}
	if w.Proto >= 3 {
		w.Simple("flags")
		writeFlags(w, flags)
		w.EndMap(mark, n+1)
		return
	}
	n *= 2
	for _, f := range flags {
		if f.is {
			w.Simple(f.word)
			n++
		}
	}
	w.EndArray(mark, n)
}

// writeFailures writes how often documents could not be indexed, and the last reason.
func writeFailures(p *pairs, f index.Failures) {
	last, key := f.Last, f.Key
	if f.Count == 0 {
		last, key = "N/A", "N/A"
	}
	p.int("indexing failures", f.Count)
	p.simple("last indexing error", last)
	p.name("last indexing error key").BulkString(key)
}

// writeCollector writes figures of a garbage collector. There is none: lists are rewritten as their documents go.
func writeCollector(w *resp.Writer) {
	p := newPairs(w)
	p.double("bytes_collected", 0)
	p.double("total_ms_run", 0)
	p.double("total_cycles", 0)
	p.double("average_cycle_time_ms", math.NaN())
	p.double("last_run_time_ms", 0)
	p.double("gc_numeric_trees_missed", 0)
	p.double("gc_blocks_denied", 0)
	p.end()
}

// writeCursors writes how many cursors there are.
func writeCursors(w *resp.Writer, s *figures) {
	p := newPairs(w)
	p.int("global_idle", int64(s.AllCursors))
	p.int("global_total", int64(s.AllCursors))
	p.int("index_capacity", s.Capacity)
	p.int("index_total", int64(s.Cursors))
	p.end()
}
