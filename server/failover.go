package server

import (
	"math"
	"time"

	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/replication"
)

// FAILOVER: the server changes places with one of its followers. Clients that write wait. Once the follower has
// everything the server becomes its replica, and asks it with PSYNC to lead. When it does, clients go on, and learn
// that they have come to a replica.

// failoverState is how far that has got, by the word of INFO.
type failoverState string

const (
	noFailover         failoverState = "no-failover"
	waitingForSync     failoverState = "waiting-for-sync"
	failoverInProgress failoverState = "failover-in-progress"
)

// failover is what FAILOVER has begun. It is protected by followers.mu.
type failover struct {
	state failoverState // "" is noFailover
	host  string        // who is to lead; "" is the first that has everything
	port  int64
	force bool
	timer engine.Timer // of the timeout; nil if there is none
}

const (
	errTakeOverMaster command.Error = "ERR PSYNC FAILOVER can't be sent to a master."
	errTakeOverOther  command.Error = "ERR PSYNC FAILOVER replid must match my replid."
)

// Failover implements replication.Host.
func (srv *Server) Failover(host string, port int64, force bool, timeout int64) {
	f := &srv.followed
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = failover{state: waitingForSync, host: host, port: port, force: force}
	if timeout > 0 {
		f.failing.timer = srv.ks.Clock().AfterFunc(time.Duration(timeout)*time.Millisecond, srv.failoverLate)
	}
	srv.pause.hold(true)
	srv.log.Info("failing over", "host", host, "port", port)
	f.running.Add(1)
	go func() {
		defer f.running.Done()
		srv.continueFailover(false)
	}()
}

// FailingOver implements replication.Host.
func (srv *Server) FailingOver() bool { return srv.followed.failoverState() != noFailover }

func (f *followers) failoverState() failoverState {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing.state == "" {
		return noFailover
	}
	return f.failing.state
}

// failoverLate is called when it has taken too long that a follower has everything.
func (srv *Server) failoverLate() {
	f := &srv.followed
	f.mu.Lock()
	waits, force := f.failing.state == waitingForSync, f.failing.force
	f.mu.Unlock()
	switch {
	case waits && force:
		srv.continueFailover(true)
	case waits:
		srv.endFailover("no replica has caught up in time")
	}
}

// continueFailover has a follower lead that has everything, or the one that was named in any case.
func (srv *Server) continueFailover(anyway bool) {
	f := &srv.followed
	_ = srv.underAll(func(g *engine.Guard) { // under which nothing is added to the stream
		host, port, ok := f.successor(anyway)
		if ok {
			srv.log.Info("a replica is to lead", "host", host, "port", port)
			srv.config.SetReplicaOf(host, int(port))
			srv.startFollowing(g, host, int(port), true)
		}
	})
}

// successor returns the follower that is to lead now, if there is one, and notes that it is.
func (f *followers) successor(anyway bool) (host string, port int64, ok bool) {
	list, _ := f.status()
	f.mu.Lock()
	defer f.mu.Unlock()
	o := &f.failing
	if o.state != waitingForSync || f.closed {
		return "", 0, false
	}
	for _, d := range list {
		named := o.host == "" || o.host == d.Host && o.port == d.Port
		if named && d.State == replication.FollowerOnline && (anyway || d.Acked >= f.history.Offset) {
			o.state = failoverInProgress
			return d.Host, d.Port, true
		}
	}
	return "", 0, false
}

// handedOver is called when the new master has answered.
func (srv *Server) handedOver(l *masterLink, leads bool) {
	if leads {
		srv.endFailover("")
		return
	}
	_ = srv.underAll(func(g *engine.Guard) {
		if srv.replica.link() == l {
			srv.Lead(g)
		}
	})
	srv.endFailover("the replica refuses to lead")
}

// AbortFailover implements replication.Host.
func (srv *Server) AbortFailover() {
	f := &srv.followed
	f.running.Add(1)
	go func() { // the caller may hold a guard
		defer f.running.Done()
		if f.failoverState() == failoverInProgress {
			_ = srv.underAll(func(g *engine.Guard) {
				if srv.replica.link() != nil {
					srv.Lead(g)
				}
			})
		}
		srv.endFailover("somebody has aborted it")
	}()
}

// endFailover lets clients go on. why is "" if another server leads.
func (srv *Server) endFailover(why string) {
	f := &srv.followed
	f.mu.Lock()
	was := f.failing
	f.failing = failover{}
	f.mu.Unlock()
	if was.state == "" {
		return
	}
	if was.timer != nil {
		was.timer.Stop()
	}
	srv.pause.hold(false)
	if why == "" {
		srv.log.Info("another server leads now")
	} else {
		srv.log.Warn("the failover has been aborted", "reason", why)
	}
}

// TakeOver implements replication.Host.
func (srv *Server) TakeOver(id string) (e command.Error) {
	err := srv.underAll(func(g *engine.Guard) {
		switch {
		case srv.replica.link() == nil:
			e = errTakeOverMaster
		case srv.followed.present().ID != id:
			e = errTakeOverOther
		default:
			srv.log.Info("the master has this server lead")
			srv.Lead(g)
		}
	})
	if err != nil && e == "" {
		e = errLoading
	}
	return e
}

// forEver is a time that does not come, in ms since 1970.
const forEver = math.MaxInt64
