// Input of clients that do not know the protocol, or are malicious. Whatever it is, other clients notice nothing.

package conformance

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/oracle"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/server"
)

const (
	// malformedInputs is the number of inputs, each sent over a connection of its own; in every tenth the client is not
	// authenticated.
	malformedInputs = 10_000
	// malformedClients is the number of clients that send at the same time.
	malformedClients = 8
	malformedSeed    = 1
	malformedTimeout = 30 * time.Second
	// malformedGrowth is how many bytes the heap may grow meanwhile, garbage included.
	malformedGrowth = 256 << 20
	// malformedRest is how many bytes larger it may be in the end.
	malformedRest = 8 << 20

	malformedPassword = "secret"
)

// malformed is one input.
type malformed struct {
	input string
	// single means that it is sent byte by byte.
	single bool
	// want is the beginning of the replies: those to the commands before the first mistake.
	want string
}

// newMalformed makes input number n.
func newMalformed(n int) malformed {
	r := rand.New(rand.NewPCG(malformedSeed, uint64(n)))
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	// Keys differ in so many bytes that a corrupted one belongs to nobody else.
	key := fmt.Sprintf("k%016x", r.Uint64())
	var m malformed
	valid := func() (input, reply string) {
		word := strings.Repeat("x", r.IntN(20))
		switch r.IntN(6) {
		case 0:
			return "PING\r\n", "+PONG\r\n"
		case 1:
			return multibulk("ECHO", word), fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
		case 2:
			return multibulk("SET", key, word), "+OK\r\n"
		case 3:
			return multibulk("GET", key+":none"), "$-1\r\n"
		case 4:
			return "\r\n*0\r\n*-1\r\n", ""
		default:
			return "EXISTS " + key + ":none \"\\x00\"\n", ":0\r\n"
		}
	}
	commands := r.IntN(3)
	if r.IntN(20) == 0 {
		commands = 100
	}
	var pipeline strings.Builder
	for range commands {
		input, reply := valid()
		pipeline.WriteString(input)
		m.want += reply
	}
	number := func() string {
		return pick("-1", "-2", "abc", "", "99999999999", "2147483647", "2147483648", "4294967297", "1048577", " 1", "+1",
			"01", "1 ", "0x1", "-0", "1.0", "1\x00",
			"9223372036854775807", "9223372036854775808", "-9223372036854775808", "536870912", "536870913", "\n")
	}
	last, _ := valid()
	whole := false
	switch kind := r.IntN(12); kind {
	case 0:
		m.input = "*" + number() + "\r\n" + last
	case 1:
		m.input = "*2\r\n$4\r\nECHO\r\n$" + number() + "\r\nhello\r\n" + last
	case 2: // a length other than the argument's, or an invalid one
		m.input = pick("*1\r\n$3\r\nPING\r\n", "*1\r\n$5\r\nPING\r\n", "*1\r\nPING\r\n", "*2\r\n$4\r\nECHO\r\n\r\n",
			"*3\r\n$4\r\nECHO\r\n$1\r\na\r\n", "*1\r\n$4\nPING\n", "*1\n",
			"*1\r\n\r\n", "*1\r\n$4\r\rPING\r\n", "*1\r\n*1\r\n$4\r\nPING\r\n") + last
	case 3:
		quote := pick(`"`, `'`)
		m.input = "ECHO " + pick(quote+"a", quote+"a"+quote+"b", "a"+quote, quote+`\x4`+quote+quote, quote+`\`+quote,
			quote+"\x00") + "\r\n" + last
	case 4:
		b := make([]byte, 1+r.IntN(300))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		m.input = string(b)
		m.input += pick("", "\r\n", "\n") + last
	case 5: // the client hangs up within a command
		whole := multibulk("SET", key, strings.Repeat("v", r.IntN(40_000)))
		m.input = whole[:1+r.IntN(len(whole)-1)]
	case 6: // the types of replies, and those of RESP3
		m.input = pick("+OK", "-ERR no", ":1", "$4\r\nPING", "$-1", "%1\r\n+a\r\n:1", "~1\r\n:1", ">1\r\n+x", "#t", "_",
			",1.5", "(123456789012345678901234567890", "=8\r\ntxt:text",
			"!5\r\nERR x", "|1\r\n+a\r\n+b", ".", "$?\r\n;4\r\nPING\r\n;0") + "\r\n" + last
	case 7:
		if r.IntN(4) != 0 { // large inputs cost more than all others
			// The connection of a web browser is closed, and unsent replies are lost.
			m.want, whole = "", true
			m.input = pick("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\n\r\n", "Host: x\r\n",
				"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n") + last
			break
		}
		m.input = pick("", "*", "*1\r\n$", "*2\r\n$4\r\nECHO\r\n$", "*1\r\n!", "ECHO \"") +
			strings.Repeat(pick("a", "1", "\x00", " ", "\""), 150_000)
	case 8: // a promised length, and only a little of it
		m.input = fmt.Sprintf("*%d\r\n$%d\r\n%s", 1+r.IntN(1<<20), 1<<(10+r.IntN(19)), strings.Repeat("x", r.IntN(1000)))
	default: // commands in which a few bytes are wrong
		for range 1 + r.IntN(5) {
			input, _ := valid()
			m.input += input
		}
		b := []byte(m.input)
		for range 1 + r.IntN(3) {
			i := r.IntN(len(b))
			switch r.IntN(3) {
			case 0:
				b[i] = byte(r.Uint32())
			case 1:
				b = slices.Insert(b, i, pick("\r", "\n", "0", "-", "$", "*", "\x00", "\"")[0])
			default:
				b = slices.Delete(b, i, min(i+1+r.IntN(3), len(b)-1))
			}
		}
		m.input = string(b)
	}
	m.input = pipeline.String() + m.input
	m.single = !whole && len(m.input) < 200 && r.IntN(10) == 0
	return m
}

// newUnauthenticated makes input number n for a server that requires a password.
func newUnauthenticated(n int) malformed {
	r := rand.New(rand.NewPCG(malformedSeed, uint64(n)))
	forms := []string{
		"*11\r\n" + strings.Repeat("$1\r\nx\r\n", 11),
		"*10\r\n" + strings.Repeat("$1\r\nx\r\n", 10),
		"*2\r\n$4\r\nECHO\r\n$16385\r\n" + strings.Repeat("x", 16385) + "\r\n",
		"*2\r\n$4\r\nECHO\r\n$16384\r\n" + strings.Repeat("x", 16384) + "\r\n",
		multibulk("AUTH", "wrong"), multibulk("AUTH", "default", "wrong"), multibulk("AUTH", "a", "b", "c"),
		multibulk("AUTH"), multibulk("GET", "k"), "PING\r\n",
		"AUTH \"wrong\r\n", "*2\r\n$4\r\nAUTH\r\n$-1\r\n", multibulk("HELLO", "4"),
		multibulk("HELLO", "3", "AUTH", "default", "wrong"), multibulk("MULTI"), multibulk("QUIT"),
		multibulk("AUTH", malformedPassword) + "*11\r\n$4\r\nECHO\r\n" + strings.Repeat("$1\r\nx\r\n", 10),
		"*1000000\r\n$16000\r\n", "*2\r\n$4\r\nAUTH\r\n$536870912\r\nx",
	}
	var m malformed
	for range 1 + r.IntN(4) {
		m.input += forms[r.IntN(len(forms))]
	}
	if r.IntN(3) == 0 {
		m.input = m.input[:1+r.IntN(len(m.input))]
	}
	m.single = len(m.input) < 200 && r.IntN(4) == 0
	return m
}

func multibulk(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// send sends the input, hangs up, and returns all replies.
func (m *malformed) send(dial transcript.Dialer) (string, error) {
	nc, err := dial()
	if err != nil {
		return "", err
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(malformedTimeout)); err != nil {
		return "", err
	}
	sent := make(chan struct{})
	go func() { // for servers that reply while they are sent to
		defer close(sent)
		size := len(m.input)
		if m.single {
			size = 1
		}
		for piece := range slices.Chunk([]byte(m.input), size) {
			if _, err := nc.Write(piece); err != nil {
				return // the server has closed the connection, as it should
			}
		}
		nc.(interface{ CloseWrite() error }).CloseWrite()
	}()
	got, err := io.ReadAll(nc)
	<-sent
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", fmt.Errorf("the server neither replies nor closes the connection after %q", got)
	}
	return string(got), nil
}

// check checks the replies for mistakes that no server may make.
func (m *malformed) check(got string) error {
	if !strings.HasPrefix(got, m.want) {
		return fmt.Errorf("the replies do not begin with %q", m.want)
	}
	replies := transcript.NewConn(replay{strings.NewReader(got)})
	for {
		switch v, err := replies.ReadBatched(); {
		case err != nil:
			return err
		case v.Kind == transcript.Closed:
			return nil
		case v.Kind == transcript.Error && strings.HasPrefix(v.Text, "ERR Protocol error") && replies.Buffered() > 0:
			return errors.New("there is a reply behind a protocol error")
		}
	}
}

// replay is a connection from which a text is read.
type replay struct{ *strings.Reader }

func (replay) Close() error                     { return nil }
func (replay) Write([]byte) (int, error)        { return 0, net.ErrClosed }
func (replay) LocalAddr() net.Addr              { return nil }
func (replay) RemoteAddr() net.Addr             { return nil }
func (replay) SetDeadline(time.Time) error      { return nil }
func (replay) SetReadDeadline(time.Time) error  { return nil }
func (replay) SetWriteDeadline(time.Time) error { return nil }

// hostility sends all inputs to two servers, of which the second requires a password, and passes each reply to check.
func hostility(open, closed transcript.Dialer, check func(n int, m *malformed, got string) error) error {
	errs := make([]error, malformedClients)
	var wg sync.WaitGroup
	for c := range malformedClients {
		wg.Go(func() {
			for n := c; n < malformedInputs && errs[c] == nil; n += malformedClients {
				m, dial := newMalformed(n), open
				if n%10 == 9 {
					m, dial = newUnauthenticated(n), closed
				}
				got, err := m.send(dial)
				if err == nil {
					err = check(n, &m, got)
				}
				if err != nil {
					errs[c] = fmt.Errorf("input %d, %s: replies %s: %w", n, excerpt(m.input), excerpt(got), err)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// excerpt shows the beginning and the end of a text.
func excerpt(s string) string {
	if len(s) > 600 {
		return fmt.Sprintf("%q … %q (%d bytes)", s[:300], s[len(s)-100:], len(s))
	}
	return strconv.Quote(s)
}

func TestMalformedInputHarmsNobodyElse(t *testing.T) {
	var replies []string // of Redis, if there is one
	t.Run("redis", func(t *testing.T) {
		open, closed := oracle.Start(t), oracle.Start(t, "--requirepass", malformedPassword)
		replies = make([]string, malformedInputs)
		require.NoError(t, hostility(dialer(open), dialer(closed), func(n int, m *malformed, got string) error {
			replies[n] = got
			return m.check(got)
		}))
	})
	for name, options := range map[string]server.Options{"event loops": {}, "goroutines": {Goroutines: true}} {
		t.Run(name, func(t *testing.T) {
			open, closed := startServer(t, options), startServer(t, options)
			admin := connect(t, closed)
			expectReply(t, admin, "+OK", "CONFIG", "SET", "requirepass", malformedPassword)
			first := connect(t, open) // so that everything made once has been made
			expectReply(t, first, "+PONG", "PING")

			before := measure()
			peak := watchHeap(before.heap)
			b := startBystander(t, open)
			var mu sync.Mutex
			differences := 0
			err := hostility(open, closed, func(n int, m *malformed, got string) error {
				if replies != nil && got != replies[n] {
					mu.Lock()
					defer mu.Unlock()
					if differences++; differences <= 10 {
						t.Errorf("input %d, %s\n  redis:     %s\n  atomredis: %s", n, excerpt(m.input), excerpt(replies[n]), excerpt(got))
					}
				}
				return m.check(got)
			})
			require.NoError(t, err)
			require.Zero(t, differences)
			require.Greater(t, b.stop(t), 100, "commands of the bystander")
			require.Less(t, peak(), int64(malformedGrowth), "bytes by which the heap grew meanwhile")

			expectReply(t, first, "+OK", "FLUSHALL")
			expectReply(t, admin, "+OK", "FLUSHALL")
			after := measure()
			for end := time.Now().Add(malformedTimeout); after.exceeds(before) && time.Now().Before(end); after = measure() {
				time.Sleep(time.Millisecond) // the last connections may still be closing
			}
			require.False(t, after.exceeds(before), "%+v before, %+v after", before, after)
		})
	}
}

func dialer(addr string) transcript.Dialer {
	return func() (net.Conn, error) { return transcript.Dial(addr) }
}

// connect opens a connection for as long as the test runs.
func connect(t *testing.T, dial transcript.Dialer) *transcript.Conn {
	nc, err := dial()
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	return transcript.NewConn(nc)
}

// expectReply sends a command and checks the reply.
func expectReply(t *testing.T, c *transcript.Conn, want string, args ...string) {
	v, err := c.Do(malformedTimeout, args...)
	require.NoError(t, err)
	require.Equal(t, want, v.String())
}

// resources are amounts that must not grow.
type resources struct {
	goroutines, files int
	heap              int64
}

// exceeds reports whether r is more than before.
func (r resources) exceeds(before resources) bool {
	return r.goroutines > before.goroutines || r.files > before.files || r.heap-before.heap > malformedRest
}

func measure() resources {
	runtime.GC()
	runtime.GC() // objects freed by finalizers
	r := resources{goroutines: runtime.NumGoroutine(), heap: heapSize()}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil { // not every system has it
		r.files = len(files)
	}
	return r
}

// heapSize returns the size of the heap's objects in bytes, garbage included.
func heapSize() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// watchHeap watches the heap until peak is called, which returns by how much the heap exceeded a size.
func watchHeap(than int64) (peak func() int64) {
	stop, done := make(chan struct{}), make(chan int64)
	go func() {
		largest := int64(0)
		for {
			select {
			case <-stop:
				done <- largest
				return
			case <-time.After(time.Millisecond):
				largest = max(largest, heapSize()-than)
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-done
	}
}

// bystander is an ordinary client, and another one that waits for it.
type bystander struct {
	end  chan struct{}
	done chan struct{}
	sent int
	err  error
}

func startBystander(t *testing.T, dial transcript.Dialer) *bystander {
	b := &bystander{end: make(chan struct{}), done: make(chan struct{})}
	var conns [2]*transcript.Conn
	for i := range conns {
		nc, err := dial()
		require.NoError(t, err)
		conns[i] = transcript.NewConn(nc)
	}
	go func() {
		defer close(b.done)
		defer conns[0].Close()
		defer conns[1].Close()
		for round := 1; b.err == nil; round++ {
			select {
			case <-b.end:
				return
			default:
				b.err = b.round(conns[0], conns[1], strconv.Itoa(round))
			}
		}
	}()
	return b
}

// round sends some commands whose replies are all known.
func (b *bystander) round(c, blocked *transcript.Conn, n string) error {
	blocked.Append("BLPOP", "bystander:list", "0")
	if err := blocked.Flush(); err != nil {
		return err
	}
	for _, exchange := range []struct {
		want string
		args []string
	}{
		{"+OK", []string{"SET", "bystander:text", n}},
		{strconv.Quote(n), []string{"GET", "bystander:text"}},
		{n, []string{"INCR", "bystander:count"}},
		{"+OK", []string{"MULTI"}},
		{"+QUEUED", []string{"APPEND", "bystander:text", "x"}},
		{"+QUEUED", []string{"STRLEN", "bystander:text"}},
		{fmt.Sprintf("[%d %d]", len(n)+1, len(n)+1), []string{"EXEC"}},
		{"1", []string{"RPUSH", "bystander:list", n}},
	} {
		v, err := c.Do(malformedTimeout, exchange.args...)
		if err != nil {
			return fmt.Errorf("%s: %w", transcript.QuoteCommand(exchange.args), err)
		}
		if v.String() != exchange.want {
			return fmt.Errorf("%s: expected %s, got %s", transcript.QuoteCommand(exchange.args), exchange.want, v)
		}
		b.sent++
	}
	v, err := blocked.Read(malformedTimeout)
	if want := fmt.Sprintf(`["bystander:list" %q]`, n); err == nil && v.String() != want {
		err = fmt.Errorf("BLPOP: expected %s, got %s", want, v)
	}
	return err
}

// stop ends the bystander and returns the number of right replies, which must be all.
func (b *bystander) stop(t *testing.T) int {
	close(b.end)
	<-b.done
	require.NoError(t, b.err)
	return b.sent
}
