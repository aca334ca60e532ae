package session

import (
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/internal/command"
)

// Pause is CLIENT PAUSE: until its deadline, or CLIENT UNPAUSE, commands wait in their sessions' input.
type Pause struct {
	active atomic.Bool // false: the other fields need not be checked

	mu      sync.Mutex // protects the following fields; only mailboxes are locked under it
	until   int64      // ms since 1970
	all     bool       // all commands wait, not only those that may write
	failing bool       // commands that may write wait for the end of FAILOVER, even after CLIENT UNPAUSE
	waiting map[*Session]struct{}
}

// pausedBy makes the session wait if the command must wait now, and reports whether it must.
func (s *Session) pausedBy(cmd *command.Command, args [][]byte) bool {
	writes := cmd.MayReplicate(s.ctx.Host, args) || cmd.RunsQueue && s.tx.writes
	p := &s.shared.Pause
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.failing && p.until <= s.now {
		p.end()
		return false
	}
	if !writes && (!p.all || p.until <= s.now) {
		return false
	}
	p.waiting[s] = struct{}{}
	until := p.until
	if p.failing {
		until = 0
	}
	s.beginWait(forPause, until)
	return true
}

// leave removes a client that no longer waits for the end of the pause.
func (p *Pause) leave(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, s)
}

// Begin starts a pause. One that is running can only become longer and stricter.
func (p *Pause) Begin(now, until int64, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until <= now && !p.failing {
		p.end()
	}
	if until <= now && !p.active.Load() {
		return
	}
	p.until = max(p.until, until)
	p.all = p.all || all
	if p.waiting == nil {
		p.waiting = map[*Session]struct{}{}
	}
	p.active.Store(true)
}

// Running reports whether commands that may write have to wait.
func (p *Pause) Running(now int64) bool {
	if !p.active.Load() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failing || p.until > now
}

// Resume ends the pause and wakes all clients. Clients that must wait for other reasons wait again.
func (p *Pause) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wakeAll()
}

func (p *Pause) wakeAll() {
	for s := range p.waiting {
		s.post(mailResume)
	}
	p.end()
	if p.failing {
		p.waiting = map[*Session]struct{}{}
		p.active.Store(true)
	}
}

// Hold makes commands that may write wait until it is called with false.
func (p *Pause) Hold(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing = held
	if !held {
		p.wakeAll()
		return
	}
	if p.waiting == nil {
		p.waiting = map[*Session]struct{}{}
	}
	p.active.Store(true)
}

// end ends the pause. Waiting sessions wake at their own deadlines. mu is held.
func (p *Pause) end() {
	p.until, p.all, p.waiting = 0, false, nil
	p.active.Store(false)
}

// holds reports whether the session waits for the end of the pause.
func (p *Pause) holds(s *Session, now int64) bool {
	if !p.active.Load() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.waiting[s]
	return ok && (p.failing || p.until > now)
}

// Held returns the number of clients that wait for the end of the pause.
func (p *Pause) Held(r *Register, now int64) int {
	if !p.active.Load() {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until <= now && !p.failing {
		return 0
	}
	n := 0
	for s := range p.waiting {
		if r.get(s.id) == s { // it may have disconnected
			n++
		}
	}
	return n
}
