// Package changes has the commands that read what happened to the data, in order, from the journal.
package changes

import (
	"errors"
	"math"
	"sync/atomic"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/changes"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/version"
	"github.com/atomredis/atomredis/resp"
)

// Host is what the commands of this package need of the server.
type Host interface {
	command.Host
	// Changes returns the feed of the server's changes.
	Changes() *changes.Feed
}

func init() { command.Register(commands) }

var commands = []*command.Command{
	{Name: "changes", Group: "server", Since: version.Number, Arity: -2, Summary: "A container for commands of the change feed",
		Complexity: "Depends on the sub-command", Subs: []*command.Command{
			{Name: "changes|group", Group: "server", Since: version.Number, Arity: -4,
				Flags:      command.Write | command.WholeKeyspace | command.NoScript,
				Summary:    "Makes a group of consumers, sets its position, or removes it",
				Syntax:     "<CREATE group position | ACK group position | DESTROY group>",
				Complexity: "O(1)", OneShard: true, Do: group},
			{Name: "changes|groups", Group: "server", Since: version.Number, Arity: 2, Flags: command.ReadOnly,
				Summary:    "Returns the groups of consumers, their positions, and how far these are behind",
				Complexity: "O(N), where N is the number of groups", Do: list},
			{Name: "changes|help", Group: "server", Since: version.Number, Arity: 2, Flags: command.Loading | command.Stale,
				Summary: "Lists the sub-commands", Complexity: "O(1)", Do: help},
			{Name: "changes|info", Group: "server", Since: version.Number, Arity: 2, Flags: command.NoScript | command.Stale,
				Summary: "Returns the oldest position that can be read from, the present one, and what is kept and read",
				NoData:  true, Complexity: "O(1)", Do: info},
			{Name: "changes|read", Group: "server", Since: version.Number, Arity: -4,
				Flags:   command.ReadOnly | command.Blocking | command.NoScript | command.NoMulti | command.Stale,
				Summary: "Returns changes of the data in their order, and the position after them",
				Syntax: "<FROM position | GROUP group> [COUNT count] [MAXBYTES bytes] [BLOCK milliseconds] [MATCH pattern [MATCH pattern ...]] " +
					"[TYPE type [TYPE type ...]] [DB db] [VALUES | KEYS]",
				Complexity: "O(N), where N is the length of the journal that is read",
				NoData:     true, Do: read},
		}},
}

const (
	defaultCount = 1000
	defaultBytes = 1 << 20
	maxBytes     = 64 << 20
	maxCount     = 1_000_000
)

const (
	errPosition command.Error = "ERR invalid position: it is what an earlier read returned, $ or 0"
	errType     command.Error = "ERR unknown type"
	errDB       command.Error = "ERR DB index is out of range"
	errCount    command.Error = "ERR COUNT must be between 1 and 1000000"
	errBytes    command.Error = "ERR MAXBYTES must be between 1 and 67108864"
)

var errStored = errors.New("the stored positions of groups of consumers are damaged")

func feedOf(c *command.Ctx) *changes.Feed { return c.Host.(Host).Changes() }

// failed writes the error of the feed, whose text is a reply.
func failed(w *resp.Writer, err error) { w.Error(err.Error()) }

// request is a CHANGES READ.
type request struct {
	query    changes.Query
	from     string
	blocks   bool
	timeout  int64 // ms; 0 is for ever
	position atomic.Pointer[changes.Position]
}

// parse reads the arguments; if they are wrong, it writes an error and ok is false.
func parse(c *command.Ctx) (r *request, ok bool) {
	r = &request{query: changes.Query{Count: defaultCount, Bytes: defaultBytes, Filter: changes.Filter{DB: changes.AnyDatabase}}}
	r.query.From = &r.position
	f := &r.query.Filter
	o := c.Options(2)
	for o.Next() {
		switch {
		case o.Is("from") && o.More() && r.from == "":
			r.from = string(o.Arg())
		case o.Is("group") && o.More() && r.from == "":
			if r.from, ok = groupsOf(c).position(string(o.Arg())); !ok {
				c.Err(errNoGroup)
				return nil, false
			}
		case o.Is("count") && o.More():
			n, ok := c.IntIn(o.Arg(), 1, maxCount, errCount)
			if !ok {
				return nil, false
			}
			r.query.Count = int(n)
		case o.Is("maxbytes") && o.More():
			n, ok := c.IntIn(o.Arg(), 1, maxBytes, errBytes)
			if !ok {
				return nil, false
			}
			r.query.Bytes = int(n)
		case o.Is("block") && o.More():
			if r.timeout, ok = c.IntTimeout(o.Arg()); !ok {
				return nil, false
			}
			r.blocks = true
		case o.Is("match") && o.More():
			f.Match = append(f.Match, append([]byte(nil), o.Arg()...))
		case o.Is("type") && o.More():
			t, ok := engine.ParseType(string(o.Arg()))
			if !ok {
				c.Err(errType)
				return nil, false
			}
			f.Types = append(f.Types, t)
		case o.Is("db") && o.More():
			n, ok := c.IntIn(o.Arg(), 0, math.MaxInt32, errDB)
			if !ok {
				return nil, false
			}
			if int(n) >= c.Databases() {
				c.Err(errDB)
				return nil, false
			}
			f.DB = int(n)
		case o.Is("values"):
			f.Keys = false
		case o.Is("keys"):
			f.Keys = true
		default:
			c.Err(command.ErrSyntax)
			return nil, false
		}
	}
	if r.from == "" {
		c.Err(command.ErrSyntax)
		return nil, false
	}
	at, ok := positionOf(c, r.from)
	r.position.Store(&at)
	return r, ok
}

// positionOf returns the position that an argument names. If the argument names no position, it writes an error, and ok is
// false.
func positionOf(c *command.Ctx, text string) (at changes.Position, ok bool) {
	if text == "$" {
		end, err := feedOf(c).Here()
		if err != nil {
			failed(c.W, err)
			return at, false
		}
		return changes.Position{Place: end}, true
	}
	if at, ok = changes.ParsePosition(text); !ok {
		c.Err(errPosition)
	}
	return at, ok
}

// read makes the client wait while the changes are read by another goroutine.
func read(c *command.Ctx) {
	r, ok := parse(c)
	if !ok {
		return
	}
	feed, client, cmd := feedOf(c), c.Client, c.Cmd
	r.query.Wait = r.blocks
	// A reader without limits sees all databases, which CHANGES READ itself does not need.
	everywhere := *cmd
	everywhere.AllDatabases = true
	args := [][]byte{[]byte("CHANGES"), []byte("READ"), []byte("FROM"), []byte("0")} // the rights do not depend on the arguments
	f := &r.query.Filter
	f.MayReadAll = func() bool {
		rights := client.Rights()
		return rights == nil || rights.MayReadAll(&everywhere, args, 0)
	}
	f.MayRead = func(db int, key []byte) bool { return client.MayRead(cmd, key, db) }
	f.Rights = func() any { return client.Rights() }
	ctx, cancel := feed.Begin()
	finish := c.AwaitOr(r.timeout, func(w *resp.Writer) { reply(w, &changes.Page{Next: *r.position.Load()}) }, cancel)
	feed.Go(func() {
		page, err := feed.Read(ctx, &r.query)
		finish(func(w *resp.Writer) {
			if err != nil {
				failed(w, err)
				return
			}
			if page.Rights != f.Rights() { // what was read is not for this user any more; the client asks again
				page = changes.Page{Next: *r.position.Load()}
			}
			reply(w, &page)
		})
	})
}

// reply writes a page: the position after it, and the changes.
func reply(w *resp.Writer, p *changes.Page) {
	w.Array(2)
	w.BulkString(p.Next.String())
	w.Array(p.Changes)
	w.Raw(p.Encoded)
}

func info(c *command.Ctx) {
	feed := feedOf(c)
	oldest, end, err := feed.Places()
	if err != nil {
		failed(c.W, err)
		return
	}
	st := feed.Stats()
	c.W.Map(6)
	text := func(name, value string) {
		c.W.BulkString(name)
		c.W.BulkString(value)
	}
	number := func(name string, n int64) {
		c.W.BulkString(name)
		c.W.Int(n)
	}
	text("oldest", oldest.String())
	text("position", end.String())
	number("retained-bytes", feed.Retained())
	number("readers", st.Active)
	number("reads", st.Reads)
	number("changes", st.Sent)
}

func help(c *command.Ctx) {
	command.HelpReply(c,
		"CHANGES <subcommand> [<arg> [value] [opt] ...]. subcommands are:",
		"READ FROM <position> [<option> ...]",
		"    Return the changes after a position, and the position after them. $ is now, and 0 is before everything: then a",
		"    snapshot comes first, as the commands that make the data. Options are:",
		"    COUNT <n> and MAXBYTES <n>, limits; BLOCK <ms>, to wait for a change; MATCH <pattern>, TYPE <type> and DB <n>,",
		"    to get only commands for such keys; VALUES, whole commands, or KEYS, names and keys only.",
		"READ GROUP <name> [<option> ...]", "    The same from the position of a group on.",
		"GROUP CREATE <name> <position>", "    Make a group of consumers with a position.",
		"GROUP ACK <name> <position>", "    Set the position of a group: everything before it is done.",
		"GROUP DESTROY <name>", "    Remove a group.",
		"GROUPS", "    Return the groups, their positions, and how far these are behind.",
		"INFO", "    Return the oldest position that can be read from, the present one, and what is kept and read.",
		"HELP", "    Print this help.")
}
