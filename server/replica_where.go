package server

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/atomredis/atomredis/replication"
)

// A replica of a group follows whoever leads it. It begins with the address that it has been given; the server there tells
// who leads, and which others there are to ask when it is away. Masters that belong to no group do not know the question.

// whereabouts are the addresses at which a link looks for its master.
type whereabouts struct {
	given  string   // by REPLICAOF
	others []string // of the group
	turn   int      // which of given and others is tried
	leader string   // is tried first; "" if it is not known
}

// addr returns the one to try.
func (w *whereabouts) addr() string {
	if w.leader != "" {
		return w.leader
	}
	if i := w.turn % (1 + len(w.others)); i > 0 {
		return w.others[i-1]
	}
	return w.given
}

// failed notes that the master is not at addr.
func (w *whereabouts) failed() {
	if w.leader == "" {
		w.turn++
	}
	w.leader = ""
}

// errElsewhere says that another server of the group leads.
var errElsewhere = errors.New("another server leads the group")

// told notes what the server at addr has told, and returns an error if it does not lead.
func (w *whereabouts) told(g replication.Group) error {
	w.others = slices.DeleteFunc(g.Members, func(addr string) bool { return addr == w.given })
	switch {
	case g.Leads:
		return nil
	case g.Leader == "" || g.Leader == w.addr():
		return errors.New("its group has no leader")
	}
	w.leader = g.Leader
	return fmt.Errorf("%w: %s", errElsewhere, g.Leader)
}

// lookFor notes where the master is looked for next.
func (l *masterLink) lookFor() (addr string) {
	addr = l.where.addr()
	host, text, _ := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(text)
	l.update(func(st *replication.Link) { st.Host, st.Port = host, port })
	return addr
}

// askGroup returns an error if the server belongs to a group that another one leads.
func (l *masterLink) askGroup(in *bufio.Reader) error {
	reply, err := l.ask(in, "REPLCONF", "group", "?")
	if err != nil {
		return err
	}
	if g, ok := replication.ParseGroup(reply[1:]); ok && reply[0] == '+' {
		return l.where.told(g)
	}
	return nil
}

// Group implements replication.Host.
func (srv *Server) Group() (g replication.Group, ok bool) {
	node := &srv.group
	if node.node == nil {
		return g, false
	}
	g.Leads = !node.following.Load()
	if host, port, known := node.leader(); known {
		g.Leader = net.JoinHostPort(host, strconv.Itoa(port))
	}
	for _, m := range node.status.Load().Members {
		if host, _, err := net.SplitHostPort(m.Client); err == nil && host != "" {
			g.Members = append(g.Members, m.Client)
		}
	}
	return g, true
}
