//go:build linux

package load

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestScannerFindsTheEndsOfRepliesInAnyPieces(t *testing.T) {
	replies := []string{
		"+OK\r\n", ":-12\r\n", "$-1\r\n", "*-1\r\n", "$0\r\n\r\n", "*0\r\n", "$5\r\na\r\nbc\r\n",
		"*2\r\n*2\r\n$1\r\ns\r\n*0\r\n*1\r\n$-1\r\n", "*3\r\n+OK\r\n:1\r\n$4\r\n-ERR\r\n",
	}
	stream := strings.Join(replies, "")
	for piece := 1; piece <= len(stream); piece++ {
		var s Scanner
		var got []string
		begin := 0
		for end := 0; end < len(stream); {
			end = min(end+piece, len(stream))
			for begin < end {
				n, err := s.Next([]byte(stream[begin:end]))
				require.NoError(t, err)
				if n == 0 {
					break
				}
				got = append(got, stream[begin:begin+n])
				begin += n
			}
		}
		require.Equal(t, replies, got, "in pieces of %d bytes", piece)
	}
}

func TestScannerTakesErrorsIfItIsToldSo(t *testing.T) {
	const reply = "*2\r\n-ERR no\r\n:1\r\n"
	s := Scanner{Errors: true}
	if n, err := s.Next([]byte(reply + "-BUSY\r\n")); n != len(reply) || err != nil {
		t.Errorf("%d, %v; want %d", n, err, len(reply))
	}
}

func TestScannerReportsErrorsAlsoWithinArrays(t *testing.T) {
	for _, reply := range []string{"-ERR no\r\n", "*2\r\n+OK\r\n-ERR no\r\n", "*1\r\n*1\r\n-ERR no\r\n"} {
		_, err := new(Scanner).Next([]byte(reply))
		require.ErrorContains(t, err, "error reply: ERR no", "%q", reply)
	}
	for _, reply := range []string{"hello\r\n", "\r\n", "$x\r\n", "\n"} {
		_, err := new(Scanner).Next([]byte(reply))
		require.ErrorContains(t, err, "not a reply", "%q", reply)
	}
}

func TestElementsWalksThroughAReply(t *testing.T) {
	e := Elements("*1\r\n*2\r\n$1\r\ns\r\n*2\r\n:7\r\n$-1\r\n")
	require.Equal(t, 1, e.Array())
	require.Equal(t, 2, e.Array())
	require.Equal(t, "s", string(e.Text()))
	require.Equal(t, 2, e.Array())
	require.Equal(t, "7", string(e.Text()))
	kind, n, text := e.Next()
	require.Equal(t, byte('$'), kind)
	require.Equal(t, -1, n)
	require.Nil(t, text)
	kind, _, _ = e.Next()
	require.Zero(t, kind)
}

func TestKeysStayInRange(t *testing.T) {
	const n, draws = 1000, 100_000
	for name, keys := range map[string]Keys{"uniform": Uniform(n), "zipf": Zipf(n, 1.1)} {
		t.Run(name, func(t *testing.T) {
			var counts [n]int
			a, b := keys.Source(1), keys.Source(2)
			same := 0
			for range draws {
				i, j := a(), b()
				counts[i]++
				if i == j {
					same++
				}
			}
			most, drawn := 0, 0
			for _, c := range counts {
				most = max(most, c)
				if c > 0 {
					drawn++
				}
			}
			require.Greater(t, drawn, n*9/10, "nearly all keys are drawn")
			require.Less(t, same, draws/2, "sources differ")
			if name == "uniform" {
				require.Less(t, most, 3*draws/n)
			} else {
				require.Greater(t, most, draws/10, "the most popular key")
				require.Less(t, most, draws/3)
			}
		})
	}
}

func TestCommandsFillInNumbersAndCheckReplies(t *testing.T) {
	n := 41
	number := func() int { n++; return n }
	c := NewCommands([][]string{{"SET", "key:" + Random, Random}, {"GET", "k"}}, number, []string{"+OK", "$"})
	b, replies := c.Append([]byte("before"), 0, 0)
	require.Equal(t, "before*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000042\r\n$12\r\n000000000043\r\n"+
		"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", string(b))
	require.Equal(t, 2, replies)
	_, replies = c.Append(nil, 0, 1)
	require.Zero(t, replies, "the operation has ended")

	require.NoError(t, c.Reply(0, []byte("+OK\r\n")))
	require.NoError(t, c.Reply(0, []byte("$1\r\nx\r\n")))
	require.ErrorContains(t, c.Reply(0, []byte("$-1\r\n")), `should begin with "+OK"`)
}

// respond answers every PING on the listener after a delay; delay gets the number of the PING.
func respond(t *testing.T, delay func(n int)) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				n := 0
				for in := bufio.NewScanner(c); in.Scan(); {
					if in.Text() == "PING" {
						delay(n)
						n++
						if _, err := c.Write([]byte("+PONG\r\n")); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func pings(n int) (cs []Connection) {
	for range n {
		cs = append(cs, Connection{Client: NewCommands([][]string{{"PING"}}, nil, []string{"+PONG"})})
	}
	return cs
}

func TestClosedLoopCountsEveryOperation(t *testing.T) {
	g, err := New(respond(t, func(int) {}), pings(3))
	require.NoError(t, err)
	defer g.Close()
	for _, pipeline := range []int{1, 16} {
		r, err := g.Run(Options{Pipeline: pipeline, Duration: time.Minute, Operations: 160})
		require.NoError(t, err)
		require.Equal(t, 160, r.Operations)
		require.EqualValues(t, 160, r.Latency[0].TotalCount())
	}
	for r := (Result{}); r.Operations <= 3; { // a busy machine may do fewer in this time
		r, err = g.Run(Options{Pipeline: 1, Duration: 20 * time.Millisecond})
		require.NoError(t, err)
		require.Less(t, r.Elapsed, time.Minute)
	}
}

func TestOpenLoopCountsTheTimeSinceOperationsWereDue(t *testing.T) {
	const stall = 100 * time.Millisecond
	g, err := New(respond(t, func(n int) {
		if n == 20 {
			time.Sleep(stall)
		}
	}), pings(1))
	require.NoError(t, err)
	defer g.Close()
	r, err := g.Run(Options{Pipeline: 1, Duration: 200 * time.Millisecond, Rate: 1000})
	require.NoError(t, err)
	require.Equal(t, 200, r.Operations, "also those that were due during the stall")
	// One operation took the whole stall, those due meanwhile the rest of it: half of them at least half.
	require.Greater(t, r.Latency[0].ValueAtQuantile(80), int64(stall)/4)
	require.GreaterOrEqual(t, r.Latency[0].Max(), int64(stall))
}

// dozing is a client that delays the generator once.
type dozing struct {
	Client
	replies *int
	at      int // the reply at which it does
	stall   time.Duration
}

func (d dozing) Reply(op int, reply []byte) error {
	if *d.replies++; *d.replies == d.at {
		time.Sleep(d.stall)
	}
	return d.Client.Reply(op, reply)
}

func TestOpenLoopDoesNotCountWhatHoldsTheGeneratorUp(t *testing.T) {
	const stall = 500 * time.Millisecond
	replies := 0
	cs := pings(3)
	for i := range cs {
		cs[i].Client = dozing{cs[i].Client, &replies, 20, stall}
	}
	g, err := New(respond(t, func(int) {}), cs)
	require.NoError(t, err)
	defer g.Close()
	r, err := g.Run(Options{Pipeline: 1, Duration: time.Minute, Operations: 100, Rate: 1000})
	require.NoError(t, err)
	require.Equal(t, 100, r.Operations)
	require.Greater(t, r.Elapsed, stall)
	require.Less(t, r.Latency[0].Max(), int64(stall)/2)
}

func TestTimeOfTheWarmUpDoesNotCount(t *testing.T) {
	for _, pipeline := range []int{1, 4} {
		g, err := New(respond(t, func(int) {}), pings(2))
		require.NoError(t, err)
		defer g.Close()
		r, err := g.Run(Options{Pipeline: pipeline, Duration: time.Minute, Rate: 10_000, Operations: 100, WarmUp: 60})
		require.NoError(t, err)
		require.Equal(t, 100, r.Operations)
		require.EqualValues(t, 40, r.Latency[0].TotalCount())
	}
}

func TestPartsOfARunCountInTheOrderInWhichTheyAreDue(t *testing.T) {
	const stall = 100 * time.Millisecond
	for _, pipeline := range []int{1, 4} {
		g, err := New(respond(t, func(n int) {
			if n == 75 {
				time.Sleep(stall)
			}
		}), pings(1))
		require.NoError(t, err)
		defer g.Close()
		r, err := g.Run(Options{Pipeline: pipeline, Duration: time.Minute, Rate: 10_000, Operations: 100, WarmUp: 20,
			Parts: 4})
		require.NoError(t, err)
		require.Len(t, r.Latency, 4)
		for i, part := range r.Latency {
			require.EqualValues(t, 20, part.TotalCount())
			if i == 2 {
				require.GreaterOrEqual(t, part.Max(), int64(stall))
			}
		}
	}
}

func TestRunFailsOnAnErrorReply(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.Write([]byte("-ERR no\r\n"))
		c.Read(make([]byte, 100))
	}()
	g, err := New(l.Addr().String(), pings(1))
	require.NoError(t, err)
	defer g.Close()
	_, err = g.Run(Options{Pipeline: 1, Duration: time.Second})
	require.ErrorContains(t, err, "error reply: ERR no")
}

// relay is a client of two steps; the second sends the content of the reply to the first.
type relay struct {
	number []byte
	sent   []string
}

func (r *relay) Append(dst []byte, op, step int) ([]byte, int) {
	switch step {
	case 0:
		return append(dst, "PING\r\n"...), 1
	case 1:
		r.sent = append(r.sent, string(r.number))
		return append(dst, "PING\r\nPING\r\n"...), 2
	}
	return dst, 0
}

func (r *relay) Reply(_ int, reply []byte) error {
	r.number = append(r.number[:0], reply...)
	return nil
}

func TestStepsFollowTheRepliesToTheOnesBefore(t *testing.T) {
	c := &relay{}
	g, err := New(respond(t, func(int) {}), []Connection{{Client: c}, {Client: &relay{}, Partner: true}})
	require.NoError(t, err)
	defer g.Close()
	r, err := g.Run(Options{Pipeline: 4, Duration: time.Minute, Operations: 8})
	require.NoError(t, err)
	require.Equal(t, 8, r.Operations, "those of partners do not count")
	require.Equal(t, strings.Split(strings.TrimSuffix(strings.Repeat("+PONG\r\n,", 8), ","), ","), c.sent)
}
