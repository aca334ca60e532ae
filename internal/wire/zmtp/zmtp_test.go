package zmtp

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wire is a connection whose other end has sent everything, and that records the answers.
type wire struct {
	net.Conn
	in  *bytes.Reader
	out bytes.Buffer
}

func (w *wire) Read(b []byte) (int, error)         { return w.in.Read(b) }
func (w *wire) Write(b []byte) (int, error)        { return w.out.Write(b) }
func (w *wire) SetDeadline(time.Time) error        { return nil }
func (w *wire) SetReadDeadline(time.Time) error    { return nil }
func (w *wire) SetWriteDeadline(t time.Time) error { return nil }

var limits = Limits{Message: 1000, Frames: 3, Time: time.Minute}

// hello is the handshake of a peer of a type.
func hello(socketType string) []byte {
	ready := appendProperty([]byte("\x05READY"), "socket-type", socketType) // names are case-insensitive
	return appendFrame(greeting(), flagCommand, ready)
}

func accept(t *testing.T, said ...[]byte) (*Conn, *wire, error) {
	w := &wire{in: bytes.NewReader(bytes.Join(said, nil))}
	c, err := Accept(w, "ROUTER", []string{"REQ", "DEALER"}, limits)
	return c, w, err
}

func TestMessagesHaveFrames(t *testing.T) {
	long := bytes.Repeat([]byte{'x'}, 300)
	c, w, err := accept(t, hello("DEALER"), appendFrame(nil, flagMore, nil), appendFrame(nil, 0, []byte("a")),
		appendFrame(nil, flagCommand, []byte("\x04PING\x00\x00ctx")), appendFrame(nil, 0, long))
	require.NoError(t, err)
	frames, err := c.Read()
	require.NoError(t, err)
	require.Equal(t, [][]byte{{}, []byte("a")}, frames)
	w.out.Reset()
	frames, err = c.Read()
	require.NoError(t, err)
	require.Equal(t, [][]byte{long}, frames)
	require.Equal(t, "\x04\x08\x04PONGctx", w.out.String())
	_, err = c.Read()
	require.Equal(t, io.EOF, err)

	w.out.Reset()
	require.NoError(t, c.Write([]byte("a"), nil, long))
	require.Equal(t, "\x01\x01a\x01\x00\x02\x00\x00\x00\x00\x00\x00\x01\x2c"+string(long), w.out.String())
}

// An announced length takes no memory before the bytes arrive, and the limit can change between two messages.
func TestMemoryFollowsWhatHasArrived(t *testing.T) {
	claim := []byte("\x02\x00\x00\x00\x00\x20\x00\x00\x00") // 512 MiB
	c, _, err := accept(t, hello("REQ"), claim, make([]byte, 100_000))
	require.NoError(t, err)
	c.LimitMessage(1 << 30)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = c.Read()
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))

	long := bytes.Repeat([]byte("frame"), 50_000)
	c, _, err = accept(t, hello("REQ"), appendFrame(nil, flagMore, []byte("a")), appendFrame(nil, flagMore, long), appendFrame(nil, 0, []byte("b")),
		appendFrame(nil, 0, long))
	require.NoError(t, err)
	c.LimitMessage(1 << 20)
	frames, err := c.Read()
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("a"), long, []byte("b")}, frames)
	c.LimitMessage(1000)
	_, err = c.Read()
	require.ErrorIs(t, err, ErrTooLong)
}

func TestWhatEndsAConnection(t *testing.T) {
	for name, test := range map[string]struct {
		said []byte
		want error
	}{
		"too many frames":       {bytes.Repeat(appendFrame(nil, flagMore, nil), 4), ErrTooLong},
		"too long together":     {append(appendFrame(nil, flagMore, make([]byte, 900)), appendFrame(nil, 0, make([]byte, 101))...), ErrTooLong},
		"a length of 2^63":      {[]byte("\x02\x80\x00\x00\x00\x00\x00\x00\x00"), ErrTooLong},
		"a long command":        {[]byte("\x06\x00\x00\x00\x00\x00\x01\x00\x00"), ErrTooLong},
		"reserved flags":        {[]byte("\x08\x00"), ErrProtocol},
		"a command in parts":    {[]byte("\x05\x00"), ErrProtocol},
		"a command without end": {[]byte("\x04\x02\x05P"), ErrProtocol},
		"a ping without time":   {[]byte("\x04\x05\x04PING"), ErrProtocol},
		"the end in a frame":    {[]byte("\x00\x05ab"), io.ErrUnexpectedEOF},
		"the end in a message":  {[]byte("\x01\x01a"), io.ErrUnexpectedEOF},
	} {
		c, _, err := accept(t, hello("REQ"), test.said)
		require.NoError(t, err, name)
		_, err = c.Read()
		require.ErrorIs(t, err, test.want, name)
	}
}

func TestWhoIsNoPeerIsToldSo(t *testing.T) {
	_, w, err := accept(t, hello("SUB"))
	require.ErrorIs(t, err, ErrProtocol)
	require.True(t, strings.HasSuffix(w.out.String(), "\x04\x1a\x05ERROR\x13Invalid socket type"), "%q", w.out.String())
	for n := range len(hello("REQ")) {
		_, _, err := accept(t, hello("REQ")[:n])
		require.Error(t, err, n)
	}
}

func FuzzPeer(f *testing.F) {
	f.Add(append(hello("REQ"), appendFrame(appendFrame(nil, flagMore, nil), 0, []byte("\x0b"))...))
	f.Add(append(hello("DEALER"), "\x04\x07\x04PING\x00\x00\x00\x00"...))
	f.Fuzz(func(t *testing.T, said []byte) {
		c, _, err := accept(t, said)
		for err == nil {
			var frames [][]byte
			if frames, err = c.Read(); err == nil {
				total := 0
				for _, frame := range frames {
					total += len(frame)
				}
				require.LessOrEqual(t, len(frames), limits.Frames)
				require.LessOrEqual(t, total, limits.Message)
			}
		}
	})
}
