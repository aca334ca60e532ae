package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALoopNapsOnlyAmongManyClients(t *testing.T) {
	clients := make([]socket, 100)
	l := &loop{load: loadMeter{high: true}}
	round := func(now int64, from, to int) {
		l.now = now
		for i := range clients[from:to] {
			l.arrived(&clients[from+i])
		}
	}
	round(1, 0, napCrowd-1)
	round(1, 0, napCrowd-1) // the same clients again
	round(2, 0, 1)
	require.False(t, l.naps(1), "too few clients")
	round(3, 0, napCrowd)
	require.False(t, l.naps(1), "they are counted when the millisecond is over")
	round(5, 0, 1)
	require.True(t, l.naps(1))
	require.True(t, l.naps(napCrowd/2))
	require.False(t, l.naps(napCrowd/2+1), "most are ready already")
	require.False(t, l.naps(0), "woken for something else")
	round(6, 0, 2)
	require.False(t, l.naps(1), "one client in the millisecond before")
	l.crowd, l.load.high = napCrowd, false
	require.False(t, l.naps(1), "there is too little to do")
}

func TestTheLoadOfALoop(t *testing.T) {
	var m loadMeter
	used := int64(0)
	measure := func(now, ns int64) bool {
		used += ns
		m.measure(now, func() int64 { return used })
		return m.high
	}
	require.False(t, measure(1_000_000, 1_000_000), "since the start of the clock")
	require.False(t, measure(1_000_000+loadWindow-1, 6_900_000), "too early to tell")
	require.True(t, measure(1_000_000+loadWindow, 100_000))
	require.True(t, measure(1_000_010, 0), "as it was last")
	require.True(t, measure(1_000_018, 9_000_000))
	require.True(t, measure(1_000_028, 6_000_000), "less, but because of the naps")
	require.False(t, measure(1_000_038, 5_000_000), "half of the time")
	require.False(t, measure(1_000_048, 6_000_000), "not enough to begin again")
	require.False(t, measure(1_001_000, 50_000_000), "a pause")
}
