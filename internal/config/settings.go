package config

import (
	"math"
	"strings"
	"time"

	"github.com/atomredis/atomredis/persist/journal"
)

// CompressesRDB returns rdbcompression. Only DEBUG OBJECT uses it: RDB files are always compressed.
func (s *Settings) CompressesRDB() bool { return s.Unused["rdbcompression"] != "no" }

// BusyAfter returns busy-reply-threshold, capped at the longest Duration.
func (s *Settings) BusyAfter() time.Duration {
	return time.Duration(min(int64(s.Scripts.BusyReplyThreshold), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// LeastHard returns the smallest hard limit, math.MaxInt64 if there is none.
func (l *OutputLimits) LeastHard() int64 {
	least := int64(math.MaxInt64)
	for _, hard := range [...]int64{l.Normal.Hard, l.Replica.Hard, l.PubSub.Hard} {
		if hard != 0 {
			least = min(least, hard)
		}
	}
	return least
}

// Endpoint is an address of bind with one of the ports.
type Endpoint struct {
	Host string // as in bind, without '-'
	Port int
	Tls  bool
	// Optional addresses are skipped if the machine does not have them.
	Optional bool
}

// Endpoints returns the addresses and ports on which the server must listen.
func (s *Settings) Endpoints() []Endpoint {
	var list []Endpoint
	for _, e := range []Endpoint{{Port: s.Network.Port}, {Port: s.TLS.Port, Tls: true}} {
		if e.Port != 0 {
			list = append(list, s.endpoints(e)...)
		}
	}
	return list
}

// endpoints returns an endpoint on each of the addresses of bind.
func (s *Settings) endpoints(e Endpoint) (list []Endpoint) {
	for _, host := range s.Network.Bind {
		e.Host, e.Optional = strings.CutPrefix(host, "-")
		list = append(list, e)
	}
	return list
}

// fsyncPolicies are the values of appendfsync.
var fsyncPolicies = []option[journal.Policy]{{"everysec", journal.EverySec}, {"always", journal.Always},
	{"no", journal.No}}

func indexFold(list []string, word string) int {
	for i, w := range list {
		if strings.EqualFold(w, word) {
			return i
		}
	}
	return -1
}
