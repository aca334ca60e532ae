package pressure_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/pressure"
)

// broker starts a server for an example. A program would connect a client to its own server.
func broker() (client *redis.Client, stop func()) {
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	client = redis.NewClient(&redis.Options{Addr: db.Addr()})
	return client, func() {
		client.Close()
		db.Close()
	}
}

func Example() {
	client, stop := broker()
	defer stop()
	ctx := context.Background()

	frames, err := pressure.Create(ctx, client, "frames", 10, pressure.Options{})
	if err != nil {
		log.Fatal(err)
	}
	produced := make(chan struct{})
	go func() {
		defer close(produced)
		for i := range 25 {
			if err := frames.Put(ctx, fmt.Appendf(nil, "frame %d", i)); err != nil {
				log.Fatal(err)
			}
		}
		if err := frames.Close(ctx); err != nil {
			log.Fatal(err)
		}
	}()

	// The consumer is usually another program.
	queue, err := pressure.Open(ctx, client, "frames", pressure.Options{})
	if err != nil {
		log.Fatal(err)
	}
	n := 0
	for frame, err := range queue.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		n++
		if n == 25 {
			fmt.Println(string(frame))
		}
	}
	fmt.Println(n, "frames")

	<-produced // the client is closed at the end
	if err := queue.Delete(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// frame 24
	// 25 frames
}

func ExampleQueue_WithTimeout() {
	client, stop := broker()
	defer stop()
	ctx := context.Background()
	queue, err := pressure.Create(ctx, client, "frames", 1, pressure.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := queue.Put(ctx, []byte("one")); err != nil {
		log.Fatal(err)
	}

	err = queue.WithTimeout(20*time.Millisecond).Put(ctx, []byte("two"))
	fmt.Println(errors.Is(err, pressure.ErrTimeout))
	// Output: true
}

func ExampleQueue_PutAll() {
	client, stop := broker()
	defer stop()
	ctx := context.Background()
	queue, err := pressure.Create(ctx, client, "lines", 0, pressure.Options{})
	if err != nil {
		log.Fatal(err)
	}

	n, err := queue.PutAll(ctx, []byte("one"), []byte("two"), []byte("three"))
	if err != nil {
		log.Fatal(err) // n of them are in the queue
	}
	lines, err := queue.GetN(ctx, 100) // waits for the first line, and takes up to 100
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, len(lines))
	// Output: 3 3
}

func ExampleQueue_Reserve() {
	client, stop := broker()
	defer stop()
	ctx := context.Background()
	queue, err := pressure.Create(ctx, client, "jobs", 0, pressure.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := queue.Put(ctx, []byte("a job")); err != nil {
		log.Fatal(err)
	}
	work := func(job []byte) error { return nil }

	job, err := queue.Reserve(ctx, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	if err := work(job.Message); err == nil {
		done, err := queue.Ack(ctx, job.ID)
		fmt.Println(done, err)
	}
	// Output: 1 <nil>
}

// A queue inside the program, without any socket.
func ExampleEmbeddedClient() {
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	client := pressure.EmbeddedClient(db)
	defer client.Close()
	ctx := context.Background()

	jobs, err := pressure.Create(ctx, client, "jobs", 1, pressure.Options{})
	if err != nil {
		log.Fatal(err)
	}
	produced := make(chan struct{})
	go func() {
		defer close(produced)
		for i := range 3 {
			if err := jobs.Put(ctx, fmt.Append(nil, "job ", i)); err != nil {
				log.Fatal(err)
			}
		}
		if err := jobs.Close(ctx); err != nil {
			log.Fatal(err)
		}
	}()
	for job, err := range jobs.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(job))
	}
	<-produced // the client is closed at the end
	// Output:
	// job 0
	// job 1
	// job 2
}

// Jobs that are tried again, and kept when they have failed for good.
func ExampleQueue_PutJob() {
	client, stop := broker()
	defer stop()
	ctx := context.Background()
	jobs, err := pressure.Create(ctx, client, "mails", 0, pressure.Options{Policy: pressure.Policy{Attempts: 3}})
	if err != nil {
		log.Fatal(err)
	}

	// An hour from now, at most twice, and only once a day for this customer:
	err = jobs.PutJob(ctx, []byte("reminder 17"), pressure.Job{Delay: time.Hour, Policy: pressure.Policy{Attempts: 2},
		Key: "customer 17", Within: 24 * time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	err = jobs.PutJob(ctx, []byte("reminder 17"), pressure.Job{Key: "customer 17", Within: 24 * time.Hour})
	fmt.Println(errors.Is(err, pressure.ErrDuplicate))

	err = jobs.Put(ctx, []byte("newsletter 12"))
	if err != nil {
		log.Fatal(err)
	}
	err = jobs.PutJob(ctx, []byte("password 4"), pressure.Job{Priority: 9, Policy: pressure.Policy{Attempts: 1}})
	if err != nil {
		log.Fatal(err)
	}
	job, err := jobs.Reserve(ctx, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	state, err := jobs.Fail(ctx, job.ID, "no such address")
	fmt.Println(state, err)

	dead, err := jobs.Peek(ctx, pressure.Dead, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range dead {
		fmt.Printf("%s: %s after %d attempt\n", m.Message, m.Reason, m.Attempts)
	}
	n, err := jobs.RetryAll(ctx) // when the address has been corrected
	fmt.Println(n, err)
	// Output:
	// true
	// DEAD <nil>
	// password 4: no such address after 1 attempt
	// 1 <nil>
}

// A message at half past six on each working day in Sofia.
func ExampleQueue_Schedule() {
	client, stop := broker()
	defer stop()
	ctx := context.Background()
	reports, err := pressure.Create(ctx, client, "reports", 0, pressure.Options{})
	if err != nil {
		log.Fatal(err)
	}

	next, err := reports.Schedule(ctx, "daily", "CRON_TZ=Europe/Sofia 30 6 * * 1-5", []byte("write the report"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(next.After(time.Now()))
	schedules, err := reports.Schedules(ctx)
	fmt.Println(len(schedules), schedules[0].Name, err)
	n, err := reports.Unschedule(ctx, "daily")
	fmt.Println(n, err)
	// Output:
	// true
	// 1 daily <nil>
	// 1 <nil>
}
