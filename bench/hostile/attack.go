//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/atomredis/atomredis/bench/internal/servers"
)

// attack is the hostile side of a running case. Everything it does on its connections ends when its time is over.
type attack struct {
	*servers.Server
	until time.Time
	notes []string
	conns []net.Conn
}

// note adds a remark to the case's row of the table.
func (a *attack) note(format string, args ...any) {
	a.notes = append(a.notes, fmt.Sprintf(format, args...))
}

// over reports whether the time is over.
func (a *attack) over() bool { return time.Now().After(a.until) }

// dial connects; it returns nil if the server refuses. Connections still open when the case ends are closed then.
func (a *attack) dial() net.Conn {
	c, err := net.DialTimeout("tcp", a.Addr, time.Until(a.until))
	if err != nil {
		return nil
	}
	c.SetDeadline(a.until)
	a.conns = append(a.conns, c)
	return c
}

// close hangs up.
func (a *attack) close() {
	for _, c := range a.conns {
		c.Close()
	}
}

// flood sends a text again and again until limit bytes are sent. If the server hangs up before, it notes how many were
// sent.
func (a *attack) flood(c net.Conn, text string, limit int) {
	b := []byte(strings.Repeat(text, max(1, 64<<10/len(text))))
	sent := 0
	for sent < limit {
		n, err := c.Write(b)
		sent += n
		if err != nil && !a.over() {
			a.note("hung up after %d KB", sent>>10)
			return
		}
		if err != nil {
			a.note("no more read after %d KB", sent>>10)
			return
		}
	}
	a.note("%d KB sent", sent>>10)
}

// hold waits, with the connections open.
func (a *attack) hold(d time.Duration) { time.Sleep(min(d, time.Until(a.until))) }

// send sends a command.
func (a *attack) send(c net.Conn, args ...string) {
	c.Write(servers.AppendCommand(nil, args...))
}

// ask sends a command and returns the first line of its reply. It reads the whole reply if that is a bulk string or an
// array of bulk strings.
func (a *attack) ask(args ...string) string {
	c := a.dial()
	if c == nil {
		return "no connection"
	}
	defer c.Close()
	go c.Write(servers.AppendCommand(nil, args...))
	return first(bufio.NewReaderSize(c, 1<<20))
}

// first reads a reply and returns its first line, or the error if there is none.
func first(r *bufio.Reader) string {
	line, err := r.ReadString('\n')
	if err != nil {
		return err.Error()
	}
	line = strings.TrimSpace(line)
	var n int
	if _, err := fmt.Sscanf(line, "$%d", &n); err == nil && n >= 0 {
		io.CopyN(io.Discard, r, int64(n)+2)
	}
	if _, err := fmt.Sscanf(line, "*%d", &n); err == nil {
		for range n {
			first(r)
		}
	}
	return line
}

// value streams a command whose last argument has size bytes, and returns the first line of the reply.
func (a *attack) value(size int, args ...string) string {
	c := a.dial()
	if c == nil {
		return "no connection"
	}
	defer c.Close()
	head := fmt.Sprintf("*%d\r\n", len(args)+1)
	for _, arg := range args {
		head += fmt.Sprintf("$%d\r\n%s\r\n", len(arg), arg)
	}
	fmt.Fprintf(c, "%s$%d\r\n", head, size)
	for left := size; left > 0; {
		n, err := c.Write(piece[:min(left, len(piece))])
		if err != nil {
			return err.Error()
		}
		left -= n
	}
	io.WriteString(c, "\r\n")
	return first(bufio.NewReader(c))
}

// piece is a part of long values.
var piece = func() []byte {
	var b []byte
	for i := 0; len(b) < 1<<20; i++ {
		b = append(b, servers.Value(i, 0)...)
	}
	return b
}()

// info returns a field of INFO.
func info(s *servers.Server, name string) string {
	for line := range strings.Lines(s.Do("INFO", "everything")) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return "?"
}
