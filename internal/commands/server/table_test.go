package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
)

func TestTheSyntaxOfEveryCommandParsesAndFitsItsArity(t *testing.T) {
	for cmd := range command.NewTable().All {
		args, err := cmd.Arguments()
		if !assertNoError(t, err) || len(cmd.Subs) > 0 {
			continue
		}
		least := minimum(args) + 1 + strings.Count(cmd.Name, "|")
		if cmd.Arity > 0 {
			require.Equal(t, cmd.Arity, least, "%s: %s", cmd.Name, cmd.Syntax)
		} else if cmd.Group != "geo" || !strings.Contains(cmd.Syntax, "BYPOLYGON") {
			// An argument is optional only for a polygon, which the syntax cannot express.
			require.GreaterOrEqual(t, least, -cmd.Arity, "%s: %s", cmd.Name, cmd.Syntax)
		}
		used := make([]bool, len(cmd.Keys))
		markSpecs(args, used)
		for i, spec := range cmd.Keys {
			notKey := len(spec.Flags) > 0 && strings.Contains(strings.Join(spec.Flags, " "), "not_key")
			require.True(t, used[i] || notKey || spec.Hidden(), "%s: no argument for key spec %d", cmd.Name, i)
		}
	}
}

func assertNoError(t *testing.T, err error) bool {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

func markSpecs(args []*command.Argument, used []bool) {
	for _, a := range args {
		if a.Kind == command.ArgKey {
			used[a.KeySpec] = true
		}
		markSpecs(a.Args, used)
	}
}

func TestEveryCommandIsDocumented(t *testing.T) {
	for cmd := range command.NewTable().All {
		require.NotEmpty(t, cmd.Summary, cmd.Name)
		require.False(t, strings.HasSuffix(cmd.Summary, "."), cmd.Name)
		require.NotEmpty(t, cmd.Complexity, cmd.Name)
		require.NotEmpty(t, cmd.Since, cmd.Name)
		require.NotEmpty(t, cmd.Group, cmd.Name)
		require.Equal(t, cmd.Deprecated != "", cmd.Instead != "", cmd.Name)
	}
}

// minimum returns the smallest number of words of the arguments.
func minimum(args []*command.Argument) int {
	n := 0
	for _, a := range args {
		if !a.Optional {
			n += shortest(a)
		}
	}
	return n
}

// shortest returns the smallest number of words of a given argument.
func shortest(a *command.Argument) int {
	n := 1
	switch a.Kind {
	case command.ArgPureToken:
		return 1
	case command.ArgOneOf:
		n = shortest(a.Args[0])
		for _, choice := range a.Args[1:] {
			n = min(n, shortest(choice))
		}
	case command.ArgBlock:
		n = minimum(a.Args)
	}
	if a.Token != "" {
		n++
	}
	return n
}

func TestSecretsAreNamed(t *testing.T) {
	table := command.NewTable()
	for line, want := range map[string][]int{
		"AUTH x":                                  {1},
		"AUTH u x":                                {1, 2},
		"HELLO 3 AUTH u x SETNAME n":              {3, 4},
		"ACL SETUSER u on >x":                     {2, 3, 4},
		"ACL GETUSER u":                           nil,
		"CONFIG SET maxclients 1 requirepass x":   {5},
		"CONFIG SET REQUIREPASS x maxclients 100": {3},
		"CONFIG SET raft-secret x timeout 1":      {3},
	} {
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(word))
		}
		cmd, _ := table.Lookup(args)
		require.Equal(t, want, cmd.SecretArgs(args), line)
	}
}
