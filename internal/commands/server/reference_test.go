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

// reference has what Redis 8.6.3 says of its commands.
//
//go:embed testdata/commands-8.6.3.tsv
var reference string

// The places of keys, what is done with them, and the tips are those of Redis.
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

// assertKnown reports whether there is such a command. Those that are missing are about what Redis has alone.
func assertKnown(t *testing.T, cmd *command.Command, name string) bool {
	if cmd == nil {
		require.Contains(t, missingCommands, name)
	}
	return cmd != nil
}

// missingCommands are those of Redis that are not there.
var missingCommands = []string{}

// keysInOrder returns specs with their flags in order, and without what is no matter of Redis's.
func keysInOrder(specs []command.KeySpec) []command.KeySpec {
	var plain []command.KeySpec
	for _, s := range specs {
		s.Flags = slices.Sorted(slices.Values(s.Flags))
		s.Notes, s.Find = "", nil
		plain = append(plain, s)
	}
	return plain
}

// Who may only write to a key reads nothing of it, and who may only read does not change it: beside Redis's own commands
// that only tell how long a value is and the like, every command asks for the permission that it needs. Those of
// Redis's modules do not say so of themselves.
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
