package server

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
)

// inMemory is the setting of a server that stores nothing; openDurable gives it a directory.
const inMemory = "appendonly=no"

func (d *durableServer) info(field string) string {
	reply, _ := d.do("INFO persistence")
	for line := range strings.SplitSeq(reply, "\r\n") {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return value
		}
	}
	return ""
}

func TestSaveInMemoryWritesTheRDBFile(t *testing.T) {
	for _, command := range []string{"SAVE", "BGSAVE", "BGSAVE SCHEDULE", "SHUTDOWN SAVE"} {
		for _, name := range []string{"dump.rdb", "other.rdb"} {
			t.Run(command+name, func(t *testing.T) {
				fs := crashfs.Mem()
				d, err := openDurable(t, fs, inMemory, "dbfilename="+name)
				require.NoError(t, err)
				d.expect(fmt.Sprintf(":%d\r\n", d.started.Unix()), "LASTSAVE")
				d.expect("+OK\r\n", "SET a 1")
				d.expect(":2\r\n", "RPUSH l x y")
				require.Equal(t, "2", d.info("rdb_changes_since_last_save"))
				switch {
				case strings.HasPrefix(command, "SHUTDOWN"):
					d.s.Input(request(strings.Fields(command)...), d.ks.Now())
					<-d.Done()
				case strings.HasPrefix(command, "BGSAVE"):
					d.expect("+Background saving started\r\n", command)
					for d.info("rdb_bgsave_in_progress") != "0" {
					}
				default:
					d.expect("+OK\r\n", command)
				}
				if !strings.HasPrefix(command, "SHUTDOWN") {
					require.Equal(t, "0", d.info("rdb_changes_since_last_save"))
					require.Equal(t, "1", d.info("rdb_saves"))
					require.Equal(t, "ok", d.info("rdb_last_bgsave_status"))
					require.Equal(t, "0", d.info("rdb_last_bgsave_time_sec"))
					d.end()
				}
				names, err := fs.List("/db")
				require.NoError(t, err)
				require.Equal(t, []string{name}, names)

				d, err = openDurable(t, fs, inMemory, "dbfilename="+name)
				require.NoError(t, err)
				d.expect("$1\r\n1\r\n", "GET a")
				d.expect("*2\r\n$1\r\nx\r\n$1\r\ny\r\n", "LRANGE l 0 -1")
				d.end()
			})
		}
	}
}

// A server that stores its data writes the file too, for backups, and reads its own data when it starts.
func TestSaveOfStoredDataWritesTheRDBFileToo(t *testing.T) {
	for _, command := range []string{"SAVE", "BGSAVE", "SHUTDOWN SAVE"} {
		t.Run(command, func(t *testing.T) {
			fs := crashfs.Mem()
			d, err := openDurable(t, fs, "dbfilename=backup.rdb")
			require.NoError(t, err)
			d.do("SET a 1")
			switch command {
			case "SHUTDOWN SAVE":
				d.s.Input(request("SHUTDOWN", "SAVE"), d.ks.Now())
				<-d.Done()
			case "BGSAVE":
				d.expect("+Background saving started\r\n", command)
				require.Eventually(t, func() bool { return d.info("rdb_bgsave_in_progress") == "0" }, time.Minute, time.Millisecond)
			default:
				d.expect("+OK\r\n", command)
			}
			if command != "SHUTDOWN SAVE" {
				require.Equal(t, "1", d.info("rdb_saves"))
				require.Equal(t, "0", d.info("rdb_changes_since_last_save"))
				d.do("SET a 2")
				d.end()
			}

			copied := crashfs.Mem()
			require.NoError(t, copied.MkdirAll("/db", 0o700))
			ok, err := crashfs.Copy(fs, copied, "/db/backup.rdb", "/db/backup.rdb")
			require.NoError(t, err)
			require.True(t, ok)
			backup, err := openDurable(t, copied, "dbfilename=backup.rdb")
			require.NoError(t, err)
			backup.expect("$1\r\n1\r\n", "GET a")
			backup.end()

			d, err = openDurable(t, fs, "dbfilename=backup.rdb")
			require.NoError(t, err)
			if command == "SHUTDOWN SAVE" {
				d.expect("$1\r\n1\r\n", "GET a")
			} else {
				d.expect("$1\r\n2\r\n", "GET a")
			}
			d.end()
		})
	}
}

// A failure to write the file must not be confused with a failure of the storage: the data is safe, and changes
// continue.
func TestSaveOfStoredDataTellsThatTheFileCannotBeWritten(t *testing.T) {
	var fails atomic.Bool
	fs := crashfs.Wrap(crashfs.Mem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fails.Load() && op.Kind == errorfs.OpCreate && strings.HasPrefix(op.Path, "/db/backup.rdb") {
			return os.ErrPermission
		}
		return nil
	}))
	d, err := openDurable(t, fs, "dbfilename=backup.rdb")
	require.NoError(t, err)
	fails.Store(true)
	d.do("SET a 1")
	reply, _ := d.do("SAVE")
	require.Contains(t, reply, "-ERR permission denied")
	require.Equal(t, "err", d.info("rdb_last_bgsave_status"))
	require.Equal(t, "1", d.info("rdb_saves"))
	d.expect("+OK\r\n", "SET a 2")
	fails.Store(false)
	d.expect("+OK\r\n", "SAVE")
	require.Equal(t, "ok", d.info("rdb_last_bgsave_status"))
	d.end()
}

// A program that waits for LASTSAVE to change before it copies the file must not get the previous file.
func TestLastsaveTellsOfASaveWhenTheFileIsThere(t *testing.T) {
	d, err := openDurable(t, crashfs.Mem(), "dbfilename=backup.rdb")
	require.NoError(t, err)
	d.do("SET a 1")
	d.expect("+OK\r\n", "SAVE")
	before := d.dump.Status().Saved
	require.True(t, d.dump.Begin())
	require.NoError(t, d.storage.Save()) // a save point comes in between
	require.Equal(t, before, d.dump.Status().Saved)
	require.Equal(t, "1", d.info("rdb_bgsave_in_progress"))
	d.expect("-ERR Background save already in progress"+"\r\n", "BGSAVE")
	d.expect("-ERR Background save already in progress"+"\r\n", "SAVE")
	require.NoError(t, d.dump.Save())
	require.NotEqual(t, before, d.dump.Status().Saved)
	d.end()
}

// Without dbfilename a program's server makes checkpoints only.
func TestSaveInAProgramMakesNoFileThatItHasNotAskedFor(t *testing.T) {
	fs := crashfs.Mem()
	d, err := openDurable(t, fs)
	require.NoError(t, err)
	d.do("SET a 1")
	d.expect("+OK\r\n", "SAVE")
	names, err := fs.List("/db")
	require.NoError(t, err)
	require.NotContains(t, names, "dump.rdb")
	d.end()
}

func TestSaveInMemoryThatFailsIsTold(t *testing.T) {
	var full atomic.Bool
	full.Store(true)
	mem := crashfs.Mem()
	d, err := openDurable(t, crashfs.Full(mem, &full), inMemory)
	require.NoError(t, err)
	d.expect("+OK\r\n", "SET a 1")
	reply, _ := d.do("SAVE")
	require.Contains(t, reply, "-ERR no space left on device")
	require.Equal(t, "err", d.info("rdb_last_bgsave_status"))
	names, err := mem.List("/db")
	require.NoError(t, err)
	require.Empty(t, names)
	full.Store(false)
	d.expect("+OK\r\n", "SAVE")
	require.Equal(t, "ok", d.info("rdb_last_bgsave_status"))
	d.end()
}

// A server without a directory, as in a program, writes nothing and reads nothing.
func TestWithoutADirectoryThereIsNoFile(t *testing.T) {
	h := newHarness(t)
	s := h.session()
	for _, command := range []string{"SAVE", "BGSAVE"} {
		require.Equal(t, "-ERR the data is in memory only, and the server was given no directory for a file: set dir"+"\r\n", h.feed(s, request(command)))
	}
	// the reply of a Redis without an append-only file
	require.Equal(t, "+Background append only file rewriting started\r\n", h.feed(s, request("BGREWRITEAOF")))
	require.Equal(t, "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n", h.feed(s, request("WAITAOF", "1", "0", "0")))
	require.Equal(t, fmt.Sprintf(":%d\r\n", h.started.Unix()), h.feed(s, request("LASTSAVE")))
	h.finish(t, s)
}

// A server that stores nothing neither ignores nor changes data that another server has stored in the directory.
func TestInMemoryReadsWhatWasStored(t *testing.T) {
	for _, settings := range [][]string{nil, {"appendonly=no", "save=3600 1"}} {
		fs := crashfs.Mem()
		d, err := openDurable(t, fs, settings...)
		require.NoError(t, err)
		for i := range 3 {
			ok, reply := d.write(i + 1)
			require.True(t, ok, reply)
		}
		d.do("SAVE")
		ok, reply := d.write(4)
		require.True(t, ok, reply)
		_, err = openDurable(t, fs, inMemory)
		require.ErrorIs(t, err, ErrInUse)
		d.do("SAVE")
		d.end()

		for range 2 {
			d, err = openDurable(t, fs, inMemory)
			require.NoError(t, err)
			require.Equal(t, 4, d.check("in memory"))
			ok, reply = d.write(5)
			require.True(t, ok, reply)
			d.end()
		}
		d, err = openDurable(t, fs, settings...)
		require.NoError(t, err)
		require.Equal(t, 4, d.check("stored"))
		d.end()
	}
}

// Unreadable data also prevents the start of a server that stores nothing.
func TestInMemoryRefusesWhatCannotBeRead(t *testing.T) {
	for name, content := range map[string]string{"dump.rdb": "", "appendonly.aof": "*2\r\n", "dump.rdb/x": "",
		"appendonlydir/appendonly.aof.1.incr.aof": ""} {
		fs := crashfs.Mem()
		putFile(t, fs, "/db/"+name, []byte(content))
		_, err := openDurable(t, fs, inMemory)
		require.Error(t, err, name)
	}
}
