package sentinel

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atomredis/atomredis/internal/config"
	_ "github.com/atomredis/atomredis/internal/durable" // storage and groups
	"github.com/atomredis/atomredis/internal/testing/freeport"
	"github.com/atomredis/atomredis/internal/testing/transcript"
	"github.com/atomredis/atomredis/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deadline limits each wait of a test.
const deadline = 30 * time.Second

// node is a server with the door.
type node struct {
	*server.Server // nil while it is down
	sentinel       string
}

// start starts a server with settings "name=value".
func start(t *testing.T, settings ...string) *node {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := freeport.Port(t)
	conf := config.NewConfig()
	conf.InMemory()
	for _, pair := range append([]string{"port=0", "bind=127.0.0.1", "sentinel-port=" + port}, settings...) {
		name, value, _ := strings.Cut(pair, "=")
		require.NoError(t, conf.Set(name, value, false), pair)
	}
	srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{Listeners: []net.Listener{l}})
	require.NoError(t, err)
	n := &node{srv, "127.0.0.1:" + port}
	t.Cleanup(func() {
		if n.Server != nil {
			n.Close()
		}
	})
	require.NoError(t, srv.Start())
	return n
}

// startGroup starts the three servers of a group.
func startGroup(t *testing.T) []*node {
	var addrs []string
	for range 3 {
		addrs = append(addrs, freeport.Addr(t))
	}
	var nodes []*node
	for _, addr := range addrs {
		nodes = append(nodes, start(t, "dir="+t.TempDir(), "save=", "appendonly=yes", "raft-addr="+addr,
			"raft-peers="+strings.Join(addrs, ","), "raft-timeout=1500"))
	}
	for _, n := range nodes {
		c := n.connect(t)
		c.until("SENTINEL CKQUORUM mymaster", "OK 3 usable Sentinels. Quorum and failover authorization can be reached")
		c.until("INFO sentinel", "slaves=2,sentinels=3")
		c.Close()
	}
	return nodes
}

func (n *node) addr() string { return n.Addrs()[0].String() }

// client is a client of a sentinel port.
type client struct {
	*transcript.Conn
	t *testing.T
}

func (n *node) connect(t *testing.T) *client {
	nc, err := transcript.Dial(n.sentinel)
	require.NoError(t, err)
	c := &client{transcript.NewConn(nc), t}
	t.Cleanup(func() { c.Close() })
	return c
}

// do returns the reply to a command of words separated by spaces, in the notation of transcripts.
func (c *client) do(command string) string {
	c.t.Helper()
	v, err := c.Do(deadline, strings.Split(command, " ")...)
	require.NoError(c.t, err, command)
	return v.String()
}

// until waits until the reply to a command contains want.
func (c *client) until(command, want string) {
	c.t.Helper()
	last := ""
	require.Eventually(c.t, func() bool {
		last = c.do(command)
		return strings.Contains(last, want)
	}, deadline, 5*time.Millisecond, "%s: %s", command, want)
}

// pair returns the text of a reply of two strings.
func pair(a, b string) string { return fmt.Sprintf("[%q %q]", a, b) }

// next returns the next message.
func (c *client) next() string {
	c.t.Helper()
	v, err := c.Read(deadline)
	require.NoError(c.t, err)
	return v.String()
}

func TestRepliesAreThoseOfRedisSentinel(t *testing.T) {
	n := start(t)
	c := n.connect(t)
	for _, row := range [][2]string{
		{"PING", "+PONG"},
		{"GET x", `-"ERR unknown command 'GET', with args beginning with: 'x' "`},
		{"SENTINEL", "-ERR wrong number of arguments for 'sentinel' command"},
		{"SENTINEL FOO", "-ERR unknown subcommand 'FOO'. Try SENTINEL HELP."},
		{"SENTINEL GET-MASTER-ADDR-BY-NAME", "-ERR wrong number of arguments for 'sentinel|get-master-addr-by-name' command"},
		{"SENTINEL MASTER nope", "-ERR No such master with that name"},
		{"SENTINEL REPLICAS nope", "-ERR No such master with that name"},
		{"SENTINEL FAILOVER mymaster", "-NOGOODSLAVE No suitable replica to promote"},
		{"SENTINEL CONFIG GET", "-ERR Only SENTINEL CONFIG GET <option> / SET <option> <value> are supported."},
		{"SENTINEL CONFIG SET nope 1", "-ERR Invalid argument 'nope' to SENTINEL CONFIG SET"},
		{"SENTINEL DEBUG nope 1", "-ERR Unknown option or number of arguments for SENTINEL DEBUG 'nope'"},
		{"SENTINEL SET mymaster foo 2", "-ERR Unknown option or number of arguments for SENTINEL SET 'foo'"},
		{"SENTINEL SET mymaster quorum 2", "+OK"},
		{"SENTINEL FLUSHCONFIG", "+OK"},
		{"SENTINEL MONITOR mymaster 127.0.0.1 1 2", "-ERR Duplicate master name."},
		{"SENTINEL MONITOR foo 127.0.0.1 1 0", "-ERR Quorum must be 1 or greater."},
		{"SENTINEL SIMULATE-FAILURE nope", "-ERR Unknown failure simulation specified"},
		{"SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 x 0 *", "-ERR value is not an integer or out of range"},
		{"PUBLISH ch x", "-ERR Only HELLO messages are accepted by Sentinel instances."},
		{"HELLO 4", "-NOPROTO unsupported protocol version"},
		{"CLIENT SETNAME somebody", "+OK"},
		{"CLIENT GETNAME", `"somebody"`},
		{"CLIENT TRACKING ON", "-ERR unknown subcommand 'TRACKING'. Try CLIENT HELP."},
		{"ACL WHOAMI", `"default"`},
		{"SUBSCRIBE", "-ERR wrong number of arguments for 'subscribe' command"},
		{"AUTH x", "-ERR AUTH <password> called without any password configured for the default user. Are you sure your " +
			"configuration is correct?"},
	} {
		t.Run(row[0], func(t *testing.T) { require.Equal(t, row[1], c.do(row[0])) })
	}
	require.Contains(t, c.do("SENTINEL CKQUORUM mymaster"), "-NOQUORUM ")
	require.Contains(t, c.do("SHUTDOWN"), "-ERR ")
	host, port, _ := net.SplitHostPort(n.addr())
	require.Equal(t, pair(host, port), c.do("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"), "a server alone leads itself")
	require.Equal(t, "nil[]", c.do("SENTINEL GET-MASTER-ADDR-BY-NAME nope"))
	require.Contains(t, c.do("ROLE"), "sentinel")
	info := c.do("INFO")
	for _, want := range []string{"redis_mode:sentinel", "tcp_port:" + strings.TrimPrefix(n.sentinel, "127.0.0.1:"), "# Clients",
		"master0:name=mymaster,status=ok,address=" + n.addr() + ",slaves=0,sentinels=1"} {
		require.Contains(t, info, want)
	}
	require.Equal(t, strings.Join(masterFields, " "), strings.Join(fields(c.do("SENTINEL MASTER mymaster")), " "))
	require.Contains(t, c.do("SUBSCRIBE a b"), "subscribe")
	require.Contains(t, c.next(), "b")
	require.Contains(t, c.do("PING"), "pong")
	require.Equal(t, "-ERR Can't execute 'sentinel': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed "+
		"in this context", c.do("SENTINEL MYID"))
	require.Contains(t, c.do("UNSUBSCRIBE a b"), "unsubscribe")
	require.Contains(t, c.next(), "b")
	require.Contains(t, c.do("HELLO 3"), "sentinel")
	require.Equal(t, strings.Join(masterFields, " "), strings.Join(fields(c.do("SENTINEL MASTER mymaster")), " "))
	require.Equal(t, "+OK", c.do("QUIT"))
	v, err := c.Read(deadline)
	require.NoError(t, err)
	require.EqualValues(t, transcript.Closed, v.Kind)
}

// masterFields are the fields of a master in redis-sentinel 7.0.15.
var masterFields = strings.Fields("name ip port runid flags link-pending-commands link-refcount last-ping-sent last-ok-ping-reply " +
	"last-ping-reply down-after-milliseconds info-refresh role-reported role-reported-time config-epoch num-slaves " +
	"num-other-sentinels quorum failover-timeout parallel-syncs")

var word = regexp.MustCompile(`[a-z][a-z-]+`)

// fields returns the names of fields of a master that occur in a reply, each once.
func fields(reply string) (found []string) {
	for _, f := range masterFields {
		for _, w := range word.FindAllString(reply, -1) {
			if w == f {
				found = append(found, f)
				break
			}
		}
	}
	return found
}

func TestPeersAuthenticateAsClientsDo(t *testing.T) {
	n := start(t, "requirepass=secret")
	c := n.connect(t)
	for _, command := range []string{"PING", "SENTINEL MASTERS", "SUBSCRIBE x", "INFO", "HELLO 3", "CLIENT ID"} {
		require.Contains(t, c.do(command), "-NOAUTH", command)
	}
	require.Contains(t, c.do("AUTH wrong"), "-WRONGPASS")
	require.Equal(t, "+OK", c.do("AUTH secret"))
	require.Contains(t, c.do("SENTINEL MASTERS"), "mymaster")
	other := n.connect(t)
	require.Contains(t, other.do("HELLO 3 AUTH default secret SETNAME me"), "sentinel")
	require.Equal(t, `"me"`, other.do("CLIENT GETNAME"))
}

func TestAMasterAndItsReplicaTellOfEachOther(t *testing.T) {
	master := start(t, "sentinel-master-name=main")
	host, port, _ := net.SplitHostPort(master.addr())
	replica := start(t, "replicaof="+host+" "+port, "replica-announce-ip=127.0.0.1", "replica-announce-port=4711",
		"sentinel-master-name=main")
	c := replica.connect(t)
	require.Equal(t, pair(host, port), c.do("SENTINEL GET-MASTER-ADDR-BY-NAME main"))
	c.until("INFO sentinel", "status=ok,address="+master.addr()+",slaves=1")
	require.Contains(t, c.do("SENTINEL REPLICAS main"), "127.0.0.1:4711")
	master.connect(t).until("SENTINEL REPLICAS main", "127.0.0.1:4711")
	master.Close()
	master.Server = nil
	c.until("SENTINEL MASTERS", "s_down,master")
}

// A client of Redis Sentinel continues with the next leader when its server is lost.
func TestClientsFindTheNextLeader(t *testing.T) {
	nodes := startGroup(t)
	var sentinels []string
	var leader *node
	for _, n := range nodes {
		sentinels = append(sentinels, n.sentinel)
	}
	at := nodes[0].connect(t).do("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster")
	for _, n := range nodes {
		if host, port, _ := net.SplitHostPort(n.addr()); at == pair(host, port) {
			leader = n
		}
	}
	require.NotNil(t, leader, at)
	watcher := nodes[0]
	if watcher == leader {
		watcher = nodes[1]
	}
	w := watcher.connect(t)
	require.Contains(t, w.do("SENTINEL SENTINELS mymaster"), leader.sentinel[strings.LastIndex(leader.sentinel, ":")+1:])
	require.Contains(t, w.do("SUBSCRIBE +switch-master"), "subscribe")

	rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: sentinels, MaxRetries: -1,
		DialTimeout: time.Second, DialerRetries: 1})
	defer rdb.Close()
	ctx := context.Background()
	require.NoError(t, rdb.Set(ctx, "before", "1", 0).Err())
	old := leader.addr()
	leader.Abandon()
	leader.Server = nil
	begun := time.Now()
	require.Eventually(t, func() bool { return rdb.Set(ctx, "after", "2", 0).Err() == nil }, deadline, 5*time.Millisecond)
	t.Logf("written again %v after the loss of the leader", time.Since(begun).Round(time.Millisecond))
	require.Equal(t, "1", rdb.Get(ctx, "before").Val())
	message := w.next()
	require.Contains(t, message, "mymaster "+strings.ReplaceAll(old, ":", " ")+" 127.0.0.1 ")

	// redis-py uses Sentinel in its own way.
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(name, "-c", "import redis.sentinel").Run() != nil {
			continue
		}
		var list []string
		for _, s := range sentinels {
			host, port, _ := net.SplitHostPort(s)
			list = append(list, fmt.Sprintf("(%q, %s)", host, port))
		}
		out, err := exec.Command(name, "-c", "from redis.sentinel import Sentinel\n"+
			"s = Sentinel(["+strings.Join(list, ",")+"], socket_timeout=2, min_other_sentinels=2)\n"+
			"m = s.master_for('mymaster')\nm.set('py', 'x')\nprint(m.get('before'), m.get('py'), len(s.discover_slaves('mymaster')))\n",
		).CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "b'1' b'x'")
		break
	}
}

// A leader that has lost the others names itself no more, and its clients read nothing.
func TestALeaderWithoutTheOthersIsNotNamed(t *testing.T) {
	nodes := startGroup(t)
	at := nodes[0].connect(t).do("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster")
	var leader *node
	for _, n := range nodes {
		if host, port, _ := net.SplitHostPort(n.addr()); at == pair(host, port) {
			leader = n
		}
	}
	require.NotNil(t, leader, at)
	port := leader.connect(t)
	rdb := func() *client {
		nc, err := transcript.Dial(leader.addr())
		require.NoError(t, err)
		c := &client{transcript.NewConn(nc), t}
		t.Cleanup(func() { c.Close() })
		return c
	}
	before := rdb()
	require.Equal(t, "+OK", before.do("SET key value"))
	for _, n := range nodes {
		if n != leader {
			n.Abandon()
			n.Server = nil
		}
	}
	port.until("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster", "nil[]")
	require.Equal(t, "closed", before.next())
	require.Contains(t, rdb().do("GET key"), "-MASTERDOWN ")
	require.Contains(t, port.do("SENTINEL MASTERS"), "s_down")
}

func TestTheLeadIsHandedOver(t *testing.T) {
	nodes := startGroup(t)
	c := nodes[0].connect(t)
	before := c.do("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster")
	for _, n := range nodes { // whether it leads or not
		if host, port, _ := net.SplitHostPort(n.addr()); before != pair(host, port) {
			require.Equal(t, "+OK", n.connect(t).do("SENTINEL FAILOVER mymaster"))
			break
		}
	}
	require.Eventually(t, func() bool {
		now := c.do("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster")
		return now != before && now != "nil[]"
	}, deadline, 5*time.Millisecond)
}

// The ACL applies to SENTINEL and its sub-commands as to other commands.
func TestUsersNeedPermissionForWhatTheySend(t *testing.T) {
	n := start(t)
	c := n.connect(t)
	require.Equal(t, "+OK", c.do("ACL SETUSER some on nopass resetchannels -@all +ping +sentinel|masters +subscribe &+switch-master"))
	require.Equal(t, "+OK", c.do("ACL SETUSER all on nopass -@all +sentinel"))
	require.Equal(t, "+OK", c.do("ACL SETUSER none on nopass +@all -@dangerous"))
	require.Contains(t, c.do("ACL SETUSER x +sentinel|nope"), "Unknown command or category name in ACL")
	require.Contains(t, c.do("ACL GETUSER some"), "+sentinel|masters")
	require.Equal(t, "+OK", c.do("AUTH some x"))
	require.Contains(t, c.do("SENTINEL MASTERS"), "mymaster")
	require.Equal(t, "+PONG", c.do("PING"))
	require.Contains(t, c.do("SENTINEL MYID"), "-NOPERM User some has no permissions to run the 'sentinel|myid' command")
	require.Contains(t, c.do("ROLE"), "-NOPERM")
	require.Contains(t, c.do("SUBSCRIBE +sdown"), "-NOPERM")
	require.Contains(t, c.do("SUBSCRIBE +switch-master"), "subscribe")

	c = n.connect(t)
	require.Equal(t, "+OK", c.do("AUTH all x"))
	require.NotContains(t, c.do("SENTINEL MYID"), "NOPERM")
	require.Contains(t, c.do("INFO"), "-NOPERM")
	require.Equal(t, "+OK", c.do("AUTH none x"))
	require.Contains(t, c.do("SENTINEL MASTERS"), "-NOPERM")
	require.Contains(t, c.do("ROLE"), "-NOPERM")
}
