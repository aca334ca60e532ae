package raft

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/atomredis/atomredis/internal/wire/peer"
)

// Which connections are accepted: servers show a certificate (TLS) or prove a secret. Without either, and with
// protected-mode, they must come from the machine of a server that is already known.

var (
	errStranger = &peer.Error{Code: peer.Untrusted, Text: "no server of the group is known to be on the connecting machine: " +
		"set raft-secret on all servers, or add this one first (RAFT.ADD)"}
	errOldForm = &peer.Error{Code: peer.Untrusted, Text: "raft-secret is needed, and the connecting server is too old for it"}
)

const (
	resolveTimeout = 2 * time.Second
	// resolveAgain is how soon addresses are looked up again for a connection from an unknown machine, and forget how long
	// an answer is used.
	resolveAgain = time.Second
	forget       = 30 * time.Second
	// logRefusedEvery limits the lines in the log about refused connections.
	logRefusedEvery = 10 * time.Second
)

// secret returns what servers prove to each other that they know, "" if it is nothing.
func (m *mux) secret() string {
	if m.n.o.Secret == nil {
		return ""
	}
	return m.n.o.Secret()
}

// trusts reports whether a connection from an address may go on.
func (m *mux) trusts(from net.Addr) bool {
	o := &m.n.o
	if o.TLS != nil || m.secret() != "" || o.Protected == nil || !o.Protected() {
		return true
	}
	tcp, ok := from.(*net.TCPAddr)
	if !ok { // a connection within the process or the machine
		return true
	}
	ip := tcp.AddrPort().Addr().Unmap()
	if ip.IsLoopback() {
		return true
	}
	return m.machines.have(ip, m.n.known())
}

// known returns the addresses of the servers that the node expects: those of its settings and of its group. One that has no
// group yet also knows the servers that have answered.
func (n *Node) known() []string {
	addrs := append(slices.Clone(n.o.Peers), n.o.Addr)
	n.mu.Lock()
	members := n.stored.config
	n.mu.Unlock()
	if r := n.consensus(); r != nil {
		if f := r.GetConfiguration(); f.Error() == nil {
			members.Servers = append(slices.Clone(members.Servers), f.Configuration().Servers...)
		}
	}
	for _, s := range members.Servers {
		addrs = append(addrs, string(s.ID))
	}
	if len(members.Servers) == 0 {
		addrs = append(addrs, n.peers.asked()...)
	}
	if n.o.Known != nil {
		addrs = append(addrs, n.o.Known()...)
	}
	return addrs
}

// logRefused logs that a connection was refused because its server proved nothing.
func (m *mux) logRefused(c net.Conn, err error) {
	now, last := time.Now().UnixNano(), m.refused.Load()
	if errors.Is(err, peer.Untrusted) && now-last >= int64(logRefusedEvery) && m.refused.CompareAndSwap(last, now) {
		m.n.o.Log.Warn("a connection to raft-addr was refused", "from", c.RemoteAddr().String(), "reason", err.Error())
	}
}

// machines has the IP addresses of the machines of servers.
type machines struct {
	resolving sync.Mutex // held while names are looked up; taken before mu

	mu   sync.Mutex
	ips  map[string][]netip.Addr // by host
	when time.Time               // they were looked up
}

// have reports whether one of the servers with these addresses is on the machine with an IP address.
func (m *machines) have(ip netip.Addr, addrs []string) bool {
	hosts := hostsOf(addrs)
	if found, age := m.find(ip, hosts); found && age < forget || age < resolveAgain {
		return found
	}
	m.resolving.Lock()
	defer m.resolving.Unlock()
	if found, age := m.find(ip, hosts); found && age < forget || age < resolveAgain { // another one has looked them up
		return found
	}
	m.resolve(hosts)
	found, _ := m.find(ip, hosts)
	return found
}

// hostsOf returns the hosts of addresses, each once.
func hostsOf(addrs []string) (hosts []string) {
	for _, addr := range addrs {
		if host, _, err := net.SplitHostPort(addr); err == nil {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// find reports whether a host is known to have an IP address, and how old the knowledge is.
func (m *machines) find(ip netip.Addr, hosts []string) (found bool, age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, host := range hosts {
		found = found || slices.Contains(m.ips[host], ip)
	}
	return found, time.Since(m.when)
}

// resolve looks hosts up, at the same time. A host that cannot be looked up keeps its addresses.
func (m *machines) resolve(hosts []string) {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	m.mu.Lock()
	before := m.ips
	m.mu.Unlock()
	found := make([][]netip.Addr, len(hosts))
	var asking sync.WaitGroup
	for i, host := range hosts {
		asking.Go(func() {
			ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
			if err != nil {
				ips = before[host]
			}
			for _, ip := range ips {
				found[i] = append(found[i], ip.Unmap())
			}
		})
	}
	asking.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ips, m.when = map[string][]netip.Addr{}, time.Now()
	for i, host := range hosts {
		m.ips[host] = found[i]
	}
}
