// Package memory is package atomredis for programs that keep nothing on a disk, above all for tests. It has the same
// server and the same types without the storage engine, the consensus library and their dependencies.
//
//	db, err := memory.Open(memory.Options{Addr: "127.0.0.1:0"})
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	client := redis.NewClient(&redis.Options{Addr: db.Addr()})
//
// Options.Dir and Options.Raft work in a program that imports package atomredis anywhere. In other programs Open
// refuses them with ErrNoStorage.
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
	// TLSConfig makes clients at Addr use TLS; nil means no TLS. It must have a certificate or a function that returns
	// one. ClientAuth decides about certificates of clients, and net/tls manages the sessions. The directives of
	// redis.conf for TLS ("tls-port" and others) can be set in Config instead.
	TLSConfig *tls.Config
	// UnixSocket is the path of a Unix socket to listen on. Empty means none. Open removes a socket that a killed
	// server has left there, but no socket in use and no other file.
	UnixSocket string
	// Dir is the directory of the data; Open creates it if it does not exist. Every change goes to a journal that is
	// synced once a second, unless "appendfsync" in Config says otherwise. One server at a time can use a directory:
	// see ErrInUse. Empty keeps the data in memory. The program must import package atomredis: see ErrNoStorage.
	Dir string
	// ConfigLines are lines of redis.conf, for directives that can be given several times, such as "user alice on
	// >secret ~* +@all".
	ConfigLines []string
	// Config holds further directives of redis.conf: names, and values as in the file. They are set after ConfigLines.
	Config map[string]string
	// Doors opens doors for foreign protocols, by name. The value is the address, as in the directive door-<name>:
	// "127.0.0.1:5550", "127.0.0.1:0" for a free port, or "/path" of a Unix socket. See DB.DoorAddr. The program must
	// import the door's package:
	//
	//	import _ "github.com/atomredis/atomredis/doors/spiderq"
	Doors map[string]string
	// Raft makes the server a member of a group that replicates its data. It needs Dir. nil means no group.
	Raft *Raft
	// Logger receives the server's log. nil discards it.
	Logger *slog.Logger
	// Clock gives the time by which keys expire and commands time out. nil means the system's clock, or the bubble's
	// clock in a testing/synctest bubble.
	Clock Clock
}

// Clock gives a server its time. The server calls its methods from any goroutine.
type Clock = engine.Clock

// Timer is a pending call of Clock.AfterFunc.
type Timer = engine.Timer

// DB is a running server, and the database in which Do, DoMany and Tx execute commands: 0, unless Database returned it.
// Its methods may be called from any goroutine.
type DB struct {
	srv    *server.Server
	number int
	opened bool // by Open, so that Close closes the server
}

// Open starts a server. It fails if the options contradict each other, if a directive is unknown or has a bad value, if
// it cannot listen on an address, or if Dir cannot be used: ErrInUse says that another server uses it. An Open that
// fails leaves nothing behind.
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
		listeners = []net.Listener{l} // the server closes it
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

// config returns the configuration that the options describe.
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

// ownOption is an option that sets a directive, and the form in which the settings show its value.
type ownOption struct {
	option, directive, value string
	now                      func(*config.Settings) string
}

// own returns the directives that Dir, UnixSocket, Raft and Doors set.
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

// doorNames returns the names of the doors that the program imports.
func doorNames() (names []string) {
	for _, k := range door.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// Addr returns the TCP address that the server listens on, or the path of its Unix socket; "" if it has neither.
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

// Database returns a DB of the same server whose commands run in database n, counted from 0. Its Close fails: only the
// DB that Open returned closes the server. All other methods act on the server as a whole.
func (db *DB) Database(n int) (*DB, error) {
	if count := db.srv.Keyspace().Databases(); n < 0 || n >= count {
		return nil, fmt.Errorf("atomredis: there is no database %d, only 0 to %d", n, count-1)
	}
	return &DB{srv: db.srv, number: n}, nil
}

// Dial returns a new connection to the server, in memory, without a port or a socket. It is buffered in both directions
// and supports deadlines, so any client can use it like a network connection.
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

// Snapshot writes the state of all databases at one instant, as the commands that rebuild it: an append-only file that
// redis-server can load. Commands continue meanwhile; the old state of the entries that they change stays in memory
// until it is written, so a slow w costs memory. Another goroutine calls w, which must not take a snapshot itself.
// Scripts, and the times at which consumers of a stream were last seen, are not included.
func (db *DB) Snapshot(w io.Writer) error {
	if err := db.srv.Sessions().NotInHandler(); err != nil {
		return wrap(err)
	}
	return wrap(db.srv.Snapshot(w))
}

// Restore executes the commands that Snapshot has written. It fails with ErrNotEmpty unless the server is empty. Other
// clients' commands may run in between. If it fails half-way it empties all databases again, unless the server was
// closed meanwhile.
func (db *DB) Restore(r io.Reader) error {
	if err := db.srv.Sessions().NotInHandler(); err != nil {
		return wrap(err)
	}
	return wrap(db.srv.Restore(r))
}

// ErrNotEmpty is returned by DB.Restore if the server has keys.
var ErrNotEmpty = server.ErrNotEmpty

// ErrNoStorage is wrapped in the error of Open if Options.Dir is set in a program that does not import package
// atomredis.
var ErrNoStorage = server.ErrNoStorage

// ErrInUse is wrapped in the error of Open if another server, of this process or another one, uses the directory.
var ErrInUse = server.ErrInUse

// Close disconnects all clients, makes all changes durable and stops the server. Waiting commands end with ErrClosed.
// Running commands end first, so a handler of a Command cannot close its server. When Close returns, no goroutine of
// the server is left. Close of a DB that Database returned only fails.
func (db *DB) Close() error {
	if !db.opened {
		return errors.New("atomredis: Database has returned this DB: close the one that Open has returned")
	}
	if err := db.srv.Sessions().NotInHandler(); err != nil {
		return wrap(err)
	}
	return db.srv.Close()
}
