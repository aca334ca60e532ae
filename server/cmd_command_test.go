package server

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/config"
	"github.com/atomredis/atomredis/resp"
)

var update = flag.Bool("update", false, "write docs/commands.md instead of checking it")

// reply runs a handler that needs nothing but the table and returns what it writes.
func reply(t *testing.T, args ...string) string {
	t.Helper()
	srv := &Server{table: command.NewTable(), config: config.NewConfig()}
	c := &command.Ctx{W: &resp.Writer{Proto: 2}, Host: srv}
	for _, a := range args {
		c.Args = append(c.Args, []byte(a))
	}
	c.Cmd, _ = srv.table.Lookup(c.Args)
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
		"get a b":               "-" + string(errCommandArity),
		"nosuch a":              "-" + string(errInvalidCommand),
		"config nosuch a":       "-" + string(errInvalidCommand),
		"publish a b":           "-" + string(errNoKeyArguments),
		"spublish a b":          "-" + string(errNoKeyArguments),
		"config get x":          "-" + string(errNoKeyArguments),
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

func TestKeyRangeIsThatOfRedis(t *testing.T) {
	for specs, want := range map[string][3]int{
		"":                                    {0, 0, 0},
		"i1+r0/1/0[RO]":                       {1, 1, 1},
		"i1+r-1/2/0[OW]":                      {1, -1, 2},
		"i1+r-2/1/0[RW]":                      {1, -2, 1},
		"i1+r0/1/0[RW] i2+r0/1/0[RW]":         {1, 2, 1},
		"i1+r0/1/0[OW] i2+r-1/1/0[RO]":        {1, -1, 1},
		"i1+r0/1/0[OW] i2+n0/1/1[RO]":         {1, 1, 1},
		"i2+n0/1/1[RW]":                       {0, 0, 0},
		"kw:STREAMS@1+r-1/1/2[RO]":            {0, 0, 0},
		"i1+r0/1/0[RO] i4+r0/1/0[RO]":         {1, 1, 1},
		"i1+r0/1/0[RO] kw:STORE@1+r0/1/0[OW]": {1, 1, 1},
	} {
		first, last, step := keyRange((&command.Command{Keys: command.Keys(specs)}))
		require.Equal(t, want, [3]int{first, last, step}, specs)
	}
}

// TestDocumentationOfCommandsIsCurrent keeps docs/commands.md in step with the command table:
// go test ./server -run TestDocumentationOfCommandsIsCurrent -update writes it.
func TestDocumentationOfCommandsIsCurrent(t *testing.T) {
	const path = "../docs/commands.md"
	want := commandsMarkdown(command.NewTable())
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	if want != string(got) { // the difference itself would be too long to read
		t.Error(path, "is out of date; run: go test ./server -run TestDocumentationOfCommandsIsCurrent -update")
	}
}

func commandsMarkdown(t *command.Table) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nThese commands are there, and behave as in Redis. \"Since\" is the version of Redis that introduced them. This page is " +
		"generated from the command table: `go test ./server -run TestDocumentationOfCommandsIsCurrent -update`.\n")
	groups := map[string][]*command.Command{}
	var names []string
	for cmd := range t.All {
		if len(cmd.Subs) > 0 && cmd.Do == nil {
			continue
		}
		if groups[docGroup(cmd)] == nil {
			names = append(names, docGroup(cmd))
		}
		groups[docGroup(cmd)] = append(groups[docGroup(cmd)], cmd)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "\n## %s%s\n\n| command | does | cost | since |\n|---|---|---|---|\n", strings.ToUpper(name[:1]),
			strings.ReplaceAll(name[1:], "-", " "))
		for _, cmd := range groups[name] {
			usage := strings.TrimSpace(strings.ToUpper(strings.ReplaceAll(cmd.Name, "|", " ")) + " " + cmd.Syntax)
			summary := cmd.Summary
			if cmd.Deprecated != "" {
				summary += fmt.Sprintf(" (deprecated since %s: use %s)", cmd.Deprecated, cmd.Instead)
			}
			escape := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", escape(usage), escape(summary), escape(cmd.Complexity), cmd.Since)
		}
	}
	return b.String()
}
