package connection

import (
	"fmt"
	"math"

	"github.com/atomredis/atomredis/clients"
	"github.com/atomredis/atomredis/command"
	"github.com/atomredis/atomredis/resp"
)

func init() { command.Register(clientCommands) }

// clientCommands is CLIENT. What it says about tracking is in tracking.go.
var clientCommands = []*command.Command{
	{Name: "client", Group: "connection", Since: "2.4.0", Arity: -2,
		KeepsCaching: true,
		Summary:      "A container for commands about clients", Complexity: "Depends on the sub-command",
		Subs: []*command.Command{
			{Name: "client|caching", Group: "connection", Since: "6.0.0", Arity: 3,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Tracks, or does not track, the keys of the next command",
				Syntax:  "<YES | NO>", Complexity: "O(1)",
				Stateful: true, Do: clientCaching},
			{Name: "client|getname", Group: "connection", Since: "2.6.9", Arity: 2,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Returns the connection's name", Complexity: "O(1)", Do: clientGetname},
			{Name: "client|getredir", Group: "connection", Since: "6.0.0", Arity: 2,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary:    "Returns the ID of the client that gets this one's invalidations",
				Complexity: "O(1)", Do: clientGetredir},
			{Name: "client|help", Group: "connection", Since: "5.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				ACL:     command.CatConnection,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: clientHelp},
			{Name: "client|id", Group: "connection", Since: "5.0.0", Arity: 2,
				Flags:   command.NoScript | command.Loading | command.Stale,
				ACL:     command.CatConnection,
				Summary: "Returns the connection's ID", Complexity: "O(1)", Do: clientID},
			{Name: "client|info", Group: "connection", Since: "6.2.0", Arity: 2,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Shows the connection's state", Complexity: "O(1)", Do: clientInfo},
			{Name: "client|kill", Group: "connection", Since: "2.4.0", Arity: -3,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Disconnects clients",
				Syntax: "<ip:port | [ID client-id | TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB> | USER username | ADDR ip:port | LADDR ip:port | SKIPME <YES | NO> | MAXAGE maxage] " +
					"[[ID client-id | TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB> | USER username | ADDR ip:port | LADDR ip:port | SKIPME <YES | NO> | MAXAGE maxage] ...]>",
				Complexity: "O(N), where N is the number of clients", Do: clientKill},
			{Name: "client|list", Group: "connection", Since: "2.4.0", Arity: -2,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary:    "Lists connections with their state",
				Syntax:     "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
				Complexity: "O(N), where N is the number of clients", Do: clientList},
			{Name: "client|no-evict", Group: "connection", Since: "7.0.0", Arity: 3,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Exempts the connection from maxmemory-clients", Syntax: "<ON | OFF>", Complexity: "O(1)",
				Stateful: true, Do: clientNoEvict},
			{Name: "client|no-touch", Group: "connection", Since: "7.2.0", Arity: 3,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Stops the connection's commands from updating access times", Syntax: "<ON | OFF>",
				Complexity: "O(1)",
				Stateful:   true, Do: clientNoTouch},
			{Name: "client|pause", Group: "connection", Since: "2.9.50", Arity: -3,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Suspends commands of clients for some time",
				Syntax:  "timeout [WRITE | ALL]", Complexity: "O(1)", Do: clientPause},
			{Name: "client|reply", Group: "connection", Since: "3.2.0", Arity: 3,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Turns replies on or off", Syntax: "<ON | OFF | SKIP>", Complexity: "O(1)",
				Stateful: true, Do: clientReply},
			{Name: "client|setinfo", Group: "connection", Since: "7.2.0", Arity: 4,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Sets the client library's name or version", Syntax: "<LIB-NAME libname | LIB-VER libver>",
				Complexity: "O(1)",
				Stateful:   true, Do: clientSetinfo},
			{Name: "client|setname", Group: "connection", Since: "2.6.9", Arity: 3,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Names the connection", Syntax: "connection-name", Complexity: "O(1)",
				Stateful: true, Do: clientSetname},
			{Name: "client|tracking", Group: "connection", Since: "6.0.0", Arity: -3,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary:    "Turns invalidation messages for cached keys on or off",
				Syntax:     "<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
				Complexity: "O(N), where N is the number of prefixes",
				Stateful:   true, Do: clientTracking},
			{Name: "client|trackinginfo", Group: "connection", Since: "6.2.0", Arity: 2,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Shows how the connection's keys are tracked", Complexity: "O(1)", Do: clientTrackinginfo},
			{Name: "client|unblock", Group: "connection", Since: "5.0.0", Arity: -3,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Unblocks a client that waits in a blocking command",
				Syntax:  "client-id [TIMEOUT | ERROR]", Complexity: "O(1)", Do: clientUnblock},
			{Name: "client|unpause", Group: "connection", Since: "6.2.0", Arity: 2,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary:    "Ends CLIENT PAUSE",
				Complexity: "O(N), where N is the number of clients that wait", Do: clientUnpause},
		}},
}

func clientGetname(c *command.Ctx) {
	name := clientOf(c).Options().Name
	if name == "" {
		c.W.Null()
		return
	}
	c.W.BulkString(name)
}

func clientSetname(c *command.Ctx) {
	if !printable(c.Args[2]) {
		c.Err(errClientName)
		return
	}
	clientOf(c).Options().Name = string(c.Args[2])
	c.W.OK()
}

func clientSetinfo(c *command.Ctx) {
	options := clientOf(c).Options()
	var field *string
	switch {
	case command.EqualFold(c.Args[2], "lib-name"):
		field = &options.Library
	case command.EqualFold(c.Args[2], "lib-ver"):
		field = &options.LibraryVersion
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

func clientID(c *command.Ctx) { c.W.Int(clientOf(c).ID()) }

func clientNoEvict(c *command.Ctx) { onOff(c, &clientOf(c).Options().NoEvict) }
func clientNoTouch(c *command.Ctx) { onOff(c, &c.G.NoTouch) }

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

// clientReply answers ON alone.
func clientReply(c *command.Ctx) {
	replies := &clientOf(c).Options().Replies
	switch {
	case command.EqualFold(c.Args[2], "on"):
		*replies = clients.ReplyOn
		c.W.OK()
	case command.EqualFold(c.Args[2], "off"):
		*replies = clients.ReplyOff
	case command.EqualFold(c.Args[2], "skip"):
		if *replies != clients.ReplyOff {
			*replies = clients.SkipNext
		}
	default:
		c.Err(command.ErrSyntax)
	}
}

// typeArg reads a type of clients; if it is none an error is written and ok is false.
func typeArg(c *command.Ctx, arg []byte) (t clients.Type, ok bool) {
	if t, ok = clients.ParseType(arg); !ok {
		c.Err(command.Error(fmt.Sprintf("ERR Unknown client type '%s'", arg)))
	}
	return t, ok
}

func clientInfo(c *command.Ctx) {
	info := clientOf(c).Refresh(c.Cmd, c.Now())
	c.W.Verbatim("txt", string(info.AppendLine(nil, c.Now()))+"\n")
}

func clientList(c *command.Ctx) {
	typ := clients.Any
	switch {
	case len(c.Args) == 2:
	case len(c.Args) == 4 && command.EqualFold(c.Args[2], "type"):
		var ok bool
		if typ, ok = typeArg(c, c.Args[3]); !ok {
			return
		}
	case len(c.Args) > 3 && command.EqualFold(c.Args[2], "id"):
		listByID(c)
		return
	default:
		c.Err(command.ErrSyntax)
		return
	}
	clientOf(c).Refresh(c.Cmd, c.Now())
	var text []byte
	for info := range hostOf(c).Clients(c.Now()) {
		if typ == clients.Any || info.Type() == typ {
			text = append(info.AppendLine(text, c.Now()), '\n')
		}
	}
	c.W.Verbatim("txt", string(text))
}

// listByID is CLIENT LIST with the numbers of clients.
func listByID(c *command.Ctx) {
	var ids []int64
	for _, arg := range c.Args[3:] {
		id, ok := c.IntIn(arg, math.MinInt64, math.MaxInt64, "ERR Invalid client ID")
		if !ok {
			return
		}
		ids = append(ids, id)
	}
	clientOf(c).Refresh(c.Cmd, c.Now())
	var text []byte
	for _, id := range ids {
		if info, ok := hostOf(c).ClientByID(id, c.Now()); ok {
			text = append(info.AppendLine(text, c.Now()), '\n')
		}
	}
	c.W.Verbatim("txt", string(text))
}

func clientKill(c *command.Ctx) {
	f, ok := clients.Filter{Addr: c.Args[2], First: true}, true
	old := len(c.Args) == 3
	if !old {
		if f, ok = readKillFilter(c); !ok {
			return
		}
	}
	clientOf(c).Refresh(c.Cmd, c.Now())
	killed := hostOf(c).Kill(c.Client, &f, c.Now())
	switch {
	case !old:
		c.W.Int(int64(killed))
	case killed == 0:
		c.Err("ERR No such client")
	default:
		c.W.OK()
	}
}

// readKillFilter reads the options of CLIENT KILL; if there is something wrong with them an error is written and ok is
// false.
func readKillFilter(c *command.Ctx) (f clients.Filter, ok bool) {
	f.Except = clientOf(c).ID()
	for o := c.Options(2); o.Next(); {
		if !o.More() {
			c.Err(command.ErrSyntax)
			return f, false
		}
		switch {
		case o.Is("id"):
			if f.ID, ok = c.IntIn(o.Arg(), 1, math.MaxInt64, "ERR client-id should be greater than 0"); !ok {
				return f, false
			}
		case o.Is("type"):
			if f.Type, ok = typeArg(c, o.Arg()); !ok {
				return f, false
			}
		case o.Is("addr"):
			f.Addr = o.Arg()
		case o.Is("laddr"):
			f.Local = o.Arg()
		case o.Is("user"):
			if f.Account = hostOf(c).Users().Get(o.Arg()); f.Account == nil {
				c.Err(command.Error(fmt.Sprintf("ERR No such user '%s'", command.UntilNUL(o.Word()))))
				return f, false
			}
		case o.Is("skipme"):
			switch command.Lower(o.Arg()) {
			case "yes":
				f.Except = clientOf(c).ID()
			case "no":
				f.Except = 0
			default:
				c.Err(command.ErrSyntax)
				return f, false
			}
		case o.Is("maxage"):
			if f.MaxAge, ok = resp.ParseInt(o.Arg()); !ok {
				c.Err("ERR maxage is not an integer or out of range")
				return f, false
			}
			if f.MaxAge <= 0 {
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

func clientUnblock(c *command.Ctx) {
	withError := false
	if len(c.Args) > 4 {
		command.WrongUse(c, "CLIENT")
		return
	}
	if len(c.Args) == 4 {
		switch {
		case command.EqualFold(c.Args[3], "timeout"):
		case command.EqualFold(c.Args[3], "error"):
			withError = true
		default:
			c.Err("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
			return
		}
	}
	id, ok := c.Int(c.Args[2])
	if !ok {
		return
	}
	unblocked := int64(0)
	if hostOf(c).Unblock(id, withError) {
		unblocked = 1
	}
	c.W.Int(unblocked)
}

func clientPause(c *command.Ctx) {
	all := true
	if len(c.Args) > 4 {
		command.WrongUse(c, "CLIENT")
		return
	}
	if len(c.Args) == 4 {
		switch {
		case command.EqualFold(c.Args[3], "write"):
			all = false
		case command.EqualFold(c.Args[3], "all"):
		default:
			c.Err("ERR CLIENT PAUSE mode must be WRITE or ALL")
			return
		}
	}
	ms, ok := c.IntTimeout(c.Args[2])
	if !ok {
		return
	}
	hostOf(c).Pause(c.Now(), c.Now()+ms, all)
	c.W.OK()
}

func clientUnpause(c *command.Ctx) {
	hostOf(c).Unpause()
	c.W.OK()
}

func clientHelp(c *command.Ctx) {
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
