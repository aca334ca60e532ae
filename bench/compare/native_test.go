//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNativeElementRespondsTogetherWithTheNextRequest(t *testing.T) {
	a := nativePairs(1, "v")[1].Client.(*nativeElement)
	const next = "*4\r\n$9\r\nATOM.NEXT\r\n$7\r\ncalled0\r\n$7\r\nTIMEOUT\r\n$4\r\n1000\r\n"
	send := func() (string, int) {
		b, replies := a.Append(nil, 0, 0)
		return string(b), replies
	}
	b, replies := send()
	require.Equal(t, next, b)
	require.Equal(t, 1, replies)
	require.NoError(t, a.Reply(0, []byte("$-1\r\n")), "there was no command for some time")
	_, replies = a.Append(nil, 0, 1)
	require.Zero(t, replies)
	b, _ = send()
	require.Equal(t, next, b)
	command := "*12\r\n$6\r\ncmd_id\r\n$3\r\n5-0\r\n$7\r\nelement\r\n$2\r\nme\r\n$3\r\ncmd\r\n$4\r\necho\r\n$4\r\ndata\r\n$1\r\nv\r\n" +
		"$3\r\nack\r\n:1000\r\n$3\r\nraw\r\n*0\r\n"
	require.NoError(t, a.Reply(0, []byte(command)))
	b, replies = send()
	require.Equal(t, "*8\r\n$12\r\nATOM.RESPOND\r\n$7\r\ncalled0\r\n$3\r\n5-0\r\n$2\r\nme\r\n$3\r\nCMD\r\n$4\r\necho\r\n$4\r\nDATA\r\n$1\r\nv\r\n"+next, b)
	require.Equal(t, 2, replies)
	require.NoError(t, a.Reply(0, []byte(":1\r\n")))
	require.NoError(t, a.Reply(0, []byte(command)))
	send()
	require.Error(t, a.Reply(0, []byte(":0\r\n")), "it was not pending")
	require.Error(t, a.Reply(0, []byte("-ERR\r\n")))
}
