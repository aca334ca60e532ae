package forward

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/session"
)

func TestAnswersAreReadAsTheyWereWritten(t *testing.T) {
	replies := strings.Repeat("+OK\r\n", maxUnread/5+1) // more than is read at once
	want := answer{size: uint32(len(replies)), flags: answerBound | answerRESP3, db: 3, done: 1 << 40}
	head := make([]byte, answerHead)
	want.put(head)
	in := bufio.NewReader(io.MultiReader(bytes.NewReader(head), strings.NewReader(replies)))
	a, got, err := readAnswer(in)
	require.NoError(t, err)
	require.Equal(t, want, a)
	require.Equal(t, replies, string(got))
	_, _, err = readAnswer(in)
	require.ErrorIs(t, err, io.EOF)
}

func TestADamagedAnswerIsAnError(t *testing.T) {
	announced := answer{size: 1<<32 - 1}
	long := make([]byte, answerHead)
	announced.put(long)
	for name, b := range map[string][]byte{"head": long[:answerHead-1], "replies": long} {
		t.Run(name, func(t *testing.T) {
			_, replies, err := readAnswer(bufio.NewReader(bytes.NewReader(b)))
			require.Error(t, err)
			require.Empty(t, replies)
		})
	}
}

// Frames that no server sends end the connection before a session sees them.
func TestUnknownFramesAreRefused(t *testing.T) {
	frame := func(kind byte, size int, content string) string {
		return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(size))) + content
	}
	for name, in := range map[string]string{
		"commands before the client":  frame(frameCommands, 4, "PING"),
		"a description without end":   frame(frameClient, maxClient+1, ""),
		"a description that is short": frame(frameClient, 10, "{}"),
		"a description without JSON":  frame(frameClient, 2, "xx"),
	} {
		t.Run(name, func(t *testing.T) {
			r := &remoteClient{all: New(&session.Shared{}, nil)}
			require.Error(t, r.readClient(bufio.NewReader(strings.NewReader(in))))
			require.Nil(t, r.session)
		})
	}
	r := &remoteClient{}
	require.ErrorIs(t, r.readFrame(bufio.NewReader(strings.NewReader(frame('?', 0, "")))), errFrame)
}
