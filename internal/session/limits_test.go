package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutputLimits(t *testing.T) {
	b := newHarnessWith(t, "client-output-buffer-limit", "normal 1000 100 5 pubsub 50 0 0")
	now := b.Keyspace.Now()
	c := b.session()
	require.False(t, c.overLimit(1000))
	require.True(t, c.overLimit(1001))
	c.Input(request("SUBSCRIBE", "x"), now)
	c.SetOutput(nil)
	require.True(t, c.overLimit(51), "subscribers have limits of their own")
	c.Input(request("UNSUBSCRIBE"), now)
	c.SetOutput(nil)
	require.False(t, c.overLimit(51))

	c.SetOutput(make([]byte, 101))
	require.False(t, c.Expired(now))
	require.False(t, c.Expired(now+5000))
	require.True(t, c.Expired(now+5001))
	c.SetOutput(make([]byte, 100))
	require.False(t, c.Expired(now+6000))
	c.SetOutput(make([]byte, 101))
	require.False(t, c.Expired(now+7000), "it is counted anew")
	require.False(t, c.Expired(now+12000))
	c.SetOutput(make([]byte, 1001))
	require.True(t, c.overLimit(0))
	c.Kill()
	require.False(t, c.overLimit(0), "it is being closed already")
	b.finish(t, c)
}
