package shell

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/atomredis/atomredis/internal/nearest"
)

// The server's documentation of its commands, for hints and completion.

// docs has the commands by name, in lower case; the name of a sub-command contains a space.
type docs map[string]*doc

// doc describes a command.
type doc struct {
	summary, since, group string
	args                  []argument
}

// argument is an argument of a command, or a group of arguments.
type argument struct {
	name, kind, token string // kind is that of COMMAND DOCS: oneof and block have parts
	hasToken          bool
	optional          bool
	multiple          bool // may be repeated
	repeatsToken      bool // the repetition includes the token
	given             bool // present already: only repetitions may follow
	parts             []argument
}

// loadDocs asks the server for the descriptions of its commands. If the server or the user's rights do not allow that,
// it loads only the names, or nothing.
func (s *Shell) loadDocs(ctx context.Context) error {
	s.docs = docs{}
	r, err := s.ask(ctx, []string{"COMMAND", "DOCS"})
	if err != nil {
		return err
	}
	r.pairs(func(name string, about reply) { s.docs.add(strings.ToLower(name), about) })
	if len(s.docs) > 0 {
		return nil
	}
	if r, err = s.ask(ctx, []string{"COMMAND"}); err != nil {
		return err
	}
	for _, c := range r.items {
		if len(c.items) > 0 {
			s.docs[strings.ToLower(string(c.items[0].text))] = &doc{}
		}
	}
	return nil
}

func (d docs) add(name string, about reply) {
	made := &doc{}
	d[name] = made
	about.pairs(func(field string, value reply) {
		switch field {
		case "summary":
			made.summary = string(value.text)
		case "since":
			made.since = string(value.text)
		case "group":
			made.group = string(value.text)
		case "arguments":
			made.args = readArguments(value)
		case "subcommands":
			value.pairs(func(name string, about reply) { d.add(strings.ReplaceAll(strings.ToLower(name), "|", " "), about) })
		}
	})
}

func readArguments(r reply) (list []argument) {
	for _, item := range r.items {
		var a argument
		item.pairs(func(field string, value reply) {
			switch field {
			case "name":
				a.name = string(value.text)
			case "type":
				a.kind = string(value.text)
			case "token":
				a.token, a.hasToken = string(value.text), true
			case "arguments":
				a.parts = readArguments(value)
			case "flags":
				for _, flag := range value.items {
					switch string(flag.text) {
					case "optional":
						a.optional = true
					case "multiple":
						a.multiple = true
					case "multiple_token":
						a.repeatsToken = true
					}
				}
			}
		})
		list = append(list, a)
	}
	return list
}

// String returns the argument as it is written in a syntax.
func (a argument) String() string {
	text := a.once()
	if a.multiple {
		again := text
		if a.hasToken && !a.repeatsToken {
			again = a.value()
		}
		if again = "[" + again + " ...]"; a.given {
			return again
		}
		text += " " + again
	}
	if a.optional {
		return "[" + text + "]"
	}
	return text
}

// once returns the syntax of the argument without its repetition.
func (a argument) once() string {
	if a.kind == "pure-token" {
		return a.tokenText()
	}
	if a.hasToken {
		return a.tokenText() + " " + a.value()
	}
	return a.value()
}

func (a argument) tokenText() string {
	if a.token == "" {
		return `""`
	}
	return a.token
}

// value returns the syntax of the argument without its token.
func (a argument) value() string {
	switch a.kind {
	case "oneof":
		return joined(a.parts, "|")
	case "block":
		return joined(a.parts, " ")
	}
	return a.name
}

func joined(list []argument, separator string) string {
	texts := make([]string, len(list))
	for i, a := range list {
		texts[i] = a.String()
	}
	return strings.Join(texts, separator)
}

// match reports whether word is the token with which the argument begins, and how many more words belong to it.
func (a argument) match(word string) (more int, ok bool) {
	if a.hasToken {
		if !strings.EqualFold(a.token, word) {
			return 0, false
		}
		if a.kind == "pure-token" {
			return 0, true
		}
		return a.words(), true
	}
	switch {
	case a.kind == "oneof":
		for _, part := range a.parts {
			if more, ok := part.match(word); ok {
				return more, true
			}
		}
	case a.kind == "block" && len(a.parts) > 0:
		if more, ok := a.parts[0].match(word); ok {
			for _, part := range a.parts[1:] {
				more += part.words()
			}
			return more, true
		}
	}
	return 0, false
}

// words returns the least number of words of the argument, without its token.
func (a argument) words() int {
	if a.kind != "block" {
		return 1
	}
	n := 0
	for _, part := range a.parts {
		if !part.optional {
			n += part.words()
		}
	}
	return n
}

// after returns the arguments that may follow the typed words of a command.
func after(args []argument, words []string) []argument {
	left := slices.Clone(args)
	skip := 0
	for _, word := range words {
		if skip > 0 {
			skip--
			continue
		}
		// Options can come in any order, up to the next required argument.
		found := false
		for i, a := range left {
			more, ok := a.match(word)
			if ok {
				if skip, found = more, true; !a.multiple {
					left = slices.Delete(left, i, i+1)
				}
				break
			}
			if !a.optional {
				break
			}
		}
		if found || len(left) == 0 {
			continue
		}
		i := slices.IndexFunc(left, func(a argument) bool { return !a.hasToken && !a.tokensOnly() })
		if i < 0 {
			continue
		}
		a := left[i]
		skip = a.words() - 1
		if a.multiple {
			a.optional, a.given = true, true
			left = append([]argument{a}, left[i+1:]...)
		} else {
			left = slices.Delete(left, 0, i+1)
		}
	}
	return left
}

// tokensOnly reports whether each choice of the argument begins with a token.
func (a argument) tokensOnly() bool {
	return (a.kind == "oneof" || a.kind == "pure-token") &&
		!slices.ContainsFunc(a.parts, func(p argument) bool { return !p.hasToken && !p.tokensOnly() })
}

// find returns the command with which words begin, and how many of the words are its name.
func (d docs) find(words []string) (found *doc, n int) {
	for n = min(2, len(words)); n > 0; n-- {
		if found = d[strings.ToLower(strings.Join(words[:n], " "))]; found != nil {
			return found, n
		}
	}
	return nil, 0
}

// hint returns the syntax of the arguments that may follow a line, "" if unknown.
func (d docs) hint(line string) string {
	words := strings.Fields(line)
	command, n := d.find(words)
	if command == nil {
		return ""
	}
	text := joined(after(command.args, words[n:]), " ")
	if text != "" && !strings.HasSuffix(line, " ") {
		return " " + text
	}
	return text
}

// complete returns the words that can replace the last word of a line, which may be empty.
func (d docs) complete(line string) (candidates []string, last string) {
	words := strings.Fields(line)
	if n := len(words); n > 0 && !strings.HasSuffix(line, " ") {
		last, words = words[n-1], words[:n-1]
	}
	add := func(word string) {
		if len(word) > len(last) && strings.EqualFold(word[:len(last)], last) {
			if last != "" && last == strings.ToUpper(last) {
				word = strings.ToUpper(word)
			}
			candidates = append(candidates, word)
		}
	}
	helping := len(words) > 0 && strings.EqualFold(words[0], "help")
	if helping {
		if words = words[1:]; len(words) == 0 {
			for _, group := range d.groups() {
				add("@" + group)
			}
		}
	}
	prefix := ""
	if len(words) == 1 {
		prefix = strings.ToLower(words[0]) + " "
	}
	if len(words) <= 1 {
		for name := range d {
			if name, ok := strings.CutPrefix(name, prefix); ok && !strings.Contains(name, " ") {
				add(name)
			}
		}
	}
	if command, n := d.find(words); command != nil && !helping {
		for _, token := range tokens(after(command.args, words[n:])) {
			if last == "" || last != strings.ToUpper(last) {
				token = strings.ToLower(token)
			}
			add(token)
		}
	}
	slices.Sort(candidates)
	return slices.Compact(candidates), last
}

// tokens returns the tokens that can be the next word.
func tokens(args []argument) (list []string) {
	for _, a := range args {
		switch {
		case a.hasToken && a.token != "":
			list = append(list, a.token)
		case a.kind == "oneof":
			list = append(list, tokens(optionals(a.parts))...)
		case a.kind == "block" && len(a.parts) > 0:
			list = append(list, tokens(a.parts[:1])...)
		}
		if !a.optional {
			break
		}
	}
	return list
}

// optionals returns the arguments, all marked as optional.
func optionals(args []argument) []argument {
	list := slices.Clone(args)
	for i := range list {
		list[i].optional = true
	}
	return list
}

// help describes a command and its sub-commands, or the commands of a group; without words it describes itself.
func (s *Shell) help(ctx context.Context, words []string) {
	if s.docs == nil && !s.tx && s.connect(ctx) == nil {
		s.loadDocs(ctx) // on failure there is no help
	}
	if len(words) == 0 {
		s.Out.WriteString("help COMMAND: what a command does    help @GROUP: the commands of a group, such as @list\n" +
			"connect HOST PORT: another server    clear: an empty screen    quit, exit: the end\n" +
			"N COMMAND: repeat it N times    TAB: completion    Ctrl-R: search the history\n")
		return
	}
	if len(s.docs) == 0 {
		s.Out.WriteString("The server has not described its commands\n")
		return
	}
	if group, ok := strings.CutPrefix(strings.ToLower(words[0]), "@"); ok {
		s.helpGroup(group)
		return
	}
	_, n := s.docs.find(words)
	if n == 0 {
		word := strings.ToLower(strings.Join(words, " "))
		fmt.Fprintf(s.Out, "There is no command %s%s\n", word, nearest.Question(word, s.docs.names("")))
		return
	}
	name := strings.ToLower(strings.Join(words[:n], " "))
	s.Out.WriteByte('\n')
	for _, name := range append([]string{name}, s.docs.names(name+" ")...) {
		s.describe(name)
		fmt.Fprintf(s.Out, "  group: %s\n\n", s.docs[name].group)
	}
}

// helpGroup describes the commands of a group.
func (s *Shell) helpGroup(group string) {
	found := false
	for _, name := range s.docs.names("") {
		if s.docs[name].group == group {
			if !found {
				s.Out.WriteByte('\n')
			}
			found = true
			s.describe(name)
			s.Out.WriteByte('\n')
		}
	}
	if !found {
		names := s.docs.groups()
		behind := nearest.Question(group, names)
		if behind == "" {
			behind = "; there are " + strings.Join(names, ", ")
		}
		fmt.Fprintf(s.Out, "There is no group %s%s\n", group, behind)
	}
}

// describe writes the syntax and the summary of a command.
func (s *Shell) describe(name string) {
	command := s.docs[name]
	syntax := strings.TrimRight(strings.ToUpper(name)+" "+joined(command.args, " "), " ")
	fmt.Fprintf(s.Out, "  %s\n  summary: %s\n  since: %s\n", syntax, command.summary, command.since)
}

// names returns the names of the commands that begin with prefix, in their order.
func (d docs) names(prefix string) (list []string) {
	for name := range d {
		if strings.HasPrefix(name, prefix) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// groups returns the groups of commands, in their order.
func (d docs) groups() (list []string) {
	for _, command := range d {
		if command.group != "" {
			list = append(list, command.group)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
