package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandLinesOfTheShell(t *testing.T) {
	addr := start(t, map[string]string{"requirepass": "secret"})
	t.Setenv("REDISCLI_AUTH", "secret")
	dump := filepath.Join(t.TempDir(), "dump.rdb")
	for _, s := range []step{
		{line: "SET k -1", stdout: "OK\n"},
		{line: "--no-raw GET k", stdout: "\"-1\"\n"},
		{line: "-x --json SET k", stdin: "from the input\n", stdout: "\"OK\"\n"},
		{line: "--json GET k", stdout: "\"from the input\\n\"\n"},
		{line: "INCR k", stdout: "ERR value is not an integer or out of range\n\n"},
		{line: "-e INCR k", code: 1, stdout: "ERR value is not an integer or out of range\n\n"},
		{line: "-r 2 -n 3 INCR n", stdout: "1\n2\n"},
		{line: "", stdin: "GET k\nNOSUCH\nPING\n", code: 1,
			stdout: "from the input\n\nERR unknown command 'NOSUCH', with args beginning with: \n\nPONG\n"},
		{line: "-u redis://secret@" + addr + "/3 GET n", stdout: "2\n", stderr: "re:^Warning: "},
		{line: "-a wrong PING", stdout: "NOAUTH Authentication required.\n\n",
			stderr: "re:^Warning: .*\nAUTH failed: WRONGPASS .*\n$"},
		{line: "--scan --pattern k*", stdout: "k\n"},
		{line: "--bigkeys", stdout: `re:(?s)Sampled 1 keys of 1\n.*\nBiggest string found '"k"' has 15 bytes\n.*1 strings with 15 bytes`},
		{line: "--bigkeys --pattern n*", stdout: `re:Sampled 0 keys of 1\n`},
		{line: "--memkeys", stdout: `re:(?s)Biggest string found '"k"' has \d+ bytes\n`},
		{line: "--memkeys-samples 0", stdout: `re:(?s)Biggest string found '"k"' has \d+ bytes\n`},
		{line: "--hotkeys", code: 1, stderr: "re:LFU maxmemory policy", stdout: "re:most"},
		{line: "--latency -i 0.001", stdout: `re:^\d+ \d+ \d+\.\d\d \d+\n$`},
		{line: "--latency -i 0.001 --csv", stdout: `re:^\d+,\d+,\d+\.\d\d,\d+\n$`},
		{line: "--rdb -", stdout: "re:^REDIS00", stderr: "re:bytes have been written to -\n$"},
		{line: "--rdb " + dump, stderr: "re:bytes have been written to " + dump + "\n$"},
		{line: "--rdb " + dump + "/x", code: 1, stderr: "re:not a directory"},
		{line: "--rdb /dev/null", stderr: "re:bytes have been written"},
		{line: "-u http://x PING", code: 2, stderr: "re:^atomredis: invalid URI"},
		{line: "-p 0 PING", code: 2, stderr: "atomredis: invalid port 0\n"},
		{line: "-p 1 PING", code: 1, stderr: "atomredis: could not connect to 127.0.0.1:1: connection refused\n"},
		{line: "--tls --cacert nosuch PING", code: 1, stderr: "re:no such file"},
	} {
		var stdout, stderr bytes.Buffer
		args := append(append([]string{"cli"}, at(addr)...), split(s.line)...)
		require.Equal(t, s.code, Run(t.Context(), args, strings.NewReader(s.stdin), &stdout, &stderr), "%s: %s", s.line, &stderr)
		matches(t, s.stdout, stdout.String(), s.line)
		matches(t, s.stderr, stderr.String(), s.line)
	}
	content, err := os.ReadFile(dump)
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(content, []byte("REDIS00")))
	require.True(t, bytes.Contains(content, []byte("from the input")))
}
