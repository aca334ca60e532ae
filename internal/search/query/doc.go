// Package query reads the queries of FT.SEARCH and its relatives: it turns a text into a tree, in each of the four dialects. It is
// pure: it knows no index and no documents, only the names and kinds of fields (Schema), and has no locks.
//
// The rooms, in the order in which a query passes through them:
//
//   - lexer.go splits the text into tokens with their offsets.
//   - parser.go has the common parts of the grammars; grammar1.go is that of dialect 1, grammar2.go that of 2, 3 and
//     4.
//   - params.go inserts the values of PARAMS, after the parse.
//   - check.go refuses queries that no document can match: inverted ranges, places that are not on the earth.
//   - expand.go adds synonyms, sounds and stems. It is a separate step because VERBATIM skips it.
//   - explain.go writes the tree as FT.EXPLAIN does.
//   - node.go has the tree, and schema.go an index as queries see it.
//
// Parse does all steps up to check.go. Errors are of type *Error and have the reference's texts; a syntax error
// names its byte offset in the query.
//
// # The grammars
//
// Redis has an LR parser whose conflicts are resolved by the precedence of tokens, which is visible: in dialect 2 -a
// b is (NOT a) AND b but -a 5 is NOT (a AND 5), since a number binds tighter than a word. The parsers here descend
// recursively and decide in the same way: an operator is continued as long as the next token binds tighter than the
// rule that would end. So they read each query as Redis does and fail at the same token. As in Redis, the tree may
// have another order than the text: in dialect 2 the sides of AND and OR are merged into the one that is already a
// list.
//
// The same holds for text: an OR of text continues only as long as there is text, so a|b|c @n:[1 2] is (a|b|c) AND
// @n:[1 2], while a|b @n:[1 2] is a OR (b AND @n:[1 2]). See expr2 in grammar2.go.
//
// The differences from Redis: a sign belongs to a number only if the number is a word of its own, while Redis splits
// -info into -inf and o; a|b|@n:[1 2] is accepted, which is a syntax error there.
//
// # Limits
//
// A query nests at most maxDepth symbols; beyond that Parse returns Redis's error for a full parser stack. Every
// function here that descends into a tree relies on that. Parsing takes time and memory in proportion to the length
// of the text.
//
// # What builds on it
//
// Package plan turns a tree into iterators over the postings of an index and scores the matches. It switches over
// the types of Node, which are a closed set. It uses Common.Fields, which the parser has already narrowed from the
// outside in; Common.Weight, Slop and InOrder; the terms of Token, which have the prefixes of package text;
// Tag.Values, whose Phrase and Intersect children are one tag of several words; and KNN at the root, with its filter
// below.
package query
