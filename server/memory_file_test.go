package server

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
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
				fs := vfs.NewMem()
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

func TestSaveInMemoryThatFailsIsTold(t *testing.T) {
	var full atomic.Bool
	full.Store(true)
	mem := vfs.NewMem()
	d, err := openDurable(t, fullDisk(mem, &full), inMemory)
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
		require.Equal(t, "-"+string(errNoDirectory)+"\r\n", h.feed(s, request(command)))
	}
	require.Equal(t, "-"+string(errInMemory)+"\r\n", h.feed(s, request("BGREWRITEAOF")))
	require.Equal(t, "-"+string(errNoAOF)+"\r\n", h.feed(s, request("WAITAOF", "1", "0", "0")))
	require.Equal(t, fmt.Sprintf(":%d\r\n", h.started.Unix()), h.feed(s, request("LASTSAVE")))
	h.finish(t, s)
}

// Data that a server has stored in the directory are neither ignored nor touched by one that stores nothing.
func TestInMemoryReadsWhatWasStored(t *testing.T) {
	for _, settings := range [][]string{nil, {"appendonly=no", "save=3600 1"}} {
		fs := vfs.NewMem()
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

// What cannot be read stops a server that stores nothing too.
func TestInMemoryRefusesWhatCannotBeRead(t *testing.T) {
	for name, content := range map[string]string{"dump.rdb": "", "appendonly.aof": "*2\r\n", "dump.rdb/x": "", "appendonlydir/appendonly.aof.1.incr.aof": ""} {
		fs := vfs.NewMem()
		putFile(t, fs, "/db/"+name, []byte(content))
		_, err := openDurable(t, fs, inMemory)
		require.Error(t, err, name)
	}
}
