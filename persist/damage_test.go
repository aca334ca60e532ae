package persist_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/journal"
)

// keyspace is a stored keyspace of strings, whose journal only has SET and DEL.
type keyspace struct {
	*engine.Keyspace
	storage *persist.Storage
}

func openKeyspace(fs disk.FS) (*keyspace, error) {
	storage, err := persist.Open(persist.Options{FS: fs, Dir: "db", Policy: journal.Always,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	k := &keyspace{engine.New(engine.Options{Source: storage.Source(), Databases: 1}), storage}
	if err := storage.Recover(k.Keyspace, k.apply); err != nil {
		return nil, errors.Join(err, storage.Close(false))
	}
	return k, nil
}

func (k *keyspace) close(save bool) error {
	k.Close()
	return k.storage.Close(save)
}

// apply repeats a record that set has written.
func (k *keyspace) apply(now int64, commands []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = p.(*engine.LoadError)
		}
	}()
	words := strings.Split(string(commands), "\r\n")
	if len(words) < 7 || words[2] != "SET" {
		return fmt.Errorf("unknown command %q", commands)
	}
	k.set(words[4], words[6], now)
	return nil
}

func (k *keyspace) set(key, value string, now int64) {
	var g engine.Guard
	g.Lock(k.Keyspace, engine.AllShards, now)
	defer g.Unlock()
	e := g.Write(0, []byte(key))
	if e == nil {
		e = g.CreateString(0, []byte(key), []byte(value))
	} else {
		g.Overwrite(e, []byte(value))
	}
	g.Changed(e, engine.EventString, "set")
	g.Log(0, [][]byte{[]byte("SET"), []byte(key), []byte(value)})
}

// get returns the value of a key; missing keys are "". An error comes from reading the store.
func (k *keyspace) get(key string) (value string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = p.(*engine.LoadError)
		}
	}()
	var g engine.Guard
	g.Lock(k.Keyspace, engine.AllShards, k.Now())
	defer g.Unlock()
	if e := g.Read(0, []byte(key)); e != nil {
		return string(e.Bytes()), nil
	}
	return "", nil
}

// copyTree copies all files of a file system.
func copyTree(t *testing.T, from, to disk.FS, dir string) {
	require.NoError(t, to.MkdirAll(dir, 0o700))
	names, err := from.List(dir)
	require.NoError(t, err)
	for _, name := range names {
		path := from.PathJoin(dir, name)
		info, err := from.Stat(path)
		require.NoError(t, err)
		if info.IsDir() {
			copyTree(t, from, to, path)
			continue
		}
		writeFile(t, to, path, readFile(t, from, path))
	}
}

func readFile(t *testing.T, fs disk.FS, path string) []byte {
	f, err := fs.Open(path)
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	return b
}

func writeFile(t *testing.T, fs disk.FS, path string, content []byte) {
	f, err := fs.Create(path)
	require.NoError(t, err)
	_, err = f.Write(bytes.Clone(content)) // with the race detector a file in memory destroys what it has been given
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func files(t *testing.T, fs disk.FS, dir string) (paths []string) {
	names, err := fs.List(dir)
	require.NoError(t, err)
	slices.Sort(names)
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		if info, err := fs.Stat(path); err == nil && info.IsDir() {
			paths = append(paths, files(t, fs, path)...)
		} else if err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// TestDamageIsNeverSilent flips bits and truncates files of a data directory. Every time, the directory is refused, or
// an unreadable value is an error, or the data is unchanged. Only the end of the journal may count as a torn tail; then
// the data is an earlier state.
func TestDamageIsNeverSilent(t *testing.T) {
	sound := crashfs.Mem()
	k, err := openKeyspace(sound)
	require.NoError(t, err)
	want := map[string]string{}
	var history []map[string]string // before each change since the last checkpoint
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 600 {
		if i%200 == 199 {
			require.NoError(t, k.storage.Save())
			history = nil
		}
		key, value := fmt.Sprintf("key%d", rnd.IntN(80)), strings.Repeat(strconv.Itoa(i)+".", 1+rnd.IntN(2)*rnd.IntN(400))
		history = append(history, maps.Clone(want))
		want[key] = value
		k.set(key, value, k.Now())
	}
	history = append(history, maps.Clone(want))
	require.NoError(t, k.close(false))
	all := files(t, sound, "db")

	damaged := func(i int) (*crashfs.FS, string) {
		fs := crashfs.Mem()
		copyTree(t, sound, fs, "db")
		path := all[rnd.IntN(len(all))]
		content := readFile(t, sound, path)
		if len(content) == 0 {
			return fs, path + " is empty"
		}
		at := rnd.IntN(len(content))
		what := fmt.Sprintf("%d: %s of %d bytes ", i, path, len(content))
		if i%4 == 0 {
			content = content[:at]
			what += fmt.Sprintf("cut at %d", at)
		} else {
			content[at] ^= 1 << rnd.IntN(8)
			what += fmt.Sprintf("flipped at %d", at)
		}
		require.NoError(t, fs.Remove(path))
		writeFile(t, fs, path, content)
		return fs, what
	}
	rounds := 150
	switch {
	case os.Getenv("ATOMREDIS_FULL_TESTS") != "":
		rounds = 1000
	case testing.Short():
		rounds = 25
	}
	var refused, unreadable, torn, harmless, repaired int
	for i := range rounds {
		fs, what := damaged(i)
		k, err := openKeyspace(fs)
		if err != nil {
			refused++
			require.Regexp(t, `db/|db$`, err.Error(), "%s: an error must name the file", what)
			// A repair keeps the sound data.
			var report bytes.Buffer
			if err := persist.Repair(fs, "db", func(line string) { fmt.Fprintln(&report, line) }); err == nil {
				repaired++
				k, err := openKeyspace(fs)
				require.NoError(t, err, "%s\n%s", what, report.String())
				for key := range want {
					_, err := k.get(key)
					require.NoError(t, err, "%s\n%s", what, report.String())
				}
				require.NoError(t, k.close(true), what)
			}
			continue
		}
		got := map[string]string{}
		failed := false
		for key := range want {
			v, err := k.get(key)
			if err != nil {
				failed = true
				require.Regexp(t, `db/`, err.Error(), what)
				continue
			}
			if v != "" {
				got[key] = v
			}
		}
		// Unreadable values count as unchanged; the others must belong together.
		same := func(state map[string]string) bool {
			for key := range want {
				if v, ok := got[key]; (ok || !failed) && v != state[key] {
					return false
				}
			}
			return true
		}
		switch {
		case failed:
			unreadable++
			require.True(t, same(want) || slices.ContainsFunc(history, same), what)
		case maps.Equal(got, want):
			harmless++
		default:
			torn++
			require.Contains(t, what, "journal", "%s: other data than before", what)
			require.True(t, slices.ContainsFunc(history, func(h map[string]string) bool { return maps.Equal(h, got) }), what)
		}
		require.NoError(t, k.close(false), what)
	}
	t.Logf("%d damaged directories: %d refused (%d of them repaired), %d with values that are refused, %d cut at a torn tail, %d harmless",
		rounds, refused, repaired, unreadable, torn, harmless)
}
