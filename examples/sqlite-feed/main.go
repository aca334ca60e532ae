// A table in SQLite that follows the data, for reports in SQL. Programs keep orders as hashes: order:1, order:2. This one
// reads the feed of all changes (CHANGES), and copies each order that has changed. The position in the feed is in SQLite,
// too, and changes in the same transaction: after a restart or a crash the copy goes on where it was, and misses nothing.
//
//	go run ./examples/sqlite-feed -dir /tmp/orders -table /tmp/orders.db
//
//	redis-cli -p 6380 HSET order:1 customer Ada total 1200
//	redis-cli -p 6380 HSET order:2 customer Ada total 300
//	sqlite3 /tmp/orders.db 'SELECT customer, sum(total) FROM orders GROUP BY customer'
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/atomredis/atomredis"
)

func main() {
	if err := start(); err != nil {
		slog.Error("the copy in SQLite has failed", "error", err)
		os.Exit(1)
	}
}

// start runs the program that the flags describe, until a signal.
func start() (err error) {
	addr := flag.String("redis", "127.0.0.1:6380", "`address` for clients")
	dir := flag.String("dir", "orders", "`directory` of the data")
	file := flag.String("table", "orders.db", "`file` of the table")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := atomredis.Open(atomredis.Options{
		Addr: *addr, Dir: *dir, Logger: slog.Default(),
		// Without a limit a position is only good until the next checkpoint, and then the whole table is copied again.
		Config: map[string]string{"changes-retention": "256mb"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	table, err := openTable(ctx, *file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	return run(ctx, &feed{db, table})
}

// openTable opens the file and creates its tables, if they are not there.
func openTable(ctx context.Context, file string) (*sql.DB, error) {
	table, err := sql.Open("sqlite3", "file:"+file)
	if err != nil {
		return nil, err
	}
	// A loss of power may undo the last transactions. Their positions go with them, so they are copied again.
	_, err = table.ExecContext(ctx, `PRAGMA journal_mode = wal; PRAGMA synchronous = normal;
		CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, customer TEXT, total INTEGER);
		CREATE TABLE IF NOT EXISTS position (id INTEGER PRIMARY KEY CHECK (id = 1), at TEXT)`)
	if err != nil {
		return nil, errors.Join(err, table.Close())
	}
	return table, nil
}

// run copies changes until ctx ends.
func run(ctx context.Context, f *feed) error {
	at, err := f.position(ctx)
	for err == nil {
		err = f.follow(ctx, at)
		if gone, ok := errors.AsType[atomredis.Error](err); ok && gone.Code() == "CHANGESGONE" {
			slog.Warn("the table is copied anew", "reason", err)
			at, err = "0", nil
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// feed copies the orders of a server to a table.
type feed struct {
	db    *atomredis.DB
	table *sql.DB
}

// position returns the position in the feed up to which everything is copied; "0" if nothing is.
func (f *feed) position(ctx context.Context) (at string, err error) {
	err = f.table.QueryRowContext(ctx, "SELECT at FROM position").Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return "0", nil
	}
	return at, err
}

// follow copies the changes after a position. From "0" on, the feed first has the commands that make the present data.
func (f *feed) follow(ctx context.Context, at string) error {
	if at == "0" {
		if _, err := f.table.ExecContext(ctx, "DELETE FROM orders"); err != nil {
			return err
		}
	}
	for change, err := range f.db.Changes(ctx, at) {
		if err == nil {
			err = f.copy(context.WithoutCancel(ctx), change)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copy brings the table up to date with a change, and keeps its position.
func (f *feed) copy(ctx context.Context, change atomredis.Change) error {
	tx, err := f.table.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // has no effect after the commit
	for _, c := range change.Commands {
		if err := f.command(ctx, tx, c.Args); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "REPLACE INTO position VALUES (1, ?)", change.Position); err != nil {
		return err
	}
	return tx.Commit()
}

// command copies the orders that a command may have changed. They are copied as they are now, so the program need not know
// what each command does. What changes in between comes again as a change of its own.
func (f *feed) command(ctx context.Context, tx *sql.Tx, args []string) error {
	if slices.Contains([]string{"FLUSHALL", "FLUSHDB", "SWAPDB"}, args[0]) { // they have no keys
		if _, err := tx.ExecContext(ctx, "DELETE FROM orders"); err != nil {
			return err
		}
		for key, err := range f.db.Keys(ctx, "order:*") {
			if err == nil {
				err = f.order(ctx, tx, key)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, arg := range args[1:] {
		if strings.HasPrefix(arg, "order:") { // a value that looks like a key does no harm
			if err := f.order(ctx, tx, arg); err != nil {
				return err
			}
		}
	}
	return nil
}

// order copies an order.
func (f *feed) order(ctx context.Context, tx *sql.Tx, key string) error {
	var fields map[string]string
	reply, err := f.db.Do(ctx, "HGETALL", key)
	if err == nil {
		err = reply.Scan(&fields)
	}
	if wrong, ok := errors.AsType[atomredis.Error](err); ok && wrong.Code() == "WRONGTYPE" {
		err = nil // a value of another type is no order
	}
	switch {
	case err != nil:
	case len(fields) == 0:
		_, err = tx.ExecContext(ctx, "DELETE FROM orders WHERE id = ?", key)
	default:
		_, err = tx.ExecContext(ctx, "REPLACE INTO orders VALUES (?, ?, ?)", key, fields["customer"], fields["total"])
	}
	return err
}
