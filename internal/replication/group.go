package replication

import "strings"

// Group is what a server of a group tells a replica, so that the replica finds the leader.
type Group struct {
	Leads   bool     // the server itself does
	Leader  string   // otherwise, where clients reach who does, "" if that is not known
	Members []string // where they reach all servers, as far as that is known
}

// The words for a leader that is the server itself, and for one that is not known.
const (
	leaderSelf    = "self"
	leaderUnknown = "-"
)

// String returns the answer to REPLCONF GROUP: the leader and the members, with spaces between them.
func (g Group) String() string {
	leader := g.Leader
	switch {
	case g.Leads:
		leader = leaderSelf
	case leader == "":
		leader = leaderUnknown
	}
	return strings.Join(append([]string{leader}, g.Members...), " ")
}

// ParseGroup returns what String has returned; ok is false if it is nothing of the kind.
func ParseGroup(text string) (g Group, ok bool) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return g, false
	}
	for i, w := range words {
		if i > 0 || w != leaderSelf && w != leaderUnknown {
			if !strings.Contains(w, ":") {
				return g, false
			}
		}
	}
	g.Leads, g.Members = words[0] == leaderSelf, words[1:]
	if !g.Leads && words[0] != leaderUnknown {
		g.Leader = words[0]
	}
	return g, true
}
