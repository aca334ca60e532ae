package transfer

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/background"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/search/foreign"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/resp"
)

// Source is the server whose data is written.
type Source interface {
	Keyspace() *engine.Keyspace
	Log() *slog.Logger
	// Libraries returns the sources of the libraries of functions. A guard over everything is held.
	Libraries() []string
	// Kept returns commands, in the form of an append-only file, that restore the data outside the keys. A guard
	// over everything is held.
	Kept() []byte
	// Loading returns the error that clients get while a copy of another server's data is being loaded, nil otherwise. A
	// guard over everything is held.
	Loading() error
	// Hold calls fn with a guard over everything, or returns the error of Loading.
	Hold(fn func(g *engine.Guard)) error
	// WhenLoaded calls fn once all stored keys are known; ctx ends the waiting. The server does not close meanwhile.
	WhenLoaded(ctx context.Context, fn func() error) error
}

// Progress is called repeatedly with the progress of a step in a unit (B for bytes). It may be nil.
type Progress func(step, unit string, done, total int64)

// Exporter writes the data of a server in a form that a Redis loads. Any goroutine may call its methods.
type Exporter struct {
	source   Source
	progress Progress
}

// NewExporter returns the Exporter of a source.
func NewExporter(source Source, progress Progress) *Exporter {
	return &Exporter{source: source, progress: progress}
}

// clock returns the clock of the server.
func (x *Exporter) clock() engine.Clock { return x.source.Keyspace().Clock() }

// Content is the parts of the data that a file has.
type Content uint8

// The parts of the data.
const (
	Keys Content = 1 << iota
	Functions

	All = Keys | Functions
)

// Copy describes an RDB file and the functions that are called while it is written.
type Copy struct {
	Content Content
	// Wait makes Copy wait for keys that are still being loaded after a start, and write in a goroutine that yields
	// to commands. Without it the caller must do both.
	Wait    bool
	Modules bool                     // the result of Kept is also written in the form of Redis modules
	Valkey  bool                     // the file is for a Valkey 9 or later
	At      func(g *engine.Guard)    // called with a guard over everything at the instant of the file's data, unless it is nil
	Begun   func(s *engine.Snapshot) // called with the snapshot of the keys, unless it is nil or no keys are written
	Wrote   func()                   // called after each key, unless it is nil
	About   func() []rdb.Aux         // returns more fields about the origin of the file, called after At, unless it is nil
}

// RDB writes the keyspace and the libraries of functions as they are at one moment, as an RDB file. While keys are still
// being loaded after a start it waits for them. w is called by another goroutine.
func (x *Exporter) RDB(w io.Writer) error {
	n := keyCount{progress: x.progress}
	return x.Copy(context.Background(), w, Copy{Content: All, Wait: true, Begun: n.begin, Wrote: n.add})
}

// RDBWithModules is RDB with indexes and dictionaries also in the form of the query engine of a Redis. A Redis
// without it refuses a file that has them.
func (x *Exporter) RDBWithModules(w io.Writer) error {
	n := keyCount{progress: x.progress}
	return x.Copy(context.Background(), w, Copy{Content: All, Wait: true, Modules: true, Begun: n.begin, Wrote: n.add})
}

// Unreadable calls fn with the keys whose values no Redis can read, in an RDB file or an append-only file.
func (x *Exporter) Unreadable(fn func(db int, key, typ string)) error {
	return x.whenLoaded(context.Background(), func() error {
		s, err := x.snapshot(context.Background(), func(*engine.Guard) error { return nil })
		if err != nil {
			return err
		}
		err = x.each(s, func(db int, e *engine.Entry) error {
			if rdb.OwnForm(e) {
				fn(db, e.Key(), e.Type().String())
			}
			return nil
		})
		return errors.Join(err, s.Close())
	})
}

// AOF is RDB for an append-only file.
func (x *Exporter) AOF(w io.Writer) error {
	return x.whenLoaded(context.Background(), func() error { return x.aof(context.Background(), w, All, x.progress, nil) })
}

// AOFAt is AOF without calls of Progress. It calls at with a guard over everything at the instant of the data, before it writes
// anything. It fails with the error of at, and once ctx has ended.
func (x *Exporter) AOFAt(ctx context.Context, w io.Writer, at func(g *engine.Guard) error) error {
	return x.whenLoaded(ctx, func() error { return x.aof(ctx, contextWriter{ctx, w}, All, nil, at) })
}

// RDBAt is AOFAt for an RDB file with the keys, the functions and the data outside the keys.
func (x *Exporter) RDBAt(ctx context.Context, w io.Writer, at func(g *engine.Guard) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return x.Copy(ctx, w, Copy{Content: All, Wait: true, At: func(g *engine.Guard) {
		if err := at(g); err != nil {
			cancel(err) // the first write fails
		}
	}})
}

// Commands is AOF for the keys only, without calls of Progress.
func (x *Exporter) Commands(w io.Writer) error {
	return x.whenLoaded(context.Background(), func() error { return x.aof(context.Background(), w, Keys, nil, nil) })
}

// Copy writes an RDB file. Once ctx has ended it fails, also while it waits for other snapshots.
func (x *Exporter) Copy(ctx context.Context, w io.Writer, c Copy) error {
	w = contextWriter{ctx, w}
	if c.Wait {
		return x.whenLoaded(ctx, func() error { return x.rdb(ctx, w, &c) })
	}
	return x.rdb(ctx, w, &c)
}

// whenLoaded calls fn once all keys are known, in a goroutine of its own that yields to commands.
func (x *Exporter) whenLoaded(ctx context.Context, fn func() error) error {
	return x.source.WhenLoaded(ctx, func() error {
		failed := make(chan error)
		go func() {
			background.Work()
			failed <- fn()
		}()
		return <-failed
	})
}

// contextWriter fails once its context has ended.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

// Write implements io.Writer.
func (w contextWriter) Write(b []byte) (int, error) {
	if err := context.Cause(w.ctx); err != nil {
		return 0, err
	}
	return w.w.Write(b)
}

// keyCount reports the written keys of a snapshot to a Progress.
type keyCount struct {
	progress    Progress
	done, total int64
}

func (n *keyCount) begin(s *engine.Snapshot) {
	for _, db := range s.Stats {
		n.total += int64(db.Keys)
	}
}

func (n *keyCount) add() {
	if n.done++; n.progress != nil && (n.done%64 == 0 || n.done == n.total) {
		n.progress("writing keys", "keys", n.done, n.total)
	}
}

// snapshot begins a snapshot. at is called with a guard over everything at its instant.
func (x *Exporter) snapshot(ctx context.Context, at func(g *engine.Guard) error) (*engine.Snapshot, error) {
	s, err := x.source.Keyspace().Snapshot(ctx, func(g *engine.Guard) error {
		if err := x.source.Loading(); err != nil {
			return err
		}
		return at(g)
	})
	if err == nil {
		s.Pause = new(background.Pacer).Pause
	}
	return s, err
}

// each calls fn with every key of a snapshot. A stored value that cannot be read ends it with an error, and so does a
// bug.
func (x *Exporter) each(s *engine.Snapshot, fn func(db int, e *engine.Entry) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			x.source.Log().Error("iterating over the keyspace failed", "panic", p, "stack", string(debug.Stack()))
			err = errors.New("internal error")
		}
	}()
	return s.Each(fn)
}

// noDatabase is not the number of any database.
const noDatabase = -1

// aof writes the parts of the data that content has as commands. It calls at, unless that is nil, at the instant of the data.
func (x *Exporter) aof(ctx context.Context, w io.Writer, content Content, progress Progress, at func(g *engine.Guard) error) error {
	n := keyCount{progress: progress}
	var codes []string
	var kept []byte
	s, err := x.snapshot(ctx, func(g *engine.Guard) error {
		codes, kept = x.source.Libraries(), x.source.Kept()
		if at != nil {
			return at(g)
		}
		return nil
	})
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
	if content&Functions != 0 {
		for _, code := range codes {
			a.Command([]byte("FUNCTION"), []byte("LOAD"), []byte(code))
		}
		if len(kept) > 0 {
			a.Flush()
			a.Emit(portable(kept))
		}
	}
	selected := noDatabase
	err = x.each(s, func(db int, e *engine.Entry) error {
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

// portable returns the commands of Source.Kept without the positions of consumers (CHANGES), which mean nothing in another journal.
// A Redis stops at an unknown command.
func portable(kept []byte) (b []byte) {
	for p := (&resp.Parser{MaxBulk: resp.AnyBulk}); len(kept) > 0; {
		args, n, err := p.Next(kept, nil)
		if err != nil || n == 0 {
			break // the server itself never writes this
		}
		if len(args) > 0 && !command.EqualFold(args[0], "changes") {
			b = append(b, kept[:n]...)
		}
		kept = kept[n:]
	}
	return b
}

// auxKept is the field of a file that has the commands of Source.Kept. A Redis ignores it.
const auxKept = "atomredis-kept"

// rdb writes an RDB file.
func (x *Exporter) rdb(ctx context.Context, w io.Writer, c *Copy) error {
	var codes []string
	var kept []byte
	var now int64
	begin := func(g *engine.Guard) {
		codes, kept, now = x.source.Libraries(), x.source.Kept(), g.Now()
		if c.At != nil {
			c.At(g)
		}
	}
	var s *engine.Snapshot
	var err error
	if c.Content&Keys != 0 {
		s, err = x.snapshot(ctx, func(g *engine.Guard) error {
			begin(g)
			return nil
		})
	} else {
		err = x.source.Hold(begin)
	}
	if err != nil {
		return err
	}
	if s != nil && c.Begun != nil {
		c.Begun(s)
	}
	e := rdb.NewEncoder(w)
	about := []rdb.Aux{{Name: "redis-ver", Value: version.Redis}, {Name: "redis-bits", Value: strconv.Itoa(strconv.IntSize)},
		{Name: "ctime", Value: strconv.FormatInt(now/1000, 10)}, {Name: "aof-base", Value: "0"}}
	if c.Content&Functions != 0 && len(kept) > 0 {
		about = append(about, rdb.Aux{Name: auxKept, Value: string(kept)})
	}
	if c.About != nil {
		about = append(about, c.About()...)
	}
	var definitions foreign.Definitions
	if c.Modules {
		if definitions, err = foreign.Parse(kept); err != nil {
			return errors.Join(err, closeSnapshot(s))
		}
	}
	if c.Valkey {
		e.BeginValkey(about...)
	} else {
		e.Begin(rdbVersion(s), about...)
	}
	definitions.BeforeKeys(e)
	if c.Content&Functions != 0 {
		for _, code := range codes {
			e.Function(code)
		}
	}
	if s != nil {
		selected := noDatabase
		err = x.each(s, func(db int, entry *engine.Entry) error {
			if db != selected {
				selected = db
				e.SelectDB(db, s.Stats[db].Keys, s.Stats[db].Expires)
			}
			e.Key(entry)
			if c.Wrote != nil {
				c.Wrote()
			}
			return e.Err()
		})
		if err = errors.Join(err, s.Close()); err != nil {
			return err
		}
	}
	definitions.AfterKeys(e)
	return e.End()
}

// closeSnapshot ends a snapshot, which may be nil.
func closeSnapshot(s *engine.Snapshot) error {
	if s == nil {
		return nil
	}
	return s.Close()
}

// rdbVersion returns the version of a file with the keys of a snapshot, which may be nil.
func rdbVersion(s *engine.Snapshot) int {
	if s != nil {
		for _, db := range s.Stats {
			if db.MemberExpires > 0 || db.Blessed > 0 {
				return max(rdb.VersionExpiringMembers, rdb.VersionBlessed)
			}
		}
		for _, db := range s.Stats {
			if db.FieldExpires > 0 {
				return rdb.VersionExpiringFields
			}
		}
	}
	return rdb.Version
}
