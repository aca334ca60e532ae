package keys_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/servertest"
)

// If only blessed keys could be evicted, writes may exceed maxmemory by a quarter.
func TestWritesBeyondMaxmemoryWithBlessedKeys(t *testing.T) {
	for _, policy := range []string{"allkeys-lru", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			s := servertest.NewStepped(t, "maxmemory-policy", policy)
			defer s.Finish()
			s.Send("c", "SET", "k", strings.Repeat("v", 4<<20))
			s.Step("EXPIRE k 1000")
			s.Step("BLESS SET k NO-EVICT")
			s.Step("SET n x")
			s.Step("BLESS SET n NO-EVICT")
			if policy == "volatile-ttl" {
				s.Step("SET forever v") // has no deadline, so it may not be evicted either
			}
			used := regexp.MustCompile(`\nused_memory:(\d+)`).FindStringSubmatch(s.Send("c", "INFO", "memory"))
			require.NotNil(t, used)
			n, err := strconv.Atoi(used[1])
			require.NoError(t, err)
			limit := func(tenths int) {
				require.Equal(t, "+OK", servertest.OnOneLine(s.Step(fmt.Sprint("CONFIG SET maxmemory ", n/tenths*10))))
			}
			limit(11)
			require.Equal(t, ":2", servertest.OnOneLine(s.Step("APPEND n x")))
			limit(14)
			require.Contains(t, s.Step("APPEND n x"), "-OOM command not allowed")
			require.Equal(t, "xx", servertest.OnOneLine(s.Step("GET n")))
			limit(9)
			require.Equal(t, ":3", servertest.OnOneLine(s.Step("APPEND n x")))
		})
	}
}
