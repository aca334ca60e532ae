package acl

import (
	"math"
	"strings"
)

// This file has the description of users by rules, from which they can be made again.

// Selector describes one set of permissions of a user, by rules for commands, keys and channels.
type Selector struct{ Commands, Keys, Channels string }

// Selectors describes what a user may do, first of which what it may do itself and then its selectors.
func (r Rules) Selectors(u *User) []Selector {
	d := r.describer()
	list := make([]Selector, len(u.selectors))
	for i, s := range u.selectors {
		list[i] = Selector{strings.Join(d.commands(s), " "), strings.Join(s.keyRules(), " "), strings.Join(s.channelRules(), " ")}
	}
	return list
}

// Describe returns the rules that make the user from a new one, as ACL LIST and files have them.
func (r Rules) Describe(u *User) string {
	words := u.Flags()
	for _, p := range u.Passwords() {
		words = append(words, "#"+p)
	}
	d := r.describer()
	for i, s := range u.selectors {
		rules := s.keyRules()
		if !s.allChannels {
			rules = append(rules, "resetchannels")
		}
		rules = append(append(rules, s.channelRules()...), d.commands(s)...)
		if i == 0 {
			words = append(words, rules...)
			continue
		}
		for j := range rules {
			rules[j] = quoteInSelector(rules[j])
		}
		words = append(words, "("+strings.Join(rules, " ")+")")
	}
	return strings.Join(words, " ")
}

// quoteInSelector returns a rule in the form in which it is read back between parentheses, where quotes have a meaning and a word that
// ends with one closes the selector.
func quoteInSelector(rule string) string {
	if !strings.ContainsAny(rule, `"'`) && !strings.HasSuffix(rule, ")") {
		return rule
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(rule) + `"`
}

func (s *selector) keyRules() (rules []string) {
	if s.usesAllKeys() {
		return []string{"~*"}
	}
	for _, p := range s.keys {
		rules = append(rules, p.String())
	}
	return rules
}

func (s *selector) channelRules() (rules []string) {
	if s.allChannels {
		return []string{"&*"}
	}
	for _, p := range s.channels {
		rules = append(rules, "&"+p)
	}
	return rules
}

// describer finds rules for sets of commands.
type describer struct {
	tops       []Command // as Commands.All gives them
	every      []Command // sub-commands too
	categories []string
}

func (r Rules) describer() *describer {
	d := &describer{tops: r.Commands.All(), categories: r.Commands.Categories()}
	for _, cmd := range d.tops {
		d.every = append(append(d.every, cmd), cmd.Subs...)
	}
	return d
}

// commands returns the rules for the commands of a selector. They begin with all commands or with none, the difference being whether
// commands that are added later are allowed. Then come the categories that bring the set nearest, as Redis chooses them, and then single
// commands. As the rules are found they are applied to a set, so that it is known what is still missing.
func (d *describer) commands(s *selector) []string {
	reached := &selector{commands: commandSet{all: s.commands.all}}
	left := &selector{commands: s.commands.clone()} // s without the categories that have been chosen
	add := !s.commands.all
	words := []string{"-@all"}
	sign := "+"
	if !add {
		words, sign = []string{"+@all"}, "-"
	}
	applied := make([]bool, len(d.categories))
	for {
		best := d.bestCategory(&left.commands, add, applied)
		if best < 0 {
			break
		}
		applied[best] = true
		words = append(words, sign+"@"+d.categories[best])
		reached.allowCategory(d.tops, 1<<best, add)
		left.allowCategory(d.tops, 1<<best, !add)
	}
	return d.single(words, s, reached, d.tops)
}

// bestCategory returns the category that has more commands which must be added to the set (or taken away, if not add) than others, and
// the fewest others; -1 if there is none.
func (d *describer) bestCategory(left *commandSet, add bool, applied []bool) int {
	best, fewest, most := -1, math.MaxInt, 0
	for c := range d.categories {
		if applied[c] {
			continue
		}
		same, different := 0, 0
		for i := range d.every {
			switch cmd := &d.every[i]; {
			case cmd.Categories&(1<<c) == 0:
			case left.has(cmd.Index) == add:
				same++
			default:
				different++
			}
		}
		if same > different && (different < fewest || different == fewest && same > most) {
			best, fewest, most = c, different, same
		}
	}
	return best
}

// single appends the rules for commands that are in one of two selectors only, and for first arguments.
func (d *describer) single(words []string, s, reached *selector, cmds []Command) []string {
	for i := range cmds {
		cmd := &cmds[i]
		allowed := s.commands.has(cmd.Index)
		if allowed != reached.commands.has(cmd.Index) {
			sign := "-"
			if allowed {
				sign = "+"
			}
			words = append(words, sign+cmd.Name)
			reached.allow(cmd, allowed)
		}
		words = d.single(words, s, reached, cmd.Subs)
		if !allowed {
			for _, arg := range s.firstArgs[cmd.Index] {
				words = append(words, "+"+cmd.Name+"|"+arg)
			}
		}
	}
	return words
}
