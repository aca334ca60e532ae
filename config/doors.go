package config

import (
	"fmt"
	"maps"

	"github.com/atomredis/atomredis/door"
	"github.com/atomredis/atomredis/engine"
)

// doorDirectives are the directives of all kinds of doors.
func doorDirectives() (list []*directive) {
	for _, k := range door.Kinds() {
		if _, ok := engine.ParseEventClasses(k.Events); !ok {
			panic(fmt.Sprintf("server: door %s asks for events %q", k.Name, k.Events))
		}
		list = append(list, doorDirective(k.Directive(), "", func(value string) error {
			_, _, err := k.ParseAddress(value)
			return err
		}), doorDirective(k.Directive()+"-user", "", nil))
		if k.TLS {
			list = append(list, doorDirective(k.Directive()+"-tls", "no", func(value string) error {
				_, err := parseYesNo(value)
				return err
			}))
		}
		for _, own := range k.Directives {
			list = append(list, doorDirective(own.Name, own.Default, own.Check))
		}
	}
	return list
}

// doorDirective is a directive of a door; check returns what is wrong with a value, and may be nil.
func doorDirective(name, initial string, check func(value string) error) *directive {
	d := &directive{name: name, initial: QuoteWord(initial),
		parse: func(s *Settings, words []string) error {
			if check != nil {
				if err := check(words[0]); err != nil {
					return err
				}
			}
			next := maps.Clone(s.Doors) // which other settings share
			if next == nil {
				next = map[string]string{}
			}
			next[name] = words[0]
			s.Doors = next
			return nil
		},
		show: func(s *Settings) string { return s.Doors[name] },
	}
	return d.ours()
}

// DoorUser returns as which user the clients of a door act, "" if the settings name none.
func (s *Settings) DoorUser(k *door.Kind) string { return s.Doors[k.Directive()+"-user"] }

// DoorAddress returns where a door listens, "" if it does not.
func (s *Settings) DoorAddress(k *door.Kind) string {
	network, address, err := k.ParseAddress(s.Doors[k.Directive()])
	if err != nil || network == "" {
		return ""
	}
	return network + " " + address
}

// DoorTLS reports whether the peers of a door use TLS.
func (s *Settings) DoorTLS(k *door.Kind) bool {
	yes, err := parseYesNo(s.Doors[k.Directive()+"-tls"])
	return err == nil && yes
}
