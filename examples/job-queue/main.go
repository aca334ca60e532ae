// A job queue in one binary: the queue and the workers that execute its jobs. A job is a webhook, a text that is posted to
// a URL. Programs in any language add jobs with XADD. The queue is a stream with a consumer group. A job that fails, or
// whose worker dies, is tried again after a while; after some attempts it goes to the stream jobs:dead. With -dir no
// accepted job is lost, even in a power failure.
//
//	go run ./examples/job-queue -dir /tmp/jobs -retry 5s
//
//	redis-cli -p 6380 XADD jobs '*' url http://127.0.0.1:9 body hello      # nobody listens there
//	redis-cli -p 6380 XPENDING jobs workers - + 10
//	redis-cli -p 6380 XRANGE jobs:dead - +
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/atomredis/atomredis"
)

func main() {
	if err := start(); err != nil {
		slog.Error("the job queue has failed", "error", err)
		os.Exit(1)
	}
}

// start runs the program that the flags describe, until a signal.
func start() (err error) {
	addr := flag.String("redis", "127.0.0.1:6380", "`address` for clients")
	dir := flag.String("dir", "", "`directory` of the jobs; empty keeps them in memory")
	workers := flag.Int("workers", 4, "how many jobs are executed at a time")
	retry := flag.Duration("retry", 30*time.Second, "when a job is tried again; an attempt may take half as long")
	attempts := flag.Int64("attempts", 5, "how often a job is tried")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := atomredis.Open(atomredis.Options{
		Addr: *addr, Dir: *dir, Logger: slog.Default(),
		// A job is on disk before XADD replies. When the memory is used up, XADD fails, and no job is dropped.
		Config: map[string]string{"appendfsync": "always", "maxmemory": "256mb"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return run(ctx, &queue{db, *retry, *attempts}, *workers)
}

// run executes jobs until ctx ends or a worker fails. Jobs that are running then finish.
func run(ctx context.Context, q *queue, workers int) error {
	var exists atomredis.Error
	_, err := q.db.Do(ctx, "XGROUP", "CREATE", "jobs", "workers", 0, "MKSTREAM")
	if err != nil && !(errors.As(err, &exists) && exists.Code() == "BUSYGROUP") {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failures := make([]error, workers)
	var running sync.WaitGroup
	for i := range workers {
		running.Go(func() {
			defer stop()
			failures[i] = q.work(ctx, fmt.Sprint("worker", i))
		})
	}
	running.Wait()
	return errors.Join(failures...)
}

// job is a text for a URL.
type job struct {
	URL   string `redis:"url"`
	Body  string `redis:"body"`
	Error string `redis:"error,omitempty"` // why it is in jobs:dead
}

// queue has the jobs that are not done.
type queue struct {
	db       *atomredis.DB
	retry    time.Duration
	attempts int64
}

// work executes jobs, one at a time, until ctx ends.
func (q *queue) work(ctx context.Context, worker string) error {
	for {
		// One command waits for new jobs, and for those whose last attempt began q.retry ago.
		reply, err := q.db.Do(ctx, "XREADGROUP", "GROUP", "workers", worker, "COUNT", 1, "BLOCK", 0,
			"CLAIM", q.retry.Milliseconds(), "STREAMS", "jobs", ">")
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		var (
			entries   map[string][][]atomredis.Reply // of each stream: ID, fields, time since the last attempt, attempts
			id        string
			j         job
			delivered int64
		)
		if err := reply.Scan(&entries); err != nil {
			return err
		}
		entry := entries["jobs"][0]
		if err := errors.Join(entry[0].Scan(&id), entry[1].Scan(&j), entry[3].Scan(&delivered)); err != nil {
			return err
		}
		if err := q.execute(context.WithoutCancel(ctx), id, j, delivered); err != nil {
			return err
		}
	}
}

// execute tries a job that was delivered a number of times before. Its error is that of the queue.
func (q *queue) execute(ctx context.Context, id string, j job, delivered int64) error {
	err := errors.New("the worker died") // in the last attempt
	if delivered < q.attempts {
		limit, cancel := context.WithTimeout(ctx, q.retry/2)
		defer cancel()
		err = send(limit, j)
	}
	switch {
	case err == nil:
		_, err = q.db.Do(ctx, "XACKDEL", "jobs", "workers", "IDS", 1, id)
	case delivered+1 < q.attempts:
		slog.Warn("a job has failed and stays in the queue", "id", id, "error", err)
		return nil
	default:
		slog.Error("a job is given up", "id", id, "error", err)
		j.Error = err.Error()
		err = q.db.Tx(ctx, func(tx *atomredis.Tx) error {
			tx.Do("XADD", "jobs:dead", "*", j)
			tx.Do("XACKDEL", "jobs", "workers", "IDS", 1, id)
			return nil
		})
	}
	return err
}

func send(ctx context.Context, j job) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, j.URL, strings.NewReader(j.Body))
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	io.Copy(io.Discard, io.LimitReader(reply.Body, 1<<20)) // so that the connection can be used again
	if reply.StatusCode >= 300 {
		return errors.New(reply.Status)
	}
	return nil
}
