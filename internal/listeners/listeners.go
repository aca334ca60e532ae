// Package listeners holds a server's listening sockets: those of bind, port, tls-port and unixsocket, and those that
// a program has passed. The first three directives can change while the server runs. Sockets that a change keeps
// stay open, and so do the connections of clients.
package listeners

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/tlsconfig"
	"github.com/atomredis/atomredis/internal/transport"
)

// DefaultGrace is how long clients wait in the queue of a socket while stored data is read, before they are accepted
// and get LOADING. Programs that connect as soon as a server listens do not expect that error if there is little
// data.
const DefaultGrace = 300 * time.Millisecond

// Listeners are the listening sockets of a server. Any goroutine may call their methods.
type Listeners struct {
	// Grace is DefaultGrace; only tests change it.
	Grace time.Duration

	config *config.Config
	log    *slog.Logger
	// Set by Attach.
	tls             *tlsconfig.TLS
	sockets, others transport.Transport

	mu      sync.Mutex // protects the fields below, and is held while sockets are opened and closed
	all     []*listener
	serving bool // set by Open; before, changes have no effect
	closed  bool
}

// listener is a listening socket.
type listener struct {
	net.Listener
	// at is its endpoint in the configuration; zero for a Unix socket, and for one that a program has passed.
	at config.Endpoint
	// stop ends accepting and frees the address at once. It is nil before the listener is served.
	stop func()
}

// close closes the listener.
func (l *listener) close() {
	if l.stop != nil {
		l.stop()
	} else {
		l.Close()
	}
}

func closeAll(list []*listener) {
	for _, l := range list {
		l.close()
	}
}

// New returns Listeners with the sockets that a program has passed.
func New(conf *config.Config, log *slog.Logger, given []net.Listener) *Listeners {
	ls := &Listeners{Grace: DefaultGrace, config: conf, log: log}
	for _, l := range given {
		ls.all = append(ls.all, &listener{Listener: l})
	}
	return ls
}

// Wanted reports whether there are listeners, or Open will make some.
func (ls *Listeners) Wanted() bool {
	set := ls.config.Get()
	return len(ls.all) > 0 || set.Network.Port != 0 || set.TLS.Port != 0 || set.Network.UnixSocket != ""
}

// Attach sets the configuration of TLS, and the transports of sockets and of all other listeners. From now on changes of
// the configuration take effect.
func (ls *Listeners) Attach(t *tlsconfig.TLS, sockets, others transport.Transport) {
	ls.tls, ls.sockets, ls.others = t, sockets, others
	ls.config.Apply(func(old, set *config.Settings) (func() error, error) {
		return func() error { return ls.update(set, old) }, ls.update(old, set)
	}, "bind", "port", "tls-port")
}

// openEndpoint listens on an endpoint; l is nil if the address is optional and the machine does not have it.
func openEndpoint(e config.Endpoint, set *config.Settings) (l net.Listener, err error) {
	network, host := "tcp", e.Host
	switch host {
	case "*":
		network, host = "tcp4", "0.0.0.0"
	case "::*":
		network, host = "tcp6", "::"
	}
	l, err = transport.Listen(network, net.JoinHostPort(host, strconv.Itoa(e.Port)), set.Network.TCPBacklog)
	if err != nil && e.Optional && !errors.Is(err, syscall.EADDRINUSE) {
		return nil, nil
	}
	return l, err
}

// open listens on all endpoints, or on none if there is an error.
func (ls *Listeners) open(set *config.Settings, list []config.Endpoint) (opened []*listener, err error) {
	for _, e := range list {
		var l net.Listener
		if l, err = openEndpoint(e, set); err != nil {
			break
		}
		if l == nil {
			continue
		}
		if e.Tls {
			l = tls.NewListener(l, ls.tls.Server())
		}
		opened = append(opened, &listener{Listener: l, at: e})
	}
	if err != nil {
		closeAll(opened)
		return nil, err
	}
	return opened, nil
}

// serve makes the transports accept clients from listeners that are not served yet. On an error it closes all of
// them.
func (ls *Listeners) serve(list []*listener) error {
	for _, l := range list {
		if l.stop != nil {
			continue
		}
		by := ls.others
		switch l.Listener.(type) {
		case *net.TCPListener, *net.UnixListener: // others use TLS, or are a program's own
			by = ls.sockets
		}
		stop, err := by.Listen(l.Listener)
		if err != nil {
			closeAll(list)
			return fmt.Errorf("listen on %s: %w", l.Addr(), err)
		}
		l.stop = stop
	}
	return nil
}

// Open opens the addresses of the configuration. AcceptSoon must follow.
func (ls *Listeners) Open() error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed {
		return door.ErrClosed
	}
	ls.serving = true
	set := ls.config.Get()
	opened, err := ls.open(set, set.Endpoints())
	if err != nil {
		return err
	}
	ls.all = append(ls.all, opened...)
	if set.Network.UnixSocket != "" {
		l, err := transport.ListenUnix(set.Network.UnixSocket, set.Network.UnixSocketPerm, set.Network.UnixSocketGroup, set.Network.TCPBacklog)
		if err != nil {
			return err
		}
		ls.all = append(ls.all, &listener{Listener: l})
	}
	return nil
}

// AcceptSoon starts to accept clients after Grace. now starts at once, and returns the error if that fails.
func (ls *Listeners) AcceptSoon() (now func() error) {
	accept := sync.OnceValue(func() error {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		if ls.closed {
			return door.ErrClosed
		}
		return ls.serve(ls.all)
	})
	timer := time.AfterFunc(ls.Grace, func() { _ = accept() })
	return func() error {
		timer.Stop()
		return accept()
	}
}

var (
	errListen = errors.New("Unable to listen on this port. Check server logs.")
	errBind   = errors.New("Failed to bind to specified addresses.")
)

// update makes the server listen on the addresses of new settings. Sockets in both settings stay open. New sockets
// are opened before old ones are closed, unless an old one may block a new one, as 127.0.0.1 blocks *. If it fails,
// the server listens where it did before.
func (ls *Listeners) update(old, set *config.Settings) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	switch {
	case ls.closed:
		return door.ErrClosed
	case !ls.serving:
		return nil
	}
	kept, obsolete, wanted := ls.compare(set)
	opened, err := ls.open(set, wanted)
	early := errors.Is(err, syscall.EADDRINUSE) && slices.ContainsFunc(obsolete, func(l *listener) bool {
		return slices.ContainsFunc(wanted, func(e config.Endpoint) bool { return e.Port == l.at.Port })
	})
	if early {
		closeAll(obsolete)
		opened, err = ls.open(set, wanted)
	}
	if err == nil {
		err = ls.serve(opened)
	}
	if err != nil {
		ls.log.Error("cannot listen", "error", err.Error())
		if early {
			obsolete = ls.reopen(old, obsolete)
		}
		ls.all = append(kept, obsolete...)
		return config.ChangeError{"bind": errBind, "port": errListen, "tls-port": errListen}
	}
	if !early {
		closeAll(obsolete)
	}
	ls.all = append(kept, opened...)
	return nil
}

// compare returns the listeners that new settings keep, the obsolete ones, and the endpoints without a listener. mu
// is locked.
func (ls *Listeners) compare(set *config.Settings) (kept, obsolete []*listener, wanted []config.Endpoint) {
	wanted = set.Endpoints()
	for _, l := range ls.all {
		i := slices.IndexFunc(wanted, func(e config.Endpoint) bool {
			return e.Host == l.at.Host && e.Port == l.at.Port && e.Tls == l.at.Tls
		})
		switch {
		case l.at == config.Endpoint{}:
			kept = append(kept, l)
		case i >= 0:
			kept = append(kept, l)
			wanted = slices.Delete(wanted, i, i+1)
		default:
			obsolete = append(obsolete, l)
		}
	}
	return kept, obsolete, wanted
}

// reopen listens again on the addresses of closed listeners.
func (ls *Listeners) reopen(set *config.Settings, list []*listener) (opened []*listener) {
	for _, l := range list {
		again, err := ls.open(set, []config.Endpoint{l.at})
		if err == nil {
			err = ls.serve(again)
		}
		if err != nil {
			ls.log.Error("cannot listen again", "address", l.Addr().String(), "error", err.Error())
			continue
		}
		opened = append(opened, again...)
	}
	return opened
}

// Addrs returns the addresses of all listeners.
func (ls *Listeners) Addrs() (list []net.Addr) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		list = append(list, l.Addr())
	}
	return list
}

// Shown describes the listeners as INFO does: one text for all addresses of a port.
func (ls *Listeners) Shown() (list []string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	type group struct{ name, port string }
	var order []group
	binds := map[group]string{}
	for _, l := range ls.all {
		g, host := group{name: "tcp"}, l.at.Host
		switch a := l.Addr().(type) {
		case *net.UnixAddr:
			g.name, host = "unix", a.Name
		case *net.TCPAddr:
			g.port = ",port=" + strconv.Itoa(a.Port)
			if l.at == (config.Endpoint{}) {
				host = a.IP.String()
			}
		default:
			host = a.String()
		}
		if l.at.Tls {
			g.name = "tls"
		}
		if l.at.Optional {
			host = "-" + host
		}
		if _, ok := binds[g]; !ok {
			order = append(order, g)
		}
		binds[g] += ",bind=" + host
	}
	for _, g := range order {
		list = append(list, "name="+g.name+binds[g]+g.port)
	}
	return list
}

// Close closes all listeners for good. The transports, which are closed next, then notice it.
func (ls *Listeners) Close() error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.closed = true
	var errs []error
	for _, l := range ls.all {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
