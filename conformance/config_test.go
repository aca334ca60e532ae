// Starts servers with configuration files found in the wild, and compares the values that CONFIG SET accepts with
// Redis.

package conformance

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/freeport"
	"github.com/atomredis/atomredis/internal/testing/oracle"
	"github.com/atomredis/atomredis/server"
)

const redisConf = "testdata/redisconf"

// readRows reads a table of three columns.
func readRows(t *testing.T, file string) (rows [][3]string) {
	t.Helper()
	f, err := os.Open(filepath.Join(redisConf, file))
	require.NoError(t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		columns := strings.Split(lines.Text(), "\t")
		require.Len(t, columns, 3, "%s: %s", file, lines.Text())
		rows = append(rows, [3]string(columns))
	}
	require.NotEmpty(t, rows)
	return rows
}

// inDirWithFiles changes to a directory of the test's own that contains the files named in directives.
func inDirWithFiles(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"},
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("certs", 0o700))
	for _, name := range []string{"redis.crt", "client.crt", "ca.crt", "certs/ca.crt"} {
		require.NoError(t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	}
	for _, name := range []string{"redis.key", "client.key"} {
		require.NoError(t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))
	}
	require.NoError(t, os.WriteFile("users.acl", []byte("user default on nopass ~* &* +@all\n"), 0o600))
}

// startsWith returns an error if a server in memory does not start with the configuration.
func startsWith(conf *config.Config) error {
	conf.InMemory()
	conf.ListenNowhere()
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{})
	if err != nil {
		return err
	}
	if err := srv.Start(); err != nil {
		return err
	}
	return srv.Close()
}

// withTLS returns lines that enable TLS, for directives that require it.
func withTLS(t *testing.T) string {
	return "bind 127.0.0.1\n" +
		"tls-cert-file redis.crt\ntls-key-file redis.key\n" +
		"tls-client-cert-file client.crt\ntls-client-key-file client.key\n" +
		"tls-ca-cert-file ca.crt\ntls-port " + freeport.Port(t) + "\n"
}

// alone are directives of TLS that are tried without TLS: the first with a value that cannot be used, the last with a
// port that others may use.
var alone = map[string]bool{"tls-ciphersuites": true, "tls-port": true}

func TestEveryDirectiveOfEveryVersionStartsTheServer(t *testing.T) {
	refused := map[[2]string]string{}
	for _, row := range readRows(t, "refused.tsv") {
		refused[[2]string{row[0], row[1]}] = row[2]
	}
	seen := map[[2]string]bool{}
	files, err := filepath.Glob(redisConf + "/*.tsv")
	require.NoError(t, err)
	require.Len(t, files, 16)
	tables := map[string][][3]string{}
	for _, file := range files {
		if name := filepath.Base(file); name != "refused.tsv" {
			tables[name] = readRows(t, name)
		}
	}
	inDirWithFiles(t)
	for file, rows := range tables {
		for _, row := range rows {
			name := row[0]
			for _, value := range row[1:] {
				pair := [2]string{name, value}
				if seen[pair] {
					continue
				}
				seen[pair] = true
				line := name + " " + value
				if value != `""` && (name == "proc-title-template" || name == "tls-protocols") { // one word with spaces
					line = name + ` "` + value + `"`
				}
				content := line + "\n"
				if strings.HasPrefix(name, "tls-") && value != `""` && !alone[name] {
					content = withTLS(t) + content
				}
				require.NoError(t, os.WriteFile("redis.conf", []byte(content), 0o600))
				conf := config.NewConfig()
				err := conf.LoadFile("redis.conf")
				if why := refused[pair]; why != "" {
					require.ErrorContains(t, err, why, "%s: %s", file, line)
					continue
				}
				require.NoError(t, err, "%s: %s", file, line)
				if name != "tls-port" {
					require.NoError(t, startsWith(conf), "%s: %s", file, line)
				}
			}
		}
	}
	for pair := range refused {
		require.True(t, seen[pair], "%v is refused, but no version has it", pair)
	}
}

func TestStockConfigurationFilesStartTheServer(t *testing.T) {
	files, err := filepath.Glob(redisConf + "/stock/*.conf")
	require.NoError(t, err)
	require.Greater(t, len(files), 20)
	for i, file := range files {
		files[i], err = filepath.Abs(file)
		require.NoError(t, err)
	}
	inDirWithFiles(t)
	for _, file := range files {
		conf := config.NewConfig()
		require.NoError(t, conf.LoadFile(file))
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotEmpty(t, content)
		require.NoError(t, startsWith(conf), file)
	}
}

// knownConfig are directives that differ on purpose, with the reasons.
var knownConfig = map[string]string{
	"appendonly":           "the journal cannot be switched on or off while the server runs",
	"activedefrag":         "Redis refuses it where it was built without its own allocator",
	"dir":                  "Redis changes it whatever is stored, and its own directory with it",
	"pidfile":              "the test's servers differ",
	"port":                 "the test's servers differ",
	"bind":                 "the test's servers differ",
	"unixsocket":           "the test's servers differ",
	"logfile":              "the test's servers differ",
	"databases":            "the test's servers differ",
	"enable-debug-command": "the test's servers differ",
	"tls-port":             "needs certificates",
	"repl-diskless-load":   "later versions have one more value",
	"io-threads-do-reads":  "Redis 8 has no use for it and leaves it out of CONFIG",
	"latency-tracking":     "",
	"maxmemory-policy":     "",
	"maxmemory-samples":    "at most 64, as since Redis 8.0",
}

// knownValues are values that only we accept, or only Redis.
var knownValues = map[string]string{
	"latency-tracking-info-percentiles": " 1",                  // spaces do not matter
	"tls-protocols":                     " 1",                  // spaces do not matter
	"notify-keyspace-events":            "no",                  // two classes of Redis 8
	"maxmemory":                         "9223372036854775808", // more than possible
	"maxmemory-clients":                 "9223372036854775808", // refused in other words
	"cluster-link-sendbuf-limit":        "9223372036854775808", // more than possible
	"maxclients":                        "2147483648",          // Redis takes too long to make room for them
}

func TestDirectivesAcceptWhatRedisAccepts(t *testing.T) {
	socket := oracle.Start(t)
	redisClient := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, Protocol: 2, PoolSize: 1})
	defer redisClient.Close()
	conf := config.NewConfig()
	conf.InMemory()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, conf.Set("port", "0", false))
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{Listeners: []net.Listener{l}})
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	defer srv.Close()
	ours := redis.NewClient(&redis.Options{Addr: l.Addr().String(), Protocol: 2, PoolSize: 1})
	defer ours.Close()

	ctx := context.Background()
	all, err := redisClient.ConfigGet(ctx, "*").Result()
	require.NoError(t, err)
	mine, err := ours.ConfigGet(ctx, "*").Result()
	require.NoError(t, err)
	rows := map[string][]string{}
	for _, row := range readRows(t, "7.0.tsv") {
		rows[row[0]] = row[1:]
	}
	values := []string{"", "yes", "no", "0", "1", "-1", "7", "100", "1mb", "1tb", "abq", "a b", "10%", "2147483648",
		"9223372036854775808", "YES", " 1", "1 2 3", "normal 1 2 3", "60 100", "default"}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	// reworded are the parts of errors that differ on purpose.
	reworded := strings.NewReplacer(", nothing", "", "0 and 9223372036854 inclusive",
		"0 and 9223372036854775807 inclusive", "KEtmdnocaSTIV'", "KEtmdn'")
	answer := func(c *redis.Client, name, value string) string {
		err := c.ConfigSet(ctx, name, value).Err()
		text := "OK"
		if err != nil {
			text = reworded.Replace(err.Error())
		}
		got, err := c.ConfigGet(ctx, name).Result()
		require.NoError(t, err, "after CONFIG SET %s %q", name, value)
		return text + " -> " + got[name]
	}
	for _, name := range names {
		if _, known := knownConfig[name]; known {
			continue
		}
		assert.Contains(t, mine, name)
		if name != "save" && name != "dir" {
			assert.Equal(t, all[name], mine[name], "the default of %s", name)
		}
		for _, value := range append(slices.Clone(rows[name]), values...) {
			value = strings.Trim(value, `"`)
			if knownValues[name] == value && value != "" {
				continue
			}
			assert.Equal(t, answer(redisClient, name, value), answer(ours, name, value), "CONFIG SET %s %q", name, value)
		}
		before := all[name]
		redisClient.ConfigSet(ctx, name, before)
		ours.ConfigSet(ctx, name, before)
	}
}

// Redis 7.0 can read what CONFIG REWRITE writes: with every directive, after a promotion, and with the defaults of
// directives that it lacks.
func TestRedisReadsWhatIsRewritten(t *testing.T) {
	socket := oracle.Start(t, "--port", "0") // skips the test if there is none
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("redis.conf", []byte("port 0\nreplicaof 127.0.0.1 1\nunixsocket ours\nshards 4\n"),
		0o600))
	conf := config.NewConfig()
	require.NoError(t, conf.LoadArgs([]string{"redis.conf", "--shards", "0", "--enable-debug-command", "yes", "--dir",
		"."}))
	conf.InMemory()
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{})
	require.NoError(t, err)
	require.NoError(t, srv.Start())
	defer srv.Close()
	ours := redis.NewClient(&redis.Options{Network: "unix", Addr: "ours", Protocol: 2})
	defer ours.Close()
	ctx := context.Background()
	require.NoError(t, ours.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
	require.NoError(t, ours.Do(ctx, "CONFIG", "SET", "search-timeout", "500", "hz", "20").Err())
	for _, rewrite := range [][]any{{"CONFIG", "REWRITE"}, {"DEBUG", "CONFIG-REWRITE-FORCE-ALL"}} {
		require.NoError(t, ours.Do(ctx, rewrite...).Err())
		content, err := os.ReadFile("redis.conf")
		require.NoError(t, err)
		require.Contains(t, string(content), "hz 20\n")
		require.NotContains(t, string(content), "replicaof")
		out, err := exec.Command("redis-server", "redis.conf", "--unixsocket", socket+".2", "--port", "0", "--io-threads",
			"x").CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "'io-threads \"x\"'\nargument couldn't be parsed into an integer",
			"everything before it has been read: %s", content)
	}
}
