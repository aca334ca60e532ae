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
	signals, exit := start(t, "--port", "0", "--unixsocket", socket, "--dir", filepath.Join(dir, "data"),
		"--requirepass", "secret")
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, run([]string{"backup", filepath.Join(dir, "backup"), "-s", socket}, &stdout, &stderr, nil))
	require.Contains(t, stderr.String(), "NOAUTH")
	require.NoDirExists(t, filepath.Join(dir, "backup"))
	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	_, err = io.WriteString(conn, "AUTH secret\r\nSET k v\r\nRPUSH l a b\r\n")
	require.NoError(t, err)
	want := "+OK\r\n+OK\r\n:2\r\n"
	_, err = io.ReadFull(conn, make([]byte, len(want)))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Zero(t, run([]string{"backup", "-s", socket, filepath.Join(dir, "backup"), "-a", "secret"}, &stdout, &stderr,
		nil), stderr.String())
	require.Contains(t, stdout.String(), "2 keys")
	signals <- syscall.SIGTERM
	require.Zero(t, <-exit)

	for _, args := range [][]string{{"export"}, {"export", "--rdb"}, {"import"}, {"import", "--dir", dir}, {"backup"},
		{"backup", "a", "b"}, {"backup", "--nosuch"}, {"backup", "a", "--dir", dir, "-p", "1"},
		{"backup", "a", "--dir", dir, "--user", "u"}} {
		require.Equal(t, 2, run(args, &stdout, &stderr, nil), args)
	}
	require.Equal(t, 1, run([]string{"export", "--rdb", filepath.Join(dir, "x.rdb"), "--dir",
		filepath.Join(dir, "nosuch")}, &stdout, &stderr, nil))
	require.Equal(t, 1, run([]string{"export", "--rdb", filepath.Join(dir, "nosuch", "x.rdb"), "--dir",
		filepath.Join(dir, "data")}, &stdout, &stderr, nil))
	rdb, aof := filepath.Join(dir, "x.rdb"), filepath.Join(dir, "x.aof")
	require.Zero(t, run([]string{"export", "--rdb", rdb, "--dir", filepath.Join(dir, "data")}, &stdout, &stderr, nil),
		stderr.String())
	require.Zero(t, run([]string{"export", "--aof", aof, "--dir", filepath.Join(dir, "data")}, &stdout, &stderr, nil),
		stderr.String())

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
	require.Equal(t, 1, run([]string{"import", filepath.Join(dir, "nosuch"), "--dir", filepath.Join(dir, "new")},
		&stdout, &stderr, nil))
	require.NoDirExists(t, filepath.Join(dir, "new"))
	require.Equal(t, 1, run([]string{"import", rdb, "--dir", filepath.Join(dir, "new"), "--save", "", "--appendonly",
		"no"}, &stdout, &stderr, nil))
}

// The exit code of import shows whether the whole file was read.
func TestImportSaysWhatItLeavesOut(t *testing.T) {
	set := "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
	for name, test := range map[string]struct {
		content string
		code    int
		says    string
	}{
		"whole":                {set, 0, ""},
		"cut behind a command": {set + "*3\r\n$3\r\nSET", exitIncomplete, "11 bytes of a command or transaction"},
		"cut in a transaction": {set + "*1\r\n$5\r\nMULTI\r\n" + set, exitIncomplete,
			"42 bytes of a command or transaction"},
		"cut in the first command":   {set[:20], 1, "nothing of it can be read"},
		"cut in the first line":      {"*", 1, "nothing of it can be read"},
		"nothing":                    {"", 1, "the file is empty"},
		"something else":             {"hello", 1, "neither an RDB file nor an append-only file"},
		"a configuration of a Redis": {"# comment\nport 1\n", 1, "is no command that changes anything"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "file")
		require.NoError(t, os.WriteFile(file, []byte(test.content), 0o600))
		var stdout, stderr bytes.Buffer
		require.Equal(t, test.code, run([]string{"import", file, "--dir", filepath.Join(dir, "a", "b", "data")}, &stdout,
			&stderr, nil), "%s: %s", name, stderr.String())
		require.Contains(t, stderr.String(), test.says, name)
		if test.code == 1 {
			require.NoDirExists(t, filepath.Join(dir, "a"), name)
			kept := filepath.Join(dir, "kept")
			require.NoError(t, os.Mkdir(kept, 0o700))
			require.Equal(t, 1, run([]string{"import", file, "--dir", filepath.Join(kept, "data")}, &stdout, &stderr, nil))
			left, err := os.ReadDir(kept)
			require.NoError(t, err, "a directory that was there stays")
			require.Empty(t, left)
		}
	}
}

// A file with a value of a module that does not exist here is refused, or read without it, with a code of its own.
func TestImportOfValuesOfUnknownTypes(t *testing.T) {
	const key = "\x00\x01a\x011"                                                             // a string
	const foreign = "\x07\x05graph\x81\x82\xb6\xa9\x85\xd6\xad\x68\x08\x02\x05\x05\x01x\x00" // a value of some module
	dir, started := t.TempDir(), t.TempDir()
	t.Chdir(dir) // a server changes to its directory
	file := filepath.Join(dir, "dump.rdb")
	content := []byte("REDIS0011" + foreign + key + "\xff\x00\x00\x00\x00\x00\x00\x00\x00")
	require.NoError(t, os.WriteFile(filepath.Join(started, "dump.rdb"), content, 0o600))
	require.NoError(t, os.WriteFile(file, content, 0o600))
	data := filepath.Join(dir, "data")
	for _, test := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"import", "--check", file}, exitRefused,
			[]string{`"graph" in database 0`, "1 keys, 0 expired keys", "import-skip-unsupported yes"}},
		{[]string{"import", "--check", "--skip-unsupported", file}, exitLeftOut,
			[]string{`"graph" in database 0`, "import would leave out 1 keys"}},
		{[]string{"import", file, "--dir", data}, exitRefused,
			[]string{"1 keys have values of types that do not exist here", "import-skip-unsupported yes"}},
		{[]string{"--port", "0", "--unixsocket", filepath.Join(dir, "s"), "--dir", started}, exitRefused,
			[]string{"import-skip-unsupported yes"}},
		{[]string{"import", file, "--dir", data, "--skip-unsupported"}, exitLeftOut,
			[]string{"1 keys have been left out", "import-report.tsv"}},
	} {
		var out bytes.Buffer
		require.Equal(t, test.code, run(test.args, &out, &out, nil), "%v: %s", test.args, out.String())
		for _, says := range test.says {
			require.Contains(t, out.String(), says, test.args)
		}
		if test.code == exitRefused {
			require.NoDirExists(t, data)
		}
	}
	report, err := os.ReadFile(filepath.Join(data, "import-report.tsv"))
	require.NoError(t, err)
	require.Contains(t, string(report), "\"graph\"\n")
	var out bytes.Buffer
	require.Zero(t, run([]string{"export", "--aof", filepath.Join(dir, "x.aof"), "--dir", data}, &out, &out, nil), out.String())
	aof, err := os.ReadFile(filepath.Join(dir, "x.aof"))
	require.NoError(t, err)
	require.Contains(t, string(aof), "$1\r\na\r\n$1\r\n1\r\n")
}

// check of a running server's directory does not report unfinished writes as damage.
func TestCheckOfARunningServer(t *testing.T) {
	dir := t.TempDir()
	signals, exit := start(t, "--port", "0", "--unixsocket", filepath.Join(dir, "s"), "--dir", filepath.Join(dir, "data"))
	for _, args := range [][]string{{"check", filepath.Join(dir, "data")},
		{"check", "--repair", filepath.Join(dir, "data")}} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 1, run(args, &stdout, &stderr, nil))
		require.Contains(t, stderr.String(), "a server runs on these data and must be stopped first")
		require.Empty(t, stdout.String())
	}
	signals <- syscall.SIGTERM
	require.Zero(t, <-exit)
	var stdout, stderr bytes.Buffer
	require.Zero(t, run([]string{"check", filepath.Join(dir, "data")}, &stdout, &stderr, nil), stderr.String())
}

func TestImportOfASnapshotOfSpiderq(t *testing.T) {
	dir := t.TempDir()
	file, data := filepath.Join(dir, "snapshot"), filepath.Join(dir, "data")
	snapshot := []byte("\x02\x00\x00\x00\x00\x00\x00\x00" +
		"\x03\x00\x00\x00cat" + "\x05\x00\x00\x00small" + "\x01\x00\x00\x00d" + "\x00\x00\x00\x00")
	importIt := func() (code int, out, says string) {
		var stdout, stderr bytes.Buffer
		code = run([]string{"import", "--spiderq", file, "--dir", data, "--spiderq-queue", "q"}, &stdout, &stderr, nil)
		return code, stdout.String(), stderr.String()
	}
	require.NoError(t, os.WriteFile(file, snapshot, 0o600))
	code, out, says := importIt()
	require.Zero(t, code, says)
	require.Equal(t, "2 entries of "+file+" have been read into "+data+"\n", out)
	code, _, says = importIt()
	require.Equal(t, 1, code)
	require.Contains(t, says, "there is data in "+data+" already")

	var aof bytes.Buffer
	require.Zero(t, run([]string{"export", "--aof", filepath.Join(dir, "aof"), "--dir", data}, &aof, &aof, nil), aof.String())
	exported, err := os.ReadFile(filepath.Join(dir, "aof"))
	require.NoError(t, err)
	require.Contains(t, string(exported), "spiderq:{q}")
	require.Contains(t, string(exported), "small")

	data = filepath.Join(dir, "other", "data")
	require.NoError(t, os.WriteFile(file, snapshot[:20], 0o600))
	code, _, says = importIt()
	require.Equal(t, 1, code)
	require.Contains(t, says, "unexpected EOF")
	require.NoDirExists(t, filepath.Join(dir, "other"))
	require.NoError(t, os.WriteFile(file, snapshot, 0o600))
	code, _, says = importIt()
	require.Zero(t, code, says)
}
