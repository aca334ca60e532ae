package replication

import "strings"

// Group is the information about a group with which a replica finds the leader.
type Group struct {
	Leads   bool     // the server itself leads
	Leader  string   // otherwise the leader's address for clients, "" if unknown
	Members []string // the known addresses of all servers for clients
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

// ParseGroup parses the text of String; ok is false if it is invalid.
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
