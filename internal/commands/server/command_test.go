package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
	servercommands "github.com/atomredis/atomredis/internal/commands/server"
	"github.com/atomredis/atomredis/resp"
	_ "github.com/atomredis/atomredis/server" // registers all commands
)

// host is a server that has only the table.
type host struct {
	servercommands.Host
	table *command.Table
}

func (h host) Table() *command.Table { return h.table }

// reply runs a handler that needs only the table, and returns its reply.
func reply(t *testing.T, args ...string) string {
	t.Helper()
	table := command.NewTable()
	c := &command.Ctx{W: &resp.Writer{Proto: 2}, Host: host{table: table}}
	for _, a := range args {
		c.Args = append(c.Args, []byte(a))
	}
	c.Cmd, _ = table.Lookup(c.Args)
	require.NotNil(t, c.Cmd)
	c.Cmd.Do(c)
	return strings.TrimSuffix(strings.ReplaceAll(string(c.W.Buf), "\r\n", " "), " ")
}

func TestCommandInfoHasTheShapeOfRedis(t *testing.T) {
	require.Equal(t, "*1 *10 $3 get :2 *2 +readonly +fast :1 :1 :1 *3 +@read +@string +@fast *0 "+
		"*1 *6 $5 flags *2 +RO +access $12 begin_search *4 $4 type $5 index $4 spec *2 $5 index :1 "+
		"$9 find_keys *4 $4 type $5 range $4 spec *6 $7 lastkey :0 $7 keystep :1 $5 limit :0 *0",
		reply(t, "command", "info", "GET"))
	require.Equal(t, "*2 $-1 *10 $11 config|help :2 *2 +loading +stale :0 :0 :0 *1 +@slow *0 *0 *0",
		reply(t, "command", "info", "nosuch", "config|help"))
	require.Equal(t, strings.Fields(reply(t, "command"))[0], "*"+strings.TrimPrefix(reply(t, "command", "count"), ":"))
}

func TestCommandGetkeysFindsKeys(t *testing.T) {
	for args, want := range map[string]string{
		"get a":                 "*1 $1 a",
		"mset a b c d":          "*2 $1 a $1 c",
		"mset a b c":            "*2 $1 a $1 c",
		"eval x 2 a b c":        "*2 $1 a $1 b",
		"eval x 0":              "*0",
		"eval x 5 a b":          "*0",
		"get a b":               "-ERR Invalid number of arguments specified for command",
		"nosuch a":              "-ERR Invalid command specified",
		"config nosuch a":       "-ERR Invalid command specified",
		"publish a b":           "-ERR The command has no key arguments",
		"spublish a b":          "-ERR The command has no key arguments",
		"config get x":          "-ERR The command has no key arguments",
		"set k v px 10 keepttl": "*1 $1 k",
	} {
		require.Equal(t, want, reply(t, append([]string{"command", "getkeys"}, strings.Fields(args)...)...), args)
	}
}

func TestCommandGetkeysandflagsTellsWhatHappensToKeys(t *testing.T) {
	for args, want := range map[string]string{
		"get a":         "*1 *2 $1 a *2 +RO +access",
		"set a b":       "*1 *2 $1 a *2 +OW +update",
		"set a b Get":   "*1 *2 $1 a *3 +RW +access +update",
		"set get get":   "*1 *2 $3 get *2 +OW +update",
		"eval x 1 a":    "*1 *2 $1 a *3 +RW +access +update",
		"rename a b":    "*2 *2 $1 a *3 +RW +access +delete *2 $1 b *2 +OW +update",
		"eval_ro x 1 a": "*1 *2 $1 a *2 +RO +access",
	} {
		require.Equal(t, want, reply(t, append([]string{"command", "getkeysandflags"}, strings.Fields(args)...)...), args)
	}
}

func TestCommandListFilters(t *testing.T) {
	require.Equal(t, "*2 $4 mget $4 mset", reply(t, "command", "list", "filterby", "pattern", "M[gs]ET"))
	require.Equal(t, "*1 $14 config|rewrite", reply(t, "command", "list", "filterby", "pattern", "config|rew*"))
	require.Equal(t, "*0", reply(t, "command", "list", "filterby", "module", "x"))
	require.Contains(t, reply(t, "command", "list", "filterby", "module", "bf"), " $11 topk.incrby")
	require.NotContains(t, reply(t, "command", "list", "filterby", "module", "search"), "json")
	require.Equal(t, "*0", reply(t, "command", "list", "filterby", "aclcat", "@read"))
	require.Contains(t, reply(t, "command", "list", "filterby", "aclcat", "READ"), "$3 get ")
	require.NotContains(t, reply(t, "command", "list", "filterby", "aclcat", "read"), "$3 set ")
	require.Contains(t, reply(t, "command", "list"), "$10 config|get ")
	for _, args := range []string{"x", "filterby", "filterby foo x", "filterby pattern", "filterby pattern a b"} {
		require.Equal(t, "-"+string(command.ErrSyntax),
			reply(t, append([]string{"command", "list"}, strings.Fields(args)...)...), args)
	}
}

func TestCommandDocsDescribesArguments(t *testing.T) {
	require.Equal(t, "*2 $4 mget *10 $7 summary "+
		"$"+fmt.Sprint(len(command.NewTable().ByName["mget"].Summary))+" "+command.NewTable().ByName["mget"].Summary+
		" $5 since $5 1.0.0 $5 group $6 string $10 complexity "+
		"$"+fmt.Sprint(len(command.NewTable().ByName["mget"].Complexity))+" "+command.NewTable().ByName["mget"].Complexity+
		" $9 arguments *1 *8 $4 name $3 key $4 type $3 key $14 key_spec_index :0 $5 flags *1 +multiple",
		reply(t, "command", "docs", "mget", "nosuch"))
	require.Contains(t, reply(t, "command", "docs", "config"), "$11 subcommands *10 $10 config|get *")
	require.Contains(t, reply(t, "command", "docs", "getset"),
		"$9 doc_flags *1 +deprecated $16 deprecated_since $5 6.2.0 $11 replaced_by ")
}

// Each history must belong to a command.
func TestEveryHistoryBelongsToACommand(t *testing.T) {
	table := command.NewTable()
	for name, history := range servercommands.History() {
		require.NotNil(t, table.Original(name), name)
		require.True(t, slices.IsSortedFunc(history, func(a, b servercommands.Change) int { return compareVersions(t, a.Since, b.Since) }),
			name)
	}
	for _, name := range servercommands.InternalCommands {
		require.NotNil(t, table.Original(name), name)
	}
}

func compareVersions(t *testing.T, a, b string) int {
	parts := func(version string) (out [3]int) {
		_, err := fmt.Sscanf(version, "%d.%d.%d", &out[0], &out[1], &out[2])
		require.NoError(t, err, version)
		return out
	}
	x, y := parts(a), parts(b)
	return slices.Compare(x[:], y[:])
}

func TestModulesThatAreBuiltInStay(t *testing.T) {
	for name, want := range map[string]string{
		"ReJSON": "the module exports one or more module-side data types, can't unload",
		"rejson": "no such module with that name",
	} {
		require.Equal(t, "-ERR Error unloading module: "+want, reply(t, "module", "unload", name))
	}
}
