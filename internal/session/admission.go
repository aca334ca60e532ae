package session

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
)

// This file decides whether a command may run, whatever its origin: admit is called before each command. Each rule
// is written once and names the origins that it applies to.

// fromCommand are the origins of commands that another command calls. They run under the guard of that command.
const fromCommand = command.FromScript | command.FromCustom

// The errors that refuse commands.
const (
	errNoAuth           command.Error = "NOAUTH Authentication required."
	errNotInTransaction command.Error = "ERR Command not allowed inside a transaction"
	// Redis treats monitors as a kind of replica.
	errNoKeyspace command.Error = "ERR Replica can't interact with the keyspace"

	errInScriptUnknown command.Error = "ERR Unknown Redis command called from script"
	errInScriptArity   command.Error = "ERR Wrong number of args calling Redis command from script"
	errInScriptRefused command.Error = "ERR This Redis command is not allowed from script"
	errInScriptWrite   command.Error = "ERR Write commands are not allowed from read-only scripts."
	errKilled          command.Error = "ERR the script has been killed"
)

// admit returns the error that refuses to execute or queue a command, "" if the command is allowed. cmd and
// container are the result of Table.Lookup; from is one origin. If several rules refuse a command, the first one
// gives the error.
func (s *Session) admit(from command.Origin, cmd, container *command.Command, args [][]byte) command.Error {
	switch {
	case cmd == nil:
		return unknownCommand(from, container, args)
	case !cmd.ArityOK(len(args)) || cmd.Do == nil:
		return wrongArity(from, cmd, args)
	case from.In(command.Accepted | command.FromRestore):
		if !changesData(from, cmd) {
			return changesNothing(args)
		}
		return "" // the other rules were checked before, or Restore calls admit again
	case from.In(fromCommand) && !s.callable(from, cmd):
		return notCallable(from, cmd)
	case from.In(command.FromClient) && cmd.Flags&command.Protected != 0 && !cmd.Allowed(s.ctx.Host, s):
		return notAllowed(cmd)
	case from.In(command.FromClient) && s.lacksAuthentication(cmd):
		return errNoAuth
	case from.In(command.FromClient) && s.tx.active && cmd.Flags&command.NoMulti != 0:
		return errNotInTransaction
	}
	if from.In(command.FromClient|command.FromQueue|command.FromScript) && !s.unrestricted() {
		if e := s.denied(from, cmd, args); e != "" {
			return e
		}
	}
	if from.In(fromCommand) && cmd.Flags&(command.Write|command.MayReplicate) != 0 && s.calledByReader(from) {
		return s.writesForReader(from, cmd)
	}
	// As in Redis, slots are checked before the state of the server for clients, and after it for scripts.
	if from.In(command.FromClient) && s.shared.Cluster != nil {
		if e := s.refuseSlots(from, cmd, args); e != "" {
			return e
		}
	}
	if from.In(command.FromClient|command.FromScript) && s.shared.Limits.Memory.Load() != 0 &&
		s.lacksMemory(from, cmd, args) {
		return errOOM
	}
	switch {
	case from.In(command.FromClient) && s.modes.subs.Any() && s.out.Proto == 2 && !cmd.WhileSubscribed:
		return onlySubscriptions(cmd)
	case from.In(command.FromClient) && (s.modes.monitor || s.modes.follower.Following()) && cmd.Flags&usesKeys != 0:
		return errNoKeyspace
	}
	if from.In(command.FromClient|fromCommand) && s.shared.Restricted.Load() {
		if e := s.refuseInState(from, cmd); e != "" {
			return e
		}
	}
	if from.In(command.FromClient) {
		return s.shared.Scripts.Refusal(cmd)
	}
	if from.In(fromCommand) && s.shared.Cluster != nil {
		if e := s.refuseSlots(from, cmd, args); e != "" {
			return e
		}
	}
	switch {
	case from.In(command.FromScript) && cmd.Flags&command.Write != 0 && !s.script.mayWrite():
		return errKilled // the script ends without seeing it
	case from.In(command.FromCustom):
		return s.custom.refuseArguments(cmd, args)
	}
	return ""
}

// usesKeys are the flags of commands that use keys or publish messages.
const usesKeys = command.ReadOnly | command.Write | command.MayReplicate

// changesData reports whether a command can come from a master or a file. Files of old versions also have scripts.
func changesData(from command.Origin, cmd *command.Command) bool {
	switch {
	case cmd.Flags&command.OwnGuard != 0:
		return false
	case cmd.Flags&command.Write != 0 || cmd.Repeated:
		return true
	case from.In(command.FromMaster | command.FromImport):
		return cmd.ACL&command.CatScripting != 0 || from.In(command.FromMaster) && cmd.Flags&command.MayReplicate != 0
	}
	return false
}

// callable reports whether a script, or a custom command, may ever call the command. Custom commands may call
// blocking commands, which then reply at once, as for modules of Redis.
func (s *Session) callable(from command.Origin, cmd *command.Command) bool {
	if from.In(command.FromScript) {
		return cmd.Flags&command.NoScript == 0 || cmd.CallableNow != nil && cmd.CallableNow(s.ctx.Host, s)
	}
	return cmd.Flags&command.OwnGuard == 0 && (cmd.Flags&command.NoScript == 0 || cmd.Flags&command.Blocking != 0)
}

// calledByReader reports whether the caller has declared that it does not write.
func (s *Session) calledByReader(from command.Origin) bool {
	if from.In(command.FromScript) {
		return s.script.ReadOnly
	}
	return s.custom.ctx.Cmd.Flags&command.Write == 0
}

// lacksMemory reports whether a command must not run because there is not enough memory. For a client it evicts keys
// first. A script that has written something is not stopped.
func (s *Session) lacksMemory(from command.Origin, cmd *command.Command, args [][]byte) bool {
	if from.In(command.FromScript) {
		h := s.script
		return s.room == RoomNowhere && cmd.Flags&command.DenyOOM != 0 && !h.wrote && !h.AllowOOM
	}
	s.endGuard()
	s.room = RoomEnough
	if s.shared.Scripts.Busy() != "" {
		return false // the keys are unknown
	}
	s.room = s.shared.Host.MakeRoom(s.now)
	return s.room == RoomNowhere && s.needsMemory(cmd, args, (*command.Command).NeedsMemory)
}

// refuseInState returns the error for a command that the state of the storage, or of the replica, does not allow. If
// the disk fails, a script or transaction that has written something is not stopped, and commands that only read
// still run.
func (s *Session) refuseInState(from command.Origin, cmd *command.Command) command.Error {
	flags := cmd.Flags
	switch {
	case from.In(command.FromClient):
		s.endGuard()
		if cmd.RunsQueue {
			flags = flags&^s.tx.lacks | s.tx.some&command.Write
		}
	case cmd.Flags&(command.Write|command.AllKeys) == 0 || s.ctx.Origin.In(command.Accepted) || s.guard.Logged():
		return ""
	}
	if from.In(command.FromClient) {
		if e := s.redirection(cmd); e != "" {
			return e
		}
	}
	return s.shared.Host.Restriction(cmd, flags, flags&command.Write != 0)
}

// redirection returns the error that names the master. A replica sends it, for commands that use data, to clients
// that have declared that they follow such errors. After READONLY a client may read here.
func (s *Session) redirection(cmd *command.Command) command.Error {
	host, port, ok := s.shared.Host.MasterAddr()
	if !ok || !s.modes.options.Redirect || cmd.Flags&(command.ReadOnly|command.Write) == 0 ||
		s.modes.options.ReadOnly && cmd.Flags&command.Write == 0 {
		return ""
	}
	return command.Error("REDIRECT " + net.JoinHostPort(host, strconv.Itoa(port)))
}

// readsAt reports whether a follower may execute a command of the client: a command that only reads, if the client
// has sent READONLY, or any command on shard channels.
func (s *Session) readsAt(cmd *command.Command) bool {
	return s.modes.options.ReadOnly && cmd.Flags&command.ReadOnly != 0 || cmd.Flags&command.PubSub != 0
}

// refuseSlots returns the error for a command whose keys have different slots, or a slot that another server serves.
// All commands of a script, and the commands around it, must use the same slot, unless the script is allowed to
// cross slots; even then the keys of each command must have one slot.
func (s *Session) refuseSlots(from command.Origin, cmd *command.Command, args [][]byte) command.Error {
	if s.ctx.Origin.In(command.Accepted) {
		return ""
	}
	slot, ok := s.shared.slotOf(cmd, args)
	if from.In(command.FromClient) && cmd.RunsQueue && !s.tx.spoiled && s.oneSlot(s.tx.queue) {
		return s.shared.elsewhere(s.hashSlot, s.modes.options.ReadOnly && !s.tx.writes)
	}
	switch {
	case !ok && from.In(command.FromScript):
		return errScriptForeign
	case from.In(fromCommand) && ok && s.shared.elsewhere(slot, true) != "":
		return errScriptForeign
	case from.In(command.FromClient):
		if s.hashSlot = slot; ok {
			return s.shared.elsewhere(slot, s.readsAt(cmd))
		}
	case !from.In(command.FromScript) || slot == cluster.NoSlot || s.script.CrossSlots:
	case s.hashSlot == cluster.NoSlot:
		s.hashSlot = slot
	case s.hashSlot != slot:
		return errScriptCrossSlot
	}
	if !ok {
		return errCrossSlot
	}
	return ""
}

// unknownCommand returns the error for a command, or a sub-command of container, that does not exist.
func unknownCommand(from command.Origin, container *command.Command, args [][]byte) command.Error {
	switch {
	case from.In(command.FromScript):
		return errInScriptUnknown
	case from.In(command.Accepted | command.FromRestore):
		return changesNothing(args)
	case container != nil:
		return command.Error(fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.",
			command.Printed(args[1]), strings.ToUpper(container.Name)))
	}
	return command.UnknownCommand(args)
}

// wrongArity returns the error for a command with too few or too many arguments.
func wrongArity(from command.Origin, cmd *command.Command, args [][]byte) command.Error {
	switch {
	case from.In(command.FromScript):
		return errInScriptArity
	case from.In(command.Accepted | command.FromRestore):
		return changesNothing(args)
	}
	return command.WrongArity(cmd)
}

// changesNothing returns the error for a command of a master or a file that cannot change anything. It is not sent
// to a client.
func changesNothing(args [][]byte) command.Error {
	return command.Error(fmt.Sprintf("%.40q is no command that changes anything", args[0]))
}

// notCallable returns the error for a command that its caller may never call.
func notCallable(from command.Origin, cmd *command.Command) command.Error {
	if from.In(command.FromScript) {
		return errInScriptRefused
	}
	return command.Error(fmt.Sprintf("ERR '%s' cannot be called by a custom command", cmd.Name))
}

// notAllowed returns the error for DEBUG, FT.DEBUG or MODULE if the configuration does not enable it.
func notAllowed(cmd *command.Command) command.Error {
	name, _, _ := strings.Cut(cmd.Name, "|")
	directive := name[strings.LastIndexByte(name, '.')+1:]
	return command.Error(fmt.Sprintf("ERR %s command not allowed. If the enable-%s-command option is set to \"local\", "+
		"you can run it from a local connection, otherwise you need to set this option in the configuration file, "+
		"and then restart the server.", strings.ToUpper(name), directive))
}

// writesForReader returns the error for a writing command whose caller has declared that it only reads.
func (s *Session) writesForReader(from command.Origin, cmd *command.Command) command.Error {
	if from.In(command.FromScript) {
		return errInScriptWrite
	}
	return command.Error(fmt.Sprintf("ERR '%s' writes, and '%s' is declared to be read-only",
		cmd.Name, s.custom.ctx.Cmd.Name))
}

// onlySubscriptions returns the error for a command that a client with subscriptions must not send in RESP2.
func onlySubscriptions(cmd *command.Command) command.Error {
	return command.Error(fmt.Sprintf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "+
		"RESET are allowed in this context", cmd.Name))
}

// lateRefusal returns the error for a command that was accepted before the server's role changed, and for a command
// of the client on a slot that another server has now. The command's guard is held.
func (s *Session) lateRefusal(cmd *command.Command) command.Error {
	sh := s.shared
	switch {
	case sh.Replica.Loading() && cmd.Flags&command.Loading == 0:
		return command.ErrLoading
	case sh.Following.Load() && cmd.Flags&command.Write != 0:
		return command.ErrReadOnly
	case sh.Cluster == nil || cmd.RunsQueue:
		return ""
	}
	return sh.elsewhere(s.hashSlot, s.readsAt(cmd))
}
