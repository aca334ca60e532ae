package skein

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/protocols/internal/effect"
	"github.com/atomredis/atomredis/internal/protocols/skein/keys"
)

// This file has containers: their stored form, their start and their end.

// containerID is a container: the number of an instance of a service. It is written "service_instance".
type containerID struct {
	service  string
	instance int32
}

func (id containerID) String() string { return id.service + "_" + strconv.Itoa(int(id.instance)) }

// parseContainerID reads what String has written.
func parseContainerID(text []byte) (id containerID, ok bool) {
	i := bytes.LastIndexByte(text, '_')
	if i < 0 || !utf8.Valid(text) {
		return containerID{}, false
	}
	n, err := strconv.ParseInt(string(text[i+1:]), 10, 32)
	id = containerID{string(text[:i]), int32(n)}
	return id, err == nil && id.String() == string(text)
}

// compare orders containers by service, and then by instance.
func (id containerID) compare(other containerID) int {
	return cmp.Or(keys.Compare(id.service, other.service), cmp.Compare(id.instance, other.instance))
}

// containerState is the state of a container.
type containerState uint8

const (
	waiting containerState = iota
	requested
	running
	succeeded
	failedState
	killed
)

var states = [...]string{waiting: "WAITING", requested: "REQUESTED", running: "RUNNING", succeeded: "SUCCEEDED",
	failedState: "FAILED", killed: "KILLED"}

// completed reports whether the container has ended.
func (s containerState) completed() bool { return s >= succeeded }

// stateOf returns the state of that name, in any case.
func stateOf(name []byte) (s containerState, ok bool) {
	i := slices.IndexFunc(states[:], func(state string) bool { return strings.EqualFold(state, string(name)) })
	return containerState(i), i >= 0
}

// lease is the lifetime of a container: the ms until it must be renewed, or one of these.
type lease int64

const (
	forever     lease = 0  // until a client ends it
	withSession lease = -1 // as long as the client's session
)

func (l lease) String() string {
	switch l {
	case forever:
		return "-"
	case withSession:
		return "session"
	}
	return strconv.FormatInt(int64(l), 10)
}

func parseLease(text string) (l lease, ok bool) {
	switch text {
	case forever.String():
		return forever, true
	case withSession.String():
		return withSession, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return lease(n), err == nil && n > 0
}

// container is the stored state of a container.
type container struct {
	containerID
	state         containerState
	start, finish int64 // times of its start and end, in ms since 1970; 0 before
	lease         lease // while it runs
	message       string
}

func (ct *container) append(dst []byte) []byte {
	return fmt.Appendf(dst, "%s %d %d %s %s", states[ct.state], ct.start, ct.finish, ct.lease, ct.message)
}

// parseContainer reads what append has written.
func parseContainer(id containerID, stored []byte) (ct container, ok bool) {
	parts := strings.SplitN(string(stored), " ", 5)
	if len(parts) != 5 {
		return container{}, false
	}
	ct = container{containerID: id, message: parts[4]}
	if ct.state, ok = stateOf([]byte(parts[0])); !ok {
		return container{}, false
	}
	var err1, err2 error
	ct.start, err1 = strconv.ParseInt(parts[1], 10, 64)
	ct.finish, err2 = strconv.ParseInt(parts[2], 10, 64)
	ct.lease, ok = parseLease(parts[3])
	return ct, ok && err1 == nil && err2 == nil
}

// The errors of containers, in the words of Skein where it has any.
const (
	errContainer   command.Error = "ERR the container is not of the form service_instance"
	errServiceName command.Error = "ERR the name of a service must be text without control characters, and not empty"
	errNoLease     command.Error = "ERR the container has no lease"
	errRuns        command.Error = "ERR the container runs already"
	errNoClient    command.Error = "ERR there is no session that the container could be tied to"
	errFull        command.Error = "ERR the service has the largest number of containers"
)

func errUnknownService(service string) command.Error {
	return invalid("Unknown service '" + service + "'")
}

func errCompleted(id containerID) command.Error {
	return invalid("Container '" + id.String() + "' has already completed")
}

// serviceNamed reports whether a text can be the name of a service.
func serviceNamed(name []byte) bool {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	return len(name) > 0 && utf8.Valid(name) && !bytes.ContainsFunc(name, control)
}

// hasService reports whether a service is known.
func (a *app) hasService(name string) bool {
	_, ok := effect.HGet(a.c, a.names[servicesKey], []byte(name))
	return ok
}

// container returns a container, or the error if it does not exist.
func (a *app) container(id containerID) (ct container, err command.Error) {
	if !a.hasService(id.service) {
		return container{}, errUnknownService(id.service)
	}
	stored, ok := effect.HGet(a.c, a.names[containersKey], []byte(id.String()))
	if ok {
		ct, ok = parseContainer(id, stored)
	}
	if !ok {
		return container{}, invalid(fmt.Sprintf("Service '%s' has no container instance %d", id.service, id.instance))
	}
	return ct, ""
}

// active returns the error if a container cannot own keys; otherwise "".
func (a *app) active(id containerID) command.Error {
	ct, err := a.container(id)
	if err == "" && ct.state.completed() {
		err = errCompleted(id)
	}
	return err
}

// store stores a changed container.
func (a *app) store(ct *container) {
	effect.HSet(a.c, a.names[containersKey], []byte(ct.String()), ct.append(nil))
}

// containersOf returns the containers for which fn is true, by service and instance.
func (a *app) containersOf(fn func(ct *container) bool) (all []container) {
	h := effect.Hash(a.c, a.names[containersKey])
	if h == nil {
		return nil
	}
	for name, stored := range h.All() {
		id, ok := parseContainerID(name)
		if !ok {
			continue
		}
		if ct, ok := parseContainer(id, stored); ok && fn(&ct) {
			all = append(all, ct)
		}
	}
	slices.SortFunc(all, func(a, b container) int { return a.compare(b.containerID) })
	return all
}

// setNext registers a service, and sets the number of its next container.
func (a *app) setNext(service string, n int64) {
	effect.HSet(a.c, a.names[servicesKey], []byte(service), strconv.AppendInt(nil, n, 10))
}

const (
	// maxContainers is the largest number of active containers of a service.
	maxContainers = 10_000
	// maxStored is the largest number of stored containers of an application; those that ended first are dropped.
	maxStored = 4 * maxContainers
)

// next makes a container of a service, and registers the service. The container is not stored yet. ok is false if
// there are no more numbers.
func (a *app) next(service string) (ct container, ok bool) {
	n := int64(0)
	if stored, known := effect.HGet(a.c, a.names[servicesKey], []byte(service)); known {
		var err error
		if n, err = strconv.ParseInt(string(stored), 10, 32); err != nil || n < 0 || n == math.MaxInt32 {
			return container{}, false
		}
	}
	a.prune()
	a.setNext(service, n+1)
	return container{containerID: containerID{service, int32(n)}, state: requested}, true
}

// request makes n requested containers of a service.
func (a *app) request(service string, n int) (added []container) {
	for range n {
		ct, ok := a.next(service)
		if !ok {
			break
		}
		a.store(&ct)
		added = append(added, ct)
	}
	return added
}

// prune drops half of the ended containers if there are very many.
func (a *app) prune() {
	if effect.HLen(a.c, a.names[containersKey]) < maxStored {
		return
	}
	ended := a.containersOf(func(ct *container) bool { return ct.state.completed() })
	slices.SortStableFunc(ended, func(a, b container) int { return cmp.Compare(a.finish, b.finish) })
	fields := make([][]byte, 0, len(ended))
	for _, ct := range ended[:(len(ended)+1)/2] {
		fields = append(fields, []byte(ct.String()))
	}
	effect.HDel(a.c, a.names[containersKey], fields...)
}

// sessionLease is the score of containers that are tied to a session: it is later than any time.
const sessionLease = 1 << 53

// run starts a container, or gives a running one another lease.
func (a *app) run(ct *container, l lease) {
	if ct.state != running {
		ct.state, ct.start = running, a.c.Now()
	}
	ct.lease = l
	a.store(ct)
	id := ct.String()
	a.service.untie(a.id(), id)
	switch l {
	case forever:
		effect.ZRem(a.c, a.names[leasesKey], []byte(id))
	case withSession:
		effect.ZAdd(a.c, a.names[leasesKey], []byte(id), sessionLease)
		a.service.tie(a.id(), id, a.c.Client)
	default:
		at := a.c.Now() + int64(l)
		effect.ZAdd(a.c, a.names[leasesKey], []byte(id), at)
		a.service.schedule.Note(a.id(), at)
	}
}

// end ends a container with a state and a message, and removes its keys. An ended container stays unchanged.
func (a *app) end(ct *container, state containerState, message string) {
	if ct.state.completed() {
		return
	}
	ct.state, ct.finish, ct.lease, ct.message = state, a.c.Now(), forever, message
	a.store(ct)
	id := []byte(ct.String())
	effect.ZRem(a.c, a.names[leasesKey], id)
	a.service.untie(a.id(), ct.String())
	a.delete(a.ownedBy(id))
}

// ownedBy returns the keys of an owner in their order.
func (a *app) ownedBy(owner []byte) (found [][]byte) {
	z := effect.ZSet(a.c, a.names[ownedKey])
	if z == nil {
		return nil
	}
	from := ownedMember(owner, nil)
	z.RangeByLex(prefixRange(from), false, 0, -1, func(member []byte, _ float64) bool {
		found = append(found, keys.Key(nil, member[len(from):]))
		return true
	})
	return found
}

// endOf is end for a container ID from the keys.
func (a *app) endOf(id []byte, state containerState, message string) {
	parsed, _ := parseContainerID(id)
	ct, err := a.container(parsed)
	if err != "" || ct.state.completed() {
		effect.ZRem(a.c, a.names[leasesKey], id) // other commands have changed the keys
		return
	}
	a.end(&ct, state, message)
}

// The messages of containers that end by themselves.
const (
	messageKilled  = "Killed by user request."
	messageLease   = "The lease has expired."
	messageSession = "The session has ended."
)

// refresh ends the containers whose leases have expired.
func (a *app) refresh() {
	if at := a.service.schedule.Earliest(a.id()); at != 0 && at <= a.c.Now() {
		a.expire()
	}
}

// expire ends the containers whose leases have expired, and notes the next deadline.
func (a *app) expire() {
	a.service.schedule.Forget(a.id())
	for {
		z := effect.ZSet(a.c, a.names[leasesKey])
		if z == nil || z.Len() == 0 {
			return
		}
		member, at := z.At(0)
		switch {
		case at >= sessionLease:
			return
		case int64(at) > a.c.Now():
			a.service.schedule.Note(a.id(), int64(at))
			return
		}
		a.endOf(bytes.Clone(member), failedState, messageLease)
	}
}

// sessions are the scores of containers that are tied to a session.
var sessions = zsets.ScoreRange{Min: sessionLease, Max: math.Inf(1)}

// endTied ends the containers that are tied to sessions for which fn is true; its argument is the container's ID.
func (a *app) endTied(fn func(id string) bool) {
	z := effect.ZSet(a.c, a.names[leasesKey])
	if z == nil {
		return
	}
	var tied [][]byte
	z.RangeByScore(sessions, false, 0, -1, func(member []byte, _ float64) bool {
		if fn(string(member)) {
			tied = append(tied, bytes.Clone(member))
		}
		return true
	})
	for _, id := range tied {
		a.endOf(id, failedState, messageSession)
	}
}
