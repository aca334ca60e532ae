package atomredis_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

// replay executes the changes of a server after a position at another one, up to a change of the key "end" to a value, and
// returns the position then.
func replay(t *testing.T, from, to *atomredis.DB, at, end string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for change, err := range from.Changes(ctx, at) {
		require.NoError(t, err)
		last := false
		for _, c := range change.Commands {
			db, err := to.Database(c.DB)
			require.NoError(t, err)
			args := make([]any, len(c.Args))
			for i, a := range c.Args {
				args[i] = a
			}
			_, err = db.Do(ctx, args...)
			require.NoError(t, err, c)
			last = last || c.Args[0] == "SET" && c.Args[1] == "end" && c.Args[2] == end
		}
		if last && !strings.HasPrefix(change.Position, "s") || len(at) == 1 && ended(t, to, from) {
			return change.Position
		}
	}
	return ""
}

// ended reports whether a copy equals its server, whose data does not change.
func ended(t *testing.T, to, from *atomredis.DB) bool {
	t.Helper()
	return maps.Equal(content(t, to), content(t, from))
}

// content returns the keys of a server with their values.
func content(t *testing.T, db *atomredis.DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for key, err := range db.Keys(t.Context(), "*") {
		require.NoError(t, err)
		reply, err := db.Do(t.Context(), "DUMP", key)
		require.NoError(t, err)
		all[key], err = reply.Text()
		require.NoError(t, err)
	}
	return all
}

// Each server of a group has the same changes, a position of one is valid at the others, and the changes go on with the next
// leader.
func TestTheServersOfAGroupHaveTheSameChanges(t *testing.T) {
	dbs, err := openGroup(t.TempDir())
	defer func() {
		for _, db := range dbs {
			db.Close()
		}
	}()
	require.NoError(t, err)
	write := func(db *atomredis.DB, from, to int) {
		for i := from; i < to; i++ {
			_, err := db.Do(t.Context(), "SET", fmt.Sprint("key", i), i)
			require.NoError(t, err)
			require.NoError(t, db.Tx(t.Context(), func(tx *atomredis.Tx) error {
				tx.Do("INCR", "n")
				tx.Do("RPUSH", "list", i)
				return nil
			}))
		}
		_, err := db.Do(t.Context(), "SET", "end", to)
		require.NoError(t, err)
	}
	copies := make([]*atomredis.DB, 4)
	for i := range copies {
		copies[i], err = atomredis.Open(atomredis.Options{})
		require.NoError(t, err)
		defer copies[i].Close()
	}
	first := leader(dbs)
	reply, err := first.Do(t.Context(), "CHANGES", "READ", "FROM", "$")
	require.NoError(t, err)
	page, err := reply.Slice()
	require.NoError(t, err)
	begin, err := page[0].Text()
	require.NoError(t, err)
	write(first, 0, 50)
	positions := make([]string, 3)
	for i, db := range dbs {
		positions[i] = replay(t, db, copies[i], begin, "50")
	}
	write(first, 50, 100)
	for i := range dbs {
		positions[i] = replay(t, dbs[(i+1)%3], copies[i], positions[i], "100")
	}
	var rest []*atomredis.DB
	for _, db := range dbs {
		if db != first {
			rest = append(rest, db)
		}
	}
	require.NoError(t, first.Close())
	next := leader(rest)
	write(next, 100, 150)
	positions = append(positions, "0") // with a snapshot of the leader or a follower
	for i := range copies {
		replay(t, rest[i%2], copies[i], positions[i], "150")
		require.Equal(t, content(t, next), content(t, copies[i]))
	}
}

// A master's copy replaces the data without changes: no position from before is valid, and a beginner gets the copy.
func TestAMastersCopyIsAnotherHistory(t *testing.T) {
	ctx := t.Context()
	master, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
	require.NoError(t, err)
	defer master.Close()
	replica, err := atomredis.Open(atomredis.Options{Dir: t.TempDir(), Config: map[string]string{"changes-retention": "10mb"}})
	require.NoError(t, err)
	defer replica.Close()
	do := func(db *atomredis.DB, args ...any) atomredis.Reply {
		t.Helper()
		reply, err := db.Do(ctx, args...)
		require.NoError(t, err)
		return reply
	}
	do(replica, "SET", "own", 1)
	page, err := do(replica, "CHANGES", "READ", "FROM", "$").Slice()
	require.NoError(t, err)
	position, err := page[0].Text()
	require.NoError(t, err)
	do(master, "SET", "k", 1)
	host, port, err := net.SplitHostPort(master.Addr())
	require.NoError(t, err)
	do(replica, "REPLICAOF", host, port)
	require.Eventually(t, func() bool {
		info, err := do(replica, "INFO", "replication").Text()
		return err == nil && strings.Contains(info, "master_link_status:up")
	}, time.Minute, time.Millisecond)
	_, err = replica.Do(ctx, "CHANGES", "READ", "FROM", position)
	var refused atomredis.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "CHANGESGONE", refused.Code())

	to, err := atomredis.Open(atomredis.Options{})
	require.NoError(t, err)
	defer to.Close()
	do(master, "SET", "end", 1)
	do(master, "WAIT", 1, 60_000) // else the copy may equal a replica that does not have it yet
	replay(t, replica, to, "0", "1")
	require.Equal(t, content(t, master), content(t, to))
}
