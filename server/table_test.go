package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/command"
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
			// What is optional for a polygon is not for other shapes: no syntax says so.
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

// minimum returns how many words the arguments take at least.
func minimum(args []*command.Argument) int {
	n := 0
	for _, a := range args {
		if !a.Optional {
			n += shortest(a)
		}
	}
	return n
}

// shortest returns how many words the argument takes at least if it is given.
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
