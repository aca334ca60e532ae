// Package atomredis is a Redis server to embed in a program: the whole behaviour of Redis, without a second process.
//
//	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	client := redis.NewClient(&redis.Options{Addr: db.Addr()})
package atomredis

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/server"
)

// Options configure an embedded server. The zero value is a private server in memory without a listener.
type Options struct {
	// Addr is the TCP address to listen on, "host:port". Port 0 picks a free one; see DB.Addr. Empty means no TCP.
	Addr string
	// UnixSocket is the path of a Unix socket to listen on. Empty means none.
	UnixSocket string
	// Dir is the directory in which the data is stored, as a server that is started without arguments does: every change goes
	// to a journal that is synced once a second; "appendfsync" in Config chooses otherwise. It is made if it does not exist.
	// Empty keeps the data in memory.
	Dir string
	// Config holds further directives of redis.conf by name, each with its value as it would stand in the file.
	Config map[string]string
	// Logger takes the server's log. nil discards it.
	Logger *slog.Logger
	// Clock gives the time that keys expire and commands time out by. nil is the system's clock.
	Clock engine.Clock
}

// DB is a running server.
type DB struct {
	srv *server.Server
}

// Open starts a server. It fails if a directive is unknown or has a bad value, or if an address cannot be listened on.
func Open(o Options) (*DB, error) {
	config := server.NewConfig()
	if err := config.Set("port", "0", false); err != nil {
		return nil, fmt.Errorf("atomredis: %w", err)
	}
	if o.Dir == "" {
		config.InMemory()
	} else if err := config.Set("dir", o.Dir, false); err != nil {
		return nil, fmt.Errorf("atomredis: dir: %w", err)
	}
	for name, value := range o.Config {
		if err := config.Set(name, value, false); err != nil {
			return nil, fmt.Errorf("atomredis: %s: %w", name, err)
		}
	}
	if config.Get().Durable() && !config.IsSet("dir") {
		return nil, errors.New("atomredis: appendonly and save need a directory: set Dir")
	}
	var listeners []net.Listener
	for network, addr := range map[string]string{"tcp": o.Addr, "unix": o.UnixSocket} {
		if addr == "" {
			continue
		}
		l, err := net.Listen(network, addr)
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			return nil, fmt.Errorf("atomredis: %w", err)
		}
		listeners = append(listeners, l)
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	srv, err := server.New(config, log, server.Options{Clock: o.Clock, Listeners: listeners})
	if err != nil {
		return nil, fmt.Errorf("atomredis: %w", err)
	}
	if err := srv.Start(); err != nil {
		return nil, fmt.Errorf("atomredis: %w", err)
	}
	return &DB{srv: srv}, nil
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

// Close disconnects all clients and stops the server. When it returns nothing of the server is running any more.
func (db *DB) Close() error { return db.srv.Close() }
