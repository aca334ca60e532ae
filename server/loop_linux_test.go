package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALoopNapsOnlyAmongManyClients(t *testing.T) {
	clients := make([]socket, 100)
	l := &loop{keeps: true}
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
	l.crowd, l.keeps = napCrowd, false
	require.False(t, l.naps(1), "others may need the processor")
}
