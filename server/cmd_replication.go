package server

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/resp"
)

// What a master does for those that follow it: SYNC and PSYNC send everything as an RDB file, and then the commands that change something.
// Commands are sent as the journal has them, to be repeated at the time that they ran: a follower that applies them later gets other deadlines
// and stream IDs from those that are relative. Tools that show or count them do not mind.

var replicationCommands = []*Command{
	{Name: "psync", Group: "server", Since: "2.8.0", Arity: -3, Flags: NoAsyncLoading | Admin | NoMulti | NoScript | WholeKeyspace | AllKeys,
		Summary: "Makes the client a follower, which gets all data and then the commands that change it", Syntax: "replicationid offset",
		Complexity: "O(N), where N is the size of the data", Do: cmdPsync},
	{Name: "replconf", Group: "server", Since: "3.0.0", Arity: -1, Flags: Admin | NoScript | Loading | Stale | AllowBusy,
		Summary: "Tells the server about a follower", Complexity: "O(1)", Do: cmdReplconf},
	{Name: "sync", Group: "server", Since: "1.0.0", Arity: 1, Flags: NoAsyncLoading | Admin | NoMulti | NoScript | WholeKeyspace | AllKeys,
		Summary: "Is PSYNC as old followers send it", Complexity: "O(N), where N is the size of the data", Do: cmdSync},
}

// follower is what a session is to others that follow the server.
type follower struct {
	following atomic.Bool // it gets what changes
	rdbOnly   bool        // it wants all data and no more
	without   rdbContent  // what it does not want
}

// followers are the sessions that get what changes.
type followers struct {
	mu   sync.Mutex // protects what follows; only mailboxes are locked under it
	list []*Session
	db   int // that they have selected
	args [][]byte
}

// Append implements engine.Journal.
func (f *followers) Append(_ int64, commands []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	parts := [][]byte{commands}
	if f.db != 0 && !bytes.HasPrefix(commands, selectRequest) { // every record begins in database 0
		parts = [][]byte{appendRequest(nil, [][]byte{[]byte("SELECT"), []byte("0")}), commands}
	}
	f.db = f.lastDatabase(commands)
	for _, s := range f.list {
		s.post(0, parts...)
	}
}

// selectRequest is how SELECT begins.
var selectRequest = []byte("*2\r\n$6\r\nSELECT\r\n")

// lastDatabase returns the database in which the commands of a record end.
func (f *followers) lastDatabase(commands []byte) (db int) {
	parser := resp.Parser{MaxBulk: maxJournalBulk}
	for len(commands) > 0 {
		args, n, err := parser.Next(commands, f.args[:0])
		if err != nil || n == 0 {
			return noDatabase // which the server itself does not write
		}
		f.args = args
		commands = commands[n:]
		if len(args) == 2 && equalFold(args[0], "select") {
			db, _ = strconv.Atoi(string(args[1]))
		}
	}
	return db
}

// follow makes a session a follower, under a guard over everything.
func (srv *Server) follow(g *engine.Guard, s *Session) {
	f := &srv.followed
	f.mu.Lock()
	defer f.mu.Unlock()
	s.follower.following.Store(true)
	f.list = append(f.list, s)
	f.db = noDatabase // the next record is preceded by SELECT, for the new one's sake
	if len(f.list) == 1 {
		g.Follow(f)
	}
}

// noDatabase is the number of none.
const noDatabase = -1

// unfollow ends that. It takes a guard over everything if the session was the last one.
func (srv *Server) unfollow(s *Session) {
	f := &srv.followed
	f.mu.Lock()
	s.follower.following.Store(false)
	f.list = slices.DeleteFunc(f.list, func(other *Session) bool { return other == s })
	last := len(f.list) == 0
	f.mu.Unlock()
	if !last {
		return
	}
	s.guard.Lock(srv.ks, engine.AllShards, s.now)
	defer s.guard.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) == 0 { // another one may have come meanwhile
		s.guard.Follow(nil)
	}
}

func cmdSync(c *Ctx) { c.sync(false) }

// cmdPsync always sends everything: there is no backlog from which a follower could go on.
func cmdPsync(c *Ctx) {
	if _, ok := c.Int(c.Args[2]); !ok {
		return
	}
	c.sync(true)
}

// sync sends everything, and from then on what changes.
func (c *Ctx) sync(announce bool) {
	s := c.Session
	if s.follower.following.Load() {
		return // Redis does not answer a second time
	}
	data := c.Server.snapshotRDB(c.G, rdbAll&^s.follower.without)
	if announce {
		c.W.Simple(fmt.Sprintf("FULLRESYNC %s 0", c.Server.runID))
	}
	c.W.Raw(fmt.Appendf(nil, "$%d\r\n", len(data)))
	c.W.Raw(data)
	if !s.follower.rdbOnly {
		c.Server.follow(c.G, s)
	}
}

const errFilterMissing Error = "ERR Missing rdb-filter-only values"

// cmdReplconf notes what a follower wants. What it tells of itself, and what it has got, is of no consequence.
func cmdReplconf(c *Ctx) {
	if len(c.Args)%2 == 0 {
		c.Err(ErrSyntax)
		return
	}
	f := &c.Session.follower
	for i := 1; i < len(c.Args); i += 2 {
		value := c.Args[i+1]
		switch lower(c.Args[i]) {
		case "listening-port":
			if _, ok := c.Int(value); !ok {
				return
			}
		case "ip-address", "capa":
		case "ack", "getack":
			return // neither is answered by a master
		case "rdb-only":
			n, ok := c.Int(value)
			if !ok {
				return
			}
			if n < 0 || n > 1 {
				c.Err(errNumLocal)
				return
			}
			f.rdbOnly = n == 1
		case "rdb-filter-only":
			f.without = rdbAll
			filters, err := resp.SplitArgs(value, nil)
			if err != nil {
				c.Err(errFilterMissing)
				return
			}
			for _, filter := range filters {
				if !equalFold(filter, "functions") {
					c.Err(Error(fmt.Sprintf("ERR Unsupported rdb-filter-only option: %s", filter)))
					return
				}
				f.without &^= rdbFunctions
			}
		default:
			c.Err(Error(fmt.Sprintf("ERR Unrecognized REPLCONF option: %s", untilNUL(c.Args[i]))))
			return
		}
	}
	c.W.OK()
}

// pristine reports whether the session is not, and has not asked to be, anything special.
func (f *follower) pristine() bool { return !f.following.Load() && !f.rdbOnly && f.without == 0 }
