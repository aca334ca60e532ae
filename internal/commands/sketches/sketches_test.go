package sketches_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/servertest"
)

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "sketches") }

// A filter that an item has left is the same as one that never had it: a copy made of chunks has no pages of zeros.
func TestADigestIgnoresPagesOfZeros(t *testing.T) {
	b := servertest.NewStepped(t, "enable-debug-command", "yes")
	defer b.Finish()
	for _, args := range [][]string{{"CF.RESERVE", "a", "100000"}, {"CF.ADD", "a", "stays"}, {"CF.ADD", "a", "x"}, {"CF.DEL", "a", "x"}} {
		require.NotContains(t, b.Send("c", args...), "-ERR")
	}
	for at := "0"; ; {
		next, chunk, _ := strings.Cut(strings.TrimPrefix(b.Send("c", "CF.SCANDUMP", "a", at), "*2\r\n:"), "\r\n$")
		if at = next; at == "0" {
			break
		}
		_, chunk, _ = strings.Cut(chunk, "\r\n")
		if chunk = strings.TrimSuffix(chunk, "\r\n"); strings.Trim(chunk, "\x00") != "" {
			require.Equal(t, "+OK\r\n", b.Send("c", "CF.LOADCHUNK", "b", at, chunk))
		}
	}
	require.Equal(t, b.Send("c", "DEBUG", "DIGEST-VALUE", "a"), b.Send("c", "DEBUG", "DIGEST-VALUE", "b"))
}
