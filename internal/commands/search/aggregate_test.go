package search_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/server"
)

// The rows of a cursor are loaded when it is read. A document that is gone has no row, and a changed one has its new
// values, whether the values are read from the index (g, n) or from the hash (t).
func TestCursorsReadDocumentsAsTheyAre(t *testing.T) {
	for _, loaded := range []string{"2 @g @n", "3 @g @n @t"} {
		c := servertest.Start(t, server.Options{}).Connect()
		require.Equal(t, "+OK", c.Line("FT.CREATE x SCHEMA g TAG n NUMERIC t TEXT"))
		for _, key := range []string{"a", "b", "c", "d"} {
			require.Equal(t, "3", c.Line("HSET "+key+" g "+key+" n 1 t word"))
		}
		first := c.Line("FT.AGGREGATE x * LOAD " + loaded + " WITHCURSOR COUNT 1")
		require.Contains(t, first, `"g" "a" "n" "1"`)
		cursor := strings.TrimSuffix(first[strings.LastIndex(first, " ")+1:], "]")
		c.Line("DEL b")
		c.Line("HSET c n 5")
		rest := c.Line("FT.CURSOR READ x " + cursor + " COUNT 10")
		require.NotContains(t, rest, `"g" "b"`, loaded)
		require.Contains(t, rest, `"g" "c" "n" "5"`, loaded)
		require.Contains(t, rest, `"g" "d" "n" "1"`, loaded)
	}
}
