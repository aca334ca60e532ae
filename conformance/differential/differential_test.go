package differential

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/oracle"
	"github.com/atomredis/atomredis/internal/testing/transcript"
)

// The environment variables of the comparison with a live Redis: the server to compare, by default another Redis, the
// number of commands and the seed.
const (
	addrVariable     = "ATOMREDIS_CONFORMANCE_ADDR"
	commandsVariable = "ATOMREDIS_DIFFERENTIAL_COMMANDS"
	seedVariable     = "ATOMREDIS_DIFFERENTIAL_SEED"
)

func TestServerRepliesLikeRedisToRandomCommands(t *testing.T) {
	o := Options{A: oracle.Start(t), B: os.Getenv(addrVariable), Seed: 1, Commands: 20_000, SequenceLength: 400,
		KeepGoing: 1, Dir: t.TempDir()}
	if o.B == "" {
		o.B = oracle.Start(t)
	}
	var err error
	if s := os.Getenv(commandsVariable); s != "" {
		o.Commands, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	if s := os.Getenv(seedVariable); s != "" {
		o.Seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	var log bytes.Buffer
	o.Log = &log
	found, err := Check(o)
	t.Log(log.String())
	require.NoError(t, err)
	require.Zero(t, found)
}

func TestServerRepliesLikeRedisToExtremeNumbers(t *testing.T) {
	a, b := oracle.Start(t), os.Getenv(addrVariable)
	if b == "" {
		b = oracle.Start(t)
	}
	var log bytes.Buffer
	found, err := Extremes(a, b, &log)
	require.NoError(t, err)
	require.Zero(t, found, log.String())
}

func TestEachNumberOfALineIsReplacedInTurn(t *testing.T) {
	calls := extremeCalls(`EVAL "return 1" {2} a({!3}-{4}`)
	require.Equal(t, []string{"EVAL", "return 1", "2", "a(3-4"}, calls[0])
	require.Contains(t, calls, []string{"EVAL", "return 1", "nan", "a(3-4"})
	require.Contains(t, calls, []string{"EVAL", "return 1", "2", "a(9223372036854775807-4"})
	require.NotContains(t, calls, []string{"EVAL", "return 1", "2", "a(2147483647-4"})
	require.Contains(t, calls, []string{"EVAL", "return 1", "2", "a(3-2147483647"})
	require.Len(t, calls, 1+3*len(extremeNumbers)-14)
}

// failures collects the failures of a transcript.
type failures struct{ found []string }

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.found = append(f.found, fmt.Sprintf(format, args...))
}

func TestADifferenceIsFoundAndMadeSmallAndReplayable(t *testing.T) {
	a, b := oracle.Start(t), oracle.Start(t, "--databases", "2")
	dir := t.TempDir()
	var log bytes.Buffer
	found, err := Check(Options{A: a, B: b, Seed: 1, Commands: 20_000, SequenceLength: 200, KeepGoing: 1, Dir: dir,
		Log: &log})
	require.NoError(t, err)
	require.Equal(t, 1, found, log.String())
	files, err := filepath.Glob(filepath.Join(dir, "difference-*.txt"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	report, err := transcript.ParseFile(files[0])
	require.NoError(t, err)
	require.LessOrEqual(t, report.Exchanges(), 4, log.String())
	for addr, differs := range map[string]bool{a: false, b: true} {
		var f failures
		transcript.Run(&f, func() (net.Conn, error) { return transcript.Dial(addr) }, files[0])
		require.Equal(t, differs, len(f.found) > 0, "%v\n%s", f.found, log.String())
	}
}

func TestASeedAlwaysGivesTheSameCommands(t *testing.T) {
	require.Equal(t, Generate(7, 300), Generate(7, 300))
	require.NotEqual(t, Generate(7, 300), Generate(8, 300))
}

func TestOnlyTheBlockerWaitsForEver(t *testing.T) {
	for seed := range uint64(300) {
		for _, op := range Generate(seed, 200) {
			for _, cmd := range op.Cmds {
				require.NotEmpty(t, cmd)
				timeout := len(cmd) - 1
				name := strings.ToUpper(cmd[0])
				if strings.HasSuffix(name, "MPOP") {
					timeout = min(1, timeout)
				}
				if op.Conn != blocker && name[0] == 'B' && !strings.HasPrefix(name, "BIT") {
					require.NotEqual(t, "0", cmd[timeout], cmd)
				}
				if i := slices.Index(cmd, "BLOCK"); op.Conn != blocker && i >= 0 && i+1 < len(cmd) {
					require.NotEqual(t, "0", cmd[i+1], cmd)
				}
			}
		}
	}
}

func reply(t *testing.T, text string) value {
	nc, server := net.Pipe()
	go func() {
		server.Write([]byte(text))
		server.Close()
	}()
	v, err := transcript.NewConn(nc).Read(batchTimeout)
	require.NoError(t, err)
	return v
}

func TestRepliesAreComparedByTheRuleOfTheirCommand(t *testing.T) {
	for _, c := range []struct {
		args []string
		a, b string
		want bool
	}{
		{[]string{"GET", "k"}, "$1\r\na\r\n", "$1\r\na\r\n", true},
		{[]string{"GET", "k"}, "$1\r\na\r\n", "+a\r\n", false},
		{[]string{"smembers", "k"}, "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:1\r\n", true},
		{[]string{"SMEMBERS", "k"}, "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:2\r\n", false},
		{[]string{"LRANGE", "k"}, "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:1\r\n", false},
		{[]string{"HGETALL", "k"}, "*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n", "*4\r\n:3\r\n:4\r\n:1\r\n:2\r\n", true},
		{[]string{"HGETALL", "k"}, "*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n", "*4\r\n:1\r\n:4\r\n:3\r\n:2\r\n", false},
		{[]string{"TTL", "k"}, ":100\r\n", ":99\r\n", true},
		{[]string{"TTL", "k"}, ":-1\r\n", ":-2\r\n", false},
		{[]string{"TTL", "k"}, ":100\r\n", ":90\r\n", false},
		{[]string{"SRANDMEMBER", "k"}, "$1\r\na\r\n", "$1\r\nb\r\n", true},
		{[]string{"SRANDMEMBER", "k"}, "$1\r\na\r\n", "$-1\r\n", false},
		{[]string{"SRANDMEMBER", "k"}, "-ERR a\r\n", "-ERR b\r\n", false},
		{[]string{"SCAN", "0", "COUNT", "10000"}, "*2\r\n$1\r\n0\r\n*2\r\n:1\r\n:2\r\n",
			"*2\r\n$1\r\n0\r\n*2\r\n:2\r\n:1\r\n", true},
		{[]string{"SCAN", "0", "COUNT", "10000"}, "*2\r\n$1\r\n0\r\n*1\r\n:1\r\n", "*2\r\n$1\r\n0\r\n*1\r\n:2\r\n", false},
		{[]string{"EVAL", callScript, "1", "k", "SMEMBERS", "k"}, "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:1\r\n", true},
		{[]string{"XPENDING", "k", "g", "-", "+", "1"}, "*1\r\n*4\r\n$1\r\n1\r\n$1\r\nc\r\n:5\r\n:1\r\n",
			"*1\r\n*4\r\n$1\r\n1\r\n$1\r\nc\r\n:9\r\n:1\r\n", true},
		{[]string{"XPENDING", "k", "g", "-", "+", "1"}, "*1\r\n*4\r\n$1\r\n1\r\n$1\r\nc\r\n:5\r\n:1\r\n",
			"*1\r\n*4\r\n$1\r\n1\r\n$1\r\nc\r\n:5\r\n:2\r\n", false},
	} {
		require.Equal(t, c.want, same(c.args, reply(t, c.a), reply(t, c.b)), "%v: %q and %q", c.args, c.a, c.b)
	}
}

func TestConsumersWithoutEntriesAreNotCompared(t *testing.T) {
	consumer := func(name, pending string) string {
		return "*4\r\n$4\r\nname\r\n$1\r\n" + name + "\r\n$7\r\npending\r\n:" + pending + "\r\n"
	}
	one := "*1\r\n" + consumer("a", "1")
	for consumers, want := range map[string]bool{
		"*2\r\n" + consumer("a", "1") + consumer("b", "0"): true,
		"*2\r\n" + consumer("a", "1") + consumer("b", "2"): false,
		"*1\r\n" + consumer("a", "2"):                      false,
		"*1\r\n" + consumer("b", "1"):                      false,
		"*0\r\n":                                           false,
	} {
		require.Equal(t, want, ofStreams([]string{"XINFO", "CONSUMERS", "k", "g"}, reply(t, one), reply(t, consumers)),
			consumers)
	}
}

func TestARandomChoiceMustComeFromItsCollection(t *testing.T) {
	full := reply(t, "*3\r\n:1\r\n:2\r\n:3\r\n")
	for _, c := range []struct {
		count, chosen string
		want          bool
	}{
		{"2", "*2\r\n:3\r\n:1\r\n", true},
		{"2", "*2\r\n:3\r\n:3\r\n", false},
		{"2", "*1\r\n:3\r\n", false},
		{"2", "*2\r\n:3\r\n:4\r\n", false},
		{"5", "*3\r\n:3\r\n:1\r\n:2\r\n", true},
		{"-2", "*2\r\n:3\r\n:3\r\n", true},
		{"-2", "*3\r\n:3\r\n:3\r\n:3\r\n", false},
		{"-1", "*1\r\n:9\r\n", false},
		{"abc", "-ERR value is not an integer or out of range\r\n", true},
	} {
		require.Equal(t, c.want, chosenFrom(full, []string{"SRANDMEMBER", "k", c.count}, reply(t, c.chosen)), "%s: %q",
			c.count, c.chosen)
	}
}
