package server

import (
	"fmt"
	"math"
	"strconv"

	"github.com/atomredis/atomredis/acl"
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(clientCommands) }

// clientCommands is CLIENT. What it says about tracking is carried out in tracking.go, about pauses in pause.go.
var clientCommands = []*command.Command{
	{Name: "client", Group: "connection", Since: "2.4.0", Arity: -2,
		KeepsCaching: true,
		Summary:      "A container for commands about clients", Complexity: "Depends on the sub-command",
		Subs: []*command.Command{
			{Name: "client|caching", Group: "connection", Since: "6.0.0", Arity: 3,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Tracks, or does not track, the keys of the next command",
				Syntax:  "<YES | NO>", Complexity: "O(1)",
				Stateful: true, Do: cmdClientCaching},
			{Name: "client|getname", Group: "connection", Since: "2.6.9", Arity: 2,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Returns the connection's name", Complexity: "O(1)", Do: cmdClientGetname},
			{Name: "client|getredir", Group: "connection", Since: "6.0.0", Arity: 2,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary:    "Returns the ID of the client that gets this one's invalidations",
				Complexity: "O(1)", Do: cmdClientGetredir},
			{Name: "client|help", Group: "connection", Since: "5.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				ACL:     command.CatConnection,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: cmdClientHelp},
			{Name: "client|id", Group: "connection", Since: "5.0.0", Arity: 2,
				Flags:   command.NoScript | command.Loading | command.Stale,
				ACL:     command.CatConnection,
				Summary: "Returns the connection's ID", Complexity: "O(1)", Do: cmdClientID},
			{Name: "client|info", Group: "connection", Since: "6.2.0", Arity: 2,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Shows the connection's state", Complexity: "O(1)", Do: cmdClientInfo},
			{Name: "client|kill", Group: "connection", Since: "2.4.0", Arity: -3,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Disconnects clients",
				Syntax: "<ip:port | [ID client-id | TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB> | USER username | ADDR ip:port | LADDR ip:port | SKIPME <YES | NO> | MAXAGE maxage] " +
					"[[ID client-id | TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB> | USER username | ADDR ip:port | LADDR ip:port | SKIPME <YES | NO> | MAXAGE maxage] ...]>",
				Complexity: "O(N), where N is the number of clients", Do: cmdClientKill},
			{Name: "client|list", Group: "connection", Since: "2.4.0", Arity: -2,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary:    "Lists connections with their state",
				Syntax:     "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
				Complexity: "O(N), where N is the number of clients", Do: cmdClientList},
			{Name: "client|no-evict", Group: "connection", Since: "7.0.0", Arity: 3,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Exempts the connection from maxmemory-clients", Syntax: "<ON | OFF>", Complexity: "O(1)",
				Stateful: true, Do: cmdClientNoEvict},
			{Name: "client|no-touch", Group: "connection", Since: "7.2.0", Arity: 3,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Stops the connection's commands from updating access times", Syntax: "<ON | OFF>",
				Complexity: "O(1)",
				Stateful:   true, Do: cmdClientNoTouch},
			{Name: "client|pause", Group: "connection", Since: "2.9.50", Arity: -3,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Suspends commands of clients for some time",
				Syntax:  "timeout [WRITE | ALL]", Complexity: "O(1)", Do: cmdClientPause},
			{Name: "client|reply", Group: "connection", Since: "3.2.0", Arity: 3,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Turns replies on or off", Syntax: "<ON | OFF | SKIP>", Complexity: "O(1)",
				Stateful: true, Do: cmdClientReply},
			{Name: "client|setinfo", Group: "connection", Since: "7.2.0", Arity: 4,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Sets the client library's name or version", Syntax: "<LIB-NAME libname | LIB-VER libver>",
				Complexity: "O(1)",
				Stateful:   true, Do: cmdClientSetinfo},
			{Name: "client|setname", Group: "connection", Since: "2.6.9", Arity: 3,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Names the connection", Syntax: "connection-name", Complexity: "O(1)",
				Stateful: true, Do: cmdClientSetname},
			{Name: "client|tracking", Group: "connection", Since: "6.0.0", Arity: -3,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary:    "Turns invalidation messages for cached keys on or off",
				Syntax:     "<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
				Complexity: "O(N), where N is the number of prefixes",
				Stateful:   true, Do: cmdClientTracking},
			{Name: "client|trackinginfo", Group: "connection", Since: "6.2.0", Arity: 2,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Shows how the connection's keys are tracked", Complexity: "O(1)", Do: cmdClientTrackinginfo},
			{Name: "client|unblock", Group: "connection", Since: "5.0.0", Arity: -3,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Unblocks a client that waits in a blocking command",
				Syntax:  "client-id [TIMEOUT | ERROR]", Complexity: "O(1)", Do: cmdClientUnblock},
			{Name: "client|unpause", Group: "connection", Since: "6.2.0", Arity: 2,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary:    "Ends CLIENT PAUSE",
				Complexity: "O(N), where N is the number of clients that wait", Do: cmdClientUnpause},
		}},
}

func cmdClientGetname(c *command.Ctx) {
	if sessionOf(c).name == "" {
		c.W.Null()
		return
	}
	c.W.BulkString(sessionOf(c).name)
}

func cmdClientSetname(c *command.Ctx) {
	if !printable(c.Args[2]) {
		c.Err(errClientName)
		return
	}
	sessionOf(c).name = string(c.Args[2])
	c.W.OK()
}

func cmdClientSetinfo(c *command.Ctx) {
	s := sessionOf(c)
	var field *string
	switch {
	case command.EqualFold(c.Args[2], "lib-name"):
		field = &s.libName
	case command.EqualFold(c.Args[2], "lib-ver"):
		field = &s.libVersion
	default:
		c.Err(command.Error(fmt.Sprintf("ERR Unrecognized option '%s'", c.Args[2])))
		return
	}
	if !printable(c.Args[3]) {
		c.Err(command.Error(fmt.Sprintf("ERR %s cannot contain spaces, newlines or special characters.", c.Args[2])))
		return
	}
	*field = string(c.Args[3])
	c.W.OK()
}

func cmdClientID(c *command.Ctx) { c.W.Int(sessionOf(c).id) }

func cmdClientNoEvict(c *command.Ctx) { onOff(c, &sessionOf(c).noEvict) }
func cmdClientNoTouch(c *command.Ctx) { onOff(c, &sessionOf(c).guard.NoTouch) }

// onOff sets a switch as the argument says.
func onOff(c *command.Ctx, to *bool) {
	switch {
	case command.EqualFold(c.Args[2], "on"):
		*to = true
	case command.EqualFold(c.Args[2], "off"):
		*to = false
	default:
		c.Err(command.ErrSyntax)
		return
	}
	c.W.OK()
}

// cmdClientReply answers ON alone.
func cmdClientReply(c *command.Ctx) {
	s := sessionOf(c)
	switch {
	case command.EqualFold(c.Args[2], "on"):
		s.replies = replyOn
		c.W.OK()
	case command.EqualFold(c.Args[2], "off"):
		s.replies = replyOff
	case command.EqualFold(c.Args[2], "skip"):
		if s.replies != replyOff {
			s.replies = replySkipNext
		}
	default:
		c.Err(command.ErrSyntax)
	}
}

// clientType is what CLIENT LIST and CLIENT KILL tell clients apart by.
type clientType uint8

const (
	anyType clientType = iota
	normalType
	pubsubType
	masterType // there are none: the link to a master is no client
	replicaType
)

// clientTypeArg reads a type; if it is none an error is written and ok is false.
func clientTypeArg(c *command.Ctx, arg []byte) (t clientType, ok bool) {
	switch command.Lower(arg) {
	case "normal":
		return normalType, true
	case "pubsub":
		return pubsubType, true
	case "master":
		return masterType, true
	case "replica", "slave":
		return replicaType, true
	}
	c.Err(command.Error(fmt.Sprintf("ERR Unknown client type '%s'", arg)))
	return anyType, false
}

// subscriptions counts those of all kinds.
func (d *clientInfo) subscriptions() int { return d.channels + d.patterns + d.shardChannels }

func (d *clientInfo) clientType() clientType {
	switch {
	case d.follower:
		return replicaType
	case d.subscriptions() > 0:
		return pubsubType
	}
	return normalType
}

func cmdClientInfo(c *command.Ctx) {
	publishSelf(c)
	c.W.Verbatim("txt", string(sessionOf(c).describe(nil, c.Now()))+"\n")
}

// publishSelf lets the client see itself as it is now, not as it was after its last batch.
func publishSelf(c *command.Ctx) {
	if sessionOf(c).tx.running == 0 {
		sessionOf(c).lastCmd = c.Cmd
	}
	sessionOf(c).publish()
}

func cmdClientList(c *command.Ctx) {
	all := serverOf(c).clients.all()
	typ := anyType
	switch {
	case len(c.Args) == 2:
	case len(c.Args) == 4 && command.EqualFold(c.Args[2], "type"):
		var ok bool
		if typ, ok = clientTypeArg(c, c.Args[3]); !ok {
			return
		}
	case len(c.Args) > 3 && command.EqualFold(c.Args[2], "id"):
		all = all[:0]
		for _, arg := range c.Args[3:] {
			id, ok := c.IntIn(arg, math.MinInt64, math.MaxInt64, "ERR Invalid client ID")
			if !ok {
				return
			}
			if s := serverOf(c).clients.get(id); s != nil {
				all = append(all, s)
			}
		}
	default:
		c.Err(command.ErrSyntax)
		return
	}
	publishSelf(c)
	var text []byte
	for _, s := range all {
		if d := s.snapshot(); s.dying() || typ != anyType && d.clientType() != typ {
			continue
		}
		text = append(s.describe(text, c.Now()), '\n')
	}
	c.W.Verbatim("txt", string(text))
}

// describe appends a line on the session without its end, as CLIENT LIST shows it. Any goroutine may call it.
func (s *Session) describe(dst []byte, now int64) []byte {
	d := s.snapshot()
	number := func(name string, n int64) {
		dst = append(append(append(dst, ' '), name...), '=')
		dst = strconv.AppendInt(dst, n, 10)
	}
	text := func(name, value string) {
		dst = append(append(append(append(dst, ' '), name...), '='), value...)
	}
	dst = strconv.AppendInt(append(dst, "id="...), s.id, 10)
	text("addr", s.peer.Addr)
	text("laddr", s.peer.Local)
	number("fd", int64(s.peer.FD))
	text("name", d.name)
	number("age", max(now-s.started.UnixMilli(), 0)/1000)
	number("idle", max(now-d.lastActive, 0)/1000)
	text("flags", s.flagLetters(&d, now))
	number("db", int64(d.db))
	number("sub", int64(d.channels))
	number("psub", int64(d.patterns))
	number("ssub", int64(d.shardChannels))
	number("multi", int64(d.multi))
	number("qbuf", int64(d.input))
	number("qbuf-free", int64(d.inputFree))
	number("argv-mem", 0) // arguments are views into the input
	number("multi-mem", d.queued)
	number("rbs", int64(d.buffer))
	number("rbp", int64(d.peak))
	number("obl", int64(d.output))
	number("oll", 0)
	number("omem", int64(d.output))
	number("tot-mem", d.memory)
	events := "r"
	if d.output > 0 {
		events = "rw"
	}
	text("events", events)
	cmd := "NULL"
	if d.lastCmd != nil {
		cmd = d.lastCmd.Name
	}
	text("cmd", cmd)
	text("user", s.userName())
	redirect := int64(-1)
	if d.tracking != 0 {
		redirect = d.redirect
	}
	number("redir", redirect)
	number("resp", int64(d.proto))
	// which Redis 7.4 has behind multi; programs that were written for Redis 7.0 expect qbuf there
	number("watch", int64(d.watched))
	text("lib-name", d.lib)
	text("lib-ver", d.libVersion)
	return dst
}

// flagLetters returns a letter for everything that is special about a client.
func (s *Session) flagLetters(d *clientInfo, now int64) string {
	var letters []byte
	for _, f := range []struct {
		set    bool
		letter byte
	}{
		{d.monitor, 'O'},
		{d.follower, 'S'},
		{d.subscriptions() > 0, 'P'},
		{d.multi >= 0, 'x'},
		{d.blocked || s.srv.pause.holds(s, now), 'b'},
		{d.tracking&trackingOn != 0, 't'},
		{d.tracking&trackingBroken != 0, 'R'},
		{d.tracking&trackingBcast != 0, 'B'},
		{d.closing, 'c'},
		{s.dying(), 'A'},
		{s.peer.unix(), 'U'},
		{d.readOnly, 'r'},
		{d.noEvict, 'e'},
		{d.noTouch, 'T'},
	} {
		if f.set {
			letters = append(letters, f.letter)
		}
	}
	if len(letters) == 0 {
		return "N"
	}
	return string(letters)
}

// killFilter says which clients CLIENT KILL is meant for.
type killFilter struct {
	id          int64 // 0 = whatever
	typ         clientType
	addr, local []byte
	user        *acl.Account // nil = whoever
	skipMe      bool
	maxAge      int64 // seconds; 0 = whatever
}

// matches reports whether s, of which d is known, is meant.
func (f *killFilter) matches(s *Session, d *clientInfo, now int64) bool {
	switch {
	case f.id != 0 && s.id != f.id,
		f.typ != anyType && d.clientType() != f.typ,
		f.addr != nil && s.peer.Addr != string(f.addr),
		f.local != nil && s.peer.Local != string(f.local),
		f.user != nil && s.account.Load() != f.user,
		f.maxAge != 0 && (now-s.started.UnixMilli())/1000 < f.maxAge:
		return false
	}
	return true
}

func cmdClientKill(c *command.Ctx) {
	f, ok := killFilter{skipMe: true}, true
	old := len(c.Args) == 3
	if old {
		f = killFilter{addr: c.Args[2]}
	} else if f, ok = readKillFilter(c); !ok {
		return
	}
	killed, self := int64(0), false
	for _, s := range serverOf(c).clients.all() {
		if s == sessionOf(c) {
			publishSelf(c)
		}
		d := s.snapshot()
		if s.dying() || !f.matches(s, &d, c.Now()) {
			continue
		}
		if s == sessionOf(c) {
			if f.skipMe {
				continue
			}
			self = true
		} else {
			if w := d.wait; w != nil {
				w.waiter.Withdraw() // from now on it takes nothing
			}
			s.post(mailKill)
		}
		if killed++; old {
			break
		}
	}
	switch {
	case !old:
		c.W.Int(killed)
	case killed == 0:
		c.Err("ERR No such client")
	default:
		c.W.OK()
	}
	if self {
		sessionOf(c).closing = true // but the reply must still get out
	}
}

// readKillFilter reads the options of CLIENT KILL; if there is something wrong with them an error is written and ok is
// false.
func readKillFilter(c *command.Ctx) (f killFilter, ok bool) {
	f.skipMe = true
	for o := c.Options(2); o.Next(); {
		if !o.More() {
			c.Err(command.ErrSyntax)
			return f, false
		}
		switch {
		case o.Is("id"):
			if f.id, ok = c.IntIn(o.Arg(), 1, math.MaxInt64, "ERR client-id should be greater than 0"); !ok {
				return f, false
			}
		case o.Is("type"):
			if f.typ, ok = clientTypeArg(c, o.Arg()); !ok {
				return f, false
			}
		case o.Is("addr"):
			f.addr = o.Arg()
		case o.Is("laddr"):
			f.local = o.Arg()
		case o.Is("user"):
			if f.user = serverOf(c).users.Get(o.Arg()); f.user == nil {
				c.Err(command.Error(fmt.Sprintf("ERR No such user '%s'", command.UntilNUL(o.Word()))))
				return f, false
			}
		case o.Is("skipme"):
			switch command.Lower(o.Arg()) {
			case "yes":
				f.skipMe = true
			case "no":
				f.skipMe = false
			default:
				c.Err(command.ErrSyntax)
				return f, false
			}
		case o.Is("maxage"):
			if f.maxAge, ok = resp.ParseInt(o.Arg()); !ok {
				c.Err("ERR maxage is not an integer or out of range")
				return f, false
			}
			if f.maxAge <= 0 {
				c.Err("ERR maxage should be greater than 0")
				return f, false
			}
		default:
			c.Err(command.ErrSyntax)
			return f, false
		}
	}
	return f, true
}

func cmdClientUnblock(c *command.Ctx) {
	m := mailUnblocked
	if len(c.Args) > 4 {
		command.WrongUse(c, "CLIENT")
		return
	}
	if len(c.Args) == 4 {
		switch {
		case command.EqualFold(c.Args[3], "timeout"):
		case command.EqualFold(c.Args[3], "error"):
			m = mailError
		default:
			c.Err("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
			return
		}
	}
	id, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	if s := serverOf(c).clients.get(id); s != nil {
		// Whoever withdraws the waiter decides how its wait ends: the key that it waits for, its timeout, or we.
		if w := s.snapshot().wait; w != nil && w.waiter.Withdraw() {
			s.post(m)
			c.W.Int(1)
			return
		}
	}
	c.W.Int(0)
}

func cmdClientHelp(c *command.Ctx) {
	command.HelpReply(c,
		"CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		"CACHING (YES|NO)", "    Track the keys of the next command (OPTIN mode), or do not (OPTOUT mode).",
		"GETNAME", "    Tell the name of this connection.",
		"GETREDIR", "    Tell which client gets the invalidation messages of this one.",
		"ID", "    Tell the number of this connection.",
		"INFO", "    Describe this connection.",
		"KILL <ip:port>", "    Close the connection from that address.",
		"KILL <option> <value> [<option> <value> [...]]", "    Close all connections to which all of the options apply:",
		"    * ID <client-id>", "      The one of that number.",
		"    * ADDR (<ip:port>|<unixsocket>:0)", "      Those from that address.",
		"    * LADDR (<ip:port>|<unixsocket>:0)", "      Those to that address of the server.",
		"    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)", "      Those of that type.",
		"    * USER <username>", "      Those of that user.",
		"    * MAXAGE <seconds>", "      Those that are at least so old.",
		"    * SKIPME (YES|NO)", "      Spare this connection (the default) or not.",
		"LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB)|ID <client-id> [<client-id> ...]]",
		"    Describe connections, all or those of a type or number.",
		"NO-EVICT (ON|OFF)", "    Protect this connection from being closed to save memory.",
		"NO-TOUCH (ON|OFF)", "    Leave alone when keys were last accessed.",
		"PAUSE <timeout> [WRITE|ALL]", "    Make all commands, or those that write, wait for <timeout> milliseconds.",
		"REPLY (ON|OFF|SKIP)", "    Choose whether commands are answered.",
		"SETINFO (LIB-NAME|LIB-VER) <value>", "    Tell which library this connection uses.",
		"SETNAME <name>", "    Name this connection.",
		"TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]] [OPTIN] [OPTOUT] [NOLOOP]",
		"    Hear of changes of keys that this connection has read.",
		"TRACKINGINFO", "    Tell how this connection tracks.",
		"UNBLOCK <clientid> [TIMEOUT|ERROR]", "    Release a client from the command in which it blocks.",
		"UNPAUSE", "    End a pause.",
		"HELP", "    Print this help.")
}
