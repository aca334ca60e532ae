package plan

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/atomredis/atomredis/engine/search/postings"
	"github.com/atomredis/atomredis/engine/search/terms"
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/text"
)

// builder makes the iterators of a query. It runs while the index is locked. An iterator that is nil matches nothing.
type builder struct {
	plan  *Plan
	index Index
	names *terms.Dict[*postings.List] // of text
	bytes int                         // approximate memory of the iterators
	work  int                         // work of New so far, in documents
	time  bool                        // of PROFILE
}

// termSize is the approximate memory of a term's iterator in bytes.
const termSize = 1 << 10

// errTooLarge is the error of a query that needs more memory than Options.MaxMemory.
var errTooLarge = &query.Error{Code: query.Generic, Text: "The query needs too much memory"}

// spend counts memory. The builder continues, and New returns an error at the end.
func (b *builder) spend(n int) { b.bytes += n }

// works counts coming work on about n documents.
func (b *builder) works(n int) {
	if b.work += n; b.plan.options.Long != nil {
		b.plan.options.Long(b.work)
	}
}

// termsWork is the number of terms that take as long as one document.
const termsWork = 4

// looksAtAll counts the work of a pattern that is compared with all terms, unless an index of suffixes finds them.
func (b *builder) looksAtAll(d *terms.Dict[*postings.List], open bool) {
	if open && !d.Suffixes() {
		b.works(d.Len() / termsWork)
	}
}

// full reports whether the memory limit is exceeded, so that nothing more need be built.
func (b *builder) full() bool { return b.bytes > b.plan.options.MaxMemory }

// wrap measures an iterator if the query is profiled.
func (b *builder) wrap(it iterator) iterator {
	if b.time {
		return &timed{iterator: it, plan: b.plan}
	}
	return it
}

// node makes the iterator of a node.
func (b *builder) node(n query.Node) (iterator, error) {
	if b.full() {
		return nil, errTooLarge
	}
	switch n := n.(type) {
	case *query.Token:
		return b.word(n, n.Weight), nil
	case *query.Phrase:
		return b.phrase(n), nil
	case *query.Affix:
		return b.affix(n)
	case *query.Fuzzy:
		word := text.Fold(n.Text)
		b.works(b.names.Len() / termsWork >> (3 - min(n.Distance, 3)))
		found := b.names.Fuzzy(word, n.Distance)
		if n.Filled {
			found = filled(found)
		}
		return b.pattern(n.Of(), "FUZZY", word, found)
	case *query.Wildcard:
		pattern := text.Fold(n.Pattern)
		if err := tooLong(pattern, "Wildcard"); err != nil {
			return nil, err
		}
		if !b.mayContain(n.Fields) {
			return nil, errNoSuffixes
		}
		b.looksAtAll(b.names, pattern != "" && (pattern[0] == '*' || pattern[0] == '?'))
		return b.pattern(n.Of(), "WILDCARD", n.Shown(), filled(b.names.Matches(pattern)))
	case *query.Tag:
		return b.tag(n), nil
	case *query.Numeric:
		return b.numeric(n), nil
	case *query.Geo:
		return b.geo(n), nil
	case *query.GeoShape:
		return b.shapes(n)
	case *query.KNN:
		return b.knn(n)
	case *query.VectorRange:
		return b.vectorRange(n)
	case *query.Missing:
		return b.missing(n), nil
	case *query.IDs:
		return b.list(n.List, n.Weight, "ID-LIST-SORTED", 0), nil
	case *query.All:
		return b.wrap(b.all(n.Weight)), nil
	case *query.Not:
		child, err := b.node(n.Child)
		return b.wrap(&not{all: *b.all(n.Weight), child: orNone(child), watch: &b.plan.watch}), err
	case *query.Optional:
		child, err := b.node(n.Child)
		weigh(child, n.Weight)
		return b.wrap(&optional{all: *b.all(n.Weight), child: orNone(child)}), err
	case *query.Intersect:
		return b.intersect(n)
	case *query.Union:
		return b.union(n)
	}
	return nil, nil
}

// weigh replaces the weight of an iterator by that of the optional part around it. The weight then also applies to
// documents that an optional part within it does not match.
func weigh(it iterator, weight float64) {
	switch it := bare(it).(type) {
	case *optional:
		it.miss = weight
		weigh(it.child, weight)
	case *term:
		it.weight = weight
	case *union:
		it.weight = weight
	case *intersect:
		it.weight = weight
	case *all:
		it.weight = weight
	case *not:
		it.weight = weight
	case *ranges:
		it.weight = weight
	case *listed:
		it.weight = weight
	}
}

// orNone returns an iterator that is not nil.
func orNone(it iterator) iterator {
	if it == nil {
		return &none{}
	}
	return it
}

// all makes the iterator of all documents.
func (b *builder) all(weight float64) *all { return &all{view: b.plan.docs, weight: weight} }

// list makes the iterator of some documents.
func (b *builder) list(docs []uint64, weight float64, kind string, freq uint32) iterator {
	if len(docs) == 0 {
		return nil
	}
	l := &listed{set: newSet(len(docs), b.plan.docs.Last()), weight: weight, kind: kind, freq: freq}
	for _, doc := range docs {
		l.set.add(doc)
	}
	l.set.done()
	b.spend(setSize(len(docs), b.plan.docs.Last()))
	return b.wrap(l)
}

// shapes makes the iterator of a relation to a shape.
func (b *builder) shapes(n *query.GeoShape) (iterator, error) {
	found, err := b.index.Shapes(n.Field).Find(n.Predicate, n.Shape)
	if err != nil {
		return nil, err
	}
	return b.list(found, n.Weight, "GEO-SHAPE", 1), nil
}

// missing makes the iterator of the documents without a field. They have a score only in an optional part.
func (b *builder) missing(n *query.Missing) iterator {
	list := b.index.Missing(n.Field)
	if list == nil || list.Len() == 0 {
		return nil
	}
	b.spend(termSize)
	return b.wrap(newTerm(n.Field.Name, list, ofMissing, 0, b.plan.docs.Len()))
}

// union makes the iterator of an OR, or that of its only child.
func (b *builder) union(n *query.Union) (iterator, error) {
	var children []iterator
	for _, child := range n.Children {
		it, err := b.node(child)
		if err != nil {
			return nil, err
		}
		if it != nil {
			children = append(children, it)
		}
	}
	return b.either(children, n.Weight, "UNION", false), nil
}

// either makes the union of some iterators. As in Redis a single iterator is returned itself, and ignores the weight.
func (b *builder) either(children []iterator, weight float64, kind string, first bool) iterator {
	switch len(children) {
	case 0:
		return nil
	case 1:
		return children[0]
	}
	return b.wrap(newUnion(children, weight, kind, first))
}

// intersect makes the iterator of an AND.
func (b *builder) intersect(n *query.Intersect) (iterator, error) {
	var children []iterator
	for _, child := range n.Children {
		it, err := b.node(child)
		if err != nil || it == nil {
			return nil, err
		}
		if !holdsAlways(it) {
			children = append(children, it)
		}
	}
	switch {
	case len(children) == 0 && len(n.Children) == 1: // only its child's weight counts
		return b.node(n.Children[0])
	case len(children) == 0:
		return b.wrap(b.all(n.Weight)), nil
	}
	slop, inOrder := n.Slop, n.InOrder || b.plan.options.InOrder
	if slop < 0 {
		slop = b.plan.options.Slop
	}
	return b.every(children, n.Weight, slop, inOrder), nil
}

// holdsAlways reports whether an iterator matches all documents, so that an intersection need not check it.
func holdsAlways(it iterator) bool {
	switch it := bare(it).(type) {
	case *all:
		return true
	case *not:
		_, nothing := bare(it.child).(*none)
		return nothing
	}
	return false
}

// every makes the intersection of some iterators.
func (b *builder) every(children []iterator, weight float64, slop int, inOrder bool) iterator {
	if len(children) < 2 {
		return b.either(children, weight, "UNION", false)
	}
	return b.wrap(newIntersect(children, weight, slop, inOrder, b.plan))
}

// fields returns the mask of some text fields. limited is false if it has all fields.
func (b *builder) fields(f query.Fields) (m postings.Mask, limited bool) {
	if f.All() {
		return m, false
	}
	for _, field := range f.List() {
		m = m.Or(postings.Bit(field.Number))
	}
	return m, len(f.List()) < len(b.index.TextFields())
}

// word makes the iterator of one term.
func (b *builder) word(n *query.Token, weight float64) iterator {
	list, found := b.names.Get(n.Text)
	if !found {
		return nil
	}
	mask, limited := b.fields(n.Fields)
	return b.text(n.Text, list, weight, mask, limited)
}

// text makes the iterator of a term in some fields.
func (b *builder) text(name string, list *postings.List, weight float64, mask postings.Mask, limited bool) iterator {
	limited = limited && list.HasMasks()
	if list.Len() == 0 || limited && !list.MayMeet(mask) {
		return nil
	}
	b.spend(termSize)
	t := newTerm(name, list, ofText, weight, b.plan.docs.Len())
	t.fields, t.limited = mask, limited
	return b.wrap(t)
}

// phrase makes the iterator of words side by side.
func (b *builder) phrase(n *query.Phrase) iterator {
	if len(n.Words) == 1 {
		return b.word(n.Words[0], n.Words[0].Weight) // the weight of the phrase has no effect
	}
	var children []iterator
	for _, word := range n.Words {
		it := b.word(word, word.Weight)
		if it == nil {
			return nil
		}
		children = append(children, it)
	}
	return b.every(children, n.Weight, 0, true)
}

// maxPattern is how many characters a pattern may have.
const maxPattern = 1024

// affix makes the iterator of a prefix, suffix or infix.
func (b *builder) affix(n *query.Affix) (iterator, error) {
	if len(n.Text) < b.plan.options.MinPrefix {
		return nil, nil
	}
	folded := *n
	folded.Text = text.Fold(n.Text)
	n = &folded
	if err := tooLong(n.Text, affixName(n)); err != nil {
		return nil, err
	}
	if n.Before && !b.mayContain(n.Fields) {
		return nil, errNoSuffixes
	}
	b.looksAtAll(b.names, n.Before)
	found := affixes(b.names, n)
	if n.Before && b.hasSuffixes() {
		found = words(found)
	}
	return b.pattern(n.Of(), "PREFIX", n.Text, found)
}

var errNoSuffixes = &query.Error{Code: query.Generic, Text: "Contains query on fields without WITHSUFFIXTRIE support"}

// hasSuffixes reports whether there are fields with WITHSUFFIXTRIE.
func (b *builder) hasSuffixes() bool {
	return slices.ContainsFunc(b.index.TextFields(), func(f *query.Field) bool { return f.Suffixes })
}

// filled skips the empty text.
func filled(found iter.Seq2[string, *postings.List]) iter.Seq2[string, *postings.List] {
	return func(yield func(string, *postings.List) bool) {
		for name, list := range found {
			if name != "" && !yield(name, list) {
				return
			}
		}
	}
}

// words skips terms that represent words: stems, phonetic codes and groups of synonyms.
func words(found iter.Seq2[string, *postings.List]) iter.Seq2[string, *postings.List] {
	return func(yield func(string, *postings.List) bool) {
		for name, list := range found {
			if name != "" && strings.IndexByte("+<~", name[0]) >= 0 {
				continue
			}
			if !yield(name, list) {
				return
			}
		}
	}
}

// mayContain reports whether suffixes and infixes may be searched in some fields. If the index has fields with
// WITHSUFFIXTRIE, one of them must be among these.
func (b *builder) mayContain(f query.Fields) bool {
	if f.All() {
		return true
	}
	some := false
	for _, field := range b.index.TextFields() {
		some = some || field.Suffixes
	}
	for _, field := range f.List() {
		if field.Suffixes {
			return true
		}
	}
	return !some || f.None()
}

// affixes yields the terms of a prefix, suffix or infix.
func affixes(d *terms.Dict[*postings.List], n *query.Affix) iter.Seq2[string, *postings.List] {
	switch {
	case n.Before && n.After:
		return d.Contains(n.Text)
	case n.Before:
		return d.Suffix(n.Text)
	}
	return d.Prefix(n.Text)
}

// affixName is the name of an affix in errors.
func affixName(n *query.Affix) string {
	switch {
	case n.Before && n.After:
		return "INFIX"
	case n.Before:
		return "SUFFIX"
	}
	return "PREFIX"
}

// tooLong refuses a pattern that is too long.
func tooLong(pattern, name string) error {
	if utf8.RuneCountInString(pattern) <= maxPattern {
		return nil
	}
	return &query.Error{Code: query.LimitExceeded, Text: name + " query string is too long. Maximum allowed length is 1024"}
}

// pattern makes the iterator of all terms of a pattern, which PROFILE shows.
func (b *builder) pattern(c *query.Common, kind, pattern string, found iter.Seq2[string, *postings.List]) (iterator, error) {
	if err := tooLong(pattern, kind); err != nil {
		return nil, err
	}
	mask, limited := b.fields(c.Fields)
	children := b.expand(found, func(name string, list *postings.List) iterator { return b.text(name, list, 1, mask, limited) })
	return b.either(children, c.Weight, kind+" - "+pattern, true), nil
}

// tooMany is the warning about a pattern with too many terms.
const tooMany = "Max prefix expansions limit was reached"

// expand makes the iterators of the terms of a pattern, up to the limit.
func (b *builder) expand(found iter.Seq2[string, *postings.List], make func(string, *postings.List) iterator) (list []iterator) {
	n := 0
	for name, docs := range found {
		if n++; n > b.plan.options.MaxExpansions {
			b.plan.warn(tooMany)
			break
		}
		if it := make(name, docs); it != nil {
			list = append(list, it)
		}
	}
	return list
}

// tag makes the iterator of some tags. The weight of the node applies to each of its values, and again to the union
// of several.
func (b *builder) tag(n *query.Tag) iterator {
	if n.Field == nil || n.Field.Kind&query.TagKind == 0 {
		return nil
	}
	tags, sensitive := b.index.Tags(n.Field)
	if tags == nil {
		return nil
	}
	tags = tags.Until(b.plan.watch.tick)
	fold := text.Fold
	if sensitive {
		fold = func(s string) string { return s }
	}
	var children []iterator
	for _, value := range n.Values {
		if it := b.tagValue(tags, value, fold, n.Weight); it != nil {
			children = append(children, it)
		}
	}
	if len(n.Values) == 1 || len(children) == 0 {
		return b.either(children, 1, "TAG", false)
	}
	return b.wrap(newUnion(children, n.Weight, "TAG", false))
}

// tagValue makes the iterator of one value of a tag: a tag or a pattern.
func (b *builder) tagValue(tags *terms.Dict[*postings.List], n query.Node, fold func(string) string, weight float64) iterator {
	if b.full() {
		return nil
	}
	one := func(name string, list *postings.List, weight float64) iterator {
		if list.Len() == 0 {
			return nil
		}
		b.spend(termSize)
		return b.wrap(newTerm(name, list, ofTag, weight, b.plan.docs.Len()))
	}
	some := func(kind, pattern string, found iter.Seq2[string, *postings.List]) iterator {
		list := b.expand(found, func(name string, list *postings.List) iterator { return one(name, list, 1) })
		return b.either(list, weight, kind+" - "+pattern, true)
	}
	name := ""
	switch n := n.(type) {
	case *query.Affix:
		if len(n.Text) < b.plan.options.MinPrefix {
			return nil
		}
		folded := *n
		folded.Text = fold(n.Text)
		return some("PREFIX", folded.Text, affixes(tags, &folded))
	case *query.Wildcard:
		return some("WILDCARD", n.Shown(), tags.Matches(fold(n.Pattern)))
	case *query.Token:
		name = fold(n.Text)
	case *query.Intersect:
		words := make([]string, 0, len(n.Children))
		for _, word := range n.Children {
			if t, ok := word.(*query.Token); ok {
				words = append(words, fold(t.Text))
			}
		}
		name = strings.Join(words, " ")
	}
	list, ok := tags.Get(name)
	if !ok {
		return nil
	}
	return one(name, list, weight)
}
