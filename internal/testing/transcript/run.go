// Running a transcript against a server: replaying or recording it.

package transcript

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// Dialer makes a new connection to the server under test.
type Dialer func() (net.Conn, error)

// T is the part of testing.TB that Run needs.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Timing of a run. The settle times matter only where a transcript expects that nothing happens; elsewhere a run
// takes only the server's time.
const (
	replyTimeout = 30 * time.Second
	// blockTimeout is how long a blocking command may take until the server counts its client as blocked.
	blockTimeout = 300 * time.Millisecond
	// quietTime is the silence after which the recorder believes that no more replies come.
	quietTime = 40 * time.Millisecond
	// maxFailures ends a run whose replies have probably got out of step with the commands.
	maxFailures = 20
)

// newest is newer than every release.
var newest = Release{Major: math.MaxInt}

// Run replays the transcript in a file and reports every difference with file and line.
func Run(t T, dial Dialer, file string) {
	t.Helper()
	transcript, err := ParseFile(file)
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	r := &runner{dial: dial, transcript: transcript, t: t}
	if err := r.run(); err != nil {
		t.Errorf("%v", err)
	}
}

// Record runs the commands of a transcript and replaces its replies by the received ones. It keeps comments, and
// markers wherever they still apply.
func Record(dial Dialer, transcript *Transcript) error {
	r := &runner{dial: dial, transcript: transcript, record: true}
	return r.run()
}

// RecordSince is Record with a server that replies as a release does: it keeps the replies of older releases, and
// adds those that are different.
func RecordSince(dial Dialer, transcript *Transcript, release Release) error {
	r := &runner{dial: dial, transcript: transcript, record: true, since: release}
	return r.run()
}

// runner is one run of one transcript.
type runner struct {
	dial       Dialer
	transcript *Transcript
	record     bool
	// since is the release whose replies are added where they are different; none if zero.
	since    Release
	t        T
	failures int

	control *Conn
	// server is the release of the server under test.
	server Release
	conns  map[string]*Conn
	vars   map[string]string
	// blocked holds the connections that wait for a reply.
	blocked map[string]bool
	// chatty holds the connections on which more than one reply may follow a command.
	chatty map[string]bool
}

func (r *runner) run() error {
	r.vars = map[string]string{}
	defer r.closeAll()
	if err := r.fresh(); err != nil {
		return fmt.Errorf("%s: %w", r.transcript.Name, err)
	}
	var err error
	if r.server, err = releaseOf(r.control); err != nil {
		return fmt.Errorf("%s: %w", r.transcript.Name, err)
	}
	if r.server.before(r.transcript.Since) {
		return nil
	}
	for _, s := range r.transcript.Steps {
		if err := r.step(s); err != nil {
			return fmt.Errorf("%s:%d: %s\n%w", r.transcript.Name, s.Line, s.Source, err)
		}
		if r.failures >= maxFailures {
			return fmt.Errorf("%s: given up after %d differences", r.transcript.Name, r.failures)
		}
	}
	return r.checkSilence()
}

// fresh empties the server and closes all connections.
func (r *runner) fresh() error {
	r.closeAll()
	r.conns, r.blocked, r.chatty = map[string]*Conn{}, map[string]bool{}, map[string]bool{}
	nc, err := r.dial()
	if err != nil {
		return err
	}
	r.control = NewConn(nc)
	for _, cmd := range []string{"FLUSHALL", "SCRIPT FLUSH", "CONFIG SET notify-keyspace-events "} {
		v, err := r.control.Do(replyTimeout, strings.Split(cmd, " ")...)
		if err != nil {
			return err
		}
		if v.Kind != Simple {
			return fmt.Errorf("%s: %s", cmd, v)
		}
	}
	return nil
}

func (r *runner) closeAll() {
	for _, c := range r.conns {
		c.Close()
	}
	if r.control != nil {
		r.control.Close()
	}
}

func (r *runner) conn(name string) (*Conn, error) {
	if c := r.conns[name]; c != nil {
		return c, nil
	}
	nc, err := r.dial()
	if err != nil {
		return nil, err
	}
	r.conns[name] = NewConn(nc)
	return r.conns[name], nil
}

func (r *runner) step(s *Step) error {
	switch s.Action {
	case From:
		return nil
	case Fresh:
		return r.fresh()
	case Sleep:
		time.Sleep(s.Wait)
		return nil
	}
	c, err := r.conn(s.Conn)
	if err != nil {
		return err
	}
	switch s.Action {
	case Hangup:
		delete(r.conns, s.Conn)
		delete(r.blocked, s.Conn)
		return c.Close()
	case Send:
		words := s.words(r.vars)
		if mayBeChatty(words) {
			r.chatty[s.Conn] = true
		}
		c.Append(words...)
		err = c.Flush()
	case SendRaw:
		c.AppendRaw(s.Raw)
		err = c.Flush()
	}
	if err != nil && s.Action == Send {
		return err
	}
	if s.repliesOf(r.server).Pending {
		return r.awaitBlocked(s, c)
	}
	delete(r.blocked, s.Conn)
	if r.record {
		return r.refresh(s, c)
	}
	return r.compare(s, c)
}

// mayBeChatty tells the recorder where to listen for more than one reply.
func mayBeChatty(words []string) bool {
	switch name := strings.ToUpper(words[0]); name {
	case "HELLO", "CLIENT", "EXEC":
		return true
	default:
		return strings.HasSuffix(name, "SUBSCRIBE")
	}
}

// awaitBlocked waits until the connection's command blocks, so that later commands on other connections come after
// it.
func (r *runner) awaitBlocked(s *Step, c *Conn) error {
	r.blocked[s.Conn] = true
	for end := time.Now().Add(blockTimeout); time.Now().Before(end); {
		if c.Ready(time.Millisecond) {
			v, err := c.Read(replyTimeout)
			if err != nil {
				return err
			}
			r.fail(s, pendingMark, v.String())
			return r.onlyReplaying("the command did not block, it replied " + v.String())
		}
		n, err := BlockedClients(r.control)
		if err != nil {
			return err
		}
		if n >= len(r.blocked) {
			return nil
		}
	}
	return nil
}

// releaseOf asks a server for its release. An atomredis counts as the newest release.
func releaseOf(c *Conn) (Release, error) {
	info, err := c.Do(replyTimeout, "INFO", "server")
	if err != nil {
		return Release{}, err
	}
	var release Release
	for line := range strings.Lines(info.Text) {
		if strings.HasPrefix(line, "atomredis_version:") {
			return newest, nil
		}
		if version, ok := strings.CutPrefix(line, "redis_version:"); ok {
			if release, err = ParseRelease(version); err != nil {
				return Release{}, err
			}
		}
	}
	return release, nil
}

// BlockedClients asks the server how many clients wait in a blocking command.
func BlockedClients(c *Conn) (int, error) {
	info, err := c.Do(replyTimeout, "INFO", "clients")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info.Text) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "blocked_clients:"); ok {
			return strconv.Atoi(n)
		}
	}
	return 0, fmt.Errorf("INFO clients has no blocked_clients: %s", info)
}

func (r *runner) refresh(s *Step, c *Conn) error {
	var got []Value
	more := s.Action != Send || r.chatty[s.Conn]
	for timeout := replyTimeout; len(got) == 0 || more && c.Ready(quietTime); {
		v, err := c.Read(timeout)
		if err != nil {
			return err
		}
		got = append(got, v)
		if v.Kind == Closed {
			break
		}
	}
	replies := r.recordedIn(s, got)
	want := make([]Pattern, len(got))
	for i, v := range got {
		want[i] = literal(v)
		if i < len(replies.Want) {
			want[i] = replies.Want[i].Refresh(v)
		}
		want[i].Matches(v, r.vars)
	}
	replies.Want = want
	return nil
}

// recordedIn returns the replies of a step that are to be recorded.
func (r *runner) recordedIn(s *Step, got []Value) *Replies {
	replies := s.repliesOf(r.server)
	if r.since == (Release{}) {
		return replies
	}
	same := len(got) == len(replies.Want)
	for i := 0; same && i < len(got); i++ {
		same = replies.Want[i].Matches(got[i], maps.Clone(r.vars))
	}
	if !same {
		replies = s.since(r.since)
	}
	return replies
}

func (r *runner) compare(s *Step, c *Conn) error {
	replies := s.repliesOf(r.server)
	if len(replies.Want) == 0 {
		return fmt.Errorf("no reply recorded")
	}
	for _, want := range replies.Want {
		got, err := c.Read(replyTimeout)
		if err != nil {
			return fmt.Errorf("want %s\n got %w", want, err)
		}
		if !want.Matches(got, maps.Clone(r.vars)) {
			r.fail(s, want.String(), literal(got).String())
			continue
		}
		want.Matches(got, r.vars)
	}
	return nil
}

func (r *runner) fail(s *Step, want, got string) {
	r.failures++
	if r.record {
		return
	}
	r.t.Helper()
	r.t.Errorf("%s:%d: %s\nwant %s\n got %s", r.transcript.Name, s.Line, s.Source, indent(want), indent(got))
}

// onlyReplaying returns the error for a difference that a recording cannot fix.
func (r *runner) onlyReplaying(problem string) error {
	if r.record {
		return errors.New(problem)
	}
	return nil
}

func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n     ") }

// checkSilence makes sure that the transcript accounts for every reply.
func (r *runner) checkSilence() error {
	for name, c := range r.conns {
		if !c.Ready(time.Millisecond) {
			continue
		}
		v, err := c.Read(replyTimeout)
		if err != nil {
			return err
		}
		if v.Kind != Closed {
			return fmt.Errorf("%s: at the end, connection %q still holds %s", r.transcript.Name, name, v)
		}
	}
	return nil
}
