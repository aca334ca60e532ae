package server

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Commands with more keys than are prefetched before they run prefetch the others while they run.
func TestCommandsOfManyKeys(t *testing.T) {
	b := newHarness(t)
	defer b.Close()
	s := b.session()
	defer s.Close()
	do := func(args ...string) string {
		s.Input(request(args...), b.ks.Now())
		out := string(s.Output())
		s.SetOutput(nil)
		return out
	}
	const keys = 4001 // each shard has enough of them to be prefetched
	pairs, names, want := []string{"MSET"}, []string(nil), fmt.Sprintf("*%d\r\n", keys+1)
	for i := range keys {
		n := strconv.Itoa(i)
		pairs, names = append(pairs, "key"+n, n), append(names, "key"+n)
		want += fmt.Sprintf("$%d\r\n%s\r\n", len(n), n)
	}
	names = append(names, "none")
	require.Equal(t, "+OK\r\n", do(pairs...))
	require.Equal(t, want+"$-1\r\n", do(append([]string{"MGET"}, names...)...))
	require.Equal(t, ":0\r\n", do(append([]string{"MSETNX", "new", "1"}, pairs[1:]...)...))
	require.Equal(t, ":4001\r\n", do(append([]string{"EXISTS"}, names...)...))
	require.Equal(t, ":4001\r\n", do(append([]string{"DEL"}, names...)...))
	require.Equal(t, ":1\r\n", do(append([]string{"MSETNX", "new", "1"}, pairs[1:]...)...))
	require.Equal(t, ":4002\r\n", do("DBSIZE"))
}
