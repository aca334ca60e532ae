package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
)

func openServer(t *testing.T, dir string) *atomredis.DB {
	db, err := atomredis.Open(atomredis.Options{Dir: dir, Config: map[string]string{"changes-retention": "1mb"}})
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// runProgram runs the program for a server and a file, and returns what ends it, as a signal does.
func runProgram(t *testing.T, db *atomredis.DB, file string) (stop func()) {
	table, err := openTable(t.Context(), file)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, &feed{db, table}) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, table.Close())
	})
	t.Cleanup(stop)
	return stop
}

func do(t *testing.T, db *atomredis.DB, commands ...string) {
	t.Helper()
	for _, c := range commands {
		var args []any
		for _, word := range strings.Fields(c) {
			args = append(args, word)
		}
		_, err := db.Do(t.Context(), args...)
		require.NoError(t, err, c)
	}
}

// expect waits until the table has the rows.
func expect(t *testing.T, file string, rows ...string) {
	t.Helper()
	table, err := openTable(t.Context(), file)
	require.NoError(t, err)
	defer table.Close()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		found, err := table.QueryContext(t.Context(), "SELECT id, customer, total FROM orders ORDER BY id")
		require.NoError(c, err)
		defer found.Close()
		var got []string
		for found.Next() {
			var id, customer string
			var total any
			require.NoError(c, found.Scan(&id, &customer, &total))
			got = append(got, fmt.Sprint(id, " ", customer, " ", total))
		}
		require.NoError(c, found.Err())
		require.Equal(c, rows, got)
	}, time.Minute, time.Millisecond)
}

func TestTheTableFollowsTheData(t *testing.T) {
	db, file := openServer(t, t.TempDir()), filepath.Join(t.TempDir(), "orders.db")
	do(t, db, "HSET order:1 customer Ada total 1200", "SET greeting hello")
	runProgram(t, db, file)
	expect(t, file, "order:1 Ada 1200")
	do(t, db, "HSET order:2 customer Bob total 7", "HINCRBY order:1 total 5", "SET greeting order:1")
	expect(t, file, "order:1 Ada 1205", "order:2 Bob 7")
	do(t, db, "RENAME order:2 order:3", "DEL order:1", "SET order:4 text", "PEXPIREAT order:4 1")
	expect(t, file, "order:3 Bob 7")
	do(t, db, "FLUSHALL", "HSET order:5 customer Cleo total many")
	expect(t, file, "order:5 Cleo many")
}

func TestTheCopyGoesOnAfterARestart(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "orders.db")
	db := openServer(t, dir)
	stop := runProgram(t, db, file)
	do(t, db, "HSET order:1 customer Ada total 1", "HSET order:2 customer Bob total 2")
	expect(t, file, "order:1 Ada 1", "order:2 Bob 2")
	stop()
	table, err := openTable(t.Context(), file)
	require.NoError(t, err)
	_, err = table.Exec("UPDATE orders SET customer = 'kept' WHERE id = 'order:2'") // shows whether the row is copied again
	require.NoError(t, err)
	require.NoError(t, table.Close())
	do(t, db, "DEL order:1", "HSET order:3 customer Cleo total 3")
	require.NoError(t, db.Close())
	runProgram(t, openServer(t, dir), file)
	expect(t, file, "order:2 kept 2", "order:3 Cleo 3")
}

// The position of another server means nothing.
func TestATableOfOtherDataIsCopiedAnew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	first := openServer(t, t.TempDir())
	stop := runProgram(t, first, file)
	do(t, first, "HSET order:1 customer Ada total 1")
	expect(t, file, "order:1 Ada 1")
	stop()
	second := openServer(t, t.TempDir())
	do(t, second, "HSET order:2 customer Bob total 2")
	runProgram(t, second, file)
	expect(t, file, "order:2 Bob 2")
}
