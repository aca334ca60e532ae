package raftlog

import (
	"fmt"
	"os"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/persist/disk"
)

func openOnDisk(b *testing.B) *Log {
	path := disk.System.PathJoin(b.TempDir(), "log")
	require.NoError(b, os.Mkdir(path, 0o700))
	l, err := Open(Options{FS: disk.System, Dir: path})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, l.Close()) })
	return l
}

func batch(from uint64, n int) []*raft.Log {
	logs := make([]*raft.Log, n)
	for i := range logs {
		logs[i] = &raft.Log{Index: from + uint64(i), Term: 1, Data: make([]byte, 200), AppendedAt: appendedAt}
	}
	return logs
}

func BenchmarkStoreLogs(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := openOnDisk(b)
			b.SetBytes(int64(200 * n))
			b.ReportAllocs()
			next := uint64(1)
			for b.Loop() {
				if err := l.StoreLogs(batch(next, n)); err != nil {
					b.Fatal(err)
				}
				next += uint64(n)
			}
		})
	}
}

// A follower that is far behind gets entries from the file.
func BenchmarkGetLogFromTheFile(b *testing.B) {
	l := openOnDisk(b)
	const n = 200_000
	for i := uint64(1); i <= n; i += 1000 {
		require.NoError(b, l.StoreLogs(batch(i, 1000)))
	}
	b.ReportAllocs()
	var e raft.Log
	i := uint64(0)
	for b.Loop() {
		if err := l.GetLog(i%(n-recentEntries)+1, &e); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
