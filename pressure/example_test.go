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
