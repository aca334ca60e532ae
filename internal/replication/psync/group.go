package psync

import "github.com/atomredis/atomredis/engine"

// All servers of a group accept followers, which keep their connection when the leader changes: each server makes the same
// stream from the log. The leader decides where the stream begins and when it has a PING. It must know of followers of the
// other servers, so a server that has some reports it every tellLeaderPeriod.

const (
	tellLeaderPeriod = 10     // seconds
	wantedFor        = 30_000 // ms, for which a report is valid
)

// tellLeader reports to the leader, in the background. mu is locked.
func (f *Followers) tellLeader() {
	if f.asking || f.closed {
		return
	}
	f.asking = true
	f.running.Go(func() {
		f.host.TellLeader()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.asking = false
	})
}

// WantedElsewhere takes the report of another server of the group.
func (f *Followers) WantedElsewhere() {
	f.mu.Lock()
	f.wanted = f.ks.Now() + wantedFor
	known := f.history.Known
	f.watch()
	f.mu.Unlock()
	if known {
		return // without a guard over everything
	}
	_ = f.host.Hold(func(g *engine.Guard) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.history.Known && !f.host.FollowsLeader() {
			f.restart(g)
		}
	})
}

// leaderMakes reports whether a server that does not lead has the stream of its leader. If not, it asks the leader to begin
// one. mu is locked.
func (f *Followers) leaderMakes() bool {
	made := f.history.Known && !f.history.Relayed && !f.replica.Loading()
	if !made {
		f.tellLeader()
	}
	return made
}

// inGroup reports whether the server belongs to a group, and so has the history of its leader.
func (f *Followers) inGroup() bool { return f.config.Get().Raft.Addr != "" }
