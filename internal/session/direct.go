package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// Direct is a door.Session: a client without a transport, whose commands are executed by the goroutines that call its
// methods.
type Direct struct {
	owner  *Directs
	pooled bool          // Release keeps it for the next use
	own    bool          // it works for a door itself; protected by Directs.mu
	signal chan struct{} // the session has mail, or the storage has changed, or the server closes
	late   bool          // the replies that Flush returns next have been delayed; used by the client's goroutine

	finished signalOnce
	begun    atomic.Bool // session is set

	// mu protects the following fields and the session's owner-only state. It is not held while a command waits. The
	// mu of a fork is taken after its parent's.
	mu      sync.Mutex
	session *Session
	ended   bool
	asleep  bool // a goroutine waits for signal, without mu

	parent *Direct              // of a fork
	forks  map[*Direct]struct{} // protected by Directs.mu
}

// signalOnce is a channel that is closed once. It is made by the first call of wait, because the garbage collector
// may end a session from outside of the testing/synctest bubble that its channels belong to.
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
		return nil // executing it returns the error
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
	own.db, own.digest = s.db, s.digest
	own.forwarding = forwarding{allowed: s.forwarding.always, always: s.forwarding.always, vouched: s.forwarding.vouched}
	own.authenticated.Store(s.authenticated.Load())
	own.account.Store(s.account.Load())
	own.publish()
	return fork, nil
}

// Release implements door.Session. A session of the pool is kept for the next use if its state is that of a new one.
func (d *Direct) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pooled && !d.ended && d.session.pristine() && d.keep() {
		return
	}
	d.end()
}

// keep makes the client idle, unless there are enough idle clients. mu must be locked.
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

// wake wakes the goroutine that waits for the session. It may be called under any lock.
func (d *Direct) wake() {
	if d.begun.Load() && d.session.dying() {
		d.finished.close()
	}
	select {
	case d.signal <- struct{}{}:
	default:
	}
}

// Done implements door.Session. The session must not seem to have ended before its last reply was sent, because the door then
// disconnects the peer.
func (d *Direct) Done() <-chan struct{} { return d.finished.wait() }

// Undone implements door.Session.
func (d *Direct) Undone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.session.why == door.ErrUndone && !d.session.dying()
}

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

// Replay executes one command, which must create a key.
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
