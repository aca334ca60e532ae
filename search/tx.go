package search

import (
	"iter"

	"github.com/atomredis/atomredis/resp"
)

// Queuer queues commands whose replies come later: an atomredis.Tx.
type Queuer interface {
	Do(args ...any) *resp.Reply
}

// Queued is an index within a transaction. Its results are available when the transaction has been executed; until then
// their error is atomredis.ErrNoReply.
//
//	var left *search.Found[Item]
//	err := db.Tx(ctx, func(tx *atomredis.Tx) error {
//		items := shop.In(tx)
//		items.Delete("1")
//		var err error
//		left, err = items.Find(search.Tag("tags", "sport"))
//		return err
//	})
//	for hit, err := range left.All() { ... }
type Queued[T any] struct {
	x  *Index[T]
	tx Queuer
}

// In returns the index within a transaction.
func (x *Index[T]) In(tx Queuer) *Queued[T] { return &Queued[T]{x, tx} }

// Put queues Index.Put. If v cannot be stored, it returns an error and queues nothing.
func (t *Queued[T]) Put(id string, v T) error {
	set, remove, err := t.x.put(id, v)
	if err != nil {
		return err
	}
	if remove != nil {
		t.tx.Do(remove...)
	}
	t.tx.Do(set...)
	return nil
}

// Delete queues Index.Delete; the reply is the number of removed documents.
func (t *Queued[T]) Delete(ids ...string) *resp.Reply { return t.tx.Do(t.x.del(ids)...) }

// Get queues Index.Get.
func (t *Queued[T]) Get(id string) *Got[T] { return &Got[T]{t.x, t.tx.Do(t.x.get(id)...)} }

// Got is a document that a transaction reads.
type Got[T any] struct {
	x *Index[T]
	r *resp.Reply
}

// Value returns the document, or ErrNotFound.
func (g *Got[T]) Value() (T, error) { return g.x.document(*g.r) }

// Find queues Index.Find. Without Limit it finds at most 1,000 documents; Found.Total returns how many match.
func (t *Queued[T]) Find(q Query, options ...Option) (*Found[T], error) {
	r := request{limit: pageSize}
	for _, o := range options {
		o(&r)
	}
	offset := r.offset
	if r.limit == 0 {
		offset = 0 // the server refuses another one
	}
	args, err := t.x.search(q, r, offset, r.limit)
	if err != nil {
		return nil, err
	}
	return &Found[T]{t.x, r, t.tx.Do(args...)}, nil
}

// Found is the result of a query in a transaction.
type Found[T any] struct {
	x     *Index[T]
	r     request
	reply *resp.Reply
}

// Total returns how many documents match the query, also beyond its limit.
func (f *Found[T]) Total() (int, error) {
	found, err := f.rows()
	return found.total, err
}

// All yields the documents.
func (f *Found[T]) All() iter.Seq2[Hit[T], error] {
	return func(yield func(Hit[T], error) bool) {
		found, err := f.rows()
		if err != nil {
			yield(Hit[T]{}, err)
			return
		}
		f.x.yield(found.rows, f.r, yield)
	}
}

func (f *Found[T]) rows() (found, error) {
	if err := f.reply.Err(); err != nil {
		return found{}, explained(err)
	}
	return rows(*f.reply)
}
