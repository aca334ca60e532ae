package config

import (
	"maps"

	"github.com/atomredis/atomredis/doors/door"
)

// Directive is a directive of a protocol or a door. Its value is one word.
type Directive = door.Directive

// registered are the directives of protocols.
var registered []Directive

// Register registers a directive. It is called while the program starts.
func Register(d Directive) { registered = append(registered, d) }

// CheckYesNo is the Check of a directive that is yes or no.
func CheckYesNo(value string) error {
	_, err := parseYesNo(value)
	return err
}

func registeredDirectives() (list []*directive) {
	for _, d := range registered {
		list = append(list, registeredDirective(d))
	}
	return list
}

func registeredDirective(d Directive) *directive {
	made := &directive{name: d.Name, initial: QuoteWord(d.Default),
		parse: func(s *Settings, words []string) error {
			if d.Check != nil {
				if err := d.Check(words[0]); err != nil {
					return err
				}
			}
			next := maps.Clone(s.Registered) // a copy, because other settings share the map
			if next == nil {
				next = map[string]string{}
			}
			next[d.Name] = words[0]
			s.Registered = next
			return nil
		},
		show: func(s *Settings) string { return s.Registered[d.Name] },
	}
	if d.AtStart {
		made.atStart().unlessSame()
	}
	return made.ours()
}
