package main

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDataMovesOutAndIn(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	signals, exit := start(t, "--port", "0", "--unixsocket", socket, "--dir", filepath.Join(dir, "data"), "--requirepass", "secret")
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, run([]string{"backup", filepath.Join(dir, "backup"), "-s", socket}, &stdout, &stderr, nil))
	require.Contains(t, stderr.String(), "NOAUTH")
	require.NoFileExists(t, filepath.Join(dir, "backup", "dump.rdb"))
	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	_, err = io.WriteString(conn, "AUTH secret\r\nSET k v\r\nRPUSH l a b\r\n")
	require.NoError(t, err)
	want := "+OK\r\n+OK\r\n:2\r\n"
	_, err = io.ReadFull(conn, make([]byte, len(want)))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Zero(t, run([]string{"backup", "-s", socket, filepath.Join(dir, "backup"), "-a", "secret"}, &stdout, &stderr, nil), stderr.String())
	require.Contains(t, stdout.String(), "2 keys")
	signals <- syscall.SIGTERM
	require.Zero(t, <-exit)

	for _, args := range [][]string{{"export"}, {"export", "--rdb"}, {"import"}, {"import", "--dir", dir}, {"backup"}, {"backup", "a", "b"}, {"backup", "--nosuch"}} {
		require.Equal(t, 2, run(args, &stdout, &stderr, nil), args)
	}
	require.Equal(t, 1, run([]string{"export", "--rdb", filepath.Join(dir, "x.rdb"), "--dir", filepath.Join(dir, "nosuch")}, &stdout, &stderr, nil))
	require.Equal(t, 1, run([]string{"export", "--rdb", filepath.Join(dir, "nosuch", "x.rdb"), "--dir", filepath.Join(dir, "data")}, &stdout, &stderr, nil))
	rdb, aof := filepath.Join(dir, "x.rdb"), filepath.Join(dir, "x.aof")
	require.Zero(t, run([]string{"export", "--rdb", rdb, "--dir", filepath.Join(dir, "data")}, &stdout, &stderr, nil), stderr.String())
	require.Zero(t, run([]string{"export", "--aof", aof, "--dir", filepath.Join(dir, "data")}, &stdout, &stderr, nil), stderr.String())

	for name, file := range map[string]string{"rdb": rdb, "aof": aof, "backup": filepath.Join(dir, "backup", "dump.rdb")} {
		data := filepath.Join(dir, "from "+name)
		require.Zero(t, run([]string{"import", file, "--dir", data}, &stdout, &stderr, nil), stderr.String())
		stderr.Reset()
		require.Equal(t, 1, run([]string{"import", file, "--dir", data}, &stdout, &stderr, nil))
		require.Contains(t, stderr.String(), "there is data in")
		again := filepath.Join(dir, "again")
		require.Zero(t, run([]string{"export", "--aof", again, "--dir", data}, &stdout, &stderr, nil), stderr.String())
		content, err := os.ReadFile(again)
		require.NoError(t, err)
		require.Contains(t, string(content), "$1\r\nk\r\n$1\r\nv\r\n")
		require.Contains(t, string(content), "$1\r\nl\r\n$1\r\na\r\n$1\r\nb\r\n")
	}
	require.Equal(t, 1, run([]string{"import", filepath.Join(dir, "nosuch"), "--dir", filepath.Join(dir, "new")}, &stdout, &stderr, nil))
	require.Equal(t, 1, run([]string{"import", rdb, "--dir", filepath.Join(dir, "new"), "--save", "", "--appendonly", "no"}, &stdout, &stderr, nil))
}
