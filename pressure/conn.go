package pressure

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// An operation runs on one connection from its first command to its last. A server that looks after roles can then
// give back those of a client that dies, and a command is never sent again on another connection when one breaks.
//
// A command that blocks cannot be abandoned: what the server hands out in the same moment would be lost. It is
// released by CLIENT UNBLOCK from another connection instead: either it has been released and has got nothing, or it
// has been served and its reply is used. So a wait ends promptly, and keeps its place among those who wait. Where
// that is not possible (clients that cannot give a connection away, users without the permission) waits are made of
// short pieces.

const (
	// shortPiece is how long a command blocks at most if it cannot be released, and the first time: most waits are
	// shorter, and need no preparation.
	shortPiece = 100 * time.Millisecond
	// longPiece is how long a command blocks at most in any case, so that a server that has gone is noticed.
	longPiece = 5 * time.Second
	// checkInterval is how often a long wait looks whether what it waits for can still come.
	checkInterval = time.Second
	// unblockInterval is the time between two attempts to release a command.
	unblockInterval = 10 * time.Millisecond
)

// commander is what commands are sent through.
type commander interface {
	redis.Cmdable
	Process(ctx context.Context, cmd redis.Cmder) error
}

// connections gives each operation its connection.
type connections struct {
	client redis.UniversalClient
	single *redis.Client // client, or nil if it is of a kind that cannot give a connection away
	// short and long are the pieces of a wait. They are well below the client's read timeout, which breaks connections.
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

// begin takes a connection for an operation that ends with ctx. The caller calls end.
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
	connections // for commands that must not wait for this connection
	commander
	own *redis.Conn // nil if commands take any connection
	id  int64       // as the server knows it; 0 if it has not been asked, -1 if commands cannot be released
	// ctx is for all commands but the first: it never ends, because replies must be read.
	ctx context.Context
	// first is for the first command. It ends the wait for a connection of the pool, and has no effect on the command
	// itself.
	first context.Context
}

// end gives the connection back to the pool.
func (c *conn) end() {
	if c.own != nil {
		_ = c.own.Close() // the error says that the connection has broken, which its command has said already
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

// transaction runs commands in one step. It returns the first error among them; null replies are none.
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

// wait calls try, which blocks for at most the given time, until it reports that it is done or fails; or until the
// context ends, whose cause it returns; or until check fails, which is called now and then if it is not nil. A null
// reply in try is no error.
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
		id, unblock = p.ClientID(ctx), p.ClientUnblock(ctx, 0) // no client has this number: only the permission is asked for
	})
	if c.id = id.Val(); isReply(id.Err()) || isReply(unblock.Err()) {
		c.id, err = -1, nil
	}
	return c.id > 0, err
}

// isReply reports whether err is an error that the server has replied.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// releaseWhen releases the command that this connection is about to send when ctx ends or check fails. The function
// that it returns is called when the command has ended; it returns what check has failed with.
func (c *conn) releaseWhen(ctx context.Context, check func(context.Context, commander) error) (ended func() error) {
	stop, stopNow := context.WithCancel(c.ctx) // also ends waits for a connection
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
		// The command may not have reached the server yet, and then this has no effect: it is repeated until the command has
		// ended.
		for {
			_ = c.client.ClientUnblock(stop, c.id).Err() // if it fails the command ends with its piece
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
