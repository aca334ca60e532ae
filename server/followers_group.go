package server

import (
	"io"
	"time"

	"github.com/atomredis/atomredis/engine"
)

// All servers of a group have followers, which stay with them whoever leads: each makes the same stream of the log. Where
// it begins, and the PINGs in it, come from the leader, which has to know of followers elsewhere: whoever has some tells it
// so again and again.

const (
	askStream        = "stream"
	tellLeaderPeriod = 10     // seconds
	wantedFor        = 30_000 // ms; for so long the leader believes it
)

// tellLeader tells the leader of the group that there are followers here, in the background. mu is locked.
func (f *followers) tellLeader() {
	leader := f.srv.group.status.Load().Leader
	if f.asking || f.closed || leader == "" {
		return
	}
	f.asking = true
	f.running.Go(func() {
		if conn, err := f.srv.group.node.Dial(leader, shardPatience); err == nil {
			conn.SetWriteDeadline(time.Now().Add(shardPatience))
			_, _ = io.WriteString(conn, `{"Ask":"`+askStream+"\"}\n")
			conn.Close()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.asking = false
	})
}

// wantedElsewhere notes that another server of the group has followers.
func (srv *Server) wantedElsewhere() {
	f := &srv.followed
	f.mu.Lock()
	f.wanted = srv.ks.Now() + wantedFor
	known := f.history.Known
	f.watch()
	f.mu.Unlock()
	if known {
		return // which needs no guard over everything
	}
	_ = srv.underAll(func(g *engine.Guard) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.history.Known && !srv.group.following.Load() {
			f.restart(g)
		}
	})
}

// leaderMakes reports whether the stream is made here of what the leader of the group has done; if not, it is asked to
// have it made. mu is locked.
func (f *followers) leaderMakes() bool {
	made := f.history.Known && !f.history.Relayed && !f.srv.replica.loading.Load()
	if !made {
		f.tellLeader()
	}
	return made
}
