package server

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"strconv"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/door"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/background"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/persist/rdb"
)

// Writing everything in a form that a Redis loads, as it is at one moment, while commands go on.

// WriteRDB writes the keyspace and the libraries of functions as they are at one moment, as an RDB file. Commands go
// on meanwhile. While keys are still being loaded after a start it waits for them. w is called by another goroutine.
func (srv *Server) WriteRDB(w io.Writer) error {
	n := srv.counted("writing keys")
	how := rdbCopy{content: rdbAll, begun: n.begin, wrote: n.add}
	return srv.whole(func() error { return srv.encodeRDB(context.Background(), w, how) })
}

// keyCount tells Options.Progress how many keys of a snapshot have been written.
type keyCount struct {
	tell        func(step, unit string, done, total int64) // nil if nobody is told
	step        string
	done, total int64
}

func (srv *Server) counted(step string) *keyCount { return &keyCount{tell: srv.progress, step: step} }

func (n *keyCount) begin(s *engine.Snapshot) {
	for _, db := range s.Stats {
		n.total += int64(db.Keys)
	}
}

func (n *keyCount) add() {
	if n.done++; n.tell != nil && (n.done%64 == 0 || n.done == n.total) {
		n.tell(n.step, "keys", n.done, n.total)
	}
}

// WriteAOF is WriteRDB for an append-only file.
func (srv *Server) WriteAOF(w io.Writer) error {
	return srv.whole(func() error { return srv.encodeAOF(w, rdbAll, srv.counted("writing keys")) })
}

// whole calls fn once all keys are known, in a goroutine of its own that gives way to commands. The server does not
// close meanwhile.
func (srv *Server) whole(fn func() error) error {
	d, err := srv.Direct(0)
	if err != nil {
		return err
	}
	defer d.Release()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return door.ErrClosed
	}
	if err := d.loaded(context.Background()); err != nil {
		return err
	}
	failed := make(chan error)
	go func() {
		background.Work()
		failed <- fn()
	}()
	return <-failed
}

// rdbContent says what of the server a file has.
type rdbContent uint8

const (
	rdbKeys rdbContent = 1 << iota
	rdbFunctions

	rdbAll = rdbKeys | rdbFunctions
)

// snapshot begins a snapshot. at is called with a guard over everything at its instant.
func (srv *Server) snapshot(ctx context.Context, at func(g *engine.Guard)) (*engine.Snapshot, error) {
	s, err := srv.ks.Snapshot(ctx, func(g *engine.Guard) error {
		if srv.replica.loading.Load() || !g.Complete() {
			return errors.New(string(errLoading))
		}
		at(g)
		return nil
	})
	if err == nil {
		s.Pause = new(background.Pacer).Pause
	}
	return s, err
}

// each calls fn with every key of a snapshot. A stored value that cannot be read ends it with an error, and so does a
// bug.
func (srv *Server) each(s *engine.Snapshot, fn func(db int, e *engine.Entry) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			srv.log.Error("walking through the keyspace has failed", "panic", p, "stack", string(debug.Stack()))
			err = errors.New("internal error")
		}
	}()
	return s.Each(fn)
}

// encodeAOF writes what content says as commands, and counts the keys.
func (srv *Server) encodeAOF(w io.Writer, content rdbContent, n *keyCount) error {
	var codes []string
	s, err := srv.snapshot(context.Background(), func(*engine.Guard) { codes = srv.scripts.Libraries() })
	if err != nil {
		return err
	}
	n.begin(s)
	var failed error
	a := command.Rebuilder{Emit: func(commands []byte) {
		if failed == nil {
			_, failed = w.Write(commands)
		}
	}}
	if content&rdbFunctions != 0 {
		for _, code := range codes {
			a.Command([]byte("FUNCTION"), []byte("LOAD"), []byte(code))
		}
	}
	selected := noDatabase
	err = srv.each(s, func(db int, e *engine.Entry) error {
		if db != selected {
			selected = db
			a.Select(db)
		}
		a.Entry(e)
		n.add()
		return failed
	})
	if err == nil {
		a.Flush()
		err = failed
	}
	return errors.Join(err, s.Close())
}

// rdbCopy says what an RDB file is to have, and who is told of its making.
type rdbCopy struct {
	content rdbContent
	// called with a guard over everything at the instant that the file shows, unless it is nil
	at    func(g *engine.Guard)
	begun func(s *engine.Snapshot) // called with what the keys are read from, unless it is nil or no keys are written
	wrote func()                   // called after each key, unless it is nil
	about func() []rdb.Aux         // what else the file tells of its origin, called after at; nil is nothing
}

// encodeRDB writes an RDB file. ctx ends the waiting for other snapshots.
func (srv *Server) encodeRDB(ctx context.Context, w io.Writer, how rdbCopy) error {
	var codes []string
	var now int64
	begin := func(g *engine.Guard) {
		codes, now = srv.scripts.Libraries(), g.Now()
		if how.at != nil {
			how.at(g)
		}
	}
	var s *engine.Snapshot
	var err error
	if how.content&rdbKeys != 0 {
		s, err = srv.snapshot(ctx, begin)
	} else {
		err = srv.underAll(begin)
	}
	if err != nil {
		return err
	}
	if s != nil && how.begun != nil {
		how.begun(s)
	}
	e := rdb.NewEncoder(w)
	about := []rdb.Aux{{Name: "redis-ver", Value: version.Redis}, {Name: "redis-bits", Value: strconv.Itoa(strconv.IntSize)},
		{Name: "ctime", Value: strconv.FormatInt(now/1000, 10)}, {Name: "aof-base", Value: "0"}}
	if how.about != nil {
		about = append(about, how.about()...)
	}
	e.Begin(rdbVersion(s), about...)
	if how.content&rdbFunctions != 0 {
		for _, code := range codes {
			e.Function(code)
		}
	}
	if s != nil {
		selected := noDatabase
		err = srv.each(s, func(db int, entry *engine.Entry) error {
			if db != selected {
				selected = db
				e.SelectDB(db, s.Stats[db].Keys, s.Stats[db].Expires)
			}
			e.Key(entry)
			if how.wrote != nil {
				how.wrote()
			}
			return e.Err()
		})
		if err = errors.Join(err, s.Close()); err != nil {
			return err
		}
	}
	return e.End()
}

// The fields of a file that have the record of a shard, and the history of what a group's leader has sent to replicas.
const (
	auxRecord  = "atomredis-shard"
	auxHistory = "atomredis-history"
)

// rdbVersion returns the version of a file with the keys of a snapshot, which may be nil.
func rdbVersion(s *engine.Snapshot) int {
	if s != nil {
		for _, db := range s.Stats {
			if db.FieldExpires > 0 {
				return rdb.VersionExpiringFields
			}
		}
	}
	return rdb.Version
}
