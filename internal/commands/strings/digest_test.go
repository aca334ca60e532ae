package strings_test

import (
	"testing"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/internal/testing/testclient"
	"github.com/atomredis/atomredis/server"
)

// clientAtRest returns a client of a server whose clock stands still.
func clientAtRest(t *testing.T) *testclient.Client {
	return servertest.Start(t, server.Options{Clock: engine.NewManualClock(time.UnixMilli(1e12))}).Connect()
}

func TestStringsAreComparedBeforeTheyAreWritten(t *testing.T) {
	c := clientAtRest(t)
	c.Replies(
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
	c := clientAtRest(t)
	c.Replies(
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

func TestTranscripts(t *testing.T) { servertest.Transcripts(t, "string") }
