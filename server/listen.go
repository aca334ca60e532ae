package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/transport"
)

// listeners are the sockets on which clients come. Those of bind, port and tls-port can change while the server runs.
type listeners struct {
	mu      sync.Mutex // protects what follows, and is held while sockets are opened and closed
	all     []*listener
	serving bool // from Start on; before that there is nothing to be changed
	closed  bool
	grace   time.Duration // loadingGrace; only tests change it
}

// listener is one of them.
type listener struct {
	net.Listener
	// at is what the configuration calls it; the zero value if it is a Unix socket, or one that a program has handed over.
	at config.Endpoint
	// stop ends accepting and frees the address at once. It is nil before the listener is served.
	stop func()
}

// close ends the listener.
func (l *listener) close() {
	if l.stop != nil {
		l.stop()
	} else {
		l.Close()
	}
}

// openEndpoint begins to listen; l is nil if the address is optional and the machine does not have it.
func openEndpoint(e config.Endpoint, set *config.Settings) (l net.Listener, err error) {
	network, host := "tcp", e.Host
	switch host {
	case "*":
		network, host = "tcp4", "0.0.0.0"
	case "::*":
		network, host = "tcp6", "::"
	}
	l, err = transport.Listen(network, net.JoinHostPort(host, strconv.Itoa(e.Port)), set.TCPBacklog)
	if err != nil && e.Optional && !errors.Is(err, syscall.EADDRINUSE) {
		return nil, nil
	}
	return l, err
}

// open begins to listen at all of the endpoints, or at none if there is an error.
func (srv *Server) open(set *config.Settings, list []config.Endpoint) (opened []*listener, err error) {
	for _, e := range list {
		var l net.Listener
		if l, err = openEndpoint(e, set); err != nil {
			break
		}
		if l == nil {
			continue
		}
		if e.Tls {
			l = tls.NewListener(l, srv.tls.Server())
		}
		opened = append(opened, &listener{Listener: l, at: e})
	}
	if err != nil {
		closeAll(opened)
		return nil, err
	}
	return opened, nil
}

// serve has clients accepted from all of the listeners from which they are not yet, or closes all listeners.
func (srv *Server) serve(list []*listener) error {
	for _, l := range list {
		if l.stop != nil {
			continue
		}
		var by transport.Transport = srv.goroutines
		switch l.Listener.(type) {
		case *net.TCPListener, *net.UnixListener: // others have TLS, or whatever a program has in mind
			if srv.loops != nil {
				by = srv.loops
			}
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

func closeAll(list []*listener) {
	for _, l := range list {
		l.close()
	}
}

// loadingGrace is how long clients wait in the queue of a socket while stored data is read, before they are accepted and get
// LOADING. Programs that connect as soon as a server listens do not expect that error of one with little data.
const loadingGrace = 300 * time.Millisecond

// acceptSoon has clients accepted after loadingGrace. now has them accepted at once, and returns why that is impossible.
func (srv *Server) acceptSoon() (now func() error) {
	accept := sync.OnceValue(func() error {
		ls := &srv.listeners
		ls.mu.Lock()
		defer ls.mu.Unlock()
		if ls.closed {
			return door.ErrClosed
		}
		return srv.serve(ls.all)
	})
	timer := time.AfterFunc(srv.listeners.grace, func() { _ = accept() })
	return func() error {
		timer.Stop()
		return accept()
	}
}

// listen opens the addresses that the configuration asks for.
func (srv *Server) listen(set *config.Settings) error {
	ls := &srv.listeners
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed {
		return door.ErrClosed
	}
	ls.serving = true
	if err := srv.tls.Load(set); err != nil {
		return err
	}
	opened, err := srv.open(set, set.Endpoints())
	if err != nil {
		return err
	}
	ls.all = append(ls.all, opened...)
	if set.UnixSocket != "" {
		l, err := transport.ListenUnix(set.UnixSocket, set.UnixSocketPerm, set.UnixSocketGroup, set.TCPBacklog)
		if err != nil {
			return err
		}
		ls.all = append(ls.all, &listener{Listener: l})
	}
	return nil
}

var (
	errListen = errors.New("Unable to listen on this port. Check server logs.")
	errBind   = errors.New("Failed to bind to specified addresses.")
)

// followAddresses has the server listen where the settings say.
func (srv *Server) followAddresses() {
	srv.config.Apply(func(old, set *config.Settings) (func() error, error) {
		return func() error { return srv.updateListeners(set, old) }, srv.updateListeners(old, set)
	}, "bind", "port", "tls-port")
}

// updateListeners has the server listen where new settings say. Sockets that both settings have stay as they are, and
// clients that are connected stay too. New sockets are opened before old ones are closed, unless an old one may stand
// in the way of a new one, as 127.0.0.1 does of *. If it fails the server listens where it did before.
func (srv *Server) updateListeners(old, set *config.Settings) error {
	ls := &srv.listeners
	ls.mu.Lock()
	defer ls.mu.Unlock()
	switch {
	case ls.closed:
		return door.ErrClosed
	case !ls.serving:
		return nil
	}
	wanted := set.Endpoints()
	var kept, obsolete []*listener
	for _, l := range ls.all {
		i := slices.IndexFunc(wanted, func(e config.Endpoint) bool {
			return e.Host == l.at.Host && e.Port == l.at.Port &&
				e.Tls == l.at.Tls
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
	opened, err := srv.open(set, wanted)
	early := errors.Is(err, syscall.EADDRINUSE) && slices.ContainsFunc(obsolete, func(l *listener) bool {
		return slices.ContainsFunc(wanted, func(e config.Endpoint) bool { return e.Port == l.at.Port })
	})
	if early {
		closeAll(obsolete)
		opened, err = srv.open(set, wanted)
	}
	if err == nil {
		err = srv.serve(opened)
	}
	if err != nil {
		srv.log.Error("cannot listen", "error", err.Error())
		if early {
			obsolete = srv.reopen(old, obsolete)
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

// reopen listens again where it was closed.
func (srv *Server) reopen(set *config.Settings, list []*listener) (opened []*listener) {
	for _, l := range list {
		again, err := srv.open(set, []config.Endpoint{l.at})
		if err == nil {
			err = srv.serve(again)
		}
		if err != nil {
			srv.log.Error("cannot listen again", "address", l.Addr().String(), "error", err.Error())
			continue
		}
		opened = append(opened, again...)
	}
	return opened
}

// addrs returns where the server listens.
func (ls *listeners) addrs() (list []net.Addr) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		list = append(list, l.Addr())
	}
	return list
}

// shown describes the listeners as INFO does: one text for all addresses of a port.
func (ls *listeners) shown() (list []string) {
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

// close ends all listeners for good. The transports, which are about to be closed, hear of it then.
func (ls *listeners) close() error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.closed = true
	var errs []error
	for _, l := range ls.all {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
