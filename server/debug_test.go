package server

import (
	"encoding/binary"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/rdb"
)

func TestDebugSubcommands(t *testing.T) {
	s := startTestServer(t, Options{}, "enable-debug-command", "yes")
	c := s.connect()
	for _, step := range [][2]string{
		{"DEBUG SDSLEN none", "-ERR no such key"},
		{"SET k value", "+OK"},
		{"DEBUG SDSLEN k", `+/key_sds_len:1, key_sds_avail:0, key_zmalloc: \d+, val_sds_len:5, val_sds_avail:\d+, val_zmalloc: \d+/`},
		{"SET n 12", "+OK"},
		{"DEBUG SDSLEN n", "-ERR Not an sds encoded string."},
		{"RPUSH l a", "1"},
		{"DEBUG SDSLEN l", "-ERR Not an sds encoded string."},
		{"DEBUG STRUCTSIZE", `+/bits:` + strconv.Itoa(strconv.IntSize) + ` entry:\d+ session:\d+/`},
		{"DEBUG CLIENT-EVICTION", "-ERR maxmemory-clients is disabled."},
		{"CONFIG SET maxmemory-clients 1gb", "+OK"},
		{"DEBUG AOF-FLUSH-SLEEP 0", "+OK"},
		{"DEBUG SET-SKIP-CHECKSUM-VALIDATION", "-ERR unknown subcommand or wrong number of arguments for 'SET-SKIP-CHECKSUM-VALIDATION'. Try DEBUG HELP."},
	} {
		got := c.do(step[0])
		if pattern, ok := strings.CutPrefix(step[1], "+/"); ok {
			require.Regexp(t, `^\+"?`+strings.TrimSuffix(pattern, "/")+`"?$`, got)
		} else {
			require.Equal(t, step[1], got, step[0])
		}
	}
	lines := strings.Split(strings.TrimSpace(c.do("DEBUG CLIENT-EVICTION")), "\n")
	require.Len(t, lines, 19)
	require.Regexp(t, `^bucket          0 -      32767: tot-mem: +\d+, clients: 1$`, lines[0])
	require.Equal(t, "bucket      32768 -      65535: tot-mem:          0, clients: 0", lines[1])
	require.Equal(t, "bucket 4294967296+            : tot-mem:          0, clients: 0", lines[18])
}

// A value accepted with a wrong checksum exists after a restart, when checksums are checked again.
func TestChecksumsThatAreSkippedAreNotMissedLater(t *testing.T) {
	fs := crashfs.Mem()
	d, err := openDurable(t, fs, "enable-debug-command=yes")
	require.NoError(t, err)
	payload := rdb.Seal([]byte{0, 1, 'x'})
	binary.LittleEndian.PutUint64(payload[len(payload)-8:], 12345)
	const refused = "-ERR DUMP payload version or checksum are wrong\r\n"
	require.Equal(t, refused, d.call("RESTORE", "k", "0", string(payload)))
	d.expect("+OK\r\n", "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1")
	require.Equal(t, "+OK\r\n", d.call("RESTORE", "k", "0", string(payload)))
	d.expect("$1\r\nx\r\n", "GET k")
	d.end()
	d, err = openDurable(t, fs, "enable-debug-command=yes")
	require.NoError(t, err)
	d.expect("$1\r\nx\r\n", "GET k")
	require.Equal(t, refused, d.call("RESTORE", "k", "0", string(payload), "REPLACE"))
	d.end()
}

// Closing the server does not wait for delays that tests have set.
func TestKeyDelaysDoNotHoldUpTheEnd(t *testing.T) {
	fs := crashfs.Mem()
	d, err := openDurable(t, fs)
	require.NoError(t, err)
	d.expect("+OK\r\n", "SET k 1")
	d.expect("*2\r\n$18\r\nrdb-key-save-delay\r\n$1\r\n0\r\n", "CONFIG GET rdb-key-save-delay")
	d.expect("+OK\r\n", "CONFIG SET rdb-key-save-delay 2000000000")
	d.expect("+Background saving started\r\n", "BGSAVE")
	require.Eventually(t, func() bool {
		reply, ok := d.do("INFO persistence")
		return ok && strings.Contains(reply, "rdb_bgsave_in_progress:1")
	}, testTimeout, 1)
	d.expect("$1\r\n1\r\n", "GET k")
	d.end()

	d, err = openDurable(t, fs, "key-load-delay=2000000000")
	require.NoError(t, err)
	reply, _ := d.do("INFO persistence")
	require.Contains(t, reply, "loading:1\r\n")
	d.expect("$1\r\n1\r\n", "GET k")
	d.expect("-LOADING Redis is loading the dataset in memory\r\n", "DBSIZE")
	d.end()
	d, err = openDurable(t, fs)
	require.NoError(t, err)
	d.expect("$1\r\n1\r\n", "GET k")
	d.end()
}
