package pressure

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// An operation runs on one connection from its first command to its last. The server can then free the roles of a
// client that dies, and no command is sent again on another connection when one breaks.
//
// A blocking command cannot be abandoned: an element that the server hands out in the same moment would be lost.
// Instead CLIENT UNBLOCK from another connection releases the command. Either it was released and got nothing, or it
// was served and its reply is used. So a wait ends promptly, and keeps its place in the queue of waiters. Where that is
// impossible (clients without dedicated connections, users without the permission) a wait is a series of short
// commands, called pieces.

const (
	// shortPiece limits how long a command blocks if it cannot be released, and in the first piece of every wait: most
	// waits are shorter, and need no preparation.
	shortPiece = 100 * time.Millisecond
	// longPiece limits how long any command blocks, so that the client notices a server that has gone.
	longPiece = 5 * time.Second
	// checkInterval is the time between two checks of a long wait whether its queue still exists.
	checkInterval = time.Second
	// unblockInterval is the time between two attempts to release a command.
	unblockInterval = 10 * time.Millisecond
)

// commander sends commands: a client or a connection.
type commander interface {
	redis.Cmdable
	Process(ctx context.Context, cmd redis.Cmder) error
}

// connections gives each operation a connection.
type connections struct {
	client redis.UniversalClient
	single *redis.Client // the client, or nil if its type has no dedicated connections
	// short and long are the pieces of a wait, well below the client's read timeout: when it passes, the client drops
	// the connection.
	short, long time.Duration
}

func newConnections(client redis.UniversalClient) connections {
	c := connections{client: client, short: shortPiece, long: longPiece}
	if single, ok := client.(*redis.Client); ok {
		c.single = single
		if t := single.Options().ReadTimeout; t > 0 {
			c.short, c.long = min(c.short, t/2), min(c.long, t/2)
		}
	}
	return c
}

// begin takes a connection for an operation that ends with ctx. The caller must call end.
func (c connections) begin(ctx context.Context) *conn {
	n := &conn{connections: c, commander: c.client, ctx: context.WithoutCancel(ctx)}
	n.first = n.ctx
	if c.single != nil {
		n.own = c.single.Conn()
		n.commander = n.own
		if !c.single.Options().ContextTimeoutEnabled {
			n.first = ctx
		}
	}
	return n
}

// conn is the connection of one operation.
type conn struct {
	connections // for commands on other connections
	commander
	own *redis.Conn // nil if commands use any connection
	id  int64       // CLIENT ID; 0 is not known yet, -1 means that commands cannot be released
	// ctx is the context of all commands but the first. It never ends, because replies must be read.
	ctx context.Context
	// first is the context of the first command. It ends the wait for a connection of the pool, but not the command
	// itself.
	first context.Context
}

// end gives the connection back to the pool.
func (c *conn) end() {
	if c.own != nil {
		_ = c.own.Close() // a broken connection was reported by its command already
	}
}

// context returns the context of the next command.
func (c *conn) context() context.Context {
	ctx := c.first
	c.first = c.ctx
	return ctx
}

// do runs a command; a null reply is no error.
func (c *conn) do(cmd redis.Cmder) error {
	err := c.Process(c.context(), cmd)
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// transaction runs commands in one step. It returns the first error among the replies; null replies are no errors.
func (c *conn) transaction(build func(ctx context.Context, tx redis.Pipeliner)) error {
	return run(c.TxPipelined, c.context(), build)
}

// run runs a pipeline or a transaction.
func run(pipelined func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error), ctx context.Context,
	build func(ctx context.Context, p redis.Pipeliner)) error {
	cmds, err := pipelined(ctx, func(p redis.Pipeliner) error {
		build(ctx, p)
		return nil
	})
	if err == nil || !errors.Is(err, redis.Nil) {
		return err
	}
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}

// wait calls try, which blocks for at most the given time, until try is done or fails. It also ends when the context
// ends, with its cause, and when check fails. It calls check, if not nil, from time to time. A null reply in try is no
// error.
func (c *conn) wait(ctx context.Context, check func(context.Context, commander) error,
	try func(block time.Duration) (done bool, err error)) error {
	for long := false; ; long = true {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		block, release := c.short, func() error { return nil }
		if long {
			releasable, err := c.releasable()
			if err != nil {
				return err
			}
			if long = releasable; long {
				block, release = c.long, c.releaseWhen(ctx, check)
			}
		}
		if deadline, ok := ctx.Deadline(); ok {
			block = max(min(block, time.Until(deadline)), time.Millisecond) // 0 would mean for ever
		}
		done, err := try(block)
		failure := release()
		if err != nil && !errors.Is(err, redis.Nil) || done {
			return err
		}
		if !long && check != nil {
			failure = check(c.context(), c)
		}
		if failure != nil {
			return failure
		}
	}
}

// releasable reports whether commands on this connection can be released.
func (c *conn) releasable() (bool, error) {
	if c.own == nil || c.id < 0 {
		return false, nil
	}
	if c.id > 0 {
		return true, nil
	}
	var id, unblock *redis.IntCmd
	err := run(c.Pipelined, c.context(), func(ctx context.Context, p redis.Pipeliner) {
		id, unblock = p.ClientID(ctx), p.ClientUnblock(ctx, 0) // no client has id 0: a test of the permission
	})
	if c.id = id.Val(); isReply(id.Err()) || isReply(unblock.Err()) {
		c.id, err = -1, nil
	}
	return c.id > 0, err
}

// isReply reports whether err is an error reply of the server.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// releaseWhen releases the next command of this connection when ctx ends or check fails. The caller calls ended when
// the command has ended; ended returns the error of check.
func (c *conn) releaseWhen(ctx context.Context, check func(context.Context, commander) error) (ended func() error) {
	stop, stopNow := context.WithCancel(c.ctx) // stop also ends waits for a connection
	stopped := make(chan struct{})
	var failure error
	go func() {
		defer close(stopped)
		tick := time.NewTicker(checkInterval)
		defer tick.Stop()
		for failure == nil && ctx.Err() == nil {
			select {
			case <-stop.Done():
				return
			case <-ctx.Done():
			case <-tick.C:
				if check != nil {
					failure = check(stop, c.client)
				}
			}
		}
		// CLIENT UNBLOCK has no effect if the command has not reached the server yet, so it is repeated until the
		// command ends.
		for {
			_ = c.client.ClientUnblock(stop, c.id).Err() // if this fails, the command ends with its piece
			select {
			case <-stop.Done():
				return
			case <-time.After(unblockInterval):
			}
		}
	}()
	return func() error {
		stopNow()
		<-stopped
		return failure
	}
}
