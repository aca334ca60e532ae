package atom_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atom"
)

func TestElementInitialization(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		rec := record(r)
		element(t, r, "camera")
		require.Equal(t, []string{
			"MULTI",
			"INCRBY command_consumer_group_counter:camera 1",
			"XADD response:camera maxlen ~ 1024 * language Go version 1.0.0",
			"XADD command:camera maxlen ~ 1024 * language Go version 1.0.0",
			"EXEC",
		}, rec.take()[:5])
		for _, key := range []string{"response:camera", "command:camera"} {
			first := r.XRange(t.Context(), key, "-", "+").Val()
			require.Len(t, first, 1)
			require.Equal(t, map[string]any{"language": "Go", "version": "1.0.0"}, first[0].Values)
		}
		_, err := atom.New(t.Context(), r, "", atom.Options{})
		require.ErrorIs(t, err, atom.InternalError)
	})
}

func TestElementCleanup(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		for _, name := range append(strange, "camera") {
			e, err := atom.New(ctx, r, name, atom.Options{})
			require.NoError(t, err)
			for _, stream := range append(strange, "frames") {
				_, err := e.EntryWrite(ctx, stream, map[string]any{"x": 1}, atom.WriteOptions{})
				require.NoError(t, err)
			}
			require.NoError(t, e.Close(ctx))
			require.NoError(t, e.Close(ctx), "twice")
			require.Empty(t, r.Keys(ctx, "*").Val())
			_, err = e.EntryWrite(ctx, "frames", map[string]any{"x": 1}, atom.WriteOptions{})
			require.ErrorIs(t, err, atom.ErrClosed)
			_, err = e.CommandSend(ctx, "camera", "snap", nil, atom.SendOptions{})
			require.ErrorIs(t, err, atom.ErrClosed)
			require.ErrorIs(t, e.CommandLoop(ctx, atom.CommandLoopOptions{}), atom.ErrClosed)
			require.Empty(t, r.Keys(ctx, "*").Val())
		}
	})
}

// command_consumer_group_counter:<element> is the number of Element objects with this name.
func TestElementsOfOneNameAreCountedAndTheLastCleansUp(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		pythonPeer(t, r, "twin")
		e, err := atom.New(ctx, r, "twin", atom.Options{})
		require.NoError(t, err)
		require.Equal(t, "2", r.Get(ctx, "command_consumer_group_counter:twin").Val())
		require.NoError(t, e.Close(ctx))
		require.Equal(t, "1", r.Get(ctx, "command_consumer_group_counter:twin").Val())
		require.EqualValues(t, 2, r.Exists(ctx, "command:twin", "response:twin").Val())

		e, err = atom.New(ctx, r, "twin", atom.Options{})
		require.NoError(t, err)
		require.EqualValues(t, 1, r.Decr(ctx, "command_consumer_group_counter:twin").Val(), "the Python element goes")
		require.NoError(t, e.Close(ctx))
		require.Empty(t, r.Keys(ctx, "*").Val())
	})
}

func TestCloseAfterTheServerWasFlushed(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		e, err := atom.New(t.Context(), r, "camera", atom.Options{})
		require.NoError(t, err)
		require.NoError(t, r.FlushAll(t.Context()).Err())
		require.NoError(t, e.Close(t.Context()))
		require.Empty(t, r.Keys(t.Context(), "*").Val())
	})
}

func TestCloseEndsLoopsAndWaitsForHandlers(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		caller := element(t, r, "caller")
		e, err := atom.New(ctx, r, "camera", atom.Options{})
		require.NoError(t, err)
		began, finish := make(chan struct{}), make(chan struct{})
		require.NoError(t, e.CommandAdd("snap", func(ctx context.Context, _ *atom.Request) (any, error) {
			close(began)
			<-ctx.Done()
			<-finish
			return "done", nil
		}, atom.CommandOptions{Timeout: long}))
		loops := make(chan error, 3)
		go func() { loops <- e.CommandLoop(ctx, atom.CommandLoopOptions{Workers: 2}) }()
		go func() {
			loops <- e.EntryReadLoop(ctx, []atom.StreamHandler{{Element: "x", Stream: "y",
				Handle: func(context.Context, atom.Entry) error { return nil }}}, atom.ReadLoopOptions{})
		}()
		go func() {
			_, err := e.FIFOQueue("q", atom.QueueOptions{}).Get(ctx, -1)
			loops <- err
		}()
		answer := make(chan string, 1)
		go func() {
			response, err := caller.CommandSend(ctx, "camera", "snap", nil, atom.SendOptions{AckTimeout: long})
			if err == nil {
				answer <- response.Data.String()
			} else {
				answer <- err.Error()
			}
		}()
		<-began
		soon, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		require.ErrorIs(t, e.Close(soon), context.DeadlineExceeded, "the handler still runs")
		close(finish)
		require.NoError(t, e.Close(ctx))
		require.Equal(t, "done", <-answer)
		for range 3 {
			require.ErrorIs(t, <-loops, atom.ErrClosed)
		}
	})
}

func TestErrorsOfTheServerHaveTheirCode(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		e := element(t, r, "camera")
		require.NoError(t, r.Set(ctx, "stream:camera:taken", "x", 0).Err())
		_, err := e.EntryWrite(ctx, "taken", map[string]any{"x": 1}, atom.WriteOptions{})
		require.ErrorIs(t, err, atom.RedisError)
		require.ErrorContains(t, err, "WRONGTYPE")
		require.ErrorContains(t, err, "taken")
		_, err = e.EntryReadSince(ctx, "camera", "s", atom.ReadOptions{After: "nonsense"})
		require.ErrorIs(t, err, atom.RedisError)
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		_, err = e.EntryWrite(canceled, "s", map[string]any{"x": 1}, atom.WriteOptions{})
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, atom.RedisError)

		gone := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
		defer gone.Close()
		_, err = atom.New(ctx, gone, "camera", atom.Options{})
		require.ErrorIs(t, err, atom.RedisError)
	})
}

// The codes are those of the specification.
func TestErrorCodes(t *testing.T) {
	for code, want := range map[atom.Code]int{
		atom.NoError: 0, atom.InternalError: 1, atom.RedisError: 2, atom.NoAck: 3, atom.NoResponse: 4, atom.InvalidCommand: 5,
		atom.UnsupportedCommand: 6, atom.CallbackFailed: 7, atom.SerializationError: 8, atom.DeserializationError: 9,
		atom.DeadlinePassed: 10, atom.UserErrors: 1000,
	} {
		require.EqualValues(t, want, code)
		require.NotEmpty(t, code.Error())
	}
	n, ok := atom.Code(1003).User()
	require.True(t, ok)
	require.Equal(t, 3, n)
	_, ok = atom.Code(7).User()
	require.False(t, ok)
	require.Equal(t, "user error 3", atom.Code(1003).Error())
	require.Equal(t, "error 150", atom.Code(150).Error())
}
