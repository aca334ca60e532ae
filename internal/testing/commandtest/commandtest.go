// Package commandtest lets tests call the handlers of commands without a server.
package commandtest

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/engine/hashes"
	"github.com/atomredis/atomredis/engine/lists"
	"github.com/atomredis/atomredis/engine/sets"
	"github.com/atomredis/atomredis/engine/streams"
	"github.com/atomredis/atomredis/engine/zsets"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/persist/rdb"
	"github.com/atomredis/atomredis/resp"
)

// Ctx is a command.Ctx with a keyspace of its own, which its guard holds completely. Its time is 1,000,000 ms.
type Ctx struct {
	command.Ctx
	Guard engine.Guard
	Out   resp.Writer
}

// table has the commands that the test has registered by its imports.
var table = sync.OnceValue(command.NewTable)

// New returns a Ctx that the end of the test closes.
func New(t testing.TB) *Ctx {
	ks := engine.New(engine.Options{})
	c := &Ctx{}
	c.G, c.W, c.Client, c.Host = &c.Guard, &c.Out, client{}, host{ks}
	c.Out.Proto = 2
	c.Guard.Lock(ks, engine.AllShards, 1_000_000)
	t.Cleanup(func() {
		c.Guard.Unlock()
		ks.Close()
	})
	return c
}

// Call calls the handler of cmd with the given words, the name among them, and returns its reply.
func (c *Ctx) Call(cmd *command.Command, words ...string) string {
	c.Args = nil
	for _, w := range words {
		c.Args = append(c.Args, []byte(w))
	}
	c.Cmd = cmd
	c.Out.Buf = c.Out.Buf[:0]
	cmd.Do(&c.Ctx)
	return string(c.Out.Buf)
}

// Line is Call for words between spaces; the table says which command they name.
func (c *Ctx) Line(t testing.TB, line string) string {
	words := strings.Fields(line)
	var args [][]byte
	for _, w := range words {
		args = append(args, []byte(w))
	}
	cmd, _ := table().LookupEither(args)
	require.NotNil(t, cmd, line)
	return c.Call(cmd, words...)
}

// Bulks returns an encoded array of strings.
func Bulks(texts ...string) string {
	var w resp.Writer
	w.Array(len(texts))
	for _, text := range texts {
		w.BulkString(text)
	}
	return string(w.Buf)
}

// Named returns the entry of a command; the test imports the package that registers it.
func Named(t testing.TB, name string) *command.Command {
	cmd := table().Original(name)
	require.NotNil(t, cmd, name)
	return cmd
}

// client may do everything, and cannot wait.
type client struct{}

func (client) Block(*command.Ctx, command.Block) { panic("commandtest: a client that cannot wait") }
func (client) Await(*command.Ctx, int64, command.Reply, func()) func(command.Reply) {
	panic("commandtest: a client that cannot wait")
}
func (client) Offload(*command.Ctx, command.Way) bool          { return false }
func (client) State(command.ServiceID) any                     { return nil }
func (client) After(func(int64))                               {}
func (client) Rights() command.Rights                          { return nil }
func (client) MayReadAll(*command.Command, [][]byte) bool      { return true }
func (client) MayRead(*command.Command, []byte, int) bool      { return true }
func (client) MayKeep([]byte) bool                             { return false }
func (client) Kept(g *engine.Guard, e *engine.Entry, _ []byte) {}

// host is a server with the settings that a server has unless told otherwise.
type host struct{ ks *engine.Keyspace }

func (h host) Keyspace() *engine.Keyspace      { return h.ks }
func (host) Clustered() bool                   { return false }
func (host) MayFlush() command.Error           { return "" }
func (host) Foreign() func([]byte) bool        { return nil }
func (host) ForeignLen(*engine.Guard, int) int { return 0 }
func (host) Writable(*engine.Guard) bool       { return true }
func (host) MaxBulk() int                      { return 512 << 20 }
func (host) HashLimits() hashes.Limits         { return hashes.Limits{Entries: 512, Value: 64} }
func (host) ListLimit() lists.Limit            { return lists.DefaultLimit }
func (host) SetLimits() sets.Limits {
	return sets.Limits{IntsetEntries: 512, ListpackEntries: 128, ListpackValue: 64}
}
func (host) ZSetLimits() zsets.Limits                  { return zsets.DefaultLimits }
func (host) StreamLimits() streams.Limits              { return streams.DefaultLimits }
func (host) HyperLogLogSparse() int                    { return 3000 }
func (host) RDBLimits() *rdb.Limits                    { return &rdb.Limits{} }
func (host) Service(command.ServiceID) command.Service { return nil }
func (host) Follows() bool                             { return false }
func (host) Loading() bool                             { return false }
func (host) Directive(string) string                   { return "" }
func (host) Log() *slog.Logger                         { return slog.New(slog.DiscardHandler) }
func (host) PayloadChecked()                           {}
