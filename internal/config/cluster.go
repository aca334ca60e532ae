package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ClusterSettings are the directives of cluster mode.
type ClusterSettings struct {
	Enabled bool
	// The address that the node announces; "" and 0 stand for the one that the client has connected to.
	AnnounceIP, AnnounceHostname                   string
	AnnouncePort, AnnounceTLSPort, AnnounceBusPort int
	PreferredEndpoint                              ClusterEndpoint
	// Databases is how many databases clients can use in cluster mode.
	Databases int
	// Slots are the slots that a new shard begins with: pairs of the first and the last of a range.
	Slots [][2]int
	// SlotStats says what is counted for each slot.
	SlotStats SlotStats
	// Rebalance says that the shard takes slots from others until each has its part, which is measured by RebalanceBy.
	Rebalance   bool
	RebalanceBy RebalanceBy
}

// DatabaseCount is the number of databases. In cluster mode clients can use Cluster.Databases of them.
func (s *Settings) DatabaseCount() int {
	if s.Cluster.Enabled {
		return max(s.Databases, s.Cluster.Databases)
	}
	return s.Databases
}

// ClusterEndpoint says which address of a node clients should use.
type ClusterEndpoint uint8

// The values of cluster-preferred-endpoint-type.
const (
	EndpointIP ClusterEndpoint = iota
	EndpointHostname
	EndpointUnknown // the address that the client already uses
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
		number("cluster-databases", "1", 1, math.MaxInt32,
			func(s *Settings) *int { return &s.Cluster.Databases }).atStart().unlessSame().ours(),
		(&directive{name: "cluster-slots", initial: "0-16383", many: true, parse: parseSlots,
			show: showSlots}).atStart().unlessSame().ours(),
		(&directive{name: "cluster-slot-stats-enabled", initial: "no", many: true, parse: parseSlotStats,
			show: func(s *Settings) string { return s.Cluster.SlotStats.String() }}).ours(),
		choice("cluster-rebalance", "no", func(s *Settings) *bool { return &s.Cluster.Rebalance },
			option[bool]{"no", false}, option[bool]{"auto", true}).ours(),
		choice("cluster-rebalance-by", "slots", func(s *Settings) *RebalanceBy { return &s.Cluster.RebalanceBy }, rebalanceBy...).ours(),
		choice("cluster-preferred-endpoint-type", "ip",
			func(s *Settings) *ClusterEndpoint { return &s.Cluster.PreferredEndpoint },
			option[ClusterEndpoint]{"ip", EndpointIP}, option[ClusterEndpoint]{"hostname", EndpointHostname},
			option[ClusterEndpoint]{"unknown-endpoint", EndpointUnknown}),
	}
}

// RebalanceBy is what each shard of a cluster is to have the same of.
type RebalanceBy uint8

// The values of cluster-rebalance-by.
const (
	RebalanceSlots RebalanceBy = iota
	RebalanceKeys
	RebalanceMemory // of keys and values
	RebalanceTime   // that commands take
)

var rebalanceBy = []option[RebalanceBy]{{"slots", RebalanceSlots}, {"keys", RebalanceKeys}, {"memory", RebalanceMemory},
	{"time", RebalanceTime}}

// String returns the value of cluster-rebalance-by.
func (b RebalanceBy) String() string { return rebalanceBy[b].name }

// RebalanceByName is the inverse of String; ok is false for other text.
func RebalanceByName(name string) (by RebalanceBy, ok bool) {
	i := slices.IndexFunc(rebalanceBy, func(o option[RebalanceBy]) bool { return o.name == name })
	return RebalanceBy(max(i, 0)), i >= 0
}

// SlotStats are the things that are counted for each slot beside its keys.
type SlotStats uint8

// The bits of SlotStats.
const (
	SlotCPU    SlotStats = 1 << iota // the time that commands have taken
	SlotNet                          // the bytes of requests and replies
	SlotMemory                       // the memory that keys and values take
)

const allSlotStats = SlotCPU | SlotNet | SlotMemory

// slotStats are the words of cluster-slot-stats-enabled.
var slotStats = []option[SlotStats]{{"no", 0}, {"yes", allSlotStats}, {"cpu", SlotCPU}, {"net", SlotNet}, {"mem", SlotMemory}}

var errSlotStats = errors.New("argument(s) must be one of the following: no, yes, cpu, net, mem")

func parseSlotStats(s *Settings, words []string) error {
	var found SlotStats
	for _, w := range words {
		for w := range strings.FieldsSeq(w) {
			i := slices.IndexFunc(slotStats, func(o option[SlotStats]) bool { return strings.EqualFold(o.name, w) })
			if i < 0 {
				return errSlotStats
			}
			found |= slotStats[i].value
		}
	}
	s.Cluster.SlotStats = found
	return nil
}

// OfCommands reports whether something is counted for each command.
func (s SlotStats) OfCommands() bool { return s&(SlotCPU|SlotNet) != 0 }

// String returns the words of cluster-slot-stats-enabled.
func (s SlotStats) String() string {
	var words []string
	for _, o := range slotStats {
		switch {
		case s == o.value:
			return o.name
		case o.value != 0 && o.value != allSlotStats && s&o.value != 0:
			words = append(words, o.name)
		}
	}
	return strings.Join(words, " ")
}

// checkHostname returns an error if a name cannot be announced.
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

// lastSlot is the greatest number of a slot.
const lastSlot = 16383

var errSlots = errors.New("cluster-slots must be none, or numbers and ranges of slots from 0 to 16383, as 0-8191")

func parseSlots(s *Settings, words []string) error {
	var slots [][2]int
	for _, w := range words {
		if w == "none" || w == "" {
			continue
		}
		first, last, ok := strings.Cut(w, "-")
		if !ok {
			last = first
		}
		a, e1 := strconv.Atoi(first)
		b, e2 := strconv.Atoi(last)
		if e1 != nil || e2 != nil || a < 0 || a > b || b > lastSlot {
			return errSlots
		}
		slots = append(slots, [2]int{a, b})
	}
	s.Cluster.Slots = slots
	return nil
}

func showSlots(s *Settings) string {
	words := []string{}
	for _, r := range s.Cluster.Slots {
		words = append(words, fmt.Sprintf("%d-%d", r[0], r[1]))
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, " ")
}
