package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/resp"
)

// Reading what a Redis has stored: RDB files, append-only files, with an RDB file at their head or without, and
// directories of them. It is read before the server serves, into a keyspace that has never been stored, and stored at
// once (persist.Options.Import).

const manifestTail = ".manifest"

// redisFiles are the names of Redis's files in a data directory.
type redisFiles struct{ rdb, aofDir, aof string }

var defaultFiles = redisFiles{"dump.rdb", "appendonlydir", "appendonly.aof"}

// in returns the path of what a Redis has stored in a directory, "" if there is nothing. Where there is an
// append-only file it is the better of the two, unless the configuration says that none is kept. Something of another
// kind in the place of a file, or a folder of parts without the manifest that says what they are, is an error: it is
// not nothing.
func (n redisFiles) in(fs vfs.FS, dir string, appendOnly bool) (string, error) {
	parts := fs.PathJoin(dir, n.aofDir)
	aof := []string{fs.PathJoin(parts, n.aof+manifestTail), fs.PathJoin(dir, n.aof)}
	candidates := append(aof, fs.PathJoin(dir, n.rdb))
	if !appendOnly {
		candidates = append([]string{fs.PathJoin(dir, n.rdb)}, aof...)
	}
	for _, name := range candidates {
		info, err := fs.Stat(name)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return "", err
		case info.IsDir():
			return "", fmt.Errorf("%s is a directory, and should be a file", name)
		default:
			return name, nil
		}
		if name == aof[0] {
			if err := n.orphans(fs, parts); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// orphans returns an error if there are parts of an append-only file in a directory, in which there is no manifest of
// that name.
func (n redisFiles) orphans(fs vfs.FS, parts string) error {
	names, err := fs.List(parts)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, n.aof+".") {
			return fmt.Errorf("%s has parts of an append-only file, but %s%s is missing", parts, n.aof, manifestTail)
		}
	}
	return nil
}

// importStored returns what persist.Options.Import needs: it reads the file that Options.Import names, or what a
// Redis has stored in the data directory; nil if there is nothing to read.
func (srv *Server) importStored(set *config.Settings) func() error {
	file := srv.storage.importFile
	if file == "" {
		names := redisFiles{set.DBFilename, set.AppendDirname, set.AppendFilename}
		var err error
		if file, err = names.in(srv.fs, set.Dir, set.AppendOnly); err != nil {
			return func() error { return fmt.Errorf("what a Redis has stored cannot be read: %w", err) }
		}
		if file == "" {
			return nil
		}
	}
	return func() error {
		err := srv.importWith(file, func(im *importer) error { return im.run(file) })
		srv.storage.imported = err == nil
		return err
	}
}

// importWith has fn read something, which is named in the log, into the keyspace.
func (srv *Server) importWith(what string, fn func(*importer) error) error {
	srv.log.Info("importing what is stored", "file", what)
	im := importer{srv: srv, fs: srv.fs, r: newReplayer(srv, command.FromImport), next: time.Now().Add(importProgress),
		files: &filesRead{tell: srv.progress}}
	start := time.Now()
	err := fn(&im)
	im.unlock()
	if err != nil {
		return fmt.Errorf("import of %s: %w", what, err)
	}
	srv.storage.leftOut = im.leftOut
	im.tell()
	srv.log.Info("imported", "file", what, "keys", im.keys, "expired", im.expired, "functions", im.functions, "commands",
		im.commands,
		"duration", time.Since(start).Round(time.Millisecond))
	return nil
}

// LeftOut says what the file that was imported ends in and was not read, "" if all was.
func (srv *Server) LeftOut() string { return srv.storage.leftOut }

// loadedKeys are how many keys a file had, and how many of these had expired.
type loadedKeys struct{ keys, expired int }

// tell has INFO show what was read.
func (im *importer) tell() { im.srv.stats.loaded.Store(&loadedKeys{im.keys, im.expired}) }

// importer reads files into the keyspace.
type importer struct {
	srv *Server
	fs  vfs.FS
	r   *replayer

	locked bool // r's guard is held, over everything
	steps  int  // keys and commands since it was locked

	files *filesRead // nil if no files are read

	leftOut string // see Server.LeftOut

	preamble                           bool // an RDB file was read, or another part
	keys, expired, functions, commands int
	next                               time.Time // when the progress is told
}

const (
	importBatch    = 256 // keys or commands after which others get a chance to take the guard
	importProgress = 5 * time.Second
)

// lock has the guard held for what is done next.
func (im *importer) lock() *engine.Guard {
	s := im.r.s
	if im.locked && im.steps == importBatch {
		im.unlock()
		if now := time.Now(); now.After(im.next) {
			im.next = now.Add(importProgress)
			if im.files == nil || im.files.tell == nil || im.files.done == 0 {
				im.srv.log.Info("importing", "keys", im.keys, "commands", im.commands)
			}
		}
	}
	if !im.locked {
		s.now = im.srv.ks.Now()
		s.guard.Lock(im.srv.ks, engine.AllShards, s.now)
		im.locked, im.steps = true, 0
	}
	im.steps++
	return &s.guard
}

func (im *importer) unlock() {
	if im.locked {
		im.r.s.guard.Unlock()
		im.locked = false
	}
}

// run reads what is at a path: a file of any kind, or a directory with such.
func (im *importer) run(name string) error {
	info, err := im.fs.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		if name, err = im.inDirectory(name); err != nil {
			return err
		}
	}
	if strings.HasSuffix(name, manifestTail) {
		return im.manifest(name)
	}
	return im.file(name, true)
}

// inDirectory returns the path of what is to be read in a directory: that of a Redis, or of an append-only file in
// parts.
func (im *importer) inDirectory(dir string) (string, error) {
	if name, err := defaultFiles.in(im.fs, dir, true); name != "" || err != nil {
		return name, err
	}
	names, err := im.fs.List(dir)
	if err != nil {
		return "", err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, manifestTail) })
	switch len(names) {
	case 0:
		return "", errors.New("there is neither an RDB file nor an append-only file in the directory")
	case 1:
		return im.fs.PathJoin(dir, names[0]), nil
	}
	return "", fmt.Errorf("several append-only files in the directory: %s", strings.Join(names, ", "))
}

// aofPart is a line of a manifest.
type aofPart struct {
	name string
	kind byte // b for the base, i for an increment, h for what is not needed any more
	seq  int64
}

// manifest reads the parts of an append-only file.
func (im *importer) manifest(name string) error {
	b, err := im.readSmall(name)
	if err != nil {
		return err
	}
	parts, err := parseManifest(b)
	if err != nil {
		return err
	}
	for _, p := range parts {
		// The names are relative to the manifest. A part that is missing shows when it is opened.
		if info, err := im.fs.Stat(im.fs.PathJoin(im.fs.PathDir(name), p.name)); err == nil {
			im.files.total += info.Size()
		}
	}
	for i, p := range parts {
		part := im.fs.PathJoin(im.fs.PathDir(name), p.name)
		if err := im.file(part, i == len(parts)-1); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		im.preamble = true
	}
	return nil
}

// maxManifest is how long a manifest may be, in bytes: each line has a file of the same directory.
const maxManifest = 1 << 20

func (im *importer) readSmall(name string) ([]byte, error) {
	f, err := im.fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err == nil && len(b) > maxManifest {
		err = errors.New("the manifest is too long")
	}
	return b, err
}

// parseManifest returns the parts that are to be read, in their order. A line is pairs of words: file NAME seq NUMBER
// type KIND.
func parseManifest(b []byte) ([]aofPart, error) {
	var parts []aofPart
	for i, line := range bytes.Split(b, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		malformed := fmt.Errorf("line %d of the manifest is malformed", i+1)
		words, err := resp.SplitArgs(line, nil) // names may be in quotes, as in a command
		if err != nil || len(words)%2 != 0 {
			return nil, malformed
		}
		var p aofPart
		for j := 0; j < len(words); j += 2 {
			value := string(words[j+1])
			if value == "" {
				return nil, malformed
			}
			switch string(words[j]) {
			case "file":
				p.name = value
			case "seq":
				p.seq, err = strconv.ParseInt(value, 10, 64)
			case "type":
				p.kind = value[0]
			}
			if err != nil {
				return nil, malformed
			}
		}
		if p.name == "" || p.name != path.Base(p.name) || p.kind == 0 {
			return nil, fmt.Errorf("line %d of the manifest does not name a file of the same directory", i+1)
		}
		if p.kind != 'h' {
			parts = append(parts, p)
		}
	}
	slices.SortStableFunc(parts, func(a, b aofPart) int {
		if a.kind != b.kind {
			return int(a.kind) - int(b.kind) // the base first
		}
		return int(min(max(a.seq-b.seq, -1), 1))
	})
	return parts, nil
}

// file reads an RDB file or an append-only file; last says that it may end in the middle of a command, because Redis
// was killed.
func (im *importer) file(name string, last bool) error {
	f, err := im.fs.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() == 0 && path.Ext(name) != ".aof" { // which is one of a Redis that had nothing to write
		err = errors.New("the file is empty")
	}
	if err != nil {
		return err
	}
	im.files.total = max(im.files.total, info.Size())
	return im.read(countedFile{f, im.files}, last)
}

// filesRead tells Options.Progress how much of the files of an import has been read, in bytes.
type filesRead struct {
	tell        func(step, unit string, done, total int64) // nil if nobody is told
	done, total int64
}

// countedFile is a file of an import.
type countedFile struct {
	io.Reader
	of *filesRead
}

// Read implements io.Reader.
func (f countedFile) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if f.of.done += int64(n); f.of.tell != nil && n > 0 {
		f.of.tell("importing", "B", f.of.done, f.of.total)
	}
	return n, err
}

// read reads the content of a file.
func (im *importer) read(f io.Reader, last bool) error {
	in := bufio.NewReaderSize(f, restoreChunk)
	head, err := in.Peek(len(rdb.Magic))
	if err != nil && err != io.EOF {
		return err
	}
	if string(head) != rdb.Magic {
		switch {
		case strings.HasPrefix(string(head), "\x1f\x8b"):
			return errors.New("the file is compressed with gzip, and must be unpacked before")
		case len(head) > 0 && head[0] != '*' && head[0] != '#':
			return errors.New("the file is neither an RDB file nor an append-only file")
		}
		return im.aof(in, last)
	}
	r := rdb.NewReader(in, *im.srv.RDBLimits())
	if err := im.rdb(r); err != nil {
		return err
	}
	im.preamble = true
	return im.aof(io.MultiReader(bytes.NewReader(r.Rest()), in), last)
}

// rdb reads an RDB file.
func (im *importer) rdb(r *rdb.Reader) error {
	var codes []string
	for {
		item, err := r.Next()
		switch {
		case err == io.EOF && len(codes) > 0:
			im.lock()
			im.functions += len(codes)
			if e := im.srv.scripts.Restore(codes, false, false); e != "" {
				return fmt.Errorf("functions: %s", strings.TrimPrefix(string(e), "ERR "))
			}
			return nil
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		switch item := item.(type) {
		case rdb.Function:
			codes = append(codes, string(item))
		case *rdb.Key:
			if err := im.key(item); err != nil {
				return err
			}
		}
	}
}

// key creates a key, unless its time has come.
func (im *importer) key(k *rdb.Key) error {
	g := im.lock()
	if n := im.srv.ks.Databases(); k.DB >= n {
		return fmt.Errorf("a key in database %d, and there are %d databases: see the directive databases", k.DB, n)
	}
	if k.Deadline != 0 && k.Deadline <= g.Now() && !g.FromMaster {
		im.expired++
		return nil
	}
	if g.Peek(k.DB, k.Key) != nil {
		return fmt.Errorf("key %s in database %d comes twice", strconv.Quote(string(k.Key)), k.DB)
	}
	e := rdb.Create(g, k.DB, k.Key, k.Value)
	g.SetDeadline(e, k.Deadline)
	if k.Idle >= 0 {
		g.SetIdleTime(e, k.Idle)
	}
	g.Changed(e, engine.EventNone, "")
	im.keys++
	return nil
}

// aof repeats commands. Those of a transaction count only with its end.
func (im *importer) aof(r io.Reader, last bool) error {
	commands := resp.NewCommandReader(r)
	im.r.s.db = 0
	var queue [][][]byte // of the transaction that is open
	open := false
	whole := int64(0) // bytes up to where everything has been repeated
	for {
		args, err := commands.Next()
		switch {
		case err == io.EOF && open, err == io.ErrUnexpectedEOF:
			if !last || !im.srv.config.Get().AOFLoadTruncated {
				return fmt.Errorf("the file ends in the middle of command %d", commands.Count+1)
			}
			// Redis, when it is killed, leaves a cut end behind what it has written before. Without that it is something else.
			if im.commands == 0 && !im.preamble {
				return errors.New("the file ends in the middle of its first command or transaction: nothing of it can be read")
			}
			im.leftOut = fmt.Sprintf("the end of the append-only file is left out, %d bytes of a command or transaction that is cut", commands.Received-whole)
			im.srv.log.Warn(im.leftOut, "commands", im.commands)
			return nil
		case err == io.EOF && im.commands == 0 && !im.preamble && commands.Received > 0:
			return errors.New("there is no command in the file")
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		switch {
		case args[0][0] == '#': // a remark, such as a time
		case command.EqualFold(args[0], "multi"):
			if open {
				return fmt.Errorf("command %d: a transaction within a transaction", commands.Count)
			}
			open = true
		case command.EqualFold(args[0], "exec"):
			for _, q := range queue {
				if err = im.command(q); err != nil {
					break
				}
			}
			queue, open = nil, false
		case open:
			queue = append(queue, resp.CloneArgs(args))
		default:
			err = im.command(args)
		}
		if err != nil {
			return fmt.Errorf("command %d: %w", commands.Count, err)
		}
		if !open {
			whole = commands.Consumed
		}
	}
}

// command repeats a command.
func (im *importer) command(args [][]byte) error {
	im.lock()
	im.commands++
	return im.r.command(args)
}
