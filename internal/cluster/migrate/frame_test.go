package migrate

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/memconn"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// framesOf are frames of all kinds that parseFrame knows.
func framesOf() []frame {
	return []frame{
		{kind: frameState, db: 3, deadline: 1 << 42, key: []byte("key"), body: []byte(strings.Repeat("value", 30_000))},
		{kind: frameBlessed, db: 3, key: []byte("key"), body: []byte("v")},
		{kind: frameState, deadline: -1, key: []byte{}, body: []byte{}}, {kind: frameGone, db: 1 << 30, key: []byte("k\x00")},
		{kind: frameRound, round: 1<<64 - 1}, {kind: frameLast, round: 7},
	}
}

// sent returns the payload that a frame is sent with.
func sent(t *testing.T, f *frame) []byte {
	here, there := memconn.Pipe(1 << 20)
	defer here.Close()
	defer there.Close()
	c := peer.NewConn(here, peer.Migration, 1, nil, nil)
	require.NoError(t, errors.Join(f.send(c), c.Flush()))
	kind, payload, err := peer.NewConn(there, peer.Migration, 1, nil, nil).Receive()
	require.NoError(t, err)
	require.Equal(t, f.kind, kind)
	return payload
}

func requireFrame(t *testing.T, want, got frame) {
	require.True(t, bytes.Equal(want.key, got.key) && bytes.Equal(want.body, got.body))
	want.key, want.body, got.key, got.body = nil, nil, nil, nil
	require.Equal(t, want, got)
}

func TestFramesAreReadAsTheyWereWritten(t *testing.T) {
	for _, f := range framesOf() {
		payload := sent(t, &f)
		got, err := parseFrame(f.kind, payload)
		require.NoError(t, err)
		requireFrame(t, f, got)
		for n := range min(len(payload), 100) { // a truncated payload is an error, and no shorter frame
			_, err := parseFrame(f.kind, payload[:n])
			require.ErrorIs(t, err, peer.ErrFrame)
		}
		_, err = parseFrame(f.kind, append(payload, 0))
		require.ErrorIs(t, err, peer.ErrFrame)
	}
	for kind, wrong := range map[peer.Kind]string{'x': "", frameGone: "\xff\xff\xff\xff\x7f\x01k",
		frameState: "\x00" + strings.Repeat("\xff", 11)} {
		_, err := parseFrame(kind, []byte(wrong))
		require.ErrorIs(t, err, peer.ErrFrame)
	}
}

func FuzzFrames(f *testing.F) {
	for _, seed := range []string{"\x03\x00\x01k\x05value", "\x00\x01k", "\x07", "\x00\x00\xff\xff\xff\xff\x0fshort"} {
		for _, kind := range "sgrl" {
			f.Add(byte(kind), []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, payload []byte) {
		one, err := parseFrame(peer.Kind(kind), payload)
		if err != nil {
			return
		}
		again, err := parseFrame(one.kind, sent(t, &one))
		require.NoError(t, err)
		requireFrame(t, one, again)
	})
}
