package plan

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// planOf makes the plan of a query in dialect 2.
func (m *memory) planOf(t testing.TB, q string, o Options, words ...string) (*Plan, error) {
	r, ok := m.parse(append([]string{"DIALECT", "2"}, words...))
	require.True(t, ok)
	o.Slop, o.InOrder = r.plan.Slop, r.plan.InOrder
	n, err := m.tree(q, r)
	require.NoError(t, err)
	return New(n, m, o)
}

// must is planOf for a valid query.
func (m *memory) must(t testing.TB, q string, o Options, words ...string) *Plan {
	p, err := m.planOf(t, q, o, words...)
	require.NoError(t, err)
	return p
}

// keys returns the keys of all matches.
func keys(p *Plan) (list []string) {
	for p.Next() {
		list = append(list, p.Doc().Key())
	}
	return list
}

// Three documents whose scores are in the facts about the reference.
func hellos() *memory {
	m := newMemory(strings.Fields("SCHEMA t TEXT WEIGHT 2 u TEXT")...)
	m.hset("1", "t", "hello world", "u", "hello hello one two three four")
	m.hset("2", "t", "hello world", "u", "one two three four")
	m.hset("3", "t", "foo world", "u", "hello one two three")
	return m
}

func TestScoresOfThreeDocuments(t *testing.T) {
	for scorer, want := range map[Scorer][]float64{
		BM25STD:      {0.2201151512269871, 0.1876657423599862, 0.13786995780875572},
		BM25STDNorm:  {1, 0.1876657423599862 / 0.2201151512269871, 0.13786995780875572 / 0.2201151512269871},
		BM25STDTanh:  {math.Tanh(0.2201151512269871 / 4), math.Tanh(0.1876657423599862 / 4), math.Tanh(0.13786995780875572 / 4)},
		TFIDF:        {1, 1, 0.5},
		TFIDFDocNorm: {4. / 10, 2. / 8, 1. / 8},
		BM25:         {0.40816325570715173, 0.25641024883394853, 0.14705881854517117},
		DisMax:       {4, 2, 1},
		DocScore:     {1, 1, 1},
		Hamming:      {0, 0, 0},
	} {
		t.Run(scorer.String(), func(t *testing.T) {
			parsed, ok := ParseScorer(scorer.String())
			require.True(t, ok)
			require.Equal(t, scorer, parsed)
			p := hellos().must(t, "hello", Options{Scorer: scorer})
			for _, score := range want {
				require.True(t, p.Next())
				require.InDelta(t, score, p.Score(), 1e-15)
			}
			require.False(t, p.Next())
			hits := hellos().must(t, "hello", Options{Scorer: scorer}).Top(2)
			require.InDelta(t, want[0], hits[0].Score, 1e-15)
			require.InDelta(t, want[1], hits[1].Score, 1e-15)
		})
	}
	_, ok := ParseScorer("bm25std")
	require.False(t, ok)
}

func TestExplanationOfNorm(t *testing.T) {
	p := hellos().must(t, "hello", Options{Scorer: BM25STDNorm})
	hits := p.Top(3)
	p.Visit(hits[1:2], func(*Hit) {
		require.Equal(t, "Final BM25STD.NORM: 0.85 = Original Score: 0.19 / Max Score: 0.22", p.Explain().Text)
	})
}

// TFIDF counts one document too many, and truncates the logarithm.
func TestIDFs(t *testing.T) {
	for _, tc := range []struct {
		n, some  int
		log2, bm float64
	}{
		{2, 1, 2, 0.6931472}, {3, 3, 1, 0.1335314}, {6, 1, 3, math.Log(1 + 5.5/1.5)}, {1, 1, 1, 0.2876821},
	} {
		m := newMemory(strings.Fields("SCHEMA t TEXT")...)
		for i := range tc.n {
			word := "x"
			if i < tc.some {
				word = "foo"
			}
			m.hset(fmt.Sprint(i), "t", word)
		}
		p := m.must(t, "foo", Options{Scorer: TFIDF}, "VERBATIM")
		require.True(t, p.Next())
		require.Equal(t, tc.log2, p.Score(), tc)
		require.InDelta(t, tc.bm, p.root.(*term).idf, 1e-6)
	}
}

func TestPositions(t *testing.T) {
	list := func(lists ...[]uint32) (p []places) {
		for _, l := range lists {
			p = append(p, places{list: l})
		}
		return p
	}
	type positions = [][]uint32
	for _, tc := range []struct {
		lists     positions
		ordered   int // the least slop; -1 if there is none
		unordered int
	}{
		{positions{{1}, {2}}, 0, 0},
		{positions{{2}, {1}}, -1, 0},
		{positions{{1}, {3}}, 1, 1},
		{positions{{1, 5}, {1}}, -1, 3}, // a word is not two
		{positions{{4}, {4}}, -1, -1},
		{positions{{4, 5}, {4, 5}}, 0, 0},
		{positions{{1, 10}, {5, 11}, {12}}, 0, 0},
		{positions{{1, 10}, {2, 30}, {3, 31}}, 0, 0},
		{positions{{7}, {1}, {4}}, -1, 4},
		{positions{{1, 2, 3, 20}, {21}, {25}}, 3, 3},
	} {
		for slop := range 10 {
			require.Equal(t, tc.ordered >= 0 && slop >= tc.ordered, ordered(list(tc.lists...), slop), "%v in order, slop %d", tc.lists, slop)
			require.Equal(t, tc.unordered >= 0 && slop >= tc.unordered, unordered(list(tc.lists...), slop), "%v, slop %d", tc.lists, slop)
		}
	}
}

func TestSets(t *testing.T) {
	r := testseed.Rand(t)
	for _, last := range []uint64{1, 63, 64, 1000, 100_000} {
		for _, n := range []int{0, 1, 10, 1000} {
			s, want := newSet(n, last), map[uint64]bool{}
			for range n {
				doc := 1 + r.Uint64N(last)
				s.add(doc)
				want[doc] = true
			}
			s.done()
			require.Equal(t, len(want), s.len())
			for range 2 {
				s.rewind()
				count := 0
				for doc := s.next(0); doc != end; doc = s.next(doc + 1) {
					require.True(t, want[doc])
					require.True(t, s.has(doc))
					count++
				}
				require.Equal(t, len(want), count)
			}
			require.False(t, s.has(last+1))
		}
	}
}

// numbered makes an index of n documents with a word each; some have a tag.
func numbered(n int) *memory {
	m := newMemory(strings.Fields("SCHEMA t TEXT g TAG n NUMERIC SORTABLE loc GEO v VECTOR FLAT 6 TYPE FLOAT32 DIM 1 DISTANCE_METRIC L2")...)
	for i := range n {
		m.hset(fmt.Sprint(i), "t", fmt.Sprintf("foo w%03d bar", i), "g", fmt.Sprintf("g%d", i%50), "n", fmt.Sprint(i),
			"loc", fmt.Sprintf("%f,%f", float64(i)/10, 40.0), "v", blob(float32(i)))
	}
	return m
}

// A range beside a much rarer tag is not collected, but checked for the few documents.
func TestRangesFilterRareMatches(t *testing.T) {
	m := numbered(200)
	p := m.must(t, "@g:{g7} @n:[50 (157]", Options{Profile: true})
	require.Equal(t, []string{"57", "107"}, keys(p))
	require.Len(t, bare(p.root).(*intersect).filters, 1)
	r := bare(p.root).(*intersect).filters[0]
	require.False(t, r.ready)

	p = m.must(t, "@g:{g7} @n:[50 60]", Options{})
	require.Empty(t, p.root.(*intersect).filters)
	require.Equal(t, []string{"57"}, keys(p))
}

// The first documents of a range in its own order, or of all documents, are found without visiting the others.
func TestSortedRangesStopEarly(t *testing.T) {
	m := numbered(200)
	n, _ := m.Field("n")
	o := Order{Key: func(*Plan) docs.Value { panic("it looks at all matches") }}
	for _, tc := range []struct {
		query string
		desc  bool
		keys  []string
		total int
	}{
		{"@n:[50 150]", true, []string{"150", "149"}, 101},
		{"@n:[(50 150]", false, []string{"51", "52"}, 100},
		{"*", true, []string{"199", "198"}, 200},
		{"*", false, []string{"0", "1"}, 200},
	} {
		o.Desc = tc.desc
		p := m.must(t, tc.query, Options{SortBy: n})
		hits := p.TopBy(2, o)
		require.Equal(t, tc.keys, []string{hits[0].Doc.Key(), hits[1].Doc.Key()}, tc.query)
		require.Equal(t, tc.total, p.Total())
		require.False(t, p.Next())
	}
	// Documents without a number come last, so all must be visited if too few have one.
	m.hset("none", "t", "foo")
	o = Order{Key: func(p *Plan) docs.Value { return p.Doc().Sort(0) }}
	hits := m.must(t, "*", Options{SortBy: n}).TopBy(300, o)
	require.Len(t, hits, 201)
	require.Equal(t, "none", hits[200].Doc.Key())
}

func TestPatternsHaveALimitOfTerms(t *testing.T) {
	m := numbered(300)
	p := m.must(t, "w*", Options{})
	require.Empty(t, p.Warnings())
	require.Zero(t, p.Count(), "the prefix is too short")
	p = m.must(t, "w0*|w1*|w2*", Options{MaxExpansions: 100})
	require.Equal(t, 300, p.Count())
	require.Empty(t, p.Warnings())
	p = m.must(t, "w0*|w1*|w2*", Options{MaxExpansions: 99})
	require.Equal(t, 297, p.Count())
	require.Equal(t, []string{"Max prefix expansions limit was reached"}, p.Warnings())
	_, err := m.planOf(t, strings.Repeat("x", 1025)+"*", Options{})
	require.EqualError(t, err, "SEARCH_LIMIT_OVER PREFIX query string is too long. Maximum allowed length is 1024")
}

func TestLargeQueriesAreRefused(t *testing.T) {
	m := numbered(300)
	q := strings.Repeat("w0*|", 100) + "w0*"
	require.Equal(t, 100, m.must(t, q, Options{}).Count())
	for q, bytes := range map[string]int{q: 1 << 20, "w0*": 50 << 10, "@n:[0 300]": 30} {
		_, err := m.planOf(t, q, Options{MaxMemory: bytes})
		require.EqualError(t, err, "SEARCH_GENERIC The query needs too much memory")
	}
}

// A stopped query returns its partial result, and can still explain it.
func TestStop(t *testing.T) {
	m := numbered(1000)
	for _, q := range []string{"foo", "*", "-zzz", "foo bar", "foo -bar", "foo ~bar", "@n:[0 1000]", "@n:[0 1000] foo", "(foo bar)=>{$slop:0}"} {
		asked := 0
		p := m.must(t, q, Options{Stop: func() bool { asked++; return asked > 3 }})
		hits := p.Top(1000)
		require.True(t, p.Stopped(), q)
		require.Less(t, len(hits), 500, q)
		require.Equal(t, 4, asked, q)
		visited := 0
		p.Visit(hits, func(h *Hit) {
			require.Equal(t, h.Score, p.Score())
			visited++
		})
		require.Equal(t, len(hits), visited, q)
		require.True(t, p.Stopped())
		require.False(t, p.Next())
	}
	p := m.must(t, "foo", Options{Stop: func() bool { return false }})
	require.Equal(t, 1000, len(keys(p)))
	require.False(t, p.Stopped())
}

func TestMatchedTerms(t *testing.T) {
	m := newMemory(strings.Fields("SCHEMA t TEXT u TEXT g TAG")...)
	m.hset("1", "t", "running far", "u", "run running", "g", "x")
	m.hset("2", "t", "far")
	p := m.must(t, "running ~far @g:{x} -zebra", Options{})
	require.True(t, p.Next())
	var got []string
	for _, term := range p.Matched() {
		got = append(got, fmt.Sprint(term.Term, term.Positions, term.Tag, term.IDF, term.Fields.Lo))
	}
	require.ElementsMatch(t, []string{"running[1 4] false 2 3", "+run[1 4] false 2 3", "run[3] false 2 2", "far[2] false 1 1", "x[] true 2 0"}, got)
	p = m.must(t, "(far|@t:far) -zebra @g:{x|x} far", Options{}, "VERBATIM")
	require.True(t, p.Next())
	require.ElementsMatch(t, []string{"far", "far", "x", "x", "far"}, p.Terms())
	require.Len(t, p.Matched(), 2)
}

func TestProfile(t *testing.T) {
	m := numbered(20)
	p := m.must(t, "(foo|zzz|bar) @g:{g1|g2} -@n:[5 7] ~w001", Options{Profile: true}, "VERBATIM")
	require.Equal(t, 2, len(keys(p)))
	var show func(n Profile) string
	show = func(n Profile) string {
		s := strings.TrimSpace(fmt.Sprint(n.Type, " ", n.Query, " ", n.Term, " ", n.Reads > 0, " ", n.Size))
		for _, c := range n.Children {
			s += "{" + show(c) + "}"
		}
		return s
	}
	require.Equal(t, "INTERSECT   true 2{UNION TAG  true 2{TAG  g1 true 1}{TAG  g2 true 1}}"+
		"{NOT   true 20{NUMERIC  0 - 19 true 3}}{OPTIONAL   true 20{TEXT  w001 false 1}}{UNION UNION  true 40{TEXT  foo true 20}{TEXT  bar true 20}}",
		show(p.Profile()))
	require.Equal(t, "EMPTY", m.must(t, "zzz", Options{}).Profile().Type)
}

func TestVectorSearches(t *testing.T) {
	m := numbered(500)
	field, _ := m.Field("v")
	knn := func(filter query.Node, options ...query.Option) *query.KNN {
		return &query.KNN{Common: query.Common{Weight: 1}, Field: field, K: 3, Vector: blob(100), Yield: "d", Filter: filter, Options: options}
	}
	tag, _ := m.Field("g")
	rare := func() query.Node {
		return &query.Tag{Common: query.Common{Weight: 1}, Field: tag, Values: []query.Node{&query.Token{Text: "g1"}}}
	}
	for _, tc := range []struct {
		root *query.KNN
		mode string
		keys []string
	}{
		{knn(nil), "STANDARD_KNN", []string{"100", "99", "101"}},
		{knn(rare()), "HYBRID_ADHOC_BF", []string{"101", "51", "151"}},
		{knn(query.NewAll()), "HYBRID_BATCHES", []string{"100", "99", "101"}},
		{knn(query.NewAll(), query.Option{Name: "hybrid_policy", Value: "adhoc_bf"}), "HYBRID_ADHOC_BF", []string{"100", "99", "101"}},
		{knn(rare(), query.Option{Name: "HYBRID_POLICY", Value: "BATCHES"}, query.Option{Name: "BATCH_SIZE", Value: "7"}), "HYBRID_BATCHES",
			[]string{"101", "51", "151"}},
	} {
		p, err := New(tc.root, m, Options{Slop: -1})
		require.NoError(t, err)
		require.Equal(t, "VECTOR", p.Profile().Type)
		require.Equal(t, tc.mode, p.Profile().Mode)
		require.Equal(t, []string{"d"}, p.Yields())
		require.Equal(t, tc.keys, keys(p))
	}
	option := func(name, value string) query.Option { return query.Option{Name: name, Value: value} }
	const params = " (Error parsing vector similarity parameters)"
	for _, tc := range []struct {
		root  query.Node
		error string
	}{
		{knn(nil, option("HYBRID_POLICY", "BATCHES")), "SEARCH_HYBRID_ATTR_NON_HYBRID hybrid query attributes were sent for a non-hybrid query" + params},
		{knn(rare(), option("HYBRID_POLICY", "FOO")), "SEARCH_HYBRID_POLICY_BAD invalid hybrid policy was given" + params},
		{knn(rare(), option("EF_RUNTIME", "5"), option("ef_runtime", "5")), "SEARCH_PARAM_DUP Parameter was specified twice" + params},
		{knn(rare(), option("HYBRID_POLICY", "ADHOC_BF"), option("BATCH_SIZE", "10")), "SEARCH_ADHOC_BATCH_SIZE_IRRELEVANT 'batch size' is irrelevant for the selected policy" + params},
		{knn(rare(), option("HYBRID_POLICY", "ADHOC_BF"), option("EF_RUNTIME", "10")), "SEARCH_OPTION_INVALID Invalid option" + params},
		{knn(rare(), option("BATCH_SIZE", "0")), "SEARCH_VALUE_BAD Invalid value was given" + params},
		{&query.KNN{Field: field, K: 1, Vector: blob(1), Yield: "n"}, "SEARCH_INDEX_EXISTS Property `n` already exists in schema"},
		{&query.VectorRange{Field: field, Radius: -1, Vector: blob(1)},
			"SEARCH_QUERY_BAD Error parsing vector similarity query: negative radius (-1) given in a range query"},
	} {
		_, err := New(tc.root, m, Options{Slop: -1})
		require.EqualError(t, err, tc.error)
	}
	// Two ranges yield two distances, an optional one only where it matches.
	within := func(vector float32, radius float64, yield string) query.Node {
		return &query.VectorRange{Common: query.Common{Weight: 1}, Field: field, Radius: radius, Vector: blob(vector), Yield: yield}
	}
	p, err := New(&query.Intersect{Common: query.Common{Weight: 1, Slop: -1}, Children: []query.Node{
		within(10, 4, "a"), &query.Optional{Common: query.Common{Weight: 1}, Child: within(13, 4, "b")},
	}}, m, Options{Slop: -1})
	require.NoError(t, err)
	var got []string
	for p.Next() {
		a, ok := p.Distance("a")
		require.True(t, ok)
		b, ok := p.Distance("b")
		got = append(got, fmt.Sprint(p.Doc().Key(), " ", a, " ", b, " ", ok))
		require.Zero(t, p.Score())
	}
	require.Equal(t, []string{"8 4 0 false", "9 1 0 false", "10 0 0 false", "11 1 4 true", "12 4 1 true"}, got)
}

// Circles of all sizes and places have all documents in them.
func TestCirclesAreExact(t *testing.T) {
	r := testseed.Rand(t)
	m := newMemory(strings.Fields("SCHEMA loc GEO")...)
	type spot struct{ lon, lat float64 }
	var spots []spot
	for i := range 300 {
		s := spot{r.Float64()*360 - 180, r.Float64()*170 - 85}
		spots = append(spots, s)
		m.hset(fmt.Sprint(i), "loc", fmt.Sprintf("%f,%f", s.lon, s.lat))
	}
	far := func(a, b spot) float64 {
		rad := math.Pi / 180
		u, v := math.Sin((b.lat-a.lat)*rad/2), math.Sin((b.lon-a.lon)*rad/2)
		return 2 * 6372.797560856 * math.Asin(math.Sqrt(u*u+math.Cos(a.lat*rad)*math.Cos(b.lat*rad)*v*v))
	}
	for range 300 {
		c := spot{r.Float64()*360 - 180, r.Float64()*180 - 90}
		radius := math.Pow(10, r.Float64()*4.5)
		want := map[string]bool{}
		for i, s := range spots {
			if d := far(c, s); math.Abs(d-radius) < 1 {
				want = nil
				break
			} else if d < radius {
				want[fmt.Sprint(i)] = true
			}
		}
		if want == nil {
			continue // too near to the edge for a simple formula
		}
		got := map[string]bool{}
		p := m.must(t, fmt.Sprintf("@loc:[%f %f %f km]", c.lon, c.lat, radius), Options{})
		for _, key := range keys(p) {
			got[key] = true
		}
		require.Equal(t, want, got, "%v, %f km", c, radius)
	}
}

// Suffixes and infixes are searched only in fields with WITHSUFFIXTRIE, if there are any.
func TestContainsNeedsSuffixes(t *testing.T) {
	m := newMemory(strings.Fields("SCHEMA a TEXT b TEXT WITHSUFFIXTRIE")...)
	m.hset("1", "a", "alphabet", "b", "betalphas")
	for q, ok := range map[string]bool{
		"*lpha*": true, "@b:*lpha*": true, "@a|b:*lpha*": true, "@a:*lpha*": false, "@a:*bet": false, "@a:al*": true,
		"@a:w'al*t'": false, "@a|b:w'al*t'": true, "w'*pha*'": true} {
		p, err := m.planOf(t, q, Options{})
		if !ok {
			require.EqualError(t, err, "SEARCH_GENERIC Contains query on fields without WITHSUFFIXTRIE support", q)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, 1, p.Count(), q)
	}
}

// Queries of random parts run without a panic, and count what they return.
func TestRandomQueries(t *testing.T) {
	m := numbered(120)
	parts := []string{
		"foo", "bar", "w01*", "*1", "*w*", "(", ")", "|", "-", "~", `"foo w001"`, `"bar"`, "@t:", "@g:{g1|g2*}", "@g:{*1}", "@n:[3 50]",
		"@n:[(7 inf]", "@loc:[1 40 100 km]", "=>{$weight:2}", "=>{$slop:1;$inorder:true}", "@n>5", "%foo%", "w'w?1*'", "@g:{w'g*'}", "*",
		"@v:[VECTOR_RANGE 50 $q]=>{$yield_distance_as:d}", "=>[KNN 7 @v $q AS e]", "zebra",
	}
	r := testseed.Rand(t)
	ran := 0
	for range 4000 {
		q := ""
		for range 1 + r.IntN(6) {
			q += parts[r.IntN(len(parts))] + " "
		}
		req, _ := m.parse([]string{"DIALECT", "2", "PARAMS", "2", "q", blob(40)})
		n, err := m.tree(q, req)
		if err != nil {
			continue // most are invalid queries
		}
		p, err := New(n, m, Options{Slop: -1, Scorer: Scorer(r.IntN(len(scorers))), Profile: r.IntN(2) == 0})
		if err != nil {
			continue
		}
		ran++
		hits := p.Top(10)
		require.Len(t, hits, min(10, p.Total()), q)
		p.Visit(hits, func(h *Hit) {
			require.Equal(t, h.Score, p.Score(), q)
			require.False(t, math.IsNaN(h.Score) || math.IsInf(h.Score, 0), q)
			p.Explain()
			p.Matched()
		})
		p.Profile()
	}
	require.Greater(t, ran, 500)
}

// A plan finds the documents of the time when it was made, while the index changes.
func TestPlansRunBesideWrites(t *testing.T) {
	m := numbered(300)
	var mu sync.RWMutex
	done := make(chan struct{})
	var writer sync.WaitGroup
	r := testseed.Rand(t)
	writer.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			mu.Lock()
			for range 20 {
				key := fmt.Sprint(r.IntN(400))
				if delete(m.hashes, key); r.IntN(3) == 0 {
					m.changed(key)
				} else {
					m.hset(key, "t", "foo "+fmt.Sprintf("w%03d", r.IntN(400))+" bar", "g", fmt.Sprint("g", r.IntN(50)), "n", fmt.Sprint(r.IntN(400)))
				}
			}
			mu.Unlock()
		}
	})
	defer func() {
		close(done)
		writer.Wait()
	}()
	for _, q := range []string{"foo", "*", "-zebra", "foo bar", `"bar" foo`, "@n:[0 1000]", "foo @n:[0 1000]", "w*|w0*|w1*|w2*|w3*", "~w100 @n:[0 1000]"} {
		for range 20 {
			mu.RLock()
			want := m.docs.View().Len()
			p := m.must(t, q, Options{MaxExpansions: 1000})
			mu.RUnlock()
			hits := p.Top(1000)
			require.Equal(t, want, p.Total(), q)
			require.Len(t, hits, want, q)
			p.Visit(hits, func(h *Hit) { require.Equal(t, h.Score, p.Score(), q) })
		}
	}
}
