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

// Server is a server in a test. Its DB can do everything that memory.DB can; what Server adds is for tests. Its
// methods may be called from any goroutine.
type Server struct {
	*memory.DB

	t     testing.TB
	clock *Clock
	hook  *testhook.Hook
}

// Run starts a server in memory that has no address: use it with the methods of its DB, or connect clients with Dial.
// It is closed when the test ends, and logs to the test.
func Run(t testing.TB) *Server {
	t.Helper()
	return RunOptions(t, memory.Options{})
}

// RunAddr is Run with a TCP port on 127.0.0.1; Addr tells which. It is no use in a testing/synctest bubble, as no
// network is.
func RunAddr(t testing.TB) *Server {
	t.Helper()
	return RunOptions(t, memory.Options{Addr: "127.0.0.1:0"})
}

// RunOptions is Run with options. A Clock among them that NewClock has returned is used as it is; another one, or the
// system's, is the one that FastForward and SetTime move on from. A Logger takes the place of the test's log.
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

// MustDo is DB.Do for a command that must succeed: otherwise the test fails and ends.
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

// FastForward moves the server's clock forward by d. Timers that fall due fire in their order. When FastForward returns,
// keys have expired and blocked clients whose timeout has passed have their replies on the way. Only the server's clock
// moves, neither that of clients nor that of SetLatency.
func (s *Server) FastForward(d time.Duration) { s.clock.FastForward(d) }

// SetTime makes the server's clock show now, and go on from there. If that is later than it showed, it is FastForward
// by the difference. If it is earlier nothing happens at once; keys expire and clients time out when the clock shows
// their time.
func (s *Server) SetTime(now time.Time) { s.clock.SetTime(now) }

// FailNext has the next n executions of a command answered with an error reply, such as "LOADING the data set", and
// not executed; if n is negative all are until ClearFaults. A command may be one with sub-commands, or one of these,
// such as "CONFIG GET"; one that the server does not have fails the test. An empty command stands for any, but for
// HELLO, AUTH, SELECT and CLIENT, with which client libraries open connections. Commands that a script, or a custom
// command, executes are spared; those of a transaction fail when EXEC executes them.
func (s *Server) FailNext(n int, command string, reply memory.Error) {
	s.t.Helper()
	if n != 0 {
		s.AddFault(Fault{Command: command, Times: max(n, 0), Reply: reply})
	}
}

// Fault is something that goes wrong with executions of commands, for Server.AddFault. Fields that are empty do not
// narrow down which.
type Fault struct {
	// Command is as for FailNext.
	Command string
	// Key is a pattern as of KEYS that one of the keys of the command must match.
	Key string
	// Client is the client's name (CLIENT SETNAME), its id, or its address; "@embedded:0" are DB.Do and clients of
	// DB.Dial.
	Client string
	// Percent is how many of the executions go wrong for which the rest holds, evenly distributed and the same in every
	// run. 0 stands for all.
	Percent float64
	// Times is how often it goes wrong; 0 stands for always, until ClearFaults.
	Times int
	// Reply is the error reply that takes the place of the execution. If it is empty the command is executed.
	Reply memory.Error
	// Latency is how late the reply comes. Replies of a pipeline, and those of EXEC, come together, as late as the last
	// of them.
	Latency time.Duration
}

// AddFault has something go wrong from now on, beside what does already. A fault that cannot happen fails the test.
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

// SetLatency makes the replies to commands, and messages, come d late: on connections, where the replies of a
// pipeline come together, and from Do, DoMany and Tx, unless their context ends before. What has been executed by
// then stays done; of several commands in DoMany and Tx, those that follow the first are not executed if the context
// ends. It replaces the latency that was set before.
func (s *Server) SetLatency(d time.Duration) { s.hook.SetLatency(d) }

// DropAfter breaks one connection, the first to which the server sends anything from now on: it is closed when n more
// bytes have been sent to it. With 0 a command has been executed, but its reply is lost.
func (s *Server) DropAfter(n int) { s.hook.DropAfter(n) }

// ClearFaults ends what FailNext, AddFault, SetLatency and DropAfter have begun; replies that are late come now.
func (s *Server) ClearFaults() { s.hook.Clear() }
