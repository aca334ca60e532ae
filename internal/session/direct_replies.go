package session

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// How the replies of a Direct reach its caller.

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
	return d.take(), nil // if they are the last ones, the next command ends the session: see Done
}

// settle waits until the output may be given to the client, which depends only on the disk. mu must be locked.
func (d *Direct) settle() error {
	s, st, t := d.session, d.owner.shared.Storage, d.owner
	s.delayOutput()
	if s.delay.waiting() {
		t.mu.Lock()
		t.waiting[d] = struct{}{} // before the first check, so that no Recheck is missed
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
	if s.closing && len(s.out.Buf) == 0 {
		return nil, 0, d.failure()
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
	t.settling[signal] = struct{}{} // before the first check, so that no Recheck is missed
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.settling, signal)
		t.mu.Unlock()
	}()
	st.Commit()
	for {
		settled = st.Told() // before Lost is called: when changes are undone, Told moves beyond them
		if f := st.Err(); f != nil && f.Journal || st.Lost(position) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.ended {
				return 0, door.ErrClosed
			}
			d.session.undone() // failure says so if the journal has failed
			return 0, d.failure()
		}
		if settled >= position {
			return settled, nil
		}
		<-signal
	}
}

// keepBuffer is the largest buffer that is kept for reuse although it is not a client's reply buffer.
const keepBuffer = 64 * 1024

// take removes and returns the output, which the caller owns. mu must be locked.
func (d *Direct) take() []byte {
	s := d.session
	out := s.out.Buf
	s.delay.sent(len(out))
	s.forwarding.took(len(out))
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
			if messages := d.takeMessages(); len(messages) > 0 {
				return messages, nil
			}
		}
		s.publish()
		if err := d.sleep(ctx); err != nil {
			return nil, err
		}
	}
}

// takeMessages is take for messages. A leader sends them in pieces; the beginning of one that is not complete stays in the
// output. mu must be locked.
func (d *Direct) takeMessages() []byte {
	s := d.session
	if !s.forwarding.always {
		return d.take()
	}
	out, n := s.out.Buf, 0
	for n < len(out) {
		r, _, err := resp.NextReply(out[n:])
		if err != nil {
			break
		}
		n += len(r.Encoded())
	}
	rest := bytes.Clone(out[n:])
	s.out.Buf = out[:n]
	messages := d.take()
	s.out.Buf = append(s.out.Buf, rest...)
	return messages
}

// loaded waits until all keys are in memory. It gives up when loading makes no progress or ctx ends. mu must be
// locked.
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

// maxLoadingPause is the time without progress after which loading counts as failed.
const maxLoadingPause = 10 * time.Second

// WhenLoaded calls fn once all keys are in memory; ctx ends the waiting. No command of the client runs meanwhile.
func (d *Direct) WhenLoaded(ctx context.Context, fn func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return door.ErrClosed
	}
	if err := d.loaded(ctx); err != nil {
		return err
	}
	return fn()
}
