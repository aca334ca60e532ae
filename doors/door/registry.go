package door

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Kind describes a door to the server. Its name gives the directives
//
//	door-<name>       the address; "" is off. See ParseAddress
//	door-<name>-user  the user of its peers, without a password; "" is the default user
//	door-<name>-tls   whether its peers use TLS, if the kind allows it
//
// and the section Door_<name> of INFO.
type Kind struct {
	// Name has lower-case letters, digits and '-'.
	Name string
	// Port is the default port.
	Port int
	// PortDirective names a directive with a port that replaces door-<name>; "" means none. The door listens on the
	// addresses that bind has at the start, under the same protected-mode as port. Port 0 is off.
	PortDirective string
	// Alias adds the names <alias>-port, <alias>-user and <alias>-tls for door-<name>, door-<name>-user and
	// door-<name>-tls; "" adds none.
	Alias string
	// New returns a door that does not serve yet.
	New func(h Host) (Door, error)
	// Directives are further directives of the door.
	Directives []Directive
	// Events are classes of keyspace events, as in notify-keyspace-events. Its clients can subscribe to them even if
	// that directive does not enable them.
	Events string
	// Commands are commands that peers send and the server does not have, so that the ACL can permit them: see
	// Client.Permitted.
	Commands []Command
	// TLS says that the protocol works over TLS.
	TLS bool
	// AtLeader says that the protocol has no redirections: in a group, and in a cluster, the leader of the shard that has the
	// keys of a command executes it, whichever server the peer is connected to. A client ends if its command's outcome is
	// unknown, and if the leader at which it has subscriptions does not lead any more.
	AtLeader bool
	// Authenticates says that peers must authenticate before any request. Without it the door serves only peers on the
	// same machine while protected-mode is on.
	Authenticates bool
}

// Command is a command of a door that the server does not have.
type Command struct {
	Name string
	// Categories are its categories in ACL rules.
	Categories []string
	// Subs are the names of the sub-commands.
	Subs []string
}

// Directive is a directive of a door. Its value is one word, which CONFIG SET can change at any time: see Host.Setting.
type Directive struct {
	Name, Default string
	// Check returns an error for a bad value; a nil Check accepts any value.
	Check func(value string) error
	// AtStart says that the value cannot change while the server runs.
	AtStart bool
}

// registry holds the registered kinds of doors.
var registry struct {
	mu     sync.Mutex
	kinds  []*Kind
	closed bool
}

// Register adds a kind of door. Init functions call it; it panics if k is malformed.
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

// Kinds returns all kinds of doors, in order of their names. After it no kind can be registered.
func Kinds() []*Kind {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if !registry.closed {
		registry.closed = true
		slices.SortFunc(registry.kinds, func(a, b *Kind) int { return strings.Compare(a.Name, b.Name) })
	}
	return registry.kinds
}

// Directive returns door-<name>, the prefix of the door's directives.
func (k *Kind) Directive() string { return "door-" + k.Name }

// AddressDirective returns the name of the directive with the door's address.
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

// ParseAddress reads the value of door-<name>, and returns the arguments of net.Listen; network is "" if the door is
// off. "" and "no" are off, "yes" and a port alone mean the loopback interface, and so does ":port". "tcp://" may stand
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
