package atom_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atom"
)

// BenchmarkCommands measures commands between two elements on atomredis. With the commands of Redis all callers share
// one reader of the response stream; ATOM.CALL needs none.
func BenchmarkCommands(b *testing.B) {
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
	require.NoError(b, err)
	defer db.Close()
	ctx := b.Context()
	open := func(name string, o atom.Options) (e *atom.Element, end func()) {
		r := redis.NewClient(&redis.Options{Addr: db.Addr(), PoolSize: 200})
		e, err := atom.New(ctx, r, name, o)
		require.NoError(b, err)
		return e, func() {
			e.Close(context.Background())
			r.Close()
		}
	}
	for _, callers := range []int{1, 50} {
		for _, way := range []string{"Redis", "atomredis"} {
			b.Run(fmt.Sprintf("%s/callers=%d", way, callers), func(b *testing.B) {
				o := atom.Options{OnlyRedisCommands: way == "Redis"}
				server, end := open("server", o)
				defer end()
				require.NoError(b, server.CommandAdd("echo", echo, atom.CommandOptions{}))
				go server.CommandLoop(ctx, atom.CommandLoopOptions{Workers: 4})
				caller, end := open("caller", o)
				defer end()
				var wg sync.WaitGroup
				for i := range callers {
					wg.Go(func() {
						for n := i; n < b.N; n += callers {
							if _, err := caller.CommandSend(ctx, "server", "echo", "x", atom.SendOptions{}); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}
