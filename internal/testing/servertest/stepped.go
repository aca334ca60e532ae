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
// clock advances only when the test says so. All effects of a command have happened when its step returns.
type Stepped struct {
	*server.Server
	Clock *engine.ManualClock

	t        require.TestingT
	settings []string
	log      commandtest.PanicLog
	journal  *journal // nil unless Journalled
	clients  map[string]transport.Session
	order    []string // names, in the order of connecting
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

// Journalled records all changes, which Finish then repeats on other servers. It makes three clients, 0 to 2.
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

// Client returns the session of the client with a name; the first call makes it.
func (s *Stepped) Client(name string) transport.Session { return s.Open(name, "127.0.0.1:1") }

// Open is Client with an address.
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

// Advance lets all clients read their mail.
func (s *Stepped) Advance() {
	for _, name := range s.order {
		s.clients[name].Advance(s.Now())
	}
}

// Send sends a command as a client, and returns the client's Reply.
func (s *Stepped) Send(name string, args ...string) string {
	return s.Input(name, commandtest.Request(args...))
}

// Input sends bytes as a client, and returns the client's Reply.
func (s *Stepped) Input(name string, b []byte) string {
	s.Client(name).Input(b, s.Now())
	s.Advance()
	return s.Reply(name)
}

// Reply returns the bytes that have come for a client since the last call, "" if it waits.
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

// Pass advances the clock by ms.
func (s *Stepped) Pass(ms int) {
	s.Clock.Advance(time.Duration(ms) * time.Millisecond)
	s.Advance()
}

// Step executes a line: "+1000" advances the clock by 1000 ms; any other line is a command of client 0, or of the
// client whose digit and a colon precede it. It returns the client's Reply.
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

// bulkLength is the header of a bulk string.
var bulkLength = regexp.MustCompile(`\$[0-9]+ `)

// OnOneLine returns a reply with spaces for line ends, and without the lengths of bulk strings.
func OnOneLine(reply string) string {
	return bulkLength.ReplaceAllString(strings.TrimSuffix(strings.ReplaceAll(reply, "\r\n", " "), " "), "")
}

// Dump returns all stored data, a line for each key.
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
	// No record says that a consumer tried to read and found nothing. The streams have blocks of another size, on
	// which the result must not depend.
	s.repeatOn(command.FromJournal, 0, `seen \d+ `, "stream-node-max-entries", "7")
	// Followers repeat the commands later. Only the times at which entries were read differ then.
	s.repeatOn(command.FromImport, 1e9, `seen \d+ active -?\d+|at \d+,`)
}

// repeatOn repeats the journal some ms later. Parts of the data that match the expression differs may be different.
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
