package console

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/resp"
)

// Any reply becomes valid JSON on one line.
func FuzzReplies(f *testing.F) {
	for _, raw := range []string{"+OK\r\n", "$3\r\n\x00\xff\"\r\n", "*2\r\n:1\r\n_\r\n", "%1\r\n+a\r\n,1.5\r\n", "-ERR \"no\"\r\n", "=7\r\ntxt:a\nb\r\n",
		"#t\r\n", "(123\r\n", "~1\r\n*1\r\n$0\r\n\r\n", "*2\r\n+requirepass\r\n+x\r\n", "*2\r\n+passwords\r\n*1\r\n_\r\n", ":9007199254740993\r\n"} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, _, err := resp.NextReply(raw)
		if err != nil {
			return
		}
		out := appendReply(nil, r)
		require.True(t, json.Valid(out), "%q is %q", raw, out)
		require.NotContains(t, string(out), "\n")
	})
}

// Any bytes survive the conversion.
func FuzzBinary(f *testing.F) {
	f.Add([]byte("a\x00\xff\"\\\u2028"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text, err := json.Marshal(binary(b))
		require.NoError(t, err)
		var back binary
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, string(b), string(back))
	})
}
