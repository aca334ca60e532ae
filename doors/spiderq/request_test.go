package spiderq

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Any frame is a request or is refused, and a request refers only to its frame.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{"\x0b", "\x02\x00\x00\x00\x01a\x00\x00\x00\x01b\x01", "\x04\x00\x00\x00\x00\x00\x00\x00\x01\x02",
		"\x05\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01a\x00\x00\x00\x01b\x04", "\x0c\xff\xff\xff\xff"} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, frame []byte, newer bool) {
		v := version12
		if newer {
			v = version14
		}
		r, refusal := parseRequest(frame, v)
		if refusal != nil {
			require.Equal(t, byte(tagError), refusal[0])
			return
		}
		require.LessOrEqual(t, len(r.key)+len(r.value), len(frame))
		require.Equal(t, len(r.key), cap(r.key))
		if r.tag == tagRepay {
			require.Less(t, int(r.status), len(statuses))
			require.NotEmpty(t, statuses[r.status])
		}
	})
}
