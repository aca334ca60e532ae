package lsm

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/testseed"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store"
)

// world is the expected content of a store, which it changes at random.
type world struct {
	rng    *rand.Rand
	spaces []uint32
	heads  map[place]engine.Head // Blob is the value even if External is set
	parts  map[uint64]map[string]string
	meta   store.Meta
}

type place struct {
	space uint32
	key   string
}

func (a place) compare(b place) int {
	if a.space != b.space {
		return int(a.space) - int(b.space)
	}
	return strings.Compare(a.key, b.key)
}

func newWorld(seed uint64) *world {
	return &world{
		rng: rand.New(rand.NewPCG(seed, 0)), spaces: []uint32{1, 2}, heads: map[place]engine.Head{},
		parts: map[uint64]map[string]string{}, meta: store.Meta{Spaces: []uint32{1, 2}, NextSpace: 3, NextParts: 1},
	}
}

// stored returns the expected content of Pebble.
func (w *world) stored() map[string]string {
	m := map[string]string{}
	for p, h := range w.heads {
		m[string(appendSpaceKey(nil, prefixHead, p.space))+p.key] = string(appendHead(nil, h))
		if h.External {
			m[string(appendSpaceKey(nil, prefixBlob, p.space))+p.key] = string(h.Blob)
		}
	}
	for id, parts := range w.parts {
		for name, data := range parts {
			m[string(appendPartsKey(nil, id))+name] = data
		}
	}
	if w.meta.Saved != 0 {
		m[string(metaKey)] = string(appendMeta(nil, w.meta))
		m[string(metaCopyKey)] = m[string(metaKey)]
	}
	return m
}

func stored(t require.TestingT, s *Store) map[string]string {
	m := map[string]string{}
	read := func() error {
		clear(m)
		return s.db.scanFrom([]byte{0}, []byte{0xff}, func(key, value []byte) bool {
			m[string(key)] = string(value)
			return true
		})
	}
	// Errors met by Pebble's goroutines may be those of the first attempts.
	var err error
	for range 10 {
		if err = read(); err == nil {
			break
		}
	}
	require.NoError(t, err)
	return m
}

func (w *world) bytes(n int) string {
	b := make([]byte, w.rng.IntN(n+1))
	for i := range b {
		b[i] = byte(w.rng.Uint32())
	}
	return string(b)
}

func (w *world) value() (external bool, blob []byte) {
	if w.rng.IntN(4) == 0 {
		return true, []byte(w.bytes(3000))
	}
	return false, []byte(w.bytes(40))
}

// checkpoint changes the world, and passes the changes to a checkpoint.
func (w *world) checkpoint(s *Store, changes int) error {
	c, err := s.Begin()
	if err != nil {
		return err
	}
	defer c.Abort()
	var dropped []uint64
	fresh := map[uint64]bool{}
	if w.rng.IntN(4) == 0 {
		i := w.rng.IntN(len(w.spaces))
		space := w.spaces[i]
		for p, h := range w.heads {
			if p.space == space {
				delete(w.heads, p)
				if h.Parts != 0 {
					dropped = append(dropped, h.Parts)
				}
			}
		}
		w.spaces[i] = w.meta.NextSpace
		w.meta.NextSpace++
		w.meta.Spaces = slices.Clone(w.spaces)
		c.DropSpace(space)
	}
	places := map[place]bool{}
	for range changes {
		places[place{w.spaces[w.rng.IntN(len(w.spaces))], fmt.Sprintf("key:%03d", w.rng.IntN(3*changes))}] = true
	}
	touched := map[uint64]bool{}
	for _, p := range slices.SortedFunc(mapKeys(places), place.compare) {
		old, existed := w.heads[p]
		if existed && w.rng.IntN(4) == 0 {
			delete(w.heads, p)
			c.DeleteHead(p.space, p.key, old.External)
			if old.Parts != 0 {
				dropped = append(dropped, old.Parts)
			}
			continue
		}
		h := engine.Head{Type: engine.Type(w.rng.IntN(int(engine.Stream) + 1)), Deadline: int64(w.rng.IntN(3)) * 1e12}
		known := existed && (old.External || old.Parts != 0) && w.rng.IntN(2) == 0
		switch {
		case known:
			h.External, h.Parts, h.Blob = old.External, old.Parts, old.Blob
			if h.Parts != 0 {
				touched[h.Parts] = true
			}
		case w.rng.IntN(4) == 0:
			h.Parts = w.meta.NextParts
			w.meta.NextParts++
			w.parts[h.Parts] = map[string]string{}
			fresh[h.Parts] = true
			touched[h.Parts] = true
		default:
			h.External, h.Blob = w.value()
		}
		if h.Parts != 0 && h.Type == engine.String {
			h.Type = engine.Set // parts of strings are pieces: see TestStringsInPieces
		}
		if !known && old.Parts != 0 {
			dropped = append(dropped, old.Parts)
		}
		w.heads[p] = h
		given := h
		if known {
			given.Blob = nil
		}
		c.PutHead(p.space, p.key, given, known, existed && old.External || w.rng.IntN(10) == 0)
	}
	for _, id := range dropped {
		if fresh[id] {
			panic("a new value is dropped")
		}
		delete(w.parts, id)
	}
	slices.Sort(dropped)
	for _, id := range slices.Sorted(mapKeys(touched)) {
		for len(dropped) > 0 && dropped[0] < id {
			c.DropParts(dropped[0])
			dropped = dropped[1:]
		}
		names := map[string]bool{}
		for range 1 + w.rng.IntN(20) {
			names[w.bytes(3)] = true
		}
		for _, name := range slices.Sorted(mapKeys(names)) {
			if _, ok := w.parts[id][name]; ok && w.rng.IntN(2) == 0 {
				delete(w.parts[id], name)
				c.DeletePart(id, name)
			} else {
				w.parts[id][name] = w.bytes(100)
				c.PutPart(id, name, []byte(w.parts[id][name]))
			}
		}
	}
	for _, id := range dropped {
		c.DropParts(id)
	}
	w.meta.Journal += uint64(changes)
	w.meta.Saved++
	w.meta.Keys = int64(len(w.heads))
	return c.Commit(w.meta)
}

func mapKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// often makes Pebble compact after nearly every checkpoint, and write small files.
func often(o *pebble.Options) {
	o.L0CompactionThreshold = 2
	o.LBaseMaxBytes = 8 << 10
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] = 4 << 10
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize, o.Levels[i].IndexBlockSize = 1<<10, 1<<10
	}
}

func open(t require.TestingT, fs disk.FS) *Store {
	s, err := Open(Options{FS: fs, Dir: "some/where", tune: often})
	require.NoError(t, err)
	return s
}

func TestCheckpointsAreReadBack(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	testseed.Check(t, func(t *rapid.T) {
		fs := crashfs.Mem()
		s := open(t, fs)
		_, ok := s.Meta()
		require.False(t, ok)
		w := newWorld(rapid.Uint64().Draw(t, "seed"))
		for range rapid.IntRange(1, 12).Draw(t, "checkpoints") {
			require.NoError(t, w.checkpoint(s, rapid.IntRange(0, 60).Draw(t, "changes")))
			if rapid.IntRange(0, 3).Draw(t, "reopen") == 0 {
				require.NoError(t, s.Close())
				s = open(t, fs)
			}
			require.Equal(t, w.stored(), stored(t, s))
			m, ok := s.Meta()
			require.True(t, ok)
			require.Equal(t, w.meta, m)
		}
		w.requireReadable(t, s)
		require.NoError(t, s.Close())
		w.requireSound(t, fs)
	})
}

// requireReadable compares the results of a store's methods with the expected ones.
func (w *world) requireReadable(t require.TestingT, s *Store) {
	for _, space := range w.spaces {
		keys := []string{}
		for p := range w.heads {
			if p.space == space {
				keys = append(keys, p.key)
			}
		}
		slices.Sort(keys)
		i := 0
		require.NoError(t, s.Heads(space, func(key []byte, h engine.Head) bool {
			require.Equal(t, keys[i], string(key))
			i++
			again, ok, err := s.Head(space, string(key))
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, h, again)
			want := w.heads[place{space, string(key)}]
			if h.External {
				h.Blob, err = s.Blob(space, string(key))
				require.NoError(t, err)
			}
			require.Equal(t, string(want.Blob), string(h.Blob))
			want.Blob, h.Blob = nil, nil
			require.Equal(t, want, h)
			return true
		}))
		require.Equal(t, len(keys), i)
	}
	for id, parts := range w.parts {
		got := map[string]string{}
		last := ""
		require.NoError(t, s.Parts(id, func(name, data []byte) error {
			require.True(t, len(got) == 0 || string(name) > last)
			last = string(name)
			got[last] = string(data)
			return nil
		}))
		require.Equal(t, parts, got)
	}
}

// requireSound verifies a closed store.
func (w *world) requireSound(t require.TestingT, fs disk.FS) {
	m, err := Verify(fs, "some/where", func(msg string) { t.Errorf("%s", msg) })
	require.NoError(t, err)
	require.Equal(t, w.meta, m)
}

func TestWhatIsNotThere(t *testing.T) {
	s := open(t, crashfs.Mem())
	_, ok, err := s.Head(1, "key")
	require.NoError(t, err)
	require.False(t, ok)
	_, err = s.Blob(1, "key")
	require.ErrorContains(t, err, `value of key "key"`)
	require.NoError(t, s.Parts(7, func([]byte, []byte) error { return io.EOF }))
	require.NoError(t, s.Close())
	_, _, err = s.Head(1, "key")
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = s.Begin()
	require.ErrorIs(t, err, store.ErrClosed)
	require.ErrorIs(t, s.Close(), store.ErrClosed)
}

func TestReadingEndsWhenItsFunctionSaysSo(t *testing.T) {
	s := open(t, crashfs.Mem())
	defer s.Close()
	c, err := s.Begin()
	require.NoError(t, err)
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, c.PutHead(1, key, engine.Head{Type: engine.Set, Parts: 5}, false, false))
		require.NoError(t, c.PutPart(5, key, nil))
	}
	require.NoError(t, c.Commit(store.Meta{}))
	n := 0
	require.NoError(t, s.Heads(1, func([]byte, engine.Head) bool { n++; return n < 2 }))
	require.Equal(t, 2, n)
	require.ErrorIs(t, s.Parts(5, func([]byte, []byte) error { n++; return io.EOF }), io.EOF)
	require.Equal(t, 3, n)
}

func TestWrongOrderIsRefused(t *testing.T) {
	head := engine.Head{Blob: []byte("x")}
	for name, fill := range map[string]func(store.Checkpoint){
		"keys":         func(c store.Checkpoint) { c.PutHead(1, "b", head, false, false); c.PutHead(1, "a", head, false, false) },
		"twice":        func(c store.Checkpoint) { c.PutHead(1, "b", head, false, false); c.DeleteHead(1, "b", false) },
		"spaces":       func(c store.Checkpoint) { c.DeleteHead(2, "a", false); c.DeleteHead(1, "a", false) },
		"parts":        func(c store.Checkpoint) { c.PutPart(2, "a", nil); c.DeletePart(1, "a") },
		"late drop":    func(c store.Checkpoint) { c.PutHead(2, "a", head, false, false); c.DropSpace(1) },
		"drop and put": func(c store.Checkpoint) { c.DropParts(3); c.PutPart(3, "a", nil) },
		"put and drop": func(c store.Checkpoint) { c.PutPart(3, "a", nil); c.DropParts(3) },
		"drops":        func(c store.Checkpoint) { c.DropParts(3); c.DropParts(2) },
		"no value":     func(c store.Checkpoint) { c.PutHead(1, "a", engine.Head{}, true, false) },
	} {
		t.Run(name, func(t *testing.T) {
			fs := crashfs.Mem()
			s := open(t, fs)
			defer s.Close()
			c, err := s.Begin()
			require.NoError(t, err)
			fill(c)
			require.Error(t, c.PutPart(9, "z", nil), "the error stays")
			require.Error(t, c.Commit(store.Meta{}))
			require.ErrorIs(t, c.Commit(store.Meta{}), errEnded)
			require.Empty(t, stored(t, s))
			left, err := fs.List("some/where/checkpoint")
			require.NoError(t, err)
			require.Empty(t, left)
			_, err = s.Begin()
			require.NoError(t, err)
		})
	}
}

func TestOneCheckpointAtATime(t *testing.T) {
	s := open(t, crashfs.Mem())
	defer s.Close()
	c, err := s.Begin()
	require.NoError(t, err)
	_, err = s.Begin()
	require.ErrorIs(t, err, errInProgress)
	require.NoError(t, c.PutPart(1, "a", nil))
	c.Abort()
	c.Abort()
	require.ErrorIs(t, c.PutPart(1, "b", nil), errEnded)
	require.Empty(t, stored(t, s))
	c, err = s.Begin()
	require.NoError(t, err)
	require.NoError(t, c.Commit(store.Meta{}))
	require.ErrorIs(t, c.PutPart(1, "b", nil), errEnded)
	c.Abort()
}

func TestDirectoryIsLocked(t *testing.T) {
	for name, fs := range map[string]disk.FS{"memory": crashfs.Mem(), "disk": disk.System} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + "/a/b"
			s, err := Open(Options{FS: fs, Dir: dir})
			require.NoError(t, err)
			_, err = Open(Options{FS: fs, Dir: dir})
			require.ErrorContains(t, err, "another server uses the directory "+dir)
			_, err = Verify(fs, dir, nil)
			require.ErrorContains(t, err, "another server uses the directory")
			require.ErrorContains(t, Salvage(fs, dir, nil), "another server uses the directory")
			require.NoError(t, s.Close())
			_, err = Verify(fs, dir, nil)
			require.NoError(t, err)
			s, err = Open(Options{FS: fs, Dir: dir})
			require.NoError(t, err)
			require.NoError(t, s.Close())
			if info, err := disk.System.Stat(dir); name == "disk" {
				require.NoError(t, err)
				require.EqualValues(t, 0o700, info.Mode().Perm())
			}
		})
	}
}

func TestOpeningLeavesNoFilesBehind(t *testing.T) {
	fs := crashfs.Mem()
	count := 0
	for i := range 20 {
		s := open(t, fs)
		require.NoError(t, s.Close())
		files, err := fs.List("some/where/data")
		require.NoError(t, err)
		if i == 5 {
			count = len(files)
		} else if i > 5 {
			require.LessOrEqual(t, len(files), count, files)
		}
	}
}

func TestCheckpointOfManyFiles(t *testing.T) {
	s, err := Open(Options{FS: crashfs.Mem(), Dir: "d"})
	require.NoError(t, err)
	defer s.Close()
	c, err := s.begin()
	require.NoError(t, err)
	value := make([]byte, fileSize/4)
	for i := range 10 {
		value[0] = byte(i)
		require.NoError(t, c.PutHead(1, fmt.Sprintf("key%d", i), engine.Head{External: true, Blob: value}, false, false))
	}
	require.NoError(t, c.DropSpace(3))
	require.NoError(t, c.Commit(store.Meta{}))
	require.GreaterOrEqual(t, len(c.finished), 3)
	for i := range 10 {
		v, err := s.Blob(1, fmt.Sprintf("key%d", i))
		require.NoError(t, err)
		require.Len(t, v, len(value))
		require.Equal(t, byte(i), v[0])
	}
}
