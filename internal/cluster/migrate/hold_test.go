package migrate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/cluster"
)

// holdHost is a Host whose clients are blocked on slots.
type holdHost struct {
	Host
	blocked map[int]*heldClient
}

func (h *holdHost) WithdrawBlocked(slots *cluster.SlotSet) (list []Blocked) {
	for slot, c := range h.blocked {
		if slots.Has(slot) {
			delete(h.blocked, slot)
			list = append(list, c)
		}
	}
	return list
}

// heldClient is a client that waits or was blocked.
type heldClient struct {
	undone  bool
	resumed int
}

func (c *heldClient) Undone() bool { return c.undone }
func (c *heldClient) Resume()      { c.resumed++ }

func TestCommandsOnHeldSlotsWaitUntilTheHoldIsReleased(t *testing.T) {
	var none *Migrations
	require.False(t, none.Holding())
	m := New(Options{Host: &holdHost{}})
	require.False(t, m.Holding())
	until := time.UnixMilli(1000)
	first := m.hold(cluster.SetOf(cluster.Range{First: 5, Last: 9}), until)
	second := m.hold(cluster.SetOf(cluster.Range{First: 20, Last: 20}), until)
	require.True(t, m.Holding())

	a, b := new(heldClient), new(heldClient)
	for slot, held := range map[int]bool{4: false, 5: true, 9: true, 10: false, 20: true, cluster.NoSlot: false} {
		_, wait := m.Hold(slot, 999, a)
		require.Equal(t, held, wait, slot)
		_, wait = m.Hold(slot, 1000, b) // when it is over
		require.False(t, wait, slot)
	}
	at, _ := m.Hold(5, 0, a)
	require.Equal(t, int64(1000), at)

	first.release()
	require.True(t, m.Holding())
	require.Equal(t, 1, a.resumed, "it looks again, and may have to wait again")
	require.Zero(t, b.resumed)
	_, wait := m.Hold(5, 0, a)
	require.False(t, wait)
	_, wait = m.Hold(20, 0, a)
	require.True(t, wait)
	second.release()
	require.False(t, m.Holding())
	require.Equal(t, 2, a.resumed)
}

func TestBlockedClientsAreWithdrawnOnceAndResumed(t *testing.T) {
	inside, later, outside := new(heldClient), new(heldClient), new(heldClient)
	host := &holdHost{blocked: map[int]*heldClient{5: inside, 10: outside}}
	m := New(Options{Host: host})
	h := m.hold(cluster.SetOf(cluster.Range{First: 5, Last: 9}), time.UnixMilli(1000))
	require.False(t, h.withdraw(), "it has not undone yet what it has done")
	inside.undone = true
	require.True(t, h.withdraw())
	host.blocked[6] = later
	require.False(t, h.withdraw(), "another one was blocked meanwhile")
	later.undone = true
	require.True(t, h.withdraw())
	h.release()
	require.Equal(t, []int{1, 1, 0}, []int{inside.resumed, later.resumed, outside.resumed})
	require.Contains(t, host.blocked, 10)
}
