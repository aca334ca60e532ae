// Replays every transcript: against the server under test, and on request against a live Redis.

package conformance

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/oracle"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/server"
)

// addrVariable is the environment variable that names a server to test instead of one in this process.
const addrVariable = "ATOMREDIS_CONFORMANCE_ADDR"

func TestServerGivesTheRecordedReplies(t *testing.T) {
	if addr := os.Getenv(addrVariable); addr != "" {
		replayGroups(t, func() (net.Conn, error) { return transcript.Dial(addr) }, nil)
		return
	}
	beside := replayedBeside(t)
	for name, options := range map[string]server.Options{"event loops": {}, "goroutines": {Goroutines: true}} {
		t.Run(name, func(t *testing.T) { replayGroups(t, startServer(t, options), beside) })
	}
}

// replayedBeside returns the groups that tests in command packages replay on a server in their process.
func replayedBeside(t *testing.T) map[string]bool {
	groups := map[string]bool{}
	call := regexp.MustCompile(`servertest\.Transcripts\(t, "(\w+)"\)`)
	for _, where := range []string{"../internal/commands/*/*_test.go", "../internal/protocols/*/*_test.go"} {
		files, err := filepath.Glob(where)
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range call.FindAllStringSubmatch(string(text), -1) {
				groups[m[1]] = true
			}
		}
	}
	require.NotEmpty(t, groups)
	return groups
}

// startServer starts a server in this process for as long as the test runs, and returns a dialer for it.
func startServer(t *testing.T, options server.Options) transcript.Dialer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	options.Listeners = []net.Listener{l}
	conf := config.NewConfig()
	conf.InMemory()
	require.NoError(t, conf.Set("port", "0", false))
	require.NoError(t, conf.Set("enable-debug-command", "yes", false))
	if shards := os.Getenv("ATOMREDIS_TEST_SHARDS"); shards != "" {
		require.NoError(t, conf.Set("shards", shards, false))
	}
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), options)
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	return func() (net.Conn, error) { return transcript.Dial(l.Addr().String()) }
}

func TestRedisGivesTheRecordedReplies(t *testing.T) {
	addr := oracle.Start(t)
	replayGroups(t, func() (net.Conn, error) { return transcript.Dial(addr) }, nil)
}

// replayGroups replays the transcripts of all groups except some.
func replayGroups(t *testing.T, dial transcript.Dialer, without map[string]bool) {
	files, err := filepath.Glob("testdata/*/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/"), ".txt")
		if group, _, _ := strings.Cut(name, "/"); without[group] {
			continue
		}
		t.Run(name, func(t *testing.T) { transcript.Run(t, dial, file) })
	}
}

func TestTranscriptsAreInTheirWrittenForm(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		transcript, err := transcript.Parse(file, string(text))
		require.NoError(t, err)
		require.Equal(t, string(text), transcript.String(), file)
	}
}
