package changes

import (
	"maps"
	"slices"
	"sync"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/changes"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist/journal"
	"github.com/atomredis/atomredis/resp"
)

// Groups of consumers remember a position. The positions are part of the data: they are journalled, and so they follow
// checkpoints, copies and the group's log. Readers of changes do not see them, nor do replicas. They change under a guard over one
// shard, always the same. As checkpoints hold all shards at their instant, they have a position if and only if their journal begins
// after the position's record.

// groups is the service that keeps the positions.
type groups struct {
	mu  sync.Mutex
	all map[string]string // positions by the names of the groups
}

var serviceID = command.RegisterService(func() command.Service { return &groups{all: map[string]string{}} })

func groupsOf(c *command.Ctx) *groups { return c.Host.Service(serviceID).(*groups) }

const (
	maxGroups    = 10_000
	maxGroupName = 1024 // bytes
)

const (
	errGroupExists command.Error = "BUSYGROUP the group exists already"
	errNoGroup     command.Error = "NOGROUP there is no such group"
	errManyGroups  command.Error = "ERR there are 10000 groups already"
	errGroupName   command.Error = "ERR the name of a group has 1 to 1024 bytes"
)

// the words of the records
var (
	changesWord = []byte("CHANGES")
	groupWord   = []byte("GROUP")
	createWord  = []byte("CREATE")
)

// position returns the position of a group.
func (g *groups) position(name string) (position string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	position, ok = g.all[name]
	return position, ok
}

// group executes CREATE, ACK and DESTROY.
func group(c *command.Ctx) {
	name := string(c.Args[3])
	g := groupsOf(c)
	_, exists := g.position(name)
	verb, repeated := c.Args[2], c.Origin.In(command.Accepted)
	switch {
	case command.EqualFold(verb, "create") && len(c.Args) == 5:
		switch {
		case repeated: // the state beside the keys may have the group already
		case name == "" || len(name) > maxGroupName:
			c.Err(errGroupName)
			return
		case exists:
			c.Err(errGroupExists)
			return
		case g.full():
			c.Err(errManyGroups)
			return
		}
	case command.EqualFold(verb, "ack") && len(c.Args) == 5:
		if !exists && !repeated {
			c.Err(errNoGroup)
			return
		}
	case command.EqualFold(verb, "destroy") && len(c.Args) == 4:
		if !exists {
			c.W.Int(0)
			return
		}
		g.set(name, "")
		c.Journal(c.Args...)
		c.W.Int(1)
		return
	default:
		c.Err(command.ErrSyntax)
		return
	}
	at, ok := positionOf(c, string(c.Args[4]))
	if !ok {
		return
	}
	g.set(name, at.String())
	c.Journal(changesWord, groupWord, verb, c.Args[3], []byte(at.String()))
	c.W.OK()
}

// full reports whether there are as many groups as there may be.
func (g *groups) full() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.all) >= maxGroups
}

// set sets the position of a group; "" removes it.
func (g *groups) set(name, position string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if position == "" {
		delete(g.all, name)
	} else {
		g.all[name] = position
	}
}

// unknownLag is the lag of a group that is not in the journal yet, or not any more.
const unknownLag = -1

// lagOf returns how far a position is behind the end: in bytes of the journal, in a group of servers in entries of its log.
func lagOf(position string, end journal.Place, err error) int64 {
	at, ok := changes.ParsePosition(position)
	if err != nil || !ok || at.Start || at.Snapshot != "" || at.Place.LSN > end.LSN {
		return unknownLag
	}
	return int64(end.LSN - at.Place.LSN)
}

// positions returns the positions of all groups by their names.
func (g *groups) positions() map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.all)
}

// list replies with the names of the groups, their positions and how far these are behind.
func list(c *command.Ctx) {
	all := groupsOf(c).positions()
	end, err := feedOf(c).Here()
	c.W.Array(len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c.W.Array(3)
		c.W.BulkString(name)
		c.W.BulkString(all[name])
		c.W.Int(lagOf(all[name], end, err))
	}
}

// Lag returns how far the last group of a server's consumers is behind, as far as that is known (see lagOf), the number of groups
// of which it is not, and the number of all.
func Lag(h Host) (lag int64, unknown, n int) {
	all := h.Service(serviceID).(*groups).positions()
	if len(all) == 0 {
		return 0, 0, 0
	}
	end, err := h.Changes().Here()
	for _, position := range all {
		if l := lagOf(position, end, err); l == unknownLag {
			unknown++
		} else {
			lag = max(lag, l)
		}
	}
	return lag, unknown, len(all)
}

// Stored implements command.Keeper.
func (g *groups) Stored() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	var r engine.Record
	for _, name := range slices.Sorted(maps.Keys(g.all)) {
		r.Add(changesWord, groupWord, createWord, []byte(name), []byte(g.all[name]))
	}
	return r.Bytes()
}

// Restore implements command.Keeper.
func (g *groups) Restore(commands []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.all)
	for p := (&resp.Parser{MaxBulk: resp.AnyBulk}); len(commands) > 0; {
		args, n, err := p.Next(commands, nil)
		if err != nil || n == 0 {
			return errStored
		}
		commands = commands[n:]
		if len(args) != 5 || string(args[0]) != string(changesWord) {
			continue // of another service
		}
		if _, ok := changes.ParsePosition(string(args[4])); !ok {
			return errStored
		}
		g.all[string(args[3])] = string(args[4])
	}
	return nil
}

// Start implements command.Service, as do the following methods.
func (g *groups) Start(command.Host) {}

func (g *groups) Loaded()                                         {}
func (g *groups) Following()                                      {}
func (g *groups) Close()                                          {}
func (g *groups) Events() engine.EventClass                       { return 0 }
func (g *groups) Heard(command.Client, bool, string, int, string) {}
func (g *groups) NewClient() any                                  { return nil }
func (g *groups) Gone(command.Client)                             {}
func (g *groups) MustSee(command.Client) bool                     { return false }

var _ command.Keeper = (*groups)(nil)
