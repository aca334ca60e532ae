package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atomredistest"
	"github.com/atomredis/atomredis/memory"
)

// program is the running program, with a clock that the test moves.
type program struct {
	*atomredistest.Server
	stop func() // ends it as a signal does
}

func newServer(t *testing.T) *atomredistest.Server {
	return atomredistest.RunOptions(t, memory.Options{Addr: "127.0.0.1:0", Clock: atomredistest.NewClock(time.Now())})
}

func runProgram(t *testing.T, s *atomredistest.Server) *program {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, &queue{db: s.DB, retry: time.Minute, attempts: 3}, 2) }()
	stop := sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return &program{s, stop}
}

// receiver gets webhooks, and answers each with the next of the statuses.
func receiver(t *testing.T, statuses ...int) (address string, bodies chan string) {
	bodies = make(chan string, len(statuses))
	next := make(chan int, len(statuses))
	for _, status := range statuses {
		next <- status
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(<-next)
		bodies <- string(body)
	}))
	t.Cleanup(server.Close)
	return server.URL, bodies
}

// submit adds a job, as a program elsewhere does.
func (p *program) submit(t *testing.T, to string) {
	client := redis.NewClient(&redis.Options{Addr: p.Addr()})
	defer client.Close()
	values := map[string]any{"url": to, "body": "hello"}
	require.NoError(t, client.XAdd(t.Context(), &redis.XAddArgs{Stream: "jobs", Values: values}).Err())
}

func TestAJobThatFailsIsTriedAgain(t *testing.T) {
	p := runProgram(t, newServer(t))
	to, bodies := receiver(t, 503, 500, 200)
	p.submit(t, to)
	for range 2 {
		require.Equal(t, "hello", <-bodies)
		p.FastForward(time.Minute)
	}
	require.Equal(t, "hello", <-bodies)
	p.stop() // lets the worker finish
	p.CheckKeys(t, map[string]any{"jobs": []atomredistest.Entry{}})
}

func TestAJobThatAlwaysFailsIsGivenUp(t *testing.T) {
	p := runProgram(t, newServer(t))
	to, bodies := receiver(t, 500, 500, 404)
	p.submit(t, to)
	for range 2 {
		require.Equal(t, "hello", <-bodies)
		p.FastForward(time.Minute)
	}
	require.Equal(t, "hello", <-bodies)
	p.MustDo(t, "XREAD", "BLOCK", 0, "STREAMS", "jobs:dead", 0)
	p.CheckKeys(t, map[string]any{
		"jobs": []atomredistest.Entry{},
		"jobs:dead": []atomredistest.Entry{{
			ID:     fmt.Sprintf("%d-0", p.Now().UnixMilli()),
			Fields: []string{"url", to, "body", "hello", "error", "404 Not Found"},
		}},
	})
}

// A worker of a program that was killed has left a job behind.
func TestAJobOfADeadWorkerIsTriedAgain(t *testing.T) {
	s := newServer(t)
	to, bodies := receiver(t, 200)
	s.MustDo(t, "XADD", "jobs", "*", job{URL: to, Body: "hello"})
	s.MustDo(t, "XGROUP", "CREATE", "jobs", "workers", 0)
	s.MustDo(t, "XREADGROUP", "GROUP", "workers", "dead", "STREAMS", "jobs", ">")
	p := runProgram(t, s)
	p.FastForward(time.Minute)
	require.Equal(t, "hello", <-bodies)
	p.stop()
	p.CheckKeys(t, map[string]any{"jobs": []atomredistest.Entry{}})
}

func TestAQueueThatFailsEndsTheProgram(t *testing.T) {
	s := newServer(t)
	s.FailNext(1, "XREADGROUP", "LOADING the data set")
	err := run(t.Context(), &queue{db: s.DB, retry: time.Minute, attempts: 3}, 2)
	require.ErrorContains(t, err, "LOADING")
}
