package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
)

// replies sends commands, each followed by the reply that it must have.
func replies(t *testing.T, c *testClient, steps ...string) {
	t.Helper()
	for i := 0; i < len(steps); i += 2 {
		require.Equal(t, steps[i+1], c.do(steps[i]), steps[i])
	}
}

func TestStringsAreComparedBeforeTheyAreWritten(t *testing.T) {
	c := startTestServer(t, Options{Clock: engine.NewManualClock(time.UnixMilli(1e12))}).connect()
	replies(t, c,
		// The digests are those of XXH3, as other implementations have them.
		"DIGEST k", "",
		"SET k a", "+OK",
		"DIGEST k", "e6c632b61e964e1f",
		"SET k b IFEQ x", "",
		"SET k b IFEQ a", "+OK",
		"SET k c IFNE b", "",
		"SET k c IFNE x GET", "b",
		"SET k d IFEQ x GET", "c",
		"SET k a IFEQ c EX 100", "+OK",
		"TTL k", "100",
		"SET k b IFDEQ 0000000000000000", "",
		"SET k b IFDEQ E6C632B61E964E1F KEEPTTL", "+OK",
		"TTL k", "100",
		"SET k c IFDNE e6c632b61e964e1f", "+OK",
		"SET missing c IFEQ a", "",
		"SET missing c IFDEQ e6c632b61e964e1f", "",
		"SET missing c IFNE a", "+OK",
		"SET k b IFDEQ abc", "-ERR must be exactly 16 hexadecimal characters",
		"SET k b IFDEQ xxxxxxxxxxxxxxxx", "",
		"SET k b IFEQ", "-ERR syntax error",
		"SET k b IFEQ a IFNE b", "-ERR syntax error",
		"SET k b NX IFEQ a", "-ERR syntax error",
		"SET k b IFEQ a XX", "-ERR syntax error",
		"GETEX k IFEQ a", "-ERR syntax error",
		"RPUSH l a", "1",
		"SET l b IFNE a", "-"+string(command.ErrWrongType),
		"SET l b IFEQ a GET", "-"+string(command.ErrWrongType),
		"DIGEST l", "-"+string(command.ErrWrongType),

		"DELEX k IFEQ x", "0",
		"DELEX k IFNE c", "0",
		"DELEX k IFDNE e6c632b61e964e1f", "1",
		"DELEX k IFNE x", "0",
		"DELEX l IFEQ a", "-ERR Key should be of string type if conditions are specified",
		"DELEX l", "1",
		"DELEX l", "0",
		"DELEX k IFEQ", "-ERR wrong number of arguments for 'delex' command",
		"DELEX k NOSUCH x", "0",
		"COMMAND GETKEYSANDFLAGS DELEX k", `[["k" [+RM +delete]]]`,
		"COMMAND GETKEYSANDFLAGS DELEX k IFEQ v", `[["k" [+RW +delete]]]`,
		"COMMAND GETKEYSANDFLAGS SET k v IFEQ v", `[["k" [+RW +update]]]`,
	)
}

func TestMsetexWritesAllOrNothing(t *testing.T) {
	c := startTestServer(t, Options{Clock: engine.NewManualClock(time.UnixMilli(1e12))}).connect()
	replies(t, c,
		"MSETEX 2 a 1 b 2 EX 100 NX", "1",
		"MGET a b", `["1" "2"]`,
		"TTL b", "100",
		"MSETEX 2 b 3 c 4 NX", "0",
		"MSETEX 2 b 3 c 4 XX", "0",
		"EXISTS c", "0",
		"MSETEX 2 a 5 b 6 XX KEEPTTL", "1",
		"TTL a", "100",
		"MSETEX 1 a 7", "1",
		"TTL a", "-1",
		"MSETEX 0 a 7", "-ERR invalid numkeys value",
		"MSETEX x a 7", "-ERR invalid numkeys value",
		"MSETEX 2 a 7 b", "-ERR wrong number of key-value pairs",
		"MSETEX 1 a 7 NX XX", "-ERR syntax error",
		"MSETEX 1 a 7 GET", "-ERR syntax error",
		"MSETEX 1 a 7 EX 0", "-ERR invalid expire time in 'msetex' command",
		"COMMAND GETKEYS MSETEX 2 a 1 b 2 NX", `["a" "b"]`,
	)
}

func TestEntriesAreRemovedWithRegardToGroups(t *testing.T) {
	c := startTestServer(t, Options{Clock: engine.NewManualClock(time.UnixMilli(1e12))}).connect()
	for _, id := range []string{"1-0", "2-0", "3-0", "4-0", "5-0"} {
		c.do("XADD s " + id + " f v")
	}
	replies(t, c,
		"XGROUP CREATE s g 0", "+OK",
		"XGROUP CREATE s h 0", "+OK",
		"XDELEX s ACKED IDS 2 1-0 9-0", "[2 -1]",
	)
	c.do("XREADGROUP GROUP g me COUNT 4 STREAMS s >")
	c.do("XREADGROUP GROUP h me COUNT 4 STREAMS s >")
	replies(t, c,
		"XDELEX s ACKED IDS 1 1-0", "[2]",
		"XACKDEL s g ACKED IDS 1 1-0", "[2]",
		"XACKDEL s h ACKED IDS 1 1-0", "[1]",
		"XACKDEL s h ACKED IDS 1 1-0", "[-1]",
		"XLEN s", "4",
		"XACKDEL s g IDS 1 2-0", "[1]",
		"XPENDING s h - + 10 me", c.do("XPENDING s h 2-0 4-0 10 me"),
		"XDELEX s DELREF IDS 2 2-0 3-0", "[-1 1]",
		"XLEN s", "2",
		"XDELEX s IDS 1 4-0", "[1]",
		"XDELEX none IDS 2 1-0 2-0", "[-1 -1]",
		"XACKDEL s none IDS 1 5-0", "[-1]",
		"XACKDEL none g IDS 1 5-0", "[-1]",
		"XDELEX s IDS 0 5-0", "-ERR Number of IDs must be a positive integer",
		"XDELEX s IDS 2 5-0", "-ERR The `numids` parameter must match the number of arguments",
		"XDELEX s IDS 1 5-0 6-0", "-ERR syntax error",
		"XDELEX s KEEPREF ACKED IDS 1 5-0", "-ERR syntax error",
		"XDELEX s IDS 1 5-0 DELREF", "[1]",
	)
	require.Contains(t, c.do("XPENDING s h"), "[1 \"4-0\" \"4-0\"")
}
