// Package tlsconfig makes the configurations of TLS from the directives tls-* and the files that they name, and
// reloads files that change while the server runs. New connections use the configuration loaded last. It has its
// settings and files, so that a timer cannot undo a change of a directive.
package tlsconfig

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/files"
)

// ErrUpdate is the error of a directive whose new value cannot be used; the log has the cause.
var ErrUpdate = errors.New("Unable to update TLS configuration. Check server logs.")

// watchPeriod is how often files are checked for changes.
const watchPeriod = 20 * time.Second

// TLS holds a server's configurations of TLS. Its methods may be called from any goroutine.
type TLS struct {
	config *config.Config
	clock  engine.Clock
	log    *slog.Logger
	loaded atomic.Pointer[loaded] // nil until TLS is used

	reading sync.Mutex   // held while files are checked, and protects refused
	refused files.States // the states of files that could not be used

	mu     sync.Mutex // protects the following fields
	timer  engine.Timer
	closed bool
}

// New returns a TLS that has loaded nothing.
func New(conf *config.Config, clock engine.Clock, log *slog.Logger) *TLS {
	return &TLS{config: conf, clock: clock, log: log}
}

// Follow applies changes of the directives from now on.
func (t *TLS) Follow() {
	names := config.TLSNames()
	for _, k := range door.Kinds() {
		names = append(names, k.DirectiveNames()...)
	}
	t.config.Apply(func(old, set *config.Settings) (func() error, error) {
		before := t.loaded.Load()
		return func() error { t.loaded.Store(before); return nil }, t.update(old, set)
	}, names...)
}

// Load loads the files for the settings that a server starts with, if anything uses TLS.
func (t *TLS) Load(set *config.Settings) error {
	if !set.WantsTLS() {
		return nil
	}
	l, err := load(&set.TLS)
	if err == nil {
		t.loaded.Store(l)
	}
	return err
}

// Loaded reports whether anything has used TLS.
func (t *TLS) Loaded() bool { return t.loaded.Load() != nil }

// Server returns the configuration for connections of clients. A connection uses the configuration that is loaded
// when it begins.
func (t *TLS) Server() *tls.Config {
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.loaded.Load().server, nil }}
}

// Client returns the configuration for a connection that the server opens.
func (t *TLS) Client() *tls.Config { return t.loaded.Load().client }

// Peers returns the configuration for connections that servers of the group open: each must show a certificate.
func (t *TLS) Peers() *tls.Config {
	c := t.loaded.Load().server.Clone()
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c
}

// update loads the files if a directive of TLS was set, or if they are needed from now on.
func (t *TLS) update(old, set *config.Settings) error {
	if !set.WantsTLS() || old.WantsTLS() && !differs(&set.TLS, &old.TLS) && !set.RereadFiles {
		return nil
	}
	l, err := load(&set.TLS)
	if err != nil {
		t.log.Error("the TLS configuration cannot be used", "error", err.Error())
		return changeError()
	}
	t.loaded.Store(l)
	t.Watch()
	return nil
}

// differs reports whether files must be loaded again. The change affects only new connections.
func differs(s *config.TLSSettings, old *config.TLSSettings) bool {
	a, b := *s, *old
	a.Port, b.Port = 0, 0
	return !reflect.DeepEqual(a, b)
}

// changeError is the error of a change of a directive that TLS cannot apply; the log has the cause.
var changeError = sync.OnceValue(func() config.ChangeError {
	e := config.ChangeError{}
	for _, name := range config.TLSNames() {
		e[name] = ErrUpdate
	}
	for _, k := range door.Kinds() {
		e[k.AddressDirective()], e[k.Directive()+"-tls"] = ErrUpdate, ErrUpdate
	}
	return e
})

// Watch begins to check the files regularly, if anything uses TLS. Otherwise there is no timer, because a test's
// clock that advances by years would have to run it each time.
func (t *TLS) Watch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed && t.timer == nil && t.Loaded() {
		t.arm()
	}
}

// arm starts the timer of the regular checks. mu is locked.
func (t *TLS) arm() {
	t.timer = t.clock.AfterFunc(watchPeriod, func() {
		t.reading.Lock()
		defer t.reading.Unlock()
		if t.again() {
			t.reread()
		}
	})
}

// again arms the timer, and returns false if the server is closed.
func (t *TLS) again() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.arm()
	}
	return !t.closed
}

// Reread loads the files again if one of them has changed. If files cannot be used it logs that, and the previous
// configuration stays.
func (t *TLS) Reread() {
	t.reading.Lock()
	defer t.reading.Unlock()
	t.reread()
}

// reread is Reread. Files that cannot be used are not tried again before the next change. reading is locked.
func (t *TLS) reread() {
	l := t.loaded.Load()
	if l == nil {
		return
	}
	now := files.Stat(fileNames(&l.by)...)
	if now.Equal(l.files) || now.Equal(t.refused) {
		return
	}
	next, err := load(&l.by)
	if err != nil {
		t.refused = now
		t.log.Error("cannot load a changed TLS file; keeping the previous one", "error", err.Error())
		return
	}
	if t.loaded.CompareAndSwap(l, next) { // otherwise a client has changed a directive meanwhile
		t.log.Info("reloaded changed TLS files")
	}
}

// Close stops watching, and returns when no file is being read.
func (t *TLS) Close() {
	t.reading.Lock()
	defer t.reading.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
}
