package atom_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atom"
)

func TestDeadElementsAreFound(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		watcher := element(t, r, "watcher")
		dead, err := watcher.DeadElements(ctx)
		require.NoError(t, err)
		require.Empty(t, dead)
		lives, err := atom.New(ctx, r, "lives", atom.Options{Heartbeat: time.Hour})
		require.NoError(t, err)
		killed, err := atom.New(ctx, r, "killed", atom.Options{Heartbeat: time.Hour})
		require.NoError(t, err)
		dead, err = watcher.DeadElements(ctx)
		require.NoError(t, err)
		require.Empty(t, dead)
		require.Positive(t, r.PTTL(ctx, "heartbeat:killed").Val())
		require.NoError(t, r.Del(ctx, "heartbeat:killed").Err()) // as its expiry does
		dead, err = watcher.DeadElements(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"killed"}, dead)
		require.NoError(t, lives.Close(ctx))
		require.NoError(t, killed.Close(ctx))
		require.Zero(t, r.Exists(ctx, "heartbeats", "heartbeat:lives", "heartbeat:killed").Val())
	})
}

// A heartbeat comes again and again.
func TestHeartbeatsAreRepeated(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		e, err := atom.New(ctx, r, "lives", atom.Options{Heartbeat: 5 * time.Millisecond})
		require.NoError(t, err)
		require.NoError(t, r.Del(ctx, "heartbeats").Err())
		require.Eventually(t, func() bool { return r.SIsMember(ctx, "heartbeats", "lives").Val() }, time.Minute, time.Millisecond)
		require.NoError(t, e.Close(ctx))
	})
}

// A handler that hangs neither keeps its caller nor the loop.
func TestAHangingCommandIsReleased(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		server, caller := element(t, r, "server"), element(t, r, "caller")
		release, ended := make(chan struct{}), make(chan error, 1)
		defer close(release)
		hang := func(ctx context.Context, _ *atom.Request) (any, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			<-release
			return "too late", nil
		}
		o := atom.CommandOptions{Deadline: 10 * time.Millisecond, Timeout: time.Minute}
		require.NoError(t, server.CommandAdd("hang", hang, o))
		o.Deadline = time.Minute
		require.NoError(t, server.CommandAdd("echo", echo, o))
		o.Deadline = -1
		require.ErrorIs(t, server.CommandAdd("odd", echo, o), atom.InternalError)
		go server.CommandLoop(ctx, atom.CommandLoopOptions{})
		response, err := caller.CommandSend(ctx, "server", "hang", "x", atom.SendOptions{AckTimeout: long})
		require.ErrorIs(t, err, atom.DeadlinePassed)
		require.Equal(t, atom.DeadlinePassed, response.Code)
		require.Empty(t, response.Data.Bytes)
		require.ErrorIs(t, <-ended, context.DeadlineExceeded)
		response, err = caller.CommandSend(ctx, "server", "echo", "still there", atom.SendOptions{AckTimeout: long})
		require.NoError(t, err)
		require.Equal(t, "still there", response.Data.String())
	})
}
