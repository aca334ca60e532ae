// Package plan runs queries: it turns a tree of package query into iterators over an index and scores the matches.
// It knows no protocol and no options of commands, and has no locks.
//
// A plan is made while its index is locked for reading, and runs without the lock:
//
//	p, err := plan.New(root, index, plan.Options{Slop: -1, Scorer: plan.BM25STD, Stop: stop})
//	hits := p.Top(10)                         // FT.SEARCH; TopBy for SORTBY, First without an order, Count for LIMIT 0 0
//	p.Visit(hits, func(h *plan.Hit) { … })    // at each of them: Score, Explain, Distance, Matched
//	for p.Next() { use(p.Doc(), p.Score()) }  // FT.AGGREGATE: all matches, as they were indexed
//	p.Total(); p.Warnings(); p.Stopped(); p.Profile()
//
// The rooms:
//
//   - index.go is what a plan reads of an index.
//   - plan.go has Plan, and top.go the ways to select matches (best.go keeps the best of many).
//   - build.go makes iterators of nodes: of words, patterns and tags. ranges.go has numbers and places, vectors.go vectors.
//   - iterator.go has what iterators are, and the simplest; term.go, union.go, intersect.go those that queries are made of.
//   - positions.go looks at where words stand, set.go has sets of documents.
//   - scorers.go has the formulas, explain.go their explanations, matched.go the terms for HIGHLIGHT, profile.go the tree of PROFILE.
//
// # Iterators
//
// The iterators of a query are also the tree of its results: a scorer reads them at their present position, and
// nothing is allocated for a match. An iterator has one movement, to the first match from a number on. An
// intersection has its rarest child lead. A range of numbers is collected into a set at its first use. If another
// child of the intersection is much rarer, the range is instead checked for each document of that child. A NOT and
// an optional part check their child only at documents of other parts.
//
// Iterators may return dead documents; the plan's own loop skips them.
//
// # Scores
//
// All formulas have the constants and roundings of the reference, so scores are equal to nine digits and more. The
// frequency of a term counts all fields, whichever fields the query names. The expansions of a pattern count as one
// term: the first that a document has. Positions continue from field to field of a document, which affects the
// scorers that divide by the distance between words.
//
// # Limits
//
// A plan takes memory for each term and for the sets of its ranges, about Options.MaxMemory at most. A pattern has
// at most Options.MaxExpansions terms. Options.Stop is called every hundred steps. The functions here that descend
// into a tree rely on the parser's limit of its depth.
package plan
