package config

import (
	"fmt"

	"github.com/atomredis/atomredis/door"
	"github.com/atomredis/atomredis/engine"
)

// doorDirectives are the directives of all kinds of doors.
func doorDirectives() (list []*directive) {
	for _, k := range door.Kinds() {
		if _, ok := engine.ParseEventClasses(k.Events); !ok {
			panic(fmt.Sprintf("config: door %s asks for events %q", k.Name, k.Events))
		}
		list = append(list, registeredDirective(Directive{Name: k.Directive(), Check: func(value string) error {
			_, _, err := k.ParseAddress(value)
			return err
		}}), registeredDirective(Directive{Name: k.Directive() + "-user"}))
		if k.TLS {
			list = append(list, registeredDirective(Directive{Name: k.Directive() + "-tls", Default: "no", Check: CheckYesNo}))
		}
		for _, own := range k.Directives {
			list = append(list, registeredDirective(own))
		}
	}
	return list
}

// DoorUser returns as which user the clients of a door act, "" if the settings name none.
func (s *Settings) DoorUser(k *door.Kind) string { return s.Registered[k.Directive()+"-user"] }

// DoorAddress returns where a door listens, "" if it does not.
func (s *Settings) DoorAddress(k *door.Kind) string {
	network, address, err := k.ParseAddress(s.Registered[k.Directive()])
	if err != nil || network == "" {
		return ""
	}
	return network + " " + address
}

// DoorTLS reports whether the peers of a door use TLS.
func (s *Settings) DoorTLS(k *door.Kind) bool {
	yes, err := parseYesNo(s.Registered[k.Directive()+"-tls"])
	return err == nil && yes
}
