//go:build linux

// Search measures the query engine: the time and memory of building an index, the processor time of queries, queries of
// several clients at once, and a writer beside queries. With -reference and -module, the paths of a redis-server and of
// its module, that server is measured too, in the same run.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

type settings struct {
	program, reference, module string
	rounds                     int
	time                       time.Duration
	documents, vectors         int
	row                        string
}

var ctx = context.Background()

// side is one of the servers, with its figures by row.
type side struct {
	name    string
	server  *servers.Server
	client  *redis.Client
	figures map[string][]float64
}

func main() {
	var o settings
	flag.StringVar(&o.program, "server", servers.AtomRedis, "the binary of atomredis")
	flag.StringVar(&o.reference, "reference", "", "the `path` of a redis-server, or of an older atomredis, to measure beside it")
	flag.StringVar(&o.module, "module", "", "the `path` of the redis-server's search module")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each query is measured")
	flag.DurationVar(&o.time, "time", 500*time.Millisecond, "how long each measurement takes")
	flag.IntVar(&o.documents, "documents", 100_000, "hashes in the index")
	flag.IntVar(&o.vectors, "vectors", 20_000, "vectors in the index")
	flag.StringVar(&o.row, "row", "", "measure only the queries whose `name` begins so")
	flag.Parse()
	log.SetFlags(0)
	defer servers.Cleanup()

	c := newCorpus(o.documents, o.vectors)
	sides := []*side{{name: "atomredis", server: servers.New(o.program)}}
	if o.reference != "" {
		sides = append(sides, &side{name: "reference", server: servers.New(o.reference)})
	}
	for i, s := range sides {
		args := servers.Durability("none")
		if i == 1 && o.module != "" {
			args = append(args, "--loadmodule", o.module)
		}
		s.figures = map[string][]float64{}
		s.server.Start(args...)
		s.client = redis.NewClient(&redis.Options{Addr: s.server.Addr, Protocol: 2, DisableIdentity: true, ReadTimeout: time.Minute})
		s.build(c)
	}
	rows := slices.DeleteFunc(queries(c), func(r row) bool { return !strings.HasPrefix(r.name, o.row) })
	for round := range o.rounds {
		for _, row := range rows {
			for i := range sides {
				sides[(round+i)%len(sides)].query(row, o.time)
			}
		}
		for i := range sides {
			s := sides[(round+i)%len(sides)]
			s.together(rows, o.time)
			s.write(c, rows, o.time)
		}
	}
	for _, s := range sides {
		s.recall(c)
	}

	servers.Check(os.MkdirAll("bench/results", 0o755))
	file, err := os.Create("bench/results/search.txt")
	servers.Check(err)
	report(io.MultiWriter(os.Stdout, file), o, sides, rows)
	for _, s := range sides {
		servers.Check(s.client.Close())
		s.server.Stop()
	}
	servers.Check(file.Close())
}

func (s *side) add(row string, value float64) { s.figures[row] = append(s.figures[row], value) }

// The rows that are not queries.
const (
	buildRow    = "build: µs a document"
	memoryRow   = "memory with the hashes: MB"
	vectorRow   = "a vector: µs"
	togetherRow = "4 clients: queries/s"
	aloneRow    = "writer alone: documents/s"
	besideRow   = "writer beside queries: documents/s"
	recallRow   = "recall@10"
)

// build makes the indexes and the documents.
func (s *side) build(c *corpus) {
	create := func(words ...any) { servers.Check(s.client.Do(ctx, words...).Err()) }
	before, empty := s.server.CPU(), s.resident()
	create("FT.CREATE", "docs", "PREFIX", 1, "doc:", "SCHEMA", "title", "TEXT", "body", "TEXT", "tag", "TAG", "price", "NUMERIC", "SORTABLE",
		"place", "GEO")
	s.server.Fill(len(c.documents), func(b []byte, i int) []byte { return servers.AppendCommand(b, c.documents[i]...) })
	s.add(buildRow, s.micros(before)/float64(len(c.documents)))
	s.add(memoryRow, float64(s.resident()-empty)/1e6)
	create("FT.CREATE", "vectors", "PREFIX", 1, "vec:", "SCHEMA", "v", "VECTOR", "HNSW", 8, "TYPE", "FLOAT32", "DIM", dimensions,
		"DISTANCE_METRIC", "L2", "M", 16)
	before = s.server.CPU()
	s.server.Fill(len(c.vectors), func(b []byte, i int) []byte {
		return servers.AppendCommand(b, "HSET", fmt.Sprintf("vec:%d", i), "v", blob(c.vectors[i]))
	})
	s.add(vectorRow, s.micros(before)/float64(len(c.vectors)))
}

func (s *side) resident() int64 {
	resident, _ := s.server.Memory()
	return resident
}

// micros returns the processor time since an earlier one in microseconds, in steps of 10 ms. Finer clocks belong to
// threads, and a thread that ran only one long query has ended.
func (s *side) micros(before servers.CPU) float64 {
	used := s.server.CPU().Since(before)
	return float64((used.User + used.System).Microseconds())
}

// row is a kind of query, in forms that take about as long.
type row struct {
	name     string
	commands [][]any
}

// nearest returns the command that finds the 10 vectors nearest to q.
func nearest(q []float32) []any {
	return []any{"FT.SEARCH", "vectors", "*=>[KNN 10 @v $q AS d]", "PARAMS", 2, "q", blob(q), "SORTBY", "d", "NOCONTENT", "LIMIT", 0, 10,
		"DIALECT", 2}
}

// queries returns the rows.
func queries(c *corpus) []row {
	each := func(name string, list []string, command func(query string) []any) row {
		r := row{name: name}
		for _, q := range list {
			r.commands = append(r.commands, command(q))
		}
		return r
	}
	search := func(options ...any) func(string) []any {
		return func(q string) []any {
			return append([]any{"FT.SEARCH", "docs", q, "DIALECT", 2, "LIMIT", 0, 10}, options...)
		}
	}
	n := len(c.documents)
	list := func(format string, a func(i int) []any) (list []string) {
		for i := range 50 {
			list = append(list, fmt.Sprintf(format, a(i)...))
		}
		return list
	}
	knn := row{name: "KNN 10"}
	for _, q := range c.queries {
		knn.commands = append(knn.commands, nearest(q))
	}
	return []row{
		each("rare word", c.words(50, n*32/100_000+1), search()),
		each("frequent word", c.words(20, n*5400/100_000), search()),
		each("two words", c.pairs(20, n*114/100_000), search()),
		each("prefix", c.prefixes(20, n*870/100_000), func(p string) []any { return search()(p + "*") }),
		each("tag and range, sorted", list("@tag:{t%d} @price:[%d %d]", func(i int) []any { return []any{i * 7 % tags, i * 100, i*100 + 5000} }),
			search("SORTBY", "price")),
		each("range of a fifth, sorted", list("@price:[%d %d]", func(i int) []any { return []any{i * 100, i*100 + 2000} }),
			search("SORTBY", "price")),
		each("geo", list("@place:[%d %d 50 km]", func(i int) []any { return []any{6 + i%9, 46 + i%7} }), search()),
		each("group of 500 tags", c.words(20, n*5400/100_000), func(w string) []any {
			return []any{"FT.AGGREGATE", "docs", w, "GROUPBY", 1, "@tag", "REDUCE", "COUNT", 0, "AS", "n", "REDUCE", "AVG", 1, "@price", "AS", "p",
				"SORTBY", 2, "@n", "DESC", "LIMIT", 0, 10, "DIALECT", 2}
		}),
		knn,
	}
}

// query measures the processor time of a row.
func (s *side) query(r row, d time.Duration) {
	s.run(r.commands[:1]) // wakes all parts of the server
	before, n := s.server.CPU(), 0
	for end := time.Now().Add(d); n < len(r.commands) || time.Now().Before(end); n++ {
		s.run(r.commands[n%len(r.commands):][:1])
	}
	s.add(r.name, s.micros(before)/float64(n))
}

// run sends commands in turn.
func (s *side) run(commands [][]any) {
	for _, c := range commands {
		if err := s.client.Do(ctx, c...).Err(); err != nil {
			servers.Fatal(s.name, " to ", c, ": ", err)
		}
	}
}

// during has clients send the queries of all rows until do returns, and returns the number sent.
func (s *side) during(clients int, rows []row, do func()) int64 {
	var stop atomic.Bool
	var sent atomic.Int64
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			for n := i; !stop.Load(); n++ {
				r := rows[n%len(rows)]
				s.run(r.commands[n%len(r.commands):][:1])
				sent.Add(1)
			}
		})
	}
	do()
	stop.Store(true)
	wait.Wait()
	return sent.Load()
}

// together measures the queries of four clients.
func (s *side) together(rows []row, d time.Duration) {
	began := time.Now()
	n := s.during(4, rows, func() { time.Sleep(d) })
	s.add(togetherRow, float64(n)/time.Since(began).Seconds())
}

// write measures a writer alone, and beside a client that searches.
func (s *side) write(c *corpus, rows []row, d time.Duration) {
	rnd := rand.New(rand.NewPCG(3, 4))
	rate := func() float64 {
		began, n := time.Now(), 0
		for ; time.Since(began) < d; n++ {
			document := c.documents[rnd.IntN(len(c.documents))]
			args := make([]any, len(document))
			for i, w := range document {
				args[i] = w
			}
			servers.Check(s.client.Do(ctx, args...).Err())
		}
		return float64(n) / time.Since(began).Seconds()
	}
	s.add(aloneRow, rate())
	s.during(1, rows, func() { s.add(besideRow, rate()) })
}

// recall measures how many of the nearest vectors are found.
func (s *side) recall(c *corpus) {
	found, all := 0, 0
	for i, q := range c.queries {
		reply, err := s.client.Do(ctx, nearest(q)...).Slice()
		servers.Check(err)
		for _, name := range reply[1:] {
			if c.nearest[i][fmt.Sprint(name)] {
				found++
			}
		}
		all += len(c.nearest[i])
	}
	s.add(recallRow, float64(found)/float64(all))
}

// report writes the table.
func report(out io.Writer, o settings, sides []*side, rows []row) {
	fmt.Fprintf(out, "%d hashes, %d vectors of %d; %d rounds of %v; processor time of the server, medians\n\n",
		o.documents, o.vectors, dimensions, o.rounds, o.time)
	names := []string{buildRow, memoryRow, vectorRow}
	for _, r := range rows {
		names = append(names, r.name)
	}
	names = append(names, recallRow, togetherRow, aloneRow, besideRow)
	for _, name := range names {
		fmt.Fprintf(out, "%-36s", name)
		for _, s := range sides {
			fmt.Fprintf(out, "%12.2f", servers.Quantile(slices.Clone(s.figures[name]), 0.5))
		}
		if len(sides) == 2 {
			fmt.Fprintf(out, "  %5.2f", ratio(sides[0].figures[name], sides[1].figures[name]))
		}
		fmt.Fprintln(out)
	}
	for _, s := range sides {
		if alone := servers.Quantile(slices.Clone(s.figures[aloneRow]), 0.5); alone > 0 {
			fmt.Fprintf(out, "%s: a writer keeps %.2f of its rate beside queries\n", s.name,
				servers.Quantile(slices.Clone(s.figures[besideRow]), 0.5)/alone)
		}
	}
	fmt.Fprintln(out, strings.TrimSpace(sides[len(sides)-1].server.InfoField("server", "redis_version")))
}

// ratio returns the median of the ratios of measurements side by side.
func ratio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return servers.Quantile(ratios, 0.5)
}
