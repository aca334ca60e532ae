package lsm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/persist/store"
)

// benchKeys is the number of keys in the benchmarks, which are on disk.
const benchKeys = 1_000_000

func fill(b *testing.B, s *Store) {
	c, err := s.Begin()
	require.NoError(b, err)
	h := engine.Head{Blob: []byte("a value of some length")}
	for i := range benchKeys {
		if err := c.PutHead(1, fmt.Sprintf("key:%012d", i), h, false, false); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, c.Commit(store.Meta{Spaces: []uint32{1}}))
}

func BenchmarkCommit(b *testing.B) {
	for b.Loop() {
		s, err := Open(Options{FS: disk.System, Dir: b.TempDir()})
		require.NoError(b, err)
		fill(b, s)
		require.NoError(b, s.Close())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchKeys, "ns/key")
}

func BenchmarkHeads(b *testing.B) {
	s, err := Open(Options{FS: disk.System, Dir: b.TempDir()})
	require.NoError(b, err)
	fill(b, s)
	for b.Loop() {
		n := 0
		require.NoError(b, s.Heads(1, func([]byte, engine.Head) bool { n++; return true }))
		require.Equal(b, benchKeys, n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchKeys, "ns/key")
	require.NoError(b, s.Close())
}

func BenchmarkHead(b *testing.B) {
	s, err := Open(Options{FS: disk.System, Dir: b.TempDir()})
	require.NoError(b, err)
	fill(b, s)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i = (i + 7919*13) % benchKeys
		if _, ok, err := s.Head(1, fmt.Sprintf("key:%012d", i)); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
	require.NoError(b, s.Close())
}
