package servertest

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/session"
	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/transport"
	"github.com/atomredis/atomredis/server"
)

// Stepped is a server without sockets. Its clients are sessions that are fed directly, each known by a name, and its
// clock moves only when the test says so. All that a command causes has happened when its step returns.
type Stepped struct {
	*server.Server
	Clock *engine.ManualClock

	t        require.TestingT
	settings []string
	log      commandtest.PanicLog
	journal  *journal // nil unless Journalled
	clients  map[string]transport.Session
	order    []string // names, in the order in which they came
}

// NewStepped returns a server in memory whose clock shows 1e12 ms. settings are as for Start. The test calls Finish.
func NewStepped(t require.TestingT, settings ...string) *Stepped {
	s := &Stepped{Clock: engine.NewManualClock(time.UnixMilli(1e12)), t: t, settings: settings,
		clients: map[string]transport.Session{}}
	var err error
	s.Server, err = server.New(memoryConfig(t, settings), slog.New(&s.log), server.Options{Clock: s.Clock, Goroutines: true})
	require.NoError(t, err)
	return s
}

// Journalled has all changes kept, which Finish then repeats on other servers. It has three clients, 0 to 2.
func (s *Stepped) Journalled() *Stepped {
	s.journal = &journal{}
	s.Keyspace().EndReplay(s.journal)
	for i := range 3 {
		s.Client(strconv.Itoa(i))
	}
	return s
}

// Now returns the time in ms.
func (s *Stepped) Now() int64 { return s.Keyspace().Now() }

// Client returns the session of the client with a name, and makes it at the first call.
func (s *Stepped) Client(name string) transport.Session { return s.Open(name, "127.0.0.1:1") }

// Open is Client for one with an address of its own.
func (s *Stepped) Open(name, addr string) transport.Session {
	c := s.clients[name]
	if c == nil {
		c = s.TransportHost().Open(transport.Peer{Addr: addr, Local: "127.0.0.1:2"}, func() {})
		s.clients[name] = c
		s.order = append(s.order, name)
	}
	return c
}

// Connected reports whether there is a client of that name.
func (s *Stepped) Connected(name string) bool { return s.clients[name] != nil }

// Hangup closes a client's connection.
func (s *Stepped) Hangup(name string) {
	s.clients[name].Close()
	delete(s.clients, name)
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == name })
	s.Advance()
}

// Advance lets all clients read what was left for them.
func (s *Stepped) Advance() {
	for _, name := range s.order {
		s.clients[name].Advance(s.Now())
	}
}

// Send has a client send a command, and returns its Reply.
func (s *Stepped) Send(name string, args ...string) string {
	return s.Input(name, commandtest.Request(args...))
}

// Input has a client send bytes, and returns its Reply.
func (s *Stepped) Input(name string, b []byte) string {
	s.Client(name).Input(b, s.Now())
	s.Advance()
	return s.Reply(name)
}

// Reply returns the bytes that have come for a client since they were asked for last, "" if it waits.
func (s *Stepped) Reply(name string) string {
	c := s.Client(name)
	out := string(c.Output())
	c.SetOutput(nil)
	return out
}

// Waits reports whether a client waits in a command that blocks.
func (s *Stepped) Waits(name string) bool {
	info, ok := s.ClientByID(s.Client(name).(*session.Session).ID(), s.Now())
	return ok && info.Blocked
}

// Pass lets so many ms pass.
func (s *Stepped) Pass(ms int) {
	s.Clock.Advance(time.Duration(ms) * time.Millisecond)
	s.Advance()
}

// Step does what a line says: "+1000" lets so many ms pass, and anything else is a command, of client 0 or of the one
// whose digit stands before it with a colon. It returns the client's Reply.
func (s *Stepped) Step(line string) string {
	if ms, ok := strings.CutPrefix(line, "+"); ok {
		n, err := strconv.Atoi(ms)
		require.NoError(s.t, err)
		s.Pass(n)
		return ""
	}
	name := "0"
	if len(line) > 2 && line[1] == ':' {
		name, line = line[:1], line[2:]
	}
	return s.Send(name, strings.Fields(line)...)
}

// bulkLength is what a bulk string begins with.
var bulkLength = regexp.MustCompile(`\$[0-9]+ `)

// OnOneLine returns a reply with spaces for line ends, and without the lengths of bulk strings.
func OnOneLine(reply string) string {
	return bulkLength.ReplaceAllString(strings.TrimSuffix(strings.ReplaceAll(reply, "\r\n", " "), " "), "")
}

// Dump returns all that is stored, a line for each key.
func (s *Stepped) Dump() []string { return commandtest.Dump(s.Keyspace(), s.Now()) }

// Finish closes the clients and the server, and fails the test if a handler has panicked. If the server is Journalled its
// journal must give the same data on other servers.
func (s *Stepped) Finish() {
	if s.journal != nil {
		s.repeat()
	}
	for _, name := range slices.Clone(s.order) {
		s.Hangup(name)
	}
	s.close()
}

func (s *Stepped) close() {
	require.NoError(s.t, s.Close())
	require.Empty(s.t, s.log.Found)
}

// journal keeps the records of changes.
type journal []record

type record struct {
	now      int64
	commands []byte
}

// Append implements engine.Journal.
func (j *journal) Append(now int64, commands []byte) {
	*j = append(*j, record{now, slices.Clone(commands)})
}

// LastRecord returns the commands of the last change, on one line.
func (s *Stepped) LastRecord() string { return string((*s.journal)[len(*s.journal)-1].commands) }

// repeat repeats the journal on new servers, and checks that the data is the same there.
func (s *Stepped) repeat() {
	// That a consumer was there and found nothing is in no record. The streams have other blocks: what happens must not
	// depend on them.
	s.repeatOn(command.FromJournal, 0, `seen \d+ `, "stream-node-max-entries", "7")
	// Followers repeat it later than it was. Only when entries were read is another time then.
	s.repeatOn(command.FromImport, 1e9, `seen \d+ active -?\d+|at \d+,`)
}

// repeatOn repeats the journal, some ms later than it was. Parts of the data that match an expression may be different.
func (s *Stepped) repeatOn(from command.Origin, later int64, differs string, settings ...string) {
	on := NewStepped(s.t, append(slices.Clone(s.settings), settings...)...)
	require.NoError(s.t, on.Keyspace().Restore(engine.StoredState{}))
	repeat := on.Repeat(from)
	for _, r := range *s.journal {
		require.NoError(s.t, repeat(r.now+later, r.commands), "%q", r.commands)
	}
	without := func(b *Stepped) (out []string) {
		what := regexp.MustCompile(differs)
		for _, line := range commandtest.Dump(b.Keyspace(), s.Now()) {
			out = append(out, what.ReplaceAllString(line, ""))
		}
		return out
	}
	require.Equal(s.t, without(s), without(on), fmt.Sprint(from))
	on.close()
}
