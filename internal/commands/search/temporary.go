package search

import (
	"encoding/binary"
	"math"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/search/catalog"
	"github.com/atomredis/atomredis/internal/search/fanout"
)

// An index with TEMPORARY is dropped with its documents when it has been unused for that time: no query, and no
// change of a document.

// temporaries watches and drops such indexes.
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

// idleLimit returns for how long an index may be unused; 0 is forever. The limit is capped at the longest Duration,
// 292 years.
func idleLimit(x *catalog.Index) time.Duration {
	return time.Duration(min(x.Definition().Temporary, math.MaxInt64/int64(time.Second))) * time.Second
}

// lookLater checks an index again after some time.
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

// look drops an index that has been unused for too long. A follower leaves that to its master.
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
	if idle, ok := s.idleElsewhere(x); !ok || idle < limit {
		s.lookLater(x, max(limit-idle, time.Second))
		return
	}
	var g engine.Guard
	g.Lock(ks, engine.AllShards, ks.Now())
	if !x.Gone() {
		g.Log(0, [][]byte{dropWord, []byte(x.Name), []byte("_FORCEKEEPDOCS")})
		dropIndex(&g, s.Catalog, x, true)
		if shardsOf(s.host) != nil {
			g.Log(0, s.noteIn(catalog.IndexItem, x.Name, true, true))
		}
	}
	g.Unlock()
}

// idleElsewhere returns for how long no other shard has used an index; without other shards that is the longest
// Duration. ok is false if a shard does not answer.
func (s *service) idleElsewhere(x *catalog.Index) (idle time.Duration, ok bool) {
	idle = math.MaxInt64
	if !s.others() {
		return idle, true
	}
	for _, o := range shardsOf(s.host).Now().Record.Others {
		a, err := s.caller().Ask(o.ID, &fanout.Question{What: askIdle, Args: [][]byte{[]byte(x.Name)}}, time.Now().Add(longAnswer))
		if err != nil {
			return 0, false
		}
		part, _, err := a.Part()
		a.Close()
		ms, size := binary.Varint(part)
		if err != nil || size <= 0 {
			return 0, false
		}
		idle = min(idle, time.Duration(ms)*time.Millisecond)
	}
	return idle, true
}

// answerIdle answers askIdle. A missing index has been idle for ever.
func (s *service) answerIdle(q *fanout.Question) (fanout.Answer, error) {
	ms := int64(math.MaxInt64 / int64(time.Millisecond))
	if len(q.Args) == 1 {
		if x := s.Lookup(string(q.Args[0])); x != nil {
			ms = s.host.Keyspace().Now() - x.Touched()
		}
	}
	return &given{fanout.View{Shard: shardsOf(s.host).Now().ID}, binary.AppendVarint(nil, ms)}, nil
}

// close ends the watching of indexes.
func (t *temporaries) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, timer := range t.timers {
		timer.Stop()
	}
}

// dropIndex drops an index, and deletes its documents if deletes is set.
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
