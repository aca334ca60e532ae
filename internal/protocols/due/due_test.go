package due_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/protocols/due"
	"github.com/atomredis/atomredis/internal/testing/servertest"
)

// start returns a schedule, and a function that returns the calls of look since its last call, with their times. In
// this test lists have deadlines.
func start(t *testing.T, b *servertest.Stepped) (s *due.Schedule, looked func() []string) {
	s = &due.Schedule{}
	var list []string
	s.Start(b.Server, func(id due.ID, now int64) { list = append(list, fmt.Sprintf("%d %s +%d", id.DB, id.Key, now-1e12)) },
		func(e *engine.Entry) (key string, ok bool) { return string(e.Key()), e.Type() == engine.List })
	t.Cleanup(s.Close)
	return s, func() []string {
		defer func() { list = nil }()
		return list
	}
}

func TestItemsAreLookedAtOnceWhenTheyAreDue(t *testing.T) {
	b := servertest.NewStepped(t)
	defer b.Finish()
	s, looked := start(t, b)
	at := func(ms int64) int64 { return 1e12 + ms }
	s.Note(due.ID{DB: 0, Key: "late"}, at(30))
	s.Note(due.ID{DB: 1, Key: "early"}, at(10))
	s.Note(due.ID{DB: 0, Key: "earlier"}, at(40))
	s.Note(due.ID{DB: 0, Key: "earlier"}, at(20))
	s.Note(due.ID{DB: 0, Key: "earlier"}, at(50)) // changes nothing
	s.Note(due.ID{DB: 0, Key: "gone"}, at(10))
	require.Equal(t, at(20), s.Earliest(due.ID{DB: 0, Key: "earlier"}))
	s.Forget(due.ID{DB: 0, Key: "gone"})
	require.Zero(t, s.Earliest(due.ID{DB: 0, Key: "gone"}))
	b.Pass(9)
	require.Empty(t, looked())
	b.Pass(1)
	require.Equal(t, []string{"1 early +10"}, looked())
	require.Zero(t, s.Earliest(due.ID{DB: 1, Key: "early"}), "it has been looked at")
	b.Pass(9)
	require.Empty(t, looked())
	b.Pass(1)
	require.Equal(t, []string{"0 earlier +20"}, looked())
	b.Pass(1000)
	require.Len(t, looked(), 1)
	s.Note(due.ID{DB: 0, Key: "late"}, at(5000)) // a second time
	b.Pass(5000)
	require.Len(t, looked(), 1)
	s.Note(due.ID{DB: 0, Key: "never"}, at(20_000))
	s.Close()
	b.Pass(20_000)
	require.Empty(t, looked())
}

func TestWhatWasStoredBeforeTheStartIsFound(t *testing.T) {
	b := servertest.NewStepped(t)
	defer b.Finish()
	for _, line := range []string{"SET string v", "RPUSH list v", "SELECT 3", "RPUSH other v"} {
		b.Step(line)
	}
	s, looked := start(t, b)
	s.FindStored()
	require.False(t, s.Found())
	b.Pass(1000)
	require.True(t, s.Found())
	var keys []string
	for _, line := range looked() {
		var db int
		var key string
		_, err := fmt.Sscan(line, &db, &key)
		require.NoError(t, err)
		keys = append(keys, fmt.Sprint(db, " ", key))
	}
	require.Equal(t, []string{"0 list", "3 other"}, keys)
}

// A search for what has arrived does not change Found, and one that begins during another one is not lost.
func TestWhatArrivesIsFound(t *testing.T) {
	b := servertest.NewStepped(t)
	defer b.Finish()
	s := &due.Schedule{}
	found := map[string]int{}
	s.Start(b.Server, func(id due.ID, _ int64) {
		if found[id.Key]++; found[id.Key] == 1 {
			s.FindArrived()
		}
	}, func(e *engine.Entry) (key string, ok bool) { return string(e.Key()), e.Type() == engine.List })
	defer s.Close()
	b.Step("RPUSH list v")
	b.Pass(1000)
	require.Empty(t, found)
	s.FindArrived()
	require.True(t, s.Found())
	b.Pass(100)
	require.Equal(t, map[string]int{"list": 1}, found)
	b.Pass(1000)
	require.Equal(t, map[string]int{"list": 2}, found)
	b.Pass(1000)
	require.Equal(t, map[string]int{"list": 2}, found)
}
