package index

// Failure says why a document could not be indexed.
type Failure struct {
	Field string // its name
	Text  string // as FT.INFO shows it
}

// Failures counts failures.
type Failures struct {
	Count int64
	Last  string // the text of the last one; "" before the first
	Key   string // the key of that document
}

func (f *Failures) add(key string, failed *Failure) {
	f.Count++
	f.Last, f.Key = failed.Text, key
}

// merge adds the failures of another shard.
func (f *Failures) merge(o Failures) {
	if o.Count > 0 {
		*f = Failures{f.Count + o.Count, o.Last, o.Key}
	}
}
