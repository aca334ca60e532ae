package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/replication/psync"
	"github.com/atomredis/atomredis/resp"
)

// This file executes commands that were accepted before: those of the journal, of files and of a master.

// Replayer repeats commands that have been accepted before. One goroutine at a time may use it.
type Replayer struct {
	s      *Session
	parser resp.Parser
	args   [][]byte
}

// NewReplayer returns a Replayer for commands from an origin that is part of command.Accepted.
func (sh *Shared) NewReplayer(from command.Origin) *Replayer {
	s := &Session{shared: sh, wake: func() {}, states: sh.newStates()}
	s.authenticated.Store(true)
	s.join()
	s.setProto(2)
	s.ctx = command.Ctx{W: &s.out, G: &s.guard, Client: s, Host: sh.Host, NoBlock: true, Origin: from}
	return &Replayer{s: s, parser: resp.Parser{MaxBulk: resp.AnyBulk}}
}

// Apply repeats the commands of one record at the record's time.
func (r *Replayer) Apply(now int64, commands []byte) error {
	s := r.s
	s.now, s.db = now, 0
	s.guard.Lock(s.shared.Keyspace, engine.AllShards, now)
	defer s.guard.Unlock()
	record := commands
	for len(commands) > 0 {
		args, n, err := r.parser.Next(commands, r.args[:0])
		if err != nil {
			return err
		}
		if n == 0 {
			return errors.New("incomplete command")
		}
		r.args = args
		commands = commands[n:]
		if err := r.Command(args); err != nil {
			return err
		}
	}
	s.shared.Followed.Repeated(record)
	return nil
}

// Obey makes keys expire only by the commands, because another server leads.
func (r *Replayer) Obey() { r.s.guard.FromMaster = true }

// Do is Apply for a server with clients, which are notified of the changes.
func (r *Replayer) Do(now int64, commands []byte) error {
	s := r.s
	s.guard.Owner = &s.origin
	if err := r.Apply(now, commands); err != nil {
		return err
	}
	s.endCommands()
	if s.origin.Changed() {
		s.shared.Tracking.Broadcast(&s.origin.Changer)
	}
	s.origin.Later = s.origin.Later[:0]
	return nil
}

// Lock implements transfer.Replayer.
func (r *Replayer) Lock() *engine.Guard {
	s := r.s
	s.now = s.shared.Keyspace.Now()
	s.guard.Lock(s.shared.Keyspace, engine.AllShards, s.now)
	return &s.guard
}

// Unlock implements transfer.Replayer.
func (r *Replayer) Unlock() { r.s.guard.Unlock() }

// Select implements transfer.Replayer.
func (r *Replayer) Select(db int) { r.s.db = db }

// Knows implements transfer.Replayer.
func (r *Replayer) Knows(args [][]byte) bool { return r.lookup(args) != nil }

// Functions implements transfer.Replayer.
func (r *Replayer) Functions(codes []string, flush, replace bool) command.Error {
	return r.s.shared.Scripts.Restore(codes, flush, replace)
}

// Command implements transfer.Replayer, and repeats a command of a record.
func (r *Replayer) Command(args [][]byte) error {
	if len(args) == 0 {
		return errors.New("empty command")
	}
	s, c := r.s, &r.s.ctx
	cmd := r.lookup(args)
	if e := s.admit(c.Origin, cmd, nil, args); e != "" {
		return errors.New(string(e))
	}
	s.out.Buf = s.out.Buf[:0]
	c.Cmd, c.Args, c.DB = cmd, args, s.db
	s.run(c)
	if len(s.out.Buf) > 0 && s.out.Buf[0] == '-' {
		return fmt.Errorf("%s: %s", cmd.Name, s.out.Buf[1:max(len(s.out.Buf)-2, 1)])
	}
	return nil
}

// lookup finds the command that args name. Files of another server may have the names that its clients used.
func (r *Replayer) lookup(args [][]byte) (cmd *command.Command) {
	if r.s.ctx.Origin.In(command.FromImport) {
		dropPrefix(args)
		cmd, _ = r.s.shared.Table.LookupEither(args)
	} else {
		cmd, _ = r.s.shared.Table.LookupOriginal(args)
	}
	return cmd
}

// dropPrefix gives a command of the query engine its usual name. A Redis writes _FT.DICTADD and the like to its replicas and its
// append-only file.
func dropPrefix(args [][]byte) {
	if name := args[0]; len(name) > len("_ft.") && name[0] == '_' && command.EqualFold(name[:len("_ft.")], "_ft.") {
		args[0] = name[1:]
	}
}

// Executor executes the commands of a master.
type Executor struct {
	*Replayer
	by psync.Executing
}

// NewExecutor returns an Executor that reports its progress to by.
func (sh *Shared) NewExecutor(by psync.Executing) Executor {
	x := Executor{sh.NewReplayer(command.FromMaster), by}
	x.Obey()
	return x
}

// Execute implements psync.Executor.
func (x Executor) Execute(ctx context.Context, db int, unit [][][]byte) error {
	s := x.s
	sh := s.shared
	found := make([]*command.Command, len(unit))
	var shards uint64
	for i, args := range unit {
		dropPrefix(args)
		cmd, _ := sh.Table.LookupOriginal(args)
		if e := s.admit(command.FromMaster, cmd, nil, args); e != "" {
			x.by.Refused(args, string(e))
			continue
		}
		found[i] = cmd
		shards |= cmd.ShardsAmong(sh.Keyspace, args)
	}
	s.now, s.db = sh.Keyspace.Now(), db
	s.guard.Owner = &s.origin
	sh.Scripts.Expect(shards)
	s.guard.Lock(sh.Keyspace, shards, s.now)
	defer s.guard.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &s.ctx
	for i, cmd := range found {
		if cmd == nil {
			continue
		}
		s.out.Buf = s.out.Buf[:0]
		c.Cmd, c.Args, c.DB = cmd, unit[i], s.db
		s.runMonitored(c)
		if len(s.out.Buf) > 0 && s.out.Buf[0] == '-' {
			x.by.Refused(unit[i], string(bytes.TrimSpace(s.out.Buf[1:])))
		}
	}
	s.endCommands() // before the arguments are overwritten
	if s.origin.Changed() {
		sh.Tracking.Broadcast(&s.origin.Changer)
	}
	s.out.Buf, s.origin.Later = s.out.Buf[:0], s.origin.Later[:0]
	x.by.Executed(&s.guard, s.db)
	return nil
}
