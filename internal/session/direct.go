package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// Direct is a door.Session: a client without a transport, whose commands are executed by the goroutines that call its
// methods.
type Direct struct {
	owner  *Directs
	pooled bool          // Release keeps it for the next use
	own    bool          // it does a door's own work; protected by Directs.mu
	signal chan struct{} // the session has mail, or the storage has changed, or the server closes
	late   bool          // the replies that Flush returns next have been delayed; used by the client's goroutine

	finished signalOnce
	begun    atomic.Bool // session is there

	// mu protects what follows, and the session's owner-only state. It is not held while a command waits for others.
	// That of a fork is taken after its parent's.
	mu      sync.Mutex
	session *Session
	ended   bool
	asleep  bool // somebody waits for signal, without mu

	parent *Direct              // of a fork
	forks  map[*Direct]struct{} // protected by Directs.mu
}

// signalOnce is a channel that is closed once. It is made when somebody asks for it: the garbage collector may end a
// session, from outside of the testing/synctest bubble that its channels belong to.
type signalOnce struct {
	mu   sync.Mutex // taken last
	c    chan struct{}
	over bool
}

// wait returns the channel.
func (o *signalOnce) wait() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.c == nil {
		o.c = make(chan struct{})
		if o.over {
			close(o.c)
		}
	}
	return o.c
}

// close closes the channel unless it is closed.
func (o *signalOnce) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over && o.c != nil {
		close(o.c)
	}
	o.over = true
}

// ID returns the number of the client.
func (d *Direct) ID() int64 { return d.session.id }

// Permitted implements door.Session.
func (d *Direct) Permitted(args [][]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return door.ErrClosed
	}
	s := d.session
	cmd, _ := s.shared.Table.Lookup(args)
	if cmd == nil {
		cmd = s.shared.foreignCommand(args)
	}
	if cmd == nil {
		return nil // executing it says that there is no such command
	}
	if s.lacksAuthentication(cmd) {
		return resp.Error(errNoAuth)
	}
	if e := s.denied(command.FromClient, cmd, args); e != "" {
		return resp.Error(e)
	}
	return nil
}

// Fork implements door.Session.
func (d *Direct) Fork() (door.Session, error) {
	t, s := d.owner, d.session
	d.mu.Lock()
	defer d.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if d.ended || t.closed {
		return nil, door.ErrClosed
	}
	if t.shared.Clients.Len() >= t.shared.Host.MaxClients() {
		return nil, door.ErrTooManyClients
	}
	fork := t.begin(s.peer, s.door)
	fork.parent = d
	if d.forks == nil {
		d.forks = map[*Direct]struct{}{}
	}
	d.forks[fork] = struct{}{}
	own := fork.session
	own.modes.options.Name, own.modes.options.Library = s.modes.options.Name, s.modes.options.Library
	own.db = s.db
	own.authenticated.Store(s.authenticated.Load())
	own.account.Store(s.account.Load())
	own.publish()
	return fork, nil
}

// Release implements door.Session. A session of the pool is kept for the next use if it is as good as new.
func (d *Direct) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pooled && !d.ended && d.session.pristine() && d.keep() {
		return
	}
	d.end()
}

// keep makes the client idle, unless there are enough that are. mu must be locked.
func (d *Direct) keep() bool {
	s, t := d.session, d.owner
	s.ctx.Args = nil
	d.take()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle) >= maxIdle() && !s.shared.mustSeeGone(s) {
		return false
	}
	t.idle = append(t.idle, d)
	return true
}

// pristine reports whether the client has not changed its session in a way that would show in its next commands.
func (s *Session) pristine() bool {
	return !s.closing && !s.Waiting() && !s.tx.active && len(s.tx.watches) == 0 &&
		s.modes.pristine() && s.out.Proto == 3 && s.account.Load() == nil && s.authenticated.Load() && !s.guard.NoTouch
}

// end closes the session. mu must be locked.
func (d *Direct) end() {
	if d.ended {
		return
	}
	d.ended = true
	if by := d.session.door; by != nil {
		by.Clients.Add(-1)
	}
	d.finished.close()
	d.session.Close()
	d.owner.mu.Lock()
	delete(d.owner.all, d)
	if d.parent != nil {
		delete(d.parent.forks, d)
	}
	forks := d.forks
	d.forks = nil
	d.owner.mu.Unlock()
	if d.asleep {
		d.wake()
	}
	for fork := range forks {
		fork.mu.Lock()
		fork.end()
		fork.mu.Unlock()
	}
}

// wake makes who waits look at the session. It may be called under any lock.
func (d *Direct) wake() {
	if d.begun.Load() && d.session.dying() {
		d.finished.close()
	}
	select {
	case d.signal <- struct{}{}:
	default:
	}
}

// Done implements door.Session.
func (d *Direct) Done() <-chan struct{} { return d.finished.wait() }

// SetUnobserved implements door.Session.
func (d *Direct) SetUnobserved(yes bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session.unobserved = yes
}

// Admitted implements door.Session.
func (d *Direct) Admitted() bool { return !d.session.mustAuthenticate() }

// Run implements door.Session.
func (d *Direct) Run(ctx context.Context, args [][]byte) error {
	return d.delay(ctx, d.execute(ctx, args, false))
}

// Control implements door.Session.
func (d *Direct) Control(ctx context.Context, args [][]byte) error {
	return d.delay(ctx, d.execute(ctx, args, true))
}

// Discard implements door.Session.
func (d *Direct) Discard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return
	}
	d.session.Discard()
	d.session.endCommands()
	d.session.publish()
	d.take()
}

// delay makes the replies that Flush returns next come late if a test wants that. err is that of the command.
func (d *Direct) delay(ctx context.Context, err error) error {
	if h := d.owner.shared.Hook; h != nil && err == nil {
		first := !d.late
		d.late = true
		if h.Wait(ctx, d.session, first) != nil {
			return door.ContextError(ctx)
		}
	}
	return err
}

func (d *Direct) execute(ctx context.Context, args [][]byte, control bool) error {
	if len(args) == 0 {
		return errors.New("a command has no name")
	}
	if ctx.Err() != nil {
		return door.ContextError(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return door.ErrClosed
	}
	s := d.session
	if d.readMail(); s.closing {
		return d.failure()
	}
	if s.door != nil {
		s.door.Commands.Add(1)
	}
	limit := s.shared.MaxBulk()
	for _, a := range args {
		if len(a) > limit {
			return fmt.Errorf("an argument of %d bytes is longer than proto-max-bulk-len allows", len(a))
		}
	}
	cmd, container := s.shared.Table.LookupEither(args)
	if cmd != nil && cmd.Flags&command.AllKeys != 0 {
		if err := d.loaded(ctx); err != nil {
			return err
		}
	}
	if cmd != nil && !control && cmd.Stateful {
		return fmt.Errorf("%s: %w", cmd.Name, door.ErrNeedsConnection)
	}
	return d.run(ctx, cmd, container, args)
}

// run executes a command and waits for its reply. mu must be locked.
func (d *Direct) run(ctx context.Context, cmd, container *command.Command, args [][]byte) error {
	s := d.session
	start := len(s.out.Buf)
	s.now = s.shared.Keyspace.Now()
	s.flushTally()
	for !s.execute(cmd, container, args) {
		if err := d.wait(ctx); err != nil {
			s.endPause()
			if s.work != nil {
				s.dropWork()
			}
			return err
		}
	}
	s.endCommands()
	s.shared.sample(s.now)
	if len(s.after) > 0 {
		s.runAfter()
	}
	for s.blocked != nil && !s.closing {
		err := d.wait(ctx)
		switch {
		case d.ended:
			return door.ErrClosed
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
		return d.failure()
	}
	return nil
}

// wait returns when something has happened to the session, or an error when ctx or the server has ended.
func (d *Direct) wait(ctx context.Context) error {
	s := d.session
	s.publish()
	if at := s.Deadline(); at != 0 {
		in := min(max(at-s.shared.Keyspace.Now(), 0), int64(time.Hour/time.Millisecond))
		timer := s.shared.Keyspace.Clock().AfterFunc(time.Duration(in)*time.Millisecond, d.wake)
		defer timer.Stop()
	}
	err := d.sleep(ctx)
	if d.ended {
		return door.ErrClosed
	}
	s.now = s.shared.Keyspace.Now()
	d.readMail()
	s.checkTimers()
	return err
}

// sleep waits for the signal, without the lock.
func (d *Direct) sleep(ctx context.Context) error {
	if d.session.box.filled.Load() {
		return nil // its signal may have been taken by somebody who waited for something else
	}
	d.asleep = true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.asleep = false
	}()
	select {
	case <-d.signal:
		return nil
	case <-ctx.Done():
		return door.ContextError(ctx)
	}
}

// readMail takes what others left for the session, but for messages: a client without subscriptions gets them only if
// another redirects its invalidations to it.
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
	d.finished.close()
	if st := d.owner.shared.Storage; st != nil {
		if f := st.Err(); f != nil && f.Journal {
			return fmt.Errorf("%w: %v", door.ErrNotDurable, f.Err)
		}
	}
	if why := d.session.why; why != nil {
		return why
	}
	return door.ErrKilled
}

// Flush implements door.Session.
func (d *Direct) Flush() ([]byte, error) {
	d.late = false
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return nil, door.ErrClosed
	}
	if err := d.settle(); err != nil {
		return nil, err
	}
	if d.session.closing {
		d.finished.close()
	}
	return d.take(), nil
}

// settle waits until the output may be given to the client, which depends on the disk alone. mu must be locked.
func (d *Direct) settle() error {
	s, st, t := d.session, d.owner.shared.Storage, d.owner
	s.delayOutput()
	if s.delay.waiting() {
		t.mu.Lock()
		t.waiting[d] = struct{}{} // before the first look, so that nothing is missed
		t.mu.Unlock()
		st.Commit()
		for s.delay.waiting() && s.Sendable() < len(s.out.Buf) {
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

// Ahead implements door.Session.
func (d *Direct) Ahead() (replies []byte, position uint64, err error) {
	d.late = false
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return nil, 0, door.ErrClosed
	}
	s := d.session
	s.delayOutput()
	if s.closing {
		if len(s.out.Buf) == 0 {
			return nil, 0, d.failure()
		}
		d.finished.close()
	}
	position = s.delay.position()
	replies = d.take()
	s.delay.drop()
	return replies, position, nil
}

// Settle implements door.Session.
func (d *Direct) Settle(position uint64) (settled uint64, err error) {
	st, t := d.owner.shared.Storage, d.owner
	if st == nil {
		return position, nil
	}
	if settled = st.Told(); settled >= position && !st.Lost(position) {
		return settled, nil
	}
	signal := make(chan struct{}, 1)
	t.mu.Lock()
	t.settling[signal] = struct{}{} // before the first look, so that nothing is missed
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.settling, signal)
		t.mu.Unlock()
	}()
	st.Commit()
	for {
		settled = st.Told() // before Lost is asked: where something is taken back, it moves beyond that
		if f := st.Err(); f != nil && f.Journal || st.Lost(position) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.ended {
				return 0, door.ErrClosed
			}
			d.session.Abort()
			return 0, d.failure()
		}
		if settled >= position {
			return settled, nil
		}
		<-signal
	}
}

// keepBuffer is the largest buffer that is kept for reuse where it is no client's reply buffer.
const keepBuffer = 64 * 1024

// take returns the output, which the caller owns, and leaves the session without any. mu must be locked.
func (d *Direct) take() []byte {
	s := d.session
	out := s.out.Buf
	s.delay.sent(len(out))
	if cap(out) > keepBuffer {
		s.out.Buf = nil
		return out
	}
	s.out.Buf = out[:0]
	return bytes.Clone(out)
}

// Receive implements door.Session.
func (d *Direct) Receive(ctx context.Context) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.session
	for {
		if d.ended {
			return nil, door.ErrClosed
		}
		s.now = s.shared.Keyspace.Now()
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
	st, t := d.owner.shared.Storage, d.owner
	if st == nil || !st.Loading() {
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
			return door.ErrClosed
		case ctx.Err() != nil:
			return door.ContextError(ctx)
		case err != nil && keys == st.Status().LoadedKeys && st.Loading():
			return errors.New(string(command.ErrLoading))
		}
		d.readMail()
	}
	return nil
}

// maxLoadingPause is how long nothing may be loaded before loading counts as failed.
const maxLoadingPause = 10 * time.Second

// WhenLoaded calls fn once all keys are in memory. No command of the client runs meanwhile.
func (d *Direct) WhenLoaded(fn func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return door.ErrClosed
	}
	if err := d.loaded(context.Background()); err != nil {
		return err
	}
	return fn()
}

// Replay executes one command, which must be one that makes keys.
func (d *Direct) Replay(args [][]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return door.ErrClosed
	}
	s := d.session
	cmd, container := s.shared.Table.LookupOriginal(args)
	if e := s.admit(command.FromRestore, cmd, container, args); e != "" {
		return errors.New(string(e))
	}
	s.ctx.NoBlock = true
	defer func() { s.ctx.NoBlock = false }()
	if err := d.run(context.Background(), cmd, container, args); err != nil {
		return err
	}
	if out := s.out.Buf; out[0] == '-' {
		return fmt.Errorf("%s: %s", cmd.Name, bytes.TrimSpace(out[1:]))
	}
	s.delay.sent(len(s.out.Buf))
	s.out.Buf = s.out.Buf[:0]
	return nil
}

// foreignCommand returns the command of a door that the arguments name, or nil.
func (sh *Shared) foreignCommand(args [][]byte) *command.Command {
	for _, cmd := range sh.Foreign {
		if !command.EqualFold(args[0], cmd.Name) {
			continue
		}
		for _, sub := range cmd.Subs {
			if len(args) > 1 && command.EqualFold(args[1], strings.TrimPrefix(sub.Name, cmd.Name+"|")) {
				return sub
			}
		}
		return cmd
	}
	return nil
}
