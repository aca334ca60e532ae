package acl

import (
	"strconv"
	"strings"
)

// This file describes users as rules from which they can be made again.

// Selector describes one set of permissions of a user, by rules for commands, keys, channels and databases.
type Selector struct {
	Commands, Keys, Channels, Databases string
	// AllDatabases allows all databases, as in Redis.
	AllDatabases bool
}

// Selectors returns a user's permissions: first those of the user itself, then those of its selectors.
func (r Rules) Selectors(u *User) []Selector {
	list := make([]Selector, len(u.selectors))
	for i, s := range u.selectors {
		list[i] = Selector{strings.Join(s.commandRules(), " "), strings.Join(s.keyRules(), " "),
			strings.Join(s.channelRules(), " "), s.databaseRule(), s.allDBs}
	}
	return list
}

// Describe returns the rules that make the user from a new one, as ACL LIST and files have them.
func (r Rules) Describe(u *User) string {
	words := u.Flags()
	for _, p := range u.Passwords() {
		words = append(words, "#"+p)
	}
	if roles := u.Roles(); len(roles) > 0 {
		words = append(words, roleWord+"="+strings.Join(roles, ","))
	}
	for i, s := range u.selectors {
		rules := s.keyRules()
		if !s.allChannels {
			rules = append(rules, "resetchannels")
		}
		rules = append(rules, s.channelRules()...)
		switch {
		case s.allDBs: // the default, which needs no rule
		case len(s.dbs) == 0:
			rules = append(rules, "resetdbs")
		default:
			rules = append(rules, s.databaseRule())
		}
		rules = append(rules, s.commandRules()...)
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

// quoteInSelector quotes a rule so that it can be read back between parentheses: there quotes have a meaning, and a
// word that ends with a parenthesis closes the selector.
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

// databaseRule returns the rule for databases; "" if there are none.
func (s *selector) databaseRule() string {
	switch {
	case s.allDBs:
		return "alldbs"
	case len(s.dbs) == 0:
		return ""
	}
	rule := "db="
	for i, db := range s.dbs {
		if i > 0 {
			rule += ","
		}
		rule += strconv.Itoa(db)
	}
	return rule
}

// commandRules returns the rules for the commands of a selector. They begin with all commands or with none, which
// decides whether commands that are added later are allowed.
func (s *selector) commandRules() []string {
	first := "-@all"
	if s.commands.all {
		first = "+@all"
	}
	return append([]string{first}, s.rules...)
}
