// Package reference compares the command table and the directives with the newest public reference.
package reference

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
	servercommands "github.com/atomredis/atomredis/internal/commands/server"
	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/testing/reference"
	_ "github.com/atomredis/atomredis/server" // registers all commands
)

// TestCommandsAreThoseOfTheReference compares releases, arities, flags, ACL categories, places of keys and tips, and says
// which commands are missing.
func TestCommandsAreThoseOfTheReference(t *testing.T) {
	rows := reference.Rows()
	require.Greater(t, len(rows), 600)
	for _, difference := range reference.Compare(command.NewTable(), servercommands.Tips) {
		t.Error(difference)
	}
	t.Logf("%s: %d commands", reference.Release(), len(rows))
	for _, row := range rows {
		if reason, ok := reference.NotServed[row.Name]; ok {
			t.Logf("not served: %s (since %s): %s", row.Name, row.Since, reason)
		}
	}
}

// TestNotServedHasNoStaleRow checks that a command which neither the reference nor the table has is reported.
func TestNotServedHasNoStaleRow(t *testing.T) {
	reference.NotServed["nosuch"] = "it is a command of this test"
	defer delete(reference.NotServed, "nosuch")
	require.Equal(t, []string{"nosuch is listed as not served, but is not in the reference"},
		reference.Compare(command.NewTable(), servercommands.Tips))
}

// onlyInFiles are the directives that CONFIG does not have, in Redis neither.
var onlyInFiles = map[string]bool{"include": true, "loadmodule": true, "rename-command": true, "user": true}

// TestDirectivesAreThoseOfTheReference checks that the directives of all releases are known.
func TestDirectivesAreThoseOfTheReference(t *testing.T) {
	files, err := filepath.Glob("../testdata/redisconf/*.tsv")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if name, _, _ := strings.Cut(line, "\t"); !strings.HasPrefix(name, "#") && !onlyInFiles[name] {
				_, known := config.Assign(name, "")
				require.True(t, known, "%s of %s", name, file)
			}
		}
	}
}

// A user with write permission alone cannot read a key, and one with read permission alone cannot change it. Every
// command asks for the permission that it needs, except those of Redis's own commands that only show a length or the
// like. In Redis, commands of modules do not declare this.
func TestKeysOfModulesNeedPermission(t *testing.T) {
	own := map[string]bool{} // commands of Redis whose places of keys are known
	for _, row := range reference.Rows() {
		own[row.Name] = row.Keys != "?"
	}
	for cmd := range command.NewTable().All {
		if own[cmd.Name] {
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
