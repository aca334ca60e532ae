package sets_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/servertest"
)

// memberSteps are lines and their replies.
var memberSteps = []struct {
	name  string
	steps []string // a line and its reply in turn
}{
	{"sexpire", []string{
		"SADD s a b", ":2",
		"SEXPIRE s 10 MEMBERS 3 a b nosuch", "*3 :1 :1 :-2",
		"STTL s MEMBERS 3 a b nosuch", "*3 :10 :10 :-2",
		"SPTTL s MEMBERS 1 a", "*1 :10000",
		"SEXPIRETIME s MEMBERS 1 a", "*1 :1000000010",
		"SPEXPIRETIME s MEMBERS 1 a", "*1 :1000000010000",
		"+1", "",
		"STTL s MEMBERS 1 a", "*1 :10",
		"SPTTL s MEMBERS 1 a", "*1 :9999",
		"SADD s a", ":0",
		"SPTTL s MEMBERS 1 a", "*1 :9999",
	}},
	{"events", []string{
		"listen", "",
		"SADD s a b c d", ":4",
		"SEXPIRE s 1000 MEMBERS 2 a b", "*2 :1 :1",
		"SEXPIRE s 1000 NX MEMBERS 1 a", "*1 :0",
		"SPERSIST s MEMBERS 2 a b", "*2 :1 :1",
		"SPERSIST s MEMBERS 1 c", "*1 :-1",
		"STTL s MEMBERS 1 a", "*1 :-1",
		"SEXPIREAT s 1 MEMBERS 2 a b", "*2 :2 :2",
		"SADDEX s EX 1000 MEMBERS 1 x", ":1",
		"SADDEX s PXAT 1 MEMBERS 3 c d x", ":1",
		"events", "sadd=s sexpire=s spersist=s srem=s sadd=s sexpire=s srem=s del=s",
	}},
	{"a moved member stays", []string{
		"SADD from m", ":1",
		"SADDEX to PX 100 MEMBERS 2 m other", ":1",
		"listen", "",
		"SMOVE from to m", ":1",
		"events", "srem=from del=from spersist=to",
		"STTL to MEMBERS 1 m", "*1 :-1",
		"+100", "",
		"SMEMBERS to", "*1 m",
	}},
	{"expired members are gone", []string{
		"listen", "",
		"SADDEX s PX 100 MEMBERS 3 a b c", ":1",
		"SADD s d", ":1",
		"SADDEX other PX 100 MEMBERS 1 a", ":1",
		"events", "sadd=s sexpire=s sadd=s sadd=other sexpire=other",
		"+99", "",
		"SCARD s", ":4",
		"INFO keyspace", "# Keyspace db0:keys=2,expires=0,avg_ttl=0,subexpiry=2",
		"+1", "",
		"events", "sexpired=s sexpired=other del=other",
		"SCARD s", ":1",
		"SMEMBERS s", "*1 d",
		"SSCAN s 0", "*2 0 *1 d",
		"SRANDMEMBER s 5", "*1 d",
		"SISMEMBER s a", ":0",
		"STTL s MEMBERS 1 a", "*1 :-2",
		"SPERSIST s MEMBERS 1 a", "*1 :-2",
		"SEXPIRE s 10 MEMBERS 1 a", "*1 :-2",
		"SREM s a", ":0",
		"EXISTS other", ":0",
		"INFO keyspace", "# Keyspace db0:keys=1,expires=0,avg_ttl=0,subexpiry=0",
	}},
	{"watched", []string{
		"SADDEX s PX 100 MEMBERS 1 a", ":1",
		"SADD s b", ":1",
		"WATCH s", "+OK",
		"+100", "",
		"MULTI", "+OK",
		"PING", "+QUEUED",
		"EXEC", "*-1",
	}},
	{"no option ends the time to live", []string{
		"SADDEX s PX 100 MEMBERS 2 a b", ":1",
		"SADDEX s MEMBERS 1 a", ":1",
		"SADDEX s KEEPTTL MEMBERS 2 b c", ":1",
		"SPTTL s MEMBERS 3 a b c", "*3 :-1 :100 :-1",
		"+100", "",
		"SINTER s s", "*2 a c",
	}},
	{"an expired member is new", []string{
		"SADDEX s PX 100 MEMBERS 2 a b", ":1",
		"SADD s c", ":1",
		"+100", "",
		"SADDEX s MXX MEMBERS 1 a", ":0",
		"SADDEX s MNX MEMBERS 1 a", ":1",
		"SPTTL s MEMBERS 1 a", "*1 :-1",
	}},
}

func TestMembersExpire(t *testing.T) {
	for _, settings := range [][]string{{"shards", "1"}, {"shards", "16", "set-max-listpack-entries", "0"}} {
		t.Run(strings.Join(settings, " "), func(t *testing.T) {
			for _, tt := range memberSteps {
				t.Run(tt.name, func(t *testing.T) {
					// Hash tables, and keys of several shards, have another order.
					servertest.NewListening(t, settings...).Steps(tt.steps, "SINTER s s", "events")
				})
			}
		})
	}
}

func TestTheSetKeepsItsFormUntilAMemberExpires(t *testing.T) {
	l := servertest.NewListening(t)
	l.Steps([]string{
		"SADD s 1 2 3", ":3",
		"SEXPIRE s 1000 XX MEMBERS 1 1", "*1 :0",
		"SEXPIRE s 0 MEMBERS 1 1", "*1 :2",
		"OBJECT ENCODING s", "intset",
		"SEXPIRE s 1000 MEMBERS 1 2", "*1 :1",
		"OBJECT ENCODING s", "listpackex",
		"SPERSIST s MEMBERS 1 2", "*1 :1",
		"OBJECT ENCODING s", "listpackex",
	})
}

func TestDeadlinesOfMembersAreThereAfterARestart(t *testing.T) {
	const at = "50000000000000"
	fs := crashfs.Mem()
	open := func() *servertest.Durable { return servertest.OpenDurable(t, fs) }
	ttl := func(d *servertest.Durable, key, a, b string) {
		d.Expect("*3\r\n:"+a+"\r\n:"+b+"\r\n:-2\r\n", "SPEXPIRETIME "+key+" MEMBERS 3 a b nosuch")
	}
	long := strings.Repeat("x", 300)
	d := open()
	for _, key := range []string{"small", "long", "large", "moved"} {
		d.Lines("SADD "+key+" a b c", "SPEXPIREAT "+key+" "+at+" MEMBERS 2 a b")
	}
	d.Lines("SADD long "+long, "SADD moved "+long, "SADD without a b c "+long)
	for i := range 200 {
		d.Lines("SADD large m" + strconv.Itoa(i))
	}
	d.End() // it makes a checkpoint

	d = open()
	for _, key := range []string{"small", "long", "large", "moved"} {
		ttl(d, key, at, at)
		d.Lines("SPERSIST "+key+" MEMBERS 1 b", "SADD "+key+" g")
	}
	d.Lines("RENAME moved renamed", "SPEXPIREAT without "+at+" MEMBERS 1 b")
	d.Drop()

	d = open()
	for range 3 {
		for _, key := range []string{"small", "long", "large", "renamed"} {
			ttl(d, key, at, "-1")
		}
		ttl(d, "without", "-1", at)
		d.End()
		d = open()
	}
	d.Lines("SAVE", "SADDEX soon PX 300 MEMBERS 1 a", "SADDEX both PX 300 MEMBERS 3 a b "+long, "SADD both g", "SAVE",
		"SADDEX both PX 300 MEMBERS 1 h")
	d.End()
	d = open()
	d.Await("*1\r\n$1\r\ng\r\n", "SMEMBERS both")
	d.Expect(":0\r\n", "EXISTS soon")
	d.Lines("FLUSHALL", "SAVE")
	d.End()
}

func TestDumpKeepsTheDeadlinesOfMembers(t *testing.T) {
	for _, limit := range []string{"128", "0"} {
		l := servertest.NewListening(t, "set-max-listpack-entries", limit)
		l.Steps([]string{"SADD s a b c", ":3", "SPEXPIRE s 1000 MEMBERS 2 a c", "*2 :1 :1"})
		l.Step("EVAL redis.call('restore','t',0,redis.call('dump','s')) 0")
		l.Steps([]string{"SPTTL t MEMBERS 3 a b c", "*3 :1000 :-1 :1000", "+1000", "", "SMEMBERS t", "*1 b"})
		require.Equal(t, ":1", l.Step("SCARD s"))
	}
}
