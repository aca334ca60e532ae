package lsm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store"
)

// tables returns the paths of the data files.
func tables(t *testing.T, fs disk.FS) []string {
	names, err := fs.List("some/where/data")
	require.NoError(t, err)
	var paths []string
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			paths = append(paths, "some/where/data/"+name)
		}
	}
	return paths
}

// TestDamageIsFoundAndTheRestSalvaged flips a byte, truncates or removes a file of a store in many ways.
func TestDamageIsFoundAndTheRestSalvaged(t *testing.T) {
	whole := crashfs.New()
	s := open(t, whole)
	w := newWorld(1)
	for range 4 {
		require.NoError(t, w.checkpoint(s, 100))
	}
	require.NoError(t, s.Close())
	syncAll(t, whole)
	want := w.stored()
	rng := rand.New(rand.NewPCG(1, 1))
	left := 0
	damages := 40
	if testing.Short() {
		damages = 10
	}
	for i := range damages {
		fs := whole.CrashClone(crashfs.CloneCfg{})
		paths := tables(t, fs)
		file := paths[rng.IntN(len(paths))]
		data, err := fs.Bytes(file)
		require.NoError(t, err)
		what := fmt.Sprintf("damage %d of %s", i, file)
		switch i % 10 {
		case 0:
			require.NoError(t, fs.Remove(file))
		case 1:
			cut(t, fs, file, data[:rng.IntN(len(data))])
		default:
			data[rng.IntN(len(data))] ^= 0x11
		}
		var found []string
		_, err = Verify(fs, "some/where", func(msg string) { found = append(found, msg) })
		if err == nil {
			// The byte belongs to something that is never read.
			require.Empty(t, found, what)
			continue
		}
		require.Contains(t, err.Error(), file[strings.LastIndex(file, "/")+1:len(file)-4], what)
		require.NotEmpty(t, found, what)

		var dropped []string
		err = Salvage(fs, "some/where", func(msg string) { dropped = append(dropped, msg) })
		if err != nil {
			require.ErrorContains(t, err, "meta record", what)
			s, err := Open(Options{FS: fs, Dir: "some/where"})
			if err == nil { // the old data is still there
				require.NoError(t, s.Close())
			}
			continue
		}
		require.NotEmpty(t, dropped, what)
		_, err = Verify(fs, "some/where", func(msg string) { t.Error(what, msg) })
		require.NoError(t, err, what)
		s := open(t, fs)
		n := 0
		for key, value := range stored(t, s) {
			if key != string(metaKey) && key != string(metaCopyKey) {
				require.Equal(t, want[key], value, what)
			}
			if key[0] == prefixHead {
				n++
			}
		}
		m, _ := s.Meta()
		require.EqualValues(t, n, m.Keys, what)
		require.Equal(t, w.meta.Journal, m.Journal, what)
		require.NoError(t, s.Close())
		damaged, err := fs.List("some/where/data.damaged")
		require.NoError(t, err)
		require.NotEmpty(t, damaged)
		left += n
		t.Logf("%s: %d of %d keys left; %d reports", what, n, len(w.heads), len(dropped))
	}
	require.NotZero(t, left)
}

func cut(t *testing.T, fs disk.FS, path string, data []byte) {
	data = append([]byte(nil), data...)
	f, err := fs.Create(path)
	require.NoError(t, err)
	_, err = f.Write(data)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

func syncAll(t *testing.T, fs disk.FS) {
	for _, dir := range []string{"some/where/data", "some/where", "some", ""} {
		require.NoError(t, disk.SyncDir(fs, dir))
	}
}

// TestOneDamagedBlockCostsFewKeys damages a store whose keys are in many blocks.
func TestOneDamagedBlockCostsFewKeys(t *testing.T) {
	fs := crashfs.Mem()
	s := open(t, fs)
	c, err := s.Begin()
	require.NoError(t, err)
	const keys = 2000
	for i := range keys {
		key := fmt.Sprintf("a:common:prefix:%05d", i)
		require.NoError(t, c.PutHead(1, key, engine.Head{Blob: []byte(key + strings.Repeat("x", i%20))}, false, false))
	}
	require.NoError(t, c.Commit(store.Meta{Spaces: []uint32{1}}))
	require.NoError(t, s.Close())
	for _, path := range tables(t, fs) {
		data, err := fs.Bytes(path)
		require.NoError(t, err)
		if len(data) > keys { // not the meta record's
			data[len(data)/3] ^= 0xff
		}
	}
	var dropped []string
	require.NoError(t, Salvage(fs, "some/where", func(msg string) { dropped = append(dropped, msg) }))
	t.Log(dropped)
	s = open(t, fs)
	m, ok := s.Meta()
	require.True(t, ok)
	require.Greater(t, m.Keys, int64(keys*9/10))
	require.Less(t, m.Keys, int64(keys))
	require.NoError(t, s.Close())
}

func TestSuperfluousDataIsReported(t *testing.T) {
	fs := crashfs.Mem()
	s := open(t, fs)
	c, err := s.Begin()
	require.NoError(t, err)
	require.NoError(t, c.PutHead(1, "a", engine.Head{Type: engine.Set, Parts: 5}, false, false))
	require.NoError(t, c.PutHead(1, "b", engine.Head{External: true, Blob: []byte("x")}, false, false))
	require.NoError(t, c.PutHead(2, "c", engine.Head{}, false, false))
	require.NoError(t, c.PutPart(5, "x", nil))
	require.NoError(t, c.PutPart(6, "x", nil))
	require.NoError(t, c.PutPart(6, "y", nil))
	require.NoError(t, c.Commit(store.Meta{Spaces: []uint32{1}}))
	c, err = s.Begin()
	require.NoError(t, err)
	require.NoError(t, c.DeleteHead(1, "b", false))
	require.NoError(t, c.PutHead(1, "d", engine.Head{External: true}, true, false))
	require.NoError(t, c.Commit(store.Meta{Spaces: []uint32{1}}))
	require.NoError(t, s.Close())
	var found []string
	_, err = Verify(fs, "some/where", func(msg string) { found = append(found, msg) })
	require.EqualError(t, err, `value of key "d" in space 1: it is not in the store`)
	require.Equal(t, []string{
		`value of key "d" in space 1: it is not in the store`,
		`space 2 belongs to no database; its first key is "c"`,
		`value "\x00\x00\x00\x01b" belongs to no key`,
		`parts of value 6 belong to no key`,
	}, found)
	require.NoError(t, Salvage(fs, "some/where", func(string) {}))
	s = open(t, fs)
	require.Len(t, stored(t, s), 5)
	require.NoError(t, s.Close())
}

func TestInterruptedSalvageIsFinished(t *testing.T) {
	for _, removed := range []bool{false, true} {
		fs := crashfs.Mem()
		s := open(t, fs)
		w := newWorld(1)
		require.NoError(t, w.checkpoint(s, 10))
		require.NoError(t, s.Close())
		require.NoError(t, salvage(Options{FS: fs, Dir: "some/where", Log: s.o.Log, CacheSize: 1 << 20}, func(string) {}))
		if removed {
			require.NoError(t, fs.Rename("some/where/data", "some/where/data.damaged"))
		}
		w.meta.Keys = int64(len(w.heads))
		w.requireSound(t, fs)
		s = open(t, fs)
		require.Equal(t, w.stored(), stored(t, s))
		require.NoError(t, s.Close())
		names, err := fs.List("some/where")
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"LOCK", "checkpoint", "data", "data.damaged"}, names)
	}
}

func TestNothingToVerify(t *testing.T) {
	_, err := Verify(crashfs.Mem(), "not/there", nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}
