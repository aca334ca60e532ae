package psync

import (
	"time"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/replication"
)

// FAILOVER: the server changes roles with one of its followers. Clients that write wait. Once the follower has acknowledged
// the whole stream, the server becomes its replica and sends it PSYNC with FAILOVER, which makes it a master. Then the waiting
// clients continue, on a replica.

// failoverState is the master_failover_state of INFO.
type failoverState string

const (
	noFailover         failoverState = "no-failover"
	waitingForSync     failoverState = "waiting-for-sync"
	failoverInProgress failoverState = "failover-in-progress"
)

// failover is a failover under way. It is protected by Followers.mu.
type failover struct {
	state failoverState // "" is noFailover
	host  string        // of the follower that becomes master; "" is the first that has acknowledged the whole stream
	port  int64
	force bool
	timer engine.Timer // of the timeout; nil if there is none
}

const (
	errTakeOverMaster command.Error = "ERR PSYNC FAILOVER can't be sent to a master."
	errTakeOverOther  command.Error = "ERR PSYNC FAILOVER replid must match my replid."
)

// Failover begins a failover to the follower at host and port, or if host is "" to the first that has acknowledged the whole
// stream. After timeout ms (0 is none) it is aborted or, with force, the follower becomes master with the data it has.
func (f *Followers) Failover(host string, port int64, force bool, timeout int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = failover{state: waitingForSync, host: host, port: port, force: force}
	if timeout > 0 {
		f.failing.timer = f.ks.Clock().AfterFunc(time.Duration(timeout)*time.Millisecond, f.failoverLate)
	}
	f.host.HoldWrites(true)
	f.log.Info("failing over", "host", host, "port", port)
	f.running.Add(1)
	go func() {
		defer f.running.Done()
		f.continueFailover(false)
	}()
}

// FailingOver reports whether a failover is under way.
func (f *Followers) FailingOver() bool { return f.failoverState() != noFailover }

// FailoverState returns the master_failover_state of INFO.
func (f *Followers) FailoverState() string { return string(f.failoverState()) }

func (f *Followers) failoverState() failoverState {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing.state == "" {
		return noFailover
	}
	return f.failing.state
}

// failoverLate is called at the timeout.
func (f *Followers) failoverLate() {
	f.mu.Lock()
	waits, force := f.failing.state == waitingForSync, f.failing.force
	f.mu.Unlock()
	switch {
	case waits && force:
		f.continueFailover(true)
	case waits:
		f.endFailover("no replica has caught up in time")
	}
}

// continueFailover makes the server a replica of the follower that becomes master, if one is ready; anyway takes the named
// follower with the data it has.
func (f *Followers) continueFailover(anyway bool) {
	_ = f.host.Hold(func(g *engine.Guard) { // the stream does not grow under it
		host, port, ok := f.successor(anyway)
		if ok {
			f.log.Info("failover: the replica becomes the master", "host", host, "port", port)
			f.replica.follow(g, host, int(port), true)
		}
	})
}

// successor returns the follower that becomes master now, and sets the state; ok is false if none is ready.
func (f *Followers) successor(anyway bool) (host string, port int64, ok bool) {
	list, _ := f.Status()
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

// handedOver is called with the answer to PSYNC with FAILOVER.
func (f *Followers) handedOver(l *link, leads bool) {
	if leads {
		f.endFailover("")
		return
	}
	_ = f.host.Hold(func(g *engine.Guard) {
		if f.replica.current.Load() == l {
			f.replica.Lead(g)
		}
	})
	f.endFailover("the replica refuses to lead")
}

// AbortFailover aborts a failover: the server stays master.
func (f *Followers) AbortFailover() {
	f.running.Add(1)
	go func() { // the caller may hold a guard
		defer f.running.Done()
		if f.failoverState() == failoverInProgress {
			_ = f.host.Hold(func(g *engine.Guard) {
				if f.replica.Following() {
					f.replica.Lead(g)
				}
			})
		}
		f.endFailover("FAILOVER ABORT")
	}()
}

// endFailover ends a failover and releases the waiting clients. why is "" if it has succeeded.
func (f *Followers) endFailover(why string) {
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
	f.host.HoldWrites(false)
	if why == "" {
		f.log.Info("failover succeeded; this server is a replica now")
	} else {
		f.log.Warn("the failover has been aborted", "reason", why)
	}
}

// TakeOver answers PSYNC with FAILOVER: it makes a replica a master, if id is the ID of its history. refused is the error for
// the client, and err the error of MasterHost.Hold.
func (f *Followers) TakeOver(id string) (refused command.Error, err error) {
	err = f.host.Hold(func(g *engine.Guard) {
		switch {
		case !f.replica.Following():
			refused = errTakeOverMaster
		case f.Present().ID != id:
			refused = errTakeOverOther
		default:
			f.log.Info("failover: the master hands over to this replica")
			f.replica.Lead(g)
		}
	})
	return refused, err
}
