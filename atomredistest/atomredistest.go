// Package atomredistest gives tests a Redis server of their own, inside the test:
//
//	func TestVisits(t *testing.T) {
//		s := atomredistest.Run(t)
//		countVisit(s.DB)
//		s.CheckKeys(t, map[string]any{"visits": 1})
//	}
//
// It is the server of package atomredis, with a clock that can be moved and with faults on demand. It runs in
// testing/synctest bubbles.
package atomredistest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/testhook"
	"github.com/atomredis/atomredis/memory"
)

// Server is a server in a test: a memory.DB with methods for tests. Its methods may be called from any goroutine.
type Server struct {
	*memory.DB

	t     testing.TB
	clock *Clock
	hook  *testhook.Hook
}

// Run starts a server in memory without an address: use the methods of its DB, or connect clients with Dial. The server
// logs to the test and is closed when the test ends.
func Run(t testing.TB) *Server {
	t.Helper()
	return RunOptions(t, memory.Options{})
}

// RunAddr is Run with a TCP port on 127.0.0.1; Addr returns its address. Network connections do not work in a
// testing/synctest bubble: use Run and Dial there.
func RunAddr(t testing.TB) *Server {
	t.Helper()
	return RunOptions(t, memory.Options{Addr: "127.0.0.1:0"})
}

// RunOptions is Run with options. A Clock of NewClock is used as it is. With any other Clock, or the system's,
// FastForward and SetTime shift the time that it shows. A Logger replaces the test's log.
func RunOptions(t testing.TB, o memory.Options) *Server {
	t.Helper()
	s := &Server{t: t, hook: testhook.New()}
	switch c := o.Clock.(type) {
	case nil:
		s.clock = newClock(engine.SystemClock{})
	case *Clock:
		s.clock = c
	default:
		s.clock = newClock(c)
	}
	o.Clock = s.clock.of(s.hook)
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	db, err := memory.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	s.DB = db
	t.Cleanup(func() {
		s.hook.Clear()
		defer s.clock.leave(s.hook)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// MustDo is DB.Do for a command that must succeed: an error ends the test with t.Fatal.
func (s *Server) MustDo(t testing.TB, args ...any) memory.Reply {
	t.Helper()
	r, err := s.Do(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return r
}

// Now returns the time of the server.
func (s *Server) Now() time.Time { return s.clock.Now() }

// FastForward moves the server's clock forward by d. Timers fire in the order of their times. When FastForward returns,
// keys have expired, and the replies of blocked clients whose timeout has passed are on the way. Only the server's
// clock moves, not that of clients or SetLatency.
func (s *Server) FastForward(d time.Duration) { s.clock.FastForward(d) }

// SetTime makes the server's clock show now, and continue from there. A later time works like FastForward by the
// difference. At an earlier time nothing happens at once; keys expire and clients time out when the clock shows their
// time.
func (s *Server) SetTime(now time.Time) { s.clock.SetTime(now) }

// FailNext makes the server answer the next n executions of a command with an error reply, such as "LOADING the data
// set", without executing them. A negative n means all until ClearFaults. The command may also be a container or a
// sub-command, such as "CONFIG GET"; an unknown command fails the test. An empty command stands for any except HELLO,
// AUTH, SELECT and CLIENT, with which client libraries open connections. Commands that a script or a custom command
// executes do not fail; those of a transaction fail when EXEC executes them.
func (s *Server) FailNext(n int, command string, reply memory.Error) {
	s.t.Helper()
	if n != 0 {
		s.AddFault(Fault{Command: command, Times: max(n, 0), Reply: reply})
	}
}

// Fault is an error or a delay of commands, for Server.AddFault. Command, Key and Client select the executions; an
// empty field selects all.
type Fault struct {
	// Command is a name as in FailNext.
	Command string
	// Key is a pattern of KEYS that one of the command's keys must match.
	Key string
	// Client is the client's name (CLIENT SETNAME), its id, or its address; "@embedded:0" selects DB.Do and clients of
	// DB.Dial.
	Client string
	// Percent is the share of the selected executions that fail, from 0 to 100, evenly distributed and the same in
	// every run. 0 stands for all.
	Percent float64
	// Times is how often the fault happens; 0 means until ClearFaults.
	Times int
	// Reply is the error reply; the command is then not executed. If it is empty the command is executed.
	Reply memory.Error
	// Latency delays the reply. The replies of a pipeline, and those of EXEC, come together, with the latest of them.
	Latency time.Duration
}

// AddFault adds a fault to those that are active. A fault that cannot happen fails the test.
func (s *Server) AddFault(f Fault) {
	s.t.Helper()
	left := f.Times
	if left == 0 {
		left = -1
	}
	command := ""
	if f.Command != "" {
		var ok bool
		if command, ok = s.hook.Command(f.Command); !ok {
			s.t.Errorf("there is no command %q that could fail", f.Command)
			return
		}
	}
	switch {
	case f.Reply == "" && f.Latency <= 0:
		s.t.Errorf("the fault has neither a Reply nor a Latency")
	case f.Percent < 0 || f.Percent > 100 || f.Times < 0:
		s.t.Errorf("a fault cannot happen to %v percent, %d times", f.Percent, f.Times)
	default:
		s.hook.Add(testhook.Fault{Command: command, Key: f.Key, Client: f.Client, Percent: f.Percent, Left: left,
			Reply: string(f.Reply), Latency: f.Latency})
	}
}

// SetLatency delays replies and published messages by d, on connections and from Do, DoMany and Tx. The replies of a
// pipeline come together. Do, DoMany and Tx return earlier if their context ends. Commands that were executed by then
// stay executed; DoMany and Tx then do not execute the commands after the first. It replaces the former latency.
func (s *Server) SetLatency(d time.Duration) { s.hook.SetLatency(d) }

// DropAfter breaks the next connection to which the server sends anything, after n bytes. With n = 0 the command is
// executed, but its reply is lost.
func (s *Server) DropAfter(n int) { s.hook.DropAfter(n) }

// ClearFaults ends the effects of FailNext, AddFault, SetLatency and DropAfter, and sends delayed replies at once.
func (s *Server) ClearFaults() { s.hook.Clear() }
