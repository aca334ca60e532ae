package server_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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

// otherFacts are the facts of commands that differ from those of Redis 8.10, with the reason.
var otherFacts = map[string]string{
	"CF.COMPACT arity":      "Redis takes any arguments",
	"CF.COMPACT flags":      "it changes the filter",
	"CF.COMPACT categories": "it changes the filter",
	"CMS.INITBYDIM arity":   "CELL_SIZE is of Redis 8.12",
	"CMS.INITBYPROB arity":  "CELL_SIZE is of Redis 8.12",
	"CMS.MERGE flags":       "its key specs name the sources too",
	"TS.READ flags":         "it blocks",
	"BACKUP ABORT flags":    "it waits",
	"BACKUP SEAL flags":     "it waits",
	"JSON.DEBUG flags":      "a container, whose subcommands have the keys",
}

// TestCommandsAreThoseOfRedis compares the facts about all commands with the reference of Redis 8.10.
func TestCommandsAreThoseOfRedis(t *testing.T) {
	file, err := os.ReadFile("testdata/redis-8.10.tsv")
	require.NoError(t, err)
	// COMMAND does not show these flags, neither in Redis nor here.
	const unlisted = command.Protected | command.MayReplicate | command.TouchesArbitraryKeys
	ours := map[string]*command.Command{}
	for cmd := range command.NewTable().All {
		ours[strings.ToUpper(strings.ReplaceAll(cmd.Name, "|", " "))] = cmd
	}
	count := 0
	for line := range strings.Lines(string(file)) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(row) != 4 {
			continue
		}
		count++
		cmd := ours[row[0]]
		if !assert.NotNil(t, cmd, row[0]) {
			continue
		}
		same := func(fact, want, got string) {
			if otherFacts[row[0]+" "+fact] == "" {
				assert.Equal(t, want, got, "%s: %s", row[0], fact)
			}
		}
		words := func(list []string) string {
			slices.Sort(list)
			return strings.Join(list, ",")
		}
		same("arity", row[1], strconv.Itoa(cmd.Arity))
		same("flags", words(strings.Split(row[2], ",")), words((cmd.Flags &^ unlisted).Names()))
		if row[3] != "" { // in Redis vector commands have no group
			same("categories", words(strings.Split(row[3], ",")), words(cmd.ACL.Names()))
		}
	}
	require.Greater(t, count, 500)
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
	} {
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(word))
		}
		cmd, _ := table.Lookup(args)
		require.Equal(t, want, cmd.SecretArgs(args), line)
	}
}
