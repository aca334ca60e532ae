package pressure_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/pressure"
)

func TestJobs(t *testing.T) {
	client, stop := broker()
	defer stop()
	ctx := context.Background()
	q, err := pressure.Create(ctx, client, "jobs", 2, pressure.Options{Prefix: "p", Policy: pressure.Policy{Attempts: 2, Backoff: time.Hour}})
	require.NoError(t, err)
	at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	require.NoError(t, q.PutJob(ctx, []byte("later"), pressure.Job{At: at}))
	require.NoError(t, q.Put(ctx, []byte("now")))
	require.ErrorIs(t, q.WithTimeout(time.Millisecond).PutJob(ctx, []byte("full"), pressure.Job{Delay: time.Hour}), pressure.ErrTimeout)
	delayed, err := q.Peek(ctx, pressure.Delayed, 5)
	require.NoError(t, err)
	require.Len(t, delayed, 1)
	require.NotEmpty(t, delayed[0].ID)
	require.Equal(t, pressure.Message{ID: delayed[0].ID, Message: []byte("later"), At: at, Limit: 2}, delayed[0])

	job, err := q.Reserve(ctx, time.Minute)
	require.NoError(t, err)
	n, err := q.Extend(ctx, time.Hour, job.ID, "1-1")
	require.Equal(t, 1, n)
	require.NoError(t, err)
	reserved, err := q.Peek(ctx, pressure.Reserved, 5)
	require.NoError(t, err)
	require.Len(t, reserved, 1)
	require.True(t, reserved[0].At.After(time.Now().Add(time.Minute)))
	state, err := q.FailFor(ctx, job.ID, "first", 0)
	require.Equal(t, pressure.Ready, state)
	require.NoError(t, err)
	_, err = q.Fail(ctx, job.ID, "again")
	require.ErrorIs(t, err, pressure.ErrNotReserved)
	job, err = q.Reserve(ctx, time.Minute)
	require.NoError(t, err)
	state, err = q.Fail(ctx, job.ID, "second")
	require.Equal(t, pressure.Dead, state)
	require.NoError(t, err)
	info, err := q.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 1, 0}, []int64{info.Delayed, info.Dead, info.Schedules})

	n, err = q.Retry(ctx, job.ID)
	require.Equal(t, 1, n)
	require.NoError(t, err)
	for _, state := range []pressure.State{pressure.Ready, pressure.Delayed} {
		n, err = q.Purge(ctx, state)
		require.Equal(t, 1, n)
		require.NoError(t, err)
	}
	minutes, err := q.Stats(ctx, 60)
	require.NoError(t, err)
	require.Len(t, minutes, 60)
	sum := pressure.Minute{}
	for _, m := range minutes {
		sum.Put, sum.Taken, sum.Failed, sum.Dead = sum.Put+m.Put, sum.Taken+m.Taken, sum.Failed+m.Failed, sum.Dead+m.Dead
	}
	require.Equal(t, pressure.Minute{Put: 2, Taken: 2, Failed: 2, Dead: 1}, sum)

	_, err = q.Schedule(ctx, "bad", "often", nil)
	require.ErrorContains(t, err, "invalid cron expression")
	_, err = q.Schedule(ctx, "tick", "@daily", []byte("x"))
	require.NoError(t, err)
	schedules, err := q.Schedules(ctx)
	require.NoError(t, err)
	require.Equal(t, []pressure.Schedule{{Name: "tick", Cron: "@daily", Message: []byte("x"), Next: schedules[0].Next}}, schedules)
	n, err = q.Unschedule(ctx, "tick", "tock")
	require.Equal(t, 1, n)
	require.NoError(t, err)
}

func TestJobsNeedAtomredis(t *testing.T) {
	client, stop := broker()
	defer stop()
	ctx := context.Background()
	o := pressure.Options{OnlyRedisCommands: true}
	q, err := pressure.Create(ctx, client, "jobs", 2, o)
	require.NoError(t, err)
	require.ErrorIs(t, q.PutJob(ctx, []byte("x"), pressure.Job{}), errors.ErrUnsupported)
	_, err = q.RetryAll(ctx)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	o.Policy.Attempts = 1
	_, err = pressure.Create(ctx, client, "more", 2, o)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
