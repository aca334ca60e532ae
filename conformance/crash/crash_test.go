package crash

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/atomredis/atomredis/internal/testing/oracle"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/stretchr/testify/require"
)

// redis returns options for testing redis-server, if an oracle is requested.
func redis(t *testing.T) Options {
	if os.Getenv(oracle.Variable) != "1" {
		t.Skipf("%s is not 1", oracle.Variable)
	}
	return Options{Server: "redis-server", Rounds: 12, Seed: 1, Fsync: "always", Dir: t.TempDir()}
}

func TestRedisLosesNothing(t *testing.T) {
	result, err := Run(context.Background(), redis(t))
	require.NoError(t, err)
	require.Equal(t, 12, result.Rounds)
	require.Positive(t, result.Writes)
}

func TestTamperingIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		// report is part of the error.
		report   string
		commands [][]string
	}{
		"element lost": {"transaction0: sent", [][]string{{"RPOP", "transaction0:list"}}},
		"element doubled": {"transaction0: sent", [][]string{{"LMOVE", "transaction0:list", "tmp:a", "RIGHT", "LEFT"},
			{"COPY", "tmp:a", "tmp:b"},
			{"LMOVE", "tmp:a", "transaction0:list", "LEFT", "RIGHT"}, {"LMOVE", "tmp:b", "transaction0:list", "LEFT", "RIGHT"}}},
		"half a transaction":   {"transaction1: sent", [][]string{{"INCR", "transaction1:text"}}},
		"half a script":        {"script: sent", [][]string{{"INCR", "script:text"}}},
		"queue element lost":   {"queue: producer", [][]string{{"LPOP", "queue:queue", "10"}}},
		"queue element again":  {"queue: producer", [][]string{{"LPUSH", "queue:queue", "0-1"}}},
		"processing forgotten": {"work: producer", [][]string{{"DEL", "work:processing", "work:queue"}}},
		"priority lost":        {"priorities: producer", [][]string{{"ZPOPMAX", "priorities:queue"}}},
		"stream cut":           {"consumers: stream", [][]string{{"XTRIM", "consumers:stream", "MAXLEN", "=", "1"}}},
		"group set back":       {"consumers: stream", [][]string{{"XGROUP", "SETID", "consumers:stream", groupName, "0"}}},
		"pending entries lost": {"grouped: sent", [][]string{{"XGROUP", "DELCONSUMER", "grouped:stream", groupName, "c1"}}},
		"deadline moved":       {"transaction0: sent", [][]string{{"EXPIRE", "transaction0:list", "100000"}}},
		"database emptied":     {"whole: sent", [][]string{{"SELECT", "9"}, {"FLUSHDB"}, {"SELECT", "0"}}},
		"databases swapped":    {"whole: sent", [][]string{{"SWAPDB", "9", "10"}}},
		"large hash changed":   {"largehash: sent", [][]string{{"HSET", "largehash:large", "element-000001", "x"}}},
		"bit flipped":          {"special: sent", [][]string{{"SETBIT", "special:bits0", "100000", "1"}}},
		"library lost":         {"library: sent", [][]string{{"FUNCTION", "FLUSH"}}},
		"key invented":         {"never written", [][]string{{"SET", "nobody:key", "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := redis(t)
			restarts := 0
			o.Tamper = func(conn *transcript.Conn) error {
				if restarts++; restarts < 3 {
					return nil
				}
				_, err := do(conn, c.commands...)
				return err
			}
			_, err := Run(context.Background(), o)
			require.ErrorContains(t, err, c.report)
		})
	}
}

// A server that does not wait for the disk loses the end of the append-only file.
func TestLostEndIsNoticed(t *testing.T) {
	o := redis(t)
	starts := 0
	o.Damage = func(dir string) error {
		if starts++; starts < 3 {
			return nil
		}
		files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
		if err != nil || len(files) == 0 {
			return err
		}
		last := files[len(files)-1]
		info, err := os.Stat(last)
		if err != nil {
			return err
		}
		return os.Truncate(last, max(0, info.Size()-20_000))
	}
	_, err := Run(context.Background(), o)
	require.ErrorContains(t, err, "surely durable")
}
