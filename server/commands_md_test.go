package server

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/testing/reference"
)

var update = flag.Bool("update", false, "write docs/commands.md instead of checking it")

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
	fmt.Fprintf(&b, "\n## Not served\n\nThe reference is %s.", reference.Release())
	if len(reference.NotServed) == 0 {
		b.WriteString(" All its commands that clients can call are here.\n")
		return b.String()
	}
	b.WriteString(" These of its commands do not exist here:\n\n| command | since | why |\n|---|---|---|\n")
	for _, row := range reference.Rows() {
		if reason, ok := reference.NotServed[row.Name]; ok {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ToUpper(strings.ReplaceAll(row.Name, "|", " ")), row.Since, reason)
		}
	}
	return b.String()
}

// docGroup returns the name of the group as COMMAND DOCS shows it.
func docGroup(cmd *command.Command) string { return strings.ReplaceAll(cmd.Group, "_", "-") }
