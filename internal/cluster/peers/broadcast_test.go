package peers

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

func (h *testHost) Dial(string, time.Duration) (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	here, there := net.Pipe()
	h.dialed = append(h.dialed, here)
	go func() {
		q, in, err := ReadQuestion(there)
		if err == nil {
			err = h.to.Receive(there, in.Buffered(), q.Ask == AskPublishShard)
		}
		there.Close()
		h.ends <- err
	}()
	return here, nil
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
	long := binary.AppendUvarint(nil, 1<<21)
	for sent, want := range map[string]error{
		"\x01c\x05mess": io.ErrUnexpectedEOF, "\x01c": io.EOF, "\x01c" + string(long): errTooLong, "": io.EOF,
	} {
		to := newTestHost()
		here, there := net.Pipe()
		go func() {
			_, _ = io.WriteString(here, `{"Ask":"publish"}`+"\n"+sent)
			here.Close()
		}()
		q, in, err := ReadQuestion(there)
		require.NoError(t, err)
		require.Equal(t, AskPublish, q.Ask)
		require.ErrorIs(t, NewBroadcast(to).Receive(there, in.Buffered(), false), want, "%q", sent)
		require.Empty(t, to.delivered)
	}
}
