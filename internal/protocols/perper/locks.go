package perper

import (
	"container/list"
	"slices"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file has work groups. Each execution has a lock in each group, which at most one client holds. The lock ends
// when the client disconnects or releases it, and when the execution is removed. Locks are not stored: after a
// restart their holders are gone.

// group is a work group. It is removed when it has no locks and no waiters.
type group struct {
	name  string
	locks map[string]*lock // by execution
	pools map[string]*pool // by agent
}

// lock is the lock of an execution in a group.
type lock struct {
	group     *group
	db        *fabricDB
	execution string
	holder    *session
	pending   *waiter   // the holder's waiter, if it has not been answered yet
	waiters   list.List // of *waiter, the oldest first
}

// pool has the free executions of an agent in a group. It is made at the first request.
type pool struct {
	free    list.List // of string: ids of executions
	places  map[string]*list.Element
	waiters list.List // of *waiter
}

// group returns a work group, and makes it if needed. mu must be locked.
func (d *fabricDB) group(name string) *group {
	g := d.groups[name]
	if g == nil {
		g = &group{name: name, locks: map[string]*lock{}, pools: map[string]*pool{}}
		d.groups[name] = g
	}
	return g
}

// forget removes an unused group.
func (d *fabricDB) forget(g *group) {
	if len(g.locks) > 0 {
		return
	}
	for _, p := range g.pools {
		if p.waiters.Len() > 0 {
			return
		}
	}
	delete(d.groups, g.name)
}

// pool returns the pool of an agent.
func (g *group) pool(x *executionIndex, agent string) *pool {
	p := g.pools[agent]
	if p == nil {
		p = &pool{places: map[string]*list.Element{}}
		g.pools[agent] = p
		p.fill(g, x, agent)
	}
	return p
}

// fill computes the free executions again.
func (p *pool) fill(g *group, x *executionIndex, agent string) {
	p.free.Init()
	clear(p.places)
	a := x.agents[agent]
	if a == nil {
		return
	}
	for e := a.unfinished.Front(); e != nil; e = e.Next() {
		if id := e.Value.(*execution).id; g.locks[id] == nil {
			p.places[id] = p.free.PushBack(id)
		}
	}
}

// remove removes an execution that is no longer free.
func (p *pool) remove(id string) {
	if e := p.places[id]; e != nil {
		p.free.Remove(e)
		delete(p.places, id)
	}
}

// take gives a session the lock of a free execution.
func (d *fabricDB) take(g *group, id, agent string, s *session) *lock {
	l := &lock{group: g, db: d, execution: id}
	g.locks[id] = l
	if p := g.pools[agent]; p != nil {
		p.remove(id)
	}
	l.give(s)
	return l
}

// give makes a session the holder of a free lock.
func (l *lock) give(s *session) {
	l.holder = s
	if s.locks == nil {
		s.locks = map[*lock]struct{}{}
	}
	s.locks[l] = struct{}{}
	s.busy.Store(true)
}

// end takes the lock from its holder.
func (l *lock) end() {
	delete(l.holder.locks, l)
	l.holder.settle()
	l.holder, l.pending = nil, nil
}

// unlock takes a lock from its holder, and gives it to the first waiter. mu must be locked.
func (f *Fabric) unlock(l *lock) {
	if l.holder == nil {
		return
	}
	d, g := l.db, l.group
	l.end()
	e := d.executions.get(l.execution)
	if !e.active() {
		delete(g.locks, l.execution)
		f.answerAll(&l.waiters, noReply)
		d.forget(g)
		return
	}
	if first := l.waiters.Front(); first != nil {
		w := first.Value.(*waiter)
		l.give(w.session)
		l.pending = w
		f.answer(answer{w, yesReply, l})
		return
	}
	delete(g.locks, l.execution)
	if p := g.pools[e.agent]; p != nil {
		p.places[e.id] = p.free.PushFront(e.id) // first, because it is older than the others
		f.serve(g, p, e)
	}
	d.forget(g)
}

// offer makes an execution free in a group, unless it is locked. mu must be locked.
func (f *Fabric) offer(g *group, e *execution) {
	p := g.pools[e.agent]
	if p == nil || p.places[e.id] != nil || g.locks[e.id] != nil {
		return
	}
	p.places[e.id] = p.free.PushBack(e.id)
	f.serve(g, p, e)
}

// serve gives a free execution to the first waiter that it matches.
func (f *Fabric) serve(g *group, p *pool, e *execution) {
	for at := p.waiters.Front(); at != nil; at = at.Next() {
		w := at.Value.(*waiter)
		if w.filter.matches(e) {
			l := w.db.take(g, e.id, e.agent, w.session)
			l.pending = w
			f.answer(answer{w, takenReply(e, w.filter, w.db.executions.serial), l})
			return
		}
	}
}

// withdraw makes an execution unavailable in the group.
func (g *group) withdraw(e *execution) {
	if p := g.pools[e.agent]; p != nil {
		p.remove(e.id)
	}
}

// drop ends the lock of an execution that is gone. mu must be locked.
func (f *Fabric) drop(d *fabricDB, g *group, id string) {
	l := g.locks[id]
	if l == nil {
		return
	}
	delete(g.locks, id)
	l.end()
	f.answerAll(&l.waiters, noReply)
	d.forget(g)
}

// reindex updates a group after the index of executions was built again. mu must be locked.
func (f *Fabric) reindex(d *fabricDB, g *group) {
	for id := range g.locks {
		if d.executions.get(id) == nil {
			f.drop(d, g, id)
		}
	}
	for agent, p := range g.pools {
		p.fill(g, &d.executions, agent)
		for at := p.free.Front(); at != nil && p.waiters.Len() > 0; {
			id := at.Value.(string)
			at = at.Next()
			f.serve(g, p, d.executions.get(id))
		}
	}
}

// takenReply is the reply of PERPER.NEXT.
func takenReply(e *execution, q *filter, serial int64) command.Reply {
	id, instance, delegate := e.id, e.instance, e.delegate
	return func(w *resp.Writer) {
		if !q.withSerial {
			w.Array(3)
		} else {
			w.Array(4)
		}
		w.BulkString(id)
		w.BulkString(instance)
		w.BulkString(delegate)
		if q.withSerial {
			w.Int(serial)
		}
	}
}

// next takes the first matching execution that is free in the group.
func next(c *command.Ctx) {
	q, poll, timeout := newFilter(c.Args[2]), false, int64(0)
	for o := c.Options(3); o.Next(); {
		switch {
		case q.option(&o):
		case o.Is("nowait"):
			poll = true
		case o.Is("timeout") && o.More():
			var ok bool
			if timeout, ok = c.IntTimeout(o.Arg()); !ok {
				return
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	if !fitting(c) {
		return
	}
	f, name, db := fabricOf(c.Host), string(c.Args[1]), c.DB
	// take returns the reply, nil without an execution.
	take := func(s *session) (reply command.Reply, l *lock) {
		d := f.db(db)
		x := &d.executions
		g := d.group(name)
		p := g.pool(x, q.agent)
		for at := p.free.Front(); at != nil; at = at.Next() {
			if e := x.get(at.Value.(string)); q.matches(e) {
				return takenReply(e, q, x.serial), d.take(g, e.id, e.agent, s)
			}
		}
		d.forget(g)
		return nil, nil
	}
	f.mu.Lock()
	f.executions(c)
	s := sessionOf(c.Client)
	s.stopWaiting()
	reply, _ := take(s)
	f.mu.Unlock()
	switch {
	case reply != nil:
		reply(c.W)
	case poll || c.NoBlock:
		c.W.Null()
	default:
		f.await(c, timeout, func(w *waiter) bool {
			reply, l := take(w.session)
			if reply == nil {
				return false
			}
			l.pending = w
			f.answer(answer{w, reply, l})
			return true
		}, func(w *waiter) (leave func()) {
			d := f.db(db)
			g := d.group(name)
			p := g.pool(&d.executions, q.agent)
			w.db, w.filter = d, q
			at := p.waiters.PushBack(w)
			return func() {
				p.waiters.Remove(at)
				d.forget(g)
			}
		})
	}
}

// reserve takes the lock of an execution, and waits for it. If the execution is finished or gone, it takes no lock
// and replies with 0.
func reserve(c *command.Ctx) {
	timeout, poll, ok := int64(0), false, true
	for o := c.Options(3); o.Next(); {
		switch {
		case o.Is("nowait"):
			poll = true
		case o.Is("timeout") && o.More():
			if timeout, ok = c.IntTimeout(o.Arg()); !ok {
				return
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	if !fitting(c) {
		return
	}
	f, name, id, db := fabricOf(c.Host), string(c.Args[1]), string(c.Args[2]), c.DB
	// try returns the reply, nil if another session has the lock.
	try := func(s *session) (reply command.Reply, got *lock) {
		d := f.db(db)
		e := d.executions.get(id)
		g := d.group(name)
		switch l := g.locks[id]; {
		case l != nil && l.holder == s:
			l.pending = nil
			return yesReply, nil
		case l != nil:
			return nil, nil
		case !e.active():
			d.forget(g)
			return noReply, nil
		}
		return yesReply, d.take(g, id, e.agent, s)
	}
	f.mu.Lock()
	f.executions(c)
	s := sessionOf(c.Client)
	s.stopWaiting()
	reply, _ := try(s)
	f.mu.Unlock()
	switch {
	case reply != nil:
		reply(c.W)
	case poll || c.NoBlock:
		c.W.Null()
	default:
		f.await(c, timeout, func(w *waiter) bool {
			reply, l := try(w.session)
			if reply == nil {
				return false
			}
			if l != nil {
				l.pending = w
			}
			f.answer(answer{w, reply, l})
			return true
		}, func(w *waiter) (leave func()) {
			l := f.db(db).group(name).locks[id]
			at := l.waiters.PushBack(w)
			return func() { l.waiters.Remove(at) }
		})
	}
}

// release ends locks of the client: one, or all of a group. It replies with their number.
func release(c *command.Ctx) {
	if !fitting(c) {
		return
	}
	f := fabricOf(c.Host)
	f.mu.Lock()
	f.executions(c)
	s := sessionOf(c.Client)
	s.stopWaiting()
	n := int64(0)
	if g := f.db(c.DB).groups[string(c.Args[1])]; g != nil {
		if len(c.Args) > 2 {
			if l := g.locks[string(c.Args[2])]; l != nil && l.holder == s {
				f.unlock(l)
				n++
			}
		} else {
			for l := range s.locks {
				if l.group == g {
					f.unlock(l)
					n++
				}
			}
		}
	}
	f.mu.Unlock()
	c.W.Int(n)
}

// locks lists the locked executions of a group, or of all groups.
func locks(c *command.Ctx) {
	if !fitting(c) {
		return
	}
	f := fabricOf(c.Host)
	f.mu.Lock()
	f.executions(c)
	var all [][2]string
	for name, g := range f.db(c.DB).groups {
		if len(c.Args) > 1 && name != string(c.Args[1]) {
			continue
		}
		for id := range g.locks {
			all = append(all, [2]string{name, id})
		}
	}
	f.mu.Unlock()
	slices.SortFunc(all, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	c.W.Array(len(all))
	for _, l := range all {
		c.W.Array(2)
		c.W.BulkString(l[0])
		c.W.BulkString(l[1])
	}
}
