package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	_ "github.com/atomredis/atomredis/internal/commands/strings" // registers how strings are rebuilt
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/rdb"
)

// host is a server with only strings and functions.
type host struct {
	t     *testing.T
	ks    *engine.Keyspace
	clock *engine.ManualClock
	files Files

	functions []string
	loading   error
	guard     engine.Guard
	db        int

	// The host as a Stream.
	tail  *Tail
	began chan struct{} // has an element once the tail has begun
	ended int
}

func newHost(t *testing.T, settings ...string) *host {
	clock := engine.NewManualClock(time.UnixMilli(1e12))
	conf := config.NewConfig()
	for _, pair := range append([]string{"dir=/db"}, settings...) {
		name, value, _ := strings.Cut(pair, "=")
		require.NoError(t, conf.Set(name, value, false))
	}
	h := &host{t: t, clock: clock, ks: engine.New(engine.Options{Clock: clock}), began: make(chan struct{}, 1),
		files: Files{FS: crashfs.Mem(), Config: conf, Log: slog.New(slog.DiscardHandler)}}
	t.Cleanup(h.ks.Close)
	return h
}

// under calls fn with a guard over everything.
func (h *host) under(fn func(g *engine.Guard)) {
	h.Lock()
	defer h.Unlock()
	fn(&h.guard)
}

// set gives keys values: "k=v" in database 0.
func (h *host) set(pairs ...string) {
	h.under(func(*engine.Guard) {
		for _, pair := range pairs {
			k, v, _ := strings.Cut(pair, "=")
			h.db = 0
			require.NoError(h.t, h.Command([][]byte{[]byte("SET"), []byte(k), []byte(v)}))
		}
	})
}

// all returns the existing keys as "db k=v".
func (h *host) all(keys ...string) (found []string) {
	h.under(func(g *engine.Guard) {
		for db := range h.ks.Databases() {
			for _, k := range keys {
				if e := g.Peek(db, []byte(k)); e != nil {
					found = append(found, fmt.Sprintf("%d %s=%s", db, k, e.Bytes()))
				}
			}
		}
	})
	return found
}

func (h *host) Keyspace() *engine.Keyspace                          { return h.ks }
func (h *host) Log() *slog.Logger                                   { return h.files.Log }
func (h *host) Libraries() []string                                 { return h.functions }
func (h *host) Kept() []byte                                        { return nil }
func (h *host) Loading() error                                      { return h.loading }
func (h *host) WhenLoaded(_ context.Context, fn func() error) error { return fn() }
func (h *host) Unlock()                                             { h.guard.Unlock() }
func (h *host) Select(db int)                                       { h.db = db }
func (h *host) exporter() *Exporter                                 { return NewExporter(h, nil) }
func (h *host) limits() *rdb.Limits                                 { return &rdb.Limits{} }
func (h *host) CutTail(t *Tail) (got bool)                          { got, h.tail = h.tail == t, nil; return got }
func (h *host) EndTail(t *Tail)                                     { h.tail, h.ended = nil, h.ended+1 }
func (h *host) dump(use bool, s Storage) *Dump {
	return NewDump(h.files, h.exporter(), s, use, h.clock.Now())
}
func (h *host) importer() *Importer {
	return NewImporter(h.files, h.ks, h.limits, func() Replayer { return h })
}
func (h *host) backups() *Backups                  { return NewBackups(h.files, h.exporter(), h.dump(true, nil), h) }
func (h *host) BeginTail(_ *engine.Guard, t *Tail) { h.tail = t; h.began <- struct{}{} }

func (h *host) Hold(fn func(g *engine.Guard)) error {
	if h.loading == nil {
		h.under(fn)
	}
	return h.loading
}

func (h *host) Lock() *engine.Guard {
	h.guard.Lock(h.ks, engine.AllShards, h.ks.Now())
	return &h.guard
}

// Knows knows SET, SELECT and RESTORE.
func (h *host) Knows(args [][]byte) bool {
	return slices.Contains([]string{"SET", "SELECT", "RESTORE"}, string(args[0]))
}

// Command knows SET and SELECT.
func (h *host) Command(args [][]byte) error {
	switch string(args[0]) {
	case "SELECT":
		h.db = int(args[1][0] - '0')
	case "SET":
		g := &h.guard
		if e := g.Peek(h.db, args[1]); e != nil {
			g.Remove(e, engine.EventNone, "")
		}
		g.Changed(g.CreateString(h.db, args[1], args[2]), engine.EventNone, "")
	default:
		return fmt.Errorf("unknown command %s", args[0])
	}
	return nil
}

func (h *host) Functions(codes []string, flush, replace bool) command.Error {
	require.Equal(h.t, flush, replace)
	if slices.Contains(codes, "broken") {
		return "ERR it is broken"
	}
	if flush {
		h.functions = nil
	}
	h.functions = append(h.functions, codes...)
	return ""
}

// put writes a file.
func (h *host) put(name, content string) {
	fs := h.files.FS
	require.NoError(h.t, fs.MkdirAll(fs.PathDir(name), 0o700))
	f, err := fs.Create(name)
	require.NoError(h.t, err)
	_, err = f.Write([]byte(content))
	require.NoError(h.t, errors.Join(err, f.Close()))
}

// content reads a file.
func (h *host) content(name string) string {
	f, err := h.files.FS.Open(name)
	require.NoError(h.t, err)
	b, err := io.ReadAll(f)
	require.NoError(h.t, errors.Join(err, f.Close()))
	return string(b)
}

// names returns the files in a directory.
func (h *host) names(dir string) []string {
	names, err := h.files.FS.List(dir)
	require.NoError(h.t, err)
	slices.Sort(names)
	return names
}

func TestWhatIsExportedIsImported(t *testing.T) {
	from := newHost(t)
	from.functions = []string{"one", "two"}
	from.set("a=1", "b=2")
	from.under(func(g *engine.Guard) { g.SetDeadline(g.Peek(0, []byte("b")), 1e12+1000) })
	from.under(func(g *engine.Guard) { g.Bless(g.Write(0, []byte("a")), true) })
	var file bytes.Buffer
	require.NoError(t, from.exporter().RDB(&file))
	for _, late := range []time.Duration{0, time.Minute} {
		to := newHost(t)
		to.clock.Advance(late)
		to.put("/db/x.rdb", file.String())
		im := to.importer()
		require.Nil(t, im.Loaded())
		require.NoError(t, im.Import("/db/x.rdb"))
		require.Equal(t, []string{"one", "two"}, to.functions)
		to.under(func(g *engine.Guard) { require.True(t, g.Peek(0, []byte("a")).Blessed()) })
		if late == 0 {
			require.Equal(t, []string{"0 a=1", "0 b=2"}, to.all("a", "b"))
			require.Equal(t, Loaded{2, 0}, *im.Loaded())
		} else {
			require.Equal(t, []string{"0 a=1"}, to.all("a", "b"))
			require.Equal(t, Loaded{1, 1}, *im.Loaded())
		}
	}

	var commands bytes.Buffer
	require.NoError(t, from.exporter().Commands(&commands))
	require.NotContains(t, commands.String(), "FUNCTION")
	require.Contains(t, commands.String(), "SET\r\n$1\r\na\r\n$1\r\n1")
	require.Contains(t, commands.String(), "BLESS\r\n$3\r\nSET\r\n$1\r\na\r\n")
	commands.Reset()
	require.NoError(t, from.exporter().AOF(&commands))
	require.Contains(t, commands.String(), "FUNCTION\r\n$4\r\nLOAD\r\n$3\r\none\r\n")
}

func TestACopyHasOnlyItsContent(t *testing.T) {
	h := newHost(t)
	h.functions = []string{"one"}
	h.set("a=1")
	for content, want := range map[Content]string{0: "", Keys: "a", Functions: "one", All: "onea"} {
		var file bytes.Buffer
		at, wrote := 0, 0
		require.NoError(t, h.exporter().Copy(t.Context(), &file, Copy{Content: content, At: func(*engine.Guard) { at++ },
			Wrote: func() { wrote++ }, About: func() []rdb.Aux { return []rdb.Aux{{Name: "n", Value: fmt.Sprint(at)}} }}))
		got, r := "", rdb.NewReader(&file, rdb.Limits{})
		for {
			item, err := r.Next()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			switch item := item.(type) {
			case rdb.Aux:
				require.False(t, item.Name == "n" && item.Value != "1", "About is called after At")
			case rdb.Function:
				got += string(item)
			case *rdb.Key:
				got += string(item.Key)
			}
		}
		require.Equal(t, want, got)
		require.Equal(t, 1, at)
		require.Equal(t, strings.Count(want, "a"), wrote)
	}
}

func TestACopyEndsWithItsContext(t *testing.T) {
	h := newHost(t)
	h.set("a=1")
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("nobody wants it")
	err := h.exporter().Copy(ctx, io.Discard, Copy{Content: All, Wait: true, At: func(*engine.Guard) { cancel(reason) }})
	require.ErrorIs(t, err, reason)
	require.NoError(t, h.exporter().RDB(io.Discard), "the snapshot was given up")
}

func TestNothingIsCopiedWhileACopyIsLoaded(t *testing.T) {
	h := newHost(t)
	h.loading = errors.New("LOADING")
	for _, content := range []Content{Functions, All} {
		at := func(*engine.Guard) { t.Error("there is no such moment") }
		require.Equal(t, h.loading, h.exporter().Copy(t.Context(), io.Discard, Copy{Content: content, At: at}))
	}
	h.loading = nil
	require.NoError(t, h.exporter().RDB(io.Discard))
}

func TestACopyReplacesAllDataOrNone(t *testing.T) {
	from := newHost(t)
	from.functions = []string{"new"}
	from.set("a=1")
	about := func() []rdb.Aux { return []rdb.Aux{{Name: "from", Value: "here"}} }
	file := func() io.Reader {
		var b bytes.Buffer
		require.NoError(t, from.exporter().Copy(t.Context(), &b, Copy{Content: All, About: about}))
		return &b
	}
	for _, want := range [][]string{{"0 a=1"}, nil} {
		to := newHost(t)
		to.functions = []string{"old"}
		to.set("b=2")
		if want == nil {
			from.under(func(g *engine.Guard) { g.Flush(-1) })
		}
		told, done := "", false
		hear := func(a rdb.Aux) error {
			if a.Name == "from" {
				told = a.Value
			}
			return nil
		}
		finish := func() { done = to.guard.Holds(engine.AllShards) }
		require.NoError(t, to.importer().Replace(t.Context(), file(), to, hear, finish))
		require.True(t, done)
		require.Equal(t, "here", told)
		require.Equal(t, []string{"new"}, to.functions)
		require.Equal(t, want, to.all("a", "b"))
	}

	to := newHost(t)
	to.set("b=2")
	none := func(rdb.Aux) error { return nil }
	never := func() { t.Error("it is not there") }
	from.functions = []string{"broken"}
	require.EqualError(t, to.importer().Replace(t.Context(), file(), to, none, never), "functions: it is broken")
	refused := errors.New("not that")
	require.Equal(t, refused, to.importer().Replace(t.Context(), file(), to, func(rdb.Aux) error { return refused }, never))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, context.Canceled, to.importer().Replace(ctx, file(), to, none, never))
	require.Equal(t, []string{"0 b=2"}, to.all("a", "b"))
	to.set("c=3") // the guard was released
}

func TestAnImportGivesTheGuardBackNowAndThen(t *testing.T) {
	h := newHost(t)
	var aof bytes.Buffer
	for i := range 3 * loadBatch {
		fmt.Fprintf(&aof, "*3\r\n$3\r\nSET\r\n$%d\r\nk%d\r\n$1\r\nv\r\n", len(fmt.Sprint("k", i)), i)
	}
	counted := &lockCounter{Replayer: h}
	im := NewImporter(h.files, h.ks, h.limits, func() Replayer { return counted })
	require.NoError(t, im.ImportFrom("commands", func() (io.ReadCloser, error) { return io.NopCloser(&aof), nil }))
	require.Equal(t, 3, counted.locks)
	require.Equal(t, []string{"0 k0=v", "0 k767=v"}, h.all("k0", "k767"))
}

// lockCounter counts how often the guard is taken.
type lockCounter struct {
	Replayer
	locks int
}

func (c *lockCounter) Lock() *engine.Guard {
	c.locks++
	return c.Replayer.Lock()
}

// failingSource fails to be closed.
type failingSource struct {
	io.Reader
	err error
}

func (f failingSource) Close() error { return f.err }

func TestAnImportNamesWhatItCannotRead(t *testing.T) {
	h := newHost(t)
	im, broken := h.importer(), errors.New("it is broken")
	err := im.ImportFrom("the data", func() (io.ReadCloser, error) { return nil, broken })
	require.EqualError(t, err, "import of the data: it is broken")
	err = im.ImportFrom("the data", func() (io.ReadCloser, error) { return failingSource{strings.NewReader(""), broken}, nil })
	require.ErrorIs(t, err, broken)
	err = im.Import("/nosuch")
	require.ErrorContains(t, err, "import of /nosuch: ")
	require.Nil(t, im.Loaded())
	cut := "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*3\r\n$3\r\nSE"
	require.NoError(t, im.ImportFrom("a cut one", func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(cut)), nil }))
	require.Equal(t, "the end of the append-only file is left out, 10 bytes of a command or transaction that is cut", im.LeftOut())
}

func TestFindPrefersTheAppendOnlyFile(t *testing.T) {
	for _, test := range []struct{ files, set, want, problem string }{
		{"", "", "", ""},
		{"dump.rdb", "", "/db/dump.rdb", ""},
		{"other.rdb", "dbfilename=other.rdb", "/db/other.rdb", ""},
		{"dump.rdb appendonly.aof", "appendonly=yes", "/db/appendonly.aof", ""},
		{"dump.rdb appendonly.aof", "appendonly=no", "/db/dump.rdb", ""},
		{"appendonly.aof", "appendonly=no", "/db/appendonly.aof", ""},
		{"appendonly.aof appendonlydir/appendonly.aof.manifest", "appendonly=yes", "/db/appendonlydir/appendonly.aof.manifest", ""},
		{"parts/x.manifest", "appenddirname=parts appendfilename=x", "/db/parts/x.manifest", ""},
		{"appendonlydir/appendonly.aof.1.base.rdb dump.rdb", "appendonly=yes", "", "appendonly.aof.manifest is missing"},
		{"dump.rdb/x", "", "", "/db/dump.rdb is a directory"},
	} {
		h := newHost(t, strings.Fields(test.set)...)
		for _, name := range strings.Fields(test.files) {
			h.put("/db/"+name, "")
		}
		found, err := Find(h.files.FS, h.files.Config.Get())
		if test.problem != "" {
			require.ErrorContains(t, err, test.problem)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, test.want, found, test.files)
	}
}

func TestAManifestNamesPartsInTheirOrder(t *testing.T) {
	parts, err := parseManifest([]byte("# parts\nfile 12 seq 12 type i\n\nfile old seq 1 type h\n" +
		`file "eleven \x41" seq 11 type i extra word` + "\r\nseq 3 type b file base\n"))
	require.NoError(t, err)
	require.Equal(t, []aofPart{{"base", 'b', 3}, {"eleven A", 'i', 11}, {"12", 'i', 12}}, parts)
	for line, want := range map[string]string{
		"file a seq":                  "line 1 of the manifest is malformed",
		"\nfile a seq x type i":       "line 2 of the manifest is malformed",
		`file "a seq 1 type i`:        "line 1 of the manifest is malformed",
		`file "" seq 1 type i`:        "line 1 of the manifest is malformed",
		"file a seq 1":                "line 1 of the manifest does not name a file of the same directory",
		"seq 1 type i":                "line 1 of the manifest does not name a file of the same directory",
		"file ../a seq 1 type i":      "line 1 of the manifest does not name a file of the same directory",
		"file /etc/passwd type i":     "line 1 of the manifest does not name a file of the same directory",
		"file a seq 1 type i\nfile b": "line 2 of the manifest does not name a file of the same directory",
	} {
		_, err := parseManifest([]byte(line))
		require.EqualError(t, err, want, line)
	}
}

func TestASaveThatFailsLeavesTheFileBefore(t *testing.T) {
	h := newHost(t)
	mem, fails := h.files.FS, false
	h.files.FS = crashfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fails && op.Kind == errorfs.OpRename {
			return errors.New("not today")
		}
		return nil
	}))
	d := h.dump(true, nil)
	require.True(t, d.CanSave())
	require.Equal(t, h.clock.Now(), d.Status().Saved, "that of the start")
	h.set("a=1")
	h.clock.Advance(time.Hour)
	require.True(t, d.Begin())
	require.False(t, d.Begin())
	require.True(t, d.Status().Checkpoint)
	require.NoError(t, d.Save())
	st, was := d.Status(), h.content("/db/dump.rdb")
	require.Equal(t, h.clock.Now(), st.Saved)
	require.Equal(t, 1, st.Checkpoints)
	require.False(t, st.Checkpoint)

	fails = true
	h.set("a=2")
	require.True(t, d.Begin())
	require.ErrorContains(t, d.Save(), "not today")
	require.ErrorContains(t, d.Status().LastErr, "not today")
	require.Equal(t, 1, d.Status().Failed)
	require.Equal(t, st.Saved, d.Status().Saved)
	require.Equal(t, was, h.content("/db/dump.rdb"))
	require.Equal(t, []string{"dump.rdb"}, h.names("/db"))
	require.False(t, h.dump(false, nil).CanSave())
}

// start begins a backup, and returns when it gets commands.
func start(t *testing.T, h *host, b *Backups) {
	require.NoError(t, b.Start())
	<-h.began
	require.Eventually(t, func() bool { return b.Status().State == BackupIncrementing }, time.Minute, time.Millisecond)
}

func TestABackupIsAnAppendOnlyFileInParts(t *testing.T) {
	h := newHost(t)
	h.set("a=1")
	b := h.backups()
	_, err := b.Seal()
	require.Equal(t, errBackupNone, err)
	start(t, h, b)
	require.Equal(t, []string{"/db/backupdir/appendonly.aof.1.base.rdb"}, b.Status().Files)
	require.Equal(t, errBackupMade, b.Start())
	h.tail.Add([]byte("*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r\n"))
	wait, err := b.Seal()
	require.NoError(t, err)
	require.NoError(t, wait())
	require.Equal(t, BackupSealed, b.Status().State)
	require.Equal(t, 1, h.ended)
	require.Len(t, b.Status().Files, 3)
	require.Equal(t, errBackupSealed, b.Start())

	to := newHost(t)
	to.files.FS = h.files.FS
	require.NoError(t, to.importer().Import("/db/backupdir"))
	require.Equal(t, []string{"0 a=1", "0 b=2"}, to.all("a", "b"))

	require.NoError(t, b.Clean())
	require.Empty(t, h.names("/db/backupdir"))
	require.Equal(t, Backup{}, b.Status())
	b.Close()
	require.Equal(t, errBackupEnd, b.Start())
}

func TestABackupThatFailsLeavesNothing(t *testing.T) {
	for want, fail := range map[string]func(h *host, b *Backups){
		errBackupAborted.Error(): func(_ *host, b *Backups) {
			wait, err := b.Abort()
			require.NoError(t, err)
			require.NoError(t, wait())
		},
		errBackupSlow.Error():    func(h *host, _ *Backups) { h.tail.Add(make([]byte, 1001)) },
		errBackupReplica.Error(): func(h *host, _ *Backups) { h.tail.Replaced() },
		errBackupEnd.Error():     func(_ *host, b *Backups) { b.Close() },
	} {
		h := newHost(t, "client-output-buffer-limit=replica 1000 0 0")
		b := h.backups()
		start(t, h, b)
		fail(h, b)
		require.Eventually(t, func() bool { return b.Status().State == BackupFailed }, time.Minute, time.Millisecond, want)
		require.Equal(t, want, b.Status().Problem)
		require.Empty(t, b.Status().Files)
		require.Empty(t, h.names("/db/backupdir"))
		require.Equal(t, 1, h.ended)
		b.Close()
	}
}

func TestASealedBackupIsRemovedAfterItsTime(t *testing.T) {
	h := newHost(t, "backup-sealed-ttl=60")
	b := h.backups()
	start(t, h, b)
	wait, err := b.Seal()
	require.NoError(t, err)
	require.NoError(t, wait())
	h.clock.Advance(59 * time.Second)
	require.Len(t, h.names("/db/backupdir"), 3)
	h.clock.Advance(2 * time.Second)
	require.Empty(t, h.names("/db/backupdir"))
	require.Empty(t, b.Status().State)
	b.Close()
}
