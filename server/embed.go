package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/store"
)

// This file is how a program that has the server inside itself uses it: with connections that it hands over (Server.ServeConn), and with
// commands that its own goroutines execute (Direct). Snapshots are in snapshot.go.

// What keeps commands of a Direct from being executed, or their replies from being given.
var (
	// ErrClosed says that the server is closed. What a command did that was executed meanwhile may have happened or not.
	ErrClosed = errors.New("the server is closed")
	// ErrKilled says that the session was ended by CLIENT KILL, or because too many messages waited for it.
	ErrKilled = errors.New("the server has ended the session")
	// ErrNotDurable says that the journal has failed: what the command did may be lost.
	ErrNotDurable = errors.New("the journal has failed, and what the command did may be lost")
	// ErrInUse says that another server uses the data directory.
	ErrInUse = store.ErrInUse
	// ErrInHandler says that the handler of a custom command uses the server other than by calling commands.
	ErrInHandler = errors.New("the handler of a command must use the Call of its Ctx, because the server waits for it")
	// ErrNeedsConnection says that a command changes the state of its connection, which a Direct does not keep.
	ErrNeedsConnection = errors.New("the command needs a connection of its own")
)

// ContextError returns why a context has ended: its error, and its cause if that says more.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// embeddedPeer is where clients come from that are part of the program: they count as clients on the same machine.
var embeddedPeer = Peer{Addr: "@embedded:0", Local: "@embedded:0"}

// startTransports prepares all ways in which clients reach their sessions: the listeners, connections that are handed over, and the
// program itself. Without anything to listen on there are no event loops: a thread that waits for events would keep a testing/synctest
// bubble from being idle.
func (srv *Server) startTransports(o Options, loops int) error {
	srv.streams, srv.direct = newGoroutines(srv), newDirects(srv)
	srv.carriers = []carrier{srv.streams, srv.direct}
	srv.transport = srv.streams
	if o.Goroutines || o.Hook != nil || !srv.listens() {
		return nil
	}
	var err error
	srv.transport, err = newTransport(srv, loops, o.SpareProcessors)
	if err == nil {
		srv.carriers = append(srv.carriers, srv.transport)
	}
	return err
}

// listens reports whether there will be listeners.
func (srv *Server) listens() bool {
	set := srv.config.Get()
	return len(srv.listeners.all) > 0 || set.Port != 0 || set.TLS.Port != 0 || set.UnixSocket != ""
}

// ServeConn serves a client at the other end of a connection, of whatever kind, in the background; it owns conn from now on. The
// error is ErrClosed if the server is closed. A client that is refused is told so, and the connection closed, without an error.
func (srv *Server) ServeConn(conn net.Conn) error { return srv.streams.accept(conn) }

// directs are the clients that are part of the program.
type directs struct {
	srv *Server

	mu      sync.Mutex // protects what follows; taken after Direct.mu
	closed  bool
	all     map[*Direct]struct{}
	idle    []*Direct            // those that are not in use, the one used last at the end
	waiting map[*Direct]struct{} // those that must hear of storageChanged
}

func newDirects(srv *Server) *directs {
	return &directs{srv: srv, all: map[*Direct]struct{}{}, waiting: map[*Direct]struct{}{}}
}

// maxIdle is how many sessions are kept for later commands.
func maxIdle() int { return 16 * runtime.GOMAXPROCS(0) }

// storageChanged implements carrier.
func (t *directs) storageChanged() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for d := range t.waiting {
		d.wake()
	}
}

// close ends all sessions. A command that is being executed comes to its end first, and one that waits ends now.
func (t *directs) close() {
	t.mu.Lock()
	t.closed = true
	all := make([]*Direct, 0, len(t.all))
	for d := range t.all {
		all = append(all, d)
	}
	t.mu.Unlock()
	for _, d := range all {
		d.mu.Lock()
		d.end()
		d.mu.Unlock()
		d.wake()
	}
}

// Direct is a client that is part of the program: a session without a transport, whose commands are executed by the goroutines that
// call its methods, one at a time. Replies are in RESP3, and are given only once what they tell is as durable as appendfsync demands.
type Direct struct {
	owner  *directs
	signal chan struct{} // the session has mail, or the storage has changed, or the server closes
	late   bool          // the replies that Flush returns next have been delayed; used by whoever uses the client

	mu      sync.Mutex // protects what follows, and the session's owner-only state; not held while a command waits for others
	session *Session
	ended   bool
}

// Direct returns a client whose commands are executed in a database. Release must be called when it is not used any more.
func (srv *Server) Direct(db int) (*Direct, error) {
	if db < 0 || db >= srv.ks.Databases() || db != 0 && srv.cluster != nil {
		return nil, fmt.Errorf("there is no database %d", db)
	}
	if err := srv.NotInHandler(); err != nil {
		return nil, err
	}
	t := srv.direct
	for {
		d, err := t.get()
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		d.readMail()
		if d.session.closing {
			d.end() // somebody has killed it while it was idle
		}
		d.session.db = db
		d.late = false
		ended := d.ended
		d.mu.Unlock()
		if !ended {
			return d, nil
		}
	}
}

// get returns an idle client, or a new one.
func (t *directs) get() (*Direct, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	if n := len(t.idle); n > 0 {
		d := t.idle[n-1]
		t.idle = t.idle[:n-1]
		return d, nil
	}
	d := &Direct{owner: t, signal: make(chan struct{}, 1)}
	d.session = t.srv.newSession(embeddedPeer, d.wake)
	d.session.account.Store(nil)
	d.session.setAuthenticated(true)
	d.session.setProto(3)
	t.all[d] = struct{}{}
	return d, nil
}

// Release ends the use of the client. Its session is kept for the next one if it is as good as new.
func (d *Direct) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.session
	s.ctx.Args = nil
	t := d.owner
	if !d.ended && s.pristine() {
		d.take()
		t.mu.Lock()
		keep := len(t.idle) < maxIdle() || s.holdsRoles()
		if keep {
			t.idle = append(t.idle, d)
		}
		t.mu.Unlock()
		if keep {
			return
		}
	}
	d.end()
}

// pristine reports whether the client has not changed its session in a way that would show in its next commands.
func (s *Session) pristine() bool {
	return !s.closing && s.blocked == nil && s.pausedUntil == 0 && !s.tx.active && len(s.tx.watches) == 0 && s.subs.count == 0 &&
		!s.monitor && s.follower.pristine() && !s.tracking.on && !s.tracking.caching && s.replies == replyOn && s.out.Proto == 3 && s.account.Load() == nil && s.authenticated &&
		!s.noEvict && !s.guard.NoTouch && !s.debugging && s.name == "" && s.libName == "" && s.libVersion == ""
}

// holdsRoles reports whether closing the session would give roles of pressure queues back.
func (s *Session) holdsRoles() bool {
	s.srv.roles.mu.Lock()
	defer s.srv.roles.mu.Unlock()
	return len(s.roles.held) > 0
}

// end closes the session. mu must be locked.
func (d *Direct) end() {
	if d.ended {
		return
	}
	d.ended = true
	d.session.Close()
	d.owner.mu.Lock()
	delete(d.owner.all, d)
	d.owner.mu.Unlock()
}

// wake makes who waits look at the session. It may be called under any lock.
func (d *Direct) wake() {
	select {
	case d.signal <- struct{}{}:
	default:
	}
}

// Run executes a command, args[0] being its name; the reply is part of what Flush returns next. It waits as long as the command
// blocks, or is held up by CLIENT PAUSE, and ctx lasts: if ctx ends before the command was served, nothing is taken and the error is
// that of ctx. A command that changes the state of its connection is refused with ErrNeedsConnection. args are not kept.
func (d *Direct) Run(ctx context.Context, args [][]byte) error {
	return d.delay(ctx, d.execute(ctx, args, false))
}

// Control is Run for commands that change the state of the connection. If they still show when the client is released, the session is closed.
func (d *Direct) Control(ctx context.Context, args [][]byte) error {
	return d.delay(ctx, d.execute(ctx, args, true))
}

// delay makes the replies that Flush returns next come late if a test wants that. err is that of the command.
func (d *Direct) delay(ctx context.Context, err error) error {
	if h := d.owner.srv.hook; h != nil && err == nil {
		first := !d.late
		d.late = true
		if h.Wait(ctx, d.session, first) != nil {
			return ContextError(ctx)
		}
	}
	return err
}

func (d *Direct) execute(ctx context.Context, args [][]byte, control bool) error {
	if len(args) == 0 {
		return errors.New("a command has no name")
	}
	if ctx.Err() != nil {
		return ContextError(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.session
	switch {
	case d.ended:
		return ErrClosed
	case s.closing:
		return d.failure()
	}
	limit := s.srv.MaxBulk()
	for _, a := range args {
		if len(a) > limit {
			return fmt.Errorf("an argument of %d bytes is longer than proto-max-bulk-len allows", len(a))
		}
	}
	cmd, container := s.srv.table.LookupEither(args)
	if cmd != nil && cmd.Flags&command.AllKeys != 0 {
		if err := d.loaded(ctx); err != nil {
			return err
		}
	}
	if cmd != nil && !control && cmd.Stateful {
		return fmt.Errorf("%s: %w", cmd.Name, ErrNeedsConnection)
	}
	return d.run(ctx, cmd, container, args)
}

// run executes a command and waits for its reply. mu must be locked.
func (d *Direct) run(ctx context.Context, cmd, container *command.Command, args [][]byte) error {
	s := d.session
	start := len(s.out.Buf)
	s.now = s.srv.ks.Now()
	s.flushTally()
	for !s.execute(cmd, container, args) {
		if err := d.wait(ctx); err != nil {
			return err // Release closes the session, which is still waiting
		}
	}
	s.endCommands()
	s.srv.rates.sample(s.srv, s.now)
	if len(s.roles.suspects) > 0 {
		s.lookAtSuspects()
	}
	for s.blocked != nil && !s.closing {
		err := d.wait(ctx)
		switch {
		case d.ended:
			return ErrClosed
		case err == nil || s.blocked == nil:
		case s.blocked.wait.waiter.Withdraw():
			s.takeBack()
			s.endBlock(nil)
			s.publish()
			return err
		default:
			ctx = context.Background() // it has been served: the mail that says so is on its way
		}
	}
	s.publish()
	if s.closing && len(s.out.Buf) == start {
		if cmd != nil && cmd.Name == "shutdown" {
			return ErrClosed
		}
		return d.failure()
	}
	return nil
}

// wait returns when something has happened to the session, or an error when ctx or the server has ended.
func (d *Direct) wait(ctx context.Context) error {
	s := d.session
	s.publish()
	if at := s.Deadline(); at != 0 {
		in := min(max(at-s.srv.ks.Now(), 0), int64(time.Hour/time.Millisecond))
		timer := s.srv.ks.Clock().AfterFunc(time.Duration(in)*time.Millisecond, d.wake)
		defer timer.Stop()
	}
	err := d.sleep(ctx)
	if d.ended {
		return ErrClosed
	}
	s.now = s.srv.ks.Now()
	d.readMail()
	s.checkTimers()
	return err
}

// sleep waits for the signal, without the lock.
func (d *Direct) sleep(ctx context.Context) error {
	if d.session.box.filled.Load() {
		return nil // its signal may have been taken by somebody who waited for something else
	}
	d.mu.Unlock()
	defer d.mu.Lock()
	select {
	case <-d.signal:
		return nil
	case <-ctx.Done():
		return ContextError(ctx)
	}
}

// readMail takes what others left for the session, but for messages: a client without subscriptions gets them only if another redirects
// its invalidations to it.
func (d *Direct) readMail() {
	s := d.session
	if !s.box.filled.Load() {
		return
	}
	s.box.mu.Lock()
	s.box.push = s.box.push[:0]
	s.box.mu.Unlock()
	s.readMail()
}

// failure returns why the session was aborted.
func (d *Direct) failure() error {
	if st := d.owner.srv.storage.Storage; st != nil {
		if f := st.Err(); f != nil && f.Journal {
			return fmt.Errorf("%w: %v", ErrNotDurable, f.Err)
		}
	}
	return ErrKilled
}

// Flush returns the replies of the commands that were run since it was called last, one after the other, when all that they tell is durable.
// The caller owns them.
func (d *Direct) Flush() ([]byte, error) {
	d.late = false
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return nil, ErrClosed
	}
	if err := d.settle(); err != nil {
		return nil, err
	}
	return d.take(), nil
}

// settle waits until the output may be given to the client. That does not depend on anybody but the disk. mu must be locked.
func (d *Direct) settle() error {
	s, st, t := d.session, &d.owner.srv.storage, d.owner
	s.holdOutput()
	if len(s.holds) > 0 {
		t.mu.Lock()
		t.waiting[d] = struct{}{} // before the first look, so that nothing is missed
		t.mu.Unlock()
		st.Commit()
		for len(s.holds) > 0 && s.Sendable() < len(s.out.Buf) {
			<-d.signal
		}
		t.mu.Lock()
		delete(t.waiting, d)
		t.mu.Unlock()
	}
	if s.closing && len(s.out.Buf) == 0 {
		return d.failure()
	}
	return nil
}

// take returns the output, which the caller owns, and leaves the session without any. mu must be locked.
func (d *Direct) take() []byte {
	s := d.session
	out := s.out.Buf
	s.tookOutput(len(out))
	if cap(out) > keepBuffer {
		s.out.Buf = nil
		return out
	}
	s.out.Buf = out[:0]
	return bytes.Clone(out)
}

// Receive waits for messages of the client's subscriptions, and returns those that have come, encoded one after the other. The caller
// owns them.
func (d *Direct) Receive(ctx context.Context) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.session
	for {
		if d.ended {
			return nil, ErrClosed
		}
		s.now = s.srv.ks.Now()
		s.readMail()
		if s.closing {
			return nil, d.failure()
		}
		if len(s.out.Buf) > 0 {
			if err := d.settle(); err != nil {
				return nil, err
			}
			return d.take(), nil
		}
		s.publish()
		if err := d.sleep(ctx); err != nil {
			return nil, err
		}
	}
}

// loaded waits until all keys are in memory, as long as more and more of them are, and ctx lasts. mu must be locked.
func (d *Direct) loaded(ctx context.Context) error {
	st, t := &d.owner.srv.storage, d.owner
	if st.Storage == nil || !st.Loading() {
		return nil
	}
	t.mu.Lock()
	t.waiting[d] = struct{}{}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.waiting, d)
		t.mu.Unlock()
	}()
	for st.Loading() {
		keys := st.Status().LoadedKeys
		pause, cancel := context.WithTimeout(ctx, maxLoadingPause)
		err := d.sleep(pause)
		cancel()
		switch {
		case d.ended:
			return ErrClosed
		case ctx.Err() != nil:
			return ContextError(ctx)
		case err != nil && keys == st.Status().LoadedKeys && st.Loading():
			return errors.New(string(errLoading))
		}
		d.readMail()
	}
	return nil
}

// maxLoadingPause is how long nothing may be loaded before loading counts as failed.
const maxLoadingPause = 10 * time.Second

// underAll calls fn with a guard over the whole keyspace. A stored value that cannot be read ends it with an error, and so does a bug.
func (srv *Server) underAll(fn func(g *engine.Guard)) (err error) {
	var g engine.Guard
	g.Lock(srv.ks, engine.AllShards, srv.ks.Now())
	defer g.Unlock()
	if srv.replica.loading.Load() {
		return errors.New(string(errLoading))
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *engine.LoadError:
			err = p
		default:
			srv.log.Error("walking through the keyspace has failed", "panic", p, "stack", string(debug.Stack()))
			err = errors.New("internal error")
		}
	}()
	fn(&g)
	return nil
}
