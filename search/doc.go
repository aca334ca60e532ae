// Package search is the query engine for Go programs. A struct describes an index and its documents, and functions
// build the queries.
//
//	type Item struct {
//		Title string       `search:"title,text,weight=2"`
//		Tags  []string     `search:"tags,tag"`
//		Price float64      `search:"price,numeric,sortable"`
//		Place search.Point `search:"place,geo"`
//	}
//
//	shop, err := search.Open[Item](ctx, db, "shop", search.Options{})
//	err = shop.Put(ctx, "1", Item{Title: "red running shoes", Tags: []string{"sport"}, Price: 79.5})
//	q := search.Text("run").And(search.Range("price", 0, 100))
//	for hit, err := range shop.Find(ctx, q, search.SortBy("price")) {
//		...
//	}
//
// It works on any Doer. An atomredis.DB is one, and executes commands in the caller's goroutine without a socket.
// Index.In works in a transaction, Index.Within in the handler of a command. The next Find of any client finds a
// document that Put has written. Documents are ordinary hashes or JSON documents, which other clients can read and
// write.
//
// # Fields
//
// A field of the struct is stored if it has a tag: the name in the document, the type in the index, and options,
// separated by commas. Without a name it gets that of the Go field. Without a type it is stored but not indexed. Fields
// without a tag are ignored. The fields of embedded structs belong to the outer struct.
//
//   - text: string; with JSON []string too. Options: weight=2, nostem, phonetic=dm:en, suffixes, empty, missing, sortable,
//     unf, noindex
//   - tag: string, bool, integers, []string. Options: separator=;, casesensitive, suffixes, empty, missing, sortable, unf,
//     noindex
//   - numeric: integers, floats, time.Duration (nanoseconds), time.Time (seconds since 1970, to the nanosecond in hashes and
//     to a microsecond in JSON). Options: missing, sortable, noindex
//   - geo: Point. Options: missing, sortable, noindex
//   - geoshape: string, in WKT. Options: flat, missing
//   - vector: []float32, []float64, []int8, []uint8. Options: dim=128 (required), hnsw (default) or flat, metric=cosine
//     (default), l2 or ip, m=16, efconstruction=200, efruntime=10, epsilon=0.01, missing
//
// Named types of these kinds work too, and so do pointers, except to slices: nil leaves the field out of the document.
// The option omitempty leaves out the zero value. Empty slices are always left out.
//
// In a hash the tags of a []string are separated by commas, or by the option separator; Put refuses a tag that contains
// the separator. A string is a single tag, and may contain anything except the byte 0x1f.
//
// # Queries
//
// A Query is safe against injection. Words, tags and vectors are sent as parameters. The text of the query itself has
// only names of fields, which are checked against the struct, numbers, and the words of phrases, in which everything
// but letters and digits is escaped. Words are found with their stems unless Verbatim is given. Stop words, such as
// "the", are ignored, and a query of stop words alone finds nothing.
package search
