package config

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RaftSettings are the settings of the server's group, whose servers share a journal.
type RaftSettings struct {
	Addr    string        // the server's address for the others, and its name in the group; "" = no group
	Peers   []string      // the addresses of the servers that form the group, including this one
	Timeout int           // ms for which a leader may be silent
	Quorum  bool          // replies wait until a majority has confirmed the leader
	MaxLag  time.Duration // a follower without contact to the leader for longer refuses reads; 0 = no limit
	Proxy   bool          // a follower forwards to the leader what only the leader can do
	Secret  string        // servers prove to each other that they know it; "" = nothing
	Join    bool          // servers that join by themselves count for majorities
	Witness bool          // it votes and has no data
	Zone    string        // the server's zone, "" = none
	// LeaderZones are the zones whose servers should lead, the most preferred first.
	LeaderZones []string
}

var errRaftAddr = errors.New("raft-peers must be addresses of the form host:port, separated by commas or spaces")

func parseRaftPeers(s *Settings, words []string) error {
	var peers []string
	for _, w := range words {
		for a := range strings.SplitSeq(w, ",") {
			if a = strings.TrimSpace(a); a == "" {
				continue
			}
			host, port, err := net.SplitHostPort(a)
			if n, e := strconv.Atoi(port); err != nil || e != nil || host == "" || n <= 0 || n > 65535 {
				return errRaftAddr
			}
			peers = append(peers, a)
		}
	}
	slices.Sort(peers)
	s.Raft.Peers = slices.Compact(peers)
	return nil
}

var errZone = errors.New("a zone has letters, digits, '-', '_' and '.'")

// isZone reports whether a name of a zone is well-formed: it appears in lists and in fields of INFO.
func isZone(name string) bool {
	return strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

func parseZone(s *Settings, words []string) error {
	if !isZone(words[0]) {
		return errZone
	}
	s.Raft.Zone = words[0]
	return nil
}

func parseLeaderZones(s *Settings, words []string) error {
	s.Raft.LeaderZones = nil
	for _, w := range words {
		for zone := range strings.SplitSeq(w, ",") {
			if zone = strings.TrimSpace(zone); zone == "" {
				continue
			}
			if !isZone(zone) {
				return errZone
			}
			s.Raft.LeaderZones = append(s.Raft.LeaderZones, zone)
		}
	}
	return nil
}

func showLeaderZones(s *Settings) string { return strings.Join(s.Raft.LeaderZones, " ") }

func showRaftPeers(s *Settings) string { return strings.Join(s.Raft.Peers, " ") }
