package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/atomredis/atomredis/internal/config"
	"github.com/atomredis/atomredis/internal/version"
)

// Descriptions of the tree of commands: completion for shells, and pages of the manual.

// addServerFlags adds the directives of the server to the root as flags, with their possible values.
func addServerFlags(root *cobra.Command) {
	for _, d := range config.Describe() {
		root.Flags().Var(&directive{d.Default}, d.Name, strings.Join(d.Values, ", "))
		if d.Values != nil {
			complete := cobra.FixedCompletions(d.Values, cobra.ShellCompDirectiveNoFileComp)
			cobra.CheckErr(root.RegisterFlagCompletionFunc(d.Name, complete))
		}
	}
}

// directive is the flag of a directive.
type directive struct{ initial string }

func (d *directive) String() string   { return d.initial }
func (d *directive) Set(string) error { return nil }
func (d *directive) Type() string     { return "value" }

// CompleteDirectives completes the arguments of a command that accepts those of the server.
func CompleteDirectives(c *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if !strings.HasPrefix(toComplete, "-") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var names []string
	for _, d := range config.Describe() {
		if name := "--" + d.Name; strings.HasPrefix(name, toComplete) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{Use: "completion bash|zsh|fish", Short: "write a script that makes a shell complete arguments",
		Long: `Writes a script that makes a shell complete the arguments of atomredis: sub-commands, their flags, and the
directives of the server. The script asks the program, so it also works with other versions.`,
		Example: `  atomredis completion bash > /usr/share/bash-completion/completions/atomredis
  atomredis completion zsh > "${fpath[1]}/_atomredis"
  atomredis completion fish > ~/.config/fish/completions/atomredis.fish`,
		Args: Arguments(1, 1), ValidArgs: shells, DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			switch root := c.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			}
			return Usagef("unknown shell %q: there are %s", args[0], strings.Join(shells, ", "))
		}}
}

func (a *app) man() *cobra.Command {
	return &cobra.Command{Use: "man DIR", Short: "write pages of the manual into a directory",
		Long:    "Writes a page of the manual for the server and for each sub-command into a directory, which it creates.",
		Example: "  atomredis man /usr/local/share/man/man1",
		Args:    Arguments(1, 1), DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writePages(c.Root(), args[0])
		}}
}

// writePages writes the pages of a command and its sub-commands.
func writePages(c *cobra.Command, dir string) error {
	err := os.WriteFile(filepath.Join(dir, pageName(c)+".1"), page(c), 0o644)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			err = errors.Join(err, writePages(sub, dir))
		}
	}
	return err
}

// pageName returns the name of a command's page.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page returns the page of a command in the macros of man(7). It has no date, so that it is reproducible.
func page(c *cobra.Command) []byte {
	var b roff
	b.line(`.TH "` + strings.ToUpper(pageName(c)) + `" 1 "" "atomredis ` + version.Number + `" "atomredis"`)
	b.section("NAME")
	b.text(pageName(c) + " - " + c.Short)
	b.section("SYNOPSIS")
	b.bold(c.UseLine())
	if c.Long != "" {
		b.section("DESCRIPTION")
		b.text(c.Long)
	}
	b.flags("OPTIONS", c.NonInheritedFlags())
	b.flags("OPTIONS OF ALL COMMANDS OF "+strings.ToUpper(parentPath(c)), c.InheritedFlags())
	if c.Example != "" {
		b.section("EXAMPLES")
		b.verbatim(c.Example)
	}
	var related []string
	if c.HasParent() {
		related = append(related, pageName(c.Parent())+"(1)")
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			related = append(related, pageName(sub)+"(1)")
		}
	}
	if len(related) > 0 {
		b.section("SEE ALSO")
		b.text(strings.Join(related, ", "))
	}
	return b
}

func parentPath(c *cobra.Command) string {
	if !c.HasParent() {
		return ""
	}
	return c.Parent().CommandPath()
}

// roff is a page in the making.
type roff []byte

var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`)

// escaped escapes text for roff, also a first character that would begin a request.
func escaped(s string) string {
	if s = escapes.Replace(s); strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		return `\&` + s
	}
	return s
}

func (b *roff) line(s string)       { *b = append(append(*b, s...), '\n') }
func (b *roff) section(name string) { b.line(`.SH "` + name + `"`) }
func (b *roff) bold(s string)       { b.line(`\fB` + escapes.Replace(s) + `\fP`) }

// text writes paragraphs, which are separated by empty lines.
func (b *roff) text(s string) {
	for line := range strings.SplitSeq(strings.Trim(s, "\n"), "\n") {
		if line == "" {
			b.line(".PP")
			continue
		}
		b.line(escaped(line))
	}
}

// verbatim writes lines unchanged.
func (b *roff) verbatim(s string) {
	b.line(".nf")
	for line := range strings.SplitSeq(s, "\n") {
		b.line(escaped(line))
	}
	b.line(".fi")
}

func (b *roff) flags(section string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.section(section)
	for _, f := range sortedFlags(flags) {
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, usage := pflag.UnquoteUsage(f)
		b.line(".TP")
		b.line(strings.TrimSuffix(`\fB`+escapes.Replace(name)+`\fP `+escapes.Replace(kind), " "))
		if f.DefValue != "" && kind != "" {
			usage = strings.TrimPrefix(usage+"; default: "+f.DefValue, "; ")
		}
		b.text(usage)
	}
}

// sortedFlags returns the visible flags in order.
func sortedFlags(flags *pflag.FlagSet) (list []*pflag.Flag) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			list = append(list, f)
		}
	})
	slices.SortFunc(list, func(a, b *pflag.Flag) int { return strings.Compare(a.Name, b.Name) })
	return list
}
