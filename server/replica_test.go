package server

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/resp"
)

// scriptedMaster is a master whose messages the test chooses.
type scriptedMaster struct {
	net.Listener
	t *testing.T
}

func newScriptedMaster(t *testing.T) *scriptedMaster {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return &scriptedMaster{l, t}
}

// hostPort returns the master's address in the form of REPLICAOF.
func (m *scriptedMaster) hostPort() string {
	host, port, _ := net.SplitHostPort(m.Addr().String())
	return host + " " + port
}

// masterConn is the master's end of a link.
type masterConn struct {
	net.Conn
	t        *testing.T
	commands *resp.CommandReader
}

// accept waits for the replica and answers the first commands of each, given as "COMMAND…=answer".
func (m *scriptedMaster) accept(answers ...string) *masterConn {
	m.t.Helper()
	require.NoError(m.t, m.Listener.(*net.TCPListener).SetDeadline(time.Now().Add(testTimeout)))
	conn, err := m.Accept()
	require.NoError(m.t, err)
	m.t.Cleanup(func() { conn.Close() })
	require.NoError(m.t, conn.SetDeadline(time.Now().Add(testTimeout)))
	c := &masterConn{conn, m.t, resp.NewCommandReader(conn)}
	for _, a := range answers {
		want, answer, _ := strings.Cut(a, "=")
		c.expect(want)
		c.send(answer + "\r\n")
	}
	return c
}

// introduction returns the first commands of a replica without a password.
func introduction(port int) []string {
	return []string{"PING=+PONG", fmt.Sprintf("REPLCONF listening-port %d=+OK", port), "REPLCONF capa eof capa psync2=+OK",
		"REPLCONF version 9.1.0=-ERR Unrecognized REPLCONF option: version",
		"REPLCONF group ?=-ERR Unrecognized REPLCONF option: group"}
}

// expect reads a command. Repeated acknowledgements may come at any time.
func (c *masterConn) expect(want string) {
	c.t.Helper()
	for {
		args, err := c.commands.Next()
		require.NoError(c.t, err, want)
		words := make([]string, len(args))
		for i, a := range args {
			words[i] = string(a)
		}
		got := strings.Join(words, " ")
		got, _, _ = strings.Cut(got, " FACK ") // of servers with a journal
		if got != want && strings.HasPrefix(got, "REPLCONF ACK") && strings.HasPrefix(want, "REPLCONF ACK") {
			continue
		}
		require.Equal(c.t, want, got)
		return
	}
}

func (c *masterConn) send(text string) {
	c.t.Helper()
	_, err := c.Write([]byte(text))
	require.NoError(c.t, err)
}

// say sends commands and returns their length in bytes.
func (c *masterConn) say(lines ...string) (n int) {
	c.t.Helper()
	for _, line := range lines {
		b := request(strings.Fields(line)...)
		n += len(b)
		c.send(string(b))
	}
	return n
}

// confirmed waits until the replica has executed everything up to an offset, and returns the offset after the
// request.
func (c *masterConn) confirmed(offset int) int {
	c.t.Helper()
	n := c.say("REPLCONF GETACK *")
	c.expect(fmt.Sprint("REPLCONF ACK ", offset))
	return offset + n
}

const (
	oldHistory = "0123456789012345678901234567890123456789"
	newHistory = "9876543210987654321098765432109876543210"
)

func TestReplicaSpeaksWithItsMaster(t *testing.T) {
	t.Parallel()
	m := newScriptedMaster(t)
	data := string(rdbFile(t, "SET kept 1", "RPUSH l x y", "SELECT 3", "HSET h f v"))
	s := startTestServer(t, Options{}, "masteruser", "me", "masterauth", "secret", "appendonly", "no", "repl-timeout",
		"20")
	s.replica.MaxPause = 100 * time.Millisecond
	waiting, c := s.connect(), s.connect()
	require.Equal(t, "master", strings.Split(c.do("INFO replication"), "\r\n")[1][len("role:"):])
	c.do("SET old 1")
	waiting.send("BLPOP", "l", "0")
	c.waitFor("INFO clients", "blocked_clients:1")
	require.Equal(t, "+OK", c.do("REPLICAOF "+m.hostPort()))
	require.Equal(t, "+OK Already connected to specified master", c.do("SLAVEOF "+m.hostPort()))
	require.Contains(t, waiting.read(), "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)")
	require.Equal(t, "1", c.do("GET old")) // until the copy is loaded

	// The first copy: with a password, empty lines as signs of life, and a mark at the end.
	a := m.accept("PING=-NOAUTH Authentication required.", "AUTH me secret=+OK", "REPLCONF listening-port 0=+OK",
		"REPLCONF capa eof capa psync2=-ERR Unrecognized REPLCONF option: capa",
		"REPLCONF version 9.1.0=-ERR Unrecognized REPLCONF option: version",
		"REPLCONF group ?=-ERR Unrecognized REPLCONF option: group",
		"PSYNC ? -1=\n\n+FULLRESYNC "+oldHistory+" 100")
	mark := strings.Repeat("m", 40)
	a.send("\n$EOF:" + mark + "\r\n" + data[:20])
	c.waitFor("INFO replication", "master_sync_in_progress:1")
	require.Contains(t, c.do("SET a 1"), "READONLY")
	a.send(data[20:] + mark)
	a.expect("REPLCONF ACK 100")
	require.Equal(t, "", c.do("GET old"))
	offset := 100 + a.say("SELECT 3", "MULTI", "SET n 1", "INCR n", "EXEC", "PING")
	offset = a.confirmed(offset)
	require.Equal(t, "+OK", c.do("SELECT 3"))
	require.Equal(t, "2", c.do("GET n"))
	require.Equal(t, "v", c.do("HGET h f"))
	for _, line := range []string{"SET a 1", "EVAL return(redis.call('DEL','n')) 0", "FLUSHALL", "BLPOP l 0"} {
		require.Contains(t, c.do(line), "READONLY You can't write against a read only replica.", line)
	}
	c.send("EVAL", "#!lua\nreturn 1", "0")
	require.Equal(t, "-READONLY Can not run script with write flag on readonly replica", c.read())
	for _, text := range []string{"role:slave\r\n", "master_link_status:up\r\n",
		"slave_repl_offset:" + strconv.Itoa(offset) + "\r\n", "master_replid:" + oldHistory + "\r\n"} {
		c.waitFor("INFO replication", text)
	}
	host, port, _ := strings.Cut(m.hostPort(), " ")
	require.Equal(t, fmt.Sprintf(`["slave" "%s" %s "connected" %d]`, host, port, offset), c.do("ROLE"))

	// Keys expire when the master sends it, whatever its clock.
	past := strconv.FormatInt(time.Now().UnixMilli()-5000, 10)
	offset += a.say("SET p v PXAT "+past, "PERSIST p", "SET q v PXAT "+past, "SET r v", "PEXPIREAT r "+past)
	offset = a.confirmed(offset)
	require.Equal(t, "v", c.do("GET p"))
	require.Equal(t, "", c.do("GET q"))
	require.Equal(t, "0", c.do("EXISTS q r"))
	require.Equal(t, "5", c.do("DBSIZE"))
	offset += a.say("APPEND q w", "PERSIST q", "DEL r")
	offset = a.confirmed(offset)
	require.Equal(t, "vw", c.do("GET q"))
	require.Equal(t, "4", c.do("DBSIZE"))

	// Commands of the master that fail here are counted.
	offset += a.say("NOSUCH a", "INCR h", "GET n")
	offset = a.confirmed(offset)
	require.Contains(t, c.do("INFO stats"), "unexpected_error_replies:3\r\n")

	// The connection breaks within a transaction, which is requested again.
	a.say("MULTI", "INCR n")
	a.Close()
	resumed := func(answer string) *masterConn {
		return m.accept("PING=+PONG", "AUTH me secret=+OK", "REPLCONF listening-port 0=+OK",
			"REPLCONF capa eof capa psync2=+OK", "REPLCONF version 9.1.0=+OK",
			"REPLCONF group ?=-ERR Unrecognized REPLCONF option: group", answer)
	}
	b := resumed(fmt.Sprintf("PSYNC %s %d=+CONTINUE %s", oldHistory, offset+1, newHistory))
	b.expect("REPLCONF ACK " + strconv.Itoa(offset))
	require.Equal(t, "2", c.do("GET n"))
	offset += b.say("MULTI", "INCR n", "EXEC")
	offset = b.confirmed(offset)
	require.Equal(t, "3", c.do("GET n"))

	// Masters that refuse, or send no data, or not all of it, cost no data.
	b.Close()
	next := fmt.Sprintf("PSYNC %s %d=", newHistory, offset+1)
	for _, answer := range []string{"-NOMASTERLINK Can't SYNC while not connected with my master", "+OK", " ",
		"+FULLRESYNC", "+FULLRESYNC x -1"} {
		resumed(next + answer).Close()
		c.waitFor("INFO replication", "master_link_last_error:the master's answer to PSYNC")
	}
	full := "+FULLRESYNC " + newHistory + " 7000"
	resumed(next + full + "\r\n-ERR no data").Close()
	for _, broken := range []string{fmt.Sprintf("$%d\r\n%s", len(data), data[:len(data)-3]),
		fmt.Sprintf("$%d\r\n%s", len(data)+1, data+"x"),
		fmt.Sprintf("$%d\r\nREDIS9999%s", len(data), data[9:]),
		"$EOF:" + mark + "\r\n" + data + strings.Repeat("n", 40), "$EOF:short\r\n", "$-5\r\n"} {
		x := resumed(next + full)
		x.send(broken)
		x.Close()
	}
	require.Equal(t, "3", c.do("GET n"))
	d := resumed(next + full)
	d.send(fmt.Sprintf("$%d\r\n%s", len(data), data))
	d.expect("REPLCONF ACK 7000")
	require.Equal(t, "", c.do("GET n"))
	d.say("SET soon v PXAT " + past)
	d.confirmed(7000 + len(request("SET", "soon", "v", "PXAT", past)))

	// A master again: the data stays, and expired keys are removed.
	require.Equal(t, "+OK", c.do("SELECT 0"))
	require.Equal(t, "3", c.do("DBSIZE"))
	require.Equal(t, "+OK", c.do("REPLICAOF NO ONE"))
	c.waitFor("DBSIZE", "2")
	require.Equal(t, "+OK", c.do("SET mine 1"))
	require.Regexp(t, `^\["master" 7\d\d\d \[\]\]$`, c.do("ROLE"), "the stream goes on")
	_, err := d.commands.Next()
	for err == nil {
		_, err = d.commands.Next()
	}
}

func TestReplicaIsConfigured(t *testing.T) {
	m := newScriptedMaster(t)
	s := startTestServer(t, Options{}, "replicaof", m.hostPort(), "replica-serve-stale-data", "no")
	c := s.connect()
	require.Equal(t, fmt.Sprintf(`["replicaof" "%s"]`, m.hostPort()), c.do("CONFIG GET replicaof"))
	require.Contains(t, c.do("CONFIG SET replicaof no"), "can't set immutable config")
	require.Contains(t, c.do("GET a"), "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")
	const down = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
	other := s.connect()
	for command, want := range map[string]string{
		"GET a": "EXECABORT Transaction discarded because of: " + down, "PING": "EXECABORT Transaction discarded because of: " + down,
		"INFO nothing": `[""]`, "EVAL return(1) 0": `[-"` + down + `"]`,
	} {
		require.Equal(t, "+OK", other.do("CONFIG SET replica-serve-stale-data yes"))
		require.Equal(t, "+OK", c.do("MULTI"))
		require.Equal(t, "+QUEUED", c.do(command))
		require.Equal(t, "+OK", other.do("CONFIG SET replica-serve-stale-data no"))
		require.Contains(t, c.do("EXEC"), want, command)
	}
	const notAllowed = "-MASTERDOWN Link with MASTER is down, replica-serve-stale-data is set to 'no' and 'allow-stale' flag " +
		"is not set on the script."
	for script, want := range map[string]string{
		"return 1": "-" + down, "#!lua\nreturn 1": notAllowed, "#!lua flags=no-writes\nreturn 1": notAllowed,
		"#!lua flags=no-writes,allow-stale\nreturn 1": "1",
	} {
		v, err := c.Do(testTimeout, "EVAL", script, "0")
		require.NoError(t, err)
		require.Equal(t, want, v.String(), script)
	}
	require.Contains(t, c.do("REPLICAOF host 70000"), "ERR Invalid master port")
	require.Contains(t, c.do("REPLICAOF host port"), "ERR Invalid master port")

	a := m.accept(append(introduction(0), "PSYNC ? -1=+FULLRESYNC "+oldHistory+" 1")...)
	data := string(rdbFile(t, "SET a 1"))
	a.send(fmt.Sprintf("$%d\r\n%s", len(data), data))
	a.expect("REPLCONF ACK 1")
	require.Equal(t, "1", c.do("GET a"))

	// Another master, which cannot continue the history: everything is copied from it.
	second := newScriptedMaster(t)
	require.Equal(t, "+OK", c.do("REPLICAOF "+second.hostPort()))
	b := second.accept(append(introduction(0), "PSYNC "+oldHistory+" 2=+FULLRESYNC "+newHistory+" 1")...)
	data = string(rdbFile(t, "SET b 1"))
	b.send(fmt.Sprintf("$%d\r\n%s", len(data), data))
	b.expect("REPLCONF ACK 1")
	require.Equal(t, "", c.do("GET a"))

	// The server closes while a master is connected, and while none can be reached.
	require.NoError(t, s.Close())
	for _, settings := range [][]string{{"replicaof", "localhost 1"}, {"replicaof", "no.such.host.invalid 1"}} {
		lost := startTestServer(t, Options{}, settings...)
		lost.connect().waitFor("INFO replication", "master_link_last_error:")
		require.NoError(t, lost.Close())
	}
}

// A deadline may have passed here when the master gives it, and not there. The replica keeps the key, and restores
// it from its own journal, because later commands of the master depend on it.
func TestAReplicasJournalHasKeysThatExpiredByItsOwnClockOnly(t *testing.T) {
	m := newScriptedMaster(t)
	mem := crashfs.New()
	settings := []string{"replicaof=" + m.hostPort(), "checkpoint-size=1gb"}
	d, err := openDurable(t, mem, settings...)
	require.NoError(t, err)
	a := m.accept(append(introduction(0), "PSYNC ? -1=+FULLRESYNC "+oldHistory+" 1")...)
	data := string(rdbFile(t, "HSET hash f 1 g 1"))
	a.send(fmt.Sprintf("$%d\r\n%s", len(data), data))
	a.expect("REPLCONF ACK 1")

	past := time.Now().UnixMilli() - 5000
	at, seconds := strconv.FormatInt(past, 10), strconv.FormatInt(past/1000, 10)
	names := []string{"set", "getex", "pexpireat", "expireat", "restored", "transaction"}
	offset := 1 + a.say("SET set 1 PXAT "+at, "SET getex 1", "GETEX getex PXAT "+at, "SET pexpireat 1",
		"PEXPIREAT pexpireat "+at, "SET expireat 1", "EXPIREAT expireat "+seconds,
		"HPEXPIREAT hash "+at+" FIELDS 1 f", "HSETEX hash PXAT "+at+" FIELDS 1 g 1",
		"MULTI", "SET transaction 1", "PEXPIREAT transaction "+at, "APPEND transaction 1", "EXEC")
	dumped := newHarness(t)
	other := dumped.session()
	_, payload, _ := strings.Cut(dumped.feed(other, request("SET", "k", "1"), request("DUMP", "k")), "\r\n$")
	_, payload, _ = strings.Cut(payload, "\r\n")
	dumped.finish(t, other)
	restore := request("RESTORE", "restored", at, strings.TrimSuffix(payload, "\r\n"), "ABSTTL")
	a.send(string(restore))
	offset = a.confirmed(offset + len(restore))
	for _, name := range names {
		offset += a.say("PERSIST " + name) // later, and at another time
	}
	offset += a.say("HPERSIST hash FIELDS 2 f g")
	a.confirmed(offset)
	again := func(d *durableServer) {
		t.Helper()
		for _, name := range names[:5] {
			d.expect("$1\r\n1\r\n", "GET "+name)
		}
		d.expect("$2\r\n11\r\n", "GET transaction")
		d.expect("*2\r\n$1\r\n1\r\n$1\r\n1\r\n", "HMGET hash f g")
	}
	again(d)
	copied, err := openDurable(t, mem.CrashClone(crashfs.CloneCfg{}), settings...)
	require.NoError(t, err)
	again(copied)
	copied.end()
	d.end()
}

// A copy that replaces the data is stored completely or not at all.
func TestAHalfMadeCopyIsNeverStored(t *testing.T) {
	for _, settings := range [][]string{{"appendonly=yes"}, {"appendonly=no", "save=3600 1"}} {
		t.Run(strings.Join(settings, " "), func(t *testing.T) {
			mem := crashfs.New()
			open := func(fs disk.FS) *durableServer {
				d, err := openDurable(t, fs, settings...)
				require.NoError(t, err)
				return d
			}
			holds := func(d *durableServer, keys ...string) {
				t.Helper()
				for _, key := range []string{"old", "half", "whole", "later"} {
					want := "$-1\r\n"
					if slices.Contains(keys, key) {
						want = "$1\r\n1\r\n"
					}
					d.expect(want, "GET "+key)
				}
			}
			afterCrash := func(keys ...string) {
				t.Helper()
				d := open(mem.CrashClone(crashfs.CloneCfg{}))
				holds(d, keys...)
				d.end()
			}
			fill := func(d *durableServer, key string, err error) func() error {
				return func() error {
					var g engine.Guard
					g.Lock(d.ks, engine.AllShards, d.ks.Now())
					g.Flush(-1)
					g.Changed(g.CreateString(0, []byte(key), []byte("1")), engine.EventNone, "")
					g.Unlock()
					require.Error(t, d.storage.Save())
					afterCrash("old")
					return err
				}
			}
			d := open(mem)
			d.expect("+OK\r\n", "SET old 1")
			d.expect("+OK\r\n", "SAVE")
			broken := errors.New("broken")
			require.Equal(t, broken, d.storage.Replace(fill(d, "half", broken)))
			afterCrash("old")
			d.end()
			d = open(mem)
			holds(d, "old")
			require.NoError(t, d.storage.Replace(fill(d, "whole", nil)))
			afterCrash("whole")
			d.expect("+OK\r\n", "SET later 1")
			d.end()
			d = open(mem)
			holds(d, "whole", "later")
			d.end()
		})
	}
}

// A replica with replica-read-only no takes writes, until the next copy replaces everything.
func TestAReplicaTakesWritesOfItsOwn(t *testing.T) {
	t.Parallel()
	master := startTestServer(t, Options{}, "enable-debug-command", "yes")
	clock := engine.NewManualClock(time.Now())
	replica := startTestServer(t, Options{Clock: clock}, "replica-read-only", "no")
	m, c := master.connect(), replica.connect()
	require.Equal(t, "+OK", m.do("SET shared master"))
	require.Equal(t, "+OK", m.do("SET short master PX 100000"))
	m.do("HSET h f v g v")
	m.do("HPEXPIRE h 100000 FIELDS 1 f")
	m.do("SADD s a b")
	m.do("SPEXPIRE s 100000 MEMBERS 1 a")
	host, port, _ := strings.Cut(master.Addrs()[0].String(), ":")
	require.Equal(t, "+OK", c.do("REPLICAOF "+host+" "+port))
	c.waitFor("GET shared", "master")
	require.Equal(t, "+OK", c.do("SET own replica"))
	require.Equal(t, "+OK", c.do("SET shared replica"))
	require.Equal(t, "1", c.do("EVAL return(redis.call('INCR',KEYS[1])) 1 n"))
	require.Equal(t, "+OK", c.do("MULTI"))
	require.Equal(t, "+QUEUED", c.do("INCR n"))
	require.Equal(t, `["2"]`, strings.ReplaceAll(c.do("EXEC"), "[2]", `["2"]`))
	require.Contains(t, c.do("BLPOP list 1"), "READONLY", "what comes is for the master's clients")
	clock.Advance(200 * time.Second)
	require.Equal(t, "", c.do("GET short"))
	for _, line := range []string{"HTTL h FIELDS 2 f g", "HPEXPIRETIME h FIELDS 2 f g", "STTL s MEMBERS 2 a b", "SPTTL s MEMBERS 2 a b"} {
		require.Equal(t, "[-2,-1]", strings.ReplaceAll(c.do(line), " ", ","), line)
	}
	require.Equal(t, "+OK", c.do("SET short replica"), "in place of one that has expired here")
	require.Equal(t, "replica", c.do("GET short"))
	require.Equal(t, "replica", c.do("GET own"))
	require.Equal(t, "+OK", c.do("CONFIG SET slave-read-only yes"))
	require.Contains(t, c.do("SET own x"), "READONLY")

	require.Equal(t, "+OK", m.do("DEBUG CHANGE-REPL-ID"))
	c.waitFor("EXISTS own", "0")
	require.Equal(t, "master", c.do("GET shared"))
}

func TestAReplicaEvictsByItselfIfItIsTo(t *testing.T) {
	t.Parallel()
	master := startTestServer(t, Options{}, "enable-debug-command", "yes")
	settings := []string{"maxmemory", "3mb", "maxmemory-policy", "allkeys-random"}
	same := startTestServer(t, Options{}, settings...)
	own := startTestServer(t, Options{}, append(settings, "replica-ignore-maxmemory", "no")...)
	host, port, _ := strings.Cut(master.Addrs()[0].String(), ":")
	for _, r := range []*testServer{same, own} {
		require.Equal(t, "+OK", r.connect().do("REPLICAOF "+host+" "+port))
		r.connect().waitFor("INFO replication", "master_link_status:up")
	}
	m := master.connect()
	value := strings.Repeat("v", 4000)
	for i := range 2000 {
		require.Equal(t, "+OK", m.do(fmt.Sprintf("SET key:%d %s", i, value)))
	}
	same.connect().waitFor("DBSIZE", "2000")
	require.Eventually(t, func() bool {
		n, err := strconv.Atoi(own.connect().do("DBSIZE"))
		return err == nil && n < 2000 && !strings.Contains(own.connect().do("INFO stats"), "\r\nevicted_keys:0\r\n")
	}, testTimeout, 10*time.Millisecond)
	require.Equal(t, "2000", m.do("DBSIZE"))
}
