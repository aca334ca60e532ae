package raft

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	consensus "github.com/hashicorp/raft"

	"github.com/atomredis/atomredis/internal/replication/quorum"
	"github.com/atomredis/atomredis/internal/wire/peer"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/persist/raftlog"
)

// What a stopped server has of its group, and a new group of it.

// read is quorum.Stopped.Read.
func read(s quorum.Stopped, do func(now int64, commands []byte) error) (f quorum.Found, err error) {
	stored, err := decodeState(s.State)
	if err != nil {
		return f, err
	}
	f.Stored, f.Index, f.Term, f.Committed = stored.index, stored.index, stored.term, stored.index
	config := stored.config
	options := raftlog.Options{FS: s.FS, Dir: s.FS.PathJoin(s.Dir, journal.DirName), Start: stored.start}
	log, err := raftlog.Read(options, func(e *consensus.Log) error {
		if e.Index <= stored.index {
			return nil // the store has it
		}
		if e.Index != f.Index+1 {
			return fmt.Errorf("entries %d to %d of the group's journal are missing", f.Index+1, e.Index-1)
		}
		f.Index, f.Term, f.Appended = e.Index, e.Term, e.AppendedAt
		switch e.Type {
		case consensus.LogConfiguration:
			config, err = decodeConfiguration(e.Data)
			return err
		case consensus.LogCommand:
			if bytes.Equal(e.Data, withheld) && do == nil {
				return nil
			}
			term, records, err := splitEntry(e.Data)
			if errors.Is(err, errWithheld) {
				return errOfWitness
			}
			if err != nil || term != e.Term || do == nil {
				return err
			}
			return eachRecord(records, do)
		}
		return nil
	})
	f.Segments, f.Bytes = log.Segments, log.Bytes
	if err != nil {
		return f, err
	}
	f.Torn = log.Cut.Bytes
	f.Witness = slices.ContainsFunc(log.Values[string(witnessKey)], func(b byte) bool { return b != 0 })
	if f.Witness && do != nil {
		return f, errOfWitness
	}
	f.Committed = max(f.Committed, log.Committed)
	f.Removed = slices.ContainsFunc(log.Values[string(removedKey)], func(b byte) bool { return b != 0 })
	for _, server := range config.Servers {
		f.Members = append(f.Members, quorum.Member{Addr: string(server.ID), Role: roleOf(server)})
	}
	slices.SortFunc(f.Members, func(a, b quorum.Member) int { return compare(a.Addr, b.Addr) })
	return f, nil
}

// termsApart is the distance of a recovered group's first term from the last one that its server knows. Lost servers
// may have led in later terms: no entry of theirs may have the term of one of the new group.
const termsApart = 1000

// recoverGroup is quorum.Recovery.Recover. The server's log gets a last entry, the configuration with this server only,
// in a term that no other server has reached. Its start elects it, and commits everything before that entry.
func recoverGroup(r quorum.Recovery) (quorum.Found, error) {
	if !isAddress(r.Addr) {
		return quorum.Found{}, errAddress
	}
	f, err := read(r.Stopped, nil)
	if err != nil {
		return f, err
	}
	if f.Witness {
		return f, errOfWitness
	}
	if f.Index == 0 {
		return f, errors.New("there is no data of a group: the server has not joined one")
	}
	addrs := slices.Clone(r.Peers)
	for _, m := range f.Members {
		addrs = append(addrs, m.Addr)
	}
	if f.NotReached, err = nobodyElse(r, addrs); err != nil {
		return f, err
	}
	return f, beginAgain(r, f)
}

// nobodyElse returns an error if one of the servers with these addresses runs and may have data of the group, and the reasons
// why others were not reached.
func nobodyElse(r quorum.Recovery, addrs []string) (notReached []error, err error) {
	slices.Sort(addrs)
	addrs = slices.DeleteFunc(slices.Compact(addrs), func(addr string) bool { return addr == r.Addr })
	answers, unreached := make([]error, len(addrs)), make([]error, len(addrs))
	var asking sync.WaitGroup
	for i, addr := range addrs {
		asking.Go(func() { unreached[i], answers[i] = isLost(r, addr) })
	}
	asking.Wait()
	return slices.DeleteFunc(unreached, func(err error) bool { return err == nil }), errors.Join(answers...)
}

// isLost returns nil if no server runs at an address, or one without data, and why it was not reached. A machine that does not
// answer at all may run such a server.
func isLost(r quorum.Recovery, addr string) (notReached, err error) {
	a, err := askStopped(r.Dial, addr, r.Secret, question{})
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		notReached = fmt.Errorf("not reached: %s (%w)", addr, err)
		noHost, ok := errors.AsType[*net.DNSError](err)
		if r.Force || errors.Is(err, syscall.ECONNREFUSED) || ok && noHost.IsNotFound {
			return notReached, nil
		}
		return notReached, fmt.Errorf("%w: it is unknown whether a server with data of the group runs there; "+
			"if it is lost for good, --force goes on without it", notReached)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("something answers at %s, and it is unknown whether it has data of the group: %w", addr, err)
	case a.Leader != "":
		return nil, fmt.Errorf("%s answers, and its group has a leader: add this server to it instead, with an empty directory", addr)
	case a.Established || a.HasData:
		return nil, fmt.Errorf("%s answers, and has data: with enough such servers the group continues by itself; "+
			"otherwise stop it, and recover the one that has most", addr)
	}
	return nil, nil
}

// askStopped asks a server for a server that takes no part in the group. An error of the operation dial says that nobody
// answers.
func askStopped(dial dialFunc, addr, secret string, q question) (a news, err error) {
	raw, err := dial(addr, answerTimeout)
	if err != nil {
		return a, err
	}
	defer raw.Close()
	deadline := time.Now().Add(answerTimeout)
	c, err := peer.Open(raw, peer.Members, "", addr, secret, deadline)
	if err != nil {
		return a, err
	}
	c.SetDeadline(deadline)
	c.SetLimit(maxAnswer)
	return a, c.Call(q, &a)
}

type dialFunc = func(addr string, timeout time.Duration) (net.Conn, error)

// leaderOfMember returns the leader of the group that a server with a damaged log belongs to, "" if it is not found. The leader
// itself must say that the server is a member. Only the peers are asked how to reach it: once the server begins again, it
// knows no others, and must not found a group of its own.
func leaderOfMember(o quorum.Options) string {
	ask := func(addr string) (news, error) { return askStopped(o.Dial, addr, o.Secret(), question{From: o.Addr}) }
	found := make([]string, len(o.Peers))
	var asking sync.WaitGroup
	for i, peer := range o.Peers {
		if peer == o.Addr {
			continue
		}
		asking.Go(func() {
			a, err := ask(peer)
			leader := a.Leader
			if err == nil && leader != "" && leader != o.Addr {
				if a, err = ask(leader); err == nil && a.Membership != nil && a.Membership.Member {
					found[i] = leader
				}
			}
		})
	}
	asking.Wait() // nothing is left behind by a start that fails
	return cmp.Or(found...)
}

// beginAgain appends the configuration of the new group to the log.
func beginAgain(r quorum.Recovery, f quorum.Found) error {
	stored, err := decodeState(r.State)
	if err != nil {
		return err
	}
	dir, err := logDir(r.FS, r.Dir)
	if err != nil {
		return err
	}
	log, err := openLog(raftlog.Options{FS: r.FS, Dir: dir}, stored)
	if err != nil {
		return err
	}
	term, err := log.GetUint64(termKey)
	if err == nil {
		term = max(term, f.Term) + termsApart
		err = errors.Join(log.SetUint64(termKey, term), log.SetUint64(removedKey, 0), log.SetUint64(groupKey, 0))
	}
	if err == nil {
		config := consensus.Configuration{Servers: []consensus.Server{{Suffrage: consensus.Voter, ID: consensus.ServerID(r.Addr),
			Address: consensus.ServerAddress(r.Addr)}}}
		err = log.StoreLog(&consensus.Log{Index: f.Index + 1, Term: term, Type: consensus.LogConfiguration,
			Data: consensus.EncodeConfiguration(config), AppendedAt: time.Now()})
	}
	if err == nil { // last, because without the entry the server still belongs to the former group
		err = log.SetUint64(recoveryKey, uint64(time.Now().UnixNano()))
	}
	return errors.Join(err, log.Close())
}
