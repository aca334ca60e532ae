package session

import (
	"sync"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/transport"
)

// maxShort is how many bytes of input may be a single command whose memory is worth being fetched ahead.
const maxShort = 512

// hintsPool has memory for hints.
var hintsPool = sync.Pool{New: func() any { return new([]engine.Hint) }}

// Prefetch has the memory fetched that clients will use which have sent a single command each; see transport.Host. Those of a
// pipeline see to that themselves.
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
