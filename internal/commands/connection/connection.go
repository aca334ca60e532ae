// Package connection has the commands about connections: AUTH, HELLO, SELECT and others, and CLIENT.
package connection

import (
	"fmt"
	"math"

	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/version"
)

func init() { command.Register(connectionCommands) }

var connectionCommands = []*command.Command{
	{Name: "auth", Group: "connection", Since: "1.0.0", Arity: -2,
		Flags:   command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy,
		ACL:     command.CatConnection,
		Summary: "Authenticates the connection", Syntax: "[username] password", Complexity: "O(1)",
		Secrets: command.AllFrom(1), Stateful: true, Do: auth},
	{Name: "echo", Group: "connection", Since: "1.0.0", Arity: 2, Flags: command.Loading | command.Stale | command.Fast,
		ACL:     command.CatConnection,
		Summary: "Returns its argument", Syntax: "message", Complexity: "O(1)", Do: echo},
	{Name: "hello", Group: "connection", Since: "6.0.0", Arity: -1,
		Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy,
		ACL:        command.CatConnection,
		Summary:    "Selects the protocol version and describes the server",
		Syntax:     "[protover [AUTH username password] [SETNAME clientname]]",
		Complexity: "O(1)",
		Secrets:    helloSecrets, Stateful: true, Do: hello},
	{Name: "ping", Group: "connection", Since: "1.0.0", Arity: -1, Flags: command.Fast, ACL: command.CatConnection,
		WhileSubscribed: true, TellsOfFailure: true,
		Summary: "Checks that the server answers", Syntax: "[message]", Complexity: "O(1)", Do: ping},
	{Name: "quit", Group: "connection", Since: "1.0.0", Arity: -1,
		Flags:           command.AllowBusy | command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth,
		ACL:             command.CatConnection,
		WhileSubscribed: true, Immediate: true,
		Summary: "Closes the connection", Complexity: "O(1)",
		Stateful: true, Do: quit},
	{Name: "reset", Group: "connection", Since: "6.2.0", Arity: 1,
		Flags:           command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy,
		ACL:             command.CatConnection,
		WhileSubscribed: true, Immediate: true,
		Summary: "Resets the connection to its initial state", Complexity: "O(1)",
		Stateful: true, Do: reset},
	{Name: "select", Group: "connection", Since: "1.0.0", Arity: 2, Flags: command.Loading | command.Stale | command.Fast,
		ACL:     command.CatConnection,
		Summary: "Selects the connection's database", Syntax: "index", Complexity: "O(1)",
		Databases: func([][]byte) []int { return []int{1} }, Selects: true,
		Stateful: true, Do: selectDB, Repeated: true},
}

// helloSecrets calls fn with the indices of the user's name and the password.
func helloSecrets(args [][]byte, fn func(i int)) {
	for i := 2; i+2 < len(args); i++ {
		if command.EqualFold(args[i], "auth") {
			fn(i + 1)
			fn(i + 2)
			i += 2
		}
	}
}

const (
	errWrongPass  command.Error = "WRONGPASS invalid username-password pair or user is disabled."
	errNoPassword command.Error = "ERR AUTH <password> called without any password configured for the default user. Are you sure " +
		"your configuration is correct?"
	errNotAuthed command.Error = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> " +
		"AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
	errProtover   command.Error = "ERR Protocol version is not an integer or out of range"
	errNoProto    command.Error = "NOPROTO unsupported protocol version"
	errClientName command.Error = "ERR Client names cannot contain spaces, newlines or special characters."
)

func auth(c *command.Ctx) {
	user, password := []byte(acl.DefaultName), c.Args[1]
	switch len(c.Args) {
	case 2:
		if !hostOf(c).Users().Default().User().NeedsPassword() {
			c.Err(errNoPassword)
			return
		}
	case 3:
		user, password = c.Args[1], c.Args[2]
	default:
		c.Err(command.ErrSyntax)
		return
	}
	if !clientOf(c).Authenticate(user, password) {
		c.Err(errWrongPass)
		return
	}
	c.W.OK()
}

func echo(c *command.Ctx) { c.W.Bulk(c.Args[1]) }

func hello(c *command.Ctx) {
	client := clientOf(c)
	proto := c.W.Proto
	if len(c.Args) > 1 {
		n, ok := c.IntIn(c.Args[1], math.MinInt64, math.MaxInt64, errProtover)
		if !ok {
			return
		}
		if n != 2 && n != 3 {
			c.Err(errNoProto)
			return
		}
		proto = int(n)
	}
	var user, password, name []byte
	for o := c.Options(2); o.Next(); {
		switch {
		case o.Is("auth") && o.Left() >= 2:
			user, password = o.Arg(), o.Arg()
		case o.Is("setname") && o.More():
			if name = o.Arg(); !printable(name) {
				c.Err(errClientName)
				return
			}
		default:
			c.Err(command.Error(fmt.Sprintf("ERR Syntax error in HELLO option '%s'", o.Word())))
			return
		}
	}
	if user != nil && !client.Authenticate(user, password) {
		c.Err(errWrongPass)
		return
	}
	if !client.Authenticated() {
		c.Err(errNotAuthed)
		return
	}
	if name != nil {
		client.Options().Name = string(name)
	}
	client.SetProtocol(proto)

	c.W.Map(7)
	c.W.BulkString("server")
	c.W.BulkString("redis")
	c.W.BulkString("version")
	c.W.BulkString(version.Redis)
	c.W.BulkString("proto")
	c.W.Int(int64(proto))
	c.W.BulkString("id")
	c.W.Int(client.ID())
	c.W.BulkString("mode")
	c.W.BulkString(hostOf(c).Mode())
	c.W.BulkString("role")
	c.W.BulkString(hostOf(c).Role())
	c.W.BulkString("modules")
	command.WriteModules(c.W)
}

func ping(c *command.Ctx) {
	if len(c.Args) > 2 {
		c.Err(command.WrongArity(c.Cmd))
		return
	}
	if clientOf(c).Subscriptions().Any() && c.W.Proto == 2 {
		c.W.Array(2)
		c.W.BulkString("pong")
		if len(c.Args) == 1 {
			c.W.BulkString("")
			return
		}
	} else if len(c.Args) == 1 {
		c.W.Simple("PONG")
		return
	}
	c.W.Bulk(c.Args[1])
}

func quit(c *command.Ctx) {
	c.W.OK()
	clientOf(c).Quit()
}

func reset(c *command.Ctx) {
	clientOf(c).Reset()
	c.W.Simple("RESET")
}

func selectDB(c *command.Ctx) {
	db, ok := c.Int(c.Args[1])
	switch {
	case !ok:
		return
	case db < math.MinInt32 || db > math.MaxInt32:
		c.Err("ERR value is out of range, value must between -2147483648 and 2147483647")
		return
	case db != 0 && c.ClusterMode() && c.Databases() == 1:
		c.Err("ERR SELECT is not allowed in cluster mode")
		return
	case db < 0 || db >= int64(c.Databases()):
		c.Err(command.ErrDBRange)
		return
	}
	c.DB = int(db)
	clientOf(c).Select(c.DB)
	c.W.OK()
}

// printable reports whether a name has only printable ASCII characters and no spaces.
func printable(name []byte) bool {
	for _, b := range name {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}
