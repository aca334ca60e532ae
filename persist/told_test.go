package persist

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/persist/journal"
)

// fixed is a journal in which nothing happens.
type fixed struct {
	journal.Journal
	appended, durable uint64
	lagging           bool
	err               error
}

func (f fixed) Appended() uint64 { return f.appended }
func (f fixed) Durable() uint64  { return f.durable }
func (f fixed) Lagging() bool    { return f.lagging }
func (f fixed) Err() error       { return f.err }

func TestClientsWaitForTheDiskAsThePolicyWantsIt(t *testing.T) {
	const all = math.MaxUint64
	failed := errors.New("no space")
	for _, c := range []struct {
		policy     journal.Policy
		j          fixed
		hold, told uint64
	}{
		{journal.Always, fixed{appended: 9, durable: 5}, 9, 5},
		{journal.Always, fixed{appended: 9, durable: 9}, 0, 9},
		{journal.Always, fixed{appended: 9, durable: 5, err: failed}, 0, 5},
		{journal.EverySec, fixed{appended: 9, durable: 5, lagging: true}, 9, 5},
		// Once it does not lag any more, what was held at 9 may be told, although 9 will only be synced a second later.
		{journal.EverySec, fixed{appended: 12, durable: 7}, 0, all},
		{journal.EverySec, fixed{appended: 9, durable: 5, err: failed}, 0, 5},
		{journal.No, fixed{appended: 9, durable: 5}, 0, all},
		{journal.No, fixed{appended: 9, durable: 5, err: failed}, 0, 5},
	} {
		var s Storage
		s.policy.Store(int32(c.policy))
		s.journal.Store(c.j)
		require.Equal(t, c.hold, s.WaitPosition(), "%+v", c)
		require.Equal(t, c.told, s.Told(), "%+v", c)
	}
	var none Storage
	require.Zero(t, none.WaitPosition())
	require.Zero(t, none.Told())
}
