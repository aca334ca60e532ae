package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/transport"
)

// Long commands may be read in pieces of any size, into the session's Room or not.
func TestInputInPieces(t *testing.T) {
	conf := config.NewConfig()
	conf.InMemory()
	require.NoError(t, conf.Set("port", "0", false))
	srv, err := New(conf, slog.New(slog.DiscardHandler), Options{Goroutines: true})
	require.NoError(t, err)
	defer srv.Close()

	var input, want bytes.Buffer
	for i, n := range []int{10, 20_000, 70_000, 300_000, 3_000_000, 1} {
		value := bytes.Repeat([]byte{byte('a' + i)}, n)
		fmt.Fprintf(&input, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", n, value)
		fmt.Fprintf(&want, "+OK\r\n$%d\r\n%s\r\n", n, value)
		fmt.Fprintf(&input, "*3\r\n$4\r\nMGET\r\n$1\r\nk\r\n$%d\r\n%s\r\n", n, value)
		fmt.Fprintf(&want, "*2\r\n$%d\r\n%s\r\n$-1\r\n", n, value)
	}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := srv.sessions.Open(transport.Peer{}, func() {})
		var got []byte
		rooms := 0
		for left := input.Bytes(); len(left) > 0; {
			n := 1 + random.IntN(min(len(left), 1+random.IntN(200_000)))
			if room := s.Room(); room != nil {
				rooms++
				n = copy(room, left[:n])
				s.Received(n, 1)
			} else {
				s.Input(left[:n], 1)
			}
			left = left[n:]
			got = append(got, s.Output()...)
			s.SetOutput(nil)
		}
		require.True(t, bytes.Equal(want.Bytes(), got), "seed %d", seed)
		require.NotZero(t, rooms)
		s.Close()
	}
}
