package config

import (
	"errors"
	"math"
	"strings"
)

// ClusterSettings are the directives of cluster mode.
type ClusterSettings struct {
	Enabled bool
	// What clients are told about the node in place of the address that they have connected to; "" and 0 for that address.
	AnnounceIP, AnnounceHostname                   string
	AnnouncePort, AnnounceTLSPort, AnnounceBusPort int
	PreferredEndpoint                              ClusterEndpoint
	// Databases is how many databases clients can use in cluster mode.
	Databases int
	// SlotStats says that what commands cost is counted for each slot.
	SlotStats bool
}

// DatabaseCount is how many databases there are. In cluster mode clients can use Cluster.Databases of them.
func (s *Settings) DatabaseCount() int {
	if s.Cluster.Enabled {
		return max(s.Databases, s.Cluster.Databases)
	}
	return s.Databases
}

// ClusterEndpoint says what clients are to use to connect to a node.
type ClusterEndpoint uint8

// The values of cluster-preferred-endpoint-type.
const (
	EndpointIP ClusterEndpoint = iota
	EndpointHostname
	EndpointUnknown // the address that they have already
)

// clusterDirectives are the directives of cluster mode.
func clusterDirectives() []*directive {
	hostname := text("cluster-announce-hostname", "", func(s *Settings) *string { return &s.Cluster.AnnounceHostname })
	parse := hostname.parse
	hostname.parse = func(s *Settings, words []string) error {
		if err := checkHostname(words[0]); err != nil {
			return err
		}
		return parse(s, words)
	}
	return []*directive{
		yesNo("cluster-enabled", "no", func(s *Settings) *bool { return &s.Cluster.Enabled }).atStart(),
		text("cluster-announce-ip", "", func(s *Settings) *string { return &s.Cluster.AnnounceIP }),
		hostname,
		number("cluster-announce-port", "0", 0, 65535, func(s *Settings) *int { return &s.Cluster.AnnouncePort }),
		number("cluster-announce-tls-port", "0", 0, 65535, func(s *Settings) *int { return &s.Cluster.AnnounceTLSPort }),
		number("cluster-announce-bus-port", "0", 0, 65535, func(s *Settings) *int { return &s.Cluster.AnnounceBusPort }),
		number("cluster-databases", "1", 1, math.MaxInt32, func(s *Settings) *int { return &s.Cluster.Databases }).atStart().unlessSame().ours(),
		yesNo("cluster-slot-stats-enabled", "no", func(s *Settings) *bool { return &s.Cluster.SlotStats }).ours(),
		choice("cluster-preferred-endpoint-type", "ip",
			func(s *Settings) *ClusterEndpoint { return &s.Cluster.PreferredEndpoint },
			option[ClusterEndpoint]{"ip", EndpointIP}, option[ClusterEndpoint]{"hostname", EndpointHostname},
			option[ClusterEndpoint]{"unknown-endpoint", EndpointUnknown}),
	}
}

// checkHostname returns why a name cannot be announced.
func checkHostname(name string) error {
	allowed := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.'
	}
	switch {
	case len(name) >= 256:
		return ErrHostnameLength
	case strings.ContainsFunc(name, func(c rune) bool { return !allowed(c) }):
		return ErrHostnameChars
	}
	return nil
}

var (
	ErrHostnameChars  = errors.New("Hostnames may only contain alphanumeric characters, hyphens or dots")
	ErrHostnameLength = errors.New("Hostnames must be less than 256 characters")
)
