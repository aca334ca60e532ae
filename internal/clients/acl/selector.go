package acl

import (
	"errors"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// selector is one set of permissions: a command is allowed if one selector of the user allows it with all its keys
// and channels.
type selector struct {
	commands commandSet
	// firstArgs are the first arguments with which otherwise forbidden commands are allowed, by the command's index.
	firstArgs map[int][]string
	// rules are the rules for commands since the last rule for all commands, in order. Together they make commands
	// and firstArgs.
	rules       []string
	allKeys     bool
	keys        []keyPattern // none if allKeys
	allChannels bool
	channels    []string // patterns; none if allChannels
	allDBs      bool
	dbs         []int // in ascending order; none if allDBs
}

// Access is what a command does with a key.
type Access uint8

// The ways to use a key.
const (
	Read Access = 1 << iota
	Write
)

// keyPattern allows access to the keys that match it.
type keyPattern struct {
	pattern string
	access  Access
}

// String returns the pattern as a rule.
func (p keyPattern) String() string {
	switch p.access {
	case Read:
		return "%R~" + p.pattern
	case Write:
		return "%W~" + p.pattern
	}
	return "~" + p.pattern
}

// all reports whether the pattern allows everything with every key. Redis takes "%RW~*" for a pattern like others.
func (p keyPattern) all() bool { return p.pattern == "*" && p.access == Read|Write }

// commandSet is a set of commands. It also decides whether commands that are added later belong to it.
type commandSet struct {
	all    bool     // all commands except the exceptions are in the set; otherwise only the exceptions are
	except []uint64 // a bit per index
}

func (s *commandSet) has(i int) bool {
	w := i >> 6
	return s.all != (w < len(s.except) && s.except[w]&(1<<(i&63)) != 0)
}

func (s *commandSet) set(i int, in bool) {
	w, bit := i>>6, uint64(1)<<(i&63)
	if in == s.all {
		if w < len(s.except) {
			s.except[w] &^= bit
		}
		return
	}
	for w >= len(s.except) {
		s.except = append(s.except, 0)
	}
	s.except[w] |= bit
}

// complete reports whether every command is in the set.
func (s *commandSet) complete() bool {
	n := 0
	for _, w := range s.except {
		n += bits.OnesCount64(w)
	}
	return s.all && n == 0
}

func (s *commandSet) clone() commandSet { return commandSet{s.all, slices.Clone(s.except)} }

func (r Rules) newSelector() *selector { return &selector{allChannels: r.AllChannels, allDBs: true} }

func (s *selector) clone() *selector {
	c := *s
	c.commands = s.commands.clone()
	c.keys, c.channels = slices.Clone(s.keys), slices.Clone(s.channels)
	c.rules, c.dbs = slices.Clone(s.rules), slices.Clone(s.dbs)
	c.firstArgs = maps.Clone(s.firstArgs)
	for i, args := range c.firstArgs {
		c.firstArgs[i] = slices.Clone(args)
	}
	return &c
}

// allowsEverything reports whether nothing is refused.
func (s *selector) allowsEverything() bool {
	return s.commands.complete() && s.usesAllKeys() && s.allChannels && s.allDBs
}

// usesAllKeys reports whether everything is allowed with every key.
func (s *selector) usesAllKeys() bool {
	return s.allKeys || slices.ContainsFunc(s.keys, keyPattern.all)
}

// allow allows or forbids a command with its sub-commands.
func (s *selector) allow(cmd *Command, allowed bool) {
	s.commands.set(cmd.Index, allowed)
	delete(s.firstArgs, cmd.Index)
	for i := range cmd.Subs {
		s.commands.set(cmd.Subs[i].Index, allowed)
	}
}

// allowCategory allows or forbids all commands of a category. A container in the category includes its sub-commands,
// whatever their own categories.
func (s *selector) allowCategory(cmds []Command, category uint32, allowed bool) {
	for i := range cmds {
		cmd := &cmds[i]
		if cmd.Categories&category != 0 {
			s.allow(cmd, allowed)
		}
		s.allowCategory(cmd.Subs, category, allowed)
	}
}

// category returns the bit of a category, 0 if there is none of that name.
func (r Rules) category(name string) uint32 {
	if i := slices.Index(r.Commands.Categories(), lower(name)); i >= 0 {
		return 1 << i
	}
	return 0
}

// applyTo applies a rule that is about commands, keys, channels or databases.
func (r Rules) applyTo(s *selector, rule string) error {
	switch lower(rule) {
	case "allkeys", "~*":
		s.allKeys, s.keys = true, nil
		return nil
	case "resetkeys":
		s.allKeys, s.keys = false, nil
		return nil
	case "allchannels", "&*":
		s.allChannels, s.channels = true, nil
		return nil
	case "resetchannels":
		s.allChannels, s.channels = false, nil
		return nil
	case "alldbs":
		s.allDBs, s.dbs = true, nil
		return nil
	case "resetdbs":
		s.allDBs, s.dbs = false, nil
		return nil
	case "allcommands", "+@all":
		s.commands, s.firstArgs, s.rules = commandSet{all: true}, nil, nil
		return nil
	case "nocommands", "-@all":
		s.commands, s.firstArgs, s.rules = commandSet{}, nil, nil
		return nil
	case "":
		return errSyntax // only in a selector, where quotes can make it
	}
	if list, ok := strings.CutPrefix(lower(rule), "db="); ok {
		return r.setDatabases(s, list)
	}
	rest := rule[1:]
	switch rule[0] {
	case '~', '%':
		return s.addKeys(rule)
	case '&':
		return s.addChannels(rest)
	case '+', '-':
		if err := r.applyToCommands(s, rest, rule[0] == '+'); err != nil {
			return err
		}
		s.keepRule(lower(rule))
		return nil
	}
	return errSyntax
}

// applyToCommands allows or forbids a category, "@read", or a command.
func (r Rules) applyToCommands(s *selector, name string, allowed bool) error {
	name, isCategory := strings.CutPrefix(name, "@")
	if !isCategory {
		return r.applyCommand(s, name, allowed)
	}
	category := r.category(name)
	if category == 0 {
		return errUnknown
	}
	s.allowCategory(r.Commands.All(), category, allowed)
	return nil
}

// keepRule records a rule for commands. It drops earlier rules for the same command or category, and for the
// command's sub-commands and first arguments.
func (s *selector) keepRule(rule string) {
	name := rule[1:]
	s.rules = slices.DeleteFunc(s.rules, func(old string) bool {
		rest, ok := strings.CutPrefix(old[1:], name)
		return ok && (rest == "" || rest[0] == '|')
	})
	s.rules = append(s.rules, rule)
}

// applyCommand allows or forbids a command, "get", a sub-command, "config|get", or allows a command with a first
// argument, "select|0".
func (r Rules) applyCommand(s *selector, name string, allowed bool) error {
	bar := strings.LastIndexByte(name, '|')
	if !allowed || bar < 0 {
		cmd, ok := r.Commands.Command(name)
		if !ok {
			return errUnknown
		}
		s.allow(&cmd, allowed)
		return nil
	}
	cmd, ok := r.Commands.Command(name[:bar])
	arg := name[bar+1:]
	switch {
	case !ok:
		return errUnknown
	case cmd.Sub:
		return errSubFirstArg
	case arg == "" || hasSpaces(arg): // Redis accepts spaces, but cannot read back the file with them
		return errSyntax
	case len(cmd.Subs) > 0:
		if cmd, ok = r.Commands.Command(name); !ok {
			return errUnknown
		}
		s.allow(&cmd, true)
		return nil
	}
	s.addFirstArg(cmd.Index, arg)
	return nil
}

func (s *selector) addFirstArg(index int, arg string) {
	same := func(a string) bool { return lower(a) == lower(arg) }
	if slices.ContainsFunc(s.firstArgs[index], same) {
		return
	}
	if s.firstArgs == nil {
		s.firstArgs = map[int][]string{}
	}
	s.firstArgs[index] = append(s.firstArgs[index], arg)
}

// addKeys adds the pattern of a rule "~a", "%R~a", "%W~a" or "%RW~a".
func (s *selector) addKeys(rule string) error {
	if s.allKeys {
		return errAfterAllKeys
	}
	p := keyPattern{pattern: rule[1:], access: Read | Write}
	if rule[0] == '%' {
		var letters string
		letters, p.pattern, _ = strings.Cut(rule[1:], "~")
		p.access = 0
		for _, c := range lower(letters) {
			access := Access(0)
			switch c {
			case 'r':
				access = Read
			case 'w':
				access = Write
			}
			if access == 0 || p.access&access != 0 {
				return errSyntax
			}
			p.access |= access
		}
	}
	if p.access == 0 || hasSpaces(p.pattern) {
		return errSyntax
	}
	for i := range s.keys {
		if s.keys[i].pattern == p.pattern {
			s.keys[i].access |= p.access
			return nil
		}
	}
	s.keys = append(s.keys, p)
	return nil
}

func (s *selector) addChannels(pattern string) error {
	switch {
	case s.allChannels:
		return errAfterAllChans
	case hasSpaces(pattern):
		return errSyntax
	case !slices.Contains(s.channels, pattern):
		s.channels = append(s.channels, pattern)
	}
	return nil
}

// setDatabases allows the databases of a list, "0,2", and no others.
func (r Rules) setDatabases(s *selector, list string) error {
	var dbs []int
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.ParseUint(word, 10, 63)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return errSyntax
		}
		if err != nil || n >= uint64(r.Databases) {
			return errDatabase
		}
		dbs = append(dbs, int(n))
	}
	slices.Sort(dbs)
	s.allDBs, s.dbs = false, slices.Compact(dbs)
	return nil
}
