package search

import (
	"math"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/search/catalog"
)

// Indexes with TEMPORARY go with their documents when nobody has used them for that time: no query, no change of a document.

// temporaries drops them.
type temporaries struct {
	mu     sync.Mutex
	timers map[*catalog.Index]engine.Timer
	closed bool
}

// watch begins to watch an index.
func (s *service) watch(x *catalog.Index) {
	if limit := idleLimit(x); limit > 0 {
		x.Touch(s.host.Keyspace().Now())
		s.lookLater(x, limit)
	}
}

// idleLimit returns for how long an index may be unused; 0 is forever. What a Duration cannot hold is its longest, 292 years.
func idleLimit(x *catalog.Index) time.Duration {
	return time.Duration(min(x.Definition().Temporary, math.MaxInt64/int64(time.Second))) * time.Second
}

// lookLater looks at an index again after some time.
func (s *service) lookLater(x *catalog.Index, after time.Duration) {
	t := &s.temporary
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if t.timers == nil {
		t.timers = map[*catalog.Index]engine.Timer{}
	}
	t.timers[x] = s.host.Keyspace().Clock().AfterFunc(min(after, time.Hour), func() { s.look(x) })
}

// look drops an index if its time is up. A follower leaves that to its master.
func (s *service) look(x *catalog.Index) {
	t := &s.temporary
	t.mu.Lock()
	delete(t.timers, x)
	closed := t.closed
	t.mu.Unlock()
	if closed || x.Gone() {
		return
	}
	ks := s.host.Keyspace()
	idle := time.Duration(ks.Now()-x.Touched()) * time.Millisecond
	limit := idleLimit(x)
	switch {
	case s.host.Follows() || s.host.Loading():
		s.lookLater(x, time.Second)
		return
	case idle < limit:
		s.lookLater(x, limit-idle)
		return
	}
	var g engine.Guard
	g.Lock(ks, engine.AllShards, ks.Now())
	if !x.Gone() {
		g.Log(0, [][]byte{dropWord, []byte(x.Name), []byte("_FORCEKEEPDOCS")})
		dropIndex(&g, s.Catalog, x, true)
	}
	g.Unlock()
}

// close ends that indexes are looked at.
func (t *temporaries) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, timer := range t.timers {
		timer.Stop()
	}
}

// dropIndex drops an index, and deletes its documents if it is to.
func dropIndex(g *engine.Guard, cat *catalog.Catalog, x *catalog.Index, deletes bool) {
	var keys []string
	if deletes {
		keys = x.Keys()
	}
	cat.Drop(x)
	for _, key := range keys {
		if e := g.Write(0, []byte(key)); e != nil {
			g.Remove(e, engine.EventGeneric, "del")
			g.Log(0, [][]byte{delWord, []byte(key)})
		}
	}
}
