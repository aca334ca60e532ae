// Memory measures how much memory atomredis and redis-server need for the same data: the resident memory some time
// after filling, the same minus that of an empty server, and the peak.
package main

import (
	"flag"
	"fmt"
	"log"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// dataset is filled by count commands.
type dataset struct {
	name    string
	what    string // after the count
	count   int
	command func(i int) []string
}

// smallFields is the number of fields of small hashes.
const smallFields = 10

var datasets = []dataset{
	{"strings", "strings of 64 bytes, names of 16", 5_000_000, func(i int) []string {
		return []string{"SET", servers.Key(i), servers.Value(i, 0)}
	}},
	{"hash", "fields of a hash, names of 16 bytes, values of 64", 1_000_000, func(i int) []string {
		return []string{"HSET", "myhash", name(i), servers.Value(i, 0)}
	}},
	{"zset", "members of a sorted set, of 16 bytes", 1_000_000, func(i int) []string {
		return []string{"ZADD", "myzset", strconv.Itoa(scattered(i)), name(i)}
	}},
	{"set", "members of a set, of 16 bytes", 1_000_000,
		func(i int) []string { return []string{"SADD", "myset", name(i)} }},
	{"list", "elements of a list, of 64 bytes", 1_000_000, func(i int) []string {
		return []string{"RPUSH", "mylist", servers.Value(i, 0)}
	}},
	{"stream", "entries of a stream, one field of 64 bytes", 1_000_000, func(i int) []string {
		return []string{"XADD", "mystream", "*", "field", servers.Value(i, 0)}
	}},
	{"hashes", "hashes of 10 fields, values of 16 bytes", 200_000, func(i int) []string {
		args := []string{"HSET", servers.Key(i)}
		for f := range smallFields {
			args = append(args, fmt.Sprint("field:", f), servers.Value(i*smallFields+f, 0)[:16])
		}
		return args
	}},
}

// name returns a name of 16 bytes.
func name(i int) string { return fmt.Sprintf("element:%08d", scattered(i)) }

// scattered maps the numbers below a hundred million to different ones below it, in no apparent order.
func scattered(i int) int { return i * 73_939_133 % 100_000_000 }

func main() {
	scale := flag.Float64("scale", 1, "share of the data")
	wanted := flag.String("dataset", "", "data sets, separated by commas (default all)")
	wait := flag.Duration("wait", 15*time.Second,
		"how long after filling is measured; atomredis gives memory back after ten quiet seconds")
	program := flag.String("server", servers.AtomRedis, "the binary of atomredis")
	flag.Parse()
	log.SetFlags(0)
	defer servers.Cleanup()

	fmt.Printf("MiB resident %v after filling, in memory; added: without what the empty server needs; peak: the most ever\n", *wait)
	const names = "%-60s %8s %8s %6s %8s %8s %6s %8s %8s %6s\n"
	fmt.Printf(names, "", "redis", "ours", "ratio", "redis", "ours", "ratio", "redis", "ours", "ratio")
	fmt.Printf(names, "", "", "", "", "added", "added", "", "peak", "peak", "")
	for _, d := range datasets {
		if *wanted != "" && !slices.Contains(strings.Split(*wanted, ","), d.name) {
			continue
		}
		d.count = max(int(float64(d.count)**scale), 1)
		redis, ours := measure(servers.Redis, d, *wait), measure(*program, d, *wait)
		fmt.Printf("%-60s", fmt.Sprint(d.count, " ", d.what))
		for _, v := range [][2]int64{
			{redis.resident, ours.resident}, {redis.resident - redis.empty, ours.resident - ours.empty}, {redis.peak, ours.peak},
		} {
			const mib = 1 << 20
			fmt.Printf(" %8.1f %8.1f %6.2f", float64(v[0])/mib, float64(v[1])/mib, float64(v[1])/float64(v[0]))
		}
		fmt.Println()
	}
}

// memory is resident bytes.
type memory struct{ empty, resident, peak int64 }

// measure fills a new server.
func measure(program string, d dataset, wait time.Duration) (m memory) {
	s := servers.New(program)
	defer s.Discard()
	s.Start(servers.Durability("none")...)
	m.empty, _ = s.Memory()
	s.Fill(d.count, func(dst []byte, i int) []byte { return servers.AppendCommand(dst, d.command(i)...) })
	time.Sleep(wait)
	m.resident, m.peak = s.Memory()
	return m
}
