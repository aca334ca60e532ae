// Package memory is package atomredis for programs that keep nothing on a disk, above all for tests: the same server and
// the same types, but without the storage engine, the consensus library and all that these need.
//
//	db, err := memory.Open(memory.Options{Addr: "127.0.0.1:0"})
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	client := redis.NewClient(&redis.Options{Addr: db.Addr()})
//
// Options.Dir and Options.Raft work in a program that imports package atomredis anywhere. In others Open refuses them
// with ErrNoStorage.
package memory

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/family"
	"github.com/atomredis/atomredis/internal/memconn"
	"github.com/atomredis/atomredis/internal/nearest"
	"github.com/atomredis/atomredis/internal/testhook"
	"github.com/atomredis/atomredis/server"
)

// Options configure an embedded server. The zero value is a private server in memory without a listener.
type Options struct {
	// Addr is the TCP address to listen on, "host:port". Port 0 picks a free one; see DB.Addr. Empty means no TCP.
	Addr string
	// TLSConfig, if it is not nil, has clients at Addr use TLS. It must have a certificate, or a function that gives
	// one, and asks for those of clients if it says so; its sessions are those of net/tls. The directives of redis.conf
	// for TLS ("tls-port" and others) can be set in Config instead.
	TLSConfig *tls.Config
	// UnixSocket is the path of a Unix socket to listen on. Empty means none. A socket that a server has left there that
	// was killed is removed; one that somebody listens on is not, and nothing else.
	UnixSocket string
	// Dir is the directory in which the data is stored, as a server that is started without arguments does: every change
	// goes to a journal that is synced once a second; "appendfsync" in Config chooses otherwise. It is made if it does
	// not exist. One server at a time can use it: see ErrInUse. Empty keeps the data in memory. The program must import
	// package atomredis: see ErrNoStorage.
	Dir string
	// ConfigLines are lines of redis.conf, for directives that can be given several times, such as "user alice on
	// >secret ~* +@all".
	ConfigLines []string
	// Config holds further directives of redis.conf by name, each with its value as it would stand in the file. They are
	// set after ConfigLines.
	Config map[string]string
	// Doors are the doors of foreign protocols that are open, by name, each with where it listens: what the directive
	// door-<name> takes, such as "127.0.0.1:5550", "127.0.0.1:0" for a free port, or "/path" of a Unix socket. See
	// DB.DoorAddr. The program must import the door's package, which costs nothing otherwise:
	//
	//	import _ "github.com/atomredis/atomredis/doors/spiderq"
	Doors map[string]string
	// Raft makes the server one of a group that shares what it has, and needs Dir. nil: it is alone.
	Raft *Raft
	// Logger takes the server's log. nil discards it.
	Logger *slog.Logger
	// Clock gives the time that keys expire and commands time out by. nil is the system's clock, which in a
	// testing/synctest bubble is that of the bubble.
	Clock Clock
}

// Clock is where a server takes its time from. Its methods are called by any goroutine.
type Clock = engine.Clock

// Timer is a call that a Clock will make.
type Timer = engine.Timer

// DB is a running server, and the database of it in which Do, DoMany and Tx execute commands: 0, unless it comes from
// Database. Its methods may be called from any goroutine.
type DB struct {
	srv    *server.Server
	number int
	opened bool // by Open, so that Close closes the server
}

// Open starts a server. It fails if the options contradict each other, if a directive is unknown or has a bad value,
// if an address cannot be listened on, or if Dir cannot be used: ErrInUse says that another server uses it. Then
// nothing is left of what it has begun.
func Open(o Options) (*DB, error) {
	conf, err := o.config()
	if err != nil {
		return nil, fmt.Errorf("atomredis: %w", err)
	}
	var listeners []net.Listener
	if o.Addr != "" {
		l, err := net.Listen(family.Network(o.Addr), o.Addr)
		if err != nil {
			return nil, fmt.Errorf("atomredis: %w", err)
		}
		if o.TLSConfig != nil {
			l = tls.NewListener(l, o.TLSConfig)
		}
		listeners = []net.Listener{l} // which the server closes
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	so := server.Options{Clock: o.Clock, Listeners: listeners, Group: o.Raft.network()}
	if c, ok := o.Clock.(testhook.Clock); ok {
		so.Hook = c.Hook()
	}
	srv, err := server.New(conf, log, so)
	if err == nil {
		err = srv.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("atomredis: %w", err)
	}
	return &DB{srv: srv, opened: true}, nil
}

// config returns the configuration that the options stand for.
func (o *Options) config() (*config.Config, error) {
	if c := o.TLSConfig; c != nil {
		switch {
		case o.Addr == "":
			return nil, errors.New("TLSConfig is for clients at Addr, which is empty")
		case len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil:
			return nil, errors.New("TLSConfig has no certificate: set Certificates or GetCertificate")
		}
	}
	conf := config.NewConfig()
	if err := conf.Set("port", "0", false); err != nil {
		return nil, err
	}
	if o.Dir == "" {
		conf.InMemory()
	}
	own, err := o.own()
	if err != nil {
		return nil, err
	}
	for _, d := range own {
		if err := conf.Set(d.directive, d.value, false); err != nil {
			return nil, fmt.Errorf("%s: %w", d.option, err)
		}
	}
	chosen := conf.Get()
	for _, line := range o.ConfigLines {
		if err := conf.SetLine(line); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Config)) {
		if err := conf.Set(name, o.Config[name], false); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, d := range own {
		if before, after := d.now(chosen), d.now(conf.Get()); before != after {
			return nil, fmt.Errorf("%s is %q, and the directive %s says %q", d.option, before, d.directive, after)
		}
	}
	if conf.Get().Durable() && !conf.IsSet("dir") {
		return nil, errors.New("appendonly and save need a directory: set Dir")
	}
	return conf, nil
}

// ownOption is an option that stands for a directive, and how the settings tell its value.
type ownOption struct {
	option, directive, value string
	now                      func(*config.Settings) string
}

// own returns the options that are set and stand for directives.
func (o *Options) own() (list []ownOption, err error) {
	if o.Dir != "" {
		list = append(list, ownOption{"Dir", "dir", o.Dir, func(s *config.Settings) string { return s.Files.Dir }})
	}
	if o.UnixSocket != "" {
		list = append(list, ownOption{"UnixSocket", "unixsocket", o.UnixSocket,
			func(s *config.Settings) string { return s.Network.UnixSocket }})
	}
	if o.Raft != nil {
		list = append(list, o.Raft.own()...)
	}
	kinds := door.Kinds()
	for _, name := range slices.Sorted(maps.Keys(o.Doors)) {
		i := slices.IndexFunc(kinds, func(k *door.Kind) bool { return k.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("Doors: there is no door %q; a program has those that it imports: "+
				`import _ "github.com/atomredis/atomredis/doors/%s"%s`, name, name, nearest.Question(name, doorNames()))
		}
		directive := kinds[i].AddressDirective()
		list = append(list, ownOption{"Doors: " + name, directive, o.Doors[name],
			func(s *config.Settings) string { return s.Registered[directive] }})
	}
	return list, nil
}

// doorNames returns the names of the doors that the program has.
func doorNames() (names []string) {
	for _, k := range door.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// Addr returns the TCP address that the server listens on, or the path of its Unix socket; "" if it listens nowhere.
func (db *DB) Addr() string {
	addr := ""
	for _, a := range db.srv.Addrs() {
		if a.Network() == "tcp" {
			return a.String()
		}
		addr = a.String()
	}
	return addr
}

// DoorAddr returns the address on which a door listens, such as "127.0.0.1:5550" or the path
// of a Unix socket; "" if it is not open.
func (db *DB) DoorAddr(name string) string {
	if a := db.srv.DoorAddr(name); a != nil {
		return a.String()
	}
	return ""
}

// Database returns a DB for the same server whose commands are executed in database n, from 0 on. Its Close fails: only
// the DB that Open returned closes the server. Everything else concerns the server as a whole.
func (db *DB) Database(n int) (*DB, error) {
	if count := db.srv.Keyspace().Databases(); n < 0 || n >= count {
		return nil, fmt.Errorf("atomredis: there is no database %d, only 0 to %d", n, count-1)
	}
	return &DB{srv: db.srv, number: n}, nil
}

// Dial returns a new connection to the server, in memory, without a port or a socket. It is buffered in both
// directions and has deadlines, so that it can take the place of a network connection in any client.
func (db *DB) Dial(ctx context.Context) (net.Conn, error) {
	if ctx.Err() != nil {
		return nil, wrap(door.ContextError(ctx))
	}
	client, conn := memconn.Pipe(0)
	if err := db.srv.ServeConn(conn); err != nil {
		return nil, wrap(err)
	}
	return client, nil
}

// Snapshot writes all databases, as they are at one moment, as the commands that make them: an append-only file that
// redis-server loads too. Commands go on meanwhile; what they change is kept in memory as it was until it is written,
// so w should not be slow where much is changed. w is called by another goroutine, and must not take a snapshot
// itself. Scripts, and when consumers of a stream were last seen, are not part of it.
func (db *DB) Snapshot(w io.Writer) error {
	if err := db.srv.Sessions().NotInHandler(); err != nil {
		return wrap(err)
	}
	return wrap(db.srv.Snapshot(w))
}

// Restore executes what Snapshot has written, in a server that must be empty: otherwise it fails with ErrNotEmpty.
// Commands of others may come between. If it fails half-way all databases are emptied again, unless the server was
// closed meanwhile.
func (db *DB) Restore(r io.Reader) error {
	if err := db.srv.Sessions().NotInHandler(); err != nil {
		return wrap(err)
	}
	return wrap(db.srv.Restore(r))
}

// ErrNotEmpty is returned by DB.Restore if there are keys.
var ErrNotEmpty = server.ErrNotEmpty

// ErrNoStorage is found by errors.Is in the error of Open if Options.Dir is set in a program that does not import package
// atomredis.
var ErrNoStorage = server.ErrNoStorage

// ErrInUse is found by errors.Is in the error of Open if another server, of this process or another one, uses the
// directory.
var ErrInUse = server.ErrInUse

// Close disconnects all clients, makes everything durable and stops the server. Commands that are waiting end with
// ErrClosed, and those that are being executed come to their end first, so that a handler of a Command cannot close
// its server. When it returns nothing of the server is running any more. Of a DB that Database returned it does nothing
// but fail.
func (db *DB) Close() error {
	if !db.opened {
		return errors.New("atomredis: Database has returned this DB: close the one that Open has returned")
	}
	if err := db.srv.Sessions().NotInHandler(); err != nil {
		return wrap(err)
	}
	return db.srv.Close()
}
