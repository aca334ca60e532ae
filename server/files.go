package server

import (
	"sync"
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/files"
)

// Files that directives name may change while the server runs: certificates are renewed, lists of users are
// distributed.

// fileWatchPeriod is how often certificates are looked at.
const fileWatchPeriod = 20 * time.Second

// fileWatch looks at files now and then.
type fileWatch struct {
	reading sync.Mutex   // held while files are looked at, and protects refused
	refused files.States // as the files of TLS were when they could not be used

	mu     sync.Mutex // protects what follows
	timer  engine.Timer
	closed bool
}

// start has certificates looked at from now on, if there are any and that has not begun before. Without any there is no
// timer, which a clock that is moved by years would have to serve each time.
func (f *fileWatch) start(srv *Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed && f.timer == nil && srv.tls.Load() != nil {
		f.arm(srv)
	}
}

// arm has certificates looked at after a while, and so on. mu is locked.
func (f *fileWatch) arm(srv *Server) {
	f.timer = srv.ks.Clock().AfterFunc(fileWatchPeriod, func() {
		f.reading.Lock()
		defer f.reading.Unlock()
		if f.again(srv) {
			srv.rereadTLS()
		}
	})
}

// again arms the timer unless the server is closed, which it reports.
func (f *fileWatch) again(srv *Server) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.arm(srv)
	}
	return !f.closed
}

// close returns when files are no longer watched.
func (f *fileWatch) close() {
	f.reading.Lock()
	defer f.reading.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
}

// RereadFiles reads files that directives name, certificates and the users of aclfile, again if they have changed.
// What cannot be used is refused with a line of the log, and what was there before stays.
func (srv *Server) RereadFiles() {
	f := &srv.files
	f.reading.Lock()
	defer f.reading.Unlock()
	srv.rereadTLS()
	srv.users.Reread()
}
