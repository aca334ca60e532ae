package server

import (
	"bytes"
	"net/netip"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/config"
)

// This file is cluster mode (cluster-enabled yes): the server is the only node of a cluster and has all slots.
// Clients of clusters find what they look for, and what they must not do is refused as in a cluster of many nodes.
// The commands are in cmd_cluster.go.

const (
	// hashSlots is how many slots the keys of a cluster are divided into.
	hashSlots = 16384
	// noSlot is the slot of commands without keys.
	noSlot = -1
)

const (
	errClusterDisabled command.Error = "ERR This instance has cluster support disabled"
	errCrossSlot       command.Error = "CROSSSLOT Keys in request don't hash to the same slot"
	// Also where keys of one command differ, as in Redis.
	errScriptForeign   command.Error = "ERR Script attempted to access a non local key in a cluster node"
	errScriptCrossSlot command.Error = "ERR Script attempted to access keys that do not hash to the same slot"
)

// clusterNode is the server as the node of a cluster.
type clusterNode struct{ id, shardID string }

// startCluster makes the server a node, if the configuration asks for it.
func (srv *Server) startCluster(set *config.Settings) {
	if set.Cluster.Enabled {
		srv.cluster = &clusterNode{id: newRunID(), shardID: newRunID()}
	}
}

// Mode is what clients are told that the server is.
func (srv *Server) Mode() string {
	if srv.cluster != nil {
		return "cluster"
	}
	return "standalone"
}

// crcTable is that of CRC-16/XMODEM: polynomial x^16 + x^12 + x^5 + 1, highest bit first.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc & 0x8000
			if crc <<= 1; carry != 0 {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()

// slotOfKey returns the slot of a key. If the key has braces with something between them, that decides alone: from
// the first opening brace to the first closing one behind it.
func slotOfKey(key []byte) int {
	if open := bytes.IndexByte(key, '{'); open >= 0 {
		if n := bytes.IndexByte(key[open+1:], '}'); n > 0 {
			key = key[open+1 : open+1+n]
		}
	}
	crc := uint16(0)
	for _, b := range key {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^b]
	}
	return int(crc % hashSlots)
}

// keySlot returns the slot of the command's keys, shard channels included, or noSlot if it has none; ok is false if
// they are of different slots. The arity fits.
//
// Keys that commands use without having them among their arguments do not count. Those commands are our own, and what
// they do is no matter of slots where one node has them all.
func keySlot(cmd *command.Command, args [][]byte) (slot int, ok bool) {
	slot, ok = noSlot, true
	use := func(key []byte) {
		switch n := slotOfKey(key); {
		case slot == noSlot:
			slot = n
		case slot != n:
			ok = false
		}
	}
	if cmd.KeyIndices != nil {
		for _, i := range cmd.KeyIndices(args) {
			use(args[i])
		}
		return slot, ok
	}
	if cmd.EachKey(args, func(i int, _ *command.KeySpec) bool {
		use(args[i])
		return ok
	}) {
		return slot, ok
	}
	// The arguments do not fit the specs, which need not be wrong: PFMERGE without sources. What is in the range of keys
	// counts.
	slot, ok = noSlot, true
	first, last, step := cmd.KeyRange()
	if last < 0 {
		last += len(args)
	}
	if first == 0 || last >= len(args) || cmd.Flags&command.MovableKeys != 0 {
		return noSlot, true
	}
	for i := first; i <= last; i += step {
		use(args[i])
	}
	return slot, ok
}

// oneSlot notes the slot of a transaction, and reports whether it has one at most.
func (s *Session) oneSlot(queue []queuedCommand) bool {
	s.hashSlot = noSlot
	for _, q := range queue {
		slot, ok := keySlot(q.cmd, q.args)
		switch {
		case !ok:
			return false
		case slot == noSlot:
		case s.hashSlot == noSlot:
			s.hashSlot = slot
		case s.hashSlot != slot:
			return false
		}
	}
	return true
}

// announcement is where clients are told that the node is.
type announcement struct {
	ip, hostname           string
	port, tlsPort, busPort int
	tls                    bool // the client has connected to tlsPort
	preferred              config.ClusterEndpoint
}

// announcement returns what the client is told: the address that it has connected to, as far as nothing else is to be
// announced.
func (s *Session) announcement() announcement {
	set := s.srv.config.Get()
	o := &set.Cluster
	a := announcement{hostname: o.AnnounceHostname, port: set.Port, tlsPort: set.TLS.Port, busPort: o.AnnounceBusPort,
		preferred: o.PreferredEndpoint}
	if local, err := netip.ParseAddrPort(s.peer.Local); err == nil {
		a.ip = local.Addr().Unmap().WithZone("").String()
		if a.tls = set.TLS.Port != 0 && int(local.Port()) == set.TLS.Port; !a.tls {
			a.port = int(local.Port())
		}
	}
	if o.AnnounceIP != "" {
		a.ip = o.AnnounceIP
	}
	if o.AnnouncePort != 0 {
		a.port = o.AnnouncePort
	}
	if o.AnnounceTLSPort != 0 && a.tlsPort != 0 {
		a.tlsPort = o.AnnounceTLSPort
	}
	return a
}

// clientPort is the port for a client that connects as this one has.
func (a *announcement) clientPort() int {
	if a.tls {
		return a.tlsPort
	}
	return a.port
}

// endpoint is what clients are to connect to; "" is the address that they have already.
func (a *announcement) endpoint() string {
	switch {
	case a.preferred == config.EndpointIP:
		return a.ip
	case a.preferred == config.EndpointUnknown:
		return ""
	case a.hostname == "":
		return "?" // there is a name that nobody has told
	}
	return a.hostname
}
