package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine/search/docs"
	"github.com/atomredis/atomredis/engine/search/postings"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/testing/testseed"
)

// naive evaluates trees document by document, from the hashes themselves.
type naive struct {
	m     *memory
	ids   []uint64
	words map[uint64]map[string]map[string][]int // by document, field and word: the positions
	len   map[uint64]int
	opts  Options
}

func newNaive(m *memory, o Options) *naive {
	n := &naive{m: m, words: map[uint64]map[string]map[string][]int{}, len: map[uint64]int{}, opts: o}
	view := m.Docs()
	for id := uint64(1); id <= view.Last(); id++ {
		d := view.Get(id)
		if d == nil {
			continue
		}
		n.ids = append(n.ids, id)
		fields, at := map[string]map[string][]int{}, 0
		for _, f := range []string{"t", "u"} {
			fields[f] = map[string][]int{}
			for w := range strings.FieldsSeq(m.hashes[d.Key()][f]) {
				at++
				fields[f][w] = append(fields[f][w], at)
			}
		}
		n.words[id], n.len[id] = fields, at
	}
	return n
}

// in reports whether a node's fields include one.
func in(c *query.Common, field string) bool {
	return c.Fields.All() || slices.ContainsFunc(c.Fields.List(), func(f *query.Field) bool { return f.Name == field })
}

// all returns the positions of a word in all fields.
func (n *naive) all(id uint64, word string) []int {
	list := slices.Concat(n.words[id]["t"][word], n.words[id]["u"][word])
	slices.Sort(list)
	return list
}

// terms returns the words of the index that begin with a text.
func (n *naive) terms(prefix string) []string {
	found := map[string]bool{}
	for _, fields := range n.words {
		for _, words := range fields {
			for w := range words {
				if strings.HasPrefix(w, prefix) {
					found[w] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// has reports whether a document has a word in one of a node's fields.
func (n *naive) has(id uint64, c *query.Common, word string) bool {
	for _, f := range []string{"t", "u"} {
		if in(c, f) && len(n.words[id][f][word]) > 0 {
			return true
		}
	}
	return false
}

// first returns the first word with a prefix that a document has.
func (n *naive) first(id uint64, a *query.Affix) (string, bool) {
	for _, w := range n.terms(a.Text) {
		if n.has(id, a.Of(), w) {
			return w, true
		}
	}
	return "", false
}

// listed reports whether a word has documents in the fields of a node. Removed documents may still count.
func (n *naive) listed(c *query.Common, word string) bool {
	list, ok := n.m.Text().Get(word)
	return ok && list.Len() > 0 && (c.Fields.All() || list.MayMeet(postings.Bit(c.Fields.List()[0].Number)))
}

func (n *naive) tags(id uint64) []string {
	return strings.Split(n.m.hashes[n.m.Docs().Get(id).Key()]["g"], ",")
}

// match reports whether a document matches.
func (n *naive) match(id uint64, node query.Node) bool {
	d := n.m.Docs().Get(id)
	each := func(c query.Node) bool { return n.match(id, c) }
	switch q := node.(type) {
	case *query.Token:
		return n.has(id, q.Of(), q.Text)
	case *query.Affix:
		_, ok := n.first(id, q)
		return ok
	case *query.Tag:
		return slices.ContainsFunc(q.Values, func(v query.Node) bool { return slices.Contains(n.tags(id), v.(*query.Token).Text) })
	case *query.Numeric:
		v := d.Sort(0)
		return v.Kind == docs.Number && (v.Number > q.Min || v.Number == q.Min && !q.MinExclusive) &&
			(v.Number < q.Max || v.Number == q.Max && !q.MaxExclusive)
	case *query.Missing:
		return d.Sort(0).Kind == docs.None
	case *query.IDs:
		return slices.Contains(q.List, id)
	case *query.All, *query.Optional:
		return true
	case *query.Not:
		return !n.match(id, q.Child)
	case *query.Union:
		return slices.ContainsFunc(q.Children, each)
	case *query.Intersect:
		if slices.ContainsFunc(q.Children, func(c query.Node) bool { return !each(c) }) {
			return false
		}
		slop := q.Slop
		if slop < 0 {
			slop = n.opts.Slop
		}
		return n.near(id, q.Children, slop, q.InOrder || n.opts.InOrder)
	case *query.Phrase:
		var words []query.Node
		for _, w := range q.Words {
			if words = append(words, w); !n.match(id, w) {
				return false
			}
		}
		return len(words) > 0 && (len(words) == 1 || n.near(id, words, 0, true))
	case *query.KNN:
		return slices.Contains(n.nearest(q), id)
	}
	return false
}

// nearest returns the documents of a KNN.
func (n *naive) nearest(q *query.KNN) (list []uint64) {
	vectors := n.m.vectors["v"]
	for _, id := range n.ids {
		if _, ok := vectors.of[id]; ok && (q.Filter == nil || n.match(id, q.Filter)) {
			list = append(list, id)
		}
	}
	slices.SortStableFunc(list, func(a, b uint64) int {
		x, _ := vectors.Distance(q.Vector, a)
		y, _ := vectors.Distance(q.Vector, b)
		return cmp.Compare(x, y)
	})
	return list[:min(int(q.K), len(list))]
}

// positions returns the positions of the words of a match.
func (n *naive) positions(id uint64, node query.Node) (list []int) {
	switch q := node.(type) {
	case *query.Token:
		return n.all(id, q.Text)
	case *query.Affix:
		w, _ := n.first(id, q)
		return n.all(id, w)
	case *query.Optional:
		if n.match(id, q.Child) {
			return n.positions(id, q.Child)
		}
	case *query.Union:
		for _, c := range q.Children {
			if n.match(id, c) {
				list = append(list, n.positions(id, c)...)
			}
		}
	case *query.Intersect:
		for _, c := range q.Children {
			list = append(list, n.positions(id, c)...)
		}
	case *query.Phrase:
		for _, w := range q.Words {
			list = append(list, n.positions(id, w)...)
		}
	}
	slices.Sort(list)
	return list
}

// near reports whether the children's words are near each other. In order it tries all choices of positions. Without an order it goes
// on with the lowest position, of the first child that has it, as the reference: if two children have the same word, it may end too
// early.
func (n *naive) near(id uint64, children []query.Node, slop int, inOrder bool) bool {
	if slop < 0 && !inOrder {
		return true
	}
	var lists [][]int
	for _, c := range children {
		if p := n.positions(id, c); len(p) > 0 {
			lists = append(lists, slices.Compact(p))
		}
	}
	if len(lists) < 2 {
		return true
	}
	chosen := make([]int, len(lists))
	for !inOrder {
		for i, list := range lists {
			chosen[i] = list[0]
		}
		least, most := slices.Min(chosen), slices.Max(chosen)
		if least != most && most-least-(len(chosen)-1) <= slop {
			return true
		}
		lowest := slices.Index(chosen, least)
		if lists[lowest] = lists[lowest][1:]; len(lists[lowest]) == 0 {
			return false
		}
	}
	var try func(i int) bool
	try = func(i int) bool {
		if i < len(lists) {
			return slices.ContainsFunc(lists[i], func(p int) bool { chosen[i] = p; return try(i + 1) })
		}
		for j := 1; j < len(chosen); j++ {
			if chosen[j] <= chosen[j-1] {
				return false
			}
		}
		return slop < 0 || chosen[len(chosen)-1]-chosen[0]-(len(chosen)-1) <= slop
	}
	return try(0)
}

// score returns the score of a match in BM25STD.
func (n *naive) score(id uint64, node query.Node) float64 {
	length, docs := 0, float64(len(n.ids))
	for _, l := range n.len {
		length += l
	}
	relative := 1.0
	if length > 0 {
		relative = float64(n.len[id]) * docs / float64(length)
	}
	leaf := func(idf, f float64) float64 { return idf * f * 2.2 / (f + 1.2*(0.25+0.75*relative)) }
	term := func(has func(id uint64) bool, f int) float64 {
		some := 0.0
		for _, other := range n.ids {
			if has(other) {
				some++
			}
		}
		return leaf(math.Log(1+(docs-some+0.5)/(some+0.5)), float64(f))
	}
	word := func(w string) float64 {
		return term(func(id uint64) bool { return len(n.all(id, w)) > 0 }, len(n.all(id, w)))
	}
	sum := func(list []query.Node) (s float64) {
		for _, c := range list {
			if n.match(id, c) {
				s += n.score(id, c)
			}
		}
		return s
	}
	w := node.Of().Weight
	switch q := node.(type) {
	case *query.Token:
		return w * word(q.Text)
	case *query.Affix:
		if n.single(q) { // the prefix then is its word
			w = 1
		}
		found, _ := n.first(id, q)
		return w * word(found)
	case *query.Tag:
		s := 0.0
		for _, v := range q.Values {
			tag := v.(*query.Token).Text
			if has := func(id uint64) bool { return slices.Contains(n.tags(id), tag) }; has(id) {
				s += term(has, 1)
			}
		}
		if len(q.Values) > 1 {
			w *= w
		}
		return w * s
	case *query.All:
		return w * leaf(1, 1)
	case *query.Optional:
		child := n.left(q.Child)
		child.Of().Weight = w
		inner, twice := child.(*query.Optional)
		if twice && !n.match(id, inner.Child) {
			return w * leaf(1, 1)
		}
		if _, missing := child.(*query.Missing); missing && n.match(id, child) {
			return w * leaf(1, 1)
		}
		if prefix, ok := child.(*query.Affix); ok && n.match(id, child) && n.single(prefix) {
			return w * n.score(id, child)
		}
		if n.match(id, child) {
			return n.score(id, child)
		}
	case *query.Union:
		if left := n.left(q); left != node {
			return n.score(id, left)
		}
		return w * sum(q.Children)
	case *query.Intersect:
		if left := n.left(q); left != node {
			return n.score(id, left)
		}
		parts := n.checked(q)
		if len(parts) == 0 {
			return w * leaf(1, 1)
		}
		return w * sum(parts)
	case *query.Phrase:
		if left := n.left(q); left != node {
			return n.score(id, left)
		}
		s := 0.0
		for _, t := range q.Words {
			s += n.score(id, t)
		}
		return w * s
	case *query.KNN:
		if q.Filter != nil {
			return n.score(id, q.Filter)
		}
	}
	return 0
}

// single reports whether a prefix has one word.
func (n *naive) single(q *query.Affix) bool {
	listed := 0
	for _, word := range n.terms(q.Text) {
		if n.listed(q.Of(), word) {
			listed++
		}
	}
	return listed == 1
}

// left returns the node whose weight counts: the node itself, or its only part that documents may match.
func (n *naive) left(node query.Node) query.Node {
	var parts []query.Node
	switch q := node.(type) {
	case *query.Union:
		for _, child := range q.Children {
			if n.exists(child) {
				parts = append(parts, child)
			}
		}
	case *query.Intersect:
		if parts = n.checked(q); len(parts) == 0 && len(q.Children) == 1 {
			parts = q.Children
		}
	case *query.Phrase:
		for _, word := range q.Words {
			parts = append(parts, word)
		}
	}
	if len(parts) == 1 {
		return n.left(parts[0])
	}
	return node
}

// checked returns the parts of an intersection without those that all documents match, which have no score there.
func (n *naive) checked(q *query.Intersect) (parts []query.Node) {
	for _, child := range q.Children {
		if !n.always(child) {
			parts = append(parts, child)
		}
	}
	return parts
}

// always reports whether a plan knows that all documents match.
func (n *naive) always(node query.Node) bool {
	switch q := n.left(node).(type) {
	case *query.All:
		return true
	case *query.Not:
		return !n.exists(q.Child)
	case *query.Intersect:
		return len(n.checked(q)) == 0
	}
	return false
}

// exists reports whether documents may match a node.
func (n *naive) exists(node query.Node) bool {
	switch q := node.(type) {
	case *query.Not, *query.Optional, *query.All:
		return true
	case *query.Union:
		return slices.ContainsFunc(q.Children, n.exists)
	case *query.Intersect:
		return !slices.ContainsFunc(q.Children, func(child query.Node) bool { return !n.exists(child) })
	case *query.Phrase:
		return !slices.ContainsFunc(q.Words, func(word *query.Token) bool { return !n.exists(word) })
	}
	switch q := node.(type) {
	case *query.Token:
		return n.listed(q.Of(), q.Text)
	case *query.Affix:
		return slices.ContainsFunc(n.terms(q.Text), func(word string) bool { return n.listed(q.Of(), word) })
	}
	for id := range n.m.Docs().Last() {
		if n.m.Docs().Get(id+1) != nil && n.match(id+1, node) {
			return true
		}
	}
	return false
}

// vocabulary has words without stems, some with the same beginning.
var vocabulary = []string{"aab", "aac", "aad", "aae", "aaf", "aag", "aah", "aai", "aaj", "aak", "bb", "bbc", "cc", "dd"}

// build makes a random index: documents are added, changed and removed.
func build(t *rapid.T) *memory {
	m := newMemory(strings.Fields("SCHEMA t TEXT u TEXT g TAG n NUMERIC SORTABLE INDEXMISSING v VECTOR FLAT 6 TYPE FLOAT32 DIM 1 DISTANCE_METRIC L2")...)
	words := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, 8), func(w []string) string { return strings.Join(w, " ") })
	for range rapid.IntRange(0, 30).Draw(t, "changes") {
		key := fmt.Sprint(rapid.IntRange(0, 15).Draw(t, "key"))
		delete(m.hashes, key)
		if rapid.IntRange(0, 4).Draw(t, "goes") == 0 {
			m.changed(key)
			continue
		}
		pairs := []string{"t", words.Draw(t, "t"), "u", words.Draw(t, "u"), "g", rapid.SampledFrom([]string{"x", "y", "x,z", ""}).Draw(t, "g")}
		if rapid.Bool().Draw(t, "number") {
			pairs = append(pairs, "n", fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "n")))
		}
		if rapid.Bool().Draw(t, "vector") {
			pairs = append(pairs, "v", blob(float32(rapid.IntRange(0, 9).Draw(t, "v"))))
		}
		m.hset(key, pairs...)
	}
	return m
}

// drawTree makes a random tree.
func drawTree(t *rapid.T, m *memory, depth int) query.Node {
	c := query.Common{Weight: 1, Slop: -1}
	if rapid.IntRange(0, 3).Draw(t, "weighted") == 0 {
		c.Weight = rapid.SampledFrom([]float64{0, 0.5, 2, 3}).Draw(t, "weight")
	}
	f, _ := m.Field(rapid.SampledFrom([]string{"t", "u"}).Draw(t, "field"))
	text := c
	if rapid.Bool().Draw(t, "limited") {
		text.Fields = query.OnlyIn(f)
	}
	word := func(c query.Common) *query.Token {
		return &query.Token{Common: c, Text: rapid.SampledFrom(append(vocabulary, "zz")).Draw(t, "word")}
	}
	number, _ := m.Field("n")
	tag, _ := m.Field("g")
	kinds := 8
	if depth > 0 {
		kinds = 14
	}
	child := func() query.Node { return drawTree(t, m, depth-1) }
	children := func() (list []query.Node) {
		for range rapid.SampledFrom([]int{1, 2, 2, 3, 4, 12}).Draw(t, "children") {
			list = append(list, child())
		}
		return list
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0, 1:
		return word(text)
	case 2:
		return &query.Affix{Common: text, Text: rapid.SampledFrom([]string{"aa", "bb", "zz"}).Draw(t, "prefix"), After: true}
	case 3:
		var values []query.Node
		for range rapid.IntRange(1, 2).Draw(t, "tags") {
			values = append(values, &query.Token{Text: rapid.SampledFrom([]string{"x", "y", "z", "w"}).Draw(t, "tag")})
		}
		values = slices.CompactFunc(values, func(a, b query.Node) bool { return a.(*query.Token).Text == b.(*query.Token).Text })
		return &query.Tag{Common: c, Field: tag, Values: values}
	case 4:
		least := rapid.IntRange(0, 5).Draw(t, "least")
		return &query.Numeric{Common: c, Field: number, Min: float64(least), Max: float64(least + rapid.IntRange(0, 4).Draw(t, "more")),
			MinExclusive: rapid.Bool().Draw(t, "from"), MaxExclusive: rapid.Bool().Draw(t, "to")}
	case 5:
		return &query.Missing{Common: c, Field: number}
	case 6:
		return &query.All{Common: c}
	case 7:
		p := &query.Phrase{Common: text}
		plain := text
		plain.Weight = 1
		for range rapid.IntRange(1, 3).Draw(t, "words") {
			p.Words = append(p.Words, word(plain))
		}
		return p
	case 8:
		return &query.Not{Common: c, Child: child()}
	case 9:
		return &query.Optional{Common: c, Child: child()}
	case 10, 11:
		return &query.Union{Common: c, Children: children()}
	}
	if rapid.Bool().Draw(t, "near") {
		c.Slop = rapid.IntRange(-1, 3).Draw(t, "slop")
		c.InOrder = rapid.Bool().Draw(t, "inOrder")
	}
	return &query.Intersect{Common: c, Children: children()}
}

// Plans find the same documents with the same scores as a check of each document, in all ways to run them.
func TestPlansFindWhatDocumentsHave(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		m := build(t)
		root := drawTree(t, m, 3)
		o := Options{Slop: -1, Profile: rapid.Bool().Draw(t, "profile")}
		if rapid.IntRange(0, 9).Draw(t, "all words") == 0 {
			o.Slop, o.InOrder = rapid.IntRange(-1, 2).Draw(t, "SLOP"), rapid.Bool().Draw(t, "INORDER")
		}
		n := newNaive(m, o)
		if rapid.IntRange(0, 3).Draw(t, "knn") == 0 {
			f, _ := m.Field("v")
			knn := &query.KNN{Common: query.Common{Weight: 1, Slop: -1}, Field: f, K: int64(rapid.IntRange(0, 5).Draw(t, "k")), Vector: blob(4), Yield: "d"}
			if rapid.Bool().Draw(t, "filter") {
				knn.Filter = root
			}
			if policy := rapid.SampledFrom([]string{"", "BATCHES", "ADHOC_BF"}).Draw(t, "policy"); policy != "" && knn.Filter != nil {
				knn.Options = []query.Option{{Name: "HYBRID_POLICY", Value: policy}}
			}
			root = knn
		}
		var want []Hit
		for _, id := range n.ids {
			if n.match(id, root) {
				want = append(want, Hit{ID: id, Score: n.score(id, root), Key: m.Docs().Get(id).Sort(0)})
			}
		}
		newPlan := func() *Plan {
			p, err := New(root, m, o)
			require.NoError(t, err)
			return p
		}
		ids := func(hits []Hit) []uint64 {
			list := make([]uint64, len(hits))
			for i, h := range hits {
				list[i] = h.ID
			}
			return list
		}

		p := newPlan()
		inTurn := slices.Clone(want)
		if knn, ok := root.(*query.KNN); ok {
			slices.SortStableFunc(inTurn, func(a, b Hit) int {
				x, _ := m.vectors["v"].Distance(knn.Vector, a.ID)
				y, _ := m.vectors["v"].Distance(knn.Vector, b.ID)
				return cmp.Compare(x, y)
			})
		}
		for _, h := range inTurn {
			require.True(t, p.Next(), "%d is missing", h.ID)
			require.Equal(t, h.ID, p.ID())
			require.InDelta(t, h.Score, p.Score(), 1e-6*(1+h.Score))
			if knn, ok := root.(*query.KNN); ok {
				distance, _ := m.vectors["v"].Distance(knn.Vector, h.ID)
				got, ok := p.Distance("d")
				require.True(t, ok)
				require.Equal(t, distance, got)
			}
		}
		require.False(t, p.Next())
		require.False(t, p.Next())
		require.Equal(t, len(want), newPlan().Count())

		k := rapid.IntRange(1, 8).Draw(t, "k")
		p = newPlan()
		require.Equal(t, ids(want[:min(k, len(want))]), ids(p.First(k)))
		require.Equal(t, len(want), p.Total())

		p = newPlan()
		top := p.Top(k)
		require.Equal(t, len(want), p.Total())
		byScore := slices.Clone(want)
		slices.SortStableFunc(byScore, func(a, b Hit) int {
			if math.Abs(a.Score-b.Score) < 1e-9 {
				return 0
			}
			return cmp.Compare(b.Score, a.Score)
		})
		require.Len(t, top, min(k, len(want)))
		for i, h := range top {
			require.InDelta(t, byScore[i].Score, h.Score, 1e-6*(1+h.Score))
		}
		visited := 0
		p.Visit(top, func(h *Hit) {
			visited++
			require.Equal(t, h.Score, p.Score())
			require.Equal(t, h.ID, p.ID())
			for _, term := range p.Matched() {
				if !term.Tag {
					require.NotEmpty(t, n.all(h.ID, term.Term), term.Term)
				}
			}
		})
		require.Equal(t, len(top), visited)

		desc := rapid.Bool().Draw(t, "desc")
		order := Order{Key: func(p *Plan) docs.Value { return p.Doc().Sort(0) }, Desc: desc}
		o.SortBy, _ = m.Field("n")
		byKey := slices.Clone(want)
		slices.SortFunc(byKey, func(a, b Hit) int {
			switch {
			case a.Key.Kind != b.Key.Kind:
				return cmp.Compare(b.Key.Kind, a.Key.Kind)
			case desc:
				return -cmp.Or(cmp.Compare(a.Key.Number, b.Key.Number), cmp.Compare(a.ID, b.ID))
			}
			return cmp.Or(cmp.Compare(a.Key.Number, b.Key.Number), cmp.Compare(a.ID, b.ID))
		})
		p = newPlan()
		require.Equal(t, ids(byKey[:min(k, len(want))]), ids(p.TopBy(k, order)))
		require.Equal(t, len(want), p.Total())
	})
}
