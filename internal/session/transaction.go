package session

import (
	"slices"
	"unsafe"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/buffers"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// transaction is the state of MULTI and WATCH of one client. It belongs to the goroutine of the session's transport.
type transaction struct {
	active  bool // between MULTI and EXEC
	spoiled bool // a command was refused: EXEC will fail
	writes  bool // a queued command may write, or call commands that do

	some  command.Flag // flags that some queued command has
	lacks command.Flag // flags that some queued command does not have
	// selected is set if a queued command has selected the database db for later ones.
	selected bool
	db       int
	queue    []queuedCommand
	bytes    int64 // of the queue
	running  int   // commands of the queue that EXEC is executing
	watches  []*watchedKey
	room     *queueRoom // nil until it is needed
	args     [][]byte   // of room, those that are free
	text     []byte     // of the same, or of the last of pieces
	pieces   [][]byte   // shared memory that has long arguments
}

// queuedCommand owns its arguments.
type queuedCommand struct {
	cmd  *command.Command
	args [][]byte
	long []byte // the last one, if the command may keep its memory
}

// queueRoom is room for a short transaction. The session reuses it for the next transaction, because the queued
// commands are not needed any more once EXEC has been counted.
type queueRoom struct {
	queue [16]queuedCommand
	args  [48][]byte
	text  [1024]byte
}

// watchedKey is a key that a client watches. Its shard protects watch and version.
type watchedKey struct {
	db      int
	key     string
	shard   uint64
	watch   *engine.Watch // nil while a script runs that began before the client sent WATCH
	version uint64
}

// begin starts to watch the key. If written is set the guard may have changed the key after WATCH was answered; the
// version is then set to one that the key cannot have any more.
func (w *watchedKey) begin(g *engine.Guard, written bool) {
	w.watch, w.version = g.Watch(w.db, []byte(w.key))
	if written {
		w.version--
	}
}

// InTransaction implements transactions.Client.
func (s *Session) InTransaction() bool { return s.tx.active }

// Multi implements transactions.Client.
func (s *Session) Multi() { s.tx.active = true }

// Watch implements transactions.Client. No guard may be held.
func (s *Session) Watch(db int, keys [][]byte) {
	from := len(s.tx.watches)
	for _, key := range keys {
		if !s.watches(db, key) {
			s.tx.watches = append(s.tx.watches, &watchedKey{db: db, key: string(key), shard: s.shared.Keyspace.ShardOf(key)})
		}
	}
	if added := s.tx.watches[from:]; len(added) > 0 {
		s.shared.Scripts.Under(shardsOf(added), s.now, func(g *engine.Guard, written bool) {
			for _, w := range added {
				w.begin(g, written)
			}
		})
	}
}

// watches reports whether the client watches the key already; its first version counts.
func (s *Session) watches(db int, key []byte) bool {
	for _, w := range s.tx.watches {
		if w.db == db && w.key == string(key) {
			return true
		}
	}
	return false
}

// Unwatch implements transactions.Client. No guard may be held.
func (s *Session) Unwatch() {
	if len(s.tx.watches) == 0 {
		return
	}
	keys := s.tx.watches
	s.tx.watches = nil
	s.shared.Scripts.Under(shardsOf(keys), s.now, func(g *engine.Guard, _ bool) { unwatch(g, keys) })
}

// shardsOf returns the shards of keys.
func shardsOf(keys []*watchedKey) (shards uint64) {
	for _, w := range keys {
		shards |= w.shard
	}
	return shards
}

func (s *Session) unwatchUnder(g *engine.Guard) {
	unwatch(g, s.tx.watches)
	s.tx.watches = nil
}

// unwatch ends watches.
func unwatch(g *engine.Guard, keys []*watchedKey) {
	for _, w := range keys {
		g.Unwatch(w.watch)
	}
}

// watchTouched reports whether it is certain that a watched key has changed. No guard may be held.
func (s *Session) watchTouched() bool {
	if len(s.tx.watches) == 0 {
		return false
	}
	var g engine.Guard
	if busy := s.shared.Scripts.Lock(&g, shardsOf(s.tx.watches), s.now); busy != "" {
		return false // EXEC decides
	}
	defer g.Unlock()
	return slices.ContainsFunc(s.tx.watches, func(w *watchedKey) bool { return g.Touched(w.watch, w.version) })
}

// enqueue queues a command, unless EXEC would not run it. As in Redis, a command that is not queued does not make
// EXEC fail.
func (s *Session) enqueue(cmd *command.Command, args [][]byte) {
	s.out.Buf = append(s.out.Buf, "+QUEUED\r\n"...)
	if cmd.Selects {
		if n, ok := resp.ParseInt(args[1]); ok {
			s.tx.selected, s.tx.db = true, command.AsInt(n)
		}
	}
	if s.tx.spoiled || s.watchTouched() {
		return
	}
	if s.tx.queue == nil {
		if s.tx.room == nil {
			s.tx.room = new(queueRoom)
		}
		r := s.tx.room
		s.tx.queue, s.tx.args, s.tx.text = r.queue[:0], r.args[:], r.text[:]
	}
	q := queuedCommand{cmd: cmd}
	if last := len(args) - 1; s.MayKeep(args[last]) {
		q.long, s.in.owned.b = args[last], nil
		q.args = append(s.tx.keep(args[:last]), q.long)
	} else {
		q.args = s.tx.keep(args)
	}
	s.tx.queue = append(s.tx.queue, q)
	s.tx.bytes += int64(unsafe.Sizeof(queuedCommand{})) + int64(len(args))*int64(unsafe.Sizeof([]byte(nil))) +
		int64(sizeOf(args))
	s.tx.writes = s.tx.writes || cmd.MayReplicate(s.ctx.Host, args)
	s.tx.some |= cmd.Flags
	s.tx.lacks |= ^cmd.Flags
}

// minPiece is the least size in bytes of arguments that get a piece of shared memory.
const minPiece = 2 << 10

// keep copies arguments to the free room, or to memory of their own if there is not enough.
func (t *transaction) keep(args [][]byte) [][]byte {
	size := sizeOf(args)
	if len(args) > len(t.args) || size > len(t.text) && size < minPiece {
		return resp.CloneArgs(args)
	}
	if size > len(t.text) {
		piece := buffers.Get(max(size, buffers.Large))
		t.text = piece[:cap(piece)]
		t.pieces = append(t.pieces, piece)
	}
	out := t.args[:len(args):len(args)]
	copyArgs(out, t.text[:size], args)
	t.args, t.text = t.args[len(args):], t.text[size:]
	return out
}

// copyArgs copies args to dst, which has the same length, and their bytes to text, which has their total length.
func copyArgs(dst [][]byte, text []byte, args [][]byte) {
	for i, a := range args {
		n := copy(text, a)
		dst[i], text = text[:n:n], text[n:]
	}
}

// sizeOf returns the length of all arguments.
func sizeOf(args [][]byte) (n int) {
	for _, a := range args {
		n += len(a)
	}
	return n
}

const (
	errExecAborted command.Error = "EXECABORT Transaction discarded because of previous errors."
)

// Exec implements transactions.Client. The queued commands run under one guard over all their shards.
func (s *Session) Exec(c *command.Ctx) {
	if s.tx.spoiled {
		e := errExecAborted
		if s.shared.Cluster != nil && !s.oneSlot(s.tx.queue) {
			e = errCrossSlot
		}
		s.Discard()
		c.Err(e)
		return
	}
	queue := s.tx.queue
	shards := shardsOf(s.tx.watches)
	for _, q := range queue {
		shards |= q.cmd.ShardsAmong(s.shared.Keyspace, q.args)
	}
	g := c.G
	if busy := s.shared.Scripts.Lock(g, shards, s.now); busy != "" {
		s.Discard()
		c.Err(execAborted(busy))
		return
	}
	defer g.Unlock() // after that the Unlock of call does nothing

	for _, q := range queue {
		if e := s.lateRefusal(q.cmd); e != "" {
			s.unwatchUnder(g)
			s.endTransaction()
			if !redirects(e) {
				e = execAborted(e)
			}
			c.Err(e)
			return
		}
	}

	unchanged := true
	for _, w := range s.tx.watches {
		unchanged = g.Unchanged(w.watch, w.version) && unchanged
	}
	s.unwatchUnder(g)
	s.tx = transaction{room: s.tx.room, pieces: s.tx.pieces}
	defer s.endTransaction() // the commands use the queue's memory
	if !unchanged {
		c.W.NullArray()
		return
	}

	if s.shared.Cluster != nil && !s.oneSlot(queue) {
		c.Err(errCrossSlot)
		return
	}

	c.W.Array(len(queue))
	exec := c.Cmd
	c.NoBlock, c.Origin = true, command.FromQueue
	s.tx.running, s.lastCmd = len(queue), exec
	for _, q := range queue {
		if e := s.admit(command.FromQueue, q.cmd, nil, q.args); e != "" {
			c.Err(e)
			continue
		}
		c.Cmd, c.Args, c.DB = q.cmd, q.args, s.db
		before := c.W.Len()
		s.runQueued(c, q.long)
		if reply := c.W.Len() - before; int64(reply) >= s.shared.Timing.large.Load() {
			s.logLarge(q.cmd, q.args, 0, reply) // its request was logged when it was queued
		}
		if s.modes.tracking.On() {
			s.rememberKeys(q.cmd, q.args)
		}
	}
	s.tx.running = 0
	c.NoBlock, c.Origin = false, command.FromClient
	c.Cmd = exec
}

// Discard implements transactions.Client. No guard may be held.
func (s *Session) Discard() {
	s.Unwatch()
	s.endTransaction()
}

// endTransaction restores the state before MULTI. The queued commands may still be logged; their memory is reused
// after that or left to the garbage collector.
func (s *Session) endTransaction() {
	s.in.owned.spare = append(s.in.owned.spare, s.tx.pieces...)
	s.tx = transaction{room: s.tx.room}
	if s.tx.room != nil {
		clear(s.tx.room.queue[:]) // all of it, even if the queue has outgrown it
	}
}
