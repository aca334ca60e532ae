package keys

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/commandtest"
)

func TestTTLRoundsToTheNearestSecond(t *testing.T) {
	b := commandtest.New(t)
	e := b.G.CreateString(0, []byte("key"), nil)
	for at, want := range map[int64][4]string{ // TTL, PTTL, EXPIRETIME, PEXPIRETIME at the time 1000000
		0:         {":-1\r\n", ":-1\r\n", ":-1\r\n", ":-1\r\n"},
		1_000_001: {":0\r\n", ":1\r\n", ":1000\r\n", ":1000001\r\n"},
		1_000_499: {":0\r\n", ":499\r\n", ":1000\r\n", ":1000499\r\n"},
		1_000_500: {":1\r\n", ":500\r\n", ":1001\r\n", ":1000500\r\n"},
		math.MaxInt64: {":9223372036853776\r\n", ":9223372036853775807\r\n", ":9223372036854776\r\n",
			":9223372036854775807\r\n"},
	} {
		b.G.SetDeadline(e, at)
		for i, name := range []string{"ttl", "pttl", "expiretime", "pexpiretime"} {
			require.Equal(t, want[i], b.Call(commandtest.Named(t, name), name, "key"), "%s %d", name, at)
			require.Equal(t, ":-2\r\n", b.Call(commandtest.Named(t, name), name, "none"))
		}
	}
}

func TestLookingAtAKeyTouchesItOnlyWhereItShould(t *testing.T) {
	for name, touches := range map[string]bool{"exists": false, "type": false, "ttl": false, "touch": true} {
		b := commandtest.New(t)
		ks := b.G.Keyspace()
		e := b.G.CreateString(0, []byte("key"), nil)
		before := e.Access()
		b.G.Unlock()
		b.G.Lock(ks, 1, 9_000_000)
		b.G.NoTouch = touches // the command decides, not the client
		b.Call(commandtest.Named(t, name), name, "key")
		require.Equal(t, touches, e.Access() != before, name)
		require.Equal(t, touches, b.G.NoTouch, name)
	}
}

func TestAnExpiredTimeDeletesTheKey(t *testing.T) {
	for _, words := range [][]string{
		{"expire", "key", "0"}, {"expire", "key", "-1"}, {"pexpire", "key", "-9223372036854775808"},
		{"expireat", "key", "1000"},
		{"pexpireat", "key", "1000000"}, {"pexpireat", "key", "0", "LT"},
	} {
		b := commandtest.New(t)
		b.G.CreateString(0, []byte("key"), nil)
		require.Equal(t, ":1\r\n", b.Call(commandtest.Named(t, words[0]), words...), words)
		require.Nil(t, b.G.Peek(0, []byte("key")), words)
	}
}

func TestTheLargestTimeToLiveSurvivesARoundTrip(t *testing.T) {
	b := commandtest.New(t)
	b.G.CreateString(0, []byte("key"), nil)
	require.Equal(t, ":1\r\n", b.Call(commandtest.Named(t, "pexpireat"), "pexpireat", "key", "9223372036854775807"))
	require.Equal(t, int64(math.MaxInt64), b.G.Peek(0, []byte("key")).Deadline())
}
