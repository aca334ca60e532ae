package session

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// monitors are the clients in MONITOR mode.
type monitors struct {
	count atomic.Int32 // of list, so that no line is prepared without a reader
	mu    sync.Mutex   // protects list; only mailboxes are locked under it
	list  []*Session
}

// active reports whether there are monitors.
func (m *monitors) active() bool { return m.count.Load() > 0 }

// add makes a client a monitor.
func (m *monitors) add(s *Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.modes.monitor = true
	m.list = append(m.list, s)
	m.count.Add(1)
}

// remove ends a client's MONITOR mode.
func (m *monitors) remove(s *Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.modes.monitor = false
	if i := slices.Index(m.list, s); i >= 0 {
		m.list = slices.Delete(m.list, i, i+1)
		m.count.Add(-1)
	}
}

// runMonitored is run for a command that monitors see. They see it when it has ended: in the database that SELECT
// has selected, and after the commands that EXEC has executed. Only a script is shown before the commands that it
// calls.
func (s *Session) runMonitored(c *command.Ctx) (retry command.Retry) {
	m, cmd, args := &s.shared.monitors, c.Cmd, c.Args
	ahead := cmd.Flags&command.SkipMonitor != 0 && m.active()
	if ahead {
		m.feed(s, c.Origin, cmd, args)
	}
	retry = s.run(c)
	if !ahead && m.active() && retry.Reason == 0 {
		m.feed(s, c.Origin, cmd, args)
	}
	return retry
}

// feed shows a command of the client s, or of a script that it runs, to all monitors.
func (m *monitors) feed(s *Session, from command.Origin, cmd *command.Command, args [][]byte) {
	if cmd.Flags&command.Admin != 0 {
		return
	}
	source := s.peer.Addr
	switch {
	case from.In(command.FromScript):
		source = "lua"
	case s.peer.Unix():
		source = "unix:" + source[:len(source)-len(":0")]
	}
	now := s.shared.Keyspace.Clock().Now().UnixMicro()
	line := make([]byte, 0, 128)
	line = append(line, '+')
	line = strconv.AppendInt(line, now/1e6, 10)
	line = append(line, '.')
	micros := strconv.AppendInt(nil, 1e6+now%1e6, 10) // the 1 keeps leading zeros
	line = append(line, micros[1:]...)
	line = append(line, " ["...)
	line = strconv.AppendInt(line, int64(s.db), 10)
	line = append(line, ' ')
	line = append(append(line, source...), ']')
	secret := cmd.SecretArgs(args)
	for i, a := range args {
		line = append(line, ' ')
		if slices.Contains(secret, i) {
			a = []byte("(redacted)")
		}
		line = resp.AppendQuoted(line, a)
	}
	line = append(line, "\r\n"...)

	m.mu.Lock()
	defer m.mu.Unlock()
	for _, to := range m.list {
		if to != s || !s.closing { // a client that sends QUIT reads nothing after the reply
			to.Tell(&s.origin.Changer, line)
		}
	}
}

// Monitor implements servercommands.Client.
func (s *Session) Monitor() bool {
	if s.modes.monitor {
		return false
	}
	s.shared.monitors.add(s)
	return true
}
