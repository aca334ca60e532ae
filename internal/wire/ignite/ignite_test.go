package ignite_test

import (
	"encoding/hex"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/wire/ignite"
)

func unhex(t testing.TB, text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return b
}

var (
	node   = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	limits = ignite.Limits{Message: 1 << 20, Time: time.Minute}
)

const nodeHex = "0a 0102030405060708 090a0b0c0d0e0f10"

// talk gives a server input, and returns its replies to all of it, and its error.
func talk(t testing.TB, sent []byte, admit func(h *ignite.Hello) *ignite.Refusal,
	serve func(c *ignite.Conn) error) ([]byte, error) {
	server, client := net.Pipe()
	failed := make(chan error, 1)
	go func() {
		defer server.Close()
		c, err := ignite.Accept(server, node, limits, admit)
		if err == nil {
			err = serve(c)
		}
		failed <- err
	}()
	go func() {
		client.Write(sent)
		client.SetReadDeadline(time.Now().Add(time.Minute))
	}()
	var got []byte
	buf := make([]byte, 1024)
	for {
		n, err := client.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			break
		}
	}
	return got, <-failed
}

func welcome(*ignite.Hello) *ignite.Refusal { return nil }

// end is a request that ends the test.
const end = "0a000000 ffff 0000000000000000"

// echo answers each request with its body, or with an error if it has none.
func echo(c *ignite.Conn) error {
	h := c.Hello()
	for {
		r, err := c.Read()
		if err != nil {
			return err
		}
		switch {
		case r.Op == -1:
			return nil
		case len(r.Body) == 0:
			err = c.Write(h.AppendFailure(nil, r.ID, ignite.StatusInvalidOp, "no"))
		default:
			err = c.Write(h.AppendReply(nil, r.ID, r.Body))
		}
		if err != nil {
			return err
		}
	}
}

func TestHandshakes(t *testing.T) {
	const user = "09 01000000 75 09 02000000 7077"
	for name, test := range map[string]struct{ sent, got, user, refusal string }{
		"1.7 of Python":     {sent: "0e000000 01 0100 0700 0000 02 0c 01000000 04", got: "18000000 01 0c 01000000 04" + nodeHex},
		"1.2 of npm":        {sent: "08000000 01 0100 0200 0000 02", got: "01000000 01"},
		"1.2 with a user":   {sent: "15000000 01 0100 0200 0000 02" + user, got: "01000000 01", user: "u:pw"},
		"1.4 without":       {sent: "0a000000 01 0100 0400 0000 02 65 65", got: "12000000 01" + nodeHex},
		"1.7 with a user":   {sent: "1b000000 01 0100 0700 0000 02 0c 01000000 04" + user, got: "18000000 01 0c 01000000 04" + nodeHex, user: "u:pw"},
		"1.7 of attributes": {sent: "20000000 01 0100 0700 0000 02 0c 01000000 01 19 01000000 01 09 01000000 61 09 01000000 62", got: "18000000 01 0c 01000000 04" + nodeHex},
		"1.7 of none":       {sent: "0f000000 01 0100 0700 0000 02 0c 01000000 01 65", got: "18000000 01 0c 01000000 04" + nodeHex},
		"1.8":               {sent: "08000000 01 0100 0800 0000 02", got: "2c000000 00 0100 0700 0000 09 1c000000" + hex.EncodeToString([]byte("Unsupported version: 1.8.0")), refusal: "1.8.0"},
		"an ODBC client":    {sent: "08000000 01 0100 0200 0000 00", refusal: "kind of client"},
	} {
		h := ignite.Hello{}
		got, err := talk(t, append(unhex(t, test.sent), unhex(t, end)...), func(hello *ignite.Hello) *ignite.Refusal {
			h = *hello
			return nil
		}, echo)
		if test.refusal != "" {
			require.ErrorIs(t, err, ignite.ErrRefused, name)
			require.ErrorContains(t, err, test.refusal, name)
			require.Equal(t, unhex(t, "00 0100 0700 0000 09"), got[4:12], name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, unhex(t, test.got), got, name)
		if test.user != "" {
			require.Equal(t, test.user, h.User+":"+h.Password, name)
		} else {
			require.Empty(t, h.User+h.Password, name)
		}
	}
	for _, bad := range []string{"00000000", "ffffffff", "08000000 02 0100 0200 0000 02", "01000100", "0f000000 01 0100 0700 0000 02 0c 01000000 01 19",
		"0d000000 01 0100 0700 0000 02 0c 01000000", "0b000000 01 0100 0200 0000 02 090500"} {
		_, err := talk(t, append(unhex(t, bad), unhex(t, end)...), welcome, echo)
		require.Error(t, err, bad)
	}
	got, err := talk(t, unhex(t, "08000000 01 0100 0200 0000 02"), func(*ignite.Hello) *ignite.Refusal {
		return &ignite.Refusal{Status: ignite.StatusNotAuthorized, Message: "no"}
	}, echo)
	require.ErrorIs(t, err, ignite.ErrRefused)
	require.Equal(t, unhex(t, "12000000 00 0100 0700 0000 09 02000000 6e6f d0070000"), got)
}

func TestRepliesOfBothForms(t *testing.T) {
	requests := "0b000000 e803 0700000000000000 65 0a000000 e803 0800000000000000"
	got, err := talk(t, unhex(t, "08000000 01 0100 0200 0000 02"+requests+end), welcome, echo)
	require.NoError(t, err)
	require.Equal(t, unhex(t, "01000000 01 0d000000 0700000000000000 00000000 65 13000000 0800000000000000 02000000 09 02000000 6e6f"), got)
	got, err = talk(t, unhex(t, "08000000 01 0100 0400 0000 02"+requests+end), welcome, echo)
	require.NoError(t, err)
	require.Equal(t, unhex(t, "12000000 01"+nodeHex+"0b000000 0700000000000000 0000 65 15000000 0800000000000000 0100 02000000 09 02000000 6e6f"), got)
}

func TestRepliesThatInformOfTheTopology(t *testing.T) {
	got := ignite.AppendReplyAndTopology(nil, 7, 3, []byte{5})
	require.Equal(t, unhex(t, "17000000 0700000000000000 0200 0300000000000000 00000000 05"), got)
}

func TestNotifications(t *testing.T) {
	got := ignite.AppendNotification([]byte("x"), 7, 2007, []byte{5})
	require.Equal(t, append([]byte("x"), unhex(t, "0d000000 0700000000000000 0400 d707 05")...), got)
}

func TestMessagesThatAreNone(t *testing.T) {
	hello := unhex(t, "08000000 01 0100 0200 0000 02")
	for message, want := range map[string]error{
		"09000000 e803 07000000000000": ignite.ErrProtocol, "ffffffff": ignite.ErrProtocol, "01001000": ignite.ErrTooLong,
	} {
		_, err := talk(t, append(hello, unhex(t, message)...), welcome, echo)
		require.ErrorIs(t, err, want, message)
	}
	long := append(unhex(t, "0a000800 e803 0700000000000000"), make([]byte, 8<<16)...)
	got, err := talk(t, append(append(hello, long...), unhex(t, end)...), welcome, echo)
	require.NoError(t, err)
	require.Len(t, got, 5+4+8+4+8<<16)
}

// An announced length takes no memory before the bytes arrive.
func TestMemoryFollowsWhatHasArrived(t *testing.T) {
	hello := unhex(t, "08000000 01 0100 0200 0000 02")
	c, err := ignite.Accept(&memory{in: append(append(hello, 0, 0, 0, 0x20), make([]byte, 100_000)...)}, node, limits, welcome)
	require.NoError(t, err)
	_, err = c.Read()
	require.ErrorIs(t, err, ignite.ErrTooLong)

	c, err = ignite.Accept(&memory{in: append(append(hello, 0, 0, 0, 0x20), make([]byte, 100_000)...)}, node, limits, welcome)
	require.NoError(t, err)
	c.LimitMessage(1 << 30)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = c.Read()
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.EOF)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func FuzzConn(f *testing.F) {
	for _, s := range []string{"0e000000 01 0100 0700 0000 02 0c 01000000 04", "08000000 01 0100 0200 0000 02",
		"20000000 01 0100 0700 0000 02 0c 01000000 01 19 01000000 01 09 01000000 61 09 01000000 62"} {
		f.Add(unhex(f, s+"0b000000 e803 0700000000000000 65"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ignite.Accept(&memory{in: b}, node, limits, welcome)
		if err == nil {
			echo(c) // until the peer disconnects, or sends the request that ends the test
		}
	})
}

// memory is a connection of a peer that sends something and disconnects.
type memory struct {
	net.Conn
	in []byte
}

func (m *memory) Read(b []byte) (int, error) {
	if len(m.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b, m.in)
	m.in = m.in[n:]
	return n, nil
}
func (m *memory) Write(b []byte) (int, error)      { return len(b), nil }
func (m *memory) SetDeadline(time.Time) error      { return nil }
func (m *memory) SetWriteDeadline(time.Time) error { return nil }
