package keys

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/version"
)

func TestLolwutDrawsPicturesOfAnySize(t *testing.T) {
	b := commandtest.New(t)
	lolwut := commandtest.Named(t, "lolwut")
	for _, size := range [][2]int{{1, 1}, {1, 9}, {9, 1}, {2, 2}, {41, 15}, {lolwutMaxColumns, lolwutMaxRows}} {
		picture := drawAtom(size[0], size[1])
		lines := strings.Split(strings.TrimSuffix(picture, "\n"), "\n")
		require.Len(t, lines, size[1])
		for _, line := range lines {
			require.LessOrEqual(t, len(line), size[0])
		}
		require.Contains(t, picture, "@")
	}
	tallest := drawAtom(1, lolwutMaxRows)
	for _, words := range [][]string{{"lolwut", "-5", "9223372036854775807"},
		{"lolwut", "version", "6", "0", "999", "7"}} {
		require.Contains(t, b.Call(lolwut, words...), tallest+"\natomredis ver. "+version.Number, words)
	}
	require.Equal(t, "-"+string(command.ErrNotInteger)+"\r\n", b.Call(lolwut, "lolwut", "version"))
}

func TestFlushAndSwapChangeWhatTheyName(t *testing.T) {
	b := commandtest.New(t)
	for db := range 3 {
		b.G.CreateString(db, []byte("key"), nil)
	}
	b.DB = 1
	require.Equal(t, "-"+string(command.ErrSyntax)+"\r\n",
		b.Call(commandtest.Named(t, "flushdb"), "flushdb", "sync", "async"))
	require.Equal(t, "+OK\r\n", b.Call(commandtest.Named(t, "flushdb"), "flushdb", "SYNC"))
	require.Equal(t, [3]int{1, 0, 1}, [3]int{b.G.Len(0), b.G.Len(1), b.G.Len(2)})
	require.Equal(t, "+OK\r\n", b.Call(commandtest.Named(t, "flushall"), "flushall"))
	require.Equal(t, [3]int{0, 0, 0}, [3]int{b.G.Len(0), b.G.Len(1), b.G.Len(2)})
	require.Equal(t, "-"+string(errSecondDB)+"\r\n", b.Call(commandtest.Named(t, "swapdb"), "swapdb", "0", "5000000000"))
}
