package config

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
)

// RaftSettings say which group of servers, that share a journal, the server belongs to.
type RaftSettings struct {
	Addr    string   // where the others of the group reach it, and its name in the group; "" = it belongs to none
	Peers   []string // the addresses of those that form the group, this one among them
	Timeout int      // ms for which a leader may be silent
	Quorum  bool     // replies wait until a majority has confirmed the leader
	MaxLag  int      // seconds; a follower that has not heard of the leader for longer answers no reads. 0 = without limit
	Proxy   bool     // a follower has the leader do what only that can
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

func showRaftPeers(s *Settings) string { return strings.Join(s.Raft.Peers, " ") }
