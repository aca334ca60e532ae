package scripts

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/oracle"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/resp"
	"github.com/atomredis/atomredis/scripting"
)

// The environment variables of the comparison with a live Redis: the server to compare, by default the scripting engine
// of the test's own process, the number of calls and the seed.
const (
	addrVariable  = "ATOMREDIS_CONFORMANCE_ADDR"
	callsVariable = "ATOMREDIS_SCRIPT_CALLS"
	seedVariable  = "ATOMREDIS_DIFFERENTIAL_SEED"
)

// local is a server that consists only of a scripting engine.
type local struct{ engine *scripting.Engine }

func newLocal() local {
	return local{scripting.New(scripting.Options{Version: "7.4.0", VersionNum: 0x070400})}
}

func (l local) run(calls []string) ([]string, error) {
	script, err := l.engine.Load([]byte(runner))
	if err != nil {
		return nil, err
	}
	var args [][]byte
	for _, c := range calls {
		args = append(args, []byte(c))
	}
	w := resp.Writer{Proto: 2}
	l.engine.Run(script, nil, nil, args, &w)
	near, far := net.Pipe()
	go func() {
		far.Write(w.Buf)
		far.Close()
	}()
	c := transcript.NewConn(near)
	defer c.Close()
	v, err := c.Read(timeout)
	if err != nil {
		return nil, err
	}
	return texts(v, len(calls))
}

func TestLibrariesReplyAsRedisDidWhenItWasRecorded(t *testing.T) {
	f, err := os.Open("testdata/calls.txt")
	require.NoError(t, err)
	defer f.Close()
	var calls, recorded []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		call, result, ok := strings.Cut(lines.Text(), "\t")
		require.True(t, ok)
		call, err := strconv.Unquote(call)
		require.NoError(t, err)
		result, err = strconv.Unquote(result)
		require.NoError(t, err)
		calls, recorded = append(calls, call), append(recorded, result)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, calls)
	results, err := newLocal().run(calls)
	require.NoError(t, err)
	good := 0
	for i, c := range calls {
		require.Equal(t, recorded[i], results[i], c)
		if strings.HasPrefix(results[i], "true") {
			good++
		}
	}
	require.Greater(t, good, len(calls)/2, "most random calls should return something")
}

func TestLibrariesReplyLikeRedisToRandomCalls(t *testing.T) {
	a, err := dial(oracle.Start(t))
	require.NoError(t, err)
	defer a.Close()
	p := pair{a, newLocal()}
	if addr := os.Getenv(addrVariable); addr != "" {
		b, err := dial(addr)
		require.NoError(t, err)
		defer b.Close()
		p[1] = b
	}
	var log bytes.Buffer
	o := Options{Seed: 1, Calls: 10_000, KeepGoing: 5, Log: &log}
	if s := os.Getenv(callsVariable); s != "" {
		o.Calls, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	if s := os.Getenv(seedVariable); s != "" {
		o.Seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	found, err := p.check(o)
	t.Log(log.String())
	require.NoError(t, err)
	require.Zero(t, found)
}

// wrong is a server that returns wrong results to calls that contain a word.
type wrong struct {
	server
	word string
}

func (w wrong) run(calls []string) ([]string, error) {
	results, err := w.server.run(calls)
	for i := range results {
		if strings.Contains(calls[i], w.word) {
			results[i] += "!"
		}
	}
	return results, err
}

func TestADifferenceIsFoundAndMadeSmall(t *testing.T) {
	var log bytes.Buffer
	p := pair{newLocal(), wrong{newLocal(), "cjson.encode("}}
	found, err := p.check(Options{Seed: 1, Calls: 200, KeepGoing: 1, Log: &log})
	require.NoError(t, err)
	require.NotZero(t, found)
	require.Contains(t, log.String(), "cjson.encode()\n  A: ")
}

func TestASeedAlwaysGivesTheSameCalls(t *testing.T) {
	a, b := newGenerator(5), newGenerator(5)
	for range 500 {
		require.Equal(t, sourceOf(a.call()), sourceOf(b.call()))
	}
}

func TestSmallerCallsAreReadable(t *testing.T) {
	g := newGenerator(9)
	l := newLocal()
	for range 20 {
		var calls []string
		for _, e := range g.call().smaller() {
			calls = append(calls, sourceOf(e))
		}
		if len(calls) == 0 {
			continue
		}
		results, err := l.run(calls)
		require.NoError(t, err)
		for i, r := range results {
			require.True(t, strings.HasPrefix(r, "true") || strings.HasPrefix(r, "false"), "%s gives %s", calls[i], r)
		}
	}
}
