package journal

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClientsWaitForTheDiskAsThePolicyWantsIt(t *testing.T) {
	const all = math.MaxUint64
	failed := errors.New("no space")
	for _, c := range []struct {
		policy            Policy
		appended, durable uint64
		lagging           bool
		err               error
		hold, told        uint64
	}{
		{policy: Always, appended: 9, durable: 5, hold: 9, told: 5},
		{policy: Always, appended: 9, durable: 9, hold: 0, told: 9},
		{policy: Always, appended: 9, durable: 5, err: failed, hold: 0, told: 5},
		{policy: EverySec, appended: 9, durable: 5, lagging: true, hold: 9, told: 5},
		// Once it no longer lags, changes up to 9 may be told, although 9 will only be synced a second later.
		{policy: EverySec, appended: 12, durable: 7, hold: 0, told: all},
		{policy: EverySec, appended: 9, durable: 5, err: failed, hold: 0, told: 5},
		{policy: No, appended: 9, durable: 5, hold: 0, told: all},
		{policy: No, appended: 9, durable: 5, err: failed, hold: 0, told: 5},
	} {
		now := time.Unix(100, 0)
		j := &File{o: Options{Now: func() time.Time { return now }}}
		j.policy.Store(int32(c.policy))
		j.appended.Store(c.appended)
		j.durable.Store(c.durable)
		j.dirty.Store(now.UnixNano())
		if c.lagging {
			j.dirty.Store(now.Add(-2 * time.Second).UnixNano())
		}
		if c.err != nil {
			j.failure.Store(&c.err)
		}
		require.Equal(t, c.hold, j.WaitPosition(), "%+v", c)
		require.Equal(t, c.told, j.Told(), "%+v", c)
	}
}
