package migrate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
	_ "github.com/atomredis/atomredis/internal/commands/migrate"
	"github.com/atomredis/atomredis/resp"
)

func TestAllKeysOfMigrateAreChecked(t *testing.T) {
	migrate := command.NewTable().Find([]byte("migrate"))
	for line, want := range map[string]string{
		"MIGRATE h 1 k 0 9":                               "k",
		"MIGRATE h 1 '' 0 9 KEYS a b":                     "a b",
		"MIGRATE h 1 '' 0 9 COPY AUTH KEYS KEYS a KEYS b": "a KEYS b",
		"MIGRATE h 1 '' 0 9 AUTH2 KEYS KEYS keys a":       "a",
		"MIGRATE h 1 k 0 9 KEYS a":                        "",
		"MIGRATE h 1 k 0 9 KEYS":                          "k",
		"MIGRATE h":                                       "",
	} {
		args, err := resp.SplitArgs([]byte(line), nil)
		require.NoError(t, err)
		var names []string
		for _, i := range migrate.KeyIndices(args) {
			names = append(names, string(args[i]))
		}
		require.Equal(t, want, strings.Join(names, " "), line)
	}
}
