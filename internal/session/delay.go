package session

import (
	"slices"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/command"
)

// delayedOutput is the part of a session's output that waits for the journal. A reply may show only durable changes,
// whether this client or another one made them. It belongs to the goroutine of the session's transport.
type delayedOutput struct {
	waits   []delayed // in order
	free    int       // the length of the output before the first wait, if there are any
	seen    int       // the length of the output at the last call of delayOutput, less the bytes sent since
	epoch   uint64    // the result of persist.Storage.Epoch then
	changes int       // the result of Guard.Changes then
	served  bool      // since then this client's blocked command has run under another client's guard
}

// delayed is a stretch of output that must not be sent before persist.Storage.Told has reached a position in the
// journal.
type delayed struct {
	lsn uint64 // as persist.Storage.WaitPosition gives it
	end int    // of the stretch, in bytes of the output
}

// waiting reports whether some of the output must not be sent yet.
func (d *delayedOutput) waiting() bool { return len(d.waits) > 0 }

// position returns the journal position that the end of the output waits for, 0 if there is none.
func (d *delayedOutput) position() uint64 {
	if !d.waiting() {
		return 0
	}
	return d.waits[len(d.waits)-1].lsn
}

// add makes the output between two lengths wait until the journal is durable up to lsn.
func (d *delayedOutput) add(from, to int, lsn uint64) {
	last := len(d.waits) - 1
	switch {
	case last < 0:
		d.free = from
	case d.waits[last].lsn == lsn:
		d.waits[last].end = to
		return
	}
	d.waits = append(d.waits, delayed{lsn, to})
}

// release ends the waits for positions up to told.
func (d *delayedOutput) release(told uint64) {
	done := 0
	for done < len(d.waits) && d.waits[done].lsn <= told {
		d.free = d.waits[done].end
		done++
	}
	d.waits = d.waits[:copy(d.waits, d.waits[done:])]
}

// sent adjusts the lengths after the first n bytes of the output have been sent.
func (d *delayedOutput) sent(n int) {
	d.seen = max(d.seen-n, 0)
	d.free = max(d.free-n, 0)
	for i := range d.waits {
		d.waits[i].end -= n
	}
}

// drop clears the state: there is no output any more.
func (d *delayedOutput) drop() { d.waits, d.seen = nil, 0 }

// wasServed notes that the reply of a blocked command comes next.
func (d *delayedOutput) wasServed(sh *Shared, cmd *command.Command) {
	switch {
	case !cmd.NoData:
		d.served = true
	case !d.waiting() && sh.Storage != nil:
		d.epoch = sh.Storage.Epoch()
	}
}

// delayOutput makes the output since the last call wait if it shows changes that are not durable yet.
func (s *Session) delayOutput() {
	if s.shared.Storage == nil {
		return
	}
	d := &s.delay
	before, n, changes := d.seen, s.out.Len(), s.guard.Changes()
	if epoch := s.shared.Storage.Epoch(); epoch != d.epoch {
		if d.epoch = epoch; n > 0 {
			s.undone()
			return
		}
	}
	changed := changes != d.changes || d.served
	d.seen, d.changes, d.served = n, changes, false
	if changed {
		if f := s.shared.Storage.Err(); f != nil && f.Journal {
			s.Abort() // whether the journal has the change is unknown
			return
		}
	}
	if n <= before {
		return
	}
	if lsn := s.shared.Storage.WaitPosition(); lsn != 0 {
		d.add(before, n, lsn)
	}
}

// undone aborts the session: changes that its commands made or saw may have been undone.
func (s *Session) undone() {
	s.Abort()
	s.why = door.ErrUndone
}

// Sendable returns how much of the output may be sent now. The transport asks again when Recheck is called. If the
// waiting output can never be sent, because the journal has failed, the session ends.
func (s *Session) Sendable() int {
	d, st := &s.delay, s.shared.Storage
	if d.waiting() {
		told := st.Told()
		// Lost must be called after Told is read: when changes are undone, Told moves beyond them.
		if slices.ContainsFunc(d.waits, func(w delayed) bool { return st.Lost(w.lsn) }) {
			s.undone()
			return 0
		}
		d.release(told)
	}
	if !d.waiting() {
		return s.out.Len()
	}
	if f := st.Err(); f != nil && f.Journal {
		s.Abort()
		return 0
	}
	return d.free
}
