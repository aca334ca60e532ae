package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/session"
)

func TestImportSourcesSeeKeysThatHaveExpired(t *testing.T) {
	b := newHarness(t)
	source, other := b.session(), b.session()
	do := func(s *session.Session, words ...string) string { return b.feed(s, request(words...)) }
	require.Equal(t, "-ERR Server is not in import mode\r\n", do(source, "CLIENT", "IMPORT-SOURCE", "ON"))
	require.Equal(t, "+OK\r\n", do(source, "CONFIG", "SET", "import-mode", "yes"))
	require.Equal(t, "+OK\r\n", do(source, "CLIENT", "IMPORT-SOURCE", "ON"))
	require.Contains(t, do(source, "CLIENT", "INFO"), " flags=I ")
	do(source, "SET", "n", "1", "PX", "10")
	do(source, "SET", "m", "1", "PX", "10")
	do(source, "HSET", "h", "a", "1", "b", "2")
	do(source, "HPEXPIRE", "h", "10", "FIELDS", "1", "a")
	b.clock.Advance(time.Second)
	require.Equal(t, ":2\r\n", do(source, "INCR", "n"), "it has not expired for its source")
	require.Equal(t, "$1\r\n1\r\n", do(source, "HGET", "h", "a"))
	require.Equal(t, "$-1\r\n", do(other, "GET", "m"), "it has for others")
	require.Equal(t, "+OK\r\n", do(source, "SET", "late", "1"))
	require.Equal(t, ":1\r\n", do(source, "PEXPIREAT", "late", "1"), "a deadline of the other server has passed here")
	require.Equal(t, ":2\r\n", do(source, "INCR", "late"))

	require.Equal(t, "+OK\r\n", do(other, "CONFIG", "SET", "import-mode", "no"))
	require.Equal(t, "$-1\r\n", do(source, "GET", "n"))
	require.Equal(t, "$-1\r\n", do(source, "GET", "late"))
	b.finish(t, source)
	b.finish(t, other)
}
