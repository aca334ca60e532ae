// Package index has a search index: the structures of its fields, and their updates when documents change. It knows
// keys and values, not the keyspace, commands or replies.
//
// A change comes in two steps. A Builder reads a document without the index's lock: it splits text into terms,
// parses numbers and finds values that do not fit (document.go, json.go). Put then enters the result under the lock
// (apply.go). A changed document is removed and gets a new number; its old entries are found by the list of its
// tags, numbers and terms that is stored with it (docs.Doc.Terms). Queries read values of TAG and NUMERIC fields from
// that list too (forward.go).
//
// Queries see an index through View, which holds the lock for reading only while a plan is made. See package plan.
//
// As in Redis, a document with a value that does not fit its field is not indexed at all, and the failure is counted
// with its text (failures.go).
package index
