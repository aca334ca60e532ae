package link

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

const mark = "0123456789abcdefghijklmnopqrstuvwxyzABCD"

// scripted returns a link to a server that answers each line with the next of replies.
func scripted(t *testing.T, replies ...string) *Link {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	here, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { here.Close() })
	there, err := l.Accept()
	require.NoError(t, err)
	go func() {
		defer there.Close()
		in := bufio.NewReader(there)
		for _, reply := range replies {
			head, err := in.ReadString('\n')
			if err != nil {
				return
			}
			for range 2 * int(head[1]-'0') {
				in.ReadString('\n')
			}
			io.WriteString(there, reply)
		}
		there.(*net.TCPConn).CloseWrite() // closing it with unread bytes would be no end, but a reset
		io.Copy(io.Discard, in)
	}()
	return New(here, time.Minute)
}

func TestRDB(t *testing.T) {
	data := strings.Repeat("REDIS0012", 20_000)
	for name, c := range map[string]struct {
		replies []string
		size    int64
		err     string
		readErr error
	}{
		"a length": {[]string{"+OK\r\n", "+OK\r\n", "\n\n$180000\r\n" + data}, 180000, "", nil},
		"a mark":   {[]string{"+OK\r\n", "+OK\r\n", "\n$EOF:" + mark + "\r\n" + data + mark}, 0, "", nil},
		"changes behind the mark": {[]string{"+OK\r\n", "-ERR unknown\r\n",
			"$EOF:" + mark + "\r\n" + data + mark + "*1\r\n$4\r\nPING\r\n"}, 0, "", nil},
		"cut, with a length": {[]string{"+OK\r\n", "+OK\r\n", "$180001\r\n" + data}, 180001, "", io.ErrUnexpectedEOF},
		"cut in the mark":    {[]string{"+OK\r\n", "+OK\r\n", "$EOF:" + mark + "\r\n" + data + mark[:39]}, 0, "", io.ErrUnexpectedEOF},
		"a refusal":          {[]string{"-NOAUTH x\r\n", "-NOAUTH x\r\n", "-NOAUTH y\r\n"}, 0, "NOAUTH y", nil},
		"something else": {[]string{"+OK\r\n", "+OK\r\n", "+FULLRESYNC\r\n"}, 0,
			`the server sends "+FULLRESYNC" instead of a length`, nil},
		"an end before there is one": {[]string{"+OK\r\n"}, 0, "EOF", nil},
	} {
		file, size, err := scripted(t, c.replies...).RDB()
		if c.err != "" {
			require.EqualError(t, err, c.err, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.size, size, name)
		content, err := io.ReadAll(file)
		require.ErrorIs(t, err, c.readErr, name)
		if c.readErr == nil {
			require.Equal(t, data, string(content), name)
		}
	}
}

// The mark is found however the data is split.
func TestMarked(t *testing.T) {
	for _, data := range []string{"", "x", mark[:39], mark[1:] + mark[:20], strings.Repeat(mark[:20], 9)} {
		for name, in := range map[string]io.Reader{
			"at once":           strings.NewReader(data + mark + "behind"),
			"byte by byte":      iotest.OneByteReader(strings.NewReader(data + mark + "behind")),
			"with the end":      iotest.DataErrReader(strings.NewReader(data + mark)),
			"into little space": iotest.HalfReader(strings.NewReader(data + mark)),
		} {
			var out bytes.Buffer
			_, err := io.CopyBuffer(&out, struct{ io.Reader }{&marked{in: in, mark: []byte(mark)}}, make([]byte, 3))
			require.NoError(t, err, "%s: %q", name, data)
			require.Equal(t, data, out.String(), name)
		}
		_, err := io.ReadAll(&marked{in: strings.NewReader(data + mark[:39]), mark: []byte(mark)})
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
}
