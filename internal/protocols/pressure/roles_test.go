package pressure_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/protocols/pressure"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
	"github.com/atomredis/atomredis/internal/testing/servertest"
	"github.com/atomredis/atomredis/server"
)

// producing are the steps of a client that puts a message into a queue, and consuming those of one that takes one.
var (
	producing = []string{"RPOP $:producer_free", "SET $:producer %s", "RPOP $:not_full", "LPUSH $ message",
		"INCR $:stats:produced_messages",
		"LPUSH $:not_full 0", "LTRIM $:not_full 0 0", "LPUSH $:producer_free 0"}
	consuming = []string{"RPOP $:consumer_free", "SET $:consumer %s", "RPOP $", "LPUSH $:not_full 0",
		"LTRIM $:not_full 0 0", "LPUSH $:consumer_free 0"}
)

// At whatever step a client disconnects, others can continue at once, and no role or room is given back twice.
func TestRolesComeBackWhenTheirHolderHangsUp(t *testing.T) {
	for name, steps := range map[string][]string{"producer": producing, "consumer": consuming} {
		for n := range len(steps) + 1 {
			t.Run(fmt.Sprintf("%s after %d steps", name, n), func(t *testing.T) {
				eachSharding(t, func(t *testing.T, p *pressureServer) {
					p.play([][2]string{{"a PRESSURE.CREATE q BOUND 3", "+OK"}, {"a PRESSURE.PUT q first", ":1"}}...)
					for _, s := range steps[:n] {
						p.step("dead " + fmt.Sprintf(s+"%.0s", "dead"))
					}
					p.step("blocked BRPOP $:" + name + "_free 0")
					if n > 0 {
						p.Hangup("dead")
					}
					if free := n == 0 || n == len(steps); !free {
						require.Equal(t, "*2 $:"+name+"_free 0", p.step("blocked"), "the role")
					}
					p.Hangup("blocked")
					p.play([][2]string{{"a LRANGE $:producer_free 0 -1", "*1 0"}, {"a LRANGE $:consumer_free 0 -1", "*1 0"},
						{"a LRANGE $:not_full 0 -1", "*1 0"}}...)
					require.Zero(t, pressure.Of(p.Server).Holders())
				})
			})
		}
	}
}

// The elements that are given back to a full, a closed, a deleted or a removed queue.
func TestRolesComeBackToTheStateOfTheQueue(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q BOUND 1", "+OK"},
			{"b RPOP $:producer_free", "0"}, {"b RPOP $:not_full", "0"}, {"b LPUSH $ x", ":1"},
			{"hangup b", ""},
			{"a LLEN $:producer_free", ":1"}, {"a EXISTS $:not_full", ":0"},
			// An element whose message is in the queue has no holder, although the producer has not finished its
			// steps.
			{"a PRESSURE.GET q", "x"},
			{"b RPOP $:producer_free", "0"}, {"b RPOP $:not_full", "0"}, {"b LPUSH $ x", ":1"}, {"a PRESSURE.GET q", "x"},
			{"a LLEN $:not_full", ":1"},
			{"hangup b", ""},
			{"a LLEN $:not_full", ":1"},
			// The queue is deleted while it has a producer.
			{"b RPOP $:producer_free", "0"},
			{"a PRESSURE.DELETE q", ""},
			{"hangup b", ""},
			{"a", "+OK"},
		}...)
		require.Empty(t, p.keys())
		p.play([][2]string{
			{"a PRESSURE.CREATE q BOUND 1", "+OK"}, {"b RPOP $:producer_free", "0"}, {"a FLUSHALL", "+OK"}, {"hangup b", ""},
			{"a EXISTS $:producer_free", ":0"},
			{"a PRESSURE.CREATE q BOUND 1", "+OK"}, {"b RPOP $:producer_free", "0"}, {"a FLUSHALL", "+OK"},
			{"a PRESSURE.CREATE q", "+OK"}, {"hangup b", ""},
			{"a LLEN $:producer_free", ":1"},
			// The connection lives on after RESET, and so does the role.
			{"b RPOP $:producer_free", "0"}, {"b RESET", "+RESET"}, {"a LLEN $:producer_free", ":0"}, {"b QUIT", "+OK"},
			{"hangup b", ""}, {"a LLEN $:producer_free", ":1"},
			// The value is no list any more.
			{"b RPOP $:producer_free", "0"}, {"a SET $:producer_free x", "+OK"}, {"hangup b", ""},
			{"a GET $:producer_free", "x"},
		}...)
	})
}

// Room is announced once, even while the client that popped the element of :not_full is still connected.
func TestRolesKnowWhoHasTheElementOfNotFull(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			// The producer's message is in the queue, so its element is used up. The consumer takes the message and
			// disconnects.
			{"a PRESSURE.CREATE q BOUND 1", "+OK"},
			{"b RPOP $:producer_free", "0"}, {"b RPOP $:not_full", "0"}, {"b LPUSH $ x", ":1"},
			{"c RPOP $:consumer_free", "0"}, {"c RPOP $", "x"}, {"hangup c", ""},
			{"a LLEN $:not_full", ":1"}, {"b LPUSH $:producer_free 0", ":1"},
			// The producer has gone on without it.
			{"b RPOP $:producer_free", "0"}, {"b RPOP $:not_full", "0"}, {"b LPUSH $:producer_free 0", ":1"},
			{"c RPOP $:consumer_free", "0"}, {"hangup c", ""}, {"a LLEN $:not_full", ":1"},
			// The producer holds the element, and the only room.
			{"b RPOP $:producer_free", "0"}, {"b RPOP $:not_full", "0"},
			{"c RPOP $:consumer_free", "0"}, {"hangup c", ""}, {"a EXISTS $:not_full", ":0"},
			{"b LPUSH $ x", ":1"}, {"b LPUSH $:producer_free 0", ":1"},
		}...)
		require.Zero(t, pressure.Of(p.Server).Holders())
		p.play([][2]string{
			{"a SET $:bound 2", "+OK"}, {"a LPUSH $:not_full 0", ":1"},
			{"b RPOP $:producer_free", "0"}, {"b RPOP $:not_full", "0"},
		}...)
		p.reserve("a", 10, "x")
		p.play([][2]string{{"a EXISTS $:not_full", ":0"}, {"+10", ""}, {"a LLEN $", ":1"}, {"a EXISTS $:not_full", ":0"},
			{"a PRESSURE.GET q", "x"}, {"a LLEN $:not_full", ":1"}}...)
	})
}

// A client that waits in a role finds a new queue under the old name, and waits for a role there.
func TestPressureWaitersFindAnotherQueue(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a PRESSURE.CREATE q BOUND 1", "+OK"}, {"b PRESSURE.PUT q 1 2 3", ""}, {"c PRESSURE.GET q COUNT 2", "*1 1"},
			{"c PRESSURE.GET q", "2"},
			{"a PRESSURE.GET q", "3"}, {"b", ":3"},
			{"b PRESSURE.PUT q 1 2 3", ""}, {"a FLUSHALL", "+OK"}, {"a PRESSURE.CREATE q BOUND 1", "+OK"},
			{"a LLEN $:producer_free", ":0"}, {"a PRESSURE.GET q", "2"}, {"b", ":3"},
			{"a LRANGE $:producer_free 0 -1", "*1 0"}, {"a PRESSURE.GET q", "3"},
			{"b PRESSURE.GET q", ""}, {"a FLUSHALL", "+OK"}, {"a PRESSURE.CREATE q BOUND 1", "+OK"},
			{"a LLEN $:consumer_free", ":0"},
			{"hangup b", ""}, {"a LRANGE $:consumer_free 0 -1", "*1 0"},
		}...)
	})
}

// Every command that pops the element is noticed, also in transactions, in scripts, and when a blocked client is
// served.
func TestRolesAreNoticedWhateverPopsThem(t *testing.T) {
	for _, steps := range [][]string{
		{"RPOP $:consumer_free"}, {"LPOP $:consumer_free"}, {"LPOP $:consumer_free 5"}, {"BLPOP x $:consumer_free 0"},
		{"BRPOP $:consumer_free 0"},
		{"LMPOP 2 x $:consumer_free LEFT"}, {"BLMPOP 0 1 $:consumer_free RIGHT COUNT 3"},
		{"LMOVE $:consumer_free x LEFT LEFT"},
		{"BLMOVE $:consumer_free x LEFT LEFT 0"}, {"RPOPLPUSH $:consumer_free x"}, {"BRPOPLPUSH $:consumer_free x 0"},
		{"MULTI", "RPOP $:consumer_free", "EXEC"}, {"EVAL return(redis.call('RPOP',KEYS[1])) 1 $:consumer_free"},
	} {
		t.Run(steps[0], func(t *testing.T) {
			eachSharding(t, func(t *testing.T, p *pressureServer) {
				for range 2 {
					p.step("a PRESSURE.CREATE q")
					for _, s := range steps {
						require.NotEmpty(t, p.step("b "+s))
					}
					require.Equal(t, ":0", p.step("a LLEN $:consumer_free"))
					p.Hangup("b")
					require.Equal(t, ":1", p.step("a LLEN $:consumer_free"))
				}
				for _, s := range steps {
					if s[0] != 'B' {
						continue
					}
					p.step("a RPOP $:consumer_free")
					require.Empty(t, p.step("b "+s))
					p.step("a LPUSH $:consumer_free 0")
					require.NotEmpty(t, p.step("b"))
					p.Hangup("b")
					require.Equal(t, ":1", p.step("a LLEN $:consumer_free"))
				}
			})
		})
	}
}

// A role that any client has pushed back is not given back again.
func TestRolesThatWereGivenBackAreForgotten(t *testing.T) {
	for _, push := range []string{"LPUSH $:producer_free 0", "RPUSH $:producer_free 0", "RPOPLPUSH x $:producer_free",
		"LMOVE x $:producer_free LEFT LEFT"} {
		eachSharding(t, func(t *testing.T, p *pressureServer) {
			p.play([][2]string{
				{"a PRESSURE.CREATE q", "+OK"}, {"a LPUSH x 0", ":1"}, {"b RPOP $:producer_free", "0"},
			}...)
			require.NotEmpty(t, p.step("c "+push))
			p.play([][2]string{{"c RPOP $:producer_free", "0"}, {"hangup b", ""}, {"a LLEN $:producer_free", ":0"},
				{"hangup c", ""}, {"a LLEN $:producer_free", ":1"}}...)
		})
	}
}

// A client that deletes queues with its own steps keeps all their roles, but not for ever.
func TestRolesOfQueuesThatHaveGoneAreForgotten(t *testing.T) {
	p := newPressureServer(t)
	for i := range 1000 {
		name := fmt.Sprint("temporary", i)
		p.step("a PRESSURE.CREATE " + name)
		p.step(fmt.Sprintf("a RPOP __pressure__:%s:producer_free", name))
		p.step(fmt.Sprintf("a DEL __pressure__:%s:bound __pressure__:%s:consumer_free __pressure__:%s:not_full", name, name,
			name))
	}
	require.LessOrEqual(t, pressure.Of(p.Server).Holders(), 128)
	p.Finish()
}

func TestRolesAreLeftAloneIfTheDirectiveSaysSo(t *testing.T) {
	p := newPressureServer(t, "pressure-role-recovery", "no")
	p.play([][2]string{
		{"a CONFIG GET pressure-role-recovery", "*2 pressure-role-recovery no"},
		{"a PRESSURE.CREATE q BOUND 1", "+OK"}, {"b RPOP $:producer_free", "0"}, {"b SET $:producer b", "+OK"},
		{"hangup b", ""},
		{"a PRESSURE.PUT q x TIMEOUT 5", ""}, {"+5", ""}, {"a", ":0"},
		{"a LPUSH $:producer_free 0", ":1"},
		// But a client of the commands on queues always gives its role back.
		{"b PRESSURE.PUT q x y", ""}, {"hangup b", ""}, {"a PRESSURE.GET q", "x"}, {"a LLEN $:producer_free", ":1"},
	}...)
	p.Finish()
	p = newPressureServer(t)
	require.Contains(t, p.step("a CONFIG SET pressure-role-recovery no"), "can't set immutable config")
	require.Equal(t, "+OK", p.step("a CONFIG SET pressure-role-recovery yes"), "what it is may be set")
	p.Finish()
}

// A client that disconnects or is unblocked while it waits leaves nothing behind, whatever it waits for.
func TestPressureWaitersThatGoGiveTheirRoleBack(t *testing.T) {
	for name, prepare := range map[string][]string{
		"PUT waits for the role": {"b RPOP $:producer_free", "w PRESSURE.PUT q x"},
		"PUT waits for room":     {"w PRESSURE.PUT q 1 2 3"},
		"GET waits for the role": {"b RPOP $:consumer_free", "w PRESSURE.GET q"},
		"GET waits for messages": {"w PRESSURE.GET q COUNT 2"},
		"CLOSE":                  {"b RPOP $:producer_free", "w PRESSURE.CLOSE q"},
	} {
		for _, end := range []string{"hangup w", "a CLIENT UNBLOCK %d", "a CLIENT UNBLOCK %d ERROR"} {
			t.Run(name+" "+end, func(t *testing.T) {
				eachSharding(t, func(t *testing.T, p *pressureServer) {
					p.step("a PRESSURE.CREATE q BOUND 2")
					for _, line := range prepare {
						p.step(line)
					}
					if end == "hangup w" {
						p.step(end)
					} else {
						require.Equal(t, ":1", p.step(fmt.Sprintf(end, p.Client("w").(*session.Session).ID())))
						require.NotEmpty(t, p.step("w"))
					}
					if p.Connected("b") {
						p.Hangup("b")
					}
					p.play([][2]string{{"a LRANGE $:producer_free 0 -1", "*1 0"}, {"a LRANGE $:consumer_free 0 -1", "*1 0"}}...)
					require.Zero(t, pressure.Of(p.Server).Holders())
				})
			})
		}
	}
}

func TestRolesComeBackAfterARestart(t *testing.T) {
	const base = "__pressure__:q"
	for name, taken := range map[string][]string{
		"producer":             {"RPOP " + base + ":producer_free"},
		"producer with a name": {"RPOP " + base + ":producer_free", "SET " + base + ":producer p"},
		"producer with room": {"RPOP " + base + ":producer_free", "SET " + base + ":producer p",
			"RPOP " + base + ":not_full"},
		"consumer":                {"RPOP " + base + ":consumer_free"},
		"consumer with a message": {"RPOP " + base + ":consumer_free", "SET " + base + ":consumer c", "RPOP " + base},
		"both": {"RPOP " + base + ":producer_free", "RPOP " + base + ":not_full",
			"RPOP " + base + ":consumer_free", "SET " + base + ":consumer c"},
	} {
		for _, shards := range []string{"1", "16"} {
			t.Run(name+" "+shards, func(t *testing.T) {
				fs := crashfs.New()
				d := servertest.OpenDurable(t, fs, "shards", shards)
				d.Expect("+OK\r\n", "PRESSURE.CREATE q BOUND 3")
				d.Expect(":1\r\n", "PRESSURE.PUT q x")
				d.Lines(taken...)
				// The disk as a crash would leave it.
				d2 := servertest.OpenDurable(t, fs.CrashClone(crashfs.CloneCfg{}), "shards", shards)
				for _, list := range []string{":producer_free", ":consumer_free", ":not_full"} {
					require.Contains(t, d2.Line("BRPOP "+base+list+" 0"), list)
				}
				d2.Reconnect()
				d2.Expect(":1\r\n", "PRESSURE.PUT q y")
				d2.Expect("+OK\r\n", "PRESSURE.CLOSE q")
				d2.End()
				d.End()
			})
		}
	}
}

// A queue that is being created step by step has no roles that could be lost.
func TestRolesOfAQueueInTheMakingAreNotLost(t *testing.T) {
	eachSharding(t, func(t *testing.T, p *pressureServer) {
		p.play([][2]string{
			{"a SETNX $:bound 0", ":1"}, {"b BRPOP $:producer_free 0", ""}, {"c PRESSURE.GET q", ""},
			{"a LPUSH $:producer_free 0", ":1"}, {"b", "*2 $:producer_free 0"}, {"c", ""},
			{"a LPUSH $:consumer_free 0", ":1"}, {"a LPUSH $:not_full 0", ":1"}, {"a LLEN $:consumer_free", ":0"},
			{"a LLEN $:not_full", ":1"},
			{"b LPUSH $ x", ":1"}, {"c", "x"}, {"a LLEN $:consumer_free", ":1"},
		}...)
	})
}

// The same over sockets, where clients are cut off rather than closed.
func TestRolesComeBackOnEveryTransport(t *testing.T) {
	servertest.EachTransport(t, func(t *testing.T, o server.Options, settings ...string) {
		s := servertest.Start(t, o, settings...)
		a := s.Connect()
		require.Equal(t, "+OK", a.Line("PRESSURE.CREATE q BOUND 1"))
		for range 5 {
			b, c := s.Connect(), s.Connect()
			require.NotEmpty(t, b.Line("BRPOP __pressure__:q:producer_free 0"))
			require.NotEmpty(t, b.Line("BRPOP __pressure__:q:not_full 0"))
			c.Send("PRESSURE.PUT", "q", "x", "y")
			a.WaitFor("INFO clients", "blocked_clients:1\r\n")
			b.Close()
			require.Equal(t, "x", a.Line("PRESSURE.GET q"))
			require.Equal(t, "2", c.Next())
			require.Equal(t, "y", a.Line("PRESSURE.GET q"))
		}
	})
}
