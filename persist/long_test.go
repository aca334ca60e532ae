package persist_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/persist"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store/lsm"
)

// longValue is a value stored in pieces that differs everywhere from those with other numbers.
func longValue(i int) string { return strings.Repeat(fmt.Sprintf("%07d.", i), 150_000+1000*i) }

// change changes a key of database 0 without journalling it: only checkpoints keep it.
func (k *keyspace) change(key string, do func(g *engine.Guard, e *engine.Entry)) {
	var g engine.Guard
	g.Lock(k.Keyspace, engine.AllShards, k.Now())
	defer g.Unlock()
	do(&g, g.Write(0, []byte(key)))
}

// sound fails if Verify reports anything, even something merely superfluous.
func sound(t *testing.T, fs disk.FS) {
	_, err := lsm.Verify(fs, "db", func(msg string) { t.Error(msg) })
	require.NoError(t, err)
}

// A copy of the disk at many file-system calls, while long strings are stored repeatedly, has one of the former values:
// all of it, and nothing else.
func TestLongStringsAreStoredWholeOrNotAtAll(t *testing.T) {
	disk := crashfs.New()
	var mu sync.Mutex
	var copies []*crashfs.FS
	var last []int64 // the last acknowledged number for each key
	var acknowledged atomic.Int64
	var calls, taken int
	most := 120
	if testing.Short() {
		most = 30
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	fs := crashfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if calls++; op.Kind.ReadOrWrite() == errorfs.OpIsWrite && rnd.IntN(6) == 0 && taken < most {
			taken++
			copies = append(copies, disk.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: 50 * rnd.IntN(3), RNG: rnd}))
			last = append(last, acknowledged.Load())
		}
		return nil
	}))
	k, err := openKeyspace(fs)
	require.NoError(t, err)
	rounds := 8
	if testing.Short() {
		rounds = 4
	}
	for i := 1; i <= rounds; i++ {
		k.set("long", longValue(i), k.Now())
		if i%3 != 0 {
			require.NoError(t, k.storage.Save()) // else only the journal has it
		}
		if i%4 == 0 {
			k.change("long", func(g *engine.Guard, e *engine.Entry) {
				g.SetDeadline(e, k.Now()+1e9)
				g.Changed(e, engine.EventGeneric, "expire")
			})
			require.NoError(t, k.storage.Save())
		}
		if i%3 != 0 {
			acknowledged.Store(int64(i))
		}
	}
	require.NoError(t, k.close(true))
	t.Logf("%d copies in %d calls", len(copies), calls)
	require.Greater(t, len(copies), 20)
	for n, fs := range copies {
		k, err := openKeyspace(fs)
		require.NoError(t, err)
		got, err := k.get("long")
		require.NoError(t, err)
		i := 0
		if got != "" {
			_, err = fmt.Sscanf(got, "%d.", &i)
			require.NoError(t, err)
			require.True(t, got == longValue(i), "copy %d is not what there was", n)
		}
		require.GreaterOrEqual(t, int64(i), last[n], "copy %d", n)
		require.NoError(t, k.close(false))
		sound(t, fs)
	}
}

// A long string with a damaged or missing piece is not shown at all; a repair drops it, and keeps the others.
func TestADamagedPieceOfALongStringIsFound(t *testing.T) {
	whole := crashfs.Mem()
	k, err := openKeyspace(whole)
	require.NoError(t, err)
	values := map[string]string{}
	for _, key := range []string{"a", "b", "c"} {
		b := make([]byte, 3<<20) // incompressible
		rng := rand.NewChaCha8([32]byte([]byte(strings.Repeat(key, 32))))
		rng.Read(b)
		values[key] = string(b)
		k.set(key, values[key], k.Now())
	}
	require.NoError(t, k.close(true))
	damaged := func(damage func(fs disk.FS)) {
		fs := crashfs.Mem()
		copyTree(t, whole, fs, "db")
		damage(fs)
		var found []string
		_, err := lsm.Verify(fs, "db", func(msg string) { found = append(found, msg) })
		require.Error(t, err)
		require.NotEmpty(t, found)
		k, err := openKeyspace(fs)
		require.NoError(t, err)
		_, err = k.get("b")
		require.ErrorContains(t, err, `"b"`)
		require.NoError(t, k.close(false))
		require.NoError(t, persist.Repair(fs, "db", func(msg string) { t.Log(msg) }))
		sound(t, fs)
		k, err = openKeyspace(fs)
		require.NoError(t, err)
		for key, value := range values {
			got, err := k.get(key)
			require.NoError(t, err)
			if key == "b" {
				value = ""
			}
			require.True(t, got == value, "%s %d", key, len(got))
		}
		require.NoError(t, k.close(false))
	}
	// Not in the last piece: a search for the key after it reads the same block. Pebble looks for a flipped bit in a damaged block,
	// which takes a second, so one place must do.
	at := []int{100, 1 << 20}[testseed.Rand(t).IntN(2)]
	damaged(func(fs disk.FS) {
		piece := []byte(values["b"][at : at+50])
		for _, path := range files(t, fs, "db/data") {
			content := readFile(t, fs, path)
			if i := bytes.Index(content, piece); i >= 0 {
				content[i] ^= 1
				content[i+30] ^= 3 // more than one bit, which would be corrected or found
				require.NoError(t, fs.Remove(path))
				writeFile(t, fs, path, content)
				return
			}
		}
		t.Fatal("the piece is in no file")
	})
	deleted := []byte{0, 4, 8} // quarters of a MiB
	if testing.Short() {
		deleted = deleted[1:2]
	}
	for _, at := range deleted {
		damaged(func(fs disk.FS) {
			s, err := lsm.Open(lsm.Options{FS: fs, Dir: "db"})
			require.NoError(t, err)
			meta, _ := s.Meta()
			h, ok, err := s.Head(meta.Spaces[0], "b")
			require.NoError(t, err)
			require.True(t, ok)
			c, err := s.Begin()
			require.NoError(t, err)
			require.NoError(t, c.DeletePart(h.Parts, string([]byte{0, 0, 0, 0, 0, at << 2, 0, 0})))
			require.NoError(t, c.Commit(meta))
			require.NoError(t, s.Close())
		})
	}
}

// A long string that an earlier version has stored in one piece can be read, and is stored in pieces after a change.
func TestLongStringsInOnePieceAreRead(t *testing.T) {
	fs := crashfs.Mem()
	k, err := openKeyspace(fs)
	require.NoError(t, err)
	k.set("short", "value", k.Now())
	require.NoError(t, k.close(true))
	s, err := lsm.Open(lsm.Options{FS: fs, Dir: "db"})
	require.NoError(t, err)
	meta, _ := s.Meta()
	c, err := s.Begin()
	require.NoError(t, err)
	for i, key := range []string{"changes", "moves", "stays"} {
		require.NoError(t, c.PutHead(meta.Spaces[0], key, engine.Head{External: true, Blob: []byte(longValue(i))}, false,
			false))
	}
	require.NoError(t, c.Commit(meta))
	require.NoError(t, s.Close())
	sound(t, fs)

	for range 2 {
		k, err = openKeyspace(fs)
		require.NoError(t, err)
		for i, key := range []string{"changes", "moves", "stays"} {
			got, err := k.get(key)
			require.NoError(t, err)
			require.True(t, got == longValue(i), key)
		}
		k.set("changes", longValue(0), k.Now())
		k.change("moves", func(g *engine.Guard, e *engine.Entry) {
			g.Changed(g.Move(e, 0, []byte("moved")), engine.EventGeneric, "rename_to")
			g.Changed(g.Move(g.Write(0, []byte("moved")), 0, []byte("moves")), engine.EventGeneric, "rename_to")
		})
		require.NoError(t, k.close(true))
		sound(t, fs)
	}
	s, err = lsm.Open(lsm.Options{FS: fs, Dir: "db"})
	require.NoError(t, err)
	for key, parts := range map[string]bool{"changes": true, "moves": true, "stays": false} {
		h, ok, err := s.Head(meta.Spaces[0], key)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, parts, h.Parts != 0, key)
		require.Equal(t, !parts, h.External, key)
	}
	require.NoError(t, s.Close())
}
