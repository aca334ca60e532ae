package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/command"
)

// How a Direct executes commands.

// delay delays the replies that Flush returns next if a test wants that. err is the command's error.
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
	return d.runAtOwner(ctx, cmd, container, args)
}

const (
	// askAgainAfter is how many ms a command waits that could not be executed because its slot moves.
	askAgainAfter = 20
	// askAgainFor is for how long such a command is tried again, in multiples of raft-timeout.
	askAgainFor = 10
)

// runAtOwner is run for a client whose commands may be forwarded. If the keys of the command have just moved, it executes the
// command again, at their new place. mu must be locked.
func (d *Direct) runAtOwner(ctx context.Context, cmd, container *command.Command, args [][]byte) error {
	s := d.session
	start := len(s.out.Buf)
	err := d.run(ctx, cmd, container, args)
	if !s.forwarding.always {
		return err
	}
	for until := s.now + askAgainFor*int64(s.shared.Config.Get().Raft.Timeout); err == nil && s.now < until && s.redirected(start); {
		s.out.Truncate(start)
		s.beginWait(forLeader, s.now+askAgainAfter)
		err = d.run(ctx, cmd, container, args)
	}
	return err
}

// awaitLeader waits until leaders have answered what was forwarded to them. If ctx ends first, it is unknown whether the
// command is executed, and the client ends. mu must be locked.
func (d *Direct) awaitLeader(ctx context.Context) error {
	s := d.session
	if s.forwarding.to == nil && len(s.forwarding.shards) == 0 || !s.forwarding.always {
		return nil
	}
	for !s.forwarding.answered() || s.box.has(mailLeader) {
		if s.closing {
			return nil
		}
		had := len(s.out.Buf)
		if err := d.wait(ctx); err != nil {
			s.Abort()
			return err
		}
		s.forwarding.took(len(s.out.Buf) - had)
	}
	listens := false
	s.forwarding.each(func(to Forwarder) { listens = listens || to.Busy() })
	s.info.Lock()
	s.infoData.listens = listens
	s.info.Unlock()
	return nil
}

// run executes a command and waits for its reply. mu must be locked.
func (d *Direct) run(ctx context.Context, cmd, container *command.Command, args [][]byte) error {
	s := d.session
	start := len(s.out.Buf)
	s.now = s.shared.Keyspace.Now()
	s.flushCalls()
	if err := d.awaitTurn(ctx); err != nil {
		return err
	}
	for !s.execute(cmd, container, args) {
		if err := d.awaitTurn(ctx); err != nil {
			return err
		}
	}
	s.endCommands()
	if err := d.awaitLeader(ctx); err != nil {
		return err
	}
	s.shared.sample(s.now)
	if len(s.after) > 0 {
		s.runAfter()
	}
	for s.isBlocked() && !s.closing {
		err := d.wait(ctx)
		switch {
		case d.ended:
			return door.ErrClosed
		case err == nil || !s.isBlocked():
		case s.blocked.keyWait.waiter.Withdraw():
			s.takeBack()
			s.endBlock(nil)
			s.publish()
			return err
		default:
			ctx = context.Background() // it has been served: the mail about it will come
		}
	}
	s.publish()
	if s.closing && len(s.out.Buf) == start {
		return d.failure()
	}
	return nil
}

// awaitTurn returns when a command may be executed, or an error when ctx, the client or the server has ended.
func (d *Direct) awaitTurn(ctx context.Context) error {
	s := d.session
	for s.Waiting() {
		err := d.wait(ctx)
		if err == nil && s.closing {
			err = d.failure()
		}
		if err != nil {
			s.abandonWait()
			return err
		}
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
		return nil // another waiting goroutine may have received its signal
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

// readMail acts on the session's mail, but not on messages: a client without subscriptions gets messages only if
// another one redirects its invalidations to it.
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

// failure returns the reason for which the session was aborted.
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
