package psync

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/internal/replication"
)

// A replica of a group follows its leader. It first connects to the address of REPLICAOF. The server there answers with the
// leader, and with the other members, which are tried when it cannot be reached. A Redis answers an error, which is ignored.

// addresses has the addresses that a link tries.
type addresses struct {
	given  string   // of REPLICAOF
	others []string // other members of the group
	turn   int      // counts attempts: the next one of given and others
	leader string   // tried first; "" if unknown
}

// addr returns the address to try next.
func (a *addresses) addr() string {
	if a.leader != "" {
		return a.leader
	}
	if i := a.turn % (1 + len(a.others)); i > 0 {
		return a.others[i-1]
	}
	return a.given
}

// failed records that the master cannot be reached at addr.
func (a *addresses) failed() {
	if a.leader == "" {
		a.turn++
	}
	a.leader = ""
}

// errElsewhere says that another server of the group leads.
var errElsewhere = errors.New("another server leads the group")

// told records the answer of the server at addr, and returns an error if that server does not lead.
func (a *addresses) told(g replication.Group) error {
	a.others = slices.DeleteFunc(g.Members, func(addr string) bool { return addr == a.given })
	switch {
	case g.Leads:
		return nil
	case g.Leader == "" || g.Leader == a.addr():
		return errors.New("its group has no leader")
	}
	a.leader = g.Leader
	return fmt.Errorf("%w: %s", errElsewhere, g.Leader)
}

// lookFor returns the address to try next, which it puts into the status.
func (l *link) lookFor() (addr string) {
	addr = l.addrs.addr()
	host, text, _ := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(text)
	l.update(func(st *replication.Link) { st.Host, st.Port = host, port })
	return addr
}

// askGroup returns an error if the connected server belongs to a group and does not lead it.
func (l *link) askGroup(in *bufio.Reader) error {
	reply, err := l.ask(in, "REPLCONF", "group", "?")
	if err != nil {
		return err
	}
	if g, ok := replication.ParseGroup(reply[1:]); ok && reply[0] == '+' {
		return l.addrs.told(g)
	}
	return nil
}
