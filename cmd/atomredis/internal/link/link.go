// Package link is a simple connection to a server: one command at a time, or a full copy of its data as an RDB file.
package link

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Link is a connection to a server.
type Link struct {
	conn    net.Conn
	in      *bufio.Reader
	timeout time.Duration
}

// Refusal is an error reply.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// New returns a link over a connection. A server that is silent for longer than the timeout is an error.
func New(conn net.Conn, timeout time.Duration) *Link {
	return &Link{conn: conn, in: bufio.NewReaderSize(conn, 1<<20), timeout: timeout}
}

// Read implements io.Reader with the timeout.
func (l *Link) Read(p []byte) (int, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(l.timeout)); err != nil {
		return 0, err
	}
	return l.in.Read(p)
}

// Command sends a command and returns the first line of the reply. An error reply is returned as a Refusal.
func (l *Link) Command(args ...string) (string, error) {
	request := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	if err := l.conn.SetDeadline(time.Now().Add(l.timeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(l.conn, request); err != nil {
		return "", err
	}
	for {
		line, err := l.in.ReadString('\n')
		if err != nil {
			return "", err
		}
		switch line = strings.TrimRight(line, "\r\n"); {
		case strings.HasPrefix(line, "-"):
			return "", Refusal(line[1:])
		case line != "": // empty lines keep the connection alive
			return line, nil
		}
	}
}

// Auth authenticates the connection, if there is a password; user may be "".
func (l *Link) Auth(user, password string) error {
	var err error
	switch {
	case password == "":
	case user == "":
		_, err = l.Command("AUTH", password)
	default:
		_, err = l.Command("AUTH", user, password)
	}
	return err
}

// RDB asks the server for an RDB file of all its data. The file ends with io.EOF only if it is complete; size is 0 if the
// server does not announce it.
func (l *Link) RDB() (file io.Reader, size int64, err error) {
	for _, option := range [][2]string{{"capa", "eof"}, {"rdb-only", "1"}} {
		_, err := l.Command("REPLCONF", option[0], option[1])
		// An older server does not know the option, and sends changes after the file. They are not read.
		if _, refused := errors.AsType[Refusal](err); err != nil && !refused {
			return nil, 0, err
		}
	}
	line, err := l.Command("SYNC")
	if err != nil {
		return nil, 0, err
	}
	// The server sends the length of the file, or, if it does not know the length, a mark that it repeats after the
	// file.
	if mark, ok := strings.CutPrefix(line, "$EOF:"); ok && mark != "" {
		return &marked{in: l, mark: []byte(mark)}, 0, nil
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(line, "$"), 10, 64)
	if err != nil || n < 0 {
		return nil, 0, fmt.Errorf("the server sends %q instead of a length", line)
	}
	return &measured{in: l, left: n}, n, nil
}

// measured reads a given number of bytes.
type measured struct {
	in   io.Reader
	left int64
}

func (m *measured) Read(p []byte) (int, error) {
	if m.left == 0 {
		return 0, io.EOF
	}
	n, err := m.in.Read(p[:min(int64(len(p)), m.left)])
	if m.left -= int64(n); err == io.EOF && m.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// marked reads up to a mark.
type marked struct {
	in   io.Reader
	mark []byte
	held []byte // bytes that were read but not returned; the mark may begin in them

	found bool // the mark was found, at end in held
	end   int
}

func (m *marked) Read(p []byte) (int, error) {
	for !m.found && len(m.held) < len(m.mark) {
		before := len(m.held)
		m.held = append(m.held, make([]byte, 64<<10)...)
		n, err := m.in.Read(m.held[before:])
		m.held = m.held[:before+n]
		if m.end = bytes.Index(m.held, m.mark); m.end >= 0 {
			m.found = true
			break
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
	}
	ready := m.end
	if !m.found {
		ready = len(m.held) - len(m.mark) + 1 // the rest may be the beginning of the mark
	}
	if ready == 0 && m.found {
		return 0, io.EOF
	}
	n := copy(p, m.held[:ready])
	m.held = m.held[:copy(m.held, m.held[n:])]
	if m.found {
		m.end -= n
	}
	return n, nil
}
