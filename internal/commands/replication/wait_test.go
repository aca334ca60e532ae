package replication

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/internal/replication"
	"github.com/atomredis/atomredis/resp"
)

// losing is a server that loses the lead once a command has seen that it leads: nobody will end the command's wait.
type losing struct{ Host }

func (losing) Master() (link replication.Link, ok bool)                               { return link, false }
func (losing) Follows() bool                                                          { return true }
func (losing) Acked(replication.Written, bool) int64                                  { return 0 }
func (losing) AwaitAcked(Client, replication.Written, int64, bool, func(acked int64)) {}
func (losing) HasJournal() bool                                                       { return true }
func (losing) Durable() bool                                                          { return false }
func (losing) AwaitDurable(func())                                                    {}

// waiting is a client that waits, and keeps its reply.
type waiting struct {
	Client
	w resp.Writer
}

func (*waiting) Wrote() (w replication.Written) { return w }

func (c *waiting) Await(*command.Ctx, int64, command.Reply, func()) func(command.Reply) {
	return func(reply command.Reply) { reply(&c.w) }
}

func TestWaitsThatBeginAsTheLeadIsLostEnd(t *testing.T) {
	for _, args := range [][]string{{"WAIT", "1", "0"}, {"WAITAOF", "0", "1", "0"}, {"WAITAOF", "1", "0", "0"}} {
		client := new(waiting)
		c := &command.Ctx{G: new(engine.Guard), Client: client, Host: losing{}, W: new(resp.Writer)}
		for _, arg := range args {
			c.Args = append(c.Args, []byte(arg))
		}
		if args[0] == "WAIT" {
			wait(c)
		} else {
			waitaof(c)
		}
		require.Empty(t, c.W.Buf)
		require.Equal(t, "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n",
			string(client.w.Buf), "%q", args)
	}
}
