package session

import (
	"sync"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/transport"
)

// maxShort is the most bytes of input that are treated as a single short command whose memory is worth fetching
// ahead.
const maxShort = 512

// hintsPool has memory for hints.
var hintsPool = sync.Pool{New: func() any { return new([]engine.Hint) }}

// Prefetch fetches the memory for clients that have sent a single command each; see transport.Host. Sessions with a
// pipeline do so themselves.
func (sh *Shared) Prefetch(batch []transport.Input) {
	pooled := hintsPool.Get().(*[]engine.Hint)
	hints := *pooled
	db := batch[0].Session.(*Session).db
	for _, in := range batch {
		if s := in.Session.(*Session); s.db == db && len(in.Data) <= maxShort {
			hints = s.prepare(in.Data, hints)
		}
	}
	if len(hints) > 1 {
		sh.Keyspace.TryWarm(db, hints)
	}
	clear(hints)
	*pooled = hints[:0]
	hintsPool.Put(pooled)
}
