package shards

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/cluster"
)

// Other shards learn of a change whose commit takes longer than Change waits.
func TestAChangeIsCommittedLate(t *testing.T) {
	m := newModel(t, rand.New(rand.NewPCG(1, 2)), 2)
	defer m.close()
	x := m.list[0]
	slots := cluster.SetOf(cluster.Range{First: 5, Last: 9})
	has := func() bool { // as other shards see it
		told := x.s.News().Shard
		own := (&cluster.Record{ID: told.ID, Claims: told.Claims}).Owners().SlotsOf(told.ID)
		both := own.Both(&slots)
		return !both.Empty()
	}
	unchanged := func() error {
		return UnlessUnchanged(x.s.Change(func(*engine.Guard, *cluster.Record) error { return ErrUnchanged }))
	}
	x.slow = true
	require.NoError(t, unchanged(), "nothing is to be committed")
	require.ErrorIs(t, x.s.DropSlots(slots), ErrTakenBack)
	require.True(t, has())
	x.s.confirm()
	require.True(t, has(), "it is not committed yet")
	require.ErrorIs(t, unchanged(), ErrTakenBack)
	x.slow = false
	x.s.confirm()
	require.False(t, has())
	require.Same(t, x.s.Record(), x.s.Committed())
}

// A new shard gets its identity although its first record is committed late.
func TestANewShardIsCommittedLate(t *testing.T) {
	m := newModel(t, rand.New(rand.NewPCG(1, 2)), 1)
	defer m.close()
	x := m.list[0]
	x.start(nil)
	x.slow = true
	require.ErrorIs(t, x.change(func(r *cluster.Record) error {
		*r = *x.s.first()
		return nil
	}), ErrTakenBack)
	require.Empty(t, x.s.News().Shard.ID)
	x.slow = false
	x.s.confirm()
	require.Equal(t, x.s.o.ID, x.s.News().Shard.ID)
}
