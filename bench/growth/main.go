// Growth measures operations on collections of growing size, through a server in this process, and prints the time of
// each. Operations that Redis documents as constant must stay flat; those documented as logarithmic may grow a little.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/atomredis/atomredis"
)

// operation is one row of the table.
type operation struct {
	name    string
	prepare func(p redis.Pipeliner, i int) // adds element i
	run     func(p redis.Pipeliner, n int) // on n elements
}

var ctx = context.Background()

var operations = []operation{
	{"XADD", addStream, func(p redis.Pipeliner, n int) { p.Do(ctx, "XADD", "k", "*", "f", "v") }},
	{"XRANGE of 10 from the middle", addStream, func(p redis.Pipeliner,
		n int) {
		p.Do(ctx, "XRANGE", "k", n/2, "+", "COUNT", 10)
	}},
	{"ZRANK", addZSet, func(p redis.Pipeliner, n int) { p.Do(ctx, "ZRANK", "k", member(rand.IntN(n))) }},
	{"ZRANGE of 10 by score", addZSet, func(p redis.Pipeliner, n int) {
		p.Do(ctx, "ZRANGE", "k", rand.IntN(n), "+inf", "BYSCORE", "LIMIT", 0, 10)
	}},
	{"LINDEX near the head", addList, func(p redis.Pipeliner, n int) { p.Do(ctx, "LINDEX", "k", 10) }},
	{"LINDEX near the tail", addList, func(p redis.Pipeliner, n int) { p.Do(ctx, "LINDEX", "k", -10) }},
	{"SPOP and SADD", func(p redis.Pipeliner, i int) { p.Do(ctx, "SADD", "k", member(i)) },
		func(p redis.Pipeliner, n int) {
			p.Do(ctx, "SPOP", "k")
			p.Do(ctx, "SADD", "k", member(rand.IntN(1<<30)))
		}},
	{"HSCAN of 10", func(p redis.Pipeliner, i int) { p.Do(ctx, "HSET", "k", member(i), "v") },
		func(p redis.Pipeliner, n int) {
			p.Do(ctx, "HSCAN", "k", rand.IntN(n)+1, "COUNT", 10)
		}},
}

func addStream(p redis.Pipeliner, i int) { p.Do(ctx, "XADD", "k", fmt.Sprint(i+1, "-1"), "f", "v") }
func addZSet(p redis.Pipeliner, i int)   { p.Do(ctx, "ZADD", "k", i, member(i)) }
func addList(p redis.Pipeliner, i int)   { p.Do(ctx, "RPUSH", "k", member(i)) }
func member(i int) string                { return "member:" + strconv.Itoa(i) }

func main() {
	sizes := flag.String("sizes", "1000,10000,100000,1000000", "numbers of elements")
	ops := flag.Int("ops", 50_000, "operations per measurement")
	flag.Parse()
	log.SetFlags(0)

	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	r := redis.NewClient(&redis.Options{Addr: db.Addr(), DisableIdentity: true})
	defer r.Close()

	columns := strings.Split(*sizes, ",")
	fmt.Printf("| µs per operation, elements: | %s |\n|---%s|\n", strings.Join(columns, " | "),
		strings.Repeat("|---:", len(columns)))
	for _, op := range operations {
		fmt.Printf("| %s |", op.name)
		for _, size := range columns {
			n, err := strconv.Atoi(size)
			if err != nil {
				log.Fatal(err)
			}
			if err := r.FlushAll(ctx).Err(); err != nil {
				log.Fatal(err)
			}
			inPipelines(r, n, func(p redis.Pipeliner, i int) { op.prepare(p, i) })
			best := time.Duration(1 << 62)
			for range 3 {
				best = min(best, inPipelines(r, *ops, func(p redis.Pipeliner, _ int) { op.run(p, n) }))
			}
			fmt.Printf(" %.2f |", best.Seconds()*1e6/float64(*ops))
		}
		fmt.Println()
	}
}

// inPipelines calls add for 0 to n-1 and sends the added commands, a thousand at a time. It returns the server's time,
// without the time to build the pipelines.
func inPipelines(r *redis.Client, n int, add func(p redis.Pipeliner, i int)) time.Duration {
	var took time.Duration
	for i := 0; i < n; {
		p := r.Pipeline()
		for end := min(i+1000, n); i < end; i++ {
			add(p, i)
		}
		begin := time.Now()
		if _, err := p.Exec(ctx); err != nil && err != redis.Nil {
			log.Fatal(err)
		}
		took += time.Since(begin)
	}
	return took
}
