package forward

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/memconn"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/wire/peer"
)

// received returns a connection on which some bytes have arrived, and which has ended then.
func received(t *testing.T, sent []byte) *peer.Conn {
	here, there := memconn.Pipe(len(sent) + 1)
	t.Cleanup(func() { there.Close() })
	_, err := here.Write(sent)
	require.NoError(t, err)
	here.Close()
	return peer.NewConn(there, peer.Forward, 1, nil, nil)
}

// frame returns a frame whose length is announced as size.
func frame(kind peer.Kind, size int, content string) []byte {
	return append(binary.AppendUvarint([]byte{byte(kind)}, uint64(size)), content...)
}

func TestAnswersAreReadAsTheyWereWritten(t *testing.T) {
	replies := strings.Repeat("+OK\r\n", maxUnread/5+1) // more than is read at once
	want := answer{flags: answerBound | answerRESP3, db: 3, done: 1 << 40}
	here, there := memconn.Pipe(2 << 20)
	defer there.Close()
	c := peer.NewConn(here, peer.Forward, 1, nil, nil)
	require.NoError(t, want.queue(c, []byte(replies)))
	require.NoError(t, c.Flush())
	require.NoError(t, c.Fail(errNotLeading))
	here.Close()
	in := peer.NewConn(there, peer.Forward, 1, nil, nil)
	a, got, err := readAnswer(in)
	require.NoError(t, err)
	require.Equal(t, want, a)
	require.Equal(t, replies, string(got))
	_, _, err = readAnswer(in)
	require.ErrorIs(t, err, peer.NotLeading)
	_, _, err = readAnswer(in)
	require.ErrorIs(t, err, io.EOF)
}

func TestADamagedAnswerIsAnError(t *testing.T) {
	for name, b := range map[string][]byte{
		"no flags": frame(frameAnswer, 0, ""), "no database": frame(frameAnswer, 1, "\x00"),
		"replies that break off": frame(frameAnswer, 1<<20, "\x00\x00\x00+OK"), "another frame": frame('?', 0, ""),
	} {
		t.Run(name, func(t *testing.T) {
			_, replies, err := readAnswer(received(t, b))
			require.Error(t, err)
			require.Empty(t, replies)
		})
	}
}

// Frames that no server sends end the connection before a session sees them.
func TestUnknownFramesAreRefused(t *testing.T) {
	for name, in := range map[string][]byte{
		"commands before the client":  frame(frameCommands, 4, "PING"),
		"a description that is long":  frame(frameClient, maxClient+1, ""),
		"a description that is short": frame(frameClient, 10, "{}"),
		"a description without JSON":  frame(frameClient, 2, "xx"),
		"another frame":               frame('?', 0, ""),
	} {
		t.Run(name, func(t *testing.T) {
			r := &remoteClient{all: New(&session.Shared{}, nil), conn: received(t, in)}
			require.Error(t, r.readFrame())
			require.Nil(t, r.session)
		})
	}
}
