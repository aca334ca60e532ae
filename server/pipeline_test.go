package server

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommandsOfAPipelineShareGuards shows which commands of a pipeline are one record of the journal, because they
// were executed under one guard.
func TestCommandsOfAPipelineShareGuards(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	for _, c := range []struct {
		name     string
		before   []string // commands of other clients, in the form of step
		pipeline []string
		records  []string
	}{
		{"reads and writes", nil, []string{"SET a 1", "GET a", "SET b 2", "INCR a"}, []string{"SET a 1; SET b 2; INCR a"}},
		{"a command without keys", nil, []string{"SET a 1", "PING", "SET b 2"}, []string{"SET a 1", "SET b 2"}},
		{"one that does not exist", nil, []string{"SET a 1", "NONE", "SET b 2"}, []string{"SET a 1", "SET b 2"}},
		{"one that is refused", nil, []string{"SET a 1", "SET", "SET b 2"}, []string{"SET a 1; SET b 2"}},
		{"a transaction", nil, []string{"SET a 1", "MULTI", "SET b 2", "SET c 3", "EXEC", "SET d 4", "SET e 5"},
			[]string{"SET a 1", "SET b 2; SET c 3", "SET d 4; SET e 5"}},
		{"all keys", nil, []string{"SET a 1", "FLUSHALL", "SET b 2"}, []string{"SET a 1", "FLUSHALL; SET b 2"}},
		{"another database", nil, []string{"SET a 1", "SELECT 1", "SET b 2"}, []string{"SET a 1", "SELECT 1; SET b 2"}},
		{"a client that waits", []string{"1:BLPOP q 0"}, []string{"SET a 1", "LPUSH q x", "LPUSH q y", "SET b 2"},
			[]string{"SET a 1; LPUSH q x; LPOP q", "LPUSH q y; SET b 2"}},
		{"one that blocks", nil, []string{"SET a 1", "BLPOP q 0", "SET b 2"}, []string{"SET a 1"}},
		{"a long one", nil, []string{"SET a " + long, "SET b 2", "SET c 3"}, []string{"SET a " + long, "SET b 2; SET c 3"}},
		{"a pause", []string{"1:CLIENT PAUSE 1000 WRITE"}, []string{"GET a", "SET b 2", "SET c 3"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &journalled{harness: newHarnessWith(t, "shards", "1")}
			b.ks.EndReplay(&b.journal)
			for i := range b.sessions {
				b.sessions[i] = b.session()
			}
			for _, line := range c.before {
				b.step(line)
			}
			b.journal.records = nil
			s := b.sessions[0]
			var pipeline []byte
			for _, line := range c.pipeline {
				pipeline = append(pipeline, request(strings.Fields(line)...)...)
			}
			s.Input(pipeline, b.ks.Now())
			require.NotEmpty(t, b.feed(b.sessions[1], request("PING")), "no guard is held")
			var records []string
			for _, r := range b.journal.records {
				records = append(records, strings.Join(r.text(t), "; "))
			}
			require.Equal(t, c.records, records)
		})
	}
}

// TestPipelinesMakeRoom makes a pipeline need more memory than the limit: making room takes a guard over everything.
func TestPipelinesMakeRoom(t *testing.T) {
	b := newHarnessWith(t, "maxmemory", "4mb", "maxmemory-policy", "allkeys-random")
	s := b.session()
	var pipeline []byte
	const n = 200
	for i := range n {
		pipeline = append(pipeline, request("SET", fmt.Sprint(i), strings.Repeat("x", 64<<10))...)
	}
	require.Equal(t, strings.Repeat("+OK\r\n", n), b.feed(s, pipeline))
	require.NotEqual(t, fmt.Sprintf(":%d\r\n", n), b.feed(s, request("DBSIZE")))
}

// TestPipelinesAnswerAsSingleCommands sends random commands, most with the same key as the one before, in pipelines
// and one by one.
func TestPipelinesAnswerAsSingleCommands(t *testing.T) {
	commands := []string{
		"SET k 1", "GET k", "SET k 2 GET", "GETDEL k", "APPEND k 3", "INCR k", "STRLEN k", "DEL k", "UNLINK k", "TYPE k",
		"EXISTS k",
		"LPUSH k a b", "RPOP k", "LLEN k", "LREM k 0 a", "SADD k a", "SREM k a", "SCARD k", "SPOP k 9", "SORT k ALPHA",
		"SORT k BY x* GET y*",
		"HSET k f v", "HDEL k f", "HLEN k", "HPEXPIREAT k 1 FIELDS 1 f", "ZADD k 1 a", "ZPOPMIN k", "ZCARD k",
		"XADD k 1-* f v", "XTRIM k MAXLEN 0", "XLEN k",
		"EXPIRE k 0", "PEXPIREAT k 9000000000000", "PERSIST k", "PEXPIREAT k 1", "PEXPIRETIME k", "MOVE k 1", "SELECT 0",
		"SELECT 1", "RENAME k other", "COPY other k", "DEL other",
		"SWAPDB 0 1", "FLUSHDB", "OBJECT ENCODING k", "MULTI", "EXEC", "DISCARD", "SET k", "BLPOP k 0", "GET", "PING",
		"EVAL redis.call('DEL',KEYS[1]) 1 k", "EVAL return{redis.call('SET',KEYS[1],'s'),redis.call('GET',KEYS[1]),redis.call('RENAME',KEYS[1],'other')} 1 k",
	}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		together, apart := newHarnessWith(t, "shards", []string{"1", "4"}[seed%2]), newHarness(t)
		s, other := together.session(), apart.session()
		for range 20 {
			var pipeline []byte
			var lines []string
			var want strings.Builder
			for range 1 + random.IntN(20) {
				line := commands[random.IntN(len(commands))]
				if random.IntN(4) == 0 {
					line = strings.ReplaceAll(line, " k", " other")
				}
				command := request(strings.Fields(line)...)
				pipeline, lines = append(pipeline, command...), append(lines, line)
				want.WriteString(apart.feed(other, command))
				if other.Waiting() {
					break
				}
			}
			require.Equal(t, want.String(), together.feed(s, pipeline), "%d: %q", seed, lines)
			if s.Waiting() {
				break
			}
		}
		together.finish(t, s)
		apart.finish(t, other)
	}
}
