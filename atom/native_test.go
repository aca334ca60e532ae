package atom_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atom"
)

// commandCalls returns how often a server has executed a command.
func commandCalls(t *testing.T, r *redis.Client, name string) (n int) {
	section, err := r.InfoMap(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	fmt.Sscanf(section["Commandstats"]["cmdstat_"+name], "calls=%d", &n)
	return n
}

func TestTheCommandsOfAtomredisAreUsedUnlessToldOtherwise(t *testing.T) {
	for _, only := range []bool{false, true} {
		t.Run(fmt.Sprint(only), func(t *testing.T) {
			ctx := t.Context()
			r := client(t, openServer(t))
			open := func(name string) *atom.Element {
				e, err := atom.New(ctx, r, name, atom.Options{OnlyRedisCommands: only})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
				return e
			}
			server, e := open("server"), open("caller")
			require.NoError(t, server.CommandAdd("echo", echo, atom.CommandOptions{Timeout: long}))
			serve(t, server, 1)
			id := write(t, e, "s", map[string]any{"x": 1})
			_, err := e.CommandSend(ctx, "server", "echo", "x", atom.SendOptions{AckTimeout: long})
			require.NoError(t, err)
			_, err = e.Elements(ctx)
			require.NoError(t, err)
			for _, element := range []string{"caller", ""} {
				_, err = e.Streams(ctx, element)
				require.NoError(t, err)
			}
			_, err = e.ReferenceCreateFromStream(ctx, "caller", "s", id, 0)
			require.NoError(t, err)
			require.NoError(t, e.Log(ctx, atom.LogInfo, "x"))
			for name, calls := range map[string]int{"atom.call": 1, "atom.elements": 1, "atom.streams": 2, "atom.streamref": 1,
				"atom.log": 1} {
				if only {
					calls = 0
				}
				require.Equal(t, calls, commandCalls(t, r, name), name)
			}
			require.Equal(t, !only, commandCalls(t, r, "atom.next") > 0)
			require.Equal(t, only, commandCalls(t, r, "xreadgroup") > 0)
			waitFor(t, "the response", func() bool { return only || commandCalls(t, r, "atom.respond") == 1 })
		})
	}
}

func TestCommandsAreSentOnBothVersionsOfTheProtocol(t *testing.T) {
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			ctx := t.Context()
			addr := openServer(t)
			r := redis.NewClient(&redis.Options{Addr: addr, Protocol: version})
			t.Cleanup(func() { r.Close() })
			server, caller := element(t, r, "server"), element(t, r, "caller")
			fail := func(context.Context, *atom.Request) (any, error) {
				return "some\x00", &atom.UserError{Code: 3, Message: "mine"}
			}
			require.NoError(t, server.CommandAdd("fail", fail, atom.CommandOptions{Timeout: long}))
			serve(t, server, 1)
			response, err := caller.CommandSend(ctx, "server", "fail", nil, atom.SendOptions{AckTimeout: long})
			require.ErrorIs(t, err, atom.UserErrors+3)
			require.ErrorContains(t, err, "mine")
			require.Equal(t, "some\x00", response.Data.String())
			require.NotEmpty(t, response.ID)
			require.Equal(t, 1, commandCalls(t, r, "atom.call"))
		})
	}
}

func TestACallThatWaitsLeavesRoomForOthers(t *testing.T) {
	ctx := t.Context()
	addr := openServer(t)
	r := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 4}) // room for one call
	t.Cleanup(func() { r.Close() })
	caller := element(t, r, "caller")
	other := client(t, addr)
	slow := pythonPeer(t, other, "slow")
	fast := element(t, other, "fast")
	require.NoError(t, fast.CommandAdd("echo", echo, atom.CommandOptions{Timeout: long}))
	serve(t, fast, 1)

	ended := make(chan error, 1)
	canceled, cancel := context.WithCancel(ctx)
	go func() {
		_, err := caller.CommandSend(canceled, "slow", "x", nil, atom.SendOptions{AckTimeout: long})
		ended <- err
	}()
	slow.ack(slow.next(), 0) // makes the caller wait for ever
	for range 5 {
		_, err := caller.CommandSend(ctx, "fast", "echo", "x", atom.SendOptions{AckTimeout: long})
		require.NoError(t, err)
	}
	require.Equal(t, 1, commandCalls(t, other, "atom.call"), "the others went through the inbox")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled, "although the connection waits on")
}

func TestACallMayTakeLongerThanOtherCommands(t *testing.T) {
	addr := openServer(t)
	r := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: 250 * time.Millisecond})
	t.Cleanup(func() { r.Close() })
	caller := element(t, r, "caller")
	other := client(t, addr)
	slow := pythonPeer(t, other, "slow")
	go func() {
		cmd := slow.next()
		slow.ack(cmd, long.Milliseconds())
		time.Sleep(400 * time.Millisecond)
		slow.respond(cmd, "late", "none", 0, "")
	}()
	response, err := caller.CommandSend(t.Context(), "slow", "x", nil, atom.SendOptions{AckTimeout: long})
	require.NoError(t, err)
	require.Equal(t, "late", response.Data.String())
	require.Equal(t, 1, commandCalls(t, other, "atom.call"))
}

func TestACallWhoseConnectionBreaksIsNotSentAgain(t *testing.T) {
	ctx := t.Context()
	r := client(t, openServer(t))
	caller := element(t, r, "caller")
	peer := pythonPeer(t, r, "peer")
	ended := make(chan error, 1)
	go func() {
		_, err := caller.CommandSend(ctx, "peer", "x", nil, atom.SendOptions{AckTimeout: long})
		ended <- err
	}()
	peer.next()
	ids, err := r.Do(ctx, "client", "list").Text()
	require.NoError(t, err)
	for line := range strings.Lines(ids) {
		if !strings.Contains(line, " cmd=atom.call ") {
			continue
		}
		var id int64
		fmt.Sscanf(line, "id=%d", &id)
		require.NoError(t, r.ClientKillByFilter(ctx, "id", fmt.Sprint(id)).Err())
	}
	require.ErrorIs(t, <-ended, atom.RedisError)
	time.Sleep(20 * time.Millisecond) // longer than the client waits before it tries again
	require.EqualValues(t, 2, r.XLen(ctx, "command:peer").Val())
}

func TestAServerThatHasLostTheCommandsIsServedByThoseOfRedis(t *testing.T) {
	ctx := t.Context()
	addr := openServer(t)
	r := client(t, addr)
	server, caller := element(t, r, "server"), element(t, r, "caller")
	require.NoError(t, server.CommandAdd("echo", echo, atom.CommandOptions{Timeout: long}))
	serve(t, server, 1)
	names, err := caller.Elements(ctx)
	require.NoError(t, err)
	// From now on the server answers like one without the ATOM commands.
	r.AddHook(forgetful{})
	again, err := caller.Elements(ctx)
	require.NoError(t, err)
	require.Equal(t, names, again)
	calls := commandCalls(t, r, "atom.elements")
	_, err = caller.CommandSend(ctx, "server", "echo", "x", atom.SendOptions{AckTimeout: long})
	require.NoError(t, err)
	require.Zero(t, commandCalls(t, r, "atom.call"))
	require.Equal(t, 1, calls)
}

func TestAWorkerWaitsOnAnImpatientClient(t *testing.T) {
	ctx := t.Context()
	addr := openServer(t)
	r := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: 2 * time.Second, MaxRetries: -1})
	t.Cleanup(func() { r.Close() })
	server, caller := element(t, r, "server"), element(t, client(t, addr), "caller")
	require.NoError(t, server.CommandAdd("echo", echo, atom.CommandOptions{Timeout: long}))
	serve(t, server, 1)
	waitFor(t, "the worker to have waited in vain",
		func() bool { return commandCalls(t, client(t, addr), "atom.next") > 1 })
	_, err := caller.CommandSend(ctx, "server", "echo", "x", atom.SendOptions{AckTimeout: long})
	require.NoError(t, err)
}

// The server acknowledges commands for a waiting worker, except those that were added after the wait began.
func TestACommandThatIsAddedLaterIsAcknowledgedWithItsTimeout(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		server := element(t, r, "server")
		serve(t, server, 1)
		p := cPeer(t, r, "c")
		for i := range 20 {
			name := fmt.Sprint("command", i)
			require.NoError(t, server.CommandAdd(name, echo, atom.CommandOptions{Timeout: long + time.Duration(i)*time.Second}))
			ack, response := p.call("server", name, "x")
			require.Equal(t, fmt.Sprint(30000+1000*i), ack["timeout"])
			require.Equal(t, "x", response["data"])
		}
	})
}

func TestAResponseThatCannotBeWrittenIsReportedAndTheLoopGoesOn(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		var log bytes.Buffer
		server, err := atom.New(ctx, r, "server", atom.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		require.NoError(t, server.CommandAdd("spoil", func(_ context.Context, q *atom.Request) (any, error) {
			return nil, r.Set(ctx, "response:"+q.Caller, "no stream", 0).Err()
		}, atom.CommandOptions{Timeout: long}))
		p := cPeer(t, r, "c")
		p.add("command:server", "element", "c", "cmd", "spoil")
		p.add("command:server", "element", "c", "cmd", "spoil") // this cannot even be acknowledged
		p.add("command:server", "element", "d", "cmd", "spoil")
		require.NoError(t, server.CommandAdd("echo", echo, atom.CommandOptions{Timeout: long}))
		p.add("command:server", "element", "other", "cmd", "echo", "data", "x")
		ended := make(chan error, 1)
		go func() { ended <- server.CommandLoop(ctx, atom.CommandLoopOptions{}) }()
		waitFor(t, "the response of the last command", func() bool { return r.XLen(ctx, "response:other").Val() == 2 })
		waitFor(t, "nothing pending", func() bool {
			return pendingCommands(ctx, r) == 0
		})
		require.NoError(t, server.Close(ctx))
		require.ErrorIs(t, <-ended, atom.ErrClosed)
		require.Equal(t, 2, strings.Count(log.String(), "cannot respond to a command"), log.String())
	})
}

// pendingCommands returns how many commands of the element "server" are handed out and not acknowledged, -1 if there is
// no group yet.
func pendingCommands(ctx context.Context, r *redis.Client) int64 {
	p, err := r.XPending(ctx, "command:server", "command_consumer_group:server").Result()
	if err != nil {
		return -1
	}
	return p.Count
}

func TestAWorkerGoesOnOnAServerThatHasLostTheCommands(t *testing.T) {
	ctx := t.Context()
	addr := openServer(t)
	var lost atomic.Bool
	r := redis.NewClient(&redis.Options{Addr: addr,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return losing{c, &lost}, err
		}})
	t.Cleanup(func() { r.Close() })
	other := client(t, addr)
	server := element(t, r, "server")
	served := make(chan string)
	require.NoError(t, server.CommandAdd("note", func(_ context.Context, q *atom.Request) (any, error) {
		served <- q.Data.String()
		return q.Data.Bytes, nil
	}, atom.CommandOptions{Timeout: long}))
	serve(t, server, 1)
	p := cPeer(t, other, "c")
	p.add("command:server", "element", "c", "cmd", "note", "data", "1")
	waitFor(t, "the first command to be handed out", func() bool {
		return pendingCommands(ctx, other) == 1
	})
	lost.Store(true) // before the first response
	require.Equal(t, "1", <-served)
	p.add("command:server", "element", "c", "cmd", "note", "data", "2")
	require.Equal(t, "2", <-served)
	// 5 entries, including the first one of the element
	waitFor(t, "both responses", func() bool { return other.XLen(ctx, "response:c").Val() == 5 })
	waitFor(t, "nothing pending", func() bool {
		return pendingCommands(ctx, other) == 0
	})
	require.Zero(t, commandCalls(t, other, "atom.respond"))
	require.Positive(t, commandCalls(t, other, "xreadgroup"))
}

// losing is a connection whose server, once now is set, no longer knows the ATOM commands that serve other elements.
type losing struct {
	net.Conn
	now *atomic.Bool
}

func (l losing) Write(b []byte) (int, error) {
	if l.now.Load() {
		b = bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("atom.next"), []byte("gone.next")), []byte("atom.respond"),
			[]byte("gone.respond"))
	}
	return l.Conn.Write(b)
}

// forgetful answers ATOM commands as Redis does.
type forgetful struct{ likeRedis }

func (forgetful) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "atom.elements" {
			// A server must send the error, so that the error has the type of a reply.
			return next(ctx, redis.NewCmd(ctx, "unknown.command"))
		}
		return next(ctx, cmd)
	}
}
