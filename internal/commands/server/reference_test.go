package server_test

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
	servercommands "github.com/atomredis/atomredis/internal/commands/server"
)

// reference has the facts of Redis 8.6.3 about its commands.
//
//go:embed testdata/commands-8.6.3.tsv
var reference string

// The places of keys, their flags, and the tips are those of Redis.
func TestKeysAndTipsAreThoseOfRedis(t *testing.T) {
	table := command.NewTable()
	n := 0
	for line := range strings.Lines(reference) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		cmd := table.ByName[f[0]]
		if !assertKnown(t, cmd, f[0]) {
			continue
		}
		n++
		require.Equal(t, keysInOrder(command.Keys(f[1])), keysInOrder(cmd.Keys), "keys of %s", f[0])
		tips := slices.Clone(servercommands.Tips(f[0]))
		slices.Sort(tips)
		require.Equal(t, f[2], strings.Join(tips, " "), "tips of %s", f[0])
	}
	require.Greater(t, n, 400)
}

// assertKnown reports whether the command exists. Missing commands are about features that only Redis has.
func assertKnown(t *testing.T, cmd *command.Command, name string) bool {
	if cmd == nil {
		require.Contains(t, missingCommands, name)
	}
	return cmd != nil
}

// missingCommands are the commands of Redis that do not exist here.
var missingCommands = []string{}

// keysInOrder returns specs with sorted flags, without fields that Redis does not have.
func keysInOrder(specs []command.KeySpec) []command.KeySpec {
	var plain []command.KeySpec
	for _, s := range specs {
		s.Flags = slices.Sorted(slices.Values(s.Flags))
		s.Notes, s.Find = "", nil
		plain = append(plain, s)
	}
	return plain
}

// A user with write permission alone cannot read a key, and one with read permission alone cannot change it. Every
// command asks for the permission that it needs, except those of Redis's own commands that only show a length or the
// like. In Redis, commands of modules do not declare this.
func TestKeysOfModulesNeedPermission(t *testing.T) {
	inRedis := map[string]bool{}
	for line := range strings.Lines(reference) {
		name, _, _ := strings.Cut(line, "\t")
		inRedis[name] = true
	}
	for cmd := range command.NewTable().All {
		if inRedis[cmd.Name] {
			continue
		}
		for _, spec := range cmd.Keys {
			switch has := func(flag string) bool { return slices.Contains(spec.Flags, flag) }; {
			case has("not_key"):
			case has("RO"):
				require.True(t, has("access"), "%s reads", cmd.Name)
			default:
				require.True(t, has("insert") || has("delete") || has("update"), "%s writes", cmd.Name)
			}
		}
	}
}
