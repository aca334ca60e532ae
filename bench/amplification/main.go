// Amplification measures how much a server writes to disk for a checkpoint after a small change to large values: one
// field in each of a hundred hashes. It runs the binary bin/atomredis.
package main

import (
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

func main() {
	hashes := flag.Int("hashes", 100, "number of hashes")
	fields := flag.Int("fields", 100_000, "fields of each")
	rounds := flag.Int("rounds", 3, "how often one field of each is changed")
	wait := flag.Duration("wait", 10*time.Second, "how long writes of the background are waited for after each checkpoint")
	withRedis := flag.Bool("redis", true, "measure redis-server too")
	flag.Parse()
	log.SetFlags(0)
	defer servers.Cleanup()

	fmt.Printf("%d hashes of %d fields\n%-16s %14s %14s %16s\n", *hashes, *fields, "bytes written", "first save",
		"second save", fmt.Sprint("in the ", *wait, " after"))
	programs := []string{servers.AtomRedis}
	if *withRedis {
		programs = append(programs, servers.Redis)
	}
	for _, program := range programs {
		s := servers.New(program)
		s.Start(append(servers.Durability("everysec"), s.OnDemand()...)...)
		begin := s.WriteBytes()
		const atOnce = 100
		s.Fill(*hashes**fields/atOnce, func(dst []byte, i int) []byte {
			i *= atOnce
			args := []string{"HSET", hash(i / *fields)}
			for f := i % *fields; f < i%*fields+atOnce; f++ {
				args = append(args, field(f), servers.Value(f, 0))
			}
			return servers.AppendCommand(dst, args...)
		})
		s.Settle()
		awaitQuiet(s, *wait)
		first := s.WriteBytes() - begin
		for round := range *rounds {
			before := s.WriteBytes()
			for i := range *hashes {
				s.Do("HSET", hash(i), field(*fields/2), servers.Value(i, round+1))
			}
			s.Settle()
			saved := s.WriteBytes()
			time.Sleep(*wait)
			fmt.Printf("%-16s %14d %14d %18d\n", program, first, saved-before, s.WriteBytes()-saved)
		}
		s.Stop()
	}
}

func hash(i int) string  { return fmt.Sprint("hash:", i) }
func field(i int) string { return fmt.Sprintf("field:%09d", i) }

// awaitQuiet waits until the server has written nothing for the duration quiet.
func awaitQuiet(s *servers.Server, quiet time.Duration) {
	for n := int64(-1); n != s.WriteBytes(); time.Sleep(quiet) {
		n = s.WriteBytes()
	}
}
