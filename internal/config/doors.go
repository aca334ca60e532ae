package config

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/engine"
)

// doorDirectives are the directives of all kinds of doors.
func doorDirectives() (list []*directive) {
	for _, k := range door.Kinds() {
		if _, ok := engine.ParseEventClasses(k.Events); !ok {
			panic(fmt.Sprintf("config: door %s asks for events %q", k.Name, k.Events))
		}
		where := Directive{Name: k.AddressDirective(), Check: func(value string) error {
			_, _, err := k.ParseAddress(value)
			return err
		}}
		if k.PortDirective != "" {
			where.Default, where.Check, where.AtStart = "0", checkPort, true
		}
		also := func(d Directive, last string) *directive {
			if k.Alias == "" {
				return registeredDirective(d)
			}
			return registeredDirective(d).also(k.Alias + last)
		}
		list = append(list, also(where, "-port"), also(Directive{Name: k.Directive() + "-user"}, "-user"))
		if k.TLS {
			list = append(list, also(Directive{Name: k.Directive() + "-tls", Default: "no", Check: CheckYesNo}, "-tls"))
		}
		for _, own := range k.Directives {
			list = append(list, registeredDirective(own))
		}
	}
	return list
}

func checkPort(value string) error {
	if _, err := strconv.ParseUint(value, 10, 16); err != nil {
		return errors.New("argument must be between 0 and 65535 inclusive")
	}
	return nil
}

// DoorEndpoints returns the endpoints of a door with a Kind.PortDirective.
func (s *Settings) DoorEndpoints(k *door.Kind) (list []Endpoint) {
	if port, _ := strconv.Atoi(s.Registered[k.PortDirective]); port != 0 {
		list = s.endpoints(Endpoint{Port: port})
	}
	return list
}

// DoorUser returns the user of a door's clients, "" if the settings name none.
func (s *Settings) DoorUser(k *door.Kind) string { return s.Registered[k.Directive()+"-user"] }

// DoorAddress returns the address of a door, "" if it does not listen.
func (s *Settings) DoorAddress(k *door.Kind) string {
	if k.PortDirective != "" {
		if port := s.Registered[k.PortDirective]; port != "0" {
			return port
		}
		return ""
	}
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
