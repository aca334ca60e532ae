package skein

import (
	"math"
	"slices"

	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/version"
)

// This file has the commands of SKEIN.CONTAINER.

var containerCommands = []*command.Command{
	{Name: "skein.container|add", Arity: 4, Flags: adds, Do: containerAdd,
		Summary: "Requests one more container of a service", Syntax: "app service"},
	{Name: "skein.container|end", Arity: -4, Flags: writes, Do: containerEnd,
		Summary: "Ends a container and removes the keys that it owns",
		Syntax:  "app container [SUCCEEDED | FAILED | KILLED] [MESSAGE message]"},
	{Name: "skein.container|kill", Arity: 4, Flags: writes, Do: containerKill,
		Summary: "Kills a container and removes the keys that it owns", Syntax: "app container"},
	{Name: "skein.container|list", Arity: -3, Flags: reads, Do: containerList,
		Summary: "Lists containers, those that have not ended unless told otherwise",
		Syntax:  "app [STATE state [STATE state ...]] [SERVICE service [SERVICE service ...]]"},
	{Name: "skein.container|renew", Arity: -4, Flags: writes, Do: containerRenew,
		Summary: "Renews the lease of a container", Syntax: "app container [TTL milliseconds]"},
	{Name: "skein.container|run", Arity: -4, Flags: adds, Do: containerRun,
		Summary: "Runs the first container of a service that was requested, or a new one",
		Syntax:  "app service [TTL milliseconds | SESSION]"},
	{Name: "skein.container|scale", Arity: -4, Flags: adds, Do: containerScale,
		Summary: "Requests or kills containers of a service", Syntax: "app service [COUNT count] [DELTA delta]"},
	{Name: "skein.container|service", Arity: -4, Flags: adds, Do: containerService,
		Summary: "Declares a service; a new one runs some containers", Syntax: "app service [count]"},
	{Name: "skein.container|start", Arity: -4, Flags: adds, Do: containerStart,
		Summary: "Runs a container that was requested", Syntax: "app container [TTL milliseconds | SESSION]"},
}

func init() {
	for _, cmd := range containerCommands {
		cmd.Group, cmd.Since, cmd.ACL, cmd.DerivedKeys = "skein", version.Number, categories, containerKeys
		cmd.Complexity = "O(N), where N is the number of containers, or of keys that they own"
	}
}

// containerArg opens the application and finds the container that the arguments name. If there is none, it writes an
// error and ok is false.
func containerArg(c *command.Ctx) (a *app, ct container, ok bool) {
	id, ok := parseContainerID(c.Args[3])
	if !ok {
		c.Err(errContainer)
		return nil, container{}, false
	}
	if a, ok = opened(c, 2); !ok {
		return nil, container{}, false
	}
	ct, err := a.container(id)
	if err != "" {
		c.Err(err)
	}
	return a, ct, err == ""
}

// serviceArg opens the application and returns the service that the arguments name. If the name is invalid, or the
// service must be known and is not, it writes an error and ok is false.
func serviceArg(c *command.Ctx, known bool) (a *app, service string, isNew, ok bool) {
	if a, ok = opened(c, 2); !ok {
		return nil, "", false, false
	}
	service = string(c.Args[3])
	isNew = !a.hasService(service)
	switch {
	case isNew && known:
		c.Err(errUnknownService(service))
		return nil, "", false, false
	case isNew && !serviceNamed(c.Args[3]):
		c.Err(errServiceName)
		return nil, "", false, false
	}
	return a, service, isNew, true
}

// reply replies with a container.
func (ct *container) reply(c *command.Ctx) {
	text := func(name, value string) {
		c.W.BulkString(name)
		c.W.BulkString(value)
	}
	number := func(name string, n int64) {
		c.W.BulkString(name)
		c.W.Int(n)
	}
	c.W.Map(8)
	text("id", ct.String())
	text("service", ct.service)
	number("instance", int64(ct.instance))
	text("state", states[ct.state])
	number("start", ct.start)
	number("finish", ct.finish)
	text("lease", ct.lease.String())
	text("message", ct.message)
}

func replyContainers(c *command.Ctx, all []container) {
	c.W.Array(len(all))
	for i := range all {
		all[i].reply(c)
	}
}

// activeOf returns the active containers of a service: the waiting ones, then the requested, then the running; the
// oldest of each first.
func (a *app) activeOf(service string) []container {
	all := a.containersOf(func(ct *container) bool { return ct.service == service && !ct.state.completed() })
	slices.SortStableFunc(all, func(a, b container) int { return int(a.state) - int(b.state) })
	return all
}

func containerService(c *command.Ctx) {
	n := int64(0)
	switch len(c.Args) {
	case 4:
	case 5:
		var ok bool
		if n, ok = c.IntIn(c.Args[4], 0, maxContainers, command.ErrOutOfRange); !ok {
			return
		}
	default:
		c.Err(command.ErrSyntax)
		return
	}
	a, service, isNew, ok := serviceArg(c, false)
	if !ok {
		return
	}
	if !isNew {
		c.W.Array(0)
		return
	}
	a.setNext(service, 0)
	c.W.Array(int(n))
	for range n {
		ct, _ := a.next(service) // a new service has numbers
		a.run(&ct, forever)
		ct.reply(c)
	}
}

func containerAdd(c *command.Ctx) {
	a, service, _, ok := serviceArg(c, true)
	if !ok {
		return
	}
	if len(a.activeOf(service)) >= maxContainers {
		c.Err(errFull)
		return
	}
	added := a.request(service, 1)
	if len(added) == 0 {
		c.Err(errFull)
		return
	}
	added[0].reply(c)
}

const (
	errBothScales = "Can't specify both count and delta"
	errScale      = "count must be >= 0"
)

// containerScale is SKEIN.CONTAINER SCALE. As in Skein's messages, a count or delta of 0 counts as missing.
func containerScale(c *command.Ctx) {
	var n, delta int64
	for o := c.Options(4); o.Next(); {
		var ok bool
		switch {
		case o.Is("count") && o.More():
			n, ok = c.IntIn(o.Arg(), math.MinInt32, math.MaxInt32, command.ErrOutOfRange)
		case o.Is("delta") && o.More():
			delta, ok = c.IntIn(o.Arg(), math.MinInt32, math.MaxInt32, command.ErrOutOfRange)
		default:
			c.Err(command.ErrSyntax)
		}
		if !ok {
			return
		}
	}
	switch {
	case n != 0 && delta != 0:
		c.Err(invalid(errBothScales))
		return
	case n < 0:
		c.Err(invalid(errScale))
		return
	}
	a, service, _, ok := serviceArg(c, true)
	if !ok {
		return
	}
	active := a.activeOf(service)
	if delta != 0 {
		n = max(int64(len(active))+delta, 0)
	}
	if n > maxContainers {
		c.Err(errFull)
		return
	}
	replyContainers(c, a.scale(service, active, int(n)))
}

// scale gives a service n containers, and returns the added or killed ones.
func (a *app) scale(service string, active []container, n int) (changed []container) {
	if n <= len(active) {
		changed = active[:len(active)-n]
		for i := range changed {
			a.end(&changed[i], killed, messageKilled)
		}
		return changed
	}
	return a.request(service, n-len(active))
}

// maxLease is how long a lease can be, in ms.
const maxLease = 100 * 366 * 24 * 60 * 60 * 1000

// leaseArg reads a lease from argument 4 on. If it is wrong, it writes an error and ok is false.
func leaseArg(c *command.Ctx, sessions bool) (l lease, ok bool) {
	o := c.Options(4)
	if !o.Next() {
		return forever, true
	}
	switch {
	case o.Is("ttl") && o.Left() == 1:
		n, ok := c.IntIn(o.Arg(), 1, maxLease, command.ErrOutOfRange)
		return lease(n), ok
	case sessions && o.Is("session") && !o.More():
		if c.Client == nil {
			c.Err(errNoClient)
			return forever, false
		}
		return withSession, true
	}
	c.Err(command.ErrSyntax)
	return forever, false
}

func containerRun(c *command.Ctx) {
	l, ok := leaseArg(c, true)
	if !ok {
		return
	}
	a, service, _, ok := serviceArg(c, false)
	if !ok {
		return
	}
	active := a.activeOf(service)
	var ct container
	switch {
	case len(active) > 0 && active[0].state != running:
		ct = active[0]
	case len(active) >= maxContainers:
		c.Err(errFull)
		return
	default:
		if ct, ok = a.next(service); !ok {
			c.Err(errFull)
			return
		}
	}
	a.run(&ct, l)
	c.W.BulkString(ct.String())
}

func containerStart(c *command.Ctx) {
	l, ok := leaseArg(c, true)
	if !ok {
		return
	}
	a, ct, ok := containerArg(c)
	if !ok {
		return
	}
	switch {
	case ct.state == running:
		c.Err(errRuns)
		return
	case ct.state.completed():
		c.Err(errCompleted(ct.containerID))
		return
	}
	a.run(&ct, l)
	c.W.OK()
}

func containerRenew(c *command.Ctx) {
	l, ok := leaseArg(c, false)
	if !ok {
		return
	}
	a, ct, ok := containerArg(c)
	if !ok {
		return
	}
	if l == forever {
		l = ct.lease
	}
	switch {
	case ct.state.completed():
		c.Err(errCompleted(ct.containerID))
		return
	case ct.state != running || l <= 0:
		c.Err(errNoLease)
		return
	}
	a.run(&ct, l)
	c.W.OK()
}

// The default messages of containers that a client ends.
var endMessages = map[containerState]string{succeeded: "Completed successfully.", failedState: "Failed.", killed: messageKilled}

func containerEnd(c *command.Ctx) {
	state, message := succeeded, ""
	p := parser{args: c.Args[4:]}
	switch {
	case p.is("failed"):
		state = failedState
	case p.is("killed"):
		state = killed
	default:
		p.is("succeeded")
	}
	message = endMessages[state]
	if p.is("message") {
		message = string(p.arg())
	}
	if len(p.args) > 0 {
		p.fail(command.ErrSyntax)
	}
	if p.err != "" {
		c.Err(p.err)
		return
	}
	a, ct, ok := containerArg(c)
	if !ok {
		return
	}
	if ct.state.completed() {
		c.W.Int(0)
		return
	}
	a.end(&ct, state, message)
	c.W.Int(1)
}

// containerKill ignores a container that has ended.
func containerKill(c *command.Ctx) {
	if a, ct, ok := containerArg(c); ok {
		a.end(&ct, killed, messageKilled)
		c.W.OK()
	}
}

func containerList(c *command.Ctx) {
	var wanted [len(states)]bool
	var services []string
	anyState := false
	for o := c.Options(3); o.Next(); {
		switch {
		case o.Is("state") && o.More():
			s, ok := stateOf(o.Arg())
			if !ok {
				c.Err(command.ErrSyntax)
				return
			}
			anyState, wanted[s] = true, true
		case o.Is("service") && o.More():
			services = append(services, string(o.Arg()))
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	a, ok := openedToRead(c, 2, numberOfKeys)
	if !ok {
		return
	}
	for _, service := range services {
		if !a.hasService(service) {
			c.Err(errUnknownService(service))
			return
		}
	}
	replyContainers(c, a.containersOf(func(ct *container) bool {
		return (len(services) == 0 || slices.Contains(services, ct.service)) &&
			(wanted[ct.state] || !anyState && !ct.state.completed())
	}))
}
