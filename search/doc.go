// Package search is the query engine for Go programs: indexes whose fields are those of a struct, documents that are values
// of it, and queries that are built, not pasted together.
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
// It needs nothing but a Doer, which an atomredis.DB is: commands are executed in the goroutine of the caller, without a
// socket. Index.In has the same in a transaction, and Index.Within in the handler of a command. What Put has written, the next Find
// of anybody finds. Documents are ordinary hashes or JSON documents, which other
// clients can read and write.
//
// # Fields
//
// A field of the struct is stored if it has a tag: the name in the document, the type in the index, and options, separated by
// commas. Without a name it has that of the Go field. Without a type it is stored and not indexed. Fields without a tag are
// left alone. Embedded structs have their fields where they are embedded.
//
//   - text: string; with JSON []string too. Options: weight=2, nostem, phonetic=dm:en, suffixes, empty, missing, sortable,
//     unf, noindex
//   - tag: string, bool, integers, []string. Options: separator=;, casesensitive, suffixes, empty, missing, sortable, unf,
//     noindex
//   - numeric: integers, floats, time.Duration (nanoseconds), time.Time (seconds since 1970, to the nanosecond in hashes and
//     to a microsecond in JSON). Options: missing, sortable, noindex
//   - geo: Point. Options: missing, sortable, noindex
//   - geoshape: string, in WKT. Options: flat, missing
//   - vector: []float32, []float64, []int8, []uint8. Options: dim=128 (needed), hnsw (if nothing else is said), flat,
//     metric=cosine (if nothing else is said), l2 or ip, m=16, efconstruction=200, efruntime=10, epsilon=0.01, missing
//
// Types of these kinds are fine too. So are pointers to all but slices: nil is a field that the document does not have. The
// option omitempty leaves the zero value out. Empty slices are left out always.
//
// In a hash the tags of a []string are separated by commas unless separator says otherwise; Put refuses a tag that has the
// separator in it. The tag of a string is one tag whatever it contains, except the byte 0x1f.
//
// # Queries
//
// A Query cannot be injected into. Words, tags and vectors travel as parameters, beside the text of the query, and that text
// has only names of fields, which are checked against the struct, numbers, and the words of phrases, in which everything but
// letters and digits is escaped. Words are found with their stems unless
// Verbatim is given. Words that are not indexed, such as "the", are ignored, and a query of nothing else finds nothing.
package search
