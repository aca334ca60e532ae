package servertest

import (
	"log/slog"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/config"
	_ "github.com/atomredis/atomredis/internal/durable" // storage and groups
	"github.com/atomredis/atomredis/internal/testing/commandtest"
	"github.com/atomredis/atomredis/internal/transport"
	"github.com/atomredis/atomredis/persist/disk"
	"github.com/atomredis/atomredis/server"
)

// Durable is a server without sockets whose data is on a file system, and a client of it.
type Durable struct {
	*server.Server
	t      require.TestingT
	log    commandtest.PanicLog
	client transport.Session
}

// OpenDurable starts a server that syncs each change and in which values soon become large. settings are as for Start.
// The test calls End, Close or Abandon.
func OpenDurable(t require.TestingT, fs disk.FS, settings ...string) *Durable {
	conf := config.NewConfig()
	set(t, conf, append([]string{"port", "0", "dir", "/db", "save", "", "appendonly", "yes", "appendfsync", "always",
		"checkpoint-size", "1mb", "hash-max-listpack-entries", "4", "list-max-listpack-size", "4",
		"stream-node-max-entries", "4", "zset-max-listpack-entries", "4", "set-max-intset-entries", "4",
		"databases", "4"}, settings...))
	d := &Durable{t: t}
	var err error
	d.Server, err = server.New(conf, slog.New(&d.log), server.Options{FS: fs, Goroutines: true})
	require.NoError(t, err)
	require.NoError(t, d.Start())
	d.Reconnect()
	return d
}

// Reconnect closes the connection and opens a new one.
func (d *Durable) Reconnect() {
	if d.client != nil {
		d.client.Close()
	}
	d.client = d.TransportHost().Open(transport.Peer{Addr: "127.0.0.1:1", Local: "127.0.0.1:2"}, func() {})
}

// Another returns another client of the server. The test calls Disconnect.
func (d *Durable) Another() *Durable {
	another := &Durable{Server: d.Server, t: d.t}
	another.Reconnect()
	return another
}

// Disconnect closes the connection.
func (d *Durable) Disconnect() { d.client.Close() }

// Call returns the reply to a command once it may be sent.
func (d *Durable) Call(args ...string) string {
	host := d.TransportHost()
	d.client.Input(commandtest.Request(args...), host.Now())
	for {
		host.CommitSoon()
		d.client.Advance(host.Now())
		n, out := d.client.Sendable(), string(d.client.Output())
		require.False(d.t, d.client.Closing(), args)
		if n > 0 && n == len(out) {
			d.client.SetOutput(nil)
			return out
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// Line is Call for words separated by spaces.
func (d *Durable) Line(command string) string { return d.Call(strings.Fields(command)...) }

// Lines sends commands and ignores their replies.
func (d *Durable) Lines(commands ...string) {
	for _, command := range commands {
		d.Line(command)
	}
}

// Expect sends a command that must have the given reply.
func (d *Durable) Expect(reply, command string) {
	require.Equal(d.t, reply, d.Line(command), command)
}

// Await repeats a command until it has the given reply.
func (d *Durable) Await(reply, command string) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if d.Line(command) == reply {
			return
		}
	}
	d.Expect(reply, command)
}

// End closes the server with a checkpoint, and fails the test if a handler has panicked.
func (d *Durable) End() { d.end(d.Close) }

// Drop closes the server without a checkpoint: later changes are only in the journal.
func (d *Durable) Drop() { d.end(d.Abandon) }

func (d *Durable) end(shut func() error) {
	d.client.Close()
	require.NoError(d.t, shut())
	require.Empty(d.t, d.log.Found)
}
