package door

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Kind is what the server has to know of a door. From its name follow the directives
//
//	door-<name>       where it listens; "" is nowhere. See ParseAddress
//	door-<name>-user  as which user its peers act, without a password; "" is as the default user
//	door-<name>-tls   whether its peers use TLS, if the kind allows it
//
// and the section Door_<name> of INFO.
type Kind struct {
	// Name has lower-case letters, digits and '-'.
	Name string
	// Port is where it listens if its directive names none.
	Port int
	// PortDirective names a directive with a port that takes the place of door-<name>; "" is none. The door listens on the
	// addresses that bind has at the start, and protected-mode keeps away whom it keeps away from port. 0 is off.
	PortDirective string
	// Alias gives door-<name>, door-<name>-user and door-<name>-tls other names too: <alias>-port, <alias>-user and
	// <alias>-tls; "" gives none.
	Alias string
	// New returns a door that has not begun to serve.
	New func(h Host) (Door, error)
	// Directives are those that it has beside the ones that follow from its name.
	Directives []Directive
	// Events are the keyspace events that its clients can subscribe to although notify-keyspace-events does not ask for
	// them, written as there.
	Events string
	// Commands are those that peers send and the server does not have, so that users can be allowed them: see
	// Client.Allowed.
	Commands []Command
	// TLS says that the protocol can be spoken over TLS.
	TLS bool
	// Authenticates says that peers show credentials before they can do anything. Other doors serve only peers on the
	// same machine while protected-mode is on.
	Authenticates bool
}

// Command is a command that the server does not have.
type Command struct {
	Name string
	// Categories are those of ACL rules.
	Categories []string
	// Subs are the names of the sub-commands.
	Subs []string
}

// Directive is one of a door's own. Its value is one word, which CONFIG SET changes while the door serves: see
// Host.Setting.
type Directive struct {
	Name, Default string
	// Check returns what is wrong with a value; nil if any is good.
	Check func(value string) error
	// AtStart says that the value cannot change while the server runs.
	AtStart bool
}

// registry holds the kinds of doors that there are.
var registry struct {
	mu     sync.Mutex
	kinds  []*Kind
	closed bool
}

// Register adds a kind of door. It is called by init functions; a mistake in k panics.
func Register(k Kind) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	same := func(other *Kind) bool { return other.Name == k.Name }
	switch {
	case registry.closed:
		panic("door: " + k.Name + " is registered after the first configuration was made")
	case k.Name == "" || strings.Trim(k.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		panic("door: " + strconv.Quote(k.Name) + " cannot be the name of a door")
	case slices.ContainsFunc(registry.kinds, same):
		panic("door: " + k.Name + " is registered twice")
	case k.New == nil:
		panic("door: " + k.Name + " has no New")
	}
	registry.kinds = append(registry.kinds, &k)
}

// Kinds returns all kinds of doors, in order of their names. None can be added from now on.
func Kinds() []*Kind {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if !registry.closed {
		registry.closed = true
		slices.SortFunc(registry.kinds, func(a, b *Kind) int { return strings.Compare(a.Name, b.Name) })
	}
	return registry.kinds
}

// Directive returns door-<name>, with which the names of the door's directives begin.
func (k *Kind) Directive() string { return "door-" + k.Name }

// AddressDirective returns the name of the directive that says where the door listens.
func (k *Kind) AddressDirective() string {
	if k.PortDirective != "" {
		return k.PortDirective
	}
	return k.Directive()
}

// DirectiveNames returns the names of all directives of the door.
func (k *Kind) DirectiveNames() []string {
	names := []string{k.AddressDirective(), k.Directive() + "-user"}
	if k.TLS {
		names = append(names, k.Directive()+"-tls")
	}
	for _, d := range k.Directives {
		names = append(names, d.Name)
	}
	return names
}

var errAddress = errors.New("argument must be 'yes', 'no', a port, host:port with '*' for all hosts, " +
	"or the path of a Unix socket")

// ParseAddress reads the value of door-<name>, and returns what net.Listen takes; network is "" if the door is off.
// "" and "no" are off, "yes" and a port alone mean the loopback interface, and so does ":port". "tcp://" may stand
// before an address, and "unix://" or "ipc://" before a path, which begins with '/'.
func (k *Kind) ParseAddress(value string) (network, address string, err error) {
	host, port := "127.0.0.1", strconv.Itoa(k.Port)
	switch value {
	case "", "no":
		return "", "", nil
	case "yes":
		return "tcp", net.JoinHostPort(host, port), nil
	}
	for _, scheme := range []string{"unix://", "ipc://", ""} {
		if path, ok := strings.CutPrefix(value, scheme); ok && strings.HasPrefix(path, "/") {
			return "unix", path, nil
		}
	}
	value = strings.TrimPrefix(value, "tcp://")
	if h, p, err := net.SplitHostPort(value); err == nil {
		value = p
		switch h {
		case "":
		case "*":
			host = ""
		default:
			host = h
		}
	}
	if _, err := strconv.ParseUint(value, 10, 16); err != nil || strings.ContainsAny(host, " /") {
		return "", "", errAddress
	}
	return "tcp", net.JoinHostPort(host, value), nil
}
