package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/disk"
)

// backupState returns the state of BACKUP STATUS.
func backupState(d *durableServer) string {
	reply, _ := d.do("BACKUP STATUS")
	return strings.Split(reply, "\r\n")[4]
}

// restored returns a server on the files of a backup.
func restored(t *testing.T, fs disk.FS, list string, settings ...string) *durableServer {
	copied := crashfs.Mem()
	require.NoError(t, copied.MkdirAll("/db/appendonlydir", 0o700))
	files := 0
	for _, name := range strings.Fields(list) {
		if strings.HasPrefix(name, "/") {
			files++
			ok, err := crashfs.Copy(fs, copied, name, copied.PathJoin("/db/appendonlydir", fs.PathBase(name)))
			require.NoError(t, err)
			require.True(t, ok)
		}
	}
	require.Equal(t, 3, files, list)
	d, err := openDurable(t, copied, settings...)
	require.NoError(t, err)
	return d
}

func TestABackupHasAllChangesUntilItIsSealed(t *testing.T) {
	for _, settings := range [][]string{{"shards=1"}, {"shards=4"}, {"shards=2", "appendonly=no", "save=60 1"}} {
		t.Run(strings.Join(settings, " "), func(t *testing.T) {
			fs := crashfs.Mem()
			d, err := openDurable(t, fs, settings...)
			require.NoError(t, err)
			defer d.end()
			for i := range 500 {
				d.do(fmt.Sprintf("RPUSH l%d a b c", i), fmt.Sprintf("SET s%d %d EX 1000", i, i))
			}
			d.expect("-ERR no backup is in progress\r\n", "BACKUP SEAL")
			d.expect("+OK\r\n", "BACKUP START")
			for i := range 300 {
				d.do(fmt.Sprintf("RPUSH l%d d", i), fmt.Sprintf("INCR s%d", i))
			}
			require.Eventually(t, func() bool { return backupState(d) == "incrementing" }, time.Minute, time.Millisecond)
			list, _ := d.do("BACKUP LIST")
			require.True(t, strings.HasPrefix(list, "*1\r\n") && strings.Contains(list, "/db/backupdir/appendonly.aof.1.base.rdb"), list)
			d.do("SELECT 2", "MULTI", "SET x 1", "HSET h f v", "EXEC", "SPOP none", "SELECT 0", "DEL l499")
			d.expect("-ERR a backup is in progress already\r\n", "BACKUP START")
			d.expect("+OK\r\n", "BACKUP SEAL")
			require.Equal(t, "sealed", backupState(d))
			d.do("SET later 1")
			list, _ = d.do("BACKUP LIST")
			b := restored(t, fs, list, settings...)
			d.do("DEL later")
			want, _ := d.do("DEBUG DIGEST")
			got, _ := b.do("DEBUG DIGEST")
			require.Equal(t, want, got)
			b.do("SELECT 2")
			b.expect("$1\r\n1\r\n", "GET x")
			b.end()

			d.expect("-ERR there is a sealed backup: BACKUP CLEANUP removes it\r\n", "BACKUP START")
			d.expect("+OK\r\n", "BACKUP CLEANUP")
			require.Equal(t, "idle", backupState(d))
			names, err := fs.List("/db/backupdir")
			require.NoError(t, err)
			require.Empty(t, names)
		})
	}
}

// TestABackupUnderLoad checks that the backup has the first numbers that each client has written, without gaps.
func TestABackupUnderLoad(t *testing.T) {
	fs := crashfs.Mem()
	srv, err := openDurable(t, fs, "shards=4", "appendfsync=no")
	require.NoError(t, err)
	defer srv.end()
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for i := range 4 {
		client, err := srv.Direct(0)
		require.NoError(t, err)
		writers.Go(func() {
			defer client.Release()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					err := client.Run(context.Background(), [][]byte{[]byte("RPUSH"), fmt.Append(nil, "list", i), fmt.Append(nil, n)})
					require.NoError(t, err)
				}
			}
		})
	}
	srv.expect("+OK\r\n", "BACKUP START")
	require.Eventually(t, func() bool { return backupState(srv) == "incrementing" }, time.Minute, time.Millisecond)
	before := [4]string{}
	for i := range before {
		before[i], _ = srv.do(fmt.Sprintf("LLEN list%d", i))
	}
	srv.expect("+OK\r\n", "BACKUP SEAL")
	list, _ := srv.do("BACKUP LIST")
	close(stop)
	writers.Wait()
	b := restored(t, fs, list)
	defer b.end()
	for i := range before {
		var least, have int
		fmt.Sscanf(before[i], ":%d", &least)
		length, _ := b.do(fmt.Sprintf("LLEN list%d", i))
		fmt.Sscanf(length, ":%d", &have)
		require.GreaterOrEqual(t, have, least)
		if have > 0 {
			b.expect(fmt.Sprintf("$%d\r\n%d\r\n", len(fmt.Sprint(have-1)), have-1), fmt.Sprintf("LINDEX list%d -1", i))
		}
	}
}

func TestABackupThatIsGivenUp(t *testing.T) {
	fs := crashfs.Mem()
	d, err := openDurable(t, fs)
	require.NoError(t, err)
	d.do("SET a 1")
	d.expect("-ERR there is no backup that has been sealed or has failed\r\n", "BACKUP CLEANUP")
	d.expect("+OK\r\n", "BACKUP START")
	d.expect("+OK\r\n", "BACKUP ABORT")
	require.Equal(t, "failed", backupState(d))
	names, err := fs.List("/db/backupdir")
	require.NoError(t, err)
	require.Empty(t, names)
	d.expect("+OK\r\n", "CONFIG SET backup-sealed-ttl 1")
	d.expect("+OK\r\n", "BACKUP START")
	require.Eventually(t, func() bool { return backupState(d) == "incrementing" }, time.Minute, time.Millisecond)
	d.expect("+OK\r\n", "BACKUP SEAL")
	require.Eventually(t, func() bool { return backupState(d) == "idle" }, time.Minute, time.Millisecond)
	// Closing the server ends a backup.
	d.expect("+OK\r\n", "BACKUP START")
	d.end()
	names, err = fs.List("/db/backupdir")
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestABackupNeedsAnEmptyDirectory(t *testing.T) {
	fs := crashfs.Mem()
	d, err := openDurable(t, fs)
	require.NoError(t, err)
	defer d.end()
	require.NoError(t, fs.MkdirAll("/db/backupdir", 0o700))
	file, err := fs.Create("/db/backupdir/x")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	d.expect("-ERR the directory /db/backupdir is not empty\r\n", "BACKUP START")
	memory := startTestServer(t, Options{}).connect()
	require.True(t, strings.HasPrefix(memory.do("BACKUP START"), "-ERR the data is in memory only"))
	require.Equal(t, "[]", memory.do("BACKUP LIST"))
}
