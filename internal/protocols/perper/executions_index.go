package perper

import (
	"container/list"
	"encoding/json"
	"strings"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/internal/feed"
	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/event"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
)

// The ids of the fields of executions.
var (
	agentField      = binary.ID("agent")
	instanceField   = binary.ID("instance")
	delegateField   = binary.ID("delegate")
	finishedField   = binary.ID("finished")
	parametersField = binary.ID("parameters")
	resultField     = binary.ID("result")
	errorField      = binary.ID("error")
)

// execution is an entry of the cache of executions. An unreadable one has no agent, and no client learns of it.
type execution struct {
	id, agent, instance, delegate string
	finished                      bool

	place *list.Element // in agent.unfinished; nil if it is finished or unreadable
}

// active reports whether the execution is readable and unfinished.
func (e *execution) active() bool { return e != nil && e.agent != "" && !e.finished }

// readExecution reads an entry of the cache. The guard must hold the key of the types.
func readExecution(c *command.Ctx, k, value []byte) *execution {
	e := &execution{}
	id, ok := binary.AsString(k)
	if !ok {
		return e
	}
	e.id = id
	o, err := binary.ParseObject(value)
	if err != nil {
		return e
	}
	agent := ""
	err = o.Fields(registered(c).Schemas(), func(f binary.Field) bool {
		switch f.ID {
		case agentField:
			agent, _ = binary.AsString(f.Value)
		case instanceField:
			e.instance, _ = binary.AsString(f.Value)
		case delegateField:
			e.delegate, _ = binary.AsString(f.Value)
		case finishedField:
			e.finished, _ = binary.AsBool(f.Value)
		}
		return true
	})
	if err == nil {
		e.agent = agent
	}
	return e
}

// executionIndex has the executions of a database, indexed for queries.
type executionIndex struct {
	seen    seen
	entries map[string]*execution
	agents  map[string]*agent
	// instances are the numbers of executions that mark a running instance of an agent.
	instances map[string]int
	serial    int64 // number of changes so far
}

// agent has the executions of an agent.
type agent struct {
	all        int
	unfinished list.List // of *execution, the oldest first
}

// registry is the agent whose executions mark running instances; their instance field names the agent.
const registry = "Registry"

// executions returns the index of the executions. The guard must hold the keys of the cache and of the types, and mu be
// locked.
func (f *Fabric) executions(c *command.Ctx) (*fabricDB, *executionIndex) {
	d := f.db(c.DB)
	x := &d.executions
	if !x.seen.current(c) {
		f.indexExecutions(c, d)
	}
	return d, x
}

// indexExecutions builds the index again, and serves waiters for which a change was missed.
func (f *Fabric) indexExecutions(c *command.Ctx, d *fabricDB) {
	before := d.executions
	d.executions = executionIndex{seen: before.seen, entries: map[string]*execution{}, agents: map[string]*agent{},
		instances: map[string]int{}, serial: before.serial + 1}
	x := &d.executions
	x.seen.note(c, executionsKey)
	if h := effect.Hash(c, executionsKey); h != nil {
		for k, v := range h.All() {
			x.add(string(k), readExecution(c, k, v))
		}
	}
	for id, waiters := range d.ends {
		if e := x.get(id); !e.active() {
			f.answerAll(waiters, endReply(e != nil))
		}
	}
	for _, g := range d.groups {
		f.reindex(d, g)
	}
}

// executionID returns the key of an execution in the cache.
func executionID(id string) string { return string(binary.AppendString(nil, id)) }

// get returns an execution; nil if it is not there.
func (x *executionIndex) get(id string) *execution { return x.entries[executionID(id)] }

// add adds an entry of the cache.
func (x *executionIndex) add(key string, e *execution) {
	x.entries[key] = e
	if e.agent == "" {
		return
	}
	a := x.agents[e.agent]
	if a == nil {
		a = &agent{}
		x.agents[e.agent] = a
	}
	a.all++
	if e.agent == registry {
		x.instances[e.instance]++
	}
	if !e.finished {
		e.place = a.unfinished.PushBack(e)
	}
}

// remove removes an entry of the cache.
func (x *executionIndex) remove(key string) {
	e := x.entries[key]
	delete(x.entries, key)
	if e == nil || e.agent == "" {
		return
	}
	a := x.agents[e.agent]
	if e.place != nil {
		a.unfinished.Remove(e.place)
	}
	if a.all--; a.all == 0 {
		delete(x.agents, e.agent)
	}
	if e.agent == registry {
		if x.instances[e.instance]--; x.instances[e.instance] == 0 {
			delete(x.instances, e.instance)
		}
	}
}

// executionChanged handles a change of the cache of executions.
func (f *Fabric) executionChanged(c *command.Ctx, k, value, old []byte) {
	var was, is *execution
	if old != nil {
		was = readExecution(c, k, old)
	}
	if value != nil {
		is = readExecution(c, k, value)
	}
	serial := f.noteExecution(c, string(k), was, is)
	if is != nil && is.agent != "" && is.finished {
		f.leave(c, leftExecutions, k)
	} else {
		effect.ZRem(c, leftExecutions, k)
	}
	if feed.Heard(c) {
		tellExecution(c, serial, was, is)
	}
}

// noteExecution updates the index, and serves waiters. It returns the number of the change.
func (f *Fabric) noteExecution(c *command.Ctx, key string, was, is *execution) (serial int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.db(c.DB)
	x := &d.executions
	x.seen.note(c, executionsKey)
	x.serial++
	x.remove(key)
	if is != nil {
		x.add(key, is)
	}
	f.executionMoved(d, was, is)
	return x.serial
}

// executionMoved serves waiters after a change of the index.
func (f *Fabric) executionMoved(d *fabricDB, was, is *execution) {
	if was.active() && (!is.active() || is.agent != was.agent) {
		for _, g := range d.groups {
			g.withdraw(was)
		}
	}
	if is.active() {
		for _, g := range d.groups {
			f.offer(g, is)
		}
	}
	if was != nil && !is.active() {
		f.answerAll(d.ends[was.id], endReply(is != nil))
	}
	if is == nil {
		for _, g := range d.groups {
			f.drop(d, g, was.id)
		}
	}
}

// tellExecution publishes a change of an execution.
func tellExecution(c *command.Ctx, serial int64, was, is *execution) {
	send := func(kind string, e *execution) {
		message, err := json.Marshal(event.Execution{Kind: kind, Serial: serial, Execution: e.id, Instance: e.instance,
			Delegate: e.delegate})
		if err != nil {
			return // cannot happen: strings can always be encoded
		}
		feed.Send(c, []byte(keys.Agent(e.agent)), message)
		if e.agent == registry {
			feed.Send(c, []byte(keys.Instances(e.instance)), message)
		}
	}
	switch known := was != nil && was.agent != ""; {
	case is == nil && known:
		send(event.ExecutionRemoved, was)
	case is.active() && !was.active():
		send(event.ExecutionCreated, is)
	case known && was.active() && !is.active():
		send(event.ExecutionFinished, was)
	}
}

// filter selects executions.
type filter struct {
	agent, instance, delegate string
	withSerial                bool // the reply has the number of the last change
}

// matches reports whether the filter selects an execution of the agent.
func (q *filter) matches(e *execution) bool {
	return (q.instance == "" || q.instance == e.instance) && (q.delegate == "" || q.delegate == e.delegate)
}

// option reads an option of a filter, if o is at one.
func (q *filter) option(o *command.OptionArgs) bool {
	switch {
	case o.Is("instance") && o.More():
		q.instance = string(o.Arg())
	case o.Is("delegate") && o.More():
		q.delegate = string(o.Arg())
	case o.Is("withserial"):
		q.withSerial = true
	default:
		return false
	}
	return true
}

// newFilter returns a filter for an agent.
func newFilter(agent []byte) *filter { return &filter{agent: strings.Clone(string(agent))} }
