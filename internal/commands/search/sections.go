package search

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/server"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/index"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
	"github.com/atomredis/atomredis/internal/version"
)

// This file has the sections of INFO. Without an index there are only a few, as in Redis.

// counters count queries since the start.
type counters struct {
	queries, commands                  atomic.Int64 // FT.CURSOR READ counts as a command, and not as a query
	active                             atomic.Int64
	spent                              atomic.Int64 // in ns
	syntax, arguments, timeouts        atomic.Int64 // errors
	timeoutWarnings, expansionWarnings atomic.Int64
}

// counted returns a handler that counts the queries of do. With goesOn the command continues a query, and no new
// query is counted.
func counted(do func(*command.Ctx), goesOn bool) func(*command.Ctx) {
	return func(c *command.Ctx) {
		n := &serviceOf(c.Host).counters
		n.active.Add(1)
		defer n.active.Add(-1)
		start, reply := time.Now(), len(c.W.Buf)
		do(c) // does not return if the query is offloaded; the handler is called again then
		n.spent.Add(int64(time.Since(start)))
		if len(c.W.Buf) > reply && c.W.Buf[reply] == '-' {
			return
		}
		n.commands.Add(1)
		if !goesOn {
			n.queries.Add(1)
		}
	}
}

// failed counts an error of a query.
func (n *counters) failed(err error) {
	var e *query.Error
	if !errors.As(err, &e) {
		return
	}
	switch e.Code {
	case query.Syntax:
		n.syntax.Add(1)
	case query.Timeout:
		n.timeouts.Add(1)
	default:
		n.arguments.Add(1)
	}
}

// warned counts the warnings of an ended query, even if its client does not get them.
func (r *run) warned() {
	if r.plan == nil { // other shards have run the query
		return
	}
	n := &serviceOf(r.c.Host).counters
	if r.plan.Stopped() || r.cut {
		n.timeoutWarnings.Add(1)
	}
	if len(r.plan.Warnings()) > 0 {
		n.expansionWarnings.Add(1)
	}
}

// totals are the figures of all indexes together.
type totals struct {
	indexes, filling, docs, cursors int64
	spent                           time.Duration
	memory, smallest, largest       int64
	vectors, removed                int64
	failures, mostFailures          int64
	dialects                        [5]bool // dialects in which an index was queried
	kinds                           [len(kindWords)]kindTotals
}

// kindTotals are the figures of all fields of a kind.
type kindTotals struct {
	fields, sortable, noIndex, caseSensitive, flat, hnsw, svs, compressed, failures int64
}

// kindWords are the names of the kinds of fields in INFO.
var kindWords = [...]struct {
	kind        query.Kind
	line, count string
}{
	{query.TextKind, "fields_text", "Text"}, {query.NumericKind, "fields_numeric", "Numeric"}, {query.TagKind, "fields_tag", "Tag"},
	{query.GeoKind, "fields_geo", "Geo"}, {query.VectorKind, "fields_vector", "Vector"}, {query.GeoShapeKind, "fields_geoshape", "Geoshape"},
}

// totalsOf adds up the figures of indexes.
func totalsOf(list []*catalog.Index) totals {
	t := totals{indexes: int64(len(list)), smallest: math.MaxInt64}
	for _, x := range list {
		s, def := x.Stats(), x.Definition()
		t.filling += boolInt(x.Filling())
		t.docs += int64(s.Docs)
		t.cursors += int64(x.Cursors.Len())
		t.spent += s.Spent
		t.memory += s.Bytes()
		t.smallest, t.largest = min(t.smallest, s.Bytes()), max(t.largest, s.Bytes())
		t.vectors += s.Vectors
		for d := range t.dialects {
			t.dialects[d] = t.dialects[d] || x.Dialect[d].Load()
		}
		t.failures += s.Failures.Count
		t.mostFailures = max(t.mostFailures, s.Failures.Count)
		for i, f := range def.Fields[:min(len(def.Fields), len(s.Fields))] {
			t.removed += s.Fields[i].Removed
			t.addField(f, &s.Fields[i])
		}
	}
	if len(list) == 0 {
		t.smallest = 0
	}
	return t
}

// addField adds the figures of a field.
func (t *totals) addField(f *schema.Field, s *index.FieldStats) {
	for i, k := range kindWords {
		if k.kind != f.Kind {
			continue
		}
		n := &t.kinds[i]
		n.fields++
		n.sortable += boolInt(f.Sortable)
		n.noIndex += boolInt(f.NoIndex)
		n.caseSensitive += boolInt(f.CaseSensitive)
		n.failures += s.Failures.Count
		if v := f.Vector; f.Kind == query.VectorKind {
			n.flat += boolInt(v.Algorithm == schema.Flat)
			n.hnsw += boolInt(v.Algorithm == schema.HNSW)
			n.svs += boolInt(v.Algorithm == schema.SVS)
			n.compressed += boolInt(v.Compression != "")
		}
	}
}

// line returns the line of a kind of fields. Zeros are left out, except those that every kind has.
func (n *kindTotals) line(count string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s=%d", count, n.fields)
	for _, o := range []struct {
		name string
		n    int64
	}{{"Sortable", n.sortable}, {"NoIndex", n.noIndex}, {"CaseSensitive", n.caseSensitive}, {"Flat", n.flat}, {"HNSW", n.hnsw},
		{"SVS_VAMANA", n.svs}, {"SVS_VAMANA_Compressed", n.compressed}} {
		if o.n > 0 {
			fmt.Fprintf(&b, ",%s=%d", o.name, o.n)
		}
	}
	fmt.Fprintf(&b, ",IndexErrors=%d", n.failures)
	return b.String()
}

// InfoSections returns the sections of INFO about a server's query engine.
func InfoSections(h command.Host) []server.InfoSection {
	s := serviceOf(h)
	list := s.List()
	var t totals // shared by all sections of one INFO
	var known bool
	section := func(name string, write func(b *server.InfoText, t *totals)) server.InfoSection {
		return server.InfoSection{Name: "search_" + name, Module: version.Search, Write: func(b *server.InfoText, _ *command.Ctx) {
			if !known {
				t, known = totalsOf(list), true
			}
			write(b, &t)
		}}
	}
	sections := []server.InfoSection{section("version", infoVersion), section("indexes", s.infoIndexes)}
	if len(list) > 0 || h.Directive("search-_info-on-zero-indexes") == "yes" {
		sections = append(sections, section("fields_statistics", infoFields), section("memory", infoMemory),
			section("vector_index", infoVectors), section("cursors", infoCursors), section("garbage_collector", infoCollector),
			section("queries", s.infoQueries), section("warnings_and_errors", s.infoFailures),
			section("dialect_statistics", infoDialects))
	}
	return append(sections, section("runtime_configurations", s.infoSettings))
}

func infoVersion(b *server.InfoText, _ *totals) {
	b.Text("search_version", version.Redis)
	b.Text("search_redis_version", version.Redis+" - oss")
}

func (s *service) infoIndexes(b *server.InfoText, t *totals) {
	b.Number("search_number_of_indexes", t.indexes)
	b.Number("search_number_of_active_indexes", t.filling)
	b.Number("search_number_of_active_indexes_running_queries", 0) // queries lock no index while they run
	b.Number("search_number_of_active_indexes_indexing", t.filling)
	b.Number("search_total_active_write_threads", t.filling)
	b.Float("search_total_indexing_time", t.spent.Seconds()*1000)
	b.Number("search_total_num_docs_in_indexes", t.docs)
}

func infoFields(b *server.InfoText, t *totals) {
	for i, k := range kindWords {
		if t.kinds[i].fields > 0 {
			b.Text("search_"+k.line, t.kinds[i].line(k.count))
		}
	}
}

func infoMemory(b *server.InfoText, t *totals) {
	bytes := func(name string, n int64) {
		b.Number("search_"+name, n)
		b.Float("search_"+name+"_human", float64(n)/(1<<20)) // in MB
	}
	bytes("used_memory_indexes", t.memory)
	bytes("smallest_memory_index", t.smallest)
	bytes("largest_memory_index", t.largest)
}

func infoVectors(b *server.InfoText, t *totals) {
	b.Number("search_used_memory_vector_index", t.vectors)
}

func infoCursors(b *server.InfoText, t *totals) {
	b.Number("search_global_idle_user", t.cursors)
	b.Number("search_global_idle_internal", 0)
	b.Number("search_global_total_user", t.cursors)
	b.Number("search_global_total_internal", 0)
}

// infoCollector shows the figures of a garbage collector, which does not exist here.
func infoCollector(b *server.InfoText, t *totals) {
	b.Zeros("search_gc_bytes_collected", "search_gc_total_cycles", "search_gc_total_ms_run", "search_gc_total_docs_not_collected")
	b.Number("search_gc_marked_deleted_vectors", t.removed)
}

func (s *service) infoQueries(b *server.InfoText, _ *totals) {
	n := &s.counters
	b.Number("search_total_queries_processed", n.queries.Load())
	b.Number("search_total_query_commands", n.commands.Load())
	b.Number("search_total_query_execution_time_ms", n.spent.Load()/int64(time.Millisecond))
	b.Number("search_total_active_queries", n.active.Load())
}

func (s *service) infoFailures(b *server.InfoText, t *totals) {
	n := &s.counters
	b.Number("search_errors_indexing_failures", t.failures)
	b.Number("search_errors_for_index_with_max_failures", t.mostFailures)
	b.Zeros("search_OOM_indexing_failures_indexes_count")
	b.Number("search_shard_total_query_errors_syntax", n.syntax.Load())
	b.Number("search_shard_total_query_errors_arguments", n.arguments.Load())
	b.Number("search_shard_total_query_errors_timeout", n.timeouts.Load())
	b.Number("search_shard_total_query_warnings_timeout", n.timeoutWarnings.Load())
	b.Zeros("search_shard_total_query_errors_oom", "search_shard_total_query_warnings_oom")
	b.Number("search_shard_total_query_warnings_max_prefix_expansions", n.expansionWarnings.Load())
}

func infoDialects(b *server.InfoText, t *totals) {
	for d := 1; d <= 4; d++ {
		b.Flag(fmt.Sprintf("search_dialect_%d", d), t.dialects[d])
	}
}

// shownSettings are the settings that INFO shows, with their names there.
var shownSettings = []struct{ name, directive string }{
	{"minimal_term_prefix", "search-min-prefix"}, {"minimal_stem_length", "search-min-stem-len"},
	{"maximal_prefix_expansions", "search-max-prefix-expansions"}, {"query_timeout_ms", "search-timeout"},
	{"timeout_policy", "search-on-timeout"}, {"oom_policy", "search-on-oom"}, {"cursor_read_size", ""},
	{"cursor_max_idle_time", "search-cursor-max-idle"}, {"max_doc_table_size", "search-max-doctablesize"},
	{"max_search_results", "search-max-search-results"}, {"max_aggregate_results", "search-max-aggregate-results"},
	{"max_aggregate_groups", "search-max-aggregate-groups"}, {"gc_scan_size", "search-gc-scan-size"},
	{"min_phonetic_term_length", "search-min-phonetic-term-len"}, {"bm25std_tanh_factor", "search-bm25std-tanh-factor"},
}

func (s *service) infoSettings(b *server.InfoText, _ *totals) {
	b.Text("search_default_scorer", s.host.Directive("search-default-scorer"))
	b.Text("search_enableGC", "ON")
	for _, o := range shownSettings {
		if o.directive == "" {
			b.Number("search_"+o.name, defaultCursorCount)
		} else {
			b.Text("search_"+o.name, s.host.Directive(o.directive))
		}
	}
	onZero := "OFF"
	if s.host.Directive("search-_info-on-zero-indexes") == "yes" {
		onZero = "ON"
	}
	b.Text("search_info_on_zero_indexes", onZero)
}
