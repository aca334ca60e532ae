package door

import (
	"context"
	"strconv"

	"github.com/atomredis/atomredis/internal/values"
	"github.com/atomredis/atomredis/resp"
)

// Client executes commands in a session. Arguments may be of any type that can be sent: strings, []byte, [][]byte (as
// many arguments), numbers, booleans (1 and 0), times and durations, slices, maps, structs with tags `redis:"name"`,
// encoding.BinaryMarshaler and encoding.TextMarshaler. They are not kept.
//
// One goroutine uses a Client at a time; Settle, Admitted, Close and Done may be called by any. A peer that has several commands
// in flight needs several clients if one of them may block.
type Client struct{ s Session }

// NewClient returns a client that executes commands in s, and ends it with Close.
func NewClient(s Session) Client { return Client{s} }

// Do executes a command and returns its reply. The error is a resp.Error if the reply is one. Blocking commands wait
// as long as ctx lasts; when it ends they have taken nothing, or return what they have taken. Commands that change
// the state of the connection are refused with ErrNeedsConnection.
func (c *Client) Do(ctx context.Context, args ...any) (resp.Reply, error) {
	e := values.NewEncoder()
	defer e.Release()
	if err := e.Add(args); err != nil {
		return resp.Reply{}, err
	}
	err := c.s.Run(ctx, e.Commands()[0])
	return c.reply(err)
}

// DoAhead is Do without the wait for what the reply tells to be durable, so that the client's next command can begin:
// nobody outside may be told of the reply, also of one that is an error, before Settle has returned position or a later
// one; 0 is nothing to wait for.
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

// Settle waits until what DoAhead has returned up to a position is durable, and returns up to which one everything is.
// With an error nobody may be told of any of it.
func (c *Client) Settle(position uint64) (settled uint64, err error) { return c.s.Settle(position) }

// Control is Do for commands that change the state of the connection, for doors whose peers send commands. Those that
// begin transactions or subscriptions, or change the protocol, are not for it.
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

// reply returns the reply of the command that was run last. err is that of running it, after which nothing must be
// left for the next command.
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

// Add appends a command. []byte arguments must not be changed before the batch is executed. After an error the batch
// is as it was before.
func (b *Batch) Add(args ...any) error { return b.e.Add(args) }

// Len returns how many commands there are.
func (b *Batch) Len() int { return b.e.Len() }

// Reset empties the batch, to be used again.
func (b *Batch) Reset() { b.e.Reset() }

// Pipeline executes commands one after the other, others' commands possibly between them, and returns their replies
// when all are there. Error replies are among them; the error says why there are fewer replies than commands.
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

// Transact executes commands all at once: nobody sees a part of it, and nobody's commands come between. Nothing is
// watched any more when it returns.
//
// The error is ErrConflict if a watched key has changed; then, and with every other error, nothing was executed,
// unless it is ErrClosed, ErrKilled or ErrNotDurable, with which that is not known. Error replies of single commands
// are among the replies.
func (c *Client) Transact(ctx context.Context, b *Batch) ([]resp.Reply, error) {
	raw, err := c.transact(ctx, b.e.Commands())
	if err != nil {
		c.s.Discard()
		return nil, err
	}
	var r resp.Reply
	for range 1 + b.Len() { // what MULTI and the queued commands say
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

// transact returns what MULTI, the commands and EXEC reply.
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

// Permitted returns the error with which a command would be refused because of the client's user, a resp.Error, or nil
// if the user may execute it: for requests whose answer must be sent before the command is executed.
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

// SetUnobserved keeps the commands that follow out of the slow log, the latency monitor and the latencies of commands, or
// ends that: for who looks after the server and would see himself there.
func (c *Client) SetUnobserved(yes bool) { c.s.SetUnobserved(yes) }

// Stranger is how many bytes a peer may send at once whose client is not Admitted: the most that a door keeps of it.
const Stranger = 64 << 10

// Admitted reports whether the client may execute commands: it has authenticated, or need not. Until then a peer gets no
// more memory than Stranger.
func (c *Client) Admitted() bool { return c.s.Admitted() }

// Done is closed when the client has ended: by Close, by the server, which closes, or by CLIENT KILL. Whoever serves
// a peer closes its connection then, and the client.
func (c *Client) Done() <-chan struct{} { return c.s.Done() }

// Close ends the client. A command that waits has taken nothing and ends with ErrClosed; one that is being executed
// comes to its end first.
func (c *Client) Close() { c.s.Release() }
