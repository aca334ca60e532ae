// Package query reads the queries of FT.SEARCH and its relatives: it turns a text into a tree, in each of the four dialects. It is
// pure: it knows no index and no documents, only the names and kinds of fields (Schema), and has no locks.
//
// The rooms, in the order in which a query passes through them:
//
//   - lexer.go cuts the text into tokens with their offsets.
//   - parser.go has what the grammars share; grammar1.go is that of dialect 1, grammar2.go that of 2, 3 and 4.
//   - params.go puts the values of PARAMS in, after the parse.
//   - check.go refuses what no document could match: ranges upside down, places that are not on the earth.
//   - expand.go adds synonyms, sounds and stems. It is a step of its own because VERBATIM leaves it out.
//   - explain.go writes the tree as FT.EXPLAIN does.
//   - node.go has the tree, and schema.go what the package must know of an index.
//
// Parse does all up to check.go. Errors are of type *Error and have the texts that clients know; a syntax error names the byte
// of the query at which it is.
//
// # The grammars
//
// Redis has an LR parser whose conflicts are resolved by the precedence of tokens, and this shows: in dialect 2 -a b is (NOT a) AND b
// but -a 5 is NOT (a AND 5), since a number binds tighter than a word. The parsers here descend recursively and decide in
// the same way: an operator is continued as long as the next token binds tighter than the rule that would end. So they read
// each query as Redis does and fail at the same token. The tree may have another order than the text, as there: in dialect 2 the
// sides of AND and OR are merged into the one that is already a list.
//
// This goes as far as to text: an OR of text goes on only as long as there is text, so a|b|c @n:[1 2] is (a|b|c) AND
// @n:[1 2], while a|b @n:[1 2] is a OR (b AND @n:[1 2]). See expr2 in grammar2.go.
//
// The differences from Redis: a sign belongs to a number only if the number is a word of its own, while Redis takes -info
// apart into -inf and o; a|b|@n:[1 2] is understood, which is a syntax error there.
//
// # Limits
//
// A query nests at most maxDepth symbols, else Parse answers as Redis does when its parser's stack is full. Every function
// here that descends into a tree relies on that. Parsing takes time and memory in proportion to the length of the text.
//
// # What builds on it
//
// A package plan will turn a tree into iterators over the postings of an index and score what they find. It switches over
// the types of Node, which are a closed set. It needs of the tree: Common.Fields, which the parser has already cut down from the outside
// in; Common.Weight, Slop and InOrder; the terms of Token, which have the prefixes of package text; Tag.Values, whose
// Phrase and Intersect children are one tag of several words; KNN at the root, with its filter below.
package query
