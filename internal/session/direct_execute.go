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
	return d.run(ctx, cmd, container, args)
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
