package peers

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/wire/peer"
)

// testHost is a server whose connections are in memory. to is the other server.
type testHost struct {
	mu        sync.Mutex
	to        *Broadcast
	dialed    []net.Conn
	max       int64
	delivered chan string
	ends      chan error
}

func newTestHost() *testHost {
	return &testHost{max: 1 << 20, delivered: make(chan string, 1000), ends: make(chan error, 10)}
}

func (h *testHost) Dial(_ string, purpose peer.Purpose, _ time.Duration) (*peer.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	here, there := net.Pipe()
	h.dialed = append(h.dialed, here)
	go func() {
		err := h.to.Receive(peer.NewConn(there, purpose, 1, nil, nil))
		there.Close()
		h.ends <- err
	}()
	return peer.NewConn(here, purpose, 1, nil, nil), nil
}

func (h *testHost) Receivers(shard bool) []string {
	if shard {
		return []string{"group"}
	}
	return []string{"group", "other"}
}

func (h *testHost) Deliver(channel, message []byte, shard bool) {
	h.delivered <- fmt.Sprint(string(channel), " ", string(message), " ", shard)
}

func (h *testHost) MaxMessage() int64 { return h.max }

func TestMessagesReachEachReceiverInOrder(t *testing.T) {
	from, to := newTestHost(), newTestHost()
	from.to = NewBroadcast(to)
	b := NewBroadcast(from)
	for i := range 100 {
		b.Send([]byte("s"), []byte(fmt.Sprint(i)), true)
	}
	for i := range 100 {
		require.Equal(t, fmt.Sprint("s ", i, " true"), <-to.delivered)
	}
	b.Send([]byte("c"), []byte(strings.Repeat("x", 1<<16)), false)
	for range 2 { // both servers
		require.Equal(t, "c "+strings.Repeat("x", 1<<16)+" false", <-to.delivered)
	}
	b.Close()
	b.Send([]byte("c"), []byte("late"), false)
	for range 3 {
		require.Error(t, <-from.ends)
	}
	require.Empty(t, to.delivered)
}

// A connection that has ended is replaced: later messages arrive.
func TestAReceiverThatWasAwayReceivesLaterMessages(t *testing.T) {
	from, to := newTestHost(), newTestHost()
	from.to = NewBroadcast(to)
	b := NewBroadcast(from)
	defer b.Close()
	b.Send([]byte("c"), []byte("1"), true)
	require.Equal(t, "c 1 true", <-to.delivered)
	from.dialed[0].Close()
	<-from.ends
	for {
		b.Send([]byte("c"), []byte("2"), true)
		select {
		case m := <-to.delivered:
			require.Equal(t, "c 2 true", m)
			return
		default:
		}
	}
}

func TestBrokenMessagesAreNotDelivered(t *testing.T) {
	part := func(s string) string { return string(peer.AppendPart(nil, []byte(s))) }
	frame := func(kind, payload string) string { return kind + part(payload) }
	for name, c := range map[string]struct {
		sent string
		want error
	}{
		"nothing":          {"", io.EOF},
		"half a frame":     {"m\x05\x01c", io.ErrUnexpectedEOF},
		"half a message":   {frame("m", part("c")+"\x05mess"), peer.ErrFrame},
		"no message":       {frame("m", part("c")), peer.ErrFrame},
		"a longer message": {frame("m", part("c")+part(strings.Repeat("x", 1<<20+1))), errTooLong},
		"a long frame":     {"m\xff\xff\xff\x7f", errTooLong},
		"another frame":    {frame("x", ""), peer.ErrFrame},
	} {
		t.Run(name, func(t *testing.T) {
			to := newTestHost()
			here, there := net.Pipe()
			go func() {
				_, _ = io.WriteString(here, c.sent)
				here.Close()
			}()
			conn := peer.NewConn(there, peer.Broadcast, 1, nil, nil)
			require.ErrorIs(t, NewBroadcast(to).Receive(conn), c.want)
			require.Empty(t, to.delivered)
			there.Close()
		})
	}
}
