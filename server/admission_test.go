package server

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/clients/pubsub"
	"github.com/atomredis/atomredis/internal/cluster"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/commands/scripts"
	"github.com/atomredis/atomredis/internal/testing/crashfs"
)

// The origins of commands, as tests call them. The client is last: what it sends changes what its scripts are held to.
var origins = []struct {
	name string
	from command.Origin
}{
	{"queue", command.FromQueue}, {"script", command.FromScript}, {"custom", command.FromCustom},
	{"master", command.FromMaster}, {"journal", command.FromJournal}, {"import", command.FromImport},
	{"restore", command.FromRestore}, {"client", command.FromClient},
}

// answers are what admit says to commands of each origin, by the words above; "" where a word is missing.
type answers map[string]string

// and returns answers with those of others added.
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

// changesNothingIn are the answers to a command that no master sends and no file has.
func changesNothingIn(name string) answers {
	return answers{"master journal import restore": fmt.Sprintf("%q is no command that changes anything", name)}
}

// Each rule holds for some of the origins. Whatever else is the matter, the others are not refused.
func TestEachRuleHoldsForItsOrigins(t *testing.T) {
	const (
		notInScript = string(errInScriptRefused)
		notInCustom = "ERR '%s' cannot be called by a custom command"
		notAnyMore  = "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
			"This command is no longer allowed for the following reason: "
		notInRequest = "CROSSSLOT Keys in request don't hash to the same slot"
	)
	follow := func(b *harness, _ *Session) {
		require.NoError(t, b.underAll(func(g *engine.Guard) { b.replica.Follow(g, "127.0.0.1", 1) })) // where nobody listens
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
			prepare: func(b *harness, _ *Session) { b.scripts.LetDebug(true) },
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
			prepare: func(_ *harness, s *Session) { s.hashSlot, s.script.CrossSlots = cluster.SlotOf([]byte("a")), true }},
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
		{name: "subscribed", line: "SET k v", prepare: func(_ *harness, s *Session) { s.modes.subs.Subscribe(pubsub.Channel, "c") }, want: answers{
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
			prepare: func(b *harness, s *Session) { follow(b, s); b.replica.SetLoading(true) },
			want:    changesNothingIn("GET").and(answers{"client": string(errLoading)})},
		{name: "LOADING, all keys", line: "KEYS *",
			prepare: func(b *harness, s *Session) { follow(b, s); b.replica.SetLoading(true) },
			want:    changesNothingIn("KEYS").and(answers{"client script custom": string(errLoading)})},
		{name: "MASTERDOWN", line: "GET k", settings: []string{"replica-serve-stale-data", "no"}, prepare: follow,
			want: changesNothingIn("GET").and(answers{"client": string(command.ErrMasterDown)})},
		{name: "MASTERDOWN, EXEC", line: "EXEC", settings: []string{"replica-serve-stale-data", "no"},
			prepare: func(b *harness, s *Session) { follow(b, s); s.tx.lacks = command.Stale },
			want: changesNothingIn("EXEC").and(answers{
				"client": string(command.ErrMasterDown), "script": notInScript, "custom": fmt.Sprintf(notInCustom, "exec"),
			})},
		{name: "NOREPLICAS", line: "SET k v", settings: []string{"min-replicas-to-write", "1"},
			prepare: func(b *harness, _ *Session) { b.followed.Count() }, want: answers{"client script custom": string(errNoReplicas)}},
		{name: "BUSY", line: "SET k v", settings: []string{"busy-reply-threshold", "1"}, prepare: func(b *harness, _ *Session) {
			b.scripts.Begin(scripts.Running{})
			for b.scripts.Busy() == "" {
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
			s.ctx.Cmd, s.script = b.table.Find([]byte("eval")), &scriptCaller{ctx: command.Ctx{Host: b.Server}}
			own := &command.Command{Name: "own", Flags: command.Write, Lock: command.LockAll}
			s.custom = &Caller{ctx: &command.Ctx{Cmd: own, Args: [][]byte{[]byte("OWN"), []byte("x")}, Host: b.Server}}
			if rule.prepare != nil {
				rule.prepare(b, s)
			}
			checkAnswers(t, s, rule.line, rule.want.and(nil))
			b.scripts.End(&s.guard)
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
		cmd, container := s.srv.table.Lookup(args)
		require.Equal(t, want[o.name], string(s.admit(o.from, cmd, container, args)), "%.40s, %s", line, o.name)
	}
}

// limitUser returns what applies a rule to the default user.
func limitUser(rule string) func(b *harness, s *Session) {
	return func(b *harness, _ *Session) {
		if err := b.users.Set(nil, acl.DefaultName, []string{rule}); err != nil {
			panic(err)
		}
	}
}

// readOnlyCallers has the script, and the custom command, declare that they only read.
func readOnlyCallers(_ *harness, s *Session) {
	s.script.ReadOnly, s.custom.ctx.Cmd.Flags = true, command.ReadOnly
}

// killScript has a script begin, and kills it.
func killScript(b *harness, s *Session) {
	b.scripts.Begin(scripts.Running{})
	b.feed(s, request("SCRIPT", "KILL"))
}

// noMemory fills the memory: a client that has been told so, or whose script runs, knows it.
func noMemory(b *harness, s *Session) {
	b.feed(s, request("SET", "large", strings.Repeat("x", 1<<16)))
	b.feed(s, request("CONFIG", "SET", "maxmemory", "1"))
	s.room = roomNowhere
}

// While a disk fails nothing may change, but what has been accepted before.
func TestChangesAreRefusedToTheirOriginsWhileTheDiskFails(t *testing.T) {
	disk := &stuck{}
	d, err := openDurable(t, crashfs.Wrap(crashfs.Mem(), disk))
	require.NoError(t, err)
	d.expect("+OK\r\n", "SET a 1")
	disk.set(true)
	_, told := d.do("SET a 2")
	require.False(t, told)
	const misconf = "MISCONF Errors writing to the AOF file: injected error"
	d.await("-"+misconf+"\r\n", "PING")
	own := &command.Command{Name: "own", Flags: command.Write, Lock: command.LockAll}
	d.s.script = &scriptCaller{ctx: command.Ctx{Host: d.Server}}
	d.s.custom = &Caller{ctx: &command.Ctx{Cmd: own, Host: d.Server}}
	checkAnswers(t, d.s, "SET k v", answers{"client script custom": misconf}.and(nil))
	checkAnswers(t, d.s, "PING", answers{"client": misconf}.and(changesNothingIn("PING")))
	checkAnswers(t, d.s, "GET k", changesNothingIn("GET").and(nil))
	// What has begun to write is not stopped half-way.
	d.s.guard.Lock(d.ks, d.ks.ShardOf([]byte("k")), d.ks.Now())
	d.s.guard.Log(0, [][]byte{[]byte("SET"), []byte("k"), []byte("v")})
	for _, from := range []command.Origin{command.FromScript, command.FromCustom} {
		args := [][]byte{[]byte("SET"), []byte("k"), []byte("v")}
		require.Empty(t, d.s.admit(from, d.table.Find(args[0]), nil, args))
	}
	d.s.guard.Unlock()
	d.s.custom = nil
	disk.set(false)
	d.await("+OK\r\n", "SET a 3")
	d.end()
}
