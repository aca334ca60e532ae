//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEntryReaderGoesOnBehindWhatItHasRead(t *testing.T) {
	r := &entryReader{stream: "s", value: []byte("v"), last: "0"}
	sent := func() string {
		b, replies := r.Append(nil, 0, 0)
		require.Equal(t, 1, replies)
		_, replies = r.Append(nil, 0, 1)
		require.Zero(t, replies)
		return string(b)
	}
	entry := func(id, value string) string {
		return "*2\r\n$3\r\n" + id + "\r\n*4\r\n$4\r\ndata\r\n$1\r\n" + value + "\r\n$3\r\nser\r\n$4\r\nnone\r\n"
	}
	require.Contains(t, sent(), "STREAMS\r\n$1\r\ns\r\n$1\r\n0\r\n")
	require.NoError(t, r.Reply(0, []byte("*-1\r\n")), "nothing came for some time")
	require.Contains(t, sent(), "$1\r\n0\r\n")
	require.NoError(t, r.Reply(0, []byte("*1\r\n*2\r\n$1\r\ns\r\n*2\r\n"+entry("5-0", "v")+entry("6-0", "v"))))
	require.Contains(t, sent(), "$3\r\n6-0\r\n")
	require.Error(t, r.Reply(0, []byte("*1\r\n*2\r\n$1\r\ns\r\n*1\r\n"+entry("7-0", "x"))))
	require.Error(t, r.Reply(0, []byte("-ERR no\r\n")))
}
