package server

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/transport"
)

// expect sends a command and compares its reply.
func (d *durableServer) expect(reply, command string) {
	got, ok := d.do(command)
	require.True(d.t, ok, command)
	require.Equal(d.t, reply, got, command)
}

// call returns the reply to a command whose arguments may have spaces. The reply must not need to wait for the disk.
func (d *durableServer) call(args ...string) string {
	d.s.Input(request(args...), d.ks.Now())
	reply, _ := d.do("PING")
	return strings.TrimSuffix(reply, "+PONG\r\n")
}

// await repeats a command until it gets the reply.
func (d *durableServer) await(reply, command string) {
	for range 4000 {
		if got, ok := d.do(command); ok && got == reply {
			return
		}
		time.Sleep(time.Millisecond)
	}
	d.expect(reply, command)
}

func TestDataIsThereAfterARestart(t *testing.T) {
	for _, settings := range [][]string{
		{"appendonly=yes", "save="}, {"appendonly=no", "save=3600 1"}, {"appendonly=yes", "save=3600 1", "shards=16"},
	} {
		t.Run(strings.Join(settings, " "), func(t *testing.T) {
			fs := crashfs.Mem()
			for i := range 3 {
				d, err := openDurable(t, fs, settings...)
				require.NoError(t, err)
				d.expect(fmt.Sprintf(":%d\r\n", i+1), "INCR starts")
				d.await(fmt.Sprintf(":%d\r\n", i+1), "DBSIZE")
				d.expect("+OK\r\n", fmt.Sprintf("SET key%d %s", i, strings.Repeat("v", i*500)+"x"))
				for n := range i {
					d.expect(fmt.Sprintf("$%d\r\n%sx\r\n", n*500+1, strings.Repeat("v", n*500)), fmt.Sprintf("GET key%d", n))
				}
				d.end()
			}
		})
	}
}

func TestDatabasesAreThereAfterARestart(t *testing.T) {
	fs := crashfs.Mem()
	d, err := openDurable(t, fs)
	require.NoError(t, err)
	d.do("SET k zero", "SELECT 1", "SET k one", "SELECT 2", "SET k two", "SAVE", "SWAPDB 0 1", "FLUSHDB", "SET k new",
		"MOVE k 3", "SELECT 0")
	d.do("SAVE")
	d.do("SWAPDB 0 3")
	d.s.Close()
	require.NoError(t, d.close(false)) // the last command is in the journal only
	d, err = openDurable(t, fs)
	require.NoError(t, err)
	reply, _ := d.do("GET k", "SELECT 1", "GET k", "SELECT 2", "GET k", "SELECT 3", "GET k")
	require.Equal(t, "$3\r\nnew\r\n+OK\r\n$4\r\nzero\r\n+OK\r\n$-1\r\n+OK\r\n$3\r\none\r\n", reply)
	d.end()

	_, err = openDurable(t, fs, "databases=2")
	require.ErrorIs(t, err, engine.ErrTooFewDatabases)
}

func TestExpiryFollowsTheJournal(t *testing.T) {
	fs := crashfs.Mem()
	d, err := openDurable(t, fs)
	require.NoError(t, err)
	d.do("SET short 1 PX 1", "SET long 1 PX 100000000")
	d.await("$-1\r\n", "GET short")
	d.do("SET short again NX", "EXPIRE long 1000")
	at, _ := d.do("PEXPIRETIME long")
	d.s.Close()
	require.NoError(t, d.close(false))
	d, err = openDurable(t, fs)
	require.NoError(t, err)
	d.expect("$5\r\nagain\r\n", "GET short")
	d.expect(at, "PEXPIRETIME long")
	d.end()
}

func TestSaveCommands(t *testing.T) {
	d, err := openDurable(t, crashfs.Mem(), "appendfsync=everysec")
	require.NoError(t, err)
	d.do("SET a 1")
	saves := func() int { return d.storage.Status().Checkpoints }
	require.Zero(t, saves())
	d.expect("+OK\r\n", "SAVE")
	require.Equal(t, 1, saves())
	d.expect("+Background saving started\r\n", "BGSAVE")
	for saves() < 2 || d.info("rdb_bgsave_in_progress") != "0" {
		time.Sleep(time.Millisecond)
	}
	d.expect("+Background saving started\r\n", "BGSAVE SCHEDULE")
	d.expect("-ERR syntax error\r\n", "BGSAVE NOW")
	for saves() < 3 || d.info("rdb_bgsave_in_progress") != "0" {
		time.Sleep(time.Millisecond)
	}
	d.expect("+Background append only file rewriting started\r\n", "BGREWRITEAOF")
	reply, _ := d.do("LASTSAVE")
	require.Equal(t, fmt.Sprintf(":%d\r\n", d.storage.Status().Saved.Unix()), reply)
	reply, _ = d.do("INFO persistence")
	require.Contains(t, reply, "aof_enabled:1\r\n")
	require.Contains(t, reply, "rdb_last_bgsave_status:ok\r\n")
	d.end()
}

func TestWaitaofWaitsForTheDisk(t *testing.T) {
	d, err := openDurable(t, crashfs.Mem(), "appendfsync=everysec")
	require.NoError(t, err)
	// The SET is synced within a second, and the client waits for that; in a transaction no command waits.
	reply, ok := d.do("SET a 1", "WAITAOF 1 0 0")
	require.True(t, ok)
	require.Equal(t, "+OK\r\n*2\r\n:1\r\n:0\r\n", reply)
	d.expect("*2\r\n:1\r\n:0\r\n", "WAITAOF 0 0 0")
	d.expect("*2\r\n:1\r\n:0\r\n", "WAITAOF 1 1 1")
	d.expect("-ERR value is out of range, value must between 0 and 1\r\n", "WAITAOF 2 0 0")
	d.end()
}

func TestADirectoryHasOneServer(t *testing.T) {
	fs := crashfs.Mem()
	d, err := openDurable(t, fs)
	require.NoError(t, err)
	_, err = openDurable(t, fs)
	require.ErrorContains(t, err, "another server uses the directory")
	d.end()
}

// stuck makes all writing operations fail while it is on.
type stuck struct{ failures }

func (s *stuck) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.n = 1, 0
	if on {
		s.n = -1
	}
}

func TestAServerWhoseDiskFailsIsReadOnly(t *testing.T) {
	s := &stuck{}
	d, err := openDurable(t, crashfs.Wrap(crashfs.Mem(), s), "stop-writes-on-bgsave-error=yes")
	require.NoError(t, err)
	const read = "function()return(redis.call('GET','a'))end"
	require.Empty(t, d.scripts.Restore([]string{"#!lua name=l\nredis.register_function('writer'," + read + ")\n" +
		"redis.register_function{function_name='reader',callback=" + read + ",flags={'no-writes'}}"}, false, false))
	d.expect("+OK\r\n", "SET a 1")
	s.set(true)
	_, told := d.do("SET a 2")
	require.False(t, told, "what is not durable must not be acknowledged")
	const misconf = "-MISCONF Errors writing to the AOF file: injected error\r\n"
	d.await(misconf, "PING") // a connection may see the failure before all commands do
	d.expect(misconf, "SET a 3")
	d.expect("$1\r\n2\r\n", "GET a")
	reply, _ := d.do("EVAL return(redis.call('SET','a','4')) 0")
	require.Contains(t, reply, "MISCONF Errors writing to the AOF file: injected error")
	reply, _ = d.do("FCALL writer 0") // it only reads but is not declared to be read-only
	require.Equal(t, "-MISCONF Redis is configured to persist data to AOF, but it's currently unable to persist to disk. "+
		"Writable scripts are blocked. Use 'no-writes' flag for read only scripts. AOF error: injected error\r\n", reply)
	d.expect("$1\r\n2\r\n", "FCALL reader 0")
	reply, _ = d.do("MULTI", "SET a 5", "EXEC")
	require.Equal(t, "+OK\r\n"+misconf+"-EXECABORT Transaction discarded because of previous errors.\r\n", reply)
	reply, _ = d.do("INFO persistence")
	require.Contains(t, reply, "aof_last_write_status:err\r\n")
	require.Contains(t, reply, "storage_last_error:")
	for d.info("aof_rewrites_consecutive_failures") == "0" || d.info("aof_rewrites_consecutive_failures") == "1" {
	}
	s.set(false)
	d.await("+OK\r\n", "SET a 6")
	reply, _ = d.do("INFO persistence")
	require.Contains(t, reply, "aof_last_write_status:ok\r\n")
	require.Contains(t, reply, "aof_rewrites_consecutive_failures:0\r\n")
	d.end()
}

func TestWhileTheJournalIsReadCommandsAreRefused(t *testing.T) {
	conf := config.NewConfig()
	require.NoError(t, conf.Set("dir", "/db", false))
	srv, err := New(conf, slog.New(slog.DiscardHandler), Options{FS: crashfs.Mem(), Goroutines: true})
	require.NoError(t, err)
	d := &durableServer{Server: srv, t: t, log: &panicLog{}}
	d.s = srv.sessions.Open(transport.Peer{Addr: "127.0.0.1:1", Local: "127.0.0.1:2"}, func() {})
	const loading = "-LOADING Redis is loading the dataset in memory\r\n"
	for _, command := range []string{"GET a", "SET a 1", "KEYS *", "EVAL return(1) 0"} {
		d.expect(loading, command)
	}
	d.expect(loading, "PING")
	reply, _ := d.do("HELLO")
	require.Contains(t, reply, "version")
	d.end()
}

// While the journal is read a new client waits; if that takes long it gets LOADING.
func TestClientsWaitALittleForTheJournal(t *testing.T) {
	for name, grace := range map[string]time.Duration{"little data": time.Hour, "much data": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			fs := crashfs.Mem()
			d, err := openDurable(t, fs, "save=")
			require.NoError(t, err)
			d.expect("+OK\r\n", "SET a 1")
			require.NoError(t, d.Abandon())
			reads, goOn := make(chan struct{}), make(chan struct{})
			reached := sync.OnceFunc(func() { close(reads) })
			slow := crashfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsRead && strings.Contains(op.Path, "/journal/") {
					reached()
					<-goOn
				}
				return nil
			}))
			conf := config.NewConfig()
			require.NoError(t, conf.Set("dir", "/db", false))
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			require.NoError(t, conf.Set("port", "0", false))
			srv, err := New(conf, slog.New(slog.DiscardHandler), Options{FS: slow, Goroutines: true, Listeners: []net.Listener{l}})
			require.NoError(t, err)
			defer srv.Close()
			srv.listeners.Grace = grace
			started := make(chan error, 1)
			go func() { started <- srv.Start() }()
			<-reads
			c, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			defer c.Close()
			_, err = c.Write(request("GET", "a"))
			require.NoError(t, err)
			in := bufio.NewReader(c)
			if grace < time.Second {
				line, err := in.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, "-LOADING Redis is loading the dataset in memory\r\n", line)
			}
			close(goOn)
			require.NoError(t, <-started)
			if grace > time.Second {
				line, err := in.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, "$1\r\n", line)
			}
		})
	}
}

// While a replica gets its master's data, only commands that need no data run.
func TestAReplicaThatLoadsRefusesCommands(t *testing.T) {
	b := newHarness(t)
	require.NoError(t, b.underAll(func(g *engine.Guard) { b.replica.Follow(g, "127.0.0.1", 1) })) // no server listens there
	b.replica.SetLoading(true)
	for name, want := range map[string]command.Error{"get": command.ErrLoading, "keys": command.ErrLoading, "info": "",
		"set": command.ErrReadOnly} {
		cmd := b.table.Find([]byte(name))
		require.Equal(t, want, b.Restriction(cmd, cmd.Flags, cmd.Flags&command.Write != 0), name)
	}
	require.NoError(t, b.Close())
}
