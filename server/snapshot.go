package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/resp"
)

// ErrNotEmpty is returned by Restore if there are keys.
var ErrNotEmpty = errors.New("the server is not empty")

// Restore executes the commands that Snapshot has written, one after the other, in an empty keyspace; it fails with
// ErrNotEmpty if there are keys. It returns when all of it is durable. If it fails after the start all databases are
// emptied again.
func (srv *Server) Restore(r io.Reader) error {
	d, err := srv.Direct(0)
	if err != nil {
		return err
	}
	defer d.Release()
	if err := srv.empty(d); err != nil {
		return err
	}
	end := "PING" // its reply waits until everything before it is durable
	if err = restore(d, r); err != nil {
		end = "FLUSHALL"
	}
	err = errors.Join(err, d.Run(context.Background(), [][]byte{[]byte(end)}))
	_, flushErr := d.Flush()
	return errors.Join(err, flushErr)
}

// empty returns ErrNotEmpty if there are keys.
func (srv *Server) empty(d *session.Direct) error {
	return d.WhenLoaded(context.Background(), func() error {
		keys := 0
		err := srv.underAll(func(g *engine.Guard) {
			for db := range srv.ks.Databases() {
				keys += g.Len(db)
			}
		})
		if err == nil && keys > 0 {
			err = ErrNotEmpty
		}
		return err
	})
}

// restore executes commands from r.
func restore(d *session.Direct, r io.Reader) error {
	commands := resp.NewCommandReader(r)
	for {
		args, err := commands.Next()
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		if err := d.Replay(args); err != nil {
			return fmt.Errorf("command %d: %w", commands.Count, err)
		}
	}
}

// underAll calls fn with a guard over the whole keyspace. A stored value that cannot be read ends it with an error,
// and so does a bug.
func (srv *Server) underAll(fn func(g *engine.Guard)) (err error) {
	var g engine.Guard
	g.Lock(srv.ks, engine.AllShards, srv.ks.Now())
	defer g.Unlock()
	if srv.replica.Loading() {
		return errors.New(string(command.ErrLoading))
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *engine.LoadError:
			err = p
		default:
			srv.log.Error("iterating over the keyspace failed", "panic", p, "stack", string(debug.Stack()))
			err = errors.New("internal error")
		}
	}()
	fn(&g)
	return nil
}
