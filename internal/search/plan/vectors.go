package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/search/query"
)

// nearest has documents with their distances from a vector, ascending by number.
type nearest struct {
	cursor
	near  []Near
	i     int
	yield string // the name of the distance; "" if not requested
}

func (n *nearest) seek(to uint64) uint64 {
	if n.at < to {
		n.i = ahead(len(n.near), n.i, func(i int) bool { return n.near[i].Doc < to })
		if n.at = end; n.i < len(n.near) {
			n.at = n.near[n.i].Doc
		}
	}
	return n.at
}

func (n *nearest) estimate() int { return len(n.near) }
func (n *nearest) rewind()       { n.at, n.i = 0, 0 }

// knn matches the nearest documents. Its filter has selected them, and scores them.
type knn struct {
	nearest
	filter iterator // nil without one
	mode   string   // how they were found, for PROFILE
	most   int      // number of documents that the query requests
}

// matches moves the filter to the present document.
func (k *knn) matches() bool { return k.filter != nil && k.filter.seek(k.at) == k.at }

func (k *knn) rewind() {
	k.nearest.rewind()
	if k.filter != nil {
		k.filter.rewind()
	}
}

// The ways to search vectors, as PROFILE names them.
const (
	standardKNN   = "STANDARD_KNN"
	hybridAdHoc   = "HYBRID_ADHOC_BF"
	hybridBatches = "HYBRID_BATCHES"
)

// badVector is the error of an option.
func badVector(code query.Code, text string) error {
	return &query.Error{Code: code, Text: text + " (Error parsing vector similarity parameters)"}
}

// policy has a query's options for searching among the documents of a filter.
type policy struct {
	mode  string // "" leaves the choice to the plan
	batch bool
}

// policy separates the options for the filter from those for the index.
func (b *builder) policy(options []query.Option, filtered bool) (p policy, rest []query.Option, err error) {
	seen := map[string]bool{}
	for _, o := range options {
		name := strings.ToUpper(o.Name)
		if seen[name] {
			return p, nil, badVector(query.DuplicateParameter, "Parameter was specified twice")
		}
		seen[name] = true
		if !filtered && (name == "HYBRID_POLICY" || name == "BATCH_SIZE") {
			return p, nil, badVector(query.NotHybrid, "hybrid query attributes were sent for a non-hybrid query")
		}
		switch name {
		case "HYBRID_POLICY":
			switch strings.ToUpper(o.Value) {
			case "ADHOC_BF":
				p.mode = hybridAdHoc
			case "BATCHES":
				p.mode = hybridBatches
			default:
				return p, nil, badVector(query.BadPolicy, "invalid hybrid policy was given")
			}
		case "BATCH_SIZE":
			if n, err := strconv.ParseInt(o.Value, 10, 64); err != nil || n <= 0 {
				return p, nil, badVector(query.BadValue, "Invalid value was given")
			}
			p.batch = true
		case "SHARD_K_RATIO": // no effect: every shard returns all that the query needs
			if err := checkRatio(o.Value); err != nil {
				return p, nil, err
			}
		default:
			rest = append(rest, o)
		}
	}
	if p.mode == hybridAdHoc && p.batch {
		return p, nil, badVector(query.BadBatchSize, "'batch size' is irrelevant for the selected policy")
	}
	return p, rest, nil
}

// checkRatio returns an error unless a text is a number above 0 and at most 1.
func checkRatio(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return &query.Error{Code: query.Invalid, Text: "Invalid shard k ratio value '" + text + "'"}
	case !(f > 0 && f <= 1):
		return &query.Error{Code: query.Invalid,
			Text: fmt.Sprintf("Invalid shard k ratio value: Shard k ratio must be greater than 0 and at most 1 (got %g)", f)}
	}
	return nil
}

// option returns the value of an option, "" if it is not there.
func option(options []query.Option, name string) string {
	for _, o := range options {
		if strings.EqualFold(o.Name, name) {
			return o.Value
		}
	}
	return ""
}

// yields returns an error if the name of a distance is a field of the index.
func (b *builder) yields(name string) error {
	if name == "" {
		return nil
	}
	if _, taken := b.index.Field(name); taken {
		return &query.Error{Code: query.IndexExists, Text: "Property `" + name + "` already exists in schema"}
	}
	b.plan.yields = append(b.plan.yields, name)
	return nil
}

// knn finds the nearest documents of a query. It does so while the plan is made, because only then the index is
// locked.
func (b *builder) knn(n *query.KNN) (iterator, error) {
	if err := b.yields(n.Yield); err != nil {
		return nil, err
	}
	p, options, err := b.policy(n.Options, n.Filter != nil)
	if err != nil {
		return nil, err
	}
	vectors := b.index.Vectors(n.Field)
	if err := vectors.Check(n.Vector, options); err != nil {
		return nil, err
	}
	switch {
	case option(options, "EPSILON") != "":
		return nil, badVector(query.NotRange, "range query attributes were sent for a non-range query")
	case p.mode == hybridAdHoc && option(options, "EF_RUNTIME") != "":
		return nil, badVector(query.BadEffort, "'EF_RUNTIME' is irrelevant for the selected policy")
	}
	k := &knn{mode: standardKNN, most: int(min(n.K, math.MaxInt32))}
	k.yield = n.Yield
	count := int(min(n.K, int64(vectors.Len())))
	if n.Filter != nil {
		if k.filter, err = b.node(n.Filter); err != nil || k.filter == nil {
			return nil, err
		}
	}
	if count == 0 {
		return nil, nil
	}
	if k.filter == nil {
		b.works(vectors.Effort(count, options))
		k.near = vectors.Nearest(n.Vector, count, options, nil, false, b.plan.watch.tick)
		if slices.ContainsFunc(k.near, func(n Near) bool { return !b.plan.counts(n.Doc) }) {
			// A document was changing, so that it counts twice, with one dead entry. Or some are hidden.
			k.near = vectors.Nearest(n.Vector, count, options, b.plan.counts, false, b.plan.watch.tick)
		}
	} else {
		b.works(work(k.filter))
		allowed := b.matches(k.filter)
		if k.mode = p.mode; k.mode == "" {
			k.mode = choose(allowed.len(), vectors.Len(), count, options)
		}
		if k.mode == hybridAdHoc {
			b.works(allowed.len())
			k.near = b.among(vectors, n.Vector, count, &allowed)
		} else {
			b.works(vectors.Effort(count*max(1, vectors.Len()/max(1, allowed.len())), options))
			k.near = vectors.Nearest(n.Vector, count, options, allowed.has, false, b.plan.watch.tick)
		}
		k.filter.rewind()
	}
	slices.SortFunc(k.near, func(a, b Near) int { return cmp.Compare(a.Doc, b.Doc) })
	return b.wrap(k), nil
}

// Nearest returns the distances of the nearest documents of a KNN query, ascending, and the requested number; for
// other queries it returns none.
func (p *Plan) Nearest() (distances []float64, most int) {
	k := nearestOf(p.root)
	if k == nil {
		return nil, 0
	}
	for _, n := range k.near {
		distances = append(distances, n.Distance)
	}
	slices.Sort(distances)
	return distances, k.most
}

// KeepNearest keeps only the n nearest documents, because other shards have nearer ones. It must be called before
// the plan runs.
func (p *Plan) KeepNearest(n int) {
	k := nearestOf(p.root)
	if k == nil || n >= len(k.near) {
		return
	}
	slices.SortFunc(k.near, func(a, b Near) int { return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.Doc, b.Doc)) })
	k.near = k.near[:n]
	slices.SortFunc(k.near, func(a, b Near) int { return cmp.Compare(a.Doc, b.Doc) })
}

// nearestOf returns the iterator of the nearest documents, nil if there is none.
func nearestOf(it iterator) *knn {
	var children []iterator
	switch it := bare(it).(type) {
	case *knn:
		return it
	case *union:
		children = it.children
	case *intersect:
		children = it.children
	}
	for _, c := range children {
		if k := nearestOf(c); k != nil {
			return k
		}
	}
	return nil
}

// choose returns how to search the nearest vectors among allowed of total vectors. A search in the graph visits
// about ef allowed documents; for each it also meets forbidden ones, with all their neighbours. A search without the
// graph computes one distance for each allowed vector.
func choose(allowed, total, k int, options []query.Option) string {
	const neighbours = 16
	ef, _ := strconv.Atoi(option(options, "EF_RUNTIME"))
	visits := float64(max(ef, k, 10)) * float64(total) / float64(max(allowed, 1))
	if float64(allowed) <= visits*neighbours {
		return hybridAdHoc
	}
	return hybridBatches
}

// matches returns the living documents of an iterator.
func (b *builder) matches(it iterator) set {
	s := newSet(min(it.estimate(), b.plan.docs.Len()), b.plan.docs.Last())
	for doc := it.seek(1); doc != end && !b.plan.watch.tick(); doc = it.seek(doc + 1) {
		if b.plan.counts(doc) {
			s.add(doc)
		}
	}
	s.done()
	return s
}

// among returns the k nearest documents of a set.
func (b *builder) among(vectors Vectors, vector string, k int, allowed *set) []Near {
	found := best[Near]{k: k, less: func(a, b *Near) bool {
		return a.Distance < b.Distance || a.Distance == b.Distance && a.Doc < b.Doc
	}}
	for doc := allowed.next(0); doc != end && !b.plan.watch.tick(); doc = allowed.next(doc + 1) {
		if d, ok := vectors.Distance(vector, doc); ok && !math.IsNaN(d) {
			found.offer(Near{doc, d})
		}
	}
	return found.items
}

// vectorRange finds the documents within a distance.
func (b *builder) vectorRange(n *query.VectorRange) (iterator, error) {
	if n.Radius < 0 {
		return nil, &query.Error{Code: query.Invalid,
			Text: fmt.Sprintf("Error parsing vector similarity query: negative radius (%s) given in a range query", short(n.Radius))}
	}
	if err := b.yields(n.Yield); err != nil {
		return nil, err
	}
	_, options, err := b.policy(n.Options, false)
	if err != nil {
		return nil, err
	}
	vectors := b.index.Vectors(n.Field)
	if err := vectors.Check(n.Vector, options); err != nil {
		return nil, err
	}
	if option(options, "EF_RUNTIME") != "" {
		return nil, badVector(query.BadOption, "Invalid option")
	}
	b.works(vectors.Effort(1, options))
	near := vectors.Within(n.Vector, n.Radius, options, b.plan.watch.tick)
	if len(near) == 0 {
		return nil, nil
	}
	return b.wrap(&nearest{near: near, yield: n.Yield}), nil
}
