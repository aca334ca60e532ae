package lists

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/commandtest"
)

func TestListUsedAsQueueDoesNotAllocate(t *testing.T) {
	b := commandtest.New(t)
	for range 2000 { // several nodes
		b.Call(commandtest.Named(t, "rpush"), "rpush", "key", "0123456789")
	}
	for _, pair := range [][2]string{{"lpush", "rpop"}, {"rpush", "lpop"}} {
		push, pop := commandtest.Named(t, pair[0]), commandtest.Named(t, pair[1])
		pushArgs := [][]byte{[]byte(pair[0]), []byte("key"), []byte("0123456789")}
		popArgs := [][]byte{[]byte(pair[1]), []byte("key")}
		require.Zero(t, testing.AllocsPerRun(100, func() {
			b.Out.Buf = b.Out.Buf[:0]
			b.Args = pushArgs
			push.Do(&b.Ctx)
			b.Args = popArgs
			pop.Do(&b.Ctx)
		}), "%s and %s", pair[0], pair[1])
		require.Equal(t, ":2001\r\n$10\r\n0123456789\r\n", string(b.Out.Buf), "%s and %s", pair[0], pair[1])
	}
}
