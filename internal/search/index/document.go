package index

import (
	"github.com/atomredis/atomredis/internal/search/query"
	"github.com/atomredis/atomredis/internal/search/schema"
)

// Fields is a hash as a document sees it.
type Fields interface {
	Get(field []byte) (value []byte, ok bool)
}

// HashDocument is the document in a hash.
type HashDocument struct {
	Hash Fields

	one [1]Value
}

// Values implements Document.
func (d *HashDocument) Values(f *schema.Field) (values []Value, failure string) {
	v, ok := d.Hash.Get([]byte(f.Path))
	if !ok {
		return nil, ""
	}
	if d.one[0] = (Value{Text: v}); f.Kind == query.VectorKind {
		d.one[0] = Value{Vector: v}
	}
	return d.one[:], ""
}

// Text implements Document.
func (d *HashDocument) Text(path string) ([]byte, bool) { return d.Hash.Get([]byte(path)) }
