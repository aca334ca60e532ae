package transfer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/search/foreign"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/resp"
)

// Files has the parts of the server that imports, saves and backups use: the file system, configuration, log and
// progress.
type Files struct {
	FS       disk.FS
	System   bool // FS is that of the system
	Config   *config.Config
	Log      *slog.Logger
	Progress Progress // of imports
}

// Replayer executes the content of files on a server.
type Replayer interface {
	// Lock takes a guard over everything, at the current time, and Unlock releases it.
	Lock() *engine.Guard
	Unlock()
	// Select sets the database of the next command.
	Select(db int)
	// Command executes a command that has been accepted before. The guard is held.
	Command(args [][]byte) error
	// Knows reports whether a command of this name exists.
	Knows(args [][]byte) bool
	// Functions creates libraries of functions from their sources. flush removes all others before; replace replaces those
	// of the same name. The guard is held.
	Functions(codes []string, flush, replace bool) command.Error
}

// Importer reads RDB files and append-only files into a keyspace. One file is read at a time.
type Importer struct {
	files    Files
	ks       *engine.Keyspace
	limits   func() *rdb.Limits
	replayer func() Replayer

	leftOut     string
	unsupported Unsupported
	loaded      atomic.Pointer[Loaded]
}

// Loaded counts the keys of a file that were loaded, and those that had expired.
type Loaded struct{ Keys, Expired int }

// NewImporter returns an Importer into ks. limits returns the limits of values, replayer a Replayer for an import.
func NewImporter(files Files, ks *engine.Keyspace, limits func() *rdb.Limits, replayer func() Replayer) *Importer {
	return &Importer{files: files, ks: ks, limits: limits, replayer: replayer}
}

// Import reads an RDB file, an append-only file, its manifest, or a directory with such files into an empty
// keyspace.
func (im *Importer) Import(name string) error {
	return im.load(name, func(l *load) error { return l.path(name) })
}

// ImportFrom is Import for the file that open returns; name is its name in the log.
func (im *Importer) ImportFrom(name string, open func() (io.ReadCloser, error)) error {
	return im.load(name, func(l *load) error {
		r, err := open()
		if err != nil {
			return err
		}
		return errors.Join(l.read(r, true), r.Close())
	})
}

// LeftOut describes the end of the imported file that was not read, "" if everything was read.
func (im *Importer) LeftOut() string { return im.leftOut }

// Unsupported returns the values that the last import left out because their type does not exist here.
func (im *Importer) Unsupported() *Unsupported { return &im.unsupported }

// Loaded returns the counts of the last import, nil if there was none.
func (im *Importer) Loaded() *Loaded { return im.loaded.Load() }

// load runs an import that fn reads; name is its name in the log.
func (im *Importer) load(name string, fn func(*load) error) error {
	im.files.Log.Info("importing what is stored", "file", name)
	l := load{Importer: im, by: im.replayer(), skip: im.skipsUnsupported(), next: time.Now().Add(loadProgress)}
	start := time.Now()
	err := fn(&l)
	l.unlock()
	if err == nil {
		err = l.refusal()
	}
	if err = l.endReport(err); err != nil {
		return fmt.Errorf("import of %s: %w", name, err)
	}
	im.leftOut, im.unsupported = l.leftOut, l.unsupported
	l.finish()
	im.files.Log.Info("imported", "file", name, "keys", l.keys, "expired", l.expired, "functions", l.functions, "commands",
		l.commands,
		"duration", time.Since(start).Round(time.Millisecond))
	return nil
}

// load reads files into the keyspace, once.
type load struct {
	*Importer
	by Replayer

	guard *engine.Guard // over everything; nil if it is not held
	steps int           // keys and commands since it was locked

	done, total int64 // bytes read of the files, and their total size

	leftOut string // see Importer.LeftOut
	db      int    // selected by the commands of an append-only file

	unsupported Unsupported
	skip        bool                                 // values of types that do not exist here are left out
	look        bool                                 // nothing is stored
	found       func(db int, key []byte, typ string) // see Importer.Check; nil in an import
	report      *report                              // nil while nothing is left out

	preamble                           bool // an RDB file was read, or another part
	keys, expired, functions, commands int
	next                               time.Time // time of the next progress report
}

const (
	loadBatch    = 256 // keys or commands after which the guard is released for others
	loadProgress = 5 * time.Second
	readChunk    = 256 << 10 // bytes that are read at a time
)

// lock returns a guard for the next key or command, and releases it between batches.
func (l *load) lock() *engine.Guard {
	if l.guard != nil && l.steps == loadBatch {
		l.unlock()
		if now := time.Now(); now.After(l.next) {
			l.next = now.Add(loadProgress)
			if l.files.Progress == nil || l.done == 0 {
				l.files.Log.Info("importing", "keys", l.keys, "commands", l.commands)
			}
		}
	}
	if l.guard == nil {
		l.guard, l.steps = l.by.Lock(), 0
	}
	l.steps++
	return l.guard
}

func (l *load) unlock() {
	if l.guard != nil {
		l.by.Unlock()
		l.guard = nil
	}
}

// finish publishes the counts for INFO.
func (l *load) finish() { l.loaded.Store(&Loaded{l.keys, l.expired}) }

// file reads an RDB file or an append-only file; last means that it may end in the middle of a command, because
// Redis was killed.
func (l *load) file(name string, last bool) error {
	f, err := l.files.FS.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() == 0 && path.Ext(name) != ".aof" { // an empty append-only file is one of a Redis without data
		err = errors.New("the file is empty")
	}
	if err != nil {
		return err
	}
	l.total = max(l.total, info.Size())
	return l.read(countedFile{f, l}, last)
}

// countedFile reports how much of the files of a load has been read.
type countedFile struct {
	io.Reader
	of *load
}

// Read implements io.Reader.
func (f countedFile) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	f.of.done += int64(n)
	if progress := f.of.files.Progress; progress != nil && n > 0 {
		progress("importing", "B", f.of.done, f.of.total)
	}
	return n, err
}

// read reads the content of a file.
func (l *load) read(f io.Reader, last bool) error {
	in := bufio.NewReaderSize(f, readChunk)
	head, err := in.Peek(rdb.MagicLength)
	if err != nil && err != io.EOF {
		return err
	}
	if !rdb.IsFile(head) {
		switch {
		case strings.HasPrefix(string(head), "\x1f\x8b"):
			return errors.New("the file is compressed with gzip, and must be unpacked before")
		case len(head) > 0 && head[0] != '*' && head[0] != '#':
			return errors.New("the file is neither an RDB file nor an append-only file")
		}
		return l.aof(in, last)
	}
	r := rdb.NewReader(in, *l.limits())
	r.LeaveOut = true
	if err := l.rdb(r); err != nil {
		return err
	}
	l.preamble = true
	return l.aof(io.MultiReader(bytes.NewReader(r.Rest()), in), last)
}

// rdb reads an RDB file.
func (l *load) rdb(r *rdb.Reader) error {
	var k kept
	if err := l.items(r, &k, func(any) error { return nil }); err != nil {
		return err
	}
	if n := len(k.functions); n > 0 {
		l.lock()
		l.functions += n
		if err := l.makeFunctions(k.functions, false, false); err != nil {
			return err
		}
	}
	return l.makeKept(&k)
}

// items reads an RDB file to its end: it creates the keys, and adds everything else to k. It calls first before it
// handles an item.
func (l *load) items(r *rdb.Reader, k *kept, first func(item any) error) error {
	for {
		item, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = first(item)
		}
		if err != nil {
			return err
		}
		switch item := item.(type) {
		case rdb.Aux:
			if item.Name == auxKept {
				k.commands = item.Value
			}
		case *rdb.Module:
			err = l.module(k, item)
		case rdb.Function:
			k.functions = append(k.functions, string(item))
		case *rdb.Key:
			err = l.key(item)
		case *rdb.LeftOut:
			err = l.leaveOutKey(item.DB, item.Key, typeName(item.UnknownType))
		}
		if err != nil {
			return err
		}
	}
}

// makeFunctions creates libraries of functions. The guard is held.
func (l *load) makeFunctions(codes []string, flush, replace bool) error {
	if l.look {
		return nil
	}
	if e := l.by.Functions(codes, flush, replace); e != "" {
		return fmt.Errorf("functions: %s", strings.TrimPrefix(string(e), "ERR "))
	}
	return nil
}

// kept is the content of a file other than keys.
type kept struct {
	functions []string // sources of libraries

	// Executed once the keys are loaded, by makeKept:
	commands string     // of Source.Kept
	foreign  [][]string // the same from the data of a module of a Redis
}

// module reads the data of a module of a Redis.
func (l *load) module(k *kept, m *rdb.Module) error {
	commands, leftOut, err := foreign.Read(m)
	for _, reason := range leftOut {
		l.leaveOut(reason)
	}
	k.foreign = append(k.foreign, commands...)
	return err
}

// leaveOut logs that a part of a module's data has no equivalent here.
func (l *load) leaveOut(reason error) {
	l.files.Log.Warn("data of a module in the file is left out", "reason", reason.Error())
}

// makeKept executes the commands of a file. It uses the commands of Source.Kept, which are exact, or if the file has
// none those made from a module's data.
func (l *load) makeKept(k *kept) error {
	if l.look {
		return nil
	}
	p := resp.Parser{MaxBulk: resp.AnyBulk}
	for rest := []byte(k.commands); len(rest) > 0; {
		args, n, err := p.Next(rest, nil)
		if err != nil || len(args) == 0 {
			return fmt.Errorf("the field %s is damaged", auxKept)
		}
		if err := l.make(args); err != nil {
			return fmt.Errorf("the field %s: %w", auxKept, err)
		}
		rest = rest[n:]
	}
	if k.commands != "" {
		return nil
	}
	for _, words := range k.foreign {
		args := make([][]byte, len(words))
		for i, word := range words {
			args[i] = []byte(word)
		}
		if err := l.make(args); err != nil {
			l.leaveOut(fmt.Errorf("%s of %q: %w", words[0], words[1], err))
		}
	}
	return nil
}

// make executes a command of makeKept.
func (l *load) make(args [][]byte) error {
	l.lock()
	l.by.Select(0)
	return l.by.Command(args)
}

// key creates a key, unless it has expired.
func (l *load) key(k *rdb.Key) error {
	g := l.lock()
	if n := l.ks.Databases(); k.DB >= n {
		return fmt.Errorf("a key in database %d, and there are %d databases: see the directive databases", k.DB, n)
	}
	if k.Deadline != 0 && k.Deadline <= g.Now() && !g.FromMaster {
		l.expired++
		return nil
	}
	if l.look {
		l.keys++
		return nil
	}
	if g.Peek(k.DB, k.Key) != nil {
		return fmt.Errorf("key %s in database %d comes twice", strconv.Quote(string(k.Key)), k.DB)
	}
	e := rdb.Create(g, k.DB, k.Key, k.Value)
	g.SetDeadline(e, k.Deadline)
	g.Bless(e, k.Blessed)
	if k.Idle >= 0 {
		g.SetIdleTime(e, k.Idle)
	}
	g.Changed(e, engine.EventNone, "")
	l.keys++
	return nil
}

// Replace replaces the content of the keyspace by an RDB file, in which functions come before keys. It calls about
// with the file's fields about its origin, and done once everything is loaded, both with the guard of by held. If it
// fails before reading anything of the file, the data is unchanged.
func (im *Importer) Replace(ctx context.Context, file io.Reader, by Replayer, about func(rdb.Aux) error, done func()) (err error) {
	l := load{Importer: im, by: by, skip: im.skipsUnsupported(), next: time.Now().Add(loadProgress)}
	defer l.unlock()
	defer func() {
		if err != nil {
			err = l.endReport(err)
		}
	}()
	g := l.lock()
	if err := ctx.Err(); err != nil {
		return err
	}
	var k kept
	emptied := false
	empty := func() error {
		if emptied {
			return nil
		}
		emptied = true
		if err := l.makeFunctions(k.functions, true, true); err != nil {
			return err
		}
		g.Flush(-1)
		return nil
	}
	r := rdb.NewReader(file, *l.limits())
	r.LeaveOut = l.skip
	err = l.items(r, &k, func(item any) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch item := item.(type) {
		case rdb.Aux:
			return about(item)
		case *rdb.Key:
			return empty()
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.finish()
	if err := empty(); err != nil {
		return err
	}
	if err := l.makeKept(&k); err != nil {
		return err
	}
	if err := l.endReport(nil); err != nil { // the data is complete without it
		l.files.Log.Warn("cannot write the report of the keys that are left out", "error", err.Error())
	}
	done()
	return nil
}
