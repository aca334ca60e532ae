// Package migrate has the command MIGRATE, which sends keys to another Redis with RESTORE, and removes those that
// have arrived. As in Redis no client can use the keys meanwhile, which makes it atomic; the client's event loop
// waits, up to the timeout. Connections are kept for some seconds for the next call.
package migrate

import (
	"bufio"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist/rdb"
)

// Host is what MIGRATE needs of the server.
type Host interface {
	command.Host
	// Migrations returns the idle connections of earlier calls.
	Migrations() *Conns
	// DialNode connects to another server within timeout, with the configured way to connect to nodes of a cluster.
	DialNode(addr string, timeout time.Duration) (net.Conn, error)
}

func hostOf(c *command.Ctx) Host { return c.Host.(Host) }

func init() { command.Register(commands) }

var commands = []*command.Command{{Name: "migrate", Group: "generic", Since: "2.6.0", Arity: -6,
	Flags: command.Write | command.WholeKeyspace, ACL: command.CatKeyspace | command.CatDangerous,
	Keys:    command.Keys("i3+r0/1/0[RW,ACCESS,DELETE] kw:KEYS@-2+r-1/1/0[RW,ACCESS,DELETE,INCOMPLETE]"),
	Summary: "Moves keys to another server", Complexity: "O(N), where N is the size of the values",
	Syntax: "host port <key | \"\"> destination-db timeout [COPY] [REPLACE] [AUTH password | " +
		"AUTH2 username password] [KEYS key [key ...]]",
	Databases:  func([][]byte) []int { return []int{4} },
	KeyIndices: keyIndices, Secrets: secrets, Do: migrate}}

// keyIndices returns the indices of the keys. The specs can mistake a key named "keys" for the option, and do not
// know that the key argument must be empty with KEYS.
func keyIndices(args [][]byte) (indices []int) {
	first, end := 3, min(4, len(args))
	for i := 6; i < len(args)-1; i++ {
		switch {
		case command.EqualFold(args[i], "auth"):
			i++
		case command.EqualFold(args[i], "auth2"):
			i += 2
		case command.EqualFold(args[i], "keys"):
			if len(args[3]) > 0 {
				return nil
			}
			first, end = i+1, len(args)
			i = end
		}
	}
	for i := first; i < end; i++ {
		indices = append(indices, i)
	}
	return indices
}

// secrets calls fn with the indices of the password, and of the user's name.
func secrets(args [][]byte, fn func(i int)) {
	for i := 6; i < len(args); i++ {
		switch {
		case command.EqualFold(args[i], "auth"):
			fn(i + 1)
			i++
		case command.EqualFold(args[i], "auth2"):
			fn(i + 1)
			fn(i + 2)
			i += 2
		case command.EqualFold(args[i], "keys"):
			return
		}
	}
}

const (
	errKeys    command.Error = "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string"
	errConnect command.Error = "IOERR error or timeout connecting to the client"
	errRead    command.Error = "IOERR error or timeout reading to target instance"
	errWrite   command.Error = "IOERR error or timeout writing to target instance"
)

// migration is one call of MIGRATE.
type migration struct {
	c                   *command.Ctx
	copy, replace       bool
	user, password      []byte
	authenticate, named bool // named: AUTH2 has given a user
	db                  int64
	timeout             time.Duration
	keys                [][]byte

	*link
	timedOut bool // the cause of the failure
}

// link is a connection to a target of MIGRATE.
type link struct {
	net.Conn
	in   *bufio.Reader
	db   int64 // the selected database; noDatabase if unknown
	used int64 // time of the last use, in ms since 1970
	kept bool  // an earlier call has used it
}

// Conns are the idle connections to other servers, by address.
type Conns struct {
	mu    sync.Mutex // protects the fields below
	idle  map[string]*link
	timer engine.Timer // closes those that have been idle for too long
}

const (
	maxConns = 64
	maxIdle  = 10_000 // ms after which an idle connection is closed
)

// take returns the connection to an address, nil if there is none.
func (m *Conns) take(addr string) *link {
	m.mu.Lock()
	defer m.mu.Unlock()
	conn := m.idle[addr]
	delete(m.idle, addr)
	return conn
}

// put keeps a working connection.
func (m *Conns) put(clock engine.Clock, addr string, conn *link) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.idle == nil {
		m.idle = map[string]*link{}
	}
	if len(m.idle) >= maxConns {
		for other := range m.idle { // a random one, as in Redis
			m.idle[other].Close()
			delete(m.idle, other)
			break
		}
	}
	conn.used, conn.kept = clock.Now().UnixMilli(), true
	m.idle[addr] = conn
	m.arm(clock)
}

// arm starts the timer that closes idle connections. mu is locked.
func (m *Conns) arm(clock engine.Clock) {
	if m.timer != nil || len(m.idle) == 0 {
		return
	}
	m.timer = clock.AfterFunc(time.Second, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.timer = nil
		now := clock.Now().UnixMilli()
		for addr, conn := range m.idle {
			if now-conn.used > maxIdle {
				conn.Close()
				delete(m.idle, addr)
			}
		}
		m.arm(clock)
	})
}

// Len returns the number of idle connections.
func (m *Conns) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.idle)
}

// Close closes all connections.
func (m *Conns) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
	}
	for _, conn := range m.idle {
		conn.Close()
	}
	m.idle = nil
}

// movedKey is a key to send.
type movedKey struct {
	key     []byte
	payload []byte
	ttl     int64
}

func migrate(c *command.Ctx) {
	m := migration{c: c}
	if !m.options() {
		return
	}
	var present []movedKey
	for _, key := range m.keys {
		e := c.Look(key, false)
		if e == nil {
			continue
		}
		payload, err := rdb.DumpAlone(e)
		if err != nil {
			c.Err(command.Error("ERR " + err.Error()))
			return
		}
		k := movedKey{key, payload, 0}
		if at := e.Deadline(); at != 0 {
			k.ttl = max(at-c.Now(), 1)
		}
		present = append(present, k)
	}
	if len(present) == 0 {
		c.W.Simple("NOKEY")
		return
	}
	conns, addr := hostOf(c).Migrations(), m.address()
	if m.link = conns.take(addr); m.link == nil {
		if err := m.connect(addr); err != nil {
			c.Err(connectError(err))
			return
		}
	}
	reply, answered, works := m.move(present)
	if !answered && m.kept && !m.timedOut {
		// The other server has closed the connection since its last use, so it has received nothing.
		m.Close()
		if err := m.connect(addr); err != nil {
			c.Err(connectError(err))
			return
		}
		reply, _, works = m.move(present)
	}
	if works {
		conns.put(hostOf(c).Keyspace().Clock(), addr, m.link)
	} else {
		m.Close()
	}
	if reply != "" {
		c.Err(reply)
		return
	}
	c.W.OK()
}

// move sends keys, and removes those that have arrived. It returns the error to reply with, or "". answered says
// that the other server has replied at all, and works that the connection can be reused.
func (m *migration) move(keys []movedKey) (reply command.Error, answered, works bool) {
	var request []byte
	before := 0 // number of replies before those of the keys
	if m.authenticate {
		before++
		args := [][]byte{[]byte("AUTH")}
		if m.named {
			args = append(args, m.user)
		}
		request = command.AppendRequest(request, append(args, m.password))
	}
	if m.link.db != m.db {
		before++
		request = command.AppendRequest(request, [][]byte{[]byte("SELECT"), number(m.db)})
	}
	for _, k := range keys {
		args := [][]byte{[]byte("RESTORE"), k.key, number(k.ttl), k.payload}
		if m.replace {
			args = append(args, []byte("REPLACE"))
		}
		request = command.AppendRequest(request, args)
	}
	if !m.write(request) {
		return errWrite, false, false
	}
	refused := ""
	for range before {
		answer, ok := m.read()
		if !ok {
			return errRead, answered, false
		}
		if answered = true; refused == "" && answer[0] == '-' {
			refused = answer
		}
	}
	var arrived [][]byte
	broken := false
	for _, k := range keys {
		answer, ok := m.read()
		if !ok {
			broken = true
			break
		}
		if answered = true; answer[0] != '-' {
			arrived = append(arrived, k.key)
		} else if refused == "" {
			refused = answer
		}
	}
	m.remove(arrived)
	m.link.db = m.db
	switch {
	case refused != "":
		m.link.db = noDatabase // perhaps SELECT was refused
		return command.Error("ERR Target instance replied with error: " + command.OneLine(refused[1:])), true, !broken
	case broken:
		return errRead, answered, false
	}
	return "", true, true
}

// options reads the arguments; if they are wrong, it writes an error and ok is false.
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
				c.Err(command.ErrSyntax)
				return false
			}
			m.authenticate, m.password = true, o.Arg()
		case o.Is("auth2"):
			if o.Left() < 2 {
				c.Err(command.ErrSyntax)
				return false
			}
			m.authenticate, m.named = true, true
			m.user, m.password = o.Arg(), o.Arg()
		case o.Is("keys"):
			if len(c.Args[3]) != 0 {
				c.Err(errKeys)
				return false
			}
			m.keys = o.Rest()
			o.Skip(o.Left())
		default:
			c.Err(command.ErrSyntax)
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
	m.timeout = time.Duration(min(timeout, int64(maxTimeout/time.Millisecond))) * time.Millisecond
	return true
}

// noDatabase is the number of no database.
const noDatabase = -1

// number returns n as an argument.
func number(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// maxTimeout limits the timeout, so that it fits into a Duration.
const maxTimeout = 24 * time.Hour

// address returns the address of the target.
func (m *migration) address() string {
	port, _ := strconv.Atoi(string(m.c.Args[2])) // with an invalid number, connecting fails
	return net.JoinHostPort(string(m.c.Args[1]), strconv.Itoa(port))
}

func (m *migration) connect(addr string) error {
	c, err := hostOf(m.c).DialNode(addr, m.timeout)
	if err == nil {
		m.link = &link{Conn: c, in: bufio.NewReader(c), db: noDatabase}
	}
	return err
}

// connectError returns the error for a failed connection. Redis notices a refused connection only when it writes.
func connectError(err error) command.Error {
	var timeout net.Error
	var name *net.DNSError
	if errors.As(err, &name) || errors.As(err, &timeout) && timeout.Timeout() {
		return errConnect
	}
	return errWrite
}

// chunk is how many bytes must be sent or received within the timeout.
const chunk = 64 << 10

func (m *migration) write(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), chunk)
		if m.SetDeadline(time.Now().Add(m.timeout)) != nil {
			return false
		}
		if _, err := m.Write(b[:n]); err != nil {
			m.timedOut = errors.Is(err, os.ErrDeadlineExceeded)
			return false
		}
		b = b[n:]
	}
	return true
}

// maxReply limits the length of the reply to AUTH, SELECT or RESTORE.
const maxReply = 4096

// read reads a reply, which must not be empty.
func (m *migration) read() (reply string, ok bool) {
	if m.SetDeadline(time.Now().Add(m.timeout)) != nil {
		return "", false
	}
	line, err := m.in.ReadSlice('\n')
	if err != nil || len(line) > maxReply {
		m.timedOut = errors.Is(err, os.ErrDeadlineExceeded)
		return "", false
	}
	reply = strings.TrimRight(string(line), "\r\n")
	return reply, reply != ""
}

// remove removes keys that have arrived, unless COPY was given.
func (m *migration) remove(keys [][]byte) {
	if m.copy {
		return
	}
	c := m.c
	args := [][]byte{[]byte("DEL")}
	for _, key := range keys {
		if e := c.G.Write(c.DB, key); e != nil { // nil if the key was named twice
			c.G.Remove(e, engine.EventGeneric, "del")
			args = append(args, key)
		}
	}
	if len(args) > 1 {
		c.Journal(args...)
	}
}
