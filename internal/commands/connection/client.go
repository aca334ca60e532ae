package connection

import (
	"fmt"
	"iter"

	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/command"
)

func init() { command.Register(clientCommands) }

// clientCommands is CLIENT; its sub-commands about tracking are in tracking.go.
var clientCommands = []*command.Command{
	{Name: "client", Group: "connection", Since: "2.4.0", Arity: -2,
		KeepsCaching: true,
		Summary:      "A container for commands about clients", Complexity: "Depends on the sub-command",
		Subs: []*command.Command{
			{Name: "client|caching", Group: "connection", Since: "6.0.0", Arity: 3, AtLeader: true,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Tracks, or does not track, the keys of the next command",
				Syntax:  "<YES | NO>", Complexity: "O(1)",
				Stateful: true, Do: clientCaching},
			{Name: "client|capa", Group: "connection", Since: "8.0.0", Arity: -3,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Declares what the client is capable of", Syntax: "capability [capability ...]",
				Complexity: "O(N), where N is the number of capabilities",
				Stateful:   true, Do: clientCapa},
			{Name: "client|getname", Group: "connection", Since: "2.6.9", Arity: 2,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Returns the connection's name", Complexity: "O(1)", Do: clientGetname},
			{Name: "client|getredir", Group: "connection", Since: "6.0.0", Arity: 2, AtLeader: true,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary:    "Returns the ID of the client that gets this one's invalidations",
				Complexity: "O(1)", Do: clientGetredir},
			{Name: "client|help", Group: "connection", Since: "5.0.0", Arity: 2, Flags: command.Loading | command.Stale,
				ACL:     command.CatConnection,
				Summary: "Lists the subcommands", Complexity: "O(1)", Do: clientHelp},
			{Name: "client|id", Group: "connection", Since: "5.0.0", Arity: 2, AtLeader: true,
				Flags:   command.NoScript | command.Loading | command.Stale,
				ACL:     command.CatConnection,
				Summary: "Returns the connection's ID", Complexity: "O(1)", Do: clientID},
			{Name: "client|import-source", Group: "connection", Since: "8.1.0", Arity: 3,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Lets the connection see keys that have expired, in import mode", Syntax: "<ON | OFF>",
				Complexity: "O(1)",
				Stateful:   true, Do: clientImportSource},
			{Name: "client|info", Group: "connection", Since: "6.2.0", Arity: 2, AtLeader: true,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Shows the connection's state", Complexity: "O(1)", Do: clientInfo},
			{Name: "client|kill", Group: "connection", Since: "2.4.0", Arity: -3, AtLeader: true,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary:    "Disconnects clients",
				Syntax:     killSyntax,
				Complexity: "O(N), where N is the number of clients", Do: clientKill},
			{Name: "client|list", Group: "connection", Since: "2.4.0", Arity: -2, AtLeader: true,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary:    "Lists connections with their state",
				Syntax:     listSyntax,
				Complexity: "O(N), where N is the number of clients", Do: clientList},
			{Name: "client|no-evict", Group: "connection", Since: "7.0.0", Arity: 3, AtLeader: true,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Exempts the connection from maxmemory-clients", Syntax: "<ON | OFF>", Complexity: "O(1)",
				Stateful: true, Do: clientNoEvict},
			{Name: "client|no-touch", Group: "connection", Since: "7.2.0", Arity: 3, AtLeader: true,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Stops the connection's commands from updating access times", Syntax: "<ON | OFF>",
				Complexity: "O(1)",
				Stateful:   true, Do: clientNoTouch},
			{Name: "client|pause", Group: "connection", Since: "2.9.50", Arity: -3, AtLeader: true,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Suspends commands of clients for some time",
				Syntax:  "timeout [WRITE | ALL]", Complexity: "O(1)", Do: clientPause},
			{Name: "client|reply", Group: "connection", Since: "3.2.0", Arity: 3, AtLeader: true,
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
			{Name: "client|tracking", Group: "connection", Since: "6.0.0", Arity: -3, AtLeader: true,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary:    "Turns invalidation messages for cached keys on or off",
				Syntax:     "<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
				Complexity: "O(N), where N is the number of prefixes",
				Stateful:   true, Do: clientTracking},
			{Name: "client|trackinginfo", Group: "connection", Since: "6.2.0", Arity: 2, AtLeader: true,
				Flags: command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Shows how the connection's keys are tracked", Complexity: "O(1)", Do: clientTrackinginfo},
			{Name: "client|unblock", Group: "connection", Since: "5.0.0", Arity: -3, AtLeader: true,
				Flags: command.Admin | command.NoScript | command.Loading | command.Stale, ACL: command.CatConnection,
				Summary: "Unblocks a client that waits in a blocking command",
				Syntax:  "client-id [TIMEOUT | ERROR]", Complexity: "O(1)", Do: clientUnblock},
			{Name: "client|unpause", Group: "connection", Since: "6.2.0", Arity: 2, AtLeader: true,
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

// clientCapa ignores unknown capabilities.
func clientCapa(c *command.Ctx) {
	for _, capability := range c.Args[2:] {
		if command.EqualFold(capability, "redirect") {
			clientOf(c).Options().Redirect = true
		}
	}
	c.W.OK()
}

func clientID(c *command.Ctx) { c.W.Int(clientOf(c).ID()) }

func clientNoEvict(c *command.Ctx) { onOff(c, &clientOf(c).Options().NoEvict) }
func clientNoTouch(c *command.Ctx) { onOff(c, &c.G.NoTouch) }

func clientImportSource(c *command.Ctx) {
	if c.Host.Directive("import-mode") != "yes" {
		c.Err("ERR Server is not in import mode")
		return
	}
	onOff(c, &c.G.SeesExpired)
}

// onOff sets a switch by the argument ON or OFF.
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

// clientReply replies only to ON.
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

// typeArg reads a type of clients; if it is invalid, it writes an error and ok is false.
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
	f, ok := listFilter(c)
	if !ok {
		return
	}
	clientOf(c).Refresh(c.Cmd, c.Now())
	var text []byte
	for info := range chosen(c, &f) {
		text = append(info.AppendLine(text, c.Now()), '\n')
	}
	c.W.Verbatim("txt", string(text))
}

// chosen returns the clients that the filter chooses. If the filter lists IDs, they come in this order.
func chosen(c *command.Ctx, f *clients.Filter) iter.Seq[*clients.Info] {
	host, now := hostOf(c), c.Now()
	all := host.Clients(now)
	if len(f.With.IDs) > 0 {
		all = func(yield func(*clients.Info) bool) {
			for _, id := range f.With.IDs {
				if info, ok := host.ClientByID(id, now); ok && !yield(&info) {
					return
				}
			}
		}
	}
	return func(yield func(*clients.Info) bool) {
		for info := range all {
			if f.Matches(info, now) && !yield(info) {
				return
			}
		}
	}
}

func clientKill(c *command.Ctx) {
	f, ok := clients.Filter{With: clients.Criteria{Addr: c.Args[2]}, First: true}, true
	old := len(c.Args) == 3
	if !old {
		if f, ok = killFilter(c); !ok {
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
		"CAPA <capability> [<capability> ...]", "    Declare that this connection is capable of something: \"redirect\".",
		"GETNAME", "    Tell the name of this connection.",
		"GETREDIR", "    Tell which client gets the invalidation messages of this one.",
		"ID", "    Tell the number of this connection.",
		"IMPORT-SOURCE (ON|OFF)", "    See keys that have expired, while import-mode is on.",
		"INFO", "    Describe this connection.",
		"KILL <ip:port>", "    Close the connection from that address.",
		"KILL <option> <value> [<option> <value> [...]]", "    Close all connections to which all of the options apply:",
		"    * ID <client-id> [<client-id> ...]", "      Those of these numbers.",
		"    * ADDR (<ip:port>|<unixsocket>:0)", "      Those from that address.",
		"    * LADDR (<ip:port>|<unixsocket>:0)", "      Those to that address of the server.",
		"    * IP <ip>", "      Those from that address, whatever the port.",
		"    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)", "      Those of that type.",
		"    * USER <username>", "      Those of that user.",
		"    * NAME <name>, LIB-NAME <name>, LIB-VER <version>", "      Those with that name, of that library, or of that version of it.",
		"    * DB <db>", "      Those that use that database.",
		"    * FLAGS <letters>, CAPA <letters>", "      Those that have all of these flags, or capabilities.",
		"    * NOT-<option> <value>", "      Those to which that option, one of the above, does not apply.",
		"    * MAXAGE <seconds>", "      Those that are at least so old.",
		"    * IDLE <seconds>", "      Those that have sent nothing for so long.",
		"    * SKIPME (YES|NO)", "      Spare this connection (the default) or not.",
		"LIST [<option> <value> [<option> <value> [...]]]",
		"    Describe connections, all or those to which all of the options of KILL apply; this one is not spared.",
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
