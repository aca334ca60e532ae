package door

import (
	"context"
	"strconv"

	"github.com/atomredis/atomredis/internal/values"
	"github.com/atomredis/atomredis/resp"
)

// Client executes commands in a session. Arguments may be strings, []byte, [][]byte (one argument per element),
// numbers, booleans (1 and 0), times and durations, slices, maps, structs with tags `redis:"name"`,
// encoding.BinaryMarshaler and encoding.TextMarshaler. The client does not keep them.
//
// One goroutine uses a Client at a time; any goroutine may call Settle, Admitted, Close and Done. A peer with several
// commands in flight needs several clients if one of the commands may block.
type Client struct{ s Session }

// NewClient returns a client that executes commands in s, and ends it with Close.
func NewClient(s Session) Client { return Client{s} }

// Do executes a command and returns its reply. The error is a resp.Error if the reply is one. Blocking commands wait
// until ctx ends; then they have taken nothing, or return what they have taken. Commands that change the state of the
// connection are refused with ErrNeedsConnection.
func (c *Client) Do(ctx context.Context, args ...any) (resp.Reply, error) {
	e := values.NewEncoder()
	defer e.Release()
	if err := e.Add(args); err != nil {
		return resp.Reply{}, err
	}
	err := c.s.Run(ctx, e.Commands()[0])
	return c.reply(err)
}

// DoAhead is Do without the wait until everything that the reply reports is durable, so that the client's next command
// can begin. The door must not send the reply, not even an error reply, before Settle has returned position or a later
// one. Position 0 means that there is nothing to wait for.
func (c *Client) DoAhead(ctx context.Context, args ...any) (r resp.Reply, position uint64, err error) {
	e := values.NewEncoder()
	defer e.Release()
	if err := e.Add(args); err != nil {
		return r, 0, err
	}
	err = c.s.Run(ctx, e.Commands()[0])
	raw, position, failure := c.s.Ahead()
	if err == nil {
		err = failure
	}
	if err != nil {
		return r, position, err
	}
	r = resp.NewReply(raw)
	return r, position, r.Err()
}

// Settle waits until the replies of DoAhead up to a position are durable, and returns the position up to which all are.
// After an error the door must send none of these replies.
func (c *Client) Settle(position uint64) (settled uint64, err error) { return c.s.Settle(position) }

// Control is Do for commands that change the state of the connection, for doors whose peers send commands. It is not
// for commands that begin transactions or subscriptions, or change the protocol.
func (c *Client) Control(ctx context.Context, args ...any) (resp.Reply, error) {
	e := values.NewEncoder()
	defer e.Release()
	if err := e.Add(args); err != nil {
		return resp.Reply{}, err
	}
	return c.reply(c.s.Control(ctx, e.Commands()[0]))
}

// control is Control without a reply.
func (c *Client) control(ctx context.Context, args ...[]byte) error {
	_, err := c.reply(c.s.Control(ctx, args))
	return err
}

// reply returns the reply of the last command. err is the error of running it; then reply discards what the command has
// left behind.
func (c *Client) reply(err error) (resp.Reply, error) {
	raw, failure := c.s.Flush()
	if err == nil {
		err = failure
	}
	if err != nil {
		return resp.Reply{}, err
	}
	r := resp.NewReply(raw)
	return r, r.Err()
}

// Batch is a list of commands. The zero value is empty.
type Batch struct{ e values.Encoder }

// Add appends a command. []byte arguments must not be changed before the batch is executed. After an error the batch is
// unchanged.
func (b *Batch) Add(args ...any) error { return b.e.Add(args) }

// Len returns the number of commands.
func (b *Batch) Len() int { return b.e.Len() }

// Reset empties the batch for another use.
func (b *Batch) Reset() { b.e.Reset() }

// Pipeline executes commands one after the other and returns their replies when all have come. Commands of other
// clients may run between them. Error replies are among the replies; the error says why there are fewer replies than
// commands.
func (c *Client) Pipeline(ctx context.Context, b *Batch) ([]resp.Reply, error) {
	var err error
	for _, args := range b.e.Commands() {
		if err = c.s.Run(ctx, args); err != nil {
			break
		}
	}
	raw, failure := c.s.Flush()
	if err == nil {
		err = failure
	}
	replies := make([]resp.Reply, 0, b.Len())
	for len(raw) > 0 {
		r, rest, malformed := resp.NextReply(raw)
		if malformed != nil {
			return replies, malformed
		}
		replies, raw = append(replies, r), rest
	}
	return replies, err
}

// Watch makes the next transaction fail if one of the keys changes before it is executed.
func (c *Client) Watch(ctx context.Context, keys ...string) error {
	args := [][]byte{[]byte("WATCH")}
	for _, k := range keys {
		args = append(args, []byte(k))
	}
	return c.control(ctx, args...)
}

// Unwatch forgets all watched keys.
func (c *Client) Unwatch() { c.s.Discard() }

// Transact executes commands as one atomic step, and ends all watches.
//
// The error is ErrConflict if a watched key has changed. After an error nothing was executed, except that after
// ErrClosed, ErrKilled and ErrNotDurable the outcome is unknown. Error replies of single commands are among the
// replies.
func (c *Client) Transact(ctx context.Context, b *Batch) ([]resp.Reply, error) {
	raw, err := c.transact(ctx, b.e.Commands())
	if err != nil {
		c.s.Discard()
		return nil, err
	}
	var r resp.Reply
	for range 1 + b.Len() { // the replies of MULTI and QUEUED
		if r, raw, err = resp.NextReply(raw); err == nil {
			err = r.Err()
		}
		if err != nil {
			return nil, err
		}
	}
	r = resp.NewReply(raw)
	if r.IsNull() {
		return nil, ErrConflict
	}
	return r.Slice()
}

// transact returns the replies of MULTI, the commands and EXEC.
func (c *Client) transact(ctx context.Context, commands [][][]byte) ([]byte, error) {
	if err := c.s.Control(ctx, [][]byte{[]byte("MULTI")}); err != nil {
		return nil, err
	}
	for _, args := range commands {
		if err := c.s.Run(ctx, args); err != nil {
			return nil, err
		}
	}
	if err := c.s.Control(ctx, [][]byte{[]byte("EXEC")}); err != nil {
		return nil, err
	}
	return c.s.Flush()
}

// Permitted returns nil if the client's user may execute a command, and otherwise the resp.Error with which it would be
// refused. It is for requests that must be answered before their command is executed.
func (c *Client) Permitted(args ...any) error {
	e := values.NewEncoder()
	defer e.Release()
	if err := e.Add(args); err != nil {
		return err
	}
	return c.s.Permitted(e.Commands()[0])
}

// Auth makes the client act as a user.
func (c *Client) Auth(ctx context.Context, user, password string) error {
	return c.control(ctx, []byte("AUTH"), []byte(user), []byte(password))
}

// SetName gives the client a name, which CLIENT LIST shows.
func (c *Client) SetName(ctx context.Context, name string) error {
	return c.control(ctx, []byte("CLIENT"), []byte("SETNAME"), []byte(name))
}

// Select chooses the database for the commands that follow.
func (c *Client) Select(ctx context.Context, db int) error {
	return c.control(ctx, []byte("SELECT"), strconv.AppendInt(nil, int64(db), 10))
}

// UseRESP2 makes the replies of further commands those of RESP2, which has flat arrays in place of maps and strings in
// place of floating-point numbers. Package resp reads both. The client must be admitted.
func (c *Client) UseRESP2(ctx context.Context) error {
	return c.control(ctx, []byte("HELLO"), []byte("2"))
}

// SetUnobserved(true) keeps further commands out of the slow log, the latency monitor and the latencies of commands;
// false ends that. It is for monitoring, which would otherwise measure itself.
func (c *Client) SetUnobserved(yes bool) { c.s.SetUnobserved(yes) }

// Stranger limits the bytes that a door buffers for a peer whose client is not Admitted.
const Stranger = 64 << 10

// Admitted reports whether the client may execute commands: it has authenticated, or needs no password. Until then a
// peer gets no more memory than Stranger.
func (c *Client) Admitted() bool { return c.s.Admitted() }

// Done is closed when the client has ended: by Close, by the end of the server, or by CLIENT KILL. The door then closes
// the peer's connection and the client. A client that ends with a reply, for example because it kills itself, has ended with the
// next command, so that the peer gets the reply.
func (c *Client) Done() <-chan struct{} { return c.s.Done() }

// Undone reports whether the client has ended with ErrUndone, and was not killed.
func (c *Client) Undone() bool { return c.s.Undone() }

// Close ends the client. A waiting command takes nothing and ends with ErrClosed; a running command ends first.
func (c *Client) Close() { c.s.Release() }
