package server

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/transport"
	"github.com/atomredis/atomredis/persist/disk"
)

// These tests run a durable server on a file system in memory which can lose unsynced data, and which can fail at
// any call. The client writes transactions that put one growing number into keys of every type. A server started on
// the remaining files must have the same number in all of them, which must not be below the last acknowledged one.

// durableServer is a server without sockets whose data is on fs.
type durableServer struct {
	*Server
	t   require.TestingT
	log *panicLog
	s   *session.Session
}

func openDurable(t require.TestingT, fs disk.FS, settings ...string) (*durableServer, error) {
	conf := config.NewConfig()
	for _, pair := range append([]string{"port=0", "dir=/db", "save=", "appendonly=yes", "appendfsync=always",
		"checkpoint-size=1mb",
		"hash-max-listpack-entries=4", "list-max-listpack-size=4", "stream-node-max-entries=4", "zset-max-listpack-entries=4",
		"set-max-intset-entries=4", "databases=4"}, settings...) {
		name, value, _ := strings.Cut(pair, "=")
		require.NoError(t, conf.Set(name, value, false))
	}
	d := &durableServer{t: t, log: &panicLog{}}
	var err error
	if d.Server, err = New(conf, slog.New(d.log), Options{FS: fs, Goroutines: true}); err != nil {
		return nil, err
	}
	if err := d.Start(); err != nil {
		return nil, err
	}
	d.s = d.sessions.Open(transport.Peer{Addr: "127.0.0.1:1", Local: "127.0.0.1:2"}, func() {})
	return d, nil
}

// do sends commands in one piece and returns the replies once they may be sent, or false if the connection ends
// before.
func (d *durableServer) do(commands ...string) (string, bool) {
	var in []byte
	for _, command := range commands {
		words := strings.Fields(command)
		in = fmt.Appendf(in, "*%d\r\n", len(words))
		for _, w := range words {
			in = fmt.Appendf(in, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	d.s.Input(in, d.ks.Now())
	for {
		if d.storage.Storage != nil {
			d.storage.Kick()
		}
		d.s.Advance(d.ks.Now())
		n := d.s.Sendable()
		out := string(d.s.Output())
		if d.s.Closing() {
			d.s.Close()
			d.s = d.sessions.Open(transport.Peer{Addr: "127.0.0.1:1", Local: "127.0.0.1:2"}, func() {})
			return "", false
		}
		if n > 0 && n == len(out) && !d.s.Waiting() {
			d.s.SetOutput(nil)
			return out, true
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// write puts n into all keys, in one transaction, and reports whether that was acknowledged.
func (d *durableServer) write(n int) (acknowledged bool, reply string) {
	key := n % 7
	commands := []string{
		"MULTI",
		fmt.Sprintf("SET string %d", n),
		fmt.Sprintf("SET big%d %s:%d", key, strings.Repeat("x", 300), n),
		fmt.Sprintf("HSET hash n %d f%d %d", n, n%9, n),
		fmt.Sprintf("HPEXPIREAT hash %d FIELDS 1 f%d", farDeadline+int64(n), n%9),
		fmt.Sprintf("SADD set %d", n), "SPOP set 0",
		fmt.Sprintf("SREM set %d", n-20),
		fmt.Sprintf("ZADD zset %d m", n),
		fmt.Sprintf("ZADD zset %d m%d", n, n%9),
		fmt.Sprintf("RPUSH list %d", n), "LTRIM list -20 -1",
		fmt.Sprintf("XADD stream MAXLEN ~ 10 %d-1 n %d", n, n),
		fmt.Sprintf("BITFIELD bits SET u32 #%d %d SET u32 #400 %d", n%9, n, n), // in place, in a string that is a value apart
		"PFADD sketch a", fmt.Sprintf("PFADD sketch %d", n), "PFCOUNT sketch",
		"INCR counter",
		fmt.Sprintf("EVAL redis.call('SET',KEYS[1],ARGV[1])redis.call('HSET','hash2','f'..ARGV[1]%%9,ARGV[1]) 1 script %d",
			n),
		fmt.Sprintf("DEL gone%d", n-1), fmt.Sprintf("SET gone%d x", n),
		fmt.Sprintf("RENAME gone%d gone%d", n, n), // it changes only its place
		"EXEC",
	}
	reply, told := d.do(commands...)
	return told && strings.Contains(reply, "\r\n*") && !strings.Contains(reply, "\r\n-"), reply
}

// farDeadline is a time in ms since 1970 at which fields may expire.
const farDeadline int64 = 50_000_000_000_000

// check returns the number that all keys have, 0 if there is none.
func (d *durableServer) check(what string) int {
	t := d.t
	get := func(command string) string {
		reply, ok := d.do(command)
		require.True(t, ok, what)
		return reply
	}
	text := func(command string) string {
		lines := strings.Split(get(command), "\r\n")
		if len(lines) < 2 {
			return lines[0]
		}
		return lines[len(lines)-2]
	}
	n, _ := strconv.Atoi(text("GET string"))
	if n == 0 {
		require.Equal(t, ":0\r\n", get("EXISTS hash set zset list stream counter script hash2"), what)
		return 0
	}
	is := func(want any, command string) {
		require.Equal(t, fmt.Sprint(want), text(command), "%s: %s with n = %d", what, command, n)
	}
	is(fmt.Sprintf("%s:%d", strings.Repeat("x", 300), n), fmt.Sprintf("GET big%d", n%7))
	is(n, "HGET hash n")
	is(n, fmt.Sprintf("HGET hash f%d", n%9))
	is(fmt.Sprintf(":%d", farDeadline+int64(n)), fmt.Sprintf("HPEXPIRETIME hash FIELDS 1 f%d", n%9))
	is(n, "ZSCORE zset m")
	is(n, fmt.Sprintf("ZSCORE zset m%d", n%9))
	is(n, "LINDEX list -1")
	is(n, "GET counter")
	is(fmt.Sprintf(":%d", n), fmt.Sprintf("BITFIELD_RO bits GET u32 #%d", n%9))
	is(fmt.Sprintf(":%d", n), "BITFIELD_RO bits GET u32 #400")
	// PFCOUNT has stored its estimate: the highest bit of its last byte is not set.
	is(":0", "BITFIELD_RO sketch GET u8 120")
	is(fmt.Sprintf(":%d", min(n, 20)), "LLEN list")
	is(fmt.Sprintf(":%d", min(n, 20)), "SCARD set")
	is(n, "GET script")
	is(n, fmt.Sprintf("HGET hash2 f%d", n%9))
	is(":0", fmt.Sprintf("EXISTS gone%d", n-1))
	is("x", fmt.Sprintf("GET gone%d", n))
	for i := max(1, n-19); i <= n; i++ {
		is(":1", fmt.Sprintf("SISMEMBER set %d", i))
		is(i, fmt.Sprintf("LINDEX list %d", i-n-1))
	}
	return n
}

func (d *durableServer) end() {
	d.s.Close()
	d.Close()
	require.Empty(d.t, d.log.Found)
}

// crashes takes copies of a file system in the state after a power loss.
type crashes struct {
	mem  *crashfs.FS
	rnd  *rand.Rand
	mu   sync.Mutex
	acks int // the last acknowledged number
	sent int
	list []crash
	skip int // operations until the next copy
}

type crash struct {
	fs         *crashfs.FS
	acks, sent int
	op         string
}

// MaybeError implements errorfs.Injector: it is called before every operation.
func (c *crashes) MaybeError(op errorfs.Op) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.skip--; c.skip > 0 {
		return nil
	}
	c.skip = 1 + c.rnd.IntN(12)
	kept := c.rnd.IntN(3) * 50
	c.list = append(c.list, crash{
		fs:   c.mem.CrashClone(crashfs.CloneCfg{UnsyncedDataPercent: kept, RNG: c.rnd}),
		acks: c.acks, sent: c.sent, op: fmt.Sprintf("%v %s, %d %% of what is not synced kept", op.Kind, op.Path, kept),
	})
	return nil
}

func (c *crashes) String() string { return "crashes" }

// fullTests reports whether the slow forms of these tests are enabled.
func fullTests() bool { return os.Getenv("ATOMREDIS_FULL_TESTS") != "" }

func TestNothingAcknowledgedIsLostWhenThePowerFails(t *testing.T) {
	rounds := 3
	switch {
	case fullTests():
		rounds = 60
	case testing.Short():
		rounds = 1
	}
	for seed := range uint64(rounds) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		mem := crashfs.New()
		c := &crashes{mem: mem, rnd: rand.New(rand.NewPCG(seed, 2)), skip: 1}
		d, err := openDurable(t, crashfs.Wrap(mem, c), "shards="+strconv.Itoa(1<<(2*(seed%2))))
		require.NoError(t, err)
		n := 0
		for range 60 {
			n++
			c.mu.Lock()
			c.sent = n
			c.mu.Unlock()
			ok, reply := d.write(n)
			require.True(t, ok, reply)
			c.mu.Lock()
			c.acks = n
			c.mu.Unlock()
			switch rnd.IntN(12) {
			case 0:
				d.do("BGSAVE")
			case 1:
				d.do("SAVE")
			}
		}
		c.mu.Lock()
		list := c.list
		c.list, c.skip = nil, 1<<30
		c.mu.Unlock()
		d.end()
		require.NotEmpty(t, list)
		for i, crash := range list {
			what := fmt.Sprintf("seed %d, crash %d before %s", seed, i, crash.op)
			again, err := openDurable(t, crash.fs)
			require.NoError(t, err, what)
			got := again.check(what)
			require.GreaterOrEqual(t, got, crash.acks, what)
			require.LessOrEqual(t, got, crash.sent, what)
			ok, reply := again.write(got + 1)
			require.True(t, ok, "%s: %s", what, reply)
			again.end()
		}
	}
}

// failures makes a number of operations fail, from a certain one on.
type failures struct {
	mu    sync.Mutex
	count int // operations so far
	from  int // the first that fails; 0 means none
	n     int // how many fail; negative means all later ones
	hit   string
}

func (f *failures) MaybeError(op errorfs.Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if f.from == 0 || f.count < f.from || f.n == 0 || op.Kind.ReadOrWrite() == errorfs.OpIsRead {
		return nil
	}
	f.n--
	if f.hit == "" {
		f.hit = fmt.Sprintf("%v %s", op.Kind, op.Path)
	}
	return errorfs.ErrInjected
}

func (f *failures) String() string { return "failures" }

// first returns the operation that failed first.
func (f *failures) first() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hit
}

func (f *failures) end() {
	f.mu.Lock()
	f.n = 0
	f.mu.Unlock()
}

func TestNothingAcknowledgedIsLostWhenTheDiskFails(t *testing.T) {
	run := func(t *testing.T, f *failures, mem disk.FS) (acks int) {
		d, err := openDurable(t, crashfs.Wrap(mem, f))
		if err != nil {
			f.end()
			if d, err = openDurable(t, mem); err != nil {
				require.NoError(t, err, f.first())
			}
		}
		for n := 1; n <= 24; n++ {
			ok, reply := d.write(n)
			for tries := 0; !ok; tries++ {
				require.True(t, reply == "" || strings.Contains(reply, "MISCONF"), "%s: %s", f.first(), reply)
				f.end() // the disk works again, so the server must recover soon
				require.Less(t, tries, 2000, f.first())
				switch happened, told := d.holdsNumber(n); {
				case happened:
					ok = true
				case told:
					ok, reply = d.write(n)
				}
				if !ok {
					time.Sleep(5 * time.Millisecond)
				}
			}
			acks = n
			if n%5 == 0 {
				d.do("SAVE")
			}
		}
		require.Equal(t, 24, d.check(f.first()))
		d.end()
		return acks
	}
	clean := &failures{}
	run(t, clean, crashfs.New())
	step := max(clean.count/10, 1)
	if fullTests() {
		step = 1
	}
	for at := 1; at <= clean.count; at += step {
		for _, n := range []int{1, -1} {
			t.Run(fmt.Sprintf("%d calls from the %dth of %d on", n, at, clean.count), func(t *testing.T) {
				t.Parallel() // most of the time is spent waiting for the next attempt of a checkpoint
				f := &failures{from: at, n: n}
				mem := crashfs.New()
				acks := run(t, f, mem)
				again, err := openDurable(t, mem.CrashClone(crashfs.CloneCfg{}))
				require.NoError(t, err, f.first())
				require.Equal(t, acks, again.check(f.first()), f.first())
				again.end()
			})
		}
	}
}

// holdsNumber reports whether a transaction that was not acknowledged was executed, so that it must not be sent
// again; told is false if the server gives no answer.
func (d *durableServer) holdsNumber(n int) (happened, told bool) {
	reply, told := d.do("GET counter")
	return told && strings.HasSuffix(reply, "\r\n"+strconv.Itoa(n)+"\r\n"), told
}
