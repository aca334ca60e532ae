package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/fakes3"
)

func TestAnArchiveIsCheckedAndRestored(t *testing.T) {
	dir := t.TempDir()
	socket, in := filepath.Join(dir, "s"), filepath.Join(dir, "archive")
	signals, exit := start(t, "--port", "0", "--unixsocket", socket, "--dir", filepath.Join(dir, "data"), "--archive", in,
		"--archive-interval", "50ms")
	require.Equal(t, "+OK", ask(t, socket, "SET k before"))
	var stdout, stderr bytes.Buffer
	require.Eventually(t, func() bool {
		stdout.Reset()
		return run([]string{"archive", "list", in}, &stdout, &stderr, nil) == 0 && strings.Contains(stdout.String(), "  base of ")
	}, time.Minute, 10*time.Millisecond)
	time.Sleep(2 * time.Millisecond) // the next change has another time
	between := time.Now()
	time.Sleep(2 * time.Millisecond)
	require.Equal(t, "+OK", ask(t, socket, "SET k after"))
	signals <- syscall.SIGTERM
	require.Zero(t, <-exit)

	stdout.Reset()
	require.Zero(t, run([]string{"archive", "check", in}, &stdout, &stderr, nil), stderr.String())
	require.Regexp(t, `^\d{8}T\d{6}Z-[0-9a-f]{8}: each second from \S+ to \S+, 1 bases, [12] pieces, \d+ bytes\nok\n$`, stdout.String())
	for to, want := range map[string]string{between.Format(time.RFC3339Nano): "before", "latest": "after"} {
		data := filepath.Join(dir, want)
		args := []string{"restore", "--from", in, "--to", to, "--dir", data}
		stdout.Reset()
		require.Zero(t, run(args, &stdout, &stderr, nil), stderr.String())
		require.Regexp(t, `^the base of \S+: .*\n\d records after it, until \S+\n`+data, stdout.String())
		stderr.Reset()
		require.Equal(t, 1, run(args, &stdout, &stderr, nil))
		require.Contains(t, stderr.String(), "there is data in "+data+" already")
		aof := filepath.Join(dir, "aof")
		require.Zero(t, run([]string{"export", "--aof", aof, "--dir", data}, &stdout, &stderr, nil), stderr.String())
		content, err := os.ReadFile(aof)
		require.NoError(t, err)
		require.Contains(t, string(content), want)
	}

	for want, args := range map[string][]string{
		"usage: atomredis restore":            {"--from", in},
		`"yesterday" is no time`:              {"--from", in, "--to", "yesterday"},
		"unknown scheme ftp":                  {"--from", "ftp://x", "--to", "latest"},
		"there is no archive with a base in ": {"--from", filepath.Join(dir, "nosuch"), "--to", "latest"},
		"the archive begins at ":              {"--from", in, "--to", "1.5"},
		"the archive reaches to ":             {"--from", in, "--to", "2100-01-01T00:00:00Z"},
	} {
		stderr.Reset()
		data := filepath.Join(dir, "none")
		require.NotZero(t, run(append([]string{"restore", "--dir", data}, args...), &stdout, &stderr, nil))
		require.Contains(t, stderr.String(), want)
		require.NoDirExists(t, data)
	}
	stderr.Reset()
	require.Equal(t, 1, run([]string{"archive", "check", dir}, &stdout, &stderr, nil))
	require.Contains(t, stderr.String(), "there is no archive in "+dir)

	var pieces []string
	require.NoError(t, filepath.WalkDir(in, func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(path, "log_") {
			pieces = append(pieces, path)
		}
		return err
	}))
	content, err := os.ReadFile(pieces[len(pieces)-1])
	require.NoError(t, err)
	content[len(content)-20] ^= 1
	require.NoError(t, os.WriteFile(pieces[len(pieces)-1], content, 0o600))
	stdout.Reset()
	require.Equal(t, 1, run([]string{"archive", "check", in}, &stdout, &stderr, nil))
	require.Regexp(t, `\n  \S+log_\S+ is damaged at offset \d+: a checksum is wrong\n$`, stdout.String())
	stderr.Reset()
	data := filepath.Join(dir, "damaged")
	require.Equal(t, 1, run([]string{"restore", "--from", in, "--to", "latest", "--dir", data}, &stdout, &stderr, nil))
	require.Regexp(t, `log_\S+ is damaged at offset \d+: a checksum is wrong; everything until \S+ can be restored`, stderr.String())
	require.NoDirExists(t, data)
}

func TestAnArchiveInABucket(t *testing.T) {
	dir, in := t.TempDir(), fakes3.Start(t).ArchiveURL("db")
	socket := filepath.Join(dir, "s")
	signals, exit := start(t, "--port", "0", "--unixsocket", socket, "--dir", filepath.Join(dir, "data"), "--archive", in)
	require.Equal(t, "+OK", ask(t, socket, "SET k v"))
	var stdout, stderr bytes.Buffer
	require.Eventually(t, func() bool {
		stdout.Reset()
		return run([]string{"archive", "list", in}, &stdout, &stderr, nil) == 0 && strings.Contains(stdout.String(), "  base of ")
	}, time.Minute, 10*time.Millisecond)
	signals <- syscall.SIGTERM
	require.Zero(t, <-exit)
	data := filepath.Join(dir, "restored")
	require.Zero(t, run([]string{"archive", "check", in}, &stdout, &stderr, nil), stderr.String())
	require.Zero(t, run([]string{"restore", "--to", "latest", "--from", in, "--dir", data}, &stdout, &stderr, nil), stderr.String())
	signals, exit = start(t, "--port", "0", "--unixsocket", socket, "--dir", data)
	require.Equal(t, "$1", ask(t, socket, "GET k"))
	signals <- syscall.SIGTERM
	require.Zero(t, <-exit)
}

// A base that is damaged is not needed: the records behind the one before it lead to the same data.
func TestADamagedBaseIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	socket, in := filepath.Join(dir, "s"), filepath.Join(dir, "archive")
	signals, exit := start(t, "--port", "0", "--unixsocket", socket, "--dir", filepath.Join(dir, "data"), "--archive", in,
		"--archive-interval", "10ms", "--archive-base-interval", "100ms")
	require.Equal(t, "+OK", ask(t, socket, "SET k v"))
	var stdout, stderr bytes.Buffer
	bases := func() (names []string) {
		_ = filepath.WalkDir(in, func(path string, _ os.DirEntry, err error) error {
			if strings.Contains(path, "base_") && strings.HasSuffix(path, ".zst") {
				names = append(names, path)
			}
			return nil
		})
		return names
	}
	for n := 1; n <= 3; n++ {
		require.Eventually(t, func() bool { return len(bases()) >= n }, time.Minute, 10*time.Millisecond)
		require.Equal(t, ":"+strconv.Itoa(n), ask(t, socket, "INCR n"))
	}
	signals <- syscall.SIGTERM
	require.Zero(t, <-exit)
	list := bases()
	damage := func(name string) {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		content[len(content)/2] ^= 1
		require.NoError(t, os.WriteFile(name, content, 0o600))
	}
	for _, name := range list[1:] {
		damage(name)
	}
	data := filepath.Join(dir, "restored")
	require.Zero(t, run([]string{"restore", "--to", "latest", "--from", in, "--dir", data}, &stdout, &stderr, nil), stderr.String())
	require.Regexp(t, `(?m)^the base \S+base_\S+ is damaged at offset \d+: a checksum is wrong; the one before it is used$`, stderr.String())
	aof := filepath.Join(dir, "aof")
	require.Zero(t, run([]string{"export", "--aof", aof, "--dir", data}, &stdout, &stderr, nil), stderr.String())
	content, err := os.ReadFile(aof)
	require.NoError(t, err)
	require.Contains(t, string(content), "$1\r\nn\r\n$1\r\n3\r\n")
	damage(list[0])
	stderr.Reset()
	require.Equal(t, 1, run([]string{"restore", "--to", "latest", "--from", in, "--dir", data + "2"}, &stdout, &stderr, nil))
	require.Contains(t, stderr.String(), "there is no archive with a base in "+in)
	require.NoDirExists(t, data+"2")
}

// masked has in place of what differs from run to run the same in all.
func masked(text string) string {
	for pattern, with := range map[string]string{
		`\d{4}-\d\d-\d\dT[0-9:.]+Z`: "TIME", `\d{8}T\d{6}Z-[0-9a-f]{8}`: "CHAIN", `\d+ bytes`: "N bytes", `\d+ pieces`: "N pieces",
		`\d{20}/base_\S+`: "BASE", `\d+ records`: "N records", `\d bases`: "N bases",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, with)
	}
	return text
}

// The walk of docs/archive.md, with the program.
func TestTheWalkThroughAnArchive(t *testing.T) {
	w := newWalk(t)
	text, _, _ := strings.Cut(w.page("archive.md"), "\n## A bucket\n")
	w.run(strings.ReplaceAll(text, "6400", w.port), func(line, want, got string) {
		require.Equal(t, masked(want), masked(strings.ReplaceAll(got, w.home, "/home/ada")), line)
	})
}
