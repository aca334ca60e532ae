// Restart measures how long servers with many keys take from the start of the process to the first value read and to
// the number of keys. It measures atomredis, and redis-server with an AOF rewritten before and with an RDB file; and
// both after kill -9, with changes that are only in the journal. It runs the binary bin/atomredis.
package main

import (
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

var (
	keys   = flag.Int("keys", 5_000_000, "strings of 64 bytes")
	tail   = flag.Int("tail", 1_000_000, "changes since the last checkpoint before kill -9")
	rounds = flag.Int("rounds", 3, "how often each server starts in each way")
	cold   = flag.Bool("cold", false, "empty the system's page cache before each start (needs root)")
)

// way is a way to start a server.
type way struct {
	name   string
	server *servers.Server
	args   []string
	crash  bool // the server was ended with kill -9

	value, count []time.Duration // to the first value, to the number of keys
}

func main() {
	flag.Parse()
	log.SetFlags(0)
	defer servers.Cleanup()
	redis, ours := servers.New(servers.Redis), servers.New(servers.AtomRedis)
	journal := append(servers.Durability("everysec"), redis.OnDemand()...)
	ourJournal := append(servers.Durability("everysec"), ours.OnDemand()...)
	ways := []*way{
		{name: "redis-server, RDB", server: redis, args: servers.Durability("none")},
		{name: "redis-server, AOF", server: redis, args: journal},
		{name: "atomredis", server: ours, args: ourJournal},
		{name: "redis-server, AOF, kill -9", server: redis, args: journal, crash: true},
		{name: "atomredis, kill -9", server: ours, args: ourJournal, crash: true},
	}
	for _, w := range ways[1:3] {
		w.server.Start(w.args...)
		w.server.Fill(*keys, func(dst []byte, i int) []byte {
			return servers.AppendCommand(dst, "SET", servers.Key(i), servers.Value(i, 0))
		})
		w.server.Settle()
		if w.server == redis {
			w.server.Do("SAVE")
		}
		w.server.Stop()
	}

	for range *rounds {
		for _, w := range ways {
			if w.crash {
				w.prepareCrash()
			}
			w.start()
			if w.crash {
				w.server.Settle() // so that the next start does not profit from it
			}
			w.server.Stop()
		}
	}
	fmt.Printf("%d keys, %d changes in the journal after kill -9, page cache cold: %t\n", *keys, *tail, *cold)
	fmt.Printf("%-28s %12s %24s %12s\n", "", "first value", "spread", "DBSIZE")
	for _, w := range ways {
		value, count := servers.Quantile(w.value, 0.5), servers.Quantile(w.count, 0.5)
		fmt.Printf("%-28s %10.3f s %10.3f to %8.3f s %10.3f s\n", w.name, value.Seconds(), w.value[0].Seconds(),
			w.value[len(w.value)-1].Seconds(), count.Seconds())
	}
}

// prepareCrash leaves the server's data as after a crash that follows some changes.
func (w *way) prepareCrash() {
	w.server.Start(w.args...)
	generation := rand.IntN(100)
	w.server.Fill(*tail, func(dst []byte, i int) []byte {
		i = i * 7919 % *keys
		return servers.AppendCommand(dst, "SET", servers.Key(i), servers.Value(i, generation))
	})
	time.Sleep(2 * time.Second) // until they are durable
	w.server.Kill()
}

// start starts the server and measures.
func (w *way) start() {
	if *cold {
		servers.DropCaches()
	}
	key := servers.Key(rand.IntN(*keys))
	begin := time.Now()
	w.server.Launch(w.args...)
	w.server.AwaitValue(key)
	w.value = append(w.value, time.Since(begin))
	w.server.Await(fmt.Sprint(":", *keys), "DBSIZE")
	w.count = append(w.count, time.Since(begin))
	fmt.Fprintf(os.Stderr, "%s: %v, %v\n", w.name, w.value[len(w.value)-1], w.count[len(w.count)-1])
}
