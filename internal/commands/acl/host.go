package acl

import (
	"github.com/atomredis/atomredis/internal/clients/acl"
	"github.com/atomredis/atomredis/internal/command"
)

// Host is what the commands of this package need of the server.
type Host interface {
	command.Host
	Table() *command.Table
	Users() *acl.Users
}

// Client is what the commands need of the client.
type Client interface {
	command.Client
	// Account is the account of the client's user, nil for a client without a user, which may do everything.
	Account() *acl.Account
}

func hostOf(c *command.Ctx) Host        { return c.Host.(Host) }
func usersOf(c *command.Ctx) *acl.Users { return hostOf(c).Users() }
