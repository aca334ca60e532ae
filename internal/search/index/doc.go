// Package index has a search index: the structures of its fields, and how they follow documents. It knows keys and values, not the
// keyspace, commands or replies.
//
// A change comes in two steps. A Builder reads a document without the index's lock: it cuts text into terms, parses numbers
// and finds what does not fit (document.go, json.go). Put then enters the result under the lock (apply.go). A changed document is
// removed and gets a new number; what it had is found by a list of its terms and numbers that is kept with it (docs.Doc.Terms).
//
// Queries see an index through View, which holds the lock for reading only while a plan is made. See package plan.
//
// A document with a value that does not fit its field is left out as a whole, as in Redis: clients find nothing of it, and
// the failure is counted with its text (failures.go).
package index
