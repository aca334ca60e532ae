package atomredistest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atomredis/atomredis/memory"
)

// Sentinel stands in for Redis Sentinel in tests of clients that fail over. It reports the master and the replicas, and
// changes them only when the test calls Failover; it monitors no server. It answers SENTINEL GET-MASTER-ADDR-BY-NAME,
// MASTERS, MASTER, REPLICAS (SLAVES), SENTINELS, CKQUORUM and MYID, and publishes +switch-master.
type Sentinel struct {
	*Server

	name string

	mu       sync.Mutex // protects what follows
	master   *Server
	replicas []*Server
}

// RunSentinel starts a Sentinel that knows master under a name, and makes the other servers replicas of master. It
// returns when they have its data. All of them need a TCP port (RunAddr).
//
//	a, b := atomredistest.RunAddr(t), atomredistest.RunAddr(t)
//	sentinel := atomredistest.RunSentinel(t, "mymaster", a, b)
//	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: []string{sentinel.Addr()}})
//	...
//	sentinel.Failover(t) // b is the master now
func RunSentinel(t testing.TB, name string, master *Server, replicas ...*Server) *Sentinel {
	t.Helper()
	s := &Sentinel{Server: RunAddr(t), name: name, master: master, replicas: replicas}
	for _, r := range replicas {
		follow(t, r, master)
	}
	for _, r := range replicas {
		caughtUp(t, r, master)
	}
	err := s.Handle(memory.Command{Name: "sentinel", Arity: -2,
		Flags: memory.ReadOnly | memory.NoScript | memory.NoMulti, Do: s.answer})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Master returns the current master.
func (s *Sentinel) Master() *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.master
}

// Replicas returns the replicas; the first one is the next master.
func (s *Sentinel) Replicas() []*Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.replicas)
}

// Failover makes the first replica the master and the old master the last replica. As with Redis Sentinel, the new
// master has all writes of the old one, the clients of the old one are disconnected, and subscribers of +switch-master
// get the message.
func (s *Sentinel) Failover(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.replicas) == 0 {
		t.Fatal("there is no replica that could become the master")
	}
	old, next := s.master, s.replicas[0]
	old.MustDo(t, "CLIENT", "PAUSE", 60_000, "WRITE") // the new master must get every write
	caughtUp(t, next, old)
	next.MustDo(t, "REPLICAOF", "NO", "ONE")
	s.master, s.replicas = next, append(s.replicas[1:len(s.replicas):len(s.replicas)], old)
	old.MustDo(t, "CLIENT", "UNPAUSE")
	for _, r := range s.replicas {
		follow(t, r, next)
		r.MustDo(t, "CLIENT", "KILL", "TYPE", "normal")
		r.MustDo(t, "CLIENT", "KILL", "TYPE", "pubsub")
	}
	for _, r := range s.replicas {
		caughtUp(t, r, next)
	}
	was, is := hostPort(old), hostPort(next)
	s.MustDo(t, "PUBLISH", "+switch-master", strings.Join([]string{s.name, was[0], was[1], is[0], is[1]}, " "))
}

// hostPort returns the host and port of a server.
func hostPort(s *Server) [2]string {
	host, port, _ := net.SplitHostPort(s.Addr())
	return [2]string{host, port}
}

// follow makes a server a replica.
func follow(t testing.TB, replica, master *Server) {
	t.Helper()
	at := hostPort(master)
	if at[1] == "" {
		t.Fatal("a master needs a TCP port: use RunAddr")
	}
	replica.MustDo(t, "REPLICAOF", at)
}

// catchUpTime limits how long a replica may take to get its master's data.
const catchUpTime = time.Minute

// caughtUp waits until a replica has its master's data.
func caughtUp(t testing.TB, replica, master *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), catchUpTime)
	defer cancel()
	for {
		theirs, ours := replication(t, master), replication(t, replica)
		if ours["master_link_status"] == "up" && ours["slave_repl_offset"] == theirs["master_repl_offset"] {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the replica %s does not catch up with its master: %v", replica.Addr(), ours)
		}
	}
}

// replication returns the fields of INFO replication.
func replication(t testing.TB, s *Server) map[string]string {
	t.Helper()
	text, err := s.MustDo(t, "INFO", "replication").Text()
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// answer executes SENTINEL.
func (s *Sentinel) answer(c *memory.Ctx) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	command := strings.ToLower(string(c.Args[1]))
	switch command {
	case "masters":
		return []any{s.describe(s.master, "master")}, nil
	case "myid":
		return strings.Repeat("5", 40), nil
	case "get-master-addr-by-name", "master", "replicas", "slaves", "sentinels", "ckquorum":
	default:
		return nil, memory.Error(fmt.Sprintf("ERR Unknown sentinel subcommand '%s'", c.Args[1]))
	}
	if len(c.Args) != 3 {
		return nil, memory.Error("ERR wrong number of arguments for 'sentinel|" + command + "' command")
	}
	known := string(c.Args[2]) == s.name
	if command == "get-master-addr-by-name" {
		if !known {
			return nil, nil
		}
		return hostPort(s.master), nil
	}
	if !known {
		return nil, memory.Error("ERR No such master with that name")
	}
	switch command {
	case "master":
		return s.describe(s.master, "master"), nil
	case "sentinels":
		return []any{}, nil // there are no other Sentinels
	case "ckquorum":
		return memory.Status("OK 1 usable Sentinels. Quorum and failover authorization can be reached"), nil
	}
	replicas := []any{}
	for _, r := range s.replicas {
		replicas = append(replicas, s.describe(r, "slave"))
	}
	return replicas, nil
}

// describe returns the fields of a server in replies of SENTINEL. mu is held.
func (s *Sentinel) describe(server *Server, role string) map[string]string {
	at := hostPort(server)
	d := map[string]string{"name": s.name, "ip": at[0], "port": at[1], "flags": role, "role-reported": role,
		"link-pending-commands": "0", "link-refcount": "1"}
	if role == "master" {
		d["num-slaves"], d["num-other-sentinels"], d["quorum"] = fmt.Sprint(len(s.replicas)), "0", "1"
		return d
	}
	master := hostPort(s.master)
	d["name"], d["master-link-status"], d["slave-priority"] = net.JoinHostPort(at[0], at[1]), "ok", "100"
	d["master-host"], d["master-port"] = master[0], master[1]
	return d
}
