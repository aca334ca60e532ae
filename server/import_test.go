package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/persist/disk"
)

// putFile writes a file, and the directories that it is in.
func putFile(t require.TestingT, fs disk.FS, name string, content []byte) {
	require.NoError(t, fs.MkdirAll(fs.PathDir(name), 0o700))
	f, err := fs.Create(name)
	require.NoError(t, err)
	_, err = f.Write(bytes.Clone(content)) // the file system may change its argument
	require.NoError(t, errors.Join(err, f.Close()))
}

// rdbFile is an RDB file of a server on which commands were executed.
func rdbFile(t require.TestingT, commands ...string) []byte {
	b := newHarness(t)
	s := b.session()
	for _, line := range commands {
		require.False(t, strings.HasPrefix(b.feed(s, request(strings.Fields(line)...)), "-"), line)
	}
	var out bytes.Buffer
	require.NoError(t, b.WriteRDB(&out))
	b.finish(t, s)
	return out.Bytes()
}

// aofFile is commands as an append-only file has them.
func aofFile(commands ...string) []byte {
	var out []byte
	for _, line := range commands {
		out = append(out, request(strings.Fields(line)...)...)
	}
	return out
}

// load makes the server import the content of a file.
func (b *harness) load(r io.Reader) error {
	return b.importer.ImportFrom("a file", func() (io.ReadCloser, error) { return io.NopCloser(r), nil })
}

func TestWhatARedisHasStoredIsReadAtStart(t *testing.T) {
	rdb := rdbFile(t, "SET a 1", "RPUSH l x y", "SELECT 3", "HSET h f v")
	preamble := append(bytes.Clone(rdb), aofFile("SELECT 0", "INCR a", "SELECT 3", "HSET h g w")...)
	manifest := func(lines ...string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
	for _, test := range []struct {
		name  string
		files map[string][]byte
		set   string
		want  string // of GET a
	}{
		{"rdb", map[string][]byte{"dump.rdb": rdb}, "", "1"},
		{"rdb without a journal", map[string][]byte{"dump.rdb": rdb}, "save=3600 1", "1"},
		{"aof", map[string][]byte{"appendonly.aof": aofFile("SELECT 0", "SET a 1", "INCR a", "SELECT 3", "HSET h f v")}, "",
			"2"},
		{"aof with a preamble", map[string][]byte{"appendonly.aof": preamble}, "", "2"},
		{"aof in parts", map[string][]byte{"appendonlydir/base.rdb": rdb, "appendonlydir/two words.aof": aofFile("INCR a"),
			"appendonlydir/2.aof": aofFile("SELECT 3", "HSET h x y", "SELECT 0", "INCRBY a 10"),
			"appendonlydir/appendonly.aof.manifest": manifest("file 2.aof seq 12 type i", "file old.aof seq 1 type h",
				`file "two words.aof" seq 11 type i`, "file base.rdb seq 3 type b")}, "", "12"},
		{"aof and rdb", map[string][]byte{"dump.rdb": rdb,
			"appendonly.aof": aofFile("SET a aof", "SELECT 3", "HSET h f v")}, "", "aof"},
		{"aof that is not kept, and rdb", map[string][]byte{"dump.rdb": rdb, "appendonly.aof": aofFile("SET a aof")},
			"appendonly=no", "1"},
		{"times", map[string][]byte{"appendonly.aof": append([]byte("#TS:1700000000\r\n"),
			aofFile("SET a t", "SELECT 3", "HSET h f v")...)}, "", "t"},
		{"transactions", map[string][]byte{"appendonly.aof": aofFile("MULTI", "SET a 1", "SELECT 3", "HSET h f v", "EXEC",
			"SELECT 0", "INCR a", "MULTI", "INCR a")}, "", "2"},
		{"a cut command", map[string][]byte{"appendonly.aof": append(aofFile("SET a 1", "SELECT 3", "HSET h f v"),
			"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nlo"...)}, "", "1"},
		{"scripts", map[string][]byte{"appendonly.aof": append(request("EVAL", "redis.call('set', KEYS[1], 'lua')", "1",
			"a"), aofFile("SELECT 3", "HSET h f v")...)}, "", "lua"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fs := crashfs.Mem()
			for name, content := range test.files {
				putFile(t, fs, "/db/"+name, content)
			}
			set := []string{"appendfsync=always"}
			if test.set != "" {
				set = append(set, test.set)
			}
			if test.set == "appendonly=no" {
				set = append(set, "save=3600 1")
			}
			d, err := openDurable(t, fs, set...)
			require.NoError(t, err)
			get := fmt.Sprintf("$%d\r\n%s\r\n", len(test.want), test.want)
			d.expect(get, "GET a")
			for range 2 { // the second time the data comes from the store
				d.s.Close()
				require.NoError(t, d.close(false))
				d, err = openDurable(t, fs, set...)
				require.NoError(t, err)
				d.expect(get, "GET a")
			}
			d.expect("+OK\r\n", "SELECT 3")
			d.expect("$1\r\nv\r\n", "HGET h f")
			d.expect("+OK\r\n", "FLUSHALL")
			d.s.Close()
			require.NoError(t, d.close(true))
			d, err = openDurable(t, fs, set...)
			require.NoError(t, err)
			d.expect(":0\r\n", "DBSIZE")
			for name := range test.files {
				_, err := fs.Stat("/db/" + name)
				require.NoError(t, err, "the original is left alone")
			}
			d.end()
		})
	}
}

func TestWhatCannotBeReadIsRefused(t *testing.T) {
	rdb := rdbFile(t, "SET a 1", "SELECT 3", "SET b 2")
	broken := bytes.Clone(rdb)
	broken[len(broken)-12] ^= 1
	part := "appendonlydir/appendonly.aof.manifest"
	for _, test := range []struct {
		name  string
		files map[string][]byte
		set   string
		want  string
	}{
		{"damage", map[string][]byte{"dump.rdb": broken}, "", "corrupt data: the checksum"},
		{"a cut file", map[string][]byte{"dump.rdb": rdb[:len(rdb)-20]}, "", "unexpected EOF"},
		{"another file", map[string][]byte{"dump.rdb": []byte("\x00 something")}, "",
			"neither an RDB file nor an append-only file"},
		{"another version", map[string][]byte{"dump.rdb": []byte("REDIS0099")}, "", "version 99"},
		{"too few databases", map[string][]byte{"dump.rdb": rdb}, "databases=2",
			"a key in database 3, and there are 2 databases"},
		{"an unknown command", map[string][]byte{"appendonly.aof": aofFile("SET a 1", "NOSUCH x")}, "",
			`command 2: "NOSUCH" is no command that changes anything`},
		{"a reading command", map[string][]byte{"appendonly.aof": aofFile("GET a")}, "", "command 1"},
		{"an error", map[string][]byte{"appendonly.aof": aofFile("SET a x", "INCR a")}, "",
			"command 2: incr: ERR value is not an integer"},
		{"no commands", map[string][]byte{"appendonly.aof": []byte("*1\r\n+x\r\n")}, "", "command 1"},
		{"nested", map[string][]byte{"appendonly.aof": aofFile("MULTI", "MULTI")}, "", "a transaction within a transaction"},
		{"a cut end, and that is not allowed", map[string][]byte{"appendonly.aof": append(aofFile("SET a 1"),
			"*1\r\n$4\r\nPI"...)}, "aof-load-truncated=no", "ends in the middle of command 2"},
		{"half a transaction, and that is not allowed",
			map[string][]byte{"appendonly.aof": aofFile("SET a 1", "MULTI", "SET b 2")}, "aof-load-truncated=no",
			"ends in the middle of command 4"},
		{"a missing part", map[string][]byte{part: []byte("file x.aof seq 1 type i\n")}, "", "x.aof"},
		{"a part elsewhere", map[string][]byte{part: []byte("file ../x.aof seq 1 type i\n")}, "",
			"does not name a file of the same directory"},
		{"odd words", map[string][]byte{part: []byte("file x.aof seq\n")}, "", "line 1 of the manifest is malformed"},
		{"a number that is none", map[string][]byte{part: []byte("#\nfile x.aof seq x type i\n")}, "",
			"line 2 of the manifest is malformed"},
		{"a cut part that is not the last", map[string][]byte{part: []byte("file x.aof seq 1 type i\nfile y.aof seq 2 type i"), "appendonlydir/x.aof": []byte("*1\r\n$4\r\nPI"), "appendonlydir/y.aof": nil},
			"", "ends in the middle of command 1"},
		{"an empty rdb", map[string][]byte{"dump.rdb": nil}, "", "the file is empty"},
		{"an empty rdb without a journal", map[string][]byte{"dump.rdb": nil}, "save=3600 1", "the file is empty"},
		{"an empty rdb of another name", map[string][]byte{"other.rdb": nil}, "dbfilename=other.rdb",
			"other.rdb: the file is empty"},
		{"only a magic", map[string][]byte{"dump.rdb": []byte("REDIS")}, "", "EOF"},
		{"only a header", map[string][]byte{"dump.rdb": []byte("REDIS0010")}, "", "EOF"},
		{"less than a magic", map[string][]byte{"dump.rdb": []byte("RED")}, "",
			"neither an RDB file nor an append-only file"},
		{"gzip", map[string][]byte{"dump.rdb": []byte("\x1f\x8b\x08\x00\x00")}, "", "compressed with gzip"},
		{"a configuration", map[string][]byte{"dump.rdb": []byte("# redis.conf\n\nport 6379\n")}, "",
			`"port" is no command that changes anything`},
		{"remarks", map[string][]byte{"appendonly.aof": []byte("# nothing\n# else\n")}, "",
			"there is no command in the file"},
		{"a first command that is cut", map[string][]byte{"appendonly.aof": []byte("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nlo")}, "", "in the middle of its first command"},
		{"a first command that is none", map[string][]byte{"appendonly.aof": []byte("*")}, "",
			"in the middle of its first command"},
		{"a first transaction that is cut", map[string][]byte{"appendonly.aof": aofFile("MULTI", "SET a 1")}, "",
			"in the middle of its first command"},
		{"a first command behind a time that is cut",
			map[string][]byte{"appendonly.aof": []byte("#TS:1700000000\r\n*3\r\n$3\r\nSE")}, "",
			"in the middle of its first command"},
		{"parts without a manifest", map[string][]byte{"appendonlydir/appendonly.aof.1.base.rdb": rdb,
			"appendonlydir/appendonly.aof.1.incr.aof": nil},
			"", "appendonly.aof.manifest is missing"},
		{"a missing base", map[string][]byte{part: []byte("file x.rdb seq 1 type b\nfile y.aof seq 1 type i\n"),
			"appendonlydir/y.aof": aofFile("SET a 1")}, "", "x.rdb"},
		{"an empty base", map[string][]byte{part: []byte("file x.rdb seq 1 type b\nfile y.aof seq 1 type i\n"),
			"appendonlydir/x.rdb": nil, "appendonlydir/y.aof": aofFile("SET a 1")},
			"", "x.rdb: the file is empty"},
		{"a directory", map[string][]byte{"dump.rdb/x": rdb}, "", "dump.rdb is a directory"},
		{"a directory in the place of an aof", map[string][]byte{"appendonly.aof/x": rdb}, "",
			"appendonly.aof is a directory"},
		{"a directory in the place of a part", map[string][]byte{part + "/x": rdb}, "",
			"appendonly.aof.manifest is a directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fs := crashfs.Mem()
			for name, content := range test.files {
				putFile(t, fs, "/db/"+name, content)
			}
			set := []string{"appendfsync=always"}
			if test.set != "" {
				set = append(set, test.set)
			}
			if strings.HasPrefix(test.set, "save=") {
				set = append(set, "appendonly=no")
			}
			for range 2 { // nothing of the file stays
				_, err := openDurable(t, fs, set...)
				require.ErrorContains(t, err, test.want)
			}
			for name := range test.files {
				require.NoError(t, fs.RemoveAll("/db/"+strings.TrimSuffix(name, "/x")))
			}
			d, err := openDurable(t, fs, set...)
			require.NoError(t, err)
			d.expect(":0\r\n", "DBSIZE")
			d.end()
		})
	}
}

// Progress is called for long tasks until they are done.
func TestProgressIsTold(t *testing.T) {
	fs := crashfs.Mem()
	var sets []string
	for i := range 500 {
		sets = append(sets, fmt.Sprintf("SET k%d %d", i, i))
	}
	commands := aofFile(sets...)
	putFile(t, fs, "/elsewhere/x.manifest", []byte("file a.aof seq 1 type i\nfile b.aof seq 2 type i\n"))
	putFile(t, fs, "/elsewhere/a.aof", commands)
	putFile(t, fs, "/elsewhere/b.aof", commands)
	var mu sync.Mutex
	last, calls := map[string][3]any{}, map[string]int{}
	progress := func(step, unit string, done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		last[step] = [3]any{unit, done, total}
		calls[step]++
	}
	open := func(file string) *Server {
		conf := config.NewConfig()
		for name, value := range map[string]string{"port": "0", "dir": "/db", "save": "", "appendonly": "yes"} {
			require.NoError(t, conf.Set(name, value, false))
		}
		srv, err := New(conf, slog.New(&panicLog{}), Options{FS: fs, Goroutines: true, Import: file, Progress: progress})
		require.NoError(t, err)
		require.NoError(t, srv.Start())
		return srv
	}
	srv := open("/elsewhere/x.manifest")
	size := int64(2 * len(commands))
	require.Equal(t, [3]any{"B", size, size}, last["importing"])
	require.Equal(t, [3]any{"keys", int64(500), int64(500)}, last["writing a checkpoint"])
	require.NoError(t, srv.Close())

	srv = open("")
	for name, write := range map[string]func(io.Writer) error{"rdb": srv.WriteRDB, "aof": srv.WriteAOF} {
		delete(last, "writing keys")
		calls["writing keys"] = 0
		require.NoError(t, write(io.Discard))
		require.Equal(t, [3]any{"keys", int64(500), int64(500)}, last["writing keys"], name)
		require.Equal(t, 500/64+1, calls["writing keys"], name)
	}
	require.Equal(t, [3]any{"keys", int64(500), int64(500)}, last["loading keys"])
	require.Greater(t, calls["loading keys"], 1)
	require.NoError(t, srv.Close())
}

// openImport is New and Start with a file to import.
func openImport(t require.TestingT, fs disk.FS, file string) (*Server, error) {
	conf := config.NewConfig()
	for name, value := range map[string]string{"port": "0", "dir": "/db", "save": ""} {
		require.NoError(t, conf.Set(name, value, false))
	}
	srv, err := New(conf, slog.New(&panicLog{}), Options{FS: fs, Goroutines: true, Import: file})
	require.NoError(t, err)
	if err := srv.Start(); err != nil {
		return nil, errors.Join(err, srv.Close())
	}
	return srv, nil
}

func TestAnImportNeedsADirectoryWithoutData(t *testing.T) {
	fs := crashfs.Mem()
	putFile(t, fs, "/elsewhere/my.rdb", rdbFile(t, "SET a 1"))
	putFile(t, fs, "/elsewhere/only/x.manifest", []byte("file x.aof seq 1 type i\n"))
	putFile(t, fs, "/elsewhere/only/x.aof", aofFile("SET b 1"))
	_, err := openImport(t, fs, "/elsewhere/nosuch")
	require.Error(t, err)
	_, err = openImport(t, fs, "/elsewhere")
	require.ErrorContains(t, err, "neither an RDB file nor an append-only file")
	other := crashfs.Mem()
	putFile(t, other, "/elsewhere/cut.aof", append(aofFile("SET b 1", "MULTI", "SET b 2"), "*2\r\n$3\r\nDE"...))
	cut, err := openImport(t, other, "/elsewhere/cut.aof")
	require.NoError(t, err)
	require.Equal(t, "the end of the append-only file is left out, 52 bytes of a command or transaction that is cut",
		cut.LeftOut())
	require.NoError(t, cut.Close())
	srv, err := openImport(t, fs, "/elsewhere/only")
	require.NoError(t, err)
	require.NoError(t, srv.Close())
	for range 2 {
		_, err = openImport(t, fs, "/elsewhere/my.rdb")
		require.ErrorIs(t, err, ErrNotEmpty)
	}
}

// withoutTimes removes the parts that commands cannot restore: when consumers were seen, and the entries that
// producers have added.
func withoutTimes(lines []string) []string {
	times := regexp.MustCompile(` seen -?\d+ active -?\d+`)
	ever := regexp.MustCompile(`( producers \{[^}]*\} \{\d+ \d+) \d+ \d+\}`)
	for i := range lines {
		lines[i] = ever.ReplaceAllString(times.ReplaceAllString(lines[i], ""), "$1}")
	}
	return lines
}

func TestFilesHaveEverything(t *testing.T) {
	testseed.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		b := newJournalled(t)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			if line := randomCommand(r, journalTemplates[r.IntN(len(journalTemplates))]); !b.sessions[0].Waiting() {
				b.step(line)
			} else {
				b.step("+1000")
			}
		}
		b.step("+100000") // so that keys either have expired or stay for the time of the test
		if b.sessions[0].InTransaction() {
			b.step("DISCARD")
		}
		for name, write := range map[string]func(io.Writer) error{"rdb": b.WriteRDB, "aof": b.WriteAOF} {
			var file bytes.Buffer
			require.NoError(t, write(&file))
			again := newHarness(t)
			again.clock.Advance(b.clock.Now().Sub(again.clock.Now()))
			require.NoError(t, again.config.Set("set-max-listpack-entries", maxSmallSet, false))
			require.NoError(t, again.load(&file))
			require.Equal(t, withoutEncodings(withoutTimes(dump(b.ks, b.ks.Now()))),
				withoutEncodings(withoutTimes(dump(again.ks, again.ks.Now()))), name)
			require.NoError(t, again.Close())
			require.Empty(t, again.log.Found)
		}
		for _, s := range b.sessions {
			s.Close()
		}
		require.NoError(t, b.Close())
	})
}

// withoutEncodings removes encodings, which depend on earlier sizes of a collection, and the sign of a score of
// zero.
func withoutEncodings(lines []string) []string {
	for i, line := range lines {
		for _, name := range []string{" hashtable", " listpackex", " listpack", " intset", " skiplist"} {
			line = strings.TrimSuffix(line, name)
		}
		lines[i] = strings.TrimSuffix(strings.ReplaceAll(line+" ", "=-0 ", "=0 "), " ")
	}
	return lines
}

// FuzzAOF reads a file with arbitrary content.
func FuzzAOF(f *testing.F) {
	f.Add(aofFile("SELECT 1", "SET a 1", "MULTI", "RPUSH l x", "EXEC", "XADD x 1-1 a b", "XGROUP CREATE x g 0",
		"RESTORE r 0 "+integerPayload))
	f.Add([]byte("#TS:1\r\nSET a 1\r\n*0\r\n*1\r\n$0\r\n\r\n"))
	rdb := rdbFile(f, "SET a 1", "RPUSH l x y", "SADD s a", "ZADD z 1 a", "HSET h f v", "XADD x 1-1 a b")
	f.Add(append(rdb, aofFile("INCR a")...))
	f.Fuzz(func(t *testing.T, input []byte) {
		if !mayRun(input) {
			t.Skip()
		}
		b := newHarness(t)
		_ = b.load(bytes.NewReader(input))
		require.NoError(t, b.Close())
		require.Empty(t, b.log.Found)
	})
}

// listening is a server that listens on a port of its own.
func listening(t *testing.T, settings ...string) (*Server, string, string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	conf := config.NewConfig()
	conf.InMemory()
	require.NoError(t, conf.Set("port", "0", false))
	for _, pair := range settings {
		name, value, _ := strings.Cut(pair, "=")
		require.NoError(t, conf.Set(name, value, false))
	}
	srv, err := New(conf, slog.New(slog.DiscardHandler), Options{Listeners: []net.Listener{l}})
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	host, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return srv, host, port
}

func TestMigrate(t *testing.T) {
	target, host, port := listening(t, "requirepass=secret")
	b := newJournalled(t)
	from := b.sessions[0]
	do := func(args ...string) string { return b.feed(from, request(args...)) }
	there := func() []string { return dump(target.ks, b.ks.Now()) }
	for _, line := range []string{"SET a 1", "SET b 2 PX 100000000", "RPUSH l x y", "SET kept v"} {
		b.step(line)
	}
	migrate := func(args ...string) string {
		return do(append([]string{"MIGRATE", host, port}, args...)...)
	}
	require.Contains(t, migrate("a", "0", "5000"), "-ERR Target instance replied with error: NOAUTH")
	require.Contains(t, migrate("a", "0", "5000", "AUTH", "wrong"), "-ERR Target instance replied with error: WRONGPASS")
	require.Equal(t, "+OK\r\n", migrate("kept", "0", "5000", "COPY", "AUTH", "secret"))
	require.Contains(t, migrate("kept", "0", "5000", "COPY", "AUTH", "secret"),
		"-ERR Target instance replied with error: BUSYKEY")
	require.Equal(t, "+OK\r\n", migrate("kept", "0", "5000", "COPY", "REPLACE", "AUTH", "secret"))
	before := len(b.journal.records)
	require.Equal(t, "+OK\r\n", migrate("", "1", "5000", "AUTH2", "default", "secret", "KEYS", "a", "nosuch", "l", "b"))
	require.Len(t, b.journal.records, before+1)
	require.Equal(t, []string{"DEL a l b"}, b.journal.records[before].text(t))
	require.Equal(t, ":1\r\n", do("DBSIZE"))
	require.Len(t, there(), 4)
	require.Contains(t, strings.Join(there(), "\n"), `1 "l" list expires 0: "x" "y"`)
	require.Equal(t, "+NOKEY\r\n", migrate("a", "1", "5000"))
	require.Equal(t, "-"+"IOERR error or timeout writing to target instance"+"\r\n", do("MIGRATE", "127.0.0.1", "x", "kept", "0", "5000"))
	require.Equal(t, "+OK\r\n", do("SET", "self", "v"))
	b.finish(t)
}

func TestMigrateKeepsConnectionsForAWhile(t *testing.T) {
	target, host, port := listening(t)
	b := newJournalled(t)
	b.step("MSET a 1 b 2 c 3 d 4")
	migrate := func(key, db string) {
		require.Equal(t, "+OK\r\n", b.feed(b.sessions[0], request("MIGRATE", host, port, key, db, "5000")))
	}
	cached := func() string {
		_, rest, _ := strings.Cut(b.step("INFO stats"), "migrate_cached_sockets:")
		return rest[:1]
	}
	connections := func() int64 { return target.stats.connections.Load() }
	require.Equal(t, "0", cached())
	migrate("a", "0")
	require.Equal(t, "1", cached())
	migrate("b", "3")
	require.EqualValues(t, 1, connections())
	require.Contains(t, strings.Join(dump(target.ks, b.ks.Now()), "\n"), `3 "b" string`)
	// A connection that the other server has closed meanwhile is replaced.
	for _, s := range target.sessions.Clients.All() {
		s.Kill()
	}
	require.Eventually(t, func() bool { return target.sessions.Clients.Len() == 0 }, testTimeout, time.Millisecond)
	migrate("c", "3")
	require.EqualValues(t, 2, connections())
	b.step("+11500")
	require.Equal(t, "0", cached())
	migrate("d", "0")
	require.EqualValues(t, 3, connections())
	b.finish(t)
}

func TestMigrateToAServerThatSaysNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for _, reply := range []string{"", "+OK\r\n", "+OK\r\n+OK\r\n", strings.Repeat("x", 5000)} {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, reply)
			_, _ = io.CopyN(io.Discard, conn, 1)
			_ = conn.Close()
		}
	}()
	b := newJournalled(t)
	host, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	b.step("MSET a 1 b 2")
	for _, want := range []string{":2\r\n", ":2\r\n", ":1\r\n", ":1\r\n"} { // migrated keys are removed
		require.Regexp(t, "^-IOERR error or timeout (reading|writing) to target instance",
			b.feed(b.sessions[0], request("MIGRATE", host, port, "", "0", "5000", "KEYS", "a", "b")))
		require.Equal(t, want, b.step("DBSIZE"))
	}
	b.finish(t)
}

// An import of which no checkpoint was stored is done again by the next start: nothing of it is in the journal.
func TestAnImportThatWasNotStoredIsRepeated(t *testing.T) {
	mem := crashfs.Mem()
	putFile(t, mem, "/db/dump.rdb", rdbFile(t, "SET a 1", "SET b 2"))
	var read atomic.Bool
	_, err := openDurable(t, crashfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, "dump.rdb") {
			read.Store(true)
		}
		if read.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && !strings.Contains(op.Path, "/journal/") {
			return syscall.EIO
		}
		return nil
	})))
	require.Error(t, err)
	require.True(t, read.Load())
	d, err := openDurable(t, mem)
	require.NoError(t, err)
	reply, _ := d.do("DBSIZE")
	require.Equal(t, ":2\r\n", reply)
	d.end()
}
