package atom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/atom"
)

func echo(_ context.Context, r *atom.Request) (any, error) { return r.Data.Bytes, nil }

func TestCommands(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		server, caller := element(t, r, "server"), element(t, r, "caller")
		require.NoError(t, server.CommandAdd("echo", echo, atom.CommandOptions{Timeout: long})) // long: some data is large
		type point struct{ X, Y int }
		require.NoError(t, server.CommandAdd("swap", func(_ context.Context, r *atom.Request) (any, error) {
			var p point
			err := r.Data.Decode(&p)
			return point{p.Y, p.X}, err
		}, atom.CommandOptions{Serialization: atom.Msgpack}))
		require.NoError(t, server.CommandAdd("raw", func(_ context.Context, r *atom.Request) (any, error) {
			return r.Raw["more"], nil
		}, atom.CommandOptions{Timeout: long}))
		require.NoError(t, server.CommandAdd("who", func(_ context.Context, r *atom.Request) (any, error) {
			return r.Caller + " calls " + r.Name + " " + r.ID, nil
		}, atom.CommandOptions{Timeout: long}))
		serve(t, server, 1)

		for _, data := range [][]byte{nil, {}, []byte("\x00\r\n\xff"), bytes.Repeat([]byte{0}, 8<<20)} {
			response, err := caller.CommandSend(ctx, "server", "echo", data, atom.SendOptions{AckTimeout: long})
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, response.Data.Bytes))
			require.True(t, response.Data.Exists())
		}
		response, err := caller.CommandSend(ctx, "server", "swap", point{1, 2}, atom.SendOptions{Serialization: atom.Msgpack, AckTimeout: long})
		require.NoError(t, err)
		var p point
		require.NoError(t, response.Data.Decode(&p), "the response names its serialization")
		require.Equal(t, point{2, 1}, p)
		response, err = caller.CommandSend(ctx, "server", "raw", nil,
			atom.SendOptions{Raw: map[string][]byte{"more": []byte("x")}, AckTimeout: long})
		require.NoError(t, err)
		require.Equal(t, "x", response.Data.String())
		_, err = caller.CommandSend(ctx, "server", "raw", nil, atom.SendOptions{Raw: map[string][]byte{"cmd": nil}})
		require.ErrorIs(t, err, atom.InternalError)
		response, err = caller.CommandSend(ctx, "server", "who", nil, atom.SendOptions{AckTimeout: long})
		require.NoError(t, err)
		require.Equal(t, "caller calls who "+response.ID, response.Data.String())
		_, err = server.CommandSend(ctx, "server", "echo", "myself", atom.SendOptions{AckTimeout: long})
		require.NoError(t, err)
		require.Zero(t, r.XPending(ctx, "command:server", "command_consumer_group:server").Val().Count)
	})
}

// Field order of the packets: command element, cmd, data; acknowledgement element, cmd_id, timeout; response data,
// ser, err_code, err_str, cmd_id, element, cmd.
func TestPackets(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		other := client(t, r.Options().Addr)
		fromServer := record(other)
		server := element(t, other, "server")
		require.NoError(t, server.CommandAdd("echo", echo, atom.CommandOptions{Timeout: 1500 * time.Millisecond}))
		fromCaller := record(r)
		caller := element(t, r, "caller")
		fromCaller.take()
		fromServer.take()
		done := make(chan error, 1)
		go func() { done <- server.CommandLoop(ctx, atom.CommandLoopOptions{Loops: 1}) }()
		response, err := caller.CommandSend(ctx, "server", "echo", "hi", atom.SendOptions{AckTimeout: long})
		require.NoError(t, err)
		require.NoError(t, <-done)
		id := response.ID
		if !native(r) {
			require.Contains(t, fromCaller.take(), "XADD command:server maxlen ~ 1024 * element caller cmd echo data hi")
		}
		sentAs, err := r.Do(ctx, "xrange", "command:server", id, id).Slice()
		require.NoError(t, err)
		require.Equal(t, []any{[]any{id, []any{"element", "caller", "cmd", "echo", "data", "hi"}}}, sentAs)
		entries, err := r.Do(ctx, "xrange", "response:caller", "-", "+").Slice()
		require.NoError(t, err)
		require.Len(t, entries, 3)
		require.Equal(t, []any{"element", "server", "cmd_id", id, "timeout", "1500"}, entries[1].([]any)[1])
		require.Equal(t, []any{"data", "hi", "ser", "none", "err_code", "0", "err_str", "", "cmd_id", id, "element",
			"server", "cmd", "echo"},
			entries[2].([]any)[1])
		sent := slices.DeleteFunc(fromServer.take(), func(cmd string) bool {
			return strings.HasPrefix(cmd, "XREADGROUP") || strings.HasPrefix(cmd, "ATOM.NEXT")
		})
		require.Regexp(t, `^XGROUP create command:server command_consumer_group:server \d+-\d+ mkstream$`, sent[0])
		if native(r) {
			require.Equal(t, []string{"ATOM.RESPOND server " + id + " caller cmd echo data hi ser none err 0 "}, sent[1:2])
		} else {
			require.Equal(t, []string{
				"XADD response:caller maxlen ~ 1024 * element server cmd_id " + id + " timeout 1500",
				"XADD response:caller maxlen ~ 1024 * data hi ser none err_code 0 err_str  cmd_id " + id +
					" element server cmd echo",
				"XACK command:server command_consumer_group:server " + id,
			}, sent[1:4])
		}
		require.Len(t, r.XInfoConsumers(ctx, "command:server", "command_consumer_group:server").Val(), 0,
			"the worker's consumer is gone")
	})
}

func TestAHandlerThatPanicsAnswersCode7AndTheLoopGoesOn(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		var log bytes.Buffer
		server, err := atom.New(ctx, r, "server", atom.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		caller := element(t, r, "caller")
		fails := map[string]atom.Handler{
			"panic": func(context.Context, *atom.Request) (any, error) { panic("oh no") },
			"nil":   func(context.Context, *atom.Request) (any, error) { var missing *atom.Request; return *missing, nil },
			"error": func(context.Context, *atom.Request) (any, error) { return "partial", errors.New("went wrong") },
			"user": func(context.Context, *atom.Request) (any, error) {
				return "extra", &atom.UserError{Code: 3, Message: "mine"}
			},
			"encode": func(context.Context, *atom.Request) (any, error) { return make(chan int), nil },
			"decode": func(_ context.Context, r *atom.Request) (any, error) { var n int; return nil, r.Data.Decode(&n) },
		}
		for name, handler := range fails {
			require.NoError(t, server.CommandAdd(name, handler, atom.CommandOptions{Timeout: long}))
		}
		require.NoError(t, server.CommandAdd("echo", echo, atom.CommandOptions{Timeout: long}))
		loop := make(chan error, 1)
		go func() { loop <- server.CommandLoop(ctx, atom.CommandLoopOptions{}) }()
		for _, want := range []struct {
			cmd, data, text string
			code            atom.Code
		}{
			{"panic", "", "oh no", atom.CallbackFailed},
			{"nil", "", "nil pointer", atom.CallbackFailed},
			{"error", "partial", "went wrong", atom.CallbackFailed},
			{"user", "extra", "mine", atom.UserErrors + 3},
			{"encode", "", "chan int needs a serialization", atom.SerializationError},
			{"decode", "", "invalid syntax", atom.CallbackFailed},
			{"missing", "", "missing", atom.UnsupportedCommand},
		} {
			response, err := caller.CommandSend(ctx, "server", want.cmd, "x", atom.SendOptions{AckTimeout: long})
			require.ErrorIs(t, err, want.code, want.cmd)
			var failure *atom.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, want.code, failure.Code)
			require.ErrorContains(t, err, want.text)
			require.Equal(t, want.code, response.Code)
			require.Equal(t, want.data, response.Data.String())
			_, err = caller.CommandSend(ctx, "server", "echo", "still there", atom.SendOptions{AckTimeout: long})
			require.NoError(t, err)
		}
		require.NoError(t, server.Close(ctx))
		require.ErrorIs(t, <-loop, atom.ErrClosed)
		require.Contains(t, log.String(), "command_test.go", "the stack is in the log")
	})
}

// Error 3 comes when the wait for an acknowledgement times out, after 1000 ms by default; error 4 comes after the
// timeout in the acknowledgement.
func TestAnElementThatNeverAnswers(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		caller := element(t, r, "caller")
		send := func(o atom.SendOptions, code atom.Code, atLeast time.Duration) {
			began := time.Now()
			_, err := caller.CommandSend(ctx, "deaf", "x", nil, o)
			took := time.Since(began)
			require.ErrorIs(t, err, code)
			require.GreaterOrEqual(t, took, atLeast-time.Millisecond, "servers wait until the clock's whole millisecond")
			require.Less(t, took, atLeast+time.Minute)
		}
		send(atom.SendOptions{}, atom.NoAck, time.Second)
		send(atom.SendOptions{AckTimeout: 50 * time.Millisecond}, atom.NoAck, 50*time.Millisecond)
		deaf := pythonPeer(t, r, "deaf")
		acked := make(chan struct{})
		go func() {
			defer close(acked)
			deaf.next() // the only command since the group was made
		}()
		send(atom.SendOptions{AckTimeout: 50 * time.Millisecond}, atom.NoAck, 50*time.Millisecond)
		<-acked
		go func() { deaf.ack(deaf.next(), 150) }()
		send(atom.SendOptions{AckTimeout: long}, atom.NoResponse, 150*time.Millisecond)
		// A late answer to an earlier command has no effect.
		go func() {
			cmd := deaf.next()
			deaf.add("response:caller", "element", "deaf", "cmd_id", "1-1", "timeout", "1")
			deaf.add("response:caller", "element", "stranger", "cmd_id", cmd.ID, "timeout", "1")
			deaf.add("response:caller", "unrelated", "")
			deaf.ack(cmd, long.Milliseconds())
			deaf.ack(cmd, 1) // only the first acknowledgement counts
			deaf.respond(cmd, "late", "none", 0, "")
		}()
		response, err := caller.CommandSend(ctx, "deaf", "x", nil, atom.SendOptions{AckTimeout: long})
		require.NoError(t, err)
		require.Equal(t, "late", response.Data.String())
	})
}

func TestCommandSendToPythonAndCElements(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		caller := element(t, r, "caller")
		python := pythonPeer(t, r, "python")
		answer := func(respond func(cmd redis.XMessage)) (*atom.Response, error) {
			go func() { respond(python.next()) }()
			return caller.CommandSend(ctx, "python", "cmd", map[string]int{"a": 1},
				atom.SendOptions{Serialization: atom.Msgpack, AckTimeout: long})
		}
		for name, test := range map[string]struct {
			respond func(cmd redis.XMessage)
			code    atom.Code
			data    any
		}{
			"Python: data, ser, err_code, err_str, cmd_id, element, cmd": {func(cmd redis.XMessage) {
				require.Equal(t, map[string]any{"element": "caller", "cmd": "cmd", "data": "\x81\xa1a\x01"}, cmd.Values)
				python.ack(cmd, 30000)
				python.respond(cmd, "\xa2hi", "msgpack", 0, "")
			}, atom.NoError, "hi"},
			"Python: ser none": {func(cmd redis.XMessage) {
				python.ack(cmd, 30000)
				python.respond(cmd, "hi", "none", 0, "")
			}, atom.NoError, []byte("hi")},
			"internal (1)": {func(cmd redis.XMessage) {
				python.ack(cmd, 30000)
				python.respond(cmd, "", "none", 1, "encountered an internal exception")
			}, atom.InternalError, []byte{}},
			"unsupported (6)": {func(cmd redis.XMessage) {
				python.ack(cmd, 1000)
				python.respond(cmd, "", "none", 6, "Unsupported command.")
			}, atom.UnsupportedCommand, []byte{}},
			"an error without an acknowledgement, as in the specification": {func(cmd redis.XMessage) {
				python.respond(cmd, "", "none", 6, "")
			}, atom.UnsupportedCommand, []byte{}},
			"user error 1000 + n": {func(cmd redis.XMessage) {
				python.ack(cmd, 30000)
				python.respond(cmd, "", "none", 1005, "")
			}, 1005, []byte{}},
			"C: element, cmd_id, err_code, cmd, err_str, data": {func(cmd redis.XMessage) {
				python.ack(cmd, 30000)
				python.add("response:caller", "element", "python", "cmd_id", cmd.ID, "err_code", "0", "cmd", "cmd", "data", "\x05")
			}, atom.NoError, int64(5)},
			"C: no data": {func(cmd redis.XMessage) {
				python.ack(cmd, 30000)
				python.add("response:caller", "element", "python", "cmd_id", cmd.ID, "err_code", "5")
			}, atom.InvalidCommand, nil},
			"a timeout beyond all numbers of nanoseconds": {func(cmd redis.XMessage) {
				python.ack(cmd, 999999999999999999)
				python.respond(cmd, "", "none", 0, "")
			}, atom.NoError, []byte{}},
			"a timeout of 0 is without end": {func(cmd redis.XMessage) {
				python.ack(cmd, 0)
				python.respond(cmd, "", "none", 0, "")
			}, atom.NoError, []byte{}},
			"damaged: timeout": {func(cmd redis.XMessage) {
				python.add("response:caller", "element", "python", "cmd_id", cmd.ID, "timeout", "soon")
			}, atom.RedisError, nil},
			"damaged: err_code": {func(cmd redis.XMessage) {
				python.add("response:caller", "element", "python", "cmd_id", cmd.ID, "err_code", "x")
			}, atom.InternalError, nil},
		} {
			t.Run(name, func(t *testing.T) {
				response, err := answer(test.respond)
				if test.code != atom.NoError {
					require.ErrorIs(t, err, test.code)
				} else {
					require.NoError(t, err)
				}
				if response != nil && response.Data.Exists() {
					value, err := response.Data.Any()
					require.NoError(t, err)
					require.Equal(t, test.data, value)
				} else {
					require.Nil(t, test.data)
				}
			})
		}
		t.Run("block false waits for the acknowledgement only", func(t *testing.T) {
			go func() { python.ack(python.next(), 1) }()
			response, err := caller.CommandSend(ctx, "python", "cmd", nil, atom.SendOptions{AckOnly: true, AckTimeout: long})
			require.NoError(t, err)
			require.NotEmpty(t, response.ID)
			require.False(t, response.Data.Exists())
		})
	})
}

func TestCommandsOfPythonAndCElements(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		server := element(t, r, "server")
		require.NoError(t, server.CommandAdd("echo", echo, atom.CommandOptions{Timeout: 2 * time.Second}))
		require.NoError(t, server.CommandAdd("half", func(_ context.Context, r *atom.Request) (any, error) {
			var n float64
			err := r.Data.Decode(&n)
			return n / 2, err
		}, atom.CommandOptions{Serialization: atom.Msgpack}))
		serve(t, server, 2)
		for _, p := range []*peer{pythonPeer(t, r, "python"), cPeer(t, r, "c")} {
			ack, response := p.call("server", "echo", "\x00bin")
			require.Equal(t, "2000", ack["timeout"])
			require.Equal(t, map[string]any{"data": "\x00bin", "ser": "none", "err_code": "0", "err_str": "",
				"cmd_id":  ack["cmd_id"],
				"element": "server", "cmd": "echo"}, response)
			_, response = p.call("server", "half", "\x05")
			require.Equal(t, "msgpack", response["ser"])
			require.Equal(t, "\xcb\x40\x04\x00\x00\x00\x00\x00\x00", response["data"])
			ack, response = p.call("server", "missing", "")
			require.Equal(t, "1000", ack["timeout"], "unsupported commands are acknowledged with 1000")
			require.Equal(t, "6", response["err_code"])
		}
		t.Run("packets that lack something", func(t *testing.T) {
			p := pythonPeer(t, r, "broken")
			p.add("command:server", "cmd", "echo", "data", "nobody to answer to")
			p.add("command:server", "nonsense", "")
			p.add("command:server", "element", "broken", "data", "no command")
			read := func() map[string]any {
				found, err := r.XRead(t.Context(), &redis.XReadArgs{Streams: []string{"response:broken", p.last}, Count: 1,
					Block: long}).Result()
				require.NoError(t, err)
				p.last = found[0].Messages[0].ID
				return found[0].Messages[0].Values
			}
			require.Equal(t, "1000", read()["timeout"])
			require.Equal(t, "5", read()["err_code"], "invalid command packet")
			id := p.add("command:server", "element", "broken", "cmd", "echo") // the field data may be missing
			require.Equal(t, id, read()["cmd_id"])
			require.Equal(t, "0", read()["err_code"])
			waitFor(t, "nothing pending", func() bool {
				return pendingCommands(t.Context(), r) == 0
			})
		})
	})
}

// Elements of one name share the consumer group command_consumer_group:<element>, so each command is served once.
func TestWorkersShareCommands(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		const calls = 200
		var mu sync.Mutex
		served := map[string]int{}
		atOnce, peak := 0, 0
		handler := func(_ context.Context, r *atom.Request) (any, error) {
			mu.Lock()
			served[r.Data.String()]++
			atOnce++
			peak = max(peak, atOnce)
			mu.Unlock()
			time.Sleep(time.Millisecond) // some work
			mu.Lock()
			atOnce--
			mu.Unlock()
			return r.Data.Bytes, nil
		}
		for range 2 {
			server := element(t, r, "server")
			require.NoError(t, server.CommandAdd("work", handler, atom.CommandOptions{Timeout: long}))
			serve(t, server, 4)
		}
		caller := element(t, r, "caller")
		var callers sync.WaitGroup
		errs := make(chan error, calls)
		for i := range calls {
			callers.Go(func() {
				response, err := caller.CommandSend(ctx, "server", "work", fmt.Sprint(i), atom.SendOptions{AckTimeout: long})
				if err == nil && response.Data.String() != fmt.Sprint(i) {
					err = fmt.Errorf("call %d got the answer %s", i, response.Data)
				}
				errs <- err
			})
		}
		callers.Wait()
		close(errs)
		for err := range errs {
			require.NoError(t, err)
		}
		require.Len(t, served, calls)
		for data, n := range served {
			require.Equal(t, 1, n, data)
		}
		require.Greater(t, peak, 1)
	})
}

func TestCommandLoopServesWhatWasSentBeforeItBegan(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		server := element(t, r, "server")
		var got []string
		require.NoError(t, server.CommandAdd("note", func(_ context.Context, r *atom.Request) (any, error) {
			got = append(got, r.Data.String())
			return nil, nil
		}, atom.CommandOptions{}))
		p := cPeer(t, r, "c")
		for i := range 3 {
			p.add("command:server", "element", "c", "cmd", "note", "data", fmt.Sprint(i))
		}
		require.NoError(t, server.CommandLoop(ctx, atom.CommandLoopOptions{Loops: 2}))
		require.Equal(t, []string{"0", "1"}, got)
		require.NoError(t, server.CommandLoop(ctx, atom.CommandLoopOptions{Loops: 1}))
		require.Equal(t, []string{"0", "1", "2"}, got)
		require.ErrorIs(t, server.CommandLoop(ctx, atom.CommandLoopOptions{Loops: -1}), atom.InternalError)
	})
}

// If the key is removed while XREADGROUP blocks, the reply is UNBLOCKED or NOGROUP, and the loop ends with this error.
func TestCommandLoopEndsWhenItsStreamGoes(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		server := element(t, r, "server")
		done := make(chan error, 1)
		go func() { done <- server.CommandLoop(t.Context(), atom.CommandLoopOptions{Workers: 3}) }()
		waitFor(t, "the group", func() bool { return len(r.XInfoGroups(t.Context(), "command:server").Val()) == 1 })
		require.EqualValues(t, 1, r.Unlink(t.Context(), "command:server").Val())
		require.ErrorIs(t, <-done, atom.RedisError)
	})
}

func TestCommandAddRefusals(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		e := element(t, r, "server")
		for _, name := range []string{"", "version", "healthcheck", "command_list"} {
			require.ErrorIs(t, e.CommandAdd(name, echo, atom.CommandOptions{}), atom.InternalError)
		}
		require.ErrorIs(t, e.CommandAdd("x", nil, atom.CommandOptions{}), atom.InternalError)
		require.ErrorIs(t, e.CommandAdd("x", echo, atom.CommandOptions{Serialization: "arrow"}), atom.SerializationError)
		for _, to := range [][2]string{{"", "x"}, {"x", ""}} {
			_, err := e.CommandSend(t.Context(), to[0], to[1], nil, atom.SendOptions{})
			require.ErrorIs(t, err, atom.InternalError)
		}
		_, err := e.CommandSend(t.Context(), "x", "x", []int{1}, atom.SendOptions{})
		require.ErrorIs(t, err, atom.SerializationError)
	})
}

func TestCommandsWithStrangeNames(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		for _, name := range strange {
			server, caller := element(t, r, name), element(t, r, name+name)
			require.NoError(t, server.CommandAdd(name, echo, atom.CommandOptions{Timeout: long}))
			serve(t, server, 1)
			response, err := caller.CommandSend(t.Context(), name, name, name, atom.SendOptions{AckTimeout: long})
			require.NoError(t, err)
			require.Equal(t, name, response.Data.String())
		}
	})
}

// version, healthcheck and command_list work with Python elements in both directions.
func TestReservedCommands(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		server, caller := element(t, r, "server"), element(t, r, "caller")
		require.NoError(t, server.CommandAdd("b", echo, atom.CommandOptions{}))
		require.NoError(t, server.CommandAdd("a", echo, atom.CommandOptions{}))
		serve(t, server, 1)
		python := pythonPeer(t, r, "python")
		t.Run("version: msgpack map of language and a float", func(t *testing.T) {
			_, response := python.call("server", "version", "")
			require.Equal(t, "msgpack", response["ser"])
			require.Equal(t, "\x82\xa8language\xa2Go\xa7version\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00", response["data"])
			info, err := caller.ElementVersion(ctx, "server")
			require.NoError(t, err)
			require.Equal(t, atom.VersionInfo{Language: "Go", Version: 1}, info)
			go func() {
				cmd := python.next()
				python.ack(cmd, 30000)
				python.respond(cmd, "\x82\xa8language\xa6Python\xa7version\xcb\x40\x05\x99\x99\x99\x99\x99\x9a", "msgpack", 0, "")
			}()
			info, err = caller.ElementVersion(ctx, "python")
			require.NoError(t, err)
			require.Equal(t, atom.VersionInfo{Language: "Python", Version: 2.7}, info)
		})
		t.Run("command_list: msgpack list of the names that are not reserved", func(t *testing.T) {
			_, response := python.call("server", "command_list", "")
			require.Equal(t, "\x92\xa1a\xa1b", response["data"])
			names, err := caller.CommandList(ctx, "server")
			require.NoError(t, err)
			require.Equal(t, []string{"a", "b"}, names)
		})
		t.Run("healthcheck: empty data, err_code 0", func(t *testing.T) {
			_, response := python.call("server", "healthcheck", "")
			require.Equal(t, "", response["data"])
			require.Equal(t, "0", response["err_code"])
			require.NoError(t, caller.Healthcheck(ctx, "server"))
			server.HealthcheckSet(func(context.Context) error { return &atom.UserError{Code: 2, Message: "warming up"} })
			_, response = python.call("server", "healthcheck", "")
			require.Equal(t, "1002", response["err_code"])
			require.Equal(t, "warming up", response["err_str"])
			require.ErrorContains(t, caller.Healthcheck(ctx, "server"), "warming up")
		})
	})
}

func TestWaitForElementsHealthy(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		caller := element(t, r, "caller")
		short, cancel := context.WithTimeout(ctx, 1200*time.Millisecond)
		defer cancel()
		err := caller.WaitForElementsHealthy(short, []string{"server"}, time.Millisecond)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `"server"`, "it says who was not healthy")

		server := element(t, r, "server")
		asked := 0
		server.HealthcheckSet(func(context.Context) error {
			if asked++; asked < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		serve(t, server, 1)
		require.NoError(t, caller.WaitForElementsHealthy(ctx, []string{"server"}, time.Millisecond))
		require.Equal(t, 3, asked)

		t.Run("a C element that runs no command loop", func(t *testing.T) {
			cPeer(t, r, "c")
			require.NoError(t, caller.WaitForElementsHealthy(ctx, []string{"server", "c"}, time.Millisecond))
		})
		t.Run("a C element that has no reserved commands", func(t *testing.T) {
			p := pythonPeer(t, r, "c2")
			go func() {
				cmd := p.next()
				p.ack(cmd, 30000)
				p.respond(cmd, "", "none", 6, "")
			}()
			require.NoError(t, caller.WaitForElementsHealthy(ctx, []string{"c2"}, time.Millisecond))
		})
		t.Run("a Python element before 0.2", func(t *testing.T) {
			p := pythonPeer(t, r, "old")
			go func() {
				cmd := p.next()
				p.ack(cmd, 30000)
				p.respond(cmd, "\x82\xa8language\xa6Python\xa7version\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a", "msgpack", 0, "")
			}()
			require.NoError(t, caller.WaitForElementsHealthy(ctx, []string{"old"}, time.Millisecond))
		})
	})
}

func TestElementDiscovery(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		e := element(t, r, "camera")
		names := []string{"camera"}
		for _, name := range strange {
			element(t, r, name)
			names = append(names, name)
		}
		cPeer(t, r, "c")
		names = append(names, "c")
		require.NoError(t, r.XAdd(ctx, &redis.XAddArgs{Stream: "response:half", Values: []string{"a", "b"}}).Err())
		require.NoError(t, r.XAdd(ctx, &redis.XAddArgs{Stream: "command:other half", Values: []string{"a", "b"}}).Err())
		found, err := e.Elements(ctx)
		require.NoError(t, err)
		slices.Sort(names)
		require.Equal(t, names, found)
	})
}

func TestStreamDiscovery(t *testing.T) {
	onEachServer(t, func(t *testing.T, r *redis.Client) {
		ctx := t.Context()
		for _, name := range append(strange, "cam", "camera") {
			write(t, element(t, r, name), name+"1", map[string]any{"x": 1})
			write(t, element(t, r, name), name+"2", map[string]any{"x": 1})
		}
		e := element(t, r, "reader")
		var all []atom.StreamName
		for _, name := range append(strange, "cam", "camera") {
			want := []atom.StreamName{{name, name + "1"}, {name, name + "2"}}
			found, err := e.Streams(ctx, name)
			require.NoError(t, err)
			require.Equal(t, want, found, "those of this element only")
			all = append(all, want...)
		}
		r.XAdd(ctx, &redis.XAddArgs{Stream: "stream:gone:a:b", Values: []string{"a", "b"}})
		all = append(all, atom.StreamName{"gone", "a:b"})
		found, err := e.Streams(ctx, "")
		require.NoError(t, err)
		require.ElementsMatch(t, all, found)
		none, err := e.Streams(ctx, "nobody")
		require.NoError(t, err)
		require.Empty(t, none)
	})
}
