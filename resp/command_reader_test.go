package resp

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestACommandReaderSplitsAStream(t *testing.T) {
	stream := "#TS:1\r\n*0\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$0\r\n\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\nx y\r\n"
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(stream),
		"by bytes": iotest.OneByteReader(strings.NewReader(stream))} {
		c := NewCommandReader(r)
		c.Keep = true
		var got []string
		for {
			args, err := c.Next()
			if err == io.EOF {
				break
			}
			require.NoError(t, err, name)
			words := make([]string, len(args))
			for i, a := range args {
				words[i] = string(a)
			}
			got = append(got, strings.Join(words, "|"))
		}
		require.Equal(t, []string{"#TS:1", "GET|a", "SET|a|x y"}, got, name)
		require.Equal(t, 3, c.Count)
		require.EqualValues(t, len(stream), c.Consumed)
		require.EqualValues(t, len(stream), c.Received)
		require.Equal(t, stream, string(c.Raw))
	}
}

func TestACommandReaderTellsWhereAStreamBreaks(t *testing.T) {
	c := NewCommandReader(strings.NewReader("PING\r\n*1\r\n$4\r\nPI"))
	_, err := c.Next()
	require.NoError(t, err)
	_, err = c.Next()
	require.Equal(t, io.ErrUnexpectedEOF, err)
	require.Equal(t, 1, c.Count)
	require.EqualValues(t, len("PING\r\n"), c.Consumed)

	c = NewCommandReader(strings.NewReader("PING\r\n*1\r\n+x\r\n"))
	_, err = c.Next()
	require.NoError(t, err)
	_, err = c.Next()
	require.ErrorContains(t, err, "command 2: Protocol error")

	failed := errors.New("the disk is broken")
	_, err = NewCommandReader(iotest.ErrReader(failed)).Next()
	require.Equal(t, failed, err)
}

func TestCloneArgs(t *testing.T) {
	args := [][]byte{[]byte("set"), {}, []byte("k")}
	clone := CloneArgs(args)
	require.Equal(t, args, clone)
	args[0][0] = 'x'
	require.Equal(t, "set", string(clone[0]))
	require.Equal(t, "setx", string(append(clone[0], 'x')))
	require.Equal(t, "k", string(clone[2]), "an argument that grows leaves the others alone")
}
