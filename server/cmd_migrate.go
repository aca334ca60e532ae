package server

import (
	"bufio"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/rdb"
)

// MIGRATE sends keys to another Redis with RESTORE, and removes those that have arrived. As in Redis the keys cannot be used by anybody meanwhile,
// and the client's event loop waits, up to the timeout; that is what makes it atomic. There is a connection for each call.

var migrateCommand = &Command{Name: "migrate", Group: "generic", Since: "2.6.0", Arity: -6, Flags: Write | WholeKeyspace, ACL: CatKeyspace | CatDangerous,
	Keys:    keys("i3+r0/1/0[RW,ACCESS,DELETE] kw:KEYS@-2+r-1/1/0[RW,ACCESS,DELETE,INCOMPLETE]"),
	Summary: "Moves keys to another server", Complexity: "O(N), where N is the size of the values",
	Syntax: "host port <key | \"\"> destination-db timeout [COPY] [REPLACE] [AUTH password | AUTH2 username password] [KEYS key [key ...]]",
	Do:     cmdMigrate}

const (
	errMigrateKeys    Error = "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string"
	errMigrateConnect Error = "IOERR error or timeout connecting to the client"
	errMigrateRead    Error = "IOERR error or timeout reading to target instance"
	errMigrateWrite   Error = "IOERR error or timeout writing to target instance"
)

// migration is one call of MIGRATE.
type migration struct {
	c                   *Ctx
	copy, replace       bool
	user, password      []byte
	authenticate, named bool // named: user is to be sent
	db                  int64
	timeout             time.Duration
	keys                [][]byte

	conn net.Conn
	in   *bufio.Reader
}

func cmdMigrate(c *Ctx) {
	m := migration{c: c}
	if !m.options() {
		return
	}
	type found struct {
		key     []byte
		payload []byte
		ttl     int64
	}
	var present []found
	for _, key := range m.keys {
		e := c.look(key, false)
		if e == nil {
			continue
		}
		f := found{key, rdb.Dump(e), 0}
		if at := e.Deadline(); at != 0 {
			f.ttl = max(at-c.Now(), 1)
		}
		present = append(present, f)
	}
	if len(present) == 0 {
		c.W.Simple("NOKEY")
		return
	}
	if err := m.connect(); err != nil {
		c.Err(migrateError(err))
		return
	}
	defer m.conn.Close()

	var request []byte
	before := 1 // replies that come before those of the keys
	if m.authenticate {
		before++
		args := [][]byte{[]byte("AUTH")}
		if m.named {
			args = append(args, m.user)
		}
		request = appendRequest(request, append(args, m.password))
	}
	request = appendRequest(request, [][]byte{[]byte("SELECT"), intArg(m.db)})
	for _, f := range present {
		args := [][]byte{[]byte("RESTORE"), f.key, intArg(f.ttl), f.payload}
		if m.replace {
			args = append(args, []byte("REPLACE"))
		}
		request = appendRequest(request, args)
	}
	if !m.write(request) {
		c.Err(errMigrateWrite)
		return
	}
	refused := ""
	for range before {
		reply, ok := m.read()
		if !ok {
			c.Err(errMigrateRead)
			return
		}
		if refused == "" && reply[0] == '-' {
			refused = reply
		}
	}
	var arrived [][]byte
	broken := false
	for _, f := range present {
		reply, ok := m.read()
		if !ok {
			broken = true
			break
		}
		if reply[0] == '-' {
			if refused == "" {
				refused = reply
			}
			continue
		}
		arrived = append(arrived, f.key)
	}
	m.remove(arrived)
	switch {
	case refused != "":
		c.Err(Error("ERR Target instance replied with error: " + oneLine(refused[1:])))
	case broken:
		c.Err(errMigrateRead)
	default:
		c.W.OK()
	}
}

// options reads the arguments; if something is wrong with them an error is written and ok is false.
func (m *migration) options() (ok bool) {
	c := m.c
	m.keys = c.Args[3:4]
	for o := c.Options(6); o.Next(); {
		switch {
		case o.Is("copy"):
			m.copy = true
		case o.Is("replace"):
			m.replace = true
		case o.Is("auth"):
			if !o.More() {
				c.Err(ErrSyntax)
				return false
			}
			m.authenticate, m.password = true, o.Arg()
		case o.Is("auth2"):
			if o.Left() < 2 {
				c.Err(ErrSyntax)
				return false
			}
			m.authenticate, m.named = true, true
			m.user, m.password = o.Arg(), o.Arg()
		case o.Is("keys"):
			if len(c.Args[3]) != 0 {
				c.Err(errMigrateKeys)
				return false
			}
			m.keys = o.Rest()
			o.Skip(o.Left())
		default:
			c.Err(ErrSyntax)
			return false
		}
	}
	timeout, ok := c.Int(c.Args[5])
	if !ok {
		return false
	}
	if m.db, ok = c.Int(c.Args[4]); !ok {
		return false
	}
	if timeout <= 0 {
		timeout = 1000
	}
	m.timeout = time.Duration(min(timeout, int64(maxMigrateTimeout/time.Millisecond))) * time.Millisecond
	return true
}

// maxMigrateTimeout keeps it within a Duration.
const maxMigrateTimeout = 24 * time.Hour

func (m *migration) connect() error {
	port, _ := strconv.Atoi(string(m.c.Args[2])) // no number is a port to which nobody listens
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(string(m.c.Args[1]), strconv.Itoa(port)), m.timeout)
	if err == nil {
		m.conn, m.in = conn, bufio.NewReader(conn)
	}
	return err
}

// migrateError returns the error for a connection that could not be made. Redis learns only when it writes that one was refused.
func migrateError(err error) Error {
	var timeout net.Error
	var name *net.DNSError
	if errors.As(err, &name) || errors.As(err, &timeout) && timeout.Timeout() {
		return errMigrateConnect
	}
	return errMigrateWrite
}

// migrateChunk is how many bytes must go, or come, within the timeout.
const migrateChunk = 64 << 10

func (m *migration) write(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), migrateChunk)
		if m.conn.SetDeadline(time.Now().Add(m.timeout)) != nil {
			return false
		}
		if _, err := m.conn.Write(b[:n]); err != nil {
			return false
		}
		b = b[n:]
	}
	return true
}

// maxMigrateReply bounds the line that is the reply to AUTH, SELECT or RESTORE.
const maxMigrateReply = 4096

// read reads a reply, which is not empty.
func (m *migration) read() (reply string, ok bool) {
	if m.conn.SetDeadline(time.Now().Add(m.timeout)) != nil {
		return "", false
	}
	line, err := m.in.ReadSlice('\n')
	if err != nil || len(line) > maxMigrateReply {
		return "", false
	}
	reply = strings.TrimRight(string(line), "\r\n")
	return reply, reply != ""
}

// remove removes keys that have arrived, unless they were to be copied.
func (m *migration) remove(keys [][]byte) {
	if m.copy {
		return
	}
	c := m.c
	args := [][]byte{[]byte("DEL")}
	for _, key := range keys {
		if e := c.G.Write(c.DB, key); e != nil { // not if it came twice
			c.G.Remove(e, engine.EventGeneric, "del")
			args = append(args, key)
		}
	}
	if len(args) > 1 {
		c.Journal(args...)
	}
}
