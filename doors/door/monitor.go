package door

import (
	"bytes"
	"context"
)

// Monitor receives the commands that the server executes, as MONITOR shows them. client-output-buffer-limit normal
// limits unread lines.
//
// One goroutine uses it at a time; any goroutine may call Close.
type Monitor struct {
	s   Session
	raw []byte // received lines
}

// Monitor begins to show commands. The monitor has its own session, which ends with the client at the latest. It is
// active when Monitor returns.
func (c *Client) Monitor(ctx context.Context) (*Monitor, error) {
	s, err := c.s.Fork()
	if err != nil {
		return nil, err
	}
	own := Client{s}
	if err := own.control(ctx, []byte("MONITOR")); err != nil {
		s.Release()
		return nil, err
	}
	return &Monitor{s: s}, nil
}

// Next waits for a line until ctx ends. The error is ErrSlow if too many lines were unread.
func (m *Monitor) Next(ctx context.Context) (string, error) {
	for len(m.raw) == 0 {
		raw, err := m.s.Receive(ctx)
		if err != nil {
			return "", err
		}
		m.raw = raw
	}
	line, rest, _ := bytes.Cut(m.raw, []byte("\r\n"))
	m.raw = rest
	return string(bytes.TrimPrefix(line, []byte("+"))), nil
}

// Done is closed when there will be no further lines.
func (m *Monitor) Done() <-chan struct{} { return m.s.Done() }

// Close ends the monitor.
func (m *Monitor) Close() { m.s.Release() }
