package psync

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/resp"
)

// This file executes the commands of the master, and acknowledges those that are on disk.

// execute executes the master's commands until the connection breaks.
func (l *link) execute(commands *resp.CommandReader) error {
	h := l.r.followers.Present()
	l.from, l.begin, l.db = commands, h.Offset, max(h.db, 0)
	commands.Keep = true
	for {
		args, err := commands.Next()
		switch {
		case err == io.EOF, err == io.ErrUnexpectedEOF:
			return errors.New("the master has closed the connection")
		case err != nil:
			return err
		}
		if err := l.take(args); err != nil {
			return err
		}
		if !l.multi {
			l.advance()
			l.executed()
			if err := l.stores(); err != nil {
				return err
			}
			if !l.r.config.Get().Replication.IgnoreMaxMemory {
				l.r.host.MakeRoom()
			}
		}
	}
}

// maxKeptRaw is the size in bytes of the largest buffer for the master's bytes that is used again.
const maxKeptRaw = 1 << 20

// advance moves the offset behind the executed commands, and passes their bytes on to followers. It is called under the guard
// of their changes. The offset does not move within a transaction: after a broken connection the link asks for the whole
// transaction again.
func (l *link) advance() {
	raw := l.from.Raw
	if len(raw) == 0 {
		return
	}
	l.update(func(st *replication.Link) { st.Offset = l.begin + l.from.Consumed })
	l.r.followers.relay(raw, l.db)
	if l.from.Raw = raw[:0]; cap(raw) > maxKeptRaw {
		l.from.Raw = nil
	}
}

// take executes the next command, or keeps it until the end of its transaction.
func (l *link) take(args [][]byte) error {
	switch {
	case command.EqualFold(args[0], "ping"):
	case command.EqualFold(args[0], "replconf"):
		if len(args) > 1 && command.EqualFold(args[1], "getack") {
			l.acknowledge()
			l.owe()
			l.journalSynced() // it may have become durable just now
		}
	case command.EqualFold(args[0], "multi"):
		if l.multi {
			return errors.New("the master sends a transaction within a transaction")
		}
		l.multi = true
	case command.EqualFold(args[0], "exec"):
		if !l.multi {
			return errors.New("the master sends the end of a transaction that has not begun")
		}
		err := l.carryOut(l.queue)
		l.queue = nil
		return err
	case l.multi:
		l.queue = append(l.queue, resp.CloneArgs(args))
	default:
		return l.carryOut([][][]byte{args})
	}
	return nil
}

// carryOut executes a command or a transaction.
func (l *link) carryOut(unit [][][]byte) error {
	l.multi = false
	return l.executor.Execute(l.ctx, l.db, unit)
}

// Refused implements Executing. As in Redis a failed command is logged and counted.
func (l *link) Refused(args [][]byte, why string) {
	l.r.Unexpected.Add(1)
	l.r.log.Error("a command of the master cannot be executed here", "command", fmt.Sprintf("%.64s", args[0]), "error",
		why)
}

// Executed implements Executing.
func (l *link) Executed(g *engine.Guard, db int) {
	l.db = db
	if g.Logged() && l.r.storage != nil {
		offset := strconv.FormatInt(l.begin+l.from.Consumed, 10)
		g.Log(db, [][]byte{[]byte("REPLCONF"), []byte(noteOffset), []byte(offset)})
	}
	l.advance()
}

// executed records the position of the journal at the present offset. No guard is held, so the journal has all changes.
func (l *link) executed() {
	if l.r.storage == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest = synced{l.now.Offset, l.r.storage.Appended()}
}

// onDisk returns the offset up to which the executed commands are on the disk.
func (l *link) onDisk() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	durable := l.r.storage.Durable()
	for _, at := range []synced{l.next, l.latest} {
		if at.lsn <= durable && at.offset > l.safe {
			l.safe = at.offset
		}
	}
	if l.next.offset <= l.safe {
		l.next = l.latest
	}
	l.owes = l.owes && l.safe < l.latest.offset
	return l.safe
}

// owe makes journalSynced send another acknowledgement, once all that has been executed is on the disk.
func (l *link) owe() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = l.latest
	l.owes = l.safe < l.latest.offset
}

// journalSynced sends the acknowledgement that the master waits for, if it is due. Any goroutine may call it.
func (l *link) journalSynced() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owes && l.next.lsn <= l.r.storage.Durable() {
		l.owes = false
		select {
		case l.nudge <- struct{}{}:
		default:
		}
	}
}
