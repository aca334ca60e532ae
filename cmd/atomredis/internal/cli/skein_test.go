package cli

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/protocols/skein/keys"
)

func TestSkeinStore(t *testing.T) {
	addr := start(t, nil)
	c := newClient(t, addr)
	require.NoError(t, c.Do(t.Context(), "SKEIN.CONTAINER", "SERVICE", "skein", "worker", 2).Err())
	play(t, addr, []step{
		{line: "skein range", stdout: ""},
		{line: "skein range --json", stdout: "[]\n"},
		{line: "skein put apples 1.22"},
		{line: "skein put bananas -", stdin: "0\n56"},
		{line: "skein put apples --owner worker_1"},
		{line: "skein get apples", stdout: "1.22\n"},
		{line: "skein get apples --json", stdout: `{"key":"apples","value":"1.22","owner":"worker_1"}` + "\n"},
		{line: "skein get pears", code: 1, stderr: "atomredis: there is no key 'pears'\n"},
		{line: "skein get pears --app other", code: 1, stderr: "atomredis: there is no key 'pears'\n"},
		{line: "skein range", stdout: "apples\t1.22\tworker_1\nbananas\t\"0\\n56\"\t-\n"},
		{line: "skein range --json --start b", stdout: `[{"key":"bananas","value":"0\n56","owner":null}]` + "\n"},
		{line: "skein range --keys --prefix a", stdout: "apples\n"},
		{line: "skein range --count --end b", stdout: "1\n"},
		{line: "skein range --prefix a --end b", code: 2,
			stderr: "atomredis: a key, --prefix, and --start and --end exclude each other\n"},
		{line: "skein put apples --no-owner"},
		{line: "skein put apples", code: 2, stderr: "atomredis: nothing to set: give a value, --owner or --no-owner\n"},
		{line: "skein put apples 1 --owner a_1 --no-owner", code: 2,
			stderr: "atomredis: --owner and --no-owner contradict each other\n"},
		{line: "skein put apples 1 --owner nobody_1", code: 1, stderr: "atomredis: Unknown service 'nobody'\n"},
		{line: "skein put pears --no-owner", code: 1, stderr: "atomredis: ignore_value=True & key isn't already set\n"},
		{line: "skein txn IF NOVALUE lock = THEN PUT lock VALUE me RANGE a c DEL lock '' KEYS ELSE RANGE lock ''",
			stdout: "succeeded\nOK\n" + `[["apples" "1.22" null] ["bananas" "0\n56" null]]` + "\n" + `["lock"]` + "\n"},
		{line: "skein txn IF NOVALUE lock != --json", stdout: `{"results":[],"succeeded":false}` + "\n"},
		{line: "skein txn nonsense", code: 1, stderr: "atomredis: ERR syntax error\n"},
		{line: "skein del", code: 2, stderr: "atomredis: nothing is chosen: give a key, --prefix, --start, --end, or --all\n"},
		{line: "skein del apples", stdout: "1\n"},
		{line: "skein del --all", stdout: "1\n"},
		{line: "skein containers", stdout: `re:^worker_0\tRUNNING\t20[-0-9T:]*Z\t-\t-\t\nworker_1\tRUNNING\t.*\n$`},
		{line: "skein containers --state killed --service worker", stdout: ""},
		{line: "skein containers --json", stdout: `re:^\[\{.*"id":"worker_0".*\}\]\n$`},
		{line: "skein containers --service nobody", code: 1, stderr: "atomredis: Unknown service 'nobody'\n"},
	})
}

func TestSkeinWatch(t *testing.T) {
	addr := start(t, nil)
	for db, flag := range []string{"", "--json"} {
		c := redis.NewClient(&redis.Options{Addr: addr, DB: db})
		t.Cleanup(func() { c.Close() })
		channel := keys.Channel("skein", db)
		var stdout, stderr bytes.Buffer
		done := make(chan int)
		args := append(strings.Fields(fmt.Sprintf("skein watch --prefix a --count 3 -n %d %s", db, flag)), at(addr)...)
		go func() { done <- Run(t.Context(), args, nil, &stdout, &stderr) }()
		require.Eventually(t, func() bool {
			n, err := c.PubSubNumSub(t.Context(), channel).Result()
			return err == nil && n[channel] == 1
		}, long, time.Millisecond)
		for _, command := range [][]any{
			{"SKEIN.PUT", "skein", "a", "VALUE", "1"}, {"SKEIN.PUT", "skein", "b", "VALUE", "2"},
			{"SKEIN.PUT", "skein", "aa", "VALUE", "3"}, {"PUBLISH", channel, "nonsense"}, {"SKEIN.DEL", "skein", "", ""},
		} {
			require.NoError(t, c.Do(t.Context(), command...).Err())
		}
		require.Equal(t, 0, <-done, stderr.String())
		want := "PUT\ta\t1\t-\nPUT\taa\t3\t-\nDELETE\ta\n"
		if flag != "" {
			want = `{"event":"PUT","key":"a","value":"1","owner":null}` + "\n" +
				`{"event":"PUT","key":"aa","value":"3","owner":null}` + "\n" +
				`{"event":"DELETE","key":"a","value":"","owner":null}` + "\n"
		}
		require.Equal(t, want, stdout.String())
	}
}

func TestPrefixesEndBehindTheirKeys(t *testing.T) {
	for prefix, want := range map[string]string{"": "", "ab": "ac", "a\uffff": "b", "\uffff": "", "\ud7ff": "\U00010000",
		"\U0010ffff": "\ue000", "\U0001f600": "\U0001f601", "\x7f": "\u0080"} {
		require.Equal(t, want, prefixEnd(prefix), "%q", prefix)
		if want != "" {
			require.True(t, keys.Contains(prefix, want, prefix+"\U0010ffff\uffff"), "%q", prefix)
			require.False(t, keys.Contains(prefix, want, want), "%q", prefix)
		}
	}
}

func TestSkeinCredentials(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "skein")
	t.Setenv("SKEIN_CONFIG", dir)
	files := []string{filepath.Join(dir, "skein.crt"), filepath.Join(dir, "skein.pem")}
	play(t, "127.0.0.1:1", []step{{line: "skein credentials"}})
	before, err := os.ReadFile(files[0])
	require.NoError(t, err)
	play(t, "127.0.0.1:1", []step{
		{line: "skein credentials", code: 1, stderr: "re:exists; --force replaces it\n$"},
		{line: "skein credentials --force " + dir},
	})
	pair, err := tls.LoadX509KeyPair(files[0], files[1])
	require.NoError(t, err)
	after, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.NotEqual(t, before, after)
	require.Equal(t, "skein-internal", pair.Leaf.Subject.CommonName)
	require.Equal(t, x509.SHA256WithRSA, pair.Leaf.SignatureAlgorithm)
	require.Empty(t, pair.Leaf.DNSNames)
	require.False(t, pair.Leaf.IsCA)
	require.Empty(t, pair.Leaf.ExtKeyUsage)
	for _, name := range files {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}
