package session

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/replication"
	"github.com/atomredis/atomredis/internal/commands/scripts"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
)

// The origins of commands, with the names that tests use. The client is last, because its commands change the rules
// for its scripts.
var origins = []struct {
	name string
	from command.Origin
}{
	{"queue", command.FromQueue}, {"script", command.FromScript}, {"custom", command.FromCustom},
	{"master", command.FromMaster}, {"journal", command.FromJournal}, {"import", command.FromImport},
	{"restore", command.FromRestore}, {"client", command.FromClient},
}

// answers are the results of admit by the name of the origin; a missing name means "".
type answers map[string]string

// and returns a copy with the answers of others added.
func (a answers) and(others answers) answers {
	all := answers{}
	for _, some := range []answers{a, others} {
		for words, answer := range some {
			for word := range strings.FieldsSeq(words) {
				all[word] = answer
			}
		}
	}
	return all
}

// changesNothingIn returns the answers to a command that no master sends and no file has.
func changesNothingIn(name string) answers {
	return answers{"master journal import restore": fmt.Sprintf("%q is no command that changes anything", name)}
}

// Each rule refuses commands of its own origins only.
func TestEachRuleHoldsForItsOrigins(t *testing.T) {
	const (
		notInScript = string(errInScriptRefused)
		notInCustom = "ERR '%s' cannot be called by a custom command"
		notAnyMore  = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
			"This command is no longer allowed for the following reason: "
		notInRequest = "CROSSSLOT Keys in request don't hash to the same slot"
	)
	follow := func(b *harness, _ *Session) {
		var g engine.Guard
		g.Lock(b.Keyspace, engine.AllShards, b.Keyspace.Now())
		b.Host.(replication.Host).Follow(&g, "127.0.0.1", 1) // where nobody listens
		g.Unlock()
	}
	redirect := func(b *harness, s *Session) {
		follow(b, s)
		s.modes.options.Redirect = true
	}
	for _, rule := range []struct {
		name     string
		line     string
		settings []string
		prepare  func(b *harness, s *Session)
		want     answers
	}{
		{name: "no rule", line: "SET k v"},
		{name: "unknown", line: "NOSUCH x", want: answers{
			"client queue custom": "ERR unknown command 'NOSUCH', with args beginning with: 'x' ",
			"script":              string(errInScriptUnknown),
		}.and(changesNothingIn("NOSUCH"))},
		{name: "unknown sub-command", line: "CONFIG NOSUCH", want: answers{
			"client queue custom": "ERR unknown subcommand 'NOSUCH'. Try CONFIG HELP.",
			"script":              string(errInScriptUnknown),
		}.and(changesNothingIn("CONFIG"))},
		{name: "arity", line: "SET k", want: answers{
			"client queue custom": "ERR wrong number of arguments for 'set' command",
			"script":              string(errInScriptArity),
		}.and(changesNothingIn("SET"))},
		{name: "a container", line: "CONFIG", want: answers{
			"client queue custom": "ERR wrong number of arguments for 'config' command",
			"script":              string(errInScriptArity),
		}.and(changesNothingIn("CONFIG"))},
		{name: "a reader", line: "GET k", want: changesNothingIn("GET")},
		{name: "a message", line: "PUBLISH c m", want: changesNothingIn("PUBLISH").and(answers{"master": ""})},
		{name: "the database", line: "SELECT 1"},
		{name: "a script", line: "EVAL x 0", want: changesNothingIn("EVAL").and(answers{"master import": ""}).and(answers{
			"script": notInScript, "custom": fmt.Sprintf(notInCustom, "eval"),
		})},
		{name: "its own guard", line: "WATCH k", want: changesNothingIn("WATCH").and(answers{
			"script": notInScript, "custom": fmt.Sprintf(notInCustom, "watch"),
		})},
		{name: "protected", line: "DEBUG SLEEP 0", want: changesNothingIn("DEBUG").and(answers{
			"client": string(notAllowed(&command.Command{Name: "debug"})),
			"script": notInScript, "custom": fmt.Sprintf(notInCustom, "debug"),
		})},
		{name: "protected, and all may", line: "DEBUG SLEEP 0", settings: []string{"enable-debug-command", "yes"},
			prepare: func(b *harness, _ *Session) { b.Scripts.LetDebug(true) },
			want:    changesNothingIn("DEBUG").and(answers{"custom": fmt.Sprintf(notInCustom, "debug")})},
		{name: "NOAUTH", line: "SET k v", settings: []string{"requirepass", "secret"},
			want: answers{"client": "NOAUTH Authentication required."}},
		{name: "MULTI", line: "SYNC", prepare: func(_ *harness, s *Session) { s.tx.active = true },
			want: changesNothingIn("SYNC").and(answers{
				"client": "ERR Command not allowed inside a transaction",
				"script": notInScript, "custom": fmt.Sprintf(notInCustom, "sync"),
			})},
		{name: "NOPERM, command", line: "SET k v", prepare: limitUser("-set"), want: answers{
			"client": "NOPERM User default has no permissions to run the 'set' command",
			"queue":  notAnyMore + "no permission to execute the command or subcommand",
			"script": "ERR ACL failure in script: User default has no permissions to run the 'set' command",
		}.and(nil)},
		{name: "NOPERM, key", line: "SET k v", prepare: limitUser("resetkeys"), want: answers{
			"client": "NOPERM No permissions to access a key",
			"queue":  notAnyMore + "no permission to touch the specified keys",
			"script": "ERR ACL failure in script: No permissions to access a key",
		}},
		{name: "NOPERM, channel", line: "PUBLISH c m", prepare: limitUser("resetchannels"),
			want: changesNothingIn("PUBLISH").and(answers{
				"client": "NOPERM No permissions to access a channel",
				"queue":  notAnyMore + "no permission to access one of the channels used as arguments",
				"script": "ERR ACL failure in script: No permissions to access a channel",
				"master": "",
			})},
		{name: "a caller that only reads", line: "SET k v", prepare: readOnlyCallers, want: answers{
			"script": string(errInScriptWrite), "custom": "ERR 'set' writes, and 'own' is declared to be read-only",
		}},
		{name: "a caller that only reads, a reader", line: "GET k", prepare: readOnlyCallers, want: changesNothingIn("GET")},
		{name: "slots", line: "MSET a 1 b 2", settings: []string{"cluster-enabled", "yes"}, want: answers{
			"client custom": notInRequest, "script": string(errScriptForeign),
		}},
		{name: "another slot than the script's", line: "SET b 1", settings: []string{"cluster-enabled", "yes"},
			prepare: func(_ *harness, s *Session) { s.hashSlot = cluster.SlotOf([]byte("a")) },
			want:    answers{"script": string(errScriptCrossSlot)}},
		{name: "another slot, and the script may", line: "SET b 1", settings: []string{"cluster-enabled", "yes"},
			prepare: func(_ *harness, s *Session) {
				s.hashSlot, s.script.CrossSlots = cluster.SlotOf([]byte("a")), true
			}},
		{name: "slots, of a master", line: "MSET a 1 b 2", settings: []string{"cluster-enabled", "yes"},
			prepare: func(_ *harness, s *Session) { s.ctx.Origin = command.FromMaster }},
		{name: "OOM", line: "SET k v", prepare: noMemory, want: answers{"client script": string(errOOM)}},
		{name: "OOM, and it needs none", line: "DEL k", prepare: noMemory},
		{name: "OOM, and the script may", line: "SET k v",
			prepare: func(b *harness, s *Session) { noMemory(b, s); s.script.AllowOOM = true },
			want:    answers{"client": string(errOOM)}},
		{name: "OOM, and the script has written", line: "SET k v",
			prepare: func(b *harness, s *Session) { noMemory(b, s); s.script.wrote = true },
			want:    answers{"client": string(errOOM)}},
		{name: "subscribed", line: "SET k v",
			prepare: func(_ *harness, s *Session) { s.modes.subs.Subscribe(pubsub.Channel, "c") }, want: answers{
				"client": "ERR Can't execute 'set': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in " +
					"this context",
			}},
		{name: "monitoring", line: "SET k v", prepare: func(_ *harness, s *Session) { s.modes.monitor = true },
			want: answers{"client": "ERR Replica can't interact with the keyspace"}},
		{name: "REDIRECT", line: "SET k v", prepare: redirect,
			want: answers{"client": "REDIRECT 127.0.0.1:1", "script custom": string(command.ErrReadOnly)}},
		{name: "REDIRECT of a reader", line: "GET k", prepare: redirect,
			want: changesNothingIn("GET").and(answers{"client": "REDIRECT 127.0.0.1:1"})},
		{name: "REDIRECT after READONLY", line: "GET k", want: changesNothingIn("GET"),
			prepare: func(b *harness, s *Session) { redirect(b, s); s.modes.options.ReadOnly = true }},
		{name: "READONLY", line: "SET k v", prepare: follow, want: answers{"client script custom": string(command.ErrReadOnly)}},
		{name: "READONLY, of a master's script", line: "SET k v",
			prepare: func(b *harness, s *Session) { follow(b, s); s.ctx.Origin = command.FromMaster },
			want:    answers{"client": string(command.ErrReadOnly)}},
		{name: "READONLY, EXEC", line: "EXEC", prepare: func(b *harness, s *Session) { follow(b, s); s.tx.some = command.Write },
			want: changesNothingIn("EXEC").and(answers{
				"client": string(command.ErrReadOnly), "script": notInScript, "custom": fmt.Sprintf(notInCustom, "exec"),
			})},
		{name: "LOADING", line: "GET k",
			prepare: func(b *harness, s *Session) { follow(b, s); b.Host = loadingHost{b.Host} },
			want:    changesNothingIn("GET").and(answers{"client": string(command.ErrLoading)})},
		{name: "LOADING, all keys", line: "KEYS *",
			prepare: func(b *harness, s *Session) { follow(b, s); b.Host = loadingHost{b.Host} },
			want:    changesNothingIn("KEYS").and(answers{"client script custom": string(command.ErrLoading)})},
		{name: "MASTERDOWN", line: "GET k", settings: []string{"replica-serve-stale-data", "no"}, prepare: follow,
			want: changesNothingIn("GET").and(answers{"client": string(command.ErrMasterDown)})},
		{name: "MASTERDOWN, EXEC", line: "EXEC", settings: []string{"replica-serve-stale-data", "no"},
			prepare: func(b *harness, s *Session) { follow(b, s); s.tx.lacks = command.Stale },
			want: changesNothingIn("EXEC").and(answers{
				"client": string(command.ErrMasterDown), "script": notInScript, "custom": fmt.Sprintf(notInCustom, "exec"),
			})},
		{name: "NOREPLICAS", line: "SET k v", settings: []string{"min-replicas-to-write", "1"},
			prepare: func(b *harness, _ *Session) { b.Followed.Count() },
			want:    answers{"client script custom": "NOREPLICAS Not enough good replicas to write."}},
		{name: "BUSY", line: "SET k v", settings: []string{"busy-reply-threshold", "1"}, prepare: func(b *harness, _ *Session) {
			b.Scripts.Begin(scripts.Running{})
			for b.Scripts.Busy() == "" {
				runtime.Gosched()
			}
		}, want: answers{"client": string(scripts.ErrBusyScript)}},
		{name: "killed", line: "SET k v",
			prepare: killScript,
			want:    answers{"script": string(errKilled)}},
		{name: "killed, and it reads", line: "GET k",
			prepare: killScript,
			want:    changesNothingIn("GET")},
		{name: "a key that is not declared", line: "SET k v", prepare: func(_ *harness, s *Session) {
			s.custom.ctx.Cmd.Lock, s.custom.ctx.Cmd.Keys = command.LockFirst, command.Keys("i1+r0/1/0[RW]")
		}, want: answers{"custom": "ERR 'own' does not declare the key 'k'"}},
		{name: "an argument that is too long", line: "SET k " + strings.Repeat("v", 1<<20+1), want: answers{
			"custom": "ERR an argument of 'set' is longer than proto-max-bulk-len allows",
		}},
	} {
		t.Run(rule.name, func(t *testing.T) {
			b := newHarnessWith(t, append([]string{"proto-max-bulk-len", "1mb"}, rule.settings...)...)
			s := b.session()
			s.ctx.Cmd, s.script = b.Table.Find([]byte("eval")), &scriptCaller{ctx: command.Ctx{Host: b.Host, Client: s}}
			own := &command.Command{Name: "own", Flags: command.Write, Lock: command.LockAll}
			s.custom = &Caller{ctx: &command.Ctx{Cmd: own, Args: [][]byte{[]byte("OWN"), []byte("x")}, Host: b.Host, Client: s}}
			if rule.prepare != nil {
				rule.prepare(b, s)
			}
			checkAnswers(t, s, rule.line, rule.want.and(nil))
			b.Scripts.End(&s.guard)
			s.modes.monitor, s.tx.active = false, false
			s.modes.subs.UnsubscribeAll()
			b.finish(t, s)
		})
	}
}

// checkAnswers compares what admit says to a command of each origin.
func checkAnswers(t *testing.T, s *Session, line string, want answers) {
	for _, o := range origins {
		args := make([][]byte, 0, 4)
		for word := range strings.FieldsSeq(line) {
			args = append(args, []byte(word))
		}
		cmd, container := s.shared.Table.Lookup(args)
		require.Equal(t, want[o.name], string(s.admit(o.from, cmd, container, args)), "%.40s, %s", line, o.name)
	}
}

// limitUser returns a function that applies a rule to the default user.
func limitUser(rule string) func(b *harness, s *Session) {
	return func(b *harness, _ *Session) {
		if err := b.Users.Set(nil, acl.DefaultName, []string{rule}); err != nil {
			panic(err)
		}
	}
}

// readOnlyCallers makes the script and the custom command declare that they only read.
func readOnlyCallers(_ *harness, s *Session) {
	s.script.ReadOnly, s.custom.ctx.Cmd.Flags = true, command.ReadOnly
}

// killScript starts a script and kills it.
func killScript(b *harness, s *Session) {
	b.Scripts.Begin(scripts.Running{})
	b.feed(s, request("SCRIPT", "KILL"))
}

// noMemory fills the memory.
func noMemory(b *harness, s *Session) {
	b.feed(s, request("SET", "large", strings.Repeat("x", 1<<16)))
	b.feed(s, request("CONFIG", "SET", "maxmemory", "1"))
	s.room = RoomNowhere
}

// loadingHost is a replica that gets its master's data.
type loadingHost struct{ Host }

func (h loadingHost) Restriction(cmd *command.Command, flags command.Flag, writes bool) command.Error {
	if !writes && flags&command.Loading == 0 {
		return command.ErrLoading
	}
	return h.Host.Restriction(cmd, flags, writes)
}

// stuck makes everything fail that would change the disk, while it is on.
type stuck struct{ on atomic.Bool }

func (s *stuck) String() string { return "stuck" }

func (s *stuck) MaybeError(op errorfs.Op) error {
	if s.on.Load() && op.Kind.ReadOrWrite() != errorfs.OpIsRead {
		return errorfs.ErrInjected
	}
	return nil
}

// While a disk fails only commands that were accepted before may change anything.
func TestChangesAreRefusedToTheirOriginsWhileTheDiskFails(t *testing.T) {
	disk := &stuck{}
	b := newHarnessOn(t, crashfs.Wrap(crashfs.Mem(), disk))
	s := b.session()
	require.Equal(t, "+OK\r\n", b.told(s, "SET", "a", "1"))
	disk.on.Store(true)
	require.Empty(t, b.told(s, "SET", "a", "2"))
	s.Close()
	s = b.session()
	const misconf = "MISCONF Errors writing to the AOF file: injected error"
	require.Eventually(t, func() bool { return b.told(s, "PING") == "-"+misconf+"\r\n" }, time.Minute, time.Millisecond)
	own := &command.Command{Name: "own", Flags: command.Write, Lock: command.LockAll}
	s.script = &scriptCaller{ctx: command.Ctx{Host: b.Host, Client: s}}
	s.custom = &Caller{ctx: &command.Ctx{Cmd: own, Host: b.Host, Client: s}}
	checkAnswers(t, s, "SET k v", answers{"client script custom": misconf}.and(nil))
	checkAnswers(t, s, "PING", answers{"client": misconf}.and(changesNothingIn("PING")))
	checkAnswers(t, s, "GET k", changesNothingIn("GET").and(nil))
	// A script that has written something is not stopped.
	s.guard.Lock(b.Keyspace, b.Keyspace.ShardOf([]byte("k")), b.Keyspace.Now())
	s.guard.Log(0, [][]byte{[]byte("SET"), []byte("k"), []byte("v")})
	for _, from := range []command.Origin{command.FromScript, command.FromCustom} {
		args := [][]byte{[]byte("SET"), []byte("k"), []byte("v")}
		require.Empty(t, s.admit(from, b.Table.Find(args[0]), nil, args))
	}
	s.guard.Unlock()
	s.custom = nil
	disk.on.Store(false)
	require.Eventually(t, func() bool { return b.told(s, "SET", "a", "3") == "+OK\r\n" }, time.Minute, time.Millisecond)
	b.finish(t, s)
}
